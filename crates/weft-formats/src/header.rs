//! The header of a trace: one JSON text in the file's metadata, under [`METADATA_KEY`].

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of the metadata in the Parquet file.
pub const METADATA_KEY: &str = "weft.trace";

/// The last version of the format that is read. It is written where ranks have streams or events; all other
/// traces are of version 1.
pub const FORMAT_VERSION: u64 = 2;

/// The version without streams.
pub const FIRST_FORMAT_VERSION: u64 = 1;

/// The origin of a trace, given by whoever records or converts it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TraceHeader {
    /// Number of ranks of the world communicator.
    pub ranks: u32,
    /// The program and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
    /// The recorder or converter that made the trace, with its version.
    #[serde(default)]
    pub recorder: String,
    /// The MPI library that the program ran on, with its version.
    #[serde(default)]
    pub mpi_library: String,
    /// The version of the MPI standard that it implements, such as `3.1`.
    #[serde(default)]
    pub mpi_version: String,
    /// Cores of the host that the trace was recorded on.
    #[serde(default)]
    pub host_cores: Option<u32>,
    /// When it was recorded, ISO 8601.
    #[serde(default)]
    pub date: Option<String>,
    /// How computation moved clocks where the trace was recorded in virtual time, by `weft run`: its host
    /// model, such as `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_time: Option<String>,
    /// Of such a trace: the largest standard send that its library keeps a copy of, so that it is complete at
    /// once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffered_limit: Option<u64>,
    /// Calls that the recorder saw but does not record, with their number over all ranks.
    #[serde(default)]
    pub unrecorded: BTreeMap<String, u64>,
    /// Of a trace of another program: where it did not say, or said what cannot be, and how its reader has
    /// helped itself, with the number of times.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, u64>,
    /// Whether the recording ended before the program did.
    #[serde(default)]
    pub interrupted: bool,
}

/// The whole metadata: the header and what the writer counted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TraceMetadata {
    /// Version of the format.
    pub format_version: u64,
    /// The origin of the trace.
    #[serde(flatten)]
    pub header: TraceHeader,
    /// Operations by name ([`weft_trace::Kind::name`]); those that do not occur are left out.
    pub operations: BTreeMap<String, u64>,
    /// Operations of each rank, those of its streams together.
    pub rank_operations: Vec<u64>,
    /// The streams of each rank; empty where each rank has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rank_streams: Vec<Vec<StreamMetadata>>,
}

/// A stream of a rank. Its operations follow those of the stream before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StreamMetadata {
    /// Number of its operations.
    pub operations: u64,
    /// The core of the rank that it sits on, counted from 0.
    pub core: u32,
}

/// The version alone, which must be known before the rest is read.
#[derive(Deserialize)]
pub(crate) struct VersionOnly {
    pub(crate) format_version: u64,
}
