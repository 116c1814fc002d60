//! Pairwise exchange: alltoall(v), reduce-scatter.
//!
//! p − 1 rounds; in each, a member sends the block of one partner and receives its own from another:
//! the same one, m xor i, where p is a power of two, otherwise m + i and m − i.
//!
//! # Source
//! MPICH `alltoall_pairwise`, `reduce_scatter_pairwise`.

use super::{RankBuffer, ReceiveAction, RoundSteps, Schedule, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Pairwise;

impl Schedule for Pairwise {
    fn performs(&self) -> &'static [Collective] {
        &[
            Collective::Alltoall,
            Collective::Alltoallv,
            Collective::ReduceScatter,
            Collective::ReduceScatterBlock,
        ]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        part.members
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        if round == 0 {
            // The block that stays.
            return steps.copy(part.layout().block(part.me).bytes);
        }
        let (to, from) = match part.kind {
            Collective::Alltoall | Collective::Alltoallv if part.members.is_power_of_two() => {
                (part.me ^ round, part.me ^ round)
            }
            _ => (part.after(round), part.before(round)),
        };
        match part.kind {
            Collective::Alltoall | Collective::Alltoallv => {
                steps.receive(from, part.layout().block(from), ReceiveAction::Store);
                steps.send_from(to, RankBuffer::Input, part.input().block(to));
            }
            _ => {
                steps.receive(from, part.layout().block(part.me), ReceiveAction::Combine);
                steps.send(to, part.layout().block(to));
            }
        }
    }
}
