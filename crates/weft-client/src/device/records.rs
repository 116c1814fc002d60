//! What the two sides write into the lists: plain numbers, of which any bits are valid.

use std::num::NonZeroU32;
use weft_msg::{Envelope, EnvelopeKind, SendToken};
use weft_units::{Bytes, RankId};

/// What an outbox entry asks for.
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
    /// A virtual interface is wanted. With `PRIVATE`: of a domain of the rank's own.
    Open = 7,
    /// And no more.
    Close = 8,
    /// A small message from a virtual interface to another.
    Small = 9,
    /// The program has taken a small message: its place in the mailbox is free.
    Take = 10,
    /// Memory becomes reachable for peers of a virtual interface's domain, under `key`.
    Share = 11,
    /// And no more.
    Unshare = 12,
    /// RDMA write from a virtual interface to the memory of another.
    Put = 13,
    /// RDMA read.
    Get = 14,
}

impl PostKind {
    /// The kind of that number.
    pub fn of(kind: u32) -> Option<PostKind> {
        use PostKind::*;
        let all = [
            Message, Register, Unregister, Write, Read, Forget, Open, Close, Small, Take, Share, Unshare,
            Put, Get,
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
    /// Its clock when the call began in which it posts, in ps.
    pub begun: u64,
    /// Of a message.
    pub envelope: RawEnvelope,
    /// Names the operation in the notice of its completion; 0: none is wanted.
    pub token: u32,
    /// Bits: see `Post::WITH_DATA`, …
    pub flags: u32,
    /// Where in the outbox's arena the bytes lie.
    pub bytes_at: u32,
    /// How many.
    pub bytes: u32,
    /// An address in the rank's memory: the source of announced data, the buffer of a clear to send.
    pub local: u64,
    /// Length there.
    pub length: u64,
    /// An address in the peer's memory.
    pub remote: u64,
    /// Of registered memory.
    pub key: u64,
    /// Travels into the receiver's completion.
    pub data: u64,
    /// A virtual interface of this rank.
    pub interface: u32,
    /// One at the peer's node.
    pub to_interface: u32,
    /// Where at the peer `data` is written behind an RDMA write; with `NOTIFIES`.
    pub notify: u64,
    /// What the program calls an operation of a virtual interface: comes back when it has ended.
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
    /// A virtual interface of a protection domain that no other rank is in.
    pub const PRIVATE: u32 = 16;
}

impl Post {
    /// A post of any words, one after the other: what a rank may have written there.
    pub fn of_words(mut next: impl FnMut() -> u64) -> Post {
        let mut halves = || {
            let word = next();
            (word as u32, (word >> 32) as u32)
        };
        let ((kind, to), (token, flags), (bytes_at, bytes)) = (halves(), halves(), halves());
        let ((interface, to_interface), (source, unused)) = (halves(), halves());
        let ((envelope_kind, untagged), (send, receive)) = (halves(), halves());
        let envelope = RawEnvelope {
            kind: envelope_kind,
            untagged,
            tag: next(),
            bytes: next(),
            source,
            send,
            receive,
            unused,
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

/// What kind of operation a rank waits for.
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

/// What an inbox entry tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum NoticeKind {
    /// A message has come.
    Message = 1,
    /// The interface has taken a message.
    Sent = 2,
    /// An RDMA write or read of this rank is complete.
    Done = 3,
    /// A peer has written into registered memory, with data.
    Written = 4,
    /// A virtual interface has been opened, or not: `interface`, `node`, its domain in `data`.
    Opened = 5,
    /// A small message is in the mailbox of a virtual interface.
    Small = 6,
    /// An operation of a virtual interface has ended: its [`PostKind`] in `token`, its context in `data`.
    Ended = 7,
}

impl NoticeKind {
    /// The kind of that number, if it tells of virtual interfaces.
    pub(crate) fn of_interface(kind: u32) -> Option<NoticeKind> {
        [NoticeKind::Opened, NoticeKind::Small, NoticeKind::Ended]
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
    /// Where in the inbox's arena the bytes lie.
    pub bytes_at: u32,
    /// How many.
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
    /// In [`Notice::flags`]: it was [answered](crate::stand_in) while the rank waited, at its time and by its clock. Such notices come first.
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
    /// Not 0: matched by source alone.
    pub untagged: u32,
    /// The tag.
    pub tag: u64,
    /// The program's payload.
    pub bytes: u64,
    /// Who has posted it. The simulator knows better.
    pub source: u32,
    /// The send's number at the rank that sends the data.
    pub send: u32,
    /// The receive's number at the rank that receives it.
    pub receive: u32,
    /// Fills the record up.
    pub unused: u32,
}

const KINDS: [EnvelopeKind; 5] = [
    EnvelopeKind::Eager,
    EnvelopeKind::RequestToSend,
    EnvelopeKind::ClearToSend,
    EnvelopeKind::Data,
    EnvelopeKind::Ack,
];

impl From<&Envelope> for RawEnvelope {
    fn from(envelope: &Envelope) -> RawEnvelope {
        let kind = KINDS.iter().position(|kind| *kind == envelope.kind).map_or(u32::MAX, |k| k as u32);
        RawEnvelope {
            kind,
            untagged: u32::from(!envelope.is_tagged()),
            tag: envelope.tag64(),
            bytes: envelope.bytes.get(),
            source: envelope.source.0,
            send: envelope.send,
            receive: envelope.receive,
            unused: 0,
        }
    }
}

impl RawEnvelope {
    /// The envelope; `None`: it is of no kind.
    pub fn envelope(&self) -> Option<Envelope> {
        let kind = *KINDS.get(self.kind as usize)?;
        let (tagged, bytes) = (self.untagged == 0, Bytes::new(self.bytes));
        let mut envelope = Envelope::of_real_rank(kind, tagged, RankId(self.source), self.tag, bytes);
        (envelope.send, envelope.receive) = (self.send, self.receive);
        Some(envelope)
    }
}

/// The token of a message as a number; 0: it is not awaited.
pub fn token_bits(token: SendToken) -> u32 {
    token.bits().map_or(0, NonZeroU32::get)
}
