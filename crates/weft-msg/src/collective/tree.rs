//! Broadcast and reduce along a tree of any shape.
//!
//! A member of the tree knows its parent and its children. In a broadcast it sends to all children at once
//! what it has received; in a reduce it takes in what all children send before it sends to its parent.
//!
//! # Source
//! Open MPI 4.1, `ompi_coll_base_bcast_intra_generic`, `ompi_coll_base_reduce_generic`, without segments.

use super::blocks::Extent;
use super::member_part::MemberPart;
use super::{ReceiveAction, RoundSteps, Schedule};
use arrayvec::ArrayVec;
use weft_trace::op::Collective;

/// Most children that a member of a tree has: 3 on each of the 16 levels of a tree of radix 4.
const MAX_CHILDREN: usize = 48;

/// Rounds of a broadcast or a reduce.
pub(super) const ROUNDS: u32 = 2;

/// A tree whose members are counted from the root: broadcast, reduce.
pub(crate) struct Tree {
    /// The neighbours of a member among so many.
    pub family: fn(member: u32, members: u32) -> Family,
}

impl Schedule for Tree {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Broadcast, Collective::Reduce]
    }

    fn rounds(&self, _: &MemberPart) -> u32 {
        ROUNDS
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let family = (self.family)(part.relative(), part.members);
        let (whole, name) = (part.layout().whole(), |position| part.nth_from_root(position));
        match part.kind {
            Collective::Broadcast => family.broadcast(whole, name, round, steps),
            _ => family.reduce(whole, name, round, steps),
        }
    }
}

/// The neighbours of one member in a tree.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Family {
    /// `None`: it is the root.
    pub parent: Option<u32>,
    /// In the order in which they are sent to.
    pub children: ArrayVec<u32, MAX_CHILDREN>,
}

impl Family {
    /// One round of a broadcast of `piece`. `name` turns the tree's numbers into members.
    pub fn broadcast(&self, piece: Extent, name: impl Fn(u32) -> u32, round: u32, steps: &mut RoundSteps) {
        match (round, self.parent) {
            (0, Some(parent)) => steps.receive(name(parent), piece, ReceiveAction::Store),
            (1, _) => self.children.iter().for_each(|child| steps.send(name(*child), piece)),
            _ => {}
        }
    }

    /// One round of a reduce of `piece`.
    pub fn reduce(&self, piece: Extent, name: impl Fn(u32) -> u32, round: u32, steps: &mut RoundSteps) {
        match (round, self.parent) {
            (0, _) => {
                self.children
                    .iter()
                    .for_each(|child| steps.receive(name(*child), piece, ReceiveAction::Combine));
            }
            (1, Some(parent)) => steps.send(name(parent), piece),
            _ => {}
        }
    }
}
