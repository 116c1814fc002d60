//! Figures of the HyperX. Its minimal paths are those of dimension order.

use super::{HyperX, HyperXLayout, HyperXRouting, Row};
use crate::figures::{
    Bisection, ChannelLoad, ClosedForms, Paths, mean_over_pairs, ordered_pairs, walk_permutation,
};
use crate::pattern::Permutation;
use crate::traits::{RoutedTopology, Routing, Topology};
use weft_units::EndpointId;

impl HyperX {
    fn diameter(&self) -> u32 {
        self.rows.iter().map(|row| u32::from(row.size > 1)).sum()
    }

    fn mean_distance(&self) -> f64 {
        let (switches, concentration) = (u128::from(self.switches()), u128::from(self.concentration()));
        // Ordered pairs of switches that differ in a dimension.
        let differ = |size: u32| switches * (switches - switches / u128::from(size));
        let sum: u128 = self.rows.iter().map(|row| differ(row.size)).sum();
        mean_over_pairs(sum * concentration * concentration, ordered_pairs(self.endpoints()))
    }

    /// The cut through the rows of the dimension where it takes fewest links.
    fn bisection(&self) -> Bisection {
        let halves = |size: u32| u64::from(size / 2) * u64::from(size.div_ceil(2));
        let links = |size: u32| u64::from(self.switches() / size) * halves(size);
        let names = self.link_classes().into_iter().skip(1);
        let cuts = self.rows.iter().zip(names).filter(|(row, _)| row.size > 1);
        // Odd dimensions only where there is no even one: they do not halve.
        match cuts.min_by_key(|(row, _)| (row.size % 2, links(row.size))) {
            None => Bisection { links: 0, cut: "all endpoints share one switch".to_owned() },
            Some((row, name)) => {
                let unequal =
                    if row.size.is_multiple_of(2) { "" } else { ", into halves that differ by one layer" };
                Bisection { links: links(row.size), cut: format!("across dimension {name}{unequal}") }
            }
        }
    }

    /// The load per class under uniform traffic in dimension order.
    fn uniform_load(&self) -> Vec<f64> {
        let others = f64::from(self.endpoints()) - 1.0;
        let concentration = f64::from(self.concentration());
        // Over the link between two coordinates go packets whose source has the one and whose destination has
        // the other; in every other dimension one of the two is free.
        let dimension = |size: u32| match size {
            1 => 0.0,
            _ => concentration * concentration * f64::from(self.switches() / size) / others,
        };
        let endpoint = if self.endpoints() > 1 { 1.0 } else { 0.0 };
        std::iter::once(endpoint).chain(self.rows.iter().map(|row| dimension(row.size))).collect()
    }

    /// The load per class in dimension order of a permutation that acts on each coordinate alone.
    fn load_by_coordinates(&self, permutation: &Permutation) -> Vec<f64> {
        // Over the link between two coordinates go the packets of all sources with the one, where the
        // permutation sends it to the other: in every other dimension either the source's or the
        // destination's coordinate is given, which leaves one switch.
        let load = |row: &Row| {
            let stride = row.stride * self.concentration;
            let moves = |x: u32| permutation.destination(EndpointId(x * stride)).0 / stride % row.size != x;
            if (0..row.size).any(moves) { f64::from(self.concentration) } else { 0.0 }
        };
        let loads: Vec<f64> = self.rows.iter().map(load).collect();
        let moves = |slot: u32| permutation.destination(EndpointId(slot)).0 != slot;
        let any_moves = loads.iter().any(|load| *load > 0.0) || (0..self.concentration).any(moves);
        [vec![f64::from(u8::from(any_moves))], loads].concat()
    }
}

impl ClosedForms for HyperXLayout {
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
        let paths = if self.is_deterministic() { Paths::Deterministic } else { Paths::Minimal };
        Some(ChannelLoad { per_class: self.topology().uniform_load(), paths })
    }

    /// Counted for transpose alone, which mixes coordinates.
    fn permutation_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        let paths = if self.is_deterministic() { Paths::Deterministic } else { Paths::Minimal };
        if let Permutation::Transpose { .. } = permutation {
            let straight = HyperXLayout::new(self.topology().clone(), HyperXRouting::DimensionOrder);
            let loads = walk_permutation(&straight, permutation);
            return Some(loads.busiest_per_class(self.topology(), paths, |load| load as f64));
        }
        Some(ChannelLoad { per_class: self.topology().load_by_coordinates(permutation), paths })
    }

    fn longest_route(&self) -> Option<u32> {
        // To the drawn switch, and from there.
        let parts = if self.is_deterministic() { 1 } else { 2 };
        Some(parts * self.topology().diameter())
    }
}
