//! `--rtl`: the RTL of blocks in step with the model.

use crate::common::rows;
use crate::skipped::skip;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder of `make rtl`.
fn built() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/rtl")
}

/// The library of `make rtl`, or one with a bug.
fn library(folder: &str) -> Option<PathBuf> {
    let path = built().join(folder).join("libweft_rtl.so");
    if path.exists() {
        return Some(path);
    }
    skip("libweft_rtl.so is not built; make rtl-tools rtl");
    None
}

/// Latency between two FPGAs of a board, with these options.
fn latency(library: &Path, options: &[&str]) -> Output {
    let command = ["osu", "latency", "-m", "exanest", "--from", "M1QAF1", "--to", "M1QAF2", "--json"];
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(command).args(options).env("WEFT_RTL_LIBRARY", library).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Catches RTL and model that are not one, or a run whose results the RTL changes: all sizes of small
/// messages, and a rendezvous between them.
#[test]
fn latency_is_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let sizes = ["--sizes", "0:4K"];
    let plain = latency(&library, &sizes);
    let folder = tempfile::tempdir().unwrap();
    let waves = folder.path().join("waves.vcd");
    let with = ["--rtl", "packetizer,mailbox", "--waves", waves.to_str().unwrap()];
    let in_step = latency(&library, &[&sizes[..], &with[..]].concat());
    assert!(in_step.status.success(), "{}", text(&in_step.stderr));
    let rows = |output: &Output| rows(&serde_json::from_slice(&output.stdout).unwrap());
    assert_eq!(rows(&in_step), rows(&plain));
    let waves = std::fs::read_to_string(waves).unwrap();
    assert!(waves.contains("$scope module M1QAF1 $end") && waves.contains(" m_axis_net_tdata $end"));
    // Something happens in it.
    assert!(waves.lines().filter(|line| line.starts_with('#')).count() > 100);
}

/// Large transfers by a hardware agent.
const RDMA: [&str; 2] = ["--set", "nic.segmentation.agent=hardware"];

/// Catches RTL of the RDMA units that is not the model's: transfers of one block to many, and the exchanges
/// of their rendezvous.
#[test]
fn rdma_is_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let sizes = [&["--sizes", "16K:1M", "--iterations", "3"], &RDMA[..]].concat();
    let plain = latency(&library, &sizes);
    let in_step = latency(&library, &[&sizes[..], &["--rtl", "segmentation,rdma_receive"]].concat());
    assert!(in_step.status.success(), "{}", text(&in_step.stderr));
    let rows = |output: &Output| rows(&serde_json::from_slice(&output.stdout).unwrap());
    assert_eq!(rows(&in_step), rows(&plain));
}

/// Catches RTL and model that part where cells and answers are lost or damaged, and blocks are sent again.
#[test]
fn repeated_blocks_are_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    for faults in ["faults=[{drop=5000}]", "faults=[{corrupt=5000}]"] {
        let size =
            ["--sizes", "33K", "--iterations", "20", "--set", faults, "--rtl", "segmentation,rdma_receive"];
        let in_step = latency(&library, &[&size[..], &RDMA].concat());
        assert!(in_step.status.success(), "{faults}: {}", text(&in_step.stderr));
    }
}

/// Catches RTL and model that part where much comes at once: windows that fill channels and mailboxes,
/// collectives, and packets and answers that are lost or damaged.
#[test]
fn storms_and_losses_are_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let in_step = |words: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["osu"]).args(words).args(["-m", "exanest", "--rtl", "packetizer,mailbox", "--quiet"]);
        let output = weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}{}", text(&output.stdout), text(&output.stderr));
    };
    in_step(&["mbw_mr", "--ranks", "8", "--ppn", "4", "--sizes", "8:32", "--iterations", "3"]);
    in_step(&["allreduce", "--ranks", "32", "--ppn", "4", "--sizes", "4:64", "--iterations", "2"]);
    let pair = ["latency", "--from", "M1QAF1", "--to", "M1QBF1", "--sizes", "8:32"];
    for faults in ["faults=[{drop=20000}]", "faults=[{corrupt=20000}]"] {
        in_step(&[&pair[..], &["--iterations", "200", "--set", faults]].concat());
    }
}

/// Catches RTL that is compared with nothing: a bug in each block ends the run, and is named.
#[test]
fn a_bug_is_named() {
    for (block, size, signal) in [
        ("mailbox", "8", "m_axi_awaddr"),
        ("packetizer", "8", "m_axis_net_tvalid is 0x0 in the RTL and 0x1 in the model"),
        ("segmentation", "16K", "m_axis_net_tvalid is 0x0 in the RTL and 0x1 in the model"),
        ("rdma_receive", "16K", "m_axi_awaddr"),
    ] {
        let Some(library) = library(&format!("wrong-{block}")) else { return };
        let output = latency(&library, &[&["--sizes", size, "--rtl", block], &RDMA[..]].concat());
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{said}");
        let named = format!("the RTL of the {block} of M1QA");
        assert!(said.contains("rtl-differs") && said.contains(&named), "{said}");
        assert!(said.contains(signal) && said.contains("at edge "), "{said}");
    }
}

/// Catches a mistake that is not named, or whose mend is not.
#[test]
fn what_has_no_rtl_is_refused() {
    let missing = Path::new("/nowhere/libweft_rtl.so");
    let refused = |library: &Path, options: &[&str], says: &[&str]| {
        let output = latency(library, options);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        for part in says {
            assert!(said.contains(part), "{options:?}: {said}");
        }
    };
    refused(missing, &["--rtl", "mailbox"], &["/nowhere/libweft_rtl.so", "make rtl"]);
    refused(missing, &["--rtl", "router"], &["no RTL of `router`", "mailbox, packetizer, rdma_receive and"]);
    let overheads = ["--rtl", "mailbox", "--set", "nic.model=overheads"];
    refused(missing, &overheads, &["has no mailbox", "nic.model=exanet"]);
    refused(missing, &["--rtl", "mailbox", "--set", "fabric.kind=ideal"], &["fabric.kind=packet"]);
    refused(missing, &["--rtl", "mailbox", "--rtl-at", "M9QZ"], &["M9QZ"]);
    refused(missing, &["--rtl", "mailbox", "--waves", "waves.txt"], &["waves.txt", ".vcd"]);
    let Some(library) = library("") else { return };
    let check = ["--rtl", "mailbox", "--set", "nic.mailbox.check=12 cycles"];
    refused(
        &library,
        &check,
        &["nic.mailbox.check is 12", "--set 'nic.mailbox.check=11 cycles'", "parameter CHECK"],
    );
    let firmware = ["nic.segmentation.agent is firmware", "--set nic.segmentation.agent=hardware"];
    refused(&library, &["--rtl", "segmentation"], &firmware);
    let bursts =
        [&["--rtl", "segmentation", "--set", "nic.host_port.outstanding_bursts=4"], &RDMA[..]].concat();
    refused(&library, &bursts, &["nic.host_port.outstanding_bursts is 4", "parameter OUTSTANDING"]);
    let timeout = ["--rtl", "packetizer", "--set", "nic.packetizer.timeout=50001ps"];
    refused(&library, &timeout, &["nic.packetizer.timeout", "cycles"]);
    let other = std::env::current_exe().unwrap();
    refused(&other, &["--rtl", "mailbox"], &["cannot be loaded", "make rtl"]);
}
