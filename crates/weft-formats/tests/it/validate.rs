//! Traces that make no sense are refused with the place and the mend; those that do are not.

#![allow(clippy::unwrap_used)] // All of this is tests.

use crate::common::*;
use weft_formats::{Trace, TraceWriter, validate};
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};

const REQUEST: RequestId = RequestId(7);
const HALF: CommId = CommId(1);

fn send(to: u32) -> Op {
    let (tag, comm, mode) = (0, CommId::WORLD, SendMode::Standard);
    Op::Isend { to: RankId(to), tag, comm, bytes: Bytes::new(8), mode, request: REQUEST, buffer: None }
}

fn wait() -> Op {
    Op::Wait { request: REQUEST }
}

fn collective(kind: Collective, comm: CommId, root: Option<u32>, bytes: u64) -> Op {
    let sizes = CollectiveSizes { send: Bytes::new(bytes), ..CollectiveSizes::default() };
    Op::Collective { kind, comm, root: root.map(RankId), sizes, request: None, buffers: Default::default() }
}

fn half(members: u32) -> Op {
    Op::Communicator { comm: HALF, members: vec![RankRange { first: 0, stride: 2, count: members }] }
}

fn refusal(ranks: &[Vec<Op>]) -> String {
    validate(&trace_of(ranks)).unwrap_err().to_string()
}

#[test]
fn requests_are_started_before_they_are_waited_for() {
    validate(&trace_of(&[vec![send(0), wait(), send(0), wait(), send(0)]])).unwrap();
    let message = refusal(&[vec![], vec![send(0), wait(), wait()]]);
    assert!(
        message.contains("test.weft: rank 1, operation 2, column request: request 7 is waited for"),
        "{message}"
    );
    let message = refusal(&[vec![send(0), send(0)]]);
    assert!(message.contains("rank 0, operation 1, column request: request 7 is started again"), "{message}");
    let any = |completed| Op::Waitany { requests: vec![REQUEST, RequestId(8)], completed };
    assert!(refusal(&[vec![send(0), any(0)]]).contains("request 8 is waited for"));
    assert!(refusal(&[vec![Op::Waitall { requests: vec![REQUEST] }]]).contains("column requests"));
}

#[test]
fn communicators_exist_and_their_members_agree() {
    let barrier = || collective(Collective::Barrier, HALF, None, 0);
    validate(&trace_of(&[vec![half(2), barrier()], vec![], vec![half(2), barrier()]])).unwrap();
    assert!(refusal(&[vec![barrier()]]).contains("communicator 1 is not one of rank 0"));
    assert!(refusal(&[vec![half(1)], vec![half(1)]]).contains("rank 1, operation 0, column members"));
    assert!(
        refusal(&[vec![half(2)], vec![], vec![half(1)]]).contains("the rank that creates it is not a member")
    );
    assert!(refusal(&[vec![half(2)], vec![], vec![]]).contains("2 members, 1 of them create it"));
    assert!(refusal(&[vec![half(1), half(1)]]).contains("second time"));
    let whole = |stride, first| {
        vec![Op::Communicator { comm: HALF, members: vec![RankRange { first, stride, count: 2 }] }]
    };
    assert!(refusal(&[whole(1, 0), whole(-1, 1)]).contains("members differ"));
}

#[test]
fn members_call_the_same_collectives() {
    let allreduce = |bytes| collective(Collective::Allreduce, CommId::WORLD, None, bytes);
    let broadcast = |root| collective(Collective::Broadcast, CommId::WORLD, Some(root), 8);
    let compute = || Op::Compute { span: Span::from_us(1) };
    validate(&trace_of(&[vec![allreduce(8), broadcast(1)], vec![compute(), allreduce(8), broadcast(1)]]))
        .unwrap();

    let message = refusal(&[vec![allreduce(8), broadcast(0)], vec![compute(), allreduce(8), broadcast(1)]]);
    assert!(message.contains("rank 0, operation 1: broadcast with root 0 of 8 bytes"), "{message}");
    assert!(message.contains("rank 1, operation 2: broadcast with root 1 of 8 bytes"), "{message}");
    let message = refusal(&[vec![allreduce(8)], vec![allreduce(16)]]);
    assert!(message.contains("rank 1, operation 0: allreduce of 16 bytes"), "{message}");
    let message = refusal(&[vec![allreduce(8)], vec![allreduce(8), broadcast(0)]]);
    assert!(message.contains("rank 0: no further collective"), "{message}");
    assert!(
        refusal(&[vec![collective(Collective::Reduce, CommId::WORLD, None, 8)]]).contains("needs a root")
    );
    let outside = collective(Collective::Reduce, HALF, Some(1), 8);
    assert!(refusal(&[vec![half(1), outside], vec![]]).contains("root 1 is not a member"));
    let counts = collective(Collective::Alltoallv, CommId::WORLD, None, 8);
    assert!(refusal(&[vec![counts]]).contains("0 counts of a alltoallv among 1 members"));
}

/// Catches an interrupted recording that is refused because some ranks came further than others, and one
/// that is accepted although they did not do the same until then.
#[test]
fn interrupted_recordings_agree_as_far_as_they_go() {
    let interrupted = |ranks: [Vec<Op>; 2]| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("interrupted.weft");
        let mut writer = TraceWriter::create(&path, header(2)).unwrap();
        writer.header_mut().interrupted = true;
        for (rank, ops) in ranks.iter().enumerate() {
            writer.begin_rank(RankId::from(rank)).unwrap();
            ops.iter().for_each(|op| writer.push(op).unwrap());
        }
        writer.finish().unwrap();
        validate(&Trace::open(path).unwrap())
    };
    let allreduce = |bytes| collective(Collective::Allreduce, CommId::WORLD, None, bytes);
    interrupted([vec![allreduce(8)], vec![allreduce(8), allreduce(4)]]).unwrap();
    interrupted([vec![allreduce(8), allreduce(4)], vec![allreduce(8)]]).unwrap();
    interrupted([vec![allreduce(8)], vec![allreduce(4), allreduce(4)]]).unwrap_err();
}

#[test]
fn windows_exist() {
    let window = WindowId(3);
    let put = || {
        let (kind, target, bytes) = (OneSided::Put, RankId(0), Bytes::new(1));
        Op::OneSided { kind, window, target, bytes, request: None, buffer: None }
    };
    let create = || Op::Window { window, comm: CommId::WORLD, bytes: Bytes::new(64), buffer: None };
    let free = || Op::Sync { kind: WindowSync::Free, window, target: None };
    validate(&trace_of(&[vec![create(), put(), free()]])).unwrap();
    assert!(refusal(&[vec![create(), free(), put()]]).contains("operation 2, column window"));
}
