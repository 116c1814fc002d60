//! Entries of the lists that the two sides write: plain numbers, of which any bits are valid.

use std::num::NonZeroU32;
use weft_msg::{Body, Envelope, Match, RankEndpoints, ReceiveEntry, SendEntry, SendToken};
use weft_units::{Bytes, RankId};

/// The request of an outbox entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum PostKind {
    /// A message of messaging.
    Message = 1,
    /// Memory becomes reachable for peers.
    Register = 2,
    /// And no more.
    Unregister = 3,
    /// RDMA write.
    Write = 4,
    /// RDMA read.
    Read = 5,
    /// Buffers of announced messages and registered memory are the program's again.
    Forget = 6,
    /// A virtual interface is wanted, in the protection domain that `data` says: as of `weft.h`, a number or
    /// WEFT_DOMAIN_JOB, WEFT_DOMAIN_PRIVATE.
    Open = 7,
    /// And no more.
    Close = 8,
    /// A small message from a virtual interface to another.
    Small = 9,
    /// The program has taken a small message: its place in the mailbox is free.
    Take = 10,
    /// RDMA write from a virtual interface to memory of the process that has another.
    Put = 11,
    /// RDMA read.
    Get = 12,
    /// From now on only registered memory is reached by a virtual interface.
    Restrict = 13,
    /// A get of the key-value store of node `to`, of the key in `key`.
    ServiceGet = 14,
    /// A put of `length` bytes there.
    ServicePut = 15,
    /// The value of the network interface's register at the address in `key` is wanted.
    ReadRegister = 16,
    /// `data` is for the register at the address in `key`.
    WriteRegister = 17,
    /// A kernel of this process has spent `length` ps on the activity that `data` says: as of `weft.h`,
    /// WEFT_KERNEL_WORKS, …. The bytes are its name, a zero, and the stream that it waited for.
    KernelTime = 18,
}

impl PostKind {
    /// The kind of that number.
    pub fn of(kind: u32) -> Option<PostKind> {
        use PostKind::*;
        let all = [
            Message,
            Register,
            Unregister,
            Write,
            Read,
            Forget,
            Open,
            Close,
            Small,
            Take,
            Put,
            Get,
            Restrict,
            ServiceGet,
            ServicePut,
            ReadRegister,
            WriteRegister,
            KernelTime,
        ];
        all.into_iter().find(|known| *known as u32 == kind)
    }
}

/// An entry of the outbox.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Post {
    /// A [`PostKind`].
    pub kind: u32,
    /// The peer: a rank, or the node of a virtual interface.
    pub to: u32,
    /// The rank's clock, in ps.
    pub at: u64,
    /// The rank's clock when the call began in which it posts, in ps.
    pub begun: u64,
    /// Of a message.
    pub envelope: RawEnvelope,
    /// Names the operation in the notice of its completion; 0: none is wanted.
    pub token: u32,
    /// Bits: see `Post::WITH_DATA`, …
    pub flags: u32,
    /// Offset of the bytes in the outbox's arena.
    pub bytes_at: u32,
    /// The number of bytes there.
    pub bytes: u32,
    /// An address in the rank's memory: the source of announced data, the buffer of a clear to send.
    pub local: u64,
    /// Length there.
    pub length: u64,
    /// An address in the peer's memory.
    pub remote: u64,
    /// Of registered memory.
    pub key: u64,
    /// Travels into the receiver's completion. Of `Open`: the protection domain.
    pub data: u64,
    /// A virtual interface of this rank.
    pub interface: u32,
    /// One at the peer's node. Of `Open` with `NAMED`: the one that is wanted.
    pub to_interface: u32,
    /// The address at the peer to which `data` is written after an RDMA write; with `NOTIFIES`.
    pub notify: u64,
    /// The program's name for an operation of a virtual interface: comes back when it has ended.
    pub context: u64,
    /// Entries of the log before it.
    pub logged: u32,
}

impl Post {
    /// [`Post::data`] counts.
    pub const WITH_DATA: u32 = 1;
    /// Registration: peers may read.
    pub const MAY_READ: u32 = 2;
    /// Registration: peers may write.
    pub const MAY_WRITE: u32 = 4;
    /// [`Post::notify`] counts.
    pub const NOTIFIES: u32 = 8;
    /// RDMA write: it ends when its data has been taken, and its target answers only what cannot be carried
    /// out. Small message: its end is told, when its data has been taken.
    pub const SILENT: u32 = 16;
    /// Small message: its bytes begin with [`Post::HEADER`] bytes that travel in the header of its packet,
    /// and that `length` does not count.
    pub const HEADED: u32 = 32;
    /// Open: [`Post::to_interface`] counts.
    pub const NAMED: u32 = 64;
    /// Bytes that the header of a packet carries for programs: the width of a word of a port (D2.8 §2).
    pub const HEADER: usize = 16;
    /// RDMA write: the lowest bit of the path of its completion, 0 the machine's, else as of `weft.h`.
    pub const PATH_SHIFT: u32 = 8;
    /// The bits of the path.
    pub const PATH_MASK: u32 = 7;
    /// RDMA write: the lowest of the two bits of the memory that its source lies in, as of `weft.h`.
    pub const SOURCE_SHIFT: u32 = 11;
    /// The same of its target.
    pub const TARGET_SHIFT: u32 = 13;
}

impl Post {
    /// A post of any words, one after the other: what a rank may have written there.
    pub fn of_words(mut next: impl FnMut() -> u64) -> Post {
        let mut halves = || {
            let word = next();
            (word as u32, (word >> 32) as u32)
        };
        let ((kind, to), (token, flags), (bytes_at, bytes)) = (halves(), halves(), halves());
        let ((interface, to_interface), (source, endpoints)) = (halves(), halves());
        let ((envelope_kind, untagged), (send, receive)) = (halves(), halves());
        let envelope = RawEnvelope {
            kind: envelope_kind,
            untagged,
            tag: next(),
            bytes: next(),
            source,
            send,
            receive,
            endpoints,
        };
        Post {
            kind,
            to,
            at: next(),
            begun: next(),
            envelope,
            token,
            flags,
            bytes_at,
            bytes,
            local: next(),
            length: next(),
            remote: next(),
            key: next(),
            data: next(),
            interface,
            to_interface,
            notify: next(),
            context: next(),
            logged: next() as u32,
        }
    }
}

/// The kind of operation that a rank waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum AwaitedKind {
    /// A send that is not complete.
    Send = 1,
    /// A posted receive.
    Receive = 2,
    /// An RDMA write or read.
    Remote = 3,
    /// Whatever comes to the virtual interface of that number, in `peer`.
    Interface = 4,
    /// The answer of the key-value store of node `peer` for the key in `tag`.
    Service = 5,
}

/// An operation that a waiting rank waits for, for the report of a deadlock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Awaited {
    /// An [`AwaitedKind`].
    pub kind: u32,
    /// The peer; `u32::MAX`: any.
    pub peer: u32,
    /// Of a message.
    pub tag: u64,
    /// Bits of the tag that any message may have.
    pub ignored: u64,
    /// Of the message or the buffer.
    pub bytes: u64,
}

/// The event that an inbox entry reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum NoticeKind {
    /// A message has come.
    Message = 1,
    /// The interface has taken a message.
    Sent = 2,
    /// An RDMA write or read of this rank is complete; or a request to a service, whose answer has the bytes
    /// that the envelope says.
    Done = 3,
    /// A peer has written into registered memory, with data.
    Written = 4,
    /// A virtual interface has been opened, or not: `interface`, `node`, its domain in `data`.
    Opened = 5,
    /// A small message is in the mailbox of a virtual interface.
    Small = 6,
    /// An operation of a virtual interface has ended: its [`PostKind`] in `token`, its context in `data`.
    Ended = 7,
    /// The value of a register, in `data`: what it has, or has been given.
    Register = 8,
}

impl NoticeKind {
    /// The kind of that number, if it tells of virtual interfaces.
    pub(crate) fn of_interface(kind: u32) -> Option<NoticeKind> {
        [NoticeKind::Opened, NoticeKind::Small, NoticeKind::Ended, NoticeKind::Register]
            .into_iter()
            .find(|known| *known as u32 == kind)
    }
}

/// An entry of the inbox.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Notice {
    /// A [`NoticeKind`].
    pub kind: u32,
    /// Of the operation.
    pub token: u32,
    /// When the interface had it, in ps.
    pub at: u64,
    /// Of a message.
    pub envelope: RawEnvelope,
    /// Offset of the bytes in the inbox's arena.
    pub bytes_at: u32,
    /// The number of bytes there.
    pub bytes: u32,
    /// Travelled with it.
    pub data: u64,
    /// As in [`Post::flags`].
    pub flags: u32,
    /// 0, or an errno.
    pub error: i32,
    /// A virtual interface of this rank.
    pub interface: u32,
    /// Of the peer's, or of this one where it is opened: its node.
    pub node: u32,
    /// The peer's virtual interface.
    pub from_interface: u32,
    /// Fills the record up.
    pub unused: u32,
}

impl Notice {
    /// In [`Notice::flags`]: it was answered while the rank waited, at its time and by its
    /// clock. Such notices come first.
    pub const ANSWERED: u32 = 1 << 31;

    /// Whether it was answered while the rank waited.
    pub const fn is_answered(&self) -> bool {
        self.flags & Notice::ANSWERED != 0
    }
}

/// An [`Envelope`] as plain numbers.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct RawEnvelope {
    /// Eager, request to send, clear to send, data, acknowledgement: 0 to 4.
    pub kind: u32,
    /// Not 0: matched by source alone. Of an eager message or a request to send.
    pub untagged: u32,
    /// The tag of an eager message or a request to send.
    pub tag: u64,
    /// The program's payload.
    pub bytes: u64,
    /// Who has posted it. The simulator knows better.
    pub source: u32,
    /// The send's entry at the rank that sends the data. Of all kinds but eager messages.
    pub send: u32,
    /// The receive's entry at the rank that receives it. Of a clear to send, data and an acknowledgement.
    pub receive: u32,
    /// The endpoint of the sender in the lowest 8 bits, of the receiver in the next. Of an eager message or a
    /// request to send; of an RDMA write too.
    pub endpoints: u32,
}

impl RawEnvelope {
    const EAGER: u32 = 0;
    const REQUEST_TO_SEND: u32 = 1;
    const CLEAR_TO_SEND: u32 = 2;
    const DATA: u32 = 3;
    const ACK: u32 = 4;
    /// The program above a real rank does without the other kinds.
    const NONE: u32 = u32::MAX;

    /// The endpoints as bits of the record.
    pub const fn endpoint_bits(endpoints: RankEndpoints) -> u32 {
        endpoints.from() as u32 | (endpoints.to() as u32) << 8
    }

    /// The endpoints; `None`: no rank has endpoints of such numbers.
    pub fn rank_endpoints(&self) -> Option<RankEndpoints> {
        let [from, to, unused @ ..] = self.endpoints.to_le_bytes();
        RankEndpoints::new(from, to).filter(|_| unused == [0; 2])
    }

    /// The envelope; `None`: it is of no kind, or names endpoints that no rank has.
    pub fn envelope(&self) -> Option<Envelope> {
        let matching = Match::of_real_rank(self.rank_endpoints()?, self.untagged == 0, self.tag);
        let (send, receive) = (SendEntry::new(self.send), ReceiveEntry(self.receive));
        let body = match self.kind {
            RawEnvelope::EAGER => Body::Eager { matching, receipt: None },
            RawEnvelope::REQUEST_TO_SEND => Body::RequestToSend { matching, send, receipt: false },
            RawEnvelope::CLEAR_TO_SEND => Body::ClearToSend { send, receive },
            RawEnvelope::DATA => Body::Data { send, receive },
            RawEnvelope::ACK => Body::Ack { send, receive },
            _ => return None,
        };
        Some(Envelope::new(RankId(self.source), Bytes::new(self.bytes), body))
    }
}

impl From<&Envelope> for RawEnvelope {
    fn from(envelope: &Envelope) -> RawEnvelope {
        let matching = envelope.matching();
        let (kind, send, receive) = match envelope.body {
            Body::Eager { .. } => (RawEnvelope::EAGER, None, None),
            Body::RequestToSend { send, .. } => (RawEnvelope::REQUEST_TO_SEND, Some(send), None),
            Body::ClearToSend { send, receive } => (RawEnvelope::CLEAR_TO_SEND, Some(send), Some(receive)),
            Body::Data { send, receive } => (RawEnvelope::DATA, Some(send), Some(receive)),
            Body::Ack { send, receive } => (RawEnvelope::ACK, Some(send), Some(receive)),
            _ => (RawEnvelope::NONE, None, None),
        };
        RawEnvelope {
            kind,
            untagged: u32::from(matching.is_some_and(|matching| !matching.is_tagged())),
            tag: matching.map_or(0, |matching| matching.tag64()),
            bytes: envelope.bytes.get(),
            source: envelope.source.0,
            send: send.map_or(0, SendEntry::index),
            receive: receive.map_or(0, |receive| receive.0),
            endpoints: matching
                .map_or(0, |matching| RawEnvelope::endpoint_bits(matching.context.endpoints())),
        }
    }
}

/// The token of a message as a number; 0: it is not awaited.
pub fn token_bits(token: SendToken) -> u32 {
    token.bits().map_or(0, NonZeroU32::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a kind of post that the simulator does not know.
    #[test]
    fn kinds_of_posts_are_their_numbers() {
        let last = PostKind::KernelTime as u32;
        assert!((1..=last).all(|number| PostKind::of(number).is_some_and(|kind| kind as u32 == number)));
        assert_eq!([0, last + 1, u32::MAX].map(PostKind::of), [None; 3]);
    }

    /// Catches a message of the rendezvous that becomes one of another kind, or of other entries.
    #[test]
    fn envelopes_of_all_kinds_come_back() {
        let endpoints = RankEndpoints::new(3, 15).unwrap();
        for (kind, entries) in (0..).zip([(0, 0), (7, 0), (7, 9), (7, 9), (7, 9)]) {
            let raw = RawEnvelope {
                kind,
                untagged: 0,
                tag: 1 << 63 | 5,
                bytes: 12,
                source: 2,
                send: 7,
                receive: 9,
                endpoints: RawEnvelope::endpoint_bits(endpoints),
            };
            let envelope = raw.envelope().unwrap();
            let back = RawEnvelope::from(&envelope);
            assert_eq!((back.kind, back.envelope()), (kind, Some(envelope)));
            assert_eq!((back.send, back.receive), entries, "{envelope:?}");
        }
    }
}
