//! Progress, order, several programs, and programs that cannot end.

use super::support::*;
use weft_msg::WaitCosts;
use weft_trace::op::SendMode;
use weft_units::{Bytes, Span};
use weft_workload::replay::ProgressRule;

/// A long message that arrives while its receiver computes: with progress in calls its sender waits for
/// the receiver's next wait, otherwise not.
#[test]
fn progress_in_calls_waits_for_a_call() {
    let programs = [
        vec![in_mode(SendMode::Synchronous, send(1, 0, 8, 0)), wait(0)],
        vec![receive(0, 0, 8, 0), compute(50), wait(0)],
    ];
    let end = |progress| {
        let outcome = Setup::zero(progress).run(&[trace_of(&programs)], None);
        outcome.assert_finished();
        outcome.ranks[0].end - weft_units::Time::ZERO
    };
    assert_eq!(end(ProgressRule::Call), Span::from_us(50));
    assert_eq!(end(ProgressRule::Background), Span::ZERO);
}

/// Catches a wrong cost of a wait that polls. It pays a poll for messages that come by its end, and nothing
/// more after two in vain. After a message that has not ended the wait, it polls anew.
#[test]
fn a_wait_polls_twice_and_then_sees_what_comes() {
    let mut setup = Setup::zero(ProgressRule::Call);
    (setup.protocol.wait_call, setup.protocol.wait_costs) = (Span::from_us(50), WaitCosts::Polls);
    let ends = |first, second| {
        let programs = [
            vec![compute(first), send(2, 0, 8, 0)],
            vec![compute(second), send(2, 0, 8, 0)],
            vec![receive(0, 0, 8, 0), receive(1, 0, 8, 1), compute(100), both()],
        ];
        let outcome = setup.run(&[trace_of(&programs)], None);
        outcome.assert_finished();
        outcome.ranks[2].end.as_ps() / 1_000_000
    };
    assert_eq!([ends(20, 100), ends(20, 101), ends(20, 150)], [150; 3], "in the first poll");
    assert_eq!([ends(20, 151), ends(20, 200)], [200; 2], "in the first after another");
    assert_eq!([ends(20, 201), ends(20, 250)], [250; 2], "in the second after another");
    assert_eq!([ends(151, 160), ends(180, 200)], [200; 2], "both in the second");
    assert_eq!([ends(20, 251), ends(20, 317)], [251, 317], "while it waits");
    assert_eq!(
        [ends(300, 310), ends(300, 390), ends(300, 420)],
        [350, 400, 420],
        "while it waits, then after another"
    );
}

/// Catches a rank that polls less often after a message that nobody waits for than after another.
#[test]
fn a_wait_polls_twice_also_after_what_it_does_not_wait_for() {
    let mut setup = Setup::zero(ProgressRule::Call);
    (setup.protocol.wait_call, setup.protocol.wait_costs) = (Span::from_us(50), WaitCosts::Polls);
    let ends = |second| {
        let programs = [
            vec![compute(20), send(2, 0, 8, 0)],
            vec![compute(second), send(2, 0, 8, 0)],
            vec![receive(1, 0, 8, 1), compute(100), wait(1), receive(0, 0, 8, 0), wait(0)],
        ];
        let outcome = setup.run(&[trace_of(&programs)], None);
        outcome.assert_finished();
        outcome.ranks[2].end.as_ps() / 1_000_000
    };
    assert_eq!([150, 151, 200, 201, 250, 251].map(ends), [150, 200, 200, 250, 250, 251]);
}

/// Packets of several messages take turns, so that a short message passes a long one: it must not be
/// received in its place.
#[test]
fn a_short_message_does_not_overtake_a_long_one() {
    let mut setup = Setup::costly(ProgressRule::Call);
    setup.protocol.eager_limit = Bytes::new(1 << 30);
    let programs = [
        vec![send(1, 5, 100_000, 0), send(1, 5, 8, 1), wait(0), wait(1)],
        // A buffer of 8 bytes for the second: the long message would not fit.
        vec![receive(0, 5, 100_000, 0), receive(0, 5, 8, 1), wait(0), wait(1)],
    ];
    let outcome = setup.run(&[trace_of(&programs)], None);
    outcome.assert_finished();
    assert_eq!(outcome.messages[0].bytes, Bytes::new(8), "the short one arrives first");
}

/// Catches programs whose ranks get each other's messages.
#[test]
fn programs_do_not_see_each_other() {
    let program = |us| {
        trace_of(&[
            vec![compute(us), send(1, 0, 64, 0), wait(0)],
            vec![receive(0, 0, 64, 0), wait(0), compute(1)],
        ])
    };
    let setup = Setup { per_host: 3, ..Setup::zero(ProgressRule::Call) };
    let outcome = setup.run(&[program(7), program(3)], None);
    outcome.assert_finished();
    let ends: Vec<_> =
        outcome.ranks.iter().map(|r| (r.program, r.rank.0, r.end.as_ps() / 1_000_000)).collect();
    assert_eq!(ends, [(0, 0, 7), (0, 1, 8), (1, 0, 3), (1, 1, 4)]);
}

/// Two ranks that both receive first.
#[test]
fn who_waits_for_what_is_said() {
    let rank = |other| vec![compute(1), receive(other, 7, 64, 0), wait(0), send(other, 7, 64, 1), wait(1)];
    let outcome = Setup::costly(ProgressRule::Call).run(&[trace_of(&[rank(1), rank(0)])], None);
    assert!(outcome.ranks.iter().all(|rank| !rank.finished));
    assert_eq!(outcome.blocked.len(), 2);
    let said = &outcome.blocked[0];
    assert!(
        said.contains("rank 0 waits in wait for a receive of 64") && said.contains("from rank 1"),
        "{said}"
    );
}

/// A message longer than its receive is the trace's fault, and names the rank.
#[test]
fn a_message_that_does_not_fit_is_a_fault() {
    let programs = [vec![send(1, 0, 64, 0), wait(0)], vec![receive(0, 0, 8, 0), wait(0)]];
    let outcome = Setup::zero(ProgressRule::Call).run(&[trace_of(&programs)], None);
    let said = outcome.faults[0].to_string();
    assert!(said.starts_with("test.weft: rank 1, operation") && said.contains("64"), "{said}");
}
