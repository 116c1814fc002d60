//! A trace over time: operations by interval, of all ranks together.
//!
//! The end is known when the last rank is read. So intervals begin short, and whenever they do not reach they
//! become twice as long: two become one.

use super::pairs::Volume;
use serde::Serialize;
use std::num::NonZeroU32;
use weft_units::Span;

/// The length of intervals at first. A trace without computation has one of these.
const FIRST_INTERVAL: Span = Span::from_ns(1);

/// Intervals of one length, from the begin of the trace to its end.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceEvolution {
    /// The time that is meant: `computation` of each rank, as nothing else takes time in a trace.
    pub time: &'static str,
    /// The length of an interval.
    pub interval_us: f64,
    /// The intervals in order, also those without operations.
    pub rows: Vec<EvolutionInterval>,
}

/// The operations of all ranks that begin from `from_us` on and before `to_us`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct EvolutionInterval {
    pub from_us: f64,
    pub to_us: f64,
    pub operations: u64,
    pub messages: u64,
    pub message_bytes: u64,
    pub collective_calls: u64,
    pub collective_send_bytes: u64,
}

/// Operations that are counted together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct OpVolumes {
    pub(super) operations: u64,
    pub(super) messages: Volume,
    /// Calls of collectives, with the bytes that they give.
    pub(super) collectives: Volume,
}

impl OpVolumes {
    fn add(&mut self, other: OpVolumes) {
        self.operations += other.operations;
        self.messages.add(other.messages);
        self.collectives.add(other.collectives);
    }
}

/// The intervals so far.
#[derive(Debug)]
pub(super) struct EvolutionCount {
    most: usize,
    length_ps: u64,
    intervals: Vec<OpVolumes>,
}

impl EvolutionCount {
    /// With so many intervals in the end, or down to half as many.
    pub(super) fn new(most: NonZeroU32) -> EvolutionCount {
        // One could not become longer for ever.
        let most = most.get().max(2) as usize;
        EvolutionCount { most, length_ps: FIRST_INTERVAL.as_ps(), intervals: Vec::new() }
    }

    /// Adds what happens at a time.
    pub(super) fn add(&mut self, time_ps: u64, happened: OpVolumes) {
        while time_ps / self.length_ps >= self.most as u64 {
            self.length_ps = self.length_ps.saturating_mul(2);
            let pairs = self.intervals.chunks(2).map(|pair| {
                let mut sum = OpVolumes::default();
                pair.iter().for_each(|one| sum.add(*one));
                sum
            });
            self.intervals = pairs.collect();
        }
        let place = (time_ps / self.length_ps) as usize;
        if self.intervals.len() <= place {
            self.intervals.resize(place + 1, OpVolumes::default());
        }
        self.intervals[place].add(happened);
    }

    /// Goes on to the end of a rank.
    pub(super) fn reach(&mut self, end_ps: u64) {
        self.add(end_ps.saturating_sub(1), OpVolumes::default());
    }

    pub(super) fn into_evolution(self) -> TraceEvolution {
        let us = |place: usize| Span::from_ps(self.length_ps.saturating_mul(place as u64)).as_us_f64();
        let row = |(place, happened): (usize, &OpVolumes)| EvolutionInterval {
            from_us: us(place),
            to_us: us(place + 1),
            operations: happened.operations,
            messages: happened.messages.count,
            message_bytes: happened.messages.bytes,
            collective_calls: happened.collectives.count,
            collective_send_bytes: happened.collectives.bytes,
        };
        let rows = self.intervals.iter().enumerate().map(row).collect();
        TraceEvolution { time: "computation", interval_us: us(1), rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: OpVolumes = OpVolumes {
        operations: 1,
        messages: Volume { count: 1, bytes: 5 },
        collectives: Volume { count: 0, bytes: 0 },
    };

    /// Catches operations that are lost or move where intervals become longer, and an end that is cut off.
    #[test]
    fn intervals_become_longer_and_keep_their_contents() {
        let mut count = EvolutionCount::new(NonZeroU32::new(5).unwrap());
        for ns in 0..9 {
            count.add(Span::from_ns(ns).as_ps(), ONE);
        }
        count.reach(Span::from_ns(12).as_ps());
        let evolution = count.into_evolution();
        // Five of 2 ns reach to 10: they are 4 ns long.
        assert_eq!(evolution.interval_us, 0.004);
        let rows = evolution.rows.iter().map(|row| (row.messages, row.message_bytes));
        assert_eq!(rows.collect::<Vec<_>>(), [(4, 20), (4, 20), (1, 5)]);
        assert_eq!(evolution.rows[2].to_us, 0.012);
    }

    /// Catches a loop without an end at the largest time that there is.
    #[test]
    fn the_largest_time_has_an_interval() {
        let mut count = EvolutionCount::new(NonZeroU32::MIN);
        count.add(0, ONE);
        count.add(u64::MAX, ONE);
        let rows = count.into_evolution().rows;
        assert_eq!(rows.iter().map(|row| row.operations).sum::<u64>(), 2);
    }
}
