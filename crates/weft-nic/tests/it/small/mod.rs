//! Small messages through the whole interface: with losses, refusals, full mailboxes, exhausted channels
//! and foreign domains, every message arrives once and whole, or its sender is told.

mod machine;
mod reads;

use machine::{ENDPOINTS, Outcome, Plan, Script, begin, outcomes, parameters, resume, unfinished};
use proptest::prelude::*;
use std::collections::BTreeMap;
use weft_engine::Progress;
use weft_fabric::{FaultParameters, OffTimes};
use weft_nic::{FailureReason, Primitive};
use weft_units::{Bytes, Span, Time};

fn plan_between(interfaces: u16) -> impl Strategy<Value = Plan> {
    (0..ENDPOINTS, 0..ENDPOINTS, 0u64..3_000_000, 0u64..=64, 0..interfaces, 0..interfaces).prop_map(
        |(from, to, ps, bytes, interface, to_interface)| Plan {
            from,
            to,
            at: Time::from_ps(ps),
            bytes: Bytes::new(bytes),
            primitive: Primitive::Small,
            interface,
            to_interface,
        },
    )
}

fn script(plans: Vec<Plan>) -> Script {
    Script { plans, domains: BTreeMap::new(), takes_after: Span::from_ns(400) }
}

const NONE: FaultParameters =
    FaultParameters { drop: 0, corrupt: 0, duplicate: 0, reorder: 0, off: OffTimes::NEVER };

/// All outcomes of a run to its end.
fn run(script: &Script, faults: FaultParameters, threads: usize) -> Vec<Outcome> {
    let mut run = begin(parameters(), script, faults, threads);
    let (progress, outcomes) = outcomes(&mut run, Time::NEVER);
    assert_eq!(progress, Progress::Dry);
    assert_eq!(unfinished(&run).0, 0, "nothing is left with a sender");
    outcomes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Catches a message that is lost or comes twice when all channels are busy and mailboxes are full:
    /// mailboxes of two entries, two channels, and everybody sends at once.
    #[test]
    fn without_losses_everything_arrives_once(
        plans in prop::collection::vec(plan_between(3), 1..120),
    ) {
        let script = script(plans);
        let outcomes = run(&script, NONE, 1);
        prop_assert_eq!(outcomes.len(), script.plans.len());
        for (index, (outcome, plan)) in outcomes.iter().zip(&script.plans).enumerate() {
            let Outcome::Delivered { plan: of, at, bytes, interface } = *outcome else {
                panic!("{outcome:?}");
            };
            prop_assert_eq!((of as usize, bytes, interface), (index, plan.bytes, plan.to_interface));
            prop_assert!(at > plan.at);
        }
    }

    /// Catches a repetition that is delivered again after its acknowledgement was lost, a damaged packet
    /// that is taken for good, and a sender that is never told.
    #[test]
    fn with_losses_everything_arrives_once_or_its_sender_is_told(
        plans in prop::collection::vec(plan_between(2), 1..60),
        drop in 0u32..300_000,
        corrupt in 0u32..300_000,
        off in prop::option::of(0u64..4_000_000),
    ) {
        let script = script(plans);
        let faults = FaultParameters {
            drop,
            corrupt,
            off: off.map_or(OffTimes::NEVER, |ps| OffTimes::after(Time::from_ps(ps))),
            ..NONE
        };
        let outcomes = run(&script, faults, 1);
        for index in 0..script.plans.len() as u32 {
            let of: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.plan() == index).collect();
            let delivered = of.iter().filter(|o| matches!(o, Outcome::Delivered { .. })).count();
            let failed = of.len() - delivered;
            // Whose acknowledgements are lost again and again is told so, although the message is there.
            prop_assert!(delivered <= 1 && failed <= 1 && !of.is_empty(), "{of:?}");
            for outcome in of {
                if let Outcome::Failed { reason, .. } = outcome {
                    prop_assert_eq!(*reason, FailureReason::TimedOut);
                }
            }
        }
    }

    /// Catches a packet of a foreign domain that gets into a mailbox, and its sender who is not told.
    #[test]
    fn a_foreign_domain_never_arrives(
        plans in prop::collection::vec(plan_between(3), 1..60),
        domains in prop::collection::btree_map((0..ENDPOINTS, 0u16..3), 0u16..3, 0..12),
    ) {
        let script = Script { domains, ..script(plans) };
        let domain = |endpoint, interface| *script.domains.get(&(endpoint, interface)).unwrap_or(&0);
        let outcomes = run(&script, NONE, 1);
        prop_assert_eq!(outcomes.len(), script.plans.len());
        for (outcome, plan) in outcomes.iter().zip(&script.plans) {
            let friends = domain(plan.from, plan.interface) == domain(plan.to, plan.to_interface);
            match outcome {
                Outcome::Delivered { .. } => prop_assert!(friends, "{plan:?}"),
                Outcome::Failed { reason, .. } => {
                    prop_assert!(!friends, "{plan:?}");
                    prop_assert_eq!(*reason, FailureReason::Domain);
                }
                Outcome::Asked { .. } => panic!("{outcome:?}"),
            }
        }
    }

    /// Catches a panic, and a message without an outcome: descriptors of any content.
    #[test]
    fn any_descriptor_has_an_outcome(
        plans in prop::collection::vec(
            (
                (0..ENDPOINTS, any::<u32>(), any::<bool>(), 0u64..3_000),
                (any::<u16>(), any::<u16>(), 0u8..3, 0u16..6),
            ),
            1..40,
        ),
    ) {
        type Kind = (u16, u16, u8, u16);
        let plan = |((from, to, near, bytes), kind): ((u32, u32, bool, u64), Kind)| Plan {
            from,
            to: if near { to % ENDPOINTS } else { to },
            at: Time::from_ps(u64::from(to) % 1_000_000),
            bytes: Bytes::new(bytes),
            primitive: [Primitive::Automatic, Primitive::Small, Primitive::Write][usize::from(kind.2)],
            interface: if near { kind.3 } else { kind.0 },
            to_interface: if near { kind.0 % 5 } else { kind.1 },
        };
        let script = script(plans.into_iter().map(plan).collect());
        let outcomes = run(&script, NONE, 1);
        for (index, plan) in (0..).zip(&script.plans) {
            let of: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.plan() == index).collect();
            let [outcome] = of[..] else { panic!("{plan:?} had {of:?}") };
            if let Outcome::Failed { reason, .. } = outcome {
                let bad = match reason {
                    FailureReason::NoInterface => plan.interface >= 4 || plan.to_interface >= 4,
                    FailureReason::NoNode => plan.to >= ENDPOINTS,
                    FailureReason::TooLarge => plan.bytes > Bytes::new(64),
                    _ => false,
                };
                prop_assert!(bad, "{plan:?} failed: {reason}");
            }
        }
    }
}

fn busy() -> Script {
    let plans = (0..400u32).map(|index| Plan {
        from: index * 7 % ENDPOINTS,
        to: index * 11 % ENDPOINTS,
        at: Time::from_ps(u64::from(index) * 9_973),
        bytes: Bytes::new(u64::from(index) * 13 % if index % 5 == 0 { 2_000 } else { 65 }),
        primitive: if index % 7 == 0 { Primitive::ReadRequest } else { Primitive::Automatic },
        interface: (index % 3) as u16,
        to_interface: (index % 4) as u16,
    });
    script(plans.collect())
}

/// Catches results that depend on the order in which partitions run.
#[test]
fn results_are_the_same_for_any_number_of_threads() {
    let faults = FaultParameters { drop: 50_000, corrupt: 50_000, ..NONE };
    let one = run(&busy(), faults.clone(), 1);
    assert!(one.len() > 300);
    for threads in [2, 3, 6] {
        assert_eq!(run(&busy(), faults.clone(), threads), one, "{threads} threads");
    }
}

/// Catches state that a snapshot forgets: saved and resumed every microsecond.
#[test]
fn a_run_goes_on_where_it_was_saved() {
    let straight = run(&busy(), NONE, 1);
    let mut run = begin(parameters(), &busy(), NONE, 1);
    let mut found = Vec::new();
    let mut until = Time::ZERO;
    loop {
        until += Span::from_us(1);
        let (progress, some) = outcomes(&mut run, until);
        found.extend(some);
        if progress == Progress::Dry {
            break;
        }
        run = resume(parameters(), &busy(), &run.save().unwrap(), 1);
    }
    found.sort_by_key(|outcome| (outcome.plan(), *outcome));
    assert_eq!(found, straight);
}

/// Catches messages of one channel that overtake each other.
#[test]
fn a_channel_keeps_its_order() {
    let plans = (0..50u64).map(|index| Plan {
        from: 0,
        to: 3,
        at: Time::from_ps(index * 100_000),
        bytes: Bytes::new(index % 65),
        primitive: Primitive::Small,
        interface: 1,
        to_interface: 2,
    });
    let script = Script { takes_after: Span::ZERO, ..script(plans.collect()) };
    let mut parameters = parameters();
    parameters.packetizer.channels = 1;
    let mut run = begin(parameters, &script, NONE, 1);
    let times: Vec<Time> = outcomes(&mut run, Time::NEVER)
        .1
        .iter()
        .map(|outcome| match outcome {
            Outcome::Delivered { at, .. } => *at,
            failed => panic!("{failed:?}"),
        })
        .collect();
    assert!(times.len() == 50 && times.is_sorted(), "{times:?}");
}

/// Catches a page of RDMA channels that is asked of a write's target: only the initiator's interface has one.
/// So that protection does not go with the page, an interface without one is of a domain all the same.
#[test]
fn a_write_needs_a_page_of_its_initiator_alone() {
    let write = |interface, to_interface| Plan {
        from: 0,
        to: 1,
        at: Time::ZERO,
        bytes: Bytes::new(5_000),
        primitive: Primitive::Write,
        interface,
        to_interface,
    };
    let plans = vec![write(3, 20), write(15, 63), write(3, 21), write(16, 3), write(3, 64)];
    let script = Script { domains: BTreeMap::from([((1, 21), 7)]), ..script(plans) };
    let mut parameters = parameters();
    (parameters.packetizer.interfaces, parameters.mailbox.interfaces) = (64, 64);
    parameters.rdma.send.pages = 16;
    let mut run = begin(parameters, &script, NONE, 1);
    let told: Vec<Result<u16, FailureReason>> = outcomes(&mut run, Time::NEVER)
        .1
        .iter()
        .map(|outcome| match *outcome {
            Outcome::Delivered { interface, .. } => Ok(interface),
            Outcome::Failed { reason, .. } => Err(reason),
            Outcome::Asked { .. } => panic!("{outcome:?}"),
        })
        .collect();
    let (foreign, none) = (Err(FailureReason::Domain), Err(FailureReason::NoInterface));
    assert_eq!(told, [Ok(20), Ok(63), foreign, none, none]);
}

/// Catches tables that are there before anybody uses them: a machine of many idle endpoints has 2 KB for
/// each, with its port and its share of a switch.
#[test]
fn an_idle_interface_is_small() {
    let idle = size_of::<weft_nic::ExanetNic<machine::Scripted>>();
    // 1 KiB; pointers to the mailbox of requests, to the packets that the mailbox has taken, and to those
    // that wait for it; for RTL, the pointer to blocks in the place of the model's, and the receive unit's
    // last write.
    let beside = 4 * size_of::<usize>() + size_of::<Option<weft_nic::memory_path::MemoryWrite>>();
    assert!(idle <= 1024 + beside, "{idle} bytes");
}
