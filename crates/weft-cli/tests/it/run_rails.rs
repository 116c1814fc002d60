//! Rails of real ranks: `weft run` on hosts with several interfaces.
//!
//! The program needs MPICH in build/venv (`make test` installs it) and is skipped where it is not there.

use crate::support::{job, root, texts};
use std::process::Command;

/// Options of four hosts with two interfaces each, one rank on each.
const HOSTS: [&str; 7] = ["-m", "bxi2-fattree", "-n", "4", "--ppn", "1", "--set=host.endpoints_per_host=2"];

/// Data is right in every run: rank 0 prints a line for each size, and a rank that sees a wrong byte ends the
/// program with status 1. Catches parts that are taken for the whole, data that is read before its last part
/// has come, a send that ends with its first part, messages out of order, and times that depend on how
/// processes ran.
#[test]
fn data_comes_whole_by_all_rails_and_times_are_the_same_twice() {
    let Some(_) = job() else { return };
    let python = root().join("build/venv/bin/python3");
    let program = root().join("examples/alltoall.py");
    let run = |rails: &str, model: &str| {
        let keys = [format!("--set=messaging.rails={rails}"), format!("--set=nic.model={model}")];
        let options = [&HOSTS[..], &[&keys[0], &keys[1]]].concat();
        let output =
            crate::support::run(&options, &python, &[program.to_str().unwrap(), "64", "8192", "262144"]);
        let (printed, said) = texts(&output);
        assert!(output.status.success(), "{rails}: {printed}{said}");
        assert_eq!(printed.lines().filter(|line| line.ends_with("right")).count(), 3, "{printed}");
        printed
    };
    let times = |printed: &str| -> Vec<f64> {
        let second = |line: &str| line.split_whitespace().nth(1).unwrap().parse().unwrap();
        printed.lines().filter(|line| line.ends_with("right")).map(second).collect()
    };
    for model in ["portals", "overheads"] {
        let [one, striped, in_turn] = ["none", "striping", "multiplexing"].map(|rails| {
            let first = run(rails, model);
            assert_eq!(run(rails, model), first, "{rails} over {model}");
            times(&first)
        });
        // Large blocks in two parts take little more than half as long. Blocks of 8 KB go out three at a
        // time, two of them by the one rail and one by the other.
        assert!(striped[2] < 0.7 * one[2], "{model}: {striped:?} us in parts, {one:?} us by one rail");
        assert!(in_turn[1] < 0.95 * one[1], "{model}: {in_turn:?} us in turn, {one:?} us by one rail");
    }
}

/// A program that prints by how many ns a send moves the clock of rank 0.
const SEND: &str = "
from mpi4py import MPI
comm, data = MPI.COMM_WORLD, bytearray(4096)
if comm.rank == 0:
    began = MPI.Wtime()
    request = comm.Isend(data, 1)
    print(round((MPI.Wtime() - began) * 1e9))
    request.Wait()
elif comm.rank == 1:
    comm.Recv(data, 0)
";

/// Catches a processor that hands parts to rails in no time, or to rails that take parts by themselves.
#[test]
fn the_processor_pays_for_the_parts_that_it_hands_over() {
    let Some(_) = job() else { return };
    let python = root().join("build/venv/bin/python3");
    let send = |by: &str| -> u64 {
        let by = format!("--set=messaging.rails_by={by}");
        let costs = ["--set=messaging.stripe_above=0", "--set=messaging.data_send=1us"];
        let options = [&HOSTS[..], &costs, &["--set=messaging.rails=striping", &by]].concat();
        let (printed, said) = texts(&crate::support::run(&options, &python, &["-c", SEND]));
        printed.trim().parse().unwrap_or_else(|_| panic!("{by}: {printed}{said}"))
    };
    assert_eq!(send("software"), send("interface") + 1000);
}

/// Messages of several ranks of a host, many at a time, in pieces of any order. Catches an answer that goes
/// to another rank of the host, and a rail that is not of the host.
#[test]
fn ranks_of_one_host_share_its_rails() {
    let Some(program) = job() else { return };
    let options = ["-m", "bxi2-fattree", "-n", "8", "--ppn", "4", "--set=host.cores=4"];
    for rails in ["striping", "multiplexing"] {
        let keys = [format!("--set=messaging.rails={rails}"), "--set=host.endpoints_per_host=4".to_owned()];
        for what in ["talk", "one-sided"] {
            let output =
                crate::support::run(&[&options[..], &[&keys[0], &keys[1]]].concat(), &program, &[what]);
            let (printed, said) = texts(&output);
            assert!(output.status.success(), "{rails}, {what}: {printed}{said}");
        }
    }
}

/// Catches an empty answer that looks like one.
#[test]
fn a_result_over_rails_says_why_it_has_no_critical_path() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let output = format!("--output={}", out.display());
    let options = [&HOSTS[..], &["--set=messaging.rails=striping", &output]].concat();
    let (printed, said) = texts(&crate::support::run(&options, &program, &["talk"]));
    assert!(out.join("run.json").exists(), "{printed}{said}");
    let explained = Command::new(env!("CARGO_BIN_EXE_weft")).arg("explain").arg(&out).output().unwrap();
    let (printed, said) = texts(&explained);
    assert_eq!(explained.status.code(), Some(2), "{printed}{said}");
    assert!(said.contains("messaging.rails=none"), "{said}");
}

/// Catches a run that goes on where a rail would not be told of.
#[test]
fn rails_are_refused_with_the_key_to_change() {
    let Some(program) = job() else { return };
    let rails = "--set=messaging.rails=striping";
    let cases: [(&[&str], &str); 3] = [
        (&["-m", "exanest", "-n", "2", "--set=host.endpoints_per_host=2"], "hang off one switch"),
        (&["-m", "carvnet-spineleaf", "-n", "2", "--set=host.endpoints_per_host=2"], "mailbox"),
        (&["-m", "bxi2-fattree", "-n", "2", "--set=host.endpoints_per_host=2", "--breakdown"], "breakdown"),
    ];
    for (options, word) in cases {
        let output = crate::support::run(&[options, &[rails]].concat(), &program, &["talk"]);
        let (_, said) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word) && said.contains("messaging.rails"), "{said}");
    }
}
