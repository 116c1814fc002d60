//! A trace reads back as it was written, from any position. One content gives one file, byte for byte.

#![allow(clippy::unwrap_used)] // All of this is tests.

use crate::common::*;
use proptest::prelude::*;
use weft_formats::{Trace, TraceError, TraceHeader, TraceWriter};
use weft_trace::Reduction;
use weft_trace::op::*;
use weft_units::{Address, Bytes, RankId, Span};

fn read(trace: &Trace, rank: usize, position: u64) -> Vec<Op> {
    trace.stream_at(RankId::from(rank), StreamId::FIRST, position).unwrap().map(Result::unwrap).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Catches any field that is lost or changed, and lists that slip to another row.
    #[test]
    fn operations_are_read_as_they_were_written(ranks in any_ranks(0..60)) {
        let trace = trace_of(&ranks);
        for (rank, ops) in ranks.iter().enumerate() {
            prop_assert_eq!(&read(&trace, rank, 0), ops);
        }
        let total: u64 = trace.metadata().operations.values().sum();
        prop_assert_eq!(total, trace.operations());
    }

    /// Catches streams that slip into each other, and cores that are lost.
    #[test]
    fn streams_are_read_as_they_were_written(ranks in any_ranks(0..60), cut in 0..60usize, core in 0..2u32) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("streams.weft");
        let header = TraceHeader { ranks: ranks.len() as u32, ..TraceHeader::default() };
        let mut writer = TraceWriter::create(&path, header).unwrap();
        for (rank, ops) in ranks.iter().enumerate() {
            let (first, second) = ops.split_at(cut.min(ops.len()));
            writer.begin_rank(RankId::from(rank)).unwrap();
            first.iter().for_each(|op| writer.push(op).unwrap());
            writer.begin_stream(core).unwrap();
            second.iter().for_each(|op| writer.push(op).unwrap());
        }
        writer.finish().unwrap();
        let trace = Trace::open(&path).unwrap();
        prop_assert_eq!(trace.metadata().format_version, 2);
        for (rank, ops) in (0..).map(RankId).zip(&ranks) {
            prop_assert_eq!(&*trace.stream_cores(rank), &[0, core]);
            let (first, second) = ops.split_at(cut.min(ops.len()));
            let stream = |stream, position| -> Vec<Op> {
                trace.stream_at(rank, StreamId(stream), position).unwrap().map(Result::unwrap).collect()
            };
            prop_assert_eq!(&stream(0, 0)[..], first);
            prop_assert_eq!(&stream(1, 0)[..], second);
            prop_assert_eq!(&stream(1, 1)[..], second.get(1..).unwrap_or(&[]));
            prop_assert!(trace.stream(rank, StreamId(2)).is_err());
        }
    }

    /// Catches a cursor that continues one operation too early or late.
    #[test]
    fn a_cursor_continues_where_another_stopped(ranks in any_ranks(1..60), stop in 0..60usize) {
        let trace = trace_of(&ranks);
        for (rank, ops) in ranks.iter().enumerate() {
            let mut cursor = trace.stream(RankId::from(rank), StreamId::FIRST).unwrap();
            let before: Vec<_> = cursor.by_ref().take(stop).map(Result::unwrap).collect();
            let after = read(&trace, rank, cursor.next_position());
            prop_assert_eq!(&[before, after].concat(), ops);
        }
    }

    /// Catches anything in the file that depends on more than the operations.
    #[test]
    fn the_same_operations_make_the_same_bytes(ranks in any_ranks(0..20)) {
        prop_assert_eq!(trace_bytes(&ranks), trace_bytes(&ranks));
    }
}

/// Catches a reader that refuses the recordings of earlier builds, or reads their other columns shifted:
/// these were made before there were columns of buffers and reductions.
#[test]
fn traces_of_earlier_builds_are_read() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/trace");
    let ops = |name: &str| -> Vec<Op> {
        let trace = Trace::open(format!("{corpus}/{name}.weft")).unwrap();
        (0..trace.ranks()).flat_map(|rank| read(&trace, rank as usize, 0)).collect()
    };
    for (name, operations) in [("newer", 40), ("sends", 47), ("windows", 84)] {
        let ops = ops(name);
        assert_eq!(ops.len(), operations, "{name}");
        for op in ops {
            if let Op::Collective { sizes, .. } = &op {
                assert_eq!(sizes.reduction, Reduction::default());
            }
            let buffers = match op {
                Op::Isend { buffer, .. } | Op::Irecv { buffer, .. } => [buffer, None],
                Op::Window { buffer, .. } | Op::OneSided { buffer, .. } => [buffer, None],
                Op::Collective { buffers, .. } => [buffers.send, buffers.receive],
                _ => [None, None],
            };
            assert_eq!(buffers, [None, None]);
        }
    }
    let first = ops("sends").into_iter().find(|op| matches!(op, Op::Isend { .. }));
    let expected = Op::Isend {
        to: RankId(1),
        tag: 1,
        comm: CommId::WORLD,
        bytes: Bytes::new(12),
        mode: SendMode::Standard,
        buffer: None,
        request: RequestId(0),
    };
    assert_eq!(first, Some(expected));
}

/// Operations over several row groups and pages, with long lists among them.
fn long(ops: u64) -> Vec<Op> {
    let op = |i: u64| match i % 50 {
        0 => Op::Waitall { requests: (0..i as u32 % 300).map(RequestId).collect() },
        1..10 => Op::Compute { span: Span::from_ps(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 4) },
        10 => Op::Marker { text: format!("step {i}") },
        _ => Op::Isend {
            to: RankId(i as u32 % 3),
            tag: i as i32,
            comm: CommId::WORLD,
            bytes: Bytes::new(i),
            mode: SendMode::Standard,
            request: RequestId(i as u32),
            buffer: None,
        },
    };
    (0..ops).map(op).collect()
}

/// Catches rows lost or doubled at the borders of pages, row groups and ranks.
#[test]
fn long_ranks_span_row_groups() {
    let ranks = [long(150_000), long(17_000), Vec::new(), long(1)];
    let trace = trace_of(&ranks);
    for (rank, ops) in ranks.iter().enumerate() {
        assert!(read(&trace, rank, 0) == *ops, "rank {rank}");
    }
    for position in [4_095, 4_096, 65_535, 65_536, 149_999, 150_000, u64::MAX] {
        let rest = ranks[0].get(position as usize..).unwrap_or(&[]);
        assert!(read(&trace, 0, position) == rest, "position {position}");
    }
}

/// Catches a cursor that loses operations where long lists make it stop early.
#[test]
fn very_long_lists_are_read_in_smaller_chunks() {
    let op = |i: u64| Op::Collective {
        kind: Collective::Alltoallv,
        comm: CommId::WORLD,
        root: None,
        sizes: CollectiveSizes {
            send_counts: (0..10_000).map(|member| member * i).collect(),
            receive_counts: vec![i; 10_000],
            ..CollectiveSizes::default()
        },
        request: None,
        buffers: Default::default(),
    };
    let ops: Vec<_> = (0..150).map(op).collect();
    let trace = trace_of(&[ops.clone(), ops.clone()]);
    for rank in 0..2 {
        assert!(read(&trace, rank, 0) == ops);
    }
    assert!(read(&trace, 1, 77) == ops[77..]);
}

/// Catches a trace that loses sight of ranks when there are many, in memory or in time.
#[test]
fn many_ranks_share_row_groups() {
    let ranks: Vec<_> = (0..10_000u64).map(|rank| long(rank % 7)).collect();
    let trace = trace_of(&ranks);
    let mut cursors: Vec<_> =
        (0..ranks.len()).map(|rank| trace.stream(RankId::from(rank), StreamId::FIRST).unwrap()).collect();
    for position in 0..7 {
        for (cursor, ops) in cursors.iter_mut().zip(&ranks) {
            assert_eq!(cursor.next().map(Result::unwrap).as_ref(), ops.get(position));
        }
    }
}

/// Catches cursors that cannot be used in a simulation on threads.
#[test]
fn traces_are_shared_by_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    fn sent<T: Send>(_: &T) {}
    let trace = trace_of(&[long(10_000), Vec::new(), Vec::new()]);
    shared(&trace);
    sent(&trace.stream(RankId(0), StreamId::FIRST).unwrap());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert!(read(&trace, 0, 0) == long(10_000)));
        }
    });
}

/// Catches a file under the trace's name, or left beside it, before or without `finish`.
#[test]
fn an_unfinished_trace_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("unfinished.weft");
    let mut writer = TraceWriter::create(&path, header(3)).unwrap();
    writer.begin_rank(RankId(0)).unwrap();
    for op in long(70_000) {
        writer.push(&op).unwrap();
    }
    assert!(!path.exists());
    drop(writer);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Catches a writer that makes a file which the reader refuses.
#[test]
fn the_writer_refuses_what_makes_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wrong.weft");
    let create = |ranks| TraceWriter::create(&path, TraceHeader { ranks, ..TraceHeader::default() }).unwrap();
    let message = |error: TraceError| error.to_string();

    let error = create(2).begin_rank(RankId(1)).unwrap_err();
    assert!(message(error).contains("rank 1 begun where rank 0 of 2 comes next"));
    let error = create(1).push(&Op::Wait { request: RequestId(0) }).unwrap_err();
    assert!(message(error).contains("before the first rank"));
    let error = create(1).finish().unwrap_err();
    assert!(message(error).contains("after 0 of 1 ranks"));
    let mut writer = create(1);
    writer.begin_rank(RankId(0)).unwrap();
    let window = WindowId(0);
    let error =
        writer.push(&Op::Sync { kind: WindowSync::Lock, window, target: Some(RankId(9)) }).unwrap_err();
    assert!(message(error).contains("rank 9 of a program of 1 ranks"));
    for (send, receive, column) in [(1 << 39, 0, "buffer"), (0, u64::MAX, "receive_buffer")] {
        let mut writer = create(1);
        writer.begin_rank(RankId(0)).unwrap();
        let buffers =
            CollectiveBuffers { send: Some(Address::new(send)), receive: Some(Address::new(receive)) };
        let (kind, comm, root) = (Collective::Allreduce, CommId::WORLD, None);
        let op =
            Op::Collective { kind, comm, root, sizes: CollectiveSizes::default(), buffers, request: None };
        let error = message(writer.push(&op).unwrap_err());
        assert!(error.contains(&format!("rank 0, operation 0, column {column}: the address 0x")), "{error}");
    }
    let missing = directory.path().join("no such directory/x.weft");
    assert!(matches!(TraceWriter::create(missing, header(1)), Err(TraceError::Write { .. })));
    assert!(!path.exists());
}

/// Catches metadata that is lost, and counts that are not those of the operations.
#[test]
fn metadata_is_kept() {
    let metadata = trace_of(&[long(12), Vec::new(), long(1)]).metadata().clone();
    assert_eq!(metadata.header, header(3));
    let counts = [("compute", 9), ("isend", 1), ("marker", 1), ("waitall", 2)];
    assert_eq!(metadata.operations, counts.map(|(name, count)| (name.to_owned(), count)).into());
    assert_eq!(metadata.rank_operations, [12, 0, 1]);
}

/// Catches a full disk that is not noticed or leaves something behind. The disk is full for a child
/// process, in which the shell limits the size of files.
#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 100; exec \"$0\" --ignored --exact \"$1\""])
        .arg(std::env::current_exe().unwrap())
        .arg("round_trip::writes_until_the_disk_is_full")
        .env("TMPDIR", directory.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&output.stdout);
    assert!(output.contains("1 passed"), "{output}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
#[ignore = "run by the test above with a limit on the size of files"]
fn writes_until_the_disk_is_full() {
    let path = std::env::temp_dir().join("full.weft");
    let mut writer = TraceWriter::create(&path, header(3)).unwrap();
    writer.begin_rank(RankId(0)).unwrap();
    let error = long(300_000).iter().find_map(|op| writer.push(op).err()).unwrap();
    assert!(matches!(error, TraceError::Write { .. }));
    assert!(error.to_string().contains("File too large"), "{error}");
}
