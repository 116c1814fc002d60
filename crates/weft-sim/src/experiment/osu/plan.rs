//! A request, checked, as points: what is run, one after another.

use super::protocol::{algorithms, forced, protocol};
use super::{Benchmark, Iterations, OsuRequest};
use crate::experiment::ExperimentError;
use crate::experiment::machine::check_length;
use crate::experiment::ranks::{self, Placement};
use std::sync::Arc;
use weft_assembly as assembly;
use weft_machine::Machine;
use weft_msg::{Algorithm, Protocol};
use weft_topo::{Layout, Topology as _};
use weft_units::Bytes;
use weft_workload::jobs::Job;
use weft_workload::mapping::CorePlace;
use weft_workload::osu::Loop;

/// Iterations that a stopwatch and a progress bar count.
const MOST_ITERATIONS: u32 = 1_000_000_000;

/// One run.
pub(super) struct Point {
    pub benchmark: Benchmark,
    pub bytes: Bytes,
    pub algorithm: Option<Algorithm>,
    pub places: Arc<[CorePlace]>,
    /// The kind of path between two ranks that were placed by name.
    pub path: Option<String>,
    pub program: Arc<Loop>,
    pub protocol: Arc<Protocol>,
}

/// The points of a request, in the order of algorithm and size.
pub(super) fn points(
    request: &OsuRequest,
    machine: &Machine,
    layout: &Layout,
) -> Result<Vec<Point>, ExperimentError> {
    let benchmark = request.benchmark;
    check_iterations(request.repetitions)?;
    if !request.repetitions.barrier && (benchmark.collective().is_none() || benchmark == Benchmark::Barrier) {
        return Err(ExperimentError::input(format!(
            "--no-barrier: {benchmark} has no barrier between iterations; leave --no-barrier out"
        )));
    }
    if request.repetitions.window.is_some() && !benchmark.is_of_bandwidth() {
        return Err(ExperimentError::input(format!(
            "--window: {benchmark} has one message under way at a time; leave --window out, or measure bw"
        )));
    }
    let sizes = sizes(benchmark, &request.sizes, machine)?;
    let places: Arc<[CorePlace]> = places(request, machine, layout)?.into();
    check_blocks(benchmark, &sizes, places.len() as u32)?;
    let path = match (&request.between, &*places) {
        (Some(_), [from, to]) => layout.path_kind(from.endpoint, to.endpoint),
        _ => None,
    };
    let own = protocol(machine, request.layer)?;
    let mut points = Vec::new();
    for algorithm in algorithms(benchmark, request.algorithm.as_deref())? {
        let mut protocol = own.clone();
        if machine.flows && algorithm == Some(Algorithm::Accelerator) {
            return Err(ExperimentError::input(
                "--algorithm accelerator: fluids carry no reductions of an accelerator; choose another \
                 algorithm, or take packets with --set fabric.kind=packet",
            ));
        }
        if let (Some(collective), Some(algorithm)) = (benchmark.collective(), algorithm) {
            protocol = forced(protocol, collective, algorithm)?;
        }
        let protocol = Arc::new(protocol);
        for &bytes in &sizes {
            let (places, path, protocol) = (places.clone(), path.clone(), protocol.clone());
            let program =
                benchmark.program(places.len() as u32, bytes, request.repetitions.of(benchmark, bytes));
            let program = program.into();
            points.push(Point { benchmark, bytes, algorithm, places, path, program, protocol });
        }
    }
    Ok(points)
}

/// Refuses repetitions that cannot be counted.
pub(super) fn check_iterations(repetitions: super::Repetitions) -> Result<(), ExperimentError> {
    let refuse = |what: String| Err(ExperimentError::input(what));
    match repetitions {
        super::Repetitions { iterations: Iterations::Exactly(0), .. } => {
            refuse("--iterations 0 measures nothing; write 1 or more, or osu".to_owned())
        }
        super::Repetitions { iterations: Iterations::Exactly(iterations), .. }
            if iterations > MOST_ITERATIONS =>
        {
            refuse(format!("--iterations {iterations} is too many; write at most {MOST_ITERATIONS}"))
        }
        super::Repetitions { warm_up: Some(warm_up), .. } if warm_up > MOST_ITERATIONS => {
            refuse(format!("--warm-up {warm_up} is too many; write at most {MOST_ITERATIONS}"))
        }
        _ => Ok(()),
    }
}

/// The sizes that the benchmark can have on a machine.
pub(super) fn sizes(
    benchmark: Benchmark,
    wanted: &[Bytes],
    machine: &Machine,
) -> Result<Vec<Bytes>, ExperimentError> {
    if let Some(only) = benchmark.only_size() {
        return Ok(vec![only]);
    }
    wanted.iter().try_for_each(|size| check_length(machine, "--sizes", *size))?;
    // Bandwidth of nothing: OSU begins at 1 too.
    let sizes = wanted.iter().copied().filter(|size| !benchmark.is_of_bandwidth() || *size > Bytes::ZERO);
    let sizes: Vec<Bytes> = sizes.collect();
    if sizes.is_empty() {
        return Err(ExperimentError::input(format!(
            "--sizes: {benchmark} measures bandwidth, and a message of 0 bytes has none; write --sizes 1:4M"
        )));
    }
    Ok(sizes)
}

/// Refuses sizes that a buffer does not hold.
fn check_blocks(benchmark: Benchmark, sizes: &[Bytes], ranks: u32) -> Result<(), ExperimentError> {
    let largest = benchmark.largest(ranks);
    let Some(size) = sizes.iter().find(|size| **size > largest) else { return Ok(()) };
    let (each, fewer) = match benchmark.blocks(ranks) {
        1 => (String::new(), ""),
        blocks => (format!(" for each of {blocks} ranks"), ", or fewer --ranks"),
    };
    Err(ExperimentError::input(format!(
        "--sizes: {size}{each} is more than a buffer of {benchmark} holds; write at most {largest}{fewer}"
    )))
}

/// The places of the ranks.
fn places(
    request: &OsuRequest,
    machine: &Machine,
    layout: &Layout,
) -> Result<Vec<CorePlace>, ExperimentError> {
    let benchmark = request.benchmark;
    let refuse = |what: String| Err(ExperimentError::input(what));
    if let Some(between) = &request.between {
        if !benchmark.is_for_two() {
            return refuse(format!(
                "--from and --to place two ranks, and {benchmark} is for any number; write --ranks and --map"
            ));
        }
        let endpoints = between.iter().map(|name| layout.endpoint(name)).collect::<Result<Vec<_>, _>>();
        let endpoints = endpoints.map_err(ExperimentError::input)?;
        let places = ranks::hosts(machine).at(&endpoints).map_err(ExperimentError::input)?;
        ranks::check_joined(&places, layout)?;
        return Ok(places);
    }
    let (count, per_host) = if benchmark.is_for_two() {
        (2, request.ranks_per_host.or(Some(1)))
    } else {
        let per_host = request.ranks_per_host.unwrap_or(machine.host.cores);
        let all = machine.hosts().saturating_mul(per_host.into());
        (u32::try_from(all).unwrap_or(u32::MAX), request.ranks_per_host)
    };
    let count = request.ranks.unwrap_or(count);
    if benchmark.is_for_two() && count != 2 {
        return refuse(format!("--ranks {count}: {benchmark} is for 2 ranks; leave --ranks out"));
    }
    if benchmark == Benchmark::MbwMr && !count.is_multiple_of(2) {
        return refuse(format!("--ranks {count}: {benchmark} pairs ranks up; write an even number"));
    }
    if count < 2 {
        return refuse(format!("--ranks {count}: {benchmark} takes at least 2 ranks"));
    }
    let (map, seed) = (&request.map, request.seed);
    let jobs = [Job { name: &benchmark.to_string(), ranks: count.into() }];
    Placement { map, jobs: &jobs, ranks_per_host: per_host, seed }.places(machine, layout)
}

/// A machine and its layout, where it can be simulated.
pub(super) fn layout(machine: &Machine) -> Result<Layout, ExperimentError> {
    assembly::check_memory(machine, assembly::memory_estimate(machine, 64))
        .map_err(ExperimentError::input)?;
    assembly::layout(machine).map_err(ExperimentError::input)
}
