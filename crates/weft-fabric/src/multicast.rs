//! Multicast groups: endpoints to each of which switches bring a copy of a packet that is sent once.
//!
//! ```text
//!   interface ── packet for a group ──► endpoint ══► switch ══► …      copies: see `switch/replication.rs`
//!                (MulticastGroup::address)                  └──► …
//! ```
//! A group is made before the run begins, as a fabric's manager sets it up for a job. It takes no virtual
//! time. Every member may send to it, and all others get a copy. The tree of a root is a function of
//! topology, routing and members alone ([`MulticastTree`]), so that it is made when its root first sends, and
//! is no state of the run.

use crate::packet::Packet;
use std::sync::OnceLock;
use weft_topo::{Address, MulticastTree, Routing, Topology};
use weft_units::EndpointId;

/// Set in the number of an endpoint that stands for a group: there are fewer endpoints than that.
const GROUP: u32 = 1 << 31;

/// A multicast group, numbered in the order in which the groups of a network are given.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MulticastGroup(u32);

impl MulticastGroup {
    /// The group of this number.
    ///
    /// # Panics
    /// A number of 2³¹ or more.
    pub const fn new(number: u32) -> MulticastGroup {
        assert!(number < GROUP, "a group's number has 31 bits");
        MulticastGroup(number)
    }

    /// The group that is the destination of a packet or a message; `None`: that is an endpoint.
    #[inline(always)]
    pub const fn of(destination: EndpointId) -> Option<MulticastGroup> {
        if destination.0 & GROUP == 0 { None } else { Some(MulticastGroup(destination.0 & !GROUP)) }
    }

    /// The destination of packets and messages for the group.
    #[inline]
    pub const fn address(self) -> EndpointId {
        EndpointId(self.0 | GROUP)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// Members that are no group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// Nobody to send to.
    #[error("a group has two members at least, and this one has {0}")]
    TooFew(usize),
    /// An endpoint that does not exist.
    #[error("there is no endpoint {member}; endpoints are numbered from 0 to {last}")]
    Unknown {
        /// The member.
        member: EndpointId,
        /// The last endpoint.
        last: EndpointId,
    },
    /// A member that is named twice.
    #[error("endpoint {0} is a member twice; name each once")]
    Twice(EndpointId),
    /// Two members that no links join.
    #[error("no links join endpoint {one} with endpoint {other}; make a group of each part of the machine")]
    NotJoined {
        /// A member.
        one: EndpointId,
        /// Another.
        other: EndpointId,
    },
    /// Switches with more ports than copies can be counted for.
    #[error(
        "a switch of {ports} ports and {channels} virtual channels cannot copy packets: at most 32767 of \
             both together"
    )]
    SwitchTooLarge {
        /// Ports of the largest switch.
        ports: u32,
        /// Virtual channels of a link.
        channels: u32,
    },
}

/// The members of a group, sorted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMembers(Box<[EndpointId]>);

impl GroupMembers {
    /// The group of these members of a topology, in any order.
    ///
    /// # Errors
    /// Members that are none, too few, named twice, or not joined.
    pub fn new(members: &[EndpointId], topology: &impl Topology) -> Result<GroupMembers, GroupError> {
        let last = EndpointId(topology.endpoints().saturating_sub(1));
        if let Some(&member) = members.iter().find(|&&member| member > last) {
            return Err(GroupError::Unknown { member, last });
        }
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(GroupError::Twice(pair[0]));
        }
        let &[one, _, ..] = &*sorted else { return Err(GroupError::TooFew(sorted.len())) };
        if let Some(&other) = sorted.iter().find(|&&member| !topology.reachable(one, member)) {
            return Err(GroupError::NotJoined { one, other });
        }
        Ok(GroupMembers(sorted.into()))
    }

    /// The members, sorted.
    pub fn all(&self) -> &[EndpointId] {
        &self.0
    }

    /// The members but one.
    pub(crate) fn others(&self, one: EndpointId) -> impl Iterator<Item = EndpointId> + '_ {
        self.0.iter().copied().filter(move |&member| member != one)
    }
}

/// The members of the groups of a network, by the group's number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Memberships(Box<[GroupMembers]>);

impl Memberships {
    pub(crate) fn new(groups: Vec<GroupMembers>) -> Memberships {
        Memberships(groups.into())
    }

    /// The members of a group, which must exist.
    pub(crate) fn of(&self, group: MulticastGroup) -> &GroupMembers {
        &self.0[group.index()]
    }
}

/// The trees of the groups of a packet network.
#[derive(Default)]
pub(crate) struct Trees {
    memberships: Memberships,
    /// By group and place of the root among its members.
    trees: Box<[Box<[OnceLock<MulticastTree>]>]>,
}

impl Trees {
    /// The trees of these groups, none of them made.
    pub(crate) fn new(memberships: Memberships) -> Trees {
        let of_group = |group: &GroupMembers| group.all().iter().map(|_| OnceLock::new()).collect();
        let trees = memberships.0.iter().map(of_group).collect();
        Trees { memberships, trees }
    }

    /// The address of a packet that a member sends to a group: the sender's place among the members.
    ///
    /// # Panics
    /// A sender that is no member: hosts are told their groups.
    #[cold]
    pub(crate) fn address(&self, packet: &Packet) -> Address {
        let group = MulticastGroup::of(packet.destination).expect("a packet for a group");
        let place = self.memberships.of(group).0.binary_search(&packet.source);
        Address(place.expect("a member sends") as u64)
    }

    /// The tree of a packet for a group, and its node there.
    pub(crate) fn node<T: Topology + Routing>(&self, packet: &Packet, topology: &T) -> (&MulticastTree, u32) {
        let group = MulticastGroup::of(packet.destination).expect("a packet for a group");
        let tree = self.trees[group.index()][packet.address.0 as usize].get_or_init(|| {
            let members = self.memberships.of(group).all();
            let tree = MulticastTree::new(topology, packet.source, members);
            tree.expect("members are joined: it was asked when the group was made")
        });
        (tree, packet.route.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_topo::{Star, StarRouting};

    /// Catches members that would send a packet nowhere, twice, or past the end of the machine.
    #[test]
    fn bad_members_are_refused() {
        let star = StarRouting::new(Star::new(4).unwrap());
        let group = |members: &[u32]| {
            GroupMembers::new(&members.iter().copied().map(EndpointId).collect::<Vec<_>>(), &star)
                .map(|group| group.all().to_vec())
                .map_err(|error| error.to_string())
        };
        assert_eq!(group(&[3, 0]), Ok(vec![EndpointId(0), EndpointId(3)]));
        let says = |members: &[u32], what: &str| {
            let error = group(members).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        says(&[], "two members at least, and this one has 0");
        says(&[2], "this one has 1");
        says(&[1, 4], "no endpoint 4; endpoints are numbered from 0 to 3");
        says(&[1, 2, 1], "endpoint 1 is a member twice");
    }

    /// Catches an endpoint that is taken for a group.
    #[test]
    fn groups_and_endpoints_are_apart() {
        assert_eq!(MulticastGroup::of(EndpointId(weft_topo::MAX_ENDPOINTS as u32)), None);
        for number in [0, 7, GROUP - 1] {
            let group = MulticastGroup::new(number);
            assert_eq!(MulticastGroup::of(group.address()), Some(group));
        }
    }
}
