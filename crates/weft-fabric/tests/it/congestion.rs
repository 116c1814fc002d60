//! Congestion control in the network: an incast with a victim under each algorithm.

use crate::machines::{KINDS, Load, link, plain, random_script, star, torus, tree};
use crate::scripted::{Arrived, Machine, Planned, Run, Script, Scripted, take_arrivals, until};
use std::collections::{BTreeMap, BTreeSet};
use weft_congestion::{Answering, Congestion, Path, RedParameters, acc, dcqcn, hpcc, ib, nscc, swift};
use weft_engine::{Progress, Simulation};
use weft_fabric::parameters::{ArbiterKind, FlowControl, SwitchKind};
use weft_fabric::{
    CongestionError, Network, TrafficClass, TrafficClasses, TrafficKind, check_credits, check_packets,
};
use weft_topo::{Ascent, Layout, Topology};
use weft_units::{BitRate, Bytes, EndpointId, LineCode, Span, Time};

const ACC: acc::Parameters = acc::Parameters {
    period: Span::from_us(20),
    margin: 50,
    flow_init: true,
    wait_for_feedback: false,
    mind_the_gap: true,
    wait_to_rise: true,
    short_circuit: true,
};

/// Four packets of 256 B are answered at once.
pub(crate) const FOUR_AT_ONCE: Answering = Answering { every: Bytes::new(1_024), wait: Span::from_us(1) };

/// DCQCN with these marks, over a network that loses nothing.
pub(crate) fn dcqcn_with(red: RedParameters) -> dcqcn::Parameters {
    dcqcn::Parameters {
        red,
        notification_interval: Span::from_us(5),
        cut_interval: Span::ZERO,
        gain_shift: 4,
        alpha_timer: Span::from_us(6),
        increase_timer: Span::from_us(6),
        increase_bytes: Bytes::new(100_000),
        fast_steps: 5,
        additive: BitRate::from_bits_per_second(40_000_000),
        hyper: BitRate::from_bits_per_second(400_000_000),
        least: BitRate::from_bits_per_second(100_000_000),
        answering: None,
        timeout: Span::MAX,
        trim: false,
    }
}

/// Each algorithm with constants that suit links of 16 Gb/s and packets of 256 B.
fn algorithms(path: &Path) -> Vec<Congestion> {
    let round_trip = path.round_trip;
    let timeout = Span::from_us(1_000);
    let red = RedParameters { low: Bytes::new(600), high: Bytes::new(4_000), most: 200 };
    vec![
        Congestion::Acc(ACC),
        Congestion::Acc(acc::Parameters { wait_for_feedback: true, ..ACC }),
        Congestion::Acc(acc::Parameters { flow_init: false, mind_the_gap: false, ..ACC }),
        Congestion::Dcqcn(dcqcn_with(red)),
        Congestion::Hpcc(hpcc::Parameters {
            round_trip,
            aim: 950,
            most_stages: 5,
            additive: Bytes::new(20),
            timeout,
            answering: FOUR_AT_ONCE,
        }),
        Congestion::Swift(swift::Parameters {
            base: round_trip,
            per_hop: Span::from_ns(50),
            range: round_trip * 3,
            least: 100,
            most: 100,
            increase: 1_000,
            decrease: 800,
            most_decrease: 500,
            timeout,
            trim: false,
            answering: Answering::EACH,
        }),
        Congestion::Nscc(nscc::Parameters {
            red,
            target: None,
            decrease: 800,
            timeout,
            trim: false,
            answering: FOUR_AT_ONCE,
        }),
        Congestion::Ib(ib::Parameters {
            threshold: Bytes::new(600),
            marking_rate: 1,
            packet_size: Bytes::ZERO,
            marks_victims: false,
            increase: 1,
            limit: 127,
            timer: Span::from_us(20),
            shift: 2,
        }),
    ]
}

/// The number of algorithms.
const ALGORITHMS: usize = 8;

/// The run of a script under the algorithm of a number.
fn begin(machine: &Machine, script: &Script, (number, threads): (usize, usize)) -> Run {
    Simulation::new(controlled(machine, script, number).unwrap(), threads)
}

fn controlled(
    machine: &Machine,
    script: &Script,
    number: usize,
) -> Result<weft_engine::InitialState<Network<Layout, Scripted>>, CongestionError> {
    let initial = machine.build(script).unwrap();
    Network::with_congestion(initial, machine.seed, |path, _| Some(algorithms(path)[number]))
}

/// Answers and notices before data.
pub fn with_priority(mut machine: Machine) -> Machine {
    let class = |kind, priority| TrafficClass { kind, priority, weight: 1, ..TrafficClass::default() };
    let classes = [class(TrafficKind::Acknowledgements, 1), class(TrafficKind::All, 0)];
    machine.switch.channels.classes = TrafficClasses::new(&classes).unwrap();
    machine.switch.arbiter = ArbiterKind::StrictPriority;
    machine
}

/// Five endpoints of a tree send to the last one, and one of them to a victim besides.
fn incast(packets: u32) -> (Machine, Script) {
    let machine = with_priority(plain(tree(4, 2, Ascent::DModK), SwitchKind::VirtualOutputQueued, 8));
    let mut script: Script = vec![Vec::new(); machine.layout.endpoints() as usize];
    let (hot, victim) = (EndpointId(15), EndpointId(14));
    let planned = |to| Planned { at: Time::ZERO, to, bytes: 256 };
    for source in [0usize, 1, 4, 5, 8] {
        script[source] = vec![planned(hot); packets as usize];
    }
    script[9] = vec![planned(victim); packets as usize];
    (machine, script)
}

/// Bytes per microsecond of a destination, in a time.
fn rate(arrived: &[Arrived], destination: u32, (from, to): (Time, Time)) -> f64 {
    let of = arrived.iter().filter(|a| a.destination.0 == destination && a.at >= from && a.at < to);
    of.map(|a| f64::from(a.bytes)).sum::<f64>() / (to - from).as_us_f64()
}

/// Catches an algorithm that loses packets or credits, closes a flow for ever, or leaves a state behind that
/// depends on threads, epochs or resumes.
#[test]
fn threads_and_resumes_change_nothing_under_any_algorithm() {
    let (machine, script) = incast(300);
    for number in 0..ALGORITHMS {
        let mut alone = begin(&machine, &script, (number, 1));
        assert_eq!(until(&mut alone, Time::NEVER), Progress::Dry);
        assert_eq!((check_credits(&alone), check_packets(&alone)), (Ok(()), Ok(())));
        let expected = take_arrivals(&mut alone);
        assert_eq!(expected.len(), script.iter().map(Vec::len).sum::<usize>(), "algorithm {number}");
        let state = alone.save().unwrap();
        let last = expected[expected.len() - 1].at.as_ps();
        for threads in [2, 3, 8] {
            let mut run = begin(&machine, &script, (number, threads));
            let mut arrived = Vec::new();
            for epoch in 1..4 {
                until(&mut run, Time::from_ps(last / 4 * epoch + 12_345));
                arrived.extend(take_arrivals(&mut run));
                assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
                let saved = run.save().unwrap();
                let again = controlled(&machine, &script, number).unwrap();
                run = Simulation::resume(again, &saved, threads).unwrap();
            }
            assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
            arrived.extend(take_arrivals(&mut run));
            arrived.sort_unstable();
            assert!(arrived == expected, "algorithm {number} on {threads} threads");
            assert!(run.save().unwrap() == state, "algorithm {number} on {threads} threads: the state");
        }
    }
}

/// Catches a class that another one's algorithm holds back or marks, an algorithm that gets the notices or
/// the state of another, and a mixture that depends on threads or resumes.
#[test]
fn traffic_classes_have_algorithms_of_their_own() {
    let (mut machine, mut script) = incast(300);
    let class =
        |kind, up_to, priority| TrafficClass { kind, up_to, priority, weight: 1, ..TrafficClass::default() };
    let small = Some(Bytes::new(128));
    let classes = [
        class(TrafficKind::Acknowledgements, None, 2),
        class(TrafficKind::All, small, 1),
        class(TrafficKind::All, None, 0),
    ];
    machine.switch.channels.classes = TrafficClasses::new(&classes).unwrap();
    for planned in script.iter_mut().flat_map(|packets| packets.iter_mut().step_by(3)) {
        planned.bytes = 100;
    }
    let packets = script.iter().map(Vec::len).sum::<usize>();
    // By class, the place of its algorithm: NSCC and none, HPCC and DCQCN, ACC and Swift.
    for [of_small, of_large] in [[None, Some(6)], [Some(4), Some(3)], [Some(0), Some(5)]] {
        let initial = || {
            Network::with_congestion(machine.build(&script).unwrap(), machine.seed, |path, class| {
                let number: Option<usize> = [None, of_small, of_large][usize::from(class)];
                Some(algorithms(path)[number?])
            })
            .unwrap()
        };
        let mut expected: Option<(Vec<Arrived>, Vec<u8>)> = None;
        for threads in [1, 3] {
            let mut run: Run = Simulation::new(initial(), threads);
            until(&mut run, Time::ZERO + Span::from_us(5));
            let mut arrived = take_arrivals(&mut run);
            let (network, now) = (run.model(), run.now());
            let rates = run.sites().flat_map(|(_, site)| network.flow_rates(site, now));
            let ruled: BTreeSet<u8> = rates.map(|(flow, _)| flow.class).collect();
            let with_rule = [(1, of_small), (2, of_large)].into_iter().filter(|(_, rule)| rule.is_some());
            assert_eq!(ruled, with_rule.map(|(class, _)| class).collect());
            let saved = run.save().unwrap();
            let mut run: Run = Simulation::resume(initial(), &saved, threads).unwrap();
            assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
            assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
            arrived.extend(take_arrivals(&mut run));
            arrived.sort_unstable();
            assert_eq!(arrived.len(), packets);
            let state = run.save().unwrap();
            let (same, alone) = expected.get_or_insert_with(|| (arrived.clone(), state.clone()));
            assert!(*same == arrived && *alone == state, "{of_small:?}, {of_large:?}: {threads} threads");
        }
    }
}

/// Catches flows that are counted wrong, or at another endpoint than where they end, and a meter that changes
/// a run; with congestion control, which takes another way into the endpoint, and without.
#[test]
fn meters_count_what_came_of_each_flow() {
    let (machine, script) = incast(300);
    let plain: &dyn Fn(usize) -> Run = &|threads| machine.begin(&script, threads);
    let controlled: &dyn Fn(usize) -> Run = &|threads| begin(&machine, &script, (0, threads));
    for begun in [plain, controlled] {
        let mut alone = begun(1);
        until(&mut alone, Time::NEVER);
        let expected = take_arrivals(&mut alone);
        assert_eq!(Network::flows(&alone).count(), 0, "nobody has asked");
        for threads in [1, 3] {
            let mut run = begun(threads);
            Network::meter_flows(&mut run);
            until(&mut run, Time::ZERO + Span::from_us(5));
            let mut arrived = take_arrivals(&mut run);
            until(&mut run, Time::NEVER);
            arrived.extend(take_arrivals(&mut run));
            arrived.sort_unstable();
            assert!(arrived == expected, "{threads} threads: the meter changes the run");
            let mut counted = BTreeMap::new();
            for one in &expected {
                let (packets, payload) =
                    counted.entry((one.source, one.destination)).or_insert((0_u64, 0_u64));
                (*packets, *payload) = (*packets + 1, *payload + u64::from(one.bytes));
            }
            let metered: BTreeMap<_, _> = Network::flows(&run)
                .map(|(flow, count)| ((flow.source, flow.destination), (count.packets, count.payload.get())))
                .collect();
            assert_eq!(metered, counted);
        }
    }
}

/// Catches shares of an incast under ACC that are not those of water filling with the margin, and queues that
/// do not empty.
#[test]
fn acc_gives_an_incast_its_max_min_shares() {
    let (machine, script) = incast(4_000);
    let mut run = begin(&machine, &script, (0, 1));
    let (from, to) = (Time::ZERO + Span::from_us(200), Time::ZERO + Span::from_us(600));
    until(&mut run, to);
    let arrived = take_arrivals(&mut run);
    // Of 2,000 bytes per microsecond 256 of 288 are payload, and 95 of 100 are given.
    let given = 2_000.0 * 256.0 / 288.0 * 0.95;
    let hot = rate(&arrived, 15, (from, to));
    assert!((hot / given - 1.0).abs() < 0.01, "the hot link has {hot} of {given}");
    for source in [0, 1, 4, 5, 8] {
        let own: Vec<Arrived> = arrived.iter().filter(|a| a.source.0 == source).copied().collect();
        let share = rate(&own, 15, (from, to));
        assert!((share / (given / 5.0) - 1.0).abs() < 0.01, "{source} has {share}");
    }
    let victim = rate(&arrived, 14, (from, to));
    assert!((victim / given - 1.0).abs() < 0.01, "the victim has {victim} of {given}");
    let model = run.model();
    let rates: Vec<_> = run.sites().flat_map(|(_, site)| model.flow_rates(site, to)).collect();
    assert_eq!(rates.len(), 6, "a flow of each source");
}

/// Catches an answer from inside the fabric that a source does not get, or gets late: the switch before the
/// link to a hot endpoint answers after the way to it, and the endpoint after the whole way.
#[test]
fn a_short_circuit_answers_after_half_the_way() {
    let mut machine = plain(star(4), SwitchKind::VirtualOutputQueued, 400);
    machine.links.fill(link(16_000, LineCode::NONE, 2_000_000, 0));
    let packets = |at: u64| {
        let planned = Planned { at: Time::ZERO + Span::from_us(at), to: EndpointId(3), bytes: 256 };
        vec![planned; 400]
    };
    let script: Script = vec![packets(0), packets(25), Vec::new(), Vec::new()];
    // Links take 2 us. The second flow announces itself at 25 us.
    let allowed = |short_circuit: bool, us: u64| {
        let acc = acc::Parameters { short_circuit, ..ACC };
        let initial = machine.build(&script).unwrap();
        let acc = |_: &Path, _| Some(Congestion::Acc(acc));
        let mut run = Simulation::new(Network::with_congestion(initial, 1, acc).unwrap(), 1);
        let at = Time::ZERO + Span::from_us(us);
        until(&mut run, at);
        let model = run.model();
        let mut flows = run.sites().flat_map(|(_, site)| model.flow_rates(site, at));
        flows.find(|(flow, _)| flow.source.0 == 1).map(|(_, rate)| rate.bits_per_second())
    };
    let (line, half) =
        (Some(16_000_000_000), |rate: Option<u64>| rate.is_some_and(|rate| rate < 8_000_000_000));
    assert_eq!((allowed(true, 28), allowed(false, 28)), (line, line));
    assert!(half(allowed(true, 30)) && allowed(false, 30) == line);
    assert!(half(allowed(true, 35)) && half(allowed(false, 35)));
}

/// Catches an answer that comes before the simulation can have it: the time that a flow-rate packet has taken
/// counts anew after 17 ms, so that one that has taken a little longer seems to come from next door.
#[test]
fn an_answer_to_a_very_late_packet_is_not_too_early() {
    // Two switches with two endpoints each, whose links take a little less than that time.
    let mut machine = plain(torus(&[2], false, 2, true), SwitchKind::VirtualOutputQueued, 400);
    let around = Span::from_ps(1 << 34);
    machine.links.fill(link(16_000, LineCode::NONE, 400_000, 0));
    machine.links[0].latency = around - Span::from_ns(690);
    let planned = |at: u64| Planned { at: Time::ZERO + Span::from_us(at), to: EndpointId(3), bytes: 256 };
    let mut script: Script = vec![Vec::new(); 4];
    (script[2], script[0]) = (vec![planned(0); 200], vec![planned(10); 200]);
    let mut run = begin(&machine, &script, (0, 1));
    until(&mut run, Time::ZERO + around * 2);
    assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
}

/// Catches a control that does nothing: without it packets of the incast wait in the network for longer.
#[test]
fn every_algorithm_keeps_queues_shorter_than_none() {
    let (machine, script) = incast(1_500);
    let at = |us| Time::ZERO + Span::from_us(us);
    let buffered = |mut run: Run| {
        let mut most = 0;
        for us in 400..420 {
            until(&mut run, at(us));
            most = most.max(Network::queues(&run).map(|queue| queue.packets).sum::<u32>());
        }
        most
    };
    let without = buffered(machine.begin(&script, 1));
    for number in 0..ALGORITHMS {
        let with = buffered(begin(&machine, &script, (number, 1)));
        assert!(with < without, "algorithm {number}: {with} packets in buffers, {without} without control");
    }
}

/// Catches packets lost in the accounts, or a circle of waiting, under random traffic on every kind of
/// switch, with one traffic class and with two.
#[test]
fn random_traffic_arrives_on_every_kind_of_switch() {
    for (index, kind) in KINDS.into_iter().enumerate() {
        let machine = plain(torus(&[4, 4], true, 1, true), kind, 3);
        let machine = if index % 2 == 0 { with_priority(machine) } else { machine };
        let load = Load { packets: 40, gap_ps: 100_000, seed: 5 };
        let script = random_script(&machine.layout, 256, load);
        for number in 0..ALGORITHMS {
            let mut run = begin(&machine, &script, (number, 1));
            assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
            assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
            let arrived = take_arrivals(&mut run).len();
            assert_eq!(arrived, script.iter().map(Vec::len).sum::<usize>(), "{kind:?}, algorithm {number}");
        }
    }
}

/// Catches an algorithm on a network that lacks what it needs.
#[test]
fn networks_that_lack_something_are_refused() {
    let (machine, script) = incast(1);
    let refusal = |machine: &Machine, number| controlled(machine, &script, number).err();
    let mut drops = machine.clone();
    drops.switch.flow_control = FlowControl::Drop;
    assert_eq!(refusal(&drops, 0), Some(CongestionError::NeedsLossless("acc")));
    assert_eq!(refusal(&drops, 5), None);
    let mut random = machine.clone();
    random.layout = tree(4, 2, Ascent::Random);
    assert_eq!(refusal(&random, 0), Some(CongestionError::NeedsOneWay("acc")));
    assert_eq!(refusal(&random, 6), None);
    let mut age = plain(tree(4, 2, Ascent::DModK), SwitchKind::InputQueued, 8);
    age.switch.arbiter = ArbiterKind::Age;
    assert_eq!(refusal(&age, 3), Some(CongestionError::AgeArbiter("dcqcn")));
}
