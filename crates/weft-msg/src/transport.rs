//! The seam between messaging and whatever carries its messages.
//!
//! ```text
//!   program ── Op ──▶ Rank ── spend, post ──▶ Transport ──▶ network
//!                      ▲                          │
//!                      └──── delivered, sent ─────┘
//! ```
//! Some messages are carried out by the interface at their destination: see
//! [`Protocol::by_interface`](crate::Protocol::by_interface).
//!
//! A simulated rank implements [`Transport`] with the model of an interface, a real process with rings in
//! shared memory. Messaging sees neither a simulator nor a clock.

use crate::accelerator::Allreduce;
use crate::accelerator_limit::AcceleratorLimit;
use crate::communicator::Group;
use crate::envelope::{Envelope, OperationKind, ReceiveEntry, SendEntry};
use crate::hierarchy::Hierarchy;
use crate::multicast_limit::MulticastLimit;
use crate::work::{InMemory, Work};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::sync::Arc;
use weft_trace::op::RequestId;
use weft_units::{Address, Bytes, RankId, Span};

/// The network interface and the processor as messaging sees them.
///
/// Every posted message is delivered once, whole, to [`Rank::delivered`](crate::Rank::delivered) of its
/// destination, or carried out by the interface there. [Ordered](Envelope::is_ordered) messages from one rank
/// to another must arrive in the order in which they were posted: MPI's order of messages rests on it. The
/// other kinds may overtake.
pub trait Transport {
    /// The processor does `work` for `span`: this rank's clock advances.
    fn spend(&mut self, work: Work, span: Span);

    /// The processor does `work` on memory: it takes longer than alone where the host's memory is busy.
    fn spend_in_memory(&mut self, work: Work, what: InMemory) {
        self.spend(work, what.alone);
    }

    /// Hands a message to the interface at the rank's present clock.
    fn post(&mut self, posting: Posting);

    /// The receive that a real rank calls `key` has been matched with an announced message: its data will
    /// come for the entry `receive`. The clear to send is posted next.
    fn announced(&mut self, _key: u32, _receive: ReceiveEntry, _envelope: &Envelope) {}

    /// The message of the receive that a real rank calls `key` is here, whole: its data can be put in
    /// place. `receive` is that of [`announced`](Transport::announced), where the message was. `completed`
    /// follows.
    fn received(&mut self, _key: u32, _receive: Option<ReceiveEntry>, _envelope: &Envelope) {}

    /// The message of the program's receive `request` is here, whole.
    fn request_received(&mut self, _request: RequestId, _envelope: &Envelope) {}

    /// Whether the receive that a real rank calls `key`, which repeats, has room for more messages.
    fn wants_more(&mut self, _key: u32) -> bool {
        false
    }

    /// The operation that a real rank calls `key` has completed.
    fn completed(&mut self, _key: u32) {}

    /// Why the interface cannot carry out this allreduce without the processors; `None`: it can. All
    /// members must get the same answer.
    fn accelerator_limit(&mut self, _allreduce: &Allreduce<'_>) -> Option<AcceleratorLimit> {
        Some(AcceleratorLimit::Absent)
    }

    /// Hands this rank's vector to the interface, which reduces it with those of the whole group. `token`
    /// comes back through [`Rank::accelerated`](crate::Rank::accelerated) with the result. Asked for
    /// only where the interface [knows no limit](Transport::accelerator_limit).
    fn allreduce(&mut self, _allreduce: &Allreduce<'_>, _token: SendToken) {}

    /// The places of the members of this group in the machine; `None`: nobody knows them. All members must
    /// get the same answer.
    fn hierarchy(&self, _group: Group<'_>) -> Option<Arc<Hierarchy>> {
        None
    }

    /// Why a message cannot be sent once to all other members of this group; `None`: it can. All members must
    /// get the same answer.
    fn multicast_limit(&mut self, _group: Group<'_>) -> Option<MulticastLimit> {
        Some(MulticastLimit::Interface)
    }

    /// Hands over a message for all other members of a group. It is delivered once to each, as others are.
    /// Asked for only where there is [no limit](Transport::multicast_limit).
    fn multicast(&mut self, _group: Group<'_>, _posting: GroupPosting) {}
}

/// A message that a rank hands to its interface for all other members of a group.
#[derive(Clone, Copy, Debug)]
pub struct GroupPosting {
    /// The message.
    pub envelope: Envelope,
    /// The bytes that it occupies on the wire in addition to packet headers.
    pub payload: Bytes,
    /// The place of its data in the rank's memory.
    pub buffer: Address,
    /// Comes back through [`Rank::sent`](crate::Rank::sent) when the interface has taken the data.
    pub token: SendToken,
}

/// A message that a rank hands to its interface.
#[derive(Clone, Copy, Debug)]
pub struct Posting {
    /// For whom: never the rank itself.
    pub to: RankId,
    /// The message.
    pub envelope: Envelope,
    /// The operation that it is part of.
    pub operation: OperationKind,
    /// The bytes that it occupies on the wire in addition to packet headers.
    pub payload: Bytes,
    /// The place of its data in the rank's memory, where it has data that the interface fetches by itself. A
    /// real rank's are not known here.
    pub buffer: Address,
    /// Comes back through [`Rank::sent`](crate::Rank::sent) when the interface has taken the data, so that
    /// the buffer may be used again, unless nobody waits for it ([`SendToken::is_awaited`]).
    pub token: SendToken,
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

    /// The token of a send.
    pub(crate) const fn of_send(send: SendEntry) -> SendToken {
        SendToken::of_collective(send.index())
    }

    /// The token of an allreduce, by its entry in the table of collectives.
    pub(crate) const fn of_collective(key: u32) -> SendToken {
        SendToken(NonZeroU32::new(key.wrapping_add(1)))
    }

    /// A number that travels between processes; `None`: nobody waits for it.
    pub const fn bits(self) -> Option<NonZeroU32> {
        self.0
    }

    /// The token of such a number.
    pub const fn from_bits(bits: Option<NonZeroU32>) -> SendToken {
        SendToken(bits)
    }

    /// The entry that it names, in the table of sends or of collectives.
    pub(crate) fn key(self) -> Option<u32> {
        self.0.map(|n| n.get() - 1)
    }
}
