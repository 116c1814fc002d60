//! What a rank may post: everything that comes out of a device is looked at here before anything else is done with it.
//!
//! ```text
//!   announced ──► cleared by the receiver ──► data, to that receiver ──► acknowledged, where the protocol does
//! ```
//! The account of exchanges under way says which of these steps a rank may take: so no false envelope reaches a peer, and who is
//! wrong is known. What a rank says of lengths decides how long the simulation works, so it is held against
//! the data that there is.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use weft_client::device::{Post, PostKind};
use weft_msg::{Envelope, EnvelopeKind, Protocol};
use weft_units::{Bytes, RankId, Time};

/// The latest time that a rank's clock may show: half of what the simulation can count, 106 days.
pub(crate) const LATEST: u64 = u64::MAX / 2;
/// Announced messages that a rank may have under way.
const EXCHANGES: u32 = 1 << 20;

/// What a rank has written into its device although no library does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Nonsense {
    /// A post of no kind.
    #[error("a post of kind {0}, which there is not")]
    PostKind(u32),
    /// A message of no kind.
    #[error("a message of no kind")]
    EnvelopeKind,
    /// A peer that is not there.
    #[error("a post for rank {0}, which there is not")]
    Peer(u32),
    /// A message to the rank itself.
    #[error("a message to itself, which never meets the interface")]
    Own,
    /// A clock at the end of time.
    #[error("a clock of {0} ps, which no rank reaches")]
    Clock(u64),
    /// Lengths that do not agree.
    #[error("a message of {said} bytes that carries {carried}")]
    Length {
        /// What it says.
        said: u64,
        /// What it carries.
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
        /// Its number.
        send: u32,
    },
    /// Data that nobody has cleared.
    #[error(
        "the data of its send {send} for receive {receive} of rank {receiver}, which has not been cleared"
    )]
    Data {
        /// Its send.
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
        /// Its number.
        send: u32,
    },
    /// Data outside its memory.
    #[error("{length} bytes at address {address:#x}, where it has no such memory")]
    Memory {
        /// Where it says.
        address: u64,
        /// How much.
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
    announced: Time,
    stage: Stage,
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

    /// Takes a message that rank `from` has posted: what it is, since when its data waits, and what it takes on the wire.
    ///
    /// # Errors
    /// It may not post that.
    pub(crate) fn message(
        &mut self,
        from: u32,
        post: &Post,
        carried: usize,
        at: Time,
    ) -> Result<(Envelope, Time, Bytes), Nonsense> {
        let envelope = post.envelope.envelope().ok_or(Nonsense::EnvelopeKind)?;
        // Who sends is known.
        let envelope = Envelope { source: RankId(from), ..envelope };
        let Envelope { send, receive, bytes, .. } = envelope;
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
        let wire = match envelope.kind {
            EnvelopeKind::Eager => {
                of_data(carried)?;
                self.eager_header + bytes
            }
            EnvelopeKind::RequestToSend => {
                self.announce(
                    from,
                    send,
                    Exchange { receiver: to, bytes, announced: at, stage: Stage::Announced },
                )?;
                self.control
            }
            EnvelopeKind::ClearToSend => {
                let exchange = self.exchanges.get_mut(&(to, send));
                let waits = |exchange: &&mut Exchange| {
                    (exchange.receiver, exchange.bytes, exchange.stage) == (from, bytes, Stage::Announced)
                };
                let wrong = Nonsense::Cleared { sender: to, send };
                exchange.filter(waits).ok_or(wrong)?.stage = Stage::Cleared { receive };
                self.control
            }
            EnvelopeKind::Data => {
                let exchange = self.exchanges.get_mut(&(from, send));
                let is_cleared = |exchange: &&mut Exchange| {
                    (exchange.receiver, exchange.bytes, exchange.stage)
                        == (to, bytes, Stage::Cleared { receive })
                };
                let wrong = Nonsense::Data { send, receive, receiver: to };
                let exchange = exchange.filter(is_cleared).ok_or(wrong)?;
                waits_since = exchange.announced;
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
            EnvelopeKind::Ack => {
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
        Ok((envelope, waits_since, wire))
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
    Ok(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_client::device::RawEnvelope;

    fn post(kind: EnvelopeKind, to: u32, send: u32, receive: u32) -> Post {
        let mut envelope = Envelope::of_real_rank(kind, true, RankId(9), 3, Bytes::new(100));
        (envelope.send, envelope.receive) = (send, receive);
        let length = if kind == EnvelopeKind::Data { 100 } else { 0 };
        Post { kind: 1, to, envelope: RawEnvelope::from(&envelope), length, ..Post::default() }
    }

    /// Catches a step that is refused although the protocol takes it, and one that is let through before its time, twice,
    /// by another, or for another receive.
    #[test]
    fn an_exchange_goes_step_by_step() {
        use EnvelopeKind::{Ack, ClearToSend, Data, RequestToSend};
        let mut ledger = Exchanges::new(&Protocol::zero());
        ledger.acknowledges = true;
        let mut step = |from, kind, to, receive| {
            ledger.message(from, &post(kind, to, 7, receive), 0, Time::from_ps(5)).map(|message| message.1)
        };
        let early = Nonsense::Data { send: 7, receive: 2, receiver: 1 };
        assert_eq!(step(0, Data, 1, 2), Err(early));
        assert_eq!(step(1, ClearToSend, 0, 2), Err(Nonsense::Cleared { sender: 0, send: 7 }));
        step(0, RequestToSend, 1, 0).unwrap();
        assert_eq!(step(0, RequestToSend, 1, 0), Err(Nonsense::Announced(7)));
        assert!(step(2, ClearToSend, 0, 2).is_err(), "another");
        step(1, ClearToSend, 0, 2).unwrap();
        assert!(step(1, ClearToSend, 0, 2).is_err(), "twice");
        assert!(step(0, Data, 1, 3).is_err(), "another receive");
        assert!(step(0, Data, 2, 2).is_err(), "another receiver");
        assert!(step(1, Ack, 0, 2).is_err(), "before its time");
        assert_eq!(step(0, Data, 1, 2), Ok(Time::from_ps(5)));
        assert!(step(0, Data, 1, 2).is_err(), "twice");
        step(1, Ack, 0, 2).unwrap();
        step(0, RequestToSend, 1, 0).unwrap();
    }

    #[test]
    fn lengths_and_peers_are_what_they_are() {
        let mut ledger = Exchanges::new(&Protocol::zero());
        let eager = post(EnvelopeKind::Eager, 1, 0, 0);
        assert!(ledger.message(0, &eager, 100, Time::ZERO).is_ok());
        let wrong = Nonsense::Length { said: 100, carried: 99 };
        assert_eq!(ledger.message(0, &eager, 99, Time::ZERO).map(|_| ()), Err(wrong));
        assert_eq!(ledger.message(1, &eager, 100, Time::ZERO).map(|_| ()), Err(Nonsense::Own));
        assert_eq!(check(&eager, 1), Err(Nonsense::Peer(1)));
        assert_eq!(check(&Post { at: u64::MAX, ..eager }, 2), Err(Nonsense::Clock(u64::MAX)));
        assert_eq!(check(&Post { kind: 99, ..eager }, 2), Err(Nonsense::PostKind(99)));
        assert_eq!(check(&eager, 2), Ok(PostKind::Message));
    }
}
