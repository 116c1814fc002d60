//! Figures of the Megafly.
//!
//! All groups are alike, so that the loads of one group are those of all. Sums run over the destinations in
//! it and over the offsets of groups, never over pairs of endpoints.

use super::detour_loads::detour_loads;
use super::{GLOBAL, LOCAL, Megafly, MegaflyLayout, MegaflyRouting};
use crate::figures::{
    Bisection, ChannelLoad, ClosedForms, Paths, PortLoads, SourceClass, best_split, mean_over_pairs,
    ordered_pairs, walk_permutation,
};
use crate::pattern::Permutation;
use crate::traits::{RoutedTopology, Topology};
use std::collections::BTreeMap;
use weft_units::{EndpointId, PortId, SwitchId};

/// Destinations of a group to which all paths choose alike and lead to one leaf.
#[derive(Clone, Copy)]
pub(super) struct DestinationKind {
    /// The number of one of them in its group, or of an endpoint that chooses as they do.
    pub index: u32,
    /// Their leaf.
    pub leaf: u32,
}

impl Megafly {
    fn diameter(&self) -> u32 {
        match (self.groups, self.leaves) {
            (1, 1) => 0,
            (1, _) => 2,
            _ => 3,
        }
    }

    fn mean_distance(&self) -> f64 {
        let p = u128::from(self.endpoints_per_leaf);
        let in_group = u128::from(self.groups) * ordered_pairs(self.leaves) * p * p;
        let per_group = u128::from(self.endpoints_per_group());
        let between = ordered_pairs(self.groups) * per_group * per_group;
        mean_over_pairs(2 * in_group + 3 * between, ordered_pairs(self.endpoints()))
    }

    fn bisection(&self) -> Bisection {
        let unequal =
            |count: u32| if count.is_multiple_of(2) { "" } else { ", into halves that differ by one" };
        match (self.groups, self.leaves) {
            (1, 1) => Bisection { links: 0, cut: "all endpoints share one leaf".to_owned() },
            (1, leaves) => Bisection {
                links: u64::from(self.spines) * u64::from(leaves / 2),
                cut: format!("between leaves{}", unequal(leaves)),
            },
            (groups, _) => {
                let in_order = Bisection {
                    links: self.links_between_halves(),
                    cut: format!("between groups{}", unequal(groups)),
                };
                let by_parity = || Bisection {
                    links: self.links_between_parities(),
                    cut: "between groups of even and of odd numbers".to_owned(),
                };
                // Links to the group opposite join groups of one parity then.
                let parities = groups.is_multiple_of(4).then(by_parity);
                match parities {
                    Some(parities) if parities.links < in_order.links => parities,
                    _ => in_order,
                }
            }
        }
    }

    /// Offsets of other groups, and the links to each.
    fn links_by_offset(&self) -> impl Iterator<Item = (u32, u64)> {
        (1..self.groups).map(|offset| (offset, u64::from(self.links.to(offset).1)))
    }

    /// Links between the lower half of the groups and the others.
    fn links_between_halves(&self) -> u64 {
        let half = self.groups / 2;
        let leaving =
            |offset: u32| half - half.saturating_sub(offset) - half.saturating_sub(self.groups - offset);
        self.links_by_offset().map(|(offset, links)| links * u64::from(leaving(offset))).sum()
    }

    /// Links between groups of even and of odd numbers, where there are as many of both.
    fn links_between_parities(&self) -> u64 {
        let odd = self.links_by_offset().filter(|(offset, _)| !offset.is_multiple_of(2));
        odd.map(|(_, links)| links * u64::from(self.groups / 2)).sum()
    }

    /// The kind of endpoint `index` of a group.
    pub(super) fn kind(&self, index: u32) -> DestinationKind {
        DestinationKind { index: self.links.choices_of(index), leaf: index / self.endpoints_per_leaf }
    }

    /// The load of the busiest channel of each class under uniform traffic that goes minimally, or takes a
    /// detour between groups, all groups equally likely.
    fn uniform_load(&self, detours: bool) -> Vec<f64> {
        let (p, per_group) = (u64::from(self.endpoints_per_leaf), u64::from(self.endpoints_per_group()));
        let unit = if detours { u64::from(self.groups - 2) } else { 1 };
        // Loads of the switches of a group, by place, and of the way up to each spine from any leaf.
        let places = 0..self.leaves + self.spines;
        let mut loads = PortLoads::new(places.map(|place| self.ports(self.switch_at(0, place))));
        let mut up = vec![0; self.spines as usize];
        for index in 0..self.endpoints_per_group() {
            let (leaf, spine) = (index / self.endpoints_per_leaf, self.spine_within_group(index));
            up[spine as usize] += unit * p;
            let place = SwitchId(self.leaves + spine);
            *loads.at(place, self.down_port(leaf)) += unit * (per_group - p);
        }
        let mut kinds = BTreeMap::<(u32, u32), u64>::new();
        for DestinationKind { index, leaf } in (0..self.endpoints_per_group()).map(|index| self.kind(index)) {
            *kinds.entry((leaf, index)).or_default() += 1;
        }
        for target in 1..self.groups {
            for (&(leaf, index), &count) in &kinds {
                let mut visit = |_, place, port| *loads.at(SwitchId(place), port) += count * per_group;
                let mut add = |via| {
                    let out = self.path(&[0, via, target], DestinationKind { index, leaf }, &mut visit);
                    up[out as usize] += count * p;
                };
                match detours {
                    true => (1..self.groups).filter(|&via| via != target).for_each(&mut add),
                    false => add(target),
                }
            }
        }
        for leaf in 0..self.leaves {
            for (spine, &load) in (0..).zip(&up) {
                *loads.at(SwitchId(leaf), self.up_port(spine)) += load;
            }
        }
        // No packet goes up to come back to its own leaf.
        for index in 0..self.endpoints_per_group() {
            let (leaf, spine) = (index / self.endpoints_per_leaf, self.spine_within_group(index));
            *loads.at(SwitchId(leaf), self.up_port(spine)) -= unit * p;
        }
        let mut busiest = [0; 3];
        for (place, port, load) in loads.iter().filter(|&(_, _, load)| load > 0) {
            let class = usize::from(self.class(place.0 >= self.leaves, port).0);
            busiest[class] = load.max(busiest[class]);
        }
        let others = u64::from(self.endpoints()).saturating_sub(1);
        let share = |load: u64| if others == 0 { 0.0 } else { load as f64 / (others * unit) as f64 };
        let endpoint = if others > 0 { 1.0 } else { 0.0 };
        vec![endpoint, share(busiest[usize::from(LOCAL.0)]), share(busiest[usize::from(GLOBAL.0)])]
    }

    /// Calls `visit` with the group, the place in it and the port of every link of a path from a spine of the
    /// first group to the leaf of the destination in the last, by way of the group between where it is
    /// another. The answer is the spine where the path begins.
    pub(super) fn path(
        &self,
        &[source, via, target]: &[u32; 3],
        to: DestinationKind,
        visit: &mut impl FnMut(u32, u32, PortId),
    ) -> u32 {
        let spine_place = |spine| self.leaves + spine;
        let out = self.links.choose(self.offset(source, via), to.index);
        let begin = self.links.at(out).spine;
        visit(source, spine_place(begin), self.global_port(out));
        let mut spine = self.links.at(self.links.at(out).back).spine;
        if via != target {
            let offset = self.offset(via, target);
            let straight = self.links.choose_at(spine, offset, to.index);
            let on = straight.unwrap_or_else(|| {
                let on = self.links.choose(offset, to.index);
                visit(via, spine_place(spine), self.down_port(to.leaf));
                visit(via, to.leaf, self.up_port(self.links.at(on).spine));
                on
            });
            visit(via, spine_place(self.links.at(on).spine), self.global_port(on));
            spine = self.links.at(self.links.at(on).back).spine;
        }
        visit(target, spine_place(spine), self.down_port(to.leaf));
        begin
    }
}

impl MegaflyLayout {
    /// Whether packets in an idle network go minimally.
    fn is_minimal_when_idle(&self) -> bool {
        self.topology().groups < 3 || *self.routing() != MegaflyRouting::Valiant
    }
}

impl ClosedForms for MegaflyLayout {
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
        let paths = match self.routing() {
            MegaflyRouting::Minimal => Paths::Deterministic,
            MegaflyRouting::Valiant => Paths::Random,
            MegaflyRouting::UgalL { .. } | MegaflyRouting::Par { .. } | MegaflyRouting::UgalG { .. } => {
                Paths::Minimal
            }
        };
        let per_class = self.topology().uniform_load(!self.is_minimal_when_idle());
        Some(ChannelLoad { per_class, paths })
    }

    fn permutation_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        let megafly = self.topology();
        let minimal =
            || walk_permutation(&MegaflyLayout::new(megafly.clone(), MegaflyRouting::Minimal), permutation);
        let whole = |load| load as f64;
        let unit = f64::from(megafly.groups) - 2.0;
        match self.routing() {
            MegaflyRouting::Minimal => None,
            _ if megafly.groups < 3 => Some(minimal().busiest_per_class(megafly, Paths::Minimal, whole)),
            MegaflyRouting::Valiant => {
                let loads = detour_loads(megafly, permutation);
                Some(loads.busiest_per_class(megafly, Paths::Random, |load| load as f64 / unit))
            }
            MegaflyRouting::UgalL { .. } | MegaflyRouting::Par { .. } | MegaflyRouting::UgalG { .. } => {
                Some(best_split(megafly, &minimal(), &detour_loads(megafly, permutation), unit))
            }
        }
    }

    /// Two global links, and up and down in three groups.
    fn longest_route(&self) -> Option<u32> {
        (*self.routing() != MegaflyRouting::Minimal && self.topology().groups > 2).then_some(6)
    }

    fn idle_detour(&self) -> u32 {
        if self.is_minimal_when_idle() { 0 } else { 3 }
    }

    /// From all endpoints the machine looks the same: random numbers choose among the other groups by their
    /// offset.
    fn source_classes(&self) -> Option<Vec<SourceClass>> {
        Some(vec![SourceClass { endpoint: EndpointId(0), count: self.topology().endpoints() }])
    }
}
