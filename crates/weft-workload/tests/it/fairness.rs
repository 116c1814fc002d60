//! No endpoint, port or link is favoured where all are alike.

use crate::machine::{
    Machine, Run, SLOT, advance, injected_and_delivered, links, reset, rng, saturated, star, switch, torus,
};
use weft_fabric::LinkEnd;
use weft_fabric::parameters::{ArbiterKind, Speedup, SwitchKind};
use weft_topo::{Attachment, Layout};
use weft_units::Span;
use weft_workload::arrival::{Arrival, Poisson};
use weft_workload::pattern::{Pattern, PatternKind, Settings};

const COMBINED: SwitchKind = SwitchKind::CombinedInputOutput(Speedup::from_thousandths(1_500).unwrap());
const SWITCHES: [(SwitchKind, ArbiterKind); 9] = [
    (SwitchKind::InputQueued, ArbiterKind::RoundRobin),
    (SwitchKind::InputQueued, ArbiterKind::Random),
    (SwitchKind::InputQueued, ArbiterKind::Islip(2)),
    (SwitchKind::VirtualOutputQueued, ArbiterKind::RoundRobin),
    (SwitchKind::VirtualOutputQueued, ArbiterKind::Random),
    (SwitchKind::VirtualOutputQueued, ArbiterKind::Islip(2)),
    (SwitchKind::OutputQueued, ArbiterKind::RoundRobin),
    (COMBINED, ArbiterKind::RoundRobin),
    (COMBINED, ArbiterKind::Islip(2)),
];

/// The F statistic of a one-way analysis of variance of `samples[member][batch]`: the variance between
/// members over that within them. About 1 where all are alike.
fn f_statistic(samples: &[Vec<f64>]) -> f64 {
    let batches = samples[0].len() as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let variance = |values: &[f64]| {
        let mean = mean(values);
        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
    };
    let means: Vec<f64> = samples.iter().map(|member| mean(member)).collect();
    let within: Vec<f64> = samples.iter().map(|member| variance(member)).collect();
    batches * variance(&means) / mean(&within)
}

/// The limit that F exceeds by chance less than once in a thousand times, for groups of eight and more.
fn f_limit(members: usize) -> f64 {
    1.0 + 5.0 * (2.0 / (members - 1) as f64).sqrt()
}

/// Packets per batch, by endpoint and by link.
struct Batches {
    injected: Vec<Vec<f64>>,
    delivered: Vec<Vec<f64>>,
    /// Of links between the switches of a torus, by dimension and direction.
    links: Vec<Vec<Vec<f64>>>,
}

fn measure(run: &mut Run, batches: usize, slots: u64) -> Batches {
    advance(run, Span::from_ps(SLOT.as_ps() * 3_000));
    let mut all = Batches { injected: Vec::new(), delivered: Vec::new(), links: Vec::new() };
    let append = |to: &mut Vec<Vec<f64>>, member: usize, packets: u64| {
        to.resize(to.len().max(member + 1), Vec::new());
        to[member].push(packets as f64);
    };
    for _ in 0..batches {
        reset(run);
        advance(run, Span::from_ps(SLOT.as_ps() * slots));
        let (injected, delivered) = injected_and_delivered(run);
        (0..).zip(injected).for_each(|(e, packets)| append(&mut all.injected, e, packets));
        (0..).zip(delivered).for_each(|(e, packets)| append(&mut all.delivered, e, packets));
        for link in links(run) {
            // Port 0 of a torus switch is its endpoint; two follow for each dimension.
            if let (LinkEnd::Port(switch, port), Attachment::Switch(..)) = (link.from, link.to) {
                all.links.resize(all.links.len().max(port.index()), Vec::new());
                append(&mut all.links[port.index() - 1], switch.index(), link.packets);
            }
        }
    }
    all
}

fn uniform(layout: Layout, (kind, arbiter): (SwitchKind, ArbiterKind), arrival: &Arrival, seed: u64) -> Run {
    let pattern = Pattern::new(PatternKind::Uniform, &layout, &Settings::default(), &mut rng()).unwrap();
    let mut switch = switch(kind, arbiter, 8);
    // Unbounded queues under too much load are never steady.
    switch.output_buffer = Some(switch.buffer);
    Machine::new(layout, switch).begin(pattern, arrival, seed)
}

fn assert_alike(what: &str, samples: &[Vec<f64>]) {
    let (f, limit) = (f_statistic(samples), f_limit(samples.len()));
    assert!(f < limit, "{what}: F = {f}, by chance below {limit}: {samples:?}");
}

/// Catches an arbiter that favours an input or an output. All ports of a star are alike.
#[test]
fn a_saturated_star_favours_no_port() {
    for which in SWITCHES {
        let mut run = uniform(star(8), which, &saturated(), 8);
        let Batches { injected, delivered, .. } = measure(&mut run, 30, 600);
        assert_alike(&format!("{which:?}: inputs"), &injected);
        assert_alike(&format!("{which:?}: outputs"), &delivered);
    }
}

/// Catches a routing that loads one link more than another (ties between the ways round a ring, say) and
/// an endpoint that is held back. Below saturation what a torus carries is what it is offered.
#[test]
fn a_torus_favours_no_endpoint_and_no_link() {
    for which in SWITCHES {
        let arrival = Arrival::Poisson(Poisson::new(SLOT.as_ps() * 100, 60).unwrap());
        let mut run = uniform(torus(&[8, 8]), which, &arrival, 8);
        let Batches { injected, delivered, links } = measure(&mut run, 12, 400);
        assert_alike(&format!("{which:?}: inputs"), &injected);
        assert_alike(&format!("{which:?}: outputs"), &delivered);
        assert_eq!(links.len(), 4);
        for (direction, links) in links.iter().enumerate() {
            assert_alike(&format!("{which:?}: links in direction {direction}"), links);
        }
        // The four directions carry the same, to the spread of what they are offered.
        let sums: Vec<f64> = links.iter().map(|links| links.iter().flatten().sum()).collect();
        for (a, b) in [(0, 1), (2, 3), (0, 2)] {
            assert!((sums[a] / sums[b] - 1.0).abs() < 0.02, "{which:?}: {sums:?}");
        }
    }
}

/// In saturation datelines do favour some columns of a torus over others, by up to a tenth: the two
/// channels are not used alike everywhere. But a column and its mirror image across the dateline are
/// alike. Catches an order of ports: up goes before down.
#[test]
fn a_saturated_torus_favours_no_side() {
    for which in [SWITCHES[0], SWITCHES[3], SWITCHES[5]] {
        let mut columns = [0.0; 8];
        let mut outputs = vec![Vec::new(); 64];
        for seed in 0..4 {
            let mut run = uniform(torus(&[8, 8]), which, &saturated(), seed);
            advance(&mut run, Span::from_ps(SLOT.as_ps() * 2_000));
            reset(&mut run);
            advance(&mut run, Span::from_ps(SLOT.as_ps() * 2_500));
            let (injected, delivered) = injected_and_delivered(&run);
            (0..).zip(injected).for_each(|(e, packets)| columns[e % 8] += packets as f64);
            (0..).zip(delivered).for_each(|(e, packets): (usize, u64)| outputs[e].push(packets as f64));
        }
        for x in 0..4 {
            let ratio = columns[x] / columns[7 - x];
            assert!((ratio - 1.0).abs() < 0.035, "{which:?}: column {x} and its mirror image: {columns:?}");
        }
        let (least, most) = columns.iter().fold((f64::MAX, 0f64), |(l, m), &c| (l.min(c), m.max(c)));
        assert!(most / least < 1.2, "{which:?}: {columns:?}");
        // Destinations are drawn at random: what arrives is alike everywhere.
        assert_alike(&format!("{which:?}: outputs"), &outputs);
    }
}
