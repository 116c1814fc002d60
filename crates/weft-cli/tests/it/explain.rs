//! `weft explain` and `weft osu --breakdown` on real runs.

use crate::common::{json, refused};
use serde_json::Value;
use std::path::{Path, PathBuf};
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};

/// Every rank computes for longer than the one before, sends to the last, and all meet.
fn late(path: &Path, ranks: u32) {
    let mut writer = TraceWriter::create(path, TraceHeader { ranks, ..TraceHeader::default() }).unwrap();
    let (comm, bytes, tag) = (CommId::WORLD, Bytes::new(50_000), 0);
    let last = ranks - 1;
    for rank in 0..ranks {
        writer.begin_rank(RankId(rank)).unwrap();
        writer.push(&Op::Compute { span: Span::from_us(10 * u64::from(rank)) }).unwrap();
        let requests = if rank == last { 0..last } else { 0..1 };
        for request in requests.clone() {
            let op = match rank == last {
                true => {
                    let (from, tag, request) = (Some(RankId(request)), Some(tag), RequestId(request));
                    Op::Irecv { from, tag, comm, bytes, matched: None, request, buffer: None }
                }
                false => {
                    let (mode, request) = (SendMode::Standard, RequestId(request));
                    Op::Isend { to: RankId(last), tag, comm, bytes, mode, request, buffer: None }
                }
            };
            writer.push(&op).unwrap();
        }
        writer.push(&Op::Waitall { requests: requests.map(RequestId).collect() }).unwrap();
        let sizes = CollectiveSizes::default();
        let (kind, root, request) = (Collective::Barrier, None, None);
        writer
            .push(&Op::Collective { kind, comm, root, sizes, request, buffers: Default::default() })
            .unwrap();
    }
    writer.finish().unwrap();
}

/// A folder with a replayed run in `out`.
fn replayed() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("late.weft"), folder.path().join("out"));
    late(&trace, 5);
    let (trace, out_text) = (trace.to_str().unwrap(), out.to_str().unwrap());
    json(&["replay", "-m", "exanest", trace, "--ppn", "1", "-o", out_text, "--quiet", "--json"]);
    (folder, out)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn sum(rows: &Value, key: &str) -> f64 {
    rows.as_array().unwrap().iter().map(|row| number(&row[key])).sum()
}

fn of(rows: &Value, category: &str) -> f64 {
    let row = rows.as_array().unwrap().iter().find(|row| row["category"] == category).unwrap();
    number(&row["time_us"])
}

/// Half a picosecond: sums in floating point are that exact here.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 5e-7
}

/// Catches views that do not add up to the run, and a breakdown that depends on threads.
#[test]
fn a_replay_is_explained_to_its_end() {
    let (_folder, out) = replayed();
    let out = out.to_str().unwrap();
    let document = json(&["explain", out, "--quiet", "--json"]);
    assert_eq!(document, json(&["explain", out, "--quiet", "--json", "--threads", "2"]));
    let run = &document["runs"][0];
    assert_eq!(number(&run["from_us"]), 0.0);
    let time = number(&run["to_us"]);
    for view in ["critical_path", "own_time"] {
        assert!(same(sum(&run[view], "time_us"), time), "{view}: {}", run[view]);
        assert!(same(sum(&run[view], "share"), 1.0), "{view}");
    }
    assert_eq!(run["ranks"].as_array().unwrap().len(), 5);
    // The last rank computes for 40 us before anybody can send to it.
    assert!(of(&run["critical_path"], "computation") >= 40.0);
    assert_eq!(of(&run["critical_path"], "late partner"), 0.0);
    // The first has nothing to compute and waits for it.
    let first = &run["ranks"][0]["categories"];
    assert!(of(first, "late partner") > 30.0, "{first}");
    // Four send to one: the critical path meets the others on its link.
    assert!(of(&run["critical_path"], "contention") > 10.0);
    let row = &document["rows"][0];
    assert_eq!((&row["view"], &row["category"]), (&"critical path".into(), &"computation".into()));
    assert!(number(&row["time_us"]) >= 40.0 && number(&row["share"]) > 0.0);
}

/// Catches a window that is not explained in full from where it begins.
#[test]
fn the_last_part_alone_is_explained_alike() {
    let (_folder, out) = replayed();
    let out = out.to_str().unwrap();
    let document = json(&["explain", out, "--quiet", "--json", "--last", "60us"]);
    let run = &document["runs"][0];
    let (from, to) = (number(&run["from_us"]), number(&run["to_us"]));
    assert!(from > 0.0 && from < to, "{from} {to}");
    assert!(same(sum(&run["critical_path"], "time_us"), to - from));
}

/// Catches results that are explained although they are not those of the run.
#[test]
fn results_that_do_not_come_out_again_are_refused() {
    let (_folder, out) = replayed();
    let manifest = out.join("run.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    document["rows"][0]["run_time_us"] = 1.0.into();
    std::fs::write(&manifest, serde_json::to_string(&document).unwrap()).unwrap();
    let said = refused(&["explain", out.to_str().unwrap(), "--quiet"]);
    assert!(said.contains("came out differently"), "{said}");
}

#[test]
fn what_has_no_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let words =
        ["traffic", "-m", "exanest", "--load", "0.1", "--time", "2us", "-o", out, "--quiet", "--json"];
    json(&words);
    let said = refused(&["explain", out]);
    assert!(said.contains("explain is for programs"), "{said}");
    assert!(refused(&["explain", folder.path().to_str().unwrap()]).contains("no finished run"));
}

/// Catches a nanosecond of a round trip that is in no piece or in two.
#[test]
fn a_round_trip_is_broken_down_to_the_picosecond() {
    let cases = ["0", "100", "4K", "1M"].map(|size| [(size, "0"), (size, "16")]);
    for (size, credit) in cases.into_iter().flatten() {
        let set = format!("links.default.credit={credit}");
        let between = ["--from", "M1QAF1", "--to", "M1QBF1", "--sizes", size, "--set", &set];
        let words =
            [&["osu", "latency", "-m", "exanest"], &between[..], &["--breakdown", "--quiet", "--json"]];
        let document = json(&words.concat());
        let row = &document["rows"][0];
        let breakdown = &row["breakdown"];
        let time = number(&breakdown["time_ns"]);
        let pieces = breakdown["pieces"].as_array().unwrap();
        let mut cursor = 0.0;
        for piece in pieces {
            assert_eq!(number(&piece["from_ns"]), cursor, "{size}: {piece}");
            cursor = number(&piece["to_ns"]);
        }
        assert_eq!(cursor, time);
        assert!(same(sum(&breakdown["pieces"], "time_ns") / 1e3, time / 1e3));
        // Iterations differ by an edge of a clock at most.
        assert!((time / 2e3 - number(&row["latency_us"])).abs() < 0.02, "{row}");
        let (there, back) = (number(&breakdown["there_ns"]), number(&breakdown["back_ns"]));
        assert!(same((there + back) / 1e3, time / 1e3) && (there - back).abs() < 40.0, "{there} {back}");
        // Two ranks alone are in nobody's way, but for the words that give credits for their cells: an
        // acknowledgement of 16 KB waits for one of 16 B.
        let contention = of(&breakdown["categories"], "contention");
        assert!(contention * 1e3 <= if credit == "0" { 0.0 } else { time / 1000.0 }, "{size}: {contention}");
        assert_eq!(of(&breakdown["categories"], "late partner"), 0.0, "{size}");
    }
}

/// Catches a layer or a collective whose iteration cannot be found in the record.
#[test]
fn collectives_and_primitives_are_broken_down() {
    let allreduce = ["osu", "allreduce", "-m", "exanest", "--ranks", "8", "--ppn", "2", "--sizes", "1K:2K"];
    let primitive = ["osu", "latency", "-m", "exanest", "--layer", "nic", "--sizes", "0"];
    for words in [&allreduce[..], &primitive[..]] {
        let document = json(&[words, &["--breakdown", "--quiet", "--json"]].concat());
        for row in document["rows"].as_array().unwrap() {
            let breakdown = &row["breakdown"];
            let time = number(&breakdown["time_ns"]);
            assert!(time > 0.0 && same(sum(&breakdown["pieces"], "time_ns") / 1e3, time / 1e3), "{row}");
            assert!(same(sum(&breakdown["categories"], "time_us"), time / 1e3), "{row}");
        }
    }
}

/// Catches an explanation of a benchmark that is of another iteration than its breakdown.
#[test]
fn a_benchmark_is_explained_by_its_last_iteration() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let words = ["osu", "bcast", "-m", "exanest", "--ranks", "8", "--ppn", "1", "--sizes", "1K"];
    let document = json(&[&words[..], &["--breakdown", "-o", out, "--quiet", "--json"]].concat());
    let breakdown = &document["rows"][0]["breakdown"];
    let explained = json(&["explain", out, "--quiet", "--json"]);
    assert_eq!(explained["runs"][0]["critical_path"], breakdown["categories"]);
    assert_eq!(explained["runs"][0]["ranks"].as_array().unwrap().len(), 8);
    assert!(refused(&["explain", out, "--last", "1us", "--quiet"]).contains("leave --last out"));
}

/// Catches a size that is explained otherwise alone than among the others, and lists of another length.
#[test]
fn one_size_and_the_length_of_lists_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    json(&["osu", "latency", "-m", "exanest", "--sizes", "8:64", "-o", out, "--quiet", "--json"]);
    let all = json(&["explain", out, "--quiet", "--json"]);
    let one = json(&["explain", out, "--quiet", "--json", "--size", "32"]);
    assert_eq!(all["runs"].as_array().unwrap().len(), 4);
    assert_eq!(one["runs"].as_array().unwrap().as_slice(), &all["runs"].as_array().unwrap()[2..3]);
    let short = json(&["explain", out, "--quiet", "--json", "--size", "32", "--top", "3"]);
    for list in ["places", "longest"] {
        let first = |document: &Value, count: usize| -> Vec<Value> {
            document["runs"][0][list].as_array().unwrap().iter().take(count).cloned().collect()
        };
        assert_eq!(first(&short, 10), first(&one, 3));
    }
    let error = refused(&["explain", out, "--size", "7"]);
    assert!(error.contains("no such size; they have 8, 16, 32, 64"), "{error}");
    let (_folder, replay) = replayed();
    let error = refused(&["explain", replay.to_str().unwrap(), "--size", "8"]);
    assert!(error.contains("only benchmarks have sizes"), "{error}");
}
