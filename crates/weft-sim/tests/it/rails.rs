//! Several rails: times in closed form at zero load, the bandwidth of all interfaces of a host, the same
//! results for any threads and after every resume, and what is refused.

use crate::common::{InterruptAt, machine, options};
use weft_results::{Ending, digest};
use weft_sim::experiment::osu::{Benchmark, Iterations, Layer, OsuReport, OsuRequest, Repetitions};
use weft_sim::experiment::replay::Mapping;
use weft_sim::experiment::{Experiment, ExperimentOptions, Output, Start};
use weft_units::{Bytes, Span};

fn request(name: &str, sets: &[&str], benchmark: Benchmark, bytes: u64) -> OsuRequest {
    OsuRequest {
        machine: machine(name, sets),
        benchmark,
        sizes: vec![Bytes::new(bytes)],
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

/// Of two ranks on hosts of four interfaces, in ps.
fn latency(sets: &[&str], layer: Layer, bytes: u64) -> i64 {
    let sets = [&["host.endpoints_per_host=4"], sets].concat();
    let request = OsuRequest { layer, ..request("bxi2-fattree", &sets, Benchmark::Latency, bytes) };
    (osu(&request, &options(1, None)).rows[0].row.latency_us.unwrap() * 1e6).round() as i64
}

const OVERHEADS: &str = "nic.model=overheads";
const STRIPING: &str = "messaging.rails=striping";
const BY_INTERFACE: &str = "messaging.rails_by=interface";

/// Catches a part that waits for another, and one that is not as long as the others: a striped message takes
/// as long as its quarter by one rail.
#[test]
fn a_striped_message_takes_as_long_as_a_part_of_it() {
    for bytes in [16 << 10, 64 << 10, 1 << 20] {
        let striped = latency(&[STRIPING], Layer::Nic, bytes);
        assert_eq!(striped, latency(&[], Layer::Nic, bytes / 4), "{bytes} B");
    }
    // At the limit it is not cut.
    let whole = latency(&[STRIPING], Layer::Nic, 8 << 10);
    assert_eq!(whole, latency(&[], Layer::Nic, 8 << 10));
}

/// Catches parts that cost the library nothing, and such of the interface that cost it something: three more
/// descriptors of 100 ns.
#[test]
fn the_library_spends_a_descriptor_on_each_further_part() {
    let by_interface = latency(&[STRIPING, BY_INTERFACE], Layer::Mpi, 12 << 10);
    let by_software = latency(&[STRIPING], Layer::Mpi, 12 << 10);
    assert_eq!(by_software - by_interface, 3 * 100_000);
}

/// Catches a whole message that takes longer by another rail, eager or announced.
#[test]
fn a_message_takes_as_long_by_any_rail() {
    for bytes in [0, 8, 100_000] {
        let in_turn = latency(&["messaging.rails=multiplexing"], Layer::Mpi, bytes);
        assert_eq!(in_turn, latency(&[], Layer::Mpi, bytes), "{bytes} B");
    }
}

/// D1.4 §3: four times the bandwidth above 8 KB, by the library and by the interface.
#[test]
fn four_rails_have_four_times_the_bandwidth() {
    let gigabits = |sets: &[&str], bytes| {
        let sets = [&["host.endpoints_per_host=4"], sets].concat();
        let request = request("bxi2-fattree", &sets, Benchmark::Bw, bytes);
        osu(&request, &options(1, None)).rows[0].row.bandwidth_gbps.unwrap()
    };
    for bytes in [256 << 10, 4 << 20] {
        let one = gigabits(&[], bytes);
        for by in ["messaging.rails_by=software", BY_INTERFACE] {
            for rails in [STRIPING, "messaging.rails=multiplexing"] {
                let gain = gigabits(&[rails, by], bytes) / one;
                assert!((3.7..=4.01).contains(&gain), "{rails} {by}, {bytes} B: {gain}");
            }
        }
    }
}

/// Catches results that depend on threads or on having been interrupted and resumed: ranks of a host share
/// its rails, on the overheads interface, on that of Portals, and on one of blocks, whose links lose packets.
#[test]
fn the_same_however_it_is_run() {
    let few = "host.endpoints_per_host=2";
    let cases = [
        (
            "bxi2-fattree",
            vec!["host.endpoints_per_host=4", "host.cores=4", STRIPING, "messaging.stripe_above=100"],
        ),
        (
            "bxi2-fattree",
            vec!["host.endpoints_per_host=4", "host.cores=4", "messaging.rails=multiplexing", OVERHEADS],
        ),
        ("bxi2-fattree", vec![few, "host.cores=4", STRIPING, "faults=[{drop=200, corrupt=200}]"]),
        ("carvnet-spineleaf", vec![few, STRIPING, "faults=[{drop=200}]"]),
        ("carvnet-spineleaf", vec![few, "messaging.rails=multiplexing", "faults=[{corrupt=200}]"]),
    ];
    for (number, (name, sets)) in cases.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let into = |name: &str| folder.path().join(name);
        let base = request(name, sets, Benchmark::Alltoall, 0);
        let sizes = [64, 5000, 40_000].map(Bytes::new).to_vec();
        let iterations = Iterations::Exactly(2);
        let repetitions = Repetitions { warm_up: Some(1), iterations, ..Repetitions::default() };
        let request = OsuRequest { sizes, ranks: Some(16), ranks_per_host: Some(3), repetitions, ..base };
        let mut digests = Vec::new();
        for threads in [1, 2, 3, 8] {
            let directory = into(&threads.to_string());
            let check = threads == 1;
            osu(&request, &ExperimentOptions { check, ..options(threads, Some(directory.clone())) });
            digests.push(digest(&directory).unwrap());
        }
        assert!(digests.iter().all(|other| *other == digests[0]), "case {number}: {digests:?}");
        let directory = into("resumed");
        let save_every = Some(Span::from_us(50));
        let first = ExperimentOptions { save_every, ..options(2, Some(directory.clone())) };
        let report = request.run(&first, InterruptAt::new(2).control()).unwrap();
        assert_eq!(report.ended, Ending::Interrupted, "the runs take several epochs");
        let output = Output { directory: directory.clone(), tables: Vec::new(), start: Start::Resume };
        osu(&request, &ExperimentOptions { output: Some(output), save_every, ..options(3, None) });
        assert_eq!(digest(&directory).unwrap(), digests[0], "case {number}, after interrupt and resume");
    }
}

/// Catches machines whose rails are not of one network, and reports that would be wrong, which run all the
/// same.
#[test]
fn what_cannot_be_a_rail_is_refused_with_the_key_to_change() {
    let refused = |name: &str, sets: &[&str], breakdown: bool| {
        let request = OsuRequest { breakdown, ..request(name, sets, Benchmark::Latency, 8) };
        let refused = request.run(&options(1, None), InterruptAt::new(u32::MAX).control());
        refused.unwrap_err().to_string()
    };
    // Three endpoints at each switch.
    let error = refused("bxi3-dragonfly", &["host.endpoints_per_host=2", STRIPING], false);
    for part in ["messaging.rails", "host 1", "endpoint 2 at", "endpoint 3 at", "host.endpoints_per_host"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let four = "host.endpoints_per_host=4";
    let error = refused("bxi2-fattree", &[four, STRIPING, "fabric.kind=ideal"], false);
    assert!(error.contains("fabric.kind=packet"), "{error}");
    let error = refused("bxi2-fattree", &[four, STRIPING], true);
    assert!(error.contains("breakdowns") && error.contains("messaging.rails=none"), "{error}");
    // Whatever they are, they are not used.
    let alone = request("bxi3-dragonfly", &["host.endpoints_per_host=2"], Benchmark::Latency, 8);
    osu(&alone, &options(1, None));
}
