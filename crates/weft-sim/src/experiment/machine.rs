//! What there is to know of a machine without running anything on it.

use super::{ExperimentError, MachineInput};
use serde::Serialize;

/// A machine that ships with weft.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShippedMachine {
    /// Its name for `-m`.
    pub name: String,
    /// What it is, in one line.
    pub summary: String,
    /// Its endpoints at its default size.
    pub endpoints: u64,
}

/// One value of a machine file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MachineValue {
    /// Its key, such as `links.mezzanine.latency`.
    pub key: String,
    /// The value as written, or as `--set`.
    pub value: String,
    /// Measured, datasheet, assumed or calibrated.
    pub kind: String,
    /// The document and place.
    pub source: String,
}

/// Channel-load bound of a pattern.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PatternBound {
    /// The pattern.
    pub pattern: String,
    /// The highest load per endpoint, as a share of the injection rate, that no routing of this kind can
    /// exceed.
    pub max_load: f64,
}

/// What `weft machine show` says.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MachineFigures {
    /// Its name.
    pub machine: String,
    /// Endpoints.
    pub endpoints: u64,
    /// Switches.
    pub switches: u64,
    /// Links, each counted once for both directions.
    pub links: u64,
    /// The most links between two endpoints, injection and ejection included.
    pub diameter_hops: u32,
    /// Mean over all ordered pairs of distinct endpoints.
    pub mean_distance_hops: f64,
    /// Links that the best halving of the endpoints cuts.
    pub bisection_links: u64,
    /// Bounds of the common patterns.
    pub bounds: Vec<PatternBound>,
    /// Every value with its source.
    pub values: Vec<MachineValue>,
}

/// What `weft machine check` says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MachineCheck {
    /// Its name.
    pub machine: String,
    /// Whether no set of packets can wait for each other in a circle.
    pub deadlock_free: bool,
    /// How that was shown, or the cycle.
    pub proof: Vec<String>,
    /// The values that no source gives.
    pub assumed: Vec<MachineValue>,
}

/// The machines that ship.
pub fn list() -> Result<Vec<ShippedMachine>, ExperimentError> {
    Err(ExperimentError::NotBuilt("machines"))
}

/// The text of a machine that ships; an unknown name is an error that suggests the nearest.
pub fn shipped_text(_name: &str) -> Result<String, ExperimentError> {
    Err(ExperimentError::NotBuilt("machines"))
}

/// A machine's values and figures.
pub fn show(_machine: &MachineInput) -> Result<MachineFigures, ExperimentError> {
    Err(ExperimentError::NotBuilt("machines"))
}

/// The deadlock proof.
pub fn check(_machine: &MachineInput) -> Result<MachineCheck, ExperimentError> {
    Err(ExperimentError::NotBuilt("machines"))
}
