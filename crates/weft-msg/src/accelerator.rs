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
use weft_units::{Bytes, EndpointId};

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
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AcceleratorLimit {
    /// It has no accelerator.
    #[error("the interface has none; name another algorithm")]
    Absent,
    /// Too many members.
    #[error("{ranks} ranks take part, at most {most} can; use fewer ranks or another algorithm")]
    Ranks {
        /// How many take part.
        ranks: u32,
        /// How many can.
        most: u32,
    },
    /// Several members behind one interface.
    #[error("{ranks} ranks share endpoint {endpoint}, at most {most} can; place fewer with --ppn")]
    SharedEndpoint {
        /// Where.
        endpoint: EndpointId,
        /// How many members are there.
        ranks: u32,
        /// How many can be.
        most: u32,
    },
    /// A group of endpoints with a server of their own of which only some take part.
    #[error("only {ranks} of the {whole} endpoints beside endpoint {endpoint} take part; use whole groups")]
    PartOfAGroup {
        /// One of those that take part.
        endpoint: EndpointId,
        /// How many take part.
        ranks: u32,
        /// How many there are.
        whole: u32,
    },
    /// An element of a size that it cannot reduce.
    #[error("it cannot reduce elements of {element} bytes; it takes 4 (int, float) and 8 (double)")]
    Element {
        /// Size of the element.
        element: u32,
    },
    /// Too long a vector.
    #[error("a vector of {size} bytes, at most {longest} can be; send less or name another algorithm",
        size = .bytes.get(), longest = .most.get())]
    Bytes {
        /// The vector.
        bytes: Bytes,
        /// What can be.
        most: Bytes,
    },
}
