//! `weft osu BENCHMARK`.

use super::plan::{self, Point};
use super::report::Task;
use super::series::Outcome;
use super::{OsuRequest, OsuRow};
use crate::experiment::{
    EnergyFigures, Experiment, ExperimentError, ExperimentRun, Findings, MachineInput, Request,
};
use weft_units::Time;

/// The benchmark is run for every algorithm and size.
impl Experiment for OsuRequest {
    type Row = OsuRow;

    fn machine(&self) -> &MachineInput {
        &self.machine
    }

    fn request(&self) -> Request {
        Request::Osu(self.clone())
    }

    fn findings(&self, run: &mut ExperimentRun<'_>) -> Result<Findings<OsuRow>, ExperimentError> {
        let layout = &plan::layout(run.machine)?;
        let points = &plan::points(self, run.machine, layout)?;
        let OsuRequest { seed, breakdown, data, telemetry, .. } = *self;
        let task = Task { layout, seed, breakdown, data, telemetry, points };
        task.findings(run, |outcomes| {
            let rows = points.iter().zip(outcomes).enumerate();
            rows.map(|(run, (point, outcome))| (run, row(run as u32, point, outcome))).collect()
        })
    }
}

pub(super) fn row(run: u32, point: &Point, outcome: &Outcome) -> OsuRow {
    let figures = outcome.figures;
    let weft_workload::osu::Repetitions { iterations, warm_up, .. } = point.program.repetitions();
    OsuRow {
        run,
        size_bytes: point.bytes,
        algorithm: point.algorithm.map(|algorithm| algorithm.name().to_owned()),
        path: point.path.clone(),
        latency_us: figures.latency_us,
        latency_min_us: figures.latency_min_us,
        latency_max_us: figures.latency_max_us,
        bandwidth_gbps: figures.bandwidth_gbps,
        messages_per_second: figures.messages_per_second,
        ranks: point.places.len() as u32,
        iterations,
        warm_up,
        messages: outcome.messages,
        packet_hops: outcome.crossed.packet_hops,
        packets_dropped: outcome.crossed.counts.lost(),
        repairs: outcome.crossed.counts,
        run_time_us: (outcome.end - Time::ZERO).as_us_f64(),
        energy: EnergyFigures::of(&outcome.crossed.energy, outcome.payload),
        compared_bytes: outcome.compared_bytes,
        breakdown: outcome.breakdown.clone(),
    }
}
