//! Occupancy: how full the input buffers of a switch are, as the switch itself counts it under pause and
//! drop.
//!
//! ```text
//!   head arrives ─► held + space ≤ buffer? ──no──► lost, counted; or trimmed: the header tries the same
//!                        │ yes                                     XOFF ─► pause frame
//!                        ▼                                           ▲
//!                 held grows ────────────────────────────────────────┘
//!   granted ─► tail leaves the buffer at a known time: Departure ─► held shrinks ─► XON ─► pause frame
//! ```
//! The time at which a packet leaves is known when it is granted its output. Departures stand in a heap. They
//! are worked off when a packet arrives and at decisions. Under credits there are none: the sender counts.

use super::port::SwitchState;
use super::{Sink, SwitchContext};
use crate::arbiter::next_from;
use crate::channel::Channel;
use crate::constants::Constants;
use crate::credit::Credits;
use crate::packet::Packet;
use crate::parameters::FlowControl;
use crate::pause::{PAUSE_FRAME, Pause, Paused};
use crate::switch::Peer;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weft_units::{PacketCounts, Span, Time};

/// The occupancy of one input buffer, in units of credit.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct BufferOccupancy {
    held: u32,
    /// The most that it has held since the counters were last reset.
    most: u32,
    /// Packets that found no space since then.
    lost: u64,
    /// Packets that found no space before.
    lost_before: u64,
    /// Packets of which only the header found space, since the counters were last reset.
    trimmed: u64,
}

/// The answer of a buffer to a packet whose head comes.
pub(super) enum Admission {
    /// It is taken.
    Whole,
    /// The header is taken, perhaps into another buffer.
    Header(Packet),
    /// It is lost.
    Refused,
}

/// A packet that leaves its input buffer at a time that is known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct BufferDeparture {
    time: Time,
    /// Number of the channel whose buffer it leaves.
    channel: u32,
    space: u32,
}

/// Departures in a snapshot: sorted, because their order in memory depends on which packets passed.
mod in_order {
    use super::{BinaryHeap, BufferDeparture, Reverse};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        departures: &BinaryHeap<Reverse<BufferDeparture>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        departures.clone().into_sorted_vec().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BinaryHeap<Reverse<BufferDeparture>>, D::Error> {
        Vec::deserialize(deserializer).map(BinaryHeap::from)
    }
}

/// The occupancy of the input buffers of a switch, and the pauses of its outputs.
#[derive(Serialize, Deserialize)]
pub(crate) struct InputOccupancy {
    /// By number of the input's channel.
    inputs: Box<[BufferOccupancy]>,
    #[serde(with = "in_order")]
    departures: BinaryHeap<Reverse<BufferDeparture>>,
    /// A bit for each input channel whose sender has been asked to pause, by number.
    asked: Box<[u64]>,
    /// Those channels.
    asking: u32,
    /// The edge at which they are to be looked at.
    look_at: Time,
    /// By output.
    paused: Box<[Paused]>,
    /// Pause frames that each output's line has carried since the counters were last reset.
    frames: Box<[u64]>,
}

/// A switch's input buffer at a port, counted since the counters were last reset.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Filled {
    /// The most that one of its channels has held, in units of credit.
    pub(crate) most: u32,
    /// Packets that found no space.
    lost: u64,
    /// Packets of which only the header found space.
    trimmed: u64,
}

impl Filled {
    /// The part that it has in the counts of the link that leads to it.
    pub(crate) fn counts(self) -> PacketCounts {
        PacketCounts { full: self.lost, trimmed: self.trimmed, ..PacketCounts::default() }
    }
}

impl InputOccupancy {
    /// Empty buffers of so many ports, with so many numbers of channels.
    pub(crate) fn new(ports: usize, channels: usize) -> InputOccupancy {
        InputOccupancy {
            inputs: vec![BufferOccupancy::default(); channels].into(),
            departures: BinaryHeap::new(),
            asked: vec![0; channels.div_ceil(64)].into(),
            asking: 0,
            look_at: Time::NEVER,
            paused: vec![Paused::default(); ports].into(),
            frames: vec![0; ports].into(),
        }
    }

    /// Takes off what has left by `now`.
    pub(crate) fn work_off(&mut self, now: Time) {
        while let Some(Reverse(departure)) = self.departures.peek()
            && departure.time <= now
        {
            self.inputs[departure.channel as usize].held -= departure.space;
            self.departures.pop();
        }
    }

    /// The edge at which the senders that pause are to be looked at.
    pub(super) fn look_at(&self) -> Time {
        self.look_at
    }

    fn first_departure(&self) -> Time {
        self.departures.peek().map_or(Time::NEVER, |Reverse(departure)| departure.time)
    }

    /// Packets that found no space since the run began.
    pub(crate) fn lost(&self) -> u64 {
        self.inputs.iter().map(|buffer| buffer.lost + buffer.lost_before).sum()
    }

    /// The first channel, by number, whose buffer has lost a packet since the run began, and how many it has.
    pub(crate) fn first_loss(&self) -> Option<(usize, u64)> {
        let lost = self.inputs.iter().map(|buffer| buffer.lost + buffer.lost_before);
        lost.enumerate().find(|(_, lost)| *lost > 0)
    }

    /// The buffer of a port, whose channels have these numbers.
    pub(crate) fn filled(&self, channels: std::ops::Range<usize>) -> Filled {
        self.inputs[channels].iter().fold(Filled::default(), |filled, buffer| Filled {
            most: filled.most.max(buffer.most),
            lost: filled.lost + buffer.lost,
            trimmed: filled.trimmed + buffer.trimmed,
        })
    }

    /// Space that each channel holds, by number, and what of it is about to leave.
    pub(crate) fn held(&self) -> Vec<(u32, u32)> {
        let mut held: Vec<(u32, u32)> = self.inputs.iter().map(|buffer| (buffer.held, 0)).collect();
        for Reverse(departure) in &self.departures {
            held[departure.channel as usize].1 += departure.space;
        }
        held
    }

    /// The pauses of an output.
    pub(crate) fn paused(&self, output: usize) -> &Paused {
        &self.paused[output]
    }

    /// Pause frames that the line of an output has carried.
    pub(crate) fn frames(&self, output: usize) -> u64 {
        self.frames[output]
    }

    /// Sets all counters to zero. A pause that holds then counts from `now`.
    pub(crate) fn reset_counters(&mut self, now: Time) {
        self.work_off(now);
        for buffer in &mut self.inputs {
            let BufferOccupancy { held, lost, lost_before, .. } = *buffer;
            *buffer =
                BufferOccupancy { held, most: held, lost: 0, lost_before: lost_before + lost, trimmed: 0 };
        }
        self.paused.iter_mut().for_each(|paused| paused.reset(now));
        self.frames.fill(0);
    }

    /// Finds space that no packet takes, for the tests of checks.
    #[cfg(test)]
    pub(crate) fn forge(&mut self) {
        self.inputs[0].held += 1;
    }
}

impl SwitchState {
    /// The head of a packet has come: takes it, or its header, into the input buffer, or counts it as lost.
    /// The sender is asked to pause where the buffer fills.
    #[inline(never)]
    pub(super) fn admit<T>(
        &mut self,
        packet: &Packet,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) -> Admission {
        let SwitchContext { now, constants, .. } = *context;
        let Some(occupancy) = &mut self.occupancy else { return Admission::Whole };
        occupancy.work_off(now);
        let from = packet.channel();
        let (number, space) = (constants.channels.number(from), constants.space(packet));
        let buffer = &mut occupancy.inputs[number];
        if buffer.held + space > constants.buffer(from.vc) {
            return self.trim(packet, constants).map_or(Admission::Refused, Admission::Header);
        }
        buffer.held += space;
        buffer.most = buffer.most.max(buffer.held);
        let class = self.ports[usize::from(from.port)].class;
        let word = &mut occupancy.asked[number / 64];
        let is_asked = *word >> (number % 64) & 1 == 1;
        if !is_asked
            && constants.thresholds(class, from.vc).is_some_and(|thresholds| buffer.held > thresholds.xoff)
        {
            *word |= 1 << (number % 64);
            occupancy.asking += 1;
            let first = occupancy.first_departure();
            self.send_pause(from, true, context);
            self.look_at_senders(first, constants);
        }
        Admission::Whole
    }

    /// A packet has found no space. Takes its header, where switches trim and that finds space.
    #[cold]
    fn trim(&mut self, packet: &Packet, constants: &Constants) -> Option<Packet> {
        let channel = packet.channel();
        let SwitchState { occupancy, ports, .. } = self;
        let occupancy = occupancy.as_deref_mut()?;
        let header = constants.congestion.as_ref().and_then(|control| control.trim(packet, constants));
        let found = header.and_then(|mut header| {
            let buffer = &mut occupancy.inputs[constants.channels.number(header.channel())];
            let held = buffer.held + constants.space(&header);
            if held > constants.buffer(header.channel().vc) {
                return None;
            }
            (buffer.held, buffer.most) = (held, buffer.most.max(held));
            // What has been cut off no longer comes behind it.
            let link = constants.link(ports[usize::from(channel.port)].class);
            let span = link.longest(constants.packet_bytes(&header)).as_ps();
            header.serialization = header.serialization.min(u32::try_from(span).unwrap_or(u32::MAX));
            Some(header)
        });
        let buffer = &mut occupancy.inputs[constants.channels.number(channel)];
        match found {
            Some(_) => buffer.trimmed += 1,
            None => buffer.lost += 1,
        }
        found
    }

    /// The space of a granted packet will be free at `time` in the buffer that it came by.
    #[inline(never)]
    pub(crate) fn expect_departure(&mut self, from: Channel, space: u32, time: Time, constants: &Constants) {
        let Some(occupancy) = &mut self.occupancy else { return };
        let channel = constants.channels.number(from) as u32;
        if let Some(meter) = &mut self.queue_meter {
            meter.leave_input(channel as usize, space);
        }
        occupancy.departures.push(Reverse(BufferDeparture { time, channel, space }));
        if occupancy.asking > 0 {
            self.look_at_senders(time, constants);
        }
    }

    /// Makes sure that the senders that pause are looked at by the first edge from `time` on.
    fn look_at_senders(&mut self, time: Time, constants: &Constants) {
        if let Some(occupancy) = &mut self.occupancy
            && time < occupancy.look_at
        {
            occupancy.look_at = occupancy.look_at.min(constants.switch.clock.edge_at_or_after(time));
            self.decision = self.decision.min(occupancy.look_at);
        }
    }

    /// Lets senders go on whose buffers have emptied by the present clock edge.
    #[inline(never)]
    pub(crate) fn resume_senders<T>(&mut self, context: &mut SwitchContext<'_, T, impl Sink>) {
        let SwitchContext { now, constants, .. } = *context;
        let Some(occupancy) = &mut self.occupancy else { return };
        occupancy.look_at = Time::NEVER;
        if occupancy.asking == 0 {
            return;
        }
        occupancy.work_off(now);
        let mut at = 0;
        while let Some(occupancy) = &mut self.occupancy
            && let Some(number) = next_from(&occupancy.asked, at)
        {
            at = number + 1;
            let from = constants.channels.channel(number);
            let class = self.ports[usize::from(from.port)].class;
            let xon = constants.thresholds(class, from.vc).map_or(0, |thresholds| thresholds.xon);
            if occupancy.inputs[number].held <= xon {
                occupancy.asked[number / 64] &= !(1 << (number % 64));
                occupancy.asking -= 1;
                self.send_pause(from, false, context);
            }
        }
        if let Some(occupancy) = &self.occupancy
            && occupancy.asking > 0
        {
            let first = occupancy.first_departure();
            self.look_at_senders(first, constants);
        }
    }

    /// Sends a pause frame to where the packets of a channel come from.
    fn send_pause<T>(
        &mut self,
        channel: Channel,
        stops: bool,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        let SwitchContext { now, constants, .. } = *context;
        let FlowControl::Pause(pause) = &constants.switch.flow_control else { return };
        let Channel { port, vc } = channel;
        let output = &mut self.ports[usize::from(port)];
        let link = constants.link(output.class);
        let frame = PAUSE_FRAME + link.framing;
        let ended = match self.layers.get_mut(usize::from(port)) {
            Some(layer) => layer.carry_frame(&link.rate, &mut output.line, frame, now),
            None => output.line.send(&link.rate, now, frame),
        };
        let response = match output.peer {
            Peer::Switch { .. } => constants.pause_known_after(pause),
            Peer::Endpoint(_) | Peer::Nothing => pause.response,
        };
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.frames[usize::from(port)] += 1;
        }
        context.sink.pause(output.peer, (vc, stops), ended + link.latency + response);
    }

    /// A pause frame takes effect on one of the outputs.
    #[cold]
    pub(crate) fn on_pause(&mut self, pause: Pause, now: Time, constants: &Constants) {
        let Pause { channel, stops } = pause;
        let output = usize::from(channel.port);
        self.credits[constants.channels.number(channel)] =
            if stops { Credits::PAUSED } else { Credits::UNLIMITED };
        if let Some(occupancy) = &mut self.occupancy {
            occupancy.paused[output].on_pause(stops, now);
        }
        if !stops {
            let edge = constants.switch.clock.edge_at_or_after(now).max(self.ports[output].output_ready);
            self.look_no_later_than(output, edge);
        }
    }

    /// Time during which a channel of an output was paused, and the frames that it has obeyed and carried.
    pub(crate) fn pauses(&self, output: usize, now: Time) -> (Span, u64, u64) {
        let of = |occupancy: &InputOccupancy| {
            let paused = occupancy.paused(output);
            (paused.total(now), paused.frames(), occupancy.frames(output))
        };
        self.occupancy.as_deref().map_or((Span::ZERO, 0, 0), of)
    }
}
