//! Dragonfly: groups of fully joined switches, every two groups joined by one global link, or by several.
//!
//! ```text
//!        group 0              group 1          p endpoints per switch
//!   [s]--[s]--[s]--[s] ~~~ [s]--[s]--[s]--[s]  a switches per group, all-to-all ( -- )
//!    |    |    |    |       |    |    |    |   h global links per switch ( ~~ )
//!    p    p    p    p       p    p    p    p   g groups, at most a·h / links per pair + 1
//! ```
//! Ports of a switch: p endpoints, a-1 local (to the other switches in their order), h global, of which
//! `global_links.rs` says where they lead. Global ports that are left over are joined to nothing.
//!
//! # Source
//! J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable Dragonfly topology",
//! ISCA 2008.

mod detour_loads;
mod figures;
mod global_links;
mod layout;
mod minimal;
mod par;
mod parameters;
mod ugal;
mod uniform_loads;
mod valiant;

pub use global_links::GlobalLinks;
pub use layout::DragonflyLayout;
pub use minimal::DragonflyMinimal;
pub use par::DragonflyPar;
pub use parameters::{DragonflyParameters, DragonflyRouting};
pub use ugal::Ugal;
pub use valiant::DragonflyValiant;

use crate::size::{
    MAX_ENDPOINTS, MAX_PORTS, MAX_SWITCHES, SizeError, bits_for, check_counts, in_range, product,
};
use crate::traits::{Address, Attachment, LinkClass, Topology};
use global_links::ends_of_links;
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, PortId, SwitchId};

/// Class of links between switches of a group.
pub(crate) const LOCAL: LinkClass = LinkClass(1);
/// Class of links between groups.
pub(crate) const GLOBAL: LinkClass = LinkClass(2);

/// A Dragonfly.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Dragonfly {
    endpoints_per_switch: u32,
    switches_per_group: u32,
    global_per_switch: u32,
    groups: u32,
    links_per_pair: u32,
    arrangement: GlobalLinks,
    endpoint_bits: u32,
    switch_bits: u32,
    /// Switch and port of every global link of a group.
    gateways: Vec<(u32, PortId)>,
}

/// The size of a Dragonfly, in the letters of its authors (Kim et al. 2008).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DragonflySize {
    /// Endpoints per switch.
    pub p: u64,
    /// Switches per group.
    pub a: u64,
    /// Global links per switch.
    pub h: u64,
    /// Groups.
    pub g: u64,
}

impl Dragonfly {
    /// A Dragonfly of this size with one link per pair of groups, arranged as said.
    ///
    /// # Errors
    /// As [`Dragonfly::with_links_per_pair`].
    pub fn new(size: DragonflySize, arrangement: GlobalLinks) -> Result<Dragonfly, SizeError> {
        Dragonfly::with_links_per_pair(size, 1, arrangement)
    }

    /// A Dragonfly of this size with so many links per pair of groups, arranged as said.
    ///
    /// # Errors
    /// Where p, a, g or the links per pair are zero, g exceeds a·h / links_per_pair + 1, or the machine
    /// exceeds the limits on endpoints, switches or ports.
    pub fn with_links_per_pair(
        size: DragonflySize,
        links_per_pair: u64,
        arrangement: GlobalLinks,
    ) -> Result<Dragonfly, SizeError> {
        let DragonflySize { p, a, h, g } = size;
        let switches = product([a, g]);
        let per_switch = p.saturating_add(a).saturating_add(h);
        check_counts(product([p, a, g]), switches, switches.saturating_mul(u128::from(per_switch)))?;
        let endpoints_per_switch = in_range("endpoints per switch (p)", p, 1, MAX_ENDPOINTS)?;
        let switches_per_group = in_range("switches per group (a)", a, 1, MAX_SWITCHES)?;
        let global_per_switch = in_range("global links per switch (h)", h, 0, MAX_PORTS)?;
        let links_per_pair = in_range("links per pair of groups", links_per_pair, 1, MAX_PORTS)?;
        let most_groups =
            (a.saturating_mul(h) / u64::from(links_per_pair)).saturating_add(1).min(MAX_SWITCHES);
        let groups = in_range("the number of groups (g)", g, 1, most_groups)?;
        let first_global = endpoints_per_switch + switches_per_group - 1;
        let counts = [switches_per_group, global_per_switch, links_per_pair, groups];
        Ok(Dragonfly {
            endpoints_per_switch,
            switches_per_group,
            global_per_switch,
            groups,
            links_per_pair,
            arrangement,
            endpoint_bits: bits_for(endpoints_per_switch),
            switch_bits: bits_for(switches_per_group),
            gateways: ends_of_links(counts, first_global),
        })
    }

    /// Endpoints per switch, p.
    pub fn endpoints_per_switch(&self) -> u32 {
        self.endpoints_per_switch
    }

    /// Switches per group, a.
    pub fn switches_per_group(&self) -> u32 {
        self.switches_per_group
    }

    /// Global links per switch, h.
    pub fn global_per_switch(&self) -> u32 {
        self.global_per_switch
    }

    /// Groups, g.
    #[inline]
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// Global links between every two groups.
    #[inline]
    pub fn links_per_pair(&self) -> u32 {
        self.links_per_pair
    }

    /// Which group a slot of global links leads to.
    pub fn arrangement(&self) -> GlobalLinks {
        self.arrangement
    }

    /// The group of an address.
    #[inline]
    pub(crate) fn group(&self, address: Address) -> u32 {
        (address.0 >> (self.endpoint_bits + self.switch_bits)) as u32
    }

    /// The switch of an address, counted in its group.
    #[inline]
    pub(crate) fn switch_in_group(&self, address: Address) -> u32 {
        (address.0 >> self.endpoint_bits) as u32 & ((1 << self.switch_bits) - 1)
    }

    /// The port of the endpoint at an address.
    #[inline]
    pub(crate) fn endpoint_port(&self, address: Address) -> PortId {
        PortId(address.0 as u32 & ((1 << self.endpoint_bits) - 1))
    }

    /// The port by which a switch reaches another of its group.
    #[inline]
    pub(crate) fn local_port(&self, from: u32, to: u32) -> PortId {
        PortId(self.endpoints_per_switch + if to < from { to } else { to - 1 })
    }

    /// The class of the link at a port: 0 for an endpoint, [`LOCAL`] or [`GLOBAL`].
    #[inline]
    pub(crate) fn class(&self, port: PortId) -> LinkClass {
        if port.0 < self.endpoints_per_switch {
            LinkClass(0)
        } else if port.0 < self.endpoints_per_switch + self.switches_per_group - 1 {
            LOCAL
        } else {
            GLOBAL
        }
    }

    /// The switch at a place.
    pub(crate) fn switch_id(&self, group: u32, switch: u32) -> SwitchId {
        SwitchId(group * self.switches_per_group + switch)
    }
}

impl Topology for Dragonfly {
    fn endpoints(&self) -> u32 {
        self.switches() * self.endpoints_per_switch
    }

    fn switches(&self) -> u32 {
        self.groups * self.switches_per_group
    }

    #[inline]
    fn ports(&self, _switch: SwitchId) -> u32 {
        self.endpoints_per_switch + self.switches_per_group - 1 + self.global_per_switch
    }

    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        let (group, here) = (switch.0 / self.switches_per_group, switch.0 % self.switches_per_group);
        match self.class(port) {
            LOCAL => {
                let local = port.0 - self.endpoints_per_switch;
                let there = if local < here { local } else { local + 1 };
                Attachment::Switch(self.switch_id(group, there), self.local_port(there, here))
            }
            GLOBAL => {
                let first = self.endpoints_per_switch + self.switches_per_group - 1;
                let link = self.link_behind(group, here, port.0 - first);
                let Some((other, copy)) = link else { return Attachment::Nothing };
                let (there, back) = self.gateway(other, group, copy);
                Attachment::Switch(self.switch_id(other, there), back)
            }
            _ => Attachment::Endpoint(EndpointId(switch.0 * self.endpoints_per_switch + port.0)),
        }
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        let p = self.endpoints_per_switch;
        (SwitchId(endpoint.0 / p), PortId(endpoint.0 % p))
    }

    #[inline]
    fn link_class(&self, _switch: SwitchId, port: PortId) -> LinkClass {
        self.class(port)
    }

    fn link_classes(&self) -> Vec<&str> {
        vec!["endpoint", "local", "global"]
    }

    fn switch_address(&self, switch: SwitchId) -> Address {
        let (group, here) = (switch.0 / self.switches_per_group, switch.0 % self.switches_per_group);
        Address((u64::from(group) << self.switch_bits | u64::from(here)) << self.endpoint_bits)
    }

    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        let (switch, port) = self.attachment(endpoint);
        Address(self.switch_address(switch).0 | u64::from(port.0))
    }

    fn group_of(&self, endpoint: EndpointId) -> u32 {
        self.group(self.endpoint_address(endpoint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_sizes_of_the_red_sea_studies() {
        // D1.4 §11: 342 endpoints in 19 groups of 6 switches, 114,582 in 339 groups of 26.
        let small = Dragonfly::new(DragonflySize { p: 3, a: 6, h: 3, g: 19 }, GlobalLinks::Palmtree).unwrap();
        assert_eq!((small.endpoints(), small.switches()), (342, 114));
        let large =
            Dragonfly::new(DragonflySize { p: 13, a: 26, h: 13, g: 339 }, GlobalLinks::Palmtree).unwrap();
        assert_eq!((large.endpoints(), large.switches()), (114_582, 8_814));
    }

    /// Catches links of a pair on fewer switches than could be, switches with more links than others, pairs
    /// of groups with more or fewer links, and ends that do not fit together.
    #[test]
    fn links_of_a_pair_are_spread_over_the_switches() {
        let arrangements = [GlobalLinks::Palmtree, GlobalLinks::Absolute];
        for [a, h, links] in [[4, 3, 2], [5, 2, 3], [3, 4, 3], [2, 5, 4], [1, 6, 2], [8, 2, 4], [6, 3, 5]] {
            for (g, arrangement) in (2..=a * h / links + 1).flat_map(|g| arrangements.map(|one| (g, one))) {
                let size = DragonflySize { p: 1, a, h, g };
                let dragonfly = Dragonfly::with_links_per_pair(size, links, arrangement).unwrap();
                let mut per_switch = vec![0; dragonfly.switches() as usize];
                let mut per_group = BTreeMap::<(SwitchId, u32), u64>::new();
                for switch in (0..dragonfly.switches()).map(SwitchId) {
                    for port in (0..dragonfly.ports(switch)).map(PortId) {
                        let Attachment::Switch(other, back) = dragonfly.peer(switch, port) else { continue };
                        assert_eq!(dragonfly.peer(other, back), Attachment::Switch(switch, port));
                        if dragonfly.class(port) == GLOBAL {
                            per_switch[switch.index()] += 1;
                            *per_group.entry((switch, other.0 / a as u32)).or_default() += 1;
                        }
                    }
                }
                let even = |count: u64| count / a..=count.div_ceil(a);
                assert!(
                    per_switch.iter().all(|count| even(links * (g - 1)).contains(count)),
                    "{dragonfly:?}"
                );
                for (group, other) in (0..g as u32).flat_map(|group| (0..g as u32).map(move |to| (group, to)))
                {
                    let switches = (0..a as u32).map(|switch| dragonfly.switch_id(group, switch));
                    let here = switches.map(|switch| per_group.get(&(switch, other)).copied().unwrap_or(0));
                    let here: Vec<u64> = here.collect();
                    let expected = if group == other { 0 } else { links };
                    assert_eq!(here.iter().sum::<u64>(), expected, "{dragonfly:?}");
                    assert!(here.iter().all(|count| even(expected).contains(count)), "{dragonfly:?}");
                }
            }
        }
    }

    /// Catches Frontier (74 groups, four links per pair, 512 endpoints per group) in another shape.
    #[test]
    fn the_size_of_frontier() {
        let size = DragonflySize { p: 16, a: 32, h: 10, g: 74 };
        let frontier = Dragonfly::with_links_per_pair(size, 4, GlobalLinks::Palmtree).unwrap();
        assert_eq!((frontier.endpoints(), frontier.switches()), (74 * 512, 74 * 32));
        // 73·4 = 292 global ports of a group are taken: 9 or 10 per switch.
        let spare = |switch: SwitchId| {
            let ports = (0..frontier.ports(switch)).map(PortId);
            ports.filter(|&port| frontier.peer(switch, port) == Attachment::Nothing).count()
        };
        assert_eq!((0..32).map(|switch| spare(SwitchId(switch))).sum::<usize>(), 320 - 292);
        assert!((0..32).all(|switch| spare(SwitchId(switch)) <= 1));
    }

    #[test]
    fn impossible_sizes_are_refused_with_the_limit() {
        let text = |p, a, h, g| {
            Dragonfly::new(DragonflySize { p, a, h, g }, GlobalLinks::Absolute).unwrap_err().to_string()
        };
        assert_eq!(text(3, 6, 3, 20), "the number of groups (g) is 20; it must be 1 to 19");
        assert!(text(10_000, 10_000, 1, 10_000).contains("1000000000000 endpoints; the limit is 16777216"));
        assert!(text(u64::MAX, u64::MAX, u64::MAX, u64::MAX).contains("the limit is"));
        assert!(text(1, 1, u64::MAX, 1).contains("ports; the limit is"));
        for zero in [text(0, 1, 1, 1), text(1, 0, 1, 1), text(1, 1, 1, 0)] {
            assert!(zero.contains("is 0; it must be 1 to"), "{zero}");
        }
    }
}
