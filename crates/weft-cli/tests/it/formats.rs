//! Traces of other programs, and traces in formats of theirs, through the command.

use crate::common::{json, refused, weft};
use std::fs;
use std::path::Path;
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};

/// Two ranks that compute, exchange messages of which one receive is a wildcard, and add something up.
fn exchange(path: &Path) {
    let mut writer = TraceWriter::create(path, TraceHeader { ranks: 2, ..TraceHeader::default() }).unwrap();
    let (comm, bytes, tag) = (CommId::WORLD, Bytes::new(20_000), 7);
    for rank in 0..2 {
        writer.begin_rank(RankId(rank)).unwrap();
        let other = RankId(1 - rank);
        for round in 0..20 {
            writer.push(&Op::Compute { span: Span::from_ps(1_234_567 + round) }).unwrap();
            let (mode, request) = (SendMode::Standard, RequestId(2));
            writer.push(&Op::Isend { to: other, tag, comm, bytes, mode, request, buffer: None }).unwrap();
            let (from, matched) = if round == 3 { (None, Some((other, tag))) } else { (Some(other), None) };
            let (tag, request) = (Some(tag), RequestId(3));
            writer.push(&Op::Irecv { from, tag, comm, bytes, matched, request, buffer: None }).unwrap();
            writer.push(&Op::Waitall { requests: vec![RequestId(2), RequestId(3)] }).unwrap();
            let sizes = CollectiveSizes { send: bytes, receive: bytes, element: 8, ..Default::default() };
            let (kind, root, request, buffers) = (Collective::Allreduce, None, None, Default::default());
            writer.push(&Op::Collective { kind, comm, root, sizes, request, buffers }).unwrap();
        }
    }
    writer.finish().unwrap();
}

/// Catches a conversion that changes what a replay takes, and a loss that nobody is told of.
#[test]
fn a_trace_survives_the_way_through_simgrid() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    exchange(Path::new(&path("there.weft")));
    let there = json(&["trace", "convert", &path("there.weft"), "-o", &path("through.ti"), "--json"]);
    assert_eq!((&there["format"], &there["operations"]), (&"ti".into(), &200.into()));
    let wildcards = "receives from anybody: written as from whom they received";
    assert_eq!(there["left_out"], serde_json::json!({ wildcards: 2 }));
    let back = json(&["trace", "convert", &path("through.ti"), "-o", &path("back.weft"), "--json"]);
    assert_eq!((&back["format"], &back["left_out"]), (&"weft".into(), &serde_json::json!({})));
    let time = |name: &str| {
        json(&["replay", "-m", "exanest", &path(name), "--quiet", "--json"])["rows"][0]["run_time_us"].clone()
    };
    let expected = time("there.weft");
    assert!(expected.as_f64().is_some_and(|us| us > 24.0), "{expected}");
    assert_eq!([time("through.ti"), time("back.weft")], [expected.clone(), expected]);
    let text = weft(&["trace", "convert", &path("there.weft"), "-o", &path("a"), "--format", "ti"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(&format!("the format cannot carry: 2 × {wildcards}")), "{text}");
    let said = refused(&["trace", "convert", &path("there.weft"), "-o", &path("x.foo")]);
    assert!(said.contains("give --format weft or --format ti or --format vef"), "{said}");
}

/// Catches a conversion to VEF that changes what a replay takes though nothing that counts is left out,
/// results that depend on threads, and a loss that nobody is told of.
#[test]
fn a_trace_survives_the_way_through_vef() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    exchange(Path::new(&path("there.weft")));
    let there = json(&["trace", "convert", &path("there.weft"), "-o", &path("through.vef"), "--json"]);
    assert_eq!((&there["format"], &there["operations"]), (&"vef".into(), &200.into()));
    assert_eq!(there["left_out"], serde_json::json!({ "tags of messages": 40 }));
    let back = json(&["trace", "convert", &path("through.vef"), "-o", &path("back.weft"), "--json"]);
    assert_eq!(back["left_out"], serde_json::json!({}));
    let replay = |name: &str, threads: &str| {
        let eager = ["--set", "messaging.eager_limit=32K", "--threads", threads];
        let words = ["replay", "-m", "exanest", &path(name), "--quiet", "--json"];
        let row = &json(&[&words[..], &eager[..]].concat())["rows"][0];
        ["run_time_us", "messages", "bytes"].map(|key| row[key].as_f64().unwrap())
    };
    let expected = replay("there.weft", "1");
    let found = replay("through.vef", "1");
    assert_eq!(found[1..], expected[1..]);
    assert!((found[0] / expected[0] - 1.0).abs() < 0.01, "{found:?} {expected:?}");
    for threads in ["1", "2", "3", "8"] {
        assert_eq!(replay("back.weft", threads), found, "{threads} threads");
    }
    let text = fs::read_to_string(path("through.vef")).unwrap();
    fs::write(path("cut.vef"), &text[..text.len() / 2]).unwrap();
    let said = refused(&["replay", "-m", "exanest", &path("cut.vef")]);
    assert!(said.contains("cut.vef: line "), "{said}");
    fs::write(path("more.vef"), text + "S 1 2 3\n").unwrap();
    let said = refused(&["trace", "info", &path("more.vef")]);
    assert!(said.contains("`S 1 2 3` is no record as VEF documents them"), "{said}");
}

/// Catches a speed that is guessed, and one that is asked for and not used.
#[test]
fn the_speed_of_simgrid_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("actions.txt");
    fs::write(&trace, "0 init\n0 compute 5e6\n0 send 1 0 8\n1 init\n1 recv 0 0 8\n").unwrap();
    let trace = trace.to_str().unwrap();
    let said = refused(&["replay", "-m", "exanest", trace]);
    assert!(said.contains("line 2 of rank 0") && said.contains("such as --speed 1Gf"), "{said}");
    let replay = |speed| json(&["replay", "-m", "exanest", trace, "--speed", speed, "--quiet", "--json"]);
    let time = |speed| replay(speed)["rows"][0]["run_time_us"].as_f64().unwrap();
    let difference = time("1Gf") - time("2Gf");
    assert!((difference - 2500.0).abs() < 0.001, "{difference}");
    let stats = json(&["trace", "stats", trace, "--speed", "1Gf", "--json"]);
    assert_eq!(stats["computation_max_us"], 5000.0);
    let said = refused(&["trace", "info", trace, "--speed", "fast"]);
    assert!(said.contains("write it as in a platform of SimGrid"), "{said}");
}

/// Catches results that depend on threads, notes that are not shown, and a run that cannot be run again.
#[test]
fn a_trace_of_liballprof_is_one_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    for rank in 0..4u32 {
        let (to, from) = ((rank + 1) % 4, (rank + 3) % 4);
        let text = format!(
            "MPI_Init:-:1:2:100\nMPI_Comm_rank:101:0,{rank},4:7:102\n\
             MPI_Irecv:110:5:100:11,8,8:{from}:3:0,{rank},4:1000:111\n\
             MPI_Send:105:5:100:11,8,8:{to}:3:0,{rank},4:130\nMPI_Wait:140:1000:7:150\n\
             MPI_Barrier:160:0,{rank},4:170\nMPI_Finalize:180:-\n"
        );
        fs::write(folder.path().join(format!("prof-{rank}.txt")), text).unwrap();
    }
    let trace = folder.path().join("prof-2.txt").to_str().unwrap().to_owned();
    let text = String::from_utf8(weft(&["trace", "info", &trace]).stdout).unwrap();
    let note = "note: 4 × calls that begin before the one before them ended: no computation";
    assert!(text.contains("liballprof") && text.contains(note), "{text}");
    let out = folder.path().join("out").to_str().unwrap().to_owned();
    let replay = |threads: &str| {
        let words = ["replay", "-m", "bxi3-dragonfly", &trace, "--quiet", "--json", "--threads", threads];
        let document = json(&[&words[..], &["-o", &out, "--force"]].concat());
        let row = &document["rows"][0];
        ["run_time_us", "messages", "bytes", "completion_time_mean_us"].map(|key| row[key].clone())
    };
    let [one, two, three] = ["1", "2", "3"].map(replay);
    assert_eq!((&one, &one), (&two, &three));
    // Four messages of the program, and those of the barrier.
    assert!(one[1].as_u64().is_some_and(|messages| messages > 4), "{one:?}");
    let again = weft(&["rerun", &out, "-o", &format!("{out}-again"), "--quiet"]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
    fs::remove_file(folder.path().join("prof-3.txt")).unwrap();
    let said = refused(&["replay", "-m", "exanest", &trace]);
    assert!(said.contains("rank 3 of 4 lies in") && said.contains("copy it beside this file"), "{said}");
}

/// Catches streams that are lost on the way through the command: a graph on two cores, its timeline, and what
/// cannot be followed through it yet.
#[test]
fn a_graph_of_goal_is_one_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (goal, weft_file, timeline) = (place("two.goal"), place("two.weft"), place("two.json"));
    let text = "num_ranks 2\nrank 0 {\nc: calc 5000000 cpu 1\nd: calc 3000000\nd requires c\n\
                e: send 8b to 1 tag 2\ne irequires d\n}\nrank 1 {\nx: recv 8b from -1 tag -1\n\
                y: calc 2000000\ny requires x\n}\n";
    fs::write(&goal, text).unwrap();
    let info = String::from_utf8(weft(&["trace", "info", &goal]).stdout).unwrap();
    assert!(info.contains("on 2 cores per rank"), "{info}");
    let replay = |trace: &str, threads: &str| {
        let words = ["replay", "-m", "exanest", trace, "--quiet", "--json", "--threads", threads];
        let row = &json(&words)["rows"][0];
        ["run_time_us", "computation_share", "communication_share"].map(|key| row[key].as_f64().unwrap())
    };
    // Rank 0 computes 5 and 3 ms and sends when that core is free; rank 1 then computes for 2 ms.
    let found @ [time, computation, communication] = replay(&goal, "1");
    assert!((10_000.0..10_010.0).contains(&time), "{time}");
    // 8 and 2 ms of two cores until 8 ms, and one until 10.
    assert!((computation - 10.0 / 26.0).abs() < 1e-3, "{computation}");
    assert!((computation + communication - 1.0).abs() < 1e-9, "{computation} {communication}");
    weft(&["trace", "convert", &goal, "-o", &weft_file]);
    for threads in ["1", "2", "3"] {
        assert_eq!(replay(&weft_file, threads), found);
    }
    weft(&["replay", "-m", "exanest", &goal, "--quiet", "--timeline", &timeline]);
    assert!(fs::read_to_string(&timeline).unwrap().contains("rank 0: core 1"));
    let said = refused(&["replay", "-m", "exanest", &goal, "--breakdown"]);
    assert!(said.contains("several streams or events"), "{said}");
}
