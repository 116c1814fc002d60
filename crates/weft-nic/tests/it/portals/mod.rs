//! Messages through the Portals interface over links that lose, damage, copy and delay packets: every message
//! arrives once and whole, or its sender is told; the same for any number of threads, and from a saved state.

mod machine;

use machine::{
    ENDPOINTS, NONE, Outcome, Plan, Script, alone, begin, faulty_link, outcomes, parameters, resume,
    unfinished,
};
use proptest::prelude::*;
use weft_engine::Progress;
use weft_fabric::{FaultParameters, OffInterval, OffTimes};
use weft_nic::FailureReason;
use weft_units::{Bytes, EndpointId, Span, Time};

fn plan() -> impl Strategy<Value = Plan> {
    (0..ENDPOINTS, 0..ENDPOINTS, 0u64..3_000_000, 0u64..=3_000, any::<[bool; 2]>()).prop_map(
        |(from, to, ps, bytes, [response, service])| {
            let (at, bytes) = (Time::from_ps(ps), Bytes::new(bytes));
            Plan { from, to, at, bytes, response, service }
        },
    )
}

/// Asks that each message was delivered once, whole, and reported as sent once.
fn delivered_once(outcomes: &[Outcome], script: &Script) {
    let mut expected = Vec::new();
    for (plan, of) in (0..).zip(&script.plans) {
        expected.push(Outcome::Delivered { plan, bytes: of.bytes });
        expected.push(Outcome::Sent { plan });
    }
    expected.sort_unstable();
    assert_eq!(outcomes, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Catches a message that is lost, comes twice, or loses a piece.
    #[test]
    fn everything_arrives_once_over_faulty_links(
        plans in prop::collection::vec(plan(), 1..80),
        ordered: bool,
    ) {
        let script = Script { plans };
        let faults =
            FaultParameters { drop: 10_000, corrupt: 10_000, duplicate: 50_000, reorder: 50_000, ..NONE };
        let parameters = weft_nic::PortalsParameters { ordered, ..parameters() };
        let mut run = begin(&parameters, &script, &faults, 1);
        let (progress, outcomes) = outcomes(&mut run, Time::NEVER);
        prop_assert_eq!((progress, unfinished(&run)), (Progress::Dry, (0, 0)));
        delivered_once(&outcomes, &script);
    }
}

fn busy() -> Script {
    let plans = (0..400u32).map(|index| Plan {
        from: index * 7 % ENDPOINTS,
        to: index * 11 % ENDPOINTS,
        at: Time::from_ps(u64::from(index) * 9_973),
        bytes: Bytes::new(u64::from(index) * 13 % if index % 5 == 0 { 4_000 } else { 65 }),
        response: index % 3 == 0,
        service: index % 4 == 0,
    });
    Script { plans: plans.collect() }
}

/// Catches results that depend on the order in which partitions run.
#[test]
fn results_are_the_same_for_any_number_of_threads() {
    let faults = FaultParameters { drop: 20_000, corrupt: 20_000, duplicate: 20_000, ..NONE };
    let log = |threads| {
        let mut run = begin(&parameters(), &busy(), &faults, threads);
        let (_, outcomes) = outcomes(&mut run, Time::NEVER);
        delivered_once(&outcomes, &busy());
        machine::times(&run)
    };
    let one = log(1);
    for threads in [2, 3, 8] {
        assert_eq!(log(threads), one, "{threads} threads");
    }
}

/// Catches state that a snapshot forgets: saved and resumed every two microseconds, while packets are lost.
#[test]
fn a_run_goes_on_where_it_was_saved() {
    let faults = FaultParameters { drop: 20_000, ..NONE };
    let mut straight = begin(&parameters(), &busy(), &faults, 1);
    outcomes(&mut straight, Time::NEVER);
    let mut run = begin(&parameters(), &busy(), &faults, 1);
    let mut until = Time::ZERO;
    let mut found = Vec::new();
    loop {
        until += Span::from_us(2);
        let (progress, some) = outcomes(&mut run, until);
        found.extend(some);
        if progress == Progress::Dry {
            break;
        }
        run = resume(&parameters(), &busy(), &faults, &run.save().unwrap());
    }
    found.sort_unstable();
    delivered_once(&found, &busy());
    assert_eq!(machine::times(&run), machine::times(&straight));
}

/// Catches a sender that waits for ever: the link into the network of one endpoint is dead for good.
#[test]
fn a_dead_way_is_told_of() {
    let at = Time::ZERO;
    let plan = |from, to| Plan { from, to, at, bytes: Bytes::new(3_000), response: false, service: false };
    let script = Script { plans: vec![plan(1, 0), plan(2, 0), plan(1, 9_999)] };
    let dead = FaultParameters { off: OffTimes::after(Time::ZERO), ..NONE };
    let mut run = faulty_link(EndpointId(1), &script, &dead);
    let (progress, outcomes) = outcomes(&mut run, Time::NEVER);
    assert_eq!((progress, unfinished(&run)), (Progress::Dry, (0, 0)));
    let expected = [
        Outcome::Delivered { plan: 1, bytes: Bytes::new(3_000) },
        Outcome::Sent { plan: 1 },
        Outcome::Failed { plan: 0, reason: FailureReason::TimedOut },
        Outcome::Failed { plan: 2, reason: FailureReason::NoNode },
    ];
    assert_eq!(outcomes, expected);
}

/// D1.4 §2.2: flows of computing and of services are apart. Catches a service whose packets wait for those
/// that computing has lost: the link of one endpoint is off for 10 us, and a time-out of 50 us repairs that.
#[test]
fn a_service_does_not_wait_for_what_computing_has_lost() {
    let plan = |us, service| {
        let at = Time::ZERO + Span::from_us(us);
        Plan { from: 1, to: 0, at, bytes: Bytes::new(64), response: false, service }
    };
    let script = Script { plans: vec![plan(0, false), plan(12, false), plan(12, true)] };
    let off = OffTimes::new(vec![OffInterval { from: Time::ZERO, until: Time::ZERO + Span::from_us(10) }]);
    let mut run = faulty_link(EndpointId(1), &script, &FaultParameters { off, ..NONE });
    let (progress, outcomes) = outcomes(&mut run, Time::NEVER);
    assert_eq!(progress, Progress::Dry);
    delivered_once(&outcomes, &script);
    let came: std::collections::BTreeMap<u32, Time> = machine::times(&run).into_iter().flatten().collect();
    let us = |us| Time::ZERO + Span::from_us(us);
    assert!(came[&2] < us(15), "{came:?}");
    assert!(came[&0] > us(50) && came[&1] > us(50), "{came:?}");
}

/// Catches a cost that is left out or counted twice: a message of one packet, and one of three, alone on a
/// network of latency and no rate.
#[test]
fn latency_without_load_is_a_closed_form() {
    let p = parameters();
    let latency = Span::from_ns(500);
    let one = p.costs.send_message + latency + p.costs.receive_packet + p.costs.receive_message;
    assert_eq!(alone(Bytes::new(64), latency), Time::ZERO + one);
    // The last of three packets leaves two packet times later; each is taken as it comes.
    let three = one + p.costs.send_packet * 2;
    assert_eq!(alone(Bytes::new(2_500), latency), Time::ZERO + three);
}

/// Catches tables that are there before anybody uses them.
#[test]
fn an_idle_interface_is_small() {
    let idle = size_of::<weft_nic::PortalsNic<machine::Scripted>>();
    assert!(idle <= 1024, "{idle} bytes");
}
