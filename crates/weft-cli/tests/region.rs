//! Regions of interest: `--region` of the commands, on traces made here.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{json, refused, weft};
use serde_json::Value;
use std::path::{Path, PathBuf};
use weft_trace::op::*;
use weft_trace::{TraceHeader, TraceWriter};
use weft_units::{Bytes, RankId, Span};

const RANKS: u32 = 4;
/// Messages of a round, and its computation: of rank 0.
const BYTES: u64 = 20_000;
const COMPUTATION_US: u64 = 5;

fn marker(level: i32) -> Op {
    Op::Marker { text: format!("pcontrol {level}") }
}

fn compute(us: u64) -> Op {
    Op::Compute { span: Span::from_us(us) }
}

fn barrier() -> Op {
    let (kind, comm, sizes) = (Collective::Barrier, CommId::WORLD, CollectiveSizes::default());
    Op::Collective { kind, comm, root: None, sizes, request: None, buffers: Default::default() }
}

/// A message to the next rank and one from the rank before.
fn ring(rank: u32) -> [Op; 3] {
    let (comm, bytes, tag) = (CommId::WORLD, Bytes::new(BYTES), 0);
    let (to, from) = (RankId((rank + 1) % RANKS), Some(RankId((rank + RANKS - 1) % RANKS)));
    let (mode, first, second) = (SendMode::Standard, RequestId(0), RequestId(1));
    [
        Op::Isend { to, tag, comm, bytes, mode, request: first, buffer: None },
        Op::Irecv { from, tag: Some(tag), comm, bytes, matched: None, request: second, buffer: None },
        Op::Waitall { requests: vec![first, second] },
    ]
}

/// A long beginning, three rounds in region 1 with something between them, and region 2 of rank 0 alone, which
/// it does not close.
fn program(rank: u32) -> Vec<Op> {
    let mut ops = vec![compute(1000), barrier()];
    for _ in 0..3 {
        ops.push(marker(1));
        ops.push(compute(COMPUTATION_US + u64::from(rank)));
        ops.extend(ring(rank));
        ops.push(marker(0));
        ops.push(compute(50));
        ops.extend(ring(rank));
    }
    if rank == 0 {
        ops.push(marker(2));
    }
    ops.push(barrier());
    ops
}

fn write(path: &Path, program: impl Fn(u32) -> Vec<Op>) {
    let mut writer =
        TraceWriter::create(path, TraceHeader { ranks: RANKS, ..TraceHeader::default() }).unwrap();
    for rank in 0..RANKS {
        writer.begin_rank(RankId(rank)).unwrap();
        program(rank).iter().for_each(|op| writer.push(op).unwrap());
    }
    writer.finish().unwrap();
}

/// A folder with the trace in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("rounds.weft");
    write(&trace, program);
    (folder, trace)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn replayed(trace: &Path, more: &[&str]) -> Value {
    let words = ["replay", "-m", "exanest", trace.to_str().unwrap(), "--ppn", "1", "--quiet", "--json"];
    json(&[&words[..], more].concat())["rows"][0].clone()
}

/// Half a picosecond: sums in floating point are that exact here.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 5e-7
}

/// Catches a beginning that counts, openings that do not add up, and messages of outside.
#[test]
fn a_replay_reports_what_lies_in_a_region() {
    let (_folder, trace) = folder();
    let (whole, inside) = (replayed(&trace, &[]), replayed(&trace, &["--region", "1"]));
    let region = &inside["region"];
    assert_eq!((&region["region"], &region["openings"]), (&1.into(), &12.into()));
    assert_eq!(region["program_run_time_us"], whole["run_time_us"]);
    assert!(number(&region["from_us"]) > 1000.0 && number(&region["to_us"]) < number(&whole["run_time_us"]));
    // Three rings.
    assert_eq!((&inside["messages"], &inside["bytes"]), (&12.into(), &(12 * BYTES).into()));
    assert!(number(&whole["messages"]) >= 24.0, "{whole}");
    let ranks = region["by_rank"].as_array().unwrap();
    assert_eq!(ranks.len(), RANKS as usize);
    for (rank, row) in (0..).zip(ranks) {
        let computation = 3 * (COMPUTATION_US + rank);
        assert_eq!((&row["openings"], &row["closed"]), (&3.into(), &true.into()), "{row}");
        assert!(same(number(&row["computation_us"]), computation as f64), "{row}");
        let parts = ["computation_us", "communication_us", "wait_us"].map(|part| number(&row[part]));
        assert!(same(parts.iter().sum(), number(&row["time_us"])) && parts[1] > 0.0, "{row}");
        assert!(number(&row["time_us"]) <= number(&inside["run_time_us"]));
    }
    let in_ranks = |part: &str| ranks.iter().map(|row| number(&row[part])).sum::<f64>();
    let share = in_ranks("computation_us") / in_ranks("time_us");
    assert!((share - number(&inside["computation_share"])).abs() < 1e-9, "{inside}");
    // The gaps of 50 us between the rounds are outside.
    let between = number(&region["to_us"]) - number(&region["from_us"]) - number(&inside["run_time_us"]);
    assert!((70.0..140.0).contains(&between), "{inside}");
    assert_eq!(
        (&inside["packet_hops"], &inside["busiest_links"]),
        (&whole["packet_hops"], &whole["busiest_links"])
    );

    let words = ["replay", "-m", "exanest", trace.to_str().unwrap(), "--quiet", "--region", "1"];
    let text = String::from_utf8(weft(&words).stdout).unwrap();
    assert!(text.contains("1, 12 openings by 4 ranks") && text.contains("in region (us)"), "{text}");
}

/// Catches ranks that never open a region and count nevertheless, and an open region that has no end.
#[test]
fn a_region_of_one_rank_that_is_never_closed_ends_with_the_rank() {
    let (_folder, trace) = folder();
    let row = replayed(&trace, &["--region", "2"]);
    let region = &row["region"];
    assert_eq!((&region["openings"], region["by_rank"].as_array().unwrap().len()), (&1.into(), 1));
    let rank = &region["by_rank"][0];
    assert_eq!((&rank["rank"], &rank["closed"]), (&0.into(), &false.into()));
    // Its part of the last barrier: two messages without data.
    assert_eq!((&row["messages"], &row["bytes"]), (&2.into(), &0.into()));
    assert_eq!(rank["time_us"], row["run_time_us"]);
    assert!(number(&rank["time_us"]) > 0.0);
}

/// Catches a region that nobody opens, for which a report of nothing is shown.
#[test]
fn an_unknown_region_is_refused_by_name() {
    let (folder, trace) = folder();
    let plain = folder.path().join("plain.weft");
    write(&plain, |_| vec![compute(1)]);
    let said = |trace: &Path, region: &str| {
        refused(&["replay", "-m", "exanest", trace.to_str().unwrap(), "--region", region])
    };
    assert!(said(&trace, "7").contains("--region 7: no rank opens it; there are regions 1, 2"));
    assert!(said(&plain, "1").contains("MPI_Pcontrol(1) opens region 1"));
    for wrong in ["0", "-1", "one"] {
        assert!(said(&trace, wrong).contains("a number from 1 to 2147483647"), "{wrong}");
    }
}
