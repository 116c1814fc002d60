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
mod combined;
mod crossbar;
mod input_queued;
mod occupancy;
mod output_queued;
mod port;
mod queue_meter;
mod queues;
mod replication;
mod starvation;
mod virtual_output_queued;
mod withdrawal;

pub(crate) use combined::{Combined, CrossbarPace};
pub(crate) use crossbar::Crossbar;
pub(crate) use input_queued::InputQueued;
use occupancy::Admission;
pub(crate) use occupancy::{Filled, InputOccupancy};
pub(crate) use output_queued::OutputQueued;
pub(crate) use port::{Peer, Port, SwitchState};
pub(crate) use queue_meter::{MeteredQueue, QueueMeter};
pub(crate) use replication::Replication;
pub(crate) use virtual_output_queued::VirtualOutputQueued;

use crate::channel::{Channel, ChannelNumbers};
use crate::constants::Constants;
use crate::fault::LossCause;
use crate::hop::HopRecord;
use crate::link::SentPacket;
use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use weft_topo::{Routing, Topology};
use weft_units::Time;

/// The destination of packets and credits that leave a switch.
pub(crate) trait Sink {
    /// A packet has been sent to `peer`.
    fn packet(&mut self, peer: Peer, packet: Packet, sent: &SentPacket);
    /// Space in the input buffer of a virtual channel has become free; `peer`, which sends there, learns of
    /// it at `at`.
    fn credit(&mut self, peer: Peer, vc: u8, amount: u32, at: Time);
    /// A virtual channel's input buffer fills or empties: `peer`, which sends there, stops or goes on from
    /// `at` on.
    fn pause(&mut self, peer: Peer, command: (u8, bool), at: Time);
    /// The switch itself answers the source of a notice, which has the answer at `at`.
    fn answer(&mut self, answer: Packet, at: Time);
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
pub(crate) enum Switch {
    InputQueued(Crossbar<InputQueued>),
    VirtualOutputQueued(Crossbar<VirtualOutputQueued>),
    OutputQueued(OutputQueued),
    Combined(Crossbar<Combined>),
}

macro_rules! each {
    ($self:expr, $switch:ident => $body:expr) => {
        match $self {
            Switch::InputQueued($switch) => $body,
            Switch::VirtualOutputQueued($switch) => $body,
            Switch::OutputQueued($switch) => $body,
            Switch::Combined($switch) => $body,
        }
    };
}

impl Switch {
    /// The ports.
    #[inline]
    pub(crate) fn state(&self) -> &SwitchState {
        each!(self, switch => &switch.state)
    }

    /// The ports, to be changed.
    #[inline]
    pub(crate) fn state_mut(&mut self) -> &mut SwitchState {
        each!(self, switch => &mut switch.state)
    }

    /// The clock edge at which it arbitrates next.
    #[inline]
    pub(crate) fn decision(&self) -> Time {
        each!(self, switch => switch.state.decision)
    }

    /// Puts its next arbitration off to the first edge at which a request may go. It may stand before that:
    /// a packet that comes to the head of its queue asks for an edge, and its output, served after it, finds
    /// that it will be busy for longer. Nothing happens at such an edge. An arbitration in between forgets
    /// it, and a packet that [passes](crossbar::Crossbar) without one does not: the edge depends on where
    /// runs end.
    pub(crate) fn settle_decision(&mut self) {
        match self {
            Switch::InputQueued(_) | Switch::VirtualOutputQueued(_) | Switch::Combined(_) => {
                self.state_mut().settle_decision();
            }
            Switch::OutputQueued(_) => {}
        }
    }

    /// Asks for the memory that its next events will touch.
    #[inline]
    pub(crate) fn prefetch(&self) {
        each!(self, switch => switch.prefetch());
    }

    /// The head of a packet has come. Nothing else comes before `undisturbed_until`.
    #[inline]
    pub(crate) fn arrive<T: Topology + Routing>(
        &mut self,
        packet: &Packet,
        undisturbed_until: Time,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        match self.state().queue_meter {
            None => self.take_in::<false, T>(packet, undisturbed_until, context),
            Some(_) => self.arrive_with_care(packet, undisturbed_until, context),
        }
    }

    /// The same where routes change or queues are metered. On its own: few runs do either.
    #[cold]
    #[inline(never)]
    pub(crate) fn arrive_with_care<T: Topology + Routing>(
        &mut self,
        packet: &Packet,
        undisturbed_until: Time,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        self.take_in::<true, T>(packet, undisturbed_until, context);
    }

    /// `CARE`: its queues may be metered.
    #[inline(always)]
    fn take_in<const CARE: bool, T: Topology + Routing>(
        &mut self,
        packet: &Packet,
        undisturbed_until: Time,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        let trimmed;
        let mut packet = packet;
        if !context.constants.has_credits {
            match self.state_mut().admit(packet, context) {
                Admission::Whole => {}
                Admission::Header(header) => {
                    trimmed = header;
                    packet = &trimmed;
                }
                Admission::Refused => return,
            }
        }
        let constants = context.constants;
        if CARE && let Some(meter) = &mut self.state_mut().queue_meter {
            meter.enter_input(constants.channels.number(packet.channel()), constants.space(packet));
        }
        if packet.is_multicast() {
            self.replicate(packet, context);
        } else {
            match self {
                Switch::InputQueued(switch) => switch.arrive(packet, undisturbed_until, context),
                Switch::VirtualOutputQueued(switch) => switch.arrive(packet, undisturbed_until, context),
                Switch::OutputQueued(switch) => switch.arrive(packet, context),
                Switch::Combined(switch) => switch.arrive_apart(packet, undisturbed_until, context),
            }
        }
        if CARE && let Some(meter) = &mut self.state_mut().queue_meter {
            meter.settle_input(constants.channels.number(packet.channel()));
        }
    }

    /// Arbitrates at a clock edge; packets and credits that leave go to the context's sink.
    #[inline]
    pub(crate) fn decide<T: Routing>(&mut self, context: &mut SwitchContext<'_, T, impl Sink>) {
        each!(self, switch => switch.decide(context));
        if !context.constants.has_credits {
            self.state_mut().resume_senders(context);
        }
    }

    /// Drops the packets in its input buffers for which `cause` names one: see [withdrawal]. Copies of
    /// packets for groups stay.
    #[cold]
    pub(crate) fn withdraw<T: Routing>(
        &mut self,
        cause: impl Fn(Channel, &Packet) -> Option<LossCause>,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        each!(self, switch => switch.withdraw(cause, context));
    }

    /// The switch with as many inputs as its ports are now. It must be empty.
    fn with_ports_again(self, constants: &Constants) -> Switch {
        match self {
            Switch::InputQueued(switch) => Switch::InputQueued(switch.with_ports_again(constants)),
            Switch::VirtualOutputQueued(switch) => {
                Switch::VirtualOutputQueued(switch.with_ports_again(constants))
            }
            Switch::Combined(mut switch) => {
                switch.state = switch.state.with_output_buffers();
                Switch::Combined(switch.with_ports_again(constants))
            }
            Switch::OutputQueued(switch) => {
                let arbiter = switch.state.arbiter_state(constants);
                Switch::OutputQueued(OutputQueued::new(switch.state, arbiter, constants.channels))
            }
        }
    }

    /// Packets that it holds.
    pub(crate) fn packets(&self) -> usize {
        each!(self, switch => switch.buffer.len())
    }

    /// Counts from now on how full its queues become at most, unless it does.
    pub(crate) fn meter_queues(&mut self, channels: ChannelNumbers) {
        if self.state().queue_meter.is_some() {
            return;
        }
        let mut meter = QueueMeter::new(channels.of_ports(self.state().ports.len()));
        for (channel, space) in self.occupancy(channels) {
            meter.enter_input(channels.number(channel), space);
        }
        if let Switch::OutputQueued(switch) = self {
            switch.begin_meter(&mut meter);
        }
        meter.restart();
        let state = self.state_mut();
        (state.queue_meter, state.takes_care) = (Some(Box::new(meter)), true);
    }

    /// The packets that wait at the head of a queue.
    pub(crate) fn blocked_heads(&self, channels: ChannelNumbers) -> Vec<BlockedHead> {
        let mut heads = each!(self, switch => switch.blocked_heads(channels));
        for head in heads.iter_mut().filter(|head| head.packet.is_multicast()) {
            head.buffer = self.buffer_of_copy(&head.packet).unwrap_or(head.buffer);
        }
        heads
    }

    /// The packets in its input buffers: the buffer, and the space that a packet takes in it.
    pub(crate) fn occupancy(&self, channels: ChannelNumbers) -> Vec<(Channel, u32)> {
        let mut spaces = each!(self, switch => switch.occupancy(channels));
        self.count_copied_spaces(&mut spaces);
        spaces
    }
}
