//! `--rtl` on machines that the RTL does not fit: each is refused, and the mend helps.

use crate::rtl::{library, text};
use std::path::Path;
use std::process::{Command, Output};

/// A short run in which a block has something to do, on exanest with these sets.
fn run(library: &Path, block: &str, sets: &[&str]) -> Output {
    let pair = ["latency", "--from", "M1QAF1", "--to", "M1QAF2", "--iterations", "2"];
    let words = match block {
        "allreduce" => vec!["allreduce", "--ranks", "16", "--ppn", "1", "--algorithm", "accelerator"],
        _ => pair.to_vec(),
    };
    let more: &[&str] = match block {
        "allreduce" => &["--sizes", "4:8"],
        "mailbox" | "packetizer" => &["--sizes", "0:32"],
        // The last cell has one word.
        _ => &["--sizes", "16641", "--set", "nic.segmentation.agent=hardware"],
    };
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.arg("osu").args(words).args(more).args(["-m", "exanest", "--rtl", block]);
    weft.args(sets.iter().flat_map(|set| ["--set", set]));
    weft.env("WEFT_RTL_LIBRARY", library).output().unwrap()
}

/// Catches a machine whose block is another than the RTL and that runs all the same, and a mend that leads to
/// another refusal, or nowhere.
#[test]
fn the_mend_of_what_does_not_fit_helps() {
    let Some(library) = library("") else { return };
    for (block, set, mend) in [
        ("mailbox", "nic.mailbox.check=12 cycles", "nic.mailbox.check=11 cycles"),
        ("mailbox", "nic.mailbox.entry=128", "nic.mailbox.entry=64"),
        ("mailbox", "nic.host_port.word=32", "nic.host_port.word=16"),
        ("packetizer", "nic.clock=151MHz", "nic.clock=150MHz"),
        ("packetizer", "nic.packetizer.timeout=49us", "nic.packetizer.timeout=50us"),
        ("packetizer", "nic.packetizer.timeout=50001ps", "nic.packetizer.timeout=50us"),
        ("packetizer", "nic.packetizer.descriptor=32", "nic.packetizer.descriptor=16"),
        ("packetizer", "nic.host_port.word=32", "nic.host_port.word=16"),
        ("packetizer", "nic.host_port.word=64", "nic.host_port.word=16"),
        ("segmentation", "nic.host_port.word=64", "nic.host_port.word=16"),
        ("segmentation", "nic.clock=1MHz", "nic.clock=150MHz"),
        ("segmentation", "nic.host_port.round_trip=40ns", "nic.host_port.round_trip=46667ps"),
        ("segmentation", "nic.segmentation.hardware_invocation=2 cycles", "=1 cycles"),
        ("rdma_receive", "nic.host_port.round_trip=26ns", "nic.host_port.round_trip=40ns"),
        ("rdma_receive", "nic.rdma.receive=3 cycles", "nic.rdma.receive=2 cycles"),
        ("rdma_receive", "nic.host_port.word=32", "nic.host_port.word=16"),
        ("rdma_receive", "nic.host_port.word=64", "nic.clock=200MHz"),
        ("allreduce", "nic.clock=151MHz", "nic.clock=150MHz"),
        ("allreduce", "nic.allreduce.lookup=10ns", "nic.allreduce.lookup="),
        ("allreduce", "nic.allreduce.lookup=375ns", "nic.allreduce.lookup=300ns"),
        ("allreduce", "nic.host_port.round_trip=5ns", "nic.host_port.round_trip=13334ps"),
    ] {
        let refused = run(&library, block, &[set]);
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(mend), "{block} {set}: {said}");
        let words = said.split_once("--set ").unwrap().1;
        let mend = match words.strip_prefix('\'') {
            Some(quoted) => quoted.split('\'').next().unwrap(),
            None => words.split([',', ' ', '\n']).next().unwrap(),
        };
        let mended = run(&library, block, &[set, mend]);
        assert!(mended.status.success(), "{block} {set} {mend}: {}", text(&mended.stderr));
    }
}

/// Catches a machine for which only another one helps, and that gets a mend of one of its keys first.
#[test]
fn of_another_machine_only_another_is_told() {
    let Some(library) = library("") else { return };
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(["osu", "latency", "--sizes", "8", "-m", "carvnet-riscv", "--rtl", "packetizer"]);
    let refused = weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap();
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    let why = "by words of 16 bytes";
    assert!(said.contains(why) && said.contains("such as exanest") && !said.contains("--set"), "{said}");
}
