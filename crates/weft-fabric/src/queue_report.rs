//! How full the queues of switches are at an instant, and the fullest since a look before: what telemetry
//! asks for between runs.
//!
//! ```text
//!   input buffers ── side input  ─┐
//!                                 ├─► QueueReport per virtual channel that holds something, or has held
//!   output queues ── side output ─┘
//! ```
//! # Not modelled
//! The output buffers of combined input-output queues: a packet counts as gone when it crosses.

use crate::channel::Channel;
use crate::constants::Constants;
use crate::interface::Interface;
use crate::network::Network;
use crate::switch::{MeteredQueue, Switch};
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
    /// The most packets since [`Network::restart_queue_meters`]; without meters, those that are in it.
    pub most_packets: u32,
    /// Likewise of the bytes.
    pub most_held: Bytes,
}

/// A queue of a switch by its side and channel.
type QueuePlace = (QueueSide, Channel);

/// The packets of a queue, and the bytes that they hold, now and at most.
#[derive(Clone, Copy, Default)]
struct QueueBytes {
    packets: u32,
    held: Bytes,
    most_packets: u32,
    most_held: Bytes,
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// Counts from now on how full queues become at most. Nothing else changes.
    pub fn meter_queues(simulation: &mut Simulation<Network<T, N>>) {
        let channels = simulation.model().constants.channels;
        simulation.sites_mut().for_each(|(_, site)| site.switch.meter_queues(channels));
    }

    /// From now on the most of each queue counts anew.
    pub fn restart_queue_meters(simulation: &mut Simulation<Network<T, N>>) {
        for (_, site) in simulation.sites_mut() {
            site.switch.state_mut().queue_meter.iter_mut().for_each(|meter| meter.restart());
        }
    }

    /// The queues that hold packets now, by switch, side, port and virtual channel; with meters also those
    /// that have held some since these were restarted.
    pub fn queues(simulation: &Simulation<Network<T, N>>) -> impl Iterator<Item = QueueReport> {
        let constants = &simulation.model().constants;
        simulation.sites().flat_map(move |(SiteId(site), state)| {
            let queues = queues_of(&state.switch, constants);
            queues.into_iter().map(move |((side, channel), queue)| QueueReport {
                switch: SwitchId(site),
                port: PortId(channel.port.into()),
                vc: VcId(channel.vc.into()),
                side,
                packets: queue.packets,
                held: queue.held,
                most_packets: queue.most_packets,
                most_held: queue.most_held,
            })
        })
    }
}

/// The queues of a switch that hold something, or have held something.
fn queues_of(switch: &Switch, constants: &Constants) -> BTreeMap<QueuePlace, QueueBytes> {
    let mut queues: BTreeMap<QueuePlace, QueueBytes> = BTreeMap::new();
    if switch.packets() > 0 {
        let mut add = |queue, held| {
            let fill = queues.entry(queue).or_default();
            fill.packets += 1;
            fill.held += held;
            (fill.most_packets, fill.most_held) = (fill.packets, fill.held);
        };
        for (channel, space) in switch.occupancy(constants.channels) {
            add((QueueSide::Input, channel), constants.switch.credit.bytes(space));
        }
        if let Switch::OutputQueued(switch) = switch {
            for (channel, packet) in switch.at_outputs(constants.channels) {
                add((QueueSide::Output, channel), constants.packet_bytes(&packet));
            }
        }
    }
    let Some(meter) = &switch.state().queue_meter else { return queues };
    let credits = |held: u64| constants.switch.credit.bytes(held as u32);
    let inputs = meter.inputs.iter().enumerate().map(|(channel, queue)| {
        (QueueSide::Input, channel, *queue, credits(queue.now.held), credits(queue.most.held))
    });
    let outputs = meter.outputs.iter().enumerate().map(|(channel, queue)| {
        (QueueSide::Output, channel, *queue, Bytes::new(queue.now.held), Bytes::new(queue.most.held))
    });
    let metered = inputs.chain(outputs).filter(|(_, _, queue, ..)| queue.most.packets > 0);
    for (side, channel, MeteredQueue { now, most }, held, most_held) in metered {
        let queue = queues.entry((side, constants.channels.channel(channel))).or_default();
        debug_assert_eq!((queue.packets, queue.held), (now.packets, held), "the meter of {side:?} {channel}");
        (queue.most_packets, queue.most_held) = (most.packets, most_held);
    }
    queues
}
