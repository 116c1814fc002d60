//! The same run on any number of threads, cut by epochs, saved and resumed.

use crate::machines::{
    Load, NO_BIAS, classes, combined, dragonfly, dragonfly_routed, exanest, hyperx, link, megafly_routed,
    plain, random_script, slim_fly, star, torus, tree, tree_routed, ugal,
};
use crate::scripted::{Machine, take_arrivals, until};
use weft_engine::{Progress, Stream};
use weft_fabric::parameters::{
    ArbiterKind, ChannelParameters, CreditUnit, FasterLink, FlowControl, Forwarding, PauseParameters,
    SwitchKind,
};
use weft_fabric::{LinkPower, SleepParameters, check_credits, check_packets};
use weft_topo::{
    Ascent, DragonflyRouting, GraphRouting, HyperXRouting, LaneChoice, Layout, MegaflyRouting, TreeRouting,
};
use weft_units::{Bytes, Clock, EnergyPerBit, LineCode, Power, Span, Time};

const SLEEP: SleepParameters = SleepParameters {
    low: Power::from_uw(1),
    idle_after: Span::from_ns(20),
    wake: Span::from_ns(90),
    off: None,
    signal: None,
};

fn pause(response_ps: u64) -> FlowControl {
    let response = Span::from_ps(response_ps);
    FlowControl::Pause(PauseParameters { headroom: None, hysteresis: None, response })
}

/// A machine, and the partitions that eight threads make of it.
fn with_partitions(machine: Machine) -> (Machine, usize) {
    let script = vec![Vec::new(); weft_topo::Topology::endpoints(&machine.layout) as usize];
    let partitions = machine.begin(&script, 8).partitions();
    (machine, partitions)
}

/// Machines of up to 576 switches (engines cut them in blocks of 64), each with another switch, arbiter,
/// flow control and mix of links, and how many partitions eight threads make of it.
fn machines() -> Vec<(Machine, usize)> {
    use SwitchKind::{InputQueued, OutputQueued, VirtualOutputQueued};
    let make = |layout: Layout, kind, arbiter, partitions| {
        let mut machine = plain(layout, kind, 3);
        machine.switch.arbiter = arbiter;
        (machine, partitions)
    };
    let ugal_threshold = NO_BIAS;
    let par = DragonflyRouting::Par { ugal_threshold };
    let ugal_g = DragonflyRouting::UgalG { ugal_threshold };
    let spines = MegaflyRouting::UgalG { ugal_threshold };
    let mut machines = vec![
        make(torus(&[8, 8, 8], true, 1, true), InputQueued, ArbiterKind::RoundRobin, 8),
        make(torus(&[24, 24], false, 1, true), VirtualOutputQueued, ArbiterKind::Islip(2), 8),
        make(exanest(32), OutputQueued, ArbiterKind::RoundRobin, 8),
        make(tree(8, 3, Ascent::Random), InputQueued, ArbiterKind::Random, 3),
        make(dragonfly(2, 8, 4, 33), InputQueued, ArbiterKind::Islip(1), 5),
        make(ugal(2, 8, 4, 33), VirtualOutputQueued, ArbiterKind::RoundRobin, 5),
        make(star(64), VirtualOutputQueued, ArbiterKind::Random, 1),
        make(ugal(2, 8, 4, 33), combined(1_500), ArbiterKind::RoundRobin, 5),
        make(torus(&[24, 24], true, 1, true), combined(2_000), ArbiterKind::Islip(2), 8),
        // Adaptive ones beside UGAL-L: PAR, UGAL-G, the shortest queue of a tree and of a graph.
        make(dragonfly_routed(par), InputQueued, ArbiterKind::RoundRobin, 5),
        make(dragonfly_routed(ugal_g.clone()), InputQueued, ArbiterKind::RoundRobin, 5),
        make(dragonfly_routed(ugal_g), OutputQueued, ArbiterKind::RoundRobin, 5),
        make(megafly_routed(spines), VirtualOutputQueued, ArbiterKind::Random, 3),
        make(tree_routed(TreeRouting::Adaptive), InputQueued, ArbiterKind::RoundRobin, 2),
        make(slim_fly(GraphRouting::UgalL { ugal_threshold }), InputQueued, ArbiterKind::RoundRobin, 1),
    ];
    let published = [
        (hyperx(HyperXRouting::UgalG { ugal_threshold }), InputQueued),
        (slim_fly(GraphRouting::UgalG { ugal_threshold }), combined(1_500)),
    ];
    for (layout, kind) in published {
        let (machine, _) = make(layout, kind, ArbiterKind::RoundRobin, 0);
        machines.push(with_partitions(machine));
    }
    // Lanes and classes beyond what the routings need.
    let by_size = classes(&[(Some(64), 1, 300), (None, 0, 900)]);
    let channels =
        |total, lane| ChannelParameters { total: Some(total), lane, classes: by_size, failover: false };
    let kinds = [
        (torus(&[4, 5], true, 1, true), InputQueued, ArbiterKind::StrictPriority, LaneChoice::Flow, 8),
        (
            torus(&[4, 5], true, 1, true),
            VirtualOutputQueued,
            ArbiterKind::WeightedRoundRobin,
            LaneChoice::Room,
            12,
        ),
        (ugal(1, 4, 2, 9), InputQueued, ArbiterKind::Age, LaneChoice::Room, 6),
        (exanest(4), OutputQueued, ArbiterKind::Age, LaneChoice::Room, 8),
        (torus(&[4, 5], true, 1, true), OutputQueued, ArbiterKind::WeightedRoundRobin, LaneChoice::Flow, 4),
        (tree(3, 3, Ascent::Random), OutputQueued, ArbiterKind::StrictPriority, LaneChoice::Flow, 4),
        (torus(&[4, 5], true, 1, true), InputQueued, ArbiterKind::MinimumBandwidth, LaneChoice::Flow, 8),
        (tree(3, 3, Ascent::Random), OutputQueued, ArbiterKind::MinimumBandwidth, LaneChoice::Room, 8),
    ];
    for (layout, kind, arbiter, lane, total) in kinds {
        let (mut machine, _) = make(layout, kind, arbiter, 0);
        machine.switch.channels = channels(total, lane);
        if kind == OutputQueued {
            machine.switch.output_buffer = Some(Bytes::new(600));
        }
        machines.push(with_partitions(machine));
    }
    machines[1].0.switch.forwarding = Forwarding::StoreAndForward;
    machines[1].0.switch.clock = Clock::from_hertz(200_000_000).unwrap();
    let (fast, slow) =
        (link(16_000, LineCode::B64_66, 120_000, 8), link(10_000, LineCode::B64_66, 240_001, 8));
    machines[2].0.links = vec![fast, fast, fast, slow, slow, slow];
    machines[2].0.switch.output_buffer = Some(Bytes::new(600));
    machines[2].0.switch.faster_link = FasterLink::Delay;
    for (of, flow_control) in [(0, pause(0)), (1, pause(300_000)), (2, FlowControl::Drop), (5, pause(10_000))]
    {
        let (mut machine, partitions) = machines[of].clone();
        machine.switch.flow_control = flow_control;
        if flow_control != FlowControl::Drop {
            machine.switch.buffer += machine.largest_headroom();
        }
        machines.push((machine, partitions));
    }
    // Credits that take words of the line, in switches of each kind.
    for of in [0, 1, 2, 3, 7] {
        machines[of].0.links.iter_mut().for_each(|link| link.layer.credit = Bytes::new(16));
    }
    machines[5].0.switch.credit = CreditUnit::Cells(Bytes::new(64));
    machines[5].0.switch.buffer = Bytes::new(5 * 64);
    machines[7].0.switch.output_buffer = Some(Bytes::new(700));
    machines
}

/// The first of them with pauses over links that sleep.
fn sleeping() -> (Machine, usize) {
    let (mut machine, partitions) = machines().swap_remove(0);
    machine.switch.flow_control = pause(0);
    let power = LinkPower { active: Power::from_uw(9), per_bit: EnergyPerBit::ZERO, sleep: Some(SLEEP) };
    for link in &mut machine.links {
        link.layer.credit = Bytes::ZERO;
        link.layer.power = Some(power);
    }
    machine.switch.buffer += machine.largest_headroom();
    (machine, partitions)
}

/// Catches a result that depends on partitions, on threads, on where epochs cut the windows, or on
/// having been saved and resumed: arrivals and the whole final state are compared.
#[test]
fn threads_epochs_and_resumes_change_nothing() {
    for (index, (machine, partitions)) in machines().into_iter().chain([sleeping()]).enumerate() {
        let script = random_script(&machine.layout, 256, Load { packets: 12, gap_ps: 300_000, seed: 9 });
        let mut alone = machine.begin(&script, 1);
        assert_eq!(until(&mut alone, Time::NEVER), Progress::Dry);
        let expected = take_arrivals(&mut alone);
        let lost: u64 = alone.sites().map(|(_, site)| site.faults().full).sum();
        let drops = machine.switch.flow_control == FlowControl::Drop;
        assert!((lost > 0) == drops, "{lost} packets lost of machine {index}");
        assert_eq!(expected.len() + lost as usize, script.iter().map(Vec::len).sum());
        let last = expected[expected.len() - 1].at.as_ps();
        let state = alone.save().unwrap();
        let mut rng = Stream::new(index as u64, 0, 0);
        for threads in [2, 3, 8] {
            let mut run = machine.begin(&script, threads);
            assert_eq!(run.partitions(), partitions.min(threads));
            let mut arrived = Vec::new();
            for (epoch, next) in [(1, 3), (2, 1), (3, 8), (4, 2)] {
                let at = last / 8 * epoch + u64::from(rng.below(1_000_000));
                until(&mut run, Time::from_ps(at));
                arrived.extend(take_arrivals(&mut run));
                assert_eq!((check_credits(&run), check_packets(&run)), (Ok(()), Ok(())));
                let saved = run.save().unwrap();
                run = machine.resume(&script, &saved, if epoch % 2 == 1 { next } else { threads });
            }
            assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
            arrived.extend(take_arrivals(&mut run));
            arrived.sort_unstable();
            assert!(arrived == expected, "machine {index} on {threads} threads");
            assert!(run.save().unwrap() == state, "machine {index} on {threads} threads: the final state");
        }
    }
}

/// Catches a packet that passes a switch although it would have had to queue, or the other way round: in
/// steps shorter than a clock cycle none passes, since a step may always end before it is granted its output.
#[test]
fn steps_shorter_than_a_cycle_change_nothing() {
    for (index, (machine, _)) in machines().into_iter().chain([sleeping()]).enumerate() {
        let script = random_script(&machine.layout, 256, Load { packets: 12, gap_ps: 30_000, seed: 9 });
        let mut at_once = machine.begin(&script, 1);
        assert_eq!(until(&mut at_once, Time::NEVER), Progress::Dry);
        let expected = take_arrivals(&mut at_once);
        // The last part at once: how far a run has come is part of its state.
        let most = Time::from_ps(expected[expected.len() - 1].at.as_ps() / 10 * 9);
        let mut run = machine.begin(&script, 1);
        let mut now = Time::ZERO;
        while now < most {
            now += Span::from_ps(777);
            until(&mut run, now);
            if now.as_ps().is_multiple_of(777 << 8) {
                let mut halfway = machine.begin(&script, 1);
                until(&mut halfway, now);
                assert!(
                    run.save().unwrap() == halfway.save().unwrap(),
                    "machine {index}: the state at {now}"
                );
            }
        }
        assert_eq!(until(&mut run, Time::NEVER), Progress::Dry);
        assert!(take_arrivals(&mut run) == expected, "machine {index}");
        assert!(run.save().unwrap() == at_once.save().unwrap(), "machine {index}: the final state");
    }
}

/// Catches a snapshot that depends on partitions.
#[test]
fn a_snapshot_is_the_same_for_any_number_of_threads() {
    let (machine, _) = machines().swap_remove(0);
    let script = random_script(&machine.layout, 256, Load { packets: 12, gap_ps: 300_000, seed: 9 });
    let snapshot = |threads| {
        let mut run = machine.begin(&script, threads);
        until(&mut run, Time::ZERO + Span::from_ps(1_234_567));
        run.save().unwrap()
    };
    let alone = snapshot(1);
    assert!([2, 3, 8].iter().all(|&threads| snapshot(threads) == alone));
}
