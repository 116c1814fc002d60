//! Any text as the config.yaml of an APEIRON design: a design that can be shown and drawn, or mistakes that
//! can be printed.

#![no_main]

use std::path::Path;
use weft_apeiron::{Design, linker, picture};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Design::of_text(Path::new("config.yaml"), text) {
        Ok(design) => assert!(!linker::config(&design).is_empty() && !picture::svg(&design).is_empty()),
        Err(mistakes) => assert!(!mistakes.is_empty()),
    }
});
