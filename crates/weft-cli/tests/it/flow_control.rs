//! `fabric.flow_control`: credits, pause and drop through the whole program.

use crate::common::{json, refused, weft};
use serde_json::Value;

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

const INCAST: &str = "traffic -m ethernet-100g-spineleaf --set topology.leaves=4 --set topology.spines=2 \
                      --set topology.endpoints_per_leaf=8 --pattern incast --load 0.5 --time 40us --check \
                      --quiet --json";

fn row(sets: &str, threads: u32) -> Value {
    let mut row = json(&words(&format!("{INCAST} --threads {threads} {sets}")))["rows"][0].clone();
    // Real time and memory.
    for key in ["build_time_s", "packet_hops_per_second", "peak_memory_bytes"] {
        row.as_object_mut().unwrap().remove(key).unwrap();
    }
    row
}

/// Catches a choice that is not made, a loss under credits or pause, losses that are not in the row, and a
/// row that depends on threads.
#[test]
fn an_incast_waits_pauses_or_loses() {
    for (flow, pauses, loses) in [("credits", false, false), ("pause", true, false), ("drop", false, true)] {
        let sets = format!("--set fabric.flow_control={flow}");
        let one = row(&sets, 1);
        assert_eq!(one["pause_frames"].as_u64().unwrap() > 0, pauses, "{flow}: {one}");
        assert_eq!(one["paused_us"].as_f64().unwrap() > 0.0, pauses, "{flow}: {one}");
        assert_eq!(one["packets_dropped_full"].as_u64().unwrap() > 0, loses, "{flow}: {one}");
        assert_eq!(one["packets_dropped"], one["packets_dropped_full"], "{flow}: {one}");
        assert_eq!(one["saturated"], Value::from(true), "{flow}: {one}");
        for threads in [2, 3, 8] {
            assert_eq!(one, row(&sets, threads), "{flow}, {threads} threads");
        }
    }
}

/// Catches a hot spot that holds up other traffic less under pause than under credits, as much under drop, or
/// at all where there is none: the table of the book, with less time.
#[test]
fn the_victim_of_a_hot_spot_goes_on_where_packets_are_dropped() {
    let run = |pattern: &str, flow: &str| {
        let command = format!(
            "traffic -m ethernet-100g-spineleaf --set topology.leaves=4 --set topology.spines=8 \
             --set topology.endpoints_per_leaf=8 --set fabric.flow_control={flow} --pattern {pattern} \
             --layer fabric --load 0.6 --size 4K --time 200us --warm-up 200us --check --quiet --json"
        );
        json(&words(&command))["rows"][0].clone()
    };
    // A tenth goes to endpoint 0, whose link is 1/32 of all.
    let victim = |flow: &str| {
        let row = run("hotspot", flow);
        (row["accepted_load"].as_f64().unwrap() - 1.0 / 32.0) / (0.6 * 0.9 * 30.0 / 31.0)
    };
    let (credits, pause, drop) = (victim("credits"), victim("pause"), victim("drop"));
    assert!(credits < 0.6 && (pause - credits).abs() < 0.05, "credits {credits}, pause {pause}");
    assert!((0.75..0.97).contains(&drop), "drop {drop}");
    let whole = run("uniform", "pause")["accepted_load"].as_f64().unwrap();
    assert!(whole > 0.58, "without a hot spot {whole} of 0.6");
}

/// Catches a loss under pause that passes for a result: it must end the run, and name the buffer.
#[test]
fn a_headroom_that_is_too_small_ends_the_run_as_lost_data() {
    let output = weft(&words(&format!("{INCAST} --set switch.pause_headroom=4K")));
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("lost-data") && said.contains("the input buffer of switch "), "{said}");
    assert!(said.contains("virtual channel 0") && said.contains("head-room is too small"), "{said}");
    let check = json(&words("machine check ethernet-100g-spineleaf --set switch.pause_headroom=4K --json"));
    for line in check["headroom"].as_array().unwrap() {
        assert_eq!(line["kept_bytes"], 4096);
        assert!(line["needed_bytes"].as_u64().unwrap() > 30_000, "{line}");
    }
    let text = weft(&words("machine check ethernet-100g-spineleaf --set switch.pause_headroom=4K")).stdout;
    assert!(String::from_utf8(text).unwrap().contains("WARNING: too small"));
}

/// Catches a head-room that leaves no room for a packet and is taken, or refused without place and mend, and
/// a proof that does not know the flow control.
#[test]
fn headrooms_that_do_not_fit_are_refused_and_proofs_say_what_they_prove() {
    let said = refused(&words("machine check ethernet-100g-spineleaf --set switch.pause_headroom=127K"));
    assert!(
        said.contains("switch.pause_headroom=127K") && said.contains("write a smaller head-room"),
        "{said}"
    );
    let said =
        refused(&words("machine check exanest --set fabric.flow_control=pause --set switch.buffer=1K"));
    assert!(said.contains("switch.buffer") && said.contains("head-room"), "{said}");
    let proof = |flow: &str| {
        let flow = format!("fabric.flow_control={flow}");
        let check = json(&["machine", "check", "ethernet-100g-spineleaf", "--set", &flow, "--json"]);
        assert_eq!(check["deadlock_free"], true);
        check["proof"].to_string()
    };
    assert!(!proof("credits").contains("pause"));
    assert!(proof("pause").contains("under pause a channel"));
    assert!(proof("drop").contains("under drop no packet waits"));
}
