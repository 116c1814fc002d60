//! A live host that handles an event: turns of its ranks, and what they are told.

use super::header::Resume;
use super::outgoing::OutgoingMessage;
use super::{Answerer, LiveHost, LiveParameters};
use crate::live_end::LiveEnd;
use crate::turns::{Turn, TurnEnd};
use weft_client::device::{Call, LogEntry, Notice, NoticeKind, Reason, State};
use weft_msg::Work;
use weft_nic::{Failure, HostContext, Observer};
use weft_units::Time;
use weft_workload::replay::Cause;

/// A live host with its surroundings, while it handles an event.
///
/// A seat is the place of a rank among those of the host.
pub(super) struct Handler<'a, C> {
    pub host: &'a mut LiveHost,
    pub parameters: &'a LiveParameters,
    pub context: &'a mut C,
}

impl<C: HostContext<LiveHost>> Handler<'_, C> {
    /// The time of a timer has come.
    pub(super) fn resume(mut self, resume: Resume) {
        self.end_turn_under_way();
        let seat = match resume {
            Resume::Seat(seat) => seat,
            Resume::Until { seat, wait } => {
                let rank = &self.host.ranks[seat as usize];
                if rank.wants == State::Until && rank.waits == wait {
                    self.give_turns(seat as usize);
                }
                return;
            }
            Resume::EndOfTurn => return,
            Resume::Rail { from, order } => return self.take_over(from, order),
        };
        let seat = seat as usize;
        let rank = &self.host.ranks[seat];
        if rank.wants == State::Poll {
            if !rank.has_unanswered() {
                return self.poll_in_vain(seat);
            }
            if self.answer_in_place(seat) {
                return;
            }
        }
        self.give_turns(seat);
    }

    /// A rank that polls has found nothing up to its clock: it polls once more. After the last of the polls
    /// that it makes it waits.
    fn poll_in_vain(&mut self, seat: usize) {
        let rank = &mut self.host.ranks[seat];
        rank.polls_left = rank.polls_left.saturating_sub(1);
        rank.wants = if rank.polls_left == 0 { State::Wait } else { State::Poll };
        // Its clock may be behind the network's, if it was woken although nothing had come.
        let until = (Time::from_ps(rank.clock) + self.parameters.poll).as_ps();
        rank.clock = until;
        let (reason, call) = (Reason::Works(Work::Poll), Call::Poll);
        let within = self.parameters.job.within_number(rank.rank);
        let polls = LogEntry { until, reason, call, first: false, within, anew: false };
        rank.ledger.enter(&polls, &mut self.parameters.told(self.context.output()));
        self.parameters.job.set_polled(rank.rank, until, rank.wants);
        if rank.wants == State::Poll {
            let at = Time::from_ps(until).max(self.context.now());
            self.context.set_timer(at, Resume::Seat(seat as u32));
        }
    }

    /// The interface has taken the data of a message.
    pub(super) fn data_taken(mut self, key: u32) {
        self.end_turn_under_way();
        if self.tell_guest_of_sent(key) {
            return;
        }
        let Some(OutgoingMessage { seat, message, taken, .. }) = self.host.outgoing.take_part(key) else {
            return; // other parts of it have not been taken
        };
        if let Some(payload) = taken.capture {
            self.parameters.payloads().capture(payload, &self.parameters.job);
        }
        if let Some(token) = taken.token {
            let notice = Notice { kind: NoticeKind::Sent as u32, token: token.get(), ..Notice::default() };
            self.tell(seat as usize, notice, Vec::new(), Cause::Sent(message));
        }
        if let Some(ends) = taken.ends {
            self.end_silently((seat as usize, message), ends);
        }
    }

    /// The network has lost a message for good.
    pub(super) fn fail(mut self, failure: &Failure) {
        self.end_turn_under_way();
        if self.tell_guest_of_failure(failure) || self.interface_failed(self.context.endpoint(), failure) {
            return;
        }
        self.lost(failure);
    }

    /// A message of a rank of this endpoint is lost for good, which ends the job.
    pub(super) fn lost(mut self, failure: &Failure) {
        self.end_turn_under_way();
        if let Some(OutgoingMessage { seat, .. }) =
            failure.token.and_then(|token| self.host.outgoing.remove(token))
        {
            debug_assert_eq!(seat, u32::from(failure.interface));
        }
        let rank = self.host.ranks.get(usize::from(failure.interface)).map_or(0, |rank| rank.rank);
        let reason =
            format!("a message of rank {rank} to endpoint {} failed: {}", failure.to, failure.reason);
        self.parameters.job.end(LiveEnd::Lost(reason));
        self.context.output().failed(failure);
    }

    /// Gives a rank turns until it waits for something that is not there, or its turn may end later.
    fn give_turns(&mut self, seat: usize) {
        loop {
            let rank = &mut self.host.ranks[seat];
            rank.place = Answerer::default();
            let idle_until = rank.idle_until(self.parameters);
            rank.fill_inbox(&self.parameters.job);
            rank.empty_mailbox(seat, self.context);
            let quiet_until = self.quiet_until(seat);
            Turn::of(&self.parameters.job, self.host.ranks[seat].rank).begin(quiet_until.as_ps());
            if idle_until > self.context.now() {
                (self.host.ranks[seat].wants, self.host.under_way) = (State::Run, Some(seat));
                return self.context.set_timer(idle_until, Resume::EndOfTurn);
            }
            if !self.end_turn(seat) {
                return;
            }
        }
    }

    /// The time until which nothing can come for a rank, if it need not look.
    fn quiet_until(&mut self, seat: usize) -> Time {
        // Besides messages it hears, at once, that the data of its sends is taken, and of refusals of its
        // interfaces.
        let awaits_send = self.host.outgoing.has_awaited(seat);
        let has_notices = !self.host.ranks[seat].notices.is_empty();
        let has_rails = self.parameters.rails.count > 1;
        if has_rails || awaits_send || has_notices || !self.host.interfaces.is_empty() {
            return Time::ZERO;
        }
        let now = self.context.now();
        self.context.capabilities().quiet_time().map_or(now, |quiet| quiet.quiet_until())
    }

    /// Ends the turn that is under way, if one is.
    pub(super) fn end_turn_under_way(&mut self) {
        while let Some(seat) = self.host.under_way.take() {
            if self.end_turn(seat) {
                self.give_turns(seat);
            }
        }
    }

    /// Waits for the end of a rank's turn and carries the rank's posts. Returns whether it has another turn
    /// at once.
    fn end_turn(&mut self, seat: usize) -> bool {
        let end = Turn::of(&self.parameters.job, self.host.ranks[seat].rank).end();
        self.carry(seat, end);
        let rank = &mut self.host.ranks[seat];
        rank.wants = match end {
            TurnEnd::Wants(state, clock) if !self.parameters.job.is_stopping() => {
                rank.clock = clock;
                rank.polls = self.parameters.job.polls(rank.rank);
                rank.polls_left = rank.polls;
                state
            }
            // In a job that is to end nobody has another turn.
            _ => State::Exit,
        };
        match rank.wants {
            State::Wait => !rank.notices.is_empty(),
            State::Until if !rank.notices.is_empty() => true,
            State::Until => {
                rank.waits = rank.waits.wrapping_add(1);
                let resume = Resume::Until { seat: seat as u32, wait: rank.waits };
                let at = self.parameters.job.until(rank.rank).max(self.context.now());
                self.context.set_timer(at, resume);
                false
            }
            State::Ready | State::Poll => {
                let at = Time::from_ps(rank.clock).max(self.context.now());
                self.context.set_timer(at, Resume::Seat(seat as u32));
                false
            }
            State::Real | State::Run | State::Fence | State::Exit => {
                rank.ledger.leaves(&mut self.parameters.told(self.context.output()));
                if rank.wants == State::Exit {
                    self.give_back(seat);
                }
                false
            }
        }
    }

    /// The process of a rank has ended: the system software takes back what it had of the interface, in which
    /// nobody makes room any more.
    fn give_back(&mut self, seat: usize) {
        self.host.ranks[seat].empty_mailbox(seat, self.context);
        self.close_all(seat);
    }

    /// Gives a rank a notice; a rank that waits goes on.
    pub(super) fn tell(&mut self, seat: usize, notice: Notice, bytes: Vec<u8>, cause: Cause) {
        // The same event may have given another rank a notice, and that rank's turn has begun.
        self.end_turn_under_way();
        let rank = &mut self.host.ranks[seat];
        rank.notices.push_back((Notice { at: self.context.now().as_ps(), ..notice }, bytes, cause));
        let wants = rank.wants;
        match wants {
            State::Until => self.give_turns(seat),
            State::Wait if !self.answer_in_place(seat) => self.give_turns(seat),
            _ => {}
        }
    }
}
