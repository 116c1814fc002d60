//! `weft validate`: published measurements against what the machine files say of the same hardware.
//!
//! ```text
//!   validation/NAME.toml ─► rows ─► each row's OSU runs ─► published, simulated, relative error, role
//!                                                      └─► --vary: the same with each constant 10 % off
//! ```
//! | module | what it is |
//! |---|---|
//! | `publication` | the files under `validation/`, read and checked |
//! | `vary` | how each row moves with each constant |

mod publication;
mod vary;

use super::machine as machines;
use super::osu::{self, ExpectedBcastRequest, Layer, OsuRequest, Repetitions};
use super::replay::Mapping;
use super::{Context, Estimate, ExperimentError, Progress, RunOptions};
pub use publication::Role;
use publication::{Bound, Measure, Publication, Row};
use serde::Serialize;
pub use vary::Sensitivity;

/// The benchmark that is no single run.
const EXPECTED_BCAST: &str = "expected-bcast";

/// The single runs are too short to report on.
struct Quiet;

impl Progress for Quiet {
    fn estimate(&self, _: Estimate) {}
    fn advance(&self, _: f64, _: &str) {}
}

/// What `weft validate` was asked for.
#[derive(Clone, Debug, Default)]
pub struct ValidateRequest {
    /// Changes to the machine, as by `--set`.
    pub sets: Vec<String>,
    /// Only rows whose id contains this.
    pub only: Option<String>,
    /// Whether to vary constants.
    pub vary: bool,
    /// Threads that vary them; 0 is 1.
    pub threads: u32,
}

/// A published measurement and what the simulation gives.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ValidationRow {
    /// Its name.
    pub id: String,
    /// Document and section.
    pub source: String,
    /// What was measured.
    pub quantity: String,
    /// Of both values.
    pub unit: String,
    /// As published.
    pub published: f64,
    /// As simulated.
    pub simulated: f64,
    /// (simulated − published) / published, a fraction; of a bound: 0 where it is met.
    pub relative_error: f64,
    /// Whether a constant was calibrated on it.
    pub role: Role,
    /// Whether the document gives a limit, and which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<&'static str>,
    /// What is known of the cause of an error, or of the figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What came of `weft validate`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ValidationReport {
    /// All rows, in the order of the files.
    pub rows: Vec<ValidationRow>,
    /// Mean of the absolute relative errors of rows that something was calibrated on.
    pub mean_error_calibrated: Option<f64>,
    /// Of those that are predicted.
    pub mean_error_predicted: Option<f64>,
    /// Of those without the limits, which have no error where they are met.
    pub mean_error_predicted_without_limits: Option<f64>,
    /// How each row moves with each constant, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sensitivity: Vec<Sensitivity>,
}

impl ValidationReport {
    /// Of rows that have been measured.
    fn of(rows: Vec<ValidationRow>) -> ValidationReport {
        let mean = |role, limits: bool| {
            let counts = |row: &&ValidationRow| row.role == role && (limits || row.bound.is_none());
            let errors = rows.iter().filter(counts).map(|row| row.relative_error.abs());
            let count = errors.clone().count();
            (count > 0).then(|| errors.sum::<f64>() / count as f64)
        };
        let (calibrated, predicted) = (mean(Role::Calibrated, true), mean(Role::Predicted, true));
        let figures = mean(Role::Predicted, false);
        ValidationReport {
            rows,
            mean_error_calibrated: calibrated,
            mean_error_predicted: predicted,
            mean_error_predicted_without_limits: figures,
            sensitivity: Vec::new(),
        }
    }
}

/// Runs every row's experiment.
///
/// # Errors
/// A filter that no row passes, changes that the machine does not have, and an interrupted run.
pub fn run(request: &ValidateRequest, context: Context<'_>) -> Result<ValidationReport, ExperimentError> {
    let publication = Publication::exanest()?;
    let wanted = |row: &&Row| request.only.as_ref().is_none_or(|part| row.id.contains(part.as_str()));
    let rows: Vec<&Row> = publication.rows().iter().filter(wanted).collect();
    if rows.is_empty() {
        let ids: Vec<&str> = publication.rows().iter().map(|row| row.id.as_str()).collect();
        return Err(ExperimentError::input(format!(
            "no row has `{}` in its id; there are {}",
            request.only.as_deref().unwrap_or_default(),
            ids.join(", ")
        )));
    }
    let machine = publication.machine();
    let measured = rows.iter().enumerate().map(|(done, row)| {
        context.progress.advance(done as f64 / rows.len() as f64, &row.id);
        measure_row(machine, &request.sets, row, context)
    });
    let mut report = ValidationReport::of(measured.collect::<Result<_, _>>()?);
    if request.vary {
        report.sensitivity =
            vary::sensitivity(machine, &request.sets, request.threads, &rows, &report.rows, context)?;
    }
    Ok(report)
}

/// Measures what a row is about.
fn measure_row(
    machine: &str,
    sets: &[String],
    row: &Row,
    context: Context<'_>,
) -> Result<ValidationRow, ExperimentError> {
    let mut simulated = measure(machine, sets, &row.measure, context)?;
    if let Some(minus) = &row.minus {
        simulated -= measure(machine, sets, minus, context)?;
    }
    if let Some(over) = &row.over {
        simulated /= measure(machine, sets, over, context)?;
    }
    let met = match row.bound {
        Some(Bound::AtMost) => simulated <= row.published,
        Some(Bound::AtLeast) => simulated >= row.published,
        None => false,
    };
    Ok(ValidationRow {
        id: row.id.clone(),
        source: row.source.clone(),
        quantity: row.quantity.clone(),
        unit: row.unit.clone(),
        published: row.published,
        simulated,
        relative_error: if met { 0.0 } else { (simulated - row.published) / row.published },
        role: row.role,
        bound: row.bound.map(Bound::name),
        note: row.note.clone(),
    })
}

/// Runs one experiment: its latency in µs, its bandwidth in Gb/s, or what Eq. 1 expects of a broadcast over what it takes.
fn measure(
    machine: &str,
    sets: &[String],
    measure: &Measure,
    context: Context<'_>,
) -> Result<f64, ExperimentError> {
    let usual = Repetitions::default();
    let repetitions = Repetitions {
        warm_up: measure.warm_up.unwrap_or(usual.warm_up),
        iterations: measure.iterations.unwrap_or(usual.iterations),
        ..usual
    };
    let options = RunOptions::default();
    let (input, context) = (machines::input(machine, sets)?, Context { progress: &Quiet, ..context });
    let sizes = vec![measure.size.parse().map_err(ExperimentError::input)?];
    let fault =
        |why: String| ExperimentError::input(format!("{} of {}: {why}", measure.benchmark, measure.size));
    if measure.benchmark == EXPECTED_BCAST {
        let request = ExpectedBcastRequest {
            machine: input,
            sizes,
            ranks: measure.ranks.into_iter().collect(),
            ranks_per_host: measure.ranks_per_host,
            repetitions,
            seed: 1,
        };
        let report = osu::run_expected(&request, &options, context)?;
        let row = report.rows.first().map(|measured| &measured.row);
        let why = || fault(report.detail.clone().unwrap_or_else(|| report.ended.to_string()));
        return row.map(|row| 1.0 + row.relative_deviation).ok_or_else(why);
    }
    let request = OsuRequest {
        machine: input,
        benchmark: measure.benchmark.parse().map_err(ExperimentError::input)?,
        sizes,
        between: measure.from.clone().zip(measure.to.clone()).map(<[String; 2]>::from),
        ranks: measure.ranks,
        map: Mapping::Linear,
        ranks_per_host: measure.ranks_per_host,
        repetitions,
        layer: measure.layer.unwrap_or(Layer::Mpi),
        algorithm: measure.algorithm.clone(),
        seed: 1,
        breakdown: false,
        data: false,
    };
    let report = osu::run(&request, &options, context)?;
    let row = report.rows.first().map(|measured| &measured.row);
    let figure = row.and_then(|row| row.bandwidth_gbps.or(row.latency_us));
    figure.ok_or_else(|| fault(report.detail.unwrap_or_else(|| report.ended.to_string())))
}
