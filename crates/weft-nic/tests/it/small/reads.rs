//! Requests of reads through the whole interface: each is answered once, by the send unit that has the data.

use super::machine::{ENDPOINTS, Log, Outcome, Plan, Run, Script, begin, outcomes, parameters, unfinished};
use super::{NONE, script};
use proptest::prelude::*;
use std::collections::BTreeMap;
use weft_engine::Progress;
use weft_fabric::{FaultParameters, OffTimes};
use weft_nic::rdma::RDMA_MAILBOX;
use weft_nic::{ExanetParameters, FailureReason, Primitive, Stage};
use weft_units::{Bytes, Span, Time};

fn plan(from: u32, to: u32, primitive: Primitive) -> Plan {
    Plan { from, to, at: Time::ZERO, bytes: Bytes::new(1_000), primitive, interface: 1, to_interface: 2 }
}

fn read(from: u32, to: u32) -> Plan {
    plan(from, to, Primitive::ReadRequest)
}

/// A run to its end, and what came of its messages.
fn ended(parameters: ExanetParameters, script: &Script) -> (Run, Vec<Outcome>) {
    let mut run = begin(parameters, script, NONE, 1);
    let (progress, outcomes) = outcomes(&mut run, Time::NEVER);
    assert_eq!((progress, unfinished(&run)), (Progress::Dry, (0, 0)));
    (run, outcomes)
}

/// The time at which the only message of a plan was delivered.
fn delivered(parameters: ExanetParameters, plan: Plan) -> Time {
    match ended(parameters, &script(vec![plan])).1[..] {
        [Outcome::Delivered { at, .. }] => at,
        ref others => panic!("{others:?}"),
    }
}

/// Catches a request that is polled for, lies in a mailbox or takes the time of one, an answer whose
/// descriptor is stored, and one that goes by a channel for writes: the time of a read, put together from
/// those of a small message of 32 B on the way there, of the block's four cycles, and of a write on the way
/// back.
#[test]
fn a_read_takes_a_request_a_verdict_and_a_write() {
    let mut parameters = parameters();
    // Nine cycles each way: everything happens at edges.
    parameters.host_port.round_trip = Span::from_ns(120);
    parameters.rdma.send.write_channels = 1;
    let clock = parameters.host_port.clock;
    let cycles = |time: Time| clock.edges_before(time);
    let small = Plan { bytes: Bytes::new(32), ..plan(0, 3, Primitive::Small) };
    // Behind the header: the mailbox's check of 10 cycles, an entry of four words, nine cycles to the cache,
    // 20 ns until the process polls.
    let head = cycles(delivered(parameters, small)) - 3 - 9 - 4 - 10;
    // Four words of 16 B at 16 Gb/s take 4.8 cycles, and the tail is seen at the fifth edge.
    let verdict = head + 5 + 4;
    let (mut run, outcomes) = ended(parameters, &script(vec![read(0, 3)]));
    let [Outcome::Delivered { at, .. }, Outcome::Asked { at: asked, .. }] = outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert_eq!(asked, clock.edge(verdict));
    // A write that a process posts: its descriptor takes four words of the port, and nine cycles.
    let write = Plan { at: clock.edge(verdict - 4 - 9), ..plan(3, 0, Primitive::Write) };
    assert_eq!(delivered(parameters, write), at);
    let stages: Vec<Stage> = run.outputs_mut().flat_map(|log| std::mem::take(&mut log.stages)).collect();
    let stage = stages.iter().find(|stage| stage.block == RDMA_MAILBOX).unwrap();
    assert_eq!((stage.endpoint.0, stage.source.0, stage.ended), (3, 0, asked));
    assert_eq!((cycles(stage.began), stage.began), (head + 5, clock.edge(head + 5)));
}

/// Catches a foreign domain that reads, a page that there is not, and a page without channels for reads, for
/// which a request would be sent again for ever.
#[test]
fn a_request_needs_a_page_of_its_domain() {
    let to_interface = |to_interface| Plan { to_interface, ..read(0, 1) };
    let plans = [0, 1, 2, 3, 3000].map(to_interface).to_vec();
    let script = Script { domains: BTreeMap::from([((1, 0), 7)]), ..script(plans) };
    let mut parameters = parameters();
    parameters.rdma.send.pages = 3;
    let told = |outcomes: Vec<Outcome>| -> Vec<Result<u16, FailureReason>> {
        let of = |outcome: &Outcome| match *outcome {
            Outcome::Asked { .. } => None,
            Outcome::Delivered { interface, .. } => Some(Ok(interface)),
            Outcome::Failed { reason, .. } => Some(Err(reason)),
        };
        outcomes.iter().filter_map(of).collect()
    };
    let (foreign, none) = (Err(FailureReason::Domain), Err(FailureReason::NoInterface));
    let found = told(ended(parameters, &script).1);
    assert_eq!(found, [foreign, Ok(1), Ok(1), none, none]);
    parameters.rdma.send.read_channels = 0;
    assert_eq!(told(ended(parameters, &script).1), [none; 5]);
}

/// Catches requests that wait in a queue beside the channels, a channel that two get, and one that is not
/// given back: one read channel, and everybody reads at once. The agent alone takes 2 us for each.
#[test]
fn requests_without_a_channel_are_refused_until_there_is_one() {
    let plans: Vec<Plan> = (1..ENDPOINTS).flat_map(|from| [read(from, 0); 3]).collect();
    let script = script(plans);
    let asked = |read_channels| {
        let mut parameters = parameters();
        parameters.rdma.send.read_channels = read_channels;
        let (mut run, outcomes) = ended(parameters, &script);
        let mut asked: Vec<Time> = Vec::new();
        let mut read = 0;
        for outcome in outcomes {
            match outcome {
                Outcome::Asked { at, .. } => asked.push(at),
                Outcome::Delivered { bytes, .. } => read += usize::from(bytes == Bytes::new(1_000)),
                Outcome::Failed { .. } => panic!("{outcome:?}"),
            }
        }
        assert_eq!((asked.len(), read), (script.plans.len(), script.plans.len()));
        asked.sort_unstable();
        let refusals = |log: &mut Log| log.refusals();
        (asked, run.outputs_mut().map(refusals).sum::<usize>())
    };
    let (one, refusals) = asked(1);
    assert!(one.windows(2).all(|pair| pair[1] - pair[0] > Span::from_us(2)), "{one:?}");
    assert!(refusals >= script.plans.len() - 1, "all but the first were refused: {refusals}");
    let (many, none) = asked(64);
    assert_eq!(none, 0);
    assert!(*many.last().unwrap() < many[0] + Span::from_us(2), "{many:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Catches a request that is answered twice because its acknowledgement was lost, a damaged one that is
    /// taken for good, and a loss that nobody is told of.
    #[test]
    fn with_losses_a_read_is_answered_once_or_its_loss_is_told(
        ends in prop::collection::vec((0..ENDPOINTS, 0..ENDPOINTS, 0u64..3_000_000), 1..40),
        drop in 0u32..300_000,
        corrupt in 0u32..300_000,
        read_channels in 1u32..3,
    ) {
        let plans = ends.iter().map(|(from, to, at)| Plan { at: Time::from_ps(*at), ..read(*from, *to) });
        let script = script(plans.collect());
        let mut parameters = parameters();
        parameters.rdma.send.read_channels = read_channels;
        let faults = FaultParameters { drop, corrupt, off: OffTimes::NEVER, ..NONE };
        let mut run = begin(parameters, &script, faults, 1);
        let (progress, outcomes) = outcomes(&mut run, Time::NEVER);
        prop_assert_eq!((progress, unfinished(&run).0), (Progress::Dry, 0));
        for index in 0..script.plans.len() as u32 {
            let of: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.plan() == index).collect();
            let count = |which: fn(&Outcome) -> bool| of.iter().filter(|outcome| which(outcome)).count();
            let asked = count(|outcome| matches!(outcome, Outcome::Asked { .. }));
            let read = count(|outcome| matches!(outcome, Outcome::Delivered { .. }));
            let failed = count(|outcome| matches!(outcome, Outcome::Failed { .. }));
            prop_assert!(asked <= 1 && read <= asked && read + failed >= 1, "{of:?}");
        }
    }
}
