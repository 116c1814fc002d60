//! Recursive halving: reduce-scatter.
//!
//! Partners at half the distance each time exchange the half of the blocks that belongs to the other's
//! side, and reduce. Beyond a power of two the members [fold](super::fold).
//!
//! # Source
//! MPICH `reduce_scatter_recursive_halving`.

use super::fold::{Fold, ReduceScatterStage};
use super::{ReceiveAction, RoundSteps, Schedule, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct RecursiveHalving;

impl Schedule for RecursiveHalving {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::ReduceScatter, Collective::ReduceScatterBlock]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        Fold::new(part.members, part.me).reduce_scatter_rounds()
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let (fold, blocks) = (Fold::onto_odd(part.members, part.me), part.layout());
        match fold.reduce_scatter_stage(round) {
            ReduceScatterStage::Copy => steps.copy(blocks.total()),
            ReduceScatterStage::Fold => {
                fold.fold(blocks.whole(), ReceiveAction::Combine, |position| position, steps)
            }
            ReduceScatterStage::Exchange(exchange) => {
                let Some(core) = fold.core() else { return };
                let distance = 1 << (fold.log2() - 1 - exchange);
                let side = |core: u32| {
                    let first = core & !(distance - 1);
                    blocks.between(fold.begin(first), fold.begin(first + distance))
                };
                let partner = fold.position(core ^ distance);
                steps.receive(partner, side(core), ReceiveAction::Combine);
                steps.send(partner, side(core ^ distance));
            }
            ReduceScatterStage::Deliver => {
                if let Some((_, gives)) = fold.pair() {
                    fold.unfold(blocks.block(gives), |position| position, steps);
                }
            }
        }
    }
}
