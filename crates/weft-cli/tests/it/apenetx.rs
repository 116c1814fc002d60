//! The APEnetX machines at the command: simulated ranks, and real processes over LibQCM.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PATHS: [&str; 4] = ["kernel", "remapped", "user-queue", "direct"];

fn weft(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).args(words).stdin(Stdio::null()).output().unwrap()
}

/// A field of the rows of a benchmark of `weft osu` with these words.
fn rows(benchmark: &str, field: &str, words: &[&str]) -> Vec<f64> {
    let words = [&["osu", benchmark, "--json", "--quiet"], words].concat();
    let output = weft(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    rows.iter().map(|row| row[field].as_f64().unwrap()).collect()
}

/// The latencies in us of `weft osu latency` with these words.
fn latencies(words: &[&str]) -> Vec<f64> {
    rows("latency", "latency_us", words)
}

/// Catches a link layer that is not swapped by one `--set`, by the payload that each leaves of a lane of
/// 10.3125 Gb/s, 4 KB of 4,144 B; and links whose rate shows although the router of 32 Gb/s, 4 KB of 4,128 B,
/// is slower.
#[test]
fn links_of_one_lane_are_told_apart_and_the_router_hides_four() {
    let bandwidth = |protocol: &str, lanes: &str| {
        let [protocol, lanes] = [("protocol", protocol), ("lanes", lanes)]
            .map(|(key, value)| format!("links.default.{key}={value}"));
        let words =
            ["-m", "apenetx-u200", "--layer", "nic", "--sizes", "1M", "--set", &protocol, "--set", &lanes];
        rows("bw", "bandwidth_gbps", &words)[0]
    };
    let data = 10.3125 * 4096.0 / 4144.0;
    for (protocol, one_lane) in [("apelink", data * 64.0 / 66.0), ("apenet-bxi2", data)] {
        let (one, four) = (bandwidth(protocol, "1"), bandwidth(protocol, "4"));
        assert!((one / one_lane - 1.0).abs() < 0.002, "{protocol}: {one} Gb/s, {one_lane} by hand");
        assert!((four / (32.0 * 4096.0 / 4128.0) - 1.0).abs() < 0.002, "{protocol}: {four} Gb/s");
    }
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
    let row = &report["rows"][0];
    let pieces = row["breakdown"]["pieces"].as_array().unwrap();
    let number = |value: &Value, key: &str| value[key].as_f64().unwrap();
    // One after the other, there and back: without a gap, and of nothing else.
    for two in pieces.windows(2) {
        assert_eq!(two[0]["to_ns"], two[1]["from_ns"], "{} {}", two[0], two[1]);
    }
    let sum: f64 = pieces.iter().map(|piece| number(piece, "time_ns")).sum();
    assert!((sum - 2.0 * 1000.0 * number(row, "latency_us")).abs() < 0.001, "{sum}: {row}");
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

/// A program over LibQCM, which is built into it.
fn program(name: &str, text: &str) -> PathBuf {
    crate::support::over_weft(name, text, &["libqcm/qcm.c"])
}

/// The example that comes with LibQCM.
fn ping_pong() -> PathBuf {
    let text = std::fs::read_to_string(crate::support::root().join("examples/qcm_ping_pong.c")).unwrap();
    program("qcm_ping_pong", &text)
}

fn run(program: &Path, words: &[&str]) -> Output {
    run_on("apenetx-u280", program, words)
}

fn run_on(machine: &str, program: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(["run", "--quiet", "-m", machine, "-n", "2", "--ppn", "1", "--wall-limit", "60s", "--"]);
    command.arg(program).args(words).stdin(Stdio::null()).output().unwrap()
}

/// The time of one way that a ping-pong prints for a size, in microseconds.
fn one_way(output: Output, size: &str) -> f64 {
    let said = String::from_utf8(output.stdout).unwrap();
    let line = said.lines().find(|line| line.contains(size)).unwrap().to_owned();
    line.split(':').nth(1).unwrap().trim().split(' ').next().unwrap().parse().unwrap()
}

/// Catches two buffers of a process that lie in one kind of memory whatever their registrations say, a
/// buffer of a GPU that costs nothing, and one of a host without a GPU that is carried all the same. D1.4
/// §9.2.2: pinning and locking make the GPU dearer as a source than as a target.
#[test]
fn the_registration_of_a_buffer_names_its_memory() {
    let ping_pong = ping_pong();
    let time = |memory: &str| {
        let output = run(&ping_pong, &["--memory", memory, "--blocking"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        one_way(output, " 32768 bytes")
    };
    let [host, source, target, both] =
        ["host,host", "gpu-direct,host", "host,gpu-direct", "gpu-direct,gpu-direct"].map(time);
    assert!(host < target && target < source && source < both, "{host} {target} {source} {both}");
    // A copy to the host, 6 us and 32 KiB at 160 Gb/s, comes before all else: 7.638 us. The peer notices the
    // message when it looks again, 50 ns after each look in vain.
    let staged = time("gpu-staged,host") - host;
    assert!((staged - 7.638).abs() < 0.1, "{staged}");
    // As the machine file says where the program does not: the host.
    assert_eq!(time("machine,machine"), host);
    assert_eq!(run(&ping_pong, &["--memory", "gpu"]).status.code(), Some(2));
    let own = crate::support::root().join("machines/apenetx-u280.toml");
    let own = std::fs::read_to_string(own).unwrap();
    let (before, rest) = own.split_once("[nic.gpu]").unwrap();
    let after = &rest[rest.find("[host]").unwrap()..];
    let folder = tempfile::tempdir().unwrap();
    let machine = folder.path().join("no-gpu.toml");
    std::fs::write(&machine, [before, after].concat()).unwrap();
    let output =
        run_on(machine.to_str().unwrap(), &ping_pong, &["--memory", "gpu-direct,host", "--blocking"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("No such device"), "{said}");
}

/// Catches a program over LibQCM that does not run, paths that a program does not choose, and their order.
#[test]
fn a_program_chooses_the_path_of_its_completions() {
    let ping_pong = ping_pong();
    let times = PATHS.map(|path| {
        let output = run(&ping_pong, &["--completion", path]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        one_way(output, " 8 bytes")
    });
    assert!(times.windows(2).all(|pair| pair[0] > pair[1]), "{times:?}");
    let again = run(&ping_pong, &["--completion", "kernel"]);
    assert_eq!(again.stdout, run(&ping_pong, &["--completion", "kernel"]).stdout);
    assert_eq!(run(&ping_pong, &["--completion", "quantum"]).status.code(), Some(2));
}

/// A process that writes where it may not gets an error, and the simulator stands.
#[test]
fn bad_requests_are_errors_to_their_process() {
    let output = run(&program("qcm_hostile", &[EXPECTATIONS, HOSTILE].concat()), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Catches a card that is closed to what came before: the peer would learn of a queue that is not there, and
/// the buffer is what is missing.
#[test]
fn a_buffer_that_is_taken_back_is_what_the_peer_learns_of() {
    let output = run(&program("qcm_taken_back", &[EXPECTATIONS, TAKEN_BACK].concat()), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Catches a poll of a buffer until a time that counts as a wait, on both sides at once, and a poll for what
/// nobody sends that does not.
#[test]
fn a_buffer_is_polled_until_a_time() {
    let text = |condition: &str| [EXPECTATIONS, &POLLS.replace("CONDITION", condition)].concat();
    let output = run(&program("qcm_until", &text("qcm_clock_ps(card) < 1000000000")), &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ends = String::from_utf8(output.stdout).unwrap();
    let late = |end: &str| (1_000_000_000..1_010_000_000).contains(&end.parse::<u64>().unwrap());
    assert!(ends.lines().count() == 2 && ends.lines().all(late), "{ends}");
    let output = run(&program("qcm_for_ever", &text("1")), &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("deadlock"), "{said}");
}

/// The head of programs that compare what calls return.
const EXPECTATIONS: &str = r#"
#include "qcm.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(int found, int wanted, int line)
{
    if (found != wanted) {
        fprintf(stderr, "line %d: %d, not %d\n", line, found, wanted);
        exit(1);
    }
}
#define EXPECT(call, wanted) expect(call, wanted, __LINE__)
"#;

/// A process that polls a buffer as long as CONDITION holds.
const POLLS: &str = r#"
int main(void)
{
    static char in[64];
    qcm *card;
    qcm_buffer *target;
    qcm_rx_done done;
    EXPECT(qcm_open(&card), 0);
    EXPECT(qcm_register(card, in, sizeof in, QCM_DIRECT, &target), 0);
    while (CONDITION)
        EXPECT(qcm_poll(target, &done), 0);
    printf("%llu\n", (unsigned long long)qcm_clock_ps(card));
    return 0;
}
"#;

/// A process writes into the only buffer of one that has taken it back, and that closes its card later.
const TAKEN_BACK: &str = r#"
int main(void)
{
    static char memory[64];
    qcm *card;
    qcm_buffer *buffer;
    qcm_remote theirs;
    EXPECT(qcm_open(&card), 0);
    EXPECT(qcm_register(card, memory, sizeof memory, QCM_DIRECT, &buffer), 0);
    EXPECT(qcm_handshake(card, 1 - qcm_number(card), buffer, &theirs), 0);
    if (qcm_number(card) == 1)
        EXPECT(qcm_deregister(buffer), 0);
    while (qcm_clock_ps(card) < (qcm_number(card) ? 200 : 100) * 1000000ull)
        ;
    if (qcm_number(card) == 0)
        EXPECT(qcm_send(buffer, 0, 64, &theirs, 0, QCM_BLOCKING), -EFAULT);
    qcm_close(card);
    return 0;
}
"#;

const HOSTILE: &str = r#"
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
        /* A call that waits for the end has the error itself, and nobody else has it again. */
        EXPECT(qcm_send(source, 0, 64, &bad, 0, QCM_BLOCKING), -EFAULT);
        bad = theirs;
        bad.completion = 64;
        EXPECT(qcm_send(source, 0, 64, &bad, 0, QCM_BLOCKING), -EFAULT);
        bad = theirs;
        bad.node = 1u << 20;
        EXPECT(qcm_send(source, 0, 64, &bad, 0, QCM_BLOCKING), -ENETUNREACH);
        bad = theirs;
        bad.queue = 63;
        EXPECT(qcm_send(source, 0, 64, &bad, 0, QCM_BLOCKING), -ENXIO);
        EXPECT(qcm_flush(card), 0);
        bad.path = 6;
        EXPECT(qcm_send(source, 0, 64, &bad, 0, 0), -EINVAL);
        EXPECT(qcm_send(source, 0, 64, &theirs, 0, QCM_BLOCKING), 0);
    } else {
        qcm_rx_done done;
        while (qcm_poll(target, &done) == 0)
            ;
        EXPECT((int)done.length, 64);
        /* One for each descriptor that was made, and none for what was refused before. */
        EXPECT((int)done.sequence, 6);
    }
    /* What a peer still sends to a buffer that is deregistered is not written, and it learns of that. */
    qcm_buffer *signal;
    qcm_remote back;
    static char word[8];
    EXPECT(qcm_register(card, word, sizeof word, QCM_DIRECT, &signal), 0);
    EXPECT(qcm_handshake(card, 1 - qcm_number(card), signal, &back), 0);
    if (qcm_number(card) == 1) {
        memset(in, 0, sizeof in);
        EXPECT(qcm_deregister(target), 0);
        EXPECT(qcm_send(source, 0, 8, &back, 0, QCM_BLOCKING), 0);
        while (qcm_poll(signal, NULL) == 0)
            ;
        EXPECT(in[0] || in[63], 0);
    } else {
        memset(out, 7, sizeof out);
        while (qcm_poll(signal, NULL) == 0)
            ;
        EXPECT(qcm_send(source, 0, 64, &theirs, 0, QCM_BLOCKING), -EFAULT);
        EXPECT(qcm_send(source, 0, 8, &back, 0, QCM_BLOCKING), 0);
    }
    EXPECT(qcm_deregister(source), 0);
    qcm_close(card);
    return 0;
}
"#;
