//! A switch with buffers at its inputs and a crossbar: each input reads one packet at a time, each output
//! takes one at a time. A packet crosses as its output's line sends it, or faster where outputs have
//! [buffers](super::combined) too.
//!
//! ```text
//!   arrive ── route ──┬─► pass: alone, output and input free, credit there ───────────┐
//!                     └─► queue ─► head of queue: request ─► decide, at a clock edge  │
//!                                                              │                      │
//!        per output:   requests ─► arbiter ─► grant ───────────┴──────────────────────┴─► transmit
//!                      input busy ── passed over: Starvation
//!                      input reserved │ no credit │ tail missing ─► look again at a known edge
//! ```
//! A clock edge at which nothing can be granted costs nothing: whoever finds that no request of an output can
//! go notes the first edge at which one may ([`SwitchState::look_at`]), and `decide` is called only at such
//! edges.

mod copies;
mod snapshot;
mod withdrawal;

use super::buffer::{BufferHandle, Buffered, PacketBuffer, PacketQueue};
use super::port::{Crossing, Outputs, SwitchState};
use super::starvation::{Grant, PassedOver, Starvation};
use super::{BlockedHead, Sink, SwitchContext};
use crate::arbiter::{ArbiterState, ArbiterUser, OutputRequests, Remembered, RequestGroups, first_from};
use crate::channel::{Channel, ChannelNumbers};
use crate::constants::Constants;
use crate::packet::Packet;
use serde::Deserialize;
use snapshot::Snapshot;
use std::hint::select_unpredictable;
use weft_engine::{Stream, prefetch};
use weft_topo::Routing;
use weft_units::Time;

/// Organization of the input buffers. A request has the [number](ChannelNumbers::number) of its input.
pub(crate) trait InputBuffers {
    /// Whether a packet is routed when it arrives. If not, it is when it comes to the head of its queue.
    const ROUTES_ON_ARRIVAL: bool;
    /// The outputs behind the crossbar.
    type Outputs: Outputs;
    fn new(requests: usize, outputs: usize) -> Self;
    /// The queue of packets of `request` that can go to `output`.
    fn queue_mut(&mut self, request: usize, output: usize) -> &mut PacketQueue;
    /// The same, to be looked at.
    fn queue(&self, request: usize, output: usize) -> &PacketQueue;
    /// All queues.
    fn queues(&self) -> &[PacketQueue];
    /// The same, to be changed.
    fn queues_mut(&mut self) -> &mut [PacketQueue];
    /// The request of the queue of that place among all.
    fn request_of(&self, place: usize) -> usize;
    /// Asks for the memory of queues, where most of it will be touched.
    fn prefetch(&self);
}

/// An input-buffered switch. Its ports lie first, as in every kind of switch, so that finding them asks for
/// no kind.
#[derive(Deserialize)]
#[serde(
    try_from = "Snapshot<SwitchState, Option<Box<ArbiterState>>, Box<[u64]>, Vec<Option<PassedOver>>>",
    bound = "B: InputBuffers"
)]
#[repr(C)]
pub(crate) struct Crossbar<B> {
    pub(crate) state: SwitchState,
    pub(crate) buffer: PacketBuffer,
    queues: B,
    arbiter: Option<Box<ArbiterState>>,
    /// Per output a bit for each request whose head wants it: `words` words each.
    requests: Box<[u64]>,
    starvation: Starvation,
    words: u32,
    /// Requests that there can be for an output: one per input and virtual channel.
    requests_per_output: u32,
}

impl<B: InputBuffers> Crossbar<B> {
    pub(crate) fn new(
        state: SwitchState,
        arbiter: Option<Box<ArbiterState>>,
        channels: ChannelNumbers,
    ) -> Crossbar<B> {
        let (inputs, outputs) = (state.ports.len(), state.links());
        let requests = channels.of_ports(inputs);
        let words = requests.div_ceil(64);
        Crossbar {
            queues: B::new(requests, outputs),
            arbiter,
            requests: vec![0; outputs * words].into(),
            words: words as u32,
            requests_per_output: requests as u32,
            starvation: Starvation::new(inputs),
            buffer: PacketBuffer::new(),
            state,
        }
    }

    /// See [`Switch::prefetch`](super::Switch::prefetch).
    #[inline]
    pub(crate) fn prefetch(&self) {
        self.state.prefetch();
        // In an empty switch most packets pass without queueing.
        if !self.buffer.is_empty() {
            self.state.prefetch_for_arbitration();
            self.buffer.prefetch();
            self.queues.prefetch();
            prefetch(&*self.requests);
        }
    }

    /// The head of a packet has come. Nothing else comes before `undisturbed_until`.
    #[inline(always)]
    pub(crate) fn arrive<T: Routing>(
        &mut self,
        packet: &Packet,
        undisturbed_until: Time,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        let SwitchContext { now, constants, .. } = *context;
        let from = packet.channel();
        let request = constants.channels.number(from);
        let mut arrived = Buffered::new(packet, now, constants.space(packet));
        // Behind others, a packet is routed when it comes to the head of its queue.
        let is_routed =
            B::ROUTES_ON_ARRIVAL || self.buffer.is_empty() || self.queues.queue(request, 0).is_empty();
        if !is_routed {
            self.queues.queue_mut(request, 0).push(&mut self.buffer, &arrived);
            return;
        }
        self.state.route(&mut arrived, from, context);
        if let Err(edge) = self.pass(from, &arrived, undisturbed_until, context) {
            let output = usize::from(arrived.packet.channel().port);
            let queue = self.queues.queue_mut(request, output);
            if queue.push(&mut self.buffer, &arrived) {
                self.request_at(request, &arrived, edge);
            }
        }
    }

    /// The same, compiled on its own: in the loop of all kinds of switch it would cost the others registers.
    #[inline(never)]
    pub(crate) fn arrive_apart<T: Routing>(
        &mut self,
        packet: &Packet,
        undisturbed_until: Time,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        self.arrive(packet, undisturbed_until, context);
    }

    /// Sends a packet that has just arrived by `from` and been routed on without queueing, if it is sure to
    /// win its output at the first clock edge at which it can. Does what queueing and arbitration would do at
    /// that edge. Otherwise says which edge it is.
    #[inline(always)]
    fn pass<T: Routing>(
        &mut self,
        from: Channel,
        arrived: &Buffered,
        undisturbed_until: Time,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) -> Result<(), Time> {
        let SwitchContext { now, constants, .. } = *context;
        let (input, request) = (usize::from(from.port), constants.channels.number(from));
        let to = arrived.packet.channel();
        let output = usize::from(to.port);
        let edge = self.state.both_free(output, input, now, constants);
        // Until the edge nothing arrives and nothing is decided, and no other packet wants the output.
        let is_alone = edge < undisturbed_until.min(self.state.decision)
            && constants.passes
            && (self.buffer.is_empty()
                || !self.is_wanted(output)
                    && self.queues.queue(request, output).is_empty()
                    && self.starvation.reserved_until(input, output, &self.state).is_none());
        if !is_alone {
            return Err(edge);
        }
        let channel = constants.channels.number(to);
        if !self.state.credits[channel].cover(arrived.space) {
            self.state.collect_credits(output, edge, constants);
            if !self.state.credits[channel].cover(arrived.space) {
                return Err(edge);
            }
        }
        self.state.ports[output].pointer = request as u16 + 1;
        let crossing = Crossing { edge, output, input: Some(from) };
        self.state.transmit::<B::Outputs, _, _>(&crossing, arrived, context);
        Ok(())
    }

    /// Enters the request of a routed packet that is at the head of its queue.
    #[inline(always)]
    fn request(&mut self, request: usize, handle: BufferHandle, now: Time, constants: &Constants) {
        let head = *self.buffer.get(handle);
        let (input, output) = (constants.channels.port(request), usize::from(head.packet.channel().port));
        let edge = self.state.both_free(output, input, now, constants);
        self.request_at(request, &head, edge);
    }

    /// The same, where the first clock edge at which input and output are free is known.
    #[inline(always)]
    fn request_at(&mut self, request: usize, head: &Buffered, edge: Time) {
        let wants = head.packet.channel();
        let output = usize::from(wants.port);
        let queue = self.queues.queue_mut(request, output);
        queue.head_space = head.space;
        queue.head_vc = wants.vc;
        self.requests[output * self.words as usize + request / 64] |= 1 << (request % 64);
        self.state.look_no_later_than(output, edge);
    }

    /// Arbitrates at the present clock edge.
    #[inline]
    pub(crate) fn decide<T: Routing>(&mut self, context: &mut SwitchContext<'_, T, impl Sink>) {
        self.state.decision = Time::NEVER;
        let arbiter = context.constants.switch.arbiter;
        arbiter.lend_to(Decision { switch: self, context });
    }

    // For each arbiter on its own: together they would share the registers of one.
    #[inline(never)]
    fn decide_by<A: Remembered, T: Routing>(&mut self, context: &mut SwitchContext<'_, T, impl Sink>) {
        match const { A::PROPERTIES.matches_all } {
            true => self.match_all::<A, T>(context),
            false => self.serve_outputs::<A, T>(context),
        }
    }

    /// Serves the wanted outputs.
    #[inline(always)]
    fn serve_outputs<A: Remembered, T: Routing>(&mut self, context: &mut SwitchContext<'_, T, impl Sink>) {
        let wake = match *self.state.awaited {
            [wanted] => match self.due(wanted, context.now) {
                // Most edges serve a single output, which needs no order.
                (due, wake) if due.is_power_of_two() => {
                    let output = due.trailing_zeros() as usize;
                    wake.min(self.serve::<A, T, _>(output, context))
                }
                _ => self.serve_in_order::<A, T, _>(context),
            },
            _ => self.serve_in_order::<A, T, _>(context),
        };
        self.state.decision = self.state.decision.min(wake);
    }

    /// The wanted outputs that are to be looked at now, and the first edge at which one of the others is.
    #[inline(always)]
    fn due(&self, mut wanted: u64, now: Time) -> (u64, Time) {
        let (mut due, mut wake) = (0, Time::NEVER);
        while wanted != 0 {
            let output = wanted.trailing_zeros();
            wanted &= wanted - 1;
            let look_at = self.state.look_at[output as usize];
            // No branch predictor can guess it.
            let is_due = look_at <= now;
            due |= u64::from(is_due) << output;
            wake = wake.min(select_unpredictable(is_due, Time::NEVER, look_at));
        }
        (due, wake)
    }

    /// Serves the wanted outputs one after the other, beginning with a random one and going up or down by
    /// chance: of any two outputs that want the same input each is as often the first. Turns by number would
    /// favour those behind outputs that nobody wants. The order belongs to the clock edge: how often nothing
    /// could be granted before must not matter. Returns the edge at which one is to be looked at again.
    #[inline(never)]
    fn serve_in_order<A: Remembered, T: Routing, S: Sink>(
        &mut self,
        context: &mut SwitchContext<'_, T, S>,
    ) -> Time {
        let now = context.now;
        let order = self.state.rng.at(now.as_ps());
        let descending = order & 1 == 1;
        let first = (((order >> 32) * self.state.ports.len() as u64) >> 32) as usize;
        // From `first` on to the end, then from the beginning: words in turn, the first one in two halves.
        let early = if descending { u64::MAX >> (63 - first % 64) } else { u64::MAX << (first % 64) };
        let words = self.state.awaited.len();
        let (mut word, mut mask) = (first / 64, early);
        let mut wake = Time::NEVER;
        for left in (0..=words).rev() {
            let mut bits = self.state.awaited[word] & mask;
            while bits != 0 {
                let bit = if descending { bits.ilog2() } else { bits.trailing_zeros() };
                bits &= !(1 << bit);
                let output = word * 64 + bit as usize;
                let look_at = self.state.look_at[output];
                let again = if look_at <= now { self.serve::<A, T, S>(output, context) } else { look_at };
                wake = wake.min(again);
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

    /// Grants an output to the request that its arbiter names, if it names one. Returns the edge at which the
    /// output is to be looked at again. On its own: compiled into the loops of its callers, it would prepare
    /// what only many outputs could share.
    #[inline(never)]
    fn serve<A: Remembered, T: Routing, S: Sink>(
        &mut self,
        output: usize,
        context: &mut SwitchContext<'_, T, S>,
    ) -> Time {
        let SwitchContext { now, constants, .. } = *context;
        self.state.collect_credits(output, now, constants);
        let (chosen, survey) = self.choose::<A>(output, now, constants);
        match chosen {
            Some(request) => {
                let before = self.starvation.passed_over(output);
                let passed_over = self.passed_over(before, &survey, constants);
                self.grant(output, request, context);
                if passed_over.is_some() || before.is_some() {
                    self.count_grant::<A>(Grant { output, request, passed_over }, constants);
                }
            }
            None => self.look_later(output, &survey, constants),
        }
        self.state.look_at[output]
    }

    /// The request that the arbiter of an output names, and what has been found about the others.
    #[inline(always)]
    fn choose<A: Remembered>(
        &mut self,
        output: usize,
        now: Time,
        constants: &Constants,
    ) -> (Option<usize>, Survey) {
        let mut arbiter = if A::MEMORYLESS.is_none() { self.arbiter.take() } else { None };
        let survey = Survey::at(now);
        let mut requests =
            CrossbarRequests { switch: self, constants, output, survey, turn: None, random: None };
        // Not by `lend`: its closure would not be compiled into this in quick builds.
        let chosen = match A::MEMORYLESS {
            Some(mut own) => own.choose(output, &mut requests),
            None => match arbiter.as_deref_mut().and_then(A::of) {
                Some(own) => own.choose(output, &mut requests),
                None => None,
            },
        };
        let CrossbarRequests { survey, turn, random, .. } = requests;
        if A::MEMORYLESS.is_none() {
            self.arbiter = arbiter;
        }
        if let Some(turn) = turn {
            self.state.ports[output].pointer = turn;
        }
        if let Some(random) = random {
            self.state.rng = random;
        }
        (chosen, survey)
    }

    /// Has the arbiter match inputs and outputs.
    fn match_all<A: Remembered, T: Routing>(&mut self, context: &mut SwitchContext<'_, T, impl Sink>) {
        let SwitchContext { now, constants, .. } = *context;
        let first = |switch: &mut Self, output: usize, pointer| {
            if switch.state.look_at[output] > now {
                return None;
            }
            switch.state.collect_credits(output, now, constants);
            let mut survey = Survey::at(now);
            first_from(switch.requests_of(output), pointer, |request| {
                switch.is_eligible(output, request, &mut survey, constants)
            })
        };
        let mut arbiter = self.arbiter.take();
        A::lend(&mut arbiter, |arbiter| {
            let grant = |switch: &mut Self, output, request| switch.grant(output, request, context);
            arbiter.match_all(self, |request| constants.channels.port(request), first, grant);
            Some(())
        });
        self.arbiter = arbiter;
        // What is left waits for an input, an output, a credit, its own tail, or the next edge.
        let mut wake = Time::NEVER;
        for output in 0..self.state.ports.len() {
            if self.state.look_at[output] <= now {
                let mut survey = Survey::at(now);
                let unmatched = first_from(self.requests_of(output), 0, |request| {
                    self.is_eligible(output, request, &mut survey, constants)
                });
                match unmatched {
                    Some(_) => self.state.look_at[output] = constants.switch.clock.edge_after(now),
                    None => self.look_later(output, &survey, constants),
                }
            }
            wake = wake.min(self.state.look_at[output]);
        }
        self.state.decision = self.state.decision.min(wake);
    }

    /// Whether a request for an output waits.
    #[inline(always)]
    fn is_wanted(&self, output: usize) -> bool {
        match self.words {
            1 => self.requests[output] != 0,
            _ => self.requests_of(output).iter().any(|&word| word != 0),
        }
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

    /// Whether the head of `request` could go to `output`, which is free, now. If not, the survey learns when
    /// it may.
    #[inline(always)]
    fn is_eligible(&self, output: usize, request: usize, survey: &mut Survey, constants: &Constants) -> bool {
        let input = constants.channels.port(request);
        let input_ready = self.state.ports[input].input_ready;
        if input_ready > survey.now {
            survey.wake = survey.wake.min(input_ready);
            survey.busy = survey.busy.or(Some(request as u16));
            return false;
        }
        if let Some(time) = self.starvation.reserved_until(input, output, &self.state) {
            survey.wake = survey.wake.min(time.max(constants.switch.clock.edge_after(survey.now)));
            return false;
        }
        let queue = self.queues.queue(request, output);
        if !self.state.credits[constants.channels.at(output, queue.head_vc)].cover(queue.head_space) {
            survey.lacks_credit = true;
            return false;
        }
        constants.cuts_through || self.has_come(queue, survey, constants)
    }

    /// Whether enough of the head of `queue` has come for it to go. If not, the survey learns when it will
    /// have.
    #[inline(never)]
    fn has_come(&self, queue: &PacketQueue, survey: &mut Survey, constants: &Constants) -> bool {
        let not_before = self.state.not_before(self.buffer.get(queue.head), constants);
        if not_before > survey.now {
            survey.wake = survey.wake.min(constants.switch.clock.edge_at_or_after(not_before));
            return false;
        }
        true
    }

    /// The request that an output passes over, when it grants another, because its input is busy: the one
    /// that it has passed over `before`, or else the first in turn.
    #[inline]
    fn passed_over(&self, before: Option<usize>, survey: &Survey, constants: &Constants) -> Option<usize> {
        let is_busy =
            |request: &usize| self.state.ports[constants.channels.port(*request)].input_ready > survey.now;
        match before {
            Some(before) => Some(before).filter(is_busy),
            None => survey.busy.map(usize::from),
        }
    }

    /// Counts a grant of an output that passes over a request, or has passed over one before.
    #[inline(never)]
    fn count_grant<A: Remembered>(&mut self, grant: Grant, constants: &Constants) {
        if let Some(before) = self.starvation.passed_over(grant.output)
            && !A::takes_turns(before, grant.request, &constants.groups)
        {
            if A::PROPERTIES.ends_reservations {
                self.starvation.give_up_input(grant.output, constants.channels);
            }
            return;
        }
        let (state, queues, output) = (&self.state, &self.queues, grant.output);
        let has_credit = |request: usize| {
            let queue = queues.queue(request, output);
            state.credits[constants.channels.at(output, queue.head_vc)].cover(queue.head_space)
        };
        if let Some(next) = self.starvation.count(grant, constants.channels, has_credit) {
            match A::MEMORYLESS {
                Some(_) => self.state.ports[output].pointer = next,
                None => {
                    A::lend(&mut self.arbiter, |own| {
                        own.give_turn(output, next, &constants.groups);
                        Some(())
                    });
                }
            }
        }
    }

    /// None of the requests of `output` can go now: it is looked at again when one may.
    #[inline(never)]
    fn look_later(&mut self, output: usize, survey: &Survey, constants: &Constants) {
        let mut look_at = survey.wake;
        if survey.lacks_credit {
            self.state.stall(output, survey.now);
            look_at = look_at.min(self.state.next_credit(output, constants));
        }
        self.state.look_only_at(output, look_at);
    }

    /// Sends the head of `request` to `output`.
    #[inline(always)]
    fn grant<T: Routing>(
        &mut self,
        output: usize,
        request: usize,
        context: &mut SwitchContext<'_, T, impl Sink>,
    ) {
        let SwitchContext { now, constants, .. } = *context;
        let queue = self.queues.queue_mut(request, output);
        let handle = queue.pop(&mut self.buffer);
        let next = queue.head;
        let from = constants.channels.channel(request);
        let crossing = Crossing { edge: now, output, input: Some(from) };
        self.state.transmit::<B::Outputs, _, _>(&crossing, self.buffer.get(handle), context);
        self.buffer.remove(handle);
        let words = self.words as usize;
        if next.is_none() || !B::ROUTES_ON_ARRIVAL {
            self.requests[output * words + request / 64] &= !(1 << (request % 64));
        }
        if !next.is_none() {
            if !B::ROUTES_ON_ARRIVAL && !self.is_copy(next) {
                self.state.route(self.buffer.get_mut(next), from, context);
            }
            self.request(request, next, now, constants);
        }
        let look_at =
            if self.is_wanted(output) { self.state.ports[output].output_ready } else { Time::NEVER };
        self.state.look_only_at(output, look_at);
    }

    /// The queues that are not empty, by input channel.
    fn filled_queues(&self, channels: ChannelNumbers) -> impl Iterator<Item = (Channel, &PacketQueue)> {
        let queues = self.queues.queues().iter().enumerate().filter(|(_, queue)| !queue.is_empty());
        queues.map(move |(place, queue)| (channels.channel(self.queues.request_of(place)), queue))
    }

    /// See [`Switch::occupancy`](super::Switch::occupancy).
    pub(crate) fn occupancy(&self, channels: ChannelNumbers) -> Vec<(Channel, u32)> {
        let held = self.filled_queues(channels).flat_map(|(channel, queue)| {
            queue.packets(&self.buffer).map(move |buffered| (channel, buffered.space))
        });
        held.collect()
    }

    /// See [`Switch::blocked_heads`](super::Switch::blocked_heads).
    pub(crate) fn blocked_heads(&self, channels: ChannelNumbers) -> Vec<BlockedHead> {
        let head = |(channel, queue): (Channel, &PacketQueue)| {
            let packet = self.buffer.get(queue.head).packet;
            BlockedHead { buffer: channel, wants: packet.channel(), packet }
        };
        self.filled_queues(channels).map(head).collect()
    }
}

/// A switch that decides, whatever its arbiter.
struct Decision<'s, B, C> {
    switch: &'s mut Crossbar<B>,
    context: &'s mut C,
}

impl<B: InputBuffers, T: Routing, S: Sink> ArbiterUser for Decision<'_, B, SwitchContext<'_, T, S>> {
    type Output = ();

    #[inline(always)]
    fn with<A: Remembered>(self) {
        self.switch.decide_by::<A, T>(self.context);
    }
}

/// The requests for an output, as its arbiter sees them.
struct CrossbarRequests<'a, B> {
    switch: &'a Crossbar<B>,
    constants: &'a Constants,
    output: usize,
    survey: Survey,
    /// The turn after the one that is taken, if one is.
    turn: Option<u16>,
    /// The random numbers of the switch after those that are drawn, if some are.
    random: Option<Stream>,
}

impl<'a, B: InputBuffers> OutputRequests<'a> for CrossbarRequests<'a, B> {
    #[inline(always)]
    fn all(&self) -> &'a [u64] {
        self.switch.requests_of(self.output)
    }

    #[inline(always)]
    fn groups(&self) -> &'a RequestGroups {
        &self.constants.groups
    }

    #[inline(always)]
    fn can_go(&mut self, request: usize) -> bool {
        self.switch.is_eligible(self.output, request, &mut self.survey, self.constants)
    }

    /// Of the head of the request's queue.
    #[inline]
    fn age(&self, request: usize) -> u64 {
        let buffered = self.switch.buffer.get(self.switch.queues.queue(request, self.output).head);
        buffered.packet.age.exact_after(self.survey.now.saturating_since(buffered.head))
    }

    #[inline]
    fn bytes(&self, request: usize) -> u64 {
        let buffered = self.switch.buffer.get(self.switch.queues.queue(request, self.output).head);
        self.constants.packet_bytes(&buffered.packet).get()
    }

    #[inline(always)]
    fn turn(&self) -> usize {
        self.switch.state.ports[self.output].pointer.into()
    }

    #[inline(always)]
    fn take_turn(&mut self, request: usize) {
        self.turn = Some(request as u16 + 1);
    }

    #[inline(always)]
    fn random(&mut self) -> &mut Stream {
        self.random.get_or_insert(self.switch.state.rng)
    }

    #[inline(always)]
    fn waiting(&self) -> Option<usize> {
        self.survey.busy.map(usize::from)
    }

    #[inline(always)]
    fn set_waiting(&mut self, request: Option<usize>) {
        self.survey.busy = request.map(|request| request as u16);
    }

    #[inline(always)]
    fn is_input_busy(&self, request: usize) -> bool {
        self.switch.state.ports[self.constants.channels.port(request)].input_ready > self.survey.now
    }
}

/// Findings of an output about its requests while its arbiter chooses.
struct Survey {
    now: Time,
    /// The earliest time at which a request that cannot go now may be able to.
    wake: Time,
    /// Whether a request could go but for credits.
    lacks_credit: bool,
    /// The request that is passed over if another goes: the first asked for whose input is busy, or what the
    /// arbiter puts in its place.
    busy: Option<u16>,
}

impl Survey {
    fn at(now: Time) -> Survey {
        Survey { now, wake: Time::NEVER, lacks_credit: false, busy: None }
    }
}
