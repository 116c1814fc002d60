//! A scenario between two epochs, so that it can go on where it was interrupted.
//!
//! ```text
//!   rows that are done, totals │ what the run at hand has gathered │ its network
//! ```

use super::{Course, Done, Ranks};
use crate::experiment::ExperimentError;
use crate::experiment::saved::SavedReport;
use serde::{Deserialize, Serialize};
use weft_network::SimulatedNetwork;
use weft_results::ResultsWriter;
use weft_workload::host::SharedHost;

/// The state of the command.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved<C> {
    pub runs: usize,
    pub report: SavedReport,
    pub course: C,
    pub network: Vec<u8>,
}

/// Saves the state of the command.
pub(super) fn save<R: Ranks>(
    done: &Done,
    course: &Course,
    network: &mut dyn SimulatedNetwork<SharedHost<R>>,
    results: &mut ResultsWriter,
) -> Result<(), ExperimentError> {
    let report = SavedReport::of(&done.rows, &done.totals)?;
    let network = network.save().map_err(ExperimentError::input)?;
    let saved = Saved { runs: done.runs, report, course, network };
    let bytes = postcard::to_stdvec(&saved).map_err(ExperimentError::input)?;
    Ok(results.save(&bytes)?)
}
