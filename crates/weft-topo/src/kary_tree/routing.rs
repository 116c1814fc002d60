//! Up/down routing of the k-ary n-tree: D-mod-k and random up.
//!
//! A packet climbs until the destination lies below the switch, then descends; the way down is unique.
//! The way up is free:
//! - D-mod-k takes at level l the up port of digit l of the destination, so that all packets for one
//!   destination meet at one root and destinations spread evenly over the roots;
//! - random up draws a port at every level, so that packets of a flow may overtake.
//!
//! Channels going up are ranked by their level, those going down after them by their level from the
//! top. One virtual channel is enough.
//!
//! # Source
//! Petrini and Vanneschi 1997 (up/down); E. Zahavi, "Fat-tree routing and node ordering providing
//! contention free traffic for MPI global collectives", J. Parallel Distrib. Comput. 72, 2012 (D-mod-k).

use super::KaryTree;
use crate::choice::below;
use crate::proof::{Channel, Ranked};
use crate::routings;
use crate::traits::{
    Address, AtSwitch, Attachment, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology,
};
use serde::{Deserialize, Serialize};
use weft_units::{PortId, SwitchId, VcId};

routings! {
    /// How a packet chooses its way up.
    #[derive(Copy)]
    pub enum Ascent {
        /// Up by the digits of the destination.
        DModK = "d-mod-k",
        /// Up by any of the ports, drawn at random.
        Random = "up-down",
    }
}

/// Up/down routing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct UpDown {
    tree: KaryTree,
    ascent: Ascent,
}

impl UpDown {
    /// Up/down routing on `tree`.
    pub fn new(tree: KaryTree, ascent: Ascent) -> UpDown {
        UpDown { tree, ascent }
    }

    /// How packets choose their way up.
    pub fn ascent(&self) -> Ascent {
        self.ascent
    }
}

impl RoutedTopology for UpDown {
    type Topology = KaryTree;

    #[inline]
    fn topology(&self) -> &KaryTree {
        &self.tree
    }
}

impl Routing for UpDown {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        1
    }

    #[inline]
    fn route(
        &self,
        at: AtSwitch,
        to: Address,
        _state: &mut RouteState,
        view: &mut impl LocalView,
    ) -> NextHop {
        let digit = self.tree.digit(to, self.tree.level(at.address));
        let arity = self.tree.arity();
        let port = match (self.tree.is_below(at.address, to), self.ascent) {
            (true, _) => digit,
            (false, Ascent::DModK) => arity + digit,
            (false, Ascent::Random) => arity + below(arity, view.random()),
        };
        NextHop { port: PortId(port), vc: VcId(0) }
    }

    fn is_deterministic(&self) -> bool {
        self.ascent == Ascent::DModK
    }
}

impl Ranked for UpDown {
    fn rank(&self, channel: Channel) -> u64 {
        let level = u64::from(self.tree.level(self.tree.switch_address(channel.switch)));
        let up = channel.port.0 >= self.tree.arity();
        if up { level } else { 2 * u64::from(self.tree.levels()) - level }
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let arity = self.tree.arity();
        let Attachment::Switch(switch, came_by) = self.tree.peer(channel.switch, channel.port) else {
            return;
        };
        let up = came_by.0 < arity;
        let descends = self.tree.level(self.tree.switch_address(switch)) > 0;
        for port in 0..self.tree.ports(switch) {
            // Down: not back where it came from, and not to endpoints. Up: only while climbing.
            let taken = if port < arity { descends && port != came_by.0 } else { up };
            if taken {
                visit(Channel { switch, port: PortId(port), vc: channel.vc });
            }
        }
    }

    /// The channels of one switch per level: the tree looks the same from all of them.
    fn representatives(&self) -> Option<Vec<Channel>> {
        let per_level = self.tree.switches() / self.tree.levels();
        let switches = (0..self.tree.levels()).map(|level| SwitchId(level * per_level));
        let ports = |switch| (0..self.tree.ports(switch)).map(move |port| (switch, PortId(port)));
        let between = |&(switch, port): &(SwitchId, PortId)| {
            matches!(self.tree.peer(switch, port), Attachment::Switch(..))
        };
        let channel = |(switch, port)| Channel { switch, port, vc: VcId(0) };
        Some(switches.flat_map(ports).filter(between).map(channel).collect())
    }
}
