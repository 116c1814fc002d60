//! Runs of Chakra that are written here: what becomes of their nodes, and damage.

#![allow(clippy::unwrap_used)] // All of this is tests.

use super::et_def::attribute_proto::Value;
use super::et_def::{
    AttributeProto, BoolList, ChakraNode, CollectiveCommType, GlobalMetadata, IoInfo, NodeType,
};
use crate::error::TraceError;
use crate::format::{FormatReader, TraceOptions};
use crate::{Trace, validate};
use proptest::prelude::*;
use prost::Message as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_trace::op::{Collective, CommId, Op, RankRange, StreamId};
use weft_trace::{TraceSource, streams};
use weft_units::{RankId, Span};

/// Bytes of the metadata that [`file`] begins with.
const METADATA_BYTES: usize = 8;

fn file(nodes: &[ChakraNode]) -> Vec<u8> {
    let metadata = GlobalMetadata { version: "0.0.4".to_owned() };
    let mut bytes = metadata.encode_length_delimited_to_vec();
    assert_eq!(bytes.len(), METADATA_BYTES);
    nodes.iter().for_each(|node| bytes.extend(node.encode_length_delimited_to_vec()));
    bytes
}

fn node(id: u64, kind: NodeType) -> ChakraNode {
    ChakraNode { id, name: format!("n{id}"), r#type: kind as i32, ..ChakraNode::default() }
}

fn with(node: ChakraNode, name: &str, value: Value) -> ChakraNode {
    let mut node = node;
    node.attr.push(AttributeProto { name: name.to_owned(), value: Some(value) });
    node
}

/// A node that waits for others.
fn after(node: ChakraNode, data_deps: &[u64]) -> ChakraNode {
    ChakraNode { data_deps: data_deps.to_vec(), ..node }
}

fn compute(id: u64, micros: u64) -> ChakraNode {
    ChakraNode { duration_micros: micros, ..node(id, NodeType::CompNode) }
}

fn collective(id: u64, kind: CollectiveCommType, bytes: i64) -> ChakraNode {
    let node = with(node(id, NodeType::CommCollNode), "comm_type", Value::Int64Val(kind as i64));
    with(node, "comm_size", Value::Int64Val(bytes))
}

fn in_group(node: ChakraNode, name: &str) -> ChakraNode {
    with(node, "pg_name", Value::StringVal(name.to_owned()))
}

fn message(id: u64, kind: NodeType, peer: i32, bytes: u64) -> ChakraNode {
    let peer_name = if kind == NodeType::CommSendNode { "comm_dst" } else { "comm_src" };
    let node = with(node(id, kind), peer_name, Value::Int32Val(peer));
    with(with(node, "comm_size", Value::Uint64Val(bytes)), "comm_tag", Value::Uint32Val(7))
}

fn send(id: u64, to: i32, bytes: u64) -> ChakraNode {
    message(id, NodeType::CommSendNode, to, bytes)
}

fn receive(id: u64, from: i32, bytes: u64) -> ChakraNode {
    message(id, NodeType::CommRecvNode, from, bytes)
}

/// Writes the files of a run, and gives the first.
fn write(folder: &Path, ranks: &[Vec<ChakraNode>]) -> PathBuf {
    for (rank, nodes) in ranks.iter().enumerate() {
        std::fs::write(folder.join(format!("run.{rank}.et")), file(nodes)).unwrap();
    }
    folder.join("run.0.et")
}

fn run(ranks: &[Vec<ChakraNode>]) -> Result<Trace, TraceError> {
    let folder = tempfile::tempdir().unwrap();
    let trace = Trace::open(write(folder.path(), ranks))?;
    validate(&trace)?;
    Ok(trace)
}

fn refused(ranks: &[Vec<ChakraNode>]) -> String {
    run(ranks).err().map(|error| error.to_string()).unwrap_or_default()
}

fn open(bytes: &[u8]) -> Result<Arc<dyn FormatReader>, TraceError> {
    (super::FORMAT.open_bytes)("some.et", bytes.to_vec().into(), &TraceOptions::default())
}

fn ops(trace: &dyn TraceSource, rank: u32) -> Vec<Op> {
    let of_stream =
        |stream: StreamId| trace.stream(RankId(rank), stream).unwrap().map(Result::unwrap).collect();
    let streams: Vec<Vec<Op>> = streams(trace, RankId(rank)).map(of_stream).collect();
    streams.concat()
}

/// The operations of the streams of a rank, by name.
fn names(trace: &dyn TraceSource, rank: u32) -> Vec<String> {
    let stream = |stream: StreamId| {
        let ops = trace.stream(RankId(rank), stream).unwrap().map(Result::unwrap);
        ops.map(|op: Op| op.kind().name()).collect::<Vec<_>>().join(" ")
    };
    streams(trace, RankId(rank)).map(stream).collect()
}

/// Catches ranks that are taken for each other's, a file that is missed, and ranks beyond those there are.
#[test]
fn one_file_names_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let ranks = [vec![compute(0, 5), after(send(1, 1, 9), &[0])], vec![receive(0, 0, 9)]];
    write(folder.path(), &ranks);
    let trace = Trace::open(folder.path().join("run.1.et")).unwrap();
    assert_eq!((trace.format(), trace.ranks()), ("chakra", 2));
    assert!(trace.file().ends_with("run.1.et"));
    assert_eq!(names(&*trace, 0), ["compute signal_end", "await isend wait compute"]);
    assert_eq!(*trace.stream_cores(RankId(0)), [0, 1]);
    assert_eq!(names(&*trace, 1), ["irecv wait compute"]);
    assert_eq!(*trace.stream_cores(RankId(1)), [0]);
    // Another run in the same folder, and what is none.
    for other in ["other.5.et", "run.x.et", "run.03.et", "run.7.et.bak"] {
        std::fs::write(folder.path().join(other), b"").unwrap();
    }
    assert_eq!(Trace::open(folder.path().join("run.1.et")).unwrap().ranks(), 2);
    std::fs::copy(folder.path().join("run.1.et"), folder.path().join("run.3.et")).unwrap();
    let error = Trace::open(folder.path().join("run.0.et")).err().unwrap().to_string();
    assert!(error.contains("rank 2 of ranks 0 to 3 lies in") && error.contains("run.2.et"), "{error}");
    let said = refused(&[vec![send(4, 1, 9)]]);
    assert!(said.contains("byte 8: node 4 (`n4`): comm_dst 1 is no rank"), "{said}");
}

/// Catches a size that is taken for another: of what a rank gives, of a block, or of the whole.
#[test]
fn collectives_have_the_sizes_of_astra_sim() {
    use CollectiveCommType as Type;
    for (kind, expected) in [
        (Type::AllReduce, (Collective::Allreduce, false, 1000, 1000)),
        (Type::Reduce, (Collective::Reduce, true, 1000, 1000)),
        (Type::AllGather, (Collective::Allgather, false, 1000, 1000)),
        (Type::Gather, (Collective::Gather, true, 1000, 1000)),
        (Type::Scatter, (Collective::Scatter, true, 1000, 1000)),
        (Type::Broadcast, (Collective::Broadcast, true, 1000, 1000)),
        (Type::AllToAll, (Collective::Alltoall, false, 250, 250)),
        (Type::ReduceScatter, (Collective::ReduceScatterBlock, false, 1000, 250)),
        (Type::ReduceScatterBlock, (Collective::ReduceScatterBlock, false, 1000, 250)),
        (Type::Barrier, (Collective::Barrier, false, 0, 0)),
    ] {
        let trace = run(&vec![vec![collective(3, kind, 1000)]; 4]).unwrap();
        let ops = ops(&*trace, 2);
        let [Op::Collective { kind: found, comm, root, sizes, request, .. }, Op::Wait { request: ended }, _] =
            &ops[..]
        else {
            panic!("{ops:?}")
        };
        assert_eq!((*found, root.is_some(), sizes.send.get(), sizes.receive.get()), expected);
        assert_eq!((*comm, *request), (CommId::WORLD, Some(*ended)));
    }
}

/// Catches groups that are mixed up, one of another number for each member, and lists that cannot be.
#[test]
fn groups_are_communicators() {
    let folder = tempfile::tempdir().unwrap();
    let list = |text: &str| std::fs::write(folder.path().join("comm_group.json"), text).unwrap();
    let all_reduce = |id: u64, group: &str| in_group(collective(id, CollectiveCommType::AllReduce, 8), group);
    // Rank 0 is in three groups that begin with it, and the order of ids is not that of the file.
    let ranks = [
        vec![all_reduce(9, "0"), all_reduce(2, "5"), all_reduce(1, "pair")],
        vec![all_reduce(1, "pair"), all_reduce(9, "")],
        vec![all_reduce(3, "5"), all_reduce(9, "0")],
    ];
    let path = write(folder.path(), &ranks);
    let error = || {
        let checked = Trace::open(&path).and_then(|trace| validate(&trace));
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let said = error();
    assert!(said.contains("nothing says who is in the group \"5\" (pg_name)"), "{said}");
    assert!(said.contains("comm_group.json beside this file, such as {\"5\": [0, 1]}"), "{said}");
    list("{\"pair\": [0, 1], \"5\": [0, 2]}");
    let trace = Trace::open(&path).unwrap();
    validate(&trace).unwrap();
    let created = |rank| {
        let ops = ops(&*trace, rank).into_iter();
        let of = |op| match op {
            Op::Communicator { comm, members } => Some((comm.0, members)),
            _ => None,
        };
        ops.filter_map(of).collect::<Vec<_>>()
    };
    let pair = vec![RankRange { first: 0, stride: 1, count: 2 }];
    let five = vec![RankRange { first: 0, stride: 2, count: 2 }];
    assert_eq!(created(0), [(1, five.clone()), (2, pair.clone())]);
    assert_eq!((created(1), created(2)), (vec![(2, pair)], vec![(1, five)]));
    for (text, said) in [
        ("{\"pair\": [0, 1]}", "comm_group.json has no group \"5\"; add it"),
        ("{\"pair\": [0, 1], \"5\": [0, 3]}", "the group \"5\" has rank 3, of ranks 0 to 2"),
        ("{\"pair\": [0, 1], \"5\": [0, 2, 0]}", "the group \"5\" has rank 0 twice"),
        ("{\"pair\": [0, 1], \"5\": [1, 2]}", "node 2: the group \"5\" is without rank 0"),
        ("{\"pair\": [0, -1]}", "comm_group.json: line 1: invalid value"),
    ] {
        list(text);
        assert!(error().contains(said), "{text}: {}", error());
    }
    list("{\"pair\": [0, 1], \"5\": []}");
    assert!(error().contains("have") || error().contains("members"), "{}", error());
}

/// Catches process groups of PyTorch that are not read, or not before those of the file.
#[test]
fn metadata_nodes_list_groups() {
    let all_reduce = in_group(collective(1, CollectiveCommType::AllReduce, 8), "7");
    let values = "['[{\"pg_name\": \"7\", \"backend\": \"nccl\", \"ranks\": [1, 0]}]']".to_owned();
    let metadata = ChakraNode { inputs: Some(IoInfo { values }), ..node(2, NodeType::MetadataNode) };
    let trace = run(&vec![vec![all_reduce, metadata]; 2]).unwrap();
    let comm = CommId(1 << 32 | 1);
    let members = vec![RankRange { first: 1, stride: -1, count: 2 }];
    assert!(ops(&*trace, 0).contains(&Op::Communicator { comm, members }));
}

/// Catches collectives that members begin in different orders: by the file, or by when they are free to.
#[test]
fn collectives_of_a_group_begin_in_the_order_of_ids() {
    let reduce = |id: u64, bytes: i64| collective(id, CollectiveCommType::AllReduce, bytes);
    let trace = run(&[
        vec![compute(1, 50), after(reduce(2, 100), &[1]), reduce(3, 200)],
        vec![reduce(30, 200), reduce(20, 100)],
    ])
    .unwrap();
    for rank in 0..2 {
        let sizes: Vec<u64> = ops(&*trace, rank)
            .iter()
            .filter_map(|op| match op {
                Op::Collective { sizes, .. } => Some(sizes.send.get()),
                _ => None,
            })
            .collect();
        assert_eq!(sizes, [100, 200], "rank {rank}");
    }
    // What an id depends on goes before ids.
    run(&[vec![after(reduce(1, 8), &[2]), reduce(2, 9)], vec![reduce(1, 9), reduce(2, 8)]]).unwrap();
    let said = refused(&[vec![reduce(1, 8)], vec![reduce(1, 9)]]);
    assert!(said.contains("its members call different collectives"), "{said}");
}

/// Catches dependencies that are lost, ones on nodes that are not there, and circles.
#[test]
fn dependencies_lead_to_nodes() {
    let control = |node: ChakraNode, ctrl_deps: &[u64]| ChakraNode { ctrl_deps: ctrl_deps.to_vec(), ..node };
    let trace = run(&[vec![control(compute(1, 2), &[2]), compute(2, 3)]]).unwrap();
    let spans = [3, 2].map(|micros| Op::Compute { span: Span::from_ns(micros * 1000) });
    assert_eq!(ops(&*trace, 0), spans);
    assert!(trace.metadata().header.notes.is_empty());
    // As PyTorch's tree of calls.
    for other in [1, 99] {
        let tree = [vec![after(control(compute(1, 2), &[other]), &[2]), compute(2, 3)]];
        let trace = run(&tree).unwrap();
        assert_eq!(ops(&*trace, 0), spans);
        let (note, count) = trace.metadata().header.notes.first_key_value().unwrap();
        assert!(note.starts_with("ranks whose ctrl_deps name no node, or a circle") && *count == 1);
    }
    let first = after(compute(1, 2), &[2]);
    let place = METADATA_BYTES + first.encode_length_delimited_to_vec().len();
    let said = refused(&[vec![first.clone(), after(compute(2, 2), &[9])]]);
    assert!(said.contains(&format!("byte {place}: node 2 waits for node 9, which is not in")), "{said}");
    let said = refused(&[vec![first.clone(), after(compute(2, 2), &[1])]]);
    assert!(said.contains("byte 8: this node waits for itself, by way of others"), "{said}");
    let said = refused(&[vec![first, compute(1, 2)]]);
    assert!(said.contains(&format!("byte {place}: node 1 stands in the file already")), "{said}");
}

/// Catches a send that waits for a receive which its rank posts later, and a message whose end nobody on the
/// core of communication waits for.
#[test]
fn what_depends_on_a_send_needs_no_receive() {
    let ring = |peer: i32| {
        vec![send(0, peer, 1 << 20), after(receive(1, peer, 1 << 20), &[0]), after(compute(2, 7), &[1])]
    };
    let trace = run(&[ring(1), ring(0)]).unwrap();
    assert_eq!(
        names(&*trace, 0),
        ["await compute", "isend signal_start wait compute", "await irecv wait compute signal_end"]
    );
    assert_eq!(*trace.stream_cores(RankId(0)), [0, 1, 1]);
}

/// Catches times that are taken from elsewhere, and what has none and is not told.
#[test]
fn times_are_those_of_the_nodes() {
    let host = |node: ChakraNode| with(node, "is_cpu_op", Value::BoolVal(true));
    let operations = |id: u64| with(compute(id, 0), "num_ops", Value::Int64Val(2_000_000));
    let memory = ChakraNode { duration_micros: 4, ..node(3, NodeType::MemLoadNode) };
    let nodes = [
        host(compute(0, 1)),
        with(compute(1, 2), "num_ops", Value::Int64Val(2_000_000)),
        compute(2, 0),
        memory,
        node(4, NodeType::MemStoreNode),
        node(5, NodeType::InvalidNode),
        ChakraNode { duration_micros: 6, ..host(collective(6, CollectiveCommType::AllReduce, 1)) },
    ];
    let trace = open(&file(&nodes)).unwrap();
    let of_core = |core: u32| {
        let of = |(_, stream): (_, StreamId)| {
            let ops = trace.stream(RankId(0), stream).unwrap().map(Result::unwrap);
            ops.map(|op| if let Op::Compute { span } = op { span.as_ps() / 1_000_000 } else { 99 })
        };
        let cores = trace.stream_cores(RankId(0));
        let streams = cores.iter().zip((0..).map(StreamId)).filter(|(of, _)| **of == core);
        streams.flat_map(of).collect::<Vec<u64>>()
    };
    assert_eq!([0, 1, 2].map(of_core), [vec![2, 0], vec![4, 0, 0], vec![1, 6]]);
    let notes: Vec<u64> = trace.metadata().header.notes.values().copied().collect();
    assert_eq!(notes, [1, 1, 2]);
    let said = open(&file(&[operations(8)])).err().unwrap().to_string();
    assert!(said.contains("node 8 (`n8`): has num_ops and no duration_micros"), "{said}");
    let options = TraceOptions { speed: Some("1Gf".parse().unwrap()) };
    let trace = (super::FORMAT.open_bytes)("some.et", file(&[operations(8)]).into(), &options).unwrap();
    assert_eq!(ops(&*trace, 0), [Op::Compute { span: Span::from_ns(2_000_000) }]);
}

/// Catches mistakes that are taken, and errors without the place.
#[test]
fn mistakes_are_told_with_their_byte() {
    let bare = |kind| node(5, kind);
    let wrong_size = collective(5, CollectiveCommType::AllReduce, -1);
    let dimensions = Value::BoolList(BoolList { values: vec![true, false] });
    for (node, said) in [
        (ChakraNode { r#type: 12, ..bare(NodeType::CompNode) }, "type 12 is none of 0 to 7"),
        (bare(NodeType::CommSendNode), "has no comm_dst; add the attribute"),
        (bare(NodeType::CommCollNode), "has no comm_type; add the attribute"),
        (wrong_size, "comm_size is no whole number from 0 on"),
        (collective(5, CollectiveCommType::AllReduce, i64::MAX), "comm_size is 9223372036854775807; at most"),
        (
            with(bare(NodeType::CommCollNode), "comm_type", Value::Int64Val(10)),
            "comm_type is none of 0 (ALL_REDUCE)",
        ),
        (
            with(collective(5, CollectiveCommType::AllReduce, 1), "involved_dim", dimensions),
            "involved_dim leaves out dimensions",
        ),
        (compute(5, u64::MAX), "duration_micros 18446744073709551615 is more than 53 days"),
        (
            with(receive(5, 0, 8), "comm_dst", Value::Int32Val(3)),
            "comm_dst is 3, in the file of rank 0; name the files by their ranks",
        ),
        (
            with(bare(NodeType::CompNode), "num_ops", Value::StringVal("many".to_owned())),
            "num_ops is no whole number",
        ),
    ] {
        let error = open(&file(&[node])).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("some.et: byte 8: node 5 (`n5`): ") && error.contains(said), "{error}");
    }
    let billion = [file(&[]), vec![0xff, 0xff, 0xff, 0xff, 0x03, 0x0a]].concat();
    let whole = file(&[compute(1, 1)]);
    let no_node = [file(&[]), vec![2, 0x08, 0xff]].concat();
    for (bytes, said) in [
        (billion, "byte 8: no length of a message of at most 4194304 bytes"),
        ([file(&[]), vec![0xff; 12]].concat(), "byte 8: no length of a message"),
        ([file(&[]), vec![100, 1]].concat(), "byte 9: 100 bytes announced, 1 there"),
        (whole[..whole.len() - 1].to_vec(), "bytes announced"),
        ([file(&[]), vec![0x80]].concat(), "byte 9: the file ends within a record"),
        (no_node, "byte 8: no node of a Chakra trace"),
        (vec![], "byte 0: does not begin as a Chakra trace, with GlobalMetadata (it is empty)"),
        (compute(1, 1).encode_length_delimited_to_vec(), "byte 0: does not begin as a Chakra trace"),
    ] {
        let error = open(&bytes).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.starts_with("some.et: ") && error.contains(said), "{error}");
    }
}

/// Catches files that are not known as what they are, and others that are taken for them.
#[test]
fn files_are_known_by_their_metadata() {
    let knows = |head: &[u8]| (super::FORMAT.knows)(Path::new("trace"), head);
    assert!(knows(&file(&[])) && knows(&file(&[compute(1, 1)])));
    // As the converter of PyTorch's traces begins, without a version; and a longer one, cut.
    let attribute = b"\x12\x10\x0a\x06schema\xea\x01\x051.0.1";
    let metadata = [&[attribute.len() as u8][..], attribute].concat();
    assert!(knows(&metadata));
    assert!(knows(&[&[0xda, 0xd0, 0x01][..], attribute, b"\x12\x9d\xd0\x01\x0a\x04rest"].concat()));
    for other in [&b""[..], b"\x00", b"\n\n\n", b"0 init\n", b"PAR1", b"\x07\x0a\x09", &[0xff; 40]] {
        assert!(!knows(other), "{other:?}");
    }
    assert!((super::FORMAT.knows)(Path::new("a/run.0.et"), b""));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Catches damage that is taken for anything but an error or a trace: a panic, a hang, memory without
    /// end.
    #[test]
    fn damaged_files_give_a_trace_or_an_error(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = file(&[
            compute(1, 5),
            after(receive(2, 0, 8), &[1]),
            send(3, 0, 8),
            after(collective(4, CollectiveCommType::AllToAll, 100), &[2, 3]),
            in_group(collective(5, CollectiveCommType::Broadcast, 100), "0"),
        ]);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(trace) = open(&bytes) {
            ops(&*trace, 0);
        }
    }
}
