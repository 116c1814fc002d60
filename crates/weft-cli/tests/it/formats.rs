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
    assert!(
        said.contains("give --format weft or --format goal or") && said.contains("or --format vef"),
        "{said}"
    );
}

/// Six ranks with collectives of the world and of two communicators, one of which no format but ours has.
fn collectives(path: &Path, does_not_block: bool, header: TraceHeader) {
    const RANKS: u32 = 6;
    let header = TraceHeader { ranks: RANKS, ..header };
    let mut writer = TraceWriter::create(path, header).unwrap();
    let block = Bytes::new(3000);
    let sizes = |send, receive| CollectiveSizes { send, receive, element: 8, ..Default::default() };
    for rank in 0..RANKS {
        writer.begin_rank(RankId(rank)).unwrap();
        let half = CommId((u64::from(rank % 2) << 32) + 5);
        let members = vec![RankRange { first: rank % 2, stride: 2, count: RANKS / 2 }];
        writer.push(&Op::Communicator { comm: half, members }).unwrap();
        for round in 0..10 {
            let mut collective = |kind, comm, request| {
                let root = (kind == Collective::Broadcast).then_some(RankId(3));
                let sizes = if kind == Collective::Barrier {
                    sizes(Bytes::ZERO, Bytes::ZERO)
                } else {
                    sizes(block, block)
                };
                let buffers = Default::default();
                writer.push(&Op::Collective { kind, comm, root, sizes, request, buffers }).unwrap();
            };
            collective(Collective::Alltoall, CommId::WORLD, None);
            collective(Collective::Allreduce, half, None);
            collective(Collective::Broadcast, CommId::WORLD, None);
            let request = does_not_block.then_some(RequestId(0));
            collective(Collective::Scan, CommId::WORLD, request);
            writer.push(&Op::Compute { span: Span::from_ps(40_000_300 + u64::from(rank * round)) }).unwrap();
            if let Some(request) = request {
                writer.push(&Op::Wait { request }).unwrap();
            }
        }
        let (kind, comm, root, request) = (Collective::Barrier, CommId::WORLD, None, None);
        let (sizes, buffers) = (sizes(Bytes::ZERO, Bytes::ZERO), Default::default());
        writer.push(&Op::Collective { kind, comm, root, sizes, request, buffers }).unwrap();
    }
    writer.finish().unwrap();
}

/// The time of a replay on the ExaNeSt rack.
fn run_time(trace: &str, threads: &str) -> f64 {
    let words = ["replay", "-m", "exanest", trace, "--ppn", "1", "--quiet", "--json", "--threads", threads];
    json(&words)["rows"][0]["run_time_us"].as_f64().unwrap()
}

/// Catches an expansion that is not what a replay does: another algorithm, costs that are left out or counted
/// twice, messages that are taken for each other's, and results that depend on threads.
#[test]
fn expanded_collectives_take_as_long_as_they_did() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    collectives(Path::new(&path("there.weft")), false, TraceHeader::default());
    let expected = run_time(&path("there.weft"), "1");
    let convert = |from: &str, to: &str| {
        json(&["trace", "convert", &path(from), "-o", &path(to), "-m", "exanest", "--json"])
    };
    let by = |kind: &str, algorithm: &str, count: u32| (format!("{kind}: by {algorithm}"), count.into());
    let lacking = [by("allreduce", "recursive-doubling", 60), by("scan", "recursive-doubling", 60)];
    let others =
        [by("alltoall", "scattered", 60), by("broadcast", "binomial", 60), by("barrier", "dissemination", 6)];
    for (name, expanded) in [
        ("through.goal", [&lacking[..], &others[..]].concat()),
        ("through.bin", [&lacking[..], &others[..]].concat()),
        ("through.ti", lacking.to_vec()),
    ] {
        let there = convert("there.weft", name);
        assert_eq!(there["expanded"], serde_json::Value::Object(expanded.into_iter().collect()), "{name}");
        let back = convert(name, "back.weft");
        assert_eq!((&back["expanded"], &back["left_out"]), (&serde_json::json!({}), &serde_json::json!({})));
        fs::rename(path("back.weft"), path("last.weft")).unwrap();
        let found = run_time(&path(name), "1");
        assert!((found / expected - 1.0).abs() < 0.01, "{name}: {found} in the place of {expected}");
        for threads in ["2", "3", "8"] {
            assert_eq!(run_time(&path("last.weft"), threads), found, "{name}");
        }
    }
}

/// Catches collectives that do not block and are waited for where they begin, though the format can have them
/// beside, and a list that does not say so.
#[test]
fn collectives_that_do_not_block_are_branches_where_there_can_be_any() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    collectives(Path::new(&path("there.weft")), true, TraceHeader::default());
    let text = |name: &str| {
        let text =
            weft(&["trace", "convert", &path("there.weft"), "-o", &path(name), "-m", "exanest"]).stdout;
        String::from_utf8(text).unwrap()
    };
    let (goal, ti) = (text("through.goal"), text("through.ti"));
    assert!(goal.contains("expanded: 60 × scan: by recursive-doubling\n"), "{goal}");
    assert!(ti.contains("expanded: 60 × scan: by recursive-doubling, blocking, where it begins\n"), "{ti}");
    let times = ["there.weft", "through.goal", "through.ti"].map(|name| run_time(&path(name), "1"));
    // Beside the computation, and not before it.
    assert!(times[1] < times[2], "{times:?}");
    for threads in ["2", "3", "8"] {
        assert_eq!(run_time(&path("through.goal"), threads), times[1]);
    }
}

/// Catches a conversion to VEF that changes what a replay takes though nothing that counts is left out,
/// results that depend on threads, and a loss that nobody is told of.
#[test]
fn a_trace_survives_the_way_through_vef() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    exchange(Path::new(&path("there.weft")));
    let there = json(&["trace", "convert", &path("there.weft"), "-o", &path("through.vef"), "--json"]);
    // In the end each rank waits for its sends.
    assert_eq!((&there["format"], &there["operations"]), (&"vef".into(), &202.into()));
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

/// Catches streams that are written as one so that a wait of one keeps the send of another, for which the
/// other rank waits.
#[test]
fn streams_that_become_one_keep_no_sends() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let rank = |rank, other| {
        format!("rank {rank} {{\na: recv 8b from {other} tag 1\nb: send 8b to {other} tag 1 cpu 1\n}}\n")
    };
    fs::write(path("two.goal"), format!("num_ranks 2\n{}{}", rank(0, 1), rank(1, 0))).unwrap();
    for name in ["two.ti", "two.vef", "again.goal"] {
        weft(&["trace", "convert", &path("two.goal"), "-o", &path(name)]);
        let row = &json(&["replay", "-m", "exanest", &path(name), "--quiet", "--json"])["rows"][0];
        assert_eq!(row["messages"], 2, "{name}");
    }
}

/// Catches an output that takes the place of another rank's file of the trace that is read.
#[test]
fn files_of_other_ranks_are_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let actions = |rank| format!("# speed: 1Gf\n{rank} init\n{rank} compute 1000\n{rank} finalize\n");
    for rank in 0..2 {
        fs::write(path(&format!("{rank}.txt")), actions(rank)).unwrap();
    }
    fs::write(path("all.txt"), "0.txt\n1.txt\n").unwrap();
    let (all, other) = (path("all.txt"), path("1.txt"));
    for words in [
        &["trace", "convert", &all, "-o", &other, "--format", "ti", "--force"][..],
        &["report", &all, "-o", &other, "--force"],
        &["replay", "-m", "exanest", &all, "--quiet", "--timeline", &other, "--force"],
    ] {
        let said = refused(words);
        assert!(said.contains("1.txt"), "{words:?}: {said}");
        assert_eq!(fs::read_to_string(&other).unwrap(), actions(1), "{words:?}");
    }
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
    let results = place("results");
    weft(&["replay", "-m", "exanest", &goal, "--quiet", "--breakdown", "-o", &results]);
    // Each core of rank 0 waits for the other while that computes, or for the rank's end.
    let explained = json(&["explain", &results, "--json"]);
    let rows = explained["runs"][0]["ranks"][0]["categories"].as_array().unwrap();
    let time =
        |name: &str| rows.iter().find(|row| row["category"] == name).unwrap()["time_us"].as_f64().unwrap();
    let (computes, waits) = (time("computation"), time("late partner"));
    assert!((computes - 8_000.0).abs() < 1e-6 && (8_000.0..8_005.0).contains(&waits), "{computes} {waits}");
}

/// Catches data of windows that goes elsewhere, or nowhere, fences that wait for nobody, and a window with
/// locks that is lost without a word.
#[test]
fn windows_with_fences_become_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let header = TraceHeader { ranks: 4, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(path("there.weft"), header).unwrap();
    let (fenced, locked, comm, buffer) = (WindowId(1), WindowId(2), CommId::WORLD, None);
    for rank in 0..4 {
        writer.begin_rank(RankId(rank)).unwrap();
        let access = |kind, window, to: u32, bytes, request| {
            let (target, bytes) = (RankId(to % 4), Bytes::new(bytes));
            Op::OneSided { kind, window, target, bytes, buffer, request }
        };
        let sync = |kind, window, target| Op::Sync { kind, window, target };
        let request = Some(RequestId(0));
        for op in [
            Op::Window { window: fenced, comm, bytes: Bytes::new(1 << 20), buffer },
            Op::Window { window: locked, comm, bytes: Bytes::new(1 << 20), buffer },
            sync(WindowSync::Fence, fenced, None),
            access(OneSided::Put, fenced, rank + 1, 600_000, None),
            access(OneSided::Get, fenced, rank + 2, 300, request),
            Op::Compute { span: Span::from_us(u64::from(rank)) },
            access(OneSided::Accumulate, fenced, 0, 8, None),
            Op::Wait { request: RequestId(0) },
            sync(WindowSync::Fence, fenced, None),
            sync(WindowSync::Lock, locked, Some(RankId(0))),
            access(OneSided::Put, locked, 0, 8, None),
            sync(WindowSync::Unlock, locked, Some(RankId(0))),
            sync(WindowSync::Free, fenced, None),
        ] {
            writer.push(&op).unwrap();
        }
    }
    writer.finish().unwrap();
    let there = json(&["trace", "convert", &path("there.weft"), "-o", &path("through.goal"), "--json"]);
    let expected = serde_json::json!({
        "window: by messages": 4, "win_fence: by messages": 8, "win_free: by messages": 4,
        "put: by messages": 4, "get: by messages, waited for in the next fence": 4,
        "accumulate: by messages": 4, "barrier: by dissemination": 16,
    });
    assert_eq!(there["expanded"], expected);
    assert_eq!(there["left_out"]["win_lock"], 4);
    let stats = json(&["trace", "stats", &path("through.goal"), "--json"]);
    // Puts, requests of gets and their answers, accumulates of three ranks, and four barriers of two rounds.
    assert_eq!(stats["operations_by_kind"]["isend"], 4 + 4 + 4 + 3 + 4 * 4 * 2);
    let time = run_time(&path("through.goal"), "1");
    // 600,000 B at 19.2 Gb/s, the fastest of the links, are 250 us.
    assert!(time > 250.0, "{time}");
    assert_eq!(run_time(&path("through.goal"), "3"), time);
}

/// Catches a trace of weft run that is expanded by another library than it is replayed with, and settings
/// that are lost without a word.
#[test]
fn a_trace_of_virtual_time_is_expanded_by_the_library_it_was_recorded_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let header = TraceHeader {
        mpi_library: "MPICH Version:\t5.0.2".to_owned(),
        virtual_time: Some("none".to_owned()),
        buffered_limit: Some(4096),
        ..TraceHeader::default()
    };
    collectives(Path::new(&path("there.weft")), false, header);
    let convert = |to: &str| {
        json(&["trace", "convert", &path("there.weft"), "-o", &path(to), "-m", "exanest", "--json"])
    };
    let there = convert("through.goal");
    assert_eq!(there["expanded"]["allreduce: by rabenseifner"], 60);
    let settings: Vec<&str> =
        there["recorded_with"].as_array().unwrap().iter().flat_map(|it| it.as_str()).collect();
    assert!(settings.contains(&"messaging.profile=mpich-5"), "{settings:?}");
    assert_eq!(convert("same.weft")["recorded_with"], serde_json::json!([]));
    let expected = run_time(&path("there.weft"), "1");
    let goal = path("through.goal");
    let mut words = vec!["replay", "-m", "exanest", &goal, "--ppn", "1", "--quiet", "--json"];
    words.extend(settings.iter().flat_map(|setting| ["--set", *setting]));
    let found = json(&words)["rows"][0]["run_time_us"].as_f64().unwrap();
    assert!((found / expected - 1.0).abs() < 0.01, "{found} in the place of {expected}");
}

/// A number in protobuf's form.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Bytes behind their length, and a field of a message that holds them.
fn sized(bytes: &[u8]) -> Vec<u8> {
    [varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [vec![number << 3 | 2], sized(bytes)].concat()
}

/// A node of Chakra: id, type, time in microseconds, and the ids of those that it depends on.
fn chakra_node([id, kind, micros]: [u64; 3], depends_on: &[u8], attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut node = [vec![0x08], varint(id), vec![0x18], varint(kind), vec![0x38], varint(micros)].concat();
    node.extend(field(5, depends_on));
    for (name, number) in attributes {
        let value = [vec![9 << 3], varint(*number)].concat();
        node.extend(field(10, &[field(1, name.as_bytes()), value].concat()));
    }
    sized(&node)
}

/// Catches communication that does not run beside computation, or that holds it up, and sends that wait for
/// receives which come after them.
#[test]
fn chakra_overlaps_communication_with_computation() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let metadata = sized(&field(1, b"0.0.4"));
    for rank in 0..4 {
        let (to, from) = ((rank + 1) % 4, (rank + 3) % 4);
        let nodes = [
            metadata.clone(),
            chakra_node([1, 4, 5000], &[], &[]),
            chakra_node([2, 7, 0], &[], &[("comm_type", 0), ("comm_size", 100_000)]),
            chakra_node([3, 4, 3000], &[2], &[]),
            chakra_node([4, 5, 0], &[3], &[("comm_dst", to), ("comm_size", 100_000), ("comm_tag", 1)]),
            chakra_node([5, 6, 0], &[4], &[("comm_src", from), ("comm_size", 100_000), ("comm_tag", 1)]),
        ];
        fs::write(place(&format!("run.{rank}.et")), nodes.concat()).unwrap();
    }
    let (trace, converted) = (place("run.2.et"), place("run.weft"));
    let replay = |trace: &str, threads: &str| {
        let words = ["replay", "-m", "exanest", trace, "--quiet", "--json", "--threads", threads];
        json(&words)["rows"][0]["run_time_us"].as_f64().unwrap()
    };
    // The first computation hides the reduction, and the exchange follows the second.
    let time = replay(&trace, "1");
    assert!((8050.0..9000.0).contains(&time), "{time}");
    weft(&["trace", "convert", &trace, "-o", &converted]);
    for threads in ["1", "2", "3"] {
        assert_eq!(replay(&converted, threads), time);
    }
    let info = String::from_utf8(weft(&["trace", "info", &trace]).stdout).unwrap();
    assert!(info.contains("chakra") && info.contains("on 2 cores per rank"), "{info}");
    fs::remove_file(place("run.1.et")).unwrap();
    let said = refused(&["replay", "-m", "exanest", &trace]);
    assert!(said.contains("rank 1 of ranks 0 to 3 lies in") && said.contains("copy it beside"), "{said}");
}
