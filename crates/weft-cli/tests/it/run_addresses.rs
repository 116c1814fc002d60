//! Addresses of real ranks' messages: their interfaces translate them, and nothing else depends on them.
//!
//! The programs need MPICH in build/venv (`make test` installs it) and are skipped where it is not there.

use crate::support::{job, texts};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Options by which a few pages more or less can be seen.
const SENSITIVE: [&str; 6] =
    ["--set", "nic.iommu.entries=16", "--set", "nic.iommu.walk=2us", "--set", "nic.iommu.faults=first-touch"];

/// Shell words that run what follows in an environment.
const ENVIRONMENTS: [&str; 4] = [
    r#"exec "$0" "$@""#,
    r#"exec "$0" "$@""#,
    r#"export PADDING=$(head -c 10007 /dev/zero | tr '\0' x); exec "$0" "$@""#,
    r#"exec env -i PATH="$PATH" "$0" "$@""#,
];

/// The JSON of a job on `exanest`, without what is of real time or of the simulator's own memory.
fn document(environment: &str, options: &[&str], program: &Path, arguments: &[&str]) -> Value {
    let output = Command::new("sh")
        .args(["-c", environment, env!("CARGO_BIN_EXE_weft")])
        .args(["run", "-m", "exanest", "--json", "--quiet", "--wall-limit", "60s"])
        .args(options)
        .arg("--")
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (document, said) = texts(&output);
    assert!(output.status.success(), "{environment}: {document}{said}");
    let mut document: Value = serde_json::from_str(&document).unwrap();
    forget_real_time(&mut document);
    document
}

fn forget_real_time(document: &mut Value) {
    let keys = ["wall_seconds", "packet_hops_per_second", "build_time_s", "peak_memory_bytes"];
    if let Some(document) = document.as_object_mut() {
        document.retain(|key, _| !keys.contains(&key.as_str()));
    }
    for row in document["rows"].as_array_mut().unwrap() {
        row.as_object_mut().unwrap().retain(|key, _| !keys.contains(&key.as_str()));
    }
}

/// Catches a result that depends on where the system, the loader or the C library has put a buffer: on the
/// stack, among static data, on the heap or in a window. `setarch` gives each run the address randomization
/// that weft takes away from ranks.
#[test]
fn results_are_the_same_in_any_environment() {
    let Some(program) = job() else { return };
    let randomized = [std::env::consts::ARCH, program.to_str().unwrap()];
    for (ranks, buffers, arguments) in [
        ("4", "partner", &["buffers", "3"][..]),
        ("2", "partner", &["one-sided", "30000", "3"]),
        ("4", "partner", &["alltoall", "20000", "2"]),
        ("4", "program", &["buffers", "3"]),
        ("2", "program", &["spread sends", "16", "32"]),
    ] {
        let buffers = format!("host.message_buffers={buffers}");
        let options = [&SENSITIVE[..], &["-n", ranks, "--ppn", "2", "--set", &buffers]].concat();
        let arguments = [&randomized[..], arguments].concat();
        let setarch = Path::new("setarch");
        let documents = ENVIRONMENTS.map(|environment| document(environment, &options, setarch, &arguments));
        assert!(documents.iter().all(|other| *other == documents[0]), "{arguments:?}: {documents:#?}");
    }
}

/// Catches parts of a window, or buffers of messages, that all lie at one address, and such that lie
/// elsewhere each time.
#[test]
fn more_pages_take_longer() {
    let Some(program) = job() else { return };
    for what in ["spread puts", "spread gets", "spread sends"] {
        let time = |buffers: &str, entries: &str| {
            let [walk, own] = ["nic.iommu.walk=2us", "host.message_buffers=program"];
            let options = ["-n", "2", "--set", walk, "--set", own, "--set", entries];
            let document = document(ENVIRONMENTS[0], &options, &program, &[what, buffers, "48"]);
            document["virtual_time_us"].as_f64().unwrap()
        };
        // Nine pages for each buffer: one is walked for once, of 16 nothing stays among 64 pages.
        let [few, many] = ["nic.iommu.entries=64", "nic.iommu.entries=1024"];
        let (one, sixteen, kept) = (time("1", few), time("16", few), time("16", many));
        assert!(sixteen > 1.2 * one && sixteen > 1.05 * kept, "{what}: {one} {sixteen} {kept} us");
    }
}
