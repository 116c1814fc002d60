//! Queues at the outputs only: a crossbar with a speed-up of the number of ports.
//!
//! Whatever arrives moves to the queue of its output at the next clock edge, however many arrive for
//! one output at once; only lines are waited for. The textbook optimum, and the oracle in tests. With a
//! bounded output buffer a packet that finds it full waits in its input queue until it is its input's
//! turn (round robin). Each virtual channel has an output buffer of its own: in a common one the packets
//! of one channel would block another's, and close circles of waiting that the channels exist to break.

use super::buffer::{BufferHandle, Buffered, PacketBuffer, PacketQueue};
use super::port::{BareOutputs, Crossing, SwitchState};
use super::{BlockedHead, QueueMeter, Sink, SwitchContext};
use crate::arbiter::{
    Age, ArbiterState, ArbiterUser, OutputRequests, Remembered, RequestGroups, RoundRobin, first_from,
    next_from,
};
use crate::channel::{Channel, ChannelNumbers};
use crate::constants::Constants;
use crate::credit::{Credit, TailOut};
use crate::fault::LossCause;
use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use weft_engine::Stream;
use weft_topo::Routing;
use weft_units::Time;

/// An output's queues.
#[derive(Serialize, Deserialize)]
struct Output {
    /// Packets in them.
    packets: u32,
    /// The virtual channel that has priority.
    pointer: u8,
}

/// An output-queued switch.
#[derive(Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct OutputQueued {
    pub(crate) state: SwitchState,
    pub(crate) buffer: PacketBuffer,
    /// Per input and virtual channel: what has arrived and not moved yet.
    arrived: Vec<PacketQueue>,
    /// Per output and virtual channel a bit for each of them whose head wants to go there: `words` words.
    requests: Vec<u64>,
    words: u32,
    /// A bit for each output and virtual channel that is wanted.
    wanted: Vec<u64>,
    /// Per output and virtual channel: which of `arrived` moves there first.
    pointers: Vec<u16>,
    /// Per output and virtual channel: what waits for the line.
    queues: Vec<PacketQueue>,
    /// Bytes of packets in each of them.
    filled: Vec<u64>,
    outputs: Vec<Output>,
    /// The memory of the lines' arbiters, where a turn is not enough.
    arbiter: Option<Box<ArbiterState>>,
}

impl OutputQueued {
    pub(crate) fn new(
        state: SwitchState,
        arbiter: Option<Box<ArbiterState>>,
        numbers: ChannelNumbers,
    ) -> OutputQueued {
        // Copies stand at replication ports, as packets do at inputs.
        let outputs = state.ports.len();
        let channels = numbers.of_ports(outputs);
        OutputQueued {
            arrived: vec![PacketQueue::EMPTY; channels],
            requests: vec![0; channels * channels.div_ceil(64)],
            words: channels.div_ceil(64) as u32,
            wanted: vec![0; channels.div_ceil(64)],
            pointers: vec![0; channels],
            queues: vec![PacketQueue::EMPTY; channels],
            filled: vec![0; channels],
            outputs: (0..outputs).map(|_| Output { packets: 0, pointer: 0 }).collect(),
            buffer: PacketBuffer::new(),
            arbiter,
            state,
        }
    }

    /// See [`Switch::prefetch`](super::Switch::prefetch).
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.state.prefetch();
        self.state.prefetch_for_arbitration();
        self.buffer.prefetch();
    }

    /// The head of a packet has come.
    pub(crate) fn arrive<T: Routing, S>(&mut self, packet: &Packet, context: &mut SwitchContext<'_, T, S>) {
        let SwitchContext { now, constants, .. } = *context;
        let from = packet.channel();
        let channel = constants.channels.number(from);
        let handle = self.buffer.insert(&Buffered::new(packet, now, constants.space(packet)));
        self.state.route(self.buffer.get_mut(handle), from, context);
        if self.arrived[channel].append(&mut self.buffer, handle) {
            self.request(channel, handle, constants);
        }
        self.state.arbitrate_at_or_after(now, constants);
    }

    /// Queues a copy at a replication port.
    pub(super) fn queue_copy<T, S>(
        &mut self,
        through: Channel,
        copy: &Buffered,
        context: &SwitchContext<'_, T, S>,
    ) {
        let SwitchContext { now, constants, .. } = *context;
        let channel = constants.channels.number(through);
        let handle = self.buffer.insert(copy);
        if self.arrived[channel].append(&mut self.buffer, handle) {
            self.request(channel, handle, constants);
        }
        self.state.arbitrate_at_or_after(now, constants);
    }

    /// Moves what has arrived, then serves the lines, at the present clock edge.
    #[inline(never)]
    pub(crate) fn decide<T: Routing>(&mut self, context: &mut SwitchContext<'_, T, impl Sink>) {
        let SwitchContext { now, constants, .. } = *context;
        self.state.decision = Time::NEVER;
        self.move_arrivals(context);
        let mut wake = Time::NEVER;
        let mut freed = false;
        for output in 0..self.outputs.len() {
            if self.outputs[output].packets == 0 {
                continue;
            }
            let ready = self.state.ports[output].output_ready;
            if ready > now {
                wake = wake.min(ready);
                continue;
            }
            self.state.collect_credits(output, now, constants);
            let choice =
                constants.switch.arbiter.lend_to(LineChoice { switch: self, output, now, constants });
            match choice {
                OutputChoice::Send(vc) => {
                    self.send(output, vc, context);
                    freed = true;
                    if self.outputs[output].packets > 0 {
                        wake = wake.min(self.state.ports[output].output_ready);
                    }
                }
                OutputChoice::NotBefore(time) => {
                    wake = wake.min(constants.switch.clock.edge_at_or_after(time));
                }
                OutputChoice::LacksCredit => {
                    self.state.stall(output, now);
                    wake = wake.min(self.state.next_credit(output, constants));
                }
            }
        }
        if freed && self.wanted.iter().any(|&word| word != 0) {
            wake = wake.min(constants.switch.clock.edge_after(now));
        }
        self.state.decision = self.state.decision.min(wake);
    }

    /// Enters the request of a packet that has come to the head of its input queue.
    fn request(&mut self, channel: usize, handle: BufferHandle, constants: &Constants) {
        let to = constants.channels.number(self.buffer.get(handle).packet.channel());
        self.requests[to * self.words as usize + channel / 64] |= 1 << (channel % 64);
        self.wanted[to / 64] |= 1 << (to % 64);
    }

    /// See [`Switch::withdraw`](super::Switch::withdraw). A packet that has moved to an output waits for
    /// nothing but its own link, and stays.
    pub(super) fn withdraw<T: Routing>(
        &mut self,
        cause: impl Fn(Channel, &Packet) -> Option<LossCause>,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        let SwitchContext { now, constants, .. } = *context;
        for channel in 0..constants.channels.of_ports(self.state.links()) {
            let (from, head) = (constants.channels.channel(channel), self.arrived[channel].head);
            let leaves = |packet: &Packet| cause(from, packet).is_some();
            let withdrawn = self.arrived[channel].take_out(&mut self.buffer, leaves);
            if withdrawn.first() == Some(&head) {
                let to = constants.channels.number(self.buffer.get(head).packet.channel());
                let words = self.words as usize;
                let requests = &mut self.requests[to * words..(to + 1) * words];
                requests[channel / 64] &= !(1 << (channel % 64));
                if requests.iter().all(|&word| word == 0) {
                    self.wanted[to / 64] &= !(1 << (to % 64));
                }
                let next = self.arrived[channel].head;
                if !next.is_none() {
                    self.request(channel, next, constants);
                    self.state.arbitrate_at_or_after(now, constants);
                }
            }
            for handle in withdrawn {
                let buffered = self.buffer.get(handle);
                self.state.give_up(buffered.packet.channel().port, &buffered.packet, constants);
                self.state.withdraw((from, buffered), cause(from, &buffered.packet), context);
                self.buffer.remove(handle);
            }
        }
    }

    /// Moves from the inputs all that the output buffers take. A packet may bring to the head of its
    /// queue one for an output that was looked at before, so that the outputs are gone through again.
    fn move_arrivals<T: Routing>(&mut self, context: &mut SwitchContext<'_, T, impl Sink>) {
        let mut moved = true;
        while moved {
            moved = false;
            let mut at = 0;
            while let Some(to) = next_from(&self.wanted, at) {
                at = to + 1;
                while self.move_next(to, context) {
                    moved = true;
                }
            }
        }
    }

    /// Moves a packet of the input that is next in turn to the output and virtual channel `to`, if it fits.
    fn move_next<T: Routing>(&mut self, to: usize, context: &mut SwitchContext<'_, T, impl Sink>) -> bool {
        let SwitchContext { now, constants, .. } = *context;
        let words = self.words as usize;
        let requests = &mut self.requests[to * words..(to + 1) * words];
        let pointer = usize::from(self.pointers[to]);
        let chosen = match constants.keeps_ages() {
            true => Age::oldest(requests, pointer, |channel| {
                let buffered = self.buffer.get(self.arrived[channel].head);
                Some(buffered.packet.age.exact_after(now.saturating_since(buffered.head)))
            }),
            false => first_from(requests, pointer, |_| true),
        };
        let Some(channel) = chosen else { return false };
        let bytes = constants.packet_bytes(&self.buffer.get(self.arrived[channel].head).packet).get();
        let limit = constants.switch.output_buffer.map_or(u64::MAX, |bytes| bytes.get());
        if self.filled[to] + bytes > limit {
            return false;
        }
        requests[channel / 64] &= !(1 << (channel % 64));
        if requests.iter().all(|&word| word == 0) {
            self.wanted[to / 64] &= !(1 << (to % 64));
        }
        self.pointers[to] = channel as u16 + 1;
        let moved = self.arrived[channel].pop(&mut self.buffer);
        let next = self.arrived[channel].head;
        if !next.is_none() {
            self.request(channel, next, constants);
        }
        self.filled[to] += bytes;
        self.outputs[constants.channels.port(to)].packets += 1;
        if let Some(meter) = &mut self.state.queue_meter {
            meter.enter_output(to, bytes);
        }
        self.queues[to].append(&mut self.buffer, moved);
        let buffered = self.buffer.get(moved);
        let tail = buffered.tail().max(now);
        if buffered.packet.is_multicast() {
            let tail = TailOut { granted: now, left: tail };
            self.state.release_copy(&buffered.packet, tail, constants, context.sink);
            return true;
        }
        let from = constants.channels.channel(channel);
        let space = buffered.space;
        if constants.has_credits {
            let credit = Credit { channel: from, amount: space };
            self.state.give_back(credit, TailOut { granted: now, left: tail }, constants, context.sink);
        } else {
            self.state.expect_departure(from, space, tail, constants);
        }
        true
    }

    /// The virtual channel of an output that is served next.
    // For each arbiter on its own: together they would share the registers of one.
    #[inline(never)]
    fn choose<A: Remembered>(&mut self, output: usize, now: Time, constants: &Constants) -> OutputChoice {
        let mut arbiter = if A::MEMORYLESS.is_none() { self.arbiter.take() } else { None };
        let is_filled = |&vc: &usize| !self.queues[constants.channels.at(output, vc as u8)].is_empty();
        let filled = [(0..constants.vcs as usize).filter(is_filled).fold(0, |bits, vc| bits | 1 << vc)];
        let (choice, random) = (OutputChoice::LacksCredit, None);
        let mut requests =
            LineRequests { switch: self, constants, now, output, filled: &filled, choice, random };
        let chosen = A::lend(&mut arbiter, |arbiter| arbiter.choose(output, &mut requests));
        let LineRequests { choice, random, .. } = requests;
        if A::MEMORYLESS.is_none() {
            self.arbiter = arbiter;
        }
        if let Some(random) = random {
            self.state.rng = random;
        }
        chosen.map_or(choice, |vc| OutputChoice::Send(vc as u8))
    }

    /// Sends the first packet of a virtual channel of an output.
    fn send<T: Routing>(&mut self, output: usize, vc: u8, context: &mut SwitchContext<'_, T, impl Sink>) {
        let SwitchContext { now, constants, .. } = *context;
        let channel = constants.channels.at(output, vc);
        let handle = self.queues[channel].pop(&mut self.buffer);
        let buffered = self.buffer.get(handle);
        let bytes = constants.packet_bytes(&buffered.packet).get();
        self.filled[channel] -= bytes;
        if let Some(meter) = &mut self.state.queue_meter {
            meter.leave_output(channel, bytes);
        }
        self.outputs[output].packets -= 1;
        self.outputs[output].pointer = ((u32::from(vc) + 1) % constants.vcs) as u8;
        // Its credit went back when it moved.
        let crossing = Crossing { edge: now, output, input: None };
        self.state.transmit::<BareOutputs, _, _>(&crossing, buffered, context);
        self.buffer.remove(handle);
    }

    /// See [`Switch::occupancy`](super::Switch::occupancy).
    pub(crate) fn occupancy(&self, channels: ChannelNumbers) -> Vec<(Channel, u32)> {
        let held = self.arrived.iter().enumerate().flat_map(|(channel, queue)| {
            queue.packets(&self.buffer).map(move |buffered| (channels.channel(channel), buffered.space))
        });
        held.collect()
    }

    /// The packets that wait for their lines: the output and virtual channel that they leave by.
    pub(crate) fn at_outputs(&self, channels: ChannelNumbers) -> impl Iterator<Item = (Channel, Packet)> {
        self.queues.iter().enumerate().flat_map(move |(channel, queue)| {
            let packets = queue.packets(&self.buffer);
            packets.map(move |buffered| (channels.channel(channel), buffered.packet))
        })
    }

    /// The queues of the outputs, as a meter of them begins.
    pub(super) fn begin_meter(&self, meter: &mut QueueMeter) {
        for (channel, queue) in self.queues.iter().enumerate() {
            let packets = queue.packets(&self.buffer).count() as u32;
            meter.begin_output(channel, packets, self.filled[channel]);
        }
    }

    /// See [`Switch::blocked_heads`](super::Switch::blocked_heads).
    pub(crate) fn blocked_heads(&self, channels: ChannelNumbers) -> Vec<BlockedHead> {
        let head = |(channel, queue): (usize, &PacketQueue)| {
            let packet = self.buffer.get(queue.head).packet;
            BlockedHead { buffer: channels.channel(channel), wants: packet.channel(), packet }
        };
        self.arrived.iter().enumerate().filter(|(_, queue)| !queue.is_empty()).map(head).collect()
    }
}

/// An output that chooses, whatever the arbiter.
struct LineChoice<'a> {
    switch: &'a mut OutputQueued,
    output: usize,
    now: Time,
    constants: &'a Constants,
}

impl ArbiterUser for LineChoice<'_> {
    type Output = OutputChoice;

    #[inline(always)]
    fn with<A: Remembered>(self) -> OutputChoice {
        let LineChoice { switch, output, now, constants } = self;
        match const { A::PROPERTIES.serves_lines } {
            true => switch.choose::<A>(output, now, constants),
            false => switch.choose::<RoundRobin>(output, now, constants),
        }
    }
}

/// The packets that wait for a line, as its arbiter sees them: the numbers of requests are those of virtual
/// channels. The turn is taken as the packet is sent.
struct LineRequests<'a> {
    switch: &'a OutputQueued,
    constants: &'a Constants,
    now: Time,
    output: usize,
    /// A bit for each channel that has packets.
    filled: &'a [u64],
    /// The finding about those that cannot go.
    choice: OutputChoice,
    /// The random numbers of the switch after those that are drawn, if some are.
    random: Option<Stream>,
}

impl LineRequests<'_> {
    /// The first packet of a channel.
    #[inline(always)]
    fn head(&self, vc: usize) -> &Buffered {
        let channel = self.constants.channels.at(self.output, vc as u8);
        self.switch.buffer.get(self.switch.queues[channel].head)
    }
}

impl<'a> OutputRequests<'a> for LineRequests<'a> {
    #[inline(always)]
    fn all(&self) -> &'a [u64] {
        self.filled
    }

    #[inline(always)]
    fn groups(&self) -> &'a RequestGroups {
        &self.constants.groups
    }

    #[inline(always)]
    fn can_go(&mut self, vc: usize) -> bool {
        let credits = &self.switch.state.credits[self.constants.channels.at(self.output, vc as u8)];
        let buffered = self.head(vc);
        if !credits.cover(buffered.space) {
            return false;
        }
        let not_before = self.switch.state.not_before(buffered, self.constants);
        if not_before > self.now
            && !matches!(self.choice, OutputChoice::NotBefore(earlier) if earlier <= not_before)
        {
            self.choice = OutputChoice::NotBefore(not_before);
        }
        not_before <= self.now
    }

    fn age(&self, vc: usize) -> u64 {
        let buffered = self.head(vc);
        buffered.packet.age.exact_after(self.now.saturating_since(buffered.head))
    }

    fn bytes(&self, vc: usize) -> u64 {
        self.constants.packet_bytes(&self.head(vc).packet).get()
    }

    #[inline(always)]
    fn turn(&self) -> usize {
        self.switch.outputs[self.output].pointer.into()
    }

    #[inline(always)]
    fn take_turn(&mut self, _: usize) {}

    fn random(&mut self) -> &mut Stream {
        self.random.get_or_insert(self.switch.state.rng)
    }
}

/// The outcome of a look at an output's queues.
enum OutputChoice {
    /// The first packet of this virtual channel goes.
    Send(u8),
    /// None goes before this time.
    NotBefore(Time),
    /// None goes before a credit returns.
    LacksCredit,
}
