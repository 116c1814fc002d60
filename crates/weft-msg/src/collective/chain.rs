//! Chain: broadcast, reduce.
//!
//! Members are counted from the root; each hands the whole vector to the next, or in a reduce to the one
//! before, after it has taken in what the one after it sent.
//!
//! Messages: p − 1, one after the other.
//!
//! # Source
//! Open MPI 4.1, `ompi_coll_base_bcast_intra_chain` and `_pipeline`, `ompi_coll_base_reduce_intra_chain`
//! and `_pipeline`, with a fan-out of 1.
//!
//! # Not modelled
//! Segments, by which a pipeline overlaps its steps: Open MPI's fixed choices ask for none.

use super::{RoundSteps, Schedule, member_part::MemberPart, tree, tree::Family};
use weft_trace::op::Collective;

// ANCHOR: chain
/// The algorithm.
pub(crate) struct Chain;

impl Schedule for Chain {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Broadcast, Collective::Reduce]
    }

    fn rounds(&self, _: &MemberPart) -> u32 {
        tree::ROUNDS
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let v = part.relative();
        let family = Family {
            parent: v.checked_sub(1),
            children: (v + 1 < part.members).then_some(v + 1).into_iter().collect(),
        };
        let (whole, name) = (part.layout().whole(), |position| part.nth_from_root(position));
        match part.kind {
            Collective::Broadcast => family.broadcast(whole, name, round, steps),
            _ => family.reduce(whole, name, round, steps),
        }
    }
}
// ANCHOR_END: chain
