//! Butterfly: reduce-scatter.
//!
//! Partners at distance 1, 2, 4 … exchange halves of what they still have, and reduce. In the end each core
//! has the block of the core whose number is its own with the bits reversed, and sends it there. Beyond a
//! power of two the members [fold](super::fold).
//!
//! With blocks of one size on a power of two of members the blocks are brought into that order first, by
//! a copy, and nothing is left to be sent in the end.
//!
//! # Source
//! Träff 2005, "An Improved Algorithm for (non-commutative) Reduce-Scatter with an Application"; Open MPI
//! 4.1, `ompi_coll_base_reduce_scatter_intra_butterfly`,
//! `ompi_coll_base_reduce_scatter_block_intra_butterfly` and `_butterfly_pof2`.

use super::blocks::Blocks;
use super::fold::{Fold, ReduceScatterStage};
use super::{RankBuffer, ReceiveAction, RoundSteps, Schedule, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Butterfly;

impl Schedule for Butterfly {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::ReduceScatter, Collective::ReduceScatterBlock]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        Fold::new(part.members, part.me).reduce_scatter_rounds()
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let (fold, blocks) = (Fold::new(part.members, part.me), part.layout());
        let permuted = permutes(part);
        match fold.reduce_scatter_stage(round) {
            // ReceiveAction a buffer of its own, permuted or not.
            ReduceScatterStage::Copy => steps.copy(blocks.total()),
            ReduceScatterStage::Fold => {
                fold.fold(blocks.whole(), ReceiveAction::Combine, |position| position, steps)
            }
            ReduceScatterStage::Exchange(bit) => {
                let Some(core) = fold.core() else { return };
                let buffer = if permuted { RankBuffer::Permuted } else { RankBuffer::Data };
                let half = |core: u32| {
                    let (first, count) = kept(core, bit, fold.cores);
                    blocks.between(fold.begin(first), fold.begin(first + count))
                };
                let partner = core ^ (1 << bit);
                steps.receive_into(fold.position(partner), buffer, half(core), ReceiveAction::Combine);
                steps.send_from(fold.position(partner), buffer, half(partner));
            }
            ReduceScatterStage::Deliver if permuted => steps.copy(blocks.block(0).bytes),
            ReduceScatterStage::Deliver => deliver(&fold, blocks, steps),
        }
    }
}

/// Whether the blocks are brought into the order of reversed bits first.
pub(crate) fn permutes(part: &MemberPart) -> bool {
    part.kind == Collective::ReduceScatterBlock && part.members.is_power_of_two()
}

/// The cores' blocks that `core` keeps when it exchanges with the one that differs in `bit`: the first of
/// them, and how many.
fn kept(core: u32, bit: u32, cores: u32) -> (u32, u32) {
    let first = (0..=bit).map(|b| (core >> b & 1) * (cores >> (b + 1))).sum();
    (first, cores >> (bit + 1))
}

/// The number with its `bits` lowest bits reversed.
pub(crate) fn mirror(number: u32, bits: u32) -> u32 {
    if bits == 0 { number } else { number.reverse_bits() >> (32 - bits) }
}

/// Every core hands the blocks it has to those they belong to.
fn deliver(fold: &Fold, blocks: Blocks<'_>, steps: &mut RoundSteps) {
    let log2 = fold.log2();
    if let Some(core) = fold.core() {
        let owner = mirror(core, log2);
        if owner != core {
            let me = fold.position(core);
            steps.receive(fold.position(owner), blocks.block(me), ReceiveAction::Store);
        }
        for member in fold.begin(owner)..fold.begin(owner + 1) {
            if member != fold.position(core) {
                steps.send(member, blocks.block(member));
            }
        }
    } else if let Some((even, odd)) = fold.pair() {
        // It has given its data away: its even neighbour is core number even/2.
        let holder = fold.position(mirror(even / 2, log2));
        steps.receive(holder, blocks.block(odd), ReceiveAction::Store);
    }
}
