//! Operations of a rank, the trace format, readers and writers; the virtual memory of a rank.
//!
//! A trace is what each rank of a parallel program did: computation, messages, collectives, in the
//! order of the program. It says nothing of the network that it was recorded on.
//!
//! ```text
//!   recorder, converters ── Op ──▶ TraceWriter ──▶ file.weft ──▶ Trace ──▶ RankCursor ── Op ──▶ replay
//!                                   (format.rs)                   ├──▶ validate
//!                                                                 ├──▶ TraceInfo, TraceStats
//!                                                                 └──▶ critical_chain
//! ```
//!
//! The addresses in it are virtual ([`AddressSpace`]): those of a real process never reach a trace.

mod address_space;
mod batch;
mod checksum;
mod column;
pub mod critical_chain;
mod cursor;
mod error;
pub mod format;
mod header;
mod hybrid;
mod info;
mod kind;
pub mod op;
mod pages;
pub mod parts;
mod reader;
mod region;
mod row;
mod source;
mod stats;
mod thrift;
mod validate;
mod writer;

pub use address_space::AddressSpace;
pub use cursor::RankCursor;
pub use error::TraceError;
pub use header::{FORMAT_VERSION, METADATA_KEY, TraceHeader, TraceMetadata};
pub use info::TraceInfo;
pub use kind::Kind;
pub use reader::Trace;
pub use region::{NotARegion, Region, RegionMark, regions};
pub use stats::{CollectiveStats, Pair, RankStats, SizeClass, TraceStats};
pub use validate::validate;
pub use writer::TraceWriter;

/// Opens a trace that lies in memory and reads all there is in it: for fuzzing, and for whoever wants to
/// know whether each byte of a trace is as it must be.
pub fn check_bytes(bytes: &[u8]) -> Result<(), TraceError> {
    let trace = Trace::from_bytes("trace", bytes.to_vec())?;
    TraceStats::of(&trace)?;
    validate(&trace)
}
