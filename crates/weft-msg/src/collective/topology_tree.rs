//! Broadcast, reduce and allreduce along a tree that follows the machine's topology.
//!
//! The shape of the tree is that of [`local_first`](super::local_first) or
//! [`global_first`](super::global_first). In a broadcast a member sends the whole vector to one child after
//! the other, in the order of the tree. In a reduce it takes in what all children send before it sends to its
//! parent. An allreduce is a reduce to the first member and a broadcast from it.
//!
//! Messages: p − 1, of an allreduce twice as many. Parts of the machine are reached by their leaders: the
//! root in its own, else the member of lowest place.
//!
//! # Source
//! Ours. RED-SEA D1.4 §12.2 has the names "local link first" and "global link first"; the algorithms are in
//! another document of that project.
//!
//! # Not modelled
//! Segments, by which a tree overlaps its levels: no tree here has them.

use super::blocks::Extent;
use super::member_part::MemberPart;
use super::{FindNeighbours, ReceiveAction, RoundSteps, Schedule};
use crate::hierarchy::{Hierarchy, PlaceLevel};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use weft_trace::op::Collective;

/// An algorithm of this kind: the member's part has its neighbours.
pub(crate) struct TopologyTree(pub FindNeighbours);

/// The neighbours of a member in a tree.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Neighbours {
    /// `None`: it is the root.
    pub parent: Option<u32>,
    /// In the order in which they are sent to.
    pub children: Vec<u32>,
}

/// Rounds of a reduce: from the children, to the parent.
const REDUCE_ROUNDS: u32 = 2;

impl Schedule for TopologyTree {
    fn performs(&self) -> &'static [Collective] {
        &[Collective::Broadcast, Collective::Reduce, Collective::Allreduce]
    }

    fn rounds(&self, part: &MemberPart) -> u32 {
        let broadcast = 1 + part.neighbours.children.len() as u32;
        match part.kind {
            Collective::Broadcast => broadcast,
            Collective::Reduce => REDUCE_ROUNDS,
            _ => REDUCE_ROUNDS + broadcast,
        }
    }

    fn round(&self, part: &MemberPart, round: u32, steps: &mut RoundSteps) {
        let whole = part.layout().whole();
        match part.kind {
            Collective::Broadcast => part.neighbours.broadcast(whole, round, steps),
            _ if round < REDUCE_ROUNDS => part.neighbours.reduce(whole, round, steps),
            _ => part.neighbours.broadcast(whole, round - REDUCE_ROUNDS, steps),
        }
    }

    fn neighbours(&self) -> Option<FindNeighbours> {
        Some(self.0)
    }
}

impl Neighbours {
    /// One round of a broadcast of `piece`.
    fn broadcast(&self, piece: Extent, round: u32, steps: &mut RoundSteps) {
        match (round.checked_sub(1), self.parent) {
            (None, Some(parent)) => steps.receive(parent, piece, ReceiveAction::Store),
            (None, None) => {}
            (Some(child), _) => steps.send(self.children[child as usize], piece),
        }
    }

    /// One round of a reduce of `piece`.
    fn reduce(&self, piece: Extent, round: u32, steps: &mut RoundSteps) {
        match (round, self.parent) {
            (0, _) => {
                self.children.iter().for_each(|child| steps.receive(*child, piece, ReceiveAction::Combine));
            }
            (_, Some(parent)) => steps.send(parent, piece),
            (_, None) => {}
        }
    }
}

/// A part of the machine and the first of its members to have the data.
pub(super) struct Led {
    pub members: Range<u32>,
    pub leader: u32,
}

impl Led {
    /// The parts of `level` within this one, the leader's own first.
    pub fn parts<'a>(&self, hierarchy: &'a Hierarchy, level: PlaceLevel) -> LedParts<'a> {
        let parts = hierarchy.parts(level, &self.members);
        LedParts { first: parts.containing(self.leader), leader: self.leader, parts }
    }

    /// The neighbours of the member at `position` by a binomial tree among the leaders of the groups within
    /// this part, then among those of the switches of each group, of endpoints, and of members.
    pub fn spread(mut self, hierarchy: &Hierarchy, levels: &[PlaceLevel], position: u32) -> Neighbours {
        let mut neighbours = Neighbours::default();
        for &level in levels {
            let parts = self.parts(hierarchy, level);
            let own = parts.containing(position);
            let part = parts.part(own);
            if part.leader == position {
                let tree = binomial(parts.count(), own);
                let name = |number: u32| hierarchy.member(parts.part(number).leader);
                neighbours.parent = tree.parent.map(name).or(neighbours.parent);
                neighbours.children.extend(tree.children.into_iter().map(name));
            }
            self = part;
        }
        neighbours
    }
}

/// The parts within one, counted back from that of its leader: in a Dragonfly with palmtree links the
/// links of a switch lead to the groups before its own.
pub(super) struct LedParts<'a> {
    parts: crate::hierarchy::PlaceParts<'a>,
    first: u32,
    leader: u32,
}

impl LedParts<'_> {
    /// The number of parts.
    pub fn count(&self) -> u32 {
        self.parts.count()
    }

    /// The part with this number.
    pub fn part(&self, number: u32) -> Led {
        let members = self.parts.part(self.mirrored(number));
        let leader = if number == 0 { self.leader } else { members.start };
        Led { members, leader }
    }

    /// The number of the part that a position is in.
    pub fn containing(&self, position: u32) -> u32 {
        self.mirrored(self.parts.containing(position))
    }

    /// From numbers of the topology to those counted back from the leader's, and the other way round.
    fn mirrored(&self, number: u32) -> u32 {
        (self.first + self.count() - number) % self.count()
    }
}

/// The neighbours of `own` in a binomial tree of `count`, whose root is 0. Who has the data hands over the
/// upper half of what is left to serve each time.
fn binomial(count: u32, own: u32) -> Neighbours {
    let mut neighbours = Neighbours::default();
    let (mut holder, mut rest) = (0, 1..count);
    while holder != own {
        let middle = middle(&rest);
        if own < middle {
            rest.end = middle;
        } else {
            neighbours.parent = Some(holder);
            (holder, rest.start) = (middle, middle + 1);
        }
    }
    neighbours.children = halves(rest).collect();
    neighbours
}

/// The first of the upper half of what is left to serve, which is served next.
pub(super) fn middle(rest: &Range<u32>) -> u32 {
    rest.start + (rest.end - rest.start) / 2
}

/// Those whom a holder serves by itself of what is left to serve, in order.
pub(super) fn halves(mut rest: Range<u32>) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let served = middle(&rest);
        (!rest.is_empty()).then(|| {
            rest.end = served;
            served
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;
    use crate::collective::member_part::MemberPlace;
    use crate::collective::registry::neighbours;
    use crate::hierarchy::TopologyPlace;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const BOTH: [Algorithm; 2] = [Algorithm::LocalFirst, Algorithm::GlobalFirst];

    /// The tree of a root: the neighbours of each member.
    fn tree(algorithm: Algorithm, places: &[TopologyPlace], root: u32) -> Vec<Neighbours> {
        let (hierarchy, members) = (Hierarchy::new(places.iter().copied()), places.len() as u32);
        let of = |me| neighbours(algorithm, MemberPlace { members, me, root }, &hierarchy);
        (0..members).map(of).collect()
    }

    /// The step in which each member has the data, where a message takes a step and a member sends to one
    /// child after the other.
    fn steps(tree: &[Neighbours], root: u32) -> Vec<u32> {
        let (mut steps, mut next) = (vec![0; tree.len()], vec![root]);
        while let Some(member) = next.pop() {
            for (child, after) in tree[member as usize].children.iter().zip(1..) {
                steps[*child as usize] = steps[member as usize] + after;
                next.push(*child);
            }
        }
        steps
    }

    /// A machine with all its endpoints: groups, switches of each, endpoints of each.
    fn machine(groups: u32, switches: u32, endpoints: u32) -> Vec<TopologyPlace> {
        let place = |endpoint| {
            let switch = endpoint / endpoints;
            TopologyPlace { group: switch / switches, switch, endpoint }
        };
        (0..groups * switches * endpoints).map(place).collect()
    }

    fn places() -> impl Strategy<Value = Vec<TopologyPlace>> {
        let place = (0u32..5, 0u32..4, 0u32..3).prop_map(|(group, switch, endpoint)| {
            let switch = 4 * group + switch;
            TopologyPlace { group, switch, endpoint: 3 * switch + endpoint }
        });
        prop::collection::vec(place, 1..80)
    }

    proptest! {
        /// Catches a member that nobody serves, or two do, a child that has another parent, and a group or
        /// switch that gets the data more than once from outside: for any places and any root.
        #[test]
        fn each_part_of_the_machine_gets_the_data_once(places in places(), root in any::<u32>()) {
            let root = root % places.len() as u32;
            for algorithm in BOTH {
                let tree = tree(algorithm, &places, root);
                let children = tree.iter().zip(0u32..).flat_map(|(one, parent)| {
                    one.children.iter().map(move |child| (*child, parent))
                });
                let parents: BTreeMap<u32, u32> = children.clone().collect();
                prop_assert_eq!((children.count(), parents.len()), (places.len() - 1, places.len() - 1));
                for (one, me) in tree.iter().zip(0..) {
                    prop_assert_eq!(one.parent, parents.get(&me).copied());
                }
                let reached = steps(&tree, root).iter().filter(|step| **step > 0).count();
                prop_assert_eq!(reached, places.len() - 1, "cycles beside the tree");
                type Part = fn(&TopologyPlace) -> u32;
                for part in [(|place| place.group) as Part, |place| place.switch, |place| place.endpoint] {
                    let at = |member: u32| part(&places[member as usize]);
                    let mut entries = BTreeMap::<u32, u32>::new();
                    for (child, parent) in &parents {
                        if at(*child) == at(*parent) {
                            continue;
                        }
                        prop_assert_ne!(at(*child), at(root), "back into the root's part");
                        *entries.entry(at(*child)).or_default() += 1;
                    }
                    prop_assert!(entries.values().all(|count| *count == 1), "{algorithm}: {entries:?}");
                }
            }
        }

        /// Catches a tree that is not binomial where the machine has one level only.
        #[test]
        fn without_levels_both_are_binomial(members in 1u32..200, root in 0u32..200) {
            let root = root % members;
            for places in [machine(1, 1, members), machine(members, 1, 1)] {
                for algorithm in BOTH {
                    let last = steps(&tree(algorithm, &places, root), root).into_iter().max();
                    prop_assert_eq!(last, Some(crate::collective::ceil_log2(members)), "{}", algorithm);
                }
            }
        }
    }

    /// Catches links of the wrong kind first, and a share of the groups that is not one for each member: on
    /// the Dragonfly of 342 endpoints, whose groups have as many members as there are other groups.
    #[test]
    fn the_first_links_are_those_of_the_name() {
        let places = machine(19, 6, 3);
        for root in [0, 100, 341] {
            let own = places[root as usize].group;
            let global = |tree: &[Neighbours]| {
                let crosses = |one: &Neighbours, me: u32| {
                    let leads_away = |child: &u32| places[*child as usize].group != places[me as usize].group;
                    one.children.iter().map(leads_away).collect::<Vec<_>>()
                };
                tree.iter().zip(0..).map(|(one, me)| crosses(one, me)).collect::<Vec<_>>()
            };
            let local_first = tree(Algorithm::LocalFirst, &places, root);
            for (kinds, place) in global(&local_first).iter().zip(&places) {
                let away = kinds.iter().filter(|is_global| **is_global).count();
                assert_eq!(away, usize::from(place.group == own), "a group for each of the root's");
                assert!(kinds.is_sorted(), "local links first");
            }
            assert_eq!(steps(&local_first, root).into_iter().max(), Some(5 + 1 + 5));
            let global_first = tree(Algorithm::GlobalFirst, &places, root);
            for kinds in global(&global_first) {
                assert!(kinds.iter().rev().is_sorted(), "global links first");
            }
            assert_eq!(steps(&global_first, root).into_iter().max(), Some(5 + 3 + 2));
        }
    }

    /// Catches members that serve groups which their own switch has no link to: palmtree links lead to the
    /// groups before the own one.
    #[test]
    fn members_serve_the_groups_of_their_switch() {
        let places = machine(19, 6, 3);
        let tree = tree(Algorithm::LocalFirst, &places, 7 * 18);
        for (member, place) in (0..18).map(|place| (7 * 18 + place, place)) {
            let far = tree[member as usize].children.last().map(|child| places[*child as usize].group);
            assert_eq!(far, Some((7 + 19 - 1 - place) % 19));
        }
    }
}
