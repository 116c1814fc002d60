//! The ledger: what becomes of packets on links and in switches, counted. A counter is declared once, here.
//!
//! ```text
//!   declared ─► counted (`counts.trimmed += 1`) ─► added up, per link and per run
//!                                                     │
//!      run.json ◄── RunTotals ─┬── LinkColumns ──► the table of links, the page
//!   rows of --json ◄── Outages, TrafficLosses, ScenarioLosses ──► sentences of the command
//! ```
//! A [`View`] is one of the places that show counts: an ordered list of those that it has, each by the name
//! that it has there.

use crate::Span;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;

/// A type that a counter can have.
pub trait Counted: Copy {
    /// Unit of its number; empty for packets and the like.
    const UNIT: &'static str;
    /// The number that is stored, in that unit.
    fn number(self) -> u64;
    /// The value of a stored number.
    fn of_number(number: u64) -> Self;
}

/// A line for each type: its unit, its number, its value.
macro_rules! counted {
    ($($type:ty, $unit:literal, $number:expr, $of:expr;)+) => {$(
        impl Counted for $type {
            const UNIT: &'static str = $unit;
            fn number(self) -> u64 {
                $number(self)
            }
            fn of_number(number: u64) -> $type {
                $of(number)
            }
        }
    )+};
}

counted! {
    u64, "", u64::from, u64::from;
    Span, "ps", Span::as_ps, Span::from_ps;
}

/// Declares a struct of counters: all zero at first, added up field by field, saved with a run.
///
/// ```
/// weft_units::counters! {
///     /// Doors.
///     pub struct Doors {
///         /// Opened.
///         pub opened: u64,
///         /// Time in which they were.
///         pub open: weft_units::Span,
///     }
/// }
/// let mut all = Doors::default();
/// all += Doors { opened: 2, ..Doors::default() };
/// assert_eq!(all.opened, 2);
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $($(#[$of_field:meta])* $of:vis $field:ident: $type:ty,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize, serde::Deserialize)]
        $visibility struct $name {
            $($(#[$of_field])* $of $field: $type,)+
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                $(self.$field += other.$field;)+
            }
        }
    };
}

counters! {
    /// Packets to which links and switches did something, by what they did.
    pub struct PacketCounts {
        /// Lost by chance.
        pub dropped: u64,
        /// Lost because the link was off.
        pub dead: u64,
        /// Lost because the buffer behind the link was full: at its tail under drop; under pause, because the
        /// head-room was too small.
        pub full: u64,
        /// Corrupted; they travelled on.
        pub corrupted: u64,
        /// Attempts of link layers that did not come through and were repeated.
        pub replayed: u64,
        /// Code words that FEC has corrected.
        pub corrected_codewords: u64,
        /// Code words that it could not correct.
        pub uncorrected_codewords: u64,
        /// Lost in a switch from which no link led towards their destination.
        pub unreachable: u64,
        /// Lost in a switch because tables that route around failures gave way to others: the old ones had
        /// brought them where the new ones could not have.
        pub reconfigured: u64,
        /// Copies that were made.
        pub duplicated: u64,
        /// Held up, so that the next could overtake them.
        pub reordered: u64,
        /// Cut down to their headers, as the buffer behind the link was full.
        pub trimmed: u64,
        /// Sent again by their source, as they had been lost, trimmed or refused.
        pub resent: u64,
        /// Dropped by the interface that they were for, as it had taken them before.
        pub duplicates: u64,
        /// Acknowledgements of reliable connections.
        pub acknowledgements: u64,
        /// Time-outs of reliable connections; where interfaces have none, of packets and blocks.
        pub timeouts: u64,
        /// Left their routing for a detour by tables, as links were off.
        pub rerouted: u64,
        /// Time in which links were off, each direction by itself.
        pub off: Span,
    }
}

impl PacketCounts {
    /// Packets that went no further.
    pub fn lost(&self) -> u64 {
        self.dropped + self.dead + self.unreachable + self.reconfigured + self.full
    }

    /// Whether every packet arrived once, whole and in its turn.
    pub fn is_undisturbed(&self) -> bool {
        let changed = self.corrupted + self.duplicated + self.reordered + self.trimmed + self.resent;
        self.lost() + changed == 0
    }
}

/// Counts that are set to zero at the end of warm-up, with those of before.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct CountLedger {
    /// Since they were last set to zero.
    pub counts: PacketCounts,
    before: PacketCounts,
}

impl CountLedger {
    /// Begins to count anew.
    pub fn reset(&mut self) {
        self.before += std::mem::take(&mut self.counts);
    }

    /// Since the run began.
    pub fn total(&self) -> PacketCounts {
        let mut total = self.before;
        total += self.counts;
        total
    }
}

/// A counter as a view shows it.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// The name there.
    pub name: &'static str,
    /// Unit of its number; empty for packets and the like.
    pub unit: &'static str,
    /// The meaning there, by lines; empty where others say it.
    pub doc: &'static [&'static str],
    /// A phrase about it, with `{}` for the number; empty: there is none.
    phrase: &'static str,
    /// The number that it stands at.
    pub get: fn(&PacketCounts) -> u64,
    /// Puts it to this number.
    pub set: fn(&mut PacketCounts, u64),
}

impl Shown {
    fn said(&self, counts: &PacketCounts) -> String {
        self.phrase.replace("{}", &(self.get)(counts).to_string())
    }
}

/// A place that shows counts.
///
/// It is what serde means by `with`, for a field that is flattened: `#[serde(flatten, with = "RunTotals")]`.
/// A struct with such a field is for formats that say of themselves what they hold, such as JSON.
pub trait View {
    /// The counters, in order.
    const SHOWN: &'static [Shown];

    /// Phrases about the counters that have one and are not zero.
    fn phrases(counts: &PacketCounts) -> impl Iterator<Item = String> {
        let said = Self::SHOWN.iter().filter(|shown| !shown.phrase.is_empty() && (shown.get)(counts) > 0);
        said.map(|shown| shown.said(counts))
    }

    /// All phrases, zeros too, as a list.
    fn list(counts: &PacketCounts) -> String {
        Self::SHOWN.iter().map(|shown| shown.said(counts)).collect::<Vec<_>>().join(", ")
    }

    /// Writes the counters under their names.
    ///
    /// # Errors
    /// Those of the serializer.
    fn serialize<S: Serializer>(counts: &PacketCounts, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Self::SHOWN.len()))?;
        Self::SHOWN.iter().try_for_each(|shown| map.serialize_entry(shown.name, &(shown.get)(counts)))?;
        map.end()
    }

    /// Reads the counters by their names. One that is missing is zero, as are those that the view does not
    /// show.
    ///
    /// # Errors
    /// Something other than numbers.
    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PacketCounts, D::Error>
    where
        Self: Sized,
    {
        deserializer.deserialize_map(ByName::<Self>(PhantomData))
    }
}

struct ByName<V>(PhantomData<V>);

impl<'de, V: View> Visitor<'de> for ByName<V> {
    type Value = PacketCounts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("counts under their names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PacketCounts, A::Error> {
        let mut counts = PacketCounts::default();
        while let Some(name) = map.next_key::<String>()? {
            match V::SHOWN.iter().find(|shown| shown.name == name) {
                Some(shown) => (shown.set)(&mut counts, map.next_value()?),
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(counts)
    }
}

const fn unit_of<T: Counted>(_: fn(&PacketCounts) -> T) -> &'static str {
    T::UNIT
}

/// Declares views: of each counter its name there, its field, perhaps its meaning and a phrase.
macro_rules! views {
    ($(
        $(#[doc = $doc:literal])+
        $view:ident {
            $($(#[doc = $meaning:literal])* $name:ident: $field:ident $(=> $phrase:literal)?,)+
        }
    )+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug)]
        pub struct $view;

        impl View for $view {
            const SHOWN: &'static [Shown] = &[$(Shown {
                name: stringify!($name),
                unit: unit_of(|counts| counts.$field),
                doc: &[$($meaning),*],
                phrase: concat!($($phrase)?),
                get: |counts| counts.$field.number(),
                set: |counts, number| counts.$field = Counted::of_number(number),
            },)+];
        }
    )+};
}

views! {
    /// The totals of `run.json`, over all runs of a command.
    RunTotals {
        dropped: dropped,
        dropped_dead: dead,
        dropped_full: full,
        corrupted: corrupted,
        replayed: replayed,
        corrected_codewords: corrected_codewords,
        uncorrected_codewords: uncorrected_codewords,
        dropped_unreachable: unreachable,
        dropped_reconfigured: reconfigured,
        duplicated: duplicated,
        reordered: reordered,
        trimmed: trimmed,
        resent: resent,
        duplicates: duplicates,
        acknowledgements: acknowledgements,
        timeouts: timeouts,
        rerouted: rerouted,
    }

    /// The table of links, of one direction of one link.
    LinkColumns {
        /// Packets among them that it lost by chance.
        dropped: dropped,
        /// Packets among them that it lost because it was off.
        dropped_dead: dead,
        /// Packets among them that found the buffer behind it full.
        dropped_full: full,
        /// Packets among them of which that buffer kept the header alone.
        trimmed: trimmed,
        /// Packets among them that the endpoint which it leaves sent again.
        resent: resent,
        /// Packets among them that it corrupted.
        corrupted: corrupted,
        /// Packets that its link layer sent again, once per attempt that did not come through.
        replayed: replayed,
        /// Code words with bytes of packets that FEC corrected.
        corrected_codewords: corrected_codewords,
        /// Code words with bytes of packets that FEC could not correct.
        uncorrected_codewords: uncorrected_codewords,
        /// Packets among them that are copies which it made.
        duplicated: duplicated,
        /// Packets among them that it held up, so that the next could overtake them.
        reordered: reordered,
        /// Time in which it was off, by a failure.
        off_ps: off,
    }

    /// Rows of `weft traffic`: what outages did. The first three are a part of `packets_dropped`.
    Outages {
        packets_dropped_dead: dead,
        packets_dropped_unreachable: unreachable,
        packets_dropped_reconfigured: reconfigured,
        packets_rerouted: rerouted,
    }

    /// Rows of `weft traffic`: what full buffers and sources did. The first is a part of `packets_dropped`.
    TrafficLosses {
        packets_dropped_full: full,
        packets_trimmed: trimmed => "full buffers trimmed {} packets",
        packets_resent: resent => "sources sent {} packets again",
        packets_duplicates: duplicates => "destinations dropped {} packets that they had taken before",
        packets_acknowledgements: acknowledgements,
        connections_timeouts: timeouts => "{} time-outs of interfaces",
    }

    /// Rows of ranks, of `weft osu`, `weft replay` and `weft run`: what interfaces did about losses.
    Repairs {
        packets_resent: resent => "sources sent {} packets again",
        packets_duplicates: duplicates => "destinations dropped {} packets that they had taken before",
        packets_acknowledgements: acknowledgements,
        connections_timeouts: timeouts => "{} time-outs of interfaces",
    }

    /// Rows of a scenario.
    ScenarioLosses {
        packets_dropped: full => "{} packets found a buffer full",
        packets_trimmed: trimmed => "{} packets were trimmed by full buffers",
        packets_resent: resent => "{} packets were sent again",
    }

    /// The census of packets: what became of those that went no further.
    LostByCause {
        dropped: dropped => "{} lost by chance",
        dead: dead => "{} on dead links",
        unreachable: unreachable => "{} cut off from their destination",
        reconfigured: reconfigured => "{} as tables changed",
        full: full => "{} where buffers were full",
    }

    /// The error of ranks that wait for packets which do not come.
    MissingByCause {
        dropped: dropped => "{} packets were lost by chance",
        dead: dead => "{} on dead links",
        full: full => "{} where buffers were full",
        unreachable: unreachable => "{} were cut off from their destination",
        reconfigured: reconfigured => "{} were lost as tables changed",
        corrupted: corrupted => "and {} were corrupted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts that all differ.
    fn different() -> PacketCounts {
        let mut counts = PacketCounts::default();
        for (shown, number) in RunTotals::SHOWN.iter().chain(LinkColumns::SHOWN).zip(1..) {
            (shown.set)(&mut counts, number);
        }
        counts
    }

    /// Catches a counter that neither totals nor links show, an entry of a view whose name and field do not
    /// belong together, and two entries of one name.
    #[test]
    fn views_show_each_counter_once() {
        let counts = different();
        let text = format!("{counts:?}").replace("Span(", "").replace(')', "");
        assert!(!text.contains(": 0"), "not shown: {text}");
        for view in
            [RunTotals::SHOWN, LinkColumns::SHOWN, Outages::SHOWN, TrafficLosses::SHOWN, Repairs::SHOWN]
        {
            let names: std::collections::BTreeSet<_> = view.iter().map(|shown| shown.name).collect();
            let numbers: std::collections::BTreeSet<_> =
                view.iter().map(|shown| (shown.get)(&counts)).collect();
            assert_eq!((names.len(), numbers.len()), (view.len(), view.len()));
            for shown in view {
                let unit = if shown.unit.is_empty() { "" } else { &format!("_{}", shown.unit) };
                let field = shown.name.trim_end_matches(unit).rsplit('_').next().unwrap_or_default();
                assert!(text.contains(&format!("{field}: {}", (shown.get)(&counts))), "{}", shown.name);
            }
        }
    }

    /// Catches a loss that the sum has and the census or the error lacks.
    #[test]
    fn losses_are_those_of_the_census() {
        let counts = different();
        let sum = |view: &[Shown]| view.iter().map(|shown| (shown.get)(&counts)).sum::<u64>();
        assert_eq!(sum(LostByCause::SHOWN), counts.lost());
        assert_eq!(sum(MissingByCause::SHOWN), counts.lost() + counts.corrupted);
    }

    #[test]
    fn phrases_leave_out_what_did_not_happen() {
        let counts = PacketCounts { full: 2, resent: 3, ..PacketCounts::default() };
        let said: Vec<String> = TrafficLosses::phrases(&counts).collect();
        assert_eq!(said, ["sources sent 3 packets again"]);
        assert!(LostByCause::list(&counts).ends_with("0 as tables changed, 2 where buffers were full"));
    }
}
