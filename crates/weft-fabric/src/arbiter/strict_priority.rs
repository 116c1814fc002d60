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

use super::round_robin::first_of;
use super::{Arbiter, Grouping, OutputRequests, Properties, RequestGroups, SwitchOutputs};
use serde::{Deserialize, Serialize};

/// Whose turn it is, by output and priority.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StrictPriority {
    priorities: u32,
    pointers: Box<[u16]>,
}

impl Arbiter for StrictPriority {
    /// A request of low priority must not keep an input from those of a higher one.
    const PROPERTIES: Properties =
        Properties { grouping: Grouping::Priorities, ends_reservations: true, ..Properties::PLAIN };

    fn new(switch: &SwitchOutputs<'_>) -> Option<StrictPriority> {
        let priorities = switch.groups.count();
        let pointers = vec![0; switch.links.len() * priorities].into();
        Some(StrictPriority { priorities: priorities as u32, pointers })
    }

    #[inline(always)]
    fn choose<'a>(&mut self, output: usize, requests: &mut impl OutputRequests<'a>) -> Option<usize> {
        let (groups, all) = (requests.groups(), requests.all());
        for group in (0..groups.count()).filter(|&group| groups.any(group, all)) {
            let pointer = usize::from(*self.pointer(output, group));
            let found = first_of(groups.channels(group), all, pointer, |request| requests.can_go(request));
            if let Some(request) = found {
                *self.pointer(output, group) = request as u16 + 1;
                return Some(request);
            }
        }
        None
    }

    fn give_turn(&mut self, output: usize, request: u16, groups: &RequestGroups) {
        *self.pointer(output, groups.of(request.into())) = request;
    }

    /// Whoever waits has at least the priority of the one that goes.
    fn takes_turns(waiting: usize, granted: usize, groups: &RequestGroups) -> bool {
        groups.of(waiting) <= groups.of(granted)
    }
}

impl StrictPriority {
    fn pointer(&mut self, output: usize, group: usize) -> &mut u16 {
        &mut self.pointers[output * self.priorities as usize + group]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arbiter::ArbiterKind;
    use crate::arbiter::tests::Listed;
    use weft_topo::LinkClass;

    /// Catches a lower priority that goes first, and grants of a higher one that take a lower one's turns.
    #[test]
    fn the_highest_goes_and_each_priority_keeps_its_turn() {
        // Two channels a port: channel 1 has the higher priority.
        let groups = RequestGroups::new(2, vec![(0b10, 1), (0b01, 1)]);
        let links = [LinkClass(0)];
        let switch = SwitchOutputs { arbiter: ArbiterKind::StrictPriority, links: &links, groups: &groups };
        let mut arbiter = StrictPriority::new(&switch).unwrap();
        let mut choose = |bits: u64| arbiter.choose(0, &mut Listed::of(&[bits], &groups)).unwrap();
        assert_eq!([0; 4].map(|_| choose(0b111111)), [1, 3, 5, 1]);
        assert_eq!([0; 5].map(|_| choose(0b010101)), [0, 2, 4, 0, 2]);
    }
}
