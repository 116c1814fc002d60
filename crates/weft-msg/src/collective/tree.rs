//! Broadcast and reduce along a tree of any shape.
//!
//! A member of the tree knows its parent and its children. In a broadcast it sends to all children at once
//! what it has received; in a reduce it takes in what all children send before it sends to its parent.
//!
//! # Source
//! Open MPI 4.1, `ompi_coll_base_bcast_intra_generic`, `ompi_coll_base_reduce_generic`, without segments.

use super::layout::Piece;
use super::{Into, Steps};
use arrayvec::ArrayVec;

/// More children than any member of a tree has: 3 on each of the 16 levels of a tree of radix 4.
const MOST_CHILDREN: usize = 48;

/// Rounds of a broadcast or a reduce.
pub(super) const ROUNDS: u32 = 2;

/// The neighbours of one member in a tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Family {
    /// `None`: it is the root.
    pub parent: Option<u32>,
    /// In the order in which they are sent to.
    pub children: ArrayVec<u32, MOST_CHILDREN>,
}

impl Family {
    /// One round of a broadcast of `piece`. `name` turns the tree's numbers into members.
    pub fn broadcast(&self, piece: Piece, name: impl Fn(u32) -> u32, round: u32, steps: &mut Steps) {
        match (round, self.parent) {
            (0, Some(parent)) => steps.receive(name(parent), piece, Into::Store),
            (1, _) => self.children.iter().for_each(|child| steps.send(name(*child), piece)),
            _ => {}
        }
    }

    /// One round of a reduce of `piece`.
    pub fn reduce(&self, piece: Piece, name: impl Fn(u32) -> u32, round: u32, steps: &mut Steps) {
        match (round, self.parent) {
            (0, _) => {
                self.children.iter().for_each(|child| steps.receive(name(*child), piece, Into::Combine));
            }
            (1, Some(parent)) => steps.send(name(parent), piece),
            _ => {}
        }
    }
}
