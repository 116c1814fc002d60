//! Recursive halving: reduce-scatter.
//!
//! Partners at half the distance each time exchange the half of the blocks that belongs to the other's
//! side, and reduce. Beyond a power of two the members [fold](super::fold).
//!
//! # Source
//! MPICH `reduce_scatter_recursive_halving`.

use super::{Into, Schedule, Steps, fold::Fold, part::Part};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct RecursiveHalving;

impl Schedule for RecursiveHalving {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::ReduceScatter, Collective::ReduceScatterBlock]
    }

    fn rounds(&self, part: &Part) -> u32 {
        Fold::new(part.members, part.me).log2() + 3
    }

    fn round(&self, part: &Part, round: u32, steps: &mut Steps) {
        let (fold, blocks) = (Fold::new(part.members, part.me), part.layout());
        let log2 = fold.log2();
        if round == 0 {
            steps.copy(blocks.total());
        } else if round == 1 {
            fold.fold(blocks.whole(), Into::Combine, |position| position, steps);
        } else if round == log2 + 2 {
            if let Some((_, odd)) = fold.pair() {
                fold.unfold(blocks.block(odd), |position| position, steps);
            }
        } else if let Some(core) = fold.core() {
            let distance = 1 << (log2 + 1 - round);
            let side = |core: u32| {
                let first = core & !(distance - 1);
                blocks.between(fold.position(first), fold.position(first + distance))
            };
            let partner = fold.position(core ^ distance);
            steps.receive(partner, side(core), Into::Combine);
            steps.send(partner, side(core ^ distance));
        }
    }
}
