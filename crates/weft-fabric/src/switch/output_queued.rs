//! Queues at the outputs only: a crossbar with a speed-up of the number of ports.
//!
//! Whatever arrives moves to the queue of its output at the next clock edge, however many arrive for
//! one output at once; only lines are waited for. The textbook optimum, and the oracle in tests. With a
//! bounded output buffer a packet that finds it full waits in its input queue until it is its input's
//! turn (round robin). Each virtual channel has an output buffer of its own: in a common one the packets
//! of one channel would block another's, and close circles of waiting that the channels exist to break.

use super::pool::{Buffered, NONE, Pool, Queue};
use super::port::{Hop, Ports, Sink};
use super::rules::Rules;
use crate::arbiter::{next_from, round_robin};
use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use weft_topo::Routing;
use weft_units::Time;

/// An output's queues.
#[derive(Serialize, Deserialize)]
struct Output {
    /// Packets in them.
    packets: u32,
    /// The virtual channel that has priority.
    turn: u8,
}

/// An output-queued switch.
#[derive(Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct OutputQueued {
    pub(crate) ports: Ports,
    pub(crate) pool: Pool,
    /// Per input and virtual channel: what has arrived and not moved yet.
    arrived: Vec<Queue>,
    /// Per output and virtual channel a bit for each of them whose head wants to go there: `words` words.
    requests: Vec<u64>,
    words: u32,
    /// A bit for each output and virtual channel that is wanted.
    wanted: Vec<u64>,
    /// Per output and virtual channel: which of `arrived` moves there first.
    turns: Vec<u16>,
    /// Per output and virtual channel: what waits for the line.
    queues: Vec<Queue>,
    /// Bytes of packets in each of them.
    filled: Vec<u64>,
    outputs: Vec<Output>,
}

impl OutputQueued {
    pub(crate) fn new(ports: Ports, vc_shift: u32) -> OutputQueued {
        let outputs = ports.port.len();
        let channels = outputs << vc_shift;
        OutputQueued {
            arrived: vec![Queue::EMPTY; channels],
            requests: vec![0; channels * channels.div_ceil(64)],
            words: channels.div_ceil(64) as u32,
            wanted: vec![0; channels.div_ceil(64)],
            turns: vec![0; channels],
            queues: vec![Queue::EMPTY; channels],
            filled: vec![0; channels],
            outputs: (0..outputs).map(|_| Output { packets: 0, turn: 0 }).collect(),
            pool: Pool::new(),
            ports,
        }
    }

    /// See [`Switch::prefetch`](super::Switch::prefetch).
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.ports.prefetch();
        self.ports.prefetch_for_arbitration();
        self.pool.prefetch();
    }

    /// The head of a packet has come.
    pub(crate) fn arrive<T: Routing>(&mut self, packet: &Packet, now: Time, rules: &Rules<T>) {
        let (port, vc) = (usize::from(packet.port), packet.vc);
        let channel = port << rules.vc_shift | usize::from(vc);
        let handle = self.pool.insert(&Buffered::new(packet, now, rules.room(packet)));
        self.ports.route(self.pool.get_mut(handle), (port, vc), now, rules);
        if self.arrived[channel].append(&mut self.pool, handle) {
            self.request(channel, handle, rules);
        }
        self.ports.arbitrate_at_or_after(now, rules);
    }

    /// Moves what has arrived, then serves the lines, at the clock edge `now`.
    #[inline(never)]
    pub(crate) fn decide<T: Routing>(&mut self, now: Time, rules: &Rules<T>, sink: &mut impl Sink) {
        self.ports.decision = Time::MAX;
        self.move_arrivals(now, rules, sink);
        let mut wake = Time::MAX;
        let mut freed = false;
        for output in 0..self.outputs.len() {
            if self.outputs[output].packets == 0 {
                continue;
            }
            let ready = self.ports.port[output].output_ready;
            if ready > now {
                wake = wake.min(ready);
                continue;
            }
            self.ports.collect_credits(output, now, rules);
            match self.choose(output, now, rules) {
                Choice::Send(vc) => {
                    self.send(output, vc, now, rules, sink);
                    freed = true;
                    if self.outputs[output].packets > 0 {
                        wake = wake.min(self.ports.port[output].output_ready);
                    }
                }
                Choice::NotBefore(time) => {
                    wake = wake.min(rules.switch.clock.edge_at_or_after(time));
                }
                Choice::LacksCredit => {
                    self.ports.stall(output, now);
                    wake = wake.min(self.ports.next_credit(output, rules));
                }
            }
        }
        if freed && self.wanted.iter().any(|&word| word != 0) {
            wake = wake.min(rules.switch.clock.edge_after(now));
        }
        self.ports.decision = self.ports.decision.min(wake);
    }

    /// Enters the wish of a packet that has come to the head of its input queue.
    fn request<T>(&mut self, channel: usize, handle: u32, rules: &Rules<T>) {
        let packet = &self.pool.get(handle).packet;
        let to = usize::from(packet.port) << rules.vc_shift | usize::from(packet.vc);
        self.requests[to * self.words as usize + channel / 64] |= 1 << (channel % 64);
        self.wanted[to / 64] |= 1 << (to % 64);
    }

    /// Moves from the inputs all that the output buffers take. A packet may bring to the head of its
    /// queue one for an output that was looked at before, so that the outputs are gone through again.
    fn move_arrivals<T: Routing>(&mut self, now: Time, rules: &Rules<T>, sink: &mut impl Sink) {
        let mut moved = true;
        while moved {
            moved = false;
            let mut at = 0;
            while let Some(to) = next_from(&self.wanted, at) {
                at = to + 1;
                while self.move_next(to, now, rules, sink) {
                    moved = true;
                }
            }
        }
    }

    /// Moves a packet of the input whose turn it is to the output and virtual channel `to`, if it fits.
    fn move_next<T: Routing>(
        &mut self,
        to: usize,
        now: Time,
        rules: &Rules<T>,
        sink: &mut impl Sink,
    ) -> bool {
        let words = self.words as usize;
        let requests = &mut self.requests[to * words..(to + 1) * words];
        let Some(channel) = round_robin::choose(requests, self.turns[to].into(), |_| true) else {
            return false;
        };
        let bytes = rules.packet_bytes(&self.pool.get(self.arrived[channel].head).packet).get();
        let limit = rules.switch.output_buffer.map_or(u64::MAX, |bytes| bytes.get());
        if self.filled[to] + bytes > limit {
            return false;
        }
        requests[channel / 64] &= !(1 << (channel % 64));
        if requests.iter().all(|&word| word == 0) {
            self.wanted[to / 64] &= !(1 << (to % 64));
        }
        self.turns[to] = channel as u16 + 1;
        let moved = self.arrived[channel].pop(&mut self.pool);
        let next = self.arrived[channel].head;
        if next != NONE {
            self.request(channel, next, rules);
        }
        self.filled[to] += bytes;
        self.outputs[to >> rules.vc_shift].packets += 1;
        self.queues[to].append(&mut self.pool, moved);
        let buffered = self.pool.get(moved);
        let port = &self.ports.port[channel >> rules.vc_shift];
        let latency = rules.links[usize::from(port.class.0)].latency;
        let vc = (channel & ((1 << rules.vc_shift) - 1)) as u8;
        sink.credit(port.peer, vc, buffered.room, buffered.tail().max(now) + latency);
        true
    }

    /// The virtual channel of an output that is served next.
    fn choose<T>(&self, output: usize, now: Time, rules: &Rules<T>) -> Choice {
        let mut choice = Choice::LacksCredit;
        let turn = u32::from(self.outputs[output].turn);
        for step in 0..rules.vcs {
            let vc = (turn + step) % rules.vcs;
            let channel = output << rules.vc_shift | vc as usize;
            if self.queues[channel].head == NONE {
                continue;
            }
            let buffered = self.pool.get(self.queues[channel].head);
            if self.ports.credits[channel] < buffered.room {
                continue;
            }
            let not_before = self.ports.not_before(buffered, rules);
            if not_before <= now {
                return Choice::Send(vc as u8);
            }
            if !matches!(choice, Choice::NotBefore(earlier) if earlier <= not_before) {
                choice = Choice::NotBefore(not_before);
            }
        }
        choice
    }

    fn send<T: Routing>(&mut self, output: usize, vc: u8, now: Time, rules: &Rules<T>, sink: &mut impl Sink) {
        let channel = output << rules.vc_shift | usize::from(vc);
        let handle = self.queues[channel].pop(&mut self.pool);
        let buffered = self.pool.get(handle);
        self.filled[channel] -= rules.packet_bytes(&buffered.packet).get();
        self.outputs[output].packets -= 1;
        self.outputs[output].turn = ((u32::from(vc) + 1) % rules.vcs) as u8;
        // Its credit went back when it moved.
        self.ports.transmit(&Hop { now, output, input: None }, buffered, rules, sink);
        self.pool.remove(handle);
    }

    /// See [`Switch::occupancy`](super::Switch::occupancy).
    pub(crate) fn occupancy(&self, vc_shift: u32) -> Vec<(u16, u8, u32)> {
        let mut held = Vec::new();
        for (channel, queue) in self.arrived.iter().enumerate() {
            let mut handle = queue.head;
            while handle != NONE {
                let buffered = self.pool.get(handle);
                let vc = (channel & ((1 << vc_shift) - 1)) as u8;
                held.push(((channel >> vc_shift) as u16, vc, buffered.room));
                handle = buffered.next;
            }
        }
        held
    }

    /// See [`Switch::waiting`](super::Switch::waiting).
    pub(crate) fn waiting(&self, vc_shift: u32) -> Vec<(u16, u8, u16, u8, Packet)> {
        let entry = |(channel, queue): (usize, &Queue)| {
            let packet = self.pool.get(queue.head).packet;
            let vc = (channel & ((1 << vc_shift) - 1)) as u8;
            ((channel >> vc_shift) as u16, vc, packet.port, packet.vc, packet)
        };
        let holding = self.arrived.iter().enumerate().filter(|(_, queue)| queue.head != NONE);
        holding.map(entry).collect()
    }
}

enum Choice {
    Send(u8),
    NotBefore(Time),
    LacksCredit,
}
