//! The operations of a rank, regions of interest, and the virtual memory of a rank.
//!
//! A trace is what each rank of a parallel program did: computation, messages, collectives, in the
//! order of the program. It says nothing of the network that it was recorded on.
//!
//! ```text
//!   a file, in some format ──▶ TraceSource ──▶ Cursor ── Op ──▶ replay
//!                              (weft-formats)
//! ```
//! Nothing here knows a file: `weft-formats` reads and writes them. What a real rank loads stands on this
//! crate, so it needs nothing but types with units and serde.
//!
//! The addresses in a trace are virtual ([`AddressSpace`]): those of a real process never reach one.

mod address_space;
mod kind;
pub mod op;
mod reduction;
mod region;
mod source;

pub use address_space::AddressSpace;
pub use kind::Kind;
pub use reduction::{DataType, Reduction, ReductionOperation};
pub use region::{NotARegion, Region, RegionMark, regions};
pub use source::{Cursor, ReadError, TraceSource, has_streams, streams};
