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

mod buffer;
mod crossbar;
mod gauge;
mod input_queued;
mod output_queued;
mod port;
mod starvation;
mod virtual_output_queued;

pub(crate) use crossbar::Crossbar;
pub(crate) use gauge::{Filled, Gauges};
pub(crate) use input_queued::InputQueued;
pub(crate) use output_queued::OutputQueued;
pub(crate) use port::{Peer, Port, Ports};
pub(crate) use virtual_output_queued::VirtualOutputQueued;

use crate::channel::{Channel, Channels};
use crate::constants::Constants;
use crate::hop::HopRecord;
use crate::link::Sent;
use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use weft_topo::Routing;
use weft_units::Time;

/// The destination of packets and credits that leave a switch.
pub(crate) trait Sink {
    /// A packet has been sent to `peer`.
    fn packet(&mut self, peer: Peer, packet: Packet, sent: &Sent);
    /// Room in the input buffer of a virtual channel has become free; `peer`, which sends there, learns of it
    /// at `at`.
    fn credit(&mut self, peer: Peer, vc: u8, amount: u32, at: Time);
    /// A virtual channel's input buffer fills or empties: `peer`, which sends there, stops or goes on from
    /// `at` on.
    fn pause(&mut self, peer: Peer, command: (u8, bool), at: Time);
    /// A watched packet has been put on a link.
    fn hop(&mut self, hop: HopRecord);
}

/// The surroundings of a switch while it handles an arrival or arbitrates.
pub(crate) struct SwitchContext<'a, T, S> {
    /// The present virtual time.
    pub(crate) now: Time,
    /// Topology and routing.
    pub(crate) topology: &'a T,
    pub(crate) constants: &'a Constants,
    pub(crate) sink: &'a mut S,
}

/// A packet that waits at the head of a queue.
pub(crate) struct BlockedHead {
    /// The input buffer that it is in.
    pub(crate) buffer: Channel,
    /// The output and virtual channel that it is routed to.
    pub(crate) wants: Channel,
    pub(crate) packet: Packet,
}

/// A switch of one of the kinds that a machine file can name.
#[derive(Serialize, Deserialize)]
#[expect(clippy::enum_variant_names, reason = "the textbook's names of the three kinds")]
pub(crate) enum Switch {
    InputQueued(Crossbar<InputQueued>),
    VirtualOutputQueued(Crossbar<VirtualOutputQueued>),
    OutputQueued(OutputQueued),
}

macro_rules! each {
    ($self:expr, $switch:ident => $body:expr) => {
        match $self {
            Switch::InputQueued($switch) => $body,
            Switch::VirtualOutputQueued($switch) => $body,
            Switch::OutputQueued($switch) => $body,
        }
    };
}

impl Switch {
    /// The ports.
    pub(crate) fn ports(&self) -> &Ports {
        each!(self, switch => &switch.ports)
    }

    /// The ports, to be changed.
    #[inline]
    pub(crate) fn ports_mut(&mut self) -> &mut Ports {
        each!(self, switch => &mut switch.ports)
    }

    /// The clock edge at which it arbitrates next.
    #[inline]
    pub(crate) fn decision(&self) -> Time {
        each!(self, switch => switch.ports.decision)
    }

    /// Asks for the memory that its next events will touch.
    #[inline]
    pub(crate) fn prefetch(&self) {
        each!(self, switch => switch.prefetch());
    }

    /// The head of a packet has come. Nothing else comes before `undisturbed_until`.
    #[inline]
    pub(crate) fn arrive<T: Routing>(
        &mut self,
        packet: &Packet,
        undisturbed_until: Time,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        if !context.constants.has_credits && !self.ports_mut().admit(packet, context) {
            return;
        }
        match self {
            Switch::InputQueued(switch) => switch.arrive(packet, undisturbed_until, context),
            Switch::VirtualOutputQueued(switch) => switch.arrive(packet, undisturbed_until, context),
            Switch::OutputQueued(switch) => switch.arrive(packet, context),
        }
    }

    /// Arbitrates at a clock edge; packets and credits that leave go to the context's sink.
    #[inline]
    pub(crate) fn decide<T: Routing>(&mut self, context: &mut SwitchContext<'_, T, impl Sink>) {
        each!(self, switch => switch.decide(context));
        if !context.constants.has_credits {
            self.ports_mut().resume_senders(context);
        }
    }

    /// Packets that it holds.
    pub(crate) fn packets(&self) -> usize {
        each!(self, switch => switch.buffer.len())
    }

    /// The packets that wait at the head of a queue.
    pub(crate) fn blocked_heads(&self, channels: Channels) -> Vec<BlockedHead> {
        each!(self, switch => switch.blocked_heads(channels))
    }

    /// The packets in its input buffers: the buffer, and the room that a packet takes in it.
    pub(crate) fn occupancy(&self, channels: Channels) -> Vec<(Channel, u32)> {
        each!(self, switch => switch.occupancy(channels))
    }
}
