//! Several jobs on one machine: alone and together, and the same for any threads.

use crate::common::{InterruptAt, machine, options};
use crate::replay::{exchange, halo, replay, request, write};
use std::path::{Path, PathBuf};
use weft_results::{Ending, JobLinkRow, JobRateRow, LinkRow, StoredResult, Table, digest};
use weft_sim::experiment::replay::{JobFigures, Mapping, ReplayRequest};
use weft_sim::experiment::{Experiment, ExperimentOptions, Output, Start};
use weft_units::{Bytes, Span};

/// A ring of neighbours and an exchange of all, as two traces.
fn jobs(folder: &Path, ranks: u32) -> [PathBuf; 2] {
    let (ring, all) = (folder.join("ring.weft"), folder.join("all.weft"));
    write(&ring, ranks, |rank| halo(ranks, rank));
    write(&all, ranks, |rank| exchange(ranks, rank));
    [ring, all]
}

/// The figures of each job.
fn figures(request: &ReplayRequest, options: &ExperimentOptions) -> Vec<(f64, JobFigures)> {
    let report = replay(request, options);
    assert_eq!((report.ended, report.detail), (Ending::Finished, None));
    let job = |row: &weft_sim::experiment::replay::ReplayRow| {
        (row.figures.run_time_us, row.job.clone().expect("there are several"))
    };
    report.rows.iter().map(|measured| job(&measured.row)).collect()
}

/// Catches jobs that are in each other's way without a link that they share, a run time that does not count
/// from the job's start, and a job that runs alone in another way than beside others.
#[test]
fn jobs_on_disjoint_switches_take_exactly_their_isolated_time() {
    let folder = tempfile::tempdir().unwrap();
    for (name, sets, map, ranks, per_host) in [
        // A leaf each.
        ("bxi3-fattree", &[][..], Mapping::Switch, 16, Some(1)),
        ("bxi3-megafly", &["topology.routing=minimal"], Mapping::Switch, 6, Some(1)),
        ("carvnet-spineleaf", &[], Mapping::Switch, 4, Some(1)),
        // A mezzanine each.
        ("exanest", &[], Mapping::Linear, 64, None),
    ] {
        let paths = jobs(folder.path(), ranks);
        let together = ReplayRequest {
            map,
            ranks_per_host: per_host,
            isolated: true,
            ..request(machine(name, sets), &[&paths[0], &paths[1]])
        };
        // At an edge of no clock of exanest.
        let late = ReplayRequest { starts: vec![Span::from_ns(12_345), Span::ZERO], ..together.clone() };
        for request in [&together, &late] {
            let start = request.starts.first().map_or(0.0, |start| start.as_us_f64());
            for (number, (run_time, job)) in figures(request, &options(3, None)).iter().enumerate() {
                let start = if number == 0 { start } else { 0.0 };
                assert_eq!(job.isolated_run_time_us, Some(*run_time), "{name}, job {number}");
                assert_eq!((job.slowdown, job.start_us), (Some(1.0), start), "{name}, job {number}");
                assert!((job.end_us - run_time - start).abs() < 1e-6, "{name}: {job:?}");
            }
        }
    }
}

/// Catches jobs that share links and do not feel it, and a slow-down that is not the ratio of its parts.
#[test]
fn jobs_that_share_links_slow_each_other_down() {
    let folder = tempfile::tempdir().unwrap();
    let paths = jobs(folder.path(), 64);
    let sets = &["topology.k=16", "links.default.rate=10Gb/s"];
    let request = ReplayRequest {
        // Every second host has the way up to every second spine, with d-mod-k: they would share no link.
        map: Mapping::Random,
        ranks_per_host: Some(1),
        isolated: true,
        ..request(machine("bxi3-fattree", sets), &[&paths[1], &paths[1]])
    };
    for (run_time, job) in figures(&request, &options(1, None)) {
        let (alone, slowdown) = (job.isolated_run_time_us.unwrap(), job.slowdown.unwrap());
        assert!(slowdown > 1.01, "{job:?}");
        assert_eq!(slowdown, run_time / alone);
    }
}

/// Tables of jobs as well; links by job where a run is not saved.
fn with_jobs(threads: u32, directory: &Path, links: bool) -> ExperimentOptions {
    let mut all = options(threads, Some(directory.to_owned()));
    let output = all.output.as_mut().unwrap();
    output.tables.extend([Table::Rates, Table::Queues, Table::JobRates]);
    output.tables.extend(links.then_some(Table::JobLinks));
    all
}

/// Catches results of jobs that depend on threads, or on having been saved, interrupted and resumed; and
/// tables of jobs that do not add up to those of the network.
#[test]
fn jobs_are_the_same_however_they_are_run() {
    let folder = tempfile::tempdir().unwrap();
    let paths = jobs(folder.path(), 24);
    let request = ReplayRequest {
        map: Mapping::Node,
        ranks_per_host: Some(1),
        starts: vec![Span::ZERO, Span::from_us(5)],
        isolated: true,
        telemetry: Some(Span::from_us(2)),
        ..request(machine("bxi3-megafly", &[]), &[&paths[0], &paths[1]])
    };
    let into = |name: &str| folder.path().join(name);
    let digests = [1, 2, 3, 8].map(|threads| {
        let directory = into(&threads.to_string());
        figures(&request, &with_jobs(threads, &directory, false));
        digest(&directory).unwrap()
    });
    assert!(digests.iter().all(|other| *other == digests[0]), "{digests:?}");

    let (directory, save_every) = (into("resumed"), Some(Span::from_us(3)));
    let first = ExperimentOptions { save_every, ..with_jobs(2, &directory, false) };
    let report = request.run(&first, InterruptAt::new(1).control()).unwrap();
    assert_eq!(report.ended, Ending::Interrupted);
    let output = Output { directory: directory.clone(), tables: Vec::new(), start: Start::Resume };
    figures(&request, &ExperimentOptions { output: Some(output), save_every, ..options(3, None) });
    assert_eq!(digest(&directory).unwrap(), digests[0], "after interrupt and resume");

    let directories = [1, 3].map(|threads| into(&format!("links-{threads}")));
    for (threads, directory) in [1, 3].into_iter().zip(&directories) {
        figures(&request, &with_jobs(threads, directory, true));
    }
    assert_eq!(digest(&directories[0]).unwrap(), digest(&directories[1]).unwrap());
    let result = StoredResult::open(&directories[0]).unwrap();
    let (mut whole, mut by_job) = ([0; 2], [0; 2]);
    result
        .visit(|row: LinkRow| {
            whole[0] += row.packets;
            whole[1] += row.busy_ps.as_ps();
        })
        .unwrap();
    let mut sent = [Bytes::ZERO; 2];
    result
        .visit(|row: JobLinkRow| {
            by_job[0] += row.packets;
            by_job[1] += row.busy_ps.as_ps();
            if row.from_endpoint.is_some() {
                sent[row.job.expect("each endpoint has one job") as usize] += row.payload_bytes;
            }
        })
        .unwrap();
    // A picosecond of rounding for each packet at most.
    assert!(by_job[0] == whole[0] && by_job[1].abs_diff(whole[1]) <= whole[0], "{by_job:?}, {whole:?}");
    let (mut came, mut alone) = ([Bytes::ZERO; 2], [Bytes::ZERO; 2]);
    result
        .visit(|row: JobRateRow| {
            if row.level == 0 {
                let sums = if row.jobs == 1 { &mut alone } else { &mut came };
                sums[row.job.expect("each endpoint has one job") as usize] += row.payload_bytes;
            }
        })
        .unwrap();
    assert_eq!(came, alone, "a job moves the same bytes alone");
    // Acknowledgements have no payload.
    assert_eq!(came, sent);
}
