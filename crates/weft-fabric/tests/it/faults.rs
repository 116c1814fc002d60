//! Links that lose and corrupt packets, and links that fail for good.

use crate::machines::{KINDS, Load, exanest, plain, random_script, star, torus, ugal};
use crate::scripted::{Arrived, Machine, Planned, Run, Script, take_arrivals, until};
use proptest::prelude::*;
use weft_engine::{Progress, Simulation};
use weft_fabric::{FaultParameters, LinkEnd, LinkReport, census, check_credits, check_packets, stuck};
use weft_topo::{Attachment, Layout, LinkClass};
use weft_units::{EndpointId, PortId, SwitchId, Time};

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

/// Runs to the end with checks on the way, and returns what arrived.
fn checked(run: &mut Run<Layout>) -> Vec<Arrived> {
    let mut arrived = Vec::new();
    for epoch in 1..=20 {
        until(run, Time::from_ps(epoch * 400_000));
        assert_eq!((check_packets(run), check_credits(run)), (Ok(()), Ok(())));
        arrived.extend(take_arrivals(run));
    }
    assert_eq!(until(run, Time::NEVER), Progress::Dry);
    assert_eq!((check_packets(run), check_credits(run)), (Ok(()), Ok(())));
    assert_eq!(stuck(run), None, "credits of lost packets come back");
    arrived.extend(take_arrivals(run));
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
        let faults = FaultParameters { drop, corrupt, off_at: None };
        let mut run = begin(&machine, &script, 1, |from, _, _| match from {
            // One link is off from some time on, and every other one loses packets.
            LinkEnd::Endpoint(EndpointId(1)) => FaultParameters { off_at: off.map(Time::from_ps), ..faults },
            _ => faults,
        });
        let arrived = checked(&mut run);
        let counted = census(&run);
        prop_assert_eq!(counted.supplied, planned(&script));
        prop_assert_eq!(counted.delivered, arrived.len() as u64);
        prop_assert_eq!(counted.delivered + counted.faults.lost(), counted.supplied);
        let by_link = links(&run).iter().map(|link| link.faults.lost()).sum::<u64>();
        prop_assert_eq!(by_link, counted.faults.lost());
    }
}

/// Catches dice that depend on the order in which partitions run, or that a snapshot forgets.
#[test]
fn faults_are_the_same_for_any_threads_and_after_resuming() {
    let machine = plain(torus(&[24, 24], true, 1, true), KINDS[0], 3);
    let script = random_script(&machine.layout, 256, Load { packets: 12, gap_ps: 300_000, seed: 9 });
    let faults = |from, _, LinkClass(class)| match from {
        LinkEnd::Port(SwitchId(7), _) => {
            FaultParameters { off_at: Some(Time::from_ps(1_000_000)), ..Default::default() }
        }
        _ => FaultParameters { drop: 5_000 * u32::from(class), corrupt: 20_000, off_at: None },
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
            off_at: (from == x).then_some(off),
            ..Default::default()
        });
        let arrived = checked(&mut run);
        let over_x = arrived.iter().filter(|arrived| arrived.destination == EndpointId(4)).count() as u64;
        assert_eq!(arrived.len() as u64 - over_x, 40, "{kind:?}: neighbours are not concerned");
        let counted = census(&run).faults;
        assert!(over_x > 5 && counted.dead == 40 - over_x && counted.lost() == counted.dead, "{counted:?}");
        let dead: Vec<LinkEnd> =
            links(&run).iter().filter(|link| link.faults.dead > 0).map(|link| link.from).collect();
        assert_eq!(dead, [x]);
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
