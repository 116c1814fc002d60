//! Limits of an interface that reduces by itself, as errors.

use serde::{Deserialize, Serialize};

/// Why an interface does not carry out an allreduce.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AcceleratorLimit {
    /// It has no accelerator.
    #[error("this machine has none; choose another algorithm")]
    Absent,
    /// Too many members.
    #[error("{ranks} ranks exceed its {limit}; use fewer or another algorithm")]
    TooManyRanks {
        /// The ranks that take part.
        ranks: u32,
        /// The largest number of ranks that can.
        limit: u32,
    },
    /// Two members behind one interface.
    #[error("ranks {first} and {second} are on one endpoint and it serves one rank on each; use --ppn 1")]
    SharedEndpoint {
        /// A member.
        first: u32,
        /// Another.
        second: u32,
    },
    /// Boards of which only some endpoints take part.
    #[error("{ranks} ranks are no whole boards of {board}; use a multiple of {board}")]
    PartialBoard {
        /// The ranks that take part.
        ranks: u32,
        /// Endpoints of a board.
        board: u32,
    },
    /// Members of a board that are not next to each other.
    #[error(
        "the {board} ranks from {first} on are not the endpoints of one board; number ranks board by board"
    )]
    ScatteredBoard {
        /// The first of them.
        first: u32,
        /// Endpoints of a board.
        board: u32,
    },
    /// A number of boards whose servers cannot exchange in pairs.
    #[error(
        "{ranks} ranks are {boards} boards of {board}, and servers exchange in pairs; use a power of two of \
         boards"
    )]
    Unpaired {
        /// The ranks that take part.
        ranks: u32,
        /// On how many boards.
        boards: u32,
        /// Endpoints of a board.
        board: u32,
    },
    /// An operation, a type or a size of vector that it does not have.
    #[error("it does not compute {what}; choose another algorithm")]
    Unsupported {
        /// The operation, the type or the size that was asked for, in words.
        what: String,
    },
}
