//! Reductions that interfaces carry out among themselves, as messaging asks for them.
//!
//! ```text
//!   Process ── accelerator_limit? ──▶ Nic       by the table: another algorithm outside the limits
//!           ── allreduce(group, bytes, element, reduction, token) ──▶ Nic
//!           ◀── accelerated(token) ─────────────────────── Nic
//! ```
//! The interface keeps the calls of a group apart by their number, and cuts a vector into the blocks that
//! it can carry: TR-488's takes 256 bytes at a time.
//!
//! # Source
//! TR-488 §4.7, §6.1.5.

use crate::communicator::Group;
use weft_trace::Reduction;
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
    /// The computation, as far as it is known.
    pub reduction: Reduction,
}
