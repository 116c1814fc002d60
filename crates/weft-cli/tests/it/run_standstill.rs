//! Real ranks that wait for ever, and such that only seem to: by mailboxes that nobody drains, by polls until
//! a time, by posts that take time.
//!
//! The programs are over `weft.h`: none needs MPI.

use crate::support::{over_weft, texts};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Real time in which each of these jobs ends by far.
const WALL_LIMIT: &str = "40s";

/// The beginning of each program: two ranks, each with a virtual interface, that know each other's.
const BEGIN: &str = r#"
#include "weft.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static weft_rank *rank;
static weft_interface *own;
static weft_address theirs;
static uint32_t me;

static void require(int holds, int line)
{
    if (!holds) {
        fprintf(stderr, "line %d\n", line);
        exit(9);
    }
}
#define REQUIRE(what) require(what, __LINE__)

/* Both ranks are here, and have told each other their addresses. */
static void meet(void)
{
    weft_address here = weft_interface_address(own, NULL);
    weft_completion done;
    REQUIRE(weft_receive(rank, 1 - me, 1, 0, &theirs, sizeof theirs, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
    REQUIRE(weft_send(rank, 1 - me, 1, &here, sizeof here, 0, WEFT_TAGGED, NULL) == 0);
    while (weft_poll(rank, &done, 1) != 1)
        weft_yield(rank);
}

static void begin(void)
{
    REQUIRE(weft_open(&rank) == 0);
    me = weft_number(rank);
    REQUIRE(weft_interface_allocate(rank, WEFT_DOMAIN_JOB, &own) == 0);
    meet();
}

/* Looks for the end of an operation, and says that there is nothing else to do. */
static void look(void)
{
    weft_interface_completion ended;
    weft_interface_poll(own, &ended, 1);
    weft_yield(rank);
}

/* Rank 0 sends `count` small messages, as many of them as the mailbox of rank 1 takes and more. */
static void send_small(int count)
{
    for (int i = 0; i < count; i++)
        REQUIRE(weft_interface_send(own, theirs, &i, sizeof i, NULL) == 0);
}

static int receive_small(void)
{
    int number = -1;
    while (weft_interface_receive(own, &number, sizeof number, NULL) < 0)
        weft_yield(rank);
    return number;
}
"#;

/// Runs such a program on two hosts of a machine.
fn run(name: &str, main: &str, options: &[&str]) -> Output {
    let program = over_weft(name, &format!("{BEGIN}\nint main(void)\n{{\n    begin();\n{main}\n}}\n"), &[]);
    run_program(&program, options)
}

fn run_program(program: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(["run", "--quiet", "-n", "2", "--ppn", "1", "--wall-limit", WALL_LIMIT]).args(options);
    command.arg("--").arg(program).stdin(Stdio::null()).output().unwrap()
}

/// How a job on `exanest` ended, and what is said of that.
fn ending(name: &str, main: &str) -> (String, String) {
    let output = run(name, main, &["-m", "exanest", "--json"]);
    let (document, said) = texts(&output);
    let document: Value = serde_json::from_str(&document).unwrap_or_else(|_| panic!("{document}{said}"));
    let word = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
    (word("ended"), word("detail"))
}

/// Catches a job that goes on for ever, since the network repeats what a full mailbox refuses: its 64 entries
/// take 64 of 100 messages, and rank 1 looks for nothing but completions.
#[test]
fn a_mailbox_that_nobody_drains_is_no_progress() {
    let main = "    if (me == 0)\n        send_small(100);\n    for (;;)\n        look();";
    let (ended, detail) = ending("undrained", main);
    assert_eq!(ended, "no-progress", "{detail}");
    let first = detail.lines().next().unwrap_or_default();
    assert!(first.starts_with("36 small messages are repeated without end"), "{detail}");
    assert!(first.ends_with("64 lie in the mailbox of virtual interface 1 of rank 1"), "{detail}");
    assert!(detail.contains("rank 1 waits since "), "{detail}");
    // So does one whose sender has left.
    let main = "    if (me == 0) {\n        send_small(100);\n        return 0;\n    }\n    for (;;) look();";
    assert_eq!(ending("undrained_by_one", main).0, "no-progress");
}

/// Catches a job that is ended although a rank takes its messages after all, and one that takes them but ends
/// for the mailbox that was full before.
#[test]
fn a_mailbox_that_is_drained_late_is_no_standstill() {
    let main = r#"
    if (me == 0)
        send_small(100);
    else {
        for (int i = 0; i < 600; i++)
            look();
        for (int i = 0; i < 100; i++) {
            REQUIRE(receive_small() >= 0);
            look();
        }
    }
    meet();
    return 0;"#;
    let (ended, detail) = ending("drained_late", main);
    assert_eq!((ended.as_str(), detail.as_str()), ("finished", ""));
}

/// Catches a job that never ends although all of its processes have, since the mailbox of one of them stays
/// full.
#[test]
fn a_rank_that_ends_gives_its_mailbox_back() {
    let main = r#"
    if (me == 0)
        send_small(100);
    else
        receive_small();
    return 0;"#;
    assert_eq!(ending("ends_with_mail", main).0, "finished");
}

/// Catches a poll until a time that counts as a wait: two ranks poll and yield in vain for a millisecond, by
/// the clock of weft.h and by that of the system. And a loop on the clock alone, which stands still.
#[test]
fn polls_until_a_time_end_then() {
    let loops = [
        "while (weft_clock_ps(rank) < 1000000000) look();",
        "while (weft_clock_ps(rank) < 1000000000);",
        "struct timespec t; uint64_t from = 0, now; do { clock_gettime(CLOCK_MONOTONIC, &t);
         now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec; if (!from) from = now; look(); }
         while (now - from < 1000000);",
    ];
    for (number, text) in loops.into_iter().enumerate() {
        let main =
            format!("    {text}\n    printf(\"%\" PRIu64 \"\\n\", weft_clock_ps(rank));\n    return 0;");
        let name = format!("until_a_time_{number}");
        let source = format!(
            "#define _GNU_SOURCE\n#include <time.h>\n{BEGIN}\nint main(void)\n{{\n    begin();\n{main}\n}}\n"
        );
        let output = run_program(&over_weft(&name, &source, &[]), &["-m", "exanest"]);
        let (printed, said) = texts(&output);
        assert!(output.status.success(), "{text}: {printed}{said}");
        let ends: Vec<u64> = printed.lines().map(|line| line.parse().unwrap()).collect();
        // A look at the clock, or a poll and a look, is late by less than half a microsecond.
        let late = |end: &u64| (1_000_000_000..1_010_000_000).contains(end);
        assert!(ends.len() == 2 && ends.iter().all(late), "{text}: {ends:?}");
    }
}

/// Catches a deadlock that runs on, since ranks that poll make virtual time pass.
#[test]
fn ranks_that_poll_for_what_nobody_sends_are_a_deadlock() {
    let (ended, detail) = ending("polls_for_nothing", "    for (;;)\n        look();");
    assert_eq!(ended, "deadlock", "{detail}");
    assert!(detail.contains("rank 0 waits since ") && detail.contains("rank 1 waits since "), "{detail}");
}

/// Catches posts that take no time, and such that take that of other bytes. A store of 16 B takes a cycle of
/// 150 MHz on `exanest` (TR-488 §4.2): a small message of 8 B with its descriptor of 16 B two of them, one of
/// 64 B five, the descriptor of 64 B of an RDMA write four. A call of LibQCM's library takes 100 ns on
/// `apenetx-u280`, with the driver behind it 1,050 ns. Where a machine says nothing of stores, a post takes
/// `messaging.control_send` or `messaging.data_send`.
#[test]
fn posts_take_the_time_of_their_stores_and_calls() {
    let main = r#"
    char bytes[64] = {0};
    uint64_t times[4];
    times[0] = weft_clock_ps(rank);
    for (int i = 0; i < 60; i++)
        if (me == 0)
            REQUIRE(weft_interface_send(own, theirs, bytes, 8, NULL) == 0);
    times[1] = weft_clock_ps(rank);
    if (me == 0)
        REQUIRE(weft_interface_send(own, theirs, bytes, 64, NULL) == 0);
    times[2] = weft_clock_ps(rank);
    theirs.memory = (uint64_t)(uintptr_t)bytes;
    if (me == 0)
        REQUIRE(weft_interface_write(own, bytes, 64, theirs, 0, 0, NULL) == 0);
    times[3] = weft_clock_ps(rank);
    /* A look at the clock takes its own time, once in each. */
    for (int i = 0; me == 0 && i < 3; i++)
        printf("%" PRIu64 "\n", times[i + 1] - times[i]);
    return 0;"#;
    let looks = |machine: &[&str]| -> [u64; 3] {
        let output = run("posts", main, machine);
        let (printed, said) = texts(&output);
        assert!(output.status.success(), "{machine:?}: {printed}{said}");
        let times: Vec<u64> = printed.lines().map(|line| line.parse().unwrap()).collect();
        times.try_into().unwrap()
    };
    let exanest = ["-m", "exanest", "--set", "host.clock_read=1ps"];
    assert_eq!(looks(&exanest), [60 * 13_334 + 1, 33_334 + 1, 26_667 + 1]);
    let fast = ["-m", "apenetx-u280", "--set", "host.clock_read=1ps"];
    assert_eq!(looks(&fast), [60 * 100_000 + 1, 100_000 + 1, 100_000 + 1]);
    let driver = [&fast[..], &["--set", "nic.host_to_card.fast_send=false"]].concat();
    assert_eq!(looks(&driver), [60 * 1_050_000 + 1, 1_050_000 + 1, 1_050_000 + 1]);
    let costs = ["--set", "messaging.control_send=7ns", "--set", "messaging.data_send=9ns"];
    let overheads = [&exanest[..], &["--set", "nic.model=overheads"], &costs].concat();
    assert_eq!(looks(&overheads), [60 * 7_000 + 1, 7_000 + 1, 9_000 + 1]);
}

/// Catches memory that is reached behind an interface that is restricted: data or a notification's word that
/// is not registered, or not any more, and a read; and registered memory that is not reached.
#[test]
fn a_restricted_interface_reaches_registered_memory_only() {
    let main = r#"
    static struct { char data[64], beside[64]; uint64_t word, other; } memory;
    struct { weft_address data; uint64_t beside, word, other; } told, here;
    weft_completion done;
    char out[64];
    memset(out, 7, sizeof out);
    uint64_t keys[2] = {UINT64_MAX, UINT64_MAX};
    REQUIRE(weft_interface_restrict(own) == 0);
    REQUIRE(weft_register(rank, memory.data, 64, WEFT_ACCESS_WRITE, &keys[0]) == 0);
    REQUIRE(weft_register(rank, &memory.word, 8, WEFT_ACCESS_WRITE, &keys[1]) == 0);
    here.data = weft_interface_address(own, memory.data);
    here.beside = (uint64_t)(uintptr_t)memory.beside;
    here.word = (uint64_t)(uintptr_t)&memory.word;
    here.other = (uint64_t)(uintptr_t)&memory.other;
    REQUIRE(weft_receive(rank, 1 - me, 2, 0, &told, sizeof told, WEFT_TAGGED | WEFT_COMPLETION, NULL) == 0);
    REQUIRE(weft_send(rank, 1 - me, 2, &here, sizeof here, 0, WEFT_TAGGED, NULL) == 0);
    while (weft_poll(rank, &done, 1) != 1)
        weft_yield(rank);
    struct { uint64_t at, length, word; int reads, wanted; } tries[] = {
        {told.data.memory, 64, told.word, 0, 0},
        {told.data.memory + 8, 56, 0, 0, 0},
        {told.data.memory + 8, 57, 0, 0, EFAULT},
        {told.beside, 8, 0, 0, EFAULT},
        {told.data.memory, 8, told.other, 0, EFAULT},
        {told.data.memory, 8, 0, 1, EFAULT},
        {told.data.memory, 8, 0, 0, EFAULT},
    };
    for (int i = 0; i < 7; i++) {
        weft_address to = told.data;
        weft_interface_completion ended;
        to.memory = tries[i].at;
        meet();
        if (i == 6 && me == 1)
            REQUIRE(weft_unregister(rank, keys[0]) == 0);
        meet();
        if (me == 1)
            continue;
        if (tries[i].reads)
            REQUIRE(weft_interface_read(own, out, tries[i].length, to, NULL) == 0);
        else
            REQUIRE(weft_interface_write(own, out, tries[i].length, to, tries[i].word, 5, NULL) == 0);
        while (weft_interface_poll(own, &ended, 1) != 1)
            weft_yield(rank);
        if (ended.error != tries[i].wanted) {
            fprintf(stderr, "try %d: errno %d\n", i, ended.error);
            return 9;
        }
    }
    meet();
    if (me == 1)
        REQUIRE(memory.data[0] == 7 && memory.data[63] == 7 && memory.word == 5 && memory.other == 0 &&
                memory.beside[0] == 0);
    return 0;"#;
    for machine in ["exanest", "apenetx-u280", "bxi2-fattree"] {
        let output = run("restricted", main, &["-m", machine]);
        let (printed, said) = texts(&output);
        assert!(output.status.success(), "{machine}: {printed}{said}");
    }
}
