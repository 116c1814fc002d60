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
    /// The place of the counter that was last asked for: the messages of an exchange go to ranks one after
    /// the other, and come about so.
    last: u32,
}

/// Counters on each side of the last one that are looked at before all: a few lines of memory.
const NEAR: usize = 16;

impl Counters {
    /// The counter of `rank`, which begins at 0.
    #[inline]
    pub fn of(&mut self, rank: u32) -> &mut u32 {
        let place = match self.find(rank) {
            Ok(place) => place,
            Err(place) => {
                self.entries.insert(place, (rank, 0));
                place
            }
        };
        self.last = place as u32;
        &mut self.entries[place].1
    }

    /// The place of a rank's counter, or that at which it would be.
    fn find(&self, rank: u32) -> Result<usize, usize> {
        let last = self.last as usize;
        let from = last.saturating_sub(NEAR);
        let near = &self.entries[from..(last + NEAR).min(self.entries.len())];
        let is_near = near.first().is_some_and(|first| first.0 <= rank)
            && near.last().is_some_and(|last| rank <= last.0);
        let (from, among) = if is_near { (from, near) } else { (0, &self.entries[..]) };
        let found = among.binary_search_by_key(&rank, |entry| entry.0);
        found.map(|place| from + place).map_err(|place| from + place)
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
        fn each_rank_has_its_counter(ranks in prop::collection::vec(0u32..90, 0..200)) {
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
