//! Trees that follow the topology, from the command line: benchmarks, and replays of programs with
//! communicators of their own.

use crate::common::{json, weft};
use serde_json::Value;
use std::path::Path;
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::{Collective, CollectiveSizes, CommId, Op, RankRange};
use weft_units::{Bytes, RankId};

/// A Dragonfly of 72 endpoints.
const SMALL: [&str; 4] = ["-m", "bxi3-dragonfly", "--set", "topology.p=2"];

/// Catches an end without the best algorithm, one that is not the fastest, and an algorithm that is left out.
#[test]
fn all_algorithms_end_with_the_best() {
    let words = ["osu", "bcast", "--ranks", "72", "--ppn", "1", "--algorithm", "all", "--sizes", "1K:2K"];
    let words = [&words[..], &SMALL, &["--iterations", "1", "--warm-up", "0"]].concat();
    let report = json(&[&words[..], &["--json"]].concat());
    let rows = report["rows"].as_array().unwrap();
    for algorithm in ["local-first", "global-first", "binary-tree"] {
        assert!(rows.iter().any(|row| row["algorithm"] == algorithm), "{algorithm}");
    }
    for best in report["best_by_size"].as_array().unwrap() {
        let same_size = rows.iter().filter(|row| row["size_bytes"] == best["size_bytes"]);
        let latency = |row: &Value| row["latency_us"].as_f64().unwrap();
        let fastest = same_size.min_by(|a, b| latency(a).total_cmp(&latency(b))).unwrap();
        assert_eq!(fastest["algorithm"], best["algorithm"]);
    }
    assert_eq!(report["best_by_size"].as_array().unwrap().len(), 2);
    let text = String::from_utf8(weft(&words).stdout).unwrap();
    assert!(text.contains("best"), "{text}");
    let one = json(&[&["osu", "bcast", "--ranks", "8", "--sizes", "8", "--json"][..], &SMALL].concat());
    assert!(one.get("best_by_size").is_none());
}

/// Catches a collective that depends on threads, or on how many ranks share an endpoint.
#[test]
fn threads_change_nothing() {
    for (benchmark, algorithm) in
        [("bcast", "local-first"), ("reduce", "global-first"), ("allreduce", "local-first")]
    {
        let words =
            ["osu", benchmark, "--ranks", "100", "--ppn", "4", "--map", "random", "--sizes", "64K", "--json"];
        let cores = ["--set", "host.cores=4", "--iterations", "2", "--algorithm", algorithm];
        let words = [&words[..], &SMALL, &cores].concat();
        let on = |threads: &str| json(&[&words[..], &["--threads", threads]].concat())["rows"][0].clone();
        let one = on("1");
        for threads in ["2", "3"] {
            let other = on(threads);
            for column in ["latency_us", "messages", "packet_hops", "run_time_us"] {
                assert_eq!(one[column], other[column], "{benchmark}, {threads} threads: {column}");
            }
        }
    }
}

/// A broadcast of each root on the world, and then on each half of the ranks: the even ones, and the odd ones
/// from the last to the first.
fn write_trace(path: &Path, ranks: u32) {
    let mut writer = TraceWriter::create(path, TraceHeader { ranks, ..TraceHeader::default() }).unwrap();
    let bytes = Bytes::new(20_000);
    let broadcast = |comm, root| Op::Collective {
        kind: Collective::Broadcast,
        comm,
        root: Some(RankId(root)),
        sizes: CollectiveSizes { send: bytes, receive: bytes, element: 1, ..CollectiveSizes::default() },
        request: None,
        buffers: Default::default(),
    };
    for rank in 0..ranks {
        writer.begin_rank(RankId(rank)).unwrap();
        for root in 0..ranks {
            writer.push(&broadcast(CommId::WORLD, root)).unwrap();
        }
        let members = match rank % 2 {
            0 => RankRange { first: 0, stride: 2, count: ranks / 2 },
            _ => RankRange { first: ranks - 1, stride: -2, count: ranks / 2 },
        };
        let half = CommId(7 + u64::from(rank % 2));
        writer.push(&Op::Communicator { comm: half, members: vec![members] }).unwrap();
        for root in (rank % 2..ranks).step_by(2) {
            writer.push(&broadcast(half, root)).unwrap();
        }
    }
    writer.finish().unwrap();
}

/// Catches members of one communicator that take another's places for theirs: ranks would wait for each other
/// for ever, or get messages that they do not expect.
#[test]
fn communicators_have_places_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("halves.weft");
    write_trace(&trace, 24);
    for (algorithm, machine) in [
        ("local-first", &["-m", "bxi3-megafly"][..]),
        ("global-first", &["-m", "exanest"]),
        ("local-first", &["-m", "bxi3-fattree", "--set", "topology.k=4", "--set", "topology.n=3"]),
        ("local-first", &["-m", "bxi3-dragonfly", "--set", "fabric.kind=ideal"]),
    ] {
        let rule = format!("messaging.algorithms=[{{operation=\"broadcast\", algorithm=\"{algorithm}\"}}]");
        let words = ["replay", trace.to_str().unwrap(), "--map", "random", "--set", &rule, "--json"];
        let report = json(&[&words[..], machine].concat());
        assert_eq!(report["ended"], "finished", "{report}");
        // 24 broadcasts among 24 ranks, and twice 12 among 12; each message with its announcement.
        assert_eq!(report["rows"][0]["bytes"], (24 * 23 + 2 * 12 * 11) * 20_000, "{machine:?}");
    }
}
