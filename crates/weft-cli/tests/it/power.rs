//! `[links.CLASS.power]`, `[switch.power]` and `[nic.power]` through the whole program.

use crate::common::{json, refused, weft};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;

const TRAFFIC: &str = "traffic -m bxi3-fattree --set topology.k=4 --pattern uniform --load 0.01 --size 64 \
                       --time 20us --warm-up 10us --check --quiet --json";
const ALWAYS_ON: &str = "--set links.default.power.active=2W --set links.default.power.per_bit=3pJ/b";
const SLEEPS: &str = "--set links.default.power.policy=idle-timeout --set links.default.power.low=200mW \
                      --set links.default.power.idle_after=100ns --set links.default.power.wake=300ns";

const AHEAD: &str = "--set links.default.power.policy=wake-on-injection \
                     --set links.default.power.signal_delay=20ns";
const PARTS: &str = "--set switch.power.idle=90W --set switch.power.per_bit=4pJ/b --set nic.power.idle=15W \
                     --set nic.power.per_packet=2nJ";

/// Runs a command that writes results: the totals of `run.json`, and the table of links.
fn results(command: &str, out: &Path) -> (Value, Vec<Row>) {
    let mut words: Vec<&str> = command.split_whitespace().collect();
    words.extend(["--quiet", "-o", out.to_str().unwrap()]);
    let output = weft(&words);
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    let manifest = fs::read_to_string(out.join("run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    (manifest["totals"].clone(), rows(&out.join("links.parquet")))
}

fn rows(table: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(table).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

/// The number in a column; `None`: null.
fn number(row: &Row, name: &str) -> Option<u64> {
    let (_, field) = row.get_column_iter().find(|(column, _)| *column == name).unwrap();
    match field {
        Field::ULong(value) => Some(*value),
        Field::Null => None,
        other => panic!("{name}: {other}"),
    }
}

fn row(sets: &str, threads: u32) -> Value {
    let command = format!("{TRAFFIC} --threads {threads} {sets}");
    let mut row = json(&command.split_whitespace().collect::<Vec<_>>())["rows"][0].clone();
    // Real time and memory.
    for key in ["build_time_s", "packet_hops_per_second", "peak_memory_bytes"] {
        row.as_object_mut().unwrap().remove(key).unwrap();
    }
    row
}

/// Catches energy where the machine says nothing of power, power that changes a run in which no link sleeps,
/// times that do not add up to the measured time of all links, sleep that saves nothing or costs no time, and
/// a row that depends on threads.
#[test]
fn links_that_sleep_save_energy_and_cost_time() {
    let plain = row("", 1);
    assert!(plain.get("energy").is_none(), "{plain}");
    let mut on = row(ALWAYS_ON, 1);
    let energy_on = on.as_object_mut().unwrap().remove("energy").unwrap();
    assert_eq!(on, plain, "always on");
    let of = |energy: &Value, key: &str| energy[key].as_f64().unwrap();
    // 16 endpoints with a link to their switch, and as many between switches, both ways, for 20 us.
    let all_us = 64.0 * 20.0;
    assert_eq!((of(&energy_on, "active_us"), of(&energy_on, "wake_ups")), (all_us, 0.0));
    let of_bits = of(&energy_on, "links_uj") - 2.0 * all_us;
    assert!(of_bits > 0.0 && of_bits < 0.1 * 2.0 * all_us, "{energy_on}");
    let asleep = format!("{ALWAYS_ON} {SLEEPS}");
    let sleeping = row(&asleep, 1);
    let energy = &sleeping["energy"];
    let times = ["active_us", "low_us", "off_us", "waking_us"].map(|key| of(energy, key));
    assert!((times.iter().sum::<f64>() - all_us).abs() < 1e-6, "{energy}");
    // Power by time, and about as many bits; so many short messages that links wake for half of the time.
    let [active, low, _, waking] = times;
    let bits = of(energy, "links_uj") - 2.0 * (active + waking) - 0.2 * low;
    assert!((0.9..1.1).contains(&(bits / of_bits)), "{bits} of {of_bits} in {energy}");
    assert!(of(energy, "wake_ups") > 0.0 && of(energy, "links_uj") < 0.8 * of(&energy_on, "links_uj"));
    let latency = |row: &Value| row["latency_mean_ns"].as_f64().unwrap();
    let later = latency(&sleeping) - latency(&plain);
    // Paths have two or four links, nearly all asleep.
    assert!((500.0..1_300.0).contains(&later), "{later} ns");
    for threads in [2, 3, 8] {
        assert_eq!(row(&asleep, threads), sleeping, "{threads} threads");
    }
}

/// Catches totals that are not those of the table or not its parts', energy that depends on threads or counts
/// time in which the run was over, and columns that are filled where the machine says nothing of its power:
/// benchmarks and scenarios.
#[test]
fn results_have_the_energy_of_every_part() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/incast-victim.toml");
    let scenario = format!("traffic -m carvnet-spineleaf --scenario {scenario} --congestion none");
    let osu = "osu latency -m bxi3-fattree --set topology.k=4 --sizes 64:128".to_owned();
    let columns = ["energy_pj", "low_power_ps", "power_off_ps", "waking_ps", "wake_ups"];
    for (number_of, command) in [osu, scenario].into_iter().enumerate() {
        let run = |sets: &str, name: &str| {
            let out = folder.path().join(format!("{number_of}-{name}"));
            results(&format!("{command} {sets}"), &out)
        };
        let (totals, links) = run("", "plain");
        assert_eq!((&totals["energy_pj"], &totals["wake_ups"]), (&Value::from(0), &Value::from(0)));
        assert!(links.iter().all(|link| columns.iter().all(|column| number(link, column).is_none())));
        let power = format!("{ALWAYS_ON} {SLEEPS} {PARTS} --tables links,parts");
        let (totals, links) = run(&format!("{power} --threads 1"), "asleep");
        let total = |key: &str| totals[key].as_u64().unwrap();
        let keys = ["links_energy_pj", "low_power_ps", "power_off_ps", "waking_ps", "wake_ups"];
        for (column, key) in columns.into_iter().zip(keys) {
            let sum: u64 = links.iter().map(|link| number(link, column).unwrap()).sum();
            assert_eq!(sum, total(key), "{key}: {totals}");
        }
        assert!(total("wake_ups") > 0 && total("low_power_ps") > 0, "{totals}");
        let parts = ["links_energy_pj", "switches_energy_pj", "interfaces_energy_pj"].map(total);
        assert_eq!(parts.iter().sum::<u64>(), total("energy_pj"), "{totals}");
        assert!(parts.iter().all(|pj| *pj > 0), "{totals}");
        let table = rows(&folder.path().join(format!("{number_of}-asleep/parts.parquet")));
        let sum: u64 = table.iter().map(|part| number(part, "energy_pj").unwrap()).sum();
        assert_eq!(sum, parts[1] + parts[2], "{totals}");
        assert_eq!(run(&format!("{power} --threads 3"), "threads").0, totals);
    }
    // Who asks for a picture or a report.
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let drawn = json(&["plot", &at("0-asleep"), "--what", "link-energy", "-o", &at("e.svg"), "--json"]);
    assert_eq!(drawn["picture"]["kind"], "link-energy");
    let said = refused(&["plot", &at("0-plain"), "--what", "link-energy", "-o", &at("f.svg")]);
    assert!(said.contains("links.CLASS.power"), "{said}");
    assert!(weft(&["report", &at("0-asleep"), "-o", &at("r.html")]).status.success());
    let report = fs::read_to_string(at("r.html")).unwrap();
    for told in
        ["links energy (µJ)", "switches energy (µJ)", "energy per delivered bit (pJ)", "Energy of links"]
    {
        assert!(report.contains(told), "{told}");
    }
    // Whose runs end with their last packet: links that carry nothing are active for so long.
    let out = folder.path().join("idle");
    let command = "osu latency -m bxi3-fattree --set topology.k=4 --sizes 64 --from 0 --to 1";
    let (totals, links) = results(&format!("{command} {ALWAYS_ON} {PARTS}"), &out);
    let end = totals["end_ps"].as_u64().unwrap();
    let idle: Vec<u64> = links
        .iter()
        .filter(|link| number(link, "packets") == Some(0))
        .map(|link| number(link, "energy_pj").unwrap())
        .collect();
    let time = idle[0] / 2;
    assert!(idle.len() > 50 && idle.iter().all(|pj| *pj == idle[0]), "{idle:?}");
    assert!((end..end + 1_000_000).contains(&time), "{time} of {end} ps");
    // 8 switches of 90 W and their bits, 16 interfaces of 15 W and their packets.
    let energy = |key: &str| totals[key].as_u64().unwrap() as f64;
    let of_bits = energy("switches_energy_pj") - 8.0 * 90.0 * time as f64;
    let bits = of_bits / 4.0;
    // Messages cross one switch.
    assert!(
        bits >= energy("payload_bytes") * 8.0 && bits < energy("packets") * 8.0 * 256.0,
        "{bits}: {totals}"
    );
    let of_packets = energy("interfaces_energy_pj") - 16.0 * 15.0 * time as f64;
    assert_eq!((of_packets / 2_000.0).round(), 2.0 * energy("packets"), "{totals}");
}

/// Catches intervals that lose energy or sleep of a link, or count it twice, on any level; links without
/// traffic that have no rows although they take energy; and figures where nothing is known of power.
#[test]
fn energy_over_time_adds_up_to_that_of_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let traffic = "traffic -m bxi3-fattree --set topology.k=4 --pattern uniform --load 0.01 --size 64 \
                   --time 20us --warm-up 0us --telemetry 700ns";
    let key = |row: &Row| {
        let ids = ["from_endpoint", "from_switch", "from_port"];
        let of = |(name, field): (&String, &Field)| ids.contains(&name.as_str()).then(|| field.to_string());
        row.get_column_iter().filter_map(of).collect::<Vec<_>>().join(" ")
    };
    for (name, sets) in [("known", format!("{ALWAYS_ON} {SLEEPS}")), ("unknown", String::new())] {
        let out = folder.path().join(name);
        let (_, links) = results(&format!("{traffic} {sets}"), &out);
        let rates = rows(&out.join("rates.parquet"));
        if name == "unknown" {
            assert!(rates.iter().all(|row| number(row, "energy_pj").is_none()));
            continue;
        }
        let level = |row: &Row| match row.get_column_iter().find(|(name, _)| *name == "level") {
            Some((_, Field::UInt(level))) => *level,
            other => panic!("{other:?}"),
        };
        for wanted in 0..5 {
            let mut sums = std::collections::BTreeMap::new();
            for row in rates.iter().filter(|row| level(row) == wanted) {
                let (energy, asleep): &mut (u64, u64) = sums.entry(key(row)).or_default();
                *energy += number(row, "energy_pj").unwrap();
                *asleep += number(row, "asleep_ps").unwrap();
            }
            let of = |link: &Row| {
                let asleep = number(link, "low_power_ps").unwrap() + number(link, "power_off_ps").unwrap();
                (key(link), (number(link, "energy_pj").unwrap(), asleep))
            };
            assert_eq!(sums, links.iter().map(of).collect(), "level {wanted}");
        }
    }
}

/// Catches a signal that does not wake links ahead, or one that is ahead where the routing chooses on the
/// way.
#[test]
fn a_signal_ahead_saves_all_wake_ups_but_one() {
    let latency = |sets: &str, threads: u32| row(sets, threads)["latency_mean_ns"].as_f64().unwrap();
    let (on, asleep) = (latency(ALWAYS_ON, 1), latency(&format!("{ALWAYS_ON} {SLEEPS}"), 1));
    let ahead = format!("{ALWAYS_ON} {SLEEPS} {AHEAD}");
    let woken = latency(&ahead, 1);
    // A link wakes in 300 ns: the signal is ahead by that in the first switch, and loses 20 ns there of the
    // 200 that the packet takes. Some first links are awake.
    assert!((100.0..300.0).contains(&(woken - on)), "{on}, {woken} and {asleep} ns");
    assert!(asleep - woken > 250.0, "{on}, {woken} and {asleep} ns");
    assert_eq!(row(&ahead, 1), row(&ahead, 3));
    let adaptive = "traffic -m bxi3-dragonfly --set topology.routing=ugal-l --pattern uniform --load 0.1";
    let adaptive = format!("{adaptive} {ahead}");
    let said = refused(&adaptive.split_whitespace().collect::<Vec<_>>());
    assert!(said.contains("links.*.power.policy") && said.contains("idle-timeout"), "{said}");
    let congestion = format!("{TRAFFIC} {ahead} --set congestion.kind=dcqcn");
    let said = refused(&congestion.split_whitespace().collect::<Vec<_>>());
    assert!(said.contains("wake on injection") && said.contains("congestion.kind=none"), "{said}");
}

/// Catches a breakdown that calls waking something else, or whose pieces no longer add up.
#[test]
fn a_breakdown_tells_of_waking() {
    let command = format!(
        "osu latency -m bxi3-fattree --set topology.k=4 --sizes 64 --from 0 --to 15 --breakdown --quiet \
         --json {ALWAYS_ON} {SLEEPS} --set links.default.power.idle_after=0us"
    );
    let report = json(&command.split_whitespace().collect::<Vec<_>>());
    let breakdown = &report["rows"][0]["breakdown"];
    let pieces = breakdown["pieces"].as_array().unwrap();
    let time = |piece: &Value| piece["time_ns"].as_f64().unwrap();
    let waking: Vec<f64> = pieces.iter().filter(|piece| piece["what"] == "link wakes").map(time).collect();
    // Four links there and four back.
    assert_eq!(waking, [300.0; 8], "{pieces:#?}");
    let all: f64 = pieces.iter().map(time).sum();
    assert!((all - breakdown["time_ns"].as_f64().unwrap()).abs() < 0.01);
}
