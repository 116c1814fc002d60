//! Queues at the outputs only: a crossbar with a speed-up of the number of ports.
//!
//! Whatever arrives moves to the queue of its output at the next clock edge, however many arrive for
//! one output at once; only lines are waited for. The textbook optimum, and the oracle in tests. With a
//! bounded output buffer a packet that finds it full waits in its input queue. Each virtual channel has
//! an output buffer of its own: in a common one the packets of one channel would block another's, and
//! close circles of waiting that the channels exist to break.

use super::pool::{NONE, Pool, Queue};
use super::port::{Hop, Ports, Rules, Sink};
use crate::arbiter::next_from;
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
pub(crate) struct OutputQueued {
    pub(crate) ports: Ports,
    pub(crate) pool: Pool,
    /// Per input and virtual channel: what has arrived and not moved yet.
    arrived: Vec<Queue>,
    /// A bit for each of them that holds something.
    arrivals: Vec<u64>,
    /// Per output and virtual channel: what waits for the line.
    queues: Vec<Queue>,
    /// Bytes of packets in each of them.
    filled: Vec<u64>,
    outputs: Vec<Output>,
    /// The input that moves first in the next arbitration, so that none is favoured.
    first: u32,
}

impl OutputQueued {
    pub(crate) fn new(ports: Ports, vc_shift: u32) -> OutputQueued {
        let outputs = ports.outputs.len();
        let channels = outputs << vc_shift;
        OutputQueued {
            arrived: vec![Queue::EMPTY; channels],
            arrivals: vec![0; channels.div_ceil(64)],
            queues: vec![Queue::EMPTY; channels],
            filled: vec![0; channels],
            outputs: (0..outputs).map(|_| Output { packets: 0, turn: 0 }).collect(),
            first: 0,
            pool: Pool::new(),
            ports,
        }
    }

    /// The head of a packet has come.
    pub(crate) fn arrive<T: Routing>(&mut self, packet: Packet, now: Time, rules: &Rules<T>) {
        let (port, vc) = (usize::from(packet.port), packet.vc);
        let channel = port << rules.vc_shift | usize::from(vc);
        let handle = self.pool.insert(packet, now, rules.room(&packet));
        self.ports.route(self.pool.get_mut(handle), (port, vc), now, rules);
        self.arrived[channel].push(&mut self.pool, handle);
        self.arrivals[channel / 64] |= 1 << (channel % 64);
        self.ports.arbitrate_at_or_after(now, rules);
    }

    /// Moves what has arrived, then serves the lines, at the clock edge `now`.
    pub(crate) fn decide<T: Routing>(&mut self, now: Time, rules: &Rules<T>, sink: &mut impl Sink) {
        self.ports.decision = Time::MAX;
        self.move_arrivals(now, rules, sink);
        let mut wake = Time::MAX;
        let mut freed = false;
        for output in 0..self.outputs.len() {
            if self.outputs[output].packets == 0 {
                continue;
            }
            let ready = self.ports.output_ready[output];
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
                        wake = wake.min(self.ports.output_ready[output]);
                    }
                }
                Choice::NotBefore(time) => {
                    wake = wake.min(rules.switch.clock.edge_at_or_after(time));
                }
                Choice::LacksCredit => {
                    let since = &mut self.ports.outputs[output].stalled_since;
                    *since = (*since).min(now);
                    wake = wake.min(self.ports.next_credit(output, rules));
                }
            }
        }
        if freed && self.arrivals.iter().any(|&word| word != 0) {
            wake = wake.min(rules.switch.clock.edge_after(now));
        }
        self.ports.decision = self.ports.decision.min(wake);
    }

    /// Moves from the inputs all that the output buffers take, beginning with another input each time.
    fn move_arrivals<T: Routing>(&mut self, now: Time, rules: &Rules<T>, sink: &mut impl Sink) {
        let channels = self.arrived.len();
        let first = (self.first as usize) << rules.vc_shift;
        self.first = if self.first as usize + 1 == self.outputs.len() { 0 } else { self.first + 1 };
        let limit = rules.switch.output_buffer.map_or(u64::MAX, |bytes| bytes.get());
        for (from, to) in [(first, channels), (0, first)] {
            let mut at = from;
            while let Some(channel) = next_from(&self.arrivals, at).filter(|&channel| channel < to) {
                at = channel + 1;
                while self.arrived[channel].head != NONE {
                    let waiting = self.pool.get(self.arrived[channel].head);
                    let bytes = rules.packet_bytes(&waiting.packet).get();
                    let output = usize::from(waiting.packet.port);
                    let out_channel = output << rules.vc_shift | usize::from(waiting.packet.vc);
                    if self.filled[out_channel] + bytes > limit {
                        break;
                    }
                    let buffered = self.arrived[channel].pop(&mut self.pool);
                    self.filled[out_channel] += bytes;
                    self.outputs[output].packets += 1;
                    let moved = self.pool.insert(buffered.packet, buffered.head, buffered.room);
                    self.queues[out_channel].push(&mut self.pool, moved);
                    let port = &self.ports.outputs[channel >> rules.vc_shift];
                    let latency = rules.links[usize::from(port.class.0)].latency;
                    let vc = (channel & ((1 << rules.vc_shift) - 1)) as u8;
                    sink.credit(port.peer, vc, buffered.room, buffered.tail().max(now) + latency);
                }
                if self.arrived[channel].head == NONE {
                    self.arrivals[channel / 64] &= !(1 << (channel % 64));
                }
            }
        }
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
        let buffered = self.queues[channel].pop(&mut self.pool);
        self.filled[channel] -= rules.packet_bytes(&buffered.packet).get();
        self.outputs[output].packets -= 1;
        self.outputs[output].turn = ((u32::from(vc) + 1) % rules.vcs) as u8;
        // Its credit went back when it moved.
        self.ports.transmit(&Hop { now, output, input: None }, buffered, rules, sink);
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
