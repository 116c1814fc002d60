//! Routings of trees: all go up until the destination lies below, then down.
//!
//! At every switch some ports bring a packet nearer: on the way up all that lead up, on the way down the
//! links in parallel to the one child that has the destination. The routings differ in which of them a packet
//! takes:
//! - D-mod-k goes by the digits of the destination's number to the bases of the levels' parents and links, so
//!   that all packets for a destination meet at one root, and destinations are shared out over the roots;
//! - up-down draws random numbers, so that packets of a flow may overtake;
//! - ECMP hashes source and destination, so that a flow keeps to one way;
//! - multipath hashes the block of the message as well, so that only the packets of a block keep to one way;
//! - round robin takes the ports in turn;
//! - adaptive takes the shortest queue.
//!
//! Channels going up are ranked by their level, those going down after them by their level from the top. One
//! virtual channel is enough.
//!
//! # Source
//! E. Zahavi, "Fat-tree routing and node ordering providing contention free traffic for MPI global
//! collectives", J. Parallel Distrib. Comput. 72, 2012 (D-mod-k of PGFT). `choice.rs` has that of ECMP.

use super::Tree;
use crate::choice::{below, block_hash, flow_hash, shortest_queue, way_in_turn, way_of_flow};
use crate::proof::{Channel, Ranked};
use crate::routings;
use crate::traits::{
    Address, AtSwitch, Attachment, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology,
};
use serde::{Deserialize, Serialize};
use weft_units::{PortId, SwitchId, VcId};

routings! {
    /// Routings of a tree.
    #[derive(Copy)]
    pub enum TreeRouting {
        /// Up by the digits of the destination.
        DModK = "d-mod-k",
        /// Up by any of the ports, drawn at random.
        UpDown = "up-down",
        /// Up by a hash of source and destination, so that the packets of a pair stay in order.
        Ecmp = "ecmp" {
            /// Seed of the hash of flows; 1 where not given.
            hash_seed: u32 = 1;
        },
        /// Up by the port with the shortest queue, drawn at random where several are.
        Adaptive = "adaptive",
        /// Up by all ports in turn, one for every packet.
        RoundRobin = "round-robin",
        /// Up by a hash of source, destination and block of the message, so that blocks spread and the
        /// packets of a block stay in order.
        Multipath = "multipath" {
            /// Seed of the hash of flows; 1 where not given.
            hash_seed: u32 = 1;
        },
    }
}

/// Up and then down, on a tree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TreeUpDown {
    tree: Tree,
    routing: TreeRouting,
}

impl TreeUpDown {
    /// One of the routings on `tree`.
    pub fn new(tree: Tree, routing: TreeRouting) -> TreeUpDown {
        TreeUpDown { tree, routing }
    }

    /// How packets choose among ports.
    pub fn routing(&self) -> TreeRouting {
        self.routing
    }

    /// The number of an endpoint, where a packet comes from one.
    #[inline]
    fn source(&self, at: &AtSwitch) -> Option<u32> {
        let leaf = &self.tree.levels[0];
        let came_from_endpoint = self.tree.level(at.address) == 0 && at.port.0 < leaf.children;
        came_from_endpoint.then(|| at.switch.0 * leaf.children + at.port.0)
    }
}

impl RoutedTopology for TreeUpDown {
    type Topology = Tree;

    #[inline]
    fn topology(&self) -> &Tree {
        &self.tree
    }
}

impl Routing for TreeUpDown {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        1
    }

    /// State: the hash of source and destination for ECMP, from the first switch on.
    #[inline]
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        if let TreeRouting::Ecmp { hash_seed } | TreeRouting::Multipath { hash_seed } = self.routing
            && let Some(source) = self.source(&at)
        {
            // Of ECMP the block is always 0.
            state.0 = block_hash(flow_hash(hash_seed, source, to.0), state.0);
        }
        let ways = self.tree.ways(at.address, to);
        let way = match self.routing {
            TreeRouting::DModK => ways.by_destination,
            _ if ways.count == 1 => 0,
            TreeRouting::UpDown => below(ways.count, view.random()),
            TreeRouting::RoundRobin => way_in_turn(view.turn(), ways.count),
            TreeRouting::Ecmp { .. } | TreeRouting::Multipath { .. } => {
                way_of_flow(state.0, at.switch.0, ways.count)
            }
            TreeRouting::Adaptive => {
                let ports = (0..ways.count).map(|way| ways.port(way));
                let shortest = shortest_queue(ports, view).map(|(port, _)| port);
                return NextHop { port: shortest.unwrap_or(ways.port(0)), vc: VcId(0) };
            }
        };
        NextHop { port: ways.port(way), vc: VcId(0) }
    }

    fn is_deterministic(&self) -> bool {
        match self.routing {
            TreeRouting::DModK | TreeRouting::Ecmp { .. } => true,
            TreeRouting::UpDown
            | TreeRouting::Adaptive
            | TreeRouting::RoundRobin
            | TreeRouting::Multipath { .. } => false,
        }
    }

    fn spreads_blocks(&self) -> bool {
        matches!(self.routing, TreeRouting::Multipath { .. })
    }
}

impl Ranked for TreeUpDown {
    fn rank(&self, channel: Channel) -> u64 {
        let (level, ..) = self.tree.place(channel.switch);
        let up = channel.port.0 >= self.tree.levels[level].down();
        if up { level as u64 } else { 2 * u64::from(self.tree.height()) - level as u64 }
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let Attachment::Switch(switch, came_by) = self.tree.peer(channel.switch, channel.port) else {
            return;
        };
        let (l, ..) = self.tree.place(switch);
        let level = &self.tree.levels[l];
        let came_up = came_by.0 < level.down();
        for port in 0..self.tree.ports(switch) {
            // Down: not to the child where it came from, and not to endpoints. Up: only while climbing.
            let taken = match port < level.down() {
                true => l > 0 && !(came_up && port % level.children == came_by.0 % level.children),
                false => came_up,
            };
            if taken {
                visit(Channel { switch, port: PortId(port), vc: channel.vc });
            }
        }
    }

    /// The channels of one switch per level: the tree looks the same from all of them.
    fn representatives(&self) -> Option<Vec<Channel>> {
        let switches = self.tree.levels().iter().map(|level| SwitchId(level.first));
        let ports = |switch| (0..self.tree.ports(switch)).map(move |port| (switch, PortId(port)));
        let between = |&(switch, port): &(SwitchId, PortId)| {
            matches!(self.tree.peer(switch, port), Attachment::Switch(..))
        };
        let channel = |(switch, port)| Channel { switch, port, vc: VcId(0) };
        Some(switches.flat_map(ports).filter(between).map(channel).collect())
    }
}
