//! Shares of flows under congestion control, through the network: beside water filling that is done by hand,
//! and the fixed points of equations. `tests/shares` has random sets.

use crate::common::{json, weft};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;

/// Time that is not counted, and that is, in microseconds.
const SETTLE: f64 = 500.0;
const COUNTED: f64 = 1_500.0;

/// caRVnet with one way for each pair, and an interface that keeps flows apart.
const CARVNET: [&str; 6] =
    ["-m", "carvnet-spineleaf", "--set", "nic.model=overheads", "--set", "topology.routing=d-mod-k"];

/// From, to, bytes of a message, and Gb/s; none: all that there is.
type Flow = (u32, u32, u64, Option<f64>);

/// Runs flows; returns the Gb/s of payload that came of each, and a row.
fn rates(machine: &[&str], more: &[&str], flows: &[Flow]) -> (Vec<f64>, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shares.toml");
    let mut text = format!(
        "[scenario]\ntitle = \"shares\"\ntime = \"{}us\"\nwarm_up = \"{SETTLE}us\"\n",
        SETTLE + COUNTED
    );
    for (number, (from, to, size, rate)) in flows.iter().enumerate() {
        // Of a greedy flow three messages at a time, so that there is always something to send.
        for copy in 0..if rate.is_some() { 1 } else { 3 } {
            let pace = rate.map_or("gap = \"0us\"".to_owned(), |rate| format!("rate = \"{rate}Gb/s\""));
            let head = format!("[[flows]]\nname = \"{number}.{copy}\"\nrole = \"background\"");
            writeln!(text, "{head}\nfrom = \"{from}\"\nto = \"{to}\"\nsize = \"{size}\"\n{pace}").unwrap();
        }
    }
    fs::write(&file, text).unwrap();
    let words = ["traffic", "--scenario", file.to_str().unwrap(), "--json", "--quiet"];
    let report = json(&[&words[..], machine, more].concat());
    let rows = report["rows"].as_array().unwrap();
    let mut rates = vec![0.0; flows.len()];
    for row in rows {
        let number = row["group"].as_str().unwrap().split('.').next().unwrap();
        rates[number.parse::<usize>().unwrap()] += row["payload_bytes"].as_f64().unwrap() * 8e-3 / COUNTED;
    }
    (rates, rows[0].clone())
}

fn is_within(found: f64, right: f64, tolerance: f64) -> bool {
    (found / right - 1.0).abs() <= tolerance
}

/// Catches a flow that is taken for greedy because the second packet of its messages waits for the limiter:
/// a greedy one beside it then has half, whatever the other asks for. A link of 100 Gb/s carries 256 B of
/// payload in 296 B, and ACC leaves a twentieth: 95 Gb/s, of which 92.7, 89.2, 83.4 and 71.9 are left.
#[test]
fn a_flow_has_what_one_that_its_demand_limits_leaves() {
    for (size, demands) in [(1_024, &[2.0, 5.0, 10.0, 20.0][..]), (256, &[5.0]), (16_384, &[5.0, 20.0])] {
        for &demand in demands {
            let flows = [(1, 15, 16_384, None), (4, 15, size, Some(demand))];
            let (rates, _) = rates(&CARVNET, &["--congestion", "acc"], &flows);
            let right = (95.0 - demand * 296.0 / 256.0) * 256.0 / 296.0;
            let told = format!("beside {demand} Gb/s in {size} B: {rates:?}, right is {right}");
            assert!(is_within(rates[0], right, 0.02) && is_within(rates[1], demand, 0.03), "{told}");
        }
    }
}

/// Catches senders of little that take a share each from one that wants much.
#[test]
fn ten_senders_of_little_leave_the_rest_to_a_bulk_flow() {
    let mut flows = vec![(0, 15, 16_384, None)];
    flows.extend((1..11).map(|from| (from, 15, 4_096, Some(1.6))));
    let (rates, _) = rates(&CARVNET, &["--congestion", "acc"], &flows);
    let right = (95.0 - 16.0 * 296.0 / 256.0) * 256.0 / 296.0;
    assert!(is_within(rates[0], right, 0.02), "{rates:?}, right is {right}");
}

/// Catches a margin of nothing that is refused or kept all the same, and a range whose message is wrong.
#[test]
fn a_margin_of_nothing_leaves_the_whole_link() {
    let more = ["--set", "congestion.kind=acc", "--set", "congestion.margin=0"];
    let (rates, _) = rates(&CARVNET, &more, &[(1, 15, 16_384, None)]);
    assert!(rates[0] > 0.99 * 100.0 * 256.0 / 296.0, "{rates:?}");
    let sets = ["--set", "congestion.kind=acc", "--set", "congestion.margin=1000"];
    let wrong = weft(&[&["machine", "check", "carvnet-spineleaf"], &sets[..]].concat());
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(said.contains("`congestion.margin` of 1000 is impossible"), "{said}");
    assert!(said.contains("too large") && said.contains("write at most 999"), "{said}");
}

/// Catches buffers of 4 KB of which the class of answers takes half, so that data does not have the rate that
/// ACC offers; and PAUSE that the document's own machine could not have with them.
#[test]
fn small_buffers_carry_what_is_offered() {
    let small = ["--set", "switch.buffer=4K", "--set", "switch.output_buffer=4K", "--congestion", "acc"];
    let flows = [(1, 15, 16_384, None), (5, 15, 16_384, None)];
    let (rates, _) = rates(&CARVNET, &small, &flows);
    let right = 95.0 / 2.0 * 256.0 / 296.0;
    assert!(rates.iter().all(|rate| is_within(*rate, right, 0.02)), "{rates:?}, right is {right}");
    let mezzanine = ["-m", "exanest", "--set", "topology.mezzanines=1", "--set", "nic.model=overheads"];
    let (rates, row) = self::rates(&mezzanine, &["--congestion", "pause"], &flows);
    assert!(row["refused"].is_null() && rates.iter().sum::<f64>() > 5.5, "{rates:?}, {row}");
}

/// Catches windows into which each packet must fit: where a path holds few, flows stay unequal for ever.
#[test]
fn windows_of_few_packets_become_equal() {
    let star = ["--set", "topology.kind=star", "--set", "topology.endpoints=4"];
    let star = [&["-m", "ethernet-100g-spineleaf"], &star[..]].concat();
    let flows = [1, 2, 3].map(|from| (from, 0, 16_384, None));
    let (rates, _) = rates(&star, &["--congestion", "hpcc"], &flows);
    let mean = rates.iter().sum::<f64>() / 3.0;
    assert!(mean > 29.0 && rates.iter().all(|rate| is_within(*rate, mean, 0.05)), "{rates:?}");
}

/// Catches a flow under ACC that never ends, since answers from beyond a second switch come while its limiter
/// is open: links are told of it in each pulse, and the run goes on until the scenario's time.
#[test]
fn a_flow_that_is_done_ends() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.toml");
    let head = "[scenario]\ntitle = \"one transfer\"\ntime = \"20ms\"\n[[flows]]\nname = \"a\"\n";
    for from in [1, 16] {
        let flow = format!("role = \"background\"\nfrom = \"{from}\"\nto = \"0\"\nsize = \"100K\"\n");
        fs::write(&file, format!("{head}{flow}transfers = 1\n")).unwrap();
        let words = ["traffic", "-m", "ethernet-100g-spineleaf", "--scenario", file.to_str().unwrap()];
        for way in ["none", "acc"] {
            let report = json(&[&words[..], &["--congestion", way, "--json"]].concat());
            let of = |key: &str| report["rows"][0][key].as_f64().unwrap();
            let after = of("run_time_us") - of("completion_max_us");
            // Three pulses of 20 us: one with the last packets, one of rest, and the message of its end.
            assert!((0.0..60.0).contains(&after), "from {from} under {way}: {after} us");
        }
    }
}
