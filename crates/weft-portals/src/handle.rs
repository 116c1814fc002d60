//! Handles: what kind of object, of which interface of the process, and which.
//!
//! ```text
//!   31    28 27    26 25                0
//!  ┌────────┬────────┬──────────────────┐
//!  │ kind   │ slot   │ number           │   0 is no handle: there is no kind 0
//!  └────────┴────────┴──────────────────┘
//! ```

use crate::abi;
use std::ffi::c_int;

/// Kinds of handles.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HandleKind {
    Interface = 1,
    Queue = 2,
    Counting = 3,
    Descriptor = 4,
    Entry = 5,
}

const NUMBER_BITS: u32 = 26;
const SLOT_BITS: u32 = 2;

/// The largest number.
pub const NUMBER: u32 = (1 << NUMBER_BITS) - 1;

/// The handle of an object of the interface in that slot.
pub fn handle(kind: HandleKind, slot: usize, number: u32) -> u32 {
    (kind as u32) << (NUMBER_BITS + SLOT_BITS) | (slot as u32) << NUMBER_BITS | number & NUMBER
}

/// The slot of the interface that an object of any kind is of.
pub fn slot(handle: u32) -> Option<usize> {
    let kind = handle >> (NUMBER_BITS + SLOT_BITS);
    let kinds = HandleKind::Interface as u32..=HandleKind::Entry as u32;
    kinds.contains(&kind).then_some((handle >> NUMBER_BITS) as usize & ((1 << SLOT_BITS) - 1))
}

/// The interface and number of a handle of that kind.
pub fn parts(handle: u32, kind: HandleKind) -> Result<(usize, u32), c_int> {
    if handle >> (NUMBER_BITS + SLOT_BITS) != kind as u32 {
        return Err(abi::ARG_INVALID);
    }
    slot(handle).map(|slot| (slot, handle & NUMBER)).ok_or(abi::ARG_INVALID)
}

/// Whether two objects are of one kind, and of one interface.
pub fn are_alike(one: u32, other: u32) -> bool {
    one >> NUMBER_BITS == other >> NUMBER_BITS
}
