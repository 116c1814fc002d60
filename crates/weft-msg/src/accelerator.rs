//! Reductions that interfaces carry out among themselves, as messaging asks for them.
//!
//! ```text
//!   Process ── accelerator_limit? ──▶ Nic       by the table: another algorithm outside the limits
//!           ── allreduce(group, bytes, element, token) ──▶ Nic
//!           ◀── accelerated(token) ─────────────────────── Nic
//! ```
//! The interface keeps the calls of a group apart by their number, and cuts a vector into the blocks that
//! it can carry: TR-488's takes 256 bytes at a time.
//!
//! # Source
//! TR-488 §4.7, §6.1.5.
//!
//! # Not modelled
//! The operation and whether an element is an integer: the trace says neither, so any is taken for one that
//! the accelerator has (sum, minimum and maximum of int, float and double in TR-488 §4.7).

use crate::communicator::Group;
use serde::{Deserialize, Serialize};
use weft_units::Bytes;

/// One member's call of an allreduce.
#[derive(Clone, Copy, Debug)]
pub struct Allreduce<'a> {
    /// All members, in order.
    pub group: Group<'a>,
    /// Counts the group's collectives: with the communicator it names this one at all members.
    pub number: u32,
    /// The vector.
    pub bytes: Bytes,
    /// Size of one element, in bytes.
    pub element: u32,
}

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
        /// How many take part.
        ranks: u32,
        /// How many can.
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
        /// How many take part.
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
        "{ranks} ranks are {boards} boards of {board}, and servers exchange in pairs; use a power of two of boards"
    )]
    Unpaired {
        /// How many take part.
        ranks: u32,
        /// On how many boards.
        boards: u32,
        /// Endpoints of a board.
        board: u32,
    },
    /// An operation, a type or a size of vector that it does not have.
    #[error("it does not compute {what}; choose another algorithm")]
    Unsupported {
        /// What was asked for.
        what: String,
    },
}
