//! How full the queues of switches are at an instant: what telemetry samples between runs.
//!
//! ```text
//!   input buffers ── side input  ─┐
//!                                 ├─► QueueReport per virtual channel that holds something
//!   output queues ── side output ─┘
//! ```
//! # Not modelled
//! The output buffers of combined input-output queues: a packet counts as gone when it crosses.

use crate::channel::Channel;
use crate::constants::Constants;
use crate::interface::Interface;
use crate::network::Network;
use crate::switch::Switch;
use std::collections::BTreeMap;
use weft_engine::{Simulation, SiteId};
use weft_topo::{Routing, Topology};
use weft_units::{Bytes, PortId, SwitchId, VcId};

/// The side of a switch that a queue is on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum QueueSide {
    /// An input buffer: packets that have arrived by a port.
    Input,
    /// A queue of an output-queued switch: packets that will leave by a port.
    Output,
}

/// A queue of a switch that holds packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueReport {
    /// The switch.
    pub switch: SwitchId,
    /// The port.
    pub port: PortId,
    /// The virtual channel.
    pub vc: VcId,
    /// The side of the switch.
    pub side: QueueSide,
    /// Packets in it.
    pub packets: u32,
    /// Bytes of its buffer that they hold, in whole units of credit at inputs.
    pub held: Bytes,
}

/// The packets of a queue, and the bytes that they hold.
#[derive(Clone, Copy, Default)]
struct QueueFill {
    packets: u32,
    held: Bytes,
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// The queues that hold packets now, by switch, side, port and virtual channel.
    pub fn queues(simulation: &Simulation<Network<T, N>>) -> impl Iterator<Item = QueueReport> {
        let constants = &simulation.model().constants;
        simulation.sites().flat_map(move |(SiteId(site), state)| {
            let fills = fills(&state.switch, constants);
            fills.into_iter().map(move |((side, channel), QueueFill { packets, held })| QueueReport {
                switch: SwitchId(site),
                port: PortId(channel.port.into()),
                vc: VcId(channel.vc.into()),
                side,
                packets,
                held,
            })
        })
    }
}

/// The queues of a switch that hold something.
fn fills(switch: &Switch, constants: &Constants) -> BTreeMap<(QueueSide, Channel), QueueFill> {
    let mut fills: BTreeMap<(QueueSide, Channel), QueueFill> = BTreeMap::new();
    if switch.packets() == 0 {
        return fills;
    }
    let mut add = |queue, held| {
        let fill = fills.entry(queue).or_default();
        fill.packets += 1;
        fill.held += held;
    };
    for (channel, space) in switch.occupancy(constants.channels) {
        add((QueueSide::Input, channel), constants.switch.credit.bytes(space));
    }
    if let Switch::OutputQueued(switch) = switch {
        for (channel, packet) in switch.at_outputs(constants.channels) {
            add((QueueSide::Output, channel), constants.packet_bytes(&packet));
        }
    }
    fills
}
