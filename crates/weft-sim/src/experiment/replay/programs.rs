//! The programs of a replay: traces that can be replayed, and their ranks on places.

use super::{Mapping, ReplayRequest, TraceInput};
use crate::experiment::ExperimentError;
use crate::experiment::ranks::{Placement, hosts};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use weft_app::memory::{largest_problem, rank_memory};
use weft_app::{Kernel, KernelName};
use weft_formats::{Trace, TraceError, TraceOptions};
use weft_machine::Machine;
use weft_topo::Layout;
use weft_trace::{Kind, Region};
use weft_units::Bytes;
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
pub fn open(request: &ReplayRequest, machine: &Machine) -> Result<Vec<Operations>, ExperimentError> {
    check_kernels(request, machine)?;
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

/// Refuses a kernel of more ranks than the machine has room for, before the operations of each are counted.
fn check_kernels(request: &ReplayRequest, machine: &Machine) -> Result<(), ExperimentError> {
    let per_host = request.ranks_per_host.filter(|_| !matches!(request.map, Mapping::File(_)));
    let kernels = request.traces.iter().filter_map(|input| input.kernel.as_ref());
    let check = |kernel: &KernelName| hosts(machine).check_room(kernel.ranks.into(), per_host);
    kernels.into_iter().try_for_each(check).map_err(ExperimentError::input)
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
    let places = placement.places(machine, layout)?;
    let mut places = places.into_iter();
    let mut take = |ranks: u32| -> Vec<CorePlace> { places.by_ref().take(ranks as usize).collect() };
    let program = |operations: Operations| Program { places: take(operations.ranks()), operations };
    let programs: Vec<Program> = programs.into_iter().map(program).collect();
    let kernels = request.traces.iter().map(|trace| trace.kernel.as_ref());
    let seated = kernels.zip(programs.iter().map(|program| &program.places[..]));
    match memory_lack(machine, seated)? {
        None => Ok(programs),
        Some(lack) => Err(ExperimentError::input(format!("{lack}; {}", lack.mend("--ppn")))),
    }
}

/// Kernels whose ranks need more memory than a host has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TooLittleMemory {
    /// The number of the program whose ranks need most.
    pub program: usize,
    kernel: KernelName,
    needed: Bytes,
    ranks: u64,
    memory: Bytes,
}

impl TooLittleMemory {
    /// Bytes of each rank where all of a host have as many.
    fn share(&self) -> Bytes {
        Bytes::new(self.memory.get() / self.ranks)
    }

    /// The mend; `ppn`: what says how many ranks a host has.
    pub fn mend(&self, ppn: &str) -> String {
        match largest_problem(&self.kernel, self.share()) {
            Some(option) => {
                format!("the largest that fits is {option}; or take fewer ranks of a host with {ppn}")
            }
            None => format!("take a smaller problem, or fewer ranks of a host with {ppn}"),
        }
    }
}

impl fmt::Display for TooLittleMemory {
    /// The fault, without the mend.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooLittleMemory { kernel, needed, ranks, memory, .. } = self;
        let (needed, share) = (needed.in_words(), self.share().in_words());
        write!(
            f,
            "{kernel} needs {needed} a rank; `host.memory` of {memory}, shared by {ranks}, leaves each \
             {share}"
        )
    }
}

/// The first host whose memory does not hold what the ranks of kernels keep; `None`: there is none.
/// `programs`: the kernel of each, and the places of its ranks.
///
/// # Errors
/// An option of a kernel that it cannot have.
pub(crate) fn memory_lack<'a>(
    machine: &Machine,
    programs: impl Iterator<Item = (Option<&'a KernelName>, &'a [CorePlace])>,
) -> Result<Option<TooLittleMemory>, ExperimentError> {
    let Some(memory) = machine.host.memory else { return Ok(None) };
    let mut hosts: BTreeMap<u32, HostRanks<'_>> = BTreeMap::new();
    for (program, (kernel, places)) in programs.enumerate() {
        let needed = match kernel {
            Some(kernel) => rank_memory(kernel).map_err(ExperimentError::input)?,
            None => None,
        };
        for place in places {
            let host = hosts.entry(place.endpoint.0 / machine.host.endpoints_per_host).or_default();
            host.ranks += 1;
            host.needed = host.needed.saturating_add(needed.map_or(0, Bytes::get));
            if let Some((needed, kernel)) = needed.zip(kernel)
                && host.largest.as_ref().is_none_or(|largest| needed > largest.needed)
            {
                host.largest = Some(LargestKernel { program, needed, kernel });
            }
        }
    }
    let full = hosts.values().find(|host| host.needed > memory.get());
    let Some(HostRanks { ranks, largest: Some(largest), .. }) = full else { return Ok(None) };
    let LargestKernel { program, needed, kernel } = *largest;
    Ok(Some(TooLittleMemory { program, kernel: kernel.clone(), needed, ranks: *ranks, memory }))
}

/// The ranks of a host.
#[derive(Default)]
struct HostRanks<'a> {
    ranks: u64,
    needed: u64,
    /// The kernel of which a rank needs most.
    largest: Option<LargestKernel<'a>>,
}

/// A kernel, the number of its program and the memory of a rank.
#[derive(Clone, Copy)]
struct LargestKernel<'a> {
    program: usize,
    needed: Bytes,
    kernel: &'a KernelName,
}
