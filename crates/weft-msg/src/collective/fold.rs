//! Members beyond a power of two.
//!
//! The first 2·rem of p = 2^k + rem members form pairs. The odd one of a pair gives its data to the
//! even one before and gets the result after; the even ones and all further members are the 2^k cores
//! that exchange among themselves.
//!
//! ```text
//!   members   0←1   2←3   4   5   6        p = 7 = 4 + 3: rem = 3
//!   members   0←1   2←3   4←5   6
//!   cores      0     1     2    3
//! ```
//!
//! # Source
//! Rabenseifner and Träff 2004; MPICH, where the odd ones stay.

use super::{ReceiveAction, RoundSteps, blocks::Extent};

/// The part of a reduce-scatter over folded members that a round is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ReduceScatterStage {
    /// The data is copied into a buffer of its own.
    Copy,
    /// The odd positions give their data away.
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
}

impl Fold {
    /// As `position` of `members` sees it.
    pub fn new(members: u32, position: u32) -> Fold {
        let cores = 1 << members.ilog2();
        Fold { cores, rem: members - cores, position }
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
            (position.is_multiple_of(2)).then_some(position / 2)
        }
    }

    /// Whether this is that position.
    pub fn is_at(&self, position: u32) -> bool {
        self.position == position
    }

    /// The position of core `core`: also the first one whose data it has. The cores' data end before
    /// position `members` = the one of core number `cores`.
    pub fn position(&self, core: u32) -> u32 {
        if core < self.rem { 2 * core } else { core + self.rem }
    }

    /// The odd positions give `piece` to the even one before. `name` turns positions into members.
    pub fn fold(
        &self,
        piece: Extent,
        into: ReceiveAction,
        name: impl Fn(u32) -> u32,
        steps: &mut RoundSteps,
    ) {
        match self.pair() {
            Some((even, odd)) if self.position == odd => steps.send(name(even), piece),
            Some((_, odd)) => steps.receive(name(odd), piece, into),
            None => {}
        }
    }

    /// The even positions give `piece` back to the odd one after.
    pub fn unfold(&self, piece: Extent, name: impl Fn(u32) -> u32, steps: &mut RoundSteps) {
        match self.pair() {
            Some((even, odd)) if self.position == odd => {
                steps.receive(name(even), piece, ReceiveAction::Store)
            }
            Some((_, odd)) => steps.send(name(odd), piece),
            None => {}
        }
    }

    /// The pair that this position belongs to.
    pub fn pair(&self) -> Option<(u32, u32)> {
        let even = self.position & !1;
        (self.position < 2 * self.rem).then_some((even, even + 1))
    }
}
