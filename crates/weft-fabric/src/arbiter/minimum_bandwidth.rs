//! Minimum bandwidth: each traffic class gets its share of an output at least; what is left goes by priority.
//!
//! ```text
//!   class  priority  minimum   credit
//!     0       2        10 %    ≤ 0 ─┐
//!     1       1        50 %    > 0 ─┼─► one whose credit is above 0: the highest priority of these
//!     2       0        20 %    > 0 ─┘   none is: the highest priority of all that can go
//! ```
//! An output that sends a packet of B bytes gives each class its share of B as credit. A class that goes
//! because it has credit pays B. One that goes with what is left pays nothing, and gets nothing for its own
//! packet: it has had more than its share. So a class that always has packets gets its share of the bytes
//! that the output sends, to within a packet of each class, and the line is never idle while one can go.
//!
//! A class without packets saves nothing: its credit goes up to 0. One whose packets cannot go now keeps up
//! to eight of the largest packets. Classes of one priority share what is left packet by packet, in turn.
//! Among the packets of a class, round robin.
//!
//! # Source
//! Slingshot's traffic classes have a priority, a minimum and a maximum bandwidth (De Sensi et al., SC 2020,
//! §II-E); IEEE 802.1Qaz, enhanced transmission selection: what a class leaves of its share goes to others.
//! Neither gives the arithmetic, which is ours.
//!
//! # Not modelled
//! A maximum bandwidth.

use super::{
    Arbiter, GroupHead, Grouping, OutputRequests, Properties, RequestGroups, SwitchOutputs, choose_by_group,
};
use crate::traffic_class::{MAX_CLASSES, WHOLE_SHARE};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use weft_topo::LinkClass;

/// Largest packets that a class which cannot go saves up for.
const SAVED_PACKETS: i64 = 8;

/// The state of an output.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Output {
    /// The class of its link, on which shares depend.
    link: LinkClass,
    /// The class that went last with what others had left.
    last: u8,
    /// By class: its credit, in bytes × [`WHOLE_SHARE`].
    credits: [i64; MAX_CLASSES],
    /// By class: the request that has priority.
    pointers: [u16; MAX_CLASSES],
}

/// The credits of all outputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MinimumBandwidth {
    outputs: Box<[Output]>,
}

impl Arbiter for MinimumBandwidth {
    const PROPERTIES: Properties = Properties { grouping: Grouping::Shares, ..Properties::PLAIN };

    fn new(switch: &SwitchOutputs<'_>) -> Option<MinimumBandwidth> {
        Some(MinimumBandwidth { outputs: switch.links.iter().map(|&link| Output::new(link)).collect() })
    }

    #[inline(always)]
    fn choose<'a>(&mut self, output: usize, requests: &mut impl OutputRequests<'a>) -> Option<usize> {
        let state = &mut self.outputs[output];
        choose_by_group(requests, state.pointers, |groups, heads| state.choose(groups, heads))
    }

    fn give_turn(&mut self, output: usize, request: u16, groups: &RequestGroups) {
        self.outputs[output].pointers[groups.of(request.into())] = request;
    }

    /// Classes have their shares; only within one a request can be passed over.
    fn takes_turns(waiting: usize, granted: usize, groups: &RequestGroups) -> bool {
        groups.of(waiting) == groups.of(granted)
    }
}

impl Output {
    fn new(link: LinkClass) -> Output {
        Output { link, last: 0, credits: [0; MAX_CLASSES], pointers: [0; MAX_CLASSES] }
    }

    /// The request of the output that goes, of those that the classes have.
    fn choose(&mut self, groups: &RequestGroups, heads: &[GroupHead]) -> Option<usize> {
        let classes = heads.len();
        for (class, head) in heads.iter().enumerate() {
            if *head == GroupHead::Empty {
                self.credits[class] = self.credits[class].min(0);
            }
        }
        let can_go = |class: &usize| matches!(heads[*class], GroupHead::Packet { .. });
        let is_due = |class: &usize| self.credits[*class] > 0;
        let by_credit = |&class: &usize| (groups.priority(class), self.credits[class], Reverse(class));
        let due = (0..classes).filter(can_go).filter(is_due).max_by_key(by_credit);
        let last = usize::from(self.last) % classes;
        let after = |class: usize| (class + classes - last - 1) % classes;
        let by_turn = |&class: &usize| (groups.priority(class), Reverse(after(class)));
        let chosen = due.or_else(|| (0..classes).filter(can_go).max_by_key(by_turn))?;
        let GroupHead::Packet { request, bytes } = heads[chosen] else { return None };
        if due.is_none() {
            self.last = chosen as u8;
        }
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX >> 32);
        for (class, head) in heads.iter().enumerate() {
            let credit = &mut self.credits[class];
            if class == chosen && due.is_none() {
                continue;
            }
            *credit += bytes * i64::from(groups.share(class, self.link));
            if class == chosen {
                *credit -= bytes * i64::from(WHOLE_SHARE);
            }
            let most = match head {
                GroupHead::Empty => 0,
                _ => groups.largest() * SAVED_PACKETS * i64::from(WHOLE_SHARE),
            };
            *credit = (*credit).min(most);
        }
        self.pointers[chosen] = request as u16 + 1;
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINK: LinkClass = LinkClass(0);

    /// Classes of these priorities and shares.
    fn groups(classes: &[(u8, u32)]) -> RequestGroups {
        let masks = (0..classes.len()).map(|class| (1 << class, 1));
        let shares = std::iter::once(std::array::from_fn(|class| classes.get(class).map_or(0, |own| own.1)));
        RequestGroups::new(classes.len() as u32, masks.collect()).with_shares(
            classes.iter().map(|own| own.0).collect(),
            shares.collect(),
            4_000,
        )
    }

    fn any_classes() -> impl Strategy<Value = Vec<(u8, u32)>> {
        prop::collection::vec((0u8..4, 0u32..2_500), 1..5)
    }

    proptest! {
        /// Catches a class that always has packets and gets less than its share by more than a packet of each
        /// class, whatever the sizes, priorities and shares; and what is left that goes to another than the
        /// highest priority.
        #[test]
        fn backlogged_classes_get_their_shares_and_the_highest_priority_the_rest(
            classes in any_classes(),
            sizes in prop::collection::vec(1u64..4_000, 8),
            choices in 1usize..2_000,
        ) {
            let groups = groups(&classes);
            let mut output = Output::new(LINK);
            let mut sent = vec![0u64; classes.len()];
            let head = |class: usize| GroupHead::Packet { request: class, bytes: sizes[class] };
            let heads: Vec<_> = (0..classes.len()).map(head).collect();
            for _ in 0..choices {
                let class = output.choose(&groups, &heads).unwrap();
                sent[class] += sizes[class];
            }
            let all: u64 = sent.iter().sum();
            let slack: u64 = 2 * sizes[..classes.len()].iter().sum::<u64>();
            for (class, &(_, share)) in classes.iter().enumerate() {
                let least = all * u64::from(share) / u64::from(WHOLE_SHARE);
                prop_assert!(sent[class] + slack >= least, "{sent:?} of {classes:?}");
            }
            let highest = classes.iter().map(|own| own.0).max().unwrap();
            for (class, &(priority, share)) in classes.iter().enumerate() {
                let most = all * u64::from(share) / u64::from(WHOLE_SHARE);
                if priority < highest {
                    prop_assert!(sent[class] <= most + slack, "{sent:?} of {classes:?}");
                }
            }
        }

        /// Catches an output that sends nothing although a class can go, and a class that takes more than its
        /// share from others by coming and going: whoever always has packets keeps its own.
        #[test]
        fn a_class_that_comes_and_goes_takes_no_share_of_another(
            steady in 1u32..5_000,
            size in 64u64..4_000,
            comes in prop::collection::vec(any::<bool>(), 500),
        ) {
            // The one that comes and goes has the higher priority and the other half.
            let groups = groups(&[(1, 5_000), (0, steady)]);
            let mut output = Output::new(LINK);
            let mut sent = [0u64; 2];
            for &comes in &comes {
                let head = |request| GroupHead::Packet { request, bytes: size };
                let first = if comes { head(0) } else { GroupHead::Empty };
                let class = output.choose(&groups, &[first, head(1)]).unwrap();
                sent[class] += size;
            }
            let least = (sent[0] + sent[1]) * u64::from(steady) / u64::from(WHOLE_SHARE);
            prop_assert!(sent[1] + 4 * size >= least, "{sent:?}, at least {least}");
        }
    }

    /// Catches classes of one priority of which one takes all that is left, and a class that is blocked and
    /// loses its share, or saves it without end.
    #[test]
    fn equals_take_turns_and_a_blocked_class_keeps_a_little() {
        let groups = groups(&[(0, 0), (0, 0), (0, 2_500)]);
        let mut output = Output::new(LINK);
        let packet = |request| GroupHead::Packet { request, bytes: 1_000 };
        let two = |third| [packet(0), packet(1), third];
        let turns = [0; 6].map(|_| output.choose(&groups, &two(GroupHead::Empty)).unwrap());
        assert_eq!(turns, [1, 0, 1, 0, 1, 0]);
        let blocked = two(GroupHead::Blocked);
        (0..1_000).for_each(|_| assert!(output.choose(&groups, &blocked).unwrap() < 2));
        // Eight of the largest packets, and what it gets while it sends them.
        let all = two(packet(2));
        let run = (0..1_000).take_while(|_| output.choose(&groups, &all) == Some(2)).count();
        assert!((32..=44).contains(&run), "{run}");
        assert_eq!(output.choose(&groups, &[GroupHead::Blocked; 3]), None);
    }
}
