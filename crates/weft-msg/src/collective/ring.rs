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

use super::layout::Layout;
use super::{Into, Schedule, Steps, part::Part};
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

    fn rounds(&self, part: &Part) -> u32 {
        match part.kind {
            Collective::Allreduce => 2 * half(part),
            _ => half(part),
        }
    }

    fn round(&self, part: &Part, round: u32, steps: &mut Steps) {
        match part.kind {
            Collective::Allgather | Collective::Allgatherv => {
                allgather(part, part.layout(), part.me, round, steps);
            }
            Collective::Allreduce => {
                let vector = part.split(part.members);
                match round.checked_sub(half(part)) {
                    None => reduce_scatter(part, vector, round, steps),
                    Some(round) => allgather(part, vector, part.me, round, steps),
                }
            }
            _ => reduce_scatter(part, part.layout(), round, steps),
        }
    }
}

/// Rounds of an allgather or a reduce-scatter around the ring.
pub(super) fn half(part: &Part) -> u32 {
    part.members - 1
}

/// One round of an allgather in which this member contributes block `own`, the next one the next block.
pub(super) fn allgather(part: &Part, blocks: Layout<'_>, own: u32, round: u32, steps: &mut Steps) {
    steps.receive(part.before(1), block(blocks, own, round + 1), Into::Store);
    steps.send(part.after(1), block(blocks, own, round));
}

/// One round of a reduce-scatter that leaves block i with member i.
fn reduce_scatter(part: &Part, blocks: Layout<'_>, round: u32, steps: &mut Steps) {
    if round == 0 {
        steps.copy(blocks.total());
    }
    steps.receive(part.before(1), block(blocks, part.me, round + 2), Into::Combine);
    steps.send(part.after(1), block(blocks, part.me, round + 1));
}

/// The block `back` before `own`, around the end.
fn block(blocks: Layout<'_>, own: u32, back: u32) -> super::layout::Piece {
    let count = blocks.count();
    blocks.block(super::part::around(own, count - back % count, count))
}
