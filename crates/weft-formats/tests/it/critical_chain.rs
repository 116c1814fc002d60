//! The longest dependent chain of small programs, by hand.

#![allow(clippy::unwrap_used)] // All of this is tests.

use crate::common::*;
use weft_formats::critical_chain::{ChainError, Dependence, critical_chain};
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};

fn compute(us: u64) -> Op {
    Op::Compute { span: Span::from_us(us) }
}

fn send(to: u32, bytes: u64, mode: SendMode) -> Op {
    let (tag, comm, request) = (1, CommId::WORLD, RequestId(0));
    Op::Isend { to: RankId(to), tag, comm, bytes: Bytes::new(bytes), mode, request, buffer: None }
}

fn receive(from: u32) -> Op {
    let (tag, comm, bytes, request) = (Some(1), CommId::WORLD, Bytes::new(1 << 20), RequestId(1));
    Op::Irecv { from: Some(RankId(from)), tag, comm, bytes, matched: None, request, buffer: None }
}

fn wait(request: u32) -> Op {
    Op::Wait { request: RequestId(request) }
}

fn collective(kind: Collective, root: Option<u32>) -> Op {
    let (sizes, comm) = (CollectiveSizes::default(), CommId::WORLD);
    Op::Collective { kind, comm, root: root.map(RankId), sizes, request: None, buffers: Default::default() }
}

/// The times at which the ranks end, in µs, with an eager limit of 100 bytes.
fn ends(ranks: &[Vec<Op>], dependence: Dependence) -> Vec<u64> {
    let chain = critical_chain(&trace_of(ranks), Bytes::new(100), dependence).unwrap();
    let ends: Vec<_> = chain.ranks.iter().map(|rank| rank.end.as_ps() / 1_000_000).collect();
    assert_eq!(chain.run_time, Span::from_us(*ends.iter().max().unwrap()));
    ends
}

#[test]
fn a_receive_waits_for_its_send() {
    let sender = |bytes, mode| vec![compute(5), send(1, bytes, mode), wait(0), compute(1)];
    let late = vec![compute(2), receive(0), wait(1), compute(4)];
    assert_eq!(ends(&[sender(8, SendMode::Standard), late.clone()], Dependence::Data), [6, 9]);
    let early = vec![compute(20), receive(0), wait(1)];
    for (bytes, mode, end) in [
        (100, SendMode::Standard, 6),
        (101, SendMode::Standard, 21),
        (101, SendMode::Buffered, 6),
        (8, SendMode::Synchronous, 21),
    ] {
        assert_eq!(ends(&[sender(bytes, mode), early.clone()], Dependence::Data), [end, 20]);
    }
}

/// Catches a probe that does not wait for its message, and one that takes it.
#[test]
fn a_probe_waits_for_its_message() {
    let probe = Op::Probe { from: RankId(0), tag: 1, comm: CommId::WORLD, tested: false };
    for bytes in [8, 101] {
        let sender = vec![compute(5), send(1, bytes, SendMode::Standard), wait(0)];
        let receiver = vec![compute(1), probe.clone(), compute(3), receive(0), wait(1)];
        let end = if bytes > 100 { 8 } else { 5 };
        assert_eq!(ends(&[sender, receiver], Dependence::Data), [end, 8]);
    }
    let error = critical_chain(&trace_of(&[vec![], vec![probe]]), Bytes::ZERO, Dependence::Data).unwrap_err();
    assert!(matches!(error, ChainError::Stuck { rank: RankId(1), position: 0, operation: "probe" }));
}

#[test]
fn messages_do_not_overtake() {
    let sender =
        vec![compute(1), send(1, 8, SendMode::Standard), wait(0), compute(9), send(1, 8, SendMode::Standard)];
    let receiver = vec![receive(0), wait(1), compute(1), receive(0), wait(1)];
    assert_eq!(ends(&[sender, receiver], Dependence::Data), [10, 10]);
}

#[test]
fn wildcards_receive_what_they_received_before() {
    let any = |matched: u32| {
        let matched = Some((RankId(matched), 1));
        let Op::Irecv { comm, bytes, request, .. } = receive(0) else { unreachable!() };
        Op::Irecv { from: None, tag: None, comm, bytes, matched, request, buffer: None }
    };
    let sender = |us| vec![compute(us), send(0, 8, SendMode::Standard), wait(0)];
    let receiver = vec![any(2), wait(1), compute(1), any(1), wait(1)];
    assert_eq!(ends(&[receiver, sender(2), sender(7)], Dependence::Data), [8, 2, 7]);
}

#[test]
fn collectives_depend_on_whose_data_they_need() {
    let ends = |kind, root, dependence| {
        let rank = |us| vec![compute(us), collective(kind, root)];
        ends(&[rank(3), rank(1), rank(2)], dependence)
    };
    for kind in [Collective::Barrier, Collective::Allreduce, Collective::Alltoall] {
        assert_eq!(ends(kind, None, Dependence::Data), [3, 3, 3]);
    }
    assert_eq!(ends(Collective::Broadcast, Some(2), Dependence::Data), [3, 2, 2]);
    assert_eq!(ends(Collective::Reduce, Some(1), Dependence::Data), [3, 3, 2]);
    assert_eq!(ends(Collective::Scan, None, Dependence::Data), [3, 3, 3]);
    assert_eq!(ends(Collective::Broadcast, Some(2), Dependence::AllMembers), [3, 3, 3]);
}

#[test]
fn ranks_that_wait_for_ever_are_named() {
    let ranks = [vec![compute(1), receive(1), wait(1)], vec![]];
    let error = critical_chain(&trace_of(&ranks), Bytes::ZERO, Dependence::Data).unwrap_err();
    assert!(matches!(error, ChainError::Stuck { rank: RankId(0), position: 2, operation: "wait" }));
    let sync = Op::Sync { kind: WindowSync::Fence, window: WindowId(0), target: None };
    let error = critical_chain(&trace_of(&[vec![sync]]), Bytes::ZERO, Dependence::Data).unwrap_err();
    assert!(matches!(error, ChainError::Unsupported { operation: "win_fence", .. }));
}
