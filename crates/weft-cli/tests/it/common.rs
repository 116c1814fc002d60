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

/// The row of a scenario's group of flows, or application, under one way to control congestion.
pub fn group<'a>(report: &'a Value, congestion: &str, group: &str) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    let found = rows.iter().find(|row| row["congestion"] == congestion && row["group"] == group);
    found.unwrap_or_else(|| panic!("no {group} under {congestion}: {report}"))
}

/// A number of a row.
pub fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

/// The rows of a report without what depends on the computer.
pub fn rows(report: &Value) -> Vec<Value> {
    let mut rows = report["rows"].as_array().unwrap().clone();
    for row in rows.iter_mut().filter_map(Value::as_object_mut) {
        for key in ["packet_hops_per_second", "build_time_s", "peak_memory_bytes"] {
            row.remove(key);
        }
    }
    rows
}
