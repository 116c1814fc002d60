//! The interface and the processor of a rank, for one call of its messaging.

use super::account::RankAccount;
use super::interface::{accelerated, accelerator_group, accelerator_limit, options, primitive, purpose};
use super::rails::PendingSend;
use super::record::{CallRecord, Cause, MessageId, PostedMessage};
use super::{ReceivedMessage, ReplayHeader, ReplayHost, ReplayParameters};
use slab::Slab;
use std::num::NonZeroU32;
use std::sync::Arc;
use weft_msg::{
    AcceleratorLimit, Allreduce, Envelope, EnvelopeKind, Group, GroupPosting, Hierarchy, InMemory,
    MulticastLimit, OperationKind, Posting, RailChoice, RailsBy, SendToken, Stripe, Transport, Work, stripes,
};
use weft_nic::allreduce::AllreduceRequest;
use weft_nic::{HostContext, Message, Primitive};
use weft_trace::Kind;
use weft_trace::op::RequestId;
use weft_units::{Bytes, EndpointId, RankId, Span, Time};

/// The context of a rank while it is called: its seat, its host's pending sends, the parameters and the
/// interface.
pub(super) struct RankContext<'s, C> {
    /// The rank's number among those of its endpoint.
    pub(super) seat: u32,
    /// Sends of all ranks of the endpoint.
    pub(super) pending_sends: &'s mut Slab<PendingSend>,
    /// Messages that the endpoint has handed to others of its host.
    pub(super) handed_over: &'s mut u32,
    pub(super) parameters: &'s ReplayParameters,
    /// The interface.
    pub(super) host: &'s mut C,
}

impl<C: HostContext<ReplayHost>> RankContext<'_, C> {
    /// The rank takes the oldest message out of its mailbox.
    pub(super) fn take_from_mailbox(&mut self, at: Time) {
        let interface = self.interface();
        self.host.capabilities().take(interface, at);
    }

    /// The rank's virtual interface.
    pub(super) fn interface(&self) -> u16 {
        self.parameters.rails().interface(self.host.endpoint(), self.seat)
    }

    /// The interface gives a message that is kept under `key` this number.
    fn set_number(&mut self, key: Option<u32>, message: u32) {
        if let Some(key) = key
            && let PendingSend::Own { number, .. } = &mut self.pending_sends[key as usize]
        {
            *number = message;
        }
    }
}

/// The start of a call of messaging, or of work on it in the background.
#[derive(Clone, Copy)]
pub(super) struct CallStart {
    pub(super) at: Time,
    /// The event that let it begin then.
    pub(super) cause: Cause,
    /// The rank's own call that does the work; `None`: it is done in the background.
    pub(super) call: Option<Kind>,
    /// Whether it goes on with what `cause` ended, in the same notice of a message.
    pub(super) continues: bool,
}

impl CallStart {
    /// The program calls at this moment, or a message is noticed.
    pub(super) fn new(at: Time, cause: Cause, call: Option<Kind>) -> CallStart {
        CallStart { at, cause, call, continues: false }
    }
}

/// The rank's interface and processor for one call of messaging.
pub(super) struct CallTransport<'p, 's, C> {
    pub(super) account: &'p mut RankAccount,
    pub(super) context: &'p mut RankContext<'s, C>,
    /// The time at which the call began.
    pub(super) begun: Time,
    /// How far it has come.
    pub(super) clock: Time,
    /// Whether it is the interface that answers, without the processor.
    pub(super) by_interface: bool,
    /// The steps of the call; `None`: the run is not recorded.
    call_record: Option<CallRecord>,
}

impl<'p, 's, C: HostContext<ReplayHost>> CallTransport<'p, 's, C> {
    pub(super) fn new(
        start: CallStart,
        account: &'p mut RankAccount,
        context: &'p mut RankContext<'s, C>,
    ) -> CallTransport<'p, 's, C> {
        let begun = start.at;
        let call_record = context.parameters.records(begun).then(|| CallRecord::new(start));
        CallTransport { account, context, begun, clock: begun, by_interface: false, call_record }
    }

    /// The endpoints of the members of an allreduce, in order.
    fn endpoints(&self, allreduce: &Allreduce<'_>) -> Vec<EndpointId> {
        let parameters = self.context.parameters;
        let number = |rank| parameters.number(self.account.program, rank);
        allreduce.group.ranks().map(|rank| parameters.seating.endpoint(number(rank))).collect()
    }

    /// The end of the call, and the cause of what follows it.
    pub(super) fn end(self) -> (Time, Cause) {
        let CallTransport { account, context, clock, call_record, .. } = self;
        let last = call_record.map_or(Cause::Beginning, |call_record| {
            call_record.end(clock, &mut account.record(&mut context.host.output().record))
        });
        (clock, last)
    }

    /// The step that a message posted now comes after; `None`: the run is not recorded.
    fn step_before_post(&mut self) -> Option<u32> {
        let call_record = self.call_record.as_mut()?;
        let record = &mut self.context.host.output().record;
        Some(call_record.before_post(self.clock, &mut self.account.record(record)))
    }

    /// Keeps a send until the interface has taken it; returns its key for the interface.
    fn keep(&mut self, token: SendToken) -> u32 {
        let pending = PendingSend::Own { seat: self.context.seat, token, number: 0, parts: 1 };
        self.context.pending_sends.insert(pending) as u32
    }

    /// Posts a message in parts, one by each rail.
    fn post_parts(&mut self, message: Message<ReplayHeader>, header: ReplayHeader) {
        let ReplayParameters { protocol, rails, .. } = self.context.parameters;
        self.account.striped = self.account.striped.checked_add(1).unwrap_or(NonZeroU32::MIN);
        let header = ReplayHeader { stripe: Some(self.account.striped), ..header };
        if let Some(key) = message.token
            && let PendingSend::Own { parts, .. } = &mut self.context.pending_sends[key as usize]
        {
            *parts = *rails;
        }
        let by_processor = protocol.rails_by == RailsBy::Software && !self.by_interface;
        for Stripe { rail, offset, bytes } in stripes(message.bytes, *rails) {
            if rail > 0 && by_processor {
                self.spend(Work::DataSend, protocol.data_send);
            }
            let buffer = message.buffer.plus(offset.get());
            let part = Message { bytes, header: Some(header), buffer, ..message };
            if let Some(number) = self.context.send_by(rail, part, self.clock) {
                self.context.set_number(message.token, number);
            }
        }
    }

    /// Records a message that was posted after step `after`.
    fn record_post(&mut self, number: u32, to: RankId, after: u32, (kind, payload): (EnvelopeKind, Bytes)) {
        let message = MessageId { source: self.context.host.endpoint(), number };
        let (rank, at) = (self.account.number, self.clock);
        let post = PostedMessage { message, rank, to, kind, payload, at, after };
        self.context.host.output().record.posts.push(post);
    }
}

impl<C: HostContext<ReplayHost>> Transport for CallTransport<'_, '_, C> {
    #[inline]
    fn spend(&mut self, work: Work, span: Span) {
        let begin = self.clock;
        self.clock = begin.saturating_add(span);
        if let Some(call_record) = &mut self.call_record {
            let record = &mut self.context.host.output().record;
            call_record.spend(work, begin, self.clock, &mut self.account.record(record));
        }
    }

    #[inline]
    fn request_received(&mut self, request: RequestId, envelope: &Envelope) {
        if let Some(untold) = &mut self.account.untold {
            let Envelope { source, bytes, .. } = *envelope;
            untold.push(ReceivedMessage { request, source, tag: envelope.tag(), bytes });
        }
    }

    fn spend_in_memory(&mut self, work: Work, what: InMemory) {
        let span = match self.context.host.capabilities().memory() {
            Some(memory) => memory.in_memory(what.moved, what.alone, self.clock) - self.clock,
            None => what.alone,
        };
        self.spend(work, span);
    }

    #[inline]
    fn post(&mut self, Posting { to, envelope, operation, payload, buffer, token }: Posting) {
        let parameters = self.context.parameters;
        let number = parameters.number(self.account.program, to);
        let seat = parameters.seating.seat(number);
        let (endpoint, seat) = seat.expect("programs send to ranks of their own");
        let mut header = ReplayHeader::new(envelope, (endpoint, seat));
        if envelope.is_ordered() {
            let next = self.account.numbers.of(number.0);
            header.number = *next;
            *next = next.wrapping_add(1);
        }
        let created_at = self.account.posted_at(&envelope, self.begun);
        if envelope.has_data() {
            self.account.messages_sent += 1;
            self.account.sent += envelope.bytes;
        }
        let after = self.step_before_post();
        let token = token.is_awaited().then(|| self.keep(token));
        let primitive = match primitive(&envelope, &parameters.protocol) {
            Primitive::Write if self.by_interface => Primitive::WriteBack,
            other => other,
        };
        let message = Message {
            header: Some(header),
            token,
            primitive,
            purpose: purpose(&envelope, operation, self.account.job()),
            interface: self.context.interface(),
            to_interface: parameters.rails().interface(endpoint, seat),
            buffer,
            watch: after.is_some(),
            of_program: envelope.has_data(),
            options: options(parameters.protocol.eager_ack && envelope.kind() == EnvelopeKind::Eager),
            ..Message::new(endpoint, payload, created_at)
        };
        let rail = match parameters.protocol.rail_choice(payload, parameters.rails) {
            RailChoice::First => 0,
            RailChoice::Next => {
                // Control messages take turns by themselves: else data could get every other rail only.
                let turn = &mut self.account.next_rail[usize::from(envelope.has_data())];
                let next = (*turn + 1) % parameters.rails;
                std::mem::replace(turn, next)
            }
            RailChoice::All => return self.post_parts(message, header),
        };
        let Some(message) = self.context.send_by(rail, message, self.clock) else { return };
        self.context.set_number(token, message);
        if let Some(after) = after {
            self.record_post(message, number, after, (envelope.kind(), payload));
        }
    }

    fn hierarchy(&self, group: Group<'_>) -> Option<Arc<Hierarchy>> {
        let parameters = self.context.parameters;
        let hierarchies = parameters.hierarchies.as_ref()?;
        Some(hierarchies.of(self.account.program, group, &parameters.seating))
    }

    fn multicast_limit(&mut self, group: Group<'_>) -> Option<MulticastLimit> {
        let parameters = self.context.parameters;
        if !self.context.host.capabilities().multicasts() {
            return Some(MulticastLimit::Interface);
        }
        if parameters.record_from.is_some() {
            return Some(MulticastLimit::Recorded);
        }
        let program = self.account.program as usize;
        let (ranks, all) = (group.size(), parameters.programs[program].operations.ranks());
        if ranks != all {
            return Some(MulticastLimit::NotAllRanks { ranks, all });
        }
        match parameters.groups.get(program) {
            Some(group) => group.as_ref().err().cloned(),
            None => Some(MulticastLimit::NoGroup),
        }
    }

    fn multicast(&mut self, _: Group<'_>, posting: GroupPosting) {
        let GroupPosting { envelope, payload, buffer, token } = posting;
        let group = self.context.parameters.groups.get(self.account.program as usize);
        let Some(Ok(group)) = group else {
            unreachable!("messaging asks for what is within the limits only")
        };
        // Each rank of a group is alone at its endpoint, in the first seat.
        let header = ReplayHeader::new(envelope, (group.address(), 0));
        self.account.messages_sent += 1;
        self.account.sent += envelope.bytes;
        let token = token.is_awaited().then(|| self.keep(token));
        let message = Message {
            header: Some(header),
            token,
            primitive: Primitive::Write,
            purpose: purpose(&envelope, OperationKind::Collective, self.account.job()),
            interface: self.context.interface(),
            buffer,
            of_program: true,
            ..Message::new(group.address(), payload, self.begun)
        };
        let message = self.context.host.send(message, self.clock);
        self.context.set_number(token, message);
    }

    fn accelerator_limit(&mut self, allreduce: &Allreduce<'_>) -> Option<AcceleratorLimit> {
        let limits = self.context.host.capabilities().accelerator().and_then(|it| it.limits());
        accelerator_limit(limits, &self.endpoints(allreduce), allreduce.element, allreduce.reduction)
    }

    fn allreduce(&mut self, allreduce: &Allreduce<'_>, token: SendToken) {
        let after = self.step_before_post();
        let key = self.keep(token);
        let (operation, data_type) = accelerated(allreduce.element, allreduce.reduction)
            .expect("messaging asks for what is within the accelerator's limits only");
        let request = AllreduceRequest {
            group: accelerator_group(allreduce.group.comm(), self.account.program),
            sequence: allreduce.number,
            members: self.endpoints(allreduce),
            own: allreduce.group.me(),
            bytes: allreduce.bytes,
            operation,
            data_type,
            token: key,
            interface: self.context.interface(),
            watch: after.is_some(),
        };
        let accelerator = self.context.host.capabilities().accelerator();
        let number = accelerator.and_then(|accelerator| accelerator.allreduce(request, self.clock).ok());
        let number = number.expect("messaging asks for what is within the accelerator's limits only");
        self.context.set_number(Some(key), number);
        if let Some(after) = after {
            // On paths it is a message of the rank to itself: the accelerator's work is its only stage.
            let rank = self.account.number;
            self.record_post(number, rank, after, (EnvelopeKind::Data, allreduce.bytes));
        }
    }
}
