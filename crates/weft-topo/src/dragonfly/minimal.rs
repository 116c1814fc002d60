//! Minimal routing of the Dragonfly, and the virtual channels of its routings.
//!
//! A packet goes to a switch of its group that has a global link to the destination's group (local),
//! over it (global), and to the destination's switch (local); parts that are not needed drop out. Its virtual
//! channel is the number of global links behind it:
//!
//! ```text
//!   local vc0 -> global vc0 -> local vc1 [ -> global vc1 -> local vc2 ]     ranks 0 1 2 [3 4]
//! ```
//! Minimal routing needs two virtual channels; a detour over an intermediate group (Valiant, UGAL)
//! needs the part in brackets and so a third.
//!
//! # Source
//! Kim, Dally, Scott, Abts, ISCA 2008, section 4.1: two virtual channels for minimal, three for
//! non-minimal routing.

use super::{Dragonfly, GLOBAL, LOCAL};
use crate::proof::{Channel, Ranked};
use crate::traits::{
    Address, AtSwitch, Attachment, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology,
};
use serde::{Deserialize, Serialize};
use weft_units::{PortId, SwitchId, VcId};

/// Minimal routing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DragonflyMinimal {
    dragonfly: Dragonfly,
}

impl DragonflyMinimal {
    /// Minimal routing on `dragonfly`.
    pub fn new(dragonfly: Dragonfly) -> DragonflyMinimal {
        DragonflyMinimal { dragonfly }
    }
}

impl Dragonfly {
    /// The virtual channel of the next hop: global links behind the packet.
    #[inline]
    pub(crate) fn next_vc(&self, at: &AtSwitch) -> VcId {
        match self.class(at.port) {
            LOCAL => at.vc,
            GLOBAL => VcId(at.vc.0 + 1),
            _ => VcId(0),
        }
    }

    /// The port of the minimal path towards the endpoint at `to`.
    #[inline]
    pub(crate) fn minimal_port(&self, at: Address, to: Address) -> PortId {
        let (group, target) = (self.group(at), self.group(to));
        if group == target {
            return self.port_within_group(at, to);
        }
        if self.links_per_pair == 1 {
            return self.port_to_link(at, target, 0);
        }
        self.port_to_chosen_link(at, target, to)
    }

    /// The port towards an endpoint of the same group.
    #[inline]
    pub(crate) fn port_within_group(&self, at: Address, to: Address) -> PortId {
        let (here, there) = (self.switch_in_group(at), self.switch_in_group(to));
        if here == there { self.endpoint_port(to) } else { self.local_port(here, there) }
    }

    /// The rank of a channel where the virtual channel counts the global links behind a packet.
    pub(crate) fn channel_rank(&self, channel: Channel) -> u64 {
        let rank = 2 * u64::from(channel.vc.0);
        if self.class(channel.port) == GLOBAL { rank + 1 } else { rank }
    }

    /// The turns of packets that take at most so many global links.
    pub(crate) fn turns(&self, channel: Channel, global_links: u32, visit: &mut impl FnMut(Channel)) {
        let Attachment::Switch(switch, port) = self.peer(channel.switch, channel.port) else { return };
        let came_global = self.class(port) == GLOBAL;
        let vc = VcId(channel.vc.0 + u32::from(came_global));
        if vc.0 > global_links {
            return;
        }
        for port in (0..self.ports(switch)).map(PortId) {
            let joined = || self.peer(switch, port) != Attachment::Nothing;
            let taken = match self.class(port) {
                LOCAL => came_global,
                GLOBAL => vc.0 < global_links && joined(),
                _ => false,
            };
            if taken {
                visit(Channel { switch, port, vc });
            }
        }
    }

    /// The channels of the first and the last switch of the first group: turns and ranks depend only
    /// on the class of a port and the virtual channel, and these have every class.
    pub(crate) fn channels_of_each_kind(&self, virtual_channels: u32) -> Vec<Channel> {
        let switches = [SwitchId(0), SwitchId(self.switches_per_group() - 1)];
        let ports = |switch| (0..self.ports(switch)).map(move |port| (switch, PortId(port)));
        let between =
            |&(switch, port): &(SwitchId, PortId)| matches!(self.peer(switch, port), Attachment::Switch(..));
        let vcs =
            |(switch, port)| (0..virtual_channels).map(move |vc| Channel { switch, port, vc: VcId(vc) });
        switches.into_iter().flat_map(ports).filter(between).flat_map(vcs).collect()
    }
}

impl RoutedTopology for DragonflyMinimal {
    type Topology = Dragonfly;

    #[inline]
    fn topology(&self) -> &Dragonfly {
        &self.dragonfly
    }
}

impl Routing for DragonflyMinimal {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        2
    }

    #[inline]
    fn route(
        &self,
        at: AtSwitch,
        to: Address,
        _state: &mut RouteState,
        _view: &mut impl LocalView,
    ) -> NextHop {
        let port = self.dragonfly.minimal_port(at.address, to);
        let vc = if self.dragonfly.class(port).0 == 0 { at.vc } else { self.dragonfly.next_vc(&at) };
        NextHop { port, vc }
    }

    fn is_deterministic(&self) -> bool {
        true
    }
}

impl Ranked for DragonflyMinimal {
    fn rank(&self, channel: Channel) -> u64 {
        self.dragonfly.channel_rank(channel)
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        self.dragonfly.turns(channel, 1, visit);
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        Some(self.dragonfly.channels_of_each_kind(self.virtual_channels()))
    }
}
