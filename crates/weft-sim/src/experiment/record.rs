//! Recording a real MPI program.

use super::{Context, ExperimentError};
use serde::Serialize;
use std::path::PathBuf;

/// What `weft record` was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordRequest {
    /// The trace file to make.
    pub output: PathBuf,
    /// Whether to write over it.
    pub force: bool,
    /// The launcher, the program and their arguments: `mpiexec -n 8 prog args`.
    pub command: Vec<String>,
}

/// What was recorded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RecordReport {
    /// The trace file.
    pub trace: PathBuf,
    /// Ranks.
    pub ranks: u32,
    /// Operations of all ranks.
    pub operations: u64,
    /// Calls that are not in the trace, with their counts.
    pub not_recorded: Vec<(String, u64)>,
    /// Exit status of the program; the trace is whole in any case.
    pub program_status: i32,
    /// Whether recording was interrupted: the trace then ends there.
    pub interrupted: bool,
}

/// Runs the program under the recorder.
pub fn run(_request: &RecordRequest, _context: Context<'_>) -> Result<RecordReport, ExperimentError> {
    Err(ExperimentError::NotBuilt("the recorder"))
}
