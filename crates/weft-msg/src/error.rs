//! Errors in a program's operations.

use crate::accelerator_limit::AcceleratorLimit;
use crate::multicast_limit::MulticastLimit;
use serde::{Deserialize, Serialize};
use weft_trace::op::{CommId, RequestId, WindowId};
use weft_units::{Bytes, RankId};

/// An operation that cannot be carried out. The caller knows which rank and which operation.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MsgError {
    /// A rank that does not exist.
    #[error("{role} {rank} does not exist: the program has {ranks} ranks, numbered from 0")]
    NoSuchRank {
        /// The part that the rank plays in the operation, such as "destination".
        role: String,
        /// The rank.
        rank: RankId,
        /// The number of ranks of the program.
        ranks: u32,
    },
    /// A communicator that this rank has not been told of, or is no member of.
    #[error("rank {rank} is in no communicator {id}: an operation `communicator` must come before its use",
        id = .comm.0)]
    UnknownCommunicator {
        /// The rank.
        rank: RankId,
        /// The communicator.
        comm: CommId,
    },
    /// A communicator that cannot be.
    #[error("communicator {id} cannot be created: {why}", id = .comm.0)]
    BadCommunicator {
        /// The communicator.
        comm: CommId,
        /// The mistake, and the value that was expected.
        why: String,
    },
    /// A rank outside the communicator of the operation.
    #[error("{role} {rank} is no member of communicator {id}", id = .comm.0)]
    NotAMember {
        /// The part that the rank plays in the operation, such as "root".
        role: String,
        /// The rank.
        rank: RankId,
        /// The communicator.
        comm: CommId,
    },
    /// A request number that is still in use.
    #[error("request {id} is started again before it was waited for", id = .request.0)]
    RequestInUse {
        /// The request.
        request: RequestId,
    },
    /// A wait for a request that is not in use.
    #[error("request {id} is waited for, but was not started or has been waited for before", id = .request.0)]
    UnknownRequest {
        /// The request.
        request: RequestId,
    },
    /// A window that this rank has not been told of.
    #[error("rank {rank} has no window {id}: an operation `window` must come before its use", id = .window.0)]
    UnknownWindow {
        /// The rank.
        rank: RankId,
        /// The window.
        window: WindowId,
    },
    /// A post or start that does not say for whom.
    #[error("{operation} without its group: the trace has one for each member; record it again")]
    NoGroup {
        /// The name of the operation.
        operation: String,
    },
    /// A window that is created twice.
    #[error("window {id} cannot be created: its number is in use", id = .window.0)]
    WindowInUse {
        /// The window.
        window: WindowId,
    },
    /// A waitany whose recorded index lies outside its list.
    #[error(
        "a waitany of {requests} requests completed number {completed}: expected a number below {requests}"
    )]
    WaitanyIndex {
        /// Length of the list.
        requests: usize,
        /// The index.
        completed: u32,
    },
    /// A collective without the root that it needs.
    #[error("a {collective} needs a root")]
    NoRoot {
        /// The name of the collective.
        collective: String,
    },
    /// A list of counts of the wrong length.
    #[error("a {collective} on {members} members has {counts} {side} counts: expected one per member")]
    Counts {
        /// The name of the collective.
        collective: String,
        /// "send" or "receive".
        side: String,
        /// The length of the list of counts.
        counts: usize,
        /// The number of members.
        members: u32,
    },
    /// A message that is no message.
    #[error("a message of {size} bytes: expected at most 2^62", size = .bytes.get())]
    MessageTooLarge {
        /// The size of the message.
        bytes: Bytes,
    },
    /// Sizes whose sum is no size.
    #[error("the buffers of a {collective} on {members} members exceed 2^62 bytes")]
    TooLarge {
        /// The name of the collective.
        collective: String,
        /// The number of members.
        members: u32,
    },
    /// A message longer than the receive that it matches.
    #[error("a message of {message} bytes from rank {source_rank} (tag {tag}) matches a receive of only \
             {buffer} bytes",
        message = .message.get(), buffer = .buffer.get())]
    Truncated {
        /// Who sent it.
        source_rank: RankId,
        /// The tag of the message; in a collective, the collective's number.
        tag: i32,
        /// The size of the message.
        message: Bytes,
        /// Room in the receive's buffer.
        buffer: Bytes,
    },
    /// An operation that messaging does not carry out.
    #[error("{operation} cannot be replayed yet")]
    Unsupported {
        /// The name of the operation, as [`crate::unsupported`] gives it.
        operation: String,
    },
    /// One-sided communication of a rank with several streams.
    #[error(
        "{operation}: a rank with several streams has no one-sided communication yet; record it with one"
    )]
    OneSidedInStreams {
        /// The name of the operation.
        operation: String,
    },
    /// The accelerator was asked for by name, where it cannot be used.
    #[error("the accelerator cannot carry out this allreduce: {limit}")]
    Accelerator {
        /// The limit of the interface that the allreduce exceeds.
        limit: AcceleratorLimit,
    },
    /// Multicast was asked for, where it cannot be used.
    #[error("multicast cannot carry out this broadcast: {limit}")]
    Multicast {
        /// The limit of interface, network or run.
        limit: MulticastLimit,
    },
    /// An operation started while the one before still blocks.
    #[error("an operation was started while the rank still waits in the one before")]
    StillBlocked,
}
