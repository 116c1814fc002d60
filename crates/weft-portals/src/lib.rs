//! Portals 4 for a real rank: the functions of `portals4.h` over the messages of `weft.h`.
//!
//! ```text
//!   program ── Ptl… ──► calls ──► Endpoint ──► NetworkInterface: lists, queues, events
//!                                    │
//!                                    └──► carrier ──► weft_send, weft_receive ──► the virtual device
//! ```
//! The objects of the standard are those of [`weft_portals_objects`]; here they are joined to the process's
//! memory and to the network. Entries that a search has looked at are charged to the rank's clock
//! (`weft_search`).
//!
//! # Not modelled
//! Progress without the target: a message is matched when its process calls a function of this library.

#![expect(
    unsafe_code,
    reason = "a C interface: callers answer for the pointers that they pass, as the standard says"
)]

mod abi;
mod calls;
mod carrier;
mod endpoint;
#[cfg(test)]
mod fake_weft;
mod handle;
mod operations;
mod process_memory;
#[cfg(test)]
mod tests;
mod weft;
