//! The programs of a replay: traces that can be replayed, their ranks on places, and what that will take.

use super::{Mapping, ReplayRequest};
use crate::assembly;
use crate::experiment::{Estimate, ExperimentError};
use crate::machine::{Fabric, Machine};
use weft_msg::Algorithm;
use weft_topo::Layout;
use weft_trace::op::Op;
use weft_trace::{Kind, Trace, TraceError};
use weft_units::{Bytes, RankId};
use weft_workload::mapping::{Hosts, Place};
use weft_workload::replay::Program;

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

/// Opens the traces and makes sure that they can be replayed.
pub fn open(request: &ReplayRequest) -> Result<Vec<Trace>, ExperimentError> {
    let open = |path: &std::path::Path| {
        let trace = Trace::open(path)?;
        weft_trace::validate(&trace)?;
        Ok::<_, TraceError>(trace)
    };
    let mut traces = Vec::new();
    for input in &request.traces {
        let trace = open(&input.path).map_err(ExperimentError::input)?;
        let counts = &trace.metadata().operations;
        let operations: Vec<_> = Kind::ALL
            .iter()
            .filter(|kind| !is_supported(**kind))
            .filter_map(|kind| counts.get(kind.name()).map(|&count| (kind.name(), count)))
            .filter(|(_, count)| *count > 0)
            .collect();
        if !operations.is_empty() {
            let trace = input.name.clone();
            return Err(ExperimentError::input(Unsupported { trace, operations }));
        }
        traces.push(trace);
    }
    Ok(traces)
}

fn is_supported(kind: Kind) -> bool {
    match kind {
        Kind::Collective(collective) => Algorithm::ALL.iter().any(|algorithm| algorithm.performs(collective)),
        Kind::Window | Kind::OneSided(_) | Kind::Sync(_) => false,
        _ => true,
    }
}

/// Puts the ranks of the traces, one trace after another, on places of the machine.
pub fn place(
    request: &ReplayRequest,
    machine: &Machine,
    layout: &Layout,
    traces: Vec<Trace>,
) -> Result<Vec<Program>, ExperimentError> {
    let hosts = Hosts {
        hosts: u32::try_from(machine.hosts()).unwrap_or(u32::MAX),
        cores: machine.host.cores,
        endpoints_per_host: machine.host.endpoints_per_host,
    };
    let ranks = traces.iter().map(|trace| u64::from(trace.ranks())).sum();
    let per_host = request.ranks_per_host;
    let places = match &request.map {
        Mapping::Linear => hosts.linear(ranks, per_host),
        Mapping::Random => hosts.random(ranks, per_host, request.seed),
        Mapping::File(text) => {
            hosts.from_file(text, ranks, |name| layout.endpoint(name).map_err(|error| error.to_string()))
        }
    };
    let mut places = places.map_err(ExperimentError::input)?.into_iter();
    let mut take = |trace: &Trace| -> Vec<Place> { places.by_ref().take(trace.ranks() as usize).collect() };
    Ok(traces.into_iter().map(|trace| Program { places: take(&trace), trace }).collect())
}

/// Bytes of a rank beside its operations.
const BYTES_PER_RANK: u64 = 1200;
/// Bytes of an operation that has been read and not yet done, its share of lists included.
const BYTES_PER_OPERATION: u64 = 128;
/// Operations of a rank, and ranks, that the estimate looks at.
const SAMPLED_OPERATIONS: usize = 2000;
const SAMPLED_RANKS: u32 = 8;
/// What one thread of an ordinary computer does: operations, and packets, per second.
const OPERATIONS_PER_SECOND: f64 = 4e6;
const PACKETS_PER_SECOND: f64 = 5e5;

/// What the run will take: memory in closed form, time by the first operations of some ranks.
pub fn estimate(machine: &Machine, traces: &[Trace]) -> Result<Estimate, ExperimentError> {
    let mut memory = assembly::memory_estimate(machine, 64).get();
    let mut seconds = 0.0;
    for trace in traces {
        let (ranks, operations) = (u64::from(trace.ranks()).max(1), trace.operations());
        // A cursor holds a page: see the trace format.
        let page = ((1 << 21) / ranks).clamp(64, 4096).min(operations / ranks);
        memory = memory.saturating_add(ranks * (BYTES_PER_RANK + page * BYTES_PER_OPERATION));
        let (mut sampled, mut packets) = (0u64, 0u64);
        let step = (trace.ranks() / SAMPLED_RANKS).max(1);
        for rank in (0..trace.ranks()).step_by(step as usize) {
            let cursor = trace.rank(RankId(rank)).map_err(ExperimentError::input)?;
            for op in cursor.take(SAMPLED_OPERATIONS) {
                sampled += 1;
                packets += packets_of(&op.map_err(ExperimentError::input)?, ranks, machine.packet.payload);
            }
        }
        let scale = operations as f64 / sampled.max(1) as f64;
        seconds += operations as f64 / OPERATIONS_PER_SECOND;
        if matches!(machine.fabric, Fabric::Packet { .. }) {
            seconds += packets as f64 * scale / PACKETS_PER_SECOND;
        }
    }
    Ok(Estimate { wall_seconds: Some(seconds), memory_bytes: memory })
}

/// About how many packets an operation sends.
fn packets_of(op: &Op, ranks: u64, payload: Bytes) -> u64 {
    let packets = |bytes: Bytes| 1 + bytes.get() / payload.get().max(1);
    match op {
        Op::Isend { bytes, .. } => packets(*bytes),
        // Most algorithms have a logarithmic number of rounds, or send as much in all.
        Op::Collective { sizes, .. } => packets(sizes.send) * u64::from(ranks.ilog2() + 1),
        _ => 0,
    }
}
