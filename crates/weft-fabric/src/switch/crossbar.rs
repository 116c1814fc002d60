//! A switch with buffers at its inputs and a crossbar without speed-up: each input reads one packet at
//! a time, each output takes one at a time.

mod snapshot;

use super::patience::{Debt, Patience};
use super::pool::{Buffered, NONE, Pool, Queue};
use super::port::{Hop, Ports, Sink};
use super::rules::Rules;
use crate::arbiter::islip::Islip;
use crate::arbiter::{random, round_robin};
use crate::packet::Packet;
use crate::parameters::ArbiterKind;
use serde::Deserialize;
use snapshot::Snapshot;
use std::hint::select_unpredictable;
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
    /// All queues.
    fn queues(&self) -> &[Queue];
    /// The same, to be changed.
    fn queues_mut(&mut self) -> &mut [Queue];
    /// The request of the queue of that place among all.
    fn request_of(&self, place: usize) -> usize;
    /// Asks for the memory of queues, where most of it will be touched.
    fn prefetch(&self);
}

/// An input-buffered switch. Its ports lie first, as in every kind of switch, so that finding them asks for
/// no kind.
#[derive(Deserialize)]
#[serde(
    try_from = "Snapshot<Ports, Option<Box<Islip>>, Box<[u64]>, Vec<Option<Debt>>>",
    bound = "B: InputBuffers"
)]
#[repr(C)]
pub(crate) struct Crossbar<B> {
    pub(crate) ports: Ports,
    pub(crate) pool: Pool,
    buffers: B,
    islip: Option<Box<Islip>>,
    /// Per output a bit for each request whose head wants it: `words` words each.
    requests: Box<[u64]>,
    patience: Patience,
    words: u32,
    /// Requests that there can be for an output: one per input and virtual channel.
    requests_per_output: u32,
}

impl<B: InputBuffers> Crossbar<B> {
    pub(crate) fn new(ports: Ports, arbiter: ArbiterKind, vc_shift: u32) -> Crossbar<B> {
        let outputs = ports.port.len();
        let requests = outputs << vc_shift;
        let words = requests.div_ceil(64);
        Crossbar {
            buffers: B::new(requests, outputs),
            islip: match arbiter {
                ArbiterKind::Islip(iterations) => Some(Box::new(Islip::new(outputs, iterations))),
                ArbiterKind::RoundRobin | ArbiterKind::Random => None,
            },
            requests: vec![0; outputs * words].into(),
            words: words as u32,
            requests_per_output: requests as u32,
            patience: Patience::new(outputs),
            pool: Pool::new(),
            ports,
        }
    }

    /// See [`Switch::prefetch`](super::Switch::prefetch).
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.ports.prefetch();
        // In an empty switch most packets pass without queueing.
        if !self.pool.is_empty() {
            self.ports.prefetch_for_arbitration();
            self.pool.prefetch();
            self.buffers.prefetch();
            prefetch(&*self.requests);
        }
    }

    /// The head of a packet has come. Nothing else comes before `undisturbed_until`.
    #[inline(always)]
    pub(crate) fn arrive<T: Routing>(
        &mut self,
        packet: &Packet,
        (now, undisturbed_until): (Time, Time),
        rules: &Rules<T>,
        sink: &mut impl Sink,
    ) {
        let (port, vc) = (usize::from(packet.port), packet.vc);
        let request = port << rules.vc_shift | usize::from(vc);
        let mut arrived = Buffered::new(packet, now, rules.room(packet));
        // Behind others, a packet is routed when it comes to the head of its queue.
        let is_routed =
            B::ROUTES_ON_ARRIVAL || self.pool.is_empty() || self.buffers.queue(request, 0).is_empty();
        let mut output = 0;
        if is_routed {
            self.ports.route(&mut arrived, (port, vc), now, rules);
            output = usize::from(arrived.packet.port);
            if self.pass(request, &arrived, (now, undisturbed_until), rules, sink) {
                return;
            }
        }
        let queue = self.buffers.queue_mut(request, output);
        if queue.push(&mut self.pool, &arrived) {
            let head = queue.head;
            self.request(request, head, now, rules);
        }
    }

    /// Sends a packet that has just arrived and been routed on without queueing, if it is sure that it will
    /// win its output at the first clock edge that it can: nobody else wants the output, and until that edge
    /// nothing arrives and nothing is decided. Does what queueing and arbitration would do at that edge.
    #[inline(always)]
    fn pass<T: Routing>(
        &mut self,
        request: usize,
        arrived: &Buffered,
        (now, undisturbed_until): (Time, Time),
        rules: &Rules<T>,
        sink: &mut impl Sink,
    ) -> bool {
        let output = usize::from(arrived.packet.port);
        let input = request >> rules.vc_shift;
        let edge = self.ports.both_free(output, input, now, rules);
        let is_alone = edge < undisturbed_until.min(self.ports.decision)
            && rules.passes
            && (self.pool.is_empty()
                || self.requests_of(output).iter().all(|&word| word == 0)
                    && self.buffers.queue(request, output).is_empty()
                    && self.patience.not_before(input, output, &self.ports).is_none());
        if !is_alone {
            return false;
        }
        let channel = output << rules.vc_shift | usize::from(arrived.packet.vc);
        if self.ports.credits[channel] < arrived.room {
            self.ports.collect_credits(output, edge, rules);
            if self.ports.credits[channel] < arrived.room {
                return false;
            }
        }
        self.ports.port[output].turn = request as u16 + 1;
        let input_vc = (request & ((1 << rules.vc_shift) - 1)) as u8;
        self.ports.transmit(&Hop { now: edge, output, input: Some((input, input_vc)) }, arrived, rules, sink);
        true
    }

    /// Enters the request of a routed packet that is at the head of its queue.
    #[inline(always)]
    fn request<T: Routing>(&mut self, request: usize, handle: u32, now: Time, rules: &Rules<T>) {
        let buffered = self.pool.get(handle);
        let output = usize::from(buffered.packet.port);
        let queue = self.buffers.queue_mut(request, output);
        queue.head_room = buffered.room;
        queue.head_vc = buffered.packet.vc;
        self.requests[output * self.words as usize + request / 64] |= 1 << (request % 64);
        self.ports.look_again(output, request >> rules.vc_shift, now, rules);
    }

    /// Arbitrates at the clock edge `now`.
    #[inline]
    pub(crate) fn decide<T: Routing>(&mut self, now: Time, rules: &Rules<T>, sink: &mut impl Sink) {
        self.ports.decision = Time::MAX;
        match rules.switch.arbiter {
            ArbiterKind::RoundRobin => self.decide_in_turn(now, rules, sink),
            ArbiterKind::Random => self.decide_at_random(now, rules, sink),
            ArbiterKind::Islip(_) => {
                if let Some(mut islip) = self.islip.take() {
                    self.match_with_islip(&mut islip, now, rules, sink);
                    self.islip = Some(islip);
                }
            }
        }
    }

    // Each on its own: together they would share the registers of one.
    #[inline(never)]
    fn decide_in_turn<T: Routing>(&mut self, now: Time, rules: &Rules<T>, sink: &mut impl Sink) {
        self.serve_outputs(now, rules, sink, |switch, output, survey| {
            let turn = usize::from(switch.ports.port[output].turn);
            let request = round_robin::choose(switch.requests_of(output), turn, |request| {
                switch.is_eligible(output, request, rules, survey)
            })?;
            switch.ports.port[output].turn = request as u16 + 1;
            Some(request)
        });
    }

    #[inline(never)]
    fn decide_at_random<T: Routing>(&mut self, now: Time, rules: &Rules<T>, sink: &mut impl Sink) {
        self.serve_outputs(now, rules, sink, |switch, output, survey| {
            let mut dice = switch.ports.dice;
            let chosen = random::choose(switch.requests_of(output), &mut dice, |request| {
                switch.is_eligible(output, request, rules, survey)
            });
            switch.ports.dice = dice;
            chosen
        });
    }

    /// Serves the wanted outputs.
    #[inline(always)]
    fn serve_outputs<T: Routing>(
        &mut self,
        now: Time,
        rules: &Rules<T>,
        sink: &mut impl Sink,
        mut choose: impl FnMut(&mut Self, usize, &mut Survey) -> Option<usize>,
    ) {
        let wake = match *self.ports.awaited {
            [wanted] => match self.due(wanted, now) {
                // Most edges serve a single output, which needs no order.
                (due, wake) if due.is_power_of_two() => {
                    let output = due.trailing_zeros() as usize;
                    wake.min(self.serve(output, now, rules, sink, &mut choose))
                }
                _ => self.serve_in_order(now, rules, sink, &mut choose),
            },
            _ => self.serve_in_order(now, rules, sink, &mut choose),
        };
        self.ports.decision = self.ports.decision.min(wake);
    }

    /// Which of the wanted outputs are to be looked at now, and when the first of the others is.
    #[inline(always)]
    fn due(&self, mut wanted: u64, now: Time) -> (u64, Time) {
        let (mut due, mut wake) = (0, Time::MAX);
        while wanted != 0 {
            let output = wanted.trailing_zeros();
            wanted &= wanted - 1;
            let look_at = self.ports.look_at[output as usize];
            // No processor can guess which it is.
            let is_due = look_at <= now;
            due |= u64::from(is_due) << output;
            wake = wake.min(select_unpredictable(is_due, Time::MAX, look_at));
        }
        (due, wake)
    }

    /// Serves the wanted outputs one after the other, beginning with a random one and going up or down
    /// by chance: of any two outputs that want the same input each is as often the first. Turns by
    /// number would favour those behind outputs that nobody wants. The order belongs to the clock edge: how
    /// often nothing could be granted before must not matter. Returns when the first is to be looked at again.
    #[inline(never)]
    fn serve_in_order<T: Routing>(
        &mut self,
        now: Time,
        rules: &Rules<T>,
        sink: &mut impl Sink,
        choose: &mut impl FnMut(&mut Self, usize, &mut Survey) -> Option<usize>,
    ) -> Time {
        let order = self.ports.dice.at(now.as_ps());
        let descending = order & 1 == 1;
        let first = (((order >> 32) * self.ports.port.len() as u64) >> 32) as usize;
        // From `first` on to the end, then from the beginning: words in turn, the first one in two halves.
        let early = if descending { u64::MAX >> (63 - first % 64) } else { u64::MAX << (first % 64) };
        let words = self.ports.awaited.len();
        let (mut word, mut mask) = (first / 64, early);
        let mut wake = Time::MAX;
        for left in (0..=words).rev() {
            let mut bits = self.ports.awaited[word] & mask;
            while bits != 0 {
                let bit = if descending { bits.ilog2() } else { bits.trailing_zeros() };
                bits &= !(1 << bit);
                wake = wake.min(self.serve_if_due(word * 64 + bit as usize, now, rules, sink, choose));
            }
            word = match descending {
                true if word == 0 => words - 1,
                true => word - 1,
                false if word + 1 == words => 0,
                false => word + 1,
            };
            mask = if left == 1 { !early } else { u64::MAX };
        }
        wake
    }

    /// Serves an output if it is to be looked at. Returns when it is to be looked at again.
    #[inline(always)]
    fn serve_if_due<T: Routing>(
        &mut self,
        output: usize,
        now: Time,
        rules: &Rules<T>,
        sink: &mut impl Sink,
        choose: &mut impl FnMut(&mut Self, usize, &mut Survey) -> Option<usize>,
    ) -> Time {
        let look_at = self.ports.look_at[output];
        if look_at <= now { self.serve(output, now, rules, sink, choose) } else { look_at }
    }

    /// Grants an output to the request that `choose` names, if it names one. Returns when it is to be looked at
    /// again. On its own: compiled into the loops of its callers, it would prepare what only many outputs
    /// could share.
    #[inline(never)]
    fn serve<T: Routing>(
        &mut self,
        output: usize,
        now: Time,
        rules: &Rules<T>,
        sink: &mut impl Sink,
        choose: &mut impl FnMut(&mut Self, usize, &mut Survey) -> Option<usize>,
    ) -> Time {
        self.ports.collect_credits(output, now, rules);
        let mut survey = Survey::at(now);
        match choose(self, output, &mut survey) {
            Some(request) => {
                let passed_over = self.passed_over(output, &survey, rules);
                self.grant(output, request, now, rules, sink);
                if passed_over.is_some() || self.patience.owed(output).is_some() {
                    self.owe(output, request, passed_over, rules);
                }
            }
            None => self.look_later(output, &survey, rules),
        }
        self.ports.look_at[output]
    }

    #[inline(never)]
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
                let mut survey = Survey::at(now);
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
                let mut survey = Survey::at(now);
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
        // Few switches have more requests than a word has bits: for the others nothing is to be multiplied.
        if self.words == 1 {
            return std::slice::from_ref(&self.requests[output]);
        }
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
            survey.busy = survey.busy.or(Some(request as u16));
            return false;
        }
        if let Some(time) = self.patience.not_before(input, output, &self.ports) {
            survey.wake = survey.wake.min(time.max(rules.switch.clock.edge_after(survey.now)));
            return false;
        }
        let queue = self.buffers.queue(request, output);
        if self.ports.credits[output << rules.vc_shift | usize::from(queue.head_vc)] < queue.head_room {
            survey.lacks_credit = true;
            return false;
        }
        rules.cuts_through || self.is_there(queue, rules, survey)
    }

    /// Whether enough of the head of `queue` has come for it to go; if not, notes when it will have.
    #[inline(never)]
    fn is_there<T>(&self, queue: &Queue, rules: &Rules<T>, survey: &mut Survey) -> bool {
        let not_before = self.ports.not_before(self.pool.get(queue.head), rules);
        if not_before > survey.now {
            survey.wake = survey.wake.min(rules.switch.clock.edge_at_or_after(not_before));
            return false;
        }
        true
    }

    /// The request that an output, which grants another, passes over because its input is busy: the one that it owes something to, or else
    /// the first in turn.
    #[inline]
    fn passed_over<T>(&self, output: usize, survey: &Survey, rules: &Rules<T>) -> Option<usize> {
        let is_busy = |request: &usize| self.ports.port[request >> rules.vc_shift].input_ready > survey.now;
        match self.patience.owed(output) {
            Some(owed) => Some(owed).filter(is_busy),
            None => survey.busy.map(usize::from),
        }
    }

    /// An output has granted a request, and perhaps passed over another.
    #[inline(never)]
    fn owe<T>(&mut self, output: usize, request: usize, passed_over: Option<usize>, rules: &Rules<T>) {
        let (ports, buffers) = (&self.ports, &self.buffers);
        let has_credit = |owed: usize| {
            let queue = buffers.queue(owed, output);
            ports.credits[output << rules.vc_shift | usize::from(queue.head_vc)] >= queue.head_room
        };
        let next = self.patience.granted(output, request, passed_over, rules.vc_shift, has_credit);
        if let Some(next) = next {
            self.ports.port[output].turn = next;
        }
    }

    /// None of the requests of `output` can go now: notes when one may.
    #[inline(never)]
    fn look_later<T>(&mut self, output: usize, survey: &Survey, rules: &Rules<T>) {
        let mut look_at = survey.wake;
        if survey.lacks_credit {
            self.ports.stall(output, survey.now);
            look_at = look_at.min(self.ports.next_credit(output, rules));
        }
        self.ports.look_only_at(output, look_at);
    }

    /// Sends the head of `request` to `output`.
    #[inline(always)]
    fn grant<T: Routing>(
        &mut self,
        output: usize,
        request: usize,
        now: Time,
        rules: &Rules<T>,
        sink: &mut impl Sink,
    ) {
        let queue = self.buffers.queue_mut(request, output);
        let handle = queue.pop(&mut self.pool);
        let next = queue.head;
        let input = request >> rules.vc_shift;
        let input_vc = (request & ((1 << rules.vc_shift) - 1)) as u8;
        self.ports.transmit(
            &Hop { now, output, input: Some((input, input_vc)) },
            self.pool.get(handle),
            rules,
            sink,
        );
        self.pool.remove(handle);
        let words = self.words as usize;
        if next == NONE || !B::ROUTES_ON_ARRIVAL {
            self.requests[output * words + request / 64] &= !(1 << (request % 64));
        }
        if next != NONE {
            if !B::ROUTES_ON_ARRIVAL {
                self.ports.route(self.pool.get_mut(next), (input, input_vc), now, rules);
            }
            self.request(request, next, now, rules);
        }
        let anything_left = self.requests_of(output).iter().any(|&word| word != 0);
        let look_at = if anything_left { self.ports.port[output].output_ready } else { Time::MAX };
        self.ports.look_only_at(output, look_at);
    }

    /// (request, handle) of the head of every queue that is not empty.
    fn heads(&self) -> impl Iterator<Item = (usize, u32)> {
        let heads = self.buffers.queues().iter().enumerate();
        let heads = heads.map(|(place, queue)| (self.buffers.request_of(place), queue.head));
        heads.filter(|&(_, head)| head != NONE)
    }

    /// See [`Switch::occupancy`](super::Switch::occupancy).
    pub(crate) fn occupancy(&self, vc_shift: u32) -> Vec<(u16, u8, u32)> {
        let mut held = Vec::new();
        for (request, mut handle) in self.heads() {
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
        self.heads().map(entry).collect()
    }
}

/// What a look at the requests of an output found beside the choice.
struct Survey {
    now: Time,
    /// The earliest time at which a request that cannot go now may be able to.
    wake: Time,
    /// Whether a request could go but for credits.
    lacks_credit: bool,
    /// The first request in turn whose input is busy.
    busy: Option<u16>,
}

impl Survey {
    fn at(now: Time) -> Survey {
        Survey { now, wake: Time::MAX, lacks_credit: false, busy: None }
    }
}
