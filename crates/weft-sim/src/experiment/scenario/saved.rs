//! A scenario between two epochs, so that it can go on where it was interrupted.
//!
//! ```text
//!   rows that are done │ totals │ what the run at hand has gathered │ its network
//! ```

use super::{Course, Done, Ranks, ScenarioRow};
use crate::experiment::{ExperimentError, Measured};
use serde::{Deserialize, Serialize};
use weft_network::SimulatedNetwork;
use weft_results::{ResultsWriter, Totals};
use weft_workload::host::SharedHost;

/// The state of the command, as it is read.
#[derive(Deserialize)]
pub(super) struct Saved {
    pub runs: usize,
    pub rows: Vec<SavedRow>,
    pub totals: Totals,
    pub course: Course,
    pub network: Vec<u8>,
}

/// The same, as it is written.
#[derive(Serialize)]
struct Saving<'a> {
    runs: usize,
    rows: Vec<SavedRow>,
    totals: Totals,
    course: &'a Course,
    network: Vec<u8>,
}

/// A row as JSON, which leaves out what there is not: the format of snapshots cannot. With it its speeds.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedRow {
    row: String,
    packet_hops_per_second: f64,
    build_time_s: f64,
    peak_memory_bytes: u64,
}

/// Saves the state of the command.
pub(super) fn save<R: Ranks>(
    done: &Done,
    course: &Course,
    network: &mut dyn SimulatedNetwork<SharedHost<R>>,
    results: &mut ResultsWriter,
) -> Result<(), ExperimentError> {
    let row = |measured: &Measured<ScenarioRow>| {
        let row = serde_json::to_string(&measured.row).map_err(ExperimentError::input)?;
        let &Measured { packet_hops_per_second, build_time_s, peak_memory_bytes, .. } = measured;
        Ok(SavedRow { row, packet_hops_per_second, build_time_s, peak_memory_bytes })
    };
    let saving = Saving {
        runs: done.runs,
        rows: done.rows.iter().map(row).collect::<Result<_, ExperimentError>>()?,
        totals: done.totals,
        course,
        network: network.save().map_err(ExperimentError::input)?,
    };
    let bytes = postcard::to_stdvec(&saving).map_err(ExperimentError::input)?;
    Ok(results.save(&bytes)?)
}

/// The rows as they were saved.
pub(super) fn read_rows(rows: &[SavedRow]) -> Result<Vec<Measured<ScenarioRow>>, ExperimentError> {
    let row = |saved: &SavedRow| {
        let row = serde_json::from_str(&saved.row).map_err(ExperimentError::input)?;
        let &SavedRow { packet_hops_per_second, build_time_s, peak_memory_bytes, .. } = saved;
        Ok(Measured { row, packet_hops_per_second, build_time_s, peak_memory_bytes })
    };
    rows.iter().map(row).collect()
}
