//! The performance counter: cycles from the first footer in the TX FIFO to the last one out of the RX FIFO.
//!
//! ```text
//!   first footer written ══ cycles ══► last footer read
//! ```
//! # Source
//! D2.8 §2: it stores the cycles needed to complete the transfers; §2.1, Fig. 2.6: footer to footer, 28 for
//! one packet.

use serde::{Deserialize, Serialize};
use weft_units::{Clock, Time};

/// The performance counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PerformanceCounter {
    /// The edge that it counts from.
    began: Option<u64>,
    cycles: u64,
}

impl PerformanceCounter {
    /// A generator's first footer is written at `time`. The first of several generators counts.
    pub(crate) fn start(&mut self, time: Time, clock: &Clock) {
        let edge = clock.edges_before(time);
        self.began = Some(self.began.map_or(edge, |began| began.min(edge)));
    }

    /// The last footer is read at `time`.
    pub(crate) fn stop(&mut self, time: Time, clock: &Clock) {
        if let Some(began) = self.began.take() {
            self.cycles = clock.edges_before(time).saturating_sub(began);
        }
    }

    /// The cycles of the last test.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches cycles of a test that never began, and two tests that are added up.
    #[test]
    fn it_counts_from_start_to_stop() {
        let clock = Clock::from_hertz(100_000_000).unwrap();
        let at = |ns: u64| Time::from_ps(1000 * ns);
        let mut counter = PerformanceCounter::default();
        counter.stop(at(50), &clock);
        assert_eq!(counter.cycles(), 0);
        counter.start(at(30), &clock);
        counter.stop(at(310), &clock);
        assert_eq!(counter.cycles(), 28);
        counter.start(at(1000), &clock);
        counter.stop(at(1100), &clock);
        assert_eq!(counter.cycles(), 10);
    }
}
