//! The OSU benchmarks against what follows from the parameters.

use super::support::*;
use std::sync::Arc;
use weft_fabric::LineRate;
use weft_msg::OneSidedPath;
use weft_units::{BitRate, Bytes, LineCode, RankId, Span};
use weft_workload::osu::{Benchmark, Figures, Loop, Repetitions, Stopwatch, WINDOW};
use weft_workload::replay::{Generated, Operations, ProgressRule};

const REPETITIONS: Repetitions = Repetitions { warm_up: 2, iterations: 5, barrier: true, window: WINDOW };

/// The figures of a benchmark on a network. With `reload`, the run is saved and resumed once per such period.
fn run(setup: &Setup, program: Loop, reload: Option<Span>) -> Figures {
    let program = Arc::new(program);
    let outcome = setup.run_all(&[Operations::Generated(program.clone())], reload);
    outcome.assert_finished();
    let operations: u64 = outcome.ranks.iter().map(|rank| rank.operations).sum();
    assert_eq!(operations, Operations::Generated(program.clone() as Arc<dyn Generated>).count());
    let mut times = vec![Stopwatch::default(); program.ranks() as usize];
    outcome.clocks.iter().for_each(|reading| times[reading.rank.index()].read(reading.clock));
    program.figures(&times)
}

/// The figures of a benchmark with the usual repetitions.
fn figures(setup: &Setup, benchmark: Benchmark, ranks: u32, bytes: u64) -> Figures {
    run(setup, benchmark.program(ranks, Bytes::new(bytes), REPETITIONS), None)
}

/// Everything costs something; a message costs one rank the same whatever others do.
fn costly() -> Setup {
    let mut setup = Setup::costly(ProgressRule::Call);
    setup.protocol.eager_buffered = true;
    setup.protocol.matching_entry = Span::ZERO;
    setup
}

/// From the interface's taking of an eager message to its delivery.
fn through(setup: &Setup, bytes: u64) -> Span {
    let line = LineRate::new(BitRate::from_gigabits(16), LineCode::NONE).unwrap();
    let simple = &setup.simple;
    simple.send_message
        + simple.message_gap
        + line.span(setup.protocol.eager_header + Bytes::new(bytes))
        + setup.ideal.latency
        + simple.receive_packet
        + simple.receive_message
}

fn us(span: Span) -> f64 {
    span.as_ps() as f64 / 1e6
}

fn close(value: Option<f64>, expected: f64) {
    let value = value.unwrap();
    assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} is not {expected}");
}

#[test]
fn latency_is_one_way_of_a_ping_pong() {
    let setup = costly();
    let one_way = setup.protocol.send_call + through(&setup, 8) + setup.protocol.receive_message;
    let measured = figures(&setup, Benchmark::Latency, 2, 8);
    close(measured.latency_us, us(one_way));
    assert_eq!((measured.bandwidth_gbps, measured.latency_min_us), (None, None));
}

/// One way is the receiver's time per message, not the time on the way: here the receiver is the
/// slower one, and without its costs the sender.
#[test]
fn one_way_is_the_interval_of_the_slower_side() {
    let mut setup = costly();
    let protocol = setup.protocol.clone();
    let receiver = protocol.receive_call + protocol.wait_call + protocol.receive_message;
    let sender = protocol.send_call + protocol.wait_call;
    assert!(receiver > sender);
    let measured = |setup: &Setup| figures(setup, Benchmark::OneWay, 2, 8).latency_us;
    close(measured(&setup), us(receiver));
    setup.protocol.receive_message = Span::ZERO;
    setup.protocol.receive_call = Span::ZERO;
    close(measured(&setup), us(sender));
}

/// Only wire and latency: a window of 64, and an answer of four bytes.
fn wire() -> Setup {
    let mut setup = Setup::zero(ProgressRule::Call);
    setup.ideal.latency = Span::from_ns(1_000);
    setup.ideal.rate = Some(BitRate::from_gigabits(16));
    setup
}

/// How long `messages` of 4 KiB take on the wire of 2 bits per ns at 16 Gb/s, in ns.
fn on_wire(messages: f64) -> f64 {
    messages * 4096.0 * 8.0 / 16.0
}

#[test]
fn bandwidth_is_that_of_a_window_and_its_answer() {
    let window = on_wire(64.0) + 1_000.0 + 2.0 + 1_000.0;
    let measured = figures(&wire(), Benchmark::Bw, 2, 4096);
    close(measured.bandwidth_gbps, 64.0 * 4096.0 * 8.0 / window);
    close(measured.messages_per_second, 64.0 / window * 1e9);
    assert_eq!(measured.latency_us, None);
    // Both directions at once, and nobody answers.
    let window = on_wire(64.0) + 1_000.0;
    let measured = figures(&wire(), Benchmark::Bibw, 2, 4096);
    close(measured.bandwidth_gbps, 2.0 * 64.0 * 4096.0 * 8.0 / window);
}

#[test]
fn pairs_add_up() {
    let one = figures(&wire(), Benchmark::Bw, 2, 4096).bandwidth_gbps.unwrap();
    let three = figures(&wire(), Benchmark::MbwMr, 6, 4096).bandwidth_gbps.unwrap();
    // They leave the barrier apart by a few latencies, and the time is that of all.
    assert!(three <= 3.0 * one && three > 2.97 * one, "{three}, {one}");
    // Three ranks of a host send at once, and share its wire.
    let setup = Setup { per_host: 3, ..wire() };
    let window = on_wire(3.0 * 64.0) + 1_000.0 + 3.0 * 2.0 + 1_000.0;
    let together = figures(&setup, Benchmark::MbwMr, 6, 4096).bandwidth_gbps.unwrap();
    let alone = 3.0 * 64.0 * 4096.0 * 8.0 / window;
    // Each waits for its own answer only, so that windows of one fill the gaps of the others.
    assert!(together > 0.99 * alone && together <= 16.0, "{together}, {alone}");
}

/// The root is out of the broadcast first, so that its token of the barrier is there when the other one
/// comes, who does not wait for it: the root leaves the barrier later by the way of a token, and that
/// the other waits in the next broadcast.
#[test]
fn a_broadcast_between_two_is_a_message_and_a_late_root() {
    let setup = costly();
    let protocol = &setup.protocol;
    // Its step is a call that waits, for nothing.
    let root = protocol.collective_call + protocol.send_call + protocol.wait_call;
    // The other's last step of the barrier is a send, after which it calls a wait that is over at once; the
    // root's waits pass while it waits for that send.
    let late = through(&setup, 0) - protocol.wait_call;
    let sent = protocol.collective_call + protocol.send_call;
    let other = late + sent + through(&setup, 8) + protocol.receive_message;
    let measured = figures(&setup, Benchmark::Bcast, 2, 8);
    close(measured.latency_min_us, us(root));
    close(measured.latency_max_us, us(other));
    close(measured.latency_us, (us(root) + us(other)) / 2.0);
}

#[test]
fn an_allreduce_between_two_is_an_exchange() {
    let setup = costly();
    let protocol = &setup.protocol;
    let both = protocol.collective_call
        + protocol.receive_call
        + protocol.send_call
        + through(&setup, 8)
        + protocol.receive_message;
    for benchmark in [Benchmark::Allreduce, Benchmark::Allgather] {
        let measured = figures(&setup, benchmark, 2, 8);
        close(measured.latency_us, us(both));
        assert_eq!(measured.latency_min_us, measured.latency_max_us);
    }
    // A barrier is the same without data.
    let token = us(both) - us(through(&setup, 8)) + us(through(&setup, 0));
    close(figures(&setup, Benchmark::Barrier, 2, 0).latency_us, token);
}

/// Without barriers a root runs ahead: the mean is then the interval at which broadcasts stream.
#[test]
fn without_barriers_broadcasts_stream() {
    let setup = costly();
    let repetitions = Repetitions { barrier: false, iterations: 50, ..REPETITIONS };
    let measured = run(&setup, Benchmark::Bcast.program(2, Bytes::new(8), repetitions), None);
    let protocol = &setup.protocol;
    let root = protocol.collective_call + protocol.send_call + protocol.wait_call;
    close(measured.latency_min_us, us(root));
    let with = figures(&setup, Benchmark::Bcast, 2, 8);
    assert!(measured.latency_max_us < with.latency_max_us);
}

/// Catches warm-up that is measured, and a figure that depends on how often it is measured.
#[test]
fn more_iterations_measure_the_same() {
    for benchmark in [Benchmark::Latency, Benchmark::Bw, Benchmark::Reduce, Benchmark::Alltoall] {
        let measured = |warm_up, iterations| {
            let repetitions = Repetitions { warm_up, iterations, ..REPETITIONS };
            let figures = run(&wire(), benchmark.program(2, Bytes::new(100), repetitions), None);
            figures.latency_us.or(figures.bandwidth_gbps)
        };
        close(measured(1, 1), measured(3, 20).unwrap());
    }
}

/// Catches a window that is OSU's 64 whatever is asked for: seven windows have each message more.
#[test]
fn a_window_has_the_messages_that_are_asked_for() {
    for (benchmark, each) in [(Benchmark::Bw, 1), (Benchmark::Bibw, 2), (Benchmark::MbwMr, 1)] {
        let operations = |window| {
            let program = benchmark.program(2, Bytes::new(1000), Repetitions { window, ..REPETITIONS });
            program.operations(RankId(0))
        };
        assert_eq!(operations(9) - operations(4), 5 * each * 7, "{benchmark}");
    }
}

/// Catches a program that needs more than its position to go on.
#[test]
fn saving_and_resuming_changes_nothing() {
    let setup = Setup { per_host: 2, ..Setup::costly(ProgressRule::Call) };
    for benchmark in Benchmark::ALL {
        let ranks = if benchmark.is_for_two() { 2 } else { 6 };
        let program = || benchmark.program(ranks, Bytes::new(700), REPETITIONS);
        let whole = run(&setup, program(), None);
        let reloaded = run(&setup, program(), Some(Span::from_ns(3_001)));
        assert_eq!(whole, reloaded, "{benchmark}");
    }
}

/// Natively, an access goes to the target's interface and back, and only rank 0 does anything.
#[test]
fn an_access_is_there_and_back() {
    let mut setup = costly();
    (setup.protocol.one_sided, setup.protocol.atomics) = (OneSidedPath::Native, OneSidedPath::Native);
    let protocol = &setup.protocol;
    for benchmark in [Benchmark::PutLatency, Benchmark::GetLatency, Benchmark::FopLatency] {
        let measured = figures(&setup, benchmark, 2, 8).latency_us.unwrap();
        let wires = us(setup.ideal.latency) * 2.0;
        let software = us(protocol.send_call + protocol.wait_call + protocol.control_send);
        assert!(measured > wires && measured < wires + software + 1.0, "{benchmark}: {measured}");
    }
    // Many at a time go one behind the other, not one after the other.
    let setup = wire();
    let put = figures(&setup, Benchmark::PutBw, 2, 4096).bandwidth_gbps.unwrap();
    assert!(put > 0.9 * 16.0 && put < 16.0, "{put}");
}
