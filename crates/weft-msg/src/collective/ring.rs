//! Ring: allgather(v), reduce-scatter, allreduce.
//!
//! Every member always sends to the next and receives from the one before. In an allgather blocks
//! travel on unchanged; in a reduce-scatter each member adds its own contribution to the block that
//! passes. An allreduce is the second followed by the first, on a vector cut into p blocks.
//!
//! Messages per member: p − 1 for either half.
//!
//! # Source
//! Patarasuk and Yuan 2009; MPICH `allgather_ring`.

use super::blocks::{Blocks, Extent};
use super::member_part::{MemberPart, around};
use super::{ReceiveAction, RoundSteps, Schedule};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Ring;

impl Schedule for Ring {
    fn performs(&self) -> &'static [Collective] {
        &[
            Collective::Allgather,
            Collective::Allgatherv,
            Collective::ReduceScatter,
            Collective::ReduceScatterBlock,
            Collective::Allreduce,
        ]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        match part.kind {
            Collective::Allreduce => 2 * half(part),
            _ => half(part),
        }
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        match part.kind {
            Collective::Allgather | Collective::Allgatherv => {
                let blocks = RingBlocks { blocks: part.layout(), own: part.me };
                allgather(part, blocks, round, steps);
            }
            Collective::Allreduce => {
                let blocks = RingBlocks { blocks: part.split(part.members), own: part.me };
                match round.checked_sub(half(part)) {
                    None => reduce_scatter(part, blocks, round, steps),
                    Some(round) => allgather(part, blocks, round, steps),
                }
            }
            _ => {
                let blocks = RingBlocks { blocks: part.layout(), own: part.me };
                reduce_scatter(part, blocks, round, steps);
            }
        }
    }
}

/// Rounds of an allgather or a reduce-scatter around the ring.
pub(super) fn half(part: &MemberPart) -> u32 {
    part.members - 1
}

/// Blocks that travel around the ring, as the member sees them to whom block `own` belongs.
#[derive(Clone, Copy)]
pub(super) struct RingBlocks<'b> {
    pub blocks: Blocks<'b>,
    pub own: u32,
}

impl RingBlocks<'_> {
    /// The block `back` before the member's own, around the end.
    fn before(&self, back: u32) -> Extent {
        let count = self.blocks.count();
        self.blocks.block(around(self.own, count - back % count, count))
    }
}

/// One round of an allgather in which each member contributes its own block, the next one the next block.
pub(super) fn allgather(part: &MemberPart, blocks: RingBlocks<'_>, round: u32, steps: &mut RoundSteps) {
    steps.receive(part.before(1), blocks.before(round + 1), ReceiveAction::Store);
    steps.send(part.after(1), blocks.before(round));
}

/// One round of a reduce-scatter that leaves each member its own block.
fn reduce_scatter(part: &MemberPart, blocks: RingBlocks<'_>, round: u32, steps: &mut RoundSteps) {
    if round == 0 {
        steps.copy(blocks.blocks.total());
    }
    steps.receive(part.before(1), blocks.before(round + 2), ReceiveAction::Combine);
    steps.send(part.after(1), blocks.before(round + 1));
}
