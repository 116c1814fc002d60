//! Failures: messages that do not arrive.

use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// A message that its sender is told will not arrive, unless it has without being acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The endpoint that the message was for.
    pub to: EndpointId,
    /// The number of the message, counted by the sender.
    pub number: u32,
    /// The virtual interface that it went out by.
    pub interface: u16,
    /// The sender's name for the message, as in [`Message::token`](crate::Message::token).
    pub token: Option<u32>,
    /// Why.
    pub reason: FailureReason,
}

/// Why a message failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum FailureReason {
    /// It was repeated up to the limit.
    #[error(
        "it was repeated until the limit and never acknowledged: is the way there down, or the time-out \
         shorter than its queues?"
    )]
    TimedOut,
    /// Sender and receiver are not of one protection domain.
    #[error("the receiver is of another protection domain; open both interfaces with the same one")]
    Domain,
    /// One of the two virtual interfaces does not exist.
    #[error("it names a virtual interface that does not exist; use a lower number")]
    NoInterface,
    /// There is no such node.
    #[error("it is for a node that does not exist; nodes are numbered as endpoints are")]
    NoNode,
    /// No address of the interface reaches its data.
    #[error(
        "its data lies beyond the 39 bits of a virtual address; use a lower address, or a shorter message"
    )]
    Address,
    /// A buffer is said to lie in memory that the hosts do not have.
    #[error(
        "a buffer of it lies in the memory of a GPU, and the hosts have none; give the machine a [nic.gpu]"
    )]
    Memory,
    /// It is larger than the primitive that it asked for carries.
    #[error("it is larger than a small message may be; send it as a write")]
    TooLarge,
    /// Of an allreduce of the accelerator: another member's module does not answer, or has failed.
    #[error(
        "the accelerator there does not answer for its vector, or has failed itself: is the way there down?"
    )]
    Reduction,
}
