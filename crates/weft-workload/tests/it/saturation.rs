//! Saturated switches and networks.

use crate::machine::{
    begin, dice, injected_and_delivered, link, links, saturated, star, switch, throughput, torus,
};
use weft_fabric::parameters::{ArbiterKind, SwitchKind};
use weft_topo::{Layout, Topology, channel_load};
use weft_workload::pattern::{Pattern, PatternKind, Settings};

fn saturated_star(ports: u64, kind: SwitchKind, arbiter: ArbiterKind, packets: u64, slots: u64) -> f64 {
    let layout = star(ports);
    let settings = Settings { include_self: true, ..Settings::default() };
    let pattern = Pattern::new(PatternKind::Uniform, &layout, &settings, &mut dice()).unwrap();
    let links = vec![link(); layout.link_classes().len()];
    let mut run = begin(layout, links, switch(kind, arbiter, packets), pattern, &saturated(), 5);
    throughput(&mut run, 2_000, slots)
}

/// Karol, Hluchyj, Morgan 1987, Table I: first-in first-out inputs, uniform over all outputs, a random
/// one of the contenders. Catches an arbiter that is not fair among heads, a head that is drawn anew, or
/// a slot lost between packets.
///
/// Their switch is slotted: ours is in step because all sources start at one time and a packet takes 25
/// cycles on every line.
#[test]
fn saturated_input_queues_reach_karols_throughput() {
    for (ports, theory) in [(2, 0.75), (4, 0.655), (8, 0.618)] {
        let measured = saturated_star(ports, SwitchKind::InputQueued, ArbiterKind::Random, 16, 60_000);
        eprintln!("input queues, {ports} ports: {measured:.4}, theory {theory}");
        assert!((measured / theory - 1.0).abs() < 0.01, "{ports} ports: {measured} for {theory}");
    }
}

/// Catches lost matches: with virtual output queues iSLIP serves uniform traffic fully (McKeown 1999);
/// what is missing is due to buffers that are bounded.
#[test]
fn virtual_output_queues_with_islip_are_work_conserving() {
    for ports in [4, 8, 16] {
        for iterations in [1, 4] {
            let kind = ArbiterKind::Islip(iterations);
            let measured = saturated_star(ports, SwitchKind::VirtualOutputQueued, kind, 64 * ports, 20_000);
            eprintln!("iSLIP({iterations}), {ports} ports: {measured:.4}");
            assert!(
                (0.98..=1.0001).contains(&measured),
                "{ports} ports, {iterations} iterations: {measured}"
            );
        }
    }
}

fn saturated_torus(
    sizes: &[u64],
    kind: SwitchKind,
    arbiter: ArbiterKind,
    pattern: PatternKind,
    slots: u64,
) -> (f64, f64) {
    let layout: Layout = torus(sizes);
    let theirs = match pattern {
        PatternKind::Tornado => weft_topo::Pattern::Tornado,
        PatternKind::BitComplement => weft_topo::Pattern::BitComplement,
        _ => weft_topo::Pattern::Uniform,
    };
    let classes = layout.link_classes().len();
    let bound = channel_load(&layout, theirs).unwrap().bound(&vec![1.0; classes]);
    let pattern = Pattern::new(pattern, &layout, &Settings::default(), &mut dice()).unwrap();
    let mut run = begin(layout, vec![link(); classes], switch(kind, arbiter, 8), pattern, &saturated(), 5);
    let accepted = throughput(&mut run, 2_000, slots);
    let busiest = links(&run).iter().map(|l| l.packets as f64 / slots as f64).fold(0.0, f64::max);
    assert!(busiest < 1.0 + 2.0 / slots as f64, "a link carries more than it can: {busiest}");
    let _ = injected_and_delivered(&run);
    (accepted, bound)
}

/// Catches links that carry more than their rate, packets counted twice, and buffers or channels so badly
/// used that a torus falls far short of what its channels allow.
#[test]
fn a_saturated_torus_stays_within_the_channel_load_bound() {
    for sizes in [&[16][..], &[8, 8], &[12, 4], &[6, 6, 3]] {
        for pattern in [PatternKind::Uniform, PatternKind::Tornado, PatternKind::BitComplement] {
            for (kind, arbiter) in [
                (SwitchKind::InputQueued, ArbiterKind::RoundRobin),
                (SwitchKind::InputQueued, ArbiterKind::Random),
                (SwitchKind::VirtualOutputQueued, ArbiterKind::Islip(2)),
                (SwitchKind::OutputQueued, ArbiterKind::RoundRobin),
            ] {
                let (accepted, bound) = saturated_torus(sizes, kind, arbiter, pattern, 1_000);
                eprintln!(
                    "{sizes:?} {pattern} {kind:?} {arbiter:?}: {accepted:.3} of {bound:.3} = {:.3}",
                    accepted / bound
                );
                assert!(accepted <= bound * 1.01, "{sizes:?} {pattern} {kind:?}: {accepted} exceeds {bound}");
            }
        }
    }
}
