//! Arbitrary bytes written by two ranks into their devices: descriptors of messaging, of packetizer and RDMA,
//! clocks, states. The job always ends, and a rank that breaks the rules is named in a message.

#![no_main]

use weft_host::LiveEnd;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Some(LiveEnd::Broken(_, nonsense)) = weft_host_check::device_input::serve(input) {
        assert!(!nonsense.to_string().is_empty());
    }
});
