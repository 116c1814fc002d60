//! A host of the simulated machine whose ranks are processes.
//!
//! ```text
//!   engine ── timer: its time has come ──┐         ┌─► posts ──► HostContext::send ──► interface
//!          ── delivered, sent ──► notice ┴─► turn ─┤
//!                                                  └─► wants: a timer at its clock | to wait | fenced | gone
//! ```
//! | module | what it is |
//! |---|---|
//! | `posts` | what ranks post, on its way to the interface |
//! | `arrivals` | what arrives for them |
//! | `answers` | what is answered in their places |
//! | `interfaces` | the same of virtual interfaces |
//! | `header` | what travels with a message |
//! | `payloads` | the bytes of messages under way |
//! | `ledger` | where ranks' time goes |
//! | `recording` | whether the critical path is recorded |
//!
//! # When turns end
//! A turn begins when virtual time has come to it. What the rank first takes costs it time, before which it can do nothing: until
//! then the simulation goes on, other endpoints' ranks begin their turns, and all of them run meanwhile. The turn ends (its posts
//! are carried) before the endpoint's host hears of anything else: so whatever the host sees and does, and in which order, is
//! the same as if every turn had ended at once.
//!
//! # When bytes are taken
//! Small messages are copied when they are posted. Announced data and RDMA writes are read from the
//! sender's memory when the interface has taken them, and written to the receiver's when they have
//! arrived. Reads are answered by the target's interface without its processor.
//!
//! # What is believed
//! Nothing: what a rank has posted is [looked at](crate::nonsense) first. A rank that posts what no library does ends the job,
//! with what was wrong.

mod answers;
mod arrivals;
mod header;
mod interfaces;
mod ledger;
mod payloads;
mod posts;
mod recording;

pub use header::{LiveHeader, Resume};
pub use interfaces::InterfaceLimits;
pub use recording::Recording;

use crate::job::Job;
use crate::nonsense::{Exchanges, Nonsense};
use crate::run::LiveSetup;
use crate::turns::TurnEnd;
use crate::virtual_interfaces::{JOB_DOMAIN, VirtualInterfaces};
use answers::Place;
use interfaces::InFlight;
use ledger::{Ledger, Told};
use payloads::{Data, Payloads};
use posts::Outgoing;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use weft_client::device::{Call, Entry, Notice, NoticeKind, Reason, State};
use weft_client::stand_in;
use weft_msg::{Protocol, Work};
use weft_nic::gvas::Pdid;
use weft_nic::{Delivered, Failure, Host, HostContext, Observer, Offer};
use weft_units::{Bytes, EndpointId, RankId, Span, Time};
use weft_workload::replay::order::{Counters, Restore};
use weft_workload::replay::{Cause, Finish, MessageId, RankReport, ReplayOutput, Seating, Wanted};

/// What all hosts of a run share.
pub struct LiveParameters {
    job: Arc<Job>,
    /// Which ranks there are, and where.
    seating: Seating,
    /// Virtual time of an empty poll.
    poll: Span,
    protocol: Protocol,
    /// Whether turns overlap where they may.
    overlapping: bool,
    /// Bytes on the wire of a request or acknowledgement between interfaces.
    control: Bytes,
    /// What is to be reported beside sums.
    wanted: Wanted,
    /// Whether the critical path is recorded.
    recording: Arc<Recording>,
    payloads: Mutex<Payloads>,
    exchanges: Mutex<Exchanges>,
    limits: InterfaceLimits,
    /// Endpoints of the machine.
    nodes: u32,
    /// Messages between virtual interfaces, by sender and number.
    in_flight: Mutex<BTreeMap<(EndpointId, u32), InFlight>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Poisoned by a panic of another thread, which ends the run anyway.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl LiveParameters {
    /// The ranks of `job` where they sit, on a machine that has so much for virtual interfaces, and so many endpoints.
    pub fn new(
        job: Arc<Job>,
        seating: Seating,
        setup: &LiveSetup<'_>,
        (limits, nodes): (InterfaceLimits, u32),
        wanted: Wanted,
        recording: Arc<Recording>,
    ) -> LiveParameters {
        LiveParameters {
            job,
            seating,
            poll: setup.poll,
            protocol: setup.protocol.clone(),
            overlapping: setup.overlapping,
            control: setup.protocol.control_bytes,
            wanted,
            recording,
            payloads: Mutex::default(),
            exchanges: Mutex::new(Exchanges::new(setup.protocol)),
            limits,
            nodes,
            in_flight: Mutex::default(),
        }
    }

    /// The hosts of endpoints `0..endpoints`, each with its ranks.
    pub fn hosts(&self, endpoints: u32) -> Vec<LiveHost> {
        let mut hosts: Vec<LiveHost> =
            std::iter::repeat_with(LiveHost::default).take(endpoints as usize).collect();
        for rank in 0..self.seating.ranks() {
            hosts[self.seating.endpoint(RankId(rank)).index()].ranks.push(LiveRank::new(rank));
        }
        hosts
    }

    /// The first of the ranks of an endpoint.
    fn first_rank_of(&self, endpoint: EndpointId) -> Option<RankId> {
        (0..self.seating.ranks()).map(RankId).find(|rank| self.seating.endpoint(*rank) == endpoint)
    }

    /// Where a ledger tells what it learns.
    fn told<'o>(&'o self, output: &'o mut ReplayOutput) -> Told<'o> {
        Told { output, timeline: self.wanted.timeline, recording: &self.recording }
    }

    fn payloads(&self) -> MutexGuard<'_, Payloads> {
        lock(&self.payloads)
    }

    fn exchanges(&self) -> MutexGuard<'_, Exchanges> {
        lock(&self.exchanges)
    }

    fn in_flight(&self) -> MutexGuard<'_, BTreeMap<(EndpointId, u32), InFlight>> {
        lock(&self.in_flight)
    }

    /// Whether a rank has the memory that it says its data lies in.
    fn check_memory(&self, rank: u32, address: u64, length: u64) -> Result<(), Nonsense> {
        match self.job.has_memory(rank, address, length) {
            true => Ok(()),
            false => Err(Nonsense::Memory { address, length }),
        }
    }

    /// Drops a payload that will not arrive.
    fn forget(&self, number: Option<u32>) {
        if let Some(number) = number {
            self.payloads().take(number);
        }
    }

    /// Keeps a payload until its message has arrived.
    fn store(&self, data: Data) -> u32 {
        self.payloads().store(data)
    }

    /// The bytes of a message that has arrived. An interface that says that it has taken the data only when the receiver has
    /// acknowledged it has them read now.
    fn take(&self, number: Option<u32>) -> Vec<u8> {
        let data = number.and_then(|number| self.payloads().take(number));
        data.map_or_else(Vec::new, |data| data.bytes(&self.job))
    }
}

/// The ranks behind one endpoint.
#[derive(Default)]
pub struct LiveHost {
    ranks: Vec<LiveRank>,
    /// The seat whose turn is under way.
    under_way: Option<usize>,
    /// Messages whose data the interface has not taken.
    outgoing: Slab<Outgoing>,
    interfaces: VirtualInterfaces,
}

/// A live process cannot be saved: a run with live processes records a trace, which can be replayed.
impl Serialize for LiveHost {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("live processes cannot be saved"))
    }
}

impl<'de> Deserialize<'de> for LiveHost {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<LiveHost, D::Error> {
        Err(D::Error::custom("live processes cannot be resumed"))
    }
}

/// A rank, as the simulation sees it.
struct LiveRank {
    rank: u32,
    wants: State,
    /// Its clock when it last gave its turn away, or somebody answered in its place, in ps.
    clock: u64,
    /// Who answers in its place.
    place: Place,
    /// Puts messages to be matched in order.
    order: Restore<LiveHeader>,
    /// Numbers for the messages to be matched, by destination.
    numbers: Counters,
    /// Notices that it has not been given, each with what it is of.
    notices: VecDeque<(Notice, Vec<u8>, Cause)>,
    /// Turns in a row without a later clock, and that clock in ps.
    idle: (u32, u64),
    /// Messages in the interface's queue for it that it has not taken.
    in_mailbox: u32,
    ledger: Ledger,
    messages_sent: u64,
    messages_received: u64,
    sent: Bytes,
    received: Bytes,
}

impl LiveRank {
    fn new(rank: u32) -> LiveRank {
        LiveRank {
            rank,
            wants: State::Real,
            clock: 0,
            place: Place::default(),
            order: Restore::default(),
            numbers: Counters::default(),
            notices: VecDeque::new(),
            idle: (0, 0),
            in_mailbox: 0,
            ledger: Ledger::new(RankId(rank)),
            messages_sent: 0,
            messages_received: 0,
            sent: Bytes::ZERO,
            received: Bytes::ZERO,
        }
    }

    /// Until when a rank that is given what has come for it can do nothing, since taking the first of it takes so long.
    fn idle_until(&self, parameters: &LiveParameters) -> Time {
        let first = self.notices.iter().map(|(notice, ..)| notice).find(|notice| !notice.is_answered());
        match first {
            Some(notice) if parameters.overlapping && matches!(self.wants, State::Wait | State::Poll) => {
                let until = stand_in::idle_until(self.clock, notice, &parameters.protocol);
                // What it does then, it does after the end of its turn.
                Time::from_ps(until.saturating_sub(1))
            }
            _ => Time::ZERO,
        }
    }

    /// It sends a message with so much data, or its interface does in its place.
    fn counts_sent(&mut self, bytes: Bytes) {
        self.messages_sent += 1;
        self.sent += bytes;
    }

    /// It takes what lies in its mailbox.
    fn empty_mailbox(&mut self, seat: usize, context: &mut impl HostContext<LiveHost>) {
        for _ in 0..std::mem::take(&mut self.in_mailbox) {
            context.taken(seat as u16, context.now());
        }
    }

    /// How it has spent its time.
    fn report(&self) -> RankReport {
        let (end, computation, communication) =
            (self.ledger.clock(), self.ledger.computation(), self.ledger.work());
        RankReport {
            program: 0,
            rank: RankId(self.rank),
            end,
            finished: matches!(self.wants, State::Exit | State::Fence),
            operations: 0,
            computation,
            communication,
            wait: (end - Time::ZERO).saturating_sub(computation).saturating_sub(communication),
            messages_sent: self.messages_sent,
            messages_received: self.messages_received,
            sent: self.sent,
            received: self.received,
        }
    }
}

impl LiveHost {
    /// How its ranks have spent their time.
    pub fn reports(&self) -> impl Iterator<Item = RankReport> {
        self.ranks.iter().map(LiveRank::report)
    }

    /// The ends of its ranks.
    pub fn finishes(&self) -> impl Iterator<Item = Finish> {
        self.ranks.iter().map(|rank| rank.ledger.finish())
    }

    /// Messages that its ranks have sent, and their bytes.
    pub fn sent_by_ranks(&self) -> (u64, Bytes) {
        let add = |(messages, bytes): (u64, Bytes), rank: &LiveRank| {
            (messages + rank.messages_sent, bytes + rank.sent)
        };
        self.ranks.iter().fold((0, Bytes::ZERO), add)
    }

    /// Gives a rank turns until it waits for something that is not there, or its turn may end later.
    fn run(&mut self, seat: usize, parameters: &LiveParameters, context: &mut impl HostContext<LiveHost>) {
        loop {
            let rank = &mut self.ranks[seat];
            rank.place = Place::default();
            let idle_until = rank.idle_until(parameters);
            let number = rank.rank;
            let mut used = 0;
            while let Some((notice, bytes, cause)) = rank.notices.front() {
                if !parameters.job.notify(number, *notice, bytes, &mut used) {
                    break;
                }
                if !notice.is_answered() {
                    rank.ledger.gives(Time::from_ps(notice.at), *cause);
                }
                rank.notices.pop_front();
            }
            rank.empty_mailbox(seat, context);
            // Beside messages it hears, at once, that a send of it is taken, and what interfaces of its own are refused.
            let mut waits = self.outgoing.iter().map(|(_, outgoing)| outgoing);
            let waits = waits.any(|outgoing| outgoing.seat as usize == seat && outgoing.token != 0);
            let hears_of_messages_only = !waits && self.interfaces.is_empty() && rank.notices.is_empty();
            let quiet = if hears_of_messages_only { context.quiet_until() } else { Time::ZERO };
            parameters.job.begin_turn(number, quiet.as_ps());
            if idle_until > context.now() {
                (rank.wants, self.under_way) = (State::Run, Some(seat));
                return context.set_timer(idle_until, Resume::EndOfTurn);
            }
            if !self.end_turn(seat, parameters, context) {
                return;
            }
        }
    }

    /// Ends the turn that is under way, if one is.
    fn settle(&mut self, parameters: &LiveParameters, context: &mut impl HostContext<LiveHost>) {
        while let Some(seat) = self.under_way.take() {
            if self.end_turn(seat, parameters, context) {
                self.run(seat, parameters, context);
            }
        }
    }

    /// Waits for the end of a rank's turn and carries what it has posted; says whether it has another one at once.
    fn end_turn(
        &mut self,
        seat: usize,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) -> bool {
        let end = parameters.job.end_turn(self.ranks[seat].rank);
        self.carry(seat, end, parameters, context);
        let rank = &mut self.ranks[seat];
        let wants = match end {
            TurnEnd::Wants(state, clock) if !parameters.job.is_stopping() => {
                rank.clock = clock;
                state
            }
            // In a job that is to end nobody has another turn.
            _ => State::Exit,
        };
        rank.wants = wants;
        match wants {
            State::Wait => !rank.notices.is_empty(),
            State::Ready | State::Poll => {
                let at = Time::from_ps(rank.clock).max(context.now());
                context.set_timer(at, Resume::Seat(seat as u32));
                false
            }
            State::Real | State::Run | State::Fence | State::Exit => {
                rank.ledger.leaves(&mut parameters.told(context.output()));
                false
            }
        }
    }

    /// Tells a rank something; one that waits goes on.
    fn tell(
        &mut self,
        seat: usize,
        notice: Notice,
        bytes: Vec<u8>,
        cause: Cause,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        // The same event may have told another rank something, whose turn has begun.
        self.settle(parameters, context);
        let rank = &mut self.ranks[seat];
        rank.notices.push_back((Notice { at: context.now().as_ps(), ..notice }, bytes, cause));
        if rank.wants == State::Wait && !self.answer_in_place(seat, parameters, context) {
            self.run(seat, parameters, context);
        }
    }
}

impl Host for LiveHost {
    type Parameters = LiveParameters;
    type Timer = Resume;
    type Header = LiveHeader;
    type Output = ReplayOutput;

    fn is_active(&self) -> bool {
        !self.ranks.is_empty()
    }

    // Ranks join when they first need the network: the run wakes them.
    fn start(&mut self, _: &LiveParameters, context: &mut impl HostContext<Self>) {
        for seat in 0..self.ranks.len() {
            context.open(seat as u16, Pdid(JOB_DOMAIN));
        }
    }

    fn timer(&mut self, resume: Resume, parameters: &LiveParameters, context: &mut impl HostContext<Self>) {
        self.settle(parameters, context);
        let Resume::Seat(seat) = resume else { return };
        let rank = &mut self.ranks[seat as usize];
        if rank.wants == State::Poll && !rank.has_unanswered() {
            rank.wants = State::Wait;
            // Its clock may be behind the network's, where it was woken although nothing had come.
            let until = (Time::from_ps(rank.clock) + parameters.poll).as_ps();
            rank.clock = until;
            let (reason, call) = (Reason::Works(Work::Poll), Call::Poll);
            let within = parameters.job.within_number(rank.rank);
            let polls = Entry { until, reason, call, first: false, within, anew: false };
            rank.ledger.enter(&polls, &mut parameters.told(context.output()));
            return parameters.job.polls_on(rank.rank, until, State::Wait);
        }
        if rank.wants == State::Poll && self.answer_in_place(seat as usize, parameters, context) {
            return;
        }
        self.run(seat as usize, parameters, context);
    }

    fn sent(&mut self, token: u32, parameters: &LiveParameters, context: &mut impl HostContext<Self>) {
        self.settle(parameters, context);
        let Outgoing { seat, number, token, capture } = self.outgoing.remove(token as usize);
        if let Some(payload) = capture {
            parameters.payloads().capture(payload, &parameters.job);
        }
        if token != 0 {
            let notice = Notice { kind: NoticeKind::Sent as u32, token, ..Notice::default() };
            let cause = Cause::Sent(MessageId { source: context.endpoint(), number });
            self.tell(seat as usize, notice, Vec::new(), cause, parameters, context);
        }
    }

    fn delivered(
        &mut self,
        message: &Delivered<LiveHeader>,
        parameters: &LiveParameters,
        context: &mut impl HostContext<Self>,
    ) {
        self.settle(parameters, context);
        self.arrive(message, parameters, context);
    }

    fn failed(
        &mut self,
        failure: &Failure,
        parameters: &LiveParameters,
        context: &mut impl HostContext<Self>,
    ) {
        self.settle(parameters, context);
        if self.interface_failed(failure, parameters, context) {
            return;
        }
        if let Some(Outgoing { seat, .. }) =
            failure.token.and_then(|token| self.outgoing.try_remove(token as usize))
        {
            debug_assert_eq!(seat, u32::from(failure.interface));
        }
        let rank = self.ranks.get(usize::from(failure.interface)).map_or(0, |rank| rank.rank);
        let reason =
            format!("a message of rank {rank} to endpoint {} failed: {}", failure.to, failure.reason);
        parameters.job.message_failed(reason);
        context.output().failed(failure);
    }

    fn next_offer(&self) -> Time {
        Time::MAX
    }

    fn offer(&mut self, _: &LiveParameters, _: Time) -> Offer<LiveHeader> {
        Offer::Nothing
    }
}

/// The seats of a job's ranks.
pub fn seating(endpoints: &[EndpointId]) -> Seating {
    Seating::new([endpoints.iter().copied()])
}
