//! Strict priority: a request of the highest priority that can go; among those of one priority, round robin.
//!
//! ```text
//!   priority 2  ▢▢  ──► first, always
//!   priority 1  ▢   ──► while nothing of 2 can go
//!   priority 0  ▢▢▢ ──► while nothing of 2 and 1 can go; may wait for ever
//! ```
//!
//! # Source
//! IEEE 802.1Q, strict priority transmission selection.

use super::{RequestGroups, round_robin};
use serde::{Deserialize, Serialize};

/// Whose turn it is, by output and priority.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StrictPriority {
    priorities: u32,
    pointers: Box<[u16]>,
}

impl StrictPriority {
    /// The turns of so many outputs, over `groups` of requests from the highest priority down.
    pub(crate) fn new(outputs: usize, groups: &RequestGroups) -> StrictPriority {
        StrictPriority {
            priorities: groups.count() as u32,
            pointers: vec![0; outputs * groups.count()].into(),
        }
    }

    fn pointer(&mut self, output: usize, group: usize) -> &mut u16 {
        &mut self.pointers[output * self.priorities as usize + group]
    }

    /// The request of an output that goes.
    pub(crate) fn choose(
        &mut self,
        output: usize,
        requests: &[u64],
        groups: &RequestGroups,
        mut is_eligible: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        for group in (0..groups.count()).filter(|&group| groups.any(group, requests)) {
            let pointer = usize::from(*self.pointer(output, group));
            let found = round_robin::choose_of(groups.channels(group), requests, pointer, &mut is_eligible);
            if let Some(request) = found {
                *self.pointer(output, group) = request as u16 + 1;
                return Some(request);
            }
        }
        None
    }

    /// The next turn of its priority belongs to `request`.
    pub(crate) fn give_turn(&mut self, output: usize, request: u16, groups: &RequestGroups) {
        *self.pointer(output, groups.of(request.into())) = request;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a lower priority that goes first, and grants of a higher one that take a lower one's turns.
    #[test]
    fn the_highest_goes_and_each_priority_keeps_its_turn() {
        // Two channels a port: channel 1 has the higher priority.
        let groups = RequestGroups::new(2, vec![(0b10, 1), (0b01, 1)]);
        let mut arbiter = StrictPriority::new(1, &groups);
        let all = [0b111111];
        let high: Vec<_> = (0..4).map(|_| arbiter.choose(0, &all, &groups, |_| true).unwrap()).collect();
        assert_eq!(high, [1, 3, 5, 1]);
        let low: Vec<_> = (0..4).map(|_| arbiter.choose(0, &all, &groups, |r| r % 2 == 0).unwrap()).collect();
        assert_eq!(low, [0, 2, 4, 0]);
        assert_eq!(arbiter.choose(0, &[0b010101], &groups, |_| true), Some(2));
    }
}
