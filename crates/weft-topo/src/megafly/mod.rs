//! Megafly, also called Dragonfly+: groups of leaves and spines, joined by global links of the spines.
//!
//! ```text
//!     ~~ global links ~~            h global links per spine ( ~~ ), at least one to every other group
//!   [spine]-.   .-[spine]           s spines per group
//!      |     \ /     |              every leaf joined to every spine of its group ( -- )
//!      |     / \     |
//!   [leaf]--'   '--[leaf]           l leaves per group
//!    p p p         p p p            p endpoints per leaf
//! ```
//! Ports of a leaf: p endpoints, then s spines. Ports of a spine: l leaves, then h global ones, of which
//! `global_links.rs` says where they lead. With switches of k ports, and k/2 of everything, there are
//! k²/4 + 1 groups at most: k = 64 makes 1,049,600 endpoints.
//!
//! # Source
//! A. Shpiner, Z. Haramaty, S. Eliad, V. Zdornov, B. Gafni, E. Zahavi, "Dragonfly+: Low cost topology for
//! scaling datacenters", HiPINEB 2017. M. Flajslik, E. Borch, M. A. Parker, "Megafly: a topology for exascale
//! systems", ISC High Performance 2018.

mod channels;
mod detour_loads;
mod figures;
mod global_links;
mod parameters;
mod routing;

pub use parameters::{MegaflyParameters, MegaflyRouting};
pub use routing::MegaflyLayout;

use crate::size::{
    MAX_ENDPOINTS, MAX_PORTS, MAX_SWITCHES, SizeError, bits_for, check_counts, in_range, product,
};
use crate::traits::{Address, Attachment, LinkClass, Topology};
use global_links::GroupLinks;
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, PortId, SwitchId};

/// Class of links between leaves and spines.
const LOCAL: LinkClass = LinkClass(1);
/// Class of links between groups.
const GLOBAL: LinkClass = LinkClass(2);

/// A Megafly.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Megafly {
    endpoints_per_leaf: u32,
    leaves: u32,
    spines: u32,
    global_per_spine: u32,
    groups: u32,
    links: GroupLinks,
    endpoint_bits: u32,
    switch_bits: u32,
}

/// The size of a Megafly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MegaflySize {
    /// Endpoints per leaf.
    pub endpoints_per_leaf: u64,
    /// Leaves per group.
    pub leaves: u64,
    /// Spines per group.
    pub spines: u64,
    /// Global ports per spine.
    pub global_per_spine: u64,
    /// Groups.
    pub groups: u64,
}

impl MegaflySize {
    /// Ports of all switches together; saturates.
    fn ports(&self) -> u128 {
        let per_leaf = u128::from(self.endpoints_per_leaf) + u128::from(self.spines);
        let per_spine = u128::from(self.leaves) + u128::from(self.global_per_spine);
        let per_group = u128::from(self.leaves)
            .saturating_mul(per_leaf)
            .saturating_add(u128::from(self.spines).saturating_mul(per_spine));
        per_group.saturating_mul(u128::from(self.groups))
    }

    /// Switches; saturates.
    fn switches(&self) -> u128 {
        (u128::from(self.leaves) + u128::from(self.spines)).saturating_mul(u128::from(self.groups))
    }

    /// Endpoints; saturates.
    fn endpoints(&self) -> u128 {
        product([self.endpoints_per_leaf, self.leaves, self.groups])
    }
}

impl Megafly {
    /// A Megafly of this size.
    ///
    /// # Errors
    /// Where a number other than that of global ports is zero, there are more groups than global ports of a
    /// group and one, or the machine exceeds the limits on endpoints, switches or ports.
    pub fn new(size: MegaflySize) -> Result<Megafly, SizeError> {
        check_counts(size.endpoints(), size.switches(), size.ports())?;
        let endpoints_per_leaf = in_range("endpoints per leaf", size.endpoints_per_leaf, 1, MAX_ENDPOINTS)?;
        let leaves = in_range("leaves per group", size.leaves, 1, MAX_SWITCHES)?;
        let spines = in_range("spines per group", size.spines, 1, MAX_SWITCHES)?;
        let global_per_spine = in_range("global ports per spine", size.global_per_spine, 0, MAX_PORTS)?;
        let global_ports = size.spines * size.global_per_spine;
        let groups = in_range("the number of groups", size.groups, 1, (global_ports + 1).min(MAX_SWITCHES))?;
        Ok(Megafly {
            endpoints_per_leaf,
            leaves,
            spines,
            global_per_spine,
            groups,
            links: GroupLinks::new(groups, spines, spines * global_per_spine),
            endpoint_bits: bits_for(endpoints_per_leaf),
            switch_bits: bits_for(leaves.max(spines)),
        })
    }

    /// Endpoints per leaf.
    pub fn endpoints_per_leaf(&self) -> u32 {
        self.endpoints_per_leaf
    }

    /// Leaves per group.
    pub fn leaves(&self) -> u32 {
        self.leaves
    }

    /// Spines per group.
    pub fn spines(&self) -> u32 {
        self.spines
    }

    /// Global ports per spine.
    pub fn global_per_spine(&self) -> u32 {
        self.global_per_spine
    }

    /// Groups.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// Endpoints of a group.
    fn endpoints_per_group(&self) -> u32 {
        self.endpoints_per_leaf * self.leaves
    }

    /// The group of an address.
    #[inline]
    fn group(&self, address: Address) -> u32 {
        (address.0 >> (self.endpoint_bits + self.switch_bits + 1)) as u32
    }

    /// Whether the address is that of a spine.
    #[inline]
    fn is_spine(&self, address: Address) -> bool {
        address.0 >> (self.endpoint_bits + self.switch_bits) & 1 == 1
    }

    /// The leaf of an address, or its spine, counted in the group.
    #[inline]
    fn switch_in_group(&self, address: Address) -> u32 {
        (address.0 >> self.endpoint_bits) as u32 & ((1 << self.switch_bits) - 1)
    }

    /// The port of the endpoint at an address.
    #[inline]
    fn endpoint_port(&self, address: Address) -> PortId {
        PortId(address.0 as u32 & ((1 << self.endpoint_bits) - 1))
    }

    /// The endpoint at an address, counted in its group.
    #[inline]
    fn endpoint_in_group(&self, address: Address) -> u32 {
        self.switch_in_group(address) * self.endpoints_per_leaf + self.endpoint_port(address).0
    }

    /// The port of a leaf to a spine.
    #[inline]
    fn up_port(&self, spine: u32) -> PortId {
        PortId(self.endpoints_per_leaf + spine)
    }

    /// The port of a spine to a leaf.
    #[inline]
    fn down_port(&self, leaf: u32) -> PortId {
        PortId(leaf)
    }

    /// The port of a global link at its spine.
    #[inline]
    fn global_port(&self, link: u32) -> PortId {
        PortId(self.leaves + self.links.at(link).port)
    }

    /// The number of a global link among those of its group.
    fn global_link(&self, spine: u32, port: PortId) -> Option<u32> {
        self.links.at_port(spine, port.0 - self.leaves)
    }

    /// Groups from one to another, counted upwards and round.
    #[inline]
    fn offset(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { to + self.groups - from }
    }

    /// The group so many further.
    #[inline]
    fn group_at(&self, from: u32, offset: u32) -> u32 {
        let sum = from + offset;
        if sum >= self.groups { sum - self.groups } else { sum }
    }

    /// The class of the link at a port of a leaf or a spine.
    #[inline]
    fn class(&self, is_spine: bool, port: PortId) -> LinkClass {
        match is_spine {
            true if port.0 >= self.leaves => GLOBAL,
            false if port.0 < self.endpoints_per_leaf => LinkClass(0),
            _ => LOCAL,
        }
    }

    /// The switch at a place of a group: leaves first, then spines.
    #[inline]
    fn switch_at(&self, group: u32, place: u32) -> SwitchId {
        if place < self.leaves {
            SwitchId(group * self.leaves + place)
        } else {
            SwitchId(self.first_spine() + group * self.spines + place - self.leaves)
        }
    }

    /// All leaves are numbered before the spines.
    #[inline]
    fn first_spine(&self) -> u32 {
        self.groups * self.leaves
    }

    /// Group, place in it as in [`Megafly::switch_at`], and whether it is a spine.
    fn place(&self, switch: SwitchId) -> (u32, u32, bool) {
        match switch.0.checked_sub(self.first_spine()) {
            None => (switch.0 / self.leaves, switch.0 % self.leaves, false),
            Some(spine) => (spine / self.spines, self.leaves + spine % self.spines, true),
        }
    }
}

impl Topology for Megafly {
    fn endpoints(&self) -> u32 {
        self.endpoints_per_group() * self.groups
    }

    fn switches(&self) -> u32 {
        (self.leaves + self.spines) * self.groups
    }

    #[inline]
    fn ports(&self, switch: SwitchId) -> u32 {
        if switch.0 < self.first_spine() {
            self.endpoints_per_leaf + self.spines
        } else {
            self.leaves + self.global_per_spine
        }
    }

    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        let (group, place, is_spine) = self.place(switch);
        match self.class(is_spine, port) {
            LOCAL if is_spine => {
                Attachment::Switch(self.switch_at(group, port.0), self.up_port(place - self.leaves))
            }
            LOCAL => {
                let spine = port.0 - self.endpoints_per_leaf;
                Attachment::Switch(self.switch_at(group, self.leaves + spine), self.down_port(place))
            }
            GLOBAL => {
                let Some(link) = self.global_link(place - self.leaves, port) else {
                    return Attachment::Nothing;
                };
                let link = self.links.at(link);
                let there = self.leaves + self.links.at(link.back).spine;
                let other = self.group_at(group, link.offset);
                Attachment::Switch(self.switch_at(other, there), self.global_port(link.back))
            }
            _ => Attachment::Endpoint(EndpointId(switch.0 * self.endpoints_per_leaf + port.0)),
        }
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        let p = self.endpoints_per_leaf;
        (SwitchId(endpoint.0 / p), PortId(endpoint.0 % p))
    }

    #[inline]
    fn link_class(&self, switch: SwitchId, port: PortId) -> LinkClass {
        self.class(switch.0 >= self.first_spine(), port)
    }

    fn link_classes(&self) -> Vec<&str> {
        vec!["endpoint", "local", "global"]
    }

    fn switch_address(&self, switch: SwitchId) -> Address {
        let (group, place, is_spine) = self.place(switch);
        let here = if is_spine { place - self.leaves } else { place };
        let level = u64::from(group) << 1 | u64::from(is_spine);
        Address((level << self.switch_bits | u64::from(here)) << self.endpoint_bits)
    }

    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        let (leaf, port) = self.attachment(endpoint);
        Address(self.switch_address(leaf).0 | u64::from(port.0))
    }

    fn group_of(&self, endpoint: EndpointId) -> u32 {
        self.attachment(endpoint).0.0 / self.leaves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn megafly([endpoints_per_leaf, leaves, spines, global_per_spine, groups]: [u64; 5]) -> Megafly {
        Megafly::new(MegaflySize { endpoints_per_leaf, leaves, spines, global_per_spine, groups }).unwrap()
    }

    /// The number of links from something to a group.
    type LinksBetween<T> = BTreeMap<(T, u32), u32>;

    /// Global links between every two groups, and from every spine to every group.
    fn joined(megafly: &Megafly) -> (LinksBetween<u32>, LinksBetween<SwitchId>) {
        let (mut pairs, mut spines) = (BTreeMap::new(), BTreeMap::new());
        for spine in (megafly.first_spine()..megafly.switches()).map(SwitchId) {
            for port in (megafly.leaves..megafly.ports(spine)).map(PortId) {
                let Attachment::Switch(other, back) = megafly.peer(spine, port) else { continue };
                assert_eq!(megafly.peer(other, back), Attachment::Switch(spine, port));
                let (from, to) = (megafly.place(spine).0, megafly.place(other).0);
                *pairs.entry((from, to)).or_default() += 1;
                *spines.entry((spine, to)).or_default() += 1;
            }
        }
        (pairs, spines)
    }

    /// Catches groups that are not joined, and links that are spread unevenly over groups or spines.
    #[test]
    fn every_two_groups_are_joined_and_links_are_spread_evenly() {
        for leaves in 1..=2 {
            for (spines, global_per_spine) in [(1, 7), (2, 3), (3, 4), (4, 2), (5, 5)] {
                for groups in 2..=spines * global_per_spine + 1 {
                    let megafly = megafly([1, leaves, spines, global_per_spine, groups]);
                    let (pairs, per_spine) = joined(&megafly);
                    let each = (spines * global_per_spine / (groups - 1)) as u32;
                    assert_eq!(pairs.len() as u64, groups * (groups - 1), "{megafly:?}");
                    assert!(pairs.values().all(|links| (each..=each + 1).contains(links)), "{megafly:?}");
                    for (&(from, to), &links) in &pairs {
                        let even = links / megafly.spines..=links.div_ceil(megafly.spines);
                        let spines =
                            (0..megafly.spines).map(|spine| megafly.switch_at(from, megafly.leaves + spine));
                        for spine in spines {
                            let here = per_spine.get(&(spine, to)).copied().unwrap_or(0);
                            assert!(even.contains(&here), "{here} of {links} from {spine}: {megafly:?}");
                        }
                    }
                    // One port of a group is left only where all groups together have an odd number.
                    let used = pairs.values().map(|&links| u64::from(links)).sum::<u64>() / groups;
                    let spare = spines * global_per_spine - used;
                    let odd = (spines * global_per_spine) % 2 * (groups % 2);
                    assert_eq!(spare, odd * u64::from(spare > 0));
                    assert!(spare <= 1);
                }
            }
        }
    }

    /// Catches a RED-SEA machine of another shape: 36 global ports of a group for 7 other groups.
    #[test]
    fn the_288_endpoints_of_red_sea() {
        let megafly = megafly([6, 6, 6, 6, 8]);
        assert_eq!((megafly.endpoints(), megafly.switches()), (288, 96));
        let (pairs, per_spine) = joined(&megafly);
        for (&(from, to), &links) in &pairs {
            assert_eq!(links, if from.abs_diff(to) == 4 { 6 } else { 5 });
        }
        assert!(per_spine.values().all(|&links| links == 1));
        assert_eq!(pairs.values().filter(|&&links| links == 6).count(), 2 * 4);
    }

    #[test]
    fn the_balanced_sizes() {
        for (half, endpoints) in [(2, 20), (4, 272), (8, 4160), (32, 1_049_600)] {
            let megafly = megafly([half, half, half, half, half * half + 1]);
            assert_eq!(megafly.endpoints(), endpoints);
            assert_eq!(u64::from(megafly.switches()), 2 * half * (half * half + 1));
        }
    }

    #[test]
    fn impossible_sizes_are_refused_with_the_limit() {
        let text = |[endpoints_per_leaf, leaves, spines, global_per_spine, groups]: [u64; 5]| {
            let size = MegaflySize { endpoints_per_leaf, leaves, spines, global_per_spine, groups };
            Megafly::new(size).unwrap_err().to_string()
        };
        assert_eq!(text([6, 6, 6, 6, 38]), "the number of groups is 38; it must be 1 to 37");
        assert_eq!(text([1, 1, 1, 0, 2]), "the number of groups is 2; it must be 1 to 1");
        assert!(
            text([10_000, 10_000, 1, 1, 10_000]).contains("1000000000000 endpoints; the limit is 16777216")
        );
        assert!(text([u64::MAX; 5]).contains("the limit is"));
        assert!(text([1, 1, 1, u64::MAX, 1]).contains("ports; the limit is"));
        for zero in [[0, 1, 1, 1, 1], [1, 0, 1, 1, 1], [1, 1, 0, 1, 1], [1, 1, 1, 1, 0]] {
            assert!(text(zero).contains("is 0; it must be 1 to"), "{}", text(zero));
        }
    }
}
