//! Speed of a replay of small messages on the ideal network.
//!
//! ```text
//! cargo bench -p weft-workload --bench replay -- [ranks] [rounds] [ns of latency]
//! ```
//! Every rank exchanges 8-byte messages with its four neighbours on a torus, round after round, with a
//! little computation between them. Prints one JSON object; times are processor times of the process, so
//! that a computer that is busy with other things does not count.

#![allow(clippy::unwrap_used, reason = "a benchmark that cannot be set up ends")]

use std::sync::atomic::AtomicBool;
use weft_engine::{Progress, Simulation};
use weft_fabric::Ideal;
use weft_fabric::parameters::IdealParameters;
use weft_formats::{Trace, TraceHeader, TraceWriter};
use weft_msg::Protocol;
use weft_nic::{NicParameters, OverheadsNic, OverheadsParameters};
use weft_trace::op::{CommId, Op, RequestId, SendMode, StreamId};
use weft_units::{BitRate, Bytes, RankId, Span, Time};
use weft_workload::mapping::Hosts;
use weft_workload::replay::{Program, ProgressRule, ReplayParameters};

/// The neighbours of a rank on a torus of `side` × `side` ranks.
fn neighbours(rank: u32, side: u32) -> [u32; 4] {
    let (x, y) = (rank % side, rank / side);
    let at = |x: u32, y: u32| y % side * side + x % side;
    [at(x + 1, y), at(x + side - 1, y), at(x, y + 1), at(x, y + side - 1)]
}

/// Writes the exchange with all neighbours, `rounds` times.
fn write_halo(path: &std::path::Path, side: u32, rounds: u32) {
    let ranks = side * side;
    let header = TraceHeader { ranks, recorder: "bench".to_owned(), ..TraceHeader::default() };
    let mut writer = TraceWriter::create(path, header).unwrap();
    let (tag, comm, bytes) = (0, CommId::WORLD, Bytes::new(8));
    for rank in 0..ranks {
        writer.begin_rank(RankId(rank)).unwrap();
        for _ in 0..rounds {
            writer.push(&Op::Compute { span: Span::from_us(1) }).unwrap();
            for (number, from) in (0..).zip(neighbours(rank, side)) {
                let (from, tag, request) = (Some(RankId(from)), Some(tag), RequestId(number));
                writer
                    .push(&Op::Irecv { from, tag, comm, bytes, matched: None, request, buffer: None })
                    .unwrap();
            }
            for (number, to) in (4..).zip(neighbours(rank, side)) {
                let (to, mode, request) = (RankId(to), SendMode::Standard, RequestId(number));
                writer.push(&Op::Isend { to, tag, comm, bytes, mode, request, buffer: None }).unwrap();
            }
            writer.push(&Op::Waitall { requests: (0..8).map(RequestId).collect() }).unwrap();
        }
    }
    writer.finish().unwrap();
}

/// Processor time of this thread in seconds: the first number of schedstat, in ns (Linux,
/// Documentation/scheduler/sched-stats.rst).
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn main() {
    let numbers: Vec<u32> = std::env::args().filter_map(|word| word.parse().ok()).collect();
    let side = numbers.first().map_or(8, |ranks| ranks.isqrt());
    let rounds = numbers.get(1).copied().unwrap_or(10_000);
    let latency = numbers.get(2).copied().unwrap_or(1_000);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("halo.weft");
    write_halo(&path, side, rounds);
    let trace = Trace::open(&path).unwrap();
    let ranks = trace.ranks();

    let begun = processor_seconds();
    let mut operations = 0u64;
    for rank in 0..ranks {
        operations += trace.stream(RankId(rank), StreamId::FIRST).unwrap().map(Result::unwrap).count() as u64;
    }
    let reading = processor_seconds() - begun;

    let hosts = Hosts { hosts: ranks, cores: 1, endpoints_per_host: 1 };
    let places = hosts.linear(ranks.into(), None).unwrap();
    // LogGOPS with an overhead of 0.2 us for each side of a message.
    let overhead = Span::from_ns(200);
    let protocol = Protocol { send_call: overhead, receive_message: overhead, ..Protocol::zero() };
    let parameters = ReplayParameters::new(
        vec![Program { operations: trace.source().into(), places }],
        protocol,
        ProgressRule::Call,
    );
    let simple = OverheadsParameters { channels: 16, ..OverheadsParameters::free(Bytes::new(4096)) };
    let ideal = IdealParameters {
        latency: Span::from_ns(latency.into()),
        gap: Span::from_ns(10),
        rate: Some(BitRate::from_gigabits(100)),
    };
    let mut nics = parameters.hosts(ranks).into_iter().map(OverheadsNic::new);
    let initial =
        Ideal::build(ideal, ranks, NicParameters { interface: simple, host: parameters }, |_, _| {
            nics.next().unwrap()
        });
    let mut simulation = Simulation::new(initial, 1);
    let begun = processor_seconds();
    assert_eq!(simulation.run_until(Time::NEVER, &AtomicBool::new(false)), Progress::Dry);
    let replaying = processor_seconds() - begun;
    let events = simulation.events_handled();
    let messages: u64 =
        simulation.outputs_mut().flat_map(|output| &output.programs).map(|p| p.completion.count()).sum();
    assert_eq!(messages, u64::from(ranks) * u64::from(rounds) * 4);
    println!(
        "{{\"ranks\": {ranks}, \"messages\": {messages}, \"operations\": {operations}, \
         \"messages_per_second\": {:.0}, \"processor_seconds\": {replaying:.3}, \
         \"reading_seconds\": {reading:.3}, \"events_per_message\": {:.2}}}",
        messages as f64 / replaying,
        events as f64 / messages as f64
    );
}
