//! The seam between messaging and whatever carries its messages.
//!
//! ```text
//!   program ── Op ──▶ Process ── spend, post ──▶ Nic ──▶ network
//!                        ▲                        │
//!                        └── delivered, sent ─────┘
//! ```
//! Some messages are carried out by the interface at their destination: see
//! [`Protocol::by_interface`](crate::Protocol::by_interface).
//!
//! A simulated rank implements [`Nic`] with the model of an interface, a real process with rings in
//! shared memory. Messaging sees neither a simulator nor a clock.

use crate::accelerator::{AcceleratorLimit, Allreduce};
use crate::work::{InMemory, Work};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use weft_trace::op::CommId;
use weft_units::{Bytes, RankId, Span};

/// The network interface and processor as messaging sees them.
///
/// Every posted message is delivered once, whole, to [`Process::delivered`](crate::Process::delivered) of
/// its destination, or carried out by the interface there. Messages of the kinds [`Eager`](EnvelopeKind::Eager) and
/// [`RequestToSend`](EnvelopeKind::RequestToSend) from one rank to another must arrive in the order in
/// which they were posted: MPI's order of messages rests on it. The other kinds may overtake.
pub trait Nic {
    /// The processor does `work` for `span`: this rank's clock advances.
    fn spend(&mut self, work: Work, span: Span);

    /// The processor does `work` on memory: it takes longer than alone where the host's memory is busy.
    fn spend_in_memory(&mut self, work: Work, what: InMemory) {
        self.spend(work, what.alone);
    }

    /// Hands a message to the interface at the rank's present clock. `to` is never the rank itself.
    /// `payload` is what the message occupies on the wire beside packet headers. When the interface
    /// has taken the data, so that the buffer may be used again, `token` comes back through
    /// [`Process::sent`](crate::Process::sent), unless nobody waits for it
    /// ([`SendToken::is_awaited`]).
    fn post(&mut self, to: RankId, envelope: Envelope, payload: Bytes, token: SendToken);

    /// The receive that a real rank calls `key` has been matched with an announced message: its data will
    /// come with `receive` in its envelope. The clear to send is posted next.
    fn announced(&mut self, _key: u32, _receive: u32, _envelope: &Envelope) {}

    /// The message of the receive that a real rank calls `key` is here, whole: its data can be put in
    /// place. [`Nic::completed`] follows.
    fn received(&mut self, _key: u32, _envelope: &Envelope) {}

    /// Whether the receive that a real rank calls `key`, which repeats, has room for more messages.
    fn wants_more(&mut self, _key: u32) -> bool {
        false
    }

    /// The operation that a real rank calls `key` has completed.
    fn completed(&mut self, _key: u32) {}

    /// Why the interface cannot carry out this allreduce without the processors; `None`: it can. All
    /// members must get the same answer.
    fn accelerator_limit(&self, _allreduce: &Allreduce<'_>) -> Option<AcceleratorLimit> {
        Some(AcceleratorLimit::Absent)
    }

    /// Hands this rank's vector to the interface, which reduces it with those of the whole group. `token`
    /// comes back through [`Process::accelerated`](crate::Process::accelerated) with the result. Asked for
    /// only where the interface [knows no limit](Nic::accelerator_limit).
    fn allreduce(&mut self, _allreduce: &Allreduce<'_>, _token: SendToken) {}
}

/// Names a posted message until the interface has taken it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SendToken(Option<NonZeroU32>);

impl SendToken {
    /// Nobody waits for this message to be taken: the interface need not report it.
    pub const UNAWAITED: SendToken = SendToken(None);

    /// Whether the interface must hand the token back.
    pub const fn is_awaited(self) -> bool {
        self.0.is_some()
    }

    /// The token of entry `key` in the table of sends.
    pub(crate) fn of(key: u32) -> SendToken {
        SendToken(NonZeroU32::new(key.wrapping_add(1)))
    }

    /// It as a number, to travel between processes; `None`: nobody waits for it.
    pub const fn bits(self) -> Option<NonZeroU32> {
        self.0
    }

    /// The token of such a number.
    pub const fn from_bits(bits: Option<NonZeroU32>) -> SendToken {
        SendToken(bits)
    }

    /// The entry that it names.
    pub(crate) fn key(self) -> Option<usize> {
        self.0.map(|n| n.get() as usize - 1)
    }
}

/// What a one-sided operation does at its target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Access {
    /// Writes.
    Put,
    /// Reads.
    Get,
    /// Reduces into what is there.
    Accumulate,
    /// Reads what is there and changes it, as one: get-accumulate, fetch-and-op, compare-and-swap.
    Fetch,
}

impl Access {
    /// Whether its request carries data.
    pub const fn takes_data(self) -> bool {
        !matches!(self, Access::Get)
    }

    /// Whether its answer carries data.
    pub const fn returns_data(self) -> bool {
        matches!(self, Access::Get | Access::Fetch)
    }

    /// Whether it computes at the target.
    pub const fn reduces(self) -> bool {
        matches!(self, Access::Accumulate | Access::Fetch)
    }
}

/// What a message is in the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum EnvelopeKind {
    /// The message itself, sent without asking. Matched.
    Eager,
    /// Announces a message that waits at its source. Matched.
    RequestToSend,
    /// The receive for an announced message is there.
    ClearToSend,
    /// An announced message.
    Data,
    /// An announced message has arrived.
    Ack,
    /// A synchronous message has been matched, and received.
    Receipt,
    /// The receiver fetches an announced message.
    Read,
    /// A one-sided operation, with its data where it takes any.
    Access(Access),
    /// Announces a one-sided operation with much data.
    Announce(Access),
    /// The target of an announced operation is ready.
    Admit,
    /// A one-sided operation is complete at its target; with what it returns.
    Answer(Access),
    /// The window of its source may be accessed: a post.
    Posted,
    /// The accesses of its source are over: a complete.
    Completed,
}

/// What travels with a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Envelope {
    /// What the message is in the protocol.
    pub kind: EnvelopeKind,
    /// Whether it belongs to a collective: those match apart from the program's own messages.
    pub collective: bool,
    /// Who posted it.
    pub source: RankId,
    /// The program's tag; in a collective its number among the communicator's collectives.
    pub tag: i32,
    /// The communicator; of posts and completes the window.
    pub comm: CommId,
    /// The program's payload, also where this message only announces or acknowledges it.
    pub bytes: Bytes,
    /// The send's entry at the rank that sends the data.
    pub send: u32,
    /// The receive's entry at the rank that receives the data, once it is known. Before, one more than the send's entry where that
    /// waits for a [receipt](EnvelopeKind::Receipt), else 0.
    pub receive: u32,
}

impl Envelope {
    /// Whether it carries data of the program.
    pub const fn has_data(&self) -> bool {
        match self.kind {
            EnvelopeKind::Eager | EnvelopeKind::Data => true,
            EnvelopeKind::Access(access) => access.takes_data(),
            EnvelopeKind::Answer(access) => access.returns_data(),
            EnvelopeKind::RequestToSend
            | EnvelopeKind::ClearToSend
            | EnvelopeKind::Ack
            | EnvelopeKind::Receipt
            | EnvelopeKind::Read
            | EnvelopeKind::Announce(_)
            | EnvelopeKind::Admit
            | EnvelopeKind::Posted
            | EnvelopeKind::Completed => false,
        }
    }

    /// Whether messaging matches it with receives, so that it needs it in order.
    pub const fn is_matched(&self) -> bool {
        matches!(self.kind, EnvelopeKind::Eager | EnvelopeKind::RequestToSend)
    }

    /// Whether it announces data that another message will carry.
    pub const fn announces(&self) -> bool {
        matches!(self.kind, EnvelopeKind::RequestToSend | EnvelopeKind::Announce(_))
    }

    /// Names the exchange of a rendezvous among those that its sender has under way: the same in the
    /// request to send, the clear to send, the data and the acknowledgement. 0 for eager messages.
    pub const fn exchange(&self) -> u32 {
        self.send
    }
}

const _: () = assert!(size_of::<Envelope>() <= 40, "an envelope is copied with every message");
