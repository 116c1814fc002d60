//! Running the `weft` program.

use serde_json::Value;
use std::process::{Command, Output};

/// Runs the program.
pub fn weft(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weft")).args(words).output().unwrap()
}

/// Runs words that must succeed; returns the JSON document that they print.
pub fn json(words: &[&str]) -> Value {
    let output = weft(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs words that must be refused as bad input; returns what was said.
pub fn refused(words: &[&str]) -> String {
    let output = weft(words);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
    assert!(said.starts_with("weft: "), "{words:?}: {said}");
    said
}
