//! Switches copy the data: broadcast by hardware multicast.
//!
//! Tokens go up a binomial tree: each member sends one to its parent when its own receive is posted and its
//! children's tokens are there. So the root's last token says that all receives are posted. Then the root
//! sends the data once, to the group, and switches bring a copy to each member.
//!
//! ```text
//!   7 ─► 6 ─► 4 ─► 0        tokens: 7 has posted its receive, then 6, then 4
//!        5 ─► 4 ─► 0
//!             2 ─► 0 ──► data, once: switches copy it for 1 to 7
//! ```
//!
//! Messages: p − 1 tokens and one with the data. Rounds: 2. The tokens take ⌈log2 p⌉ steps: a root that took
//! one from every member would spend the time of p − 1 messages on them.
//!
//! Data that a link loses is not repaired: the run ends with lost data.
//!
//! # Source
//! Chen, Carrasco and Apon 2000, "MPI collective operations over IP multicast": scout messages are gathered
//! along a tree before the root sends, since nothing else says that all receivers are ready.

use super::{ReceiveAction, RoundStep, RoundSteps, Schedule, ceil_log2, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Multicast;

impl Schedule for Multicast {
    fn is_by_hardware(&self) -> bool {
        true
    }

    fn performs(&self) -> &'static [Collective] {
        &[Collective::Broadcast]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        if part.members > 1 && part.layout().total() > 0 { 2 } else { 0 }
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let v = part.relative();
        // The root has children at every distance, any other those below its own lowest bit.
        let lowest_bit = if v == 0 { ceil_log2(part.members) } else { v.trailing_zeros() };
        if round == 0 {
            let children = (0..lowest_bit).map(|bit| v + (1 << bit)).filter(|&child| child < part.members);
            children.for_each(|child| steps.token_from(part.nth_from_root(child)));
        } else if v == 0 {
            steps.push(RoundStep::Multicast { piece: part.layout().whole() });
        } else {
            // The receive comes first: the token says that it is posted.
            steps.receive(part.root, part.layout().whole(), ReceiveAction::Store);
            steps.token_to(part.nth_from_root(v - (1 << lowest_bit)));
        }
    }
}
