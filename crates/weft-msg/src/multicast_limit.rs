//! Limits of an interface and a network that carry one message to many, as errors.

use serde::{Deserialize, Serialize};

/// Why a broadcast cannot go by multicast.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum MulticastLimit {
    /// The interface sends to one endpoint at a time.
    #[error("the interface of this machine sends to one endpoint at a time; choose another algorithm")]
    Interface,
    /// A communicator without a group of its own.
    #[error(
        "a program has one group, of all its {all} ranks, and this communicator has {ranks}; choose another \
         algorithm for it"
    )]
    NotAllRanks {
        /// The ranks of the communicator.
        ranks: u32,
        /// The ranks of the program.
        all: u32,
    },
    /// Two ranks behind one interface, of this or another program.
    #[error("ranks {first} and {second} are on one endpoint and a group serves one on each; use --ppn 1")]
    SharedEndpoint {
        /// A rank, counted over all programs.
        first: u32,
        /// Another.
        second: u32,
    },
    /// A run whose messages are followed through the network.
    #[error("the ways of copies cannot be recorded; choose another algorithm, or record no critical path")]
    Recorded,
    /// Nobody made a group.
    #[error("no group was made for it; choose another algorithm")]
    NoGroup,
}
