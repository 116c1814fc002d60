//! Age: the oldest packet first, counted since its interface handed it over.
//!
//! Round robin at each output shares the output among inputs, not among sources: where flows of one source
//! and of a hundred meet, that source gets half. The oldest packet first gives every source the same,
//! whatever way its packets come by (the parking-lot problem). Of packets of one age the first in turn goes.
//!
//! # Source
//! Abts and Weisser, "Age-Based Packet Arbitration in Large-Radix k-ary n-cubes", SC 2007; the parking-lot
//! problem: Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, §15.4.1.

use super::{Arbiter, OutputRequests, Properties, first_from};
use serde::{Deserialize, Serialize};

/// The oldest packet.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Age;

impl Arbiter for Age {
    const PROPERTIES: Properties = Properties { keeps_ages: true, passes_alone: true, ..Properties::PLAIN };
    const MEMORYLESS: Option<Age> = Some(Age);

    #[inline(always)]
    fn choose<'a>(&mut self, _: usize, requests: &mut impl OutputRequests<'a>) -> Option<usize> {
        let (all, turn) = (requests.all(), requests.turn());
        let age = |request| (requests.can_go(request)).then(|| requests.age(request));
        let request = Age::oldest(all, turn, age)?;
        if requests.waiting().is_some() {
            // The oldest of those whose input is busy: it is the one that will be the oldest of all.
            let age = |request| requests.is_input_busy(request).then(|| requests.age(request));
            requests.set_waiting(Age::oldest(all, turn, age));
        }
        requests.take_turn(request);
        Some(request)
    }
}

impl Age {
    /// The oldest of `requests` that have an `age`; among those of one age the first from `pointer` on.
    #[inline(always)]
    pub(crate) fn oldest(
        requests: &[u64],
        pointer: usize,
        mut age: impl FnMut(usize) -> Option<u64>,
    ) -> Option<usize> {
        let mut oldest: Option<(usize, u64)> = None;
        // No request is taken, so that all are looked at, in turn.
        first_from(requests, pointer, |request| {
            if let Some(age) = age(request)
                && oldest.is_none_or(|(_, most)| age > most)
            {
                oldest = Some((request, age));
            }
            false
        });
        oldest.map(|(request, _)| request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a younger packet that goes first, and a tie that always favours the same input.
    #[test]
    fn the_oldest_goes_and_ties_go_in_turn() {
        let ages = [5, 9, 9, 7];
        let oldest =
            |requests: u64, pointer: usize| Age::oldest(&[requests], pointer, |request| Some(ages[request]));
        assert_eq!(oldest(0b1111, 0), Some(1));
        assert_eq!(oldest(0b1111, 2), Some(2));
        assert_eq!(oldest(0b1001, 0), Some(3));
        assert_eq!(Age::oldest(&[0b1111], 0, |request| (request == 0).then_some(5)), Some(0));
        assert_eq!(Age::oldest(&[0b1111], 0, |_| None), None);
    }
}
