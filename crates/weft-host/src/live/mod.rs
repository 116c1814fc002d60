//! A host of the simulated machine whose ranks are processes.
//!
//! ```text
//!   engine ── timer: its time has come ──┐         ┌─► posts ──► HostContext::send ──► interface
//!          ── delivered, sent ──► notice ┴─► turn ─┤
//!                                                  └─► wants: a timer at its clock | to wait | fenced | gone
//! ```
//! | module | what it is |
//! |---|---|
//! | `handler` | turns of ranks, and what they are told |
//! | `posts` | what ranks post, on its way to the interface |
//! | `rails` | the other interfaces of their host |
//! | `outgoing` | what the interface has not taken yet |
//! | `arrivals` | what arrives for them |
//! | `destinations` | where in their memory it goes |
//! | `answers` | what is answered in their places |
//! | `interfaces` | the same of virtual interfaces |
//! | `header` | what travels with a message |
//! | `payloads` | the bytes of messages under way |
//! | `pending` | what is pending of ranks, where something is beside them |
//! | `ledger` | where ranks' time goes |
//! | `recording` | whether the critical path is recorded |
//! | `services` | their requests to services |
//!
//! # When turns end
//! A turn begins when virtual time has come to it. What the rank first takes costs it time, before which it
//! can do nothing: until then the simulation goes on, other endpoints' ranks begin their turns, and all of
//! them run meanwhile. The turn ends (its posts are carried) before the endpoint's host hears of anything
//! else: so whatever the host sees and does, and in which order, is the same as if every turn had ended at
//! once.
//!
//! # When bytes are taken
//! Small messages are copied when they are posted. Announced data and RDMA writes are read from the
//! sender's memory when the interface has taken them, and written to the receiver's when they have
//! arrived. Reads are answered by the target's interface without its processor.
//!
//! # What is believed
//! Nothing: what a rank has posted is looked at (`nonsense`) first. A rank that posts what no library
//! does ends the job, with what was wrong.

mod answers;
mod arrivals;
mod destinations;
mod handler;
mod header;
mod interfaces;
mod ledger;
mod outgoing;
mod payloads;
mod pending;
mod posts;
mod rails;
mod recording;
mod services;

pub use header::{LiveHeader, Resume};
pub use interfaces::InterfaceLimits;
pub use pending::PendingWork;
pub use recording::Recording;

use crate::domains::Domains;
use crate::job::Job;
use crate::live_end::Mailbox;
use crate::lock::lock;
use crate::nonsense::{Exchanges, Nonsense};
use crate::rank_memory::RankMemory;
use crate::setup::LiveSetup;
use crate::stand_in;
use crate::virtual_interfaces::VirtualInterfaces;
use answers::Answerer;
use handler::Handler;
use interfaces::InFlight;
use ledger::{Ledger, LedgerOutputs};
use outgoing::OutgoingData;
use payloads::{Data, Payloads};
use pending::WorkCounter;
use rails::{Guest, HandedOver};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use weft_client::device::{Notice, State};
use weft_machine::MessageBuffers;
use weft_msg::Protocol;
use weft_nic::edge_form::PortUse;
use weft_nic::{Delivered, Failure, Host, HostContext, Incoming, Offer};
use weft_sim::experiment::kernels::KernelTime;
use weft_units::{Address, Bytes, EndpointId, RankId, Span, Time};
use weft_workload::host::RankHost;
use weft_workload::replay::reorder::{Counters, ReorderBuffer};
use weft_workload::replay::{
    CallReport, Cause, Finish, HostRails, RankReport, ReplayOutput, Seating, Stripes, Wanted,
};
use weft_workload::services::key_value::{RankAnswer, RankRequest};

/// The limits of a machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineLimits {
    /// Of its virtual interfaces.
    pub interfaces: InterfaceLimits,
    /// Endpoints.
    pub endpoints: u32,
}

/// The account of a run: which ranks sit where, and what is reported of them.
pub struct Accounts {
    /// The ranks and their places.
    pub seating: Seating,
    /// The reports that are wanted besides sums.
    pub wanted: Wanted,
    /// The use of the ports of packetizers and mailboxes.
    pub ports: PortUse,
    /// Whether the critical path is recorded.
    pub recording: Arc<Recording>,
}

/// The parameters that all hosts of a run share.
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
    /// The outputs that are wanted beside sums.
    wanted: Wanted,
    ports: PortUse,
    /// Whether the critical path is recorded.
    recording: Arc<Recording>,
    payloads: Mutex<Payloads>,
    exchanges: Mutex<Exchanges>,
    limits: InterfaceLimits,
    /// Places of the messages of ranks, as their interfaces see them.
    message_buffers: MessageBuffers,
    /// The protection domains of the job.
    domains: Domains,
    /// Endpoints of the machine.
    nodes: u32,
    /// Messages between virtual interfaces, by sender and number.
    in_flight: Mutex<BTreeMap<(EndpointId, u32), InFlight>>,
    /// Interfaces of a host that its ranks use.
    rails: HostRails,
    /// Words of endpoints to others of their host, by the endpoint and its count.
    handed_over: Mutex<BTreeMap<(EndpointId, u32), HandedOver>>,
    /// The first virtual interface of a node that programs may allocate, if its ranks leave it.
    first_free: u32,
    pending: WorkCounter,
}

impl LiveParameters {
    /// The parameters of the ranks of `job` on a machine with these limits.
    pub fn new(
        job: Arc<Job>,
        setup: &LiveSetup<'_>,
        limits: MachineLimits,
        accounts: Accounts,
    ) -> LiveParameters {
        let Accounts { seating, wanted, ports, recording } = accounts;
        LiveParameters {
            job,
            seating,
            poll: setup.poll,
            protocol: setup.protocol.clone(),
            overlapping: setup.overlapping,
            control: setup.protocol.control_bytes,
            wanted,
            ports,
            recording,
            payloads: Mutex::default(),
            exchanges: Mutex::new(Exchanges::new(setup.protocol)),
            limits: limits.interfaces,
            message_buffers: setup.message_buffers,
            domains: setup.domains.clone(),
            nodes: limits.endpoints,
            in_flight: Mutex::default(),
            rails: HostRails { count: setup.rails },
            handed_over: Mutex::default(),
            first_free: 0,
            pending: WorkCounter::default(),
        }
    }

    /// Something is beside the ranks, which leaves virtual interfaces from `first_free` on to programs. What
    /// is pending of the ranks is counted from now on.
    pub fn put_beside(&mut self, first_free: u32) -> Arc<PendingWork> {
        self.first_free = first_free;
        self.pending.begin()
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

    /// The outputs to which a ledger reports.
    fn told<'o>(&'o self, output: &'o mut ReplayOutput) -> LedgerOutputs<'o> {
        let Wanted { timeline, regions, .. } = self.wanted;
        LedgerOutputs { output, timeline, regions, recording: &self.recording }
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

    fn handed_over(&self) -> MutexGuard<'_, BTreeMap<(EndpointId, u32), HandedOver>> {
        lock(&self.handed_over)
    }

    /// Whether a rank has the memory that it says its data lies in.
    fn check_memory(&self, rank: u32, address: u64, length: u64) -> Result<(), Nonsense> {
        match RankMemory::of(&self.job, rank).contains(address, length) {
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

    /// The bytes of a message that has arrived. An interface that says that it has taken the data only when
    /// the receiver has acknowledged it has them read now.
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
    outgoing: OutgoingData,
    interfaces: VirtualInterfaces,
    /// Messages that it sends for ranks at other endpoints of its host.
    guests: Slab<Guest>,
    /// Counts what it has handed to those.
    handed_over: u32,
    /// Requests of its ranks to services that nobody has taken.
    requests: VecDeque<RankRequest>,
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
    /// The rank's clock when it last gave its turn away, or somebody answered in its place, in ps.
    clock: u64,
    /// Polls that find nothing after the first, before it waits; and those of them that it has not made.
    polls: u32,
    polls_left: u32,
    /// Waits with an end of their own so far.
    waits: u32,
    /// Who answers in its place.
    place: Answerer,
    /// Puts messages to be matched in order.
    order: ReorderBuffer<LiveHeader>,
    /// Numbers for the messages to be matched, by destination.
    numbers: Counters,
    /// The rails whose turn it is, of control messages and of data.
    next_rail: [u32; 2],
    /// Messages that it has sent in parts.
    striped: u32,
    /// Messages in parts that have not all come.
    stripes: Stripes,
    /// Notices that it has not been given, each with what it is of.
    notices: VecDeque<(Notice, Vec<u8>, Cause)>,
    idle: IdleTurns,
    /// Messages in the interface's queue for it that it has not taken.
    in_mailbox: u32,
    /// Bytes of the inbox's arena in use since the rank last emptied it.
    inbox_used: usize,
    ledger: Ledger,
    /// Times of the kernels of its node.
    kernels: Vec<KernelTime>,
    messages_sent: u64,
    messages_received: u64,
    sent: Bytes,
    received: Bytes,
}

/// Turns in a row of a rank whose clock stands still.
#[derive(Default)]
struct IdleTurns {
    turns: u32,
    /// The clock at their end, in ps.
    clock: u64,
}

impl IdleTurns {
    /// A turn ends at this clock, in ps. Returns how many have ended since the clock last went on.
    fn end_turn(&mut self, clock: u64) -> u32 {
        self.turns = if clock > self.clock { 0 } else { self.turns + 1 };
        self.clock = self.clock.max(clock);
        self.turns
    }
}

impl LiveRank {
    fn new(rank: u32) -> LiveRank {
        LiveRank {
            rank,
            wants: State::Real,
            clock: 0,
            polls: 0,
            polls_left: 0,
            waits: 0,
            place: Answerer::default(),
            order: ReorderBuffer::default(),
            numbers: Counters::default(),
            next_rail: [0; 2],
            striped: 0,
            stripes: Stripes::default(),
            notices: VecDeque::new(),
            idle: IdleTurns::default(),
            in_mailbox: 0,
            inbox_used: 0,
            ledger: Ledger::new(RankId(rank)),
            kernels: Vec::new(),
            messages_sent: 0,
            messages_received: 0,
            sent: Bytes::ZERO,
            received: Bytes::ZERO,
        }
    }

    /// Until when a rank that is given what has come for it can do nothing, since taking the first of it
    /// takes so long.
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

    /// Moves its notices into its inbox, as many as it has room for.
    fn fill_inbox(&mut self, job: &Job) {
        while let Some((notice, bytes, cause)) = self.notices.front() {
            if !job.notify(self.rank, *notice, bytes, &mut self.inbox_used) {
                break;
            }
            if !notice.is_answered() {
                self.ledger.gives(Time::from_ps(notice.at), *cause);
            }
            self.notices.pop_front();
        }
    }

    /// It takes what lies in its mailbox.
    fn empty_mailbox(&mut self, seat: usize, context: &mut impl HostContext<LiveHost>) {
        for _ in 0..std::mem::take(&mut self.in_mailbox) {
            let now = context.now();
            context.capabilities().take(seat as u16, now);
        }
    }

    /// How it has spent its time.
    fn report(&self) -> RankReport {
        let (end, computation, communication) =
            (self.ledger.clock(), self.ledger.computation(), self.ledger.work());
        RankReport {
            program: 0,
            rank: RankId(self.rank),
            start: Time::ZERO,
            end,
            finished: matches!(self.wants, State::Exit | State::Fence),
            operations: 0,
            awaited: 0,
            cores: 1,
            computation,
            memory_wait: Span::ZERO,
            communication,
            messages_sent: self.messages_sent,
            messages_received: self.messages_received,
            sent: self.sent,
            received: self.received,
        }
    }
}

impl LiveHost {
    /// The host with its surroundings, while it handles an event.
    fn handler<'a, C: HostContext<LiveHost>>(
        &'a mut self,
        parameters: &'a LiveParameters,
        context: &'a mut C,
    ) -> Handler<'a, C> {
        Handler { host: self, parameters, context }
    }

    /// How its ranks have spent their time.
    pub fn reports(&self) -> impl Iterator<Item = RankReport> {
        self.ranks.iter().map(LiveRank::report)
    }

    /// The MPI calls of its ranks.
    pub fn calls(&self) -> impl Iterator<Item = CallReport> {
        self.ranks.iter().flat_map(|rank| rank.ledger.calls())
    }

    /// Times of the kernels of its node.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelTime> {
        self.ranks.iter().flat_map(|rank| &rank.kernels)
    }

    /// The ends of its ranks.
    pub fn finishes(&self) -> impl Iterator<Item = Finish> {
        self.ranks.iter().map(|rank| rank.ledger.finish())
    }

    /// The mailboxes of its virtual interfaces with messages that no process has taken.
    pub(crate) fn mailboxes(&self) -> impl Iterator<Item = Mailbox> {
        self.interfaces.mailboxes().map(|(interface, seat, messages)| Mailbox {
            rank: self.ranks[seat].rank,
            interface,
            messages,
        })
    }

    /// Messages that its ranks have sent, and their bytes.
    pub fn sent_by_ranks(&self) -> (u64, Bytes) {
        let add = |(messages, bytes): (u64, Bytes), rank: &LiveRank| {
            (messages + rank.messages_sent, bytes + rank.sent)
        };
        self.ranks.iter().fold((0, Bytes::ZERO), add)
    }
}

impl RankHost for LiveHost {
    const ASK: bool = true;

    fn next_request(&mut self) -> Option<RankRequest> {
        self.requests.pop_front()
    }

    fn answered(
        &mut self,
        answer: &RankAnswer,
        parameters: &LiveParameters,
        context: &mut impl HostContext<Self>,
    ) {
        parameters.pending.answered();
        self.handler(parameters, &mut parameters.pending.count(context)).request_ended(answer);
        parameters.pending.stop_if_none(&parameters.job);
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

    fn ports(parameters: &LiveParameters) -> PortUse {
        parameters.ports.clone()
    }

    // Ranks join when they first need the network: the run wakes them.
    fn start(&mut self, parameters: &LiveParameters, context: &mut impl HostContext<Self>) {
        for seat in 0..self.ranks.len() {
            context.capabilities().open(seat as u16, parameters.domains.own());
        }
    }

    fn timer(&mut self, resume: Resume, parameters: &LiveParameters, context: &mut impl HostContext<Self>) {
        parameters.pending.fired();
        self.handler(parameters, &mut parameters.pending.count(context)).resume(resume);
        parameters.pending.stop_if_none(&parameters.job);
    }

    fn sent(&mut self, token: u32, parameters: &LiveParameters, context: &mut impl HostContext<Self>) {
        parameters.pending.taken(context.endpoint(), token);
        self.handler(parameters, &mut parameters.pending.count(context)).data_taken(token);
        parameters.pending.stop_if_none(&parameters.job);
    }

    fn destination(
        &mut self,
        message: Incoming<'_, LiveHeader>,
        parameters: &LiveParameters,
        context: &mut impl HostContext<Self>,
    ) -> Address {
        self.handler(parameters, &mut parameters.pending.count(context)).destination(message)
    }

    fn delivered(
        &mut self,
        message: &Delivered<LiveHeader>,
        parameters: &LiveParameters,
        context: &mut impl HostContext<Self>,
    ) {
        parameters.pending.arrived(message.from, message.number);
        self.handler(parameters, &mut parameters.pending.count(context)).arrive(message);
        parameters.pending.stop_if_none(&parameters.job);
    }

    fn failed(
        &mut self,
        failure: &Failure,
        parameters: &LiveParameters,
        context: &mut impl HostContext<Self>,
    ) {
        parameters.pending.failed(context.endpoint(), failure);
        self.handler(parameters, &mut parameters.pending.count(context)).fail(failure);
        parameters.pending.stop_if_none(&parameters.job);
    }

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, _: &LiveParameters, _: Time) -> Offer<LiveHeader> {
        Offer::Nothing
    }
}

/// The seats of a job's ranks.
pub fn seating(endpoints: &[EndpointId]) -> Seating {
    Seating::new([endpoints.iter().copied()])
}
