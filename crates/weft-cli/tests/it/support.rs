//! The program of the tests of `weft run`, and how it is run.

use crate::skipped::skip;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;

/// The project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The program of the tests, built with the wheel's MPICH; `None`: without MPICH the test is skipped.
pub fn job() -> Option<PathBuf> {
    let compiler = root().join("build/venv/bin/mpicc");
    if !compiler.exists() {
        skip("no MPICH in build/venv; `make test` installs it");
        return None;
    }
    // Several tests build at a time: each its own.
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("main").replace(':', "_");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("job_{name}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/job.c");
    let flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"];
    assert!(Command::new(compiler).args(flags).arg(&program).arg(source).status().unwrap().success());
    static RECORDER: Once = Once::new();
    RECORDER.call_once(|| make("recorder"));
    provider();
    Some(program)
}

/// The libfabric provider, without which `weft run` starts no program. One of several tests builds it.
pub fn provider() {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| make("libfabric"));
}

/// A C program over `weft.h`, with the sources beside its own, built with the library beside the command.
pub fn over_weft(name: &str, text: &str, beside: &[&str]) -> PathBuf {
    provider();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = program.with_extension("c");
    std::fs::write(&source, text).unwrap();
    let library = Path::new(env!("CARGO_BIN_EXE_weft")).parent().unwrap().join("deps/libweft_client.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]);
    compiler.arg("-I").arg(root().join("include")).arg("-I").arg(root().join("libqcm")).arg(source);
    compiler.args(beside.iter().map(|source| root().join(source)));
    assert!(compiler.arg(library).arg("-o").arg(&program).status().unwrap().success(), "{name}");
    program
}

fn make(folder: &str) {
    let made = Command::new("make").arg("-sC").arg(root().join(folder)).status();
    assert!(made.unwrap().success(), "{folder}");
}

/// `weft run` of a program, with an end in real time.
pub fn run(options: &[&str], program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.arg("run").args(options).args(["--wall-limit", "60s", "--"]).arg(program).args(arguments);
    command.stdin(Stdio::null()).output().unwrap()
}

/// The texts on standard output and on standard error.
pub fn texts(output: &Output) -> (String, String) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}
