//! Split binary tree: broadcast.
//!
//! The root sends one half of the vector down the one side of a [binary tree](super::binary_tree), the
//! other half down the other. Then each member of one side exchanges halves with its neighbour on the
//! other; with an even number of members the last one has none, and gets the other half from the root.
//!
//! # Source
//! Open MPI 4.1, `ompi_coll_base_bcast_intra_split_bintree`, without segments. A vector that cannot be
//! cut goes along a chain.

use super::{ReceiveAction, RoundSteps, Schedule, binary_tree, chain::Chain, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct SplitBinaryTree;

impl Schedule for SplitBinaryTree {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Broadcast]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        if cannot_be_cut(part) { Chain.rounds(part) } else { 3 }
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        if cannot_be_cut(part) {
            return Chain.round(part, round, steps);
        }
        let (v, last, halves) = (part.relative(), part.members - 1, part.split(2));
        let name = |position| part.nth_from_root(position);
        // Odd members are on the side of the first half.
        let side = |position: u32| (position + 1) % 2;
        let family = binary_tree::family(v, part.members);
        match (round, family.parent) {
            (0, Some(parent)) => steps.receive(name(parent), halves.block(side(v)), ReceiveAction::Store),
            (1, _) => {
                for child in &family.children {
                    steps.send(name(*child), halves.block(side(*child)));
                }
            }
            (2, None) if last % 2 == 1 => steps.send(name(last), halves.block(1)),
            (2, Some(_)) if v == last && v % 2 == 1 => {
                steps.receive(name(0), halves.block(1), ReceiveAction::Store)
            }
            (2, Some(_)) => {
                let partner = if v % 2 == 1 { v + 1 } else { v - 1 };
                steps.receive(name(partner), halves.block(side(partner)), ReceiveAction::Store);
                steps.send(name(partner), halves.block(side(v)));
            }
            _ => {}
        }
    }
}

fn cannot_be_cut(part: &MemberPart) -> bool {
    part.layout().total() < 2
}
