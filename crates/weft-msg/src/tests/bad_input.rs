//! Operations that cannot be.

use super::network::{Delays, Network};
use crate::{MsgError, Protocol, unsupported};
use weft_trace::op::{Collective, CollectiveSizes, CommId, Op, RankRange, RequestId, SendMode};
use weft_units::{Bytes, RankId};

fn error(program: Vec<Op>) -> MsgError {
    let mut programs = vec![vec![]; 4];
    programs[0] = program;
    Network::new(&Protocol::zero(), Delays::Fixed(1)).run(programs).unwrap_err()
}

fn isend(to: u32, comm: u64, request: u32) -> Op {
    let (bytes, mode) = (Bytes::new(8), SendMode::Standard);
    Op::Isend {
        to: RankId(to),
        tag: 0,
        comm: CommId(comm),
        bytes,
        mode,
        request: RequestId(request),
        buffer: None,
    }
}

fn collective(kind: Collective, root: Option<u32>, sizes: CollectiveSizes) -> Op {
    Op::Collective {
        kind,
        comm: CommId::WORLD,
        root: root.map(RankId),
        sizes,
        request: None,
        buffers: Default::default(),
    }
}

#[test]
fn peers_communicators_and_requests_must_exist() {
    let text = |program| error(program).to_string();
    assert_eq!(
        text(vec![isend(4, 0, 0)]),
        "destination 4 does not exist: the program has 4 ranks, numbered from 0"
    );
    assert!(text(vec![isend(1, 5, 0)]).contains("rank 0 is in no communicator 5"));
    let (to, mode, bytes) = (RankId(1), SendMode::Standard, Bytes::new(u64::MAX));
    let huge =
        Op::Isend { to, tag: 0, comm: CommId::WORLD, bytes, mode, request: RequestId(0), buffer: None };
    assert_eq!(text(vec![huge]), "a message of 18446744073709551615 bytes: expected at most 2^62");
    let small =
        Op::Communicator { comm: CommId(5), members: vec![RankRange { first: 0, stride: 2, count: 2 }] };
    assert_eq!(text(vec![small, isend(1, 5, 0)]), "destination 1 is no member of communicator 5");
    assert!(text(vec![isend(1, 0, 0), isend(1, 0, 0)]).contains("request 0 is started again"));
    assert!(text(vec![Op::Wait { request: RequestId(3) }]).contains("request 3 is waited for"));
    let waitany = Op::Waitany { requests: vec![], completed: 0 };
    assert!(text(vec![waitany]).contains("expected a number below 0"));
}

#[test]
fn collectives_must_fit_their_communicator() {
    let text = |kind, root, sizes| error(vec![collective(kind, root, sizes)]).to_string();
    let none = CollectiveSizes::default;
    assert_eq!(text(Collective::Broadcast, None, none()), "a broadcast needs a root");
    assert!(text(Collective::Reduce, Some(9), none()).contains("root 9 is no member"));
    let counts = CollectiveSizes { receive_counts: vec![1; 3], ..none() };
    assert_eq!(
        text(Collective::Allgatherv, None, counts),
        "a allgatherv on 4 members has 3 receive counts: expected one per member"
    );
    for huge in [
        CollectiveSizes { receive_counts: vec![u64::MAX; 4], ..none() },
        CollectiveSizes { receive_counts: vec![1 << 61; 4], ..none() },
    ] {
        assert!(text(Collective::ReduceScatter, None, huge).contains("exceed 2^62 bytes"));
    }
    let block = CollectiveSizes { receive: Bytes::new(1 << 61), ..none() };
    assert!(text(Collective::Allgather, None, block).contains("exceed 2^62 bytes"));
    let vector = CollectiveSizes { send: Bytes::new(u64::MAX), ..none() };
    assert!(text(Collective::Allreduce, None, vector).contains("exceed 2^62 bytes"));
}

#[test]
fn a_message_longer_than_its_receive_is_an_error() {
    let receive = Op::Irecv {
        from: Some(RankId(0)),
        tag: Some(0),
        comm: CommId::WORLD,
        bytes: Bytes::new(7),
        matched: None,
        request: RequestId(0),
        buffer: None,
    };
    let programs = vec![vec![isend(1, 0, 0)], vec![receive]];
    let error = Network::new(&Protocol::zero(), Delays::Fixed(1)).reloading(true).run(programs).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a message of 8 bytes from rank 0 (tag 0) matches a receive of only 7 bytes"
    );
}

/// Catches a collective that a trace may have and no algorithm carries out.
#[test]
fn every_collective_is_supported() {
    for (kind, name) in crate::COLLECTIVE_NAMES {
        assert_eq!(unsupported(&collective(kind, None, CollectiveSizes::default())), None, "{name}");
    }
    let without = collective(Collective::NeighborAlltoallv, None, CollectiveSizes::default());
    assert!(error(vec![without]).to_string().contains("neighbor-alltoallv"));
    assert_eq!(unsupported(&isend(0, 0, 0)), None);
    assert_eq!(unsupported(&collective(Collective::Alltoallv, None, CollectiveSizes::default())), None);
}
