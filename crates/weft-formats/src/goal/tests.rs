//! GOAL in both its forms, and damage.

#![allow(clippy::unwrap_used)] // All of this is tests.

use crate::error::TraceError;
use crate::format::{FormatReader, TraceOptions};
use proptest::prelude::*;
use std::sync::Arc;
use weft_trace::op::{Op, StreamId};
use weft_trace::streams;
use weft_units::RankId;

const TEXT: &str = "// a line of comment
num_ranks 2
/* two lines
of comment */ rank 1 {
l1: recv 1024b from 0 tag 3 /* late */
l2: calc 500 cpu 1
l3: send 8b to 0 nic 1
l2 requires l1
l3 irequires l2
}
rank 0 {
send 1024b to 1 tag 3
recv 8b from -1 tag -1
}
";

fn open(bytes: &[u8]) -> Result<Arc<dyn FormatReader>, TraceError> {
    (super::FORMAT.open_bytes)("some.goal", bytes.to_vec().into(), &TraceOptions::default())
}

/// The operations of the streams of a rank, by name.
fn names(trace: &dyn FormatReader, rank: u32) -> Vec<String> {
    let stream = |stream: StreamId| {
        let ops = trace.stream(RankId(rank), stream).unwrap().map(Result::unwrap);
        ops.map(|op: Op| op.kind().name()).collect::<Vec<_>>().join(" ")
    };
    streams(trace, RankId(rank)).map(stream).collect()
}

/// The same file in binary, as txt2bin writes it.
fn binary() -> Vec<u8> {
    let mut file = 4223u64.to_le_bytes().to_vec();
    let node = |kind: u8, peer: u32, size: u64, tag: u32, place: [u8; 2], after: [u32; 4]| {
        let mut bytes = 0u32.to_le_bytes().to_vec();
        bytes.push(kind);
        bytes.extend(peer.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(tag.to_le_bytes());
        bytes.extend(place);
        bytes.extend(after.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    };
    let numbers =
        |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let none = [0, 999, 0, u32::MAX];
    let first = [
        numbers(&[2, 2, 0, 1]),
        node(1, 1, 1024, 3, [0, 0], none),
        node(2, u32::MAX, 8, u32::MAX, [0, 0], none),
    ];
    let second = [
        numbers(&[3, 1, 0]),
        node(2, 0, 1024, 3, [0, 0], [1, 0, 0, u32::MAX]),
        node(3, 0, 500, 0, [1, 0], [0, 999, 1, 1]),
        node(1, 0, 8, 0, [0, 1], none),
        numbers(&[1, 2]),
    ];
    let (first, second) = (first.concat(), second.concat());
    let begin = 6 + 2 * 16;
    file.extend(2u32.to_le_bytes());
    file.extend([1, 1]);
    let places = [begin, begin + first.len(), begin + first.len(), begin + first.len() + second.len()];
    file.extend(places.iter().flat_map(|place| (*place as u64).to_le_bytes()));
    [file, first, second].concat()
}

/// Catches a statement that is read as another, blocks that are taken for each other's, and a form that says
/// something else than the other.
#[test]
fn both_forms_say_the_same() {
    for bytes in [TEXT.as_bytes().to_vec(), binary()] {
        let trace = open(&bytes).unwrap();
        assert_eq!((trace.format(), trace.ranks()), ("goal", 2));
        assert_eq!(names(&*trace, 0), ["isend irecv waitall"]);
        assert_eq!(
            names(&*trace, 1),
            ["irecv signal_start", "await wait compute signal_start", "await isend wait",]
        );
        assert_eq!(*trace.stream_cores(RankId(1)), [0, 1, 0]);
        let notes: Vec<u64> = trace.metadata().header.notes.values().copied().collect();
        assert_eq!(notes, [1]);
        let receive = trace.stream(RankId(0), StreamId::FIRST).unwrap().nth(1).unwrap().unwrap();
        assert!(matches!(receive, Op::Irecv { from: None, tag: None, .. }), "{receive:?}");
    }
}

/// Catches mistakes that are taken, and errors without the place.
#[test]
fn mistakes_are_told_with_their_line() {
    let of_rank = |statements: &str| format!("num_ranks 2\nrank 0 {{\n{statements}\n}}\nrank 1 {{\n}}\n");
    for (text, said) in [
        (of_rank("send 8 to 1"), "line 3: `8` is no size; write bytes such as 8b"),
        (of_rank("send 8b to 2"), "line 3: `2` is no rank; there are 0 to 1"),
        (of_rank("recv 8b from -2"), "line 3: `-2` is no rank"),
        (of_rank("calc soon"), "line 3: `soon` is no time in nanoseconds"),
        (of_rank("calc 99999999999999999"), "is no time in nanoseconds"),
        (of_rank("calc 5 tag 3"), "line 3: `tag 3` is no option here"),
        (of_rank("send 8b to 1 tag"), "line 3: `tag` has no value"),
        (of_rank("send 8b to 1 cpu 256"), "line 3: `cpu 256` is no option here"),
        (of_rank("a: calc 1\na: calc 2"), "line 4: the label `a` stands before another operation too"),
        (of_rank("a: calc 1\na requires b"), "line 4: no operation of rank 0 has the label `b`"),
        (
            of_rank("a: calc 1\nb: calc 2\na requires b\nb irequires a"),
            "line 3: this operation waits for itself",
        ),
        (of_rank("sned 8b to 1"), "line 3: `sned 8b to 1` is no statement of GOAL"),
        (of_rank("rank 1 {"), "line 3: a block within a block"),
        ("num_ranks 2\nrank 0 {\n}\n".to_owned(), "rank 1 has no block, of 2 ranks"),
        (
            "num_ranks 2\nrank 0 {\n}\nrank 0 {\n}\n".to_owned(),
            "line 4: rank 0 has a block already, on line 2",
        ),
        ("num_ranks 2\nrank 7 {\n}\n".to_owned(), "line 2: rank 7 of 2: ranks are 0 to 1"),
        ("num_ranks 2\nrank 0 {\ncalc 1\n".to_owned(), "ends within the block of a rank"),
        ("num_ranks 2\ncalc 1\n".to_owned(), "line 2: `calc 1` outside of a block"),
        ("num_ranks 4000000000\n".to_owned(), "line 1: GOAL begins with num_ranks and 1 to"),
    ] {
        let error = open(text.as_bytes()).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("some.goal: ") && error.contains(said), "{text}: {error}");
    }
    let mut used = binary();
    used[..8].copy_from_slice(&2342u64.to_le_bytes());
    assert!(open(&used).err().unwrap().to_string().contains("--save-mem"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Catches damage that is taken for anything but an error or a trace: a panic, a hang, memory without
    /// end.
    #[test]
    fn damaged_files_give_a_trace_or_an_error(
        is_binary in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = if is_binary { binary() } else { TEXT.as_bytes().to_vec() };
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(trace) = open(&bytes) {
            for rank in (0..trace.ranks()).map(RankId) {
                for stream in streams(&*trace, rank) {
                    trace.stream(rank, stream).unwrap().for_each(|op| drop(op.unwrap()));
                }
            }
        }
    }
}
