//! A host of the simulated machine whose ranks are processes.
//!
//! ```text
//!   engine ── timer: its time has come ──┐         ┌─► posts ──► HostContext::send ──► interface
//!          ── delivered, sent ──► notice ┴─► turn ─┤
//!                                                  └─► wants: a timer at its clock | to wait | fenced | gone
//! ```
//! Payloads of real ranks lie beside the simulation, in the job: a message's header names them. They do
//! not influence it.
//!
//! # When bytes are taken
//! Small messages are copied when they are posted. Announced data and RDMA writes are read from the
//! sender's memory when the interface has taken them, and written to the receiver's when they have
//! arrived. Reads are answered by the target's interface without its processor.
//!
//! # What is believed
//! Nothing: what a rank has posted goes through the [`ledger`](crate::ledger) first. A rank that posts what no library does
//! ends the job, with what was wrong.

mod interfaces;

pub use interfaces::InterfaceLimits;

use crate::job::{Job, Region, TurnEnd, Unread};
use crate::ledger::{self, Ledger, Nonsense};
use crate::virtual_interfaces::{Carried, JOB_DOMAIN, VirtualInterfaces};
use interfaces::InFlight;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use weft_client::device::{Notice, NoticeKind, Post, PostKind, RawEnvelope, State};
use weft_engine::Payload;
use weft_msg::{Envelope, EnvelopeKind, Protocol};
use weft_nic::gvas::Pdid;
use weft_nic::{Delivered, Failure, Host, HostContext, Message, Observer, Offer, Primitive};
use weft_units::{Bytes, EndpointId, RankId, Time};
use weft_workload::replay::order::{Counters, Restore};
use weft_workload::replay::{Delivery, ReplayOutput, ReplayedMessage};

/// Turns without a later clock after which virtual time is taken to stand still.
const IDLE_TURNS: u32 = 20_000;
/// Bytes that all ranks together may have posted with messages that have not arrived: a rank that posts without end is not to
/// take all memory.
const POSTED: usize = 4 << 30;
/// Pieces of memory that a rank may register.
const REGIONS: usize = 1 << 20;

/// The payloads of messages under way.
#[derive(Default)]
struct Payloads {
    next: u32,
    /// Bytes that ranks have posted and nobody has received.
    posted: usize,
    kept: BTreeMap<u32, Data>,
}

impl Payloads {
    fn remove(&mut self, number: u32) -> Option<Data> {
        let data = self.kept.remove(&number);
        if let Some(Data::Posted(bytes)) = &data {
            self.posted -= bytes.len();
        }
        data
    }
}

/// A payload.
enum Data {
    /// Posted with its message.
    Posted(Vec<u8>),
    /// Taken from memory.
    Bytes(Vec<u8>),
    /// It lies in the memory of a rank, which has lent it until the send is complete.
    At { rank: u32, address: u64, length: u64 },
}

impl Data {
    fn bytes(self, job: &Job) -> Vec<u8> {
        match self {
            Data::Posted(bytes) | Data::Bytes(bytes) => bytes,
            Data::At { rank, address, length } => match job.read(rank, address, length) {
                Ok(bytes) => bytes,
                // A rank that has died has no memory.
                Err(Unread::Gone) => Vec::new(),
                Err(Unread::NoSuchMemory) => {
                    job.accuse(rank, Nonsense::Memory { address, length });
                    Vec::new()
                }
            },
        }
    }
}

/// What all hosts of a run share.
pub struct LiveParameters {
    job: Arc<Job>,
    /// Of each rank: its endpoint, and its number among the ranks there.
    seats: Vec<(EndpointId, u32)>,
    /// Bytes on the wire of a request or acknowledgement between interfaces.
    control: Bytes,
    /// Whether every message is to be reported.
    pub report_messages: bool,
    /// Whether flows are to be reported.
    pub report_flows: bool,
    payloads: Mutex<Payloads>,
    ledger: Mutex<Ledger>,
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
    /// The ranks of `job` at these endpoints of a machine with so many `nodes`.
    pub fn new(
        job: Arc<Job>,
        endpoints: &[EndpointId],
        protocol: &Protocol,
        limits: InterfaceLimits,
        nodes: u32,
    ) -> LiveParameters {
        let mut seats = Vec::with_capacity(endpoints.len());
        for (index, endpoint) in endpoints.iter().enumerate() {
            let before = endpoints[..index].iter().filter(|other| *other == endpoint).count();
            seats.push((*endpoint, before as u32));
        }
        LiveParameters {
            job,
            seats,
            control: protocol.control_bytes,
            report_messages: false,
            report_flows: false,
            payloads: Mutex::default(),
            ledger: Mutex::new(Ledger::new(protocol)),
            limits,
            nodes,
            in_flight: Mutex::default(),
        }
    }

    /// The hosts of endpoints `0..endpoints`, each with its ranks.
    pub fn hosts(&self, endpoints: u32) -> Vec<LiveHost> {
        let mut hosts: Vec<LiveHost> =
            std::iter::repeat_with(LiveHost::default).take(endpoints as usize).collect();
        for (rank, (endpoint, _)) in (0..).zip(&self.seats) {
            hosts[endpoint.index()].ranks.push(LiveRank::new(rank));
        }
        hosts
    }

    /// Where a rank sits.
    pub fn seat(&self, rank: u32) -> (EndpointId, u32) {
        self.seats[rank as usize]
    }

    fn payloads(&self) -> MutexGuard<'_, Payloads> {
        lock(&self.payloads)
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
            self.payloads().remove(number);
        }
    }

    /// Keeps a payload until its message has arrived.
    fn store(&self, data: Data) -> u32 {
        let mut payloads = self.payloads();
        let mut number = payloads.next;
        while payloads.kept.contains_key(&number) {
            number = number.wrapping_add(1);
        }
        payloads.next = number.wrapping_add(1);
        if let Data::Posted(bytes) = &data {
            payloads.posted += bytes.len();
        }
        payloads.kept.insert(number, data);
        number
    }

    /// The interface has taken the data of a message: its bytes are those that lie there now.
    fn capture(&self, number: u32) {
        let mut payloads = self.payloads();
        if let Some(data @ Data::At { .. }) = payloads.kept.get_mut(&number) {
            let bytes = std::mem::replace(data, Data::Bytes(Vec::new())).bytes(&self.job);
            *data = Data::Bytes(bytes);
        }
    }

    /// The bytes of a message that has arrived. An interface that says that it has taken the data only when the receiver has
    /// acknowledged it has them read now.
    fn take(&self, number: Option<u32>) -> Vec<u8> {
        let data = number.and_then(|number| self.payloads().remove(number));
        data.map_or_else(Vec::new, |data| data.bytes(&self.job))
    }
}

/// The ranks behind one endpoint.
#[derive(Default)]
pub struct LiveHost {
    ranks: Vec<LiveRank>,
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

/// A message on its way out.
struct Outgoing {
    seat: u32,
    /// What the rank wants to hear; 0: nothing.
    token: u32,
    /// The payload whose bytes are to be read now.
    capture: Option<u32>,
}

/// A rank, as the simulation sees it.
struct LiveRank {
    rank: u32,
    wants: State,
    /// Puts messages to be matched in order.
    order: Restore<LiveHeader>,
    /// Numbers for the messages to be matched, by destination.
    numbers: Counters,
    /// Notices that it has not been given.
    notices: VecDeque<(Notice, Vec<u8>)>,
    /// Turns in a row without a later clock, and that clock in ps.
    idle: (u32, u64),
    /// Messages in the interface's queue for it that it has not taken.
    in_mailbox: u32,
    messages_sent: u64,
    sent: Bytes,
}

impl LiveRank {
    fn new(rank: u32) -> LiveRank {
        LiveRank {
            rank,
            wants: State::Real,
            order: Restore::default(),
            numbers: Counters::default(),
            notices: VecDeque::new(),
            idle: (0, 0),
            in_mailbox: 0,
            messages_sent: 0,
            sent: Bytes::ZERO,
        }
    }
}

/// What a live rank's message is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Kind {
    /// Of messaging.
    Message(Envelope),
    /// An RDMA write to this address under this key.
    Write { remote: u64, key: u64 },
    /// The answer to a write or a read: the operation, and an errno.
    Done { token: u32, error: i32 },
    /// A request to write so many bytes back.
    Read { remote: u64, key: u64, length: u64, local: u64, opening: u32 },
    /// What was read, for the memory of that opening.
    Answer { local: u64, token: u32, opening: u32 },
    /// Between virtual interfaces.
    Interface(Carried),
}

/// What travels with a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LiveHeader {
    kind: Kind,
    source: u32,
    /// The rank that it is for, among those of its endpoint.
    seat: u32,
    /// Counts the messages from rank to rank that are to be matched.
    number: u32,
    /// Its bytes in the job's store.
    payload: Option<u32>,
    data: u64,
    with_data: bool,
    token: u32,
}

impl LiveHeader {
    fn is_matched(&self) -> bool {
        matches!(&self.kind, Kind::Message(envelope)
            if matches!(envelope.kind, EnvelopeKind::Eager | EnvelopeKind::RequestToSend))
    }
}

/// Calls a rank when the virtual time has reached its clock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Resume(pub u32);

impl Payload for Resume {
    fn tie(&self) -> u128 {
        self.0.into()
    }
}

impl LiveHost {
    /// Messages that its ranks have sent, and their bytes.
    pub fn sent_by_ranks(&self) -> (u64, Bytes) {
        let add = |(messages, bytes): (u64, Bytes), rank: &LiveRank| {
            (messages + rank.messages_sent, bytes + rank.sent)
        };
        self.ranks.iter().fold((0, Bytes::ZERO), add)
    }

    /// Gives a rank turns until it waits for something that is not there.
    fn run(&mut self, seat: usize, parameters: &LiveParameters, context: &mut impl HostContext<LiveHost>) {
        loop {
            let rank = &mut self.ranks[seat];
            let number = rank.rank;
            let mut used = 0;
            while let Some((notice, bytes)) = rank.notices.front() {
                if !parameters.job.notify(number, *notice, bytes, &mut used) {
                    break;
                }
                rank.notices.pop_front();
            }
            for _ in 0..std::mem::take(&mut rank.in_mailbox) {
                context.taken(seat as u16, context.now());
            }
            let quiet = if rank.notices.is_empty() { context.quiet_until() } else { Time::ZERO };
            let end = parameters.job.run(number, quiet.as_ps());
            self.carry(seat, end, parameters, context);
            let rank = &mut self.ranks[seat];
            match end {
                _ if parameters.job.is_stopping() => {
                    rank.wants = State::Exit;
                    return;
                }
                TurnEnd::Wants(State::Wait, _) => {
                    rank.wants = State::Wait;
                    if rank.notices.is_empty() {
                        return;
                    }
                }
                TurnEnd::Wants(State::Ready, clock) => {
                    rank.wants = State::Ready;
                    let at = Time::from_ps(clock).max(context.now());
                    return context.set_timer(at, Resume(seat as u32));
                }
                TurnEnd::Wants(state, _) => {
                    rank.wants = state;
                    return;
                }
                TurnEnd::Died | TurnEnd::Cut => {
                    rank.wants = State::Exit;
                    return;
                }
            }
        }
    }

    /// Carries what a rank has posted, as far as it may have.
    fn carry(
        &mut self,
        seat: usize,
        end: TurnEnd,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let rank = &mut self.ranks[seat];
        let number = rank.rank;
        let posts = parameters.job.take_posts(number);
        if let TurnEnd::Wants(_, clock) = end {
            let turns = if clock > rank.idle.1 { 0 } else { rank.idle.0 + 1 };
            rank.idle = (turns, clock.max(rank.idle.1));
            if rank.idle.0 > IDLE_TURNS {
                parameters.job.accuse(number, Nonsense::Turns(IDLE_TURNS));
            }
        }
        if parameters.payloads().posted > POSTED {
            parameters.job.accuse(number, Nonsense::Posted(POSTED));
        }
        for (post, bytes) in posts {
            if let Err(nonsense) = self.carry_one(seat, &post, bytes, parameters, context) {
                return parameters.job.accuse(number, nonsense);
            }
        }
    }

    fn carry_one(
        &mut self,
        seat: usize,
        post: &Post,
        bytes: Vec<u8>,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) -> Result<(), Nonsense> {
        let kind = ledger::check(post, parameters.seats.len())?;
        let rank = &mut self.ranks[seat];
        // What a rank says of times is believed as far as it can be: nothing is posted in the past.
        let at = Time::from_ps(post.at).max(context.now());
        // Posts that are for no rank have none.
        let (to, to_seat) =
            parameters.seats.get(post.to as usize).copied().unwrap_or((context.endpoint(), 0));
        let (interface, to_interface) = (seat as u16, to_seat as u16);
        let header = |kind| LiveHeader {
            kind,
            source: rank.rank,
            seat: to_seat,
            number: 0,
            payload: None,
            data: post.data,
            with_data: post.flags & Post::WITH_DATA != 0,
            token: post.token,
        };
        match kind {
            PostKind::Message => {
                let message = lock(&parameters.ledger).message(rank.rank, post, bytes.len(), at);
                let (envelope, born, on_wire) = message?;
                let mut header = header(Kind::Message(envelope));
                if header.is_matched() {
                    let next = rank.numbers.of(post.to);
                    header.number = *next;
                    *next = next.wrapping_add(1);
                }
                let mut capture = None;
                match envelope.kind {
                    EnvelopeKind::Eager => header.payload = Some(parameters.store(Data::Posted(bytes))),
                    EnvelopeKind::ClearToSend => {
                        let mut reach = parameters.job.reach(rank.rank);
                        reach.expected.insert(envelope.receive, (post.local, post.length));
                    }
                    EnvelopeKind::Data => {
                        parameters.check_memory(rank.rank, post.local, post.length)?;
                        let (address, length) = (post.local, post.length);
                        let place = parameters.store(Data::At { rank: rank.rank, address, length });
                        header.payload = Some(place);
                        capture = Some(place);
                    }
                    _ => {}
                }
                if matches!(envelope.kind, EnvelopeKind::Eager | EnvelopeKind::Data) {
                    rank.messages_sent += 1;
                    rank.sent += envelope.bytes;
                }
                let primitive = match envelope.kind {
                    EnvelopeKind::Data => Primitive::Write,
                    _ => Primitive::Automatic,
                };
                let wanted = post.token != 0 || capture.is_some();
                let token = wanted.then(|| {
                    self.outgoing.insert(Outgoing { seat: seat as u32, token: post.token, capture }) as u32
                });
                let message = Message {
                    to,
                    bytes: on_wire,
                    born,
                    header: Some(header),
                    token,
                    primitive,
                    interface,
                    to_interface,
                    watch: false,
                };
                context.send(message, at);
            }
            PostKind::Register => {
                let regions = &mut parameters.job.reach(rank.rank).regions;
                if regions.len() >= REGIONS {
                    return Err(Nonsense::Regions(REGIONS));
                }
                regions.insert(post.key, Region::of(post));
            }
            PostKind::Unregister => {
                parameters.job.reach(rank.rank).regions.remove(&post.key);
            }
            PostKind::Write => {
                let mut header = header(Kind::Write { remote: post.remote, key: post.key });
                let taken = post.local == 0;
                let (address, length) = (post.local, post.length);
                if !taken {
                    parameters.check_memory(rank.rank, address, length)?;
                } else if bytes.len() as u64 != length {
                    return Err(Nonsense::Length { said: length, carried: bytes.len() as u64 });
                }
                let data =
                    if taken { Data::Posted(bytes) } else { Data::At { rank: rank.rank, address, length } };
                let place = parameters.store(data);
                header.payload = Some(place);
                let capture = (!taken).then_some(place);
                let token = capture
                    .is_some()
                    .then(|| self.outgoing.insert(Outgoing { seat: seat as u32, token: 0, capture }) as u32);
                let bytes = Bytes::new(post.length);
                let primitive = Primitive::Write;
                let message = Message {
                    to,
                    bytes,
                    born: at,
                    header: Some(header),
                    token,
                    primitive,
                    interface,
                    to_interface,
                    watch: false,
                };
                context.send(message, at);
            }
            PostKind::Read => {
                let (remote, key, length, local) = (post.remote, post.key, post.length, post.local);
                let opening = parameters.job.reach(rank.rank).opening;
                let kind = Kind::Read { remote, key, length, local, opening };
                send_control(header(kind), to, seat, parameters.control, at, context);
            }
            PostKind::Forget => {
                let mut reach = parameters.job.reach(rank.rank);
                reach.opening = reach.opening.wrapping_add(1);
                reach.regions.clear();
                reach.expected.clear();
                drop(reach);
                self.close_all(seat, context);
            }
            _ => return self.carry_interface(seat, post, bytes, at, parameters, context),
        }
        Ok(())
    }

    /// Tells a rank something; one that waits goes on.
    fn tell(
        &mut self,
        seat: usize,
        notice: Notice,
        bytes: Vec<u8>,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let rank = &mut self.ranks[seat];
        rank.notices.push_back((Notice { at: context.now().as_ps(), ..notice }, bytes));
        if rank.wants == State::Wait {
            self.run(seat, parameters, context);
        }
    }

    /// A message of messaging has had its turn.
    fn deliver(
        &mut self,
        header: &LiveHeader,
        envelope: &Envelope,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let bytes = parameters.take(header.payload);
        let seat = header.seat as usize;
        let mut small = Vec::new();
        match envelope.kind {
            EnvelopeKind::Data => {
                // It goes where this rank has said, not where the sender says.
                let number = self.ranks[seat].rank;
                let expected = parameters.job.reach(number).expected.remove(&envelope.receive);
                if let Some((address, length)) = expected {
                    let length = bytes.len().min(length as usize);
                    parameters.job.write(number, address, &bytes[..length]);
                }
            }
            _ => small = bytes,
        }
        let notice = Notice {
            kind: NoticeKind::Message as u32,
            envelope: RawEnvelope::from(envelope),
            data: header.data,
            flags: if header.with_data { Post::WITH_DATA } else { 0 },
            ..Notice::default()
        };
        self.tell(seat, notice, small, parameters, context);
    }
}

/// Sends what interfaces say to each other.
fn send_control(
    header: LiveHeader,
    to: EndpointId,
    seat: usize,
    bytes: Bytes,
    at: Time,
    context: &mut impl HostContext<LiveHost>,
) {
    let primitive = Primitive::Automatic;
    let (interface, to_interface) = (seat as u16, header.seat as u16);
    let message = Message {
        to,
        bytes,
        born: at,
        header: Some(header),
        token: None,
        primitive,
        interface,
        to_interface,
        watch: false,
    };
    context.send(message, at);
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

    fn timer(
        &mut self,
        Resume(seat): Resume,
        parameters: &LiveParameters,
        context: &mut impl HostContext<Self>,
    ) {
        self.run(seat as usize, parameters, context);
    }

    fn sent(&mut self, token: u32, parameters: &LiveParameters, context: &mut impl HostContext<Self>) {
        let Outgoing { seat, token, capture } = self.outgoing.remove(token as usize);
        if let Some(number) = capture {
            parameters.capture(number);
        }
        if token != 0 {
            let notice = Notice { kind: NoticeKind::Sent as u32, token, ..Notice::default() };
            self.tell(seat as usize, notice, Vec::new(), parameters, context);
        }
    }

    fn delivered(
        &mut self,
        message: &Delivered<LiveHeader>,
        parameters: &LiveParameters,
        context: &mut impl HostContext<Self>,
    ) {
        let header = *message.header.as_ref().expect("ranks send every message with a header");
        if let Kind::Interface(carried) = &header.kind {
            return self.interface_delivered(message, &header, carried, parameters, context);
        }
        let seat = header.seat as usize;
        let own = self.ranks[seat].rank;
        if message.in_mailbox {
            let rank = &mut self.ranks[seat];
            let takes = matches!(rank.wants, State::Ready | State::Wait | State::Run);
            if takes && matches!(header.kind, Kind::Message(_)) {
                rank.in_mailbox += 1;
            } else {
                // The interface's own, or for a rank that is outside virtual time: nothing waits for it.
                context.taken(seat as u16, context.now());
            }
        }
        let (source, _) = parameters.seats[header.source as usize];
        let back = |kind| LiveHeader {
            kind,
            source: own,
            seat: parameters.seats[header.source as usize].1,
            number: 0,
            payload: None,
            data: 0,
            with_data: false,
            token: 0,
        };
        match header.kind {
            Kind::Message(envelope) => {
                if matches!(envelope.kind, EnvelopeKind::Eager | EnvelopeKind::Data) {
                    report(message, &header, &envelope, own, parameters, context);
                }
                if !header.is_matched() {
                    return self.deliver(&header, &envelope, parameters, context);
                }
                let mut turn = self.ranks[seat].order.arrive(header.source, header.number, header);
                while let Some(next) = turn {
                    if let Kind::Message(envelope) = next.kind {
                        self.deliver(&next, &envelope, parameters, context);
                    }
                    turn = self.ranks[seat].order.next(header.source);
                }
            }
            Kind::Write { remote, key } => {
                let bytes = parameters.take(header.payload);
                let region = parameters.job.reach(own).regions.get(&key).copied();
                let permitted = region.is_some_and(|region| region.permits(remote, bytes.len() as u64, true));
                let written = permitted && parameters.job.write(own, remote, &bytes);
                let error = if written { 0 } else { libc::EACCES };
                let now = context.now();
                let answer = back(Kind::Done { token: header.token, error });
                send_control(answer, source, seat, parameters.control, now, context);
                if written {
                    // A rank that waits looks at memory that has changed.
                    let (kind, data) = (NoticeKind::Written as u32, header.data);
                    let flags = if header.with_data { Post::WITH_DATA } else { 0 };
                    let length = Bytes::new(bytes.len() as u64);
                    let from = RankId(header.source);
                    let about = Envelope::of_real_rank(EnvelopeKind::Eager, false, from, 0, length);
                    let envelope = RawEnvelope::from(&about);
                    let notice = Notice { kind, data, flags, envelope, ..Notice::default() };
                    self.tell(seat, notice, Vec::new(), parameters, context);
                }
            }
            Kind::Read { remote, key, length, local, opening } => {
                let region = parameters.job.reach(own).regions.get(&key).copied();
                let bytes = match region.is_some_and(|region| region.permits(remote, length, false)) {
                    true => parameters.job.read(own, remote, length).ok(),
                    false => None,
                };
                let now = context.now();
                match bytes {
                    Some(bytes) => {
                        let answer_seat = parameters.seats[header.source as usize].1;
                        let mut answer = back(Kind::Answer { local, token: header.token, opening });
                        answer.payload = Some(parameters.store(Data::Bytes(bytes)));
                        let message = Message {
                            to: source,
                            bytes: Bytes::new(length),
                            born: now,
                            header: Some(answer),
                            token: None,
                            primitive: Primitive::Write,
                            interface: seat as u16,
                            to_interface: answer_seat as u16,
                            watch: false,
                        };
                        context.send(message, now);
                    }
                    None => {
                        let answer = back(Kind::Done { token: header.token, error: libc::EACCES });
                        send_control(answer, source, seat, parameters.control, now, context);
                    }
                }
            }
            Kind::Done { token, error } => {
                let notice = Notice { kind: NoticeKind::Done as u32, token, error, ..Notice::default() };
                self.tell(seat, notice, Vec::new(), parameters, context);
            }
            Kind::Answer { local, token, opening } => {
                let bytes = parameters.take(header.payload);
                // A rank that has been closed since has its memory back.
                let lent = parameters.job.reach(own).opening == opening;
                let error = if lent && parameters.job.write(own, local, &bytes) { 0 } else { libc::EFAULT };
                let notice = Notice { kind: NoticeKind::Done as u32, token, error, ..Notice::default() };
                self.tell(seat, notice, Vec::new(), parameters, context);
            }
            Kind::Interface(_) => {}
        }
    }

    fn failed(
        &mut self,
        failure: &Failure,
        parameters: &LiveParameters,
        context: &mut impl HostContext<Self>,
    ) {
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

fn report(
    message: &Delivered<LiveHeader>,
    header: &LiveHeader,
    envelope: &Envelope,
    receiver: u32,
    parameters: &LiveParameters,
    context: &mut impl HostContext<LiveHost>,
) {
    let (now, destination, posted) = (context.now(), context.endpoint(), message.born);
    let bytes = envelope.bytes;
    let output = context.output();
    if output.programs.is_empty() {
        output.programs.push(Delivery::default());
    }
    output.programs[0].completion.record(now - posted);
    output.programs[0].bytes += bytes;
    if parameters.report_flows {
        output.flows.entry((message.from, destination)).or_default().record(bytes, posted, now);
    }
    if parameters.report_messages {
        output.messages.push(ReplayedMessage {
            delivered: now,
            source: message.from,
            destination,
            number: message.number,
            source_rank: RankId(header.source),
            destination_rank: RankId(receiver),
            tag: None,
            bytes,
            posted,
            hops: message.hops,
        });
    }
}
