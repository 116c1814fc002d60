//! Traces that others have made, in formats of theirs: read to their ends, with the counts of their files.
//!
//! They lie in the folder of `WEFT_TRACES`, or in `../shared/traces` beside this repository. A test whose
//! trace is not there is skipped and says so.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use weft_formats::{Trace, TraceStats, validate};

/// The file of this name among the traces of others; `None`: it is not there, and the test is skipped.
fn found(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("WEFT_TRACES").map_or(beside, PathBuf::from);
    let path = folder.join(name);
    if path.exists() {
        return Some(path);
    }
    let thread = std::thread::current();
    let test = format!("{} {}", env!("CARGO_CRATE_NAME"), thread.name().unwrap_or("main"));
    let line = format!("skipped: {test}: no {}; WEFT_TRACES names the folder\n", path.display());
    // As the tests of the command tell it: tools/test.py counts these lines.
    match std::env::var_os("WEFT_SKIPPED") {
        Some(file) => {
            let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
            file.write_all(line.as_bytes()).unwrap();
        }
        None => print!("{line}"),
    }
    None
}

fn counts(trace: &Trace) -> BTreeMap<&str, u64> {
    trace.metadata().operations.iter().map(|(name, &count)| (name.as_str(), count)).collect()
}

/// Catches messages that are lost or invented in 27 ranks of AMG2013 on a Cray, of DUMPI.
#[test]
fn amg_of_dumpi_has_the_counts_of_its_files() {
    let Some(archive) = found("dumpi-amg-27/df_AMG_n27_dumpi.tar.gz") else { return };
    let folder = tempfile::tempdir().unwrap();
    let unpacked = Command::new("tar").arg("xf").arg(archive).arg("-C").arg(folder.path()).status().unwrap();
    assert!(unpacked.success());
    let meta = folder.path().join("df_AMG_n27_dumpi/dumpi-2014.03.03.14.55.00.meta");
    let trace = Trace::open(&meta).unwrap();
    let recorded = counts(&trace);
    let left_out = |call: &str| trace.metadata().header.unrecorded.get(call).copied().unwrap_or(0);
    // The tracer was on for the solver only: its files count all calls, and hold these.
    assert_eq!((recorded["isend"], recorded["irecv"]), (15_524, 15_524));
    assert_eq!(15_524 + left_out("MPI_Isend") + left_out("MPI_Send"), 109_424);
    assert_eq!(15_524 + left_out("MPI_Irecv") + left_out("MPI_Recv"), 109_424);
    assert_eq!((1508 + left_out("MPI_Waitall"), left_out("MPI_Bcast")), (9024, 351));
    validate(&trace).unwrap();
    let stats = TraceStats::of(&trace).unwrap();
    assert_eq!((stats.messages, stats.message_bytes), (15_524, 13_584_368));
    let bin = meta.with_file_name("dumpi-2014.03.03.14.55.00-0013.bin");
    assert_eq!(Trace::open(&bin).unwrap().operations(), trace.operations());
    std::fs::remove_file(&bin).unwrap();
    let error = Trace::open(&meta).err().unwrap().to_string();
    assert!(error.contains("rank 13 of 27 lies in") && error.contains("copy it beside"), "{error}");
}

/// Catches lines that are lost in four ranks of Sweep3D, of liballprof.
#[test]
fn sweep3d_of_liballprof_has_the_counts_of_its_files() {
    let Some(folder) = found("liballprof-sweep3d-4") else { return };
    let trace = Trace::open(folder.join("pmpi-trace-rank-2.txt")).unwrap();
    let recorded = counts(&trace);
    assert_eq!((recorded["isend"], recorded["irecv"], recorded["wait"]), (5760, 5760, 2 * 5760));
    assert_eq!((recorded["allreduce"], recorded["barrier"], recorded["broadcast"]), (128, 12, 16));
    assert_eq!(trace.ranks(), 4);
    validate(&trace).unwrap();
    assert!(trace.metadata().header.notes.is_empty());
}

/// Catches nodes that are lost or misread in the examples of ASTRA-sim (its folder `examples`), 120 files of
/// Chakra.
#[test]
fn examples_of_astra_sim_have_the_counts_of_their_files() {
    let Some(folder) = found("astra-sim/examples") else { return };
    for ranks in [4, 8, 16] {
        for (file, name, bytes) in [
            ("all_gather", "allgather", 1 << 20),
            ("all_reduce", "allreduce", 1 << 20),
            ("all_to_all", "alltoall", (1 << 20) / ranks),
            ("reduce_scatter", "reduce_scatter_block", 1 << 20),
        ] {
            let place = format!("workload/microbenchmarks/{file}/{ranks}npus_1MB/{file}.2.et");
            let trace = Trace::open(folder.join(place)).unwrap();
            assert_eq!((trace.ranks(), counts(&trace)[name]), (ranks, ranks.into()));
            validate(&trace).unwrap();
            let stats = TraceStats::of(&trace).unwrap();
            let collective = &stats.collectives[name];
            assert_eq!(
                (collective.calls, collective.send_bytes),
                (ranks.into(), (ranks * bytes).into()),
                "{file}"
            );
        }
    }
    let ring = "system/custom_collectives/custom_ring_allreduce_8npus_1MB/custom_allreduce.5.et";
    let trace = Trace::open(folder.join(ring)).unwrap();
    let recorded = counts(&trace);
    assert_eq!((trace.ranks(), recorded["isend"], recorded["irecv"]), (8, 8 * 14, 8 * 14));
    validate(&trace).unwrap();
    assert_eq!(TraceStats::of(&trace).unwrap().message_bytes, 8 * 14 * 131_072);
}

/// Catches what a converter of PyTorch's traces writes and is taken amiss, in one rank of mlcommons/chakra:
/// ctrl_deps that are the tree of calls, and communication on the host (`tests/data/feeder_tests_trace`).
#[test]
fn the_trace_of_mlcommons_follows_its_data() {
    let Some(file) = found("chakra/tests/data/chakra.0.et") else { return };
    let trace = Trace::open(file).unwrap();
    validate(&trace).unwrap();
    let recorded = counts(&trace);
    assert_eq!((recorded["broadcast"], recorded["allreduce"]), (2, 5));
    // 3,643 computations, 14 of the host's collectives, and one behind each collective of the device.
    assert_eq!(recorded["compute"], 3643 + 14 + 7);
    let notes: Vec<u64> = trace.metadata().header.notes.values().copied().collect();
    assert_eq!(notes, [2, 14, 157, 1]);
}
