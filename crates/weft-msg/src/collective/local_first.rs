//! Tree that takes local links first: broadcast, reduce, allreduce.
//!
//! The root's data goes to its own group first, over local links. Then all members of the group share the
//! other groups: each sends to the leaders of its share over global links. A leader that has the data serves
//! its own group first, and what was handed over to it of the share is shared by its group again.
//!
//! ```text
//!   group of the root    0 ─▶ 1 2 3         first, by switches and endpoints
//!                        0 ─▶ group 1       then one group each, if there are as many members
//!                        1 ─▶ group 2
//!                        2 ─▶ group 3 …     whose leaders serve their groups in the same way
//! ```
//! Within a group both trees are alike. Where groups outnumber the members of the root's, a member serves its
//! share by halves, as in a binomial tree, and hands each half to the group that it serves.
//!
//! # Source
//! Ours: see [`topology_tree`](super::topology_tree).

use super::topology_tree::{Led, LedParts, Neighbours, TopologyTree, halves, middle};
use crate::hierarchy::{Hierarchy, PlaceLevel};
use std::ops::Range;

/// The algorithm.
pub(crate) const LOCAL_FIRST: TopologyTree = TopologyTree(neighbours);

/// The neighbours of the member at `position` in the tree of the root at `root`.
fn neighbours(hierarchy: &Hierarchy, root: u32, position: u32) -> Neighbours {
    let machine = Led { members: hierarchy.whole(), leader: root };
    let groups = machine.parts(hierarchy, PlaceLevel::Group);
    let found = Handed::to(&groups, groups.containing(position));
    let group = groups.part(found.group);
    let place = position - group.members.start;
    let is_leader = group.leader == position;
    let own = found.share(&group, place);
    let mut neighbours = group.spread(hierarchy, &PlaceLevel::WITHIN_GROUP, position);
    if is_leader {
        neighbours.parent = found.from.map(|from| hierarchy.member(from));
    }
    let leader = |number| hierarchy.member(groups.part(number).leader);
    neighbours.children.extend(halves(own).map(leader));
    neighbours
}

/// A group that has the data, and the groups that are left to its members.
struct Handed {
    group: u32,
    rest: Range<u32>,
    /// The position of the member that it has the data from; `None`: it is the root's.
    from: Option<u32>,
}

impl Handed {
    /// The groups that are handed to one: from the root's group on, whoever serves it or hands it over.
    fn to(groups: &LedParts<'_>, wanted: u32) -> Handed {
        let mut at = Handed { group: 0, rest: 1..groups.count(), from: None };
        while at.group != wanted {
            let group = groups.part(at.group);
            // The last place whose share begins at or before the wanted group.
            let [distance, rest] = [wanted - at.rest.start, at.rest.end - at.rest.start].map(u64::from);
            let members = u64::from(group.members.end - group.members.start);
            let place = (((distance + 1) * members - 1) / rest) as u32;
            let mut share = at.share(&group, place);
            while wanted < middle(&share) {
                share.end = middle(&share);
            }
            let served = middle(&share);
            at = Handed {
                group: served,
                rest: served + 1..share.end,
                from: Some(group.members.start + place),
            };
        }
        at
    }

    /// The groups that the member at this place of the group serves, or hands over.
    fn share(&self, group: &Led, place: u32) -> Range<u32> {
        let members = u64::from(group.members.end - group.members.start);
        let rest = u64::from(self.rest.end - self.rest.start);
        let bound = |place: u32| self.rest.start + (u64::from(place) * rest / members) as u32;
        bound(place)..bound(place + 1)
    }
}
