//! The static analysis of traces through the command, beside numbers that were counted by hand.

use crate::common::{json, refused, weft};
use crate::skipped::skip;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};

/// Four ranks: three messages, a broadcast and an allreduce. A core does an operation per nanosecond.
const ACTIONS: &str = "# speed: 1Gf
0 init
0 compute 1e6
0 send 1 7 100
0 isend 2 7 3
0 wait 0 2 7
0 bcast 4096 0
0 compute 3e6
0 allreduce 8 0
1 init
1 recv 0 7 100
1 compute 2e6
1 send 3 7 2000
1 bcast 4096 0
1 allreduce 8 0
2 init
2 irecv -1 7 3
2 waitall
2 bcast 4096 0
2 allreduce 8 0
3 init
3 recv 1 7 2000
3 bcast 4096 0
3 allreduce 8 0
3 compute 4e6
";

/// Catches a collective that reduces nothing among the reductions.
#[test]
fn reductions_are_those_that_reduce() {
    let stats = json(&["trace", "stats", "nest@8,time=1,exchange=alltoall", "--json"]);
    let all = stats["collectives"].as_object().unwrap();
    assert_eq!(all.keys().collect::<Vec<_>>(), ["allreduce", "alltoall", "barrier"]);
    let reducing = |of: &Value| of["reductions"].as_object().is_some_and(|of| !of.is_empty());
    assert_eq!(all.values().map(reducing).collect::<Vec<_>>(), [true, false, false]);
}

/// Catches a count that is wrong in any table: this is all that the trace holds.
#[test]
fn all_that_a_small_trace_holds_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("actions.txt");
    fs::write(&trace, ACTIONS).unwrap();
    let stats = json(&["trace", "stats", trace.to_str().unwrap(), "--intervals", "4", "--json"]);
    assert_eq!([&stats["operations"], &stats["messages"], &stats["message_bytes"]], [24, 3, 2103]);
    let kinds = json!({
        "allreduce": 4, "broadcast": 4, "compute": 4, "irecv": 3, "isend": 3, "wait": 6
    });
    assert_eq!(stats["operations_by_kind"], kinds);
    let sizes = columns(&stats["message_sizes"], ["from_bytes", "to_bytes", "messages", "message_bytes"]);
    assert_eq!(sizes, json!([[2, 3, 1, 3], [64, 127, 1, 100], [1024, 2047, 1, 2000]]));
    let pairs = columns(&stats["matrix"]["rows"], ["from_rank", "to_rank", "messages", "message_bytes"]);
    assert_eq!(pairs, json!([[0, 1, 1, 100], [0, 2, 1, 3], [1, 3, 1, 2000]]));
    assert_eq!(stats["matrix"]["block_ranks"], 1);
    for (kind, from_bytes, bytes) in [("allreduce", 8, 32), ("broadcast", 4096, 16_384)] {
        let of = &stats["collectives"][kind];
        let all = ["calls", "non_blocking_calls", "send_bytes", "receive_bytes"].map(|key| of[key].clone());
        assert_eq!(json!(all), json!([4, 0, bytes, bytes]));
        let sizes = columns(&of["sizes"], ["from_bytes", "to_bytes", "calls", "send_bytes", "receive_bytes"]);
        assert_eq!(sizes, json!([[from_bytes, 2 * from_bytes - 1, 4, bytes, bytes]]));
    }
    let world = json!([{
        "first_rank": 0, "number": 0, "members": "world", "ranks": 4, "messages": 3, "message_bytes": 2103,
        "collective_calls": 8, "collective_send_bytes": 16_416, "collective_receive_bytes": 16_416
    }]);
    assert_eq!(stats["communicator_rows"], world);
    let messages = ["messages_sent", "bytes_sent", "messages_received", "bytes_received"];
    let by_rank = json!([[2, 103, 0, 0], [1, 2000, 1, 100], [0, 0, 1, 3], [0, 0, 1, 2000]]);
    assert_eq!(columns(&stats["rows"], messages), by_rank);
    let calls = ["operations", "receives", "waits", "collective_calls", "collective_send_bytes"];
    let by_rank = json!([[8, 0, 2, 2, 4104], [7, 1, 2, 2, 4104], [4, 1, 1, 2, 4104], [5, 1, 1, 2, 4104]]);
    assert_eq!(columns(&stats["rows"], calls), by_rank);
    assert_eq!(columns(&stats["rows"], ["computation_us"]), json!([[4000.0], [2000.0], [0.0], [4000.0]]));
    let kinds = json!({ "allreduce": 1, "broadcast": 1, "irecv": 1, "wait": 1 });
    assert_eq!(stats["rows"][2]["operations_by_kind"], kinds);
    // Four intervals of 2^20 ns: rank 0 after 1 ms is in the first, rank 1 after 2 ms in the second.
    let over_time = ["operations", "messages", "message_bytes", "collective_calls", "collective_send_bytes"];
    let intervals = columns(&stats["evolution"]["rows"], over_time);
    let expected = json!([[19, 2, 103, 5, 12_304], [4, 1, 2000, 2, 4104], [0, 0, 0, 0, 0], [1, 0, 0, 1, 8]]);
    assert_eq!(intervals, expected);
    let times = columns(&stats["evolution"]["rows"], ["from_us", "to_us"]);
    assert_eq!(times[1], json!([1048.576, 2097.152]));
}

/// Some columns of rows.
fn columns<const N: usize>(rows: &Value, keys: [&str; N]) -> Value {
    let row = |row: &Value| keys.iter().map(|key| row[*key].clone()).collect::<Value>();
    rows.as_array().unwrap().iter().map(row).collect()
}

/// Four ranks with communicators of the even and of the odd ones, and a copy of the world.
fn halves(path: &Path) {
    let mut writer = TraceWriter::create(path, TraceHeader { ranks: 4, ..TraceHeader::default() }).unwrap();
    for rank in 0..4 {
        writer.begin_rank(RankId(rank)).unwrap();
        let (half, copy) = (CommId(u64::from(rank % 2) << 32 | 1), CommId(2));
        let members = vec![RankRange { first: rank % 2, stride: 2, count: 2 }];
        writer.push(&Op::Communicator { comm: half, members }).unwrap();
        let members = vec![RankRange { first: 0, stride: 1, count: 4 }];
        writer.push(&Op::Communicator { comm: copy, members }).unwrap();
        writer.push(&Op::Compute { span: Span::from_us(1) }).unwrap();
        // Even ranks send to each other in their half, odd ones in the copy of the world.
        let comm = if rank % 2 == 0 { half } else { copy };
        let (to, bytes) = (RankId((rank + 2) % 4), Bytes::new(10 + u64::from(rank)));
        let (mode, tag, request) = (SendMode::Standard, 0, RequestId(0));
        writer.push(&Op::Isend { to, tag, comm, bytes, mode, buffer: None, request }).unwrap();
        let (from, tag, request) = (Some(to), Some(0), RequestId(1));
        let bytes = Bytes::new(64);
        writer.push(&Op::Irecv { from, tag, comm, bytes, matched: None, buffer: None, request }).unwrap();
        writer.push(&Op::Waitall { requests: vec![RequestId(0), RequestId(1)] }).unwrap();
        let sizes = CollectiveSizes { send: Bytes::new(8), receive: Bytes::new(16), ..Default::default() };
        let (kind, root, request, buffers) = (Collective::Allgather, None, None, Default::default());
        writer.push(&Op::Collective { kind, comm: half, root, sizes, request, buffers }).unwrap();
    }
    writer.finish().unwrap();
}

/// Catches messages and calls of one communicator that are counted for another, and members taken for the
/// world's.
#[test]
fn communicators_are_counted_apart() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("halves.weft");
    halves(&trace);
    let stats = json(&["trace", "stats", trace.to_str().unwrap(), "--json"]);
    assert_eq!(stats["communicators"], 3);
    let keys = ["first_rank", "number", "members", "ranks", "messages", "message_bytes", "collective_calls"];
    let rows = &stats["communicator_rows"];
    let expected = json!([
        [0, 0, "world", 4, 0, 0, 0],
        [0, 1, "some-ranks", 2, 2, 22, 2],
        [0, 2, "like-world", 4, 2, 24, 0],
        [1, 1, "some-ranks", 2, 0, 0, 2],
    ]);
    assert_eq!(columns(rows, keys), expected);
    assert_eq!(rows[3]["collective_send_bytes"], 16);
    assert_eq!(rows[3]["collective_receive_bytes"], 32);
    // The larger of what is given and taken is the size of a call.
    assert_eq!(stats["collectives"]["allgather"]["sizes"][0]["from_bytes"], 16);
    let text = String::from_utf8(weft(&["trace", "stats", trace.to_str().unwrap()]).stdout).unwrap();
    assert!(text.contains("some ranks") && text.contains("1.1"), "{text}");
}

/// Catches a stream that computes before the event that it awaits, and one whose core is taken for another.
#[test]
fn a_graph_is_told_over_time_too() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("two.goal");
    let text = "num_ranks 2\nrank 0 {\nc: calc 5000000 cpu 1\nd: calc 3000000\nd requires c\n\
                e: send 8b to 1 tag 2\ne irequires d\n}\nrank 1 {\nx: recv 8b from -1 tag -1\n\
                y: calc 2000000\ny requires x\n}\n";
    fs::write(&trace, text).unwrap();
    let stats = json(&["trace", "stats", trace.to_str().unwrap(), "--intervals", "8", "--json"]);
    // The message starts with the second computation, at 5 ms of 8. Intervals have 2^20 ns.
    let intervals = stats["evolution"]["rows"].as_array().unwrap();
    let messages: Vec<u64> = intervals.iter().map(|row| row["messages"].as_u64().unwrap()).collect();
    assert_eq!(messages, [0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(stats["computation_sum_us"], 10_000.0);
}

/// A trace of others, from the archive or the folder in which it lies; `None`: it is not there.
fn found(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("WEFT_TRACES").map_or(beside, PathBuf::from);
    let path = folder.join(name);
    if !path.exists() {
        skip(&format!("no {}; WEFT_TRACES names the folder", path.display()));
    }
    Some(path).filter(|path| path.exists())
}

/// Catches tables that count the same messages differently, in 27 ranks of AMG2013: the rows and columns of
/// the matrix, the ranks, the sizes, the intervals and the totals.
#[test]
fn the_tables_of_a_real_trace_agree() {
    let Some(archive) = found("dumpi-amg-27/df_AMG_n27_dumpi.tar.gz") else { return };
    let folder = tempfile::tempdir().unwrap();
    assert!(
        Command::new("tar").arg("xf").arg(archive).arg("-C").arg(folder.path()).status().unwrap().success()
    );
    let meta = folder.path().join("df_AMG_n27_dumpi/dumpi-2014.03.03.14.55.00.meta");
    let meta = meta.to_str().unwrap();
    let stats = json(&["trace", "stats", meta, "--json"]);
    let sum = |rows: &Value, key: &str| -> u64 {
        rows.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
    };
    let total = (stats["messages"].as_u64().unwrap(), stats["message_bytes"].as_u64().unwrap());
    assert_eq!(total, (15_524, 13_584_368));
    let intervals = &stats["evolution"]["rows"];
    for rows in [&stats["matrix"]["rows"], &stats["message_sizes"], &stats["communicator_rows"], intervals] {
        assert_eq!((sum(rows, "messages"), sum(rows, "message_bytes")), total);
    }
    let rows = &stats["rows"];
    assert_eq!((sum(rows, "messages_sent"), sum(rows, "bytes_sent")), total);
    assert_eq!((sum(rows, "messages_received"), sum(rows, "bytes_received")), total);
    assert_eq!(
        (sum(rows, "receives"), sum(rows, "operations")),
        (15_524, stats["operations"].as_u64().unwrap())
    );
    assert_eq!(sum(intervals, "operations"), stats["operations"].as_u64().unwrap());
    let pairs = stats["matrix"]["rows"].as_array().unwrap();
    assert_eq!(json!(pairs.len()), stats["pairs"]);
    for (rank, row) in rows.as_array().unwrap().iter().enumerate() {
        let of =
            |key: &str| json!(pairs.iter().filter(|pair| pair[key] == rank).cloned().collect::<Vec<_>>());
        assert_eq!(sum(&of("from_rank"), "message_bytes"), row["bytes_sent"].as_u64().unwrap());
        assert_eq!(sum(&of("to_rank"), "message_bytes"), row["bytes_received"].as_u64().unwrap());
    }
    // People see ten of 27 ranks, and are told of the others.
    let text = String::from_utf8(weft(&["trace", "stats", meta]).stdout).unwrap();
    assert!(text.contains("and 17 more ranks; --json has all"), "{text}");
    assert!(text.lines().count() < 100, "{text}");
    assert!(text.contains("× MPI_Bcast"), "{text}");
}

/// Catches a trace that is not told from results, a kind that is not drawn, and a page without its parts.
#[test]
fn traces_have_pictures_and_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("actions.txt"), ACTIONS).unwrap();
    halves(Path::new(&at("halves.weft")));
    let kinds = [
        ("operations", "broadcast"),
        ("message-sizes", "size: from this to below the next (B)"),
        ("collective-sizes", "allreduce"),
        ("communication-matrix", "from rank"),
        ("evolution", "time that a rank has computed (µs)"),
        ("ranks", "waits and probes"),
    ];
    for (kind, label) in kinds {
        let svg = at(&format!("{kind}.svg"));
        let drawn = json(&["plot", &at("actions.txt"), "--what", kind, "-o", &svg, "--json"]);
        assert_eq!(drawn["picture"]["kind"], kind);
        let text = fs::read_to_string(&svg).unwrap();
        let document = roxmltree::Document::parse(&text).unwrap();
        let texts = document.descendants().filter(|node| node.has_tag_name("text"));
        let texts: Vec<&str> = texts.filter_map(|node| node.text()).map(str::trim).collect();
        assert!(texts.contains(&label), "{kind}: {texts:?}");
        assert!(texts.contains(&"actions.txt (ti), 4 ranks, 24 operations"), "{texts:?}");
    }
    // The matrix is the usual picture: 100 bytes from rank 0 to rank 1.
    let drawn = json(&["plot", &at("actions.txt"), "-o", &at("usual.svg"), "--json"]);
    assert_eq!(drawn["picture"]["panels"][0]["content"]["cells"]["values"][0][1], 100.0 / 1024.0);
    let document = json(&["report", &at("halves.weft"), "-o", &at("trace.html"), "--json"]);
    let html = fs::read_to_string(at("trace.html")).unwrap();
    assert_eq!(html.matches("<svg").count(), kinds.len(), "{html}");
    assert!(!html.contains("<script") && html.contains("like world"));
    let sections = document["report"]["sections"].as_array().unwrap();
    for section in sections {
        let title = section["title"].as_str().unwrap();
        assert_eq!(
            html.matches(&format!(">{title}</")).count(),
            2,
            "{title}: in the contents, and its heading"
        );
    }
    assert_eq!(sections.len(), 7);
}

/// Catches a page that takes the place of its trace, an option that is passed over, and an error that does
/// not say the mend.
#[test]
fn what_cannot_be_shown_of_a_trace_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, page, picture) = (at("halves.weft"), at("page.html"), at("p.svg"));
    halves(Path::new(&trace));
    let bytes = fs::read(&trace).unwrap();
    let onto_itself = refused(&["report", &trace, "-o", &trace, "--force"]);
    assert!(onto_itself.contains("would write over"), "{onto_itself}");
    assert_eq!(fs::read(&trace).unwrap(), bytes);
    let said = refused(&["report", &trace, "-o", &page, "--explain"]);
    assert!(said.contains("weft replay -m MACHINE"), "{said}");
    assert!(refused(&["plot", &trace, "--run", "0", "-o", &picture]).contains("a trace has no runs"));
    assert!(refused(&["plot", &trace, &trace, "-o", &picture]).contains("name it alone"));
    let said = refused(&["plot", &trace, "--what", "fct-cdf", "-o", &picture]);
    assert!(said.contains("no picture `fct-cdf` of a trace; choose from operations"), "{said}");
    fs::write(at("silent.txt"), "0 compute 0\n1 compute 0\n").unwrap();
    let said = refused(&["plot", &at("silent.txt"), "-o", &picture]);
    assert!(said.contains("has nothing to draw as communication-matrix"), "{said}");
    for command in ["plot", "report"] {
        let out = if command == "plot" { &picture } else { &page };
        let said = refused(&[command, &at("nowhere.weft"), "-o", out]);
        assert!(said.contains("is not there") && said.contains("or a trace"), "{said}");
        fs::write(at("other.txt"), "no trace at all\n").unwrap();
        let said = refused(&[command, &at("other.txt"), "-o", out]);
        assert!(said.contains("begins as no trace does") && said.contains("name another file"), "{said}");
        fs::write(at("cut.weft"), &bytes[..bytes.len() / 2]).unwrap();
        let said = refused(&[command, &at("cut.weft"), "-o", out]);
        assert!(said.contains("cut.weft") && said.contains("copy it again"), "{said}");
        fs::create_dir_all(at("empty")).unwrap();
        let said = refused(&[command, &at("empty"), "-o", out]);
        assert!(said.contains("no run.json"), "{said}");
        fs::write(at("flops.txt"), "0 compute 5\n1 compute 5\n").unwrap();
        let said = refused(&[command, &at("flops.txt"), "-o", out]);
        assert!(said.contains("--speed 1Gf"), "{said}");
        let said = refused(&[command, &at("empty"), "-o", out, "--speed", "1Gf"]);
        assert!(said.contains("leave it out for results"), "{said}");
        assert!(!Path::new(out).exists());
    }
    assert!(weft(&["report", &at("flops.txt"), "-o", &page, "--speed", "1Gf"]).status.success());
    let said = refused(&["trace", "stats", &trace, "--intervals", "1"]);
    assert!(said.contains("a whole number from 2 to 10000"), "{said}");
}
