//! The inputs of the fuzz target `device`, and random ones, as what ranks write into their devices.

#![allow(clippy::unwrap_used, reason = "a test")]

use proptest::prelude::*;
use std::fs;
use weft_host::LiveEnd;
use weft_host_check::device_input::serve;

/// Each input of the corpus, and that some are served and some found out: a corpus of one kind would test
/// little.
#[test]
fn the_corpus_ends_one_way_or_another() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/device");
    let (mut served, mut broken) = (0, 0);
    for entry in fs::read_dir(corpus).unwrap() {
        match serve(&fs::read(entry.unwrap().path()).unwrap()) {
            Some(LiveEnd::Broken(..)) => broken += 1,
            Some(_) => served += 1,
            None => {}
        }
    }
    assert!(served > 5 && broken > 5, "{served} served, {broken} found out");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Catches bytes that bring the simulator down, hang it, or fill its memory.
    #[test]
    fn any_bytes_are_served_or_found_out(input in prop::collection::vec(any::<u8>(), 1..400)) {
        prop_assert!(serve(&input).is_some());
    }
}
