//! One-sided operations of recorded programs: by the target's interface, or by its processor.

use super::support::*;
use weft_msg::OneSidedPath;
use weft_trace::op::*;
use weft_units::{Bytes, RankId, Span};
use weft_workload::replay::ProgressRule;

const WINDOW: WindowId = WindowId(7);
const BUSY: u64 = 500;

fn access(kind: OneSided, target: u32, bytes: u64) -> Op {
    Op::OneSided {
        kind,
        window: WINDOW,
        target: RankId(target),
        bytes: Bytes::new(bytes),
        request: None,
        buffer: None,
    }
}

fn sync(kind: WindowSync) -> Op {
    Op::Sync { kind, window: WINDOW, target: None }
}

fn window() -> Op {
    Op::Window { window: WINDOW, comm: CommId::WORLD, bytes: Bytes::new(1 << 20), buffer: None }
}

fn setup(path: OneSidedPath, progress: ProgressRule) -> Setup {
    let mut setup = Setup::costly(progress);
    (setup.protocol.one_sided, setup.protocol.atomics) = (path, path);
    setup
}

/// When rank 0 has seen its operation complete on rank 1, which computes for long, and how long both
/// were in messaging.
fn flush(setup: &Setup, kind: OneSided, bytes: u64) -> (Span, Outcome) {
    let origin = vec![window(), access(kind, 1, bytes), sync(WindowSync::FlushAll)];
    let target = vec![window(), compute(BUSY), sync(WindowSync::FlushAll)];
    let outcome = setup.run(&[trace_of(&[origin, target])], None);
    outcome.assert_finished();
    (outcome.ranks[0].end - weft_units::Time::ZERO, outcome)
}

/// Catches an interface that waits for its rank, and a rank that works although it computes.
#[test]
fn who_computes_keeps_emulated_operations_waiting_but_not_native_ones() {
    let busy = Span::from_us(BUSY);
    for kind in [OneSided::Put, OneSided::Get, OneSided::Accumulate, OneSided::FetchAndOp] {
        for bytes in [8, 5_000] {
            let end = |path, progress| flush(&setup(path, progress), kind, bytes).0;
            let (native, emulated) = (OneSidedPath::Native, OneSidedPath::Emulated);
            assert!(end(native, ProgressRule::Call) < busy, "{kind:?} {bytes}");
            assert!(end(emulated, ProgressRule::Call) > busy, "{kind:?} {bytes}");
            assert!(end(emulated, ProgressRule::Background) < busy, "{kind:?} {bytes}");
        }
    }
}

/// A put within one packet: there by the line, back without data; both ends of the interface each time.
#[test]
fn a_native_put_is_the_sum_of_its_parts() {
    let setup = setup(OneSidedPath::Native, ProgressRule::Call);
    let without = setup.run(&[trace_of(&[vec![window()], vec![window(), compute(BUSY)]])], None);
    let (end, outcome) = flush(&setup, OneSided::Put, 200);
    let (protocol, simple) = (&setup.protocol, &setup.simple);
    let way = |bytes| {
        let line = setup.ideal.rate.map_or(Span::ZERO, |rate| rate.span(Bytes::new(bytes)));
        simple.send_message
            + simple.message_gap
            + line
            + setup.ideal.latency
            + simple.receive_packet
            + simple.receive_message
    };
    let put = protocol.send_call + protocol.data_send + way(200) + way(0) + protocol.control_receive;
    assert_eq!(end - (without.ranks[0].end - weft_units::Time::ZERO), put);
    // The target has spent what the creation of the window costs, and its own flush.
    assert_eq!(outcome.ranks[1].communication, without.ranks[1].communication + protocol.wait_call);
    assert_eq!((outcome.ranks[0].sent, outcome.ranks[1].received), (Bytes::new(200), Bytes::new(200)));
}

/// Catches state of windows that is lost when a run is saved, and results that depend on it.
#[test]
fn fences_come_out_the_same_after_every_resume() {
    let program = |rank: u32| {
        let mut ops = vec![window()];
        for epoch in 0..4u32 {
            for (kind, bytes) in [(OneSided::Put, 900), (OneSided::Get, 70), (OneSided::FetchAndOp, 8)] {
                ops.push(access(kind, (rank + epoch) % 5, bytes));
            }
            ops.extend([compute(u64::from(rank)), sync(WindowSync::Fence)]);
        }
        ops.push(sync(WindowSync::Free));
        ops
    };
    let trace = trace_of(&(0..5).map(program).collect::<Vec<_>>());
    for path in [OneSidedPath::Native, OneSidedPath::Emulated] {
        for progress in [ProgressRule::Call, ProgressRule::Background] {
            let run = |reload| {
                let outcome = setup(path, progress).run(std::slice::from_ref(&trace), reload);
                outcome.assert_finished();
                let sent: Bytes = outcome.ranks.iter().map(|rank| rank.sent).sum();
                let received: Bytes = outcome.ranks.iter().map(|rank| rank.received).sum();
                assert_eq!(sent, received);
                outcome.ranks
            };
            assert_eq!(run(None), run(Some(Span::from_us(3))), "{path:?} {progress:?}");
        }
    }
}
