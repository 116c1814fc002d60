//! Any bytes as a machine file with `--set`s: a machine or diagnostics that can be printed.
//!
//! An input is the file, then each `--set` behind a NUL byte.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut parts = input.split(|&byte| byte == 0);
    let file = parts.next().unwrap_or_default();
    let sets: Vec<_> = parts.map(String::from_utf8_lossy).collect();
    if let Err(diagnostics) = weft_machine::check_bytes("fuzz.toml", file, &sets) {
        assert!(!diagnostics.to_string().is_empty());
    }
});
