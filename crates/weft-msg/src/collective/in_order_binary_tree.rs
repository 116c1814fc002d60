//! Binary tree of consecutive members: reduce.
//!
//! The last member is the tree's root. Of the members before it, the lower half are the right subtree and
//! the rest the left, each with its own last member on top: so the operands meet in their order. The
//! result goes from the last member to the root.
//!
//! ```text
//!   7 members        6
//!                ┌───┴───┐
//!                5       2
//!              ┌─┴─┐   ┌─┴─┐
//!              4   3   1   0
//! ```
//!
//! Messages: p − 1, and one to the root where that is not the last.
//!
//! # Source
//! Open MPI 4.1, `ompi_coll_base_topo_build_in_order_bintree`,
//! `ompi_coll_base_reduce_intra_in_order_binary`.

use super::{ReceiveAction, RoundSteps, Schedule, member_part::MemberPart, tree, tree::Family};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct InOrderBinaryTree;

impl Schedule for InOrderBinaryTree {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Reduce]
    }

    fn rounds(&self, _: &MemberPart) -> u32 {
        tree::ROUNDS + 1
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let (whole, last) = (part.layout().whole(), part.members - 1);
        if round < tree::ROUNDS {
            family(part.me, part.members).reduce(whole, |member| member, round, steps);
        } else if last == part.root {
            // The result is where it belongs.
        } else if part.me == last {
            steps.send(part.root, whole);
        } else if part.me == part.root {
            steps.receive(last, whole, ReceiveAction::Store);
        }
    }
}

/// The neighbours of `member` among `members`.
fn family(member: u32, members: u32) -> Family {
    // The subtree that holds the member: so many from `first` on, the last of them on top.
    let (mut first, mut size, mut parent) = (0, members, None);
    loop {
        let (top, right) = (first + size - 1, size / 2);
        if member == top {
            let left = (size > 1).then(|| top - 1);
            let right = (size > 2).then(|| first + right - 1);
            return Family { parent, children: left.into_iter().chain(right).collect() };
        }
        parent = Some(top);
        if member < first + right && size > 2 {
            size = right;
        } else {
            let right = if size > 2 { right } else { 0 };
            (first, size) = (first + right, size - right - 1);
        }
    }
}
