//! Routings of the Megafly.
//!
//! The minimal path goes up to the spine that has the global link to the destination's group, over it, and
//! down to the destination's leaf; within a group up to a spine and down. The number of the destination in
//! its group chooses among the spines, and among several links to a group, so that a flow stays in order and
//! destinations spread evenly.
//!
//! A detour goes minimally to a random group, and from there minimally to the destination: straight on, where
//! the spine that it came to has a global link to the destination's group, else down to a leaf (that with the
//! destination's number) and up to a spine that has one.
//!
//! ```text
//!   minimal  leaf - spine ~ spine - leaf                                        3 links
//!   detour   leaf - spine ~ spine ~ spine - leaf                                4
//!            leaf - spine ~ spine - leaf - spine ~ spine - leaf                 6
//! ```
//! Valiant always takes a detour between groups. UGAL-L draws a group at the leaf of the source and takes the
//! detour where the leaf's own queues, weighted with the links of the paths, say that it is faster:
//!
//! ```text
//!   q_min · H_min  >  q_non · H_non + threshold
//! ```
//! Progressive adaptive routing (PAR) asks once more where a packet that goes minimally has come to the spine
//! of its group: the spine draws one of its own global links, and compares in the same way with the links
//! that are left of the paths. The queue before a global link stands at the spine; a leaf sees it only once
//! it has grown back to the leaf. A link that the spine draws may lead to the destination's group as well.
//!
//! UGAL-G decides at the leaf, as UGAL-L. To its own queue towards a spine it adds that before the spine's
//! global link, as the spine has last published it.
//!
//! Where there are only two groups, all packets go minimally.
//!
//! # Source
//! Shpiner et al., HiPINEB 2017; Flajslik et al., ISC 2018 (paths; adaptive routing at leaves and spines).
//! J. Kim, W. J. Dally, S. Scott, D. Abts, ISCA 2008 (UGAL-L). N. Jiang, J. Kim, W. J. Dally, "Indirect
//! adaptive routing on large scale interconnection networks", ISCA 2009 (PAR). Paths that a spine passes
//! straight on, and which link a destination chooses, are ours.

use super::{Megafly, MegaflyRouting};
use crate::choice::below;
use crate::family::RoutingWord;
use crate::traits::{Address, AtSwitch, LocalView, NextHop, RouteState, RoutedTopology, Routing};
use serde::{Deserialize, Serialize};
use weft_units::PortId;

/// A Megafly with one of its routings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MegaflyLayout {
    megafly: Megafly,
    routing: MegaflyRouting,
}

impl MegaflyLayout {
    /// A routing on `megafly`.
    pub fn new(megafly: Megafly, routing: MegaflyRouting) -> MegaflyLayout {
        MegaflyLayout { megafly, routing }
    }

    /// The routing.
    pub fn routing(&self) -> &MegaflyRouting {
        &self.routing
    }

    /// The group by way of which a packet goes that enters the network.
    #[inline]
    fn via_at_leaf(&self, from: Address, to: Address, view: &mut impl LocalView) -> Option<u32> {
        let megafly = &self.megafly;
        let (source, target) = (megafly.group(from), megafly.group(to));
        if self.routing == MegaflyRouting::Minimal || source == target || megafly.groups < 3 {
            return None;
        }
        let offset = 1 + draw(megafly.groups - 2, view);
        let via = megafly.group_at(source, offset + u32::from(offset >= megafly.offset(source, target)));
        let threshold = match self.routing {
            MegaflyRouting::UgalL { ugal_threshold }
            | MegaflyRouting::Par { ugal_threshold }
            | MegaflyRouting::UgalG { ugal_threshold } => ugal_threshold,
            MegaflyRouting::Minimal | MegaflyRouting::Valiant => return Some(via),
        };
        let out = megafly.link_to(source, via, to);
        let mut minimal = Way { queued: view.queued(megafly.minimal_port(from, to)), hops: 3 };
        let mut detour = Way {
            queued: view.queued(megafly.up_port(megafly.links.at(out).spine)),
            hops: 2 + megafly.hops_from_via(source, out, to),
        };
        if self.needs_published_queues() {
            minimal.queued += megafly.published_before(source, megafly.link_to(source, target, to), view);
            detour.queued += megafly.published_before(source, out, view);
        }
        minimal.is_worse(detour, threshold.get()).then_some(via)
    }

    /// The global link by which the spine of the source group sends a packet off that came up on its minimal
    /// path; none: by that of the minimal path.
    #[inline]
    fn link_at_spine(&self, at: Address, to: Address, view: &mut impl LocalView) -> Option<u32> {
        let MegaflyRouting::Par { ugal_threshold } = self.routing else { return None };
        let megafly = &self.megafly;
        let (group, target) = (megafly.group(at), megafly.group(to));
        if group == target || megafly.groups < 3 {
            return None;
        }
        let spine = megafly.switch_in_group(at);
        let drawn = megafly.links.at_port(spine, draw(megafly.links.of_spine(spine), view))?;
        let leads_to_target = megafly.links.at(drawn).offset == megafly.offset(group, target);
        let minimal = Way { queued: view.queued(megafly.minimal_port(at, to)), hops: 2 };
        let detour = Way {
            queued: view.queued(megafly.global_port(drawn)),
            hops: if leads_to_target { 2 } else { 1 + megafly.hops_from_via(group, drawn, to) },
        };
        minimal.is_worse(detour, ugal_threshold.get()).then_some(drawn)
    }
}

/// A path that an adaptive routing may take.
#[derive(Clone, Copy)]
struct Way {
    /// Bytes before its first link.
    queued: u64,
    /// Links between switches.
    hops: u32,
}

impl Way {
    /// Whether another path is faster by more than the threshold, in bytes times hops.
    #[inline]
    fn is_worse(self, other: Way, threshold: u64) -> bool {
        let time = |way: Way| u128::from(way.queued) * u128::from(way.hops);
        time(self) > time(other) + u128::from(threshold)
    }
}

/// A number below `count`, all equally likely.
#[inline]
fn draw(count: u32, view: &mut impl LocalView) -> u32 {
    below(count, view.random())
}

/// State: the intermediate group plus one; 0 without a detour and once it is reached.
#[inline]
fn via(state: RouteState) -> Option<u32> {
    state.0.checked_sub(1)
}

impl Megafly {
    /// The queue before a global link of a group, as its spine has last published it.
    #[inline(never)]
    fn published_before(&self, group: u32, link: u32, view: &impl LocalView) -> u64 {
        let spine = self.switch_at(group, self.leaves + self.links.at(link).spine);
        view.published(spine, self.global_port(link))
    }

    /// The link by which packets for the endpoint at `to` leave a group for another.
    #[inline]
    fn link_to(&self, group: u32, other: u32, to: Address) -> u32 {
        self.links.choose(self.offset(group, other), self.endpoint_in_group(to))
    }

    /// Links that are left from the intermediate group on, for a packet that comes there by a link of its
    /// source's group.
    #[inline]
    fn hops_from_via(&self, source: u32, link: u32, to: Address) -> u32 {
        let link = self.links.at(link);
        let via = self.group_at(source, link.offset);
        let arrives = self.links.at(link.back).spine;
        let offset = self.offset(via, self.group(to));
        match self.links.choose_at(arrives, offset, self.endpoint_in_group(to)) {
            Some(_) => 2,
            None => 4,
        }
    }

    /// The port of the path towards the endpoint at `to` where it is in another group, by way of `group`: up,
    /// over the spine's own global link, or down to a leaf where the spine has none.
    #[inline]
    fn port_to_group(&self, at: Address, group: u32, to: Address) -> PortId {
        let offset = self.offset(self.group(at), group);
        let index = self.endpoint_in_group(to);
        if !self.is_spine(at) {
            return self.up_port(self.links.at(self.links.choose(offset, index)).spine);
        }
        match self.links.choose_at(self.switch_in_group(at), offset, index) {
            Some(link) => self.global_port(link),
            None => self.down_port(self.switch_in_group(to)),
        }
    }

    /// The port of the minimal path towards the endpoint at `to`.
    #[inline]
    fn minimal_port(&self, at: Address, to: Address) -> PortId {
        let group = self.group(to);
        if self.group(at) != group {
            return self.port_to_group(at, group, to);
        }
        if self.is_spine(at) {
            self.down_port(self.switch_in_group(to))
        } else if self.switch_in_group(at) == self.switch_in_group(to) {
            self.endpoint_port(to)
        } else {
            self.up_port(self.spine_within_group(self.endpoint_in_group(to)))
        }
    }

    /// The spine by way of which packets for endpoint `index` go within its group.
    #[inline]
    pub(super) fn spine_within_group(&self, index: u32) -> u32 {
        index % self.spines
    }
}

impl RoutedTopology for MegaflyLayout {
    type Topology = Megafly;

    #[inline]
    fn topology(&self) -> &Megafly {
        &self.megafly
    }
}

impl Routing for MegaflyLayout {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        self.routing.virtual_channels()
    }

    #[inline]
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        let megafly = &self.megafly;
        let is_spine = megafly.is_spine(at.address);
        if !is_spine && at.port.0 < megafly.endpoints_per_leaf {
            state.0 = self.via_at_leaf(at.address, to, view).map_or(0, |group| group + 1);
        } else if via(*state) == Some(megafly.group(at.address)) {
            state.0 = 0;
        } else if megafly.is_first_ascent(&at, is_spine)
            && via(*state).is_none()
            && let Some(link) = self.link_at_spine(at.address, to, view)
        {
            let group = megafly.group_at(megafly.group(at.address), megafly.links.at(link).offset);
            state.0 = if group == megafly.group(to) { 0 } else { group + 1 };
            return NextHop { port: megafly.global_port(link), vc: at.vc };
        }
        let port = match via(*state) {
            Some(group) => megafly.port_to_group(at.address, group, to),
            None => megafly.minimal_port(at.address, to),
        };
        NextHop { port, vc: megafly.next_vc(&at, is_spine, port) }
    }

    fn is_deterministic(&self) -> bool {
        self.routing == MegaflyRouting::Minimal
    }

    fn needs_published_queues(&self) -> bool {
        self.routing.needs_published_queues()
    }
}
