//! One rank: its operations, its clock, and its side of messaging.

use super::order::{Counters, Restore};
use super::report::{Activity, Fault, RankReport, TimelineEvent};
use super::{ProgressRule, RankTimer, ReplayHeader, ReplayHost, ReplayParameters};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::VecDeque;
use weft_msg::{Blocked, Envelope, EnvelopeKind, Nic, Process, Progress, SendToken};
use weft_nic::{Failure, HostContext, Message, Primitive};
use weft_trace::RankCursor;
use weft_trace::op::Op;
use weft_units::{Bytes, RankId, Span, Time};

/// Operations that a rank does in one go, ahead of the virtual time: what it posts meanwhile takes
/// memory in the interface. The results do not depend on it.
const OPERATIONS_AHEAD: u32 = 128;

/// What the interface has for a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Notice {
    /// A message has arrived.
    Message {
        /// What it is.
        envelope: Envelope,
        /// Whether it takes room in the rank's mailbox until it is noticed.
        in_mailbox: bool,
    },
    /// A message has gone out.
    Sent(SendToken),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum State {
    /// It goes on when the virtual time has reached its clock.
    Running,
    /// In a call that waits.
    Blocked,
    /// It has done all its operations.
    Finished,
    /// Its trace is wrong.
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
    ledger: Ledger,
}

/// All that a rank counts.
#[derive(Serialize, Deserialize)]
struct Ledger {
    program: u32,
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
    announced: Vec<Time>,
    /// The operation that is under way, for timelines.
    #[serde(skip)]
    operation: &'static str,
}

/// What a rank reaches while it is called.
struct Surroundings<'s, C> {
    seat: u32,
    tokens: &'s mut Slab<(u32, SendToken)>,
    parameters: &'s ReplayParameters,
    context: &'s mut C,
}

impl<C: HostContext<ReplayHost>> Surroundings<'_, C> {
    /// The rank takes the oldest message out of its mailbox.
    fn take_from_mailbox(&mut self, at: Time) {
        self.context.taken(self.seat as u16, at);
    }
}

/// The rank's interface and processor for one call of messaging.
struct Port<'p, 's, C> {
    ledger: &'p mut Ledger,
    around: &'p mut Surroundings<'s, C>,
    /// When the call began.
    begun: Time,
    /// How far it has come.
    clock: Time,
}

impl<C: HostContext<ReplayHost>> Nic for Port<'_, '_, C> {
    #[inline]
    fn spend(&mut self, span: Span) {
        self.clock = self.clock.saturating_add(span);
    }

    #[inline]
    fn post(&mut self, to: RankId, envelope: Envelope, payload: Bytes, token: SendToken) {
        let parameters = self.around.parameters;
        let number = parameters.number(self.ledger.program, to);
        let (endpoint, seat) = parameters.seats[number.index()];
        let mut header = ReplayHeader { envelope, source: self.ledger.number.0, seat, number: 0 };
        if header.is_matched() {
            let next = self.ledger.numbers.of(number.0);
            header.number = *next;
            *next = next.wrapping_add(1);
        }
        let exchange = envelope.exchange() as usize;
        let born = match envelope.kind {
            // The message's time counts from when it was posted, not from when its data may go.
            EnvelopeKind::Data => self.ledger.announced[exchange],
            EnvelopeKind::RequestToSend => {
                if self.ledger.announced.len() <= exchange {
                    self.ledger.announced.resize(exchange + 1, Time::ZERO);
                }
                self.ledger.announced[exchange] = self.begun;
                self.begun
            }
            _ => self.begun,
        };
        if header.has_data() {
            self.ledger.messages_sent += 1;
            self.ledger.sent += envelope.bytes;
        }
        let token = token.is_awaited().then(|| self.around.tokens.insert((self.around.seat, token)) as u32);
        let primitive = match envelope.kind {
            EnvelopeKind::Data => Primitive::Write,
            _ => Primitive::Automatic,
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
            watch: false,
        };
        self.around.context.send(message, self.clock);
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
            },
        }
    }

    /// Its program.
    pub fn program(&self) -> u32 {
        self.ledger.program
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
        tokens: &mut Slab<(u32, SendToken)>,
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
        tokens: &mut Slab<(u32, SendToken)>,
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
        tokens: &mut Slab<(u32, SendToken)>,
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
        let op = match self.next_op(around.parameters) {
            Ok(Some(op)) => op,
            Ok(None) => return self.finish(around),
            Err(reason) => return self.fail(reason, around),
        };
        let ledger = &mut self.ledger;
        match op {
            Op::Compute { span } => {
                let start = ledger.clock;
                ledger.clock = start.saturating_add(span);
                ledger.computation = ledger.computation.saturating_add(span);
                ledger.draw(Activity::Compute, "compute", start, ledger.clock, around);
            }
            Op::Marker { text } => {
                if around.parameters.report_timeline {
                    let (rank, time) = (ledger.number, ledger.clock);
                    around.context.output().timeline.push(TimelineEvent::Marker { rank, time, text });
                }
            }
            op => {
                // Somebody may be at work on the rank's queues: then it waits until they are free.
                let begun = ledger.clock.max(ledger.engaged);
                if around.parameters.report_timeline {
                    ledger.operation = op.kind().name();
                }
                let protocol = &around.parameters.protocol;
                let mut port = Port { begun, clock: begun, ledger, around };
                let progress = self.process.start(&op, protocol, &mut port);
                let clock = port.clock;
                ledger.work(begun, clock, around);
                ledger.engaged = clock;
                match progress {
                    Ok(Progress::Ready) => {}
                    Ok(Progress::Blocked) => self.state = State::Blocked,
                    Err(error) => self.fail(error.to_string(), around),
                }
            }
        }
    }

    /// The next operation of the trace.
    #[inline]
    fn next_op(&mut self, parameters: &ReplayParameters) -> Result<Option<Op>, String> {
        let cursor = match &mut self.cursor {
            Some(cursor) => cursor,
            none => {
                let trace = &parameters.programs[self.ledger.program as usize].trace;
                let cursor = trace.rank_at(self.ledger.rank, self.position).map_err(|e| e.to_string())?;
                none.insert(cursor)
            }
        };
        let op = cursor.next().transpose().map_err(|e| e.to_string())?;
        self.position += u64::from(op.is_some());
        Ok(op)
    }

    /// All its operations are done.
    fn finish(&mut self, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) {
        self.state = State::Finished;
        self.ledger.end = self.ledger.clock;
        self.cursor = None;
        if let Err(error) = self.process.check() {
            self.fail(error.to_string(), around);
        }
    }

    fn fail(&mut self, reason: String, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) {
        self.state = State::Failed;
        self.cursor = None;
        let Ledger { program, rank, .. } = self.ledger;
        let trace = around.parameters.programs[program as usize].trace.file().to_owned();
        let position = self.position.saturating_sub(1);
        around.context.output().faults.push(Fault { trace, rank, position, reason });
    }

    /// Tells messaging, which takes from `begun` on; returns until when.
    #[inline]
    fn tell(
        &mut self,
        notice: Notice,
        begun: Time,
        around: &mut Surroundings<'_, impl HostContext<ReplayHost>>,
    ) -> Time {
        let protocol = &around.parameters.protocol;
        let mut port = Port { begun, clock: begun, ledger: &mut self.ledger, around };
        match notice {
            Notice::Message { envelope, in_mailbox } => {
                if in_mailbox {
                    port.around.take_from_mailbox(begun);
                }
                self.process.delivered(envelope, protocol, &mut port)
            }
            Notice::Sent(token) => self.process.sent(token, protocol, &mut port),
        }
        if self.state == State::Blocked && self.process.resume(protocol, &mut port) == Progress::Ready {
            self.state = State::Running;
        }
        port.clock
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
        let begun = self.ledger.clock.max(at);
        let clock = self.tell(notice, begun, around);
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
        let begun = self.ledger.engaged.max(now);
        self.ledger.engaged = self.tell(notice, begun, around);
        if blocked && self.state == State::Running {
            let (clock, over) = (self.ledger.clock, self.ledger.clock.max(self.ledger.engaged));
            self.ledger.draw(Activity::Wait, self.ledger.operation, clock, over, around);
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
        if around.parameters.report_timeline && end > start {
            let rank = self.number;
            around.context.output().timeline.push(TimelineEvent::Slice { rank, activity, name, start, end });
        }
    }
}
