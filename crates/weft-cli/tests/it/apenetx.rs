//! The APEnetX machines at the command: simulated ranks, and real processes over LibQCM.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PATHS: [&str; 4] = ["kernel", "remapped", "user-queue", "direct"];

fn weft(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).args(words).stdin(Stdio::null()).output().unwrap()
}

/// The latencies in us of `weft osu latency` with these words.
fn latencies(words: &[&str]) -> Vec<f64> {
    let words = [&["osu", "latency", "--json", "--quiet"], words].concat();
    let output = weft(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    rows.iter().map(|row| row["latency_us"].as_f64().unwrap()).collect()
}

/// The order that the documents state, on both machines, with and without MPI's software.
#[test]
fn the_kernel_path_is_slowest_and_the_direct_one_fastest() {
    for machine in ["apenetx-u200", "apenetx-u280"] {
        for layer in ["mpi", "nic"] {
            let of_path = PATHS.map(|path| {
                let set = format!("nic.completion={path}");
                latencies(&["-m", machine, "--set", &set, "--sizes", "0:64K", "--layer", layer])
            });
            for slower in of_path.windows(2) {
                assert!(slower[0].iter().zip(&slower[1]).all(|(one, other)| one > other), "{of_path:?}");
            }
        }
    }
}

/// D1.4 §9.2.2: whatever has its source in the memory of a GPU costs more.
#[test]
fn memory_of_a_gpu_costs_more_as_a_source() {
    let of = |memory: &str| {
        latencies(&["-m", "apenetx-u200", "--sizes", "1:64K", "--layer", "nic", "--memory", memory])
    };
    let (plain, source, target) = (of("host,host"), of("gpu-direct,host"), of("host,gpu-direct"));
    for size in 0..plain.len() {
        assert!(source[size] > target[size] && target[size] > plain[size], "{source:?} {target:?} {plain:?}");
    }
    let refused = weft(&["osu", "latency", "-m", "apenetx-u200", "--memory", "gpu,host"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// Catches a breakdown that does not add up, or that does not name the parts.
#[test]
fn a_breakdown_names_the_parts() {
    let words = ["osu", "latency", "-m", "apenetx-u200", "--set", "nic.completion=kernel", "--sizes", "64"];
    let output = weft(&[&words[..], &["--layer", "nic", "--breakdown", "--json", "--quiet"]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let breakdown = &report["rows"][0]["breakdown"];
    let pieces = breakdown["pieces"].as_array().unwrap();
    let text = serde_json::to_string(pieces).unwrap();
    for part in [
        "LibQCM",
        "system call",
        "kernel copy",
        "driver",
        "doorbell",
        "descriptor fetch",
        "payload read",
        "host to card",
        "card to host",
        "payload write",
        "completion write",
        "interrupt",
        "context switch",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// LibQCM and a program over it, built with the library beside the command.
fn program(source: &Path, name: &str) -> PathBuf {
    crate::support::provider();
    let root = crate::support::root();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let library = Path::new(env!("CARGO_BIN_EXE_weft")).parent().unwrap().join("deps/libweft_client.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-I"]).arg(root.join("include"));
    compiler.arg("-I").arg(root.join("libqcm")).arg(source).arg(root.join("libqcm/qcm.c"));
    assert!(compiler.arg(library).arg("-o").arg(&program).status().unwrap().success());
    program
}

fn run(program: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args([
        "run",
        "--quiet",
        "-m",
        "apenetx-u280",
        "-n",
        "2",
        "--ppn",
        "1",
        "--wall-limit",
        "60s",
        "--",
    ]);
    command.arg(program).args(words).stdin(Stdio::null()).output().unwrap()
}

/// Catches a program over LibQCM that does not run, paths that a program does not choose, and their order.
#[test]
fn a_program_chooses_the_path_of_its_completions() {
    let ping_pong = program(&crate::support::root().join("examples/qcm_ping_pong.c"), "qcm_ping_pong");
    let times = PATHS.map(|path| {
        let output = run(&ping_pong, &["--completion", path]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout).unwrap();
        let line = said.lines().find(|line| line.contains(" 8 bytes")).unwrap().to_owned();
        let time = line.split(':').nth(1).unwrap().trim().split(' ').next().unwrap().parse::<f64>();
        time.unwrap()
    });
    assert!(times.windows(2).all(|pair| pair[0] > pair[1]), "{times:?}");
    let again = run(&ping_pong, &["--completion", "kernel"]);
    assert_eq!(again.stdout, run(&ping_pong, &["--completion", "kernel"]).stdout);
    assert_eq!(run(&ping_pong, &["--completion", "quantum"]).status.code(), Some(2));
}

/// A process that writes where it may not gets an error, and the simulator stands.
#[test]
fn bad_requests_are_errors_to_their_process() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("qcm_hostile.c");
    std::fs::write(&source, HOSTILE).unwrap();
    let output = run(&program(&source, "qcm_hostile"), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const HOSTILE: &str = r#"
#include "qcm.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static void expect(int found, int wanted, int line)
{
    if (found != wanted) {
        fprintf(stderr, "line %d: %d, not %d\n", line, found, wanted);
        exit(1);
    }
}
#define EXPECT(call, wanted) expect(call, wanted, __LINE__)

int main(void)
{
    static char out[4096], in[4096];
    qcm *card;
    qcm_buffer *source, *target;
    qcm_remote theirs;
    EXPECT(qcm_open(&card), 0);
    EXPECT(qcm_register(card, NULL, 8, QCM_DIRECT, &source), -EINVAL);
    EXPECT(qcm_register(card, out, sizeof out, 9, &source), -EINVAL);
    EXPECT(qcm_register(card, out, sizeof out, QCM_DIRECT, &source), 0);
    EXPECT(qcm_register(card, in, sizeof in, QCM_DIRECT, &target), 0);
    EXPECT(qcm_handshake(card, 7, target, &theirs), -ENXIO);
    EXPECT(qcm_handshake(card, 1 - qcm_number(card), target, &theirs), 0);
    EXPECT(qcm_send(source, 0, 4097, &theirs, 0, 0), -EINVAL);
    EXPECT(qcm_send(source, 4096, 1, &theirs, 0, 0), -EINVAL);
    EXPECT(qcm_send(source, 0, 4096, &theirs, 1, 0), -EINVAL);
    qcm_remote bad = theirs;
    bad.address = 64;
    if (qcm_number(card) == 0) {
        /* Memory that the peer does not have: its own interface says so, which takes a way back. */
        EXPECT(qcm_send(source, 0, 64, &bad, 0, 0), 0);
        int error = 0;
        for (int turn = 0; turn < 100000 && !error; turn++) {
            qcm_poll(source, NULL);
            error = qcm_flush(card);
        }
        EXPECT(error, -EFAULT);
        bad = theirs;
        bad.node = 1u << 20;
        EXPECT(qcm_send(source, 0, 64, &bad, 0, QCM_BLOCKING), -ENETUNREACH);
        bad = theirs;
        bad.queue = 63;
        bad.path = 6;
        EXPECT(qcm_send(source, 0, 64, &bad, 0, 0), -EINVAL);
        EXPECT(qcm_send(source, 0, 64, &theirs, 0, QCM_BLOCKING), 0);
    } else {
        qcm_rx_done done;
        while (qcm_poll(target, &done) == 0)
            ;
        EXPECT((int)done.length, 64);
    }
    EXPECT(qcm_deregister(source), 0);
    qcm_close(card);
    return 0;
}
"#;
