//! `--rtl segmentation,rdma_receive`: the RTL of the RDMA units in step with the model.

use crate::common::rows;
use crate::rtl::{latency, leave_out_computer, library, text};
use crate::support::{job, texts};
use serde_json::Value;
use std::process::{Command, Output};

/// Large transfers by a hardware agent.
const RDMA: [&str; 2] = ["--set", "nic.segmentation.agent=hardware"];
/// Buses of 512 bits at 200 MHz, with cells and bursts as caRVnet has them, links as fast, and pages of words
/// of 16 bytes.
const WIDER: [&str; 11] = [
    "nic.clock=200MHz",
    "nic.host_port.word=64",
    "nic.host_port.store_clock=200MHz",
    "nic.host_port.store_word=16",
    "nic.host_port.store_latency=13 cycles",
    "nic.host_port.burst_words=4",
    "nic.host_port.outstanding_bursts=16",
    "nic.rdma.cell_buffers=16",
    "nic.rdma.cell_overhead=0 cycles",
    "links.endpoint.rate=102.4Gb/s",
    "links.qfdb.rate=102.4Gb/s",
];
/// Both units in step.
const IN_STEP: [&str; 2] = ["--rtl", "segmentation,rdma_receive"];

/// Catches RTL of the RDMA units that is not the model's: transfers of one block to many, the exchanges of
/// their rendezvous, and short last cells.
#[test]
fn rdma_is_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let sizes = [&["--sizes", "16K:1M", "--iterations", "3"], &RDMA[..]].concat();
    let plain = latency(&library, &sizes);
    let in_step = latency(&library, &[&sizes[..], &["--rtl", "segmentation,rdma_receive"]].concat());
    assert!(in_step.status.success(), "{}", text(&in_step.stderr));
    let rows = |output: &Output| rows(&serde_json::from_slice(&output.stdout).unwrap());
    assert_eq!(rows(&in_step), rows(&plain));
    // Last cells of one word, whose writes end right behind those before them.
    for size in ["257", "513", "784", "16641"] {
        let odd = [&["--sizes", size, "--iterations", "2"], &RDMA[..], &IN_STEP].concat();
        let in_step = latency(&library, &odd);
        assert!(in_step.status.success(), "{size}: {}", text(&in_step.stderr));
    }
}

/// Catches a send unit with buses of 512 bits that is not the model's: whole cells, last ones of all lengths,
/// and requests of reads; and one that does not fit.
#[test]
fn the_send_unit_over_wider_buses_is_the_models() {
    let Some(library) = library("") else { return };
    let run = |words: &[&str], more: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["osu"])
            .args(words)
            .args(["-m", "exanest", "--from", "M1QAF1", "--to", "M1QAF2", "--json"]);
        weft.args(RDMA).args(WIDER.iter().flat_map(|set| ["--set", set])).args(more);
        weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap()
    };
    let read = |words: &[&str], more: &[&str]| {
        let output = run(words, more);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        rows(&serde_json::from_slice(&output.stdout).unwrap())
    };
    let in_step = ["--rtl", "segmentation"];
    for words in [
        &["latency", "--sizes", "16K:64K", "--iterations", "3"][..],
        &["latency", "--sizes", "305", "--iterations", "2"],
        &["latency", "--sizes", "496", "--iterations", "2"],
        &["latency", "--sizes", "16641", "--iterations", "2"],
        &["bw", "--sizes", "16K", "--iterations", "2"],
        &["get_bw", "--sizes", "64:1K", "--window", "16"],
    ] {
        assert_eq!(read(words, &in_step), read(words, &[]), "{words:?}");
    }
    for (set, mend) in [
        ("nic.rdma.timeout=4001us", "nic.rdma.timeout=4ms"),
        ("nic.rdma.cell_overhead=5 cycles", "nic.rdma.cell_overhead=0 cycles"),
        ("nic.host_port.round_trip=39ns", "nic.host_port.round_trip=40ns"),
        ("nic.host_port.store_word=8", "stored to by words of 16 bytes in the RTL"),
    ] {
        let refused = run(&["latency", "--sizes", "8"], &[&in_step[..], &["--set", set]].concat());
        let said = text(&refused.stderr);
        assert!(refused.status.code() == Some(2) && said.contains(mend), "{set}: {said}");
    }
}

/// Catches requests of reads that the send unit's mailbox answers otherwise than its model, or in another
/// cycle, one at a time and many together, between boards as well; and a packetizer that makes small messages
/// of them.
#[test]
fn requests_of_reads_are_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let gets = |case: &[&str], rtl: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["osu"]).args(case).args(["-m", "exanest", "--json"]).args(RDMA).args(rtl);
        let output = weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap();
        assert!(output.status.success(), "{case:?}: {}", text(&output.stderr));
        rows(&serde_json::from_slice(&output.stdout).unwrap())
    };
    let in_step = ["--rtl", "segmentation,packetizer,mailbox"];
    for case in [
        &["get_latency", "--from", "M1QAF1", "--to", "M2QBF3", "--sizes", "1:4K"][..],
        &["get_bw", "--from", "M1QAF1", "--to", "M1QAF2", "--sizes", "64:1K", "--window", "16"],
    ] {
        assert_eq!(gets(case, &in_step), gets(case, &[]), "{case:?}");
    }
}

/// Catches a receive unit with buses of 512 bits that is not the model's: on caRVnet, cells of all lengths,
/// and those of several sources.
#[test]
fn the_receive_unit_of_carvnet_has_wider_buses() {
    let Some(library) = library("") else { return };
    let run = |words: &[&str], more: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.arg("osu").args(words).args(["-m", "carvnet-riscv", "--quiet", "--json"]).args(more);
        let output = weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap();
        assert!(output.status.success(), "{words:?} {more:?}: {}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let cases: [&[&str]; 3] = [
        &["latency", "--sizes", "16K:1M", "--iterations", "3"],
        &["bibw", "--sizes", "64:16K", "--iterations", "2"],
        &["alltoall", "--sizes", "3000:9000", "--iterations", "2", "--set", "topology.dims=[4]"],
    ];
    for words in cases {
        let in_step = run(words, &["--rtl", "rdma_receive"]);
        assert_eq!(rows(&in_step), rows(&run(words, &[])), "{words:?}");
        assert!(in_step["rtl"].to_string().contains("rdma_receive"), "{words:?}: {}", in_step["rtl"]);
    }
    // Last cells of one to five words, of which the last is not full.
    for size in ["257", "280", "303", "312", "330", "16641"] {
        run(&["latency", "--sizes", size, "--iterations", "2"], &["--rtl", "rdma_receive"]);
    }
}

/// Catches answers that the receive unit of 512 bits has later than the model behind a cell that comes twice:
/// the model's link makes up for it, and five beats a cell do not.
#[test]
fn cells_that_come_twice_are_the_models_over_wider_buses() {
    let Some(library) = library("") else { return };
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(["osu", "latency", "-m", "carvnet-riscv", "--quiet", "--sizes", "33K", "--iterations", "20"]);
    weft.args(["--rtl", "rdma_receive", "--set", "faults=[{duplicate=20000}]"]);
    let output = weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
}

/// Catches RTL and model that part where cells and answers are lost, and blocks are sent again.
#[test]
fn repeated_blocks_are_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let lost = ["--sizes", "33K", "--iterations", "3", "--set", "faults=[{drop=5000}]"];
    let in_step = latency(&library, &[&lost[..], &IN_STEP, &RDMA].concat());
    assert!(in_step.status.success(), "{}", text(&in_step.stderr));
}

/// Catches RTL and model that part where cells are damaged, of transfers that are over by then as well: their
/// words go to memory.
#[test]
fn damaged_cells_are_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let short = ["--set", "nic.rdma.timeout=200us", "--set", "nic.rdma.longest_timeout=200us"];
    let damaged = ["--sizes", "33K", "--iterations", "5", "--set", "faults=[{corrupt=5000}]"];
    for seed in ["1", "2", "3"] {
        let options = ["--rtl", "rdma_receive", "--seed", seed];
        let in_step = latency(&library, &[&damaged[..], &short, &options, &RDMA].concat());
        assert!(in_step.status.success(), "{seed}: {}", text(&in_step.stderr));
    }
}

/// Catches a channel that the receive unit refuses, as its place is that of another one: here forty channels
/// send to one node at a time.
#[test]
fn channels_of_one_place_are_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(["traffic", "-m", "exanest", "--load", "0.3", "--size", "40K", "--time", "200us", "--quiet"]);
    weft.args(["--rtl", "rdma_receive", "--rtl-at", "M1QCF4,M2QDF4"]).env("WEFT_RTL_LIBRARY", &library);
    let output = weft.output().unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// Catches RTL and model that part where many channels send at once, and many sources to one node: windows
/// and collectives, and blocks of them that are lost.
#[test]
fn storms_are_the_models_with_rtl_in_step() {
    let Some(library) = library("") else { return };
    let in_step = |words: &[&str]| {
        let run = |more: &[&str]| {
            let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
            weft.args(words).args(["-m", "exanest", "--quiet", "--json"]).args(RDMA).args(more);
            let output = weft.env("WEFT_RTL_LIBRARY", &library).output().unwrap();
            assert!(output.status.success(), "{words:?} {more:?}: {}", text(&output.stderr));
            rows(&serde_json::from_slice(&output.stdout).unwrap())
        };
        assert_eq!(run(&IN_STEP), run(&[]), "{words:?}");
    };
    in_step(&["osu", "mbw_mr", "--ranks", "8", "--ppn", "4", "--sizes", "16K:64K", "--iterations", "2"]);
    in_step(&["osu", "alltoall", "--ranks", "16", "--ppn", "4", "--sizes", "3000:9000", "--iterations", "2"]);
    let lost = ["--iterations", "2", "--set", "faults=[{drop=2000}]"];
    in_step(&[&["osu", "bcast", "--ranks", "8", "--ppn", "1", "--sizes", "33333"], &lost[..]].concat());
}

/// Catches a real program whose messages of 1 MB go otherwise with RTL in step.
#[test]
fn a_real_program_of_large_messages_runs_the_same_with_rtl_in_step() {
    let (Some(library), Some(program)) = (library(""), job()) else { return };
    let run = |more: &[&str]| {
        let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
        weft.args(["run", "-m", "exanest", "-n", "4", "--ppn", "1", "--json"]).args(RDMA).args(more);
        weft.arg("--").arg(&program).args(["ping-pong", "1048576", "2"]).env("WEFT_RTL_LIBRARY", &library);
        let output = weft.output().unwrap();
        let (document, said) = texts(&output);
        assert!(output.status.success(), "{more:?}: {document}{said}");
        let mut document: Value = serde_json::from_str(&document).unwrap();
        leave_out_computer(&mut document);
        document
    };
    let mut in_step = run(&IN_STEP);
    in_step.as_object_mut().unwrap().remove("rtl");
    assert_eq!(in_step, run(&[]));
}

/// Catches RTL that is compared with nothing: a bug in each unit ends the run, and is named.
#[test]
fn a_bug_in_a_unit_is_named() {
    for (block, signal) in [
        ("segmentation", "m_axis_net_tvalid is 0x0 in the RTL and 0x1 in the model"),
        ("rdma_receive", "m_axi_awaddr"),
    ] {
        let Some(library) = library(&format!("wrong-{block}")) else { return };
        let output = latency(&library, &[&["--sizes", "16K", "--rtl", block], &RDMA[..]].concat());
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{said}");
        let named = format!("the RTL of the {block} of M1QA");
        assert!(said.contains("rtl-differs") && said.contains(&named), "{said}");
        assert!(said.contains(signal) && said.contains("at edge "), "{said}");
    }
}

/// Catches units that are others, and whose mend is not named.
#[test]
fn other_units_are_refused() {
    let Some(library) = library("") else { return };
    let refused = |options: &[&str], says: &[&str]| {
        let output = latency(&library, options);
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(2), "{options:?}: {said}");
        for part in says {
            assert!(said.contains(part), "{options:?}: {said}");
        }
    };
    let firmware = ["nic.segmentation.agent is firmware", "--set nic.segmentation.agent=hardware"];
    refused(&["--rtl", "segmentation"], &firmware);
    let bursts = ["--rtl", "segmentation", "--set", "nic.host_port.outstanding_bursts=4"];
    let parameter = ["nic.host_port.outstanding_bursts is 4", "parameter OUTSTANDING"];
    refused(&[&bursts[..], &RDMA].concat(), &parameter);
    refused(&["--rtl", "rdma_receive", "--set", "nic.rdma.contexts=8"], &["parameter CONTEXTS"]);
    refused(&[&["--rtl-drive"], &IN_STEP[..], &RDMA].concat(), &["leave --rtl-drive out"]);
}
