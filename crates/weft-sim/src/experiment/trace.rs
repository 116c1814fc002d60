//! What a trace holds.

use super::ExperimentError;
use serde::Serialize;
use std::path::Path;

/// What `weft trace info` says: the header and summary, without reading operations.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceInfo {
    /// Version of the format.
    pub format_version: u32,
    /// The program as it was launched.
    pub program: String,
    /// What recorded it.
    pub recorder: String,
    /// Ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub operations: u64,
    /// Whether it is whole; otherwise it ends where recording was interrupted.
    pub complete: bool,
    /// Calls that are not in the trace, with their counts.
    pub not_recorded: Vec<(String, u64)>,
}

/// Operations of one kind.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OperationStats {
    /// The kind.
    pub operation: String,
    /// How many, over all ranks.
    pub count: u64,
    /// Their bytes, over all ranks.
    pub bytes: u64,
}

/// What `weft trace stats` says.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceStats {
    /// Ranks.
    pub ranks: u32,
    /// Computation, summed over ranks.
    pub computation_us: f64,
    /// The most computation of one rank.
    pub computation_max_us: f64,
    /// Operations by kind.
    pub rows: Vec<OperationStats>,
}

/// Reads a trace's header and summary.
pub fn info(_trace: &Path) -> Result<TraceInfo, ExperimentError> {
    Err(ExperimentError::NotBuilt("traces"))
}

/// Reads a trace's operations.
pub fn stats(_trace: &Path) -> Result<TraceStats, ExperimentError> {
    Err(ExperimentError::NotBuilt("traces"))
}
