//! UGAL-L and UGAL-G on the Dragonfly: minimal, or by way of a random group where the queues say so.
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
//! UGAL-G sees the queues before the global links of the whole group. Where another switch has the link, its
//! queue is that towards this switch, and the one before the link as that switch has last published it:
//!
//! ```text
//!   source's switch ▢▢ -- local --> ▢▢▢▢▢ switch with the link ~~ global ~~>     q = 2 + 5
//!        own queue, as it is        published at the last pulse, known after the signalling time
//! ```
//!
//! # Source
//! Kim, Dally, Scott, Abts, ISCA 2008, section 4.2 (UGAL-L, three virtual channels for non-minimal routing)
//! and 4.3 (UGAL-G, "the queue information for all the global channels" of the group; there it is ideal,
//! without delay; that the local queue counts too is ours); A. Singh, "Load-balanced routing in
//! interconnection networks", PhD thesis, Stanford 2005.

use super::Dragonfly;
use super::valiant::{state_of, via};
use crate::proof::{Channel, Ranked};
use crate::traits::{Address, AtSwitch, LocalView, NextHop, RouteState, RoutedTopology, Routing};
use serde::{Deserialize, Serialize};
use weft_units::PortId;

/// UGAL with local information, or with that of the group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ugal {
    dragonfly: Dragonfly,
    threshold: u64,
    /// Whether it sees what the switches of the group publish.
    sees_group: bool,
    /// UGAL-L on one link per pair of groups: the machine whose code must stay small.
    is_usual: bool,
}

impl Ugal {
    /// UGAL-L on `dragonfly`; `threshold` favours the minimal path, in bytes times hops.
    pub fn new(dragonfly: Dragonfly, threshold: u64) -> Ugal {
        let is_usual = dragonfly.links_per_pair() == 1;
        Ugal { dragonfly, threshold, sees_group: false, is_usual }
    }

    /// UGAL-G on `dragonfly`, with the same threshold.
    pub fn with_published_queues(dragonfly: Dragonfly, threshold: u64) -> Ugal {
        Ugal { dragonfly, threshold, sees_group: true, is_usual: false }
    }

    /// Whether it is UGAL-G.
    pub fn sees_group(&self) -> bool {
        self.sees_group
    }

    /// The threshold, in bytes times hops.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// The intermediate group of a packet that is better off with a detour.
    #[inline(always)]
    pub(super) fn detour<const SEES_GROUP: bool>(
        &self,
        from: Address,
        to: Address,
        view: &mut impl LocalView,
    ) -> Option<u32> {
        let via = self.dragonfly.draw_third_group(from, to, view)?;
        let target = self.dragonfly.group(to);
        let direct = self.dragonfly.choose_by_queue(from, target, to, view);
        let around = self.dragonfly.choose_by_queue(from, via, to, view);
        let minimal = self.queued_before::<SEES_GROUP>(from, (target, direct), view);
        let detour = self.queued_before::<SEES_GROUP>(from, (via, around), view);
        let minimal = u128::from(minimal) * u128::from(self.minimal_hops(from, direct, to));
        let detour = u128::from(detour) * u128::from(self.detour_hops(from, (via, around), to));
        (minimal > detour + u128::from(self.threshold)).then_some(via)
    }

    /// Bytes that wait before one of the links to another group, as the routing sees them.
    #[inline(always)]
    fn queued_before<const SEES_GROUP: bool>(
        &self,
        from: Address,
        (other, link): (u32, u32),
        view: &impl LocalView,
    ) -> u64 {
        let own = view.queued(self.dragonfly.port_to_link(from, other, link));
        if !SEES_GROUP {
            return own;
        }
        let group = self.dragonfly.group(from);
        let (gateway, port) = self.dragonfly.gateway(group, other, link);
        if gateway == self.dragonfly.switch_in_group(from) {
            return own;
        }
        own + view.published(self.dragonfly.switch_id(group, gateway), port)
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
    fn decide<const SEES_GROUP: bool>(
        &self,
        at: AtSwitch,
        to: Address,
        state: &mut RouteState,
        view: &mut impl LocalView,
    ) -> NextHop {
        if self.dragonfly.class(at.port).0 == 0 {
            *state = state_of(self.detour::<SEES_GROUP>(at.address, to, view));
        } else if via(*state) == Some(self.dragonfly.group(at.address)) {
            *state = state_of(None);
        }
        let port = self.dragonfly.adaptive_port(at.address, via(*state), to, view);
        let vc = if self.dragonfly.class(port).0 == 0 { at.vc } else { self.dragonfly.next_vc(&at) };
        NextHop { port, vc }
    }

    #[inline(never)]
    fn decide_unusually(
        &self,
        at: AtSwitch,
        to: Address,
        state: &mut RouteState,
        view: &mut impl LocalView,
    ) -> NextHop {
        match self.sees_group {
            false => self.decide::<false>(at, to, state, view),
            true => self.decide::<true>(at, to, state, view),
        }
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
        match self.is_usual {
            true => self.decide::<false>(at, to, state, view),
            false => self.decide_unusually(at, to, state, view),
        }
    }

    fn is_deterministic(&self) -> bool {
        false
    }

    fn needs_published_queues(&self) -> bool {
        self.sees_group
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
