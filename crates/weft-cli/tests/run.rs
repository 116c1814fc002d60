//! `weft run`: real MPI programs in virtual time, by the command itself.
//!
//! They need MPICH in build/venv (`make test` installs it) and say so where it is not there.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "run/support.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::{job, texts};

fn weft(options: &[&str], program: &Path, what: &str) -> std::process::Output {
    support::run(options, program, &[what])
}

/// The lines of a program's output in an order: those of different ranks may come in any.
fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Catches times that depend on how processes ran, data that is not the sender's, turns that are lost.
#[test]
fn an_mpi_program_is_the_same_twice() {
    let Some(program) = job() else { return };
    let run = || {
        let output = weft(&["-m", "exanest", "-n", "4", "--json"], &program, "talk");
        let (document, said) = texts(&output);
        assert!(output.status.success(), "{document}{said}");
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!((&document["ended"], &document["exit_status"]), (&"finished".into(), &0.into()));
        let lines: Vec<String> =
            sorted(&said).into_iter().filter(|line| !line.starts_with("weft:")).collect();
        assert_eq!(lines.iter().filter(|line| line.contains("of 4: sum 10 at")).count(), 4, "{said}");
        let pick = |key: &str| document[key].to_string();
        (lines, pick("virtual_time_us"), pick("messages"), pick("bytes"))
    };
    assert_eq!(run(), run());
}

/// Catches a rank that tests in a loop and never lets others run.
#[test]
fn a_loop_of_tests_sees_the_message_when_it_comes() {
    let Some(program) = job() else { return };
    let output = weft(&["-m", "exanest", "-n", "2", "--quiet"], &program, "test");
    let (printed, said) = texts(&output);
    assert!(output.status.success(), "{said}");
    // The sender sleeps for 100 us of virtual time.
    let at: f64 = printed.trim().rsplit_once("at ").unwrap().1.trim_end_matches(" us").parse().unwrap();
    assert!((100.0..200.0).contains(&at), "{printed}");
}

/// Catches an end that takes the others with it wrongly, a status that is lost, a job that hangs.
#[test]
fn ends_of_ranks_are_the_jobs() {
    let Some(program) = job() else { return };
    for (what, status, words) in [
        ("exit", 7, "rank 1 has ended with exit status 7"),
        ("leave", 1, "rank 1 has ended without MPI_Finalize"),
        ("crash", 128 + 11, "rank 1 has been ended by signal 11"),
        ("abort", 5, "rank 1 called MPI_Abort with status 5"),
    ] {
        let output = weft(&["-m", "exanest", "-n", "3"], &program, what);
        let (printed, said) = texts(&output);
        assert_eq!(output.status.code(), Some(status), "{what}: {printed}{said}");
        assert!(said.contains(words), "{what}: {said}");
    }
}

/// Catches a deadlock that hangs, or a report that does not say who waits for what.
#[test]
fn deadlocks_are_told() {
    let Some(program) = job() else { return };
    for (what, words) in [
        ("deadlock", &["its send of", "to rank 1, tag 17", "to rank 0, tag 17"][..]),
        ("waits", &["a message from rank 1, tag 3", "a message from rank 0, tag 3"]),
    ] {
        let output = weft(&["-m", "exanest", "-n", "2"], &program, what);
        let (_, said) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("weft: deadlock: rank 0 waits since "), "{said}");
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
    let output = weft(&["-m", "exanest", "-n", "2", "--watchdog", "500ms"], &program, "spin");
    assert_eq!(output.status.code(), Some(1), "{}", texts(&output).1);
}

/// Catches ranks that outlive a weft that is killed.
#[test]
fn nothing_is_left_behind() {
    let Some(program) = job() else { return };
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(["run", "-m", "exanest", "-n", "2", "--"])
        .arg(&program)
        .arg("spin")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ranks = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.filter(|p| std::fs::read_link(p.path().join("exe")).is_ok_and(|exe| exe == program)).count()
    };
    let wait_for = |count: usize| {
        // Half a minute.
        for _ in 0..1500 {
            if ranks() == count {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{} ranks", ranks());
    };
    wait_for(2);
    weft.kill().unwrap();
    weft.wait().unwrap();
    wait_for(0);
}

/// Catches a mend that is not told before anything is started.
#[test]
fn what_cannot_run_is_refused() {
    let refused = |options: &[&str], program: &str, words: &str| {
        let output = weft(options, Path::new(program), "x");
        let (_, said) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    };
    refused(&["-m", "exanest", "-n", "2"], "./no-such-program", "was not found");
    refused(&["-m", "exanest", "-n", "60000"], "/bin/true", "do not fit on");
    refused(&["-m", "exanest", "-n", "2", "--host", "gpu"], "/bin/true", "is no host model");
    refused(&["-m", "exanest", "-n", "2", "--set", "host.poll=0ns"], "/bin/true", "add `poll`");
    refused(&["-m", "exanest", "-n", "2"], "/etc/passwd", "not executable");
}
