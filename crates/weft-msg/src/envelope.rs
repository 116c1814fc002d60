//! Envelopes: the headers that two sides of messaging exchange, one variant for each kind of message.
//!
//! ```text
//!   Envelope ─┬─ source   who posted it
//!             ├─ bytes    the program's payload, also where the message only announces it
//!             ├─ kept     where a real receiver keeps the data meanwhile; never travels
//!             └─ body ──┬─ Eager, RequestToSend    carry a Match: communicator, tag or sequence
//!                       ├─ ClearToSend, Data, …    carry entries of the tables at both sides
//!                       └─ Posted, Completed       carry a window
//! ```
//! An envelope has the fields of its kind and no others: what a kind does not have cannot be read from it.

use serde::{Deserialize, Serialize};
use std::num::{NonZeroU32, NonZeroU64};
use weft_trace::op::{CommId, WindowId};
use weft_units::{Bytes, RankId};

/// Bytes of the longest message and the largest buffer: headers and sums have room above it.
pub(crate) const MAX_MESSAGE_BYTES: u64 = 1 << 62;

/// An entry of a rank's table of sends, where it waits for something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct SendEntry(NonZeroU32);

impl SendEntry {
    /// The entry at this index of the table. The last two indices of 2^32 are not told apart: no table is as
    /// long.
    pub const fn new(index: u32) -> SendEntry {
        SendEntry(NonZeroU32::MIN.saturating_add(index))
    }

    /// The index in the table.
    pub const fn index(self) -> u32 {
        self.0.get() - 1
    }
}

/// An entry of a rank's table of receives that have met an announced message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ReceiveEntry(pub u32);

/// The entry under which a real rank keeps the data of a message until a receive takes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct KeptEntry(NonZeroU32);

impl KeptEntry {
    /// The entry at this index of the rank's store.
    pub const fn new(index: u32) -> KeptEntry {
        KeptEntry(NonZeroU32::MIN.saturating_add(index))
    }

    /// The index in the rank's store.
    pub const fn index(self) -> u32 {
        self.0.get() - 1
    }
}

/// The purpose of a message within its communicator, with the tag or the number. Messages of different
/// contexts never match.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum MatchContext {
    /// A message of the program, with its tag.
    Program(i32),
    /// A message of a collective, with the collective's number in the communicator.
    Collective(i32),
    /// A message of a real rank: with or without a tag, and between which endpoints.
    Live {
        /// Whether it has a tag.
        tagged: bool,
        /// From whose endpoint to whose.
        endpoints: RankEndpoints,
        /// The lower half of the tag.
        number: i32,
    },
}

/// The endpoints of two real ranks between which a message goes, each numbered by its rank. They are those of
/// libfabric: a rank may open several at its one place in the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct RankEndpoints {
    from: u8,
    to: u8,
}

impl RankEndpoints {
    /// Endpoints of a rank: their numbers are below it.
    pub const MOST: u8 = 16;
    /// The first endpoints of two ranks: those of simulated ranks, which have no others.
    pub const FIRST: RankEndpoints = RankEndpoints { from: 0, to: 0 };

    /// From one endpoint to another; `None`: no rank has an endpoint of such a number.
    pub const fn new(from: u8, to: u8) -> Option<RankEndpoints> {
        if from < RankEndpoints::MOST && to < RankEndpoints::MOST {
            Some(RankEndpoints { from, to })
        } else {
            None
        }
    }

    /// Of the message that goes back.
    pub const fn reversed(self) -> RankEndpoints {
        RankEndpoints { from: self.to, to: self.from }
    }

    /// The endpoint of the sender.
    pub const fn from(self) -> u8 {
        self.from
    }

    /// The endpoint of the receiver.
    pub const fn to(self) -> u8 {
        self.to
    }
}

impl MatchContext {
    /// The tag or the collective's number.
    pub const fn number(self) -> i32 {
        match self {
            MatchContext::Program(number)
            | MatchContext::Collective(number)
            | MatchContext::Live { number, .. } => number,
        }
    }

    /// Whether the program's tags do not reach it: that of collectives, or a real rank's without a tag.
    pub const fn is_untagged(self) -> bool {
        matches!(self, MatchContext::Collective(_) | MatchContext::Live { tagged: false, .. })
    }

    /// The endpoints between which the message goes. Simulated ranks have one each.
    #[inline]
    pub const fn endpoints(self) -> RankEndpoints {
        match self {
            MatchContext::Live { endpoints, .. } => endpoints,
            MatchContext::Program(_) | MatchContext::Collective(_) => RankEndpoints::FIRST,
        }
    }

    /// The program's tag; `None`: the message is a collective's.
    pub const fn program_tag(self) -> Option<i32> {
        match self {
            MatchContext::Program(tag) | MatchContext::Live { tagged: true, number: tag, .. } => Some(tag),
            MatchContext::Collective(_) | MatchContext::Live { tagged: false, .. } => None,
        }
    }
}

/// The communicator and context that a message and its receive must share. The source is compared apart,
/// since a receive may accept any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Match {
    /// The communicator.
    pub comm: CommId,
    /// The tag, or the collective's number.
    pub context: MatchContext,
}

/// The action of a one-sided operation at its target.
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

/// A message that the library of the other side handles, without a receive. See `process/active.rs`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ActiveMessage {
    /// Asks for a lock, or for its end.
    Ask {
        /// The origin's operation, which the answer names.
        operation: SendEntry,
    },
    /// Brings data to be reduced into the target's.
    Accumulate {
        /// The origin's operation.
        operation: SendEntry,
        /// The bytes of data that the target reads from there; `None`: they are in the message.
        to_read: Option<NonZeroU64>,
    },
    /// Brings data, and asks for the target's.
    Fetch {
        /// The origin's operation.
        operation: SendEntry,
        /// As of an accumulate.
        to_read: Option<NonZeroU64>,
    },
    /// The operation has been carried out.
    Answer {
        /// The receiver's operation.
        operation: SendEntry,
        /// The send at the source whose data the receiver reads; `None`: it is in the message.
        to_read: Option<SendEntry>,
    },
    /// The source has read the data that a message to it has named.
    HasRead {
        /// The send that kept it, of an answer; `None`: an operation, which goes on.
        kept: Option<SendEntry>,
    },
    /// The source may be accessed: a post.
    Posted {
        /// In this window.
        window: WindowId,
    },
    /// The accesses of the source are over: a complete.
    Completed {
        /// In this window.
        window: WindowId,
    },
}

impl ActiveMessage {
    /// The send at its source whose data the receiver reads; `None`: all data is in the message.
    pub const fn data_to_read(self) -> Option<SendEntry> {
        match self {
            ActiveMessage::Accumulate { operation, to_read: Some(_) }
            | ActiveMessage::Fetch { operation, to_read: Some(_) } => Some(operation),
            ActiveMessage::Answer { to_read, .. } => to_read,
            _ => None,
        }
    }
}

/// The kind of a message in the protocol, and what only that kind has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Body {
    /// A message that is sent without asking, with its data. Matched.
    Eager {
        /// The communicator and context that a receive must have to match.
        matching: Match,
        /// The send that waits for a receipt; `None`: none does.
        receipt: Option<SendEntry>,
    },
    /// The data of a broadcast, which switches copy: all receives are posted. Matched.
    Multicast {
        /// The communicator and context that a receive must have to match.
        matching: Match,
    },
    /// An active message that is sent without asking.
    Active {
        /// The message.
        message: ActiveMessage,
    },
    /// Announces a message that waits at its source. Matched.
    RequestToSend {
        /// The communicator and context that a receive must have to match.
        matching: Match,
        /// The send at the source.
        send: SendEntry,
        /// Whether that send waits for a receipt as well.
        receipt: bool,
    },
    /// Announces an active message that waits at its source.
    AnnounceActive {
        /// The message.
        message: ActiveMessage,
        /// The send at the source.
        send: SendEntry,
    },
    /// The receive for an announced message is there.
    ClearToSend {
        /// The send at the rank that has announced it.
        send: SendEntry,
        /// The receive at the rank that clears it.
        receive: ReceiveEntry,
    },
    /// The data of an announced message or operation.
    Data {
        /// The send at the rank that sends the data.
        send: SendEntry,
        /// The receive at the rank that receives it.
        receive: ReceiveEntry,
    },
    /// Announced data has arrived.
    Ack {
        /// The send at the rank that has sent the data.
        send: SendEntry,
        /// The receive at the rank that has it.
        receive: ReceiveEntry,
    },
    /// A synchronous message has been matched and received.
    Receipt {
        /// The send that waits for this.
        send: SendEntry,
    },
    /// The receiver fetches an announced message.
    Read {
        /// The send at the rank that has announced it.
        send: SendEntry,
        /// The receive at the rank that fetches it.
        receive: ReceiveEntry,
    },
    /// A one-sided operation, with its data where it takes any.
    Access {
        /// The action at the target.
        access: Access,
        /// The operation at its origin.
        send: SendEntry,
        /// The origin's own number for the window, counted from 0.
        window: u32,
    },
    /// Announces a one-sided operation with much data.
    Announce {
        /// The action at the target.
        access: Access,
        /// The operation at its origin.
        send: SendEntry,
        /// The origin's own number for the window, counted from 0.
        window: u32,
    },
    /// The target of an announced operation is ready.
    Admit {
        /// The operation at its origin.
        send: SendEntry,
        /// The entry at the target.
        receive: ReceiveEntry,
    },
    /// A one-sided operation is complete at its target; with the data that it returns.
    Answer {
        /// The action at the target.
        access: Access,
        /// The operation at its origin.
        send: SendEntry,
        /// The origin's own number for the window, counted from 0.
        window: u32,
    },
    /// The window of its source may be accessed: a post.
    Posted {
        /// The window, by the name that it has at all members.
        window: WindowId,
    },
    /// The accesses of its source are over: a complete.
    Completed {
        /// The window, by the name that it has at all members.
        window: WindowId,
    },
}

/// The kind of a message in the protocol, for records and reports. An active message counts as the eager
/// message or the request to send that it is on the wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum EnvelopeKind {
    /// [`Body::Eager`], [`Body::Active`].
    Eager,
    /// [`Body::Multicast`].
    Multicast,
    /// [`Body::RequestToSend`], [`Body::AnnounceActive`].
    RequestToSend,
    /// [`Body::ClearToSend`].
    ClearToSend,
    /// [`Body::Data`].
    Data,
    /// [`Body::Ack`].
    Ack,
    /// [`Body::Receipt`].
    Receipt,
    /// [`Body::Read`].
    Read,
    /// [`Body::Access`].
    Access(Access),
    /// [`Body::Announce`].
    Announce(Access),
    /// [`Body::Admit`].
    Admit,
    /// [`Body::Answer`].
    Answer(Access),
    /// [`Body::Posted`].
    Posted,
    /// [`Body::Completed`].
    Completed,
}

/// The operation that a message is part of, for whoever treats them differently on their way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum OperationKind {
    /// A send of the program that a receive takes.
    TwoSided,
    /// A collective. Of real ranks also messages without a tag.
    Collective,
    /// A write into a window.
    Put,
    /// A read of a window.
    Get,
    /// A change of a window: accumulates, fetches with a change, locks.
    Atomic,
    /// None of these: the beginning and end of access epochs, and acknowledgements, which do not say of what.
    Other,
}

impl OperationKind {
    pub(crate) const fn of_match(matching: Match) -> OperationKind {
        if matching.context.is_untagged() { OperationKind::Collective } else { OperationKind::TwoSided }
    }

    /// That of an access.
    pub const fn of_access(access: Access) -> OperationKind {
        match access {
            Access::Put => OperationKind::Put,
            Access::Get => OperationKind::Get,
            Access::Accumulate | Access::Fetch => OperationKind::Atomic,
        }
    }

    pub(crate) const fn of_active(message: ActiveMessage) -> OperationKind {
        match message {
            ActiveMessage::Ask { .. }
            | ActiveMessage::Accumulate { .. }
            | ActiveMessage::Fetch { .. }
            | ActiveMessage::Answer { .. } => OperationKind::Atomic,
            ActiveMessage::Posted { .. }
            | ActiveMessage::Completed { .. }
            | ActiveMessage::HasRead { .. } => OperationKind::Other,
        }
    }

    /// As far as the body of a message says it.
    pub(crate) const fn of_body(body: Body) -> OperationKind {
        match body {
            Body::Eager { matching, .. }
            | Body::Multicast { matching }
            | Body::RequestToSend { matching, .. } => OperationKind::of_match(matching),
            Body::Active { message } | Body::AnnounceActive { message, .. } => {
                OperationKind::of_active(message)
            }
            Body::Access { access, .. } | Body::Announce { access, .. } | Body::Answer { access, .. } => {
                OperationKind::of_access(access)
            }
            // No collective sends synchronously.
            Body::Receipt { .. } => OperationKind::TwoSided,
            Body::ClearToSend { .. }
            | Body::Data { .. }
            | Body::Ack { .. }
            | Body::Read { .. }
            | Body::Admit { .. }
            | Body::Posted { .. }
            | Body::Completed { .. } => OperationKind::Other,
        }
    }
}

/// The header of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Envelope {
    /// Who posted it.
    pub source: RankId,
    /// Where the receiver, a real rank, keeps the data of an eager message or of one to itself. It never
    /// travels.
    pub kept: Option<KeptEntry>,
    /// The program's payload, also where this message only announces or acknowledges it.
    pub bytes: Bytes,
    /// The kind, and what only that kind has.
    pub body: Body,
}

impl Envelope {
    /// An envelope as it travels.
    pub const fn new(source: RankId, bytes: Bytes, body: Body) -> Envelope {
        Envelope { source, kept: None, bytes, body }
    }

    /// The program's tag, where this meets a receive: it is a message, or announces one.
    pub const fn tag(&self) -> Option<i32> {
        match self.body {
            Body::Eager { matching, .. } | Body::RequestToSend { matching, .. } => {
                matching.context.program_tag()
            }
            _ => None,
        }
    }

    /// Whether it brings what its receiver has asked for, or clears what it has announced.
    pub const fn is_reply(&self) -> bool {
        match self.body {
            Body::ClearToSend { .. }
            | Body::Data { .. }
            | Body::Ack { .. }
            | Body::Receipt { .. }
            | Body::Admit { .. }
            | Body::Answer { .. } => true,
            Body::Active { message } | Body::AnnounceActive { message, .. } => {
                matches!(message, ActiveMessage::Answer { .. })
            }
            Body::Eager { .. }
            | Body::Multicast { .. }
            | Body::RequestToSend { .. }
            | Body::Read { .. }
            | Body::Access { .. }
            | Body::Announce { .. }
            | Body::Posted { .. }
            | Body::Completed { .. } => false,
        }
    }

    /// The kind, for records and reports.
    pub const fn kind(&self) -> EnvelopeKind {
        match self.body {
            Body::Eager { .. } | Body::Active { .. } => EnvelopeKind::Eager,
            Body::Multicast { .. } => EnvelopeKind::Multicast,
            Body::RequestToSend { .. } | Body::AnnounceActive { .. } => EnvelopeKind::RequestToSend,
            Body::ClearToSend { .. } => EnvelopeKind::ClearToSend,
            Body::Data { .. } => EnvelopeKind::Data,
            Body::Ack { .. } => EnvelopeKind::Ack,
            Body::Receipt { .. } => EnvelopeKind::Receipt,
            Body::Read { .. } => EnvelopeKind::Read,
            Body::Access { access, .. } => EnvelopeKind::Access(access),
            Body::Announce { access, .. } => EnvelopeKind::Announce(access),
            Body::Admit { .. } => EnvelopeKind::Admit,
            Body::Answer { access, .. } => EnvelopeKind::Answer(access),
            Body::Posted { .. } => EnvelopeKind::Posted,
            Body::Completed { .. } => EnvelopeKind::Completed,
        }
    }

    /// The communicator and context that a receive must have to match; `None`: no receive is looked for.
    #[inline]
    pub const fn matching(&self) -> Option<Match> {
        match self.body {
            Body::Eager { matching, .. }
            | Body::RequestToSend { matching, .. }
            | Body::Multicast { matching } => Some(matching),
            _ => None,
        }
    }

    /// Whether it carries data of the program.
    pub const fn has_data(&self) -> bool {
        match self.body {
            Body::Eager { .. } | Body::Multicast { .. } | Body::Active { .. } | Body::Data { .. } => true,
            Body::Access { access, .. } => access.takes_data(),
            Body::Answer { access, .. } => access.returns_data(),
            Body::RequestToSend { .. }
            | Body::AnnounceActive { .. }
            | Body::ClearToSend { .. }
            | Body::Ack { .. }
            | Body::Receipt { .. }
            | Body::Read { .. }
            | Body::Announce { .. }
            | Body::Admit { .. }
            | Body::Posted { .. }
            | Body::Completed { .. } => false,
        }
    }

    /// Whether messaging needs it in the order in which its source has posted such messages.
    #[inline]
    pub const fn is_ordered(&self) -> bool {
        matches!(self.kind(), EnvelopeKind::Eager | EnvelopeKind::RequestToSend)
    }

    /// The send at the source that it announces, whose data another message will carry; `None`: it announces
    /// none.
    pub const fn announces(&self) -> Option<SendEntry> {
        match self.body {
            Body::RequestToSend { send, .. }
            | Body::AnnounceActive { send, .. }
            | Body::Announce { send, .. } => Some(send),
            _ => None,
        }
    }
}

const _: () = assert!(size_of::<Envelope>() <= 40, "an envelope is copied with every message");
