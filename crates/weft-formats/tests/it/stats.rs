//! The numbers of a small trace, counted by hand.

#![allow(clippy::unwrap_used)] // All of this is tests.

use crate::common::*;
use weft_formats::{Pair, SizeClass, TraceInfo, TraceStats};
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};

fn trace() -> weft_formats::Trace {
    let send = |to, bytes| Op::Isend {
        to: RankId(to),
        tag: 0,
        comm: CommId::WORLD,
        bytes: Bytes::new(bytes),
        mode: SendMode::Standard,
        request: RequestId(0),
        buffer: None,
    };
    let any = Op::Irecv {
        from: None,
        tag: None,
        comm: CommId::WORLD,
        bytes: Bytes::ZERO,
        matched: None,
        request: RequestId(0),
        buffer: None,
    };
    let allreduce = |request| Op::Collective {
        kind: Collective::Allreduce,
        comm: CommId::WORLD,
        root: None,
        sizes: CollectiveSizes { send: Bytes::new(8), receive: Bytes::new(8), ..CollectiveSizes::default() },
        request,
        buffers: Default::default(),
    };
    let compute = |us| Op::Compute { span: Span::from_us(us) };
    trace_of(&[
        vec![compute(5), compute(2), send(1, 0), send(1, 1), send(2, 1024), allreduce(None)],
        vec![compute(1), send(0, 2047), any, allreduce(Some(RequestId(1)))],
        vec![],
    ])
}

#[test]
fn stats_count_what_the_trace_holds() {
    let stats = TraceStats::of(&trace()).unwrap();
    assert_eq!((stats.ranks, stats.operations, stats.messages, stats.message_bytes), (3, 10, 4, 3072));
    let class = |from_bytes, to_bytes, messages, message_bytes| SizeClass {
        from_bytes,
        to_bytes,
        messages,
        message_bytes,
    };
    assert_eq!(stats.message_sizes, [class(0, 0, 1, 0), class(1, 1, 1, 1), class(1024, 2047, 2, 3071)]);
    let pair =
        |from_rank, to_rank, messages, message_bytes| Pair { from_rank, to_rank, messages, message_bytes };
    assert_eq!(stats.top_pairs, [pair(1, 0, 1, 2047), pair(0, 2, 1, 1024), pair(0, 1, 2, 1)]);
    assert_eq!((stats.pairs, stats.any_source_receives, stats.any_tag_receives), (3, 1, 1));
    let allreduce = &stats.collectives["allreduce"];
    assert_eq!((allreduce.calls, allreduce.non_blocking_calls, allreduce.send_bytes), (2, 1, 16));
    let computation = [stats.computation_sum_us, stats.computation_min_us, stats.computation_max_us];
    assert_eq!(computation, [8.0, 0.0, 7.0]);
    assert_eq!(stats.unrecorded["MPI_File_open"], 3);
}

#[test]
fn info_needs_the_footer_only() {
    let info = TraceInfo::of(&trace()).unwrap();
    assert_eq!(
        (info.ranks, info.operations, info.rank_operations_min, info.rank_operations_max),
        (3, 10, 0, 6)
    );
    assert_eq!(info.operations_by_kind["isend"], 4);
    assert_eq!(info.command[0], "lmp");
}
