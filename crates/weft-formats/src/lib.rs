//! Trace files: formats with their readers and writers, checks, statistics, and the parts of a recording.
//!
//! ```text
//!   recorder, converters ── Op ──▶ TraceWriter ──▶ file ──▶ Trace ──▶ weft_trace::Cursor ── Op ──▶ replay
//!                                  (formats.rs)             ├──▶ validate
//!                                                           ├──▶ TraceInfo, TraceStats
//!                                                           └──▶ critical_chain
//! ```
//!
//! The operations themselves are those of `weft-trace`.

mod calls;
mod chakra;
mod convert;
pub mod critical_chain;
mod dumpi;
mod error;
mod flop_rate;
mod format;
mod formats;
mod goal;
mod graph;
mod header;
mod info;
mod input;
mod liballprof;
mod output;
pub mod parts;
mod rank_order;
mod simgrid;
mod stats;
mod trace;
mod validate;
mod vef;
mod weft;
mod written;

pub use convert::{AsItIs, ConvertedTrace, Expand, ExpandedOps, TraceConversion, convert};
pub use error::{FilePlace, TraceError};
pub use flop_rate::{FlopRate, ParseSpeedError};
pub use format::{FormatReader, FormatWriter, TraceOptions};
pub use header::{FORMAT_VERSION, METADATA_KEY, StreamMetadata, TraceHeader, TraceMetadata};
pub use info::{StreamsInfo, TraceInfo};
pub use stats::{
    CallSizeClass, CollectiveStats, CommunicatorStats, CommunicatorTotals, EvolutionInterval, KindCounts,
    MemberKind, Pair, PairMatrix, RankStats, SizeClass, TraceEvolution, TraceStats,
};
pub use trace::{Trace, TraceWriter};
pub use validate::validate;

/// Opens a trace that lies in memory, of one file in any format, and reads all there is in it: for fuzzing,
/// and for whoever wants to know whether each byte of a trace is as it must be.
pub fn check_bytes(bytes: &[u8]) -> Result<(), TraceError> {
    let trace = Trace::from_bytes("trace", bytes.to_vec())?;
    TraceStats::of(&trace)?;
    validate(&trace)
}
