//! Bruck's algorithms: allgather(v), alltoall.
//!
//! Allgather: in round k a member sends all blocks it has, at most 2^k, to the one 2^k before, and gets
//! those of the one 2^k after. Alltoall: blocks are sorted by how far they have to go; in round k those
//! whose distance has bit k travel 2^k members ahead. Both need ⌈log2 p⌉ rounds for any p, and copies
//! that bring the blocks into order.
//!
//! # Source
//! Bruck et al. 1997, "Efficient Algorithms for All-to-All Communications in Multiport
//! Message-Passing Systems"; MPICH `allgather_brucks`, `alltoall_brucks`.

use super::blocks::Extent;
use super::{RankBuffer, ReceiveAction, RoundSteps, Schedule, ceil_log2, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Bruck;

impl Schedule for Bruck {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Allgather, Collective::Allgatherv, Collective::Alltoall]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        ceil_log2(part.members) + 2
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let (blocks, last) = (part.layout(), ceil_log2(part.members) + 1);
        let alltoall = part.kind == Collective::Alltoall;
        if round == 0 || round == last {
            // An allgather puts its blocks in order once, an alltoall before and after.
            if alltoall || round == last {
                steps.copy(blocks.total());
            }
            return;
        }
        let distance = 1 << (round - 1);
        if alltoall {
            // `offset` is the bit of the distance here: the blocks do not lie together.
            let travelling = u64::from(with_bit(part.members, round - 1));
            let piece = Extent { offset: u64::from(round - 1), bytes: blocks.block(0).bytes * travelling };
            steps.receive_into(part.before(distance), RankBuffer::Transit, piece, ReceiveAction::Store);
            steps.send_from(part.after(distance), RankBuffer::Transit, piece);
            steps.copy(piece.bytes);
        } else {
            let count = distance.min(part.members - distance);
            steps.receive(
                part.after(distance),
                blocks.cyclic(part.after(distance), count),
                ReceiveAction::Store,
            );
            steps.send(part.before(distance), blocks.cyclic(part.me, count));
        }
    }
}

/// The number of integers below `members` that have bit `bit`: a round sends that many blocks.
fn with_bit(members: u32, bit: u32) -> u32 {
    let (period, half) = (2u64 << bit, 1u64 << bit);
    let members = u64::from(members);
    (members / period * half + (members % period).saturating_sub(half)) as u32
}
