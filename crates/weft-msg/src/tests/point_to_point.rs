//! Sends, receives and waits.

use super::collectives::protocols;
use super::network::{Delays, Network, Outcome, splitmix};
use crate::{Envelope, EnvelopeKind, PendingState, Protocol, SynchronousSends, WaitCosts, Wildcards};
use proptest::prelude::*;
use weft_trace::op::{Collective, CollectiveSizes, CommId, Op, RequestId, SendMode};
use weft_units::{BitRate, Bytes, RankId, Span};

/// A standard send.
fn isend(to: u32, tag: i32, bytes: u64, request: u32) -> Op {
    let (to, bytes, request) = (RankId(to), Bytes::new(bytes), RequestId(request));
    Op::Isend { to, tag, comm: CommId::WORLD, bytes, mode: SendMode::Standard, request, buffer: None }
}

/// The send `op` in another mode.
fn in_mode(mode: SendMode, op: Op) -> Op {
    let Op::Isend { to, tag, comm, bytes, request, .. } = op else { unreachable!("a send") };
    Op::Isend { to, tag, comm, bytes, mode, request, buffer: None }
}

fn irecv(from: Option<u32>, tag: Option<i32>, bytes: u64, request: u32) -> Op {
    let (from, bytes, request) = (from.map(RankId), Bytes::new(bytes), RequestId(request));
    Op::Irecv { from, tag, comm: CommId::WORLD, bytes, matched: None, request, buffer: None }
}

/// The receive `op`, recorded with a message of this source and tag.
fn recorded((source, matched_tag): (u32, i32), op: Op) -> Op {
    let Op::Irecv { from, tag, comm, bytes, request, .. } = op else { unreachable!("a receive") };
    Op::Irecv { from, tag, comm, bytes, matched: Some((RankId(source), matched_tag)), request, buffer: None }
}

fn probe(from: u32, tag: i32) -> Op {
    Op::Probe { from: RankId(from), tag, comm: CommId::WORLD, tested: false }
}

fn wait(request: u32) -> Op {
    Op::Wait { request: RequestId(request) }
}

fn waitall(requests: impl IntoIterator<Item = u32>) -> Op {
    Op::Waitall { requests: requests.into_iter().map(RequestId).collect() }
}

fn go(programs: Vec<Vec<Op>>, protocol: &Protocol) -> Outcome {
    Network::new(protocol, Delays::Fixed(1000)).run(programs).unwrap()
}

/// A message of a random program: (source, destination, tag, size, mode).
type Random = (u32, u32, i32, u64, SendMode);

fn random_messages() -> impl Strategy<Value = Vec<Random>> {
    let mode = prop::sample::select(vec![
        SendMode::Standard,
        SendMode::Synchronous,
        SendMode::Buffered,
        SendMode::Ready,
    ]);
    prop::collection::vec((0u32..4, 0u32..4, 0i32..3, 0u64..64, mode), 0..60)
}

/// Every rank starts its receives and sends of all messages in one random interleaving, and waits. How
/// a receive is written is the caller's.
fn programs(messages: &[Random], seed: u64, mut receive: impl FnMut(&Random, u32) -> Op) -> Vec<Vec<Op>> {
    (0..4)
        .map(|rank| {
            let mut sends = messages.iter().filter(|m| m.0 == rank).peekable();
            let mut receives = messages.iter().filter(|m| m.1 == rank).peekable();
            let (mut program, mut request) = (vec![], 0);
            while sends.peek().is_some() || receives.peek().is_some() {
                let send = splitmix(seed ^ u64::from(request)) % 2 == 0;
                let op = match (send, sends.peek(), receives.peek()) {
                    (true, Some(_), _) | (_, _, None) => {
                        let m = sends.next().unwrap();
                        in_mode(m.4, isend(m.1, m.2, m.3, request))
                    }
                    _ => receive(receives.next().unwrap(), request),
                };
                program.push(op);
                request += 1;
            }
            if seed % 2 == 0 {
                program.push(waitall(0..request));
            } else {
                program.extend((0..request).map(wait));
            }
            program
        })
        .collect()
}

proptest! {
    /// Catches overtaking: buffers fit their messages exactly, and messages of one source and tag grow
    /// or shrink at random, so a swap of two of different sizes is a truncation. Catches lost messages
    /// too, with every mode, self-sends, and processes that are saved and loaded all the time.
    #[test]
    fn messages_of_one_source_and_tag_are_received_in_order(
        messages in random_messages(), seed in any::<u64>(), protocol in protocols(),
    ) {
        let named = |m: &Random, request| irecv(Some(m.0), Some(m.2), m.3, request);
        let network = Network::new(&protocol, Delays::Random(seed)).reloading(true);
        network.run(programs(&messages, seed, named)).unwrap().assert_clean();
    }

    /// Catches wildcards that do not stick to the recording: again buffers fit exactly.
    #[test]
    fn recorded_wildcards_receive_what_was_recorded(
        messages in random_messages(), seed in any::<u64>(), protocol in protocols(),
    ) {
        let any = |m: &Random, request| recorded((m.0, m.2), irecv(None, None, m.3, request));
        let network = Network::new(&protocol, Delays::Random(seed));
        network.run(programs(&messages, seed, any)).unwrap().assert_clean();
    }

    /// Free wildcards take whatever comes: all messages are received all the same.
    #[test]
    fn free_wildcards_receive_every_message(
        messages in random_messages(), seed in any::<u64>(), protocol in protocols(),
    ) {
        let protocol = Protocol { wildcards: Wildcards::Free, ..protocol };
        let any = |m: &Random, request| recorded((m.0, m.2), irecv(None, None, 64, request));
        let network = Network::new(&protocol, Delays::Random(seed));
        network.run(programs(&messages, seed, any)).unwrap().assert_clean();
    }

    /// Catches collectives and the program's messages that match each other: the allreduces' numbers are
    /// tags of the program too, and its receives take anything.
    #[test]
    fn messages_and_collectives_keep_apart(
        messages in random_messages(), seed in any::<u64>(), protocol in protocols(),
    ) {
        let protocol = Protocol { wildcards: Wildcards::Free, ..protocol };
        let any = |_: &Random, request| irecv(None, None, 64, request);
        let bytes = Bytes::new(100);
        let sizes = CollectiveSizes { send: bytes, receive: bytes, element: 1, ..CollectiveSizes::default() };
        let (kind, comm, collectives) = (Collective::Allreduce, CommId::WORLD, 1000..1003);
        let mut programs = programs(&messages, seed, any);
        for program in &mut programs {
            let starts = collectives.clone().map(|request| Op::Collective {
                kind,
                comm,
                root: None,
                sizes: sizes.clone(),
                buffers: Default::default(),
                request: Some(RequestId(request)),
            });
            program.splice(0..0, starts);
            program.push(waitall(collectives.clone()));
        }
        Network::new(&protocol, Delays::Random(seed)).run(programs).unwrap().assert_clean();
    }

    /// Catches a probe that takes its message, that goes by another one, or that is not woken: a receiver
    /// probes for each message before it receives it, in an order of its own where tags differ.
    #[test]
    fn a_probe_finds_its_message_and_leaves_it(
        tags in prop::collection::vec((0i32..3, 0u64..64), 1..20), seed in any::<u64>(),
        protocol in protocols(),
    ) {
        let sends = tags.iter().zip(0..).map(|((tag, bytes), request)| isend(1, *tag, *bytes, request));
        let sender = sends.chain([waitall(0..tags.len() as u32)]).collect();
        let mut order = tags.clone();
        order.sort_by_key(|(tag, _)| *tag);
        let receives = order
            .iter()
            .flat_map(|(tag, bytes)| [probe(0, *tag), irecv(Some(0), Some(*tag), *bytes, 0), wait(0)]);
        let network = Network::new(&protocol, Delays::Random(seed)).reloading(true);
        network.run(vec![sender, receives.collect()]).unwrap().assert_clean();
    }

    /// Catches state that is not saved: a process that is saved and loaded before every event posts the
    /// same messages at the same times.
    #[test]
    fn a_saved_process_goes_on_as_if_it_had_not_been(
        messages in random_messages(), seed in any::<u64>(), protocol in protocols(),
    ) {
        let (matching_entry, send_call) = (Span::from_ps(10), Span::from_ps(3));
        let protocol = Protocol { matching_entry, send_call, ..protocol };
        let named = |m: &Random, request| irecv(Some(m.0), Some(m.2), m.3, request);
        let outcome = |reload| {
            let programs = programs(&messages, seed, named);
            let network = Network::new(&protocol, Delays::Random(seed)).reloading(reload);
            let outcome = network.run(programs).unwrap();
            let posted: Vec<_> = outcome
                .messages
                .iter()
                .map(|(from, to, envelope, wire)| (*from, *to, envelope.kind(), *wire))
                .collect();
            (posted, outcome.spent, outcome.end)
        };
        prop_assert_eq!(outcome(false), outcome(true));
    }

    /// Waitany one by one over random arrivals: each request is waited for exactly once.
    #[test]
    fn waitany_gets_each_request_once(
        sizes in prop::collection::vec(0u64..64, 1..10), seed in any::<u64>(), free in any::<bool>(),
        protocol in protocols(),
    ) {
        let wildcards = if free { Wildcards::Free } else { Wildcards::Recorded };
        let protocol = Protocol { wildcards, ..protocol };
        let count = sizes.len() as u32;
        let mut receiver: Vec<Op> = (0..count)
            .map(|i| irecv(Some(i + 1), Some(0), 64, i)).collect();
        let mut left: Vec<RequestId> = (0..count).map(RequestId).collect();
        while !left.is_empty() {
            let completed = (splitmix(seed ^ left.len() as u64) % left.len() as u64) as u32;
            receiver.push(Op::Waitany { requests: left.clone(), completed });
            left.remove(completed as usize);
        }
        let senders = sizes.iter().map(|bytes| vec![isend(0, 0, *bytes, 0), wait(0)]);
        let programs = std::iter::once(receiver).chain(senders).collect();
        Network::new(&protocol, Delays::Random(seed)).reloading(true).run(programs).unwrap().assert_clean();
    }
}

/// Catches a free waitany that still waits for the recorded request.
#[test]
fn a_free_waitany_goes_on_with_the_first() {
    let receiver = vec![
        irecv(Some(1), Some(0), 8, 0),
        irecv(Some(2), Some(0), 8, 1),
        Op::Waitany { requests: vec![RequestId(0), RequestId(1)], completed: 0 },
        isend(1, 1, 8, 2),
        waitall([1, 2]),
    ];
    // Rank 1 sends only after it has heard from rank 0.
    let first = vec![irecv(Some(0), Some(1), 8, 0), wait(0), isend(0, 0, 8, 0), wait(0)];
    let second = vec![isend(0, 0, 8, 0), wait(0)];
    let programs = vec![receiver, first, second];
    let free = Protocol { wildcards: Wildcards::Free, ..Protocol::zero() };
    go(programs.clone(), &free).assert_clean();
    assert_eq!(go(programs, &Protocol::zero()).blocked.len(), 2);
}

#[test]
fn a_probe_for_what_nobody_sends_is_told() {
    let sender = vec![isend(1, 2, 8, 0), wait(0)];
    let outcome = go(vec![sender, vec![probe(0, 1)]], &Protocol::zero());
    let told = outcome.blocked[0].to_string();
    assert_eq!(
        told,
        "rank 1 waits in probe for a message from rank 0 (tag 1, communicator 0): there is none"
    );
}

#[test]
fn two_blocking_long_sends_report_who_waits_for_what() {
    let program =
        |peer: u32| vec![isend(peer, 7, 4096, 0), wait(0), irecv(Some(peer), Some(7), 4096, 0), wait(0)];
    let protocol = Protocol { eager_limit: Bytes::new(32), ..Protocol::zero() };
    let outcome = go(vec![program(1), program(0)], &protocol);
    let report: Vec<String> = outcome.blocked.iter().map(ToString::to_string).collect();
    assert_eq!(
        report,
        [
            "rank 0 waits in wait for a send of 4K to rank 1 (tag 7, communicator 0): no receive has matched",
            "rank 1 waits in wait for a send of 4K to rank 0 (tag 7, communicator 0): no receive has matched",
        ]
    );
    assert_eq!(outcome.blocked[0].pending[0].state, PendingState::SendUnmatched);
    // The same program is right where both are eager.
    go(vec![program(1), program(0)], &Protocol::zero()).assert_clean();
}

#[test]
fn a_member_that_stays_away_from_a_collective_is_found() {
    let barrier = Op::Collective {
        kind: Collective::Barrier,
        comm: CommId::WORLD,
        root: None,
        sizes: CollectiveSizes::default(),
        request: None,
        buffers: Default::default(),
    };
    let outcome = go(vec![vec![barrier.clone()], vec![barrier], vec![]], &Protocol::zero());
    let report = outcome.blocked[1].to_string();
    assert_eq!(
        report,
        "rank 1 waits in barrier: barrier number 0 of communicator 0 by dissemination, round 1 \
         for a receive of 0 from rank 2: no message has matched"
    );
}

#[test]
fn a_rank_may_send_to_itself() {
    let protocol = Protocol { eager_limit: Bytes::new(32), ..Protocol::zero() };
    for (bytes, mode) in [(8, SendMode::Standard), (4096, SendMode::Standard), (8, SendMode::Synchronous)] {
        let send = in_mode(mode, isend(0, 1, bytes, 0));
        let receive = irecv(None, None, bytes, 1);
        for program in [[send.clone(), receive.clone()], [receive, send.clone()]] {
            let program = [program.to_vec(), vec![waitall([0, 1])]].concat();
            let outcome = go(vec![program], &protocol);
            outcome.assert_clean();
            assert!(outcome.messages.is_empty());
        }
        // A blocking one that nothing has copied waits for ever for its receive.
        let blocked = !go(vec![vec![send, wait(0)]], &protocol).blocked.is_empty();
        assert_eq!(blocked, bytes > 32 || mode == SendMode::Synchronous);
    }
}

/// Catches a test for a message that costs what a probe does, which polls once more.
#[test]
fn a_test_that_finds_a_message_polls_once() {
    let (wait_call, wait_costs) = (Span::from_ps(100), WaitCosts::Polls);
    let protocol = Protocol { wait_call, wait_costs, ..Protocol::zero() };
    let spent = |tested| {
        let Op::Probe { from, tag, comm, .. } = probe(0, 1) else { unreachable!("a probe") };
        let receiver = vec![Op::Probe { from, tag, comm, tested }, irecv(Some(0), Some(1), 8, 0), wait(0)];
        go(vec![vec![isend(1, 1, 8, 0), wait(0)], receiver], &protocol).spent[1]
    };
    assert_eq!(spent(false) - spent(true), 100);
}

/// Catches a call, or a look through the queues, for a message that the library keeps from its interface.
#[test]
fn a_message_to_itself_costs_nothing_where_the_interface_has_no_part_in_it() {
    let cost = Span::from_ps(100);
    let protocol = Protocol { send_call: cost, receive_call: cost, matching_entry: cost, ..Protocol::zero() };
    let spent = |wait_costs| {
        let (send, receive) = (isend(0, 1, 8, 0), irecv(Some(0), Some(1), 8, 1));
        let of = |first: &Op, second: &Op| {
            let program = vec![first.clone(), second.clone(), waitall([0, 1])];
            go(vec![program], &Protocol { wait_costs, ..protocol.clone() }).spent[0]
        };
        [of(&send, &receive), of(&receive, &send)]
    };
    assert_eq!(spent(WaitCosts::Polls), [0; 2]);
    assert_eq!(spent(WaitCosts::Call), [300; 2]);
}

#[test]
fn a_synchronous_send_waits_for_its_receive_and_a_buffered_one_for_nothing() {
    let protocol = Protocol { eager_limit: Bytes::new(32), ..Protocol::zero() };
    let alone =
        |bytes, mode| go(vec![vec![in_mode(mode, isend(1, 0, bytes, 0)), wait(0)], vec![]], &protocol);
    assert_eq!(alone(8, SendMode::Synchronous).blocked.len(), 1);
    assert!(alone(8, SendMode::Standard).blocked.is_empty());
    let buffered = alone(4096, SendMode::Buffered);
    assert!(buffered.blocked.is_empty());
    assert_eq!((buffered.leftovers[0].sends, buffered.leftovers[1].unexpected), (1, 1));
}

/// Catches a receipt that is not sent, or sent for what nobody asks for, and a send that does not wait for
/// it.
#[test]
fn a_synchronous_send_is_over_with_its_receipt() {
    let protocol = Protocol {
        eager_limit: Bytes::new(32),
        eager_header: Bytes::new(8),
        control_bytes: Bytes::new(24),
        synchronous_sends: SynchronousSends::Receipt,
        ..Protocol::zero()
    };
    let alone = go(vec![vec![in_mode(SendMode::Synchronous, isend(1, 0, 8, 0)), wait(0)], vec![]], &protocol);
    let told = alone.blocked[0].to_string();
    assert!(
        told.ends_with("a synchronous send of 8 to rank 1 (tag 0, communicator 0): no receive has matched"),
        "{told}"
    );
    let exchange = |bytes, mode| {
        let sender = vec![in_mode(mode, isend(1, 0, bytes, 0)), wait(0)];
        let outcome = go(vec![sender, vec![irecv(Some(0), Some(0), bytes, 0), wait(0)]], &protocol);
        outcome.assert_clean();
        let told = |(from, _, envelope, wire): &(RankId, RankId, Envelope, Bytes)| {
            (from.0, envelope.kind(), wire.get())
        };
        outcome.messages.iter().map(told).collect::<Vec<_>>()
    };
    let receipt = (1, EnvelopeKind::Receipt, 8);
    assert_eq!(exchange(32, SendMode::Synchronous), [(0, EnvelopeKind::Eager, 40), receipt]);
    assert_eq!(exchange(32, SendMode::Standard), [(0, EnvelopeKind::Eager, 40)]);
    let announced = [
        (0, EnvelopeKind::RequestToSend, 24),
        (1, EnvelopeKind::ClearToSend, 24),
        (0, EnvelopeKind::Data, 33),
        receipt,
    ];
    assert_eq!(exchange(33, SendMode::Synchronous), announced);
    assert_eq!(exchange(33, SendMode::Standard), announced[..3]);
}

/// Fig. 11 of TR-488: request to send, clear to send, data, acknowledgement.
#[test]
fn a_rendezvous_exchanges_its_messages_in_order() {
    let protocol = Protocol {
        eager_limit: Bytes::new(32),
        rendezvous_ack: true,
        eager_header: Bytes::new(8),
        control_bytes: Bytes::new(24),
        data_header: Bytes::new(1),
        ..Protocol::zero()
    };
    let exchange = |bytes| {
        let sender = vec![isend(1, 0, bytes, 0), wait(0)];
        let outcome = go(vec![sender, vec![irecv(Some(0), Some(0), bytes, 0), wait(0)]], &protocol);
        outcome.assert_clean();
        outcome
            .messages
            .iter()
            .map(|(from, _, envelope, wire)| (from.0, envelope.kind(), wire.get()))
            .collect::<Vec<_>>()
    };
    assert_eq!(exchange(32), [(0, EnvelopeKind::Eager, 40)]);
    assert_eq!(
        exchange(33),
        [
            (0, EnvelopeKind::RequestToSend, 24),
            (1, EnvelopeKind::ClearToSend, 24),
            (0, EnvelopeKind::Data, 34),
            (1, EnvelopeKind::Ack, 24),
        ]
    );
}

/// Catches a cost that is paid twice or not at all: with distinct powers of ten the sum tells which.
#[test]
fn every_cost_is_paid_where_it_belongs() {
    let ps = Span::from_ps;
    let gigabyte = Some(BitRate::from_gigabits(8)); // 1000 ps per byte
    let protocol = Protocol {
        send_call: ps(1),
        receive_call: ps(10),
        wait_call: ps(100),
        receive_message: ps(1_000_000),
        control_send: ps(10_000_000),
        control_receive: ps(100_000_000),
        data_send: ps(1_000_000_000),
        matching_entry: ps(10_000_000_000),
        eager_limit: Bytes::new(9),
        send_copy_rate: gigabyte,
        receive_copy_rate: gigabyte,
        ..Protocol::zero()
    };
    let spent = |bytes| {
        let sender = vec![isend(1, 0, bytes, 0), wait(0)];
        go(vec![sender, vec![irecv(Some(0), Some(0), bytes, 0), wait(0)]], &protocol).spent
    };
    // One entry is looked at on arrival: the receive was posted first.
    assert_eq!(spent(9), [9_101, 10_001_009_110]);
    assert_eq!(spent(10), [1_110_000_101, 10_111_000_110]);
}

#[test]
fn a_reduction_and_its_copies_are_paid() {
    let gigabyte = Some(BitRate::from_gigabits(8));
    let protocol = Protocol {
        reduction_rate: gigabyte,
        memory_copy_rate: gigabyte,
        collective_call: Span::from_ps(7),
        ..Protocol::zero()
    };
    let (kind, comm) = (Collective::Allreduce, CommId::WORLD);
    let bytes = Bytes::new(16);
    let sizes = CollectiveSizes { send: bytes, receive: bytes, element: 8, ..CollectiveSizes::default() };
    let program =
        vec![Op::Collective { kind, comm, root: None, sizes, request: None, buffers: Default::default() }];
    // Recursive doubling on four: a copy before, two reductions, a copy after.
    assert_eq!(go(vec![program; 4], &protocol).spent, [7 + 4 * 16_000; 4]);
}
