//! The interface and the processor of a rank, for one call of its messaging.

use super::interface::{accelerated, accelerator_limit, primitive};
use super::ledger::Ledger;
use super::record::{Cause, MessageId, Post, Trail};
use super::{ReplayHeader, ReplayHost, ReplayParameters, Taking};
use slab::Slab;
use weft_msg::{AcceleratorLimit, Allreduce, Envelope, EnvelopeKind, InMemory, Nic, SendToken, Work};
use weft_nic::{HostContext, Message, Primitive};
use weft_trace::Kind;
use weft_units::{Bytes, EndpointId, RankId, Span, Time};

/// What a rank reaches while it is called.
pub(super) struct Surroundings<'s, C> {
    pub(super) seat: u32,
    pub(super) tokens: &'s mut Slab<Taking>,
    pub(super) parameters: &'s ReplayParameters,
    pub(super) context: &'s mut C,
}

impl<C: HostContext<ReplayHost>> Surroundings<'_, C> {
    /// The rank takes the oldest message out of its mailbox.
    pub(super) fn take_from_mailbox(&mut self, at: Time) {
        self.context.taken(self.seat as u16, at);
    }
}

/// The rank's interface and processor for one call of messaging.
pub(super) struct Port<'p, 's, C> {
    pub(super) ledger: &'p mut Ledger,
    pub(super) around: &'p mut Surroundings<'s, C>,
    /// When the call began.
    pub(super) begun: Time,
    /// How far it has come.
    pub(super) clock: Time,
    /// Whether it is the interface that answers, without the processor.
    pub(super) by_interface: bool,
    /// What is recorded of it.
    trail: Option<Trail>,
}

impl<'p, 's, C: HostContext<ReplayHost>> Port<'p, 's, C> {
    /// For a call that begins at `begun` because of `cause`.
    pub(super) fn new(
        begun: Time,
        cause: Cause,
        call: Option<Kind>,
        ledger: &'p mut Ledger,
        around: &'p mut Surroundings<'s, C>,
    ) -> Port<'p, 's, C> {
        let trail = around.parameters.records(begun).then(|| Trail::new(cause, call));
        Port { ledger, around, begun, clock: begun, by_interface: false, trail }
    }

    /// The endpoints of the members of an allreduce, in order.
    fn endpoints(&self, allreduce: &Allreduce<'_>) -> Vec<EndpointId> {
        let parameters = self.around.parameters;
        let number = |rank| parameters.number(self.ledger.program, rank);
        allreduce.group.ranks().map(|rank| parameters.seating.endpoint(number(rank))).collect()
    }

    /// How far it has come, and what follows then.
    pub(super) fn end(self) -> (Time, Cause) {
        let Port { ledger, around, clock, trail, .. } = self;
        let last = trail.map_or(Cause::Beginning, |trail| {
            trail.end(ledger.number, clock, &mut ledger.recorder, &mut around.context.output().record)
        });
        (clock, last)
    }
}

impl<C: HostContext<ReplayHost>> Nic for Port<'_, '_, C> {
    #[inline]
    fn spend(&mut self, work: Work, span: Span) {
        let begin = self.clock;
        self.clock = begin.saturating_add(span);
        if let Some(trail) = &mut self.trail {
            let record = &mut self.around.context.output().record;
            trail.spend(self.ledger.number, work, (begin, self.clock), &mut self.ledger.recorder, record);
        }
    }

    fn spend_in_memory(&mut self, work: Work, what: InMemory) {
        let end = self.around.context.in_memory(what.moved, what.alone, self.clock);
        self.spend(work, end - self.clock);
    }

    #[inline]
    fn post(&mut self, to: RankId, envelope: Envelope, payload: Bytes, token: SendToken) {
        let parameters = self.around.parameters;
        let number = parameters.number(self.ledger.program, to);
        let seat = parameters.seating.seat(number);
        let (endpoint, seat) = seat.expect("programs send to ranks of their own");
        let mut header = ReplayHeader { envelope, source: self.ledger.number.0, seat, number: 0 };
        if envelope.is_matched() {
            let next = self.ledger.numbers.of(number.0);
            header.number = *next;
            *next = next.wrapping_add(1);
        }
        let born = self.ledger.born(&envelope, self.begun);
        if envelope.has_data() {
            self.ledger.messages_sent += 1;
            self.ledger.sent += envelope.bytes;
        }
        let (rank, at) = (self.ledger.number, self.clock);
        let after = self.trail.as_mut().map(|trail| {
            let record = &mut self.around.context.output().record;
            trail.before_post(rank, at, &mut self.ledger.recorder, record)
        });
        let taking = Taking { seat: self.around.seat, token, number: 0 };
        let token = token.is_awaited().then(|| self.around.tokens.insert(taking) as u32);
        let primitive = match primitive(&envelope, &parameters.protocol) {
            Primitive::Write if self.by_interface => Primitive::WriteBack,
            other => other,
        };
        let message = Message {
            to: endpoint,
            bytes: payload,
            born,
            header: Some(header),
            token,
            primitive,
            interface: self.around.seat as u16,
            to_interface: seat as u16,
            watch: after.is_some(),
        };
        let number = self.around.context.send(message, at);
        if let Some(token) = token {
            self.around.tokens[token as usize].number = number;
        }
        if let Some(after) = after {
            let message = MessageId { source: self.around.context.endpoint(), number };
            let (to, kind) = (parameters.number(self.ledger.program, to), envelope.kind);
            let post = Post { message, rank, to, kind, payload, at, after };
            self.around.context.output().record.posts.push(post);
        }
    }

    fn accelerator_limit(&self, allreduce: &Allreduce<'_>) -> Option<AcceleratorLimit> {
        let limits = self.around.context.accelerator();
        accelerator_limit(limits, &self.endpoints(allreduce), allreduce.element)
    }

    fn allreduce(&mut self, allreduce: &Allreduce<'_>, token: SendToken) {
        let (rank, at) = (self.ledger.number, self.clock);
        let after = self.trail.as_mut().map(|trail| {
            let record = &mut self.around.context.output().record;
            trail.before_post(rank, at, &mut self.ledger.recorder, record)
        });
        let taking = Taking { seat: self.around.seat, token, number: 0 };
        let key = self.around.tokens.insert(taking) as u32;
        let (program, members) = (self.ledger.program, self.endpoints(allreduce));
        let seat = self.around.seat as u16;
        let request = accelerated(allreduce, program, members, (key, seat, after.is_some()));
        let number = self.around.context.allreduce(request, at);
        let number = number.expect("messaging asks for what is within the accelerator's limits only");
        self.around.tokens[key as usize].number = number;
        if let Some(after) = after {
            // On paths it is a message of the rank to itself: what the module does is its only stage.
            let message = MessageId { source: self.around.context.endpoint(), number };
            let (kind, payload) = (EnvelopeKind::Data, allreduce.bytes);
            let post = Post { message, rank, to: rank, kind, payload, at, after };
            self.around.context.output().record.posts.push(post);
        }
    }
}
