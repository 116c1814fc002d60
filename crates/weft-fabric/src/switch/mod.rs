//! Switches: buffers, arbitration, crossbar and lines.
//!
//! ```text
//!            ┌ input buffers ┐        ┌ outputs ┐
//!  link ──►  │ vc 0  ▢▢▢     │ ─┐  ┌─ │ line    │ ──► link
//!  credit ◄─ │ vc 1  ▢       │  ╳  │  │ credits │ ◄── credit
//!  link ──►  │ …             │ ─┘  └─ │ …       │ ──► link
//!            └───────────────┘ arbiter└─────────┘
//! ```
//! A packet that may leave at a clock edge crosses in the switch's pipeline latency, and its head
//! enters the output's line. The input's read port and the output are occupied until its tail has
//! passed. Arbitration looks ahead by the pipeline latency, so that a busy line has no gaps.

mod crossbar;
mod expected;
mod input_queued;
mod output_queued;
mod patience;
mod pool;
mod port;
mod rules;
mod virtual_output_queued;

pub(crate) use crossbar::Crossbar;
pub(crate) use input_queued::InputQueues;
pub(crate) use output_queued::OutputQueued;
pub(crate) use port::{Peer, Port, Ports, Sink, UNLIMITED};
pub(crate) use rules::{LinkKind, Rules};
use serde::{Deserialize, Serialize};
pub(crate) use virtual_output_queued::VirtualOutputQueues;

use crate::packet::Packet;
use weft_topo::Routing;
use weft_units::Time;

/// A switch of one of the kinds that a machine file can name.
#[derive(Serialize, Deserialize)]
pub(crate) enum Switch {
    InputQueues(Crossbar<InputQueues>),
    VirtualOutputs(Crossbar<VirtualOutputQueues>),
    Outputs(OutputQueued),
}

macro_rules! each {
    ($self:expr, $switch:ident => $body:expr) => {
        match $self {
            Switch::InputQueues($switch) => $body,
            Switch::VirtualOutputs($switch) => $body,
            Switch::Outputs($switch) => $body,
        }
    };
}

impl Switch {
    /// Its ports.
    pub(crate) fn ports(&self) -> &Ports {
        each!(self, switch => &switch.ports)
    }

    /// Its ports, to tell them of credits or reset their counters.
    #[inline]
    pub(crate) fn ports_mut(&mut self) -> &mut Ports {
        each!(self, switch => &mut switch.ports)
    }

    /// When it wants to arbitrate next.
    #[inline]
    pub(crate) fn decision(&self) -> Time {
        each!(self, switch => switch.ports.decision)
    }

    /// Asks for the memory that its next turn will touch.
    #[inline]
    pub(crate) fn prefetch(&self) {
        each!(self, switch => switch.prefetch());
    }

    /// The head of a packet has come at the first of `times`; nothing else comes before the second.
    #[inline]
    pub(crate) fn arrive<T: Routing>(
        &mut self,
        packet: &Packet,
        times: (Time, Time),
        rules: &Rules<T>,
        sink: &mut impl Sink,
    ) {
        match self {
            Switch::InputQueues(switch) => switch.arrive(packet, times, rules, sink),
            Switch::VirtualOutputs(switch) => switch.arrive(packet, times, rules, sink),
            Switch::Outputs(switch) => switch.arrive(packet, times.0, rules),
        }
    }

    /// Arbitrates at a clock edge; packets and credits that leave go to `sink`.
    #[inline]
    pub(crate) fn decide<T: Routing>(&mut self, now: Time, rules: &Rules<T>, sink: &mut impl Sink) {
        each!(self, switch => switch.decide(now, rules, sink));
    }

    /// Packets that it holds.
    pub(crate) fn packets(&self) -> usize {
        each!(self, switch => switch.pool.len())
    }

    /// The packets that wait at the head of a queue: (input port, its virtual channel, the output port
    /// and virtual channel it wants, the packet).
    pub(crate) fn waiting(&self, vc_shift: u32) -> Vec<(u16, u8, u16, u8, Packet)> {
        each!(self, switch => switch.waiting(vc_shift))
    }

    /// What its input buffers hold: (input port, virtual channel, room of a packet).
    pub(crate) fn occupancy(&self, vc_shift: u32) -> Vec<(u16, u8, u32)> {
        each!(self, switch => switch.occupancy(vc_shift))
    }
}
