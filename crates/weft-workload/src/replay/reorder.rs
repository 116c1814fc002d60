//! Messages between two ranks in the order in which they were posted.
//!
//! Messaging demands that order for messages that are to be matched. A network may change it: adaptive
//! routing, and an interface that interleaves the packets of several messages. The sender numbers the
//! messages to each rank; the receiver holds back what comes early.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A counter for each rank that one rank has to do with; most ranks have to do with few.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// (rank, counter), ascending by rank.
    entries: Vec<(u32, u32)>,
    /// The place of the counter that was last asked for: an exchange mostly goes to one rank after the other,
    /// and comes from one before the other.
    last: u32,
}

impl Counters {
    /// The counter of `rank`, which begins at 0.
    #[inline]
    pub fn of(&mut self, rank: u32) -> &mut u32 {
        let last = self.last as usize;
        let mut near = [last + 1, last, last.wrapping_sub(1)].into_iter();
        let found = near.find(|place| self.entries.get(*place).is_some_and(|entry| entry.0 == rank));
        let place = found.unwrap_or_else(|| self.find_or_add(rank));
        self.last = place as u32;
        &mut self.entries[place].1
    }

    fn find_or_add(&mut self, rank: u32) -> usize {
        self.entries.binary_search_by_key(&rank, |entry| entry.0).unwrap_or_else(|place| {
            self.entries.insert(place, (rank, 0));
            place
        })
    }
}

/// Restores the order at the receiver.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReorderBuffer<T> {
    /// The number that comes next, by source.
    expected: Counters,
    /// Messages that came early, by source and number.
    early: BTreeMap<(u32, u32), T>,
}

impl<T> Default for ReorderBuffer<T> {
    fn default() -> ReorderBuffer<T> {
        ReorderBuffer { expected: Counters::default(), early: BTreeMap::new() }
    }
}

impl<T> ReorderBuffer<T> {
    /// Message `number` of `source` has come: returns it if it is its turn, or else keeps it.
    #[inline]
    pub fn arrive(&mut self, source: u32, number: u32, message: T) -> Option<T> {
        let expected = self.expected.of(source);
        if *expected != number {
            self.early.insert((source, number), message);
            return None;
        }
        *expected = expected.wrapping_add(1);
        Some(message)
    }

    /// After a message of `source` had its turn: the next one, if it has come already.
    #[inline]
    pub fn next(&mut self, source: u32) -> Option<T> {
        if self.early.is_empty() {
            return None;
        }
        let expected = self.expected.of(source);
        let message = self.early.remove(&(source, *expected))?;
        *expected = expected.wrapping_add(1);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches a counter that is another rank's, of ranks next to each other and far apart.
        #[test]
        fn each_rank_has_its_counter(ranks in prop::collection::vec(0u32..12, 0..100)) {
            let (mut counters, mut oracle) = (Counters::default(), BTreeMap::new());
            for rank in ranks {
                let (counter, expected) = (counters.of(rank), oracle.entry(rank).or_insert(0));
                prop_assert_eq!(*counter, *expected);
                *counter += 1;
                *expected += 1;
            }
        }

        /// Catches a message that is lost, comes twice, or overtakes another of its source.
        #[test]
        fn any_order_of_arrival_is_put_right(
            shuffled in Just((0..60u32).map(|i| (i % 3, i / 3)).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let mut buffer = ReorderBuffer::default();
            let mut seen = [0; 3];
            for (source, number) in shuffled {
                let mut turn = buffer.arrive(source, number, number);
                while let Some(message) = turn {
                    prop_assert_eq!(message, seen[source as usize]);
                    seen[source as usize] += 1;
                    turn = buffer.next(source);
                }
            }
            prop_assert_eq!(seen, [20; 3]);
        }
    }
}
