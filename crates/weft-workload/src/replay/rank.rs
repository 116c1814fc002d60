//! One rank: its operations, its clock, and its side of messaging.

use super::account::RankAccount;
use super::calls::CallReport;
use super::memory::OpenWork;
use super::rails::Stripes;
use super::record::{Cause, Finish, MessageId, Moment};
use super::region::RegionReading;
use super::reorder::ReorderBuffer;
use super::report::{
    Activity, ClockReading, MessageClass, RankFailure, RankReport, ReplayedMessage, TimelineEvent,
};
use super::streams::RankStreams;
use super::transport::{CallStart, CallTransport, RankContext};
use super::{Operations, Program, ProgressRule, ReplayHeader, ReplayHost, ReplayParameters, ReplayTimer};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_msg::{Blocked, CallStatus, Envelope, OperationKind, Process, SendToken};
use weft_nic::{Delivered, Failure, FailureReason, HostContext};
use weft_trace::op::{Op, StreamId};
use weft_trace::{Cursor, ReadError, RegionMark};
use weft_units::{Address, RankId, Span, Time};

/// Operations that a rank does in one go, ahead of the virtual time: what it posts meanwhile takes
/// memory in the interface. The results do not depend on it.
const MAX_OPERATIONS_AHEAD: u32 = 128;

/// An event that the interface has for a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum InterfaceEvent {
    /// A message can be taken.
    Message {
        /// The message's envelope.
        envelope: Envelope,
        /// The message whose arrival allows it.
        cause: MessageId,
        /// Whether it takes room in the rank's mailbox until it is noticed.
        in_mailbox: bool,
    },
    /// A message has gone out.
    Sent(SendToken, MessageId),
    /// The interface has carried out an allreduce.
    Accelerated(SendToken, MessageId),
}

impl InterfaceEvent {
    /// The cause of the step that follows a wait for this event.
    pub(super) fn cause(&self) -> Cause {
        match *self {
            InterfaceEvent::Message { cause, .. } => Cause::Arrived(cause),
            InterfaceEvent::Sent(_, message) | InterfaceEvent::Accelerated(_, message) => {
                Cause::Sent(message)
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum State {
    /// It goes on when the virtual time has reached its clock.
    Running,
    /// In a call that waits.
    Blocked,
    /// In a computation whose end the memory of its host decides.
    Working(OpenWork),
    /// It has done all its operations.
    Finished,
    /// Stopped: its program is wrong, or the network has lost a message of it.
    Failed,
}

/// A rank.
#[derive(Serialize, Deserialize)]
pub(super) struct ReplayRank {
    pub(super) process: Process,
    /// Puts messages to be matched in order.
    pub order: ReorderBuffer<Envelope>,
    /// Parts of messages for it that have come.
    pub stripes: Stripes,
    /// Events that it will take in its next call that waits, each with the time at which it could.
    pub(super) events: VecDeque<(Time, InterfaceEvent)>,
    /// The end of its last poll that found something, if one did: it takes all that had come by then.
    seen: Option<Time>,
    /// Whether it is within that poll.
    polling: bool,
    /// The operations to come; a rank that was saved opens its trace again.
    #[serde(skip)]
    cursor: Option<Box<dyn Cursor>>,
    /// Operations that it has begun.
    pub(super) position: u64,
    pub(super) state: State,
    pub(super) account: RankAccount,
    /// Of a rank with several streams, or with events: state and clock are those of the stream that has the
    /// turn.
    pub(super) streams: Option<Box<RankStreams>>,
}

impl ReplayRank {
    /// A rank at the start of its program.
    pub fn new(index: u32, program: &Program, (rank, number): (RankId, RankId)) -> ReplayRank {
        let operations = &program.operations;
        ReplayRank {
            process: Process::new(rank, operations.ranks()),
            order: ReorderBuffer::default(),
            stripes: Stripes::default(),
            events: VecDeque::new(),
            seen: None,
            polling: false,
            cursor: None,
            position: 0,
            state: State::Running,
            account: RankAccount::new(index, rank, number),
            streams: RankStreams::of(operations, rank),
        }
    }

    /// The rank's program.
    pub fn program(&self) -> u32 {
        self.account.program
    }

    /// The rank within its program.
    pub fn rank(&self) -> RankId {
        self.account.rank
    }

    /// The rank's number over all programs.
    pub fn number(&self) -> RankId {
        self.account.number
    }

    /// The number over all programs of another rank of its program.
    pub fn number_of(&self, rank: RankId) -> RankId {
        RankId(self.account.number.0 - self.account.rank.0 + rank.0)
    }

    /// The place in its memory that the data of a message goes to.
    pub fn destination(&self, envelope: &Envelope) -> Address {
        self.process.destination(envelope)
    }

    /// Counts and reports a message with data that has arrived.
    pub fn receive_data(
        &mut self,
        message: &Delivered<ReplayHeader>,
        header: &ReplayHeader,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let bytes = header.envelope.bytes;
        self.account.messages_received += 1;
        self.account.received += bytes;
        let delivered = ReplayedMessage {
            delivered: context.host.now(),
            source: message.from,
            destination: context.host.endpoint(),
            number: message.number,
            source_rank: self.number_of(header.envelope.source),
            destination_rank: self.account.number,
            class: match self.process.operation_arrived(&header.envelope) {
                OperationKind::TwoSided => MessageClass::PointToPoint,
                OperationKind::Collective => MessageClass::Collective,
                OperationKind::Put | OperationKind::Get | OperationKind::Atomic | OperationKind::Other => {
                    MessageClass::OneSided
                }
            },
            tag: self.process.tag_of(&header.envelope),
            bytes,
            posted: message.created_at,
            hops: message.hops,
        };
        context.host.output().delivered(self.account.program, delivered, context.parameters.wanted);
    }

    /// The summary of its time and messages.
    pub fn report(&self) -> RankReport {
        let is_over = match &self.streams {
            Some(streams) => streams.is_over() && self.state != State::Failed,
            None => self.state == State::Finished,
        };
        let report = self.account.report(self.position, is_over);
        let cores = self.streams.as_ref().map_or(1, |streams| streams.cores());
        RankReport { awaited: self.process.awaited_requests(), cores, ..report }
    }

    /// The calls so far.
    pub fn calls(&self) -> impl Iterator<Item = CallReport> {
        let RankAccount { program, rank, ref calls, .. } = self.account;
        calls.sums().map(move |(operation, sum)| CallReport { program, rank, operation, sum })
    }

    /// The calls in which it waits, a call for each stream that does.
    pub fn blocked(&self) -> Vec<Blocked> {
        match (&self.streams, self.state) {
            (Some(streams), _) => streams.blocked(&self.process, self.account.rank),
            (None, State::Blocked) => self.process.waiting_for().into_iter().collect(),
            (None, _) => Vec::new(),
        }
    }

    /// Begins its program, now or when that starts.
    pub fn begin(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        let start = context.parameters.starts[self.account.program as usize];
        if start <= context.host.now() {
            return self.advance(context);
        }
        self.account.begin_at(start);
        if let Some(streams) = &mut self.streams {
            streams.begin_at(start);
        }
        context.host.set_timer(start, ReplayTimer::Rank(context.seat));
    }

    /// Goes on with its operations for as long as nothing else can come first.
    pub fn advance(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        self.polling = false;
        match self.streams.is_some() {
            true => {
                self.called_back(context.host.now());
                self.go_on_streams(context);
            }
            false => self.go_on(context),
        }
    }

    /// Takes an event of its interface, to be handled by the machine's progress rule.
    #[inline]
    pub fn handle(
        &mut self,
        event: InterfaceEvent,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let now = context.host.now();
        match (context.parameters.progress, self.state) {
            (_, State::Failed) => {
                if let InterfaceEvent::Message { in_mailbox: true, .. } = event {
                    context.take_from_mailbox(now);
                }
            }
            (ProgressRule::Background, _) if self.streams.is_some() => {
                self.handle_beside_streams(event, now, context);
            }
            (ProgressRule::Call, _) if self.streams.is_some() => {
                self.events.push_back((now, event));
                self.go_on_streams(context);
            }
            (ProgressRule::Background, _) => self.handle_in_background(event, now, context),
            (ProgressRule::Call, State::Running | State::Working(_)) => self.events.push_back((now, event)),
            (ProgressRule::Call, State::Blocked | State::Finished) => {
                self.events.push_back((now, event));
                if !self.polling {
                    self.go_on(context);
                }
            }
        }
    }

    /// Stops the rank because a message of it has failed.
    pub fn fail_message(
        &mut self,
        failure: &Failure,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let reason = format!("a message to endpoint {} failed: {}", failure.to, failure.reason);
        let lost = matches!(failure.reason, FailureReason::TimedOut | FailureReason::Reduction);
        self.stop(lost, reason, context);
    }

    pub(super) fn go_on(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        let mut budget = MAX_OPERATIONS_AHEAD;
        loop {
            if let State::Working(_) = self.state {
                return;
            }
            self.take_what_is_seen(context);
            match self.state {
                State::Running => {}
                State::Blocked | State::Finished => {
                    if self.take_next(context) {
                        continue;
                    }
                    return;
                }
                State::Failed | State::Working(_) => return,
            }
            // Only a rank whose queues others touch too must wait for its time to come.
            let ahead = self.account.clock > context.host.now();
            let exact = context.parameters.progress == ProgressRule::Background;
            if budget == 0 || ahead && exact {
                return context.host.set_timer(self.account.clock, ReplayTimer::Rank(context.seat));
            }
            budget -= 1;
            self.next_operation(context);
        }
    }

    /// In a call that waits, or at the end of the program, it takes the next that has come; says whether it
    /// did, or has found it.
    fn take_next(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) -> bool {
        let Some((at, _)) = self.events.front() else { return false };
        let at = *at;
        if self.state == State::Blocked && self.finds_by_a_poll(at, context) {
            // More may come before that poll is over.
            let end = self.account.clock;
            self.polling = end > context.host.now();
            if self.polling {
                context.host.set_timer(end, ReplayTimer::Rank(context.seat));
            }
            return !self.polling;
        }
        if let Some((at, event)) = self.events.pop_front() {
            self.handle_in_call(event, Moment { at, cause: event.cause() }, context);
        }
        true
    }

    /// It takes all that its last poll has found, also beside that which it waited for.
    fn take_what_is_seen(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        for (at, event) in &mut self.events {
            if Some(*at) > self.seen {
                break;
            }
            if let InterfaceEvent::Message { in_mailbox, .. } = event
                && std::mem::take(in_mailbox)
            {
                context.take_from_mailbox(context.host.now());
            }
        }
        while let Some((at, _)) = self.events.front()
            && Some(*at) <= self.seen
            && let Some((at, event)) = self.events.pop_front()
        {
            self.handle_in_call(event, Moment { at, cause: event.cause() }, context);
        }
    }

    /// It polls before it waits for what comes at `at`, where it does; says whether that was in time for it.
    fn finds_by_a_poll(
        &mut self,
        at: Time,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) -> bool {
        let protocol = &context.parameters.protocol;
        loop {
            let RankAccount { clock: begun, call, last_steps, .. } = self.account;
            let start = CallStart::new(begun, last_steps.own, call);
            let mut transport = CallTransport::new(start, &mut self.account, context);
            let polls = self.process.on(protocol, &mut transport).poll_once();
            let (clock, last) = transport.end();
            if !polls {
                return false;
            }
            self.account.last_steps.own = last;
            self.account.work(begun, clock, context);
            if clock >= at {
                self.seen = Some(clock);
                return true;
            }
        }
    }

    fn next_operation(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        self.account.calls.end(self.account.clock);
        match &self.next_op(context.parameters) {
            Some(Ok(op)) => self.carry_out(op, context),
            Some(Err(reason)) => self.fail(reason.clone(), context),
            None => self.finish(context),
        }
    }

    #[inline]
    pub(super) fn carry_out(&mut self, op: &Op, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        match op {
            Op::Compute { span } => {
                let scale = context.parameters.compute_scales[self.account.program as usize];
                self.compute_recorded(scale.apply(*span), context);
            }
            Op::Work { flops, bytes } => self.work(*flops, *bytes, context),
            Op::Marker { text } => self.mark(text, context),
            op => self.call(op, context),
        }
    }

    #[inline]
    pub(super) fn compute(
        &mut self,
        span: Span,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let account = &mut self.account;
        let start = account.clock;
        account.clock = start.saturating_add(span);
        account.computation = account.computation.saturating_add(span);
        account.draw(Activity::Compute, start..account.clock, context);
        if context.parameters.records(start) {
            let end = account.clock;
            account.record(&mut context.host.output().record).compute(start, end);
        }
    }

    /// Reports a marker of the program, as far as it is wanted.
    fn mark(&self, text: &str, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        let (rank, time) = (self.account.number, self.account.clock);
        if context.parameters.report_clocks {
            let position = self.position - 1;
            context.host.output().clocks.push(ClockReading { rank, position, clock: time });
        }
        if context.parameters.wanted.regions
            && let Some(mark) = RegionMark::of_text(text)
        {
            let RankAccount { computation, communication, last_steps, .. } = self.account;
            let last = last_steps.own;
            let reading = RegionReading { rank, mark, at: time, computation, communication, last };
            context.host.output().regions.push(reading);
        }
        if context.parameters.wanted.timeline && !text.is_empty() {
            let text = text.to_owned();
            context.host.output().timeline.push(TimelineEvent::Marker { rank, time, text });
        }
    }

    /// Begins a call of messaging.
    #[inline]
    fn call(&mut self, op: &Op, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        let account = &mut self.account;
        if context.parameters.wanted.timeline {
            account.operation = op.kind().name();
        }
        account.call = Some(op.kind());
        account.calls.begin(op.kind(), account.clock);
        // Somebody may be at work on the rank's queues: then it waits until they are free.
        let cause = match account.queues_free > account.clock {
            true => account.last_steps.queues,
            false => account.last_steps.own,
        };
        let begun = account.clock.max(account.queues_free);
        let protocol = &context.parameters.protocol;
        let start = CallStart::new(begun, cause, account.call);
        let mut transport = CallTransport::new(start, account, context);
        let status = self.process.on(protocol, &mut transport).start(op);
        let (clock, last) = transport.end();
        account.work(begun, clock, context);
        account.queues_free = clock;
        (account.last_steps.own, account.last_steps.queues) = (last, last);
        match status {
            Ok(CallStatus::Ready) => {}
            Ok(CallStatus::Blocked) => self.state = State::Blocked,
            Err(error) => self.fail(error.to_string(), context),
        }
    }

    /// The next operation of the program; `None`: there are no more.
    #[inline]
    fn next_op(&mut self, parameters: &ReplayParameters) -> Option<Result<Op, String>> {
        let told = |op: Result<Op, ReadError>| op.map_err(|error| error.to_string());
        let op = match &parameters.programs[self.account.program as usize].operations {
            Operations::Generated(program) => program.operation(self.account.rank, self.position).map(Ok),
            Operations::Recorded(trace) => match &mut self.cursor {
                Some(cursor) => cursor.next().map(told),
                none => match trace.stream_at(self.account.rank, StreamId::FIRST, self.position) {
                    Ok(cursor) => none.insert(cursor).next().map(told),
                    Err(error) => Some(Err(error.to_string())),
                },
            },
            Operations::Stepped(program) => {
                let RankAccount { rank, clock, untold, .. } = &mut self.account;
                let received = untold.as_deref_mut().map(std::mem::take).unwrap_or_default();
                program.next(*rank, *clock, &received).transpose()
            }
        };
        self.position += u64::from(matches!(op, Some(Ok(_))));
        op
    }

    /// All its operations are done.
    pub(super) fn finish(&mut self, context: &mut RankContext<'_, impl HostContext<ReplayHost>>) {
        self.state = State::Finished;
        self.account.end = self.account.clock;
        self.cursor = None;
        if context.parameters.record_from.is_some() {
            let RankAccount { number: rank, end: at, last_steps, .. } = self.account;
            context.host.output().record.finishes.push(Finish { rank, at, last: last_steps.own });
        }
        if let Err(error) = self.process.check() {
            self.fail(error.to_string(), context);
        }
    }

    /// Stops the rank because its program is wrong.
    pub(super) fn fail(
        &mut self,
        reason: String,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        self.stop(false, reason, context);
    }

    fn stop(
        &mut self,
        lost: bool,
        reason: String,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        self.state = State::Failed;
        self.cursor = None;
        let RankAccount { program, rank, .. } = self.account;
        let trace = context.parameters.programs[program as usize].operations.name().to_owned();
        let (stream, position) = match &self.streams {
            Some(streams) => streams.position(),
            None => (StreamId::FIRST, self.position),
        };
        let position = position.saturating_sub(1);
        context.host.output().faults.push(RankFailure { lost, trace, rank, stream, position, reason });
    }

    /// Hands an event to messaging, which works on it from `start` on. Returns the end of that work and the
    /// cause of what follows.
    #[inline]
    pub(super) fn process_event(
        &mut self,
        event: InterfaceEvent,
        start: CallStart,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) -> (Time, Cause) {
        let protocol = &context.parameters.protocol;
        let mut transport = CallTransport::new(start, &mut self.account, context);
        match event {
            InterfaceEvent::Message { envelope, in_mailbox, .. } => {
                if in_mailbox {
                    transport.context.take_from_mailbox(start.at);
                }
                self.process.on(protocol, &mut transport).delivered(envelope);
            }
            InterfaceEvent::Sent(token, _) => self.process.on(protocol, &mut transport).sent(token),
            InterfaceEvent::Accelerated(token, _) => {
                self.process.on(protocol, &mut transport).accelerated(token);
            }
        }
        if self.state == State::Blocked
            && self.process.on(protocol, &mut transport).resume() == CallStatus::Ready
        {
            self.state = State::Running;
        }
        transport.end()
    }

    /// Handles an event that can be handled `since`: in a call that waits, at the end of the program, or
    /// because its last poll has found it.
    #[inline]
    pub(super) fn handle_in_call(
        &mut self,
        event: InterfaceEvent,
        since: Moment,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let finished = self.state == State::Finished;
        let RankAccount { clock, call, last_steps, .. } = self.account;
        let begun = clock.max(since.at);
        let cause = if since.at > clock { since.cause } else { last_steps.own };
        let start = CallStart::new(begun, cause, call.filter(|_| !finished));
        let (clock, last) = self.process_event(event, start, context);
        self.account.last_steps.own = last;
        if finished {
            // The program is over: the library's work for others is not its time.
            self.account.clock = clock;
        } else {
            self.account.work(begun, clock, context);
            if self.state == State::Blocked {
                self.process.continue_wait(&context.parameters.protocol);
            }
        }
    }

    /// Handles an event that has come at `now` by somebody else than the rank's processor.
    fn handle_in_background(
        &mut self,
        event: InterfaceEvent,
        now: Time,
        context: &mut RankContext<'_, impl HostContext<ReplayHost>>,
    ) {
        let blocked = self.state == State::Blocked;
        let RankAccount { queues_free, last_steps, .. } = self.account;
        let cause = if now > queues_free { event.cause() } else { last_steps.queues };
        let start = CallStart::new(queues_free.max(now), cause, None);
        let (queues_free, last) = self.process_event(event, start, context);
        (self.account.queues_free, self.account.last_steps.queues) = (queues_free, last);
        if blocked && self.state == State::Running {
            let clock = self.account.clock;
            let over = clock.max(queues_free);
            self.account.draw(Activity::Wait, clock..over, context);
            if queues_free >= clock {
                self.account.last_steps.own = last;
                if context.parameters.records(over) {
                    let call = self.account.call;
                    self.account.record(&mut context.host.output().record).go_on(over, last, call);
                }
            }
            self.account.clock = over;
            self.go_on(context);
        }
    }
}
