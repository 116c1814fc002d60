//! UGAL-L on the Dragonfly: minimal, or by way of a random group where the queues say so.
//!
//! The source's switch draws one intermediate group and compares its own two queues, each weighted with
//! the hops of its path. (Of several links to a group it is the shortest queue.) The packet goes minimally if
//!
//! ```text
//!   q_min · H_min  <=  q_non · H_non + threshold
//! ```
//! and otherwise minimally to the intermediate group, and from where it arrives there minimally to its
//! destination. Packets inside one group, and all packets where there are only two groups, go minimally.
//! Virtual channels: as in `minimal.rs`, three.
//!
//! # Source
//! Kim, Dally, Scott, Abts, ISCA 2008, section 4.2 (UGAL-L, three virtual channels for non-minimal
//! routing); A. Singh, "Load-balanced routing in interconnection networks", PhD thesis, Stanford 2005.

use super::Dragonfly;
use super::valiant::{state_of, via};
use crate::proof::{Channel, Ranked};
use crate::traits::{Address, AtSwitch, LocalView, NextHop, RouteState, RoutedTopology, Routing};
use serde::{Deserialize, Serialize};
use weft_units::PortId;

/// UGAL with local information.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ugal {
    dragonfly: Dragonfly,
    threshold: u64,
}

impl Ugal {
    /// UGAL-L on `dragonfly`; `threshold` favours the minimal path, in bytes times hops.
    pub fn new(dragonfly: Dragonfly, threshold: u64) -> Ugal {
        Ugal { dragonfly, threshold }
    }

    /// The threshold, in bytes times hops.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// The intermediate group of a packet that is better off with a detour.
    #[inline(always)]
    pub(super) fn detour(&self, from: Address, to: Address, view: &mut impl LocalView) -> Option<u32> {
        let via = self.dragonfly.draw_third_group(from, to, view)?;
        let target = self.dragonfly.group(to);
        let direct = self.dragonfly.choose_by_queue(from, target, to, view);
        let around = self.dragonfly.choose_by_queue(from, via, to, view);
        let minimal = view.queued(self.dragonfly.port_to_link(from, target, direct));
        let detour = view.queued(self.dragonfly.port_to_link(from, via, around));
        let minimal = u128::from(minimal) * u128::from(self.minimal_hops(from, direct, to));
        let detour = u128::from(detour) * u128::from(self.detour_hops(from, (via, around), to));
        (minimal > detour + u128::from(self.threshold)).then_some(via)
    }

    /// Links between switches of the path between two groups by one of their links.
    #[inline(always)]
    fn minimal_hops(&self, from: Address, link: u32, to: Address) -> u32 {
        let (source, target) = (self.dragonfly.group(from), self.dragonfly.group(to));
        let out = self.dragonfly.gateway(source, target, link).0;
        let into = self.dragonfly.gateway(target, source, link).0;
        1 + u32::from(out != self.dragonfly.switch_in_group(from))
            + u32::from(into != self.dragonfly.switch_in_group(to))
    }

    /// Links between switches of the path by way of a third group, to which it goes by one of the links
    /// there.
    #[inline(always)]
    fn detour_hops(&self, from: Address, (via, link): (u32, u32), to: Address) -> u32 {
        let (source, target) = (self.dragonfly.group(from), self.dragonfly.group(to));
        let out = self.dragonfly.gateway(source, via, link).0;
        let arrives = self.dragonfly.gateway(via, source, link).0;
        let next = self.dragonfly.choose(via, arrives, target, to);
        let leaves = self.dragonfly.gateway(via, target, next).0;
        let into = self.dragonfly.gateway(target, via, next).0;
        2 + u32::from(out != self.dragonfly.switch_in_group(from))
            + u32::from(arrives != leaves)
            + u32::from(into != self.dragonfly.switch_in_group(to))
    }
}

impl Ugal {
    /// [`Routing::route`].
    #[inline(always)]
    fn decide(
        &self,
        at: AtSwitch,
        to: Address,
        state: &mut RouteState,
        view: &mut impl LocalView,
    ) -> NextHop {
        if self.dragonfly.class(at.port).0 == 0 {
            *state = state_of(self.detour(at.address, to, view));
        } else if via(*state) == Some(self.dragonfly.group(at.address)) {
            *state = state_of(None);
        }
        let port = self.dragonfly.adaptive_port(at.address, via(*state), to, view);
        let vc = if self.dragonfly.class(port).0 == 0 { at.vc } else { self.dragonfly.next_vc(&at) };
        NextHop { port, vc }
    }

    #[inline(never)]
    fn decide_among_links(
        &self,
        at: AtSwitch,
        to: Address,
        state: &mut RouteState,
        view: &mut impl LocalView,
    ) -> NextHop {
        self.decide(at, to, state, view)
    }
}

impl Dragonfly {
    /// The port of a packet that goes minimally, or first to another group: of several links, the one with
    /// the shortest queue.
    #[inline(always)]
    pub(super) fn adaptive_port(
        &self,
        at: Address,
        via: Option<u32>,
        to: Address,
        view: &impl LocalView,
    ) -> PortId {
        let group = via.unwrap_or(self.group(to));
        if group == self.group(at) {
            return self.port_within_group(at, to);
        }
        self.port_to_link(at, group, self.choose_by_queue(at, group, to, view))
    }
}

impl RoutedTopology for Ugal {
    type Topology = Dragonfly;

    #[inline]
    fn topology(&self) -> &Dragonfly {
        &self.dragonfly
    }
}

impl Routing for Ugal {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        3
    }

    #[inline]
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        // The usual machine has one link per pair of groups: its code is compiled apart, without the choice.
        match self.dragonfly.links_per_pair() {
            1 => self.decide(at, to, state, view),
            _ => self.decide_among_links(at, to, state, view),
        }
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}

impl Ranked for Ugal {
    fn rank(&self, channel: Channel) -> u64 {
        self.dragonfly.channel_rank(channel)
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        self.dragonfly.turns(channel, 2, visit);
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        Some(self.dragonfly.channels_of_each_kind(self.virtual_channels()))
    }
}
