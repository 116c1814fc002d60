//! OSU benchmarks as experiments: the same results for any threads and after every resume; rows that
//! stand for themselves; what is refused.

use crate::common::{InterruptAt, machine, options};
use weft_results::{Ending, digest};
use weft_sim::experiment::osu::{
    Benchmark, ExpectedBcastRequest, Iterations, Layer, OsuReport, OsuRequest, Repetitions,
};
use weft_sim::experiment::replay::Mapping;
use weft_sim::experiment::{Experiment, ExperimentOptions, Output, Request, Start, read_request};
use weft_units::{Bytes, Span};

fn request(name: &str, benchmark: Benchmark, sizes: &[u64]) -> OsuRequest {
    OsuRequest {
        machine: machine(name, &[]),
        benchmark,
        sizes: sizes.iter().copied().map(Bytes::new).collect(),
        between: None,
        ranks: None,
        map: Mapping::Linear,
        ranks_per_host: None,
        repetitions: Repetitions::default(),
        layer: Layer::Mpi,
        algorithm: None,
        seed: 7,
        breakdown: false,
        data: false,
        telemetry: None,
    }
}

fn osu(request: &OsuRequest, options: &ExperimentOptions) -> OsuReport {
    let report = request.run(options, InterruptAt::new(u32::MAX).control()).unwrap();
    assert_eq!((report.ended, report.detail.as_deref()), (Ending::Finished, None));
    report
}

/// Catches results that depend on threads or on having been interrupted and resumed, within a run and
/// between two.
#[test]
fn the_same_however_it_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [8, 3000, 40_000];
    let iterations = Iterations::Exactly(2);
    let repetitions = Repetitions { warm_up: Some(1), iterations, ..Repetitions::default() };
    let base = request("exanest", Benchmark::Allreduce, &sizes);
    let request = OsuRequest { ranks: Some(70), repetitions, ..base };
    let into = |name: &str| folder.path().join(name);
    let mut digests = Vec::new();
    for threads in [1, 2, 3] {
        let directory = into(&threads.to_string());
        let check = threads == 1;
        let report = osu(&request, &ExperimentOptions { check, ..options(threads, Some(directory.clone())) });
        assert_eq!(report.rows.len(), 3);
        digests.push(digest(&directory).unwrap());
    }
    assert!(digests.iter().all(|other| *other == digests[0]), "{digests:?}");

    for (epoch, save_every) in [(2, Span::from_us(40)), (3, Span::from_us(150))] {
        let directory = into(&format!("resumed {epoch}"));
        let save_every = Some(save_every);
        let first = ExperimentOptions { save_every, ..options(2, Some(directory.clone())) };
        let report = request.run(&first, InterruptAt::new(epoch).control()).unwrap();
        assert_eq!(report.ended, Ending::Interrupted, "the runs take several epochs");
        assert_eq!(Request::Osu(request.clone()), read_request(&directory).unwrap());
        let output = Output { directory: directory.clone(), tables: Vec::new(), start: Start::Resume };
        osu(&request, &ExperimentOptions { output: Some(output), save_every, ..options(3, None) });
        assert_eq!(digest(&directory).unwrap(), digests[0], "after interrupt and resume");
    }
}

/// Catches a size whose row depends on the sizes before it.
#[test]
fn a_row_does_not_depend_on_the_others() {
    for benchmark in [Benchmark::Latency, Benchmark::Bw, Benchmark::Bcast] {
        let both = osu(&request("exanest", benchmark, &[1, 300]), &options(1, None));
        let one = osu(&request("exanest", benchmark, &[300]), &options(1, None));
        let (mut row, alone) = (both.rows[1].row.clone(), &one.rows[0].row);
        row.run = 0;
        assert_eq!(row, *alone, "{benchmark}");
    }
}

#[test]
fn every_benchmark_runs_on_every_machine() {
    for name in weft_machine::SHIPPED.iter().map(|shipped| shipped.name) {
        let machine = weft_machine::load(name, &[] as &[&str]).unwrap();
        let cores = machine.hosts() * u64::from(machine.host.cores);
        for benchmark in Benchmark::ALL {
            let ranks = (!benchmark.is_for_two()).then_some(cores.min(4) as u32);
            let report = osu(&OsuRequest { ranks, ..request(name, benchmark, &[64]) }, &options(1, None));
            let row = &report.rows[0].row;
            let (latency, bandwidth) = (row.latency_us, row.bandwidth_gbps);
            assert_eq!(bandwidth.is_some(), benchmark.is_of_bandwidth(), "{name} {benchmark}");
            assert!(latency.or(bandwidth).is_some_and(|value| value > 0.0), "{name} {benchmark}: {row:?}");
            assert_eq!(row.latency_min_us.is_some(), benchmark.collective().is_some());
            assert!(row.latency_min_us <= latency && latency <= row.latency_max_us.or(latency));
            assert!(row.messages > 0 && row.packet_hops > 0);
        }
    }
}

/// Without software a message is faster, and a path of more hops slower.
#[test]
fn layers_and_paths_differ() {
    let latency = |from: &str, to: &str, layer| {
        let between = Some([from.to_owned(), to.to_owned()]);
        let request = OsuRequest { between, layer, ..request("exanest", Benchmark::Latency, &[0]) };
        osu(&request, &options(1, None)).rows[0].row.latency_us.unwrap()
    };
    let [own, near, far] = ["M1QAF1", "M1QAF2", "M5QCF3"].map(|to| latency("M1QAF1", to, Layer::Mpi));
    assert!(own < near && near < far, "{own} {near} {far}");
    assert!(latency("M1QAF1", "M1QAF2", Layer::Nic) < near);
}

#[test]
fn every_algorithm_has_rows_of_its_own() {
    let request = OsuRequest {
        ranks: Some(8),
        algorithm: Some("all".to_owned()),
        ..request("exanest", Benchmark::Bcast, &[8, 64])
    };
    let report = osu(&request, &options(1, None));
    let rows: Vec<_> = report.rows.iter().map(|measured| &measured.row).collect();
    let own = rows.iter().filter(|row| row.algorithm.as_deref() == Some("binomial")).count();
    assert!(own == 2 && rows.len() >= 8, "{rows:?}");
    assert!(rows.iter().enumerate().all(|(index, row)| row.run == index as u32));
    // What the machine takes by itself.
    let binomial = rows.iter().find(|row| row.algorithm.as_deref() == Some("binomial")).unwrap();
    let by_table = osu(&OsuRequest { algorithm: None, ..request }, &options(1, None));
    assert_eq!(binomial.latency_us, by_table.rows[0].row.latency_us);
}

/// Catches an algorithm that cannot do with a number of ranks.
#[test]
fn every_algorithm_takes_any_number_of_ranks() {
    for benchmark in Benchmark::ALL.into_iter().filter(|benchmark| benchmark.collective().is_some()) {
        for ranks in [2, 5, 6, 7, 16] {
            let algorithm = Some("all".to_owned());
            let request =
                OsuRequest { ranks: Some(ranks), algorithm, ..request("exanest", benchmark, &[1, 100]) };
            assert!(osu(&request, &options(1, None)).rows.iter().all(|row| row.row.latency_us > Some(0.0)));
        }
    }
}

/// Catches a software allreduce under the accelerator's name, beyond the accelerator's limits or without one.
#[test]
fn the_accelerator_names_its_limit() {
    let request = OsuRequest {
        ranks: Some(4),
        algorithm: Some("accelerator".to_owned()),
        machine: machine("bxi3-fattree", &[]),
        ..request("exanest", Benchmark::Allreduce, &[8])
    };
    let said = refused(&request);
    assert!(said.contains("this machine has none"), "{said}");
}

#[test]
fn a_timeline_has_one_run_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let timeline = folder.path().join("osu.json");
    let request = request("exanest", Benchmark::Latency, &[0, 8]);
    let report = osu(&request, &ExperimentOptions { timeline: Some(timeline.clone()), ..options(1, None) });
    let text = std::fs::read_to_string(&timeline).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let first = |name: &str| {
        let times =
            events.iter().filter(|event| event["name"] == name).map(|event| event["ts"].as_f64().unwrap());
        times.collect::<Vec<_>>()
    };
    let times = first("iteration 0");
    assert_eq!(times.len(), 2, "rank 0 alone reads its clock");
    assert!(times[0] < report.rows[0].row.run_time_us && times[1] > report.rows[0].row.run_time_us);
    assert!(text.contains("rank 1 (M1QAF2)"));
}

/// Expected against observed, and that nothing else is between them.
#[test]
fn equation_1_is_the_sum_of_its_steps() {
    let expected = ExpectedBcastRequest {
        machine: machine("exanest", &[]),
        sizes: [1, 4096].map(Bytes::new).to_vec(),
        ranks: vec![4, 16, 64],
        ranks_per_host: None,
        repetitions: Repetitions::default(),
        seed: 7,
    };
    let report = expected.run(&options(1, None), InterruptAt::new(u32::MAX).control()).unwrap();
    assert_eq!(report.rows.len(), 6);
    for row in report.rows.iter().map(|measured| &measured.row) {
        let latencies = [row.latency_mpsoc_us, row.latency_qfdb_us, row.latency_mezzanine_us];
        let steps = [row.steps_mpsoc, row.steps_qfdb, row.steps_mezzanine];
        let sum: f64 = std::iter::zip(steps, latencies).map(|(steps, one)| f64::from(steps) * one).sum();
        assert!((row.expected_us - sum).abs() < 1e-9 && row.observed_us > 0.0, "{row:?}");
        assert!((row.relative_deviation - (sum / row.observed_us - 1.0)).abs() < 1e-9);
    }
    let last = &report.rows[5].row;
    let request = OsuRequest { ranks: Some(64), ..request("exanest", Benchmark::Bcast, &[4096]) };
    let observed = osu(&request, &options(1, None)).rows[0].row.latency_us.unwrap();
    assert_eq!((last.ranks, last.size_bytes.get(), last.observed_us), (64, 4096, observed));
    assert_eq!([last.steps_mpsoc, last.steps_qfdb, last.steps_mezzanine], [2, 2, 2]);
}

fn refused(request: &OsuRequest) -> String {
    request.run(&options(1, None), InterruptAt::new(u32::MAX).control()).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let latency = || request("exanest", Benchmark::Latency, &[8]);
    let between = |a: &str, b: &str| Some([a.to_owned(), b.to_owned()]);
    let said = refused(&OsuRequest { between: between("M1QAF1", "M1QAF9"), ..latency() });
    assert!(said.contains("M1QAF9") && said.contains("nearest"), "{said}");
    let said = refused(&OsuRequest { ranks: Some(3), ..latency() });
    assert!(said.contains("--ranks 3") && said.contains("2 ranks"), "{said}");
    let mbw = request("exanest", Benchmark::MbwMr, &[8]);
    assert!(refused(&OsuRequest { ranks: Some(5), ..mbw.clone() }).contains("even number"));
    assert!(refused(&OsuRequest { between: between("M1QAF1", "M1QAF2"), ..mbw }).contains("--ranks"));
    let bcast = request("exanest", Benchmark::Bcast, &[8]);
    assert!(refused(&OsuRequest { ranks: Some(1), ..bcast.clone() }).contains("at least 2 ranks"));
    let said = refused(&OsuRequest { ranks: Some(513), ..bcast.clone() });
    assert!(said.contains("513 ranks") && said.contains("512 cores"), "{said}");
    let said = refused(&OsuRequest { ranks: Some(200), ranks_per_host: Some(1), ..bcast.clone() });
    assert!(said.contains("128 cores") && said.contains("--ppn"), "{said}");
    let said = refused(&OsuRequest { algorithm: Some("binomal".to_owned()), ..bcast.clone() });
    assert!(said.contains("binomial"), "{said}");
    assert!(refused(&request("exanest", Benchmark::Bw, &[0])).contains("0 bytes has none"));
    assert!(refused(&request("exanest", Benchmark::Latency, &[1 << 40])).contains("at most"));
    let none = Repetitions { iterations: Iterations::Exactly(0), ..Repetitions::default() };
    assert!(refused(&OsuRequest { repetitions: none, ..latency() }).contains("--iterations 0"));
    let without = Repetitions { barrier: false, ..Repetitions::default() };
    assert!(refused(&OsuRequest { repetitions: without, ..latency() }).contains("--no-barrier"));
    let window = Repetitions { window: Some(3), ..Repetitions::default() };
    assert!(refused(&OsuRequest { repetitions: window, ..latency() }).contains("--window"));
    // One core per host: no room for two ranks at one endpoint.
    let one = machine("exanest", &["host.cores=1"]);
    let said = refused(&OsuRequest { machine: one, between: between("M1QAF1", "M1QAF1"), ..latency() });
    assert!(said.contains("1 cores") && said.contains("name another"), "{said}");
}

/// Catches bytes that cost time or change a decision, that are lost or put elsewhere on links that lose and
/// damage packets (eager, rendezvous, one-sided and reduced by the accelerator), and results that depend on
/// threads; and an interface without memory that says that all is well.
#[test]
fn real_bytes_arrive_and_take_no_time() {
    let faulty = machine("exanest", &["faults=[{drop=2000,corrupt=2000}]"]);
    let cases = [
        (Benchmark::Latency, None, Some(2), &[0, 20, 5000, 70_000][..]),
        (Benchmark::GetBw, None, Some(2), &[3000]),
        (Benchmark::Allreduce, None, Some(9), &[20, 5000]),
        (Benchmark::Allreduce, Some("accelerator"), Some(16), &[4, 700]),
    ];
    for (benchmark, algorithm, ranks, sizes) in cases {
        let bare = OsuRequest {
            machine: faulty.clone(),
            algorithm: algorithm.map(str::to_owned),
            ranks,
            ranks_per_host: Some(1),
            ..request("exanest", benchmark, sizes)
        };
        let without = osu(&bare, &options(1, None));
        let with = OsuRequest { data: true, ..bare };
        for threads in [1, 3] {
            let report = osu(&with, &options(threads, None));
            for (row, bare) in report.rows.iter().zip(&without.rows) {
                let mut row = row.row.clone();
                let compared = row.compared_bytes.take().unwrap();
                let least = 7 * row.size_bytes.get() * u64::from(row.ranks.min(2) / 2);
                assert!(compared >= least, "{benchmark}: {compared} of {} bytes", row.size_bytes);
                assert_eq!(row, bare.row, "{benchmark}: bytes take no time");
            }
        }
    }
    let simple = OsuRequest { data: true, ..request("bxi3-fattree", Benchmark::Latency, &[8]) };
    let said = simple.run(&options(1, None), InterruptAt::new(u32::MAX).control()).unwrap_err().to_string();
    assert!(said.contains("--data") && said.contains("nic.model=exanet"), "{said}");
}

/// Catches waits for the agent that are called contention, and pieces that do not add up: eight ranks of two
/// hosts, whose transfers share an agent on each side.
#[test]
fn waits_for_the_agent_are_the_interfaces() {
    let request = OsuRequest {
        ranks: Some(8),
        ranks_per_host: Some(4),
        breakdown: true,
        ..request("exanest", Benchmark::MbwMr, &[4096])
    };
    let report = osu(&request, &options(1, None));
    let breakdown = report.rows[0].row.breakdown.as_ref().unwrap();
    let agent = |piece: &&weft_sim::experiment::path::PieceRow| piece.what == "waits for the agent";
    let waits: Vec<_> = breakdown.pieces.iter().filter(agent).collect();
    assert!(!waits.is_empty() && waits.iter().all(|piece| piece.category == "interface"));
    let sum: f64 = breakdown.pieces.iter().map(|piece| piece.time_ns).sum();
    assert!((sum - breakdown.time_ns).abs() < 1e-3, "{sum} of {}", breakdown.time_ns);
}

/// Catches an iteration that ends with what is done in the background, and so with nothing that is known:
/// whoever sees to messages, the rank in its calls, a thread or the interface, each iteration is explained
/// whole.
#[test]
fn every_iteration_is_explained() {
    let machines = [
        ("exanest", "call"),
        ("exanest", "thread"),
        ("exanest", "nic"),
        ("communication-ip", "nic"),
        ("bxi3-fattree", "thread"),
    ];
    for (name, progress) in machines {
        for benchmark in Benchmark::ALL {
            let ranks = (!benchmark.is_for_two()).then_some(4);
            let progress = format!("messaging.progress={progress}");
            let machine = machine(name, &[&progress]);
            let request = OsuRequest { machine, ranks, breakdown: true, ..request(name, benchmark, &[64]) };
            let report = osu(&request, &options(1, None));
            let breakdown = report.rows[0].row.breakdown.as_ref().unwrap();
            let sum: f64 = breakdown.pieces.iter().map(|piece| piece.time_ns).sum();
            assert!((sum - breakdown.time_ns).abs() < 1e-3, "{name} {progress} {benchmark}: {sum}");
        }
    }
}

#[test]
fn equation_1_is_of_exanest() {
    let wrong = ExpectedBcastRequest {
        machine: machine("bxi3-fattree", &[]),
        sizes: vec![Bytes::new(1)],
        ranks: Vec::new(),
        ranks_per_host: None,
        repetitions: Repetitions::default(),
        seed: 1,
    };
    let said = wrong.run(&options(1, None), InterruptAt::new(u32::MAX).control()).unwrap_err();
    assert!(said.to_string().contains("take -m exanest"), "{said}");
}
