//! Figures of the torus and mesh under dimension order.

use super::{Axis, DimensionOrder, Torus};
use crate::figures::{Bisection, ChannelLoad, ClosedForms, Paths, mean_over_pairs, ordered_pairs};
use crate::traits::{RoutedTopology, Topology};

impl Axis {
    /// The longest way along this axis.
    fn diameter(&self) -> u32 {
        if self.wraps { self.size / 2 } else { self.size - 1 }
    }

    /// The sum of distances over all ordered pairs of coordinates.
    fn distances(&self) -> u128 {
        let k = u128::from(self.size);
        if self.wraps { k * (k * k / 4) } else { k * (k * k - 1) / 3 }
    }

    /// The pairs of coordinates whose way takes the busiest link in one direction. Half-way round both
    /// directions are as long and the parity of the other coordinates decides, which splits evenly but
    /// for `bias`, the excess of one parity over the other.
    fn pairs_over_busiest_link(&self, bias: f64) -> f64 {
        let k = f64::from(self.size);
        if !self.wraps {
            return (k * k / 4.0).floor();
        }
        let below_half = ((k - 1.0) / 2.0).floor();
        let shorter = below_half * (below_half + 1.0) / 2.0;
        match self.size % 4 {
            0 => shorter + k / 4.0,
            2 => shorter + k / 4.0 + bias / 2.0,
            _ => shorter,
        }
    }
}

impl Torus {
    /// Most links between switches on a shortest path.
    pub(crate) fn diameter(&self) -> u32 {
        self.axes().iter().map(Axis::diameter).sum()
    }

    /// The sum of distances over all ordered pairs of switches.
    pub(crate) fn distances(&self) -> u128 {
        let switches = u128::from(self.switches());
        let pairs_elsewhere = |axis: &Axis| (switches / u128::from(axis.size)).pow(2);
        self.axes().iter().map(|axis| axis.distances() * pairs_elsewhere(axis)).sum()
    }

    /// The cut across the dimension where it takes fewest links.
    pub(crate) fn bisection(&self) -> Bisection {
        let links = |axis: &Axis| u64::from(self.switches() / axis.size) * if axis.wraps { 2 } else { 1 };
        let cuts =
            self.axes().iter().zip(self.link_classes().iter().skip(1)).filter(|(axis, _)| axis.size > 1);
        // Odd dimensions only where there is no even one: they do not halve.
        match cuts.min_by_key(|(axis, _)| (axis.size % 2, links(axis))) {
            None => Bisection { links: 0, cut: "all endpoints share one switch".to_owned() },
            Some((axis, name)) => {
                let halves =
                    if axis.size.is_multiple_of(2) { "" } else { ", into halves that differ by one layer" };
                Bisection { links: links(axis), cut: format!("across dimension {name}{halves}") }
            }
        }
    }

    /// The load per class under uniform traffic and dimension order.
    pub(crate) fn uniform_load(&self) -> Vec<f64> {
        let axes = self.axes();
        let others = f64::from(self.endpoints()) - 1.0;
        let concentration = f64::from(self.concentration());
        let dimension = |(d, axis): (usize, &Axis)| {
            if axis.size == 1 {
                return 0.0;
            }
            let odd =
                |other: &Axis| if other.size.is_multiple_of(2) { 0.0 } else { 1.0 / f64::from(other.size) };
            let bias: f64 = axes.iter().enumerate().filter(|&(e, _)| e != d).map(|(_, e)| odd(e)).product();
            // Source or destination is free in every other dimension.
            let rows = f64::from(self.switches() / axis.size);
            concentration * concentration * rows * axis.pairs_over_busiest_link(bias) / others
        };
        let endpoint = if self.endpoints() > 1 { 1.0 } else { 0.0 };
        std::iter::once(endpoint).chain(axes.iter().enumerate().map(dimension)).collect()
    }
}

impl ClosedForms for DimensionOrder {
    fn diameter(&self) -> Option<u32> {
        Some(self.topology().diameter())
    }

    fn mean_distance(&self) -> Option<f64> {
        let torus = self.topology();
        let endpoints_squared = u128::from(torus.concentration()).pow(2);
        Some(mean_over_pairs(torus.distances() * endpoints_squared, ordered_pairs(torus.endpoints())))
    }

    fn bisection(&self) -> Option<Bisection> {
        Some(self.topology().bisection())
    }

    fn uniform_load(&self) -> Option<ChannelLoad> {
        Some(ChannelLoad { per_class: self.topology().uniform_load(), paths: Paths::Deterministic })
    }
}
