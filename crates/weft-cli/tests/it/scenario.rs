//! `weft traffic --scenario`: flows of a file, under several ways to control congestion.

use crate::common::{group, json, number, refused, rows, weft};
use serde_json::Value;
use std::fs;
use std::path::Path;
use weft_formats::{TraceHeader, TraceWriter};
use weft_trace::op::{CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId, Span};

fn shipped(name: &str) -> String {
    format!("{}/../../scenarios/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run(scenario: &str, more: &[&str]) -> Value {
    let file = shipped(scenario);
    let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", &file, "--quiet", "--json", "--check"];
    json(&[&words[..], more].concat())
}

/// The first row under one way to control congestion: what it says of the run is the same in all of them.
fn run_of<'a>(report: &'a Value, congestion: &str) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().find(|row| row["congestion"] == congestion).unwrap()
}

/// Catches an incast whose flows do not get their max-min shares under ACC, a victim that does not get what
/// the margin leaves, and a row that is missing.
#[test]
fn the_incast_with_a_victim_converges_under_acc() {
    let report =
        run("incast-victim.toml", &["--set", "nic.model=overheads", "--congestion", "none,pause,acc"]);
    assert_eq!(report["rows"].as_array().unwrap().len(), 6);
    let of = |way, name, key| number(group(&report, way, name), key);
    // Its victim waits behind paused links, as it waits for credits.
    assert!(of("pause", "incast", "paused_us") > 100.0 && of("none", "incast", "paused_us") == 0.0);
    assert!(of("pause", "bandwidth", "throughput_gbps") < 20.0);
    // Packets of 256 B take 288 B on the 102.4 Gb/s of an endpoint, and a word more on the 100 Gb/s between
    // switches, where the victim has a way of its own.
    for (name, payload) in [("incast", 102.4 * 256.0 / 288.0), ("bandwidth", 100.0 * 256.0 / 296.0)] {
        let rate = of("acc", name, "throughput_gbps");
        assert!(rate > 0.9 * payload && rate < payload, "{name}: {rate} of {payload}");
    }
    let fairness = of("acc", "incast", "fairness");
    assert!(fairness > 0.998, "{fairness}");
    let queue = |way| of(way, "incast", "queue_max_bytes");
    assert!(queue("acc") < queue("none"));
}

/// Catches an interface that does not obey: under ACC the incast keeps less in queues than without.
#[test]
fn the_interface_of_carvnet_obeys() {
    let report = run("incast-victim.toml", &["--congestion", "none,acc", "--threads", "3"]);
    let queued = |way| number(run_of(&report, way), "queued_max_bytes");
    assert!(queued("acc") < queued("none"), "{} with, {} without", queued("acc"), queued("none"));
}

/// Catches an interface that hands over packets of a flow that may not go: a flow to an idle endpoint would
/// wait behind one to a hot spot.
#[test]
fn a_held_flow_does_not_hold_up_another_of_its_endpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    let head = "[scenario]\ntitle = \"two flows of an endpoint\"\ntime = \"600us\"\nwarm_up = \"200us\"\n";
    let flow = |name: &str, from: &str, to: &str| {
        let ends = format!("from = \"{from}\"\nto = \"{to}\"\nsize = \"64K\"\n");
        format!("[[flows]]\nname = \"{name}\"\nrole = \"background\"\n{ends}")
    };
    let flows = flow("hot", "0,4,5,8", "15") + &flow("free", "0", "1");
    fs::write(&path, head.to_owned() + &flows).unwrap();
    let sets = ["--set", "nic.model=overheads", "--congestion", "acc"];
    let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", path.to_str().unwrap(), "--json"];
    let report = json(&[&words[..], &sets].concat());
    let rate = |name| number(group(&report, "acc", name), "throughput_gbps");
    let (hot, free) = (rate("hot"), rate("free"));
    // A quarter of a link for each of the hot ones; the free one has the rest of its own.
    assert!(hot / 4.0 < 25.0 && free > 50.0, "hot {hot}, free {free}");
}

/// Catches a row for a way that the machine cannot have, and a comparison of nothing that ends well: the
/// machine can have none of the ways.
#[test]
fn ways_that_are_all_refused_are_an_error() {
    let file = shipped("incast-victim.toml");
    // A buffer that does not hold what still comes after a pause.
    let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", &file, "--set", "switch.buffer=4K"];
    let report = json(&[&words[..], &["--congestion", "none,pause", "--json"]].concat());
    assert!(run_of(&report, "pause")["refused"].as_str().unwrap().contains("a link with less latency"));
    assert!(
        refused(&[&words[..], &["--congestion", "pause"]].concat()).contains("does not hold the head-room")
    );
}

/// Catches rows that depend on threads, or on being run alone.
#[test]
fn a_scenario_is_the_same_on_any_number_of_threads() {
    let run = |threads: &str| {
        let more = ["--set", "nic.model=overheads", "--congestion", "dcqcn,ib", "--threads", threads];
        rows(&run("incast-victim.toml", &more))
    };
    let one = run("1");
    assert!(["2", "3", "8"].iter().all(|threads| run(threads) == one));
}

/// Catches mistakes of a file that are reported without line, field or mend.
#[test]
fn mistakes_are_named_with_line_field_and_mend() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    let head = "[scenario]\ntitle = \"x\"\ntime = \"10us\"\n";
    let flows = |more: &str| format!("{head}[[flows]]\nname = \"a\"\nrole = \"victim\"\n{more}");
    let cases = [
        (
            flows("from = \"0\"\nto = \"99\"\nsize = \"1K\"\n"),
            "own.toml:8: `flows.to`",
            "numbers from 0 to 15",
        ),
        (flows("from = \"0\"\nto = \"1\"\n"), "`flows.size`", "write size"),
        (
            flows("from = \"0\"\nto = \"1\"\nsize = \"1K\"\nrate = \"200Gb/s\"\n"),
            "own.toml:10: `flows.rate`: the flows of endpoint 0 have rates of 200Gb/s",
            "write a lower rate",
        ),
        (
            flows("from = \"0,0\"\nto = \"1\"\nsize = \"1K\"\n"),
            "own.toml:7: `flows.from`: \"0,0\" has endpoint 0 twice",
            "a comma is between two endpoints",
        ),
        (flows("from = \"0\"\nto = \"1\"\nsize = \"big\"\n"), "own.toml:9: `flows.size`", "\"64K\""),
        (flows("from = \"0-2\"\nto = \"3,4\"\nsize = \"1K\"\n"), "`flows.to`", "spread"),
        (
            flows("from = \"0\"\nto = \"1\"\nsize = \"1K\"\ncolour = \"red\"\n"),
            "own.toml:10: unknown field `colour`",
            "write one of these",
        ),
        (head.replace("10us", "0us") + "[[flows]]\n", "own.toml:4: missing field `name`", "add it"),
        (
            flows("from = \"0\"\nto = \"1\"\nsize = 4096\n"),
            "own.toml:9: `size`: invalid type: integer `4096`",
            "in quotes, with its unit where it has one: \"4096\"",
        ),
        (
            flows("from = \"0\"\nto = \"1\"\nsize = \"1K\"\ntransfers = -1\n"),
            "own.toml:10: `transfers`: invalid value: integer `-1`",
            "write a whole number without quotes",
        ),
        (
            flows("from = \"0\"\nto = \"1\"\ndistribution = 7\n"),
            "own.toml:9: `distribution`: expected the name of a distribution",
            "[[100, 0.5], [1000, 1.0]]",
        ),
        (
            flows("from = \"0\"\nto = \"1\"\nsize = \"1K\"\n").replace("\"a\"", "\"\""),
            "own.toml:5: `flows.name`: it is empty",
            "write a name",
        ),
        (
            flows("from = \"0\"\nto = \"1\"\ndistribution = [[100, -0.5], [500, 2.0]]\n"),
            "own.toml:9: `flows.distribution`: -0.5 is no share",
            "from 0.0 to 1.0",
        ),
        (
            flows("from = \"0\"\nto = \"1\"\ndistribution = [[100, 0.5], [500, nan]]\n"),
            "NaN is no share",
            "from 0.0 to 1.0",
        ),
        (
            flows("from = \"0\"\nto = \"1\"\nsize = \"1K\"\n").replace("\"a\"", "\"\\u001b[31ma\""),
            "own.toml:5: `flows.name`: it holds a control character, \\u{1b}",
            "leave it out",
        ),
        (
            flows("from = \"0\"\nto = \"1\"\nsize = \"8000000G\"\n"),
            "own.toml:9: `flows.size`: the machine's interface carries no message",
            "at most \"512G\"",
        ),
        (
            flows("from = \"0\"\nto = \"1\"\ndistribution = [[1, 0.5], [999999999999, 1.0]]\n"),
            "`flows.distribution`: the machine's interface",
            "at most \"512G\"",
        ),
        (
            flows("from = \"0\"\nto = \"1\"\nsize = \"1K\"\n").replace("role = \"victim\"\n", ""),
            "own.toml:4: `flows.role`: it is missing",
            "\"victim\", \"aggressor\" or \"background\"",
        ),
    ];
    for (text, place, mend) in cases {
        fs::write(&path, &text).unwrap();
        let said = refused(&["traffic", "-m", "carvnet-spineleaf", "--scenario", path.to_str().unwrap()]);
        assert!(said.contains(place) && said.contains(mend), "{text}\n{said}");
    }
    let file = shipped("incast-victim.toml");
    let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", &file];
    let said = refused(&[&words[..], &["--congestion", "none,tcp"]].concat());
    assert!(said.contains("there is no `tcp`") && said.contains("dcqcn"), "{said}");
    // Without a scenario it would mean nothing.
    let without = ["traffic", "-m", "carvnet-spineleaf", "--congestion", "none,acc"];
    assert!(refused(&without).contains("--scenario"));
    assert!(refused(&[&without[..], &["--load", "0.5"]].concat()).contains("cannot be used with"));
    let said =
        refused(&[&words[..], &["--set", "congestion.kind=acc", "--set", "fabric.kind=ideal"]].concat());
    assert!(said.contains("ideal network has no queues"), "{said}");
    let said = refused(
        &[&words[..], &["--set", "congestion.kind=hpcc", "--set", "fabric.flow_control=drop"]].concat(),
    );
    assert!(
        said.contains("by hpcc needs a network that loses no packets") && said.contains("--set:1:17"),
        "{said}"
    );
    let said =
        refused(&[&words[..], &["--set", "congestion.kind=ib", "--set", "congestion.margin=10"]].concat());
    assert!(said.contains("`congestion.margin` means nothing"), "{said}");
}

/// Catches packets that a full buffer loses for good under an algorithm that answers each, trimming that does
/// not reach the command, and one that nothing could mend.
#[test]
fn trimmed_packets_go_again() {
    let nscc = ["--set", "congestion.kind=nscc", "--set", "congestion.trim=true"];
    let report = run("incast-victim.toml", &[&["--set", "fabric.flow_control=drop"], &nscc[..]].concat());
    let row = &report["rows"][0];
    let count = |key: &str| row[key].as_u64().unwrap();
    assert!(count("packets_trimmed") > 0 && count("packets_resent") >= count("packets_trimmed"), "{row}");
    assert_eq!(count("packets_dropped") + count("transfers_failed"), 0, "{row}");
    // Whoever loses a packet waits a round trip and not a time-out: none of the five starves.
    assert!(number(row, "fairness") > 0.8, "{row}");
    // Windows do not wait for answers that are for more than they hold.
    assert!(number(row, "throughput_gbps") > 70.0, "{row}");
    assert!(number(&report["rows"][1], "throughput_gbps") > 50.0, "{report}");
    let file = shipped("incast-victim.toml");
    let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", &file];
    let error = refused(&[&words[..], &nscc[..]].concat());
    assert!(error.contains("fabric.flow_control = \"drop\"") && error.contains("--set:1:17"), "{error}");
}

/// A trace of two ranks that compute for 100 ns and send a message of 16 KB to each other in turn, so often.
fn ping_pong(path: &Path, rounds: u32) {
    let header = TraceHeader { ranks: 2, ..TraceHeader::default() };
    let mut writer = TraceWriter::create(path, header).unwrap();
    let (bytes, tag, comm, buffer, request) = (Bytes::new(16 << 10), 1, CommId::WORLD, None, RequestId(0));
    for rank in 0..2 {
        let other = RankId(1 - rank);
        let send = Op::Isend { to: other, tag, comm, bytes, mode: SendMode::Standard, buffer, request };
        let receive =
            Op::Irecv { from: Some(other), tag: Some(tag), comm, bytes, matched: None, buffer, request };
        writer.begin_rank(RankId(rank)).unwrap();
        for _ in 0..rounds {
            writer.push(&Op::Compute { span: Span::from_ns(100) }).unwrap();
            for op in if rank == 0 { [&send, &receive] } else { [&receive, &send] } {
                writer.push(op).unwrap();
                writer.push(&Op::Wait { request }).unwrap();
            }
        }
    }
    writer.finish().unwrap();
}

/// Two ranks at endpoints 1 and 15, and perhaps an incast to 15.
fn with_application(folder: &Path, flows: bool) -> String {
    ping_pong(&folder.join("ping-pong.weft"), 20);
    let head = "[scenario]\ntitle = \"an application\"\ntime = \"20ms\"\n";
    let application = "[[applications]]\nname = \"ping-pong\"\nrole = \"victim\"\n\
                       trace = \"ping-pong.weft\"\non = \"1,15\"\nranks_per_host = 1\n";
    let incast = "[[flows]]\nname = \"incast\"\nrole = \"background\"\nfrom = \"0,4,5,8,9\"\nto = \"15\"\n\
                  size = \"64K\"\n";
    let path = folder.join(if flows { "beside.toml" } else { "alone.toml" });
    fs::write(&path, format!("{head}{application}{}", if flows { incast } else { "" })).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Catches an application of a scenario that is not what `weft replay` replays; flows beside it that do not
/// slow it down; a run that goes on when it has ended; and congestion control that does not help it.
#[test]
fn an_application_runs_beside_flows() {
    let folder = tempfile::tempdir().unwrap();
    let run = |flows: bool, more: &[&str]| {
        let file = with_application(folder.path(), flows);
        let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", &file, "--json", "--check"];
        json(&[&words[..], more].concat())
    };
    let application = |report: &Value, way| number(group(report, way, "ping-pong"), "completion_max_us");
    let alone = run(false, &[]);
    let map = folder.path().join("map");
    fs::write(&map, "1\n15\n").unwrap();
    let trace = folder.path().join("ping-pong.weft");
    let replay = ["replay", "-m", "carvnet-spineleaf", trace.to_str().unwrap(), "--json", "--map"];
    let replayed = json(&[&replay[..], &[map.to_str().unwrap()]].concat());
    assert_eq!(alone["rows"][0]["ranks"], 2);
    let time_alone = application(&alone, "as the machine");
    assert_eq!(time_alone, number(&replayed["rows"][0], "run_time_us"));

    let beside = run(true, &["--congestion", "none,acc"]);
    let time = |way| application(&beside, way);
    assert!(time("none") > 1.5 * time_alone, "{beside}");
    assert!(time("acc") < time("none"), "{beside}");
    let incast = group(&beside, "none", "incast");
    assert!(number(incast, "run_time_us") < time("none") + 60.0, "the run goes on: {incast}");
    assert!(number(incast, "throughput_gbps") > 50.0, "{incast}");
    for threads in ["1", "2", "3", "8"] {
        let again = rows(&run(true, &["--congestion", "none", "--threads", threads]));
        assert_eq!(again, rows(&beside)[..again.len()], "{threads} threads");
    }
}

/// Catches a computation that a scenario does not scale as `weft replay --compute-scale` does, and a factor
/// that is none.
#[test]
fn the_computation_of_an_application_is_scaled() {
    let folder = tempfile::tempdir().unwrap();
    let file = with_application(folder.path(), false);
    let text = fs::read_to_string(&file).unwrap();
    let run = |scale: &str| {
        fs::write(&file, format!("{text}compute_scale = {scale}\n")).unwrap();
        json(&["traffic", "-m", "carvnet-spineleaf", "--scenario", &file, "--json"])
    };
    let map = folder.path().join("map");
    fs::write(&map, "1\n15\n").unwrap();
    let trace = folder.path().join("ping-pong.weft");
    let mut before = 0.0;
    for scale in ["0", "0.25", "3.0"] {
        let words = ["replay", "-m", "carvnet-spineleaf", trace.to_str().unwrap(), "--json"];
        let more = ["--map", map.to_str().unwrap(), "--compute-scale", scale];
        let replayed = json(&[&words[..], &more].concat());
        let report = run(scale);
        let found = number(&report["rows"][0], "completion_max_us");
        assert_eq!(found, number(&replayed["rows"][0], "run_time_us"), "{scale}");
        assert!(found > before, "{scale}: {found}, and {before} with less");
        before = found;
    }
    fs::write(&file, format!("{text}compute_scale = -1.0\n")).unwrap();
    let said = refused(&["traffic", "-m", "carvnet-spineleaf", "--scenario", &file]);
    assert!(said.contains("applications.compute_scale") && said.contains("write a number from 0"), "{said}");
}

/// Catches a result with an application that cannot be run again from another folder.
#[test]
fn a_scenario_with_an_application_is_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = with_application(folder.path(), true);
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", &file, "-o", out, "--telemetry", "50us"];
    assert!(weft(&words).status.success());
    let again = weft(&["rerun", out]);
    assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
}

/// Catches mistakes around applications that are reported without line, field or mend.
#[test]
fn an_application_that_cannot_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = with_application(folder.path(), false);
    let text = fs::read_to_string(&file).unwrap();
    let cases = [
        (text.replace("ping-pong.weft", "none.weft"), "alone.toml:7: `applications.trace`", "weft record"),
        (
            text.replace("\"ping-pong.weft\"\n", "\"none.weft\"\nmade_by = \"make none\"\n"),
            "there is no \"none.weft\"",
            "make it: make none",
        ),
        (text.replace("1,15", "1,99"), "`applications.on`", "numbers from 0 to 15"),
        (
            text.replace("1,15", "1"),
            "alone.toml:8: `applications.on`: the trace has 2 ranks, and there are 1 places",
            "name more endpoints, or raise `ranks_per_host`",
        ),
        (
            text.replace("\"ping-pong.weft\"", "\".\""),
            "alone.toml:7: `applications.trace`: \".\" is no regular file",
            "name a trace",
        ),
        (
            text.replace("ranks_per_host = 1", "ranks_per_host = 0"),
            "`applications.ranks_per_host`",
            "1 or more",
        ),
        (text.replace("\"victim\"", "\"guest\""), "`applications.role`", "\"aggressor\""),
        (text.replace("20ms", "never"), "`scenario.time`", "1ms"),
    ];
    for (text, place, mend) in cases {
        fs::write(&file, &text).unwrap();
        let said = refused(&["traffic", "-m", "carvnet-spineleaf", "--scenario", &file]);
        assert!(said.contains(place) && said.contains(mend), "{text}\n{said}");
    }
}

/// Catches a program that waits for ever and is said to have ended well, and one that runs out of time
/// without a word.
#[test]
fn an_application_that_does_not_end_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = with_application(folder.path(), false);
    let words = ["traffic", "-m", "carvnet-spineleaf", "--set", "nic.model=overheads", "--scenario", &file];
    let all_lost = ["--set", "faults=[{drop=1000000}]"];
    let lost = weft(&[&words[..], &all_lost].concat());
    let said = String::from_utf8_lossy(&lost.stderr);
    assert_eq!(lost.status.code(), Some(1), "{said}");
    assert!(said.contains("lost-data") && said.contains("\"ping-pong\": rank"), "{said}");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("20ms", "20us")).unwrap();
    let short = weft(&words);
    assert!(short.status.success());
    let said = String::from_utf8_lossy(&short.stdout);
    assert!(said.contains("ping-pong has not ended; raise `time`"), "{said}");
}

/// Catches a transient that is told without congestion control, or not at all.
#[test]
fn new_shares_are_found_after_flows_begin_and_stop() {
    let report = run("new-shares.toml", &["--congestion", "none,acc"]);
    assert_eq!(run_of(&report, "none")["transients"], serde_json::json!([]));
    let found = run_of(&report, "acc")["transients"].as_array().unwrap();
    let of = |number: usize, key: &str| found[number][key].as_f64().unwrap();
    assert_eq!((found.len(), of(0, "at_us"), of(1, "at_us")), (2, 200.0, 400.0));
    // Rates are set anew at pulses, 20 us apart; a flow that has stopped is found out by a few.
    assert!(of(0, "settled_after_us") < 60.0 && of(1, "settled_after_us") < 100.0, "{found:?}");
}
