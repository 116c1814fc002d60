//! `weft osu BENCHMARK`.

use super::plan::{self, Point};
use super::report::Task;
use super::series::Outcome;
use super::{OsuReport, OsuRequest, OsuRow};
use crate::experiment::{
    Control, EnergyFigures, Experiment, ExperimentError, ExperimentOptions, MachineInput, Request, machine,
};
use weft_units::Time;

/// The benchmark is run for every algorithm and size.
impl Experiment for OsuRequest {
    type Row = OsuRow;

    fn machine(&self) -> &MachineInput {
        &self.machine
    }

    fn run(&self, options: &ExperimentOptions, control: Control<'_>) -> Result<OsuReport, ExperimentError> {
        let machine = machine::checked(&self.machine)?;
        let layout = plan::layout(&machine)?;
        let points = plan::points(self, &machine, &layout)?;
        let task = Task {
            request: Request::Osu(self.clone()),
            machine: &machine,
            layout: &layout,
            seed: self.seed,
            breakdown: self.breakdown,
            data: self.data,
            telemetry: self.telemetry,
            points: &points,
        };
        task.report(options, control, |outcomes| {
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
        run_time_us: (outcome.end - Time::ZERO).as_us_f64(),
        energy: EnergyFigures::of(&outcome.crossed.energy, outcome.payload),
        compared_bytes: outcome.compared_bytes,
        breakdown: outcome.breakdown.clone(),
    }
}
