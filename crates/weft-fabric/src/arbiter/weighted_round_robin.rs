//! Weighted round robin by bytes: traffic classes share an output in the ratio of their weights.
//!
//! ```text
//!   class  weight   deficit
//!     0     3000 ── += 3000 at its visit, −= bytes of each packet ──► goes on while it covers a packet
//!     1     1000 ── += 1000 …                                          then the next class is visited
//! ```
//! Deficit round robin. A class that is visited gets its weight as credit in bytes, and sends as long as that
//! covers its next packet; what is left counts at its next visit. A class without packets loses it. One whose
//! packets cannot go now, for lack of space or because their inputs are busy, is passed by and keeps it.
//! Among the packets of a class, round robin.
//!
//! # Source
//! Shreedhar and Varghese, "Efficient Fair Queueing Using Deficit Round Robin", IEEE/ACM ToN 1996 (SIGCOMM
//! 1995). Rounds in which no packet could go are taken at once, by arithmetic.

use super::{
    Arbiter, GroupHead, Grouping, OutputRequests, Properties, RequestGroups, SwitchOutputs, choose_by_group,
};
use crate::traffic_class::MAX_CLASSES;
use serde::{Deserialize, Serialize};

/// The state of an output.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Turns {
    /// The class that is visited.
    visited: u8,
    /// By class: bytes that it may send before the next class is visited.
    deficits: [u64; MAX_CLASSES],
    /// By class: the request that has priority.
    pointers: [u16; MAX_CLASSES],
}

/// The turns of all outputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WeightedRoundRobin {
    outputs: Box<[Turns]>,
}

impl Arbiter for WeightedRoundRobin {
    const PROPERTIES: Properties = Properties { grouping: Grouping::Weights, ..Properties::PLAIN };

    fn new(switch: &SwitchOutputs<'_>) -> Option<WeightedRoundRobin> {
        Some(WeightedRoundRobin { outputs: vec![Turns::default(); switch.links.len()].into() })
    }

    #[inline(always)]
    fn choose<'a>(&mut self, output: usize, requests: &mut impl OutputRequests<'a>) -> Option<usize> {
        let turns = &mut self.outputs[output];
        choose_by_group(requests, turns.pointers, |groups, heads| turns.choose(groups, heads))
    }

    fn give_turn(&mut self, output: usize, request: u16, groups: &RequestGroups) {
        self.outputs[output].pointers[groups.of(request.into())] = request;
    }

    /// Classes have their shares; only within one a request can be passed over.
    fn takes_turns(waiting: usize, granted: usize, groups: &RequestGroups) -> bool {
        groups.of(waiting) == groups.of(granted)
    }
}

impl Turns {
    /// The request of the output that goes, of those that the classes have.
    fn choose(&mut self, groups: &RequestGroups, heads: &[GroupHead]) -> Option<usize> {
        for (class, head) in heads.iter().enumerate() {
            if *head == GroupHead::Empty {
                self.deficits[class] = 0;
            }
        }
        let visited = usize::from(self.visited) % heads.len();
        let mut chosen = visited;
        if !matches!(heads[visited], GroupHead::Packet { bytes, .. } if self.deficits[visited] >= bytes) {
            chosen = self.visit(visited, groups, heads)?;
        }
        let GroupHead::Packet { request, bytes } = heads[chosen] else { return None };
        self.visited = chosen as u8;
        self.deficits[chosen] -= bytes;
        self.pointers[chosen] = request as u16 + 1;
        Some(request)
    }

    /// Visits the classes after `visited` in turn, in as many rounds as it takes until a deficit covers a
    /// packet. `None`: no packet can go.
    fn visit(&mut self, visited: usize, groups: &RequestGroups, heads: &[GroupHead]) -> Option<usize> {
        let classes = heads.len();
        let after = |class: usize| (class + classes - visited - 1) % classes;
        let visits = |class: usize| match heads[class] {
            GroupHead::Packet { bytes, .. } => {
                let lacking = bytes.saturating_sub(self.deficits[class]);
                Some((lacking.div_ceil(groups.weight(class)).max(1), after(class)))
            }
            GroupHead::Empty | GroupHead::Blocked => None,
        };
        let (first, class) = (0..classes).filter_map(|class| Some((visits(class)?, class))).min()?;
        for (other, head) in heads.iter().enumerate() {
            if matches!(head, GroupHead::Packet { .. }) {
                let times = if after(other) <= first.1 { first.0 } else { first.0 - 1 };
                self.deficits[other] += times * groups.weight(other);
            }
        }
        Some(class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn groups(weights: &[u64]) -> RequestGroups {
        let masks = weights.iter().enumerate().map(|(class, &weight)| (1 << class, weight));
        RequestGroups::new(weights.len() as u32, masks.collect())
    }

    proptest! {
        /// Catches shares that are not in the ratio of the weights: of classes that always have packets, of
        /// whatever sizes, none is ever further from its share than a round and a packet.
        #[test]
        fn backlogged_classes_share_by_bytes(
            weights in prop::collection::vec(1u64..5_000, 1..8),
            sizes in prop::collection::vec(1u64..4_000, 8),
            choices in 1usize..2_000,
        ) {
            let groups = groups(&weights);
            let mut turns = Turns::default();
            let head = |class: usize| GroupHead::Packet { request: class, bytes: sizes[class] };
            let heads: Vec<_> = (0..weights.len()).map(head).collect();
            let mut sent = vec![0u64; weights.len()];
            for _ in 0..choices {
                let class = turns.choose(&groups, &heads).unwrap();
                sent[class] += sizes[class];
            }
            // Shreedhar and Varghese, lemma 2: m visits give between m weights less a packet and m and one.
            for (one, other) in (0..weights.len()).flat_map(|a| (0..weights.len()).map(move |b| (a, b))) {
                let rounds = |class: usize, extra: i128| {
                    (i128::from(sent[class]) + extra) as f64 / weights[class] as f64
                };
                let most = rounds(other, i128::from(sizes[other])) + 1.0;
                prop_assert!(rounds(one, -i128::from(sizes[one])) <= most, "{sent:?} of {weights:?}");
            }
        }
    }

    /// Catches a class that saves up for a time in which it had nothing to send, and one that loses its share
    /// while it was blocked.
    #[test]
    fn an_empty_class_saves_nothing_and_a_blocked_one_keeps_its_deficit() {
        let groups = groups(&[1_000, 1_000]);
        let mut turns = Turns::default();
        let packet = |request| GroupHead::Packet { request, bytes: 400 };
        for _ in 0..100 {
            assert_eq!(turns.choose(&groups, &[packet(0), GroupHead::Empty]), Some(0));
        }
        let both = [packet(0), packet(1)];
        let next: Vec<_> = (0..10).map(|_| turns.choose(&groups, &both).unwrap()).collect();
        assert!((4..=6).contains(&next.iter().filter(|&&class| class == 1).count()), "{next:?}");
        let blocked = [packet(0), GroupHead::Blocked];
        let before = turns.deficits[1];
        (0..10).for_each(|_| assert_eq!(turns.choose(&groups, &blocked), Some(0)));
        assert_eq!(turns.deficits[1], before);
        assert_eq!(turns.choose(&groups, &[GroupHead::Blocked; 2]), None);
    }
}
