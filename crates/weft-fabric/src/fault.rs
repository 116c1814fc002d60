//! Faults of links: packets lost, corrupted, duplicated or delayed by chance, and links that are off for a
//! time or for good.
//!
//! ```text
//!  line ══ packet ══► off while it was on the link? ──yes──► dropped: dead link
//!                       └─no─► random: dropped · corrupted (travels on, marked) · duplicated (a copy
//!                              follows it) · reordered (it comes late) · whole
//!
//!  off       ▁▁▁▁████████▁▁▁▁▁▁███▁▁▁▁▁
//!  packets   ├─a─┤ ├─b─┤ ├─c─┤   ├─d─┤       head on the line to tail at the far end: a and d
//!            ok    lost  lost    ok          arrive, b and c do not
//! ```
//! A dropped packet has been on the line. Its space in the buffer that it never reached is given back to the
//! sender when the far end could have said so, a link's latency after its tail was due, so that credits stay
//! whole, and a link that comes back carries at its full rate. A link that is off goes on taking packets and
//! loses them all: whatever waits for it drains. A switch that is off is one all of whose links are off.
//!
//! A copy occupies the line and the buffer behind it like any packet; where that has no space for it, none is
//! made. A reordered packet arrives later by its own time on the line and that of the largest packet: a
//! packet that follows it closely overtakes it.
//!
//! # Not modelled
//! Bits: a corrupted packet keeps its route, and whoever receives it finds out. Repair of what is lost here
//! (bits in error, and their repetition, are the link layer's). What a link that comes back does before it
//! carries packets (training): it is part of the time that it is off.

use serde::{Deserialize, Serialize};
use weft_engine::Stream;
use weft_units::{Span, Time};

/// Chances are counted in millionths.
pub const MILLION: u32 = 1_000_000;

/// Times during which a link is off: intervals that neither touch nor overlap, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OffTimes(Vec<OffInterval>);

/// An interval during which a link is off.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct OffInterval {
    /// The first instant at which it is off.
    pub from: Time,
    /// The first at which it is on again; [`Time::NEVER`]: it stays off.
    pub until: Time,
}

impl OffTimes {
    /// Never off.
    pub const NEVER: OffTimes = OffTimes(Vec::new());

    /// Off during any of `intervals`, which may overlap and come in any order; empty ones count nothing.
    pub fn new(mut intervals: Vec<OffInterval>) -> OffTimes {
        intervals.retain(|interval| interval.from < interval.until);
        intervals.sort_unstable();
        let mut merged: Vec<OffInterval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match merged.last_mut() {
                Some(last) if interval.from <= last.until => last.until = last.until.max(interval.until),
                _ => merged.push(interval),
            }
        }
        OffTimes(merged)
    }

    /// Off from `from` on, for good.
    pub fn after(from: Time) -> OffTimes {
        OffTimes::new(vec![OffInterval { from, until: Time::NEVER }])
    }

    /// Off while one of the two is.
    pub fn or(self, other: OffTimes) -> OffTimes {
        if self.0.is_empty() {
            return other;
        }
        OffTimes::new([self.0, other.0].concat())
    }

    /// The intervals.
    pub fn intervals(&self) -> &[OffInterval] {
        &self.0
    }

    /// Whether it is never off.
    pub fn is_never(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is off at any instant from `begin` to `end`, both included.
    pub fn meet(&self, begin: Time, end: Time) -> bool {
        let after = self.0.partition_point(|interval| interval.until <= begin);
        self.0.get(after).is_some_and(|interval| interval.from <= end)
    }

    /// For how long it is off from `begin` until `end`.
    pub fn within(&self, begin: Time, end: Time) -> Span {
        let overlap = |interval: &OffInterval| {
            let (from, until) = (interval.from.max(begin), interval.until.min(end));
            until.saturating_since(from.min(until))
        };
        self.0.iter().map(overlap).sum()
    }
}

/// How one direction of a link fails. The chances together are at most [`MILLION`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FaultParameters {
    /// Of a million packets so many are lost.
    pub drop: u32,
    /// Of a million packets so many are corrupted.
    pub corrupt: u32,
    /// Of a million packets so many arrive twice.
    pub duplicate: u32,
    /// Of a million packets so many may be overtaken by the next.
    pub reorder: u32,
    /// The times during which it loses everything.
    pub off: OffTimes,
}

impl FaultParameters {
    /// Whether the link never fails.
    pub fn is_none(&self) -> bool {
        *self == FaultParameters::default()
    }
}

/// Packets to which links did something, by what they did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FaultCounts {
    /// Lost by chance.
    pub dropped: u64,
    /// Lost because the link was off.
    pub dead: u64,
    /// Lost in a switch from which no link led towards their destination.
    pub unreachable: u64,
    /// Lost in a switch because tables that route around failures gave way to others: the old ones had
    /// brought them where the new ones could not have.
    pub reconfigured: u64,
    /// Lost because the buffer behind the link was full: at its tail under drop; under pause, because the
    /// head-room was too small.
    pub full: u64,
    /// Corrupted; they travelled on.
    pub corrupted: u64,
    /// Copies that were made.
    pub duplicated: u64,
    /// Held up, so that the next could overtake them.
    pub reordered: u64,
    /// Cut down to their headers, as the buffer behind the link was full.
    pub trimmed: u64,
    /// Sent again by their source, as they had been lost or trimmed.
    pub resent: u64,
}

impl FaultCounts {
    /// None.
    pub(crate) const NONE: FaultCounts = FaultCounts {
        dropped: 0,
        dead: 0,
        unreachable: 0,
        reconfigured: 0,
        full: 0,
        corrupted: 0,
        duplicated: 0,
        reordered: 0,
        trimmed: 0,
        resent: 0,
    };

    /// Packets that went no further.
    pub fn lost(&self) -> u64 {
        self.dropped + self.dead + self.unreachable + self.reconfigured + self.full
    }

    /// Whether every packet arrived once, whole and in its turn.
    pub fn is_none(&self) -> bool {
        *self == FaultCounts::default()
    }
}

impl std::ops::AddAssign for FaultCounts {
    fn add_assign(&mut self, other: FaultCounts) {
        self.dropped += other.dropped;
        self.dead += other.dead;
        self.unreachable += other.unreachable;
        self.reconfigured += other.reconfigured;
        self.full += other.full;
        self.corrupted += other.corrupted;
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.trimmed += other.trimmed;
        self.resent += other.resent;
    }
}

/// The faults of one direction of a link.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Fault {
    parameters: FaultParameters,
    rng: Stream,
    /// Since the counters were last reset.
    pub(crate) counts: FaultCounts,
    /// Before that.
    before: FaultCounts,
    /// The time at which they were reset.
    since: Time,
}

/// The outcome of a packet's crossing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Arrives,
    /// It arrives, marked.
    Corrupted,
    /// It arrives, and a copy is to follow.
    Duplicated,
    /// It arrives late.
    Reordered,
    Lost,
}

impl Fault {
    pub(crate) fn new(parameters: FaultParameters, rng: Stream) -> Fault {
        let (counts, before) = (FaultCounts::default(), FaultCounts::default());
        Fault { parameters, rng, counts, before, since: Time::ZERO }
    }

    /// Decides on a packet that is on the link from `head` to `tail`: on its line, then at the far end.
    pub(crate) fn strike(&mut self, head: Time, tail: Time) -> Fate {
        let FaultParameters { drop, corrupt, duplicate, reorder, off } = &self.parameters;
        if off.meet(head, tail) {
            self.counts.dead += 1;
            return Fate::Lost;
        }
        let corrupt = drop + corrupt;
        let duplicate = corrupt + duplicate;
        let reorder = duplicate + reorder;
        if reorder == 0 {
            return Fate::Arrives;
        }
        match self.rng.below(MILLION) {
            thrown if thrown < *drop => {
                self.counts.dropped += 1;
                Fate::Lost
            }
            thrown if thrown < corrupt => {
                self.counts.corrupted += 1;
                Fate::Corrupted
            }
            // The copy is counted when it is made.
            thrown if thrown < duplicate => Fate::Duplicated,
            thrown if thrown < reorder => {
                self.counts.reordered += 1;
                Fate::Reordered
            }
            _ => Fate::Arrives,
        }
    }

    /// A copy has been put on the link, from `head` to `tail`. Whether it arrives: nothing but time may
    /// strike it, so that no packet is copied for ever.
    pub(crate) fn copy(&mut self, head: Time, tail: Time) -> Fate {
        self.counts.duplicated += 1;
        if self.parameters.off.meet(head, tail) {
            self.counts.dead += 1;
            return Fate::Lost;
        }
        Fate::Arrives
    }

    /// Whether the link may make copies of packets.
    pub(crate) fn may_copy(&self) -> bool {
        self.parameters.duplicate > 0
    }

    /// Whether the link never fails.
    pub(crate) fn is_none(&self) -> bool {
        self.parameters.is_none()
    }

    /// Begins to count anew at `now`.
    pub(crate) fn reset(&mut self, now: Time) {
        self.before += self.counts;
        self.counts = FaultCounts::default();
        self.since = now;
    }

    /// Since the run began.
    pub(crate) fn total(&self) -> FaultCounts {
        let mut total = self.before;
        total += self.counts;
        total
    }

    /// For how long the link has been off since the counters were last reset.
    pub(crate) fn time_off(&self, now: Time) -> Span {
        self.parameters.off.within(self.since, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strikes(parameters: FaultParameters, packets: u32) -> FaultCounts {
        let mut fault = Fault::new(parameters, Stream::new(5, 6, 7));
        let (mut marked, mut late) = (0, 0);
        for number in 0..u64::from(packets) {
            let at = Time::from_ps(number);
            let fate = fault.strike(at, at);
            marked += u64::from(fate == Fate::Corrupted);
            late += u64::from(fate == Fate::Reordered);
            if fate == Fate::Duplicated {
                fault.copy(at, at);
            }
        }
        assert_eq!(marked, fault.counts.corrupted, "a packet is marked if and only if it is counted");
        assert_eq!(late, fault.counts.reordered);
        fault.reset(Time::from_ps(packets.into()));
        assert_eq!(fault.counts, FaultCounts::default());
        fault.total()
    }

    /// Catches chances that are off by a factor, or that share their random numbers wrongly.
    #[test]
    fn chances_are_met() {
        let some = FaultParameters {
            drop: 100_000,
            corrupt: 50_000,
            duplicate: 200_000,
            reorder: 20_000,
            ..Default::default()
        };
        let counts = strikes(some, 100_000);
        // Five standard deviations of the binomial: 474, 345, 632 and 221.
        assert!(counts.dropped.abs_diff(10_000) < 474, "{counts:?}");
        assert!(counts.corrupted.abs_diff(5_000) < 345, "{counts:?}");
        assert!(counts.duplicated.abs_diff(20_000) < 632, "{counts:?}");
        assert!(counts.reordered.abs_diff(2_000) < 221, "{counts:?}");
        let all = FaultParameters { drop: 400_000, corrupt: 600_000, ..Default::default() };
        let all = strikes(all, 1000);
        assert_eq!(all.dropped + all.corrupted, 1000);
    }

    /// Catches an off time that is one too late or too early, and one that does not end.
    #[test]
    fn a_link_is_off_in_its_time() {
        let off = |off| strikes(FaultParameters { off, ..Default::default() }, 100);
        let at = Time::from_ps;
        assert_eq!(off(OffTimes::after(at(10))), FaultCounts { dead: 90, ..Default::default() });
        let twice = OffTimes::new(vec![
            OffInterval { from: at(10), until: at(20) },
            OffInterval { from: at(50), until: at(53) },
        ]);
        assert_eq!(off(twice.clone()), FaultCounts { dead: 13, ..Default::default() });
        let mut fault =
            Fault::new(FaultParameters { off: twice, ..Default::default() }, Stream::new(1, 2, 3));
        assert_eq!(fault.time_off(at(52)), Span::from_ps(12));
        fault.reset(at(15));
        assert_eq!(fault.time_off(at(52)), Span::from_ps(7));
    }

    proptest! {
        /// Catches intervals that are merged wrongly, and packets that slip through at an edge of one:
        /// compared with a table that says of every instant whether the link is off.
        #[test]
        fn off_times_are_the_instants_of_their_intervals(
            given in prop::collection::vec((0u64..60, 0u64..12, any::<bool>()), 0..8),
            other in prop::collection::vec((0u64..60, 0u64..12), 0..4),
            (begin, length) in (0u64..70, 0u64..10),
        ) {
            let mut is_off = [false; 100];
            let mut intervals = |from: u64, length: u64, ends: bool| {
                let until = if ends { from + length } else { 100 };
                is_off[from as usize..until as usize].fill(true);
                let until = if ends { Time::from_ps(until) } else { Time::NEVER };
                OffInterval { from: Time::from_ps(from), until }
            };
            // Few stay off, so that most cases have gaps.
            let given = given.iter().map(|&(from, length, ends)| intervals(from, length, ends || from < 40));
            let first = OffTimes::new(given.collect());
            let others = other.iter().map(|&(from, length)| intervals(from, length, true));
            let second = OffTimes::new(others.collect());
            let off = first.or(second);
            prop_assert!(off.intervals().windows(2).all(|pair| pair[0].until < pair[1].from));
            prop_assert!(off.intervals().iter().all(|interval| interval.from < interval.until));
            let (first, last) = (begin as usize, (begin + length) as usize);
            let (from, to) = (Time::from_ps(begin), Time::from_ps(begin + length));
            prop_assert_eq!(off.meet(from, to), is_off[first..=last].contains(&true));
            let instants = is_off[first..last].iter().filter(|&&off| off).count() as u64;
            prop_assert_eq!(off.within(from, to), Span::from_ps(instants));
            prop_assert_eq!(off.is_never(), !is_off.contains(&true));
        }
    }
}
