//! Small runs, byte by byte.

use super::from_bytes;
use super::layout::{CALLS, END_OF_STREAM};
use super::stream::MAGIC;
use crate::calls::CallTrace;
use crate::error::TraceError;
use proptest::prelude::*;
use weft_trace::op::{Collective, CollectiveSizes, CommId, Op, RankRange, RequestId, SendMode, StreamId};
use weft_trace::{DataType, ReductionOperation, TraceSource as _};
use weft_units::{Bytes, RankId, Span};

/// An argument of a call.
enum Arg {
    B(u8),
    H(u16),
    I(i32),
    L(Vec<i32>),
    T(Vec<u16>),
    /// Source and tag of a status each.
    S(Vec<(i32, i32)>),
    Text(&'static str),
}

use Arg::{B, H, I, L, S, T};

/// A call that takes a microsecond, and begins at this one.
struct Made(&'static str, u32, Vec<Arg>);

fn number(name: &str) -> u16 {
    CALLS.iter().position(|(known, _)| *known == name).unwrap() as u16
}

fn list(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend((length as u32).to_be_bytes());
}

/// The file of a rank.
fn file(calls: &[Made]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend([0; 8]);
    let mut counts = vec![0u32; CALLS.len() + 1];
    for Made(name, at, arguments) in calls {
        counts[usize::from(number(name))] += 1;
        bytes.extend(number(name).to_be_bytes());
        // Statuses, wall time and a thread.
        bytes.extend([1 | 1 << 3 | 1 << 6, 0, 0]);
        for microsecond in [*at, at + 1] {
            bytes.extend([0, 0]);
            bytes.extend((microsecond * 1000).to_be_bytes());
        }
        for argument in arguments {
            match argument {
                B(value) => bytes.push(*value),
                H(value) => bytes.extend(value.to_be_bytes()),
                I(value) => bytes.extend(value.to_be_bytes()),
                L(values) => {
                    list(&mut bytes, values.len());
                    bytes.extend(values.iter().flat_map(|value| value.to_be_bytes()));
                }
                T(values) => {
                    list(&mut bytes, values.len());
                    bytes.extend(values.iter().flat_map(|value| value.to_be_bytes()));
                }
                S(statuses) => {
                    list(&mut bytes, statuses.len());
                    for (source, tag) in statuses {
                        bytes.extend([0; 4]);
                        bytes.extend(source.to_be_bytes());
                        bytes.extend([0; 2]);
                        bytes.extend(tag.to_be_bytes());
                    }
                }
                Arg::Text(text) => {
                    list(&mut bytes, text.len());
                    bytes.extend(text.bytes());
                }
            }
        }
    }
    bytes.extend(END_OF_STREAM.to_be_bytes());
    let header = bytes.len() as u64;
    bytes.extend([1, 1, 0]);
    let footer = bytes.len() as u64;
    bytes.extend(0xf007_fee7_u64.to_be_bytes());
    bytes.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
    bytes.extend(counts.iter().flat_map(|_| 0u32.to_be_bytes()));
    bytes.extend(MAGIC);
    for offset in [0, 0, 0, header, 8, footer, 0] {
        bytes.extend(u64::to_be_bytes(offset));
    }
    bytes
}

fn ops(trace: &CallTrace, rank: u32) -> Result<Vec<Op>, TraceError> {
    trace.stream(RankId(rank), StreamId::FIRST)?.map(|op| op.map_err(TraceError::from)).collect()
}

fn of_one(calls: &[Made]) -> Result<Vec<Op>, TraceError> {
    ops(&from_bytes(&[&file(calls)])?, 0)
}

const WORLD: u16 = 2;
const INT: u16 = 9;

fn split(at: u32, color: i32, key: i32) -> Made {
    Made("MPI_Comm_split", at, vec![H(WORLD), I(color), I(key), H(4)])
}

/// Catches ranks of a communicator that are taken for those of the world, and a rank that does not know it.
#[test]
fn ranks_of_a_communicator_become_those_of_the_world() {
    let rank = |rank: i32| {
        let other = 1 - rank / 2;
        let send = Made("MPI_Send", 5, vec![I(3), H(INT), I(other), I(7), H(4)]);
        file(&[split(0, rank % 2, -rank), send, Made("MPI_Barrier", 8, vec![H(4)])])
    };
    let files: Vec<_> = (0..4).map(rank).collect();
    let trace = from_bytes(&files.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
    let comm = CommId(3 << 32 | 2);
    let send = Op::Isend {
        to: RankId(1),
        tag: 7,
        comm,
        bytes: Bytes::new(12),
        mode: SendMode::Standard,
        buffer: None,
        request: RequestId(0),
    };
    let barrier = Op::Collective {
        kind: Collective::Barrier,
        comm,
        root: None,
        sizes: CollectiveSizes::default(),
        buffers: Default::default(),
        request: None,
    };
    let expected = [
        Op::Communicator { comm, members: vec![RankRange { first: 3, stride: -2, count: 2 }] },
        Op::Compute { span: Span::from_us(4) },
        send,
        Op::Wait { request: RequestId(0) },
        Op::Compute { span: Span::from_us(2) },
        barrier,
    ];
    // Rank 3 has the lower key, so it is the first member; rank 1 sends to member 1, which is itself.
    assert_eq!(ops(&trace, 1).unwrap(), expected);
    assert_eq!(trace.operations_of(weft_trace::Kind::Communicator), 4);
}

/// Catches a size that is not that of the constructor, a wait for another request than the recorded one, and
/// a persistent request that can be started once only.
#[test]
fn types_and_requests_are_followed() {
    let calls = [
        Made("MPI_Init", 0, vec![L(vec![])]),
        Made("MPI_Type_vector", 1, vec![I(5), I(2), I(9), H(INT), H(28)]),
        Made("MPI_Type_struct", 2, vec![I(2), L(vec![1, 3]), L(vec![0, 8]), T(vec![28, 14]), H(29)]),
        Made("MPI_Recv_init", 3, vec![I(1), H(29), I(0), I(1), H(WORLD), I(9)]),
        Made("MPI_Start", 4, vec![I(9)]),
        Made("MPI_Isend", 5, vec![I(1), H(28), I(0), I(1), H(WORLD), I(4)]),
        Made("MPI_Waitany", 6, vec![I(3), L(vec![1, 9, 4]), I(2), S(vec![])]),
        Made("MPI_Wait", 7, vec![I(9), S(vec![])]),
        Made("MPI_Start", 8, vec![I(9)]),
        Made("MPI_Test", 9, vec![I(9), I(0)]),
        Made("MPI_Waitsome", 10, vec![I(2), L(vec![1, 9]), I(1), L(vec![1]), S(vec![])]),
        Made("MPI_Request_free", 11, vec![I(9)]),
    ];
    let mut calls = calls;
    // A test that has failed has a list of statuses too.
    calls[9].2.push(S(vec![]));
    let ops = of_one(&calls).unwrap();
    let receive = |op: &&Op| matches!(op, Op::Irecv { bytes, .. } if bytes.get() == 64);
    assert_eq!(ops.iter().filter(receive).count(), 2);
    assert!(ops.iter().any(|op| matches!(op, Op::Isend { bytes, .. } if bytes.get() == 40)));
    let waits: Vec<_> = ops.iter().filter(|op| !matches!(op, Op::Irecv { .. } | Op::Isend { .. })).collect();
    let [first, second] = [RequestId(2), RequestId(3)];
    let waitany = Op::Waitany { requests: vec![first, second], completed: 1 };
    assert_eq!(waits, [&waitany, &Op::Wait { request: first }, &Op::Wait { request: first }]);
}

/// Catches a receive from anybody that forgets whose message it took.
#[test]
fn a_wildcard_has_the_message_of_its_status() {
    let calls = [
        Made("MPI_Irecv", 0, vec![I(1), H(INT), I(-1), I(-1), H(WORLD), I(4)]),
        Made("MPI_Send", 2, vec![I(1), H(INT), I(0), I(5), H(WORLD)]),
        Made("MPI_Waitall", 4, vec![I(1), L(vec![4]), S(vec![(0, 5)])]),
        Made("MPI_Recv", 6, vec![I(1), H(INT), I(-1), I(3), H(WORLD), S(vec![(-1, -1)])]),
    ];
    let ops = of_one(&calls).unwrap();
    assert!(
        matches!(ops[0], Op::Irecv { from: None, tag: None, matched: Some((RankId(0), 5)), .. }),
        "{ops:?}"
    );
    // The last is from MPI_PROC_NULL: nothing.
    assert_eq!(ops.iter().filter(|op| matches!(op, Op::Irecv { .. })).count(), 1);
}

/// Catches types and operations that are lost, or taken for others.
#[test]
fn a_reduction_keeps_its_type_and_its_operation() {
    use ReductionOperation::{BitwiseXor, Max, Other, Sum};
    for (datatype, operation, expected) in [
        (INT, 1, (Some(Max), Some(DataType::Int32))),
        (14, 3, (Some(Sum), Some(DataType::Float64))),
        (11, 10, (Some(BitwiseXor), Some(DataType::Int64))),
        (12, 15, (Some(Other), Some(DataType::Uint64))),
        (23, 0, (None, Some(DataType::Other))),
    ] {
        let call = Made("MPI_Allreduce", 0, vec![I(2), H(datatype), B(operation), H(WORLD)]);
        let ops = of_one(&[call]).unwrap();
        let Op::Collective { sizes, .. } = &ops[0] else { panic!("{ops:?}") };
        assert_eq!((sizes.reduction.operation, sizes.reduction.data_type), expected);
    }
}

/// Catches bad input that is believed, and an error without its place or its mend.
#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    let send = |dest| Made("MPI_Send", 0, vec![I(1), H(INT), I(dest), I(7), H(WORLD)]);
    for (calls, expected) in [
        (vec![send(1)], "byte 8: MPI_Send: rank 1 of a communicator of 1 ranks; copy"),
        (vec![Made("MPI_Wait", 0, vec![I(7), S(vec![])])], "MPI_Wait: waits for request 7, which no call"),
        (vec![Made("MPI_Barrier", 0, vec![H(9)])], "MPI_Barrier: communicator 9, which no call"),
        (vec![Made("MPI_Bcast", 0, vec![I(1), H(77), I(0), H(WORLD)])], "datatype 77, whose size"),
        (vec![Made("MPI_Bcast", 0, vec![I(-4), H(INT), I(0), H(WORLD)])], "-4 elements of 4 bytes"),
        (vec![Made("MPI_Start", 0, vec![I(3)])], "starts request 3"),
        (vec![Made("MPI_Pcontrol", 0, vec![])], "MPI_Pcontrol has arguments of unknown length"),
        (
            vec![Made("MPI_Init", 0, vec![Arg::Text("")]), Made("MPI_Waitall", 1, vec![I(1), I(1 << 30)])],
            "a list of",
        ),
        (vec![Made("MPI_Type_size", 0, vec![H(28), I(-3)])], "-3 where a number from 0 on"),
    ] {
        let error = of_one(&calls).unwrap_err().to_string();
        let place = error.starts_with("trace-0000.bin: byte ");
        assert!(place && error.replace("byte 16", "byte 8").contains(expected), "{error}");
    }
    let wrong_count = {
        let mut bytes = file(&[split(0, 0, 0)]);
        let at = bytes.len() - 64 - 4 * CALLS.len() - 8 - 4 * CALLS.len()
            + 4 * usize::from(number("MPI_Comm_split"))
            - 1;
        bytes[at] += 1;
        from_bytes(&[&bytes])
    };
    assert!(wrong_count.is_err_and(|error| error.to_string().contains("calls of MPI_")));
}

fn sample() -> Vec<u8> {
    file(&[
        Made("MPI_Init", 0, vec![L(vec![])]),
        split(1, 0, 0),
        Made("MPI_Type_vector", 1, vec![I(5), I(2), I(9), H(INT), H(28)]),
        Made("MPI_Irecv", 2, vec![I(1), H(28), I(-1), I(-1), H(4), I(4)]),
        Made("MPI_Isend", 3, vec![I(1), H(28), I(0), I(5), H(4), I(5)]),
        Made("MPI_Waitall", 4, vec![I(2), L(vec![4, 5]), S(vec![(0, 5), (0, 0)])]),
        Made("MPI_Gatherv", 6, vec![I(0), I(1), I(4), H(INT), I(0), H(4), L(vec![4]), L(vec![0]), H(INT)]),
        Made(
            "MPI_Alltoallv",
            7,
            vec![I(1), L(vec![4]), L(vec![0]), H(INT), L(vec![4]), L(vec![0]), H(INT), H(WORLD)],
        ),
        Made("MPI_Finalize", 9, vec![]),
    ])
}

/// Catches a file that is believed although its end is missing.
#[test]
fn every_truncation_is_refused() {
    let bytes = sample();
    assert_eq!(ops(&from_bytes(&[&bytes]).unwrap(), 0).unwrap().len(), 8);
    for length in 0..bytes.len() {
        assert!(from_bytes(&[&bytes[..length]]).is_err(), "{length} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Catches a panic, and memory of the size that a file merely says.
    #[test]
    fn changed_bytes_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = sample();
        // The counts are half of the file, and the least of it.
        let interesting = bytes.len() - 64 - 8 * CALLS.len();
        for (index, byte) in changes {
            let index = index.index(interesting + 64);
            let index = if index < interesting { index } else { bytes.len() - 1 - (index - interesting) };
            bytes[index] = byte;
        }
        match from_bytes(&[&bytes]).and_then(|trace| ops(&trace, 0)) {
            Ok(ops) => prop_assert!(ops.len() < bytes.len()),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
