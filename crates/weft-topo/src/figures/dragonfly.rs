//! Figures of the Dragonfly.
//!
//! Distances are those of the minimal route (local, global, local). Between some switches two global
//! links on end would be shorter; no routing here uses them.

use super::{
    Bisection, ChannelLoad, ClosedForms, Paths, PortLoads, mean_over_pairs, ordered_pairs, walk_permutation,
};
use crate::dragonfly::{Dragonfly, GLOBAL, LOCAL};
use crate::dragonfly_minimal::DragonflyMinimal;
use crate::layout::Layout;
use crate::pattern::Permutation;
use crate::traits::{Address, Topology};
use crate::ugal::Ugal;
use std::collections::BTreeMap;
use weft_units::{EndpointId, SwitchId};

impl Dragonfly {
    fn diameter(&self) -> u32 {
        let local = u32::from(self.switches_per_group() > 1);
        if self.groups() > 1 { 1 + 2 * local } else { local }
    }

    fn mean_distance(&self) -> f64 {
        let (p, a) = (u128::from(self.endpoints_per_switch()), u128::from(self.switches_per_group()));
        let same_group = u128::from(self.groups()) * ordered_pairs(self.switches_per_group());
        // One global link; a local one for all sources, and all destinations, but those at its ends.
        let other_group = ordered_pairs(self.groups()) * (a * a + 2 * a * (a - 1));
        mean_over_pairs((same_group + other_group) * p * p, ordered_pairs(self.endpoints()))
    }

    fn bisection(&self) -> Bisection {
        let halves = |count: u32| u64::from(count / 2) * u64::from(count.div_ceil(2));
        let unequal =
            |count: u32| if count.is_multiple_of(2) { "" } else { ", into halves that differ by one" };
        match (self.groups(), self.switches_per_group()) {
            (1, 1) => Bisection { links: 0, cut: "all endpoints share one switch".to_owned() },
            (1, a) => Bisection { links: halves(a), cut: format!("between switches{}", unequal(a)) },
            (g, _) => Bisection { links: halves(g), cut: format!("between groups{}", unequal(g)) },
        }
    }

    fn uniform_load(&self) -> Vec<f64> {
        let (p, a) = (f64::from(self.endpoints_per_switch()), f64::from(self.switches_per_group()));
        let others = f64::from(self.endpoints()) - 1.0;
        let h = self.global_per_switch();
        // Groups that switch i of a group leads to; never more than those of the switch before it.
        let groups_behind = |i: u32| f64::from((self.groups() - 1).saturating_sub(i * h).min(h));
        // From a switch to another: their own traffic, what the first sends through the other's global
        // links, and what came to the first for endpoints of the other.
        let local = p * p * (1.0 + a * (groups_behind(0) + groups_behind(1))) / others;
        let global = (a * p).powi(2) / others;
        vec![
            if self.endpoints() > 1 { 1.0 } else { 0.0 },
            if self.switches_per_group() > 1 { local } else { 0.0 },
            if self.groups() > 1 { global } else { 0.0 },
        ]
    }

    /// What each port carries, in units of 1/(g-2), if every packet between groups goes by way of a
    /// third group, all equally likely.
    fn valiant_loads(&self, permutation: &Permutation) -> PortLoads {
        let mut loads = PortLoads::new(self.switches(), self.ports(SwitchId(0)));
        let weight = u64::from(self.groups() - 2);
        let address = |endpoint| self.endpoint_address(endpoint);
        let mut between_groups: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        let add_local = |loads: &mut PortLoads, group, from, to, load: u64| {
            if from != to {
                *loads.at(self.switch_id(group, from), self.local_port(from, to)) += load;
            }
        };
        for source in (0..self.endpoints()).map(EndpointId) {
            let destination = permutation.destination(source);
            if source == destination {
                continue;
            }
            let (from, to) = (address(source), address(destination));
            let (target_switch, target_port) = self.attachment(destination);
            *loads.at(target_switch, target_port) += weight;
            if self.group(from) == self.group(to) {
                add_local(
                    &mut loads,
                    self.group(from),
                    self.switch_in_group(from),
                    self.switch_in_group(to),
                    weight,
                );
                continue;
            }
            *between_groups.entry((self.group(from), self.group(to))).or_default() += 1;
            for via in self.intermediate_groups(from, to) {
                let out = self.gateway(self.group(from), via).0;
                add_local(&mut loads, self.group(from), self.switch_in_group(from), out, 1);
                let into = self.gateway(self.group(to), via).0;
                add_local(&mut loads, self.group(to), into, self.switch_in_group(to), 1);
            }
        }
        for (&(from, to), &flows) in &between_groups {
            for via in (0..self.groups()).filter(|&via| via != from && via != to) {
                let (arrives, leaves) = (self.gateway(via, from).0, self.gateway(via, to));
                let (out, out_port) = self.gateway(from, via);
                *loads.at(self.switch_id(from, out), out_port) += flows;
                add_local(&mut loads, via, arrives, leaves.0, flows);
                *loads.at(self.switch_id(via, leaves.0), leaves.1) += flows;
            }
        }
        loads
    }

    fn intermediate_groups(&self, from: Address, to: Address) -> impl Iterator<Item = u32> {
        let (from, to) = (self.group(from), self.group(to));
        (0..self.groups()).filter(move |&via| via != from && via != to)
    }
}

impl ClosedForms for DragonflyMinimal {
    fn diameter(&self) -> u32 {
        self.topology().diameter()
    }

    fn mean_distance(&self) -> f64 {
        self.topology().mean_distance()
    }

    fn bisection(&self) -> Bisection {
        self.topology().bisection()
    }

    fn uniform_load(&self) -> ChannelLoad {
        ChannelLoad { per_class: self.topology().uniform_load(), paths: Paths::Deterministic }
    }
}

impl ClosedForms for Ugal {
    fn diameter(&self) -> u32 {
        self.topology().diameter()
    }

    fn mean_distance(&self) -> f64 {
        self.topology().mean_distance()
    }

    fn bisection(&self) -> Bisection {
        self.topology().bisection()
    }

    fn uniform_load(&self) -> ChannelLoad {
        ChannelLoad { per_class: self.topology().uniform_load(), paths: Paths::Minimal }
    }

    fn permutation_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        let dragonfly = self.topology();
        let minimal = Layout::DragonflyMinimal(DragonflyMinimal::new(dragonfly.clone()));
        let minimal = walk_permutation(&minimal, permutation);
        if dragonfly.groups() < 3 {
            return Some(minimal.busiest_per_class(dragonfly, Paths::Minimal, |load| load as f64));
        }
        let valiant = dragonfly.valiant_loads(permutation);
        let unit = f64::from(dragonfly.groups() - 2);
        Some(best_split(dragonfly, &minimal, &valiant, unit))
    }
}

/// The mix of minimal and Valiant paths whose busiest channel between switches is least busy. The load
/// of every channel is linear in the share, so the busiest is convex, and only channels that no other
/// exceeds in both loads matter.
fn best_split(dragonfly: &Dragonfly, minimal: &PortLoads, valiant: &PortLoads, unit: f64) -> ChannelLoad {
    let mut per_class = [(); 3].map(|()| BTreeMap::<u64, u64>::new());
    for ((_, port, minimal), (_, _, valiant)) in minimal.iter().zip(valiant.iter()) {
        let most = per_class[usize::from(dragonfly.class(port).0)].entry(minimal).or_default();
        *most = valiant.max(*most);
    }
    let busiest = |class: usize, share: f64| {
        let load = |(&minimal, &valiant): (&u64, &u64)| {
            share * minimal as f64 + (1.0 - share) * valiant as f64 / unit
        };
        per_class[class].iter().map(load).fold(0.0, f64::max)
    };
    let between = |share: f64| {
        [LOCAL, GLOBAL].map(|class| busiest(usize::from(class.0), share)).into_iter().fold(0.0, f64::max)
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let third: f64 = (high - low) / 3.0;
        // On a plateau more minimal paths are better: they are shorter.
        if between(low + third) < between(high - third) { high -= third } else { low += third }
    }
    let share: f64 = (low + high) / 2.0;
    ChannelLoad {
        per_class: (0..3).map(|class| busiest(class, share)).collect(),
        paths: Paths::Split { minimal: share },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dragonfly::GlobalLinks;
    use crate::path::idle_path;
    use crate::pattern::Pattern;
    use crate::traits::Attachment;
    use proptest::prelude::*;

    /// A detour is two minimal walks: to the first switch of the intermediate group, and from there.
    fn walked_detours(layout: &Layout, dragonfly: &Dragonfly, permutation: &Permutation) -> Vec<u64> {
        let mut loads = PortLoads::new(dragonfly.switches(), dragonfly.ports(SwitchId(0)));
        let group = |endpoint| dragonfly.group(dragonfly.endpoint_address(endpoint));
        let endpoints_per_group = dragonfly.switches_per_group() * dragonfly.endpoints_per_switch();
        for from in (0..dragonfly.endpoints()).map(EndpointId) {
            let to = permutation.destination(from);
            let others = (0..dragonfly.groups()).filter(|&via| via != group(from) && via != group(to));
            if from == to {
                continue;
            }
            if group(from) == group(to) {
                let weight = u64::from(dragonfly.groups() - 2);
                idle_path(layout, from, to, |switch, port| *loads.at(switch, port) += weight);
                continue;
            }
            for via in others {
                let mut arrived = None;
                idle_path(layout, from, EndpointId(via * endpoints_per_group), |switch, port| {
                    if arrived.is_none() {
                        *loads.at(switch, port) += 1;
                        let Attachment::Switch(next, _) = dragonfly.peer(switch, port) else { return };
                        arrived = (next.0 / dragonfly.switches_per_group() == via).then_some(next);
                    }
                });
                let there = arrived.unwrap().0 * dragonfly.endpoints_per_switch();
                idle_path(layout, EndpointId(there), to, |switch, port| *loads.at(switch, port) += 1);
            }
        }
        loads.iter().map(|(_, _, load)| load).collect()
    }

    proptest! {
        /// Catches detours that the figures route otherwise than packets go.
        #[test]
        fn valiant_loads_agree_with_walks(
            (p, a, h) in (1u64..=2, 1u64..=4, 2u64..=3),
            groups in 3u64..=9,
            absolute: bool,
        ) {
            let arrangement = if absolute { GlobalLinks::Absolute } else { GlobalLinks::Palmtree };
            let dragonfly = Dragonfly::new(p, a, h, groups.min(a * h + 1), arrangement).unwrap();
            let layout = Layout::DragonflyMinimal(DragonflyMinimal::new(dragonfly.clone()));
            for pattern in [Pattern::Tornado, Pattern::BitComplement] {
                let permutation = Permutation::new(pattern, &layout).unwrap();
                let loads: Vec<_> = dragonfly.valiant_loads(&permutation).iter().map(|(_, _, load)| load).collect();
                prop_assert_eq!(loads, walked_detours(&layout, &dragonfly, &permutation));
            }
        }
    }
}
