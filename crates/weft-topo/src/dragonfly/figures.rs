//! Figures of the Dragonfly.
//!
//! Distances are those of the minimal route (local, global, local). Between some switches two global
//! links on end would be shorter; no routing here uses them.

use super::detour_loads::detour_loads;
use super::uniform_loads::{detour_load, minimal_load};
use super::{Dragonfly, DragonflyMinimal, DragonflyPar, DragonflyValiant, Ugal};
use crate::figures::{
    Bisection, ChannelLoad, ClosedForms, Paths, best_split, mean_over_pairs, ordered_pairs, walk_permutation,
};
use crate::pattern::Permutation;
use crate::traits::{RoutedTopology, Topology};

impl Dragonfly {
    pub(super) fn diameter(&self) -> u32 {
        let a = self.switches_per_group();
        let local = u32::from(a > 1);
        match self.groups() {
            1 => local,
            // Every switch has a link to every other group.
            _ if self.links_per_pair() >= a => 1 + local,
            _ => 3,
        }
    }

    pub(super) fn mean_distance(&self) -> f64 {
        let (p, a) = (u128::from(self.endpoints_per_switch()), u128::from(self.switches_per_group()));
        let same_group = u128::from(self.groups()) * ordered_pairs(self.switches_per_group());
        // One global link; a local one for all sources that have none, and all destinations, but for those
        // joined to each other: from a switch without, one local link is saved where a link ends.
        let joined = u128::from(self.links_per_pair().min(self.switches_per_group()));
        let (direct, others) = (joined, a - joined);
        let hops = direct + 2 * direct * (a - 1) + 2 * others * direct + 3 * others * others;
        let other_group = ordered_pairs(self.groups()) * hops;
        mean_over_pairs((same_group + other_group) * p * p, ordered_pairs(self.endpoints()))
    }

    pub(super) fn bisection(&self) -> Bisection {
        let halves = |count: u32| u64::from(count / 2) * u64::from(count.div_ceil(2));
        let unequal =
            |count: u32| if count.is_multiple_of(2) { "" } else { ", into halves that differ by one" };
        match (self.groups(), self.switches_per_group()) {
            (1, 1) => Bisection { links: 0, cut: "all endpoints share one switch".to_owned() },
            (1, a) => Bisection { links: halves(a), cut: format!("between switches{}", unequal(a)) },
            (g, _) => Bisection {
                links: halves(g) * u64::from(self.links_per_pair()),
                cut: format!("between groups{}", unequal(g)),
            },
        }
    }

    /// The load of the busiest channel of each class under uniform traffic on minimal paths.
    pub(super) fn uniform_load(&self) -> Option<Vec<f64>> {
        if self.links_per_pair() > 1 { minimal_load(self) } else { Some(self.uniform_load_of_single_links()) }
    }

    fn uniform_load_of_single_links(&self) -> Vec<f64> {
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
}

impl Dragonfly {
    fn minimal_permutation_load(&self, permutation: &Permutation) -> ChannelLoad {
        let minimal = walk_permutation(&DragonflyMinimal::new(self.clone()), permutation);
        minimal.busiest_per_class(self, Paths::Minimal, |load| load as f64)
    }

    /// The load of a permutation that goes partly minimally and partly on detours. Of several links to a
    /// group it takes those that the destinations choose, which queues can only improve on.
    fn split_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        if self.groups() < 3 {
            return Some(self.minimal_permutation_load(permutation));
        }
        let minimal = walk_permutation(&DragonflyMinimal::new(self.clone()), permutation);
        let detours = detour_loads(self, permutation)?;
        Some(best_split(self, &minimal, &detours, f64::from(self.groups() - 2)))
    }
}

impl ClosedForms for DragonflyMinimal {
    /// Two global links on end can be shorter than local, global, local.
    fn idle_detour(&self) -> u32 {
        1
    }

    fn diameter(&self) -> Option<u32> {
        Some(self.topology().diameter())
    }

    fn mean_distance(&self) -> Option<f64> {
        Some(self.topology().mean_distance())
    }

    fn bisection(&self) -> Option<Bisection> {
        Some(self.topology().bisection())
    }

    fn uniform_load(&self) -> Option<ChannelLoad> {
        Some(ChannelLoad { per_class: self.topology().uniform_load()?, paths: Paths::Deterministic })
    }
}

impl ClosedForms for Ugal {
    /// Three groups with a local link in each, and two global links.
    fn longest_route(&self) -> Option<u32> {
        Some(5)
    }

    fn idle_detour(&self) -> u32 {
        1
    }

    fn diameter(&self) -> Option<u32> {
        Some(self.topology().diameter())
    }

    fn mean_distance(&self) -> Option<f64> {
        Some(self.topology().mean_distance())
    }

    fn bisection(&self) -> Option<Bisection> {
        Some(self.topology().bisection())
    }

    fn uniform_load(&self) -> Option<ChannelLoad> {
        Some(ChannelLoad { per_class: self.topology().uniform_load()?, paths: Paths::Minimal })
    }

    fn permutation_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        self.topology().split_load(permutation)
    }
}

impl ClosedForms for DragonflyPar {
    fn diameter(&self) -> Option<u32> {
        Some(self.topology().diameter())
    }

    fn mean_distance(&self) -> Option<f64> {
        Some(self.topology().mean_distance())
    }

    fn bisection(&self) -> Option<Bisection> {
        Some(self.topology().bisection())
    }

    /// As UGAL-L, with a second local link in the source's group.
    fn longest_route(&self) -> Option<u32> {
        Some(6)
    }

    fn idle_detour(&self) -> u32 {
        1
    }

    fn uniform_load(&self) -> Option<ChannelLoad> {
        Some(ChannelLoad { per_class: self.topology().uniform_load()?, paths: Paths::Minimal })
    }

    fn permutation_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        self.topology().split_load(permutation)
    }
}

impl ClosedForms for DragonflyValiant {
    fn diameter(&self) -> Option<u32> {
        Some(self.topology().diameter())
    }

    fn mean_distance(&self) -> Option<f64> {
        Some(self.topology().mean_distance())
    }

    fn bisection(&self) -> Option<Bisection> {
        Some(self.topology().bisection())
    }

    fn longest_route(&self) -> Option<u32> {
        Some(5)
    }

    /// From one link to five.
    fn idle_detour(&self) -> u32 {
        if self.topology().groups() > 2 { 4 } else { 1 }
    }

    fn uniform_load(&self) -> Option<ChannelLoad> {
        let dragonfly = self.topology();
        let per_class =
            if dragonfly.groups() > 2 { detour_load(dragonfly)? } else { dragonfly.uniform_load()? };
        Some(ChannelLoad { per_class, paths: Paths::Random })
    }

    fn permutation_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        let dragonfly = self.topology();
        if dragonfly.groups() < 3 {
            return Some(dragonfly.minimal_permutation_load(permutation));
        }
        let unit = f64::from(dragonfly.groups() - 2);
        let loads = detour_loads(dragonfly, permutation)?;
        Some(loads.busiest_per_class(dragonfly, Paths::Random, |load| load as f64 / unit))
    }
}
