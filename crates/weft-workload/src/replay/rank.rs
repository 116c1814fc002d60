//! One rank: its operations, its clock, and its side of messaging.

use super::ledger::Ledger;
use super::order::Restore;
use super::port::{Port, Surroundings};
use super::record::{Cause, Finish, MessageId, Recorder};
use super::report::{Activity, ClockReading, Fault, RankReport, TimelineEvent};
use super::{Operations, ProgressRule, RankTimer, ReplayHost, ReplayParameters, Taking};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::VecDeque;
use weft_msg::{Blocked, Envelope, Process, Progress, SendToken};
use weft_nic::{Failure, FailureReason, HostContext};
use weft_trace::op::Op;
use weft_trace::{Kind, RankCursor, TraceError};
use weft_units::{Bytes, RankId, Time};

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
    /// The end of its last poll that found something, if one did: it takes all that had come by then.
    seen: Option<Time>,
    /// Whether it is within that poll.
    polling: bool,
    /// Its next operations; a rank that was saved opens its trace again.
    #[serde(skip)]
    cursor: Option<RankCursor>,
    /// Operations that it has begun.
    position: u64,
    state: State,
    pub(super) ledger: Ledger,
}

impl ReplayRank {
    /// A rank at the start of its program.
    pub fn new(program: u32, rank: RankId, number: RankId, ranks: u32) -> ReplayRank {
        ReplayRank {
            process: Process::new(rank, ranks),
            order: Restore::default(),
            notices: VecDeque::new(),
            seen: None,
            polling: false,
            cursor: None,
            position: 0,
            state: State::Running,
            ledger: Ledger::new(program, rank, number),
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
        self.ledger.report(self.position, self.state == State::Finished)
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
        self.polling = false;
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
            (ProgressRule::Call, State::Running | State::Blocked | State::Finished) => {
                self.notices.push_back((now, notice));
                if self.state != State::Running && !self.polling {
                    self.go_on(&mut around);
                }
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
        let lost = matches!(failure.reason, FailureReason::TimedOut | FailureReason::Reduction);
        self.stop(lost, reason, &mut Surroundings { seat, tokens, parameters, context });
    }

    fn go_on(&mut self, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) {
        let mut budget = OPERATIONS_AHEAD;
        loop {
            self.take_what_is_seen(around);
            match self.state {
                State::Running => {}
                State::Blocked | State::Finished => {
                    if self.take_next(around) {
                        continue;
                    }
                    return;
                }
                State::Failed => return,
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

    /// In a call that waits, or at the end of the program, it takes the next that has come; says whether it did, or has found it.
    fn take_next(&mut self, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) -> bool {
        let Some((at, _)) = self.notices.front() else { return false };
        let at = *at;
        if self.state == State::Blocked && self.finds_by_a_poll(at, around) {
            // More may come before that poll is over.
            let end = self.ledger.clock;
            self.polling = end > around.context.now();
            if self.polling {
                around.context.set_timer(end, RankTimer(around.seat));
            }
            return !self.polling;
        }
        if let Some((at, notice)) = self.notices.pop_front() {
            self.notice_in_call(notice, at, around);
        }
        true
    }

    /// It takes all that its last poll has found, also beside that which it waited for.
    fn take_what_is_seen(&mut self, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) {
        for (at, notice) in &mut self.notices {
            if Some(*at) > self.seen {
                break;
            }
            if let Notice::Message { in_mailbox, .. } = notice
                && std::mem::take(in_mailbox)
            {
                around.take_from_mailbox(around.context.now());
            }
        }
        while let Some((at, _)) = self.notices.front()
            && Some(*at) <= self.seen
            && let Some((at, notice)) = self.notices.pop_front()
        {
            self.notice_in_call(notice, at, around);
        }
    }

    /// It polls before it waits for what comes at `at`, where it does; says whether that was in time for it.
    fn finds_by_a_poll(
        &mut self,
        at: Time,
        around: &mut Surroundings<'_, impl HostContext<ReplayHost>>,
    ) -> bool {
        let protocol = &around.parameters.protocol;
        loop {
            let Ledger { clock: begun, call, recorder: Recorder { own: cause, .. }, .. } = self.ledger;
            let mut port = Port::new(begun, cause, call, &mut self.ledger, around);
            let polls = self.process.polls(protocol, &mut port);
            let (clock, last) = port.end();
            if !polls {
                return false;
            }
            self.ledger.recorder.own = last;
            self.ledger.work(begun, clock, around);
            if clock >= at {
                self.seen = Some(clock);
                return true;
            }
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

    /// Its program is wrong.
    fn fail(&mut self, reason: String, around: &mut Surroundings<'_, impl HostContext<ReplayHost>>) {
        self.stop(false, reason, around);
    }

    fn stop(
        &mut self,
        lost: bool,
        reason: String,
        around: &mut Surroundings<'_, impl HostContext<ReplayHost>>,
    ) {
        self.state = State::Failed;
        self.cursor = None;
        let Ledger { program, rank, .. } = self.ledger;
        let trace = around.parameters.programs[program as usize].operations.name().to_owned();
        let position = self.position.saturating_sub(1);
        around.context.output().faults.push(Fault { lost, trace, rank, position, reason });
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

    /// It takes what has been there since `at`: in a call that waits, at the end of the program, or since its last poll has found it.
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
            if self.state == State::Blocked {
                self.process.goes_on_waiting(&around.parameters.protocol);
            }
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
