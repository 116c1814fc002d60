//! An estimate of a run of programs: memory in closed form, time by the first operations of some ranks.

use crate::experiment::ExperimentError;
use std::collections::BTreeSet;
use weft_assembly as assembly;
use weft_machine::{Machine, Nic};
use weft_topo::{Layout, Topology as _};
use weft_trace::op::{Collective, Op, StreamId};
use weft_trace::streams;
use weft_units::{Bytes, EndpointId, RankId};
use weft_workload::replay::Operations;

/// Bytes of a rank beside its operations.
const BYTES_PER_RANK: u64 = 1200;
/// Bytes for each other rank with which a rank exchanges messages: counters at both ends, receives that are
/// posted, messages on their way. `lammps` has 94 on 32,768 ranks of an ideal network and 176 on 4,096.
const BYTES_PER_PEER: u64 = 120;
/// Bytes of an operation that has been read and not yet done, its share of lists included.
const BYTES_PER_OPERATION: u64 = 128;
/// Operations of a rank, and ranks, that the estimate looks at.
const SAMPLED_OPERATIONS: usize = 2000;
const SAMPLED_RANKS: u32 = 8;
/// Operations of one rank in which its peers are looked for.
const OPERATIONS_WITH_PEERS: u64 = 10_000;
/// The speed of one thread of an ordinary computer: operations per second.
const OPERATIONS_PER_SECOND: f64 = 4e6;
/// Seconds for a message: posting, matching and completing it. `lammps` on an ideal network of 512 to 32,768
/// ranks takes 4 to 6 us.
const SECONDS_PER_MESSAGE: f64 = 5e-6;
/// Seconds for a message as a flow, by the root of the ranks whose flows share links with it: 27 us among
/// 1,024 ranks, 12 among 216.
const SECONDS_PER_FLOW: f64 = 0.85e-6;
/// Seconds that each switch of a machine adds to a packet-hop: where few packets are under way, each finds
/// the memory of its switch cold. `lammps` on 4,096 ranks of 2,368 switches takes 2 us for a packet-hop.
const SECONDS_PER_SWITCH: f64 = 0.8e-9;
/// Endpoints whose ways to others are looked at.
const SAMPLED_WAYS: u32 = 256;

/// Packet-hops per second of wall time that estimates count on, of one thread on a machine of ten thousand
/// endpoints. Interfaces by their blocks do more for each packet, and answer most of them: messages of 256 B
/// measured on `bxi3-megafly` (`portals`), below saturation; 512 ranks of `lammps` on `exanest` went at 1.2
/// to 2.6 million.
pub(crate) fn packet_hops_per_second(machine: &Machine) -> f64 {
    if matches!(machine.nic, Nic::Overheads(_)) { 5e6 } else { 1.5e6 }
}

/// About how much memory programs take that run side by side.
pub(crate) fn memory(machine: &Machine, programs: &[Operations]) -> u64 {
    let mut memory = assembly::memory_estimate(machine, 64).get();
    for program in programs {
        let ranks = u64::from(program.ranks()).max(1);
        let page = match program {
            Operations::Recorded(trace) => trace.cursor_operations().min(program.count() / ranks),
            Operations::Generated(_) | Operations::Stepped(_) => 1,
        };
        let rank = BYTES_PER_RANK + page * BYTES_PER_OPERATION + peers(program) * BYTES_PER_PEER;
        memory = memory.saturating_add(ranks * rank);
    }
    memory
}

/// About how many others a rank sends to; 0 for a program that is stepped.
fn peers(program: &Operations) -> u64 {
    let middle = RankId(program.ranks() / 2);
    let first = 0..OPERATIONS_WITH_PEERS;
    let operations: Vec<Op> = match program {
        Operations::Recorded(trace) => {
            let cursor = trace.stream(middle, StreamId::FIRST).into_iter().flatten();
            // Whoever runs the program is told what cannot be read.
            cursor.take(first.end as usize).map_while(Result::ok).collect()
        }
        Operations::Generated(program) => {
            first.map_while(|position| program.operation(middle, position)).collect()
        }
        Operations::Stepped(_) => Vec::new(),
    };
    let to = |op: &Op| if let Op::Isend { to, .. } = op { Some(*to) } else { None };
    operations.iter().filter_map(to).collect::<BTreeSet<_>>().len() as u64
}

/// About how many seconds a program takes; 0 for one that is stepped.
pub(crate) fn seconds(
    machine: &Machine,
    layout: &Layout,
    program: &Operations,
) -> Result<f64, ExperimentError> {
    let (ranks, operations) = (program.ranks(), program.count());
    let (mut sampled, mut messages, mut packets) = (0u64, 0u64, 0u64);
    let mut sample = |op: &Op| {
        sampled += 1;
        messages += u64::from(matches!(op, Op::Isend { .. } | Op::OneSided { .. }));
        packets = packets.saturating_add(packets_of(op, ranks.into(), machine.packet.payload));
    };
    let step = (ranks / SAMPLED_RANKS).max(1);
    for rank in (0..ranks).step_by(step as usize).map(RankId) {
        match program {
            Operations::Recorded(trace) => {
                let streams: Vec<StreamId> = streams(&**trace, rank).collect();
                let each = SAMPLED_OPERATIONS.div_ceil(streams.len());
                for stream in streams {
                    let cursor = trace.stream(rank, stream).map_err(ExperimentError::input)?;
                    for op in cursor.take(each) {
                        sample(&op.map_err(ExperimentError::input)?);
                    }
                }
            }
            Operations::Generated(program) => {
                let first = 0..SAMPLED_OPERATIONS as u64;
                first.map_while(|position| program.operation(rank, position)).for_each(|op| sample(&op));
            }
            Operations::Stepped(_) => return Ok(0.0),
        }
    }
    let scale = operations as f64 / sampled.max(1) as f64;
    let messages = messages as f64 * scale;
    let mut seconds = operations as f64 / OPERATIONS_PER_SECOND + messages * SECONDS_PER_MESSAGE;
    if machine.flows {
        seconds += messages * SECONDS_PER_FLOW * f64::from(ranks).sqrt();
    } else if machine.has_packets() {
        let hops = packets as f64 * scale * mean_hops(layout, ranks);
        let switches = layout.switches() as f64;
        seconds += hops * (1.0 / packet_hops_per_second(machine) + switches * SECONDS_PER_SWITCH);
    }
    Ok(seconds)
}

/// Links that a packet crosses in the mean, between any two of the first endpoints, one for each rank.
fn mean_hops(layout: &Layout, ranks: u32) -> f64 {
    let endpoints = layout.endpoints().min(ranks).max(1);
    let step = (endpoints / SAMPLED_WAYS).max(1);
    let (mut hops, mut ways) = (0u64, 0u64);
    for (number, from) in (0..endpoints).step_by(step as usize).enumerate() {
        // Far and near ones, in turn.
        let to = (from + number as u32 * step) % endpoints;
        hops += 1;
        ways += 1;
        weft_topo::idle_path(layout, EndpointId(from), EndpointId(to), |_, _| hops += 1);
    }
    hops as f64 / ways as f64
}

/// About how many packets an operation sends.
fn packets_of(op: &Op, ranks: u64, payload: Bytes) -> u64 {
    let packets = |bytes: Bytes| 1 + bytes.get() / payload.get().max(1);
    match op {
        Op::Isend { bytes, .. } | Op::OneSided { bytes, .. } => packets(*bytes),
        // A block for everybody, whoever passes it on.
        Op::Collective { kind: Collective::Allgather | Collective::Alltoall, sizes, .. } => {
            packets(sizes.send).saturating_mul(ranks)
        }
        // A tree has a message for each rank but the root.
        Op::Collective { kind: Collective::Broadcast | Collective::Reduce, sizes, .. } => packets(sizes.send),
        // Most algorithms have a logarithmic number of rounds, or send as much in all.
        Op::Collective { sizes, .. } => packets(sizes.send).saturating_mul(u64::from(ranks.ilog2() + 1)),
        _ => 0,
    }
}
