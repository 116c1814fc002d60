//! Saturated switches and networks.

use crate::machine::{
    Machine, PACKET, SLOT, injected_and_delivered, links, rng, saturated, star, switch, throughput, torus,
};
use weft_fabric::parameters::{ArbiterKind, Speedup, SwitchKind, SwitchParameters};
use weft_topo::{Layout, Topology, channel_load};
use weft_units::Bytes;
use weft_workload::arrival::{Arrival, Poisson};
use weft_workload::pattern::{Pattern, PatternKind, Settings};

fn saturated_star(ports: u64, switch: SwitchParameters, slots: u64) -> f64 {
    let layout = star(ports);
    let settings = Settings { include_self: true, ..Settings::default() };
    let pattern = Pattern::new(PatternKind::Uniform, &layout, &settings, &mut rng()).unwrap();
    let mut run = Machine::new(layout, switch).begin(pattern, &saturated(), 5);
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
        let switch = switch(SwitchKind::InputQueued, ArbiterKind::Random, 16);
        let measured = saturated_star(ports, switch, 60_000);
        assert!((measured / theory - 1.0).abs() < 0.01, "{ports} ports: {measured} for {theory}");
    }
}

/// Catches lost matches: with virtual output queues iSLIP serves uniform traffic fully (McKeown 1999);
/// what is missing is due to buffers that are bounded.
#[test]
fn virtual_output_queues_with_islip_are_work_conserving() {
    for ports in [4, 8, 16] {
        for iterations in [1, 4] {
            let arbiter = ArbiterKind::Islip(iterations);
            let switch = switch(SwitchKind::VirtualOutputQueued, arbiter, 64 * ports);
            let measured = saturated_star(ports, switch, 20_000);
            assert!(
                (0.98..=1.0001).contains(&measured),
                "{ports} ports, {iterations} iterations: {measured}"
            );
        }
    }
}

/// Catches a crossbar that is no faster than its lines, and output buffers that are not used: what a switch
/// passes rises with the speed-up, and with one of 2 it passes all, whatever its matching (Dai and Prabhakar
/// 2000).
#[test]
fn speedup_brings_a_switch_to_its_lines() {
    for arbiter in [ArbiterKind::RoundRobin, ArbiterKind::Random, ArbiterKind::Islip(1)] {
        let measured = [1_000, 1_200, 2_000].map(|thousandths| {
            let kind = SwitchKind::CombinedInputOutput(Speedup::from_thousandths(thousandths).unwrap());
            let mut switch = switch(kind, arbiter, 256);
            switch.output_buffer = Some(Bytes::new(64 * PACKET));
            saturated_star(8, switch, 10_000)
        });
        assert!(measured[2] > 0.995 && measured[0] < measured[2] + 0.001, "{arbiter:?}: {measured:?}");
    }
}

/// A torus at `share` of its channel-load bound, or saturated: what it accepts on average and at the
/// endpoint that gets least, in packets per slot, and the bound.
fn torus_load(
    sizes: &[u64],
    (kind, arbiter): (SwitchKind, ArbiterKind),
    pattern: PatternKind,
    share: Option<f64>,
) -> (f64, f64, f64) {
    const SLOTS: u64 = 1_500;
    let layout: Layout = torus(sizes);
    let theirs = match pattern {
        PatternKind::Tornado => weft_topo::Pattern::Tornado,
        PatternKind::BitComplement => weft_topo::Pattern::BitComplement,
        _ => weft_topo::Pattern::Uniform,
    };
    let classes = layout.link_classes().len();
    let bound = channel_load(&layout, theirs).unwrap().bound(&vec![1.0; classes]);
    let arrival = match share {
        Some(share) => {
            let per_million = (bound * share * 1e6) as u64;
            Arrival::Poisson(Poisson::new(SLOT.as_ps() * 1_000_000, per_million).unwrap())
        }
        None => saturated(),
    };
    let pattern = Pattern::new(pattern, &layout, &Settings::default(), &mut rng()).unwrap();
    // Packets count when they cross, ahead of the line by what an output buffer holds.
    let (output_buffer, ahead) = match kind {
        SwitchKind::CombinedInputOutput(_) => (Some(Bytes::new(8 * PACKET)), 8 + 1),
        _ => (None, 1),
    };
    let switch = SwitchParameters { output_buffer, ..switch(kind, arbiter, 8) };
    let mut run = Machine::new(layout, switch).begin(pattern, &arrival, 5);
    let accepted = throughput(&mut run, 2_000, SLOTS);
    let busiest = links(&run).iter().map(|link| link.packets).max().unwrap();
    assert!(busiest <= SLOTS + ahead, "a link carried {busiest} packets in {SLOTS} slots");
    let least = *injected_and_delivered(&run).0.iter().min().unwrap();
    (accepted, least as f64 / SLOTS as f64, bound)
}

/// Catches links that carry more than their rate, packets counted twice, and buffers or channels so badly
/// used that a torus cannot carry what is well within its channels' load.
#[test]
fn a_torus_saturates_within_the_channel_load_bound() {
    let combined = SwitchKind::CombinedInputOutput(Speedup::from_thousandths(2_000).unwrap());
    for sizes in [&[16][..], &[8, 8], &[12, 4], &[6, 6, 3]] {
        for pattern in [PatternKind::Uniform, PatternKind::Tornado, PatternKind::BitComplement] {
            for which in [
                (SwitchKind::InputQueued, ArbiterKind::RoundRobin),
                (SwitchKind::InputQueued, ArbiterKind::Random),
                (SwitchKind::VirtualOutputQueued, ArbiterKind::Islip(2)),
                (SwitchKind::OutputQueued, ArbiterKind::RoundRobin),
                (combined, ArbiterKind::RoundRobin),
            ] {
                let (accepted, least, bound) = torus_load(sizes, which, pattern, None);
                // The bound is for equal loads; where channels are not alike, some endpoints get more.
                let alike = pattern != PatternKind::BitComplement;
                // Queues without bound take in more than they pass on.
                let steady = which.0 != SwitchKind::OutputQueued;
                assert!(
                    !alike || accepted <= bound * 1.01,
                    "{sizes:?} {pattern} {which:?}: {accepted} of {bound}"
                );
                assert!(
                    !steady || least <= bound * 1.01,
                    "{sizes:?} {pattern} {which:?}: {least} of {bound}"
                );
                // Below the bound all that is offered is accepted, to the spread of Poisson arrivals.
                let (accepted, _, bound) = torus_load(sizes, which, pattern, Some(0.6));
                let ratio = accepted / (0.6 * bound);
                assert!(
                    (ratio - 1.0).abs() < 0.05,
                    "{sizes:?} {pattern} {which:?}: {ratio} of what is offered"
                );
            }
        }
    }
}
