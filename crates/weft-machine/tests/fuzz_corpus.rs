//! The inputs that fuzzing of machine files found worth keeping, through the entry point of its target
//! `fuzz/fuzz_targets/machine.rs`.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use weft_machine::check_bytes;

/// Catches what fuzzing once found, and what it would find at once: a panic, an endless loop, memory of
/// the size that a file merely says.
#[test]
fn every_input_gives_a_machine_or_diagnostics() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/machine");
    let (mut machines, mut refused) = (0, 0);
    for entry in fs::read_dir(corpus).unwrap() {
        let input = fs::read(entry.unwrap().path()).unwrap();
        let mut parts = input.split(|&byte| byte == 0);
        let file = parts.next().unwrap();
        let sets: Vec<_> = parts.map(String::from_utf8_lossy).collect();
        match check_bytes("fuzz.toml", file, &sets) {
            Ok(_) => machines += 1,
            Err(diagnostics) => {
                assert!(!diagnostics.to_string().is_empty());
                refused += 1;
            }
        }
    }
    // A corpus of one kind only would test little.
    assert!(machines > 0 && refused > 0, "{machines} machines, {refused} refused");
}
