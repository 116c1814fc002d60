//! Any bytes as one rank's part of a recording: read to its end, or an error that can be printed.

#![no_main]

use weft_formats::parts::PartReader;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let read = PartReader::new("fuzz.part", input).and_then(|part| part.collect::<Result<Vec<_>, _>>());
    if let Err(error) = read {
        assert!(!error.to_string().is_empty());
    }
});
