//! Broadcast of long vectors (van de Geijn): scatter by a binomial tree, then allgather around a ring
//! or by recursive doubling.
//!
//! Members are counted from the root; the i-th of them gets the i-th block of the vector.
//!
//! # Source
//! MPICH `bcast_scatter_ring_allgather`, `bcast_scatter_recursive_doubling_allgather`.

use super::fold::Fold;
use super::recursive_doubling::{self, Allgather};
use super::ring::{self, RingBlocks};
use super::{RoundSteps, Schedule, binomial, member_part::MemberPart};
use weft_trace::op::Collective;

/// With an allgather around a ring.
pub(crate) struct ScatterRing;

/// With an allgather by recursive doubling.
pub(crate) struct ScatterDoubling;

impl Schedule for ScatterRing {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Broadcast]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        binomial::tree_rounds(part) + ring::half(part)
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let vector = part.split(part.members);
        match round.checked_sub(binomial::tree_rounds(part)) {
            None => binomial::scatter_from_root(part, vector, round, steps),
            Some(round) => {
                let blocks = RingBlocks { blocks: vector, own: part.relative() };
                ring::allgather(part, blocks, round, steps);
            }
        }
    }
}

impl Schedule for ScatterDoubling {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Broadcast]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        binomial::tree_rounds(part) + recursive_doubling::allgather_rounds(part)
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let vector = part.split(part.members);
        match round.checked_sub(binomial::tree_rounds(part)) {
            None => binomial::scatter_from_root(part, vector, round, steps),
            Some(round) => {
                let fold = Fold::new(part.members, part.relative());
                let name = |position| part.nth_from_root(position);
                Allgather { fold, blocks: vector, name }.round(round, steps);
            }
        }
    }
}
