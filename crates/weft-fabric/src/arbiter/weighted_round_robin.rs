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

use super::RequestGroups;
use crate::traffic_class::MAX_CLASSES;
use serde::{Deserialize, Serialize};

/// The request that a class has for an output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ClassHead {
    /// No packet.
    Empty,
    /// Packets, of which none can go now.
    Blocked,
    /// A packet of `bytes`, the next in turn, can go.
    Packet { request: usize, bytes: u64 },
}

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

impl WeightedRoundRobin {
    pub(crate) fn new(outputs: usize) -> WeightedRoundRobin {
        WeightedRoundRobin { outputs: vec![Turns::default(); outputs].into() }
    }

    /// The request of an output that goes. `head(class, pointer)` says what a class has, from `pointer` on.
    pub(crate) fn choose(
        &mut self,
        output: usize,
        groups: &RequestGroups,
        mut head: impl FnMut(usize, usize) -> ClassHead,
    ) -> Option<usize> {
        let state = &mut self.outputs[output];
        let classes = groups.count();
        let mut heads = [ClassHead::Empty; MAX_CLASSES];
        for (class, of_class) in heads[..classes].iter_mut().enumerate() {
            *of_class = head(class, state.pointers[class].into());
            if *of_class == ClassHead::Empty {
                state.deficits[class] = 0;
            }
        }
        let visited = usize::from(state.visited) % classes;
        let mut chosen = visited;
        if !matches!(heads[visited], ClassHead::Packet { bytes, .. } if state.deficits[visited] >= bytes) {
            chosen = state.visit(visited, groups, &heads[..classes])?;
        }
        let ClassHead::Packet { request, bytes } = heads[chosen] else { return None };
        state.visited = chosen as u8;
        state.deficits[chosen] -= bytes;
        state.pointers[chosen] = request as u16 + 1;
        Some(request)
    }

    /// The next turn of its class belongs to `request`.
    pub(crate) fn give_turn(&mut self, output: usize, request: u16, groups: &RequestGroups) {
        self.outputs[output].pointers[groups.of(request.into())] = request;
    }
}

impl Turns {
    /// Visits the classes after `visited` in turn, in as many rounds as it takes until a deficit covers a
    /// packet. `None`: no packet can go.
    fn visit(&mut self, visited: usize, groups: &RequestGroups, heads: &[ClassHead]) -> Option<usize> {
        let classes = heads.len();
        let after = |class: usize| (class + classes - visited - 1) % classes;
        let visits = |class: usize| match heads[class] {
            ClassHead::Packet { bytes, .. } => {
                let lacking = bytes.saturating_sub(self.deficits[class]);
                Some((lacking.div_ceil(groups.weight(class)).max(1), after(class)))
            }
            ClassHead::Empty | ClassHead::Blocked => None,
        };
        let (first, class) = (0..classes).filter_map(|class| Some((visits(class)?, class))).min()?;
        for (other, head) in heads.iter().enumerate() {
            if matches!(head, ClassHead::Packet { .. }) {
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
            let mut arbiter = WeightedRoundRobin::new(1);
            let mut sent = vec![0u64; weights.len()];
            for _ in 0..choices {
                let head = |class: usize, _| ClassHead::Packet { request: class, bytes: sizes[class] };
                let class = arbiter.choose(0, &groups, head).unwrap();
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
        let mut arbiter = WeightedRoundRobin::new(1);
        let packet = |request| ClassHead::Packet { request, bytes: 400 };
        for _ in 0..100 {
            assert_eq!(
                arbiter.choose(0, &groups, |c, _| if c == 0 { packet(0) } else { ClassHead::Empty }),
                Some(0)
            );
        }
        let both = |class, _| packet(class);
        let next: Vec<_> = (0..10).map(|_| arbiter.choose(0, &groups, both).unwrap()).collect();
        assert!((4..=6).contains(&next.iter().filter(|&&class| class == 1).count()), "{next:?}");
        let blocked = |class: usize, _| if class == 0 { packet(0) } else { ClassHead::Blocked };
        let before = arbiter.outputs[0].deficits[1];
        (0..10).for_each(|_| assert_eq!(arbiter.choose(0, &groups, blocked), Some(0)));
        assert_eq!(arbiter.outputs[0].deficits[1], before);
        assert_eq!(arbiter.choose(0, &groups, |_, _| ClassHead::Blocked), None);
    }
}
