//! Operations as benchmarks write them: no wildcards, one communicator, numbered requests, the same two
//! buffers again and again.

use weft_trace::op::{Collective, CollectiveBuffers, CollectiveSizes, CommId, Op, RequestId, SendMode};
use weft_units::{Address, Bytes, RankId};

/// All that a rank sends. OSU allocates two buffers, at the beginning of a page each.
pub(super) const SEND_BUFFER: Address = Address::new(0x10_0000_0000);
/// All that it receives.
pub(super) const RECEIVE_BUFFER: Address = Address::new(0x20_0000_0000);
/// The window that it exposes.
pub(super) const WINDOW_BUFFER: Address = Address::new(0x30_0000_0000);

/// The most that one of them holds.
pub(super) const BUFFER_BYTES: u64 = RECEIVE_BUFFER.get() - SEND_BUFFER.get();

/// Starts a send.
pub(super) fn isend(to: u32, tag: i32, bytes: Bytes, request: u32) -> Op {
    let (to, request) = (RankId(to), RequestId(request));
    let (comm, mode, buffer) = (CommId::WORLD, SendMode::Standard, Some(SEND_BUFFER));
    Op::Isend { to, tag, comm, bytes, mode, buffer, request }
}

/// Starts a receive.
pub(super) fn irecv(from: u32, tag: i32, bytes: Bytes, request: u32) -> Op {
    let (from, tag, request) = (Some(RankId(from)), Some(tag), RequestId(request));
    Op::Irecv { from, tag, comm: CommId::WORLD, bytes, matched: None, buffer: Some(RECEIVE_BUFFER), request }
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
    // A broadcast has one buffer.
    let receive = (kind != Collective::Broadcast).then_some(RECEIVE_BUFFER);
    let buffers = CollectiveBuffers { send: Some(SEND_BUFFER), receive };
    let (comm, root) = (CommId::WORLD, rooted.then_some(RankId(0)));
    Op::Collective { kind, comm, root, sizes, buffers, request: None }
}

/// A barrier of all ranks.
pub(super) fn barrier() -> Op {
    collective(Collective::Barrier, Bytes::ZERO)
}
