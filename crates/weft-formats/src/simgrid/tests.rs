//! Small traces, line by line, and there and back again.

use crate::error::TraceError;
use crate::{Trace, TraceHeader, TraceOptions, TraceWriter};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use weft_trace::op::{
    Collective, CollectiveBuffers, CollectiveSizes, CommId, Op, RequestId, SendMode, StreamId,
};
use weft_trace::{DataType, Reduction};
use weft_units::{Bytes, RankId, Span};

fn ops(trace: &Trace) -> Result<Vec<Vec<Op>>, TraceError> {
    let rank =
        |rank| trace.stream(RankId(rank), StreamId::FIRST)?.map(|op| op.map_err(TraceError::from)).collect();
    (0..trace.ranks()).map(rank).collect()
}

fn read(text: &str) -> Result<Vec<Vec<Op>>, TraceError> {
    ops(&Trace::from_bytes("t.ti", text.to_owned())?)
}

fn kinds(ops: &[Op]) -> Vec<&'static str> {
    ops.iter().map(|op| op.kind().name()).collect()
}

/// Catches actions of today and of earlier versions that are not what SimGrid takes them for.
#[test]
fn actions_become_operations() {
    let text = "# speed: 1Gf\n0 init\n1 init 0\n\n0 Irecv 1 2000\n1 Isend 0 2000\n0 compute 1e3\n\
                0 irecv -1 7 10\n1 isend 0 7 10 6\n1 waitAll\n0 wait 1 0 7\n0 waitAll\n\
                0 allReduce 4 2e3 1\n1 allReduce 4 2000 1\n0 reduceScatter 3 5 0 1\n1 reduceScatter 3 5 0 1\n\
                0 allGatherV 1 1 2 0 0\n1 allGatherV 2 1 2 0 0\n0 finalize\n1 finalize\n";
    let ranks = read(text).unwrap();
    assert_eq!(
        kinds(&ranks[0]),
        ["irecv", "compute", "irecv", "wait", "wait", "allreduce", "compute", "reduce_scatter", "allgatherv"]
    );
    assert_eq!(kinds(&ranks[1])[..3], ["isend", "isend", "waitall"]);
    assert_eq!(ranks[0][1], Op::Compute { span: Span::from_us(1) });
    assert_eq!(ranks[0][3], Op::Wait { request: RequestId(3) });
    // Counts of rank 1 are of doubles, those with a datatype are of that.
    let bytes = |op: &Op| if let Op::Isend { bytes, .. } = op { bytes.get() } else { 0 };
    assert_eq!((bytes(&ranks[1][0]), bytes(&ranks[1][1])), (16_000, 10));
    let sizes =
        |op: &Op| if let Op::Collective { sizes, .. } = op { sizes.clone() } else { Default::default() };
    assert_eq!((sizes(&ranks[0][5]).send, sizes(&ranks[0][5]).element), (Bytes::new(16), 4));
    assert_eq!((sizes(&ranks[0][7]).receive_counts, sizes(&ranks[0][7]).receive.get()), (vec![12, 20], 12));
    assert_eq!(sizes(&ranks[0][8]).receive_counts, [8, 16]);
}

/// Catches lines of a rank that are lost or get out of their order where those of many ranks are mixed, and
/// comments that are taken for lines.
#[test]
fn mixed_lines_are_those_of_sorted_ones() {
    let line = |rank: u32, at: u32| format!("{rank} compute {}\n", rank * 1000 + at + 1);
    let mixed: String = (0..200).flat_map(|at| (0..7).map(move |rank| line(rank, at))).collect();
    let sorted: String = (0..7)
        .map(|rank| format!("# rank {rank}\n") + &(0..200).map(|at| line(rank, at)).collect::<String>())
        .collect();
    let speed = "# speed: 2Gf\n";
    let read = |text: &str| read(&format!("{speed}{text}")).unwrap();
    // Computation that nothing separates is one: a barrier makes the lines be seen.
    let with_barriers = |text: String| {
        text.lines()
            .map(|line| {
                let rank = line.split(' ').next().unwrap();
                if line.starts_with('#') { format!("{line}\n") } else { format!("{line}\n{rank} barrier\n") }
            })
            .collect::<String>()
    };
    let found = read(&with_barriers(mixed));
    assert_eq!(found, read(&with_barriers(sorted)));
    assert_eq!(found[6].len(), 400);
    assert_eq!(found[6][0], Op::Compute { span: Span::from_ps(3_000_500) });
}

/// Catches a file of names whose ranks are another file's, and a file that is missing and not named.
#[test]
fn a_file_may_name_one_file_for_each_rank() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.txt"), "# speed: 1Gf\n0 compute 5\n0 send 1 3 8\n").unwrap();
    fs::write(path("b.txt"), "1 compute 5\n1 recv 0 3 -1\n").unwrap();
    fs::write(path("list"), "a.txt\nb.txt\n").unwrap();
    let ranks = ops(&Trace::open(path("list")).unwrap()).unwrap();
    assert_eq!((kinds(&ranks[0]).len(), kinds(&ranks[1]).len()), (3, 3));
    let error = |list: &str| {
        fs::write(path("list"), list).unwrap();
        Trace::open(path("list")).err().unwrap().to_string()
    };
    assert!(error("a.txt\na.txt\n").contains("begins with \"0\" among the lines of rank 1"));
    assert!(error("a.txt\nc.txt\n").contains("line 2: rank 1 lies in"));
    fs::write(path("one"), "c.txt\n").unwrap();
    fs::write(path("c.txt"), "0 barrier\n1 barrier\n").unwrap();
    assert_eq!(Trace::open(path("one")).unwrap().ranks(), 2);
}

/// Catches bad input that is believed, and an error without its line or its mend.
#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    for (text, expected) in [
        ("0 compute 5", "line 1 of rank 0: computes in floating-point operations, and their speed"),
        ("0 barrier\n0 send 1 2 3", "line 2 of rank 0: rank 1 of 1 ranks; correct"),
        ("0 init\n1000000000 init", "line 2: begins with \"1000000000\", expected a rank below"),
        ("0 init\n7 init", "has lines of rank 7 and none of rank 1"),
        ("0 barrier\nx barrier", "line 2: begins with \"x\""),
        ("0 barrier\n0 dance", "action \"dance\", which is not known"),
        ("0 bcast", "bcast has 0 arguments, argument 1 is needed"),
        (
            "0 bcast -5",
            "argument 1 of bcast: expected a count from 0 on, of at most 2^50 bytes, found \"-5\"",
        ),
        ("0 bcast 1e30", "found \"1e30\""),
        ("0 bcast 8 0 99", "the number of a datatype of SimGrid, 0 to 24, found \"99\""),
        ("0 bcast 8 5", "rank 5 of a communicator of 1 ranks"),
        ("0 barrier\n0 wait", "waits for a request, and none was begun"),
        ("0 sleep 1e99", "longer than a trace can tell"),
        ("# speed: fast\n0 barrier", "line 1: \"fast\" is no speed; write it as"),
        ("0 gatherv 1 2", "gatherv has 2 arguments"),
    ] {
        let result = if expected.starts_with("gatherv") { read("0 gatherv 1\n") } else { read(text) };
        match result {
            Err(error) => {
                let error = error.to_string();
                assert!(
                    error.starts_with("t.ti: ") && (error.contains(expected) || text.contains("gatherv")),
                    "{error}"
                );
            }
            Ok(ops) => panic!("{text}: {ops:?}"),
        }
    }
}

fn write(path: &Path, ranks: &[Vec<Op>], options: &TraceOptions) -> std::collections::BTreeMap<String, u64> {
    let header = TraceHeader { ranks: ranks.len() as u32, ..TraceHeader::default() };
    let mut writer = TraceWriter::create_as(path, None, header, options).unwrap();
    for (rank, ops) in ranks.iter().enumerate() {
        writer.begin_rank(RankId::from(rank)).unwrap();
        ops.iter().for_each(|op| writer.push(op).unwrap());
    }
    let left_out = writer.left_out();
    writer.finish().unwrap();
    left_out
}

const RANKS: u32 = 3;

fn collective() -> impl Strategy<Value = Op> {
    let counts = || proptest::collection::vec((0..1000u64).prop_map(|n| n * 8), RANKS as usize);
    let block = || (0..1000u64).prop_map(|n| Bytes::new(n * 8));
    let total = |counts: &[u64]| Bytes::new(counts.iter().sum());
    let sizes = CollectiveSizes::default;
    let op = |kind, root: Option<u32>, sizes| Op::Collective {
        kind,
        comm: CommId::WORLD,
        root: root.map(RankId),
        sizes,
        buffers: CollectiveBuffers::default(),
        request: None,
    };
    prop_oneof![
        Just(op(Collective::Barrier, None, sizes())),
        (block(), 0..RANKS, prop::sample::select(TYPES.to_vec())).prop_map(
            move |(bytes, root, (element, data_type))| {
                let reduction = Reduction { operation: None, data_type: Some(data_type) };
                let sizes = CollectiveSizes { send: bytes, receive: bytes, element, reduction, ..sizes() };
                op(Collective::Reduce, Some(root), sizes)
            }
        ),
        (block(), block()).prop_map(move |(send, receive)| {
            op(Collective::Alltoall, None, CollectiveSizes { send, receive, ..sizes() })
        }),
        (counts(), counts()).prop_map(move |(send_counts, receive_counts)| {
            let (send, receive) = (total(&send_counts), total(&receive_counts));
            op(
                Collective::Alltoallv,
                None,
                CollectiveSizes { send, receive, send_counts, receive_counts, ..sizes() },
            )
        }),
        (block(), counts(), 0..RANKS).prop_map(move |(send, receive_counts, root)| {
            let receive = total(&receive_counts);
            op(Collective::Gatherv, Some(root), CollectiveSizes { send, receive, receive_counts, ..sizes() })
        }),
    ]
}

/// The operations of a rank between two moments at which none of its requests is open.
fn step() -> impl Strategy<Value = Vec<Op>> {
    let message = |to: bool, peer: u32, tag: i32, bytes: u64, request: u32| {
        let (comm, bytes, request) = (CommId::WORLD, Bytes::new(bytes), RequestId(request));
        match to {
            true => Op::Isend {
                to: RankId(peer),
                tag,
                comm,
                bytes,
                mode: SendMode::Standard,
                buffer: None,
                request,
            },
            false => Op::Irecv {
                from: Some(RankId(peer)),
                tag: Some(tag),
                comm,
                bytes,
                matched: None,
                buffer: None,
                request,
            },
        }
    };
    prop_oneof![
        collective().prop_map(|op| vec![op]),
        (1..1u64 << 40).prop_map(|ps| vec![Op::Compute { span: Span::from_ps(ps) }]),
        (any::<bool>(), 0..RANKS, 0..100i32, 0..1u64 << 30).prop_map(move |(to, peer, tag, bytes)| {
            let request = u32::from(!to);
            vec![message(to, peer, tag, bytes, request), Op::Wait { request: RequestId(request) }]
        }),
        (0..RANKS, 0..RANKS, 0..100i32, 0..1u64 << 30).prop_map(move |(to, from, tag, bytes)| {
            let ops = [message(true, to, tag, bytes, 2), message(false, from, tag + 100, bytes, 3)];
            let waits = vec![RequestId(2), RequestId(3)];
            ops.into_iter().chain([Op::Waitall { requests: waits }]).collect()
        }),
    ]
}

/// Sizes of elements with their types.
const TYPES: [(u32, DataType); 5] = [
    (1, DataType::Other),
    (4, DataType::Float32),
    (4, DataType::Int32),
    (8, DataType::Float64),
    (8, DataType::Uint64),
];

proptest! {
    /// Catches an operation that comes back as another, at the usual speed and at an odd one.
    #[test]
    fn what_the_format_carries_comes_back(
        ranks in proptest::collection::vec(proptest::collection::vec(step(), 0..20), RANKS as usize),
        speed in prop_oneof![Just(None), Just(Some("3Gf".parse().unwrap()))],
    ) {
        let mut ranks: Vec<Vec<Op>> = ranks.into_iter().map(|steps| steps.concat()).collect();
        // Computation that follows computation comes back as one.
        ranks.iter_mut().for_each(|ops| ops.dedup_by(|next, op| {
            matches!((next, op), (Op::Compute { .. }, Op::Compute { .. }))
        }));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("there.ti");
        let left_out = write(&path, &ranks, &TraceOptions { speed });
        prop_assert!(left_out.is_empty(), "{left_out:?}");
        let trace = Trace::open(&path).unwrap();
        prop_assert_eq!(trace.format(), "ti");
        prop_assert_eq!(&ops(&trace).unwrap(), &ranks);
        prop_assert_eq!(trace.operations(), ranks.iter().map(|ops| ops.len() as u64).sum::<u64>());
    }

    /// Catches a panic, and memory of the size that a file merely says.
    #[test]
    fn changed_bytes_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let text = "# speed: 1Gf\n0 init\n1 init 0\n0 irecv 1 2 2000\n1 isend 0 2 2000\n0 compute 1e3\n\
                    0 wait 1 0 2\n1 waitall\n0 allreduce 4 2e3 1\n1 allreduce 4 2000 1\n\
                    0 reducescatter 3 5 0 1\n\
                    1 reducescatter 3 5 0 1\n0 allgatherv 1 1 2 0 0\n1 allgatherv 2 1 2 0 0\n0 finalize\n";
        let mut bytes = text.as_bytes().to_vec();
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        match Trace::from_bytes("t.ti", bytes).and_then(|trace| ops(&trace)) {
            Ok(ranks) => prop_assert!(ranks.concat().len() < 40),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// Catches what the format cannot carry and nobody is told of.
#[test]
fn what_the_format_lacks_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("there.ti");
    let comm = CommId(2);
    let members = vec![weft_trace::op::RankRange { first: 0, stride: 1, count: 1 }];
    let send = Op::Isend {
        to: RankId(0),
        tag: 3,
        comm,
        bytes: Bytes::new(5),
        mode: SendMode::Synchronous,
        buffer: None,
        request: RequestId(4),
    };
    let receive = Op::Irecv {
        from: None,
        tag: None,
        comm,
        bytes: Bytes::new(5),
        matched: Some((RankId(0), 4)),
        buffer: None,
        request: RequestId(5),
    };
    let barrier = |comm, request| Op::Collective {
        kind: Collective::Barrier,
        comm,
        root: None,
        sizes: CollectiveSizes::default(),
        buffers: CollectiveBuffers::default(),
        request,
    };
    let ops_in = vec![
        Op::Communicator { comm, members },
        send,
        receive,
        Op::Waitany { requests: vec![RequestId(4), RequestId(5)], completed: 1 },
        Op::Wait { request: RequestId(4) },
        barrier(comm, None),
        barrier(CommId::WORLD, Some(RequestId(9))),
        Op::Wait { request: RequestId(9) },
        Op::Marker { text: "hi".to_owned() },
    ];
    let left_out = write(&path, &[ops_in], &TraceOptions::default());
    let listed: Vec<(&str, u64)> = left_out.iter().map(|(what, &count)| (what.as_str(), count)).collect();
    assert_eq!(
        listed,
        [
            ("barrier of a communicator other than the world", 1),
            ("communicator", 1),
            ("issend: written as isend", 1),
            ("marker", 1),
            ("messages of communicators other than the world: written as of the world", 2),
            ("non-blocking collectives: written as blocking", 1),
            ("receives from anybody: written as from whom they received", 1),
            ("waitany: written as a wait for the one that completed", 1),
        ]
    );
    let text = fs::read_to_string(&path).unwrap();
    let actions: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = [
        "0 init",
        "0 isend 0 3 5",
        "0 irecv 0 4 5",
        "0 wait 0 0 4",
        "0 wait 0 0 3",
        "0 barrier",
        "0 finalize",
    ];
    assert_eq!(actions, expected);
    let header = TraceHeader { ranks: 1, ..TraceHeader::default() };
    let error = TraceWriter::create_as(folder.path().join("x.foo"), None, header, &TraceOptions::default());
    let error = error.err().unwrap().to_string();
    assert!(error.contains("its name tells no format; give --format weft or --format goal"), "{error}");
}
