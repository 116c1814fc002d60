//! Any bytes as what two ranks write into their devices: descriptors of messaging, of packetizer and RDMA, clocks, states. The
//! job ends, one way or another, and a rank that is found out is told in words.

#![no_main]

use weft_host::run::LiveEnd;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Some(LiveEnd::Broken(_, nonsense)) = weft_host::check::check_bytes(input) {
        assert!(!nonsense.to_string().is_empty());
    }
});
