//! The outcome of a run.

use super::scenario::GroupRow;
use serde::{Deserialize, Serialize};
use weft_results::{Ending, Performance};

/// A row of a report, and how fast it was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured<R> {
    /// The row; this part goes into `run.json`.
    #[serde(flatten)]
    pub row: R,
    /// Packet-hops per second of wall time; building the machine is not counted.
    pub packet_hops_per_second: f64,
    /// Wall time of building the machine, the first time where the row took several.
    pub build_time_s: f64,
    /// The most memory that the process had held when the row was done.
    pub peak_memory_bytes: u64,
}

/// The outcome of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Report<R> {
    /// How it ended.
    pub ended: Ending,
    /// For a bad end: what happened, such as the cycle of waiting buffers.
    pub detail: Option<String>,
    /// The rows that were measured.
    pub rows: Vec<Measured<R>>,
    /// The rows of what was beside ranks; in `run.json` they follow the others.
    pub beside: Vec<GroupRow>,
    /// How fast.
    pub performance: Performance,
}
