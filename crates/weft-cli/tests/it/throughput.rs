//! Gb/s of scenarios: payload that came over the time in which it did, against values known by hand and
//! against the table `flow_rates`, which the network counts packet by packet.

use crate::common::{group, json, number, weft};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use weft_results::{FlowRateRow, FlowRow, StoredResult};
use weft_units::{EndpointId, Span, Time};

/// A star of 100 Gb/s: packets of 4 KB leave 98.04 Gb/s of payload on a link.
const STAR: &str = "-m ethernet-100g-spineleaf --set topology.kind=star --set fabric.flow_control=credits \
                    --set topology.endpoints";
const PAYLOAD: f64 = 98.04;

/// A scenario of so much time.
fn scenario(folder: &Path, time: &str, flows: &str) -> PathBuf {
    let path = folder.join("own.toml");
    let head = format!("[scenario]\ntitle = \"own\"\ntime = \"{time}\"\n");
    fs::write(&path, head + flows).unwrap();
    path
}

/// Flows from endpoints to endpoint 0.
fn flows(name: &str, from: &str, more: &str) -> String {
    format!("[[flows]]\nname = \"{name}\"\nrole = \"background\"\nfrom = \"{from}\"\nto = \"0\"\n{more}\n")
}

fn run(machine: &str, file: &Path, more: &str) -> Value {
    let command = format!("traffic {machine} --scenario {} --quiet --json {more}", file.display());
    json(&command.split_whitespace().collect::<Vec<_>>())
}

fn is_about(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.002
}

/// Catches a transfer under way of which nothing counts, and time that counts in which all had come: the
/// figures are those of the link, whatever the size of transfers and the time of the scenario.
#[test]
fn throughput_is_what_came_over_the_time_in_which_it_did() {
    let folder = tempfile::tempdir().unwrap();
    let star = |endpoints: u32| format!("{STAR}={endpoints}");
    let of = |file: &Path, name: &str| {
        let report = run(&star(4), file, "");
        group(&report, "as the machine", name).clone()
    };
    let unending = scenario(folder.path(), "2ms", &flows("a", "1", "size = \"1G\""));
    let row = of(&unending, "a");
    assert!(is_about(number(&row, "throughput_gbps"), PAYLOAD), "{row}");
    assert_eq!((&row["transfers_under_way"], &row["transfers"]), (&1.into(), &0.into()));
    let said = weft(&["traffic", "-m", "exanest", "--scenario", unending.to_str().unwrap(), "--quiet"]);
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("a: 1 transfer was under way at the end"), "{said}");

    let one = scenario(folder.path(), "1s", &flows("a", "1", "size = \"1M\"\ntransfers = 1"));
    let row = of(&one, "a");
    let expected = f64::from(1 << 20) * 8e-3 / number(&row, "completion_max_us");
    assert!(is_about(number(&row, "throughput_gbps"), expected) && is_about(expected, 96.7), "{row}");

    for time in ["10ms", "600ms", "2s"] {
        let size = "size = \"32M\"\ntransfers = 1";
        let two = scenario(folder.path(), time, &(flows("a", "1", size) + &flows("b", "2", size)));
        let report = run(&star(4), &two, "");
        for name in ["a", "b"] {
            let rate = number(group(&report, "as the machine", name), "throughput_gbps");
            assert!(is_about(rate, PAYLOAD / 2.0), "{name} for {time}: {rate}");
        }
    }
}

/// Catches shares of classes that whole transfers turn into others: 9 to 1 are 9 to 1.
#[test]
fn shares_are_those_of_the_arbiter() {
    let folder = tempfile::tempdir().unwrap();
    let ends = |class: &str| format!("size = \"64K\"\nclass = \"{class}\"");
    let two = flows("high", "1-3", &ends("high")) + &flows("low", "4-6", &ends("low"));
    let file = scenario(folder.path(), "2ms", &two);
    let classes = "[{name='high',by_name=true,weight=9},{name='low',weight=1}]";
    let more = format!("--set switch.arbiter=weighted-round-robin --set switch.classes={classes}");
    let report = run(&format!("{STAR}=8"), &file, &more);
    let rate = |name| number(group(&report, "as the machine", name), "throughput_gbps");
    let ratio = rate("high") / rate("low");
    assert!((8.8..9.2).contains(&ratio), "{ratio}: {report}");
}

/// Catches flows with a rate that begin all at once, and such whose `start` is not obeyed.
#[test]
fn flows_with_a_rate_are_out_of_phase() {
    let folder = tempfile::tempdir().unwrap();
    let births = |start: &str| {
        let more = format!("size = \"64K\"\nrate = \"1Gb/s\"\ntransfers = 1\n{start}");
        let file = scenario(folder.path(), "2ms", &flows("a", "1-8", &more));
        let out = folder.path().join("out");
        run(&format!("{STAR}=16"), &file, &format!("-o {} --force --seed 3", out.display()));
        let mut births = BTreeSet::new();
        let visit = |row: FlowRow| births.extend([row.first_start_ps]);
        StoredResult::open(&out).unwrap().visit(visit).unwrap();
        births
    };
    // A transfer takes 524 us at this rate.
    let own = births("");
    assert_eq!(own.len(), 8, "{own:?}");
    assert!(own.iter().all(|at| *at < Time::ZERO + Span::from_us(525)), "{own:?}");
    assert_eq!(births("start = \"3us\""), BTreeSet::from([Time::ZERO + Span::from_us(3)]));
}

/// The payload of pairs of endpoints from a time on, as the network counts it.
fn counted(result: &StoredResult, from: Time) -> BTreeMap<(EndpointId, EndpointId), u64> {
    let mut payload = BTreeMap::new();
    let visit = |row: FlowRateRow| {
        if row.level == 0 && row.begin_ps >= from {
            let pair = (row.source_endpoint, row.destination_endpoint);
            *payload.entry(pair).or_default() += row.payload_bytes.get();
        }
    };
    result.visit(visit).unwrap();
    payload
}

/// The Gb/s of every group are its payload over its time, and the payload is that of `flow_rates`: in sum to
/// the byte; of a group no less than that of the pairs of endpoints that it has alone, and no more than that
/// of all that may be its own.
fn check_against_flow_rates(report: &Value, out: &Path, warm_up: Time) {
    let result = StoredResult::open(out).unwrap();
    let counted = counted(&result, warm_up);
    let mut owners: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    let visit = |row: FlowRow| {
        let pair = (row.source_endpoint, row.destination_endpoint.unwrap());
        owners.entry(pair).or_default().extend(row.group);
    };
    result.visit(visit).unwrap();
    let (mut sum, mut groups) = (0, 0);
    for row in report["rows"].as_array().unwrap().iter().filter(|row| row["payload_bytes"].is_number()) {
        let payload = row["payload_bytes"].as_u64().unwrap();
        let rate = payload as f64 * 8e-3 / number(row, "measured_us");
        assert!((number(row, "throughput_gbps") - rate).abs() < 1e-9, "{row}");
        let name = row["group"].as_str().unwrap().to_owned();
        let alone = BTreeSet::from([name]);
        let of = |own: bool| -> u64 {
            let pairs = counted.iter().filter(|(pair, _)| match owners.get(pair) {
                Some(owners) if owners.len() == 1 => *owners == alone,
                _ => !own,
            });
            pairs.map(|(_, payload)| payload).sum()
        };
        assert!((of(true)..=of(false)).contains(&payload), "{row}: {} to {}", of(true), of(false));
        (sum, groups) = (sum + payload, groups + 1);
    }
    assert!(groups > 0 && sum > 0, "{report}");
    assert_eq!(sum, counted.values().sum::<u64>(), "{report}");
}

/// Catches an interface of which a transfer under way counts more or less than has come of it, at the end of
/// the warm-up or of the run.
#[test]
fn every_interface_knows_what_has_come_of_a_transfer() {
    let folder = tempfile::tempdir().unwrap();
    let head = "200us\"\nwarm_up = \"60us";
    let file = scenario(folder.path(), head, &flows("a", "1,2", "size = \"900K\""));
    for machine in [
        "exanest",
        "carvnet-spineleaf",
        "ethernet-100g-spineleaf",
        "bxi3-fattree --set topology.kind=star --set topology.endpoints=8",
        "apenetx-u200 --set topology.dims=[4,1,1]",
        "communication-ip --set topology.dims=[4,1]",
    ] {
        for threads in ["1", "3"] {
            let out = folder.path().join("out");
            let more = format!("--telemetry 20us --force --threads {threads} -o {}", out.display());
            let report = run(&format!("-m {machine}"), &file, &more);
            assert!(number(&report["rows"][0], "transfers_under_way") > 0.0, "{machine}: {report}");
            check_against_flow_rates(&report, &out, Time::ZERO + Span::from_us(60));
        }
    }
}

/// A scenario's time and warm-up; `None`: those of its file.
type Times = Option<(&'static str, &'static str)>;

const MEZZANINE: &str = "exanest --set topology.mezzanines=1";

/// The machine of each scenario that ships, and the times and warm-up that it has here, where its own take
/// long; telemetry has looks at the end of the warm-up.
const SHIPPED: [(&str, &str, Times, &str); 15] = [
    ("incast-victim.toml", "carvnet-spineleaf", None, "50us"),
    ("latency-victim-low.toml", "carvnet-spineleaf", None, "50us"),
    ("latency-victim-medium.toml", "carvnet-spineleaf", Some(("300us", "100us")), "50us"),
    ("latency-victim-high.toml", "carvnet-spineleaf", Some(("250us", "100us")), "50us"),
    ("new-shares.toml", "carvnet-spineleaf", None, "50us"),
    ("key-value.toml", "carvnet-spineleaf", None, "50us"),
    ("lammps-background.toml", "carvnet-spineleaf", Some(("400us", "0us")), "50us"),
    ("lammps-communication.toml", "carvnet-spineleaf", Some(("400us", "0us")), "50us"),
    ("mezzanine-victim-low.toml", MEZZANINE, None, "100us"),
    ("mezzanine-victim-medium.toml", MEZZANINE, None, "100us"),
    ("mezzanine-victim-high.toml", MEZZANINE, None, "100us"),
    (
        "permutation-1024.toml",
        "bxi3-fattree --set nic.model=overheads --set topology.kind=tree --set topology.down=[8,8,16] \
         --set topology.routing=ecmp",
        Some(("20us", "0us")),
        "10us",
    ),
    ("incast-32.toml", "ethernet-100g-spineleaf", None, "1ms"),
    ("web-search.toml", "ethernet-100g-spineleaf", Some(("60us", "20us")), "10us"),
    (
        "two-classes.toml",
        "ethernet-100g-spineleaf --set topology.kind=star --set topology.endpoints=8 \
         --set fabric.flow_control=credits --set switch.arbiter=strict-priority --set \
         switch.classes=[{name='high',by_name=true,priority=1},{name='low',priority=0}]",
        Some(("2ms", "1ms")),
        "100us",
    ),
];

/// A shipped scenario with other times, without its applications, whose traces lie elsewhere, and without
/// services, which are no flows; and the end of its warm-up.
fn shipped(name: &str, times: Times, folder: &Path) -> (PathBuf, Time) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name);
    let text = fs::read_to_string(&path).unwrap();
    let mut parts: Vec<&str> = text.split("\n[").collect();
    let others = ["[applications]]", "[services]]", "[clients]]"];
    parts.retain(|part| !others.iter().any(|other| part.starts_with(other)));
    let text = parts.join("\n[");
    let of = |key: &str| text.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
    let of = |key: &str| of(key).map_or("0us", |value| value.trim_end_matches('"'));
    let (time, warm_up) = times.unwrap_or((of("time"), of("warm_up")));
    let is_time = |line: &&str| !line.starts_with("time = ") && !line.starts_with("warm_up = ");
    let rest: Vec<&str> = text.lines().filter(is_time).collect();
    let head = format!("[scenario]\ntime = \"{time}\"\nwarm_up = \"{warm_up}\"");
    let own = folder.join(name);
    fs::write(&own, rest.join("\n").replace("[scenario]", &head)).unwrap();
    (own, Time::ZERO + warm_up.parse::<Span>().unwrap())
}

/// Catches Gb/s of a shipped scenario that are not the payload which the network counts, and a scenario that
/// ships and is not looked at.
#[test]
fn every_shipped_scenario_has_the_payload_of_its_flow_rates() {
    let folder = tempfile::tempdir().unwrap();
    let all = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")).unwrap();
    let all = all.map(|entry| entry.unwrap().path());
    // Of applications alone nothing would be left.
    let all = all.filter(|path| fs::read_to_string(path).unwrap().contains("[[flows]]"));
    let all: BTreeSet<String> =
        all.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(all, SHIPPED.iter().map(|(name, ..)| (*name).to_owned()).collect());
    for (name, machine, times, telemetry) in SHIPPED {
        let (file, warm_up) = shipped(name, times, folder.path());
        let out = folder.path().join("out");
        let more = format!("--telemetry {telemetry} --force -o {}", out.display());
        let report = run(&format!("-m {machine}"), &file, &more);
        check_against_flow_rates(&report, &out, warm_up);
    }
}

/// The same with the times that scenarios ship with, under each way to control congestion that the machine
/// can have: minutes.
#[test]
#[ignore = "minutes: make test-long"]
fn shipped_scenarios_have_the_payload_of_their_flow_rates_in_full() {
    let folder = tempfile::tempdir().unwrap();
    for (name, machine, _, telemetry) in SHIPPED {
        for way in ["none", "acc", "dcqcn", "hpcc", "swift", "nscc", "ib"] {
            let (file, warm_up) = shipped(name, None, folder.path());
            let out = folder.path().join("out");
            let more = ["--congestion", way, "--telemetry", telemetry, "--force", "-o"];
            let more = format!("{} {}", more.join(" "), out.display());
            let command = format!("traffic -m {machine} --scenario {} --quiet --json {more}", file.display());
            let output = weft(&command.split_whitespace().collect::<Vec<_>>());
            // A machine with classes has no algorithm for all of them.
            if output.status.code() == Some(2) {
                continue;
            }
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            check_against_flow_rates(&report, &out, warm_up);
        }
    }
}
