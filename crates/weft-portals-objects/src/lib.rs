//! Portals 4: the objects of a network interface as the standard has them, as pure logic, one file each.
//!
//! ```text
//!   initiator                                        target
//!   memory descriptor ─ put, get, atomic ─► request ─► portal table ─► priority list ─► entry ─► memory
//!   event queue, counting event ◄────────── response ◄──────────────── overflow list ─► header kept
//!        └─► triggered operations
//! ```
//! [`NetworkInterface`] has them all. It is handed [memory](Memory), and knows neither a network nor time.
//!
//! # Source
//! The Portals 4.3 network programming interface (Sandia), from knowledge: its text was not at hand. What
//! could not be compared with the text is listed in the book (`docs/src/nic/portals.md`).
//!
//! # Not modelled
//! - `PTL_LONG_DOUBLE`, alignment by `PTL_ME_MAY_ALIGN`, `PTL_IOVEC` whose pieces change after the call.
//! - The order of bytes inside a message: each is carried out at one instant.

pub mod atomic;
pub mod counting_event;
pub mod entry;
pub mod error;
pub mod event_queue;
pub mod handle;
pub mod initiator;
mod interface;
pub mod limits;
pub mod match_list;
pub mod memory;
pub mod memory_descriptor;
pub mod portal_table;
pub mod request;
mod target;
#[cfg(test)]
mod tests;
pub mod triggered;

pub use interface::{NetworkInterface, StatusRegisters};
pub use memory::Memory;
pub use target::Search;
