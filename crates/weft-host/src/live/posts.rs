//! Posts of ranks, on their way to the interface.

use super::header::{LiveHeader, LiveKind, LiveMessage, LiveRead, LiveWrite};
use super::payloads::Data;
use super::rails::Departure;
use super::{Handler, LiveHost, LiveParameters};
use crate::nonsense::{self, CheckedMessage, Nonsense};
use crate::reach::{ExpectedData, Region};
use crate::tag::program_tag;
use crate::turns::TurnEnd;
use std::num::NonZeroU32;
use weft_client::device::{LogEntry, Post, PostKind};
use weft_machine::MessageBuffers;
use weft_msg::{Body, Envelope, EnvelopeKind, RankEndpoints};
use weft_nic::{HostContext, Message, Primitive};
use weft_sim::experiment::kernels::{KernelActivity, KernelTime};
use weft_trace::op::CommId;
use weft_units::{Address, Bytes, EndpointId, RankId, Span, Time};
use weft_workload::replay::{self, MessageId};

/// Turns in a row without a later clock after which virtual time is taken to stand still.
const MAX_IDLE_TURNS: u32 = 20_000;
/// Bytes of posted messages that have not arrived, of all ranks together: bounds the memory that a rank which
/// posts without end takes.
const MAX_POSTED_BYTES: usize = 4 << 30;
/// Times of kernels that a rank may tell.
const MAX_KERNEL_TIMES: usize = 1 << 16;
/// Pieces of memory that a rank may register.
const MAX_REGIONS: usize = 1 << 20;

/// The steps that follow when the interface has taken the data of a message.
#[derive(Clone, Copy)]
pub(super) struct Taken {
    /// The number by which the rank hears of it, if it wants to.
    pub token: Option<NonZeroU32>,
    /// The payload whose bytes are to be read then.
    pub capture: Option<u32>,
    /// The operation of a virtual interface that ends then, without an answer.
    pub ends: Option<SilentEnd>,
}

/// The end of an operation of a virtual interface that nobody answers.
#[derive(Clone, Copy)]
pub(super) struct SilentEnd {
    /// The interface.
    pub interface: u16,
    /// The program's name for the operation.
    pub context: u64,
    /// The kind of post that it is.
    pub kind: PostKind,
}

/// Who sends a message.
#[derive(Clone, Copy)]
pub(super) enum Sender {
    /// The rank.
    Rank,
    /// The rank's interface, in answer to this message.
    Interface(MessageId),
}

/// A message to another rank.
pub(super) struct Parcel {
    /// For whom.
    pub to: u32,
    pub header: LiveHeader,
    pub bytes: Bytes,
    /// The place of the data in the rank's memory, if it lies there.
    pub buffer: Address,
    pub primitive: Primitive,
    /// The time at which it was offered.
    pub created_at: Time,
    /// The kind of the message in the protocol.
    pub kind: EnvelopeKind,
    /// The steps that follow when the data is taken, if any do.
    pub taken: Option<Taken>,
}

/// The data beside a message that a rank has posted.
fn data_of(post: &Post) -> Option<u64> {
    (post.flags & Post::WITH_DATA != 0).then_some(post.data)
}

impl<C: HostContext<LiveHost>> Handler<'_, C> {
    /// Carries what a rank has posted, as far as it may have, and what its time went into meanwhile.
    pub(super) fn carry(&mut self, seat: usize, end: TurnEnd) {
        let rank = &mut self.host.ranks[seat];
        let number = rank.rank;
        let (posts, log) = self.parameters.job.take_posts(number);
        if let TurnEnd::Wants(_, clock) = end
            && rank.idle.end_turn(clock) > MAX_IDLE_TURNS
        {
            self.parameters.job.accuse(number, Nonsense::Turns(MAX_IDLE_TURNS));
        }
        if self.parameters.payloads().posted() > MAX_POSTED_BYTES {
            self.parameters.job.accuse(number, Nonsense::Posted(MAX_POSTED_BYTES));
        }
        self.carry_all(seat, posts, &log);
    }

    /// Carries posts, and the time before, between and behind them.
    pub(super) fn carry_all(&mut self, seat: usize, posts: Vec<(Post, Vec<u8>)>, log: &[LogEntry]) {
        let number = self.host.ranks[seat].rank;
        let mut accounted = 0;
        for (post, bytes) in posts {
            let before = log.get(accounted..(post.logged as usize).min(log.len())).unwrap_or_default();
            accounted += before.len();
            let ledger = &mut self.host.ranks[seat].ledger;
            let mut told = self.parameters.told(self.context.output());
            before.iter().for_each(|entry| ledger.enter(entry, &mut told));
            if let Err(nonsense) = self.carry_one(seat, &post, bytes) {
                return self.parameters.job.accuse(number, nonsense);
            }
        }
        let ledger = &mut self.host.ranks[seat].ledger;
        let mut told = self.parameters.told(self.context.output());
        log[accounted..].iter().for_each(|entry| ledger.enter(entry, &mut told));
    }

    fn carry_one(&mut self, seat: usize, post: &Post, bytes: Vec<u8>) -> Result<(), Nonsense> {
        let kind = nonsense::check(post, self.parameters.seating.ranks() as usize)?;
        let rank = &self.host.ranks[seat];
        let number = rank.rank;
        // What a rank says of times is believed as far as it can be: nothing is posted in the past.
        let at = Time::from_ps(post.at).max(self.context.now()).max(rank.ledger.clock());
        match kind {
            PostKind::Message => return self.carry_message(seat, post, bytes, at),
            PostKind::Register => {
                let regions = &mut self.parameters.job.reach(number).regions;
                if regions.len() >= MAX_REGIONS {
                    return Err(Nonsense::Regions(MAX_REGIONS));
                }
                regions.insert(post.key, Region::of(post));
            }
            PostKind::Unregister => {
                self.parameters.job.reach(number).regions.remove(&post.key);
            }
            PostKind::Write => return self.carry_write(seat, post, bytes, at),
            PostKind::Read => {
                let (remote, key, length, local) = (post.remote, post.key, post.length, post.local);
                let opening = self.parameters.job.reach(number).opening;
                let read = LiveRead { remote, key, length, local, opening, token: post.token };
                let header = self.header(seat, post, LiveKind::Read(read))?;
                let control = Parcel::control(post.to, header, self.parameters, at);
                let parcel = Parcel { primitive: Primitive::ReadRequest, ..control };
                self.send(seat, parcel, Sender::Rank, at);
            }
            PostKind::Forget => {
                self.parameters.job.reach(number).close();
                self.close_all(seat);
            }
            PostKind::KernelTime => return self.keep_kernel_time(seat, post, &bytes),
            PostKind::ServiceGet | PostKind::ServicePut => return self.carry_request(seat, post, at),
            _ => return self.carry_interface(seat, post, bytes, at),
        }
        Ok(())
    }

    /// Keeps what a kernel of a rank's node has done with its time.
    fn keep_kernel_time(&mut self, seat: usize, post: &Post, bytes: &[u8]) -> Result<(), Nonsense> {
        let rank = &mut self.host.ranks[seat];
        let names = std::str::from_utf8(bytes).ok().and_then(|names| names.split_once('\0'));
        let (Some((kernel, stream)), Some(activity)) = (names, KernelActivity::of(post.data)) else {
            return Err(Nonsense::KernelTime(post.data));
        };
        if rank.kernels.len() >= MAX_KERNEL_TIMES {
            return Err(Nonsense::KernelTimes(MAX_KERNEL_TIMES));
        }
        // No kernel has run for longer than its rank.
        let time = Span::from_ps(post.length).min(rank.ledger.clock() - Time::ZERO);
        let (kernel, stream) = (kernel.to_owned(), stream.to_owned());
        rank.kernels.push(KernelTime { rank: RankId(rank.rank), kernel, activity, stream, time });
        Ok(())
    }

    /// The header of what a rank has posted.
    fn header(&self, seat: usize, post: &Post, kind: LiveKind) -> Result<LiveHeader, Nonsense> {
        let (_, to_seat) = self.parameters.seating.seat(RankId(post.to)).ok_or(Nonsense::Peer(post.to))?;
        Ok(LiveHeader::new(kind, self.host.ranks[seat].rank, to_seat))
    }

    fn carry_message(&mut self, seat: usize, post: &Post, bytes: Vec<u8>, at: Time) -> Result<(), Nonsense> {
        // A message's time counts from the call that posts it.
        let begun = Time::from_ps(post.begun).min(at);
        let number = self.host.ranks[seat].rank;
        let checked = self.parameters.exchanges().message(number, post, bytes.len(), begun)?;
        let CheckedMessage { envelope, tag, waits_since: created_at, on_wire } = checked;
        let mut sent = LiveMessage { envelope, number: 0, tag, data: data_of(post) };
        if envelope.is_ordered() {
            let next = self.host.ranks[seat].numbers.of(post.to);
            sent.number = *next;
            *next = next.wrapping_add(1);
        }
        let mut header = self.header(seat, post, LiveKind::Message(sent))?;
        let of_program = self.parameters.message_buffers == MessageBuffers::Program && is_of_program(tag);
        let (mut capture, mut buffer) = (None, Address::default());
        match envelope.body {
            Body::Eager { .. } => header.payload = Some(self.parameters.store(Data::Posted(bytes))),
            Body::ClearToSend { receive, .. } => {
                let (address, length) = (post.local, post.length);
                let place = match of_program {
                    true => self.parameters.job.reach(number).place(address, length),
                    false => weft_msg::place_of_received(CommId::WORLD, Some(RankId(post.to)), Some(0)),
                };
                let expected = ExpectedData { address, length, place };
                self.parameters.job.reach(number).expected.insert(receive.0, expected);
            }
            Body::Data { .. } => {
                self.parameters.check_memory(number, post.local, post.length)?;
                let (address, length) = (post.local, post.length);
                let place = self.parameters.store(Data::At { rank: number, address, length });
                header.payload = Some(place);
                capture = Some(place);
                buffer = match of_program {
                    true => self.parameters.job.reach(number).place(address, length),
                    false => weft_msg::place_of_sent(CommId::WORLD, RankId(post.to), 0),
                };
            }
            _ => {}
        }
        if carries_data(&envelope) {
            self.host.ranks[seat].counts_sent(envelope.bytes);
        }
        let taken = Taken { token: NonZeroU32::new(post.token), capture, ends: None };
        let follows = taken.token.is_some() || capture.is_some();
        let parcel = Parcel {
            to: post.to,
            header,
            bytes: on_wire,
            buffer,
            primitive: match envelope.body {
                Body::Data { .. } => Primitive::Write,
                _ => Primitive::Automatic,
            },
            created_at,
            kind: envelope.kind(),
            taken: follows.then_some(taken),
        };
        self.send(seat, parcel, Sender::Rank, at);
        Ok(())
    }

    fn carry_write(&mut self, seat: usize, post: &Post, bytes: Vec<u8>, at: Time) -> Result<(), Nonsense> {
        let endpoints = post.envelope.rank_endpoints().unwrap_or(RankEndpoints::FIRST);
        let (remote, key, token) = (post.remote, post.key, post.token);
        let write = LiveWrite { remote, key, endpoints, token, data: data_of(post) };
        let mut header = self.header(seat, post, LiveKind::Write(write))?;
        let copied = post.local == 0;
        let (rank, address, length) = (self.host.ranks[seat].rank, post.local, post.length);
        if !copied {
            self.parameters.check_memory(rank, address, length)?;
        } else if bytes.len() as u64 != length {
            return Err(Nonsense::Length { said: length, carried: bytes.len() as u64 });
        }
        let (data, buffer) = if copied {
            (Data::Posted(bytes), Address::default())
        } else {
            let buffer = self.parameters.job.reach(rank).place(address, length);
            (Data::At { rank, address, length }, buffer)
        };
        let place = self.parameters.store(data);
        header.payload = Some(place);
        self.host.ranks[seat].counts_sent(Bytes::new(post.length));
        let parcel = Parcel {
            to: post.to,
            header,
            bytes: Bytes::new(post.length),
            buffer,
            primitive: Primitive::Write,
            created_at: at,
            kind: EnvelopeKind::Data,
            taken: (!copied).then_some(Taken { token: None, capture: Some(place), ends: None }),
        };
        self.send(seat, parcel, Sender::Rank, at);
        Ok(())
    }

    /// Hands a message to the interface.
    pub(super) fn send(&mut self, seat: usize, parcel: Parcel, sender: Sender, at: Time) {
        let Parcel { to, header, bytes, buffer, primitive, created_at, kind, taken } = parcel;
        let endpoint: EndpointId = self.parameters.seating.endpoint(RankId(to));
        let rank = &mut self.host.ranks[seat];
        let mut told = self.parameters.told(self.context.output());
        let after = match sender {
            Sender::Rank => rank.ledger.posts(at, &mut told),
            Sender::Interface(cause) => rank.ledger.answers(at, cause, &mut told),
        };
        let key = taken.map(|taken| self.host.outgoing.insert(seat, taken));
        let of_program = matches!(kind, EnvelopeKind::Eager | EnvelopeKind::Data);
        let message = Message {
            header: Some(header),
            token: key,
            primitive,
            purpose: header.kind.purpose(),
            interface: seat as u16,
            to_interface: header.seat as u16,
            buffer,
            watch: after.is_some(),
            of_program,
            ..Message::new(endpoint, bytes, created_at)
        };
        let by_processor = matches!(sender, Sender::Rank);
        let departure = Departure { seat, has_data: of_program, by_processor, at };
        let Some(number) = self.send_by_rails(message, departure) else { return };
        if let Some(key) = key {
            let source = self.context.endpoint();
            self.host.outgoing.set_message(key, MessageId { source, number });
        }
        if let Some(after) = after {
            let message = MessageId { source: self.context.endpoint(), number };
            let (rank, to, payload) = (RankId(self.host.ranks[seat].rank), RankId(to), bytes);
            self.context.output().record.posts.push(replay::PostedMessage {
                message,
                rank,
                to,
                kind,
                payload,
                at,
                after,
            });
        }
    }
}

/// Whether a message lies where the program has said, as far as its tag tells: MPICH hands the buffers of
/// sends and receives on, and gives its collectives vectors of its own.
fn is_of_program(tag: Option<u64>) -> bool {
    tag.and_then(program_tag).is_some()
}

impl Parcel {
    /// A control message between interfaces.
    pub fn control(to: u32, header: LiveHeader, parameters: &LiveParameters, at: Time) -> Parcel {
        Parcel {
            to,
            header,
            bytes: parameters.control,
            buffer: Address::default(),
            primitive: Primitive::Automatic,
            created_at: at,
            kind: EnvelopeKind::Ack,
            taken: None,
        }
    }
}

/// Whether a message carries data of ranks.
pub(super) fn carries_data(envelope: &Envelope) -> bool {
    matches!(envelope.body, Body::Eager { .. } | Body::Data { .. })
}
