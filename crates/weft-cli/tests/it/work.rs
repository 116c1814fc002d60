//! Computations of flops and bytes: `[host.core]`, on traces made here.

use crate::common::{json, refused, rows, weft};
use serde_json::Value;
use std::path::{Path, PathBuf};
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};

/// 1 flop and 5 bytes in a nanosecond, and 10 bytes for all cores of a host.
const CORE: &str = "--set host.core.clock=1GHz --set host.core.flops_per_cycle=1 \
                    --set host.core.bandwidth=40Gb/s --set host.core.memory_bandwidth=80Gb/s";

fn work(flops: u64, bytes: u64) -> Op {
    Op::Work { flops, bytes: Bytes::new(bytes) }
}

/// Rounds of work, of which rank 0 has none, each before a message to the next rank and one from the last.
fn program(rank: u32, ranks: u32) -> Vec<Op> {
    let (comm, bytes, tag, buffer) = (CommId::WORLD, Bytes::new(20_000), 0, None);
    let (to, from) = (RankId((rank + 1) % ranks), Some(RankId((rank + ranks - 1) % ranks)));
    let (first, second, mode) = (RequestId(0), RequestId(1), SendMode::Standard);
    let round = |number: u64| {
        [
            work(7_000 * number, 50_000 * u64::from(rank)),
            Op::Isend { to, tag, comm, bytes, mode, request: first, buffer },
            Op::Irecv { from, tag: Some(tag), comm, bytes, matched: None, request: second, buffer },
            Op::Waitall { requests: vec![first, second] },
            Op::Compute { span: Span::from_us(3) },
        ]
    };
    (1..4).flat_map(round).collect()
}

fn write(path: &Path, programs: &[Vec<Op>]) {
    let header = TraceHeader { ranks: programs.len() as u32, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(path, header).unwrap();
    for (rank, ops) in programs.iter().enumerate() {
        writer.begin_rank(RankId::from(rank)).unwrap();
        ops.iter().for_each(|op| writer.push(op).unwrap());
    }
    writer.finish().unwrap();
}

/// A folder with a trace of these programs in it.
fn folder(programs: &[Vec<Op>]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("work.weft");
    write(&trace, programs);
    (folder, trace)
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// The row of a replay, without what depends on the computer.
fn row(trace: &Path, more: &str) -> Value {
    let trace = trace.display();
    let text = format!("replay -m exanest {trace} --quiet --json {CORE} {more}");
    rows(&json(&words(&text))).remove(0)
}

/// Catches shares that depend on the order in which threads work, and a state that lacks something of a
/// computation under way.
#[test]
fn work_is_the_same_for_any_threads_and_when_saved() {
    let programs: Vec<Vec<Op>> = (0..8).map(|rank| program(rank, 8)).collect();
    let (folder, trace) = folder(&programs);
    let one = row(&trace, "--threads 1");
    assert!(one["memory_wait_share"].as_f64().unwrap() > 0.05, "{one}");
    for threads in [2, 3] {
        assert_eq!(row(&trace, &format!("--threads {threads}")), one);
    }
    for progress in ["thread", "call"] {
        let out = folder.path().join(progress);
        let out = out.to_str().unwrap();
        let saved =
            format!("--save-every 7us --tables messages,ranks --set messaging.progress={progress} -o {out}");
        let whole = row(&trace, &format!("--set messaging.progress={progress}"));
        assert_eq!(row(&trace, &saved), whole, "{progress}");
        assert_eq!(json(&["rerun", out, "--threads", "2", "--quiet", "--json"])["same"], true);
    }
}

/// Catches endpoints of one host with a memory each, and a network on which they cannot share it.
#[test]
fn endpoints_of_a_host_share_its_memory() {
    let (_folder, trace) = folder(&[vec![work(0, 5_000_000)], vec![work(0, 5_000_000)]]);
    let base = format!(
        "replay -m ethernet-100g-spineleaf {} --quiet --json {CORE} --set host.cores=2 \
         --set host.endpoints_per_host=2 --set host.core.memory_bandwidth=40Gb/s",
        trace.display()
    );
    let time =
        |more: &str| json(&words(&format!("{base} {more}")))["rows"][0]["run_time_us"].as_f64().unwrap();
    assert_eq!(time(""), 2000.0);
    assert_eq!(time("--set host.endpoints_per_host=1"), 2000.0);
    assert_eq!(time("--ppn 1"), 1000.0);
    assert_eq!(time("--set fabric.kind=flow"), 2000.0);
    let said = refused(&words(&format!("{base} --set fabric.kind=ideal")));
    assert!(said.contains("host.core") && said.contains("fabric.kind=packet"), "{said}");
}

/// Catches a recorded share that changes what a rank alone takes, and one of which nobody is told.
#[test]
fn recorded_computation_shares_memory_where_asked_for() {
    let compute = || vec![Op::Compute { span: Span::from_us(1000) }];
    let (_folder, alone) = folder(&[compute()]);
    let (_other, four) = folder(&[compute(), compute(), compute(), compute()]);
    for (share, slowed) in [("0", 1000.0), ("0.5", 1500.0), ("1", 2000.0)] {
        let set = format!("--set host.core.recorded_share={share}");
        assert_eq!(row(&alone, &set)["run_time_us"], 1000.0, "{share}");
        assert_eq!(row(&four, &set)["run_time_us"], slowed, "{share}");
    }
    let said = weft(&words(&format!(
        "replay -m exanest {} --quiet {CORE} --set host.core.recorded_share=0.5",
        four.display()
    )));
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("of which wait for memory 33.3 %"), "{said}");
}

/// Catches work that is not computation in explanations.
#[test]
fn the_path_through_work_is_computation() {
    let (folder, trace) = folder(&vec![vec![work(9, 5_000_000)]; 4]);
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    assert_eq!(row(&trace, &format!("-o {out}"))["run_time_us"], 2000.0);
    let explained = json(&["explain", out, "--quiet", "--json"]);
    let rows = explained["rows"].as_array().unwrap();
    let path = rows.iter().find(|row| row["view"] == "critical path" && row["category"] == "computation");
    assert_eq!(path.unwrap()["time_us"], 2000.0, "{explained}");
}

/// Catches a computation that takes no time on a machine that does not say how fast it is, sections that lack
/// a key, and values that are none.
#[test]
fn bad_work_is_refused() {
    let (folder, trace) = folder(&[vec![work(1, 1)]]);
    let trace = trace.to_str().unwrap();
    let own = folder.path().join("own.toml");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/exanest.toml");
    let text = std::fs::read_to_string(shipped).unwrap();
    let (before, section) = text.split_once("[host.core]").unwrap();
    let (_, behind) = section.split_once("\n[").unwrap();
    std::fs::write(&own, format!("{before}\n[{behind}")).unwrap();
    let own = own.display();
    let replay = |more: &str| refused(&words(&format!("replay -m {own} {trace} --quiet {more}")));
    let said = replay("");
    assert!(said.contains("rank 0, operation 0") && said.contains("--set host.core.clock=2GHz"), "{said}");
    let said = replay("--set host.core.clock=1GHz");
    assert!(said.contains("flops_per_cycle") && said.contains("bandwidth"), "{said}");
    for (value, why) in [
        ("flops_per_cycle=0", "zero"),
        ("flops_per_cycle=-1", "not a decimal number"),
        ("bandwidth=0b/s", "zero"),
        ("recorded_share=1.5", "write at most 1"),
        ("clock=0", "clock"),
    ] {
        let said = replay(&format!("{CORE} --set host.core.{value}"));
        assert!(said.contains(why), "{value}: {said}");
    }
    for (format, name) in [("goal", "work.goal"), ("vef", "work.vef")] {
        let to = folder.path().join(name);
        let said = refused(&["trace", "convert", trace, "-o", to.to_str().unwrap(), "--format", format]);
        assert!(said.contains("keep the trace as .weft") && !to.exists(), "{said}");
    }
    let huge = folder.path().join("huge.weft");
    write(&huge, &[vec![work(u64::MAX, 1)]]);
    let said = refused(&words(&format!("replay -m exanest {} --quiet {CORE}", huge.display())));
    assert!(said.contains("more than 20 hours"), "{said}");
}
