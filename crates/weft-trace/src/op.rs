//! The rank-operation model: what a rank of a message-passing program does, one operation at a time.
//!
//! A rank has one or more streams, each a list of operations in order. Between streams [`Op::Signal`] and
//! [`Op::Await`] keep an order: one stream goes on when others have come to some point. Streams of a rank
//! share its requests: one may wait for what another has started.
//!
//! Blocking calls are written as their parts: `MPI_Send` is [`Op::Isend`] and [`Op::Wait`],
//! `MPI_Sendrecv` is an isend, an irecv and a waitall. Every rank in an operation is a rank of the
//! world communicator, also where the program named it within a smaller one.

use crate::reduction::Reduction;
use serde::{Deserialize, Serialize};
use weft_units::{Address, Bytes, RankId, Span};

/// A pending operation of one rank, numbered by that rank. A number may be used again once the
/// request has completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct RequestId(pub u32);

/// A communicator. All its members know it by the same number: the world rank of its first member in
/// the upper 32 bits, a count of that rank's communicators in the lower.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct CommId(pub u64);

impl CommId {
    /// The world communicator: rank 0's communicator number 0. It needs no [`Op::Communicator`].
    pub const WORLD: CommId = CommId(0);
}

/// A window of one-sided communication, numbered as communicators are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct WindowId(pub u64);

/// A stream of a rank, counted from 0. A rank that is no graph has one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct StreamId(pub u32);

impl StreamId {
    /// The first stream, which every rank has.
    pub const FIRST: StreamId = StreamId(0);

    /// The place in a list of a rank's streams.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An event of one rank, numbered by that rank: one [`Op::Signal`] and one [`Op::Await`] name it. A number
/// may be used again once it has been awaited.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct EventId(pub u32);

/// The moment of the operation before at which an event is signalled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum SignalAt {
    /// The start. The signal follows its operation, before those at its end.
    Start,
    /// The end.
    End,
}

/// World ranks `first, first + stride, …`, `count` of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RankRange {
    /// The first rank.
    pub first: u32,
    /// The distance to the next; may be negative.
    pub stride: i32,
    /// Number of ranks.
    pub count: u32,
}

/// How a send completes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum SendMode {
    /// Complete when the buffer may be used again.
    Standard,
    /// Not before the receive has been matched.
    Synchronous,
    /// At once: the message is copied.
    Buffered,
    /// As standard; the program promises that the receive is posted.
    Ready,
}

/// The collective operations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs)] // Their names are those of the MPI standard, chapter 6.
pub enum Collective {
    Barrier,
    Broadcast,
    Reduce,
    Allreduce,
    Gather,
    Gatherv,
    Scatter,
    Scatterv,
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    ReduceScatter,
    ReduceScatterBlock,
    Scan,
    Exscan,
    NeighborAllgather,
    NeighborAllgatherv,
    NeighborAlltoall,
    NeighborAlltoallv,
}

impl Collective {
    /// Whether it reduces vectors of its members.
    pub const fn reduces(self) -> bool {
        matches!(
            self,
            Collective::Reduce
                | Collective::Allreduce
                | Collective::ReduceScatter
                | Collective::ReduceScatterBlock
                | Collective::Scan
                | Collective::Exscan
        )
    }
}

/// The contribution of one rank to a collective, and the result that it expects.
///
/// | collective | `send` | `receive` | `send_counts` | `receive_counts` |
/// |---|---|---|---|---|
/// | barrier | 0 | 0 | | |
/// | broadcast | the buffer | the buffer | | |
/// | reduce, allreduce, scan, exscan | the vector | the vector | | |
/// | gather, scatter, allgather, alltoall | one block | one block | | |
/// | gatherv | own block | sum at the root | | at the root: a block per member |
/// | scatterv | sum at the root | own block | at the root: a block per member | |
/// | allgatherv | own block | sum | | a block per member |
/// | alltoallv | sum | sum | a block per member | a block per member |
/// | reduce-scatter | the whole vector | own block | | a block per member |
/// | reduce-scatter-block | the whole vector | own block | | |
///
/// Counts are bytes in the order of the communicator's members.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CollectiveSizes {
    /// Bytes given.
    pub send: Bytes,
    /// Bytes taken.
    pub receive: Bytes,
    /// Bytes per member, where the collective has them on the sending side.
    pub send_counts: Vec<u64>,
    /// Bytes per member, where the collective has them on the receiving side.
    pub receive_counts: Vec<u64>,
    /// Size of one element: reductions are split between elements only. 0 is read as 1.
    pub element: u32,
    /// The computation of a reduction, as far as it is known.
    pub reduction: Reduction,
}

/// The places of a collective's buffers in the rank's memory; `None`: not known, or there is none, as where
/// MPI works in place. The one buffer of a broadcast is both.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct CollectiveBuffers {
    /// Of what the rank gives.
    pub send: Option<Address>,
    /// Of what it takes.
    pub receive: Option<Address>,
}

/// The one-sided operations that move data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs)] // Their names are those of the MPI standard, chapter 12.
pub enum OneSided {
    Put,
    Get,
    Accumulate,
    GetAccumulate,
    FetchAndOp,
    CompareAndSwap,
}

/// The synchronizations of one-sided communication.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs)] // Their names are those of the MPI standard, chapter 12.
pub enum WindowSync {
    Fence,
    Post,
    Start,
    Complete,
    Wait,
    Lock,
    Unlock,
    LockAll,
    UnlockAll,
    Flush,
    FlushAll,
    Free,
}

/// One operation of one rank.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Op {
    /// The rank computes for `span`.
    Compute {
        /// CPU time.
        span: Span,
    },
    /// The rank does arithmetic on data in memory, for as long as the machine's cores and memory take.
    Work {
        /// Floating-point operations.
        flops: u64,
        /// Bytes that the core reads from memory and writes to it, beyond its caches.
        bytes: Bytes,
    },
    /// Starts to send a message.
    Isend {
        /// Destination, a world rank.
        to: RankId,
        /// The message's tag.
        tag: i32,
        /// The communicator.
        comm: CommId,
        /// Payload.
        bytes: Bytes,
        /// How the send completes.
        mode: SendMode,
        /// The place of the data in the rank's memory; `None`: not known.
        buffer: Option<Address>,
        /// Completed by a wait.
        request: RequestId,
    },
    /// Starts to receive a message.
    Irecv {
        /// Source, a world rank; `None`: any.
        from: Option<RankId>,
        /// Tag; `None`: any.
        tag: Option<i32>,
        /// The communicator.
        comm: CommId,
        /// Size of the buffer.
        bytes: Bytes,
        /// For a wildcard: the source and tag that matched when the trace was recorded.
        matched: Option<(RankId, i32)>,
        /// The place of the buffer in the rank's memory; `None`: not known.
        buffer: Option<Address>,
        /// Completed by a wait.
        request: RequestId,
    },
    /// Waits until a message is there that no receive has matched, which stays.
    Probe {
        /// The message's source, a world rank.
        from: RankId,
        /// The message's tag.
        tag: i32,
        /// The message's communicator.
        comm: CommId,
        /// Whether the program has tested for it until a test has found it.
        tested: bool,
    },
    /// Waits until one request has completed. Also a successful test.
    Wait {
        /// The request.
        request: RequestId,
    },
    /// Waits until all of the requests have completed.
    Waitall {
        /// The requests.
        requests: Vec<RequestId>,
    },
    /// Waits until one of the requests has completed.
    Waitany {
        /// The requests.
        requests: Vec<RequestId>,
        /// Index into `requests` of the one that completed when the trace was recorded.
        completed: u32,
    },
    /// Takes part in a collective.
    Collective {
        /// Which.
        kind: Collective,
        /// Among whom.
        comm: CommId,
        /// The root as a world rank, where the collective has one.
        root: Option<RankId>,
        /// Bytes given and taken.
        sizes: CollectiveSizes,
        /// The buffers for them.
        buffers: CollectiveBuffers,
        /// `None`: blocking; otherwise completed by a wait.
        request: Option<RequestId>,
    },
    /// A communicator that this rank is a member of exists from here on. Collective over its members
    /// (creation synchronizes as the recorded program's MPI did in operations of its own, or not at all).
    Communicator {
        /// The communicator's id, the same for all its members.
        comm: CommId,
        /// The members in order.
        members: Vec<RankRange>,
    },
    /// A one-sided window exists from here on.
    Window {
        /// The window's id.
        window: WindowId,
        /// Among whom.
        comm: CommId,
        /// Bytes that this rank exposes.
        bytes: Bytes,
        /// The place of what it exposes in its memory; `None`: not known.
        buffer: Option<Address>,
    },
    /// A one-sided operation.
    OneSided {
        /// Which.
        kind: OneSided,
        /// Through which window.
        window: WindowId,
        /// Target, a world rank.
        target: RankId,
        /// Payload.
        bytes: Bytes,
        /// The place of the data in the rank's own memory, of the result if there is one; `None`: not known.
        buffer: Option<Address>,
        /// For request-based operations.
        request: Option<RequestId>,
    },
    /// A synchronization of one-sided communication.
    Sync {
        /// Which.
        kind: WindowSync,
        /// Of which window.
        window: WindowId,
        /// The target, where the synchronization has one.
        target: Option<RankId>,
    },
    /// An event happens: the operation before in the stream starts, or has ended. Without one before it, the
    /// program starts.
    Signal {
        /// The event.
        event: EventId,
        /// Which of the two.
        at: SignalAt,
    },
    /// The stream goes on when all of these events have happened. It costs nothing.
    Await {
        /// The events, each once.
        events: Vec<EventId>,
    },
    /// Something to be seen in timelines: a phase of the program, its start or end.
    Marker {
        /// The text.
        text: String,
    },
}
