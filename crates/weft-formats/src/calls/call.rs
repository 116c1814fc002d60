//! A call of MPI as trace formats record it: with handles and with ranks of its communicator.

use super::group::RankGroup;
use std::sync::Arc;
use weft_trace::op::{Collective, CollectiveSizes, SendMode};
use weft_units::{Bytes, Span};

/// A call with its time.
#[derive(Debug)]
pub(crate) struct TimedCall {
    pub(crate) call: MpiCall,
    /// From the rank's first instant; `None`: the format has no times.
    pub(crate) interval: Option<CallTime>,
}

/// The time that a call takes, by the clock of its rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTime {
    pub(crate) start: Span,
    pub(crate) end: Span,
}

/// A communicator as a call names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommRef {
    World,
    Own,
    /// A handle that a creation has returned.
    Made(u64),
    /// A handle that no creation tells: it is known by the rank in it and by its size.
    Seen {
        handle: u64,
        rank: u32,
        size: u32,
    },
}

/// A communicator that a call has made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NewComm {
    Handle(u64),
    /// The format does not tell its handle.
    Untold,
}

/// The handle of the group without members.
pub(crate) const EMPTY_GROUP: u64 = u64::MAX;

/// A request of the rank as a call names it.
pub(crate) type RequestKey = u128;

/// The other side of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OtherSide {
    /// A rank of the communicator.
    Rank(u32),
    Any,
    /// MPI_PROC_NULL: nothing is sent or received.
    Nobody,
}

/// A message as one side names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageEnd {
    pub(crate) peer: OtherSide,
    /// `None`: any.
    pub(crate) tag: Option<i32>,
    pub(crate) comm: CommRef,
    /// Of a receive: the size of its buffer.
    pub(crate) bytes: Bytes,
}

/// The source within the communicator, and the tag, that a receive has matched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Matched {
    pub(crate) source: u32,
    pub(crate) tag: i32,
}

/// How a send or a receive ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    /// With the call.
    Blocking,
    /// With a wait for this request.
    Request(RequestKey),
    /// It begins with a start of this request, again and again.
    Persistent(RequestKey),
}

/// The requests of a list that a wait has completed.
#[derive(Clone, Debug)]
pub(crate) enum Completed {
    All,
    /// The one at this place.
    One(usize),
    /// Those at these places.
    Some(Vec<usize>),
    /// One of them, the format does not say which.
    Unknown,
}

/// How a communicator comes into being.
#[derive(Clone, Debug)]
pub(crate) enum Creation {
    /// Of all who are members of the new one, in the order of the old.
    Duplicate,
    Split {
        color: i32,
        key: i32,
    },
    Group(Arc<RankGroup>),
    Cartesian {
        dimensions: Vec<u32>,
    },
    /// Of a Cartesian one: the dimensions that stay.
    Slice {
        keep: Vec<bool>,
    },
    /// By a call whose members are not known.
    Unknown(&'static str),
}

/// A call.
#[derive(Debug)]
pub(crate) enum MpiCall {
    /// Takes time, and nothing else.
    Nothing,
    /// Computation that the format tells outright.
    Compute(Span),
    Send {
        envelope: MessageEnd,
        mode: SendMode,
        manner: Manner,
    },
    Receive {
        envelope: MessageEnd,
        matched: Option<Matched>,
        manner: Manner,
    },
    /// MPI_Sendrecv.
    Exchange {
        send: MessageEnd,
        receive: MessageEnd,
        matched: Option<Matched>,
    },
    /// A probe that has found a message.
    Probe {
        comm: CommRef,
        found: Matched,
        tested: bool,
    },
    Start(Vec<RequestKey>),
    Complete {
        requests: Vec<RequestKey>,
        completed: Completed,
        /// By the place in `requests`; shorter where the format does not say.
        matched: Vec<Option<Matched>>,
    },
    /// Completes all requests that are open.
    CompleteOpen,
    /// Completes those of a list that are open: the format does not tell which of its entries are none. Where
    /// none is, its names are not those that the requests were begun under: the oldest are taken.
    CompleteFound {
        requests: Vec<RequestKey>,
        completed: Completed,
    },
    /// The request is given up: nobody waits for it.
    Release(RequestKey),
    Cancel(RequestKey),
    Collective {
        kind: Collective,
        comm: CommRef,
        root: Option<u32>,
        sizes: CollectiveSizes,
    },
    /// `new` is `None` where this rank is not a member.
    Create {
        from: CommRef,
        how: Creation,
        new: Option<NewComm>,
    },
    CreateByGroup {
        from: CommRef,
        group: u64,
        new: Option<NewComm>,
    },
    /// MPI_Comm_group: the members of a communicator as a group.
    GroupOf {
        comm: CommRef,
        new: u64,
    },
    /// Another group made of groups.
    GroupFrom {
        make: GroupMaking,
        new: u64,
    },
    /// A call that moves data, or may, and is not read: counted under its name.
    Unread(String),
    /// As above, of a call that begins a request: the wait for it is over at once.
    UnreadRequest(String, RequestKey),
}

/// How a group is made of others, which are named by their handles.
#[derive(Debug)]
pub(crate) enum GroupMaking {
    Union(u64, u64),
    Intersection(u64, u64),
    Difference(u64, u64),
    Include(u64, Vec<u32>),
    Exclude(u64, Vec<u32>),
}
