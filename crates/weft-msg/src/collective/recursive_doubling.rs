//! Recursive doubling: allreduce, allgather(v), barrier, and the scans of [`super::scan`].
//!
//! In round k, member m exchanges all it has with m xor 2^k:
//!
//! ```text
//!   round 0   0↔1  2↔3  4↔5  6↔7
//!   round 1   0↔2  1↔3  4↔6  5↔7
//!   round 2   0↔4  1↔5  2↔6  3↔7
//! ```
//! Beyond a power of two the members [fold](super::fold). An allreduce copies its vector into a
//! buffer of its own before, and out of it after.
//!
//! # Source
//! MPICH `allreduce_recursive_doubling`, `allgather_recursive_doubling`; Open MPI 4.1
//! `ompi_coll_base_barrier_intra_recursivedoubling`; the two copies are those of
//! TR-488 §6.1.3.

use super::blocks::Blocks;
use super::{ReceiveAction, RoundSteps, Schedule, fold::Fold, member_part::MemberPart, scan};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct RecursiveDoubling;

impl Schedule for RecursiveDoubling {
    fn performs(&self) -> &'static [Collective] {
        &[
            Collective::Allreduce,
            Collective::Allgather,
            Collective::Allgatherv,
            Collective::Barrier,
            Collective::Scan,
            Collective::Exscan,
        ]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        match part.kind {
            Collective::Allreduce => Fold::new(part.members, part.me).log2() + 4,
            Collective::Scan | Collective::Exscan => scan::doubling_rounds(part),
            // A barrier is an allgather of nothing.
            _ => allgather_rounds(part),
        }
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        match part.kind {
            Collective::Allreduce => allreduce(part, round, steps),
            Collective::Scan | Collective::Exscan => scan::doubling(part, round, steps),
            Collective::Barrier => barrier(part, round, steps),
            _ => {
                let fold = Fold::new(part.members, part.me);
                let allgather = Allgather { fold, blocks: part.layout(), name: |position| position };
                allgather.round(round, steps);
            }
        }
    }
}

fn allreduce(part: &MemberPart, round: u32, steps: &mut RoundSteps) {
    let fold = Fold::onto_odd(part.members, part.me);
    let (whole, log2) = (part.layout().whole(), fold.log2());
    if round == 0 || round == log2 + 3 {
        steps.copy(whole.bytes);
    } else if round == 1 {
        fold.fold(whole, ReceiveAction::Combine, |position| position, steps);
    } else if round == log2 + 2 {
        fold.unfold(whole, |position| position, steps);
    } else if let Some(core) = fold.core() {
        let partner = fold.position(core ^ (1 << (round - 2)));
        steps.receive(partner, whole, ReceiveAction::Combine);
        steps.send(partner, whole);
    }
}

fn barrier(part: &MemberPart, round: u32, steps: &mut RoundSteps) {
    let fold = Fold::new(part.members, part.me);
    let last = fold.log2() + 1;
    match (fold.pair(), fold.core()) {
        (Some((stays, gives)), _) if round == 0 || round == last => {
            let (from, to) = if round == 0 { (gives, stays) } else { (stays, gives) };
            if part.me == from { steps.token_to(to) } else { steps.token_from(from) }
        }
        (_, Some(core)) if (1..last).contains(&round) => {
            let partner = fold.position(core ^ (1 << (round - 1)));
            steps.tokens(partner, partner);
        }
        _ => {}
    }
}

/// Rounds of an allgather.
pub(super) fn allgather_rounds(part: &MemberPart) -> u32 {
    Fold::new(part.members, part.me).log2() + 2
}

/// An allgather in which each position of the fold contributes the block of its number.
pub(super) struct Allgather<'b, N> {
    pub fold: Fold,
    pub blocks: Blocks<'b>,
    /// Turns positions into members.
    pub name: N,
}

impl<N: Fn(u32) -> u32> Allgather<'_, N> {
    /// One of its rounds.
    pub fn round(&self, round: u32, steps: &mut RoundSteps) {
        let Allgather { fold, blocks, name } = self;
        let held = |core: u32, count: u32| blocks.between(fold.begin(core), fold.begin(core + count));
        if round == 0 {
            if let Some((_, gives)) = fold.pair() {
                fold.fold(blocks.block(gives), ReceiveAction::Store, name, steps);
            }
        } else if round == fold.log2() + 1 {
            fold.unfold(blocks.whole(), name, steps);
        } else if let Some(core) = fold.core() {
            let distance = 1 << (round - 1);
            let (own, other) = (core & !(distance - 1), (core ^ distance) & !(distance - 1));
            let partner = name(fold.position(core ^ distance));
            steps.receive(partner, held(other, distance), ReceiveAction::Store);
            steps.send(partner, held(own, distance));
        }
    }
}
