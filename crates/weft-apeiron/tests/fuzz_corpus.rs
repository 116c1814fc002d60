//! The inputs that fuzzing of designs found worth keeping, through the entry points of its target
//! `fuzz/fuzz_targets/design.rs`.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::path::Path;
use weft_apeiron::{Design, linker, picture};

/// Catches what fuzzing once found: a panic, an endless loop, a mistake without a text.
#[test]
fn every_input_gives_a_design_or_mistakes() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/design");
    let (mut designs, mut refused) = (0, 0);
    for entry in fs::read_dir(corpus).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        match Design::of_text(Path::new("config.yaml"), &text) {
            Ok(design) => {
                assert!(linker::config(&design).contains("[connectivity]"));
                assert!(picture::svg(&design).contains("</svg>"));
                designs += 1;
            }
            Err(mistakes) => {
                assert!(!mistakes.is_empty() && mistakes.iter().all(|mistake| mistake.line > 0));
                refused += 1;
            }
        }
    }
    // A corpus of one kind only would test little.
    assert!(designs > 0 && refused > 0, "{designs} designs, {refused} refused");
}
