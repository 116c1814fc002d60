//! GOAL's one number for a message's communicator and tag.
//!
//! Messages of the world keep their tag. Those of other communicators get numbers from 2^31 on, where the
//! world's tags are not, in the order in which they first occur: the same number on all ranks.

use super::ANY;
use std::collections::{BTreeMap, BTreeSet};
use weft_trace::op::CommId;

/// The first number that is no tag of the world.
const FIRST: u32 = 1 << 31;

/// The numbers that were given away.
#[derive(Debug)]
pub(super) struct GoalTags {
    given: BTreeMap<(CommId, i32), u32>,
    taken: BTreeSet<u32>,
    next: u32,
}

impl Default for GoalTags {
    fn default() -> GoalTags {
        GoalTags { given: BTreeMap::new(), taken: BTreeSet::new(), next: FIRST }
    }
}

impl GoalTags {
    /// The number of a tag of a communicator.
    pub(super) fn of(&mut self, comm: CommId, tag: i32) -> u32 {
        let own = tag.cast_unsigned();
        if comm == CommId::WORLD && own < FIRST {
            return own;
        }
        if let Some(given) = self.given.get(&(comm, tag)) {
            return *given;
        }
        // A trace that was GOAL has the world's tags of that side, too.
        let keeps = comm == CommId::WORLD && own != ANY && !self.taken.contains(&own);
        let number = if keeps { own } else { self.free() };
        self.given.insert((comm, tag), number);
        self.taken.insert(number);
        number
    }

    /// The next number that nobody has. After two thousand million of them they are given away again.
    fn free(&mut self) -> u32 {
        loop {
            let number = self.next;
            self.next = if self.next + 1 == ANY { FIRST } else { self.next + 1 };
            if !self.taken.contains(&number) || self.taken.len() as u32 >= ANY - FIRST {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches two communicators whose messages are taken for each other's, and the number of any tag.
    #[test]
    fn numbers_are_told_apart() {
        let mut tags = GoalTags::default();
        let (a, b) = (CommId(1), CommId(3 << 32));
        assert_eq!(tags.of(CommId::WORLD, 7), 7);
        assert_eq!([tags.of(a, 7), tags.of(b, 7), tags.of(a, 7)], [FIRST, FIRST + 1, FIRST]);
        assert_eq!(tags.of(CommId::WORLD, i32::MIN + 9), FIRST + 9);
        // Taken already.
        assert_eq!(tags.of(CommId::WORLD, i32::MIN), FIRST + 2);
        assert_eq!(tags.of(CommId::WORLD, -1), FIRST + 3);
        let numbers: BTreeSet<u32> = (0..20).map(|tag| tags.of(b, tag)).collect();
        assert_eq!(numbers.len(), 20);
        assert!(!numbers.contains(&(FIRST + 9)) && !numbers.contains(&ANY));
    }
}
