//! The members of a communicator in the order of their places in the machine, for trees that follow its
//! topology.
//!
//! ```text
//!   groups        0                     1
//!   switches      0         1           2
//!   endpoints     0    1    2    3      4    5
//!   in order      0 1  2 3  4 5  6 7    8 9  10 11      members, two at each endpoint
//! ```
//! A part of the machine is a range of the order. One table serves all members and all roots.

use std::ops::Range;

/// The part of a machine that an endpoint lies in, by the numbers of its topology.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct TopologyPlace {
    /// The widest part that the topology has, such as the group of a Dragonfly.
    pub group: u32,
    /// A part of that; the switch, where the topology has no other.
    pub switch: u32,
    /// The endpoint.
    pub endpoint: u32,
}

/// A level of parts within the whole machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlaceLevel {
    Group,
    Switch,
    Endpoint,
    Member,
}

impl PlaceLevel {
    /// The levels within a group, the widest first.
    pub const WITHIN_GROUP: [PlaceLevel; 3] = [PlaceLevel::Switch, PlaceLevel::Endpoint, PlaceLevel::Member];
}

/// The members of a communicator by their places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hierarchy {
    /// The members in order of place.
    members: Box<[u32]>,
    /// The position of each member in that order.
    positions: Box<[u32]>,
    /// Where the groups, switches and endpoints begin in it.
    starts: [Box<[u32]>; 3],
}

impl Hierarchy {
    /// The members whose places are these, in order of their numbers.
    pub fn new(places: impl Iterator<Item = TopologyPlace>) -> Hierarchy {
        let mut by_place: Vec<(TopologyPlace, u32)> = places.zip(0..).collect();
        by_place.sort_unstable();
        let starts = |part: fn(TopologyPlace) -> TopologyPlace| -> Box<[u32]> {
            let begins = |&position: &u32| {
                let at = |position: u32| part(by_place[position as usize].0);
                position == 0 || at(position - 1) != at(position)
            };
            (0..by_place.len() as u32).filter(begins).collect()
        };
        let starts = [
            starts(|place| TopologyPlace { switch: 0, endpoint: 0, ..place }),
            starts(|place| TopologyPlace { endpoint: 0, ..place }),
            starts(|place| place),
        ];
        let mut positions = vec![0; by_place.len()];
        for (&(_, member), position) in by_place.iter().zip(0..) {
            positions[member as usize] = position;
        }
        let members = by_place.into_iter().map(|(_, member)| member).collect();
        Hierarchy { members, positions: positions.into(), starts }
    }

    /// All at one endpoint, where nobody knows their places.
    pub fn flat(members: u32) -> Hierarchy {
        Hierarchy::new((0..members).map(|_| TopologyPlace::default()))
    }

    /// The member at a position.
    pub(crate) fn member(&self, position: u32) -> u32 {
        self.members[position as usize]
    }

    /// The position of a member.
    pub(crate) fn position(&self, member: u32) -> u32 {
        self.positions[member as usize]
    }

    /// All positions.
    pub(crate) fn whole(&self) -> Range<u32> {
        0..self.members.len() as u32
    }

    /// The parts of a level of which `within` consists, which is a part of a wider level.
    pub(crate) fn parts(&self, level: PlaceLevel, within: &Range<u32>) -> PlaceParts<'_> {
        let starts = match level {
            PlaceLevel::Group => &self.starts[0],
            PlaceLevel::Switch => &self.starts[1],
            PlaceLevel::Endpoint => &self.starts[2],
            PlaceLevel::Member => return PlaceParts { starts: None, within: within.clone() },
        };
        let [first, end] = [within.start, within.end].map(|at| starts.partition_point(|&start| start < at));
        PlaceParts { starts: Some(&starts[first..end]), within: within.clone() }
    }
}

/// PlaceParts that follow each other.
pub(crate) struct PlaceParts<'a> {
    /// The beginning of each; `None`: at every position.
    starts: Option<&'a [u32]>,
    within: Range<u32>,
}

impl PlaceParts<'_> {
    /// The number of parts.
    pub fn count(&self) -> u32 {
        self.starts.map_or(self.within.end - self.within.start, |starts| starts.len() as u32)
    }

    /// The part with this number.
    pub fn part(&self, number: u32) -> Range<u32> {
        let start = |number: u32| match self.starts {
            Some(starts) => starts.get(number as usize).copied().unwrap_or(self.within.end),
            None => self.within.start + number,
        };
        start(number)..start(number + 1)
    }

    /// The number of the part that a position is in.
    pub fn containing(&self, position: u32) -> u32 {
        match self.starts {
            Some(starts) => starts.partition_point(|&start| start <= position) as u32 - 1,
            None => position - self.within.start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches parts that overlap or leave members out, where members are not in the order of their places.
    #[test]
    fn parts_are_ranges_of_the_order() {
        let place = |(group, switch, endpoint)| TopologyPlace { group, switch, endpoint };
        let places = [(1, 2, 5), (0, 1, 3), (0, 0, 0), (0, 1, 3), (1, 2, 4)].map(place);
        let hierarchy = Hierarchy::new(places.into_iter());
        let order: Vec<u32> = hierarchy.whole().map(|position| hierarchy.member(position)).collect();
        assert_eq!(order, [2, 1, 3, 4, 0]);
        assert!(order.iter().zip(0..).all(|(&member, position)| hierarchy.position(member) == position));
        let parts = |level, within: Range<u32>| {
            let parts = hierarchy.parts(level, &within);
            let all: Vec<_> = (0..parts.count()).map(|number| parts.part(number)).collect();
            for (number, part) in (0..).zip(&all) {
                assert!(part.clone().all(|position| parts.containing(position) == number));
            }
            all
        };
        assert_eq!(parts(PlaceLevel::Group, hierarchy.whole()), [0..3, 3..5]);
        assert_eq!(parts(PlaceLevel::Switch, 0..3), [0..1, 1..3]);
        assert_eq!(parts(PlaceLevel::Endpoint, 3..5), [3..4, 4..5]);
        assert_eq!(parts(PlaceLevel::Member, 1..3), [1..2, 2..3]);
    }
}
