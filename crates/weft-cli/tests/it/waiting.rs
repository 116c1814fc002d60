//! Waiting for other processes: for what they do, and never for a time in which they may have done it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::Duration;
use weft_results::Stopwatch;

/// Real time after which a state counts as one that never comes.
const LIMIT_SECONDS: f64 = 120.0;
/// Real time between two looks.
const CHECK_INTERVAL: Duration = Duration::from_millis(2);

/// Waits until `holds`; `what` names it if it never does.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Stopwatch::start();
    while !holds() {
        assert!(begun.seconds() < LIMIT_SECONDS, "{what}: not in {LIMIT_SECONDS} s");
        std::thread::sleep(CHECK_INTERVAL);
    }
}

/// Waits until a process has used so much of a processor, in seconds: other than real time, it does not pass
/// while others keep the process waiting.
pub fn wait_until_used(child: &mut Child, seconds: f64) {
    // Linux tells user space in hundredths of a second, on every machine.
    let needed = (seconds * 100.0) as u64;
    let stat = format!("/proc/{}/stat", child.id());
    wait_until("its processor time", || {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        let fields = fs::read_to_string(&stat).unwrap();
        // Behind the name, which may have spaces: user and system time are fields 14 and 15 of all.
        let behind = fields.rsplit(") ").next().unwrap();
        behind.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>() >= needed
    });
}

/// Waits until a process, whose standard output is a pipe, has printed this line.
pub fn wait_for_line(child: &mut Child, line: &str) {
    // The pipe stays open: what the process prints later must find it.
    let printed = BufReader::new(child.stdout.as_mut().unwrap());
    assert!(printed.lines().any(|printed| printed.unwrap() == line), "it has ended without {line}");
}

/// Presses Ctrl-C. A process that has ended does not notice.
pub fn press_ctrl_c(child: &Child) {
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(killed.unwrap().success(), "nobody has waited for it yet");
}
