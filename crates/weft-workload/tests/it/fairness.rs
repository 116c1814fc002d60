//! No endpoint, port or link is favoured where all are alike.

use crate::machine::{
    Run, SLOT, advance, begin, dice, injected_and_delivered, link, links, reset, saturated, star, switch,
    torus,
};
use weft_fabric::parameters::{ArbiterKind, SwitchKind};
use weft_topo::{Layout, Topology};
use weft_units::Span;
use weft_workload::arrival::{Arrival, Poisson};
use weft_workload::pattern::{Pattern, PatternKind, Settings};

const SWITCHES: [(SwitchKind, ArbiterKind); 7] = [
    (SwitchKind::InputQueued, ArbiterKind::RoundRobin),
    (SwitchKind::InputQueued, ArbiterKind::Random),
    (SwitchKind::InputQueued, ArbiterKind::Islip(2)),
    (SwitchKind::VirtualOutputQueued, ArbiterKind::RoundRobin),
    (SwitchKind::VirtualOutputQueued, ArbiterKind::Random),
    (SwitchKind::VirtualOutputQueued, ArbiterKind::Islip(2)),
    (SwitchKind::OutputQueued, ArbiterKind::RoundRobin),
];

/// How much more the members of a group differ than chance makes them: the F statistic of a one-way
/// analysis of variance, `samples[member][batch]`. About 1 where all are alike.
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

/// What F exceeds less than once in a thousand times by chance, for groups of eight and more.
fn f_limit(members: usize) -> f64 {
    1.0 + 5.0 * (2.0 / (members - 1) as f64).sqrt()
}

fn spread(samples: &[Vec<f64>]) -> f64 {
    let sums = samples.iter().map(|m| m.iter().sum::<f64>());
    sums.clone().fold(0.0, f64::max) / sums.fold(f64::INFINITY, f64::min)
}

struct Batches {
    injected: Vec<Vec<f64>>,
    delivered: Vec<Vec<f64>>,
    /// Of links between switches, by class and direction.
    links: Vec<Vec<Vec<f64>>>,
}

/// Packets per batch of `slots` slots, by endpoint and by link.
fn measure(run: &mut Run, batches: usize, slots: u64) -> Batches {
    advance(run, Span::from_ps(SLOT.as_ps() * 3_000));
    let endpoints = run.model().layout().endpoints() as usize;
    let mut all = Batches {
        injected: vec![Vec::new(); endpoints],
        delivered: vec![Vec::new(); endpoints],
        links: Vec::new(),
    };
    for _ in 0..batches {
        reset(run);
        advance(run, Span::from_ps(SLOT.as_ps() * slots));
        let (injected, delivered) = injected_and_delivered(run);
        for e in 0..endpoints {
            all.injected[e].push(injected[e] as f64);
            all.delivered[e].push(delivered[e] as f64);
        }
        // Ports of a torus switch with one endpoint: 1 + 2·dimension + direction.
        let mut nth = std::collections::BTreeMap::new();
        for report in links(run) {
            if let weft_fabric::LinkEnd::Port(_, port) = report.from
                && let Some(group) = port.index().checked_sub(1)
            {
                if !matches!(run.model().layout(), Layout::Torus(_)) {
                    continue;
                }
                if all.links.len() <= group {
                    all.links.resize(group + 1, Vec::new());
                }
                let n = nth.entry(group).or_insert(0usize);
                if all.links[group].len() <= *n {
                    all.links[group].push(Vec::new());
                }
                all.links[group][*n].push(report.packets as f64);
                *n += 1;
            }
        }
    }
    all
}

fn uniform(layout: Layout, kind: SwitchKind, arbiter: ArbiterKind, arrival: &Arrival) -> Run {
    let pattern = Pattern::new(PatternKind::Uniform, &layout, &Settings::default(), &mut dice()).unwrap();
    let links = vec![link(); layout.link_classes().len()];
    begin(layout, links, switch(kind, arbiter, 8), pattern, arrival, 8)
}

#[test]
fn a_saturated_star_favours_no_port() {
    for (kind, arbiter) in SWITCHES {
        let mut run = uniform(star(8), kind, arbiter, &saturated());
        let Batches { injected, delivered, .. } = measure(&mut run, 30, 600);
        let (i, d) = (f_statistic(&injected), f_statistic(&delivered));
        eprintln!(
            "star {kind:?} {arbiter:?}: F of inputs {i:.2}, of outputs {d:.2}, spread {:.3} {:.3}, limit {:.2}",
            spread(&injected),
            spread(&delivered),
            f_limit(8)
        );
    }
}

#[test]
fn a_torus_favours_none() {
    for load in [30, 60, 100] {
        for (kind, arbiter) in SWITCHES {
            let arrival = if load == 100 {
                saturated()
            } else {
                Arrival::Poisson(Poisson::new(SLOT.as_ps() * 100, load).unwrap())
            };
            let mut run = uniform(torus(&[8, 8]), kind, arbiter, &arrival);
            let Batches { injected, delivered, links } = measure(&mut run, 12, 400);
            let (i, d) = (f_statistic(&injected), f_statistic(&delivered));
            let l: Vec<String> =
                links.iter().map(|g| format!("{:.2}({:.3})", f_statistic(g), spread(g))).collect();
            eprintln!(
                "torus {load} {kind:?} {arbiter:?}: F of inputs {i:.2} ({:.3}), of outputs {d:.2} ({:.3}), links {l:?}, limit {:.2}",
                spread(&injected),
                spread(&delivered),
                f_limit(64)
            );
        }
    }
}
#[test]
fn explore_dateline() {
    for (kind, arbiter) in SWITCHES {
        let mut xs = [0.0; 8];
        let mut ys = [0.0; 8];
        let mut samples = vec![Vec::new(); 64];
        for seed in 0..6 {
            let layout = torus(&[8, 8]);
            let pattern =
                Pattern::new(PatternKind::Uniform, &layout, &Settings::default(), &mut dice()).unwrap();
            let links = vec![link(); layout.link_classes().len()];
            let mut run = begin(layout, links, switch(kind, arbiter, 8), pattern, &saturated(), seed);
            advance(&mut run, Span::from_ps(SLOT.as_ps() * 3_000));
            reset(&mut run);
            advance(&mut run, Span::from_ps(SLOT.as_ps() * 3000));
            let (injected, _) = injected_and_delivered(&run);
            for e in 0..64 {
                xs[e % 8] += injected[e] as f64;
                ys[e / 8] += injected[e] as f64;
                samples[e].push(injected[e] as f64);
            }
        }
        let norm = |v: [f64; 8]| {
            let m = v.iter().sum::<f64>() / 8.0;
            v.map(|x| (x / m * 1000.0).round() / 1000.0)
        };
        eprintln!(
            "DL {kind:?} {arbiter:?} F {:.2} spread {:.3} x {:?} y {:?}",
            f_statistic(&samples),
            spread(&samples),
            norm(xs),
            norm(ys)
        );
    }
}
