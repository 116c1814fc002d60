//! From the runs of a point to its row.

use super::run::RunResult;
use super::{Interval, Limit, Point, TrafficRequest, TrafficRow};
use crate::experiment::path::LatencySplit;
use crate::experiment::{EnergyFigures, machine};
use weft_machine::FaultRule;
use weft_network::{Crossed, MachineEnergy};
use weft_units::{Bytes, Span};
use weft_workload::path::LegTimes;
use weft_workload::steady;

/// The row of a point, of one run per seed on a machine with these faults.
pub(super) fn row(
    request: &TrafficRequest,
    point: &Point,
    faults: &[FaultRule],
    runs: &[RunResult],
) -> TrafficRow {
    let Point { offered, first_run } = point;
    let mut crossed = Crossed::default();
    runs.iter().for_each(|run| crossed += run.crossed);
    let end = runs.iter().map(|run| run.end).max().unwrap_or_default();
    let nanoseconds = |ps: f64| ps / 1000.0;
    let means: Vec<f64> =
        runs.iter().filter_map(|run| run.latency.mean()).map(|mean| mean.as_ns_f64()).collect();
    let p99s: Vec<f64> =
        runs.iter().filter_map(|run| run.latency.percentile(99)).map(|p99| p99.as_ns_f64()).collect();
    let accepted: Vec<f64> = runs.iter().map(|run| run.accepted).collect();
    let batches = |of: fn(&RunResult) -> &Vec<f64>| match runs {
        [only] => steady::batch_means(&of(only).iter().map(|&ps| nanoseconds(ps)).collect::<Vec<_>>()),
        _ => None,
    };
    let over_seeds = |values: &[f64]| steady::Interval::of_independent(values);
    let mean_batches = batches(|run| &run.batch_means);
    let p99_batches = batches(|run| &run.batch_p99s);
    TrafficRow {
        run: *first_run,
        size_bytes: offered.bytes,
        offered_load: offered.messages.is_none().then(|| offered.load.as_f64()),
        accepted_load: mean(&accepted).unwrap_or(0.0),
        accepted_load_interval: over_seeds(&accepted).map(Interval::from),
        latency_mean_ns: mean(&means),
        latency_mean_interval_ns: over_seeds(&means).or(mean_batches.map(|b| b.interval)).map(Interval::from),
        latency_p99_ns: mean(&p99s),
        latency_p99_interval_ns: over_seeds(&p99s).or(p99_batches.map(|b| b.interval)).map(Interval::from),
        latency_split: latency_split(runs),
        batch_correlation: mean_batches.map(|batches| batches.correlation),
        warm_up_us: runs.iter().map(|run| run.warm_up).max().unwrap_or_default().as_us_f64(),
        saturated: runs.iter().any(|run| run.saturated),
        limit: runs
            .iter()
            .find(|run| run.saturated)
            .or(runs.first())
            .map(|run| run.limit.clone())
            .unwrap_or_default(),
        busiest: Limit::busiest(runs.iter().map(|run| &run.busiest)),
        run_time_us: runs.iter().map(|run| run.time).max().unwrap_or_default().as_us_f64(),
        seed: request.seeds.first().copied().unwrap_or_default(),
        seeds: runs.len() as u32,
        messages: runs.iter().map(|run| run.latency.count()).sum(),
        packet_hops: crossed.packet_hops,
        messages_failed: runs.iter().map(|run| run.failed).sum(),
        packets_dropped: crossed.counts.lost(),
        outages: crossed.counts,
        links_off_us: crossed.counts.off.as_us_f64(),
        links_off_in_warm_up_us: runs.iter().map(|run| run.off_in_warm_up).sum::<Span>().as_us_f64(),
        outages_after_end: machine::outages_after(faults, end),
        losses: crossed.counts,
        paused_us: runs.iter().map(|run| run.pauses.time_us).sum(),
        pause_frames: runs.iter().map(|run| run.pauses.frames).sum(),
        energy: energy(runs),
        packets_delivered: crossed.packets,
    }
}

/// The latency of the messages of all runs by leg; `None`: not asked for, or there are none.
fn latency_split(runs: &[RunResult]) -> Option<LatencySplit> {
    let mut sum: Option<(LegTimes, u64)> = None;
    for (times, messages) in runs.iter().filter_map(|run| run.legs) {
        let (all, count) = sum.get_or_insert_default();
        *all += times;
        *count += messages;
    }
    let (times, messages) = sum.filter(|(_, messages)| *messages > 0)?;
    Some(LatencySplit::mean(&times, messages))
}

/// The energy of all runs in their measured time.
fn energy(runs: &[RunResult]) -> Option<EnergyFigures> {
    let mut sum = MachineEnergy::default();
    runs.iter().for_each(|run| sum += run.energy);
    EnergyFigures::of(&sum, Bytes::new(runs.iter().map(|run| run.measured_bytes.get()).sum()))
}

impl From<steady::Interval> for Interval {
    fn from(interval: steady::Interval) -> Interval {
        let steady::Interval { mean, half_width } = interval;
        Interval { low: mean - half_width, high: mean + half_width }
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
