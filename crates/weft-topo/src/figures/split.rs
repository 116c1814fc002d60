//! The share of traffic that adaptive routing had best send on detours.

use super::{ChannelLoad, Paths, PortLoads};
use crate::traits::Topology;
use std::collections::BTreeMap;

/// The mix of minimal paths and detours whose busiest channel between switches is least busy. The load of
/// every channel is linear in the share, so the busiest is convex, and only channels that no other exceeds in
/// both loads matter. Loads of detours are in units of 1/`unit`.
pub(crate) fn best_split(
    topology: &impl Topology,
    minimal: &PortLoads,
    detours: &PortLoads,
    unit: f64,
) -> ChannelLoad {
    let classes = topology.link_classes().len();
    let mut per_class = vec![BTreeMap::<u64, u64>::new(); classes];
    for ((switch, port, minimal), (_, _, detours)) in minimal.iter().zip(detours.iter()) {
        if minimal > 0 || detours > 0 {
            let class = usize::from(topology.link_class(switch, port).0);
            let most = per_class[class].entry(minimal).or_default();
            *most = detours.max(*most);
        }
    }
    let busiest = |class: usize, share: f64| {
        let load = |(&minimal, &detours): (&u64, &u64)| {
            share * minimal as f64 + (1.0 - share) * detours as f64 / unit
        };
        per_class[class].iter().map(load).fold(0.0, f64::max)
    };
    let between = |share: f64| (1..classes).map(|class| busiest(class, share)).fold(0.0, f64::max);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let third: f64 = (high - low) / 3.0;
        // On a plateau more minimal paths are better: they are shorter.
        if between(low + third) < between(high - third) { high -= third } else { low += third }
    }
    let share: f64 = (low + high) / 2.0;
    ChannelLoad {
        per_class: (0..classes).map(|class| busiest(class, share)).collect(),
        paths: Paths::Split { minimal: share },
    }
}
