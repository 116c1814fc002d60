//! Everybody directly: broadcast, reduce, gather(v), scatter(v), alltoall(v), scan, exscan.
//!
//! The root, or in an alltoall everybody, has up to [`WINDOW`] messages under way at a time. A scan
//! goes from member to member.
//!
//! # Source
//! MPICH `gatherv_linear`, `scatterv_linear`, `alltoall_scattered`; `scan` as in Open MPI's linear one.

use super::{Buffer, Into, Schedule, Steps, WINDOW, layout::Piece, part::Part, scan};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Linear;

impl Schedule for Linear {
    fn performs(&self) -> &'static [Collective] {
        &[
            Collective::Broadcast,
            Collective::Reduce,
            Collective::Gather,
            Collective::Gatherv,
            Collective::Scatter,
            Collective::Scatterv,
            Collective::Alltoall,
            Collective::Alltoallv,
            Collective::Scan,
            Collective::Exscan,
        ]
    }

    fn rounds(&self, part: &Part) -> u32 {
        match part.kind {
            Collective::Scan | Collective::Exscan => scan::CHAIN_ROUNDS,
            _ => (part.members - 1).div_ceil(WINDOW) + 1,
        }
    }

    fn round(&self, part: &Part, round: u32, steps: &mut Steps) {
        match part.kind {
            Collective::Scan | Collective::Exscan => scan::chain(part, round, steps),
            Collective::Alltoall | Collective::Alltoallv => alltoall(part, round, steps),
            _ => with_root(part, round, steps),
        }
    }
}

/// What the root exchanges with `partner`.
fn piece(part: &Part, partner: u32, at_root: bool) -> Piece {
    match part.kind {
        Collective::Broadcast | Collective::Reduce => part.layout().whole(),
        // Only the root knows where in its buffer a block lies.
        Collective::Gatherv | Collective::Scatterv if !at_root => part.layout().whole(),
        _ => part.layout().block(partner),
    }
}

/// One round of an exchange between the root and everybody, the partners after the root first.
fn with_root(part: &Part, round: u32, steps: &mut Steps) {
    let from_root = matches!(part.kind, Collective::Broadcast | Collective::Scatter | Collective::Scatterv);
    let into = if part.kind == Collective::Reduce { Into::Combine } else { Into::Store };
    let at_root = part.me == part.root;
    if at_root && round == 0 && part.kind != Collective::Broadcast {
        // The root's own block.
        steps.copy(piece(part, part.root, at_root).bytes);
    } else if at_root && round > 0 {
        for partner in window(part, round).map(|distance| part.after(distance)) {
            let piece = piece(part, partner, at_root);
            if from_root { steps.send(partner, piece) } else { steps.receive(partner, piece, into) }
        }
    } else if !at_root && round == 1 {
        let piece = piece(part, part.me, at_root);
        if from_root { steps.receive(part.root, piece, into) } else { steps.send(part.root, piece) }
    }
}

fn alltoall(part: &Part, round: u32, steps: &mut Steps) {
    if round == 0 {
        return steps.copy(part.layout().block(part.me).bytes);
    }
    for distance in window(part, round) {
        let from = part.after(distance);
        steps.receive(from, part.layout().block(from), Into::Store);
    }
    for distance in window(part, round) {
        let to = part.before(distance);
        steps.send_from(to, Buffer::Input, part.input().block(to));
    }
}

/// The distances of the partners in round `round`, from 1 on.
fn window(part: &Part, round: u32) -> std::ops::Range<u32> {
    let first = (round - 1) * WINDOW + 1;
    first..(first + WINDOW).min(part.members)
}
