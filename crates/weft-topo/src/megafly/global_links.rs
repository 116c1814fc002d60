//! The global links of a group, and where they lead.
//!
//! A group's own view is the same from all groups: another group is named by its offset, the groups from
//! here to there, counted upwards and round (1 to g-1). Of the P = s·h global ports of a group,
//!
//! - ⌊P / (g-1)⌋ lead to each other group;
//! - of the r that remain, one leads to the group opposite (offset g/2), where r is odd and g is even, and
//!   the others in twos to the groups nearest before and behind: offsets ±1, ±2 up to ±⌊r/2⌋. Where r and g
//!   are both odd, one port is joined to nothing: P·g is odd, and a link has two ends.
//!
//! ```text
//!   g = 8, P = 36: five links to each of 7 groups, and a sixth to the group opposite
//!
//!   offset      1          2          3          4            5          6          7
//!   link    0 1 2 3 4  5 6 7 8 9   10 .. 14   15 .. 20     21 .. 25   26 .. 30   31 .. 35
//!   spine   0 1 2 3 4  5 0 1 2 3    4 5 0 ..   3 4 5 0 1 2  3 ..                  1 ..  5
//! ```
//! Links are numbered by offset and dealt to the spines in turn, so that those to one group are spread over
//! spines as evenly as can be, and so are all. Copy c of the links to a group ends there as copy c of the
//! links back.

use serde::{Deserialize, Serialize};

/// One end of a global link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct GlobalLink {
    /// The spine that has it, counted in the group.
    pub spine: u32,
    /// The port, counted among the global ports of the spine.
    pub port: u32,
    /// The offset of the group that it leads to.
    pub offset: u32,
    /// The number of its other end in that group.
    pub back: u32,
}

/// The global links of a group, by number; those of all groups are alike.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct GroupLinks {
    spines: u32,
    /// The first link to the group at each offset; offset 0 has none. One more closes the list.
    first: Vec<u32>,
    links: Vec<GlobalLink>,
    /// Indices after which the choices of [`GroupLinks::choose`] repeat.
    period: u64,
}

impl GroupLinks {
    /// The links of a group of so many spines that have so many global ports together.
    pub fn new(groups: u32, spines: u32, ports: u32) -> GroupLinks {
        let others = (groups - 1).max(1);
        let (each, rest) = (ports / others, ports % others);
        let links_to = |offset: u32| {
            let is_near = offset.min(groups - offset) <= rest / 2;
            let is_opposite = 2 * u64::from(offset) == u64::from(groups) && !rest.is_multiple_of(2);
            each + u32::from(is_near || is_opposite)
        };
        let mut first = vec![0, 0];
        for offset in 1..groups {
            first.push(first[offset as usize] + links_to(offset));
        }
        let mut links = Vec::with_capacity(first[groups as usize] as usize);
        for offset in 1..groups {
            let (start, back) = (first[offset as usize], first[(groups - offset) as usize]);
            for link in start..first[offset as usize + 1] {
                links.push(GlobalLink {
                    spine: link % spines,
                    port: link / spines,
                    offset,
                    back: back + link - start,
                });
            }
        }
        // Two numbers that differ by one have no common factor.
        let period = u64::from(each.max(1)) * if rest == 0 { 1 } else { u64::from(each) + 1 };
        GroupLinks { spines, first, links, period }
    }

    /// A link by its number.
    #[inline]
    pub fn at(&self, link: u32) -> GlobalLink {
        self.links[link as usize]
    }

    /// The number of the link at a global port of a spine; none at a spare port.
    pub fn at_port(&self, spine: u32, port: u32) -> Option<u32> {
        let link = u64::from(port) * u64::from(self.spines) + u64::from(spine);
        u32::try_from(link).ok().filter(|&link| (link as usize) < self.links.len())
    }

    /// The number of links that a spine has. They are at its first global ports.
    #[inline]
    pub fn of_spine(&self, spine: u32) -> u32 {
        (self.links.len() as u32 + self.spines - 1 - spine) / self.spines
    }

    /// An index that chooses as this does wherever there is a choice, and is the least.
    #[inline]
    pub fn choices_of(&self, index: u32) -> u32 {
        (u64::from(index) % self.period) as u32
    }

    /// The links to the group at an offset: the first, and how many there are.
    #[inline]
    pub fn to(&self, offset: u32) -> (u32, u32) {
        let first = self.first[offset as usize];
        (first, self.first[offset as usize + 1] - first)
    }

    /// The link by which packets for endpoint `index` of its group go to the group at an offset.
    #[inline]
    pub fn choose(&self, offset: u32, index: u32) -> u32 {
        let (first, count) = self.to(offset);
        if count == 1 { first } else { first + index % count }
    }

    /// The same where the packet is at a spine: its own link, if it has one.
    #[inline]
    pub fn choose_at(&self, spine: u32, offset: u32, index: u32) -> Option<u32> {
        let chosen = self.choose(offset, index);
        if self.at(chosen).spine == spine {
            return Some(chosen);
        }
        // The links to a group lie on spines one after the other, in rounds if there are many.
        let (first, count) = self.to(offset);
        let first_spine = self.at(first).spine;
        let ahead =
            if spine >= first_spine { spine - first_spine } else { spine + self.spines - first_spine };
        if ahead >= count {
            return None;
        }
        let round = ahead + (chosen - first) / self.spines * self.spines;
        Some(first + if round < count { round } else { ahead })
    }
}
