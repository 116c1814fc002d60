//! Allreduce by the interfaces: within their limits, and what happens outside.

use super::network::{Delays, MAX_ACCELERATED_RANKS, Network, Outcome};
use crate::{AcceleratorLimit, Algorithm, MsgError, Protocol, Rule};
use weft_trace::op::{Collective, CollectiveSizes, CommId, Op, RankRange, RequestId};
use weft_units::{Bytes, RankId, Span};

fn allreduce(comm: CommId, bytes: u64, request: Option<u32>) -> Op {
    let bytes = Bytes::new(bytes);
    let sizes = CollectiveSizes { send: bytes, receive: bytes, element: 4, ..CollectiveSizes::default() };
    Op::Collective {
        kind: Collective::Allreduce,
        comm,
        root: None,
        sizes,
        request: request.map(RequestId),
        buffers: Default::default(),
    }
}

fn go(ranks: u32, protocol: &Protocol) -> Result<Outcome, MsgError> {
    go_with(ranks, 4096, protocol)
}

fn go_with(ranks: u32, bytes: u64, protocol: &Protocol) -> Result<Outcome, MsgError> {
    let programs = vec![vec![allreduce(CommId::WORLD, bytes, None)]; ranks as usize];
    Network::new(protocol, Delays::Fixed(1000)).reloading(true).run(programs)
}

#[test]
fn by_the_table_software_takes_over_outside_the_limits() {
    let ps = Span::from_ps;
    let mut protocol = Protocol {
        collective_call: ps(7),
        copy_call: ps(20),
        accelerated_call: ps(300),
        temporary_buffer: ps(1_000_000),
        ..Protocol::zero()
    };
    protocol.algorithms.prefer(Rule::always(Collective::Allreduce, Algorithm::Ring)).unwrap();
    protocol.algorithms.prefer(Rule::always(Collective::Allreduce, Algorithm::Accelerator)).unwrap();
    let within = go(MAX_ACCELERATED_RANKS, &protocol).unwrap();
    within.assert_clean();
    assert_eq!(
        (within.messages.len(), within.end),
        (0, 1327),
        "no temporary buffer, each of the others once"
    );
    let ranks = u64::from(MAX_ACCELERATED_RANKS) + 1;
    let outside = go(MAX_ACCELERATED_RANKS + 1, &protocol).unwrap();
    outside.assert_clean();
    assert_eq!(outside.messages.len() as u64, 2 * ranks * (ranks - 1), "the next rule's ring");
}

/// Catches an interface that is asked to reduce a vector of no elements, which its accelerator does not take.
#[test]
fn nothing_is_reduced_without_the_interface() {
    let ps = Span::from_ps;
    let algorithms =
        Protocol::zero().algorithms.forced(Collective::Allreduce, Algorithm::Accelerator).unwrap();
    let (collective_call, accelerated_call) = (ps(7), ps(300));
    let protocol = Protocol { algorithms, collective_call, accelerated_call, ..Protocol::zero() };
    let outcome = go_with(4, 0, &protocol).unwrap();
    outcome.assert_clean();
    assert_eq!(outcome.end, 7);
}

#[test]
fn by_name_it_is_an_error_that_names_the_limit() {
    let algorithms =
        Protocol::zero().algorithms.forced(Collective::Allreduce, Algorithm::Accelerator).unwrap();
    let protocol = Protocol { algorithms, ..Protocol::zero() };
    go(MAX_ACCELERATED_RANKS, &protocol).unwrap().assert_clean();
    let error = go(MAX_ACCELERATED_RANKS + 1, &protocol).unwrap_err();
    let limit =
        AcceleratorLimit::TooManyRanks { ranks: MAX_ACCELERATED_RANKS + 1, limit: MAX_ACCELERATED_RANKS };
    assert_eq!(error, MsgError::Accelerator { limit });
    assert!(error.to_string().contains("17 ranks exceed its 16"), "{error}");
}

/// Catches operations of several groups, or several of one group, that the interfaces take for one.
#[test]
fn groups_and_numbers_keep_apart() {
    let algorithms =
        Protocol::zero().algorithms.forced(Collective::Allreduce, Algorithm::Accelerator).unwrap();
    let protocol = Protocol { algorithms, ..Protocol::zero() };
    let half = |rank: u32| CommId(u64::from(rank % 2 + 1) << 32);
    let programs = (0..8).map(|rank| {
        let members = vec![RankRange { first: rank % 2, stride: 2, count: 4 }];
        vec![
            Op::Communicator { comm: half(rank), members },
            allreduce(half(rank), 8, Some(0)),
            allreduce(CommId::WORLD, 8, Some(1)),
            allreduce(half(rank), 4096, Some(2)),
            Op::Waitall { requests: (0..3).map(RequestId).collect() },
        ]
    });
    Network::new(&protocol, Delays::Random(5))
        .reloading(true)
        .run(programs.collect())
        .unwrap()
        .assert_clean();
}

/// A rank that never calls leaves the others waiting, and their report names the algorithm.
#[test]
fn a_missing_member_is_reported() {
    let algorithms =
        Protocol::zero().algorithms.forced(Collective::Allreduce, Algorithm::Accelerator).unwrap();
    let protocol = Protocol { algorithms, ..Protocol::zero() };
    let programs = vec![vec![allreduce(CommId::WORLD, 8, None)], vec![]];
    let outcome = Network::new(&protocol, Delays::Fixed(1)).run(programs).unwrap();
    let text = outcome.blocked[0].to_string();
    assert!(text.contains("rank 0 waits in allreduce") && text.contains("by accelerator"), "{text}");
    assert_eq!(outcome.blocked[0].rank, RankId(0));
}
