//! Checks of what a rank posts. Everything that comes out of a device passes here before anything else is
//! done with it.
//!
//! ```text
//!   announced ──► cleared by the receiver ──► data, to that receiver ──► acknowledged, if the protocol does
//! ```
//! The account of exchanges under way says which of these steps a rank may take: so no false envelope reaches
//! a peer, and who is wrong is known. What a rank says of lengths decides how long the simulation works, so
//! it is held against the data that there is.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use weft_client::device::{Post, PostKind};
use weft_msg::{Body, Envelope, Match, Protocol, RankEndpoints};
use weft_units::{Bytes, RankId, Time};

/// The latest time that a rank's clock may show: half of what the simulation can count, 106 days.
pub(crate) const LATEST: u64 = u64::MAX / 2;
/// Announced messages that a rank may have under way.
const EXCHANGES: u32 = 1 << 20;

/// Contents of a rank's device that no library writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Nonsense {
    /// A post of no kind.
    #[error("a post of kind {0}, which there is not")]
    PostKind(u32),
    /// A request that no store serves.
    #[error(
        "a request for key {key} with a value of {length} bytes; keys have 16 bits, and values 1 GiB at most"
    )]
    Request {
        /// The key.
        key: u64,
        /// Bytes of the value.
        length: u64,
    },
    /// A message of no kind.
    #[error("a message of no kind")]
    EnvelopeKind,
    /// A peer that is not there.
    #[error("a post for rank {0}, which there is not")]
    Peer(u32),
    /// Endpoints of ranks that are not there.
    #[error("a post between endpoints {from} and {to}; ranks have {}, numbered from 0", RankEndpoints::MOST)]
    Endpoints {
        /// The number of the rank's endpoint.
        from: u32,
        /// That of its peer's.
        to: u32,
    },
    /// A message to the rank itself.
    #[error("a message to itself, which never meets the interface")]
    Own,
    /// A clock at the end of time.
    #[error("a clock of {0} ps, which no rank reaches")]
    Clock(u64),
    /// Lengths that do not agree.
    #[error("a message of {said} bytes that carries {carried}")]
    Length {
        /// The length that the message states.
        said: u64,
        /// The length of the data that it carries.
        carried: u64,
    },
    /// Too many announcements.
    #[error("more than {EXCHANGES} announced messages under way")]
    Exchanges,
    /// An announcement under a number that is in use.
    #[error("the announcement of its send {0}, which is under way")]
    Announced(u32),
    /// A clearance of what has not been announced to it.
    #[error("a clearance of send {send} of rank {sender}, which waits for none")]
    Cleared {
        /// Whose send.
        sender: u32,
        /// The number of the send.
        send: u32,
    },
    /// Data that nobody has cleared.
    #[error(
        "the data of its send {send} for receive {receive} of rank {receiver}, which has not been cleared"
    )]
    Data {
        /// The number of the rank's send.
        send: u32,
        /// For which receive.
        receive: u32,
        /// Of which rank.
        receiver: u32,
    },
    /// An acknowledgement of data that has not come.
    #[error("an acknowledgement of send {send} of rank {sender}, whose data has not come")]
    Acknowledged {
        /// Whose send.
        sender: u32,
        /// The number of the send.
        send: u32,
    },
    /// Data outside its memory.
    #[error("{length} bytes at address {address:#x}, where it has no such memory")]
    Memory {
        /// The address that the post states.
        address: u64,
        /// The length that the post states.
        length: u64,
    },
    /// Too many registrations.
    #[error("more than {0} pieces of registered memory")]
    Regions(usize),
    /// A virtual interface that is not its own.
    #[error("a post from virtual interface {0}, which it has not opened")]
    Interface(u32),
    /// A state that it cannot be in.
    #[error("a state that it cannot be in")]
    State,
    /// A kernel's time of no kind.
    #[error("the time of a kernel that no library tells: activity {0}, or names that are no text")]
    KernelTime(u64),
    /// Too many times of kernels.
    #[error("more than {0} times of kernels")]
    KernelTimes(usize),
    /// Turns without end.
    #[error("no later clock in {0} turns, so that virtual time cannot go on")]
    Turns(u32),
    /// Messages without end.
    #[error("one more message where more than {0} bytes are on their way, and nobody takes them")]
    Posted(usize),
}

/// How far an announced message has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Announced,
    Cleared { receive: u32 },
    Sent { receive: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    receiver: u32,
    bytes: Bytes,
    /// The tag of the message; `None`: it is matched without.
    tag: Option<u64>,
    announced: Time,
    stage: Stage,
}

/// A message that a rank may post.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CheckedMessage {
    pub envelope: Envelope,
    /// The 64-bit tag, of a clear-to-send and of data that of the announced message; `None`: it is matched
    /// without.
    pub tag: Option<u64>,
    /// Since when its data waits to be sent.
    pub waits_since: Time,
    /// Bytes that it occupies on the wire, packet headers aside.
    pub on_wire: Bytes,
}

/// The announced messages of all ranks that are under way.
#[derive(Debug)]
pub(crate) struct Exchanges {
    /// By sender and its number of the send.
    exchanges: BTreeMap<(u32, u32), Exchange>,
    eager_header: Bytes,
    data_header: Bytes,
    control: Bytes,
    acknowledges: bool,
}

impl Exchanges {
    /// Of a job whose messaging is this.
    pub(crate) fn new(protocol: &Protocol) -> Exchanges {
        Exchanges {
            exchanges: BTreeMap::new(),
            eager_header: protocol.eager_header,
            data_header: protocol.data_header,
            control: protocol.control_bytes,
            acknowledges: protocol.sender_awaits_ack(),
        }
    }

    /// Takes a message that rank `from` has posted.
    ///
    /// # Errors
    /// It may not post that.
    pub(crate) fn message(
        &mut self,
        from: u32,
        post: &Post,
        carried: usize,
        at: Time,
    ) -> Result<CheckedMessage, Nonsense> {
        let envelope = post.envelope.envelope().ok_or(Nonsense::EnvelopeKind)?;
        // Who sends is known.
        let envelope = Envelope { source: RankId(from), ..envelope };
        let bytes = envelope.bytes;
        let mut tag = envelope.matching().filter(Match::is_tagged).map(|matching| matching.tag64());
        let to = post.to;
        if to == from {
            return Err(Nonsense::Own);
        }
        let carried = carried as u64;
        let of_data = |carried| match bytes.get() == carried {
            true => Ok(()),
            false => Err(Nonsense::Length { said: bytes.get(), carried }),
        };
        let mut waits_since = at;
        let on_wire = match envelope.body {
            Body::Eager { .. } => {
                of_data(carried)?;
                self.eager_header + bytes
            }
            Body::RequestToSend { send, .. } => {
                let exchange = Exchange { receiver: to, bytes, tag, announced: at, stage: Stage::Announced };
                self.announce(from, send.index(), exchange)?;
                self.control
            }
            Body::ClearToSend { send, receive } => {
                let (send, receive) = (send.index(), receive.0);
                let exchange = self.exchanges.get_mut(&(to, send));
                let waits = |exchange: &&mut Exchange| {
                    (exchange.receiver, exchange.bytes, exchange.stage) == (from, bytes, Stage::Announced)
                };
                let wrong = Nonsense::Cleared { sender: to, send };
                let exchange = exchange.filter(waits).ok_or(wrong)?;
                tag = exchange.tag;
                exchange.stage = Stage::Cleared { receive };
                self.control
            }
            Body::Data { send, receive } => {
                let (send, receive) = (send.index(), receive.0);
                let exchange = self.exchanges.get_mut(&(from, send));
                let is_cleared = |exchange: &&mut Exchange| {
                    (exchange.receiver, exchange.bytes, exchange.stage)
                        == (to, bytes, Stage::Cleared { receive })
                };
                let wrong = Nonsense::Data { send, receive, receiver: to };
                let exchange = exchange.filter(is_cleared).ok_or(wrong)?;
                (waits_since, tag) = (exchange.announced, exchange.tag);
                exchange.stage = Stage::Sent { receive };
                if !self.acknowledges {
                    self.exchanges.remove(&(from, send));
                }
                // A program that has closed its rank has its buffer back.
                if post.length != 0 {
                    of_data(post.length)?;
                }
                self.data_header + bytes
            }
            Body::Ack { send, receive } => {
                let (send, receive) = (send.index(), receive.0);
                let exchange = self.exchanges.get(&(to, send));
                let is_sent = |exchange: &&Exchange| {
                    (exchange.receiver, exchange.stage) == (from, Stage::Sent { receive })
                };
                exchange.filter(is_sent).ok_or(Nonsense::Acknowledged { sender: to, send })?;
                self.exchanges.remove(&(to, send));
                self.control
            }
            _ => return Err(Nonsense::EnvelopeKind),
        };
        Ok(CheckedMessage { envelope, tag, waits_since, on_wire })
    }

    fn announce(&mut self, from: u32, send: u32, exchange: Exchange) -> Result<(), Nonsense> {
        if send >= EXCHANGES {
            return Err(Nonsense::Exchanges);
        }
        match self.exchanges.entry((from, send)) {
            Entry::Vacant(entry) => {
                entry.insert(exchange);
                Ok(())
            }
            Entry::Occupied(_) => Err(Nonsense::Announced(send)),
        }
    }
}

/// Looks at what all posts have in common. What is of no kind is told first.
///
/// # Errors
/// It is nonsense.
pub(crate) fn check(post: &Post, ranks: usize) -> Result<PostKind, Nonsense> {
    let kind = PostKind::of(post.kind).ok_or(Nonsense::PostKind(post.kind))?;
    if post.at > LATEST {
        return Err(Nonsense::Clock(post.at));
    }
    let to_rank = matches!(kind, PostKind::Message | PostKind::Write | PostKind::Read);
    if to_rank && post.to as usize >= ranks {
        return Err(Nonsense::Peer(post.to));
    }
    if to_rank && post.envelope.rank_endpoints().is_none() {
        let bits = post.envelope.endpoints;
        return Err(Nonsense::Endpoints { from: bits & 0xff, to: bits >> 8 });
    }
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_client::device::RawEnvelope;
    use weft_msg::{ReceiveEntry, SendEntry};

    fn post(body: Body, to: u32) -> Post {
        let envelope = Envelope::new(RankId(9), Bytes::new(100), body);
        let length = if matches!(body, Body::Data { .. }) { 100 } else { 0 };
        Post { kind: 1, to, envelope: RawEnvelope::from(&envelope), length, ..Post::default() }
    }

    /// Catches a step that is refused although the protocol takes it, and one that is let through before its
    /// time, twice, by another, or for another receive.
    #[test]
    fn an_exchange_goes_step_by_step() {
        let mut ledger = Exchanges::new(&Protocol::zero());
        ledger.acknowledges = true;
        let mut step = |from, body, to| {
            ledger.message(from, &post(body, to), 0, Time::from_ps(5)).map(|message| message.waits_since)
        };
        let send = SendEntry::new(7);
        let request = Body::RequestToSend {
            matching: Match::of_real_rank(RankEndpoints::FIRST, true, 3),
            send,
            receipt: false,
        };
        let clear = Body::ClearToSend { send, receive: ReceiveEntry(2) };
        let data = |receive| Body::Data { send, receive: ReceiveEntry(receive) };
        let ack = Body::Ack { send, receive: ReceiveEntry(2) };
        let early = Nonsense::Data { send: 7, receive: 2, receiver: 1 };
        assert_eq!(step(0, data(2), 1), Err(early));
        assert_eq!(step(1, clear, 0), Err(Nonsense::Cleared { sender: 0, send: 7 }));
        step(0, request, 1).unwrap();
        assert_eq!(step(0, request, 1), Err(Nonsense::Announced(7)));
        assert!(step(2, clear, 0).is_err(), "another");
        step(1, clear, 0).unwrap();
        assert!(step(1, clear, 0).is_err(), "twice");
        assert!(step(0, data(3), 1).is_err(), "another receive");
        assert!(step(0, data(2), 2).is_err(), "another receiver");
        assert!(step(1, ack, 0).is_err(), "before its time");
        assert_eq!(step(0, data(2), 1), Ok(Time::from_ps(5)));
        assert!(step(0, data(2), 1).is_err(), "twice");
        step(1, ack, 0).unwrap();
        step(0, request, 1).unwrap();
    }

    #[test]
    fn lengths_and_peers_are_what_they_are() {
        let mut ledger = Exchanges::new(&Protocol::zero());
        let eager = post(
            Body::Eager { matching: Match::of_real_rank(RankEndpoints::FIRST, true, 3), receipt: None },
            1,
        );
        assert!(ledger.message(0, &eager, 100, Time::ZERO).is_ok());
        let wrong = Nonsense::Length { said: 100, carried: 99 };
        assert_eq!(ledger.message(0, &eager, 99, Time::ZERO).map(|_| ()), Err(wrong));
        assert_eq!(ledger.message(1, &eager, 100, Time::ZERO).map(|_| ()), Err(Nonsense::Own));
        assert_eq!(check(&eager, 1), Err(Nonsense::Peer(1)));
        assert_eq!(check(&Post { at: u64::MAX, ..eager }, 2), Err(Nonsense::Clock(u64::MAX)));
        assert_eq!(check(&Post { kind: 99, ..eager }, 2), Err(Nonsense::PostKind(99)));
        assert_eq!(check(&eager, 2), Ok(PostKind::Message));
        for (endpoints, wrong) in [
            (RankEndpoints::MOST.into(), Nonsense::Endpoints { from: 16, to: 0 }),
            (16 << 8, Nonsense::Endpoints { from: 0, to: 16 }),
            (1 << 31, Nonsense::Endpoints { from: 0, to: 1 << 23 }),
        ] {
            let envelope = RawEnvelope { endpoints, ..eager.envelope };
            for kind in [PostKind::Message, PostKind::Write, PostKind::Read] {
                assert_eq!(check(&Post { kind: kind as u32, envelope, ..eager }, 2), Err(wrong));
            }
        }
    }
}
