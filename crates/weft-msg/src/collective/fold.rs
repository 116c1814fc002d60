//! Members beyond a power of two.
//!
//! The first 2·rem of p = 2^k + rem members form pairs. One of a pair gives its data to the other and gets
//! the result after; those that stay and all further members are the 2^k cores that exchange among
//! themselves.
//!
//! ```text
//!   members   0←1   2←3   4←5   6        p = 7 = 4 + 3: rem = 3, the even ones stay
//!   members   0→1   2→3   4→5   6        the odd ones stay
//!   cores      0     1     2    3
//! ```
//!
//! # Source
//! Rabenseifner and Träff 2004, where the even ones stay. In MPICH's `allreduce_recursive_doubling`,
//! `allreduce_reduce_scatter_allgather` and `reduce_scatter_recursive_halving` the odd ones do.

use super::{ReceiveAction, RoundSteps, blocks::Extent};

/// The part of a reduce-scatter over folded members that a round is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReduceScatterStage {
    /// The data is copied into a buffer of its own.
    Copy,
    /// One of each pair gives its data away.
    Fold,
    /// The cores exchange halves of what they have: this exchange of [`Fold::log2`], from 0.
    Exchange(u32),
    /// Blocks go to those that they belong to.
    Deliver,
}

/// The fold of `members` positions, seen from one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fold {
    /// The number of cores: the largest power of two that is not above the number of members.
    pub cores: u32,
    rem: u32,
    position: u32,
    /// The one of each pair that stays: 0 is the even one, 1 the odd one.
    stays: u32,
}

impl Fold {
    /// As `position` of `members` sees it, the even ones staying.
    pub fn new(members: u32, position: u32) -> Fold {
        let cores = 1 << members.ilog2();
        Fold { cores, rem: members - cores, position, stays: 0 }
    }

    /// The same, the odd ones staying.
    pub fn onto_odd(members: u32, position: u32) -> Fold {
        Fold { stays: 1, ..Fold::new(members, position) }
    }

    /// Rounds of an exchange among cores at doubling distance.
    pub fn log2(&self) -> u32 {
        self.cores.trailing_zeros()
    }

    /// Rounds of a reduce-scatter by exchanges of halves.
    pub fn reduce_scatter_rounds(&self) -> u32 {
        self.log2() + 3
    }

    /// The stage that round `round` of such a reduce-scatter is in.
    pub fn reduce_scatter_stage(&self, round: u32) -> ReduceScatterStage {
        match round {
            0 => ReduceScatterStage::Copy,
            1 => ReduceScatterStage::Fold,
            _ if round < self.log2() + 2 => ReduceScatterStage::Exchange(round - 2),
            _ => ReduceScatterStage::Deliver,
        }
    }

    /// The core at this position; `None` where it has given its data away.
    pub fn core(&self) -> Option<u32> {
        self.core_at(self.position)
    }

    /// The core at another position; `None` where that has given its data away.
    pub fn core_at(&self, position: u32) -> Option<u32> {
        if position >= 2 * self.rem {
            Some(position - self.rem)
        } else {
            (position % 2 == self.stays).then_some(position / 2)
        }
    }

    /// Whether this is that position.
    pub fn is_at(&self, position: u32) -> bool {
        self.position == position
    }

    /// The position of core `core`.
    pub fn position(&self, core: u32) -> u32 {
        if core < self.rem { 2 * core + self.stays } else { core + self.rem }
    }

    /// The first position whose data core `core` has. The cores' data end before position `members` = the one
    /// of core number `cores`.
    pub fn begin(&self, core: u32) -> u32 {
        if core < self.rem { 2 * core } else { core + self.rem }
    }

    /// One of each pair gives `piece` to the one that stays. `name` turns positions into members.
    pub fn fold(
        &self,
        piece: Extent,
        into: ReceiveAction,
        name: impl Fn(u32) -> u32,
        steps: &mut RoundSteps,
    ) {
        match self.pair() {
            Some((stays, gives)) if self.position == gives => steps.send(name(stays), piece),
            Some((_, gives)) => steps.receive(name(gives), piece, into),
            None => {}
        }
    }

    /// Those that stayed give `piece` back.
    pub fn unfold(&self, piece: Extent, name: impl Fn(u32) -> u32, steps: &mut RoundSteps) {
        match self.pair() {
            Some((stays, gives)) if self.position == gives => {
                steps.receive(name(stays), piece, ReceiveAction::Store)
            }
            Some((_, gives)) => steps.send(name(gives), piece),
            None => {}
        }
    }

    /// The pair that this position belongs to: the one that stays, and the one that gives.
    pub fn pair(&self) -> Option<(u32, u32)> {
        let even = self.position & !1;
        (self.position < 2 * self.rem).then_some((even + self.stays, even + 1 - self.stays))
    }
}
