//! `fabric.kind = flow`: messages as fluids.

use crate::common::{group, json, number, refused, rows, weft};
use serde_json::Value;
use std::fs;

const FLOW: [&str; 2] = ["--set", "fabric.kind=flow"];

fn latencies(machine: &[&str], more: &[&str]) -> Vec<(u64, f64)> {
    let words = [&["osu", "latency", "--sizes", "1:1M", "--json"], machine, more].concat();
    let report = json(&words);
    let sizes = report["rows"].as_array().unwrap().iter();
    sizes.map(|row| (row["size_bytes"].as_u64().unwrap(), number(row, "latency_us"))).collect()
}

/// Catches start-ups, ends and rates of fluids that are not those of the machine's own interface and links.
#[test]
fn a_lone_message_takes_as_long_as_in_packets() {
    let machines: [&[&str]; 9] = [
        &["-m", "exanest"],
        &["-m", "exanest", "--from", "M1QAF1", "--to", "M1QAF2"],
        &["-m", "exanest", "--from", "M1QAF1", "--to", "M5QBF3"],
        &["-m", "carvnet-spineleaf"],
        &["-m", "apenetx-u200"],
        &["-m", "bxi2-fattree"],
        &["-m", "bxi3-dragonfly"],
        &["-m", "communication-ip"],
        &["-m", "ethernet-100g-spineleaf"],
    ];
    for machine in machines {
        let pairs = latencies(machine, &[]).into_iter().zip(latencies(machine, &FLOW));
        for ((bytes, packets), (_, fluid)) in pairs {
            // Concepts, "Flows": where blocks of the Communication IP work on one packet while others wait.
            let allowed = if bytes < 4096 { 0.03 } else { 0.02 };
            let error = fluid / packets - 1.0;
            assert!(error.abs() < allowed, "{machine:?}, {bytes} bytes: {fluid} us, in packets {packets}");
        }
    }
}

/// A leaf-spine network with a single spine.
const MACHINE: [&str; 8] = [
    "-m",
    "ethernet-100g-spineleaf",
    "--set",
    "topology.leaves=3",
    "--set",
    "topology.endpoints_per_leaf=4",
    "--set",
    "topology.spines=1",
];
/// A link's time for a message of 1 MB, at its 98.039 Gb/s of payload.
const ALONE_US: f64 = 8.0 * 1_048_576.0 / 98_039.0;

fn scenario(flows: &[(&str, u32, u32)], time: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    let flow = |(name, from, to): &(&str, u32, u32)| {
        let ends = format!("from = \"{from}\"\nto = \"{to}\"\nsize = \"1M\"\n");
        format!("[[flows]]\nname = \"{name}\"\nrole = \"background\"\n{ends}")
    };
    let flows: String = flows.iter().map(flow).collect();
    fs::write(&path, format!("[scenario]\ntitle = \"own\"\ntime = \"{time}\"\n{flows}")).unwrap();
    let file = path.to_str().unwrap();
    json(&[&["traffic", "--scenario", file, "--json"], &MACHINE[..], &FLOW].concat())
}

/// Catches fluids that do not share a link, and shares that are not max-min: those that one link stops, and
/// one that gets what they leave of another.
#[test]
fn messages_get_max_min_shares() {
    let latency =
        |report: &Value, name: &str| number(group(report, "as the machine", name), "latency_mean_us");
    // What a message takes beside its time on links is not shared.
    let rest = latency(&scenario(&[("a", 0, 4)], "20ms"), "a") - ALONE_US;
    assert!((0.0..5.0).contains(&rest), "{rest}");
    let takes = |report: &Value, name: &str, times: f64| {
        let (found, right) = (latency(report, name), times * ALONE_US + rest);
        assert!((found / right - 1.0).abs() < 0.02, "{name}: {found}, not {right}");
    };
    let two = scenario(&[("a", 0, 4), ("b", 1, 4)], "20ms");
    ["a", "b"].into_iter().for_each(|name| takes(&two, name, 2.0));
    // Four leave the first leaf by one link; two of them come to the second by the link of a fifth.
    let five = scenario(&[("a", 0, 4), ("b", 1, 5), ("c", 2, 8), ("d", 3, 9), ("e", 10, 6)], "20ms");
    ["a", "b", "c", "d"].into_iter().for_each(|name| takes(&five, name, 4.0));
    takes(&five, "e", 2.0);
}

/// Catches a rate without what has come of messages that are under way at the end: here of the third.
#[test]
fn rates_count_what_has_come_by_the_end() {
    let report = scenario(&[("a", 0, 4), ("b", 1, 5), ("c", 2, 8), ("d", 3, 9)], "1ms");
    let row = group(&report, "as the machine", "a");
    let right = 8.0 * 1_048_576.0 / (4.0 * ALONE_US * 1000.0);
    assert_eq!(row["transfers"], 2);
    assert!((number(row, "throughput_gbps") / right - 1.0).abs() < 0.02, "{row}, not {right}");
}

/// Catches an interface that does not overlap the start-ups of short messages, or takes a message for sent
/// when all of it has come: it would carry less than is offered.
#[test]
fn short_messages_follow_each_other_as_in_packets() {
    let star = ["--set", "topology.kind=star", "--set", "topology.endpoints=4", "--time", "20us"];
    let words = ["traffic", "-m", MACHINE[1], "--pattern", "uniform", "--load", "0.6", "--json"];
    let run = |more: &[&str]| json(&[&words[..], &star, more].concat())["rows"][0].clone();
    let (packets, fluids) = (run(&[]), run(&FLOW));
    let ratio = |key: &str| number(&fluids, key) / number(&packets, key);
    assert!((ratio("accepted_load") - 1.0).abs() < 0.02, "{fluids}");
    assert!((ratio("latency_mean_ns") - 1.0).abs() < 0.1, "{fluids}, in packets {packets}");
}

/// Catches telemetry of a scenario that is refused for a table that nobody has asked for.
#[test]
fn telemetry_of_a_scenario_has_the_rates_of_links() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("own.toml"), folder.path().join("out"));
    let flow = "[[flows]]\nname = \"a\"\nrole = \"background\"\nfrom = \"0\"\nto = \"4\"\nsize = \"1M\"\n";
    fs::write(&file, format!("[scenario]\ntitle = \"own\"\ntime = \"1ms\"\n{flow}")).unwrap();
    let words = ["traffic", "--telemetry", "100us", "--json", "--scenario", file.to_str().unwrap(), "-o"];
    let words = [&words[..], &[out.to_str().unwrap()], &MACHINE, &FLOW].concat();
    json(&words);
    assert!(out.join("rates.parquet").exists() && !out.join("flow_rates.parquet").exists());
    assert!(refused(&[&words[..], &["--force", "--tables", "flow_rates"]].concat()).contains("by flow"));
}

/// Catches a run that depends on threads.
#[test]
fn threads_change_nothing() {
    let words =
        ["traffic", "-m", "bxi3-dragonfly", "--pattern", "uniform", "--size", "16K", "--messages", "3"];
    let run = |threads| rows(&json(&[&words[..], &["--json", "--threads", threads], &FLOW].concat()));
    assert_eq!(run("1"), run("2"));
}

/// Catches keys that a machine carries in vain under flows, and that nobody names.
#[test]
fn keys_without_effect_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/ethernet-100g-spineleaf.toml");
    let text = fs::read_to_string(shipped).unwrap();
    fs::write(&path, format!("{text}\n[[faults]]\nof = \"all\"\ndrop = 10\n")).unwrap();
    let show = |more: &[&str]| json(&[&["machine", "show", path.to_str().unwrap(), "--json"], more].concat());
    let listed = show(&FLOW)["without_effect"].clone();
    let listed: Vec<&str> = listed.as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    for key in ["faults.0", "fabric.flow_control", "switch.pause_response", "switch.arbiter"] {
        assert!(listed.contains(&key), "{key} is not in {listed:?}");
    }
    assert!(show(&[]).get("without_effect").is_none());
    // A file with other values of those that have any runs alike.
    let other = [
        ("\"pause\"", "\"drop\""),
        ("\"round-robin\"", "\"age\""),
        // One bit of 1,000 is wrong: of packets hardly any would come.
        ("[links.default]\n", "[links.default]\nbit_errors = 1000000000000\n"),
    ];
    let changed = other.iter().fold(text.clone(), |text, (value, other)| text.replace(value, other));
    let changed = changed.lines().filter(|line| !line.starts_with("pause_"));
    fs::write(&path, changed.collect::<Vec<_>>().join("\n")).unwrap();
    let run = |machine: &str| {
        let words = ["osu", "alltoall", "--ranks", "16", "--sizes", "64:64K", "-m", machine, "--json"];
        rows(&json(&[&words[..], &FLOW].concat()))
    };
    assert_ne!(text, fs::read_to_string(&path).unwrap());
    assert_eq!(run(path.to_str().unwrap()), run(shipped));
}

const POWER: [&str; 12] = [
    "--set",
    "links.default.power.active=2W",
    "--set",
    "links.default.power.per_bit=3pJ/b",
    "--set",
    "switch.power.idle=90W",
    "--set",
    "switch.power.per_bit=4pJ/b",
    "--set",
    "nic.power.idle=15W",
    "--set",
    "nic.power.per_bit=5pJ/b",
];

/// Catches energy without a part, for another time than was measured, or of other bits than the messages': by
/// hand, and beside packets.
#[test]
fn energy_is_that_of_time_and_bits() {
    let words = ["traffic", "-m", "bxi3-fattree", "--set", "topology.k=4", "--pattern", "uniform"];
    let more = ["--load", "0.1", "--size", "64K", "--time", "100us", "--warm-up", "10us", "--json"];
    let run = |kind: &[&str]| json(&[&words[..], &more, &POWER, kind].concat())["rows"][0]["energy"].clone();
    let (packets, fluids) = (run(&[]), run(&FLOW));
    // 16 endpoints with a link, as many links between switches, both ways; 8 switches.
    assert_eq!(number(&fluids, "active_us"), 64.0 * 100.0);
    for (part, idle) in
        [("links_uj", 2.0 * 6400.0), ("switches_uj", 9e3 * 8.0), ("interfaces_uj", 1.5e3 * 16.0)]
    {
        let beyond = |energy: &Value| number(energy, part) - idle;
        assert!(beyond(&fluids) > 0.0, "{part}: {fluids}");
        assert!(
            (beyond(&fluids) / beyond(&packets) - 1.0).abs() < 0.1,
            "{part}: {fluids}, packets {packets}"
        );
    }
    let sleeps = ["policy=idle-timeout", "low=200mW", "idle_after=100ns", "wake=300ns"];
    let sleeps = sleeps.map(|key| format!("links.default.power.{key}"));
    let sets = sleeps.iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>();
    assert!(refused(&[&words[..], &more, &POWER, &FLOW, &sets].concat()).contains("fluids wake no links"));
}

/// Catches an explanation that takes a fluid for work of its interface, does not name the link that messages
/// share, or takes for waiting what a message would need alone.
#[test]
fn an_explanation_names_the_link_that_stops_messages() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let words = ["osu", "alltoall", "--ranks", "8", "--ppn", "1", "--sizes", "1M:1M", "--iterations", "1"];
    let more = ["--warm-up", "0", "-o", out.to_str().unwrap(), "--json"];
    json(&[&words[..], &more, &MACHINE, &FLOW].concat());
    let said = json(&["explain", out.to_str().unwrap(), "--json"])["runs"][0].clone();
    let of = |what: &str| {
        let mut longest = said["longest"].as_array().unwrap().iter();
        let piece = longest.find(|piece| piece["what"] == what).unwrap();
        (number(piece, "time_ns") / 1e3, piece["place"].as_str().unwrap().to_owned())
    };
    let ((waits, at), (goes, on)) = (of("waiting"), of("serialization"));
    // Four ranks of the first leaf send to four others each, over its only uplink.
    let uplink = "switch 0 → switch 3 (level1)";
    assert_eq!((at.as_str(), on.as_str()), (uplink, uplink));
    assert!((goes / ALONE_US - 1.0).abs() < 0.01, "{goes} us");
    assert!(((waits + goes) / (16.0 * ALONE_US) - 1.0).abs() < 0.01, "{waits} us and {goes} us");
    assert_eq!(said["diagnosis"]["pattern"], "hot-link", "{said}");
}

/// Catches a sender whose messages follow each other for long as they do at first, when channels of its
/// interface are free.
#[test]
fn many_short_messages_follow_each_other_as_in_packets() {
    let pair = ["osu", "bw", "-m", "exanest", "--from", "M1QAF1", "--to", "M1QAF2", "--sizes", "4K:4K"];
    let all = ["osu", "alltoall", "-m", "exanest", "--ranks", "16", "--ppn", "4", "--sizes", "1K:1K"];
    for (words, figure) in [(pair.as_slice(), "bandwidth_gbps"), (&all, "latency_us")] {
        let run = |more: &[&str]| {
            number(&json(&[words, &["--iterations", "3", "--json"], more].concat())["rows"][0], figure)
        };
        let (packets, fluids) = (run(&[]), run(&FLOW));
        assert!((fluids / packets - 1.0).abs() < 0.05, "{words:?}: {fluids}, in packets {packets}");
    }
}

/// Catches sends that are over as soon as their interface has taken them, where they wait for the
/// acknowledgement of the receiver's: a broadcast would be over in half the time.
#[test]
fn sends_that_wait_for_acknowledgements_follow_each_other_as_in_packets() {
    let storm = ["--ranks", "8", "--ppn", "1", "--with", "broadcasts=50,size=8"];
    let run = |more: &[&str]| {
        let words = [&["app", "broadcast-storm", "-m", "exanest", "--quiet", "--json"], &storm[..], more];
        number(&json(&words.concat())["rows"][0], "run_time_us")
    };
    let (packets, fluids) = (run(&[]), run(&FLOW));
    assert!((fluids / packets - 1.0).abs() < 0.02, "{fluids}, in packets {packets}");
}

/// Catches parts of a message over paths that an adaptive routing chose, which do not share what is left: the
/// message would last as long as the most crowded of them.
#[test]
fn adaptive_messages_carry_as_much_as_in_packets() {
    let words = ["traffic", "-m", "bxi3-dragonfly", "--pattern", "adversarial", "--size", "256K"];
    let run = |more: &[&str]| {
        let report = json(&[&words[..], &["--messages", "4", "--json"], more].concat());
        number(&report["rows"][0], "accepted_load")
    };
    let (packets, fluids) = (run(&[]), run(&FLOW));
    assert!((fluids / packets - 1.0).abs() < 0.15, "{fluids}, in packets {packets}");
}

/// Catches threads that are taken without a word where they change nothing.
#[test]
fn threads_are_said_to_do_nothing() {
    let words = ["osu", "latency", "-m", "exanest", "--sizes", "8:8", "--threads", "2"];
    let said = |more: &[&str]| String::from_utf8(weft(&[&words[..], more].concat()).stderr).unwrap();
    assert!(said(&FLOW).contains("--threads does nothing with flows"));
    assert!(!said(&[]).contains("does nothing"));
}

/// Catches a request that fluids cannot carry out and do not refuse.
#[test]
fn what_fluids_cannot_do_is_refused() {
    let exanest = ["-m", "exanest", "--set", "fabric.kind=flow"];
    let load = ["traffic", "--load", "0.1"];
    let of = |more: &[&str]| refused(&[&load[..], &exanest, more].concat());
    assert!(of(&["--set", "congestion.kind=acc"]).contains("their shares are max-min fair"));
    assert!(of(&["--set", "faults=[{of=\"all\", drop=10}]"]).contains("fluids have no packets"));
    assert!(of(&["--set", "fabric.flow_control=pause"]).contains("fluids fill no buffers"));
    assert!(of(&["--set", "nic.packetizer.repetitions=3"]).contains("sent again"));
    assert!(of(&["--set", "fabric.kind=flows"]).contains("did you mean `flow`?"));
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out");
    assert!(of(&["--tables", "packets", "-o", output.to_str().unwrap()]).contains("messages are fluids"));
    assert!(!output.exists());
    let accelerated = ["osu", "allreduce", "--ranks", "4", "--sizes", "64:64", "--algorithm", "accelerator"];
    let output = weft(&[&accelerated[..], &exanest].concat());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no reductions of an accelerator"));
    let data = ["osu", "bw", "--sizes", "64K:64K", "--data"];
    assert!(refused(&[&data[..], &exanest].concat()).contains("no bytes"));
    assert!(of(&["--set", "links.default.bit_errors=1000000"]).contains("no bits that could be wrong"));
}
