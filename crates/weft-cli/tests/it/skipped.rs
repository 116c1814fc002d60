//! Tests that cannot run here: said, and counted by `tools/test.py`, instead of passed.

use std::fs::OpenOptions;
use std::io::Write;

/// The variable that names the file for such lines: libtest keeps the output of a test that passes to itself.
const FILE: &str = "WEFT_SKIPPED";

/// Reports that the test that calls it is skipped as a whole. The test returns then.
pub fn skip(reason: &str) {
    report("skipped", &test_name(), reason);
}

/// Reports that a part of the test that calls it is left out. The rest of the test runs.
pub fn leave_out(part: &str, reason: &str) {
    report("left out", &format!("{}, {part}", test_name()), reason);
}

/// The name that libtest gives to the thread of a test, after that of its program.
fn test_name() -> String {
    let thread = std::thread::current();
    format!("{} {}", env!("CARGO_CRATE_NAME"), thread.name().unwrap_or("main"))
}

#[allow(clippy::print_stderr, reason = "the only place for it without `tools/test.py`")]
fn report(what: &str, name: &str, reason: &str) {
    let line = format!("{what}: {name}: {reason}\n");
    let Some(file) = std::env::var_os(FILE) else {
        eprint!("{line}");
        return;
    };
    // One write each: tests of several processes add to the same file.
    let mut file = OpenOptions::new().append(true).create(true).open(file).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}
