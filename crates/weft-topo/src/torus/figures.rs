//! Figures of the torus and mesh under dimension order.

use super::{Axis, DimensionOrder, Torus};
use crate::figures::{Bisection, ChannelLoad, ClosedForms, Paths, mean_over_pairs, ordered_pairs};
use crate::pattern::Permutation;
use crate::traits::{RoutedTopology, Topology};
use std::cmp::Ordering;
use weft_units::EndpointId;

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
            self.axes().iter().zip(self.link_classes().into_iter().skip(1)).filter(|(axis, _)| axis.size > 1);
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

/// The load of the links of one dimension, as differences between neighbouring links: a packet that passes
/// many links of a ring changes two or three of them.
struct RingLoads {
    /// Switches along the dimension.
    size: u32,
    /// Switches of all lower dimensions: the step from one switch of a ring to the next.
    stride: u32,
    /// By the switch that a link leaves, and whether down.
    differences: [Vec<i32>; 2],
}

impl RingLoads {
    fn new(switches: u32, size: u32, stride: u32) -> RingLoads {
        let none = || vec![0; switches as usize];
        RingLoads { size, stride, differences: [none(), none()] }
    }

    /// Adds a packet that goes from coordinate `s` to `t` of the ring that begins at switch `first`.
    fn pass(&mut self, first: u32, (s, t): (u32, u32), down: bool) {
        // Links leave the switches of [begin, end) of the ring, which may run over its last switch.
        let (begin, end) = if down { (t + 1, s + 1) } else { (s, t) };
        let mut change = |x: u32, by: i32| {
            if x < self.size {
                self.differences[usize::from(down)][(first + x * self.stride) as usize] += by;
            }
        };
        change(begin, 1);
        change(end, -1);
        if begin > end {
            change(0, 1);
        }
    }

    /// The load of the busiest link.
    fn busiest(&self) -> u32 {
        let is_first = |switch: &u32| (switch / self.stride).is_multiple_of(self.size);
        let switches = self.differences[0].len() as u32;
        let busiest_of_ring = |(differences, first): (&Vec<i32>, u32)| {
            let places = (0..self.size).map(|x| (first + x * self.stride) as usize);
            let loads = places.scan(0, |load, place| {
                *load += differences[place];
                Some(*load)
            });
            loads.max().unwrap_or(0)
        };
        let rings = |differences| (0..switches).filter(is_first).map(move |first| (differences, first));
        let busiest = self.differences.iter().flat_map(rings).map(busiest_of_ring).max().unwrap_or(0);
        busiest.unsigned_abs()
    }
}

impl DimensionOrder {
    /// The load of the busiest link of dimension `d` under a permutation.
    fn busiest_of(&self, d: usize, permutation: &Permutation) -> u32 {
        let torus = self.topology();
        let axes = torus.axes();
        let stride = axes[..d].iter().map(|axis| axis.size).product();
        let mut rings = RingLoads::new(torus.switches(), axes[d].size, stride);
        for source in (0..torus.endpoints()).map(EndpointId) {
            let [from, to] =
                [source, permutation.destination(source)].map(|endpoint| torus.endpoint_address(endpoint));
            let way = (axes[d].coordinate(from), axes[d].coordinate(to));
            if way.0 != way.1 {
                // Lower dimensions are corrected by now, higher ones are not.
                let mut first = 0;
                for (e, axis) in axes.iter().enumerate().rev() {
                    let x = match e.cmp(&d) {
                        Ordering::Less => axis.coordinate(to),
                        Ordering::Equal => 0,
                        Ordering::Greater => axis.coordinate(from),
                    };
                    first = first * axis.size + x;
                }
                rings.pass(first, way, self.goes_down(from, to, d));
            }
        }
        rings.busiest()
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

    /// Not closed, but each packet is counted once per dimension and not once per link: rings may be long.
    fn permutation_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        let torus = self.topology();
        let mut sources = (0..torus.endpoints()).map(EndpointId);
        let any_sends = sources.any(|source| permutation.destination(source) != source);
        let dimensions = 0..torus.axes().len();
        let between = dimensions.map(|d| f64::from(self.busiest_of(d, permutation)));
        let per_class = std::iter::once(f64::from(u8::from(any_sends))).chain(between).collect();
        Some(ChannelLoad { per_class, paths: Paths::Deterministic })
    }
}
