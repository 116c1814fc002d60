//! `weft osu BENCHMARK`.

use super::plan::{self, Point};
use super::report::Task;
use super::series::Outcome;
use super::{OsuReport, OsuRequest, OsuRow};
use crate::experiment::{Context, ExperimentError, Request, RunOptions, machine};
use weft_units::Time;

/// Runs the benchmark for every algorithm and size.
///
/// # Errors
/// A machine that cannot be simulated, ranks that do not fit on it, sizes and algorithms that the
/// benchmark does not have, and results that cannot be written.
pub fn run(
    request: &OsuRequest,
    options: &RunOptions,
    context: Context<'_>,
) -> Result<OsuReport, ExperimentError> {
    let machine = machine::checked(&request.machine)?;
    let layout = plan::layout(&machine)?;
    let points = plan::points(request, &machine, &layout)?;
    let task = Task {
        request: Request::Osu(request.clone()),
        machine: &machine,
        layout: &layout,
        seed: request.seed,
        breakdown: request.breakdown,
        data: request.data,
        points: &points,
    };
    task.report(options, context, |outcomes| {
        let rows = points.iter().zip(outcomes).enumerate();
        rows.map(|(run, (point, outcome))| (run, row(run as u32, point, outcome))).collect()
    })
}

pub(super) fn row(run: u32, point: &Point, outcome: &Outcome) -> OsuRow {
    let figures = outcome.figures;
    OsuRow {
        run,
        size_bytes: point.bytes,
        algorithm: point.algorithm.map(|algorithm| algorithm.name().to_owned()),
        latency_us: figures.latency_us,
        latency_min_us: figures.latency_min_us,
        latency_max_us: figures.latency_max_us,
        bandwidth_gbps: figures.bandwidth_gbps,
        messages_per_second: figures.messages_per_second,
        ranks: point.places.len() as u32,
        messages: outcome.messages,
        packet_hops: outcome.crossed.packet_hops,
        run_time_us: (outcome.end - Time::ZERO).as_us_f64(),
        compared_bytes: outcome.compared_bytes,
        breakdown: outcome.breakdown.clone(),
    }
}
