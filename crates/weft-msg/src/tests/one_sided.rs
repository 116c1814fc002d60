//! One-sided operations: complete when their synchronization says so, natively and emulated.

use super::collectives::protocols;
use super::network::{Delays, Network, Observer, Outcome};
use crate::{Access, ActiveMessages, Envelope, EnvelopeKind, MsgError, OneSidedPath, Protocol, WaitCosts};
use proptest::prelude::*;
use std::collections::BTreeMap;
use weft_trace::op::{CommId, OneSided, Op, RequestId, WindowId, WindowSync};
use weft_units::{BitRate, Bytes, RankId, Span};

const WINDOW: WindowId = WindowId(3);

fn window() -> Op {
    Op::Window { window: WINDOW, comm: CommId::WORLD, bytes: Bytes::new(1 << 20), buffer: None }
}

fn access(kind: OneSided, target: u32, bytes: u64, request: Option<u32>) -> Op {
    let request = request.map(RequestId);
    Op::OneSided {
        kind,
        window: WINDOW,
        target: RankId(target),
        bytes: Bytes::new(bytes),
        request,
        buffer: None,
    }
}

fn sync(kind: WindowSync, target: Option<u32>) -> Op {
    Op::Sync { kind, window: WINDOW, target: target.map(RankId) }
}

fn go(programs: Vec<Vec<Op>>, protocol: &Protocol) -> Outcome {
    let outcome = Network::new(protocol, Delays::Fixed(1000)).run(programs).unwrap();
    outcome.assert_clean();
    outcome
}

fn both(path: OneSidedPath) -> Protocol {
    Protocol { one_sided: path, atomics: path, ..Protocol::zero() }
}

/// Any protocol, with put and get, and operations that reduce, each native or emulated.
fn protocols_by_either_path() -> impl Strategy<Value = Protocol> {
    let path = || prop::sample::select(vec![OneSidedPath::Native, OneSidedPath::Emulated]);
    (path(), path(), protocols()).prop_map(|(one_sided, atomics, protocol)| Protocol {
        one_sided,
        atomics,
        ..protocol
    })
}

const KINDS: [OneSided; 6] = [
    OneSided::Put,
    OneSided::Get,
    OneSided::Accumulate,
    OneSided::GetAccumulate,
    OneSided::FetchAndOp,
    OneSided::CompareAndSwap,
];

fn is_of_a_collective(envelope: &Envelope) -> bool {
    envelope.matching().is_some_and(|matching| matching.context.is_untagged())
}

/// Counts the operations under way, and looks at them whenever anybody is told that a fence is over: that
/// is when the first token of its barrier is posted by a rank with operations under way.
#[derive(Default)]
struct Fences {
    under_way: Vec<i64>,
    begun: usize,
}

impl Observer for Fences {
    fn posted(&mut self, from: RankId, _: RankId, envelope: &Envelope) {
        match envelope.kind() {
            EnvelopeKind::Access(_) | EnvelopeKind::Announce(_) => {
                self.under_way[from.index()] += 1;
                self.begun += 1;
            }
            EnvelopeKind::Eager | EnvelopeKind::RequestToSend => {
                assert_eq!(self.under_way[from.index()], 0, "rank {from} enters the barrier too early");
            }
            _ => {}
        }
    }

    fn delivered(&mut self, to: RankId, envelope: &Envelope) {
        if matches!(envelope.kind(), EnvelopeKind::Answer(_)) {
            self.under_way[to.index()] -= 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Catches operations that are lost or answered twice, and a fence that ends before the operations of
    /// all ranks are complete: with random loads, sizes about the eager limit, processes that are saved
    /// and loaded all the time, and any rendezvous.
    #[test]
    fn a_fence_ends_after_all_operations_of_all_ranks(
        epochs in prop::collection::vec(
            prop::collection::vec((0u32..4, 0u32..4, 0usize..6, 0u64..40), 0..20), 1..4),
        seed in any::<u64>(), protocol in protocols_by_either_path(),
    ) {
        let mut programs = vec![vec![window()]; 4];
        let mut remote = 0;
        for epoch in &epochs {
            for (origin, target, kind, bytes) in epoch {
                programs[*origin as usize].push(access(KINDS[*kind], *target, *bytes, None));
                remote += usize::from(origin != target);
            }
            programs.iter_mut().for_each(|program| program.push(sync(WindowSync::Fence, None)));
        }
        programs.iter_mut().for_each(|program| program.push(sync(WindowSync::Free, None)));
        let mut fences = Fences { under_way: vec![0; 4], begun: 0 };
        let network = Network::new(&protocol, Delays::Random(seed)).reloading(true);
        let outcome = network.observe(programs, &mut fences).unwrap();
        outcome.assert_clean();
        prop_assert_eq!(fences.begun, remote);
        prop_assert_eq!(fences.under_way, vec![0; 4]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Catches active messages that are lost, answered twice or to another, and locks and epochs that do not
    /// end: operations between locks of one and of all, and posts around a ring, with random loads, processes
    /// that are saved and loaded all the time, and any rendezvous.
    #[test]
    fn locks_and_operations_by_active_messages_end(
        epochs in prop::collection::vec(
            (any::<bool>(), prop::collection::vec(
                (0u32..4, 0usize..6, prop_oneof![0u64..40, 16_000u64..17_000]), 0..6)), 1..4),
        seed in any::<u64>(), protocol in protocols_by_either_path(),
    ) {
        use WindowSync::{Complete, Flush, Free, Lock, LockAll, Post, Start, Unlock, UnlockAll, Wait};
        let (atomics, active_messages) = (OneSidedPath::Emulated, ActiveMessages::Mpich5);
        let protocol = Protocol { atomics, active_messages, ..protocol };
        let mut program = vec![window()];
        for (all, accesses) in &epochs {
            if *all {
                program.push(sync(LockAll, None));
            }
            for (target, kind, bytes) in accesses {
                if !all {
                    program.push(sync(Lock, Some(*target)));
                }
                program.push(access(KINDS[*kind], *target, *bytes, None));
                program.push(sync(if *all { Flush } else { Unlock }, Some(*target)));
            }
            if *all {
                program.push(sync(UnlockAll, None));
            }
        }
        let ring = |rank: u32| {
            let (left, right) = ((rank + 3) % 4, (rank + 1) % 4);
            let begin = [sync(Post, Some(left)), sync(Start, Some(right))];
            let epoch = [access(OneSided::Accumulate, right, 33, None)];
            let end = [sync(Complete, None), sync(Wait, None), sync(Free, None)];
            [program.clone(), begin.to_vec(), epoch.to_vec(), end.to_vec()].concat()
        };
        let network = Network::new(&protocol, Delays::Random(seed)).reloading(true);
        network.run((0..4).map(ring).collect()).unwrap().assert_clean();
    }
}

/// The messages of MPICH 5.0.2 between two ranks, seen in runs of `weft run`.
#[test]
fn active_messages_are_those_of_mpich() {
    use WindowSync::{Complete, Flush, Lock, Post, Start, Unlock, Wait};
    let protocol = Protocol { active_messages: ActiveMessages::Mpich5, ..both(OneSidedPath::Emulated) };
    let protocol = Protocol { one_sided: OneSidedPath::Native, eager_header: Bytes::ZERO, ..protocol };
    let exchanged = |origin: Vec<Op>, target: Vec<Op>| {
        let programs = [origin, target].map(|ops| [vec![window()], ops].concat());
        let outcome = go(programs.to_vec(), &protocol);
        // The first messages are the barrier in which the window is made.
        let sizes = outcome.messages.iter().skip(2).map(|(from, _, _, wire)| (from.0, wire.get()));
        sizes.collect::<Vec<_>>()
    };
    let locked = |kind, bytes| {
        vec![sync(Lock, Some(1)), access(kind, 1, bytes, None), sync(Flush, Some(1)), sync(Unlock, Some(1))]
    };
    let ask = [(0, 40), (1, 40)];
    let with = |operation: [(u32, u64); 2]| [ask, operation, ask].concat();
    assert_eq!(exchanged(locked(OneSided::Accumulate, 64), vec![]), with([(0, 160), (1, 32)]));
    assert_eq!(exchanged(locked(OneSided::FetchAndOp, 8), vec![]), with([(0, 104), (1, 40)]));
    assert_eq!(exchanged(locked(OneSided::Put, 64), vec![])[..2], ask);
    // The data of a longer one is read: a message of 16 KiB, header included, is the longest with its own.
    assert_eq!(exchanged(locked(OneSided::Accumulate, 16_288), vec![]), with([(0, 16_384), (1, 32)]));
    let read = exchanged(locked(OneSided::Accumulate, 16_289), vec![]);
    assert_eq!(read[2..read.len() - 2], [(0, 144), (1, 0), (0, 16_289), (1, 32), (1, 32)]);
    let read = exchanged(locked(OneSided::GetAccumulate, 20_000), vec![]);
    let there = [(0, 144), (1, 0), (0, 20_000), (1, 32)];
    assert_eq!(read[2..read.len() - 2], [there, [(1, 80), (0, 0), (1, 20_000), (0, 32)]].concat());
    let epoch = exchanged(
        vec![sync(Start, Some(1)), sync(Complete, None)],
        vec![sync(Post, Some(0)), sync(Wait, None)],
    );
    assert_eq!(epoch, [(1, 40), (0, 40)]);
}

/// Catches a send that costs its call twice, once for the operation and once for the active message that it
/// is; and polls of a synchronization that lie before its wait, where they cost nothing. A call costs 100, a
/// poll 1.
#[test]
fn active_messages_cost_one_call_each() {
    use WindowSync::{Complete, Fence, Flush, Post, Start, Wait};
    let spent = |protocol: &Protocol, origin: Vec<Op>, target: Vec<Op>| {
        let of = |origin: Vec<Op>, target: Vec<Op>| {
            let programs = [origin, target].map(|ops| [vec![window()], ops].concat());
            go(programs.to_vec(), protocol).spent
        };
        let (all, none) = (of(origin, target), of(vec![], vec![]));
        [all[0] - none[0], all[1] - none[1]]
    };
    let protocol = Protocol {
        one_sided: OneSidedPath::Native,
        active_messages: ActiveMessages::Mpich5,
        send_call: Span::from_ps(100),
        wait_call: Span::from_ps(1),
        wait_costs: WaitCosts::Polls,
        ..both(OneSidedPath::Emulated)
    };
    let epoch = |origin: Vec<Op>| {
        let origin = [vec![sync(Start, Some(1))], origin, vec![sync(Complete, None)]].concat();
        spent(&protocol, origin, vec![sync(Post, Some(0)), sync(Wait, None)])
    };
    // The post; the complete behind two polls.
    assert_eq!(epoch(vec![]), [2 + 100, 100]);
    assert_eq!(epoch(vec![access(OneSided::Put, 1, 8, None)]), [100 + 2 + 100, 100]);
    let flushed = |kind| spent(&protocol, vec![access(kind, 1, 8, None), sync(Flush, Some(1))], vec![]);
    assert_eq!(flushed(OneSided::Put), [100 + 2, 0]);
    // Its answer is a send, and ends the second loop of the flush.
    assert_eq!(flushed(OneSided::FetchAndOp), [100 + 1, 100]);
    // Beside the barrier.
    let barrier = spent(
        &Protocol { wait_call: Span::ZERO, ..protocol.clone() },
        vec![sync(Fence, None)],
        vec![sync(Fence, None)],
    );
    let fence = spent(&protocol, vec![sync(Fence, None)], vec![sync(Fence, None)]);
    assert_eq!(fence.map(|ps| ps % 100), barrier.map(|ps| ps % 100 + 2));
}

/// Catches a processor of the target that has a part in native operations, and one that has none in
/// emulated ones: here it would have to notice while it computes.
#[test]
fn natively_the_targets_processor_spends_nothing() {
    for kind in KINDS {
        for (path, expected) in [(OneSidedPath::Native, 0), (OneSidedPath::Emulated, 7 + 5)] {
            let protocol = Protocol {
                receive_message: Span::from_ps(7),
                control_receive: Span::from_ps(7),
                control_send: Span::from_ps(5),
                ..both(path)
            };
            let program = |ops: Vec<Op>| [vec![window()], ops].concat();
            let idle = go(vec![program(vec![]), program(vec![])], &protocol).spent[1];
            let ops = vec![access(kind, 1, 8, None), sync(WindowSync::Flush, Some(1))];
            let outcome = go(vec![program(ops), program(vec![])], &protocol);
            assert_eq!(outcome.spent[1] - idle, expected, "{kind:?} {path:?}");
        }
    }
}

/// A put natively: one way there, one way back. Emulated and long: announced, admitted, sent, answered.
#[test]
fn operations_take_as_many_messages_as_their_protocol() {
    let kinds = |protocol: &Protocol, kind| {
        let ops = vec![window(), access(kind, 1, 100, None), sync(WindowSync::FlushAll, None)];
        let outcome = go(vec![ops, vec![window()]], protocol);
        let ours = outcome.messages.iter().filter(|(.., envelope, _)| !is_of_a_collective(envelope));
        ours.map(|(_, _, envelope, wire)| (envelope.kind(), wire.get())).collect::<Vec<_>>()
    };
    let headers = |protocol: Protocol| Protocol {
        control_bytes: Bytes::new(56),
        eager_header: Bytes::new(24),
        eager_limit: Bytes::new(32),
        ..protocol
    };
    let native = headers(both(OneSidedPath::Native));
    let (put, get) = (Access::Put, Access::Get);
    use EnvelopeKind as E;
    assert_eq!(kinds(&native, OneSided::Put), [(E::Access(put), 100), (E::Answer(put), 0)]);
    assert_eq!(kinds(&native, OneSided::Get), [(E::Access(get), 56), (E::Answer(get), 100)]);
    let emulated = headers(both(OneSidedPath::Emulated));
    assert_eq!(
        kinds(&emulated, OneSided::Put),
        [(E::Announce(put), 56), (E::Admit, 56), (E::Data, 100), (E::Answer(put), 56)]
    );
    assert_eq!(kinds(&emulated, OneSided::Get), [(E::Access(get), 56), (E::Answer(get), 100)]);
    let eager = Protocol { eager_limit: Bytes::new(100), ..emulated };
    assert_eq!(kinds(&eager, OneSided::Put), [(E::Access(put), 124), (E::Answer(put), 56)]);
    assert_eq!(kinds(&eager, OneSided::Get), [(E::Access(get), 56), (E::Answer(get), 124)]);
}

/// Catches a flush that waits for other targets, and a request that is complete too early.
#[test]
fn flush_and_requests_wait_for_their_own_operations_only() {
    // The second target notices nothing for long: it computes, and has a processor of its own to do so.
    let slow = Protocol {
        receive_copy_rate: Some(BitRate::from_bits_per_second(8_000)),
        ..both(OneSidedPath::Emulated)
    };
    let ops = |last| {
        vec![window(), access(OneSided::Put, 2, 1000, None), access(OneSided::Put, 1, 0, Some(0)), last]
    };
    for (wait, puts) in [
        (sync(WindowSync::Flush, Some(1)), 1),
        (sync(WindowSync::Unlock, Some(2)), 2),
        (sync(WindowSync::FlushAll, None), 2),
        (Op::Wait { request: RequestId(0) }, 1),
    ] {
        let mut order = Answers::default();
        let mut program = ops(wait.clone());
        if !matches!(wait, Op::Wait { .. }) {
            program.push(Op::Wait { request: RequestId(0) });
        }
        program.push(access(OneSided::Get, 1, 9, None));
        let outcome = Network::new(&slow, Delays::Fixed(1000))
            .observe(vec![program, vec![window()], vec![window()]], &mut order);
        outcome.unwrap().assert_clean();
        assert_eq!(order.puts_before_get, puts, "{wait:?}");
    }
}

/// Counts the puts that are answered, and those that were answered before the get was posted.
#[derive(Default)]
struct Answers {
    puts: u32,
    puts_before_get: u32,
}

impl Observer for Answers {
    fn posted(&mut self, _: RankId, _: RankId, envelope: &Envelope) {
        if envelope.kind() == EnvelopeKind::Access(Access::Get) {
            self.puts_before_get = self.puts;
        }
    }

    fn delivered(&mut self, _: RankId, envelope: &Envelope) {
        self.puts += u32::from(envelope.kind() == EnvelopeKind::Answer(Access::Put));
    }
}

#[test]
fn windows_must_exist_and_what_is_missing_is_named() {
    let error = |ops: Vec<Op>| -> MsgError {
        let programs = vec![ops, vec![window()]];
        Network::new(&Protocol::zero(), Delays::Fixed(1)).run(programs).unwrap_err()
    };
    let text = |ops| error(ops).to_string();
    assert!(text(vec![sync(WindowSync::Fence, None)]).contains("rank 0 has no window 3"));
    assert!(text(vec![window(), window()]).contains("window 3 cannot be created"));
    assert!(text(vec![window(), access(OneSided::Put, 2, 8, None)]).contains("target 2 does not exist"));
    assert!(text(vec![window(), access(OneSided::Put, 1, u64::MAX, None)]).contains("at most 2^62"));
    for kind in [WindowSync::Post, WindowSync::Start] {
        assert!(text(vec![window(), sync(kind, None)]).contains("group"));
        assert!(text(vec![window(), sync(kind, Some(9))]).contains("target 9 does not exist"));
    }
}

/// Catches a report that does not say which synchronization waits for which target.
#[test]
fn a_rank_that_waits_in_a_fence_says_for_what() {
    // The target never enters the barrier of the window's creation a second time.
    let programs = vec![vec![window(), sync(WindowSync::Fence, None)], vec![window()]];
    let outcome = Network::new(&both(OneSidedPath::Native), Delays::Fixed(1)).run(programs).unwrap();
    assert_eq!(outcome.blocked.len(), 1);
    assert!(outcome.blocked[0].to_string().contains("rank 0 waits in barrier"));
}

/// Looks at the order of a post, the accesses that it allows, the complete that ends them, and the wait.
#[derive(Default)]
struct Epochs {
    /// By who lets in and who is let in.
    posted: BTreeMap<(RankId, RankId), u32>,
    /// By who was let in and whom it accessed.
    completed: BTreeMap<(RankId, RankId), u32>,
    /// By origin: without an answer.
    under_way: BTreeMap<RankId, i64>,
}

impl Observer for Epochs {
    fn posted(&mut self, from: RankId, to: RankId, envelope: &Envelope) {
        match envelope.kind() {
            EnvelopeKind::Posted => *self.posted.entry((from, to)).or_default() += 1,
            EnvelopeKind::Access(_) | EnvelopeKind::Announce(_) => {
                let epochs = self.completed.get(&(from, to)).copied().unwrap_or_default();
                assert_eq!(self.posted.get(&(to, from)), Some(&(epochs + 1)), "{from} accesses {to}");
                *self.under_way.entry(from).or_default() += 1;
            }
            EnvelopeKind::Completed => {
                assert!(
                    self.under_way.get(&from).is_none_or(|count| *count == 0),
                    "{from} completes too early"
                );
                *self.completed.entry((from, to)).or_default() += 1;
            }
            _ => {}
        }
    }

    fn delivered(&mut self, to: RankId, envelope: &Envelope) {
        if matches!(envelope.kind(), EnvelopeKind::Answer(_)) {
            *self.under_way.entry(to).or_default() -= 1;
        }
    }
}

proptest! {
    /// Catches an access before its target has posted, a complete before the accesses are answered, a wait
    /// that ends too early or never, and epochs of one window that are taken for each other: rank 0 exposes
    /// its window to ranks 1 and 2, which access it in several epochs, and each exposes its own to rank 0.
    #[test]
    fn groups_bound_their_accesses(
        epochs in 1usize..4,
        operations in prop::collection::vec((prop::sample::select(KINDS.to_vec()), 1u64..100_000), 0..4),
        path in prop::sample::select(vec![OneSidedPath::Native, OneSidedPath::Emulated]),
        seed in any::<u64>(),
    ) {
        use WindowSync::{Complete, Post, Start, Wait};
        let origin = || {
            let accesses = operations.iter().map(|(kind, bytes)| access(*kind, 0, *bytes, None));
            let mut ops = vec![sync(Post, Some(0)), sync(Start, Some(0))];
            ops.extend(accesses);
            ops.extend([sync(Complete, None), sync(Wait, None)]);
            ops
        };
        let target = [
            sync(Post, Some(1)),
            sync(Post, Some(2)),
            sync(Start, Some(2)),
            sync(Start, Some(1)),
            access(OneSided::Put, 1, 64, None),
            sync(Complete, None),
            sync(Wait, None),
        ];
        let mut programs = vec![vec![window()]; 3];
        for _ in 0..epochs {
            programs[0].extend(target.iter().cloned());
            programs[1].extend(origin());
            programs[2].extend(origin());
        }
        let mut seen = Epochs::default();
        let outcome = Network::new(&both(path), Delays::Random(seed)).observe(programs, &mut seen).unwrap();
        outcome.assert_clean();
        let all = |counts: &BTreeMap<_, u32>| counts.values().sum::<u32>() as usize;
        prop_assert_eq!((all(&seen.posted), all(&seen.completed)), (4 * epochs, 4 * epochs));
    }
}

/// Catches a start that does not wait for its post, a wait that does not wait for its complete, and reports
/// that do not say what is waited for.
#[test]
fn a_group_that_never_comes_is_waited_for() {
    let waits = |ops: Vec<Op>| {
        let programs = vec![ops, vec![window()]];
        let outcome = Network::new(&both(OneSidedPath::Native), Delays::Fixed(1)).run(programs).unwrap();
        outcome.blocked.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    assert!(waits(vec![window(), sync(WindowSync::Start, Some(1))]).contains("rank 0 waits in window start"));
    let exposed = vec![window(), sync(WindowSync::Post, Some(1)), sync(WindowSync::Wait, None)];
    assert!(waits(exposed).contains("rank 0 waits in window wait"));
}
