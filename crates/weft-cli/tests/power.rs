//! `[links.CLASS.power]` through the whole program.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::json;
use serde_json::Value;

const TRAFFIC: &str = "traffic -m bxi3-fattree --set topology.k=4 --pattern uniform --load 0.01 --size 64 \
                       --time 20us --warm-up 10us --check --quiet --json";
const ALWAYS_ON: &str = "--set links.default.power.active=2W --set links.default.power.per_bit=3pJ/b";
const SLEEPS: &str = "--set links.default.power.policy=idle-timeout --set links.default.power.low=200mW \
                      --set links.default.power.idle_after=100ns --set links.default.power.wake=300ns";

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
