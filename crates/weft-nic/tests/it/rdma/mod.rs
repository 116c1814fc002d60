//! RDMA through the whole interface and a real network.

mod allreduce;
mod carvnet;
mod machine;

use machine::{
    Planned, Report, Run, begin, begin_with_faults, begin_without_data, carvnet, parameters, resume,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use weft_engine::Progress;
use weft_fabric::{FaultParameters, LinkEnd, OffTimes};
use weft_nic::Nic as _;
use weft_nic::iommu::FaultModel;
use weft_nic::rdma::OUTSTANDING_BLOCK;
use weft_nic::segmentation::SEGMENTATION;
use weft_units::{Bytes, EndpointId, Span, Time};

fn until(run: &mut Run, time: Time) -> Progress {
    run.run_until(time, &AtomicBool::new(false))
}

fn reports(run: &mut Run) -> Vec<Report> {
    let mut reports: Vec<Report> =
        run.outputs_mut().flat_map(|output| std::mem::take(&mut output.reports)).collect();
    reports.sort_unstable();
    reports
}

/// The number of messages and reductions that have been compared, and agree.
fn agreed(run: &mut Run) -> usize {
    let mut agreed = 0;
    for output in run.outputs_mut() {
        assert_eq!(output.damaged, []);
        agreed += output.compared;
    }
    agreed
}

fn planned(to: u32, bytes: u64) -> Planned {
    Planned { at: Time::ZERO, to: EndpointId(to), bytes, interface: 0, watch: false }
}

/// The time at which the first message of a plan is delivered.
fn delivered(plans: &[Vec<Planned>]) -> Time {
    let mut run = begin(plans, parameters(), 1);
    assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
    let first = reports(&mut run).into_iter().find_map(|report| match report {
        Report::Delivered(at, ..) => Some(at),
        _ => None,
    });
    first.unwrap()
}

/// The rates of TR-488 at their places: cells leave every 23 cycles, and links between QFDBs are slower.
#[test]
fn long_writes_run_at_the_rate_of_the_engine_or_the_slowest_link() {
    let gigabits = |from: usize, to: u32| {
        let mut plans = vec![Vec::new(); 16];
        plans[from] = vec![planned(to, 4 << 20)];
        let span = delivered(&plans) - Time::ZERO - Span::from_us(3);
        (4 << 20) as f64 * 8e3 / span.as_ps() as f64
    };
    let engine = 2048.0 / (23.0 / 0.150);
    for (to, expected) in [(0, engine), (1, engine), (4, 10.0 * 64.0 / 66.0 * 256.0 / 387.0)] {
        let found = gigabits(0, to);
        assert!((found / expected - 1.0).abs() < 0.01, "to {to}: {found} Gb/s, not {expected}");
    }
}

/// Catches stages that overlap or leave gaps: those at the source, and those at the destination.
#[test]
fn stages_are_a_chain() {
    let mut plans = vec![Vec::new(); 16];
    plans[0] = vec![Planned { watch: true, ..planned(1, 64) }];
    let mut run = begin(&plans, parameters(), 1);
    until(&mut run, Time::NEVER);
    let stages: Vec<_> = run.outputs_mut().flat_map(|output| std::mem::take(&mut output.stages)).collect();
    for endpoint in [0, 1] {
        let mut of_endpoint: Vec<_> =
            stages.iter().filter(|stage| stage.endpoint.0 == endpoint && stage.source.0 == 0).collect();
        of_endpoint.sort_by_key(|stage| (stage.came, stage.ended));
        assert!(of_endpoint.len() >= 2, "{stages:?}");
        for pair in of_endpoint.windows(2) {
            assert_eq!(pair[0].ended, pair[1].came, "{pair:?}");
        }
    }
    assert!(stages.iter().any(|stage| stage.block == SEGMENTATION));
    let noticed = stages.iter().map(|stage| stage.ended).max();
    let report = reports(&mut run).into_iter().find(|report| matches!(report, Report::Delivered(..)));
    assert!(matches!(report, Some(Report::Delivered(at, ..)) if Some(at) == noticed));
}

/// Catches time that is lost between stages where a long transfer runs out of outstanding blocks, and waits
/// for the agent that nobody names: two ranks share it, and one block at a time may be outstanding.
#[test]
fn waits_for_blocks_and_for_the_agent_are_stages() {
    let mut parameters = parameters();
    parameters.rdma.send.outstanding_blocks = 1;
    let mut plans = vec![Vec::new(); 16];
    plans[0] =
        vec![Planned { interface: 1, ..planned(1, 100_000) }, Planned { watch: true, ..planned(1, 100_000) }];
    let mut run = begin(&plans, parameters, 1);
    until(&mut run, Time::NEVER);
    let mut stages: Vec<_> = run.outputs_mut().flat_map(|it| std::mem::take(&mut it.stages)).collect();
    stages.retain(|stage| stage.endpoint.0 == 0 && stage.message == 1);
    stages.sort_by_key(|stage| (stage.ended, stage.came));
    let of = |block| stages.iter().filter(move |stage| stage.block == block);
    // Seven blocks: six had to wait, each for its acknowledgement and then for the agent.
    assert_eq!((of(OUTSTANDING_BLOCK).count(), of(SEGMENTATION).count()), (6, 7));
    assert!(of(OUTSTANDING_BLOCK).all(|stage| stage.ended - stage.came > Span::from_ns(500)));
    assert!(of(SEGMENTATION).any(|stage| stage.began > stage.came), "the other rank is served first");
    // From the first start on, each begins where one before has ended.
    for stage in stages.iter().skip(1) {
        assert!(stages.iter().any(|before| before.ended == stage.came), "{stage:?}");
    }
}

/// Four ranks of one MPSoC share the agent and the engine: none starves, and each start waits for the agent.
#[test]
fn ranks_of_an_mpsoc_share_the_engine() {
    let mut plans = vec![Vec::new(); 16];
    plans[0] = (0..4).map(|rank| Planned { interface: rank, ..planned(1, 1 << 20) }).collect();
    let mut run = begin(&plans, parameters(), 1);
    until(&mut run, Time::NEVER);
    let ends: Vec<u64> = reports(&mut run)
        .into_iter()
        .filter_map(|report| match report {
            Report::Delivered(at, ..) => Some(at.as_ps() / 1_000_000),
            _ => None,
        })
        .collect();
    assert_eq!(ends.len(), 4);
    assert!(ends[3] - ends[0] < ends[3] / 20, "{ends:?} us");
}

/// Random messages as plans, and what is expected of each: by source and header, destination and size.
type Expected = BTreeMap<(EndpointId, u64), (EndpointId, Bytes)>;

fn plans(messages: &[(u64, usize, u32, u64, u16)]) -> (Vec<Vec<Planned>>, Expected) {
    let mut plans: Vec<Vec<Planned>> = vec![Vec::new(); 16];
    let mut expected = Expected::new();
    for &(us, from, to, bytes, interface) in messages {
        let (at, to) = (Time::ZERO + Span::from_us(us), EndpointId(to));
        let token = plans[from].len() as u64;
        plans[from].push(Planned { at, to, bytes, interface, watch: false });
        let header = token << 32 | u64::from(interface);
        expected.insert((EndpointId::from(from), header), (to, Bytes::new(bytes)));
    }
    (plans, expected)
}

/// Catches a sender that waits for ever on a peer that is off the network from some time on, and messages
/// of others that suffer.
#[test]
fn senders_are_told_of_a_dead_peer() {
    let messages: Vec<_> =
        (0..8).flat_map(|n| [(n * 20, 0, 5, 40_000, 0), (n * 20, 0, 6, 40_000, 1)]).collect();
    let (plans, expected) = plans(&messages);
    let off = FaultParameters { off: OffTimes::after(Time::ZERO + Span::from_us(70)), ..Default::default() };
    let mut run = begin_with_faults(&plans, parameters(), 1, |from| match from {
        LinkEnd::Endpoint(EndpointId(5)) => off.clone(),
        _ => FaultParameters::default(),
    });
    assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
    let (mut delivered, mut sent, mut failed) = (BTreeMap::new(), Vec::new(), Vec::new());
    for report in reports(&mut run) {
        match report {
            Report::Delivered(_, from, _, to, _, header) => {
                assert_eq!(delivered.insert((from, header), to), None, "twice");
            }
            Report::Sent(_, _, token) => sent.push(token),
            Report::Failed(_, _, token) => failed.push(token.unwrap()),
            Report::Reduced(..) => panic!("{report:?}"),
        }
    }
    assert_eq!(sent.len() + failed.len(), expected.len(), "every sender is told one thing");
    assert!(failed.len() >= 3, "{failed:?}");
    assert!(failed.iter().all(|token| token % 2 == 0), "only what goes to the dead one: {failed:?}");
    for token in sent {
        assert!(delivered.keys().any(|(_, header)| header >> 32 == u64::from(token)), "sent is arrived");
    }
}

/// caRVnet's interface with few contexts, and little room for descriptors, so that processes wait for both.
fn few_contexts(contexts: u32) -> weft_nic::ExanetParameters {
    let mut parameters = carvnet();
    parameters.rdma.send.contexts.as_mut().unwrap().count = contexts;
    parameters.rdma.send.write_channels = contexts.div_ceil(4);
    parameters
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// On links that lose and damage packets, with page faults and few contexts, everything arrives once
    /// and its sender is told so.
    #[test]
    fn writes_survive_lossy_links(
        messages in prop::collection::vec(
            (0u64..100, 0usize..16, 0u32..16, 0u64..60_000, 0u16..4), 1..20),
        (drop, corrupt) in (0u32..3_000, 0u32..3_000),
        (faulting, contexts, is_carvnet) in (any::<bool>(), 1u32..20, any::<bool>()),
        seed in any::<u64>(),
    ) {
        let mut parameters = if is_carvnet { few_contexts(contexts) } else { parameters() };
        parameters.rdma.receive.contexts = contexts;
        parameters.rdma.reliability.repetitions = 100;
        parameters.iommu.faults = if faulting { FaultModel::FirstTouch } else { FaultModel::Off };
        let (plans, expected) = plans(&messages);
        let faults = FaultParameters { drop, corrupt, ..Default::default() };
        let mut run = begin_with_faults(&plans, parameters, seed, |_| faults.clone());
        prop_assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        let (mut arrived, mut sent) = (Expected::new(), 0);
        for report in reports(&mut run) {
            match report {
                Report::Delivered(_, from, _, to, bytes, header) => {
                    prop_assert!(arrived.insert((from, header), (to, bytes)).is_none(), "twice");
                }
                Report::Sent(..) => sent += 1,
                Report::Failed(..) | Report::Reduced(..) => prop_assert!(false, "{:?}", report),
            }
        }
        prop_assert_eq!(sent, expected.len());
        prop_assert_eq!(arrived, expected.clone());
        prop_assert_eq!(agreed(&mut run), expected.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every write arrives once with what its sender said, its sender is told, nothing is left behind; and
    /// it is the same on several threads and after a save and resume in the middle.
    #[test]
    fn writes_arrive_once_whatever_the_threads(
        messages in prop::collection::vec(
            (0u64..100, 0usize..16, 0u32..16, 0u64..120_000, 0u16..4), 1..40),
        (faulting, contexts, is_carvnet) in (any::<bool>(), 1u32..20, any::<bool>()),
        stop_us in 1u64..300,
    ) {
        let mut parameters = if is_carvnet { few_contexts(contexts) } else { parameters() };
        parameters.rdma.receive.contexts = contexts;
        parameters.iommu.faults = if faulting { FaultModel::FirstTouch } else { FaultModel::Off };
        let (plans, expected) = plans(&messages);
        let mut whole = begin(&plans, parameters, 1);
        prop_assert_eq!(until(&mut whole, Time::NEVER), Progress::Dry);
        let first = reports(&mut whole);
        let mut arrived = BTreeMap::new();
        let mut sent = 0;
        for report in &first {
            match *report {
                Report::Delivered(_, from, _, to, bytes, header) => {
                    prop_assert!(arrived.insert((from, header), (to, bytes)).is_none(), "twice");
                }
                Report::Sent(..) => sent += 1,
                Report::Failed(..) | Report::Reduced(..) => prop_assert!(false, "{:?}", report),
            }
        }
        prop_assert_eq!(&arrived, &expected);
        prop_assert_eq!(sent, expected.len());
        prop_assert_eq!(agreed(&mut whole), expected.len());
        let mut bare = begin_without_data(&plans, parameters);
        until(&mut bare, Time::NEVER);
        prop_assert_eq!(&reports(&mut bare), &first, "bytes take no time");
        prop_assert_eq!(agreed(&mut bare), 0);
        for (_, site) in whole.sites() {
            for (endpoint, interface) in site.interfaces() {
                prop_assert_eq!(interface.unfinished(), (0, 0), "at {}", endpoint);
            }
        }

        for threads in [2, 3, 8] {
            let mut threaded = begin(&plans, parameters, threads);
            until(&mut threaded, Time::NEVER);
            prop_assert_eq!(&reports(&mut threaded), &first, "{} threads", threads);
        }

        let mut stopped = begin(&plans, parameters, 1);
        until(&mut stopped, Time::ZERO + Span::from_us(stop_us));
        let mut both = reports(&mut stopped);
        let saved = stopped.save().unwrap();
        let mut resumed = resume(&plans, parameters, &saved, 2);
        until(&mut resumed, Time::NEVER);
        both.extend(reports(&mut resumed));
        both.sort_unstable();
        prop_assert_eq!(&both, &first);
        prop_assert_eq!(agreed(&mut stopped) + agreed(&mut resumed), expected.len());
    }
}
