//! Several endpoints of a real rank: MPICH opens one for each of its virtual communication interfaces.
//!
//! The program needs MPICH in build/venv (`make test` installs it) and is skipped where it is not there.

use crate::support::{job, texts};
use std::path::Path;

/// Runs `what` of the tests' program with so many of MPICH's interfaces: whether it ended well, what it
/// printed, and what was said.
fn run(options: &[&str], interfaces: u32, program: &Path, what: &str) -> (bool, String, String) {
    let interfaces = format!("MPIR_CVAR_CH4_NUM_VCIS={interfaces}");
    let arguments = [&interfaces, "FI_LOG_LEVEL=info", program.to_str().unwrap(), what];
    let output = crate::support::run(options, Path::new("/usr/bin/env"), &arguments);
    let (printed, said) = texts(&output);
    (output.status.success(), printed, said)
}

/// The highest number of an endpoint that a rank has opened.
fn highest_endpoint(said: &str) -> Option<u32> {
    let numbers = said.lines().filter_map(|line| line.rsplit_once("opens its endpoint ")?.1.parse().ok());
    numbers.max()
}

/// Catches messages of one endpoint that another gets, whose tags and sources are the same; a wait that is
/// not seen as one, with several queues to poll; and times that depend on how processes ran.
#[test]
fn communicators_have_endpoints_of_their_own() {
    let Some(program) = job() else { return };
    let hosts = ["-m", "bxi2-fattree", "-n", "4", "--ppn", "2", "--set=host.cores=2"];
    let rails = ["--set=host.endpoints_per_host=2", "--set=messaging.rails=striping"];
    for options in [&hosts[..], &[&hosts[..], &rails].concat()] {
        let (good, printed, said) = run(options, 4, &program, "communicators");
        assert!(good && printed.matches("passed").count() == 4, "{printed}{said}");
        assert_eq!(highest_endpoint(&said), Some(3), "{said}");
        assert_eq!(run(options, 4, &program, "communicators").1, printed);
    }
    let (good, printed, said) = run(&hosts, 1, &program, "communicators");
    assert!(good, "{printed}{said}");
    assert_eq!(highest_endpoint(&said), Some(0), "{said}");
}

/// MPICH lets threads into the provider at once, each with the lock of its own interface. Catches calls that
/// come between each other's, and a thread that polls and keeps the others out.
#[test]
fn threads_use_endpoints_of_their_own() {
    let Some(program) = job() else { return };
    for _ in 0..2 {
        let three = ["-m", "exanest", "-n", "3", "--ppn", "1"];
        let (good, printed, said) = run(&three, 4, &program, "threads on communicators");
        assert!(good && printed == "passed\n".repeat(3), "{printed}{said}");
        assert_eq!(highest_endpoint(&said), Some(3), "{said}");
    }
}

/// Catches a process with more endpoints than a rank has, which is told of nothing or never ends.
#[test]
fn more_endpoints_than_a_rank_has_are_refused() {
    let Some(program) = job() else { return };
    let two = ["-m", "exanest", "-n", "2"];
    let (good, printed, said) = run(&two, 16, &program, "communicators");
    assert!(good && highest_endpoint(&said) == Some(15), "{printed}{said}");
    let (good, printed, said) = run(&two, 17, &program, "communicators");
    assert!(!good && said.contains("this process has 16 endpoints already"), "{printed}{said}");
    // What they have shared by a name would stay, for other jobs to find.
    let named = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let left: Vec<_> = named.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with("mpich_vci_")), "{left:?}");
}
