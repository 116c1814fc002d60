//! `weft trace` and `weft replay` on traces made here.

use crate::common::{json, refused, weft};
use std::path::{Path, PathBuf};
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::*;
use weft_trace::{DataType, Reduction, ReductionOperation};
use weft_units::{Bytes, RankId, Span};

/// A ring of ranks: each computes, passes a message on, and all add something up, `rounds` times.
pub fn ring(path: &Path, ranks: u32, rounds: u32) {
    let header = TraceHeader {
        ranks,
        command: vec!["ring".to_owned(), rounds.to_string()],
        recorder: "a test".to_owned(),
        unrecorded: [("MPI_File_open".to_owned(), 3)].into(),
        ..TraceHeader::default()
    };
    let mut writer = TraceWriter::create(path, header).unwrap();
    let (comm, bytes, tag) = (CommId::WORLD, Bytes::new(20_000), 0);
    for rank in 0..ranks {
        writer.begin_rank(RankId(rank)).unwrap();
        let (to, from) = (RankId((rank + 1) % ranks), Some(RankId((rank + ranks - 1) % ranks)));
        for _ in 0..rounds {
            writer.push(&Op::Compute { span: Span::from_us(3 + u64::from(rank)) }).unwrap();
            let (mode, request) = (SendMode::Standard, RequestId(0));
            writer.push(&Op::Isend { to, tag, comm, bytes, mode, request, buffer: None }).unwrap();
            let (tag, matched, request) = (Some(tag), None, RequestId(1));
            writer.push(&Op::Irecv { from, tag, comm, bytes, matched, request, buffer: None }).unwrap();
            writer.push(&Op::Waitall { requests: vec![RequestId(0), RequestId(1)] }).unwrap();
            let (send, receive) = (Bytes::new(64), Bytes::new(64));
            let sizes = CollectiveSizes { send, receive, element: 8, ..CollectiveSizes::default() };
            let (kind, root, request) = (Collective::Allreduce, None, None);
            writer
                .push(&Op::Collective { kind, comm, root, sizes, request, buffers: Default::default() })
                .unwrap();
        }
    }
    writer.finish().unwrap();
}

/// A folder with a trace of a ring of 8 ranks in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("ring.weft");
    ring(&trace, 8, 5);
    (folder, trace)
}

#[test]
fn a_trace_says_what_it_is() {
    let (_folder, trace) = folder();
    let trace = trace.to_str().unwrap();
    let info = json(&["trace", "info", trace, "--json"]);
    assert_eq!((&info["ranks"], &info["operations"]), (&8.into(), &200.into()));
    assert_eq!(info["operations_by_kind"]["allreduce"], 40);
    let stats = json(&["trace", "stats", trace, "--json"]);
    assert_eq!((&stats["messages"], &stats["message_bytes"]), (&40.into(), &800_000.into()));
    assert_eq!(stats["computation_max_us"], 50.0);
    let text = String::from_utf8(weft(&["trace", "info", trace]).stdout).unwrap();
    assert!(text.contains("ring 5") && text.contains("not recorded: 3 × MPI_File_open"), "{text}");
    let text = String::from_utf8(weft(&["trace", "stats", trace]).stdout).unwrap();
    assert!(text.contains("16384 to 32767"), "{text}");
    assert!(refused(&["trace", "info", "no-such.weft"]).contains("no-such.weft"));
    assert!(refused(&["trace", "stats", env!("CARGO_MANIFEST_DIR")]).contains("parts"));
}

#[test]
fn a_replay_answers_in_json() {
    let (folder, trace) = folder();
    let trace = trace.to_str().unwrap();
    let timeline = folder.path().join("ring.json");
    let more = ["--json", "--quiet", "--timeline", timeline.to_str().unwrap()];
    let answer = json(&[&["replay", "-m", "exanest", trace][..], &more].concat());
    let row = &answer["rows"][0];
    assert_eq!((&answer["ended"], &row["ranks"]), (&"finished".into(), &8.into()));
    // Five rounds of the slowest rank's computation, of messages at 10 Gb/s and of an R5 per MPSoC.
    let run_time = row["run_time_us"].as_f64().unwrap();
    assert!((50.0..1000.0).contains(&run_time), "{run_time}");
    assert!(row["messages"].as_u64().unwrap() > 40 && row["packet_hops"].as_u64().unwrap() > 1000);
    assert_eq!(row["busiest_links"].as_array().unwrap().len(), 5);
    let drawn: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(timeline).unwrap()).unwrap();
    assert!(drawn["traceEvents"].as_array().unwrap().len() > 200);

    // Several traces share the machine; elsewhere on it, times differ.
    let two = json(&["replay", "-m", "bxi3-dragonfly", trace, trace, "--json", "--quiet"]);
    assert_eq!(two["rows"][1]["first_rank"], 8);
    let random = ["replay", "-m", "bxi3-dragonfly", trace, "--map", "random", "--json", "--quiet"];
    let time = |seed| json(&[&random[..], &["--seed", seed]].concat())["rows"][0]["run_time_us"].clone();
    assert_eq!(time("3"), time("3"));
    assert_ne!(time("3"), two["rows"][0]["run_time_us"]);
    let text = weft(&["replay", "-m", "exanest", trace, "--quiet"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("busiest links") && text.contains("switch of M1QAF1"), "{text}");
}

/// A trace of ranks that reduce these vectors.
pub fn reductions(path: &Path, ranks: u32, vectors: &[CollectiveSizes]) {
    let header = TraceHeader { ranks, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(path, header).unwrap();
    for rank in 0..ranks {
        writer.begin_rank(RankId(rank)).unwrap();
        for sizes in vectors.iter().cloned() {
            let (kind, comm, root, request) = (Collective::Allreduce, CommId::WORLD, None, None);
            let buffers = CollectiveBuffers::default();
            writer.push(&Op::Collective { kind, comm, root, sizes, request, buffers }).unwrap();
        }
    }
    writer.finish().unwrap();
}

/// Catches reductions that TR-488 §4.7 does not have and the accelerator computes all the same, such as an
/// exclusive or of longs, and those that it has and software computes.
#[test]
fn the_accelerator_computes_only_what_it_has() {
    use ReductionOperation::{BitwiseXor, Max, Sum};
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reductions.weft");
    let accelerator = "messaging.algorithms=[{operation=\"allreduce\", algorithm=\"accelerator\"}]";
    // Messages of software; the accelerator has none.
    let messages = |element, operation, data_type| {
        let (bytes, reduction) = (Bytes::new(64), Reduction { operation, data_type });
        let sizes = CollectiveSizes { send: bytes, receive: bytes, element, reduction, ..Default::default() };
        reductions(&path, 4, &vec![sizes; 10]);
        let words = ["replay", "-m", "exanest", path.to_str().unwrap(), "--ppn", "1", "--json", "--quiet"];
        let answer = json(&[&words[..], &["--set", accelerator]].concat());
        answer["rows"][0]["messages"].as_u64().unwrap()
    };
    // Two rounds of recursive doubling.
    let by_software = 10 * 4 * 2;
    assert_eq!(messages(8, Some(BitwiseXor), Some(DataType::Int64)), by_software);
    assert_eq!(messages(8, Some(Sum), Some(DataType::Int64)), by_software);
    assert_eq!(messages(4, Some(BitwiseXor), Some(DataType::Int32)), by_software);
    assert_eq!(messages(4, Some(Sum), Some(DataType::Float32)), 0);
    assert_eq!(messages(8, Some(Max), Some(DataType::Float64)), 0);
    assert_eq!(messages(4, Some(Max), Some(DataType::Int32)), 0);
    let stats = String::from_utf8(weft(&["trace", "stats", path.to_str().unwrap()]).stdout).unwrap();
    assert!(stats.contains("max of int32"), "{stats}");
    // A trace of an earlier build says neither: a sum of floating-point numbers.
    assert_eq!(messages(8, None, None), 0);
}

/// Catches a trace that lacks calls of its program, and a replay or its page that does not say so.
#[test]
fn calls_that_a_trace_lacks_are_said() {
    let (folder, trace) = folder();
    let (trace, path) =
        (trace.to_str().unwrap(), |name: &str| folder.path().join(name).display().to_string());
    let (out, page) = (path("out"), path("out.html"));
    let text = weft(&["replay", "-m", "exanest", trace, "--quiet", "-o", &out]).stdout;
    assert!(String::from_utf8(text).unwrap().contains("not recorded: 3 × MPI_File_open"));
    let row = &json(&["replay", "-m", "exanest", trace, "--quiet", "--json"])["rows"][0];
    assert_eq!(row["unrecorded"], serde_json::json!({ "MPI_File_open": 3 }));
    let warnings = json(&["report", &out, "-o", &page, "--json"])["report"]["warnings"].to_string();
    assert!(warnings.contains("the trace lacks calls of its program: 3 × MPI_File_open"), "{warnings}");
    // Neither does a conversion leave them unsaid.
    let converted = json(&["trace", "convert", trace, "-o", &path("ring.goal"), "--json"]);
    assert_eq!(converted["unrecorded"], serde_json::json!({ "MPI_File_open": 3 }));
}

/// Catches a factor that does not reach the ranks, or is lost when the run is repeated.
#[test]
fn computation_is_scaled() {
    let (folder, trace) = folder();
    let directory = folder.path().join("out");
    let (trace, directory) = (trace.to_str().unwrap(), directory.to_str().unwrap());
    let figure = |scale: &str, key: &str| {
        let words = ["replay", "-m", "exanest", trace, "--quiet", "--json", "--compute-scale", scale];
        json(&words)["rows"][0][key].as_f64().unwrap()
    };
    assert_eq!(figure("0", "computation_share"), 0.0);
    let computed = |scale| figure(scale, "computation_share") * figure(scale, "run_time_us");
    let share = computed("0.5") / computed("1");
    assert!((share - 0.5).abs() < 1e-3, "{share}");
    let words = ["replay", "-m", "exanest", trace, "--quiet", "--compute-scale", "0.5", "-o", directory];
    assert!(weft(&words).status.success());
    assert_eq!(json(&["rerun", directory, "--quiet", "--json"])["same"], true);
    let wrong = refused(&["replay", "-m", "exanest", trace, "--compute-scale", "-2"]);
    assert!(wrong.contains("such as 0.25"), "{wrong}");
}

/// Catches a result that cannot be run again, and one that saving changes.
#[test]
fn a_replay_can_be_run_again() {
    let (folder, trace) = folder();
    let directory = folder.path().join("out");
    let (trace, directory) = (trace.to_str().unwrap(), directory.to_str().unwrap());
    let words = ["replay", "-m", "exanest", trace, "--quiet", "-o", directory, "--save-every", "20us"];
    assert!(
        weft(&[&words[..], &["--tables", "messages,flows,links,ranks", "--check"]].concat()).status.success()
    );
    let again = json(&["rerun", directory, "--threads", "2", "--quiet", "--json"]);
    assert_eq!(again["same"], true);
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let (folder, trace) = folder();
    let places = folder.path().join("places");
    std::fs::write(&places, "M1QAF1\nM1QAF1 9\n").unwrap();
    let (trace, places) = (trace.to_str().unwrap(), places.to_str().unwrap());
    let said = refused(&["replay", "-m", "exanest", trace, "--map", places]);
    assert!(said.contains("line 2") && said.contains("`9` is no core"), "{said}");
    let said = refused(&["replay", "-m", "communication-ip", trace]);
    assert!(said.contains("8 ranks do not fit on 4 cores"), "{said}");
    let said = refused(&["replay", "-m", "exanest", trace, "--ppn", "9"]);
    assert!(said.contains("--ppn 9") && said.contains("at most 4"), "{said}");
    assert!(!said.contains("of memory"), "an estimate of what is refused: {said}");
    std::fs::write(places, "no trace").unwrap();
    let said = refused(&["replay", "-m", "exanest", places]);
    assert!(said.contains("begins as no trace does that is read (weft,"), "{said}");
}

/// Catches parts that only a look can be taken at: what a recording has left becomes a trace.
#[test]
fn parts_become_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (parts, trace) = (folder.path().join("run.weft.parts"), folder.path().join("run.weft"));
    let convert = |more: &[&str]| {
        let words = ["trace", "convert", parts.to_str().unwrap(), "-o", trace.to_str().unwrap(), "--json"];
        weft(&[&words as &[&str], more].concat())
    };
    let said = String::from_utf8(convert(&[]).stderr).unwrap();
    assert!(said.contains("is no folder of parts"), "{said}");

    std::fs::create_dir(&parts).unwrap();
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/parts");
    let mut converted = 0;
    for input in std::fs::read_dir(corpus).unwrap() {
        std::fs::copy(input.unwrap().path(), parts.join("rank-00000.part")).unwrap();
        let output = convert(&["--force"]);
        assert_eq!(output.status.success(), trace.exists(), "a trace is there when it is whole");
        if !output.status.success() {
            continue;
        }
        converted += 1;
        let operations = |of: &std::path::Path| json(&["trace", "stats", of.to_str().unwrap(), "--json"]);
        assert_eq!(operations(&trace)["operations_by_kind"], operations(&parts)["operations_by_kind"]);
        let refused = String::from_utf8(convert(&[]).stderr).unwrap();
        assert!(refused.contains("write over it with --force"), "{refused}");
        std::fs::remove_file(&trace).unwrap();
    }
    assert!(converted > 0, "no input of the corpus is a whole part of a single rank");
}

/// Twelve ranks, each of which sends fifteen messages of one tag to each of five others: of all sizes, short
/// ones behind long ones. Buffers fit exactly, so a message that is taken before another does not fit.
fn bursts(path: &Path) {
    const RANKS: u32 = 12;
    let header = TraceHeader { ranks: RANKS, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(path, header).unwrap();
    let size = |from: u32, to: u32, number: u32| {
        let mixed = (from * 31 + to * 17 + number * 7919).wrapping_mul(2_654_435_761) >> 8;
        Bytes::new(u64::from(if number % 3 == 1 { mixed % 60 } else { mixed % 50_000 }))
    };
    let messages = || (1..=5).flat_map(|step| (0..15).map(move |number| (step, number)));
    for rank in 0..RANKS {
        writer.begin_rank(RankId(rank)).unwrap();
        let (comm, tag, mode) = (CommId::WORLD, 0, SendMode::Standard);
        for (step, number) in messages() {
            let (from, request) = ((rank + RANKS - step) % RANKS, RequestId(2 * (step * 15 + number)));
            let bytes = size(from, rank, number);
            let (from, tag, matched) = (Some(RankId(from)), Some(tag), None);
            writer.push(&Op::Irecv { from, tag, comm, bytes, matched, request, buffer: None }).unwrap();
        }
        for (step, number) in messages() {
            let (to, request) = ((rank + step) % RANKS, RequestId(2 * (step * 15 + number) + 1));
            let (bytes, to) = (size(rank, to, number), RankId(to));
            writer.push(&Op::Isend { to, tag, comm, bytes, mode, request, buffer: None }).unwrap();
        }
        let requests =
            messages().flat_map(|(step, number)| [0, 1].map(|side| 2 * (step * 15 + number) + side));
        writer.push(&Op::Waitall { requests: requests.map(RequestId).collect() }).unwrap();
    }
    writer.finish().unwrap();
}

/// Catches an interface or a library that relies on the order of packets: on trees whose routings let packets
/// of a pair overtake, every message arrives whole, with its own bytes, and is matched in its pair's order.
#[test]
fn messages_keep_their_order_where_packets_overtake() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("bursts.weft");
    bursts(&trace);
    for machine in ["exanest", "bxi3-fattree"] {
        for routing in ["up-down", "adaptive", "round-robin", "multipath"] {
            let routing = format!("topology.routing={routing}");
            let mut words = vec!["replay", "-m", machine, "--ppn", "1", "--check", "--json", "--quiet"];
            // Only the block-level interface moves bytes.
            words.extend((machine == "exanest").then_some("--data"));
            for set in ["topology.kind=tree", "topology.down=[4,4]", "topology.up=[4]", &routing] {
                words.extend(["--set", set]);
            }
            words.push(trace.to_str().unwrap());
            let answer = json(&words);
            assert_eq!(answer["ended"], "finished", "{machine} {routing}: {}", answer["detail"]);
        }
    }
}
