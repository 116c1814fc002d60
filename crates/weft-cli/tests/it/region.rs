//! Regions of interest: `--region` of the commands, on traces made here.

use crate::common::{json, refused, weft};
use serde_json::Value;
use std::path::{Path, PathBuf};
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::*;
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

/// A long beginning, three rounds in region 1 with something between them, and region 2 of rank 0 alone,
/// which it does not close.
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

fn sum(rows: &Value, key: &str) -> f64 {
    rows.as_array().unwrap().iter().map(|row| number(&row[key])).sum()
}

fn of(rows: &Value, category: &str) -> f64 {
    let row = rows.as_array().unwrap().iter().find(|row| row["category"] == category).unwrap();
    number(&row["time_us"])
}

/// Catches messages of outside in the breakdown, and some of inside that are not.
#[test]
fn a_breakdown_is_of_the_messages_of_the_region() {
    let (_folder, trace) = folder();
    let row = replayed(&trace, &["--region", "1", "--breakdown"]);
    let classes = row["breakdown"].as_array().unwrap();
    assert_eq!(classes.len(), 1, "{row}");
    assert_eq!((&classes[0]["messages"], &classes[0]["smallest_bytes"]), (&12.into(), &BYTES.into()));
    let mean = number(&row["completion_time_mean_us"]);
    assert!((number(&classes[0]["time_mean_ns"]) / 1e3 - mean).abs() < 1e-3, "{row}");
}

/// Catches a path that does not add up to the region's run time, and what lies between its openings or before
/// them in it.
#[test]
fn a_region_is_explained_alone() {
    let (folder, trace) = folder();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let row = replayed(&trace, &["--region", "1", "-o", out]);
    let explain =
        |more: &[&str]| json(&[&["explain", out, "--quiet", "--json"], more].concat())["runs"][0].clone();
    let whole = explain(&[]);
    assert!(of(&whole["critical_path"], "computation") > 1000.0 && whole.get("region").is_none());
    let inside = explain(&["--region", "1"]);
    assert_eq!(inside, explain(&["--region", "1", "--threads", "2"]));
    assert_eq!(inside["region"], 1);
    assert!(same(sum(&inside["critical_path"], "time_us"), number(&row["run_time_us"])), "{inside}");
    assert!(same(sum(&inside["critical_path"], "share"), 1.0), "{inside}");
    // Three rounds of a few us each: neither the beginning nor what is between them.
    assert!((15.0..60.0).contains(&of(&inside["critical_path"], "computation")), "{inside}");
    let (ranks, own) = (inside["ranks"].as_array().unwrap(), row["region"]["by_rank"].as_array().unwrap());
    assert_eq!(ranks.len(), own.len());
    for (explained, replayed) in ranks.iter().zip(own) {
        assert!(same(number(&explained["time_us"]), number(&replayed["time_us"])), "{explained}");
        assert!(same(of(&explained["categories"], "computation"), number(&replayed["computation_us"])));
        // With what partners do that answer at once.
        assert!(of(&explained["categories"], "software") >= number(&replayed["communication_us"]) - 5e-7);
    }
    // Region 2 is never closed.
    let open = explain(&["--region", "2"]);
    assert_eq!((&open["to_us"], open["ranks"].as_array().unwrap().len()), (&whole["ranks"][0]["time_us"], 1));
    assert!(refused(&["explain", out, "--region", "3", "--quiet"]).contains("there are regions 1, 2"));
    assert!(refused(&["explain", out, "--region", "1", "--last", "1us"]).contains("--last"));
}

/// Catches regions that nobody sees in a timeline, one without an end, and one that cuts a slice.
#[test]
fn regions_are_slices_of_the_timeline() {
    let (folder, trace) = folder();
    let timeline = folder.path().join("timeline.json");
    let row = replayed(&trace, &["--timeline", timeline.to_str().unwrap()]);
    let drawn: Value = serde_json::from_str(&std::fs::read_to_string(timeline).unwrap()).unwrap();
    let bounds = |event: &Value| {
        let from = number(&event["ts"]);
        (from, from + number(&event["dur"]))
    };
    let slices = |rank: u32| -> Vec<&Value> {
        let all = drawn["traceEvents"].as_array().unwrap().iter();
        all.filter(|event| event["ph"] == "X" && event["tid"] == rank).collect()
    };
    for rank in 0..RANKS {
        let (regions, others): (Vec<_>, Vec<_>) =
            slices(rank).into_iter().partition(|event| event["cat"] == "region");
        let names: Vec<_> = regions.iter().map(|event| event["name"].as_str().unwrap()).collect();
        let expected = ["region 1", "region 1", "region 1", "region 2"];
        assert_eq!(names, expected[..if rank == 0 { 4 } else { 3 }]);
        for region in &regions {
            let (from, to) = bounds(region);
            let cut = |other: &&&Value| {
                let (begin, end) = bounds(other);
                begin < from - 1e-6 && end > from + 1e-6 || begin < to - 1e-6 && end > to + 1e-6
            };
            assert_eq!(others.iter().find(cut), None, "{region}");
            assert!(to <= number(&row["run_time_us"]) + 1e-6);
        }
    }
}

/// Catches a run that did not come to its end and is not explained, or is without a remark.
#[test]
fn a_run_without_an_end_is_explained_as_far_as_it_came() {
    let (folder, _) = folder();
    let (trace, out) = (folder.path().join("stuck.weft"), folder.path().join("out"));
    // The last rank waits for a message that nobody sends.
    write(&trace, |rank| {
        let mut ops = vec![compute(10 + u64::from(rank)), barrier()];
        if rank == RANKS - 1 {
            ops.extend(ring(rank)[1..].iter().cloned().map(|op| match op {
                Op::Waitall { .. } => Op::Waitall { requests: vec![RequestId(1)] },
                other => other,
            }));
        }
        ops
    });
    let (trace, out) = (trace.to_str().unwrap(), out.to_str().unwrap());
    let ended = weft(&["replay", "-m", "exanest", trace, "--ppn", "1", "-o", out, "--quiet"]);
    assert_eq!(ended.status.code(), Some(1));
    let document = json(&["explain", out, "--quiet", "--json"]);
    assert_eq!(document["ended"], "no-progress");
    let run = &document["runs"][0];
    assert!(same(sum(&run["critical_path"], "time_us"), number(&run["to_us"])), "{run}");
    assert!(of(&run["critical_path"], "computation") >= 13.0, "{run}");
    assert_eq!(run["ranks"].as_array().unwrap().len(), RANKS as usize);
    let text = String::from_utf8(weft(&["explain", out, "--quiet"]).stdout).unwrap();
    assert!(text.starts_with("the run ended with no-progress: explained is what"), "{text}");

    // An interrupted run stood at some time; its rows are no longer those of the whole.
    let manifest = Path::new(out).join("run.json");
    let mut interrupted: Value = serde_json::from_str(&std::fs::read_to_string(&manifest).unwrap()).unwrap();
    interrupted["ended"] = "interrupted".into();
    interrupted["rows"][0]["run_time_us"] = 12.0.into();
    interrupted["totals"]["end_ps"] = 12_000_000u64.into();
    std::fs::write(&manifest, serde_json::to_string(&interrupted).unwrap()).unwrap();
    let document = json(&["explain", out, "--quiet", "--json"]);
    assert_eq!(document["ended"], "interrupted");
    let to = number(&document["runs"][0]["to_us"]);
    assert!((10.0..=12.0).contains(&to), "{document}");
    assert!(same(sum(&document["runs"][0]["critical_path"], "time_us"), to));
}
