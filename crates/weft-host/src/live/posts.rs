//! What ranks post, on its way to the interface.

use super::header::{Kind, LiveHeader};
use super::payloads::Data;
use super::{LiveHost, LiveParameters};
use crate::nonsense::{self, Nonsense};
use crate::reach::Region;
use crate::turns::TurnEnd;
use weft_client::device::{Entry, Post, PostKind};
use weft_msg::{Envelope, EnvelopeKind};
use weft_nic::{HostContext, Message, Primitive};
use weft_units::{Bytes, EndpointId, RankId, Time};
use weft_workload::replay::{self, MessageId};

/// Turns without a later clock after which virtual time is taken to stand still.
const IDLE_TURNS: u32 = 20_000;
/// Bytes that all ranks together may have posted with messages that have not arrived: a rank that posts without end is not to
/// take all memory.
const POSTED: usize = 4 << 30;
/// Pieces of memory that a rank may register.
const REGIONS: usize = 1 << 20;

/// A message on its way out.
pub(super) struct Outgoing {
    pub seat: u32,
    /// What the interface calls it.
    pub number: u32,
    /// What the rank wants to hear; 0: nothing.
    pub token: u32,
    /// The payload whose bytes are to be read now.
    pub capture: Option<u32>,
}

/// Who sends a message.
#[derive(Clone, Copy)]
pub(super) enum Sender {
    /// The rank.
    Rank,
    /// Its interface, in answer to this message.
    Interface(MessageId),
}

/// A message to another rank.
pub(super) struct Parcel {
    /// For whom.
    pub to: u32,
    pub header: LiveHeader,
    pub bytes: Bytes,
    pub primitive: Primitive,
    /// When it was offered.
    pub born: Time,
    /// What it is in the protocol.
    pub kind: EnvelopeKind,
    /// What is to happen when its data is taken: what the rank wants to hear (0: nothing), and the payload to be read.
    pub then: Option<(u32, Option<u32>)>,
}

impl LiveHost {
    /// Carries what a rank has posted, as far as it may have, and what its time went into meanwhile.
    pub(super) fn carry(
        &mut self,
        seat: usize,
        end: TurnEnd,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let rank = &mut self.ranks[seat];
        let number = rank.rank;
        let (posts, log) = parameters.job.take_posts(number);
        if let TurnEnd::Wants(_, clock) = end {
            let turns = if clock > rank.idle.1 { 0 } else { rank.idle.0 + 1 };
            rank.idle = (turns, clock.max(rank.idle.1));
            if rank.idle.0 > IDLE_TURNS {
                parameters.job.accuse(number, Nonsense::Turns(IDLE_TURNS));
            }
        }
        if parameters.payloads().posted() > POSTED {
            parameters.job.accuse(number, Nonsense::Posted(POSTED));
        }
        self.carry_all(seat, posts, &log, parameters, context);
    }

    /// Carries posts, and the time before, between and behind them.
    pub(super) fn carry_all(
        &mut self,
        seat: usize,
        posts: Vec<(Post, Vec<u8>)>,
        log: &[Entry],
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let number = self.ranks[seat].rank;
        let mut accounted = 0;
        for (post, bytes) in posts {
            let before = log.get(accounted..(post.logged as usize).min(log.len())).unwrap_or_default();
            accounted += before.len();
            let ledger = &mut self.ranks[seat].ledger;
            let mut told = parameters.told(context.output());
            before.iter().for_each(|entry| ledger.enter(entry, &mut told));
            if let Err(nonsense) = self.carry_one(seat, &post, bytes, parameters, context) {
                return parameters.job.accuse(number, nonsense);
            }
        }
        let ledger = &mut self.ranks[seat].ledger;
        let mut told = parameters.told(context.output());
        log[accounted..].iter().for_each(|entry| ledger.enter(entry, &mut told));
    }

    fn carry_one(
        &mut self,
        seat: usize,
        post: &Post,
        bytes: Vec<u8>,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) -> Result<(), Nonsense> {
        let kind = nonsense::check(post, parameters.seating.ranks() as usize)?;
        let rank = &self.ranks[seat];
        let number = rank.rank;
        // What a rank says of times is believed as far as it can be: nothing is posted in the past.
        let at = Time::from_ps(post.at).max(context.now()).max(rank.ledger.clock());
        match kind {
            PostKind::Message => return self.carry_message(seat, post, bytes, at, parameters, context),
            PostKind::Register => {
                let regions = &mut parameters.job.reach(number).regions;
                if regions.len() >= REGIONS {
                    return Err(Nonsense::Regions(REGIONS));
                }
                regions.insert(post.key, Region::of(post));
            }
            PostKind::Unregister => {
                parameters.job.reach(number).regions.remove(&post.key);
            }
            PostKind::Write => return self.carry_write(seat, post, bytes, at, parameters, context),
            PostKind::Read => {
                let (remote, key, length, local) = (post.remote, post.key, post.length, post.local);
                let opening = parameters.job.reach(number).opening;
                let kind = Kind::Read { remote, key, length, local, opening };
                let header = self.header(seat, post, kind, parameters)?;
                let parcel = Parcel::control(post.to, header, parameters, at);
                self.send(seat, parcel, Sender::Rank, at, parameters, context);
            }
            PostKind::Forget => {
                parameters.job.reach(number).close();
                self.close_all(seat, context);
            }
            _ => return self.carry_interface(seat, post, bytes, at, parameters, context),
        }
        Ok(())
    }

    /// The header of what a rank has posted.
    fn header(
        &self,
        seat: usize,
        post: &Post,
        kind: Kind,
        parameters: &LiveParameters,
    ) -> Result<LiveHeader, Nonsense> {
        let (_, to_seat) = parameters.seating.seat(RankId(post.to)).ok_or(Nonsense::Peer(post.to))?;
        Ok(LiveHeader {
            kind,
            source: self.ranks[seat].rank,
            seat: to_seat,
            number: 0,
            payload: None,
            data: post.data,
            with_data: post.flags & Post::WITH_DATA != 0,
            token: post.token,
        })
    }

    fn carry_message(
        &mut self,
        seat: usize,
        post: &Post,
        bytes: Vec<u8>,
        at: Time,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) -> Result<(), Nonsense> {
        // A message's time counts from the call that posts it.
        let begun = Time::from_ps(post.begun).min(at);
        let number = self.ranks[seat].rank;
        let (envelope, born, on_wire) = parameters.exchanges().message(number, post, bytes.len(), begun)?;
        let mut header = self.header(seat, post, Kind::Message(envelope), parameters)?;
        let rank = &mut self.ranks[seat];
        if header.is_matched() {
            let next = rank.numbers.of(post.to);
            header.number = *next;
            *next = next.wrapping_add(1);
        }
        let mut capture = None;
        match envelope.kind {
            EnvelopeKind::Eager => header.payload = Some(parameters.store(Data::Posted(bytes))),
            EnvelopeKind::ClearToSend => {
                let mut reach = parameters.job.reach(number);
                reach.expected.insert(envelope.receive, (post.local, post.length));
            }
            EnvelopeKind::Data => {
                parameters.check_memory(number, post.local, post.length)?;
                let (address, length) = (post.local, post.length);
                let place = parameters.store(Data::At { rank: number, address, length });
                header.payload = Some(place);
                capture = Some(place);
            }
            _ => {}
        }
        if carries_data(&envelope) {
            rank.counts_sent(envelope.bytes);
        }
        let wanted = post.token != 0 || capture.is_some();
        let parcel = Parcel {
            to: post.to,
            header,
            bytes: on_wire,
            primitive: match envelope.kind {
                EnvelopeKind::Data => Primitive::Write,
                _ => Primitive::Automatic,
            },
            born,
            kind: envelope.kind,
            then: wanted.then_some((post.token, capture)),
        };
        self.send(seat, parcel, Sender::Rank, at, parameters, context);
        Ok(())
    }

    fn carry_write(
        &mut self,
        seat: usize,
        post: &Post,
        bytes: Vec<u8>,
        at: Time,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) -> Result<(), Nonsense> {
        let kind = Kind::Write { remote: post.remote, key: post.key };
        let mut header = self.header(seat, post, kind, parameters)?;
        let taken = post.local == 0;
        let (rank, address, length) = (self.ranks[seat].rank, post.local, post.length);
        if !taken {
            parameters.check_memory(rank, address, length)?;
        } else if bytes.len() as u64 != length {
            return Err(Nonsense::Length { said: length, carried: bytes.len() as u64 });
        }
        let data = if taken { Data::Posted(bytes) } else { Data::At { rank, address, length } };
        let place = parameters.store(data);
        header.payload = Some(place);
        self.ranks[seat].counts_sent(Bytes::new(post.length));
        let parcel = Parcel {
            to: post.to,
            header,
            bytes: Bytes::new(post.length),
            primitive: Primitive::Write,
            born: at,
            kind: EnvelopeKind::Data,
            then: (!taken).then_some((0, Some(place))),
        };
        self.send(seat, parcel, Sender::Rank, at, parameters, context);
        Ok(())
    }

    /// Hands a message to the interface.
    pub(super) fn send(
        &mut self,
        seat: usize,
        parcel: Parcel,
        sender: Sender,
        at: Time,
        parameters: &LiveParameters,
        context: &mut impl HostContext<LiveHost>,
    ) {
        let Parcel { to, header, bytes, primitive, born, kind, then } = parcel;
        let endpoint: EndpointId = parameters.seating.endpoint(RankId(to));
        let rank = &mut self.ranks[seat];
        let mut told = parameters.told(context.output());
        let after = match sender {
            Sender::Rank => rank.ledger.posts(at, &mut told),
            Sender::Interface(cause) => rank.ledger.answers(at, cause, &mut told),
        };
        let key = then.map(|(token, capture)| {
            self.outgoing.insert(Outgoing { seat: seat as u32, number: 0, token, capture })
        });
        let message = Message {
            to: endpoint,
            bytes,
            born,
            header: Some(header),
            token: key.map(|key| key as u32),
            primitive,
            interface: seat as u16,
            to_interface: header.seat as u16,
            watch: after.is_some(),
        };
        let number = context.send(message, at);
        if let Some(key) = key {
            self.outgoing[key].number = number;
        }
        if let Some(after) = after {
            let message = MessageId { source: context.endpoint(), number };
            let (rank, to, payload) = (RankId(self.ranks[seat].rank), RankId(to), bytes);
            context.output().record.posts.push(replay::Post { message, rank, to, kind, payload, at, after });
        }
    }
}

impl Parcel {
    /// What interfaces say to each other.
    pub fn control(to: u32, header: LiveHeader, parameters: &LiveParameters, at: Time) -> Parcel {
        Parcel {
            to,
            header,
            bytes: parameters.control,
            primitive: Primitive::Automatic,
            born: at,
            kind: EnvelopeKind::Ack,
            then: None,
        }
    }
}

/// Whether a message carries data of ranks.
pub(super) fn carries_data(envelope: &Envelope) -> bool {
    matches!(envelope.kind, EnvelopeKind::Eager | EnvelopeKind::Data)
}
