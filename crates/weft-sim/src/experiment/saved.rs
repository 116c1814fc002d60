//! The report of a command between two epochs, so that it can go on where it was interrupted.

use super::{ExperimentError, Measured};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use weft_results::Totals;

/// Rows that are done, with their speeds, and totals, as JSON. It leaves out what there is not and puts
/// counts among other fields; the format of snapshots does neither.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct SavedReport(String);

impl SavedReport {
    /// Of rows and totals.
    pub(super) fn of<R: Serialize>(
        rows: &[Measured<R>],
        totals: &Totals,
    ) -> Result<SavedReport, ExperimentError> {
        serde_json::to_string(&(rows, totals)).map(SavedReport).map_err(ExperimentError::input)
    }

    /// The rows and totals.
    pub(super) fn read<R: DeserializeOwned>(&self) -> Result<(Vec<Measured<R>>, Totals), ExperimentError> {
        serde_json::from_str(&self.0).map_err(ExperimentError::input)
    }
}
