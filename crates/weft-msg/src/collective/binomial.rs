//! Binomial tree: broadcast, reduce, gather, scatter, barrier.
//!
//! Members are counted from the root. Member v's parent is v without its lowest set bit; its subtree
//! is v and as many after it as that bit is worth.
//!
//! ```text
//!   8 members      0
//!               ┌──┼────┐
//!               4  2    1        0 → 4, then 0 → 2 and 4 → 6, then 0 → 1, 2 → 3, 4 → 5, 6 → 7
//!              ┌┴┐ │
//!              6 5 3
//!              7
//! ```
//!
//! Messages: p − 1. Rounds: ⌈log2 p⌉. A barrier goes up the tree and down again. A broadcast may send to all
//! children at once.
//!
//! # Source
//! MPICH `bcast_binomial`, `ibcast_intra_sched_binomial` (at once: "a true analog would put an
//! MPIR_Sched_barrier here after every send"), `reduce_binomial`, `gather_binomial`, `scatter_binomial`; Open
//! MPI 4.1 `ompi_coll_base_barrier_intra_tree`.

use super::blocks::{Blocks, Extent};
use super::{ReceiveAction, RoundSteps, Schedule, ceil_log2, member_part::MemberPart};
use weft_trace::op::Collective;

/// The algorithm.
pub(crate) struct Binomial;

impl Schedule for Binomial {
    fn performs(&self) -> &'static [Collective] {
        &[
            Collective::Broadcast,
            Collective::Reduce,
            Collective::Gather,
            Collective::Scatter,
            Collective::Barrier,
        ]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        match part.kind {
            Collective::Barrier => 2 * ceil_log2(part.members),
            _ => tree_rounds(part),
        }
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let whole = |_, _| part.layout().whole();
        // Blocks lie in the order of the members, which begins with the root's only by chance.
        let subtree = |first, count| part.layout().cyclic(part.nth_from_root(first), count);
        match part.kind {
            Collective::Broadcast => away_from_root(part, round, whole, steps),
            Collective::Scatter => away_from_root(part, round, subtree, steps),
            Collective::Barrier => barrier(part, round, steps),
            Collective::Gather => towards_root(part, round, subtree, steps),
            _ => {
                if round == 0 {
                    steps.copy(part.layout().total());
                }
                towards_root(part, round, whole, steps);
            }
        }
    }
}

/// A broadcast that does not wait for one child before it sends to the next.
pub(crate) struct BinomialAtOnce;

impl Schedule for BinomialAtOnce {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Broadcast]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        Binomial.rounds(part)
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        Binomial.round(part, round, steps);
    }

    fn overlaps(&self, _: &MemberPart, round: u32) -> bool {
        round > 0
    }
}

/// Rounds of a walk through the tree.
pub(super) fn tree_rounds(part: &MemberPart) -> u32 {
    ceil_log2(part.members) + 1
}

/// Scatters the blocks of `layout`, block i to the member that is i-th from the root.
pub(super) fn scatter_from_root(part: &MemberPart, layout: Blocks<'_>, round: u32, steps: &mut RoundSteps) {
    away_from_root(part, round, |first, count| layout.between(first, first + count), steps);
}

/// One round down the tree. `piece` is what concerns so many members from one on, counted from the root.
fn away_from_root(part: &MemberPart, round: u32, piece: impl Fn(u32, u32) -> Extent, steps: &mut RoundSteps) {
    let v = part.relative();
    if round == 0 {
        if v != 0 {
            let (parent, size) = (v - lowest_bit(v), subtree(v, lowest_bit(v), part.members));
            steps.receive(part.nth_from_root(parent), piece(v, size), ReceiveAction::Store);
        }
        return;
    }
    let bit = 1 << (ceil_log2(part.members) - round);
    if is_child(v, bit, part.members) {
        steps.send(part.nth_from_root(v + bit), piece(v + bit, subtree(v + bit, bit, part.members)));
    }
}

/// One round up the tree: a gather stores the pieces of subtrees, a reduce combines them.
fn towards_root(part: &MemberPart, round: u32, piece: impl Fn(u32, u32) -> Extent, steps: &mut RoundSteps) {
    let into = match part.kind {
        Collective::Gather => ReceiveAction::Store,
        _ => ReceiveAction::Combine,
    };
    let (v, depth) = (part.relative(), ceil_log2(part.members));
    if round == depth {
        return;
    }
    let bit = 1 << round;
    if is_child(v, bit, part.members) {
        steps.receive(part.nth_from_root(v + bit), piece(v + bit, subtree(v + bit, bit, part.members)), into);
    } else if v != 0 && lowest_bit(v) == bit {
        steps.send(part.nth_from_root(v - bit), piece(v, subtree(v, bit, part.members)));
    }
}

/// One round of a barrier: tokens up the tree, then down.
fn barrier(part: &MemberPart, round: u32, steps: &mut RoundSteps) {
    let (v, depth) = (part.me, ceil_log2(part.members));
    let up = round < depth;
    let bit = 1 << if up { round } else { 2 * depth - 1 - round };
    if is_child(v, bit, part.members) {
        if up { steps.token_from(v + bit) } else { steps.token_to(v + bit) }
    } else if v != 0 && lowest_bit(v) == bit {
        if up { steps.token_to(v - bit) } else { steps.token_from(v - bit) }
    }
}

/// The lowest set bit; above all others for the root.
fn lowest_bit(v: u32) -> u32 {
    if v == 0 { u32::MAX } else { v & v.wrapping_neg() }
}

/// Whether v has the child v + bit.
fn is_child(v: u32, bit: u32, members: u32) -> bool {
    bit < lowest_bit(v) && bit < members - v
}

/// The number of members in the subtree of v.
fn subtree(v: u32, bit: u32, members: u32) -> u32 {
    bit.min(members - v)
}
