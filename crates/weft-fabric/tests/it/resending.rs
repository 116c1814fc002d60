//! Lost and trimmed packets that sources send again: an incast over small buffers that lose packets.

use crate::congestion::{FOUR_AT_ONCE, dcqcn_with, with_priority};
use crate::machines::{KINDS, Load, plain, random_script, tree};
use crate::scripted::{Arrived, Machine, Planned, Run, Script, Scripted, take_arrivals, until};
use weft_congestion::{Answering, Congestion, RedParameters, dcqcn, nscc, swift};
use weft_engine::{InitialState, Progress, Simulation};
use weft_fabric::parameters::{FlowControl, SwitchKind};
use weft_fabric::{CongestionError, Network, check_credits, check_packets};
use weft_topo::{Ascent, Layout, Topology};
use weft_units::{Bytes, EndpointId, PacketCounts, Span, Time};

const RED: RedParameters = RedParameters { low: Bytes::new(600), high: Bytes::new(2_000), most: 500 };

/// Longer than any round trip of these networks.
const TIMEOUT: Span = Span::from_us(30);

/// NSCC, Swift or DCQCN, with trimming or without.
fn algorithm((number, trim): (usize, bool), round_trip: Span, timeout: Span) -> Congestion {
    match number {
        0 => Congestion::Nscc(nscc::Parameters {
            red: RED,
            target: None,
            decrease: 800,
            timeout,
            trim,
            answering: FOUR_AT_ONCE,
        }),
        1 => Congestion::Swift(swift::Parameters {
            base: round_trip,
            per_hop: Span::from_ns(50),
            range: round_trip * 3,
            least: 100,
            most: 100,
            increase: 1_000,
            decrease: 800,
            most_decrease: 500,
            timeout,
            trim,
            answering: Answering::EACH,
        }),
        _ => Congestion::Dcqcn(dcqcn::Parameters {
            answering: Some(FOUR_AT_ONCE),
            timeout,
            trim,
            ..dcqcn_with(RED)
        }),
    }
}

const CASES: [(usize, bool); 6] = [(0, false), (0, true), (1, false), (1, true), (2, false), (2, true)];

fn controlled(
    machine: &Machine,
    script: &Script,
    case: (usize, bool),
) -> Result<InitialState<Network<Layout, Scripted>>, CongestionError> {
    let initial = machine.build(script).unwrap();
    Network::with_congestion(initial, machine.seed, |path, _| Some(algorithm(case, path.round_trip, TIMEOUT)))
}

fn begin(machine: &Machine, script: &Script, case: (usize, bool), threads: usize) -> Run {
    Simulation::new(controlled(machine, script, case).unwrap(), threads)
}

/// Ten endpoints of a tree send to the last one, over buffers of three packets.
fn incast(kind: SwitchKind) -> (Machine, Script) {
    let mut machine = with_priority(plain(tree(4, 2, Ascent::Random), kind, 3));
    machine.switch.flow_control = FlowControl::Drop;
    let mut script: Script = vec![Vec::new(); machine.layout.endpoints() as usize];
    for source in script.iter_mut().take(10) {
        *source = vec![Planned { at: Time::ZERO, to: EndpointId(15), bytes: 256 }; 60];
    }
    (machine, script)
}

fn counts(run: &Run) -> PacketCounts {
    Network::links(run).fold(PacketCounts::default(), |mut all, link| {
        all += link.counts;
        all
    })
}

/// The packets that came, in the order of their names, however late.
fn identities(arrived: &[Arrived]) -> Vec<(u32, u32, u32)> {
    let mut all: Vec<_> =
        arrived.iter().map(|packet| (packet.source.0, packet.destination.0, packet.message)).collect();
    all.sort_unstable();
    all
}

/// Catches a packet that is lost for good or handed over twice, one that is trimmed and not counted, and a
/// buffer or a link that loses count, on every kind of switch.
#[test]
fn each_packet_comes_once_on_every_kind_of_switch() {
    for kind in KINDS {
        let (machine, script) = incast(kind);
        for case in CASES {
            let mut run = begin(&machine, &script, case, 1);
            assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
            assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())), "{kind:?} {case:?}");
            let came = identities(&take_arrivals(&mut run));
            assert!(came.windows(2).all(|pair| pair[0] != pair[1]), "{kind:?} {case:?}: twice");
            assert_eq!(came.len(), 600, "{kind:?} {case:?}");
            let counts = counts(&run);
            // Answers and headers may be lost too, which do not go again.
            let known = if case.1 { counts.trimmed } else { counts.full / 2 };
            assert!(counts.resent >= known, "{kind:?} {case:?}: {counts:?}");
            // A switch with output queues takes from its inputs whatever comes.
            let loses = kind != SwitchKind::OutputQueued;
            assert_eq!(counts.trimmed > 0, case.1 && loses, "{kind:?} {case:?}: {counts:?}");
            assert_eq!(counts.trimmed + counts.full > 0, loses, "{kind:?} {case:?}: {counts:?}");
        }
    }
}

/// Catches a copy that is handed over: with time-outs shorter than the round trip, packets go again that have
/// come.
#[test]
fn packets_that_go_again_needlessly_come_once() {
    let (mut machine, mut script) = incast(SwitchKind::VirtualOutputQueued);
    machine.switch.buffer = Bytes::new(1 << 20);
    script.iter_mut().skip(1).for_each(Vec::clear);
    for number in [0, 1] {
        // The time-out doubles until answers come in time, so that few copies go with any of these.
        let resent = [50, 100, 500].map(|ns| {
            let initial = machine.build(&script).unwrap();
            let hasty = |round_trip| Some(algorithm((number, false), round_trip, Span::from_ns(ns)));
            let controlled =
                Network::with_congestion(initial, machine.seed, |path, _| hasty(path.round_trip));
            let mut run: Run = Simulation::new(controlled.unwrap(), 1);
            assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
            let (came, counts) = (identities(&take_arrivals(&mut run)), counts(&run));
            assert_eq!(counts.full, 0);
            assert!(came.windows(2).all(|pair| pair[0] != pair[1]), "algorithm {number}: twice");
            assert_eq!(came.len(), 60);
            assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
            counts.resent
        });
        assert!((1..60).contains(&resent.iter().sum::<u64>()), "algorithm {number}: {resent:?}");
    }
}

/// Catches trimming that is no help: sources learn of each lost packet in a round trip instead of a time-out.
#[test]
fn trimmed_packets_come_sooner_than_lost_ones() {
    let (machine, script) = incast(SwitchKind::VirtualOutputQueued);
    let end = |trim| {
        let mut run = begin(&machine, &script, (0, trim), 1);
        until(&mut run, Time::NEVER);
        take_arrivals(&mut run).into_iter().map(|packet| packet.at).max()
    };
    assert!(end(true) < end(false), "{:?} {:?}", end(true), end(false));
}

/// Catches a state of what was sent and has come that depends on threads, epochs or resumes.
#[test]
fn threads_and_resumes_change_nothing_where_packets_go_again() {
    let (machine, script) = incast(SwitchKind::VirtualOutputQueued);
    for case in CASES {
        let mut alone = begin(&machine, &script, case, 1);
        until(&mut alone, Time::NEVER);
        let expected = take_arrivals(&mut alone);
        let (state, last) = (alone.save().unwrap(), expected[expected.len() - 1].at.as_ps());
        for threads in [2, 3, 8] {
            let mut run = begin(&machine, &script, case, threads);
            let mut arrived = Vec::new();
            for epoch in 1..4 {
                until(&mut run, Time::from_ps(last / 4 * epoch + 12_345));
                arrived.extend(take_arrivals(&mut run));
                assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
                let saved = run.save().unwrap();
                run = Simulation::resume(controlled(&machine, &script, case).unwrap(), &saved, threads)
                    .unwrap();
            }
            assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
            arrived.extend(take_arrivals(&mut run));
            arrived.sort_unstable();
            assert!(arrived == expected, "{case:?} on {threads} threads");
            assert!(run.save().unwrap() == state, "{case:?} on {threads} threads: the state");
        }
    }
}

/// Catches packets that are lost under random traffic of every size, also where all share one class.
#[test]
fn random_traffic_comes_whole_over_buffers_that_lose() {
    for seed in 0..6 {
        let kind = KINDS[seed as usize % KINDS.len()];
        let machine = plain(tree(4, 2, Ascent::Random), kind, 2);
        let mut machine = if seed % 2 == 0 { with_priority(machine) } else { machine };
        machine.switch.flow_control = FlowControl::Drop;
        let script = random_script(&machine.layout, 256, Load { packets: 60, gap_ps: 20_000, seed });
        for case in CASES {
            let mut run = begin(&machine, &script, case, 1);
            assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
            assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
            let came = identities(&take_arrivals(&mut run));
            assert!(came.windows(2).all(|pair| pair[0] != pair[1]), "{seed} {case:?}: twice");
            assert_eq!(came.len(), script.iter().map(Vec::len).sum::<usize>(), "{seed} {case:?}");
        }
    }
}

/// Catches trimming where nothing would be sent again.
#[test]
fn trimming_that_repairs_nothing_is_refused() {
    let (mut machine, script) = incast(SwitchKind::VirtualOutputQueued);
    assert!(controlled(&machine, &script, (0, true)).is_ok());
    machine.switch.flow_control = FlowControl::Credits;
    assert_eq!(controlled(&machine, &script, (0, true)).err(), Some(CongestionError::NothingToTrim("nscc")));
    assert!(controlled(&machine, &script, (0, false)).is_ok());
}
