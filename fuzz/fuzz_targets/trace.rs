//! Any bytes as a trace file: read to its end, or an error that can be printed.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Err(error) = weft_formats::check_bytes(input) {
        assert!(!error.to_string().is_empty());
    }
});
