//! Scenarios on shipped machines, by the experiment that the command runs.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use weft_results::Ending;
use weft_sim::experiment::scenario::{ScenarioReport, ScenarioRequest, ScenarioRow};
use weft_sim::experiment::{Control, Experiment, ExperimentOptions, Interrupt, Silent, machine};

fn run(name: &str, sets: &[&str], (congestion, threads): (&[&str], u32)) -> ScenarioReport {
    let path = format!("{}/../../scenarios/{name}", env!("CARGO_MANIFEST_DIR"));
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let request = ScenarioRequest {
        machine: machine::input("carvnet-spineleaf", &sets).unwrap(),
        name: name.to_owned(),
        text: std::fs::read_to_string(path).unwrap(),
        congestion: congestion.iter().map(|&way| way.to_owned()).collect(),
        seed: 1,
        telemetry: None,
    };
    let options = ExperimentOptions { threads, check: true, ..ExperimentOptions::default() };
    let control = Control { interrupt: &Interrupt::default(), progress: &Silent };
    request.run(&options, control).unwrap()
}

fn print(row: &ScenarioRow) {
    println!("{row:#?}");
}

/// Catches an incast whose flows do not get their max-min shares under ACC, a victim that does not get what
/// the margin leaves, and a way without a row.
#[test]
fn the_incast_with_a_victim_converges_under_acc() {
    let ways = ["none", "pause", "acc", "dcqcn", "ib"];
    let report = run("incast-victim.toml", &["nic.model=overheads"], (&ways, 1));
    report.rows.iter().for_each(|row| print(&row.row));
    assert_eq!((report.ended, report.rows.len()), (Ending::Finished, 5));
    assert!(report.rows[1].row.refused.as_ref().unwrap().contains("pause is not modelled"));
    let (none, acc) = (&report.rows[0].row, &report.rows[2].row);
    // Packets of 256 B take 288 B and a word in lines of 100 Gb/s.
    let payload = 100.0 * 256.0 / 296.0;
    for group in &acc.groups {
        let rate = group.throughput_gbps;
        assert!(rate > 0.9 * payload && rate < payload, "{}: {rate} of {payload}", group.name);
    }
    // Whole transfers count: one of the flows has 13 where the others have 12.
    assert!(acc.groups[0].fairness.unwrap() > 0.998);
    assert!(acc.queue_max_bytes < none.queue_max_bytes);
}

/// Catches an interface that does not obey: under ACC the incast keeps less in queues than without.
#[test]
fn the_interface_of_carvnet_obeys() {
    let report = run("incast-victim.toml", &[], (&["none", "acc"], 3));
    report.rows.iter().for_each(|row| print(&row.row));
    let queued = |row: usize| report.rows[row].row.queued_max_bytes;
    assert!(queued(1) < queued(0), "{} with, {} without", queued(1), queued(0));
}
