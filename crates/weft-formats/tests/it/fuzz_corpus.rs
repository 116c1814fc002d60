//! The inputs that fuzzing of traces and of recordings' parts found worth keeping, through the entry points
//! of its targets `fuzz/fuzz_targets/trace.rs` and `parts.rs`.

use std::fs;
use weft_formats::check_bytes;
use weft_formats::parts::PartReader;

/// Each input of a target, and that some are read to their end and some are refused: a corpus of one kind
/// only would test little.
fn each_input(target: &str, mut read: impl FnMut(&[u8]) -> Result<(), String>) {
    let corpus = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let (mut whole, mut refused) = (0, 0);
    for entry in fs::read_dir(corpus).unwrap() {
        match read(&fs::read(entry.unwrap().path()).unwrap()) {
            Ok(()) => whole += 1,
            Err(error) => {
                assert!(!error.is_empty());
                refused += 1;
            }
        }
    }
    assert!(whole > 0 && refused > 0, "{target}: {whole} whole, {refused} refused");
}

/// Catches what fuzzing once found, and what it would find at once: a panic, an endless loop, memory of
/// the size that a file merely says.
#[test]
fn every_trace_is_read_or_refused() {
    each_input("trace", |input| check_bytes(input).map_err(|error| error.to_string()));
}

/// As above for the parts of a recording.
#[test]
fn every_part_is_read_or_refused() {
    each_input("parts", |input| {
        let mut part = PartReader::new("fuzz.part", input).map_err(|error| error.to_string())?;
        part.try_for_each(|op| op.map(drop)).map_err(|error| error.to_string())
    });
}
