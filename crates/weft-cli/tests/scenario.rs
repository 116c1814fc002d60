//! `weft traffic --scenario`: flows of a file, under several ways to control congestion.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{json, refused};
use serde_json::Value;
use std::fs;

fn shipped(name: &str) -> String {
    format!("{}/../../scenarios/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn run(scenario: &str, more: &[&str]) -> Value {
    let file = shipped(scenario);
    let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", &file, "--quiet", "--json", "--check"];
    json(&[&words[..], more].concat())
}

fn row<'a>(report: &'a Value, congestion: &str) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().find(|row| row["congestion"] == congestion).unwrap()
}

fn number(row: &Value, group: usize, key: &str) -> f64 {
    row["groups"][group][key].as_f64().unwrap()
}

/// Catches an incast whose flows do not get their max-min shares under ACC, a victim that does not get what
/// the margin leaves, a row for a way that the machine cannot have, and one that is missing.
#[test]
fn the_incast_with_a_victim_converges_under_acc() {
    let report =
        run("incast-victim.toml", &["--set", "nic.model=overheads", "--congestion", "none,pause,acc"]);
    assert_eq!(report["rows"].as_array().unwrap().len(), 3);
    assert!(row(&report, "pause")["refused"].as_str().unwrap().contains("pause is not modelled"));
    let (none, acc) = (row(&report, "none"), row(&report, "acc"));
    // Packets of 256 B take 288 B and a word in lines of 100 Gb/s.
    let payload = 100.0 * 256.0 / 296.0;
    let (incast, victim) = (number(acc, 0, "throughput_gbps"), number(acc, 1, "throughput_gbps"));
    assert!(incast > 0.9 * payload && incast < payload, "{incast} of {payload}");
    assert!(victim > 0.9 * payload && victim < payload, "{victim} of {payload}");
    // Whole transfers count: one of the flows has 13 where the others have 12.
    assert!(number(acc, 0, "fairness") > 0.998, "{}", number(acc, 0, "fairness"));
    assert!(acc["queue_max_bytes"].as_u64().unwrap() < none["queue_max_bytes"].as_u64().unwrap());
}

/// Catches an interface that does not obey: under ACC the incast keeps less in queues than without.
#[test]
fn the_interface_of_carvnet_obeys() {
    let report = run("incast-victim.toml", &["--congestion", "none,acc", "--threads", "3"]);
    let queued = |way| row(&report, way)["queued_max_bytes"].as_u64().unwrap();
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
    let rate = |group| number(row(&report, "acc"), group, "throughput_gbps");
    // A quarter of a link for each of the hot ones; the free one has the rest of its own.
    assert!(rate(0) / 4.0 < 25.0 && rate(1) > 50.0, "hot {}, free {}", rate(0), rate(1));
}

/// Catches a comparison of nothing that ends well: the machine can have none of the ways.
#[test]
fn ways_that_are_all_refused_are_an_error() {
    let file = shipped("incast-victim.toml");
    let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", &file, "--congestion", "pause"];
    assert!(refused(&words).contains("pause is not modelled"));
}

/// Catches rows that depend on threads, or on being run alone.
#[test]
fn a_scenario_is_the_same_on_any_number_of_threads() {
    let rows = |threads: &str| {
        let more = ["--set", "nic.model=overheads", "--congestion", "dcqcn,ib", "--threads", threads];
        let report = run("incast-victim.toml", &more);
        report["rows"].as_array().unwrap().iter().map(|row| row["groups"].clone()).collect::<Vec<_>>()
    };
    let one = rows("1");
    assert!(["2", "3", "8"].iter().all(|threads| rows(threads) == one));
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
            "endpoint 0",
            "lower `rate`",
        ),
        (flows("from = \"0\"\nto = \"1\"\nsize = \"big\"\n"), "own.toml:9: `flows.size`", "\"64K\""),
        (flows("from = \"0-2\"\nto = \"3,4\"\nsize = \"1K\"\n"), "`flows.to`", "spread"),
        (flows("from = \"0\"\nto = \"1\"\nsize = \"1K\"\ncolour = \"red\"\n"), "colour", "unknown field"),
        (head.replace("10us", "0us") + "[[flows]]\n", "own.toml", "missing field"),
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
    let said =
        refused(&[&words[..], &["--set", "congestion.kind=acc", "--set", "fabric.kind=ideal"]].concat());
    assert!(said.contains("ideal network has no queues"), "{said}");
    let said = refused(
        &[&words[..], &["--set", "congestion.kind=hpcc", "--set", "fabric.flow_control=drop"]].concat(),
    );
    assert!(said.contains("congestion.kind=hpcc needs"), "{said}");
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
    assert!(number(row, 0, "fairness") > 0.8, "{row}");
    let file = shipped("incast-victim.toml");
    let words = ["traffic", "-m", "carvnet-spineleaf", "--scenario", &file];
    let error = refused(&[&words[..], &nscc[..]].concat());
    assert!(error.contains("fabric.flow_control=drop"), "{error}");
}
