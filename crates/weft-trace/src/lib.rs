//! Operations of a rank, the trace format, readers and writers.
//!
//! A trace is what each rank of a parallel program did: computation, messages, collectives, in the
//! order of the program. It says nothing of the network that it was recorded on.

mod cursor;
mod error;
pub mod format;
mod header;
mod kind;
pub mod op;
mod pages;
pub mod parts;
mod reader;
mod row;
mod source;
mod writer;

pub use cursor::RankCursor;
pub use error::TraceError;
pub use header::{FORMAT_VERSION, METADATA_KEY, TraceHeader, TraceMetadata};
pub use kind::Kind;
pub use reader::Trace;
pub use writer::TraceWriter;
