//! Real processes over `weft.h`, without MPI and without the launcher.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use weft_assembly as assembly;
use weft_host::Death;
use weft_host::LiveEnd;
use weft_host_check::puppet;
use weft_machine as machine;
use weft_msg::Wildcards;
use weft_units::{EndpointId, Time};

/// Where cargo has put this test, and the library beside it.
fn target() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

fn compile(name: &str) -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let out = target().join(format!("{name}_{}_{:?}", std::process::id(), std::thread::current().id()));
    let library = target().join("libweft_client.so");
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"])
        .arg(here.join("../../include"))
        .arg(here.join(format!("tests/{name}.c")))
        .arg(&library)
        // Before the directories of cargo's LD_LIBRARY_PATH, which may hold the library of an earlier build.
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{}", target().display()))
        .arg("-o")
        .arg(&out)
        .status()
        .unwrap();
    assert!(status.success());
    out
}

/// Runs a program on two neighbours of a machine: what rank 0 printed.
fn run(source: &str, name: &str, sets: &[&str], size: &str) -> String {
    let program = compile(source);
    let machine = machine::load(name, sets).unwrap();
    let protocol = assembly::protocol(&machine, Wildcards::Free).unwrap();
    let endpoints = [EndpointId(0), EndpointId(1)];
    let mut run = puppet::job(&machine, &protocol, &endpoints, true).unwrap();
    let job = run.job();
    let mut children: Vec<Child> = (0..2)
        .map(|rank| {
            let child = Command::new(&program)
                .arg(size)
                .env("WEFT_JOB", job.name())
                .env("WEFT_DEVICE", job.device_path(rank))
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            job.started(rank, child.id());
            child
        })
        .collect();
    let processes: Vec<u32> = children.iter().map(Child::id).collect();
    let first = children.remove(0);
    let watcher = std::thread::spawn({
        let job = job.clone();
        move || {
            let mut second = children.remove(0);
            let first = std::thread::spawn({
                let job = job.clone();
                move || {
                    let output = first.wait_with_output().unwrap();
                    job.died(0, Death::Exited(output.status.code().unwrap_or(-1)));
                    (output.status.code(), String::from_utf8(output.stdout).unwrap())
                }
            });
            let status = second.wait().unwrap();
            job.died(1, Death::Exited(status.code().unwrap_or(-1)));
            (status.code(), first.join().unwrap())
        }
    });
    let end = run.simulate(Time::NEVER, &mut || {}).unwrap();
    if end != LiveEnd::Finished {
        for process in processes {
            Command::new("kill").args(["-9", &process.to_string()]).status().unwrap();
        }
    }
    let (second, (first, printed)) = watcher.join().unwrap();
    assert_eq!((end, first, second), (LiveEnd::Finished, Some(0), Some(0)), "{printed}");
    std::fs::remove_file(program).unwrap();
    printed
}

/// Catches data that does not arrive, turns that are lost, and times that depend on how the processes ran.
#[test]
fn two_processes_exchange_messages_in_virtual_time() {
    let ideal = ["fabric.kind=ideal"];
    for (name, sets, size) in
        [("exanest", &[][..], "8"), ("exanest", &[], "100000"), ("bxi3-fattree", &ideal, "8")]
    {
        let once = run("ping_pong", name, sets, size);
        assert_eq!(once, run("ping_pong", name, sets, size));
    }
}

/// Catches what a library above relies on beside messages that arrive: keys, completions, claims, cancels,
/// buffers that are given back, closing and opening, RDMA and its protection, endpoints, unread completions.
#[test]
fn two_processes_find_what_the_header_says() {
    for (name, sets) in [("exanest", &[][..]), ("exanest", &["nic.model=overheads"]), ("bxi3-dragonfly", &[])]
    {
        let once = run("semantics", name, sets, "0");
        assert!(once.starts_with("all at "), "{once}");
        assert_eq!(once, run("semantics", name, sets, "0"));
    }
}

/// Catches data of reads that does not come back by channels for reads (TR-488 §4.5.1): a single one of
/// those would cost nothing, and a single one for writes would.
#[test]
fn data_of_reads_comes_back_by_channels_for_reads() {
    let last = |set: &str| run("reads", "exanest", &[set], "8").parse::<u64>().unwrap();
    let many = last("nic.rdma.read_channels=32");
    assert_eq!(last("nic.rdma.write_channels=1"), many);
    assert!(last("nic.rdma.read_channels=1") > many + 1_000_000, "a microsecond and more");
}

/// Catches a read whose request is noticed by a process or lies in a mailbox, and whose answer is stored as a
/// descriptor of a process: what a single read takes more when one of its parts does, in ps.
#[test]
fn a_read_polls_and_crosses_the_host_port_at_the_reader_alone() {
    let read = |set: &str| run("reads", "exanest", &[set], "1").parse::<u64>().unwrap();
    let as_it_is = read("nic.mailbox.poll=20ns");
    // The reader's poll of the notification.
    assert_eq!(read("nic.mailbox.poll=520ns") - as_it_is, 500_000);
    assert_eq!(read("nic.mailbox.check=26cycles"), as_it_is, "small messages are checked there");
    // Two round trips in all: half of one for the store of the request, one for the read of the memory, and
    // half of one for the write of data and notification. Both are whole cycles.
    let with = |round_trip| read(&format!("nic.host_port.round_trip={round_trip}"));
    assert_eq!(with("140ns") - with("120ns"), 2 * 20_000);
    // The agent is invoked once before the data goes.
    assert_eq!(read("nic.segmentation.invocation=3us") - as_it_is, 1_000_000);
}

/// Catches small messages and RDMA that do not arrive, memory that a foreign protection domain reaches or
/// that one of the same domain does not, page faults and refusals that nobody hears of, a page of RDMA
/// channels that is asked of the wrong side.
#[test]
fn virtual_interfaces_do_what_the_header_says() {
    for (name, sets, pages) in [
        ("exanest", &[][..], "16"),
        ("exanest", &["nic.model=overheads"], "64"),
        ("bxi3-dragonfly", &[], "64"),
    ] {
        let once = run("interfaces", name, sets, pages);
        assert!(once.starts_with("all at "), "{once}");
        assert_eq!(once, run("interfaces", name, sets, pages));
    }
}
