//! `weft osu expected-bcast`: what a broadcast should take by Eq. 1 of TR-488, against what it takes.
//!
//! ```text
//!   L_exp(N, s) = N_MPSoC × L_MPSoC(s) + N_QFDB × L_QFDB(s) + N_mezzanine × L_mezzanine(s)
//! ```
//! The latencies L are those of `one_way` over a single hop of each class; the counts N are the steps of
//! the binomial schedule by the class of their pairs. A step whose pairs are of several classes counts
//! as the farthest of them: the step is over when its slowest pair is.
//!
//! # Source
//! TR-488 §6.1.4: for 4 ranks two steps inside an MPSoC, for 512 ranks five, two and two.

use super::plan::{self, Point};
use super::protocol::{forced, protocol};
use super::report::Task;
use super::series::Outcome;
use super::{Benchmark, Layer, Repetitions};
use crate::experiment::{
    Experiment, ExperimentError, ExperimentRun, Findings, MachineInput, Report, Request, ranks,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weft_machine::Machine;
use weft_msg::Algorithm;
use weft_topo::{Layout, Topology as _};
use weft_trace::op::Collective;
use weft_units::{Bytes, EndpointId};
use weft_workload::mapping::CorePlace;
use weft_workload::osu::broadcast_step;

/// The request of `weft osu expected-bcast`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExpectedBcastRequest {
    /// The machine: an ExaNeSt one.
    pub machine: MachineInput,
    /// Sizes of the vector.
    #[serde(rename = "sizes_bytes")]
    pub sizes: Vec<Bytes>,
    /// Numbers of ranks; empty: powers of two from 4 to all cores that `ranks_per_host` leaves.
    pub ranks: Vec<u32>,
    /// Ranks per host; `None`: the host's cores.
    pub ranks_per_host: Option<u32>,
    /// How often.
    pub repetitions: Repetitions,
    /// Of the machine's random decisions.
    pub seed: u64,
}

/// Expected against observed latency, of one size on one number of ranks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ExpectedBcastRow {
    /// The run of the broadcast: the column `run` of the tables.
    pub run: u32,
    /// Size of the vector.
    pub size_bytes: Bytes,
    /// Ranks.
    pub ranks: u32,
    /// By Eq. 1.
    pub expected_us: f64,
    /// `weft osu bcast`.
    pub observed_us: f64,
    /// (expected − observed) / observed: below 0 where Eq. 1 underestimates.
    pub relative_deviation: f64,
    /// Steps inside an MPSoC.
    pub steps_mpsoc: u32,
    /// Steps inside a QFDB.
    pub steps_qfdb: u32,
    /// Steps between QFDBs.
    pub steps_mezzanine: u32,
    /// One way inside an MPSoC.
    pub latency_mpsoc_us: f64,
    /// One way over a hop inside a QFDB.
    pub latency_qfdb_us: f64,
    /// One way over a hop between QFDBs.
    pub latency_mezzanine_us: f64,
}

/// The report of `weft osu expected-bcast`.
pub type ExpectedBcastReport = Report<ExpectedBcastRow>;

/// Classes of paths, the nearest first.
const CLASSES: usize = 3;
/// A path of a single hop of each class (Table 1 of TR-488).
const SINGLE_HOPS: [[&str; 2]; CLASSES] = [["M1QAF1", "M1QAF1"], ["M1QAF1", "M1QAF2"], ["M1QAF1", "M1QBF1"]];

/// The class of the path between two endpoints: 0 within an MPSoC, 1 within a QFDB, 2 beyond.
fn class(layout: &Layout, a: EndpointId, b: EndpointId) -> usize {
    // The name of an MPSoC is that of its QFDB and two letters more.
    let qfdb = |endpoint| {
        let mut name = layout.endpoint_name(endpoint);
        name.truncate(name.len().saturating_sub(2));
        name
    };
    if a == b {
        0
    } else if qfdb(a) == qfdb(b) {
        1
    } else {
        2
    }
}

/// The steps of a broadcast by class.
fn steps(layout: &Layout, places: &[CorePlace]) -> [u32; CLASSES] {
    let mut counts = [0; CLASSES];
    for step in 0.. {
        let Some(pairs) = broadcast_step(places.len() as u32, step) else { break };
        let endpoint = |rank: u32| places[rank as usize].endpoint;
        let farthest = pairs.map(|(from, to)| class(layout, endpoint(from), endpoint(to))).max();
        if let Some(class) = farthest {
            counts[class] += 1;
        }
    }
    counts
}

impl Experiment for ExpectedBcastRequest {
    type Row = ExpectedBcastRow;

    fn machine(&self) -> &MachineInput {
        &self.machine
    }

    fn request(&self) -> Request {
        Request::ExpectedBcast(self.clone())
    }

    /// Measures the one-way latencies, then every broadcast, on a machine of ExaNeSt.
    fn findings(&self, run: &mut ExperimentRun<'_>) -> Result<Findings<ExpectedBcastRow>, ExperimentError> {
        let machine = run.machine;
        let layout = &plan::layout(machine)?;
        if !matches!(layout, Layout::Exanest(_)) {
            return Err(ExperimentError::input(format!(
                "expected-bcast knows the classes of paths of an ExaNeSt machine only, and {} is not one; \
                 take -m exanest",
                machine.name
            )));
        }
        plan::check_iterations(self.repetitions)?;
        let sizes = plan::sizes(Benchmark::Bcast, &self.sizes, machine)?;
        let groups = groups(self, machine, layout)?;
        let points = &points(self, &sizes, (machine, layout), &groups)?;
        let (breakdown, data, telemetry) = (false, false, None);
        let task = Task { layout, seed: self.seed, breakdown, data, telemetry, points };
        task.findings(run, |outcomes| rows(outcomes, points, &groups))
    }
}

/// Of each size the runs of one way, then those of the broadcasts.
fn points(
    request: &ExpectedBcastRequest,
    sizes: &[Bytes],
    (machine, layout): (&Machine, &Layout),
    groups: &[Group],
) -> Result<Vec<Point>, ExperimentError> {
    // The schedule that Eq. 1 counts the steps of.
    let bcast = Arc::new(forced(protocol(machine, Layer::Mpi)?, Collective::Broadcast, Algorithm::Binomial)?);
    let point = |benchmark: Benchmark, bytes: Bytes, places: Arc<[CorePlace]>| {
        let program =
            benchmark.program(places.len() as u32, bytes, request.repetitions.of(benchmark, bytes)).into();
        Point { benchmark, bytes, algorithm: None, places, path: None, program, protocol: bcast.clone() }
    };
    let mut points = Vec::new();
    for &size in sizes {
        for names in SINGLE_HOPS {
            let ends = names.map(|name| layout.endpoint(name)).into_iter().collect::<Result<Vec<_>, _>>();
            let ends = ends.map_err(ExperimentError::input)?;
            let places = ranks::hosts(machine).at(&ends).map_err(ExperimentError::input)?;
            points.push(point(Benchmark::OneWay, size, places.into()));
        }
        for (places, _) in groups {
            points.push(point(Benchmark::Bcast, size, places.clone()));
        }
    }
    Ok(points)
}

/// The ranks of each broadcast on their places, and its steps by class.
type Group = (Arc<[CorePlace]>, [u32; CLASSES]);

fn groups(
    request: &ExpectedBcastRequest,
    machine: &Machine,
    layout: &Layout,
) -> Result<Vec<Group>, ExperimentError> {
    let per_host = request.ranks_per_host.unwrap_or(machine.host.cores);
    let all = machine.hosts().saturating_mul(per_host.into());
    let counts = match &request.ranks[..] {
        [] => (2..).map(|power| 1u32 << power).take_while(|&count| u64::from(count) <= all).collect(),
        given => given.to_vec(),
    };
    if let Some(few) = counts.iter().find(|count| **count < 2) {
        return Err(ExperimentError::input(format!("--ranks {few}: a broadcast takes at least 2 ranks")));
    }
    let group = |count: u32| {
        let places = ranks::hosts(machine).linear(count.into(), request.ranks_per_host);
        let places = places.map_err(ExperimentError::input)?;
        let steps = steps(layout, &places);
        Ok((places.into(), steps))
    };
    counts.into_iter().map(group).collect()
}

/// The rows of the broadcasts that are done. Of each size there are the runs of one way, then those of
/// the broadcasts.
fn rows(outcomes: &[Outcome], points: &[Point], groups: &[Group]) -> Vec<(usize, ExpectedBcastRow)> {
    let each = CLASSES + groups.len();
    let latency = |run: usize| outcomes[run].figures.latency_us.unwrap_or_default();
    let row = |run: usize| {
        let (first, group) = (run / each * each, (run % each).checked_sub(CLASSES)?);
        let one_way: [f64; CLASSES] = std::array::from_fn(|class| latency(first + class));
        let steps = groups[group].1;
        let expected_us = std::iter::zip(steps, one_way).map(|(steps, one)| f64::from(steps) * one).sum();
        let observed_us = latency(run);
        let row = ExpectedBcastRow {
            run: run as u32,
            size_bytes: points[run].bytes,
            ranks: groups[group].0.len() as u32,
            expected_us,
            observed_us,
            relative_deviation: if observed_us > 0.0 { expected_us / observed_us - 1.0 } else { 0.0 },
            steps_mpsoc: steps[0],
            steps_qfdb: steps[1],
            steps_mezzanine: steps[2],
            latency_mpsoc_us: one_way[0],
            latency_qfdb_us: one_way[1],
            latency_mezzanine_us: one_way[2],
        };
        Some((run, row))
    };
    (0..outcomes.len()).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_machine::load;

    /// The counts that TR-488 §6.1.4 gives, and one rank per MPSoC.
    #[test]
    fn steps_are_counted_as_in_the_text() {
        let machine = load("exanest", &[] as &[&str]).unwrap();
        let layout = plan::layout(&machine).unwrap();
        let steps =
            |count, per_host| steps(&layout, &ranks::hosts(&machine).linear(count, per_host).unwrap());
        assert_eq!(steps(4, None), [2, 0, 0]);
        assert_eq!(steps(512, None), [2, 2, 5]);
        assert_eq!(steps(128, Some(1)), [0, 2, 5]);
        // Not a power of two: the last steps reach beyond what the others do.
        assert_eq!(steps(6, None), [2, 1, 0]);
    }

    #[test]
    fn single_hops_are_of_their_classes() {
        let layout = plan::layout(&load("exanest", &[] as &[&str]).unwrap()).unwrap();
        for (number, names) in SINGLE_HOPS.into_iter().enumerate() {
            let [a, b] = names.map(|name| layout.endpoint(name).unwrap());
            assert_eq!(class(&layout, a, b), number);
        }
        let [a, b] = ["M1QAF1", "M5QAF1"].map(|name| layout.endpoint(name).unwrap());
        assert_eq!(class(&layout, a, b), 2);
    }
}
