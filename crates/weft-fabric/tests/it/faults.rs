//! Links that lose and corrupt packets, and links that fail for good.

use crate::machines::{KINDS, Load, exanest, plain, random_script, star, torus, tree, ugal};
use crate::scripted::{
    Arrived, Machine, Planned, Run, Script, Scripted, assert_counts_are_sums, take_arrivals, until,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use weft_engine::{InitialState, Progress, Simulation};
use weft_fabric::parameters::{FlowControl, PauseParameters};
use weft_fabric::{
    FaultParameters, InForce, LinkEnd, LinkReport, Network, OffInterval, OffTimes, Reroutes, census,
    check_credits, check_packets, stuck,
};
use weft_topo::{
    Ascent, Attachment, Dead, Layout, LinkClass, Routing, Topology, TopologyParameters, UpDownTables, Wiring,
    prove,
};
use weft_units::{EndpointId, PortId, Span, SwitchId, Time};

/// A run of `script` with faults.
fn begin(
    machine: &Machine,
    script: &Script,
    threads: usize,
    faults: impl FnMut(LinkEnd, Attachment, LinkClass) -> FaultParameters,
) -> Run<Layout> {
    let mut initial = machine.build(script).unwrap();
    initial.model.inject_faults(&mut initial.sites, 77, faults);
    Simulation::new(initial, threads)
}

fn planned(script: &Script) -> u64 {
    script.iter().map(|plan| plan.len() as u64).sum()
}

fn links(run: &Run<Layout>) -> Vec<LinkReport> {
    run.sites().flat_map(|(id, site)| run.model().links_of(id, site, run.now())).collect()
}

/// Runs to the end with checks on the way, and returns what arrived. Nothing may be left.
fn checked(run: &mut Run<Layout>) -> Vec<Arrived> {
    let mut arrived = Vec::new();
    for epoch in 1..=20 {
        until(run, Time::from_ps(epoch * 400_000));
        assert_eq!((check_packets(run), check_credits(run)), (Ok(()), Ok(())));
        assert_counts_are_sums(run);
        arrived.extend(take_arrivals(run));
    }
    assert_eq!(until(run, Time::NEVER), Progress::Dry);
    assert_eq!((check_packets(run), check_credits(run)), (Ok(()), Ok(())));
    arrived.extend(take_arrivals(run));
    assert_eq!(stuck(run), None, "credits of lost packets come back, and nothing waits in a circle");
    arrived
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Catches credits and packets that a fault takes along or makes, and counters that miss one.
    #[test]
    fn what_does_not_arrive_was_counted_with_its_cause(
        (which, kind) in (0usize..4, 0usize..4), (drop, corrupt) in (0u32..300_000, 0u32..300_000),
        off in prop::option::of(0u64..3_000_000), seed in any::<u64>(),
    ) {
        let layout = [torus(&[4, 4], true, 1, true), exanest(2), star(6), ugal(2, 4, 2, 5)][which].clone();
        let machine = plain(layout, KINDS[kind], 2);
        let script = random_script(&machine.layout, 256, Load { packets: 12, gap_ps: 300_000, seed });
        let faults = FaultParameters { drop, corrupt, ..Default::default() };
        let mut run = begin(&machine, &script, 1, |from, _, _| match from {
            // One link is off from some time on, and every other one loses packets.
            LinkEnd::Endpoint(EndpointId(1)) => {
                let off = off.map_or(OffTimes::NEVER, |off| OffTimes::after(Time::from_ps(off)));
                FaultParameters { off, ..faults.clone() }
            }
            _ => faults.clone(),
        });
        let arrived = checked(&mut run);
        let counted = census(&run);
        prop_assert_eq!(counted.supplied, planned(&script));
        prop_assert_eq!(counted.delivered, arrived.len() as u64);
        prop_assert_eq!(counted.delivered + counted.faults.lost(), counted.supplied);
        let by_link = links(&run).iter().map(|link| link.counts.lost()).sum::<u64>();
        prop_assert_eq!(by_link, counted.faults.lost());
    }
}

/// Catches random numbers that depend on the order in which partitions run, or that a snapshot forgets.
#[test]
fn faults_are_the_same_for_any_threads_and_after_resuming() {
    let machine = plain(torus(&[24, 24], true, 1, true), KINDS[0], 3);
    let script = random_script(&machine.layout, 256, Load { packets: 12, gap_ps: 300_000, seed: 9 });
    let faults = |from, _, LinkClass(class)| match from {
        LinkEnd::Port(SwitchId(7), _) => {
            FaultParameters { off: OffTimes::after(Time::from_ps(1_000_000)), ..Default::default() }
        }
        _ => FaultParameters { drop: 5_000 * u32::from(class), corrupt: 20_000, ..Default::default() },
    };
    let mut alone = begin(&machine, &script, 1, faults);
    let expected = checked(&mut alone);
    let state = alone.save().unwrap();
    let counts = census(&alone).faults;
    assert!(counts.dropped > 50 && counts.dead > 5 && counts.corrupted > 100, "{counts:?}");
    for threads in [2, 3, 8] {
        let mut run = begin(&machine, &script, threads, faults);
        until(&mut run, Time::from_ps(700_000));
        let mut arrived = take_arrivals(&mut run);
        let mut run = machine.resume(&script, &run.save().unwrap(), 3);
        arrived.extend(checked(&mut run));
        arrived.sort_unstable();
        let mut expected = expected.clone();
        expected.sort_unstable();
        assert!(arrived == expected, "{threads} threads");
        assert!(run.save().unwrap() == state, "{threads} threads: the final state");
    }
}

/// Catches a dead link that lets packets pass, takes others along, or blocks those behind.
#[test]
fn a_dead_link_loses_what_it_is_given_and_nothing_else() {
    for kind in KINDS {
        let machine = plain(exanest(1), kind, 2);
        let mut script: Script = vec![Vec::new(); 16];
        for number in 0..40 {
            // M1QAF1 to M1QBF1 over the X link, and within the QFDB behind it.
            let at = Time::from_ps(number * 100_000);
            script[0].push(Planned { at, to: EndpointId(4), bytes: 256 });
            script[0].push(Planned { at, to: EndpointId(1), bytes: 256 });
        }
        let off = Time::from_ps(2_000_000);
        let x = LinkEnd::Port(SwitchId(4), PortId(1));
        let mut run = begin(&machine, &script, 1, |from, _, _| FaultParameters {
            off: if from == x { OffTimes::after(off) } else { OffTimes::NEVER },
            ..Default::default()
        });
        let arrived = checked(&mut run);
        let over_x = arrived.iter().filter(|arrived| arrived.destination == EndpointId(4)).count() as u64;
        assert_eq!(arrived.len() as u64 - over_x, 40, "{kind:?}: neighbours are not concerned");
        let counted = census(&run).faults;
        assert!(over_x > 5 && counted.dead == 40 - over_x && counted.lost() == counted.dead, "{counted:?}");
        let dead: Vec<LinkEnd> =
            links(&run).iter().filter(|link| link.counts.dead > 0).map(|link| link.from).collect();
        assert_eq!(dead, [x]);
    }
}

/// Links between switches that are off for a while, over and over.
struct Outage {
    links: Dead,
    intervals: Vec<OffInterval>,
}

impl Outage {
    /// All links of which one end `is_off`, between times in ns.
    fn new(layout: &Layout, times: &[(u64, u64)], is_off: impl Fn(SwitchId, PortId) -> bool) -> Outage {
        let at = |ns: u64| Time::from_ps(ns * 1_000);
        let intervals = times.iter().map(|&(from, until)| OffInterval { from: at(from), until: at(until) });
        let mut links = Dead::new();
        for switch in (0..layout.switches()).map(SwitchId) {
            for port in (0..layout.ports(switch)).map(PortId) {
                if let Attachment::Switch(other, far) = layout.peer(switch, port)
                    && (is_off(switch, port) || is_off(other, far))
                {
                    links.extend([(switch, port), (other, far)]);
                }
            }
        }
        Outage { links, intervals: intervals.collect() }
    }

    fn holds_at(&self, now: Time) -> bool {
        self.intervals.iter().any(|interval| interval.from <= now && now < interval.until)
    }
}

/// Tables for every set of links that is off at some time, in force `after` the links have changed.
fn tables_around(outages: &[Outage], layout: &Layout, after: Span) -> Reroutes {
    let wiring = Wiring::new(layout);
    let intervals = outages.iter().flat_map(|outage| &outage.intervals);
    let times: BTreeSet<Time> = intervals.flat_map(|interval| [interval.from, interval.until]).collect();
    let (mut sets, mut timeline): (Vec<Dead>, _) = (Vec::new(), Vec::new());
    for from in times {
        let off = outages.iter().filter(|outage| outage.holds_at(from));
        let dead: Dead = off.flat_map(|outage| outage.links.iter().copied()).collect();
        let tables = (!dead.is_empty()).then(|| match sets.iter().position(|set| *set == dead) {
            Some(known) => known,
            None => {
                sets.push(dead);
                sets.len() - 1
            }
        });
        timeline.push(InForce { from: from + after, tables });
    }
    let tables = sets.iter().map(|dead| UpDownTables::new(&wiring, dead)).collect();
    Reroutes { wiring, tables, timeline, is_adaptive: !layout.is_deterministic() }
}

/// A run in which links come and go, with tables around them that are in force `after`.
fn begin_outages(
    machine: &Machine,
    script: &Script,
    (outages, after): (&[Outage], Option<Span>),
) -> InitialState<Network<Layout, Scripted>> {
    let mut switch = machine.switch;
    switch.channels.failover = after.is_some();
    let machine =
        Machine { switch, links: machine.links.clone(), layout: machine.layout.clone(), ..*machine };
    let mut initial = machine.build(script).unwrap();
    initial.model.inject_faults(&mut initial.sites, 77, |from, to, _| {
        let of_link = |outage: &&Outage| match (from, to) {
            (LinkEnd::Port(switch, port), Attachment::Switch(..)) => outage.links.contains(&(switch, port)),
            _ => false,
        };
        let off = outages.iter().filter(of_link).map(|outage| OffTimes::new(outage.intervals.clone()));
        FaultParameters { off: off.fold(OffTimes::NEVER, OffTimes::or), ..Default::default() }
    });
    if let Some(after) = after {
        initial.model.reroute(tables_around(outages, &machine.layout, after));
    }
    initial
}

/// Two outages, the second of which begins and ends within intervals of the first: tables follow tables.
fn overlapping_outages(layout: &Layout) -> [Outage; 2] {
    [
        Outage::new(layout, &[(500, 1_500), (2_000, 2_600)], |switch, port| {
            (switch.0 + port.0).is_multiple_of(9)
        }),
        Outage::new(layout, &[(1_000, 2_300)], |switch, port| (switch.0 + 2 * port.0) % 7 == 3),
    ]
}

/// Catches packets and credits that links take along when they fail or that a change of routes loses, tables
/// that depend on threads or on a snapshot, a routing that cannot go on where tables have left a packet, and
/// packets on old ways and new ones that wait for each other: on every family of topologies.
#[test]
fn failures_that_come_and_go_conserve_packets_and_credits() {
    let mut reconfigured = 0;
    for parameters in TopologyParameters::examples() {
        let layout = parameters.build().unwrap();
        // A ring without datelines deadlocks without any failure.
        if layout.switches() < 4 || layout.switches() > 100 || prove(&layout).is_err() {
            continue;
        }
        let machine = plain(layout, KINDS[layout_kind(&parameters)], 3);
        let script = random_script(&machine.layout, 256, Load { packets: 12, gap_ps: 300_000, seed: 9 });
        let outages = overlapping_outages(&machine.layout);
        if outages[0].links.is_empty() {
            continue;
        }
        for after in [None, Some(Span::from_ps(100_000))] {
            let around = (&outages[..], after);
            let mut alone = Simulation::new(begin_outages(&machine, &script, around), 1);
            let mut expected = checked(&mut alone);
            expected.sort_unstable();
            let state = alone.save().unwrap();
            let counted = census(&alone);
            assert_eq!(counted.supplied, planned(&script), "{parameters:?}");
            assert_eq!(counted.accounted(), counted.made(), "{parameters:?}");
            assert!(after.is_some() || counted.faults.reconfigured == 0);
            reconfigured += counted.faults.reconfigured;
            for threads in [2, 3, 8] {
                let mut run = Simulation::new(begin_outages(&machine, &script, around), threads);
                until(&mut run, Time::from_ps(1_090_000));
                let mut arrived = take_arrivals(&mut run);
                let saved = run.save().unwrap();
                let mut run =
                    Simulation::resume(begin_outages(&machine, &script, around), &saved, 3).unwrap();
                arrived.extend(checked(&mut run));
                arrived.sort_unstable();
                assert!(arrived == expected, "{threads} threads: {parameters:?}");
                assert!(run.save().unwrap() == state, "{threads} threads: the final state: {parameters:?}");
            }
        }
    }
    assert!(reconfigured > 100, "tables that follow tables drop what waits on their channel: {reconfigured}");
}

/// Catches packets of old and new routes that wait for each other: in a cube of five dimensions under more
/// load than it carries, with small buffers and routes that change every half microsecond, for every kind of
/// switch and each way to keep buffers from overflowing, with 1, 2, 3 and 8 threads. All that is not dropped
/// arrives.
#[test]
fn changes_of_routes_close_no_circle() {
    let layout = torus(&[2, 2, 2, 2, 2], false, 1, true);
    let outage = |first: u64, which: u32| {
        let times: Vec<(u64, u64)> = (0..6).map(|n| (first + n * 1_000, first + n * 1_000 + 700)).collect();
        Outage::new(&layout, &times, |switch, port| (switch.0 * 5 + port.0) % 11 == which)
    };
    let outages = [outage(300, 0), outage(700, 4), outage(850, 7)];
    let pause =
        FlowControl::Pause(PauseParameters { headroom: None, hysteresis: None, response: Span::ZERO });
    let flows = [(FlowControl::Credits, 1), (FlowControl::Credits, 2), (pause, 1), (FlowControl::Drop, 1)];
    let mut full = 0;
    for (kind, (flow_control, seed)) in KINDS.into_iter().flat_map(|kind| flows.map(|flow| (kind, flow))) {
        let mut machine = plain(layout.clone(), kind, 1);
        machine.switch.flow_control = flow_control;
        if flow_control == pause {
            machine.switch.channels.failover = true;
            machine.switch.buffer += machine.largest_headroom();
        }
        let script = random_script(&layout, 256, Load { packets: 80, gap_ps: 40_000, seed });
        let around = (&outages[..], Some(Span::from_ps(60_000)));
        let mut run = Simulation::new(begin_outages(&machine, &script, around), 1);
        checked(&mut run);
        let lost = census(&run).faults;
        assert!(lost.reconfigured > 50, "{kind:?}: {lost:?}");
        assert!(lost.full == 0 || flow_control == FlowControl::Drop, "{kind:?}: {lost:?}");
        full += lost.full;
        let state = run.save().unwrap();
        for threads in [2, 3, 8] {
            let mut other = Simulation::new(begin_outages(&machine, &script, around), threads);
            checked(&mut other);
            assert!(other.save().unwrap() == state, "{kind:?}, {flow_control:?}, {threads} threads");
        }
        // What passes goes the way that it would go through a queue.
        let initial = begin_outages(&machine, &script, around);
        let initial = InitialState { model: initial.model.queueing_always(), ..initial };
        let mut queueing = Simulation::new(initial, 1);
        checked(&mut queueing);
        assert_eq!(census(&queueing), census(&run), "{kind:?}");
    }
    assert!(full > 0, "no buffer has overflowed");
}

fn layout_kind(parameters: &TopologyParameters) -> usize {
    format!("{parameters:?}").len() % KINDS.len()
}

/// Catches tables that no packet takes, and a reaction that is too late: with tables in force at once, a tree
/// loses only what is on the dead link when it fails.
#[test]
fn tables_save_what_the_routing_would_lose() {
    let machine = plain(tree(3, 3, Ascent::DModK), KINDS[1], 3);
    let script = random_script(&machine.layout, 256, Load { packets: 12, gap_ps: 300_000, seed: 9 });
    let outage = Outage::new(&machine.layout, &[(500, 1_500), (2_000, 2_600)], |switch, port| {
        switch.0 == 0 && port.0 == 4
    });
    assert_eq!(outage.links.len(), 2);
    let outages = [outage];
    let lost = |after: Option<u64>| {
        let after = after.map(Span::from_ps);
        let mut run = Simulation::new(begin_outages(&machine, &script, (&outages, after)), 1);
        checked(&mut run);
        let rerouted: u64 = run.sites().map(|(_, site)| site.failover().rerouted).sum();
        assert_eq!(rerouted > 0, after.is_some());
        let faults = census(&run).faults;
        assert_eq!(faults.lost(), faults.dead, "the same tables come back: nothing is dropped for them");
        faults.lost()
    };
    let (kept, late, at_once) = (lost(None), lost(Some(500_000)), lost(Some(0)));
    assert!(kept > late && late > at_once && at_once <= 6, "{kept} {late} {at_once}");
}

/// Catches a link that comes back with fewer credits than its buffer has, or otherwise slower than before.
#[test]
fn a_link_that_comes_back_carries_at_full_rate() {
    for kind in KINDS {
        let machine = plain(exanest(1), kind, 2);
        let mut script: Script = vec![Vec::new(); 16];
        // Over the X link as fast as it takes them: 288 bytes take 144 ns.
        for number in 0..60 {
            script[0].push(Planned { at: Time::from_ps(number * 100_000), to: EndpointId(4), bytes: 256 });
        }
        let x = LinkEnd::Port(SwitchId(4), PortId(1));
        let off = OffTimes::new(vec![OffInterval {
            from: Time::from_ps(1_000_000),
            until: Time::from_ps(3_000_000),
        }]);
        let mut whole = machine.arrivals(&script);
        whole.sort_by_key(|arrived| arrived.at);
        let mut run = begin(&machine, &script, 1, |from, _, _| FaultParameters {
            off: if from == x { off.clone() } else { OffTimes::NEVER },
            ..Default::default()
        });
        let mut arrived = checked(&mut run);
        arrived.sort_by_key(|arrived| arrived.at);
        let dead = census(&run).faults.dead;
        assert!(dead > 10 && arrived.len() as u64 == 60 - dead, "{kind:?}: {dead}");
        let link = links(&run).into_iter().find(|link| link.from == x).unwrap();
        assert_eq!(link.counts.off, Span::from_ps(2_000_000));
        // Long after it came back packets follow each other as closely as on a link that is never off.
        let gaps = |arrived: &[Arrived]| -> Vec<Span> {
            arrived[arrived.len() - 10..].windows(2).map(|pair| pair[1].at - pair[0].at).collect()
        };
        assert_eq!(gaps(&arrived), gaps(&whole), "{kind:?}");
    }
}

/// Catches a copy that is not counted, takes no space, or is copied again; and a late packet that nothing
/// overtakes.
#[test]
fn copies_arrive_and_late_packets_are_overtaken() {
    for kind in KINDS {
        let machine = plain(torus(&[4, 4], true, 1, true), kind, 3);
        let script = random_script(&machine.layout, 256, Load { packets: 20, gap_ps: 300_000, seed: 9 });
        let copying = FaultParameters { duplicate: 100_000, ..Default::default() };
        let mut run = begin(&machine, &script, 1, |_, _, _| copying.clone());
        let arrived = checked(&mut run);
        let counted = census(&run);
        assert!(counted.faults.duplicated > 20, "{counted}");
        assert_eq!(arrived.len() as u64, counted.supplied + counted.faults.duplicated);
        for threads in [2, 8] {
            let mut other = begin(&machine, &script, threads, |_, _, _| copying.clone());
            checked(&mut other);
            assert!(other.save().unwrap() == run.save().unwrap(), "{kind:?}, {threads} threads");
        }
        let mut script: Script = vec![Vec::new(); 16];
        for number in 0..400 {
            script[0].push(Planned { at: Time::from_ps(number), to: EndpointId(2), bytes: 256 });
        }
        let holding = FaultParameters { reorder: 100_000, ..Default::default() };
        let mut run = begin(&machine, &script, 1, |_, _, _| holding.clone());
        let mut arrived = checked(&mut run);
        arrived.sort_by_key(|arrived| arrived.at);
        assert_eq!(arrived.len(), 400);
        let overtaken = arrived.windows(2).filter(|pair| pair[0].message > pair[1].message).count() as u64;
        let reordered = census(&run).faults.reordered;
        assert!(reordered > 50 && overtaken > reordered / 2, "{kind:?}: {overtaken} of {reordered}");
    }
}

/// Catches faults that change anything where there are none.
#[test]
fn no_faults_change_nothing() {
    let machine = plain(torus(&[4, 4], true, 1, true), KINDS[0], 3);
    let script = random_script(&machine.layout, 256, Load { packets: 12, gap_ps: 300_000, seed: 9 });
    let mut run = begin(&machine, &script, 1, |_, _, _| FaultParameters::default());
    let mut arrived = checked(&mut run);
    arrived.sort_unstable();
    assert_eq!(arrived, machine.arrivals(&script));
    let mut plain = machine.begin(&script, 1);
    checked(&mut plain);
    assert!(run.save().unwrap() == plain.save().unwrap());
}
