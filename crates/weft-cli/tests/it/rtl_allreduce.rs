//! `--rtl allreduce`: the RTL of the accelerator in step with the model.

use crate::common::rows;
use crate::replay::{reductions, ring};
use crate::rtl::{library, text};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use weft_trace::op::CollectiveSizes;
use weft_trace::{DataType, Reduction, ReductionOperation};
use weft_units::Bytes;

/// A command whose collectives the accelerator carries out, with one rank in each MPSoC.
fn weft(library: &Path, words: &[&str], options: &[&str]) -> Output {
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(words).args(["-m", "exanest", "--ppn", "1", "--json", "--quiet"]).args(options);
    weft.env("WEFT_RTL_LIBRARY", library).output().unwrap()
}

fn osu(library: &Path, ranks: &str, options: &[&str]) -> Output {
    let words = ["osu", "allreduce", "--ranks", ranks, "--algorithm", "accelerator"];
    weft(library, &words, options)
}

/// The rows of a run that has ended well.
fn rows_of(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    rows(&serde_json::from_slice(&output.stdout).unwrap())
}

/// Catches an accelerator whose RTL and model are not one, or whose results the RTL changes: one board and
/// many, clients and servers, exchanges, and vectors of several blocks.
#[test]
fn allreduce_is_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let same = |ranks, sizes, more: &[&str]| {
        let run = |rtl: &[&str]| osu(&library, ranks, &[&["--sizes", sizes][..], more, rtl].concat());
        assert_eq!(rows_of(&run(&["--rtl", "allreduce"])), rows_of(&run(&[])), "{ranks} ranks of {sizes}");
    };
    same("16", "4:1K", &["--iterations", "2"]);
    same("4", "4:256", &["--iterations", "2"]);
    // Short vectors of many boards come one right behind the other.
    same("128", "4", &["--iterations", "1"]);
    same("16", "48", &["--iterations", "2", "--data"]);
    // Without elements there is nothing that the accelerator is asked for.
    same("8", "0", &["--iterations", "2"]);
}

/// Catches questions for lost and damaged vectors, and answers to them, that RTL and model do not have alike.
#[test]
fn lost_vectors_are_asked_for_as_in_the_model() {
    let Some(library) = library("") else { return };
    for faults in ["faults=[{drop=3000}]", "faults=[{corrupt=3000}]"] {
        let run = |rtl: &[&str]| {
            let options = ["--sizes", "64", "--iterations", "2", "--set", faults];
            osu(&library, "16", &[&options[..], rtl].concat())
        };
        assert_eq!(rows_of(&run(&["--rtl", "allreduce"])), rows_of(&run(&[])), "{faults}");
    }
}

/// Catches a vector that goes again before it goes, as it is asked for in the cycle in which it is due, and
/// one that puts off the question for others as it comes again.
#[test]
fn questions_that_meet_vectors_and_copies_are_as_in_the_model() {
    let Some(library) = library("") else { return };
    let copies = "faults=[{drop=5000, corrupt=5000, duplicate=5000, reorder=5000}]";
    let runs = [
        (
            "16",
            "M1QBF1",
            ["--sizes", "12", "--iterations", "30", "--seed", "3", "--set", "faults=[{drop=10000}]"],
        ),
        ("64", "M3QAF1", ["--sizes", "1000", "--iterations", "2", "--seed", "1", "--set", copies]),
    ];
    for (ranks, at, options) in runs {
        let run = |rtl: &[&str]| osu(&library, ranks, &[&options[..], rtl].concat());
        let in_step = run(&["--rtl", "allreduce", "--rtl-at", at]);
        assert_eq!(rows_of(&in_step), rows_of(&run(&[])), "{options:?}");
    }
}

/// Catches an operation or a type that the RTL computes otherwise: the real bytes of each result are compared
/// in memory, and with what the RTL writes.
#[test]
fn every_operation_and_type_is_the_models() {
    let Some(library) = library("") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reductions.weft");
    let mut calls = Vec::new();
    for operation in [ReductionOperation::Sum, ReductionOperation::Min, ReductionOperation::Max] {
        for (data_type, element) in [(DataType::Int32, 4), (DataType::Float32, 4), (DataType::Float64, 8)] {
            let reduction = Reduction { operation: Some(operation), data_type: Some(data_type) };
            // The last word is not full.
            let bytes = Bytes::new(200);
            calls.push(CollectiveSizes {
                send: bytes,
                receive: bytes,
                element,
                reduction,
                ..Default::default()
            });
        }
    }
    reductions(&path, 16, &calls);
    let accelerator = "messaging.algorithms=[{operation=\"allreduce\", algorithm=\"accelerator\"}]";
    let words = ["replay", path.to_str().unwrap(), "--set", accelerator, "--data"];
    let plain = rows_of(&weft(&library, &words, &[]));
    assert_eq!(rows_of(&weft(&library, &words, &["--rtl", "allreduce"])), plain);
    // 16 ranks, 9 vectors of 200 bytes, and no message of software.
    assert_eq!((&plain[0]["compared_bytes"], &plain[0]["messages"]), (&28_800.into(), &0.into()));
}

/// Catches RTL that is compared with nothing: a bug on purpose ends the run, and is named. A reduction takes
/// a cycle more: the next lookup begins late.
#[test]
fn a_bug_in_the_accelerator_is_named() {
    let Some(library) = library("wrong-allreduce") else { return };
    let output = osu(&library, "16", &["--sizes", "8", "--rtl", "allreduce"]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}");
    let named = "F1 differs from the model at edge ";
    let signal = "m_axi_arvalid is 0x0 in the RTL and 0x1 in the model";
    for part in ["rtl-differs", "the RTL of the allreduce of M1Q", named, signal] {
        assert!(said.contains(part), "{said}");
    }
}

/// Catches a machine for which the RTL was not built, and one without an accelerator.
#[test]
fn an_accelerator_that_differs_is_refused() {
    let Some(library) = library("") else { return };
    let refused = |options: &[&str], says: &[&str]| {
        let output = weft(&library, &["osu", "latency"], &[&["--rtl", "allreduce"], options].concat());
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        says.iter().for_each(|part| assert!(said.contains(part), "{options:?}: {said}"));
    };
    refused(&["--set", "nic.allreduce.latency=9 cycles"], &["nic.allreduce.latency", "8 cycles", "LATENCY"]);
    refused(&["--set", "nic.allreduce.lookup=10ns"], &["lookup is 10ns", "nic.allreduce.lookup=26667ps"]);
    refused(&["--rtl-drive"], &["--rtl-drive", "allreduce"]);
}

/// Catches blocks that cannot run at once, as some are stepped further behind the run than others: a ring of
/// large messages, and reductions, with waves of all in the order of time.
#[test]
fn all_blocks_run_at_once() {
    let Some(library) = library("") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (trace, waves) = (folder.path().join("ring.weft"), folder.path().join("waves.vcd"));
    ring(&trace, 16, 2);
    let accelerator = "messaging.algorithms=[{operation=\"allreduce\", algorithm=\"accelerator\"}]";
    let words = ["replay", trace.to_str().unwrap(), "--set", accelerator];
    let run = |rtl: &[&str]| {
        let hardware = ["--set", "nic.segmentation.agent=hardware"];
        weft(&library, &words, &[&hardware[..], rtl].concat())
    };
    let all = "allreduce,mailbox,packetizer,rdma_receive,segmentation";
    let in_step = run(&["--rtl", all, "--waves", waves.to_str().unwrap()]);
    assert_eq!(rows_of(&in_step), rows_of(&run(&[])));
    let document: Value = serde_json::from_slice(&in_step.stdout).unwrap();
    let compared = document["rtl"].as_array().unwrap();
    assert!(compared.len() == 5 && compared.iter().all(|block| block["endpoints"] == 16), "{compared:?}");
    let waves = std::fs::read_to_string(waves).unwrap();
    let times: Vec<u64> = waves.lines().filter_map(|line| line.strip_prefix('#')?.parse().ok()).collect();
    assert!(times.len() > 1000 && times.is_sorted(), "{} times", times.len());
    for block in all.split(',') {
        assert!(waves.contains(&format!("$scope module {block} $end")), "{block}");
    }
}
