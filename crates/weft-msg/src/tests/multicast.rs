//! Broadcast by multicast: the root sends when all receives are posted, once; and what happens outside the
//! limits.

use super::network::{Delays, MAX_MULTICAST_RANKS, Network, Observer, Outcome};
use crate::{Algorithm, Body, Envelope, MsgError, MulticastLimit, Protocol, Rule};
use weft_trace::op::{Collective, CollectiveSizes, CommId, Op};
use weft_units::{Bytes, RankId, Span};

fn broadcast(root: u32, bytes: u64) -> Op {
    let bytes = Bytes::new(bytes);
    Op::Collective {
        kind: Collective::Broadcast,
        comm: CommId::WORLD,
        root: Some(RankId(root)),
        sizes: CollectiveSizes { send: bytes, receive: bytes, element: 1, ..CollectiveSizes::default() },
        request: None,
        buffers: Default::default(),
    }
}

fn forced() -> Protocol {
    let algorithms = Protocol::zero().algorithms.forced(Collective::Broadcast, Algorithm::Multicast).unwrap();
    Protocol { algorithms, ..Protocol::zero() }
}

/// Counts the members from which the root has heard, through others, when it sends.
#[derive(Default)]
struct Readiness {
    tokens: u32,
    copies: u32,
    tokens_before_data: Option<u32>,
}

impl Observer for Readiness {
    fn posted(&mut self, _: RankId, _: RankId, envelope: &Envelope) {
        match envelope.body {
            Body::Multicast { .. } => {
                self.copies += 1;
                self.tokens_before_data.get_or_insert(self.tokens);
            }
            _ => assert_eq!(envelope.bytes, Bytes::ZERO, "data beside the root's"),
        }
    }

    fn delivered(&mut self, _: RankId, envelope: &Envelope) {
        self.tokens += u32::from(!matches!(envelope.body, Body::Multicast { .. }));
    }
}

/// Catches data that is sent before the last receive is posted, to somebody twice or not at all, and tokens
/// that are not waited for: for all small numbers of members, roots, and messages that overtake.
#[test]
fn the_root_sends_once_when_all_have_posted() {
    let protocol = forced();
    for ranks in 1..20 {
        for root in [0, ranks / 2, ranks - 1] {
            let programs = vec![vec![broadcast(root, 1000)]; ranks as usize];
            let mut readiness = Readiness::default();
            let network = Network::new(&protocol, Delays::Random(u64::from(ranks))).reloading(true);
            network.observe(programs, &mut readiness).unwrap().assert_clean();
            let Readiness { tokens, copies, tokens_before_data } = readiness;
            assert_eq!((tokens, copies), (ranks - 1, ranks - 1), "{ranks} ranks");
            assert_eq!(tokens_before_data, (ranks > 1).then_some(ranks - 1), "{ranks} ranks from {root}");
        }
    }
}

/// Catches a broadcast that takes another root's or another broadcast's data, and an empty one that sends.
#[test]
fn broadcasts_after_each_other_keep_apart() {
    let protocol = forced();
    let programs = vec![vec![broadcast(2, 10), broadcast(2, 20), broadcast(0, 0), broadcast(4, 30)]; 5];
    for seed in 0..50 {
        let outcome = Network::new(&protocol, Delays::Random(seed)).run(programs.clone()).unwrap();
        outcome.assert_clean();
        assert_eq!(outcome.messages.len(), 3 * (4 + 4));
    }
}

/// The costs: tokens as any message without data, the data as announced data, and no copy at the receiver.
#[test]
fn the_costs_are_those_of_tokens_and_announced_data() {
    let cost = Span::from_ps;
    let protocol = Protocol {
        send_call: cost(1_000),
        data_send: cost(10_000),
        receive_message: cost(100),
        receive_copy_rate: Some(weft_units::BitRate::from_gigabits(1)),
        data_header: Bytes::new(24),
        ..forced()
    };
    let programs = vec![vec![broadcast(0, 1000)]; 2];
    let outcome = Network::new(&protocol, Delays::Fixed(0)).run(programs).unwrap();
    // The root takes a token and sends; the other sends a token and takes the data where it is.
    assert_eq!(outcome.spent, [100 + 1_000 + 10_000, 1_000 + 100]);
    let payloads: Vec<u64> = outcome.messages.iter().map(|message| message.3.get()).collect();
    assert_eq!(payloads, [0, 1024]);
}

fn go(ranks: u32, protocol: &Protocol) -> Result<Outcome, MsgError> {
    let programs = vec![vec![broadcast(0, 8)]; ranks as usize];
    Network::new(protocol, Delays::Fixed(1000)).run(programs)
}

/// Catches a rule that fails a program where multicast has a limit, and a name that is silently not kept.
#[test]
fn outside_the_limits_rules_fall_back_and_names_fail() {
    let ranks = MAX_MULTICAST_RANKS + 1;
    let error = go(ranks, &forced()).unwrap_err();
    let limit = MulticastLimit::NotAllRanks { ranks, all: MAX_MULTICAST_RANKS };
    assert_eq!(error, MsgError::Multicast { limit });
    assert!(error.to_string().starts_with("multicast cannot carry out this broadcast: "), "{error}");
    let mut protocol = Protocol::zero();
    protocol.algorithms.prefer(Rule::always(Collective::Broadcast, Algorithm::Binomial)).unwrap();
    protocol.algorithms.prefer(Rule::always(Collective::Broadcast, Algorithm::Multicast)).unwrap();
    let outside = go(ranks, &protocol).unwrap();
    outside.assert_clean();
    assert_eq!(outside.messages.len() as u32, ranks - 1, "the next rule's binomial tree");
    let within = go(6, &protocol).unwrap();
    assert_eq!(within.messages.len(), 5 + 5);
}
