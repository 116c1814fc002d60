//! One rank: its operations, its clock, and its side of messaging.

use super::interface::{self, primitive};
use super::order::{Counters, Restore};
use super::record::{Cause, Finish, MessageId, Post, Recorder, Trail};
use super::report::{Activity, ClockReading, Fault, RankReport, TimelineEvent};
use super::{Operations, ProgressRule, RankTimer, ReplayHeader, ReplayHost, ReplayParameters, Taking};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::VecDeque;
use weft_msg::{
    AcceleratorLimit, Allreduce, Blocked, Envelope, EnvelopeKind, Nic, Process, Progress, SendToken, Work,
};
use weft_nic::{Failure, HostContext, Message, Primitive};
use weft_trace::op::Op;
use weft_trace::{Kind, RankCursor, TraceError};
use weft_units::{Bytes, EndpointId, RankId, Span, Time};

/// Operations that a rank does in one go, ahead of the virtual time: what it posts meanwhile takes
/// memory in the interface. The results do not depend on it.
const OPERATIONS_AHEAD: u32 = 128;

/// What the interface has for a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Notice {
    /// A message can be taken.
    Message {
        /// What it is.
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

impl Notice {
    /// What ends a wait with this notice.
    fn cause(&self) -> Cause {
        match *self {
            Notice::Message { cause, .. } => Cause::Arrived(cause),
            Notice::Sent(_, message) | Notice::Accelerated(_, message) => Cause::Sent(message),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum State {
    /// It goes on when the virtual time has reached its clock.
    Running,
    /// In a call that waits.
    Blocked,
    /// It has done all its operations.
    Finished,
    /// Its program is wrong.
    Failed,
}

/// A rank.
#[derive(Serialize, Deserialize)]
pub(super) struct ReplayRank {
    process: Process,
    /// Puts messages to be matched in order.
    pub order: Restore<Envelope>,
    /// What it will notice in its next call that waits, and since when it could.
    notices: VecDeque<(Time, Notice)>,
    /// Its next operations; a rank that was saved opens its trace again.
    #[serde(skip)]
    cursor: Option<RankCursor>,
    /// Operations that it has begun.
    position: u64,
    state: State,
    pub(super) ledger: Ledger,
}

/// All that a rank counts.
#[derive(Serialize, Deserialize)]
pub(super) struct Ledger {
    pub(super) program: u32,
    rank: RankId,
    /// Counted over all programs.
    number: RankId,
    /// How far its processor has come.
    clock: Time,
    /// Until when its queues are worked on.
    engaged: Time,
    /// When its last operation ended.
    end: Time,
    computation: Span,
    communication: Span,
    messages_sent: u64,
    messages_received: u64,
    sent: Bytes,
    received: Bytes,
    /// Numbers for the messages to be matched, by destination.
    numbers: Counters,
    /// When the messages that are announced were posted, by exchange.
    pub(super) announced: Vec<Time>,
    /// The operation that is under way, for timelines.
    #[serde(skip)]
    operation: &'static str,
    /// The call that is under way, for the record.
    #[serde(skip)]
    call: Option<Kind>,
    recorder: Recorder,
}

/// What a rank reaches while it is called.
pub(super) struct Surroundings<'s, C> {
    pub(super) seat: u32,
    pub(super) tokens: &'s mut Slab<Taking>,
    pub(super) parameters: &'s ReplayParameters,
    pub(super) context: &'s mut C,
}

impl<C: HostContext<ReplayHost>> Surroundings<'_, C> {
    /// The rank takes the oldest message out of its mailbox.
    fn take_from_mailbox(&mut self, at: Time) {
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
        interface::accelerator_limit(limits, &self.endpoints(allreduce), allreduce.element)
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
        let request = interface::accelerated(allreduce, program, members, (key, seat, after.is_some()));
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

impl ReplayRank {
    /// A rank at the start of its program.
    pub fn new(program: u32, rank: RankId, number: RankId, ranks: u32) -> ReplayRank {
        ReplayRank {
            process: Process::new(rank, ranks),
            order: Restore::default(),
            notices: VecDeque::new(),
            cursor: None,
            position: 0,
            state: State::Running,
            ledger: Ledger {
                program,
                rank,
                number,
                clock: Time::ZERO,
                engaged: Time::ZERO,
                end: Time::ZERO,
                computation: Span::ZERO,
                communication: Span::ZERO,
                messages_sent: 0,
                messages_received: 0,
                sent: Bytes::ZERO,
                received: Bytes::ZERO,
                numbers: Counters::default(),
                announced: Vec::new(),
                operation: "",
                call: None,
                recorder: Recorder::default(),
            },
        }
    }

    /// Its program.
    pub fn program(&self) -> u32 {
        self.ledger.program
    }

    /// Its rank in the program.
    pub fn rank(&self) -> RankId {
        self.ledger.rank
    }

    /// Its number over all programs.
    pub fn number(&self) -> RankId {
        self.ledger.number
    }

    /// Counts a message with data that has arrived.
    pub fn count_received(&mut self, bytes: Bytes) {
        self.ledger.messages_received += 1;
        self.ledger.received += bytes;
    }

    /// How it has spent its time.
    pub fn report(&self) -> RankReport {
        let Ledger { program, rank, computation, communication, .. } = self.ledger;
        let finished = self.state == State::Finished;
        let end = if finished { self.ledger.end } else { self.ledger.clock };
        RankReport {
            program,
            rank,
            end,
            finished,
            operations: self.position,
            computation,
            communication,
            wait: (end - Time::ZERO).saturating_sub(computation).saturating_sub(communication),
            messages_sent: self.ledger.messages_sent,
            messages_received: self.ledger.messages_received,
            sent: self.ledger.sent,
            received: self.ledger.received,
        }
    }

    /// What it waits for, with its program.
    pub fn blocked(&self) -> Option<(u32, Blocked)> {
        match self.state {
            State::Blocked => self.process.waiting_for().map(|blocked| (self.ledger.program, blocked)),
            _ => None,
        }
    }

    /// Goes on with its operations for as long as nothing else can come first.
    pub fn advance(
        &mut self,
        seat: u32,
        tokens: &mut Slab<Taking>,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<ReplayHost>,
    ) {
        self.go_on(&mut Surroundings { seat, tokens, parameters, context });
    }

    /// The interface has something for it.
    #[inline]
    pub fn notice(
        &mut self,
        notice: Notice,
        seat: u32,
        tokens: &mut Slab<Taking>,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<ReplayHost>,
    ) {
        let mut around = Surroundings { seat, tokens, parameters, context };
        let now = around.context.now();
        match (parameters.progress, self.state) {
            (_, State::Failed) => {
                if let Notice::Message { in_mailbox: true, .. } = notice {
                    around.take_from_mailbox(now);
                }
            }
            (ProgressRule::Background, _) => self.notice_in_background(notice, now, &mut around),
            (ProgressRule::Call, State::Running) => self.notices.push_back((now, notice)),
            (ProgressRule::Call, State::Blocked | State::Finished) => {
                self.notice_in_call(notice, now, &mut around);
                self.go_on(&mut around);
            }
        }
    }

    /// A message of the rank has failed, and with it the rank.
    pub fn failed(
        &mut self,
        failure: &Failure,
        seat: u32,
        tokens: &mut Slab<Taking>,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<ReplayHost>,
    ) {
        let reason = format!("a message to endpoint {} failed: {}", failure.to, failure.reason);
        self.fail(reason, &mut Surroundings { seat, tokens, parameters, context });
    }

    fn go_on(&mut self, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) {
        let mut budget = OPERATIONS_AHEAD;
        loop {
            // In a call that waits: what it has not noticed yet, one after the other.
            while matches!(self.state, State::Blocked | State::Finished) {
                let Some((at, notice)) = self.notices.pop_front() else { return };
                self.notice_in_call(notice, at, around);
            }
            if self.state == State::Failed {
                return;
            }
            // Only a rank whose queues others touch too must wait for its time to come.
            let ahead = self.ledger.clock > around.context.now();
            let exact = around.parameters.progress == ProgressRule::Background;
            if budget == 0 || ahead && exact {
                return around.context.set_timer(self.ledger.clock, RankTimer(around.seat));
            }
            budget -= 1;
            self.next_operation(around);
        }
    }

    fn next_operation(&mut self, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) {
        match &self.next_op(around.parameters) {
            Some(Ok(op)) => self.carry_out(op, around),
            Some(Err(error)) => self.fail(error.to_string(), around),
            None => self.finish(around),
        }
    }

    #[inline]
    fn carry_out(&mut self, op: &Op, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) {
        let ledger = &mut self.ledger;
        match op {
            Op::Compute { span } => {
                let start = ledger.clock;
                ledger.clock = start.saturating_add(*span);
                ledger.computation = ledger.computation.saturating_add(*span);
                ledger.draw(Activity::Compute, "compute", start, ledger.clock, around);
                if around.parameters.records(start) {
                    let record = &mut around.context.output().record;
                    ledger.recorder.compute(ledger.number, start, ledger.clock, record);
                }
            }
            Op::Marker { text } => {
                let (rank, time) = (ledger.number, ledger.clock);
                if around.parameters.report_clocks {
                    let position = self.position - 1;
                    around.context.output().clocks.push(ClockReading { rank, position, clock: time });
                }
                if around.parameters.wanted.timeline && !text.is_empty() {
                    let text = text.clone();
                    around.context.output().timeline.push(TimelineEvent::Marker { rank, time, text });
                }
            }
            op => {
                // Somebody may be at work on the rank's queues: then it waits until they are free.
                let begun = ledger.clock.max(ledger.engaged);
                if around.parameters.wanted.timeline {
                    ledger.operation = op.kind().name();
                }
                ledger.call = Some(op.kind());
                let cause = match ledger.engaged > ledger.clock {
                    true => ledger.recorder.engaged,
                    false => ledger.recorder.own,
                };
                let protocol = &around.parameters.protocol;
                let mut port = Port::new(begun, cause, ledger.call, ledger, around);
                let progress = self.process.start(op, protocol, &mut port);
                let (clock, last) = port.end();
                ledger.work(begun, clock, around);
                ledger.engaged = clock;
                (ledger.recorder.own, ledger.recorder.engaged) = (last, last);
                match progress {
                    Ok(Progress::Ready) => {}
                    Ok(Progress::Blocked) => self.state = State::Blocked,
                    Err(error) => self.fail(error.to_string(), around),
                }
            }
        }
    }

    /// The next operation of the program; `None`: there are no more.
    #[inline]
    fn next_op(&mut self, parameters: &ReplayParameters) -> Option<Result<Op, TraceError>> {
        let op = match &parameters.programs[self.ledger.program as usize].operations {
            Operations::Generated(program) => program.operation(self.ledger.rank, self.position).map(Ok),
            Operations::Recorded(trace) => match &mut self.cursor {
                Some(cursor) => cursor.next(),
                none => match trace.rank_at(self.ledger.rank, self.position) {
                    Ok(cursor) => none.insert(cursor).next(),
                    Err(error) => Some(Err(error)),
                },
            },
        };
        self.position += u64::from(matches!(op, Some(Ok(_))));
        op
    }

    /// All its operations are done.
    fn finish(&mut self, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) {
        self.state = State::Finished;
        self.ledger.end = self.ledger.clock;
        self.cursor = None;
        if around.parameters.record_from.is_some() {
            let Ledger { number: rank, end: at, recorder: Recorder { own: last, .. }, .. } = self.ledger;
            around.context.output().record.finishes.push(Finish { rank, at, last });
        }
        if let Err(error) = self.process.check() {
            self.fail(error.to_string(), around);
        }
    }

    fn fail(&mut self, reason: String, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) {
        self.state = State::Failed;
        self.cursor = None;
        let Ledger { program, rank, .. } = self.ledger;
        let trace = around.parameters.programs[program as usize].operations.name().to_owned();
        let position = self.position.saturating_sub(1);
        around.context.output().faults.push(Fault { trace, rank, position, reason });
    }

    /// Tells messaging, which takes from `begun` on, because of `cause`; returns until when, and what
    /// follows then. `call` is the rank's own, if it does it.
    #[inline]
    fn tell(
        &mut self,
        notice: Notice,
        (begun, cause): (Time, Cause),
        call: Option<Kind>,
        around: &mut Surroundings<'_, impl HostContext<ReplayHost>>,
    ) -> (Time, Cause) {
        let protocol = &around.parameters.protocol;
        let mut port = Port::new(begun, cause, call, &mut self.ledger, around);
        match notice {
            Notice::Message { envelope, in_mailbox, .. } => {
                if in_mailbox {
                    port.around.take_from_mailbox(begun);
                }
                self.process.delivered(envelope, protocol, &mut port)
            }
            Notice::Sent(token, _) => self.process.sent(token, protocol, &mut port),
            Notice::Accelerated(token, _) => self.process.accelerated(token, protocol, &mut port),
        }
        if self.state == State::Blocked && self.process.resume(protocol, &mut port) == Progress::Ready {
            self.state = State::Running;
        }
        port.end()
    }

    /// In a call that waits, or at the end of the program, it takes what has been there since `at`.
    #[inline]
    fn notice_in_call(
        &mut self,
        notice: Notice,
        at: Time,
        around: &mut Surroundings<'_, impl HostContext<ReplayHost>>,
    ) {
        let finished = self.state == State::Finished;
        let Ledger { clock, call, recorder, .. } = self.ledger;
        let begun = clock.max(at);
        let cause = if at > clock { notice.cause() } else { recorder.own };
        let (clock, last) = self.tell(notice, (begun, cause), call.filter(|_| !finished), around);
        self.ledger.recorder.own = last;
        if finished {
            // The program is over: what the library still does for others is not its time.
            self.ledger.clock = clock;
        } else {
            self.ledger.work(begun, clock, around);
        }
    }

    /// Somebody else works on what has come at `now`.
    fn notice_in_background(
        &mut self,
        notice: Notice,
        now: Time,
        around: &mut Surroundings<'_, impl HostContext<ReplayHost>>,
    ) {
        let blocked = self.state == State::Blocked;
        let Ledger { engaged, recorder, .. } = self.ledger;
        let begun = engaged.max(now);
        let cause = if now > engaged { notice.cause() } else { recorder.engaged };
        (self.ledger.engaged, self.ledger.recorder.engaged) = self.tell(notice, (begun, cause), None, around);
        if blocked && self.state == State::Running {
            let (clock, over) = (self.ledger.clock, self.ledger.clock.max(self.ledger.engaged));
            self.ledger.draw(Activity::Wait, self.ledger.operation, clock, over, around);
            if self.ledger.engaged >= clock {
                self.ledger.recorder.own = self.ledger.recorder.engaged;
            }
            self.ledger.clock = over;
            self.go_on(around);
        }
    }
}

impl Ledger {
    /// The processor waits until `begun`, and works on messaging until `clock`.
    #[inline]
    fn work(
        &mut self,
        begun: Time,
        clock: Time,
        around: &mut Surroundings<'_, impl HostContext<ReplayHost>>,
    ) {
        self.draw(Activity::Wait, self.operation, self.clock, begun, around);
        self.draw(Activity::Communicate, self.operation, begun, clock, around);
        self.communication = self.communication.saturating_add(clock.saturating_since(begun));
        self.clock = clock;
    }

    #[inline]
    fn draw(
        &self,
        activity: Activity,
        name: &'static str,
        start: Time,
        end: Time,
        around: &mut Surroundings<'_, impl HostContext<ReplayHost>>,
    ) {
        if around.parameters.wanted.timeline && end > start {
            let rank = self.number;
            around.context.output().timeline.push(TimelineEvent::Slice { rank, activity, name, start, end });
        }
    }
}
