//! A point of a load curve as a figure: the load that is accepted, or a latency.

use super::publication::{Figure, Measure};
use crate::experiment::load::Load;
use crate::experiment::traffic::{Layer, LoadOf, TrafficRequest};
use crate::experiment::{Control, Experiment, ExperimentError, ExperimentOptions, MachineInput};
use weft_units::Span;

/// The figure of a point: `throughput` is the accepted load, as a share of the endpoint link's payload rate;
/// `mean` and `p99` are latencies in µs.
pub(super) fn figure(
    machine: MachineInput,
    measure: &Measure,
    control: Control<'_>,
) -> Result<f64, ExperimentError> {
    let fault = |why: &str| ExperimentError::input(format!("traffic of {}: {why}", measure.size));
    let span = |text: &Option<String>| -> Result<Option<Span>, ExperimentError> {
        text.as_deref().map(str::parse).transpose().map_err(ExperimentError::input)
    };
    let request = TrafficRequest {
        machine,
        pattern: measure.group.clone().unwrap_or_else(|| "uniform".to_owned()),
        sizes: vec![measure.size.parse().map_err(ExperimentError::input)?],
        loads: vec![measure.load.unwrap_or(Load::FULL)],
        load_of: LoadOf::Injection,
        messages: None,
        layer: Layer::Nic,
        time: span(&measure.to)?.ok_or_else(|| fault("it has no time `to`"))?,
        warm_up: span(&measure.from)?,
        seeds: vec![1],
        breakdown: false,
        telemetry: None,
    };
    let report = request.run(&ExperimentOptions::default(), control)?;
    let row = report.rows.first().map(|measured| &measured.row).ok_or_else(|| fault("it has no row"))?;
    let microseconds = |ns: Option<f64>| ns.map(|ns| ns / 1000.0);
    let value = match measure.figure {
        Some(Figure::Throughput) => Some(row.accepted_load),
        Some(Figure::Mean) => microseconds(row.latency_mean_ns),
        Some(Figure::P99) => microseconds(row.latency_p99_ns),
        _ => None,
    };
    value.ok_or_else(|| fault("it has no such figure"))
}
