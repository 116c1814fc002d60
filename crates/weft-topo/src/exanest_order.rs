//! The ExaNeSt network's routing: through F1, then X, Y, Z.
//!
//! ```text
//!   F3 -> F1 ==X==> F1 ==Y==> F1 --Z--> F1 -> F2      inside a QFDB directly: F3 -> F2
//!         '------- dimension order of the QFDB torus -------'
//! ```
//! Channels are ranked: to F1 (or directly to the last MPSoC), X, Y, Z, from F1. The rings have
//! datelines, so that two virtual channels are needed.
//!
//! # Source
//! TR-488 §4.1 (only the network MPSoC routes outside a QFDB), §4.2 (single-path dimension-ordered routing
//! guarantees deadlock freedom). How the Network Router broke the cycles of its rings is not published;
//! datelines are ours, after Dally and Seitz 1987.

use crate::dimension_order::DimensionOrder;
use crate::exanest::{Exanest, MPSOCS};
use crate::proof::{Channel, Ranked};
use crate::traits::{Address, Attachment, Position, RouteState, Routing, Step, Topology, View};
use serde::{Deserialize, Serialize};
use weft_units::{PortId, SwitchId, VcId};

/// Dimension order through the network MPSoCs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExanestOrder {
    machine: Exanest,
    /// The route from F1 to F1, and on to the MPSoC, which is where an endpoint of that torus is.
    between_qfdbs: DimensionOrder,
    mpsoc_mask: u64,
}

impl ExanestOrder {
    /// Routing on `machine`. Without `datelines` there is one virtual channel and rings can deadlock.
    pub fn new(machine: Exanest, datelines: bool) -> ExanestOrder {
        let between_qfdbs = DimensionOrder::new(machine.qfdbs().clone(), datelines);
        ExanestOrder { mpsoc_mask: machine.qfdbs().slot_mask(), machine, between_qfdbs }
    }

    /// What it routes on.
    #[inline]
    pub fn topology(&self) -> &Exanest {
        &self.machine
    }

    /// Whether rings have datelines.
    pub fn datelines(&self) -> bool {
        self.between_qfdbs.datelines()
    }
}

impl Routing for ExanestOrder {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        self.between_qfdbs.virtual_channels()
    }

    #[inline]
    fn route(&self, at: Position, to: Address, state: &mut RouteState, view: &mut impl View) -> Step {
        let here = (at.address.0 & self.mpsoc_mask) as u32;
        if here == 0 {
            return self.between_qfdbs.route(at, to, state, view);
        }
        let same_qfdb = (at.address.0 ^ to.0) & !self.mpsoc_mask == 0;
        let there = if same_qfdb { (to.0 & self.mpsoc_mask) as u32 } else { 0 };
        match there == here {
            true => Step { port: PortId(0), vc: at.vc },
            false => Step { port: Exanest::mpsoc_port(here, there), vc: VcId(0) },
        }
    }

    fn is_deterministic(&self) -> bool {
        true
    }
}

/// The kinds of channels, in the order in which a packet meets them.
enum Stage {
    /// From an MPSoC other than F1.
    ToF1,
    /// Between QFDBs, as a channel of the torus.
    Between(Channel),
    /// From F1 to another MPSoC of its QFDB.
    FromF1,
}

fn stage(channel: Channel) -> Stage {
    match (Exanest::mpsoc(channel.switch), channel.port.0) {
        (0, MPSOCS..) => Stage::Between(Channel { switch: SwitchId(channel.switch.0 / MPSOCS), ..channel }),
        (0, _) => Stage::FromF1,
        _ => Stage::ToF1,
    }
}

impl Ranked for ExanestOrder {
    fn rank(&self, channel: Channel) -> u64 {
        match stage(channel) {
            Stage::ToF1 => 0,
            Stage::Between(channel) => 1 + self.between_qfdbs.rank(channel),
            Stage::FromF1 => u64::MAX,
        }
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let Attachment::Switch(switch, _) = self.machine.peer(channel.switch, channel.port) else { return };
        let joined = |port| self.machine.peer(switch, port) != Attachment::Nothing;
        match stage(channel) {
            Stage::ToF1 if Exanest::mpsoc(switch) == 0 => {
                for port in (MPSOCS..self.machine.ports(switch)).map(PortId).filter(|&port| joined(port)) {
                    for vc in (0..self.virtual_channels()).map(VcId) {
                        visit(Channel { switch, port, vc });
                    }
                }
            }
            Stage::ToF1 | Stage::FromF1 => {}
            Stage::Between(between) => {
                self.between_qfdbs.successors(between, &mut |next| {
                    // The torus has links between sub-systems where the rack has none.
                    if joined(next.port) {
                        visit(Channel { switch, ..next });
                    }
                });
                for port in (1..MPSOCS).map(PortId) {
                    visit(Channel { switch, port, vc: channel.vc });
                }
            }
        }
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}
