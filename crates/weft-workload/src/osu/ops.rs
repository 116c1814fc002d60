//! Operations as benchmarks write them: no wildcards, one communicator, numbered requests.

use weft_trace::op::{Collective, CollectiveSizes, CommId, Op, RequestId, SendMode};
use weft_units::{Bytes, RankId};

/// Starts a send.
pub(super) fn isend(to: u32, tag: i32, bytes: Bytes, request: u32) -> Op {
    let (to, request) = (RankId(to), RequestId(request));
    Op::Isend { to, tag, comm: CommId::WORLD, bytes, mode: SendMode::Standard, request }
}

/// Starts a receive.
pub(super) fn irecv(from: u32, tag: i32, bytes: Bytes, request: u32) -> Op {
    let (from, tag, request) = (Some(RankId(from)), Some(tag), RequestId(request));
    Op::Irecv { from, tag, comm: CommId::WORLD, bytes, matched: None, request }
}

/// Waits for a request: with the operation that started it, a blocking call.
pub(super) fn wait(request: u32) -> Op {
    Op::Wait { request: RequestId(request) }
}

/// Waits for requests `first..first + count`.
pub(super) fn waitall(first: u32, count: u32) -> Op {
    Op::Waitall { requests: (first..first + count).map(RequestId).collect() }
}

/// A blocking collective of all ranks; of the root, where it has one, rank 0.
pub(super) fn collective(kind: Collective, bytes: Bytes) -> Op {
    let rooted = matches!(kind, Collective::Broadcast | Collective::Reduce);
    // OSU reduces floats; where the bytes are no whole number of them, the elements are bytes.
    let element = if bytes.get().is_multiple_of(4) { 4 } else { 1 };
    let sizes = CollectiveSizes { send: bytes, receive: bytes, element, ..CollectiveSizes::default() };
    Op::Collective { kind, comm: CommId::WORLD, root: rooted.then_some(RankId(0)), sizes, request: None }
}

/// A barrier of all ranks.
pub(super) fn barrier() -> Op {
    collective(Collective::Barrier, Bytes::ZERO)
}
