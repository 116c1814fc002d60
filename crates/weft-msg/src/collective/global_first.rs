//! Tree that takes global links first: broadcast, reduce, allreduce.
//!
//! The root's data goes to a leader in each other group by a binomial tree of leaders; each leader serves the
//! switches of its group in the same way, then the leader of a switch its endpoints, and that of an endpoint
//! the other members there. Whoever is a leader of a wider part serves that first.
//!
//! ```text
//!   root ─▶ leaders of groups ─▶ leaders of switches ─▶ leaders of endpoints ─▶ members
//! ```
//! Depth: ⌈log2⌉ of the groups, of the switches of a group, and so on, added up. A global link carries the
//! data once for each group, whoever sends it.
//!
//! # Source
//! Ours: see [`topology_tree`](super::topology_tree).

use super::topology_tree::{Led, Neighbours, TopologyTree};
use crate::hierarchy::{Hierarchy, PlaceLevel};

/// The algorithm.
pub(crate) const GLOBAL_FIRST: TopologyTree = TopologyTree(neighbours);

/// The neighbours of the member at `position` in the tree of the root at `root`.
fn neighbours(hierarchy: &Hierarchy, root: u32, position: u32) -> Neighbours {
    let machine = Led { members: hierarchy.whole(), leader: root };
    machine.spread(
        hierarchy,
        &[PlaceLevel::Group, PlaceLevel::Switch, PlaceLevel::Endpoint, PlaceLevel::Member],
        position,
    )
}
