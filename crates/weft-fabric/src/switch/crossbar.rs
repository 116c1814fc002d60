//! A switch with buffers at its inputs and a crossbar without speed-up: each input reads one packet at
//! a time, each output takes one at a time.

use super::pool::{NONE, Pool, Queue};
use super::port::{Hop, Ports, Rules, Sink};
use crate::arbiter::islip::Islip;
use crate::arbiter::{random, round_robin};
use crate::packet::Packet;
use crate::parameters::ArbiterKind;
use serde::{Deserialize, Serialize};
use weft_engine::prefetch;
use weft_topo::Routing;
use weft_units::Time;

/// How the input buffers are organized. A request is `input port << vc_shift | virtual channel`.
pub(crate) trait InputBuffers {
    /// Whether a packet's output is chosen when it arrives, or when it comes to the head of its queue.
    const ROUTES_ON_ARRIVAL: bool;
    fn new(requests: usize, outputs: usize) -> Self;
    /// The queue of packets of `request` that can go to `output`.
    fn queue_mut(&mut self, request: usize, output: usize) -> &mut Queue;
    /// The same, to be looked at.
    fn queue(&self, request: usize, output: usize) -> &Queue;
    /// (request, handle) of the head of every queue that is not empty.
    fn heads(&self) -> Vec<(usize, u32)>;
    /// Asks for the memory of queues, where most of it will be touched.
    fn prefetch(&self);
}

/// An input-buffered switch.
#[derive(Serialize, Deserialize)]
pub(crate) struct Crossbar<B> {
    pub(crate) ports: Ports,
    pub(crate) pool: Pool,
    buffers: B,
    arbiter: ArbiterKind,
    islip: Option<Box<Islip>>,
    /// Per output a bit for each request whose head wants it: `words` words each.
    requests: Vec<u64>,
    words: u32,
    /// The output that is served first in the next arbitration, and which way the others follow.
    first: u32,
    descending: bool,
}

impl<B: InputBuffers> Crossbar<B> {
    pub(crate) fn new(ports: Ports, arbiter: ArbiterKind, vc_shift: u32) -> Crossbar<B> {
        let outputs = ports.port.len();
        let requests = outputs << vc_shift;
        let words = requests.div_ceil(64);
        Crossbar {
            buffers: B::new(requests, outputs),
            arbiter,
            islip: match arbiter {
                ArbiterKind::Islip(iterations) => Some(Box::new(Islip::new(outputs, iterations))),
                ArbiterKind::RoundRobin | ArbiterKind::Random => None,
            },
            requests: vec![0; outputs * words],
            words: words as u32,
            first: 0,
            descending: false,
            pool: Pool::new(),
            ports,
        }
    }

    /// See [`Switch::prefetch`](super::Switch::prefetch).
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.ports.prefetch();
        self.pool.prefetch();
        self.buffers.prefetch();
        prefetch(&*self.requests);
    }

    /// The head of a packet has come.
    #[inline]
    pub(crate) fn arrive<T: Routing>(&mut self, packet: Packet, now: Time, rules: &Rules<T>) {
        let (port, vc) = (usize::from(packet.port), packet.vc);
        let request = port << rules.vc_shift | usize::from(vc);
        let handle = self.pool.insert(packet, now, rules.room(&packet));
        let mut output = 0;
        if B::ROUTES_ON_ARRIVAL {
            let buffered = self.pool.get_mut(handle);
            self.ports.route(buffered, (port, vc), now, rules);
            output = usize::from(buffered.packet.port);
        }
        if self.buffers.queue_mut(request, output).push(&mut self.pool, handle) {
            self.request(request, handle, now, rules);
        }
    }

    /// Enters the request of a packet that has come to the head of its queue.
    #[inline]
    fn request<T: Routing>(&mut self, request: usize, handle: u32, now: Time, rules: &Rules<T>) {
        let buffered = self.pool.get_mut(handle);
        if !B::ROUTES_ON_ARRIVAL {
            let vc = request & ((1 << rules.vc_shift) - 1);
            self.ports.route(buffered, (request >> rules.vc_shift, vc as u8), now, rules);
        }
        let output = usize::from(buffered.packet.port);
        let queue = self.buffers.queue_mut(request, output);
        queue.head_room = buffered.room;
        queue.head_vc = buffered.packet.vc;
        self.requests[output * self.words as usize + request / 64] |= 1 << (request % 64);
        self.ports.look_again(output, request >> rules.vc_shift, now, rules);
    }

    /// Arbitrates at the clock edge `now`.
    pub(crate) fn decide<T: Routing>(&mut self, now: Time, rules: &Rules<T>, sink: &mut impl Sink) {
        self.ports.decision = Time::MAX;
        match self.arbiter {
            ArbiterKind::RoundRobin => self.serve_outputs(now, rules, sink, |switch, output, survey| {
                let turn = usize::from(switch.ports.port[output].turn);
                let request = round_robin::choose(switch.requests_of(output), turn, |request| {
                    switch.is_eligible(output, request, rules, survey)
                })?;
                switch.ports.port[output].turn = request as u16 + 1;
                Some(request)
            }),
            ArbiterKind::Random => self.serve_outputs(now, rules, sink, |switch, output, survey| {
                let mut dice = switch.ports.dice;
                let chosen = random::choose(switch.requests_of(output), &mut dice, |request| {
                    switch.is_eligible(output, request, rules, survey)
                });
                switch.ports.dice = dice;
                chosen
            }),
            ArbiterKind::Islip(_) => {
                if let Some(mut islip) = self.islip.take() {
                    self.match_with_islip(&mut islip, now, rules, sink);
                    self.islip = Some(islip);
                }
            }
        }
    }

    /// Serves the wanted outputs one after the other, beginning with a random one and going up or down
    /// by chance: of any two outputs that want the same input each is as often the first. Turns by
    /// number would favour those behind outputs that nobody wants.
    #[inline]
    fn serve_outputs<T: Routing>(
        &mut self,
        now: Time,
        rules: &Rules<T>,
        sink: &mut impl Sink,
        mut choose: impl FnMut(&mut Self, usize, &mut Survey) -> Option<usize>,
    ) {
        let outputs = self.ports.port.len();
        let (first, descending) = (self.first as usize, self.descending);
        let mut granted = false;
        let mut wake = Time::MAX;
        // From `first` on to the end, then from the beginning: words in turn, the first one in two halves.
        let words = self.ports.awaited.len();
        let early = if descending { u64::MAX >> (63 - first % 64) } else { u64::MAX << (first % 64) };
        for step in 0..=words {
            let word = first / 64 + if descending { words - step } else { step };
            let word = if word < words { word } else { word - words };
            let mut bits = self.ports.awaited[word];
            if step == 0 {
                bits &= early;
            } else if step == words {
                bits &= !early;
            }
            while bits != 0 {
                let bit = if descending { bits.ilog2() } else { bits.trailing_zeros() };
                let output = word * 64 + bit as usize;
                bits &= !(1 << bit);
                if self.ports.look_at[output] <= now {
                    self.ports.collect_credits(output, now, rules);
                    let mut survey = Survey { now, wake: Time::MAX, lacks_credit: false };
                    match choose(self, output, &mut survey) {
                        Some(request) => {
                            granted = true;
                            self.grant(output, request, now, rules, sink);
                        }
                        None => self.look_later(output, &survey, rules),
                    }
                }
                wake = wake.min(self.ports.look_at[output]);
            }
        }
        // Only what was granted counts: how often nothing could be must not matter.
        if granted {
            self.first = self.ports.dice.below(outputs as u32);
            self.descending = self.ports.dice.next_u64() & 1 == 1;
        }
        self.ports.decision = self.ports.decision.min(wake);
    }

    fn match_with_islip<T: Routing>(
        &mut self,
        islip: &mut Islip,
        now: Time,
        rules: &Rules<T>,
        sink: &mut impl Sink,
    ) {
        islip.run(
            self,
            |request| request >> rules.vc_shift,
            |switch, output, turn| {
                if switch.ports.look_at[output] > now {
                    return None;
                }
                switch.ports.collect_credits(output, now, rules);
                let mut survey = Survey { now, wake: Time::MAX, lacks_credit: false };
                round_robin::choose(switch.requests_of(output), turn, |request| {
                    switch.is_eligible(output, request, rules, &mut survey)
                })
            },
            |switch, output, request| switch.grant(output, request, now, rules, sink),
        );
        // What is left waits for an input, an output, a credit, its own tail, or the next edge.
        let mut wake = Time::MAX;
        for output in 0..self.ports.port.len() {
            if self.ports.look_at[output] <= now {
                let mut survey = Survey { now, wake: Time::MAX, lacks_credit: false };
                let unmatched = round_robin::choose(self.requests_of(output), 0, |request| {
                    self.is_eligible(output, request, rules, &mut survey)
                });
                match unmatched {
                    Some(_) => self.ports.look_at[output] = rules.switch.clock.edge_after(now),
                    None => self.look_later(output, &survey, rules),
                }
            }
            wake = wake.min(self.ports.look_at[output]);
        }
        self.ports.decision = self.ports.decision.min(wake);
    }

    #[inline]
    fn requests_of(&self, output: usize) -> &[u64] {
        let words = self.words as usize;
        &self.requests[output * words..(output + 1) * words]
    }

    /// Whether the head of `request` could go to `output`, which is free, now; if not, notes when it
    /// might.
    #[inline]
    fn is_eligible<T>(&self, output: usize, request: usize, rules: &Rules<T>, survey: &mut Survey) -> bool {
        let input = request >> rules.vc_shift;
        let input_ready = self.ports.port[input].input_ready;
        if input_ready > survey.now {
            survey.wake = survey.wake.min(input_ready);
            return false;
        }
        let queue = self.buffers.queue(request, output);
        if self.ports.credits[output << rules.vc_shift | usize::from(queue.head_vc)] < queue.head_room {
            survey.lacks_credit = true;
            return false;
        }
        if rules.cuts_through {
            return true;
        }
        let not_before = self.ports.not_before(self.pool.get(queue.head), rules);
        if not_before > survey.now {
            survey.wake = survey.wake.min(rules.switch.clock.edge_at_or_after(not_before));
            return false;
        }
        true
    }

    /// None of the requests of `output` can go now: notes when one may.
    #[inline]
    fn look_later<T>(&mut self, output: usize, survey: &Survey, rules: &Rules<T>) {
        let mut look_at = survey.wake;
        if survey.lacks_credit {
            self.ports.stall(output, survey.now);
            look_at = look_at.min(self.ports.next_credit(output, rules));
        }
        self.ports.look_only_at(output, look_at);
    }

    /// Sends the head of `request` to `output`.
    #[inline]
    fn grant<T: Routing>(
        &mut self,
        output: usize,
        request: usize,
        now: Time,
        rules: &Rules<T>,
        sink: &mut impl Sink,
    ) {
        let queue = self.buffers.queue_mut(request, output);
        let buffered = queue.pop(&mut self.pool);
        let next = queue.head;
        let input = request >> rules.vc_shift;
        let input_vc = (request & ((1 << rules.vc_shift) - 1)) as u8;
        self.ports.transmit(&Hop { now, output, input: Some((input, input_vc)) }, buffered, rules, sink);
        let words = self.words as usize;
        if next == NONE || !B::ROUTES_ON_ARRIVAL {
            self.requests[output * words + request / 64] &= !(1 << (request % 64));
        }
        if next != NONE {
            self.request(request, next, now, rules);
        }
        let anything_left = self.requests_of(output).iter().any(|&word| word != 0);
        let look_at = if anything_left { self.ports.port[output].output_ready } else { Time::MAX };
        self.ports.look_only_at(output, look_at);
    }

    /// See [`Switch::occupancy`](super::Switch::occupancy).
    pub(crate) fn occupancy(&self, vc_shift: u32) -> Vec<(u16, u8, u32)> {
        let mut held = Vec::new();
        for (request, mut handle) in self.buffers.heads() {
            while handle != NONE {
                let buffered = self.pool.get(handle);
                let vc = (request & ((1 << vc_shift) - 1)) as u8;
                held.push(((request >> vc_shift) as u16, vc, buffered.room));
                handle = buffered.next;
            }
        }
        held
    }

    /// See [`Switch::waiting`](super::Switch::waiting).
    pub(crate) fn waiting(&self, vc_shift: u32) -> Vec<(u16, u8, u16, u8, Packet)> {
        let entry = |(request, handle): (usize, u32)| {
            let packet = self.pool.get(handle).packet;
            let vc = (request & ((1 << vc_shift) - 1)) as u8;
            ((request >> vc_shift) as u16, vc, packet.port, packet.vc, packet)
        };
        self.buffers.heads().into_iter().map(entry).collect()
    }
}

/// What a look at the requests of an output found beside the choice.
struct Survey {
    now: Time,
    /// The earliest time at which a request that cannot go now may be able to.
    wake: Time,
    /// Whether a request could go but for credits.
    lacks_credit: bool,
}
