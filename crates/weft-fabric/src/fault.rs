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
use weft_units::{CountLedger, PacketCounts, Span, Time};

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

/// Counts a packet that goes no further, by the cause.
pub(crate) type LossCause = fn(&mut PacketCounts);

/// The faults of one direction of a link.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Fault {
    parameters: FaultParameters,
    rng: Stream,
    ledger: CountLedger,
    /// The time at which it was reset.
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
        Fault { parameters, rng, ledger: CountLedger::default(), since: Time::ZERO }
    }

    /// Decides on a packet that is on the link from `head` to `tail`: on its line, then at the far end.
    pub(crate) fn strike(&mut self, head: Time, tail: Time) -> Fate {
        let FaultParameters { drop, corrupt, duplicate, reorder, off } = &self.parameters;
        if off.meet(head, tail) {
            self.ledger.counts.dead += 1;
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
                self.ledger.counts.dropped += 1;
                Fate::Lost
            }
            thrown if thrown < corrupt => {
                self.ledger.counts.corrupted += 1;
                Fate::Corrupted
            }
            // The copy is counted when it is made.
            thrown if thrown < duplicate => Fate::Duplicated,
            thrown if thrown < reorder => {
                self.ledger.counts.reordered += 1;
                Fate::Reordered
            }
            _ => Fate::Arrives,
        }
    }

    /// A copy has been put on the link, from `head` to `tail`. Whether it arrives: nothing but time may
    /// strike it, so that no packet is copied for ever.
    pub(crate) fn copy(&mut self, head: Time, tail: Time) -> Fate {
        self.ledger.counts.duplicated += 1;
        if self.parameters.off.meet(head, tail) {
            self.ledger.counts.dead += 1;
            return Fate::Lost;
        }
        Fate::Arrives
    }

    /// Whether the link may make copies of packets.
    pub(crate) fn may_copy(&self) -> bool {
        self.parameters.duplicate > 0
    }

    /// Whether the link is off.
    pub(crate) fn is_off(&self, now: Time) -> bool {
        !self.parameters.off.is_never() && self.parameters.off.meet(now, now)
    }

    /// Whether the link never fails.
    pub(crate) fn is_none(&self) -> bool {
        self.parameters.is_none()
    }

    /// Begins to count anew at `now`.
    pub(crate) fn reset(&mut self, now: Time) {
        self.ledger.reset();
        self.since = now;
    }

    /// Since the run began.
    pub(crate) fn total(&self) -> PacketCounts {
        self.ledger.total()
    }

    /// Since the counters were last reset, until `now`.
    pub(crate) fn counts(&self, now: Time) -> PacketCounts {
        PacketCounts { off: self.parameters.off.within(self.since, now), ..self.ledger.counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strikes(parameters: FaultParameters, packets: u32) -> PacketCounts {
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
        assert_eq!(marked, fault.ledger.counts.corrupted, "a packet is marked if and only if it is counted");
        assert_eq!(late, fault.ledger.counts.reordered);
        fault.reset(Time::from_ps(packets.into()));
        assert_eq!(fault.ledger.counts, PacketCounts::default());
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
        assert_eq!(off(OffTimes::after(at(10))), PacketCounts { dead: 90, ..Default::default() });
        let twice = OffTimes::new(vec![
            OffInterval { from: at(10), until: at(20) },
            OffInterval { from: at(50), until: at(53) },
        ]);
        assert_eq!(off(twice.clone()), PacketCounts { dead: 13, ..Default::default() });
        let mut fault =
            Fault::new(FaultParameters { off: twice, ..Default::default() }, Stream::new(1, 2, 3));
        assert_eq!(fault.counts(at(52)).off, Span::from_ps(12));
        fault.reset(at(15));
        assert_eq!(fault.counts(at(52)).off, Span::from_ps(7));
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
