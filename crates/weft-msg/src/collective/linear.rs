//! Everybody directly: broadcast, reduce, allreduce, gather(v), scatter(v), alltoall(v), barrier, scan,
//! exscan, neighbourhood collectives.
//!
//! The root, or in an alltoall everybody, exchanges its messages with all others at once: they are posted
//! in groups of [`MAX_SCATTERED_PARTNERS`], none of which waits for the one before. An allreduce is a reduce
//! to member 0 and a broadcast from there, a barrier the same without data. A scan goes from member to
//! member. A neighbourhood collective is an alltoallv in which only neighbours have anything for each other.
//!
//! # Source
//! MPICH `gatherv_linear`, `scatterv_linear`; Open MPI `coll_base`'s `basic_linear` of broadcast, reduce,
//! allreduce, gather, scatter, alltoall and barrier, and its linear scans. MPICH's neighbourhood collectives,
//! whose only algorithm this is (`ineighbor_alltoallv_allcomm_linear` and the others).
//!
//! # Not modelled
//! Open MPI's root receives the operands of a reduce and the blocks of a gather one after the other. Messages
//! without bytes between neighbours, and several edges between two: the trace has their sum.

use super::{
    MAX_SCATTERED_PARTNERS, RankBuffer, ReceiveAction, RoundSteps, Schedule, blocks::Extent,
    member_part::MemberPart, scan,
};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Linear;

impl Schedule for Linear {
    fn performs(&self) -> &'static [Collective] {
        &[
            Collective::Broadcast,
            Collective::Reduce,
            Collective::Allreduce,
            Collective::Gather,
            Collective::Gatherv,
            Collective::Scatter,
            Collective::Scatterv,
            Collective::Alltoall,
            Collective::Alltoallv,
            Collective::Barrier,
            Collective::Scan,
            Collective::Exscan,
            Collective::NeighborAllgather,
            Collective::NeighborAllgatherv,
            Collective::NeighborAlltoall,
            Collective::NeighborAlltoallv,
        ]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        match part.kind {
            Collective::Scan | Collective::Exscan => scan::CHAIN_ROUNDS,
            Collective::Allreduce | Collective::Barrier => 2 * walk(part),
            _ => walk(part),
        }
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        match (part.kind, round.checked_sub(walk(part))) {
            (Collective::Scan | Collective::Exscan, _) => scan::chain(part, round, steps),
            (Collective::Alltoall | Collective::Alltoallv, _) => alltoall(part, round, steps),
            (kind, _) if is_neighbourhood(kind) => alltoall(part, round, steps),
            (Collective::Barrier, None) => tokens(part, round, true, steps),
            (Collective::Barrier, Some(round)) => tokens(part, round, false, steps),
            (Collective::Allreduce, None) => with_root(part, Collective::Reduce, round, steps),
            (Collective::Allreduce, Some(round)) => with_root(part, Collective::Broadcast, round, steps),
            (kind, _) => with_root(part, kind, round, steps),
        }
    }

    fn overlaps(&self, part: &MemberPart, round: u32) -> bool {
        if matches!(part.kind, Collective::Scan | Collective::Exscan) {
            return false;
        }
        // All but the last group.
        (1..walk(part) - 1).contains(&(round % walk(part)))
    }
}

/// Whether members exchange with their neighbours only.
pub(crate) fn is_neighbourhood(kind: Collective) -> bool {
    use Collective::{NeighborAllgather, NeighborAllgatherv, NeighborAlltoall, NeighborAlltoallv};
    matches!(kind, NeighborAllgather | NeighborAllgatherv | NeighborAlltoall | NeighborAlltoallv)
}

/// Rounds in which everybody is reached: the own block, and the groups.
fn walk(part: &MemberPart) -> u32 {
    (part.members - 1).div_ceil(MAX_SCATTERED_PARTNERS) + 1
}

/// The piece that the root exchanges with `partner`.
fn piece(part: &MemberPart, kind: Collective, partner: u32, at_root: bool) -> Extent {
    match kind {
        Collective::Broadcast | Collective::Reduce => part.layout().whole(),
        // Only the root knows where in its buffer a block lies.
        Collective::Gatherv | Collective::Scatterv if !at_root => part.layout().whole(),
        _ => part.layout().block(partner),
    }
}

/// One round of an exchange between the root and everybody, the partners after the root first.
fn with_root(part: &MemberPart, kind: Collective, round: u32, steps: &mut RoundSteps) {
    let from_root = matches!(kind, Collective::Broadcast | Collective::Scatter | Collective::Scatterv);
    let into = if kind == Collective::Reduce { ReceiveAction::Combine } else { ReceiveAction::Store };
    let at_root = part.me == part.root;
    if at_root && round == 0 && kind != Collective::Broadcast {
        // The root's own block.
        steps.copy(piece(part, kind, part.root, at_root).bytes);
    } else if at_root && round > 0 {
        for partner in window(part, round).map(|distance| part.after(distance)) {
            let piece = piece(part, kind, partner, at_root);
            if from_root { steps.send(partner, piece) } else { steps.receive(partner, piece, into) }
        }
    } else if !at_root && round == 1 {
        let piece = piece(part, kind, part.me, at_root);
        if from_root { steps.receive(part.root, piece, into) } else { steps.send(part.root, piece) }
    }
}

/// One round of a barrier: everybody reports to member 0, then it lets all go.
fn tokens(part: &MemberPart, round: u32, reports: bool, steps: &mut RoundSteps) {
    if part.me == 0 && round > 0 {
        for partner in window(part, round) {
            if reports { steps.token_from(partner) } else { steps.token_to(partner) }
        }
    } else if part.me > 0 && round == 1 {
        if reports { steps.token_to(0) } else { steps.token_from(0) }
    }
}

/// One round of an exchange of everybody with everybody.
pub(super) fn alltoall(part: &MemberPart, round: u32, steps: &mut RoundSteps) {
    if round == 0 {
        return steps.copy(part.layout().block(part.me).bytes);
    }
    for distance in window(part, round) {
        let from = part.after(distance);
        steps.receive(from, part.layout().block(from), ReceiveAction::Store);
    }
    for distance in window(part, round) {
        let to = part.before(distance);
        steps.send_from(to, RankBuffer::Input, part.input().block(to));
    }
}

/// The distances of the partners in round `round`, from 1 on.
fn window(part: &MemberPart, round: u32) -> std::ops::Range<u32> {
    let first = (round - 1) * MAX_SCATTERED_PARTNERS + 1;
    first..(first + MAX_SCATTERED_PARTNERS).min(part.members)
}
