//! MPI calls by name in the reports of `weft run`.
//!
//! The programs need MPICH in build/venv (`make test` installs it) and are skipped where it is not there.

use crate::common::json;
use crate::skipped::leave_out;
use crate::support::{job, root, texts};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const ROUNDS: u64 = 50;

/// A ping-pong under `weft run`, with libraries from that folder, the project's if none is named; its virtual
/// time, and its results.
fn ping_pong(program: &Path, out: &Path, libraries: Option<&Path>) -> (String, Value, Value) {
    let timeline = out.with_extension("json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    if let Some(folder) = libraries {
        command.env("WEFT_LIBRARIES", folder);
    }
    command
        .args(["run", "-m", "exanest", "-n", "2", "--json", "-o"])
        .arg(out)
        .arg("--timeline")
        .arg(&timeline);
    command.arg("--").arg(program).args(["ping-pong", "4096", &ROUNDS.to_string()]).stdin(Stdio::null());
    let output = command.output().unwrap();
    let (document, said) = texts(&output);
    assert!(output.status.success(), "{said}");
    let document: Value = serde_json::from_str(&document).unwrap();
    let timeline = serde_json::from_str(&fs::read_to_string(timeline).unwrap()).unwrap();
    let explained = json(&["explain", out.to_str().unwrap(), "--json"]);
    (document["virtual_time_us"].to_string(), explained, timeline)
}

/// The names of the critical path's places.
fn whats(explained: &Value) -> Vec<String> {
    let places = explained["runs"][0]["places"].as_array().unwrap();
    places.iter().map(|place| place["what"].as_str().unwrap().to_owned()).collect()
}

/// Catches names that take virtual time, that are lost on the way, and slices that are not one for each call.
#[test]
fn calls_are_named_and_take_no_time() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (named, explained, timeline) = ping_pong(&program, &folder.path().join("named"), None);
    assert!(whats(&explained).iter().any(|what| what == "receive message (MPI_Recv)"), "{explained}");
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut ends: BTreeMap<u64, f64> = BTreeMap::new();
    for slice in timeline["traceEvents"].as_array().unwrap() {
        let track = slice["tid"].as_u64().unwrap_or(0);
        if slice["ph"] == "X" && track >= 2 {
            *counts.entry(slice["name"].as_str().unwrap()).or_default() += 1;
            let begin = slice["ts"].as_f64().unwrap();
            let end = ends.insert(track, begin + slice["dur"].as_f64().unwrap());
            assert!(end.is_none_or(|end| end <= begin + 1e-6), "{slice} overlaps the one before");
        }
    }
    assert_eq!((counts["MPI_Send"], counts["MPI_Recv"]), (2 * ROUNDS, 2 * ROUNDS), "{counts:?}");

    // The same without the library that names them.
    let libraries = folder.path().join("libraries");
    fs::create_dir(&libraries).unwrap();
    let deps = Path::new(env!("CARGO_BIN_EXE_weft")).parent().unwrap().join("deps");
    let link = |file: &Path| {
        std::os::unix::fs::symlink(file, libraries.join(file.file_name().unwrap())).unwrap();
    };
    link(&deps.join("libweft_client.so"));
    link(&root().join("build/libfabric/libweft-fi.so"));
    let (plain, explained, timeline) = ping_pong(&program, &folder.path().join("plain"), Some(&libraries));
    assert_eq!(named, plain, "names take virtual time");
    assert!(whats(&explained).iter().any(|what| what == "receive message (wait)"), "{explained}");
    assert!(!timeline.to_string().contains("MPI_Recv"));
}

/// `weft run` of a command on two ranks.
fn run(out: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.args(["run", "-m", "exanest", "-n", "2", "--quiet", "--wall-limit", "60s", "--force", "-o"]);
    command.arg(out).arg("--").args(words).stdin(Stdio::null()).output().unwrap()
}

/// Catches a library that is in the way of processes without MPI, or that does not find an MPI library that a
/// module has loaded for itself, or that of the standard ABI.
#[test]
fn wrappers_modules_and_the_standard_abi_are_named_too() {
    let Some(program) = job() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (out, program) = (folder.path().join("out"), program.to_str().unwrap());
    let names = |words: &[&str], name: &str| {
        let output = run(&out, words);
        assert!(output.status.success(), "{words:?}: {}", texts(&output).1);
        let explained = json(&["explain", out.to_str().unwrap(), "--json"]);
        assert!(explained.to_string().contains(name), "{words:?}: {explained}");
        texts(&output).0
    };
    let shell = "ls / >/dev/null && \"$0\" allreduce 100 5; true";
    names(&["sh", "-c", shell, program], "(MPI_Allreduce)");

    let python = root().join("build/venv/bin/python");
    let script = "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))";
    let has_module =
        Command::new(&python).args(["-c", "import mpi4py"]).status().is_ok_and(|status| status.success());
    if has_module {
        let printed = names(&[python.to_str().unwrap(), "-c", script], "(MPI_Init_thread)");
        assert_eq!(printed, "2\n2\n");
    } else {
        leave_out("the module", "no mpi4py in build/venv");
    }

    let (compiler, abi) = (root().join("build/venv/bin/mpicc_abi"), folder.path().join("abi"));
    if compiler.exists() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/job.c");
        assert!(
            Command::new(compiler)
                .args(["-std=gnu11", "-O1", "-o"])
                .arg(&abi)
                .arg(source)
                .status()
                .unwrap()
                .success()
        );
        names(&[abi.to_str().unwrap(), "allreduce", "100", "5"], "(MPI_Allreduce)");
    } else {
        leave_out("the standard ABI", "no mpicc_abi in build/venv");
    }
}
