//! Random operations and traces.

#![allow(dead_code)] // Each test file uses its share.
#![allow(clippy::unwrap_used)] // All of this is tests.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::path::Path;
use weft_formats::{Trace, TraceHeader, TraceWriter};
use weft_trace::op::*;
use weft_trace::{AddressSpace, DataType, Reduction, ReductionOperation};
use weft_units::{Address, Bytes, RankId, Span};

pub const RANKS: u32 = 5;

pub fn any_rank() -> impl Strategy<Value = RankId> {
    (0..RANKS).prop_map(RankId)
}

fn size() -> impl Strategy<Value = Bytes> {
    prop_oneof![0..100u64, 0..1u64 << 50].prop_map(Bytes::new)
}

fn request() -> impl Strategy<Value = RequestId> {
    prop_oneof![0..4u32, any::<u32>()].prop_map(RequestId)
}

fn collective() -> impl Strategy<Value = Collective> {
    prop_oneof![
        Just(Collective::Barrier),
        Just(Collective::Broadcast),
        Just(Collective::Allreduce),
        Just(Collective::Alltoallv),
        Just(Collective::NeighborAlltoallv),
    ]
}

/// Operation and type, each of which may be unknown.
fn reduction() -> impl Strategy<Value = Reduction> {
    let operation = option::of(prop::sample::select(ReductionOperation::ALL));
    let data_type = option::of(prop::sample::select(DataType::ALL));
    (operation, data_type).prop_map(|(operation, data_type)| Reduction { operation, data_type })
}

fn mode() -> impl Strategy<Value = SendMode> {
    prop_oneof![
        Just(SendMode::Standard),
        Just(SendMode::Synchronous),
        Just(SendMode::Buffered),
        Just(SendMode::Ready)
    ]
}

/// An address of 39 bits, often the same.
fn buffer() -> impl Strategy<Value = Option<Address>> {
    option::of(prop_oneof![0..4u64, 0..1u64 << AddressSpace::BITS].prop_map(Address::new))
}

/// Any operation that can stand in a trace of [`RANKS`] ranks by itself, whatever its neighbours.
pub fn any_op() -> impl Strategy<Value = Op> {
    let comm = || any::<u64>().prop_map(CommId);
    let window = || any::<u64>().prop_map(WindowId);
    let counts = || vec(0..1u64 << 50, 0..6);
    prop_oneof![
        (0..1u64 << 62).prop_map(|ps| Op::Compute { span: Span::from_ps(ps) }),
        (any::<u64>(), size()).prop_map(|(flops, bytes)| Op::Work { flops, bytes }),
        (any_rank(), any::<i32>(), comm(), size(), mode(), buffer(), request()).prop_map(
            |(to, tag, comm, bytes, mode, buffer, request)| Op::Isend {
                to,
                tag,
                comm,
                bytes,
                mode,
                buffer,
                request
            }
        ),
        (
            option::of(any_rank()),
            option::of(any::<i32>()),
            comm(),
            size(),
            option::of((any_rank(), any::<i32>())),
            buffer(),
            request()
        )
            .prop_map(|(from, tag, comm, bytes, matched, buffer, request)| {
                Op::Irecv { from, tag, comm, bytes, matched, buffer, request }
            }),
        (any_rank(), any::<i32>(), comm(), any::<bool>()).prop_map(|(from, tag, comm, tested)| Op::Probe {
            from,
            tag,
            comm,
            tested
        }),
        request().prop_map(|request| Op::Wait { request }),
        vec(request(), 0..9).prop_map(|requests| Op::Waitall { requests }),
        vec(request(), 1..9).prop_flat_map(|requests| {
            (0..requests.len() as u32)
                .prop_map(move |completed| Op::Waitany { requests: requests.clone(), completed })
        }),
        (
            collective(),
            comm(),
            option::of(any_rank()),
            (size(), size(), counts(), counts(), (any::<u32>(), reduction())),
            (buffer(), buffer()).prop_map(|(send, receive)| CollectiveBuffers { send, receive }),
            option::of(request())
        )
            .prop_map(
                |(
                    kind,
                    comm,
                    root,
                    (send, receive, send_counts, receive_counts, (element, reduction)),
                    buffers,
                    request,
                )| {
                    let sizes =
                        CollectiveSizes { send, receive, send_counts, receive_counts, element, reduction };
                    Op::Collective { kind, comm, root, sizes, buffers, request }
                }
            ),
        (comm(), any_rank()).prop_map(|(comm, rank)| {
            let down = RankRange { first: rank.0, stride: -1, count: rank.0 + 1 };
            let last = RankRange { first: RANKS - 1, stride: 1, count: 1 };
            let members = if rank.0 + 1 < RANKS { vec![down, last] } else { vec![down] };
            Op::Communicator { comm, members }
        }),
        (window(), comm(), size(), buffer()).prop_map(|(window, comm, bytes, buffer)| Op::Window {
            window,
            comm,
            bytes,
            buffer
        }),
        (window(), any_rank(), size(), buffer(), option::of(request())).prop_map(
            |(window, target, bytes, buffer, request)| {
                Op::OneSided { kind: OneSided::Accumulate, window, target, bytes, buffer, request }
            }
        ),
        (window(), option::of(any_rank())).prop_map(|(window, target)| Op::Sync {
            kind: WindowSync::Lock,
            window,
            target
        }),
        (any::<u32>(), any::<bool>()).prop_map(|(event, start)| Op::Signal {
            event: EventId(event),
            at: if start { SignalAt::Start } else { SignalAt::End },
        }),
        prop::collection::vec(any::<u32>(), 0..4)
            .prop_map(|events| Op::Await { events: events.into_iter().map(EventId).collect() }),
        "\\PC{0,20}".prop_map(|text| Op::Marker { text }),
    ]
}

pub fn any_ranks(ops: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<Op>>> {
    vec(vec(any_op(), ops), RANKS as usize)
}

pub fn header(ranks: usize) -> TraceHeader {
    TraceHeader {
        ranks: ranks as u32,
        command: vec!["lmp".to_owned(), "-in".to_owned(), "in.rhodo".to_owned()],
        recorder: "test 1".to_owned(),
        host_cores: Some(2),
        unrecorded: [("MPI_File_open".to_owned(), 3)].into(),
        ..TraceHeader::default()
    }
}

pub fn write(path: &Path, ranks: &[Vec<Op>]) {
    let mut writer = TraceWriter::create(path, header(ranks.len())).unwrap();
    for (rank, ops) in ranks.iter().enumerate() {
        writer.begin_rank(RankId::from(rank)).unwrap();
        for op in ops {
            writer.push(op).unwrap();
        }
    }
    writer.finish().unwrap();
}

/// The trace of some ranks, in memory.
pub fn trace_bytes(ranks: &[Vec<Op>]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.weft");
    write(&path, ranks);
    std::fs::read(path).unwrap()
}

pub fn trace_of(ranks: &[Vec<Op>]) -> Trace {
    Trace::from_bytes("test.weft", trace_bytes(ranks)).unwrap()
}
