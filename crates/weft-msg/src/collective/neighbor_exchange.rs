//! Neighbour exchange: allgather(v).
//!
//! Neighbours form pairs, first 0–1, 2–3 …, then 1–2, 3–4 …, and so by turns. A pair first exchanges its
//! own blocks; then each member hands on the two blocks that it got last. p/2 rounds for an even number of
//! members; an odd number goes around a [ring].
//!
//! # Source
//! Chen, Li and Zhang 2005, "Performance Evaluation of Allgather Algorithms On Terascale Linux Cluster
//! with Fast Ethernet"; Open MPI 4.1, `ompi_coll_base_allgather_intra_neighborexchange`, which falls back to
//! its ring likewise.

use super::ring::{self, RingBlocks};
use super::{ReceiveAction, RoundSteps, Schedule, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct NeighborExchange;

impl Schedule for NeighborExchange {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Allgather, Collective::Allgatherv]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        if part.members % 2 == 0 { part.members / 2 } else { ring::half(part) }
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let blocks = part.layout();
        if part.members % 2 == 1 {
            return ring::allgather(part, RingBlocks { blocks, own: part.me }, round, steps);
        }
        if round == 0 {
            let partner = part.me ^ 1;
            steps.receive(partner, blocks.block(partner), ReceiveAction::Store);
            return steps.send(partner, blocks.block(part.me));
        }
        let pair = |number: u32| blocks.between(2 * number, 2 * number + 2);
        // By turns the even member of a pair turns to the one before it and to the one after.
        let partner = if round % 2 != part.me % 2 { part.before(1) } else { part.after(1) };
        steps.receive(partner, pair(got_in(part, round)), ReceiveAction::Store);
        steps.send(partner, pair(got_in(part, round - 1)));
    }
}

/// The pair of blocks that a member gets in a round: from ever farther away, on either side by turns.
fn got_in(part: &MemberPart, round: u32) -> u32 {
    let (own, pairs, distance) = (part.me / 2, part.members / 2, round.div_ceil(2));
    let backwards = round % 2 != part.me % 2;
    if backwards { (own + pairs - distance) % pairs } else { (own + distance) % pairs }
}
