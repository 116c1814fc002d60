//! The programs of a replay: traces that can be replayed, and their ranks on places.

use super::{ReplayRequest, TraceInput};
use crate::experiment::ExperimentError;
use crate::experiment::ranks::Placement;
use std::collections::BTreeSet;
use std::sync::Arc;
use weft_app::Kernel;
use weft_formats::{Trace, TraceError, TraceOptions};
use weft_machine::Machine;
use weft_topo::Layout;
use weft_trace::{Kind, Region};
use weft_workload::jobs::Job;
use weft_workload::mapping::CorePlace;
use weft_workload::replay::{Operations, Program};

/// Operations that messaging does not carry out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{trace} has operations that cannot be replayed yet: {}; record the program without them",
    list(.operations)
)]
pub struct Unsupported {
    trace: String,
    /// Their names and how many there are.
    operations: Vec<(&'static str, u64)>,
}

fn list(operations: &[(&'static str, u64)]) -> String {
    operations.iter().map(|(name, count)| format!("{count} × {name}")).collect::<Vec<_>>().join(", ")
}

/// A region of interest that no trace opens.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("--region {region}: no rank opens it; {}", regions_in_words(.regions))]
pub struct UnknownRegion {
    region: Region,
    /// Those that there are.
    regions: BTreeSet<Region>,
}

fn regions_in_words(regions: &BTreeSet<Region>) -> String {
    /// Regions that are named, at most.
    const NAMED: usize = 20;
    let named: Vec<String> = regions.iter().take(NAMED).map(Region::to_string).collect();
    let more = regions.len().saturating_sub(NAMED);
    match (named.as_slice(), more) {
        ([], _) => "the program has no regions: MPI_Pcontrol(1) opens region 1, and MPI_Pcontrol(0) closes \
                    it; leave --region out"
            .to_owned(),
        ([one], _) => format!("there is region {one}"),
        (several, 0) => format!("there are regions {}", several.join(", ")),
        (several, more) => format!("there are regions {} and {more} more", several.join(", ")),
    }
}

/// Makes sure that a rank of these programs opens the region. Of one that is stepped nobody knows.
pub fn check_region(region: Region, programs: &[Operations]) -> Result<(), ExperimentError> {
    let mut regions = BTreeSet::new();
    for program in programs {
        match program {
            Operations::Recorded(trace) => {
                regions.extend(weft_trace::regions(&**trace).map_err(ExperimentError::input)?);
            }
            Operations::Generated(_) | Operations::Stepped(_) => return Ok(()),
        }
    }
    match regions.contains(&region) {
        true => Ok(()),
        false => Err(ExperimentError::input(UnknownRegion { region, regions })),
    }
}

/// Opens the traces of a replay and makes sure that they can be replayed; programs to be stepped are there.
pub fn open(request: &ReplayRequest) -> Result<Vec<Operations>, ExperimentError> {
    let mut programs = Vec::new();
    for input in &request.traces {
        programs.push(match input.program().map_err(ExperimentError::input)? {
            Some(program) => Operations::Stepped(Arc::clone(program)),
            None => Operations::Recorded(open_trace(input)?.source()),
        });
    }
    if let Some(region) = request.region {
        check_region(region, &programs)?;
    }
    Ok(programs)
}

/// Opens traces and makes sure that they can be replayed.
pub fn open_traces(inputs: &[TraceInput]) -> Result<Vec<Trace>, ExperimentError> {
    inputs.iter().map(open_trace).collect()
}

fn open_trace(input: &TraceInput) -> Result<Trace, ExperimentError> {
    let open = |path: &std::path::Path| {
        let trace = Trace::open_with(path, &TraceOptions { speed: input.speed })?;
        weft_formats::validate(&trace)?;
        Ok::<_, TraceError>(trace)
    };
    let trace = match &input.kernel {
        // Tests of the applications make sure that their operations are in order.
        Some(kernel) => Trace::from(Kernel::new(kernel).map_err(ExperimentError::input)?),
        None => open(&input.path).map_err(ExperimentError::input)?,
    };
    let counts = &trace.metadata().operations;
    let operations: Vec<_> = Kind::ALL
        .iter()
        .filter(|kind| !weft_msg::supports(**kind))
        .filter_map(|kind| counts.get(kind.name()).map(|&count| (kind.name(), count)))
        .filter(|(_, count)| *count > 0)
        .collect();
    if !operations.is_empty() {
        let trace = input.name.clone();
        return Err(ExperimentError::input(Unsupported { trace, operations }));
    }
    Ok(trace)
}

/// Puts the ranks of the programs, each a job, on places of the machine.
pub fn place(
    request: &ReplayRequest,
    machine: &Machine,
    layout: &Layout,
    programs: Vec<Operations>,
) -> Result<Vec<Program>, ExperimentError> {
    let both = request.traces.iter().zip(&programs);
    let jobs: Vec<Job<'_>> =
        both.map(|(trace, program)| Job { name: &trace.name, ranks: program.ranks().into() }).collect();
    let ReplayRequest { map, ranks_per_host, seed, .. } = request;
    let placement = Placement { map, jobs: &jobs, ranks_per_host: *ranks_per_host, seed: *seed };
    let mut places = placement.places(machine, layout)?.into_iter();
    let mut take = |ranks: u32| -> Vec<CorePlace> { places.by_ref().take(ranks as usize).collect() };
    let program = |operations: Operations| Program { places: take(operations.ranks()), operations };
    Ok(programs.into_iter().map(program).collect())
}
