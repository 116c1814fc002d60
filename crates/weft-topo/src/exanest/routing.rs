//! The ExaNeSt network's routing: through F1 and its router, then X, Y, Z.
//!
//! ```text
//!   F3 -> F1 -> router ==X==> router ==Y==> router --Z--> router -> F1 -> F2
//!               '-------- dimension order of the torus --------'
//!   inside a QFDB directly: F3 -> F2
//! ```
//! Channels are ranked: to F1 (or directly to the last MPSoC), to the router, X, Y, Z, from the router,
//! from F1. The rings have datelines, so that two virtual channels are needed.
//!
//! # Source
//! TR-488 §4.1 (only the network MPSoC routes outside a QFDB), §4.2 (single-path dimension-ordered routing
//! guarantees deadlock freedom). How the Network Router broke the cycles of its rings is not published;
//! datelines are ours, after Dally and Seitz 1987.

use super::{Exanest, MPSOCS, Role};
use crate::proof::{Channel, Ranked};
use crate::torus::DimensionOrder;
use crate::traits::{
    Address, AtSwitch, Attachment, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology,
};
use serde::{Deserialize, Serialize};
use weft_units::{PortId, VcId};

/// Dimension order through the network MPSoCs and their routers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExanestOrder {
    machine: Exanest,
    /// The route from router to router, and from the last one to F1, which is where an endpoint of that
    /// torus is.
    between_routers: DimensionOrder,
}

impl ExanestOrder {
    /// Routing on `machine`. Without `datelines` there is one virtual channel and rings can deadlock.
    pub fn new(machine: Exanest, datelines: bool) -> ExanestOrder {
        let between_routers = DimensionOrder::new(machine.routers().clone(), datelines);
        ExanestOrder { machine, between_routers }
    }

    /// Whether rings have datelines.
    pub fn datelines(&self) -> bool {
        self.between_routers.datelines()
    }
}

impl RoutedTopology for ExanestOrder {
    type Topology = Exanest;

    #[inline]
    fn topology(&self) -> &Exanest {
        &self.machine
    }
}

impl Routing for ExanestOrder {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        self.between_routers.virtual_channels()
    }

    #[inline]
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        let (here, there) = (Exanest::in_torus(at.address), Exanest::in_torus(to));
        match (Exanest::place(at.address), Exanest::place(to)) {
            (Role::Router, _) => {
                self.between_routers.route(AtSwitch { address: here, ..at }, there, state, view)
            }
            (Role::Mpsoc(place), target) if here == there => match target {
                Role::Mpsoc(target) if target != place => {
                    NextHop { port: Exanest::mpsoc_port(place, target), vc: at.vc }
                }
                _ => NextHop { port: PortId(0), vc: at.vc },
            },
            (Role::Mpsoc(0), _) => NextHop { port: Exanest::TO_ROUTER, vc: VcId(0) },
            (Role::Mpsoc(place), _) => NextHop { port: Exanest::mpsoc_port(place, 0), vc: VcId(0) },
        }
    }

    fn is_deterministic(&self) -> bool {
        true
    }
}

/// The kinds of channels, in the order in which a packet meets them.
enum Stage {
    /// From an MPSoC other than F1, to F1 or another.
    FromMpsoc,
    /// From F1 to its router.
    ToRouter,
    /// Between routers, as a channel of the torus.
    Between(Channel),
    /// From the router to F1.
    FromRouter,
    /// From F1 to another MPSoC of its QFDB.
    FromF1,
}

fn stage(channel: Channel) -> Stage {
    match (Exanest::role(channel.switch), channel.port) {
        ((_, Role::Router), Exanest::TO_F1) => Stage::FromRouter,
        ((qfdb, Role::Router), _) => Stage::Between(Channel { switch: qfdb, ..channel }),
        ((_, Role::Mpsoc(0)), Exanest::TO_ROUTER) => Stage::ToRouter,
        ((_, Role::Mpsoc(0)), _) => Stage::FromF1,
        ((_, Role::Mpsoc(_)), _) => Stage::FromMpsoc,
    }
}

impl Ranked for ExanestOrder {
    fn rank(&self, channel: Channel) -> u64 {
        match stage(channel) {
            Stage::FromMpsoc => 0,
            Stage::ToRouter => 1,
            Stage::Between(channel) => 2 + self.between_routers.rank(channel),
            Stage::FromRouter => u64::MAX - 1,
            Stage::FromF1 => u64::MAX,
        }
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let Attachment::Switch(switch, _) = self.machine.peer(channel.switch, channel.port) else { return };
        let joined = |port| self.machine.peer(switch, port) != Attachment::Nothing;
        match stage(channel) {
            Stage::FromMpsoc => {
                // Only packets for elsewhere go on, and only from F1.
                if let (_, Role::Mpsoc(0)) = Exanest::role(switch) {
                    visit(Channel { switch, port: Exanest::TO_ROUTER, vc: VcId(0) });
                }
            }
            Stage::ToRouter => {
                let links = (0..self.machine.ports(switch)).map(PortId);
                for port in links.filter(|&port| port != Exanest::TO_F1 && joined(port)) {
                    for vc in (0..self.virtual_channels()).map(VcId) {
                        visit(Channel { switch, port, vc });
                    }
                }
            }
            Stage::Between(between) => {
                self.between_routers.successors(between, &mut |next| {
                    // The torus has links between sub-systems where the rack has none.
                    if joined(next.port) {
                        visit(Channel { switch, ..next });
                    }
                });
                visit(Channel { switch, port: Exanest::TO_F1, vc: channel.vc });
            }
            Stage::FromRouter => {
                for port in (1..MPSOCS).map(PortId) {
                    visit(Channel { switch, port, vc: channel.vc });
                }
            }
            Stage::FromF1 => {}
        }
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}
