//! Replay: the ranks of programs, recorded or generated, on the hosts of a machine.
//!
//! ```text
//! Program ── Op ──▶ rank (clock) ──▶ Process ── spend ──▶ rank's clock
//!                     ▲               │  ▲
//!                  events            │  └── delivered, sent ── in order per pair ◀─┐
//!                                     └── post ──▶ interface ──▶ fabric ──▶ interface┘
//! ```
//! A host's ranks share its interface. Each has a processor of its own, which does one thing after the
//! other: what it computes and what messaging costs moves its clock. A rank's clock may be ahead of the
//! virtual time at which its host is called: what it posts goes out at its clock.
//!
//! The machine's [`ProgressRule`] says at which time a rank handles an event of its interface.
//!
//! Ranks of a host slow each other down where they compute on memory (`memory`) that they share.
//!
//! # Not modelled
//! Messages between ranks of a host past its interface: they go through it and the host's switch.

mod account;
mod calls;
mod compute_scale;
mod hierarchies;
mod interface;
mod memory;
mod program;
mod rails;
mod rank;
mod record;
mod region;
pub mod reorder;
mod report;
mod seating;
mod streams;
mod transport;

pub use calls::{CallReport, CallSum};
pub use compute_scale::{ComputeScale, NotAScale};
pub use memory::{CoreId, CoreSpeed, MemoryEvent};
pub use program::{Generated, Operations, Program, ReceivedMessage, Stepped};
pub use rails::{GuestFailure, GuestMessage, HostRails, RailEvent, Stripes};
pub use record::{Cause, Finish, MessageId, PostedMessage, RankStep, Record, StepKind};
pub use region::RegionReading;
pub use report::{
    Activity, ClockReading, Compared, Damage, Delivery, MessageClass, RankFailure, RankReport, ReplayOutput,
    ReplayedMessage, TimelineEvent, Wanted,
};
pub use seating::Seating;

use hierarchies::Hierarchies;
use memory::SharedMemory;
use rails::PendingSend;
use rank::{InterfaceEvent, ReplayRank};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use transport::RankContext;
use weft_engine::Payload;
use weft_fabric::MulticastGroup;
use weft_msg::{Blocked, Envelope, EnvelopeKind, MulticastLimit, Protocol};
use weft_nic::data::DataError;
use weft_nic::edge_form::PortUse;
use weft_nic::gvas::Pdid;
use weft_nic::{Delivered, Failure, Host, HostContext, Incoming, Offer};
use weft_topo::Topology;
use weft_units::{Address, EndpointId, RankId, Time};

/// The rule by which a rank handles events of its interface: messages that have arrived or gone out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ProgressRule {
    /// While it waits: in a wait or a blocking collective that is not over at once, one after the other
    /// until it is over. A call that need not wait looks at nothing, as in MPICH.
    Call,
    /// At once, by somebody else: a thread on a core of its own, or the interface. Whoever works on a
    /// rank's messages has its queues to himself: the rank's calls and that work exclude each other.
    Background,
}

/// The parameters that all hosts of a replay share.
pub struct ReplayParameters {
    programs: Vec<Program>,
    seating: Seating,
    /// Costs and limits of messaging.
    pub protocol: Protocol,
    /// The rule by which ranks notice arrivals and completed sends.
    pub progress: ProgressRule,
    /// The reports that are wanted beside sums.
    pub wanted: Wanted,
    /// The use of the ports of packetizers and mailboxes.
    pub ports: PortUse,
    /// From when on all is [recorded](Record) of which the critical path is made; `None`: nothing.
    pub record_from: Option<Time>,
    /// Whether a rank reports its clock at every marker of its program.
    pub report_clocks: bool,
    /// With which seed messages carry real bytes; `None`: they carry none. The block-level interface alone
    /// can do so.
    pub data: Option<u64>,
    /// By program: a factor on the time of each computation.
    pub compute_scales: Vec<ComputeScale>,
    /// The speed of cores and memory; `None`: the machine does not say.
    pub cores: Option<CoreSpeed>,
    /// By program: the time at which its ranks begin.
    pub starts: Vec<Time>,
    /// Interfaces of a host by which the messages of each of its ranks go out, as `protocol.rails` says; 1:
    /// that at which the rank sits.
    pub rails: u32,
    /// By program: the multicast group of its ranks, or why it has none. Empty: nobody made any.
    pub groups: Vec<Result<MulticastGroup, MulticastLimit>>,
    /// The places of communicators' members, where an algorithm asks for them.
    hierarchies: Option<Hierarchies>,
}

impl ReplayParameters {
    /// The programs, side by side. Reports nothing but sums.
    pub fn new(programs: Vec<Program>, protocol: Protocol, progress: ProgressRule) -> ReplayParameters {
        let places = programs.iter().map(|program| program.places.iter().map(|place| place.endpoint));
        let seating = Seating::new(places);
        let compute_scales = vec![ComputeScale::default(); programs.len()];
        let starts = vec![Time::ZERO; programs.len()];
        ReplayParameters {
            programs,
            seating,
            protocol,
            progress,
            wanted: Wanted::default(),
            ports: PortUse::default(),
            record_from: None,
            report_clocks: false,
            data: None,
            compute_scales,
            cores: None,
            starts,
            rails: 1,
            groups: Vec::new(),
            hierarchies: None,
        }
    }

    /// The interfaces of a host as its ranks number them.
    #[inline]
    fn rails(&self) -> HostRails {
        HostRails { count: self.rails }
    }

    /// The places of ranks are those in this topology, for algorithms of the table that ask for them.
    pub fn follow_topology(&mut self, topology: &impl Topology) {
        self.hierarchies = self.protocol.algorithms.follows_topology().then(|| Hierarchies::new(topology));
    }

    /// Makes a multicast group of the endpoints of each program, numbered from `first` on, whose members it
    /// returns by number. A program has none whose ranks share endpoints, with each other or with another's.
    pub fn make_groups(&mut self, first: u32) -> Vec<Vec<EndpointId>> {
        let mut first_at: BTreeMap<EndpointId, u32> = BTreeMap::new();
        let mut shared = vec![None; self.programs.len()];
        for (index, program) in self.programs.iter().enumerate() {
            for (rank, place) in program.places.iter().enumerate() {
                let number = self.number(index as u32, RankId::from(rank)).0;
                let before = *first_at.entry(place.endpoint).or_insert(number);
                if before != number {
                    let (other, _) = self.seating.program(RankId(before));
                    let limit = MulticastLimit::SharedEndpoint { first: before, second: number };
                    shared[index].get_or_insert(limit.clone());
                    shared[other as usize].get_or_insert(limit);
                }
            }
        }
        let mut members = Vec::new();
        let group = |(program, shared): (&Program, Option<MulticastLimit>)| match shared {
            Some(limit) => Err(limit),
            // A group of one has nobody to send to; nor has a broadcast.
            None if program.places.len() < 2 => Err(MulticastLimit::NoGroup),
            None => {
                let number = first + members.len() as u32;
                members.push(program.places.iter().map(|place| place.endpoint).collect());
                Ok(MulticastGroup::new(number))
            }
        };
        self.groups = self.programs.iter().zip(shared).map(group).collect();
        members
    }

    /// Whether what a rank begins at `begun` is recorded.
    #[inline]
    fn records(&self, begun: Time) -> bool {
        self.record_from.is_some_and(|from| begun >= from)
    }

    /// The programs.
    pub fn programs(&self) -> &[Program] {
        &self.programs
    }

    /// Which ranks there are, and where.
    pub fn seating(&self) -> &Seating {
        &self.seating
    }

    /// The number of a program's rank, counted over all programs.
    fn number(&self, program: u32, rank: RankId) -> RankId {
        self.seating.number(program, rank)
    }

    /// The rank in its program of one that is counted over all programs.
    fn program_rank(&self, program: u32, number: RankId) -> RankId {
        RankId(number.0 - self.number(program, RankId(0)).0)
    }

    /// The hosts of endpoints `0..endpoints`, each with its ranks.
    pub fn hosts(&self, endpoints: u32) -> Vec<ReplayHost> {
        let mut hosts: Vec<ReplayHost> =
            std::iter::repeat_with(ReplayHost::default).take(endpoints as usize).collect();
        for (index, program) in self.programs.iter().enumerate() {
            for (rank, place) in program.places.iter().enumerate() {
                let rank = RankId::from(rank);
                let number = self.number(index as u32, rank);
                let ranks = &mut hosts[place.endpoint.index()].ranks;
                let seat = ranks.len() as u32;
                let mut new = ReplayRank::new(index as u32, program, (rank, number));
                if matches!(program.operations, Operations::Stepped(_)) {
                    new.account.untold = Some(Box::default());
                }
                ranks.push(new);
                let interface = self.rails().interface(place.endpoint, seat);
                for rail in 1..self.rails {
                    let endpoint = self.rails().endpoint(place.endpoint, rail);
                    hosts[endpoint.index()].guests.push((interface, index as u32));
                }
            }
        }
        hosts
    }
}

/// The ranks behind one endpoint.
#[derive(Default, Serialize, Deserialize)]
pub struct ReplayHost {
    ranks: Vec<ReplayRank>,
    /// Sends that wait for the interface to take them.
    pending_sends: Slab<PendingSend>,
    /// Virtual interfaces, with their programs, of ranks at other endpoints of the host that use this too.
    guests: Vec<(u16, u32)>,
    /// Messages that have been handed to other endpoints of the host.
    handed_over: u32,
    /// The memory of the host, at its first endpoint.
    memory: SharedMemory,
}

/// An event of a host of its own.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum ReplayTimer {
    /// Calls a rank back when the virtual time has reached its clock.
    Rank(u32),
    /// Comes from another endpoint of the host.
    Rail(RailEvent),
    /// Something happens to the memory of the host.
    Memory(MemoryEvent),
}

impl From<RailEvent> for ReplayTimer {
    fn from(event: RailEvent) -> ReplayTimer {
        ReplayTimer::Rail(event)
    }
}

impl Payload for ReplayTimer {
    fn tie(&self) -> u128 {
        match self {
            ReplayTimer::Rank(seat) => (*seat).into(),
            ReplayTimer::Rail(event) => event.tie(),
            ReplayTimer::Memory(event) => event.tie(),
        }
    }
}

/// The header that travels with a message of a replay.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ReplayHeader {
    envelope: Envelope,
    /// The rank that it is for, among those of its endpoint.
    seat: u32,
    /// Counts the messages from rank to rank that are to be matched; 0 for others.
    number: u32,
    /// The endpoint of the rank that it is for. Of no meaning in a multicast message.
    home: EndpointId,
    /// Of a message in parts, one by each rail: the count of such of its source, from 1 on.
    stripe: Option<NonZeroU32>,
}

impl ReplayHeader {
    /// The header of a message for the rank at this endpoint and seat.
    fn new(envelope: Envelope, (home, seat): (EndpointId, u32)) -> ReplayHeader {
        ReplayHeader { envelope, seat, number: 0, home, stripe: None }
    }

    /// The endpoint of the rank that it is for, where it is not `here`.
    fn home_elsewhere(&self, here: EndpointId) -> Option<EndpointId> {
        // A multicast message is for the rank at each endpoint at which it arrives.
        let is_elsewhere = self.home != here && self.envelope.kind() != EnvelopeKind::Multicast;
        is_elsewhere.then_some(self.home)
    }
}

impl ReplayHost {
    /// The summaries of its ranks.
    pub fn ranks(&self) -> impl Iterator<Item = RankReport> {
        self.ranks.iter().map(ReplayRank::report)
    }

    /// The calls of its ranks.
    pub fn calls(&self) -> impl Iterator<Item = CallReport> {
        self.ranks.iter().flat_map(ReplayRank::calls)
    }

    /// The calls in which its ranks wait, with their programs.
    pub fn blocked(&self) -> impl Iterator<Item = (u32, Blocked)> {
        let of_rank = |rank: &ReplayRank| {
            let program = rank.program();
            rank.blocked().into_iter().map(move |blocked| (program, blocked))
        };
        self.ranks.iter().flat_map(of_rank)
    }

    /// A rank, and the context in which it is called.
    fn rank<'h, C>(
        &'h mut self,
        seat: u32,
        parameters: &'h ReplayParameters,
        host: &'h mut C,
    ) -> (&'h mut ReplayRank, RankContext<'h, C>) {
        let ReplayHost { ranks, pending_sends, handed_over, .. } = self;
        (&mut ranks[seat as usize], RankContext { seat, pending_sends, handed_over, parameters, host })
    }

    /// A message that is kept under `key` has gone out by one rail: the rank is told when all its parts have.
    fn part_sent(&mut self, key: u32, parameters: &ReplayParameters, context: &mut impl HostContext<Self>) {
        let pending = &mut self.pending_sends[key as usize];
        if let PendingSend::Own { parts, .. } = pending {
            *parts -= 1;
            if *parts > 0 {
                return;
            }
        }
        match self.pending_sends.remove(key as usize) {
            PendingSend::Own { seat, token, number, .. } => {
                let message = MessageId { source: context.endpoint(), number };
                let (rank, mut context) = self.rank(seat, parameters, context);
                rank.handle(InterfaceEvent::Sent(token, message), &mut context);
            }
            PendingSend::Guest { home, key } => {
                if let Some(key) = key {
                    context.set_timer_of(home, context.now(), RailEvent::Sent(key).into());
                }
            }
        }
    }

    /// A message has come for a rank of this endpoint.
    #[inline]
    fn arrived(
        &mut self,
        message: &Delivered<ReplayHeader>,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<Self>,
    ) {
        let header = message.header.as_ref().expect("ranks send every message with a header");
        let cause = MessageId { source: message.from, number: message.number };
        let (rank, mut context) = self.rank(header.seat, parameters, context);
        let source = rank.number_of(header.envelope.source).0;
        if let Some(stripe) = header.stripe
            && !rank.stripes.arrive(source, stripe.get(), parameters.rails)
        {
            if message.in_mailbox {
                context.take_from_mailbox(message.noticed);
            }
            return;
        }
        if header.envelope.has_data() {
            rank.receive_data(message, header, &mut context);
        }
        if let Some(answer) = parameters.protocol.by_interface(rank.rank(), &header.envelope) {
            if message.in_mailbox {
                context.take_from_mailbox(message.noticed);
            }
            return rank.answer_by_interface(answer, (source, cause), &mut context);
        }
        let mut in_mailbox = message.in_mailbox;
        if !header.envelope.is_ordered() {
            let event = InterfaceEvent::Message { envelope: header.envelope, cause, in_mailbox };
            return rank.handle(event, &mut context);
        }
        let mut turn = rank.order.arrive(source, header.number, header.envelope);
        if turn.is_none() && in_mailbox {
            // A message that comes early must not keep out those before it: the library takes it out at once.
            context.take_from_mailbox(message.noticed);
        }
        while let Some(envelope) = turn {
            rank.handle(InterfaceEvent::Message { envelope, cause, in_mailbox }, &mut context);
            in_mailbox = false;
            turn = rank.order.next(source);
        }
    }

    /// A message of a rank of this endpoint has failed.
    fn fail_rank(
        &mut self,
        failure: &Failure,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<Self>,
    ) {
        let seat = u32::from(failure.interface) / parameters.rails;
        let (rank, mut context) = self.rank(seat, parameters, context);
        rank.fail_message(failure, &mut context);
    }
}

impl Host for ReplayHost {
    type Parameters = ReplayParameters;
    type Timer = ReplayTimer;
    type Header = ReplayHeader;
    type Output = ReplayOutput;

    fn is_active(&self) -> bool {
        !self.ranks.is_empty() || !self.guests.is_empty()
    }

    fn start(&mut self, parameters: &ReplayParameters, context: &mut impl HostContext<Self>) {
        for (seat, rank) in self.ranks.iter().enumerate() {
            // Each program is a protection domain.
            let interface = parameters.rails().interface(context.endpoint(), seat as u32);
            context.capabilities().open(interface, Pdid(rank.program() as u16));
        }
        for (interface, program) in &self.guests {
            context.capabilities().open(*interface, Pdid(*program as u16));
        }
        for seat in 0..self.ranks.len() as u32 {
            let (rank, mut context) = self.rank(seat, parameters, context);
            rank.begin(&mut context);
        }
    }

    fn timer(
        &mut self,
        timer: ReplayTimer,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<Self>,
    ) {
        match timer {
            ReplayTimer::Rank(seat) => {
                let (rank, mut context) = self.rank(seat, parameters, context);
                rank.advance(&mut context);
            }
            ReplayTimer::Rail(event) => self.rail_event(event, parameters, context),
            ReplayTimer::Memory(event) => self.memory_event(event, parameters, context),
        }
    }

    fn sent(&mut self, token: u32, parameters: &ReplayParameters, context: &mut impl HostContext<Self>) {
        self.part_sent(token, parameters, context);
    }

    fn destination(
        &mut self,
        message: Incoming<'_, ReplayHeader>,
        _: &ReplayParameters,
        context: &mut impl HostContext<Self>,
    ) -> Address {
        let ReplayHeader { seat, envelope, .. } = message.header;
        match message.header.home_elsewhere(context.endpoint()) {
            None => self.ranks[*seat as usize].destination(envelope),
            // The memory of a guest is known at its own endpoint only.
            Some(_) => Address::default(),
        }
    }

    #[inline]
    fn delivered(
        &mut self,
        message: &Delivered<ReplayHeader>,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<Self>,
    ) {
        if parameters.rails == 1 || !ReplayHost::hand_on(message, context) {
            self.arrived(message, parameters, context);
        }
    }

    fn accelerated(
        &mut self,
        token: u32,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<Self>,
    ) {
        let PendingSend::Own { seat, token, number, .. } = self.pending_sends.remove(token as usize) else {
            unreachable!("guests ask for no reductions")
        };
        let message = MessageId { source: context.endpoint(), number };
        let (rank, mut context) = self.rank(seat, parameters, context);
        rank.handle(InterfaceEvent::Accelerated(token, message), &mut context);
    }

    fn failed(
        &mut self,
        failure: &Failure,
        parameters: &ReplayParameters,
        context: &mut impl HostContext<Self>,
    ) {
        if self.fail_guest(failure, context).is_none() {
            self.fail_rank(failure, parameters, context);
        }
    }

    fn ports(parameters: &ReplayParameters) -> PortUse {
        parameters.ports.clone()
    }

    fn data(parameters: &ReplayParameters) -> Option<u64> {
        parameters.data
    }

    fn damaged(
        &mut self,
        error: &DataError,
        header: Option<&ReplayHeader>,
        context: &mut impl HostContext<Self>,
    ) {
        let here = context.endpoint();
        let at_home = header.filter(|header| header.home_elsewhere(here).is_none());
        let ranks = at_home.map(|header| {
            let rank = &self.ranks[header.seat as usize];
            (rank.number_of(header.envelope.source), rank.number())
        });
        context.output().damages.push(Damage { ranks, error: *error });
    }

    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, _: &ReplayParameters, _: Time) -> Offer<ReplayHeader> {
        Offer::Nothing
    }
}
