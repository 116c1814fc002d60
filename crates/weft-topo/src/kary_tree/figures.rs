//! Figures of the k-ary n-tree.

use super::UpDown;
use crate::figures::{Bisection, ChannelLoad, ClosedForms, Paths, mean_over_pairs, ordered_pairs};
use crate::pattern::Permutation;
use crate::traits::{RoutedTopology, Routing, Topology};
use weft_units::EndpointId;

impl UpDown {
    fn paths(&self) -> Paths {
        if self.is_deterministic() { Paths::Deterministic } else { Paths::Random }
    }
}

impl ClosedForms for UpDown {
    fn diameter(&self) -> Option<u32> {
        Some(2 * (self.topology().levels() - 1))
    }

    fn mean_distance(&self) -> Option<f64> {
        let (k, n) = (u128::from(self.topology().arity()), self.topology().levels());
        let endpoints = self.topology().endpoints();
        // Endpoints whose common ancestor with a given one is of level l: k^(l+1) - k^l.
        let sum: u128 = (1..n).map(|l| u128::from(2 * l) * (k.pow(l + 1) - k.pow(l))).sum();
        Some(mean_over_pairs(sum * u128::from(endpoints), ordered_pairs(endpoints)))
    }

    fn bisection(&self) -> Option<Bisection> {
        let tree = self.topology();
        if tree.levels() == 1 {
            return Some(Bisection { links: 0, cut: "all endpoints share one switch".to_owned() });
        }
        let links = u64::from(tree.switches() / tree.levels()) * u64::from(tree.arity() / 2);
        let halves = if tree.arity().is_multiple_of(2) { "" } else { " that differ by one subtree" };
        Some(Bisection { links, cut: format!("below the top level, into halves{halves}") })
    }

    fn uniform_load(&self) -> Option<ChannelLoad> {
        let (endpoints, arity) = (self.topology().endpoints(), self.topology().arity());
        // Both ascents spread evenly. Of all subtrees, the smallest has most traffic that leaves it per
        // link up: what its k endpoints send outside, over k links.
        let tree = f64::from(endpoints - arity) / (f64::from(endpoints) - 1.0);
        Some(ChannelLoad { per_class: vec![1.0, tree], paths: self.paths() })
    }

    /// Random up spreads what leaves or enters a subtree evenly over its links up.
    fn permutation_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        if self.is_deterministic() {
            return None;
        }
        let tree = self.topology();
        let flows: Vec<_> = (0..tree.endpoints())
            .map(|source| (source, permutation.destination(EndpointId(source)).0))
            .filter(|(source, destination)| source != destination)
            .collect();
        let mut busiest: f64 = 0.0;
        let mut below = 1;
        for _ in 1..tree.levels() {
            below *= tree.arity();
            let subtrees = (tree.endpoints() / below) as usize;
            let (mut leaving, mut entering) = (vec![0u32; subtrees], vec![0u32; subtrees]);
            for (source, destination) in flows.iter().map(|(s, d)| (s / below, d / below)) {
                if source != destination {
                    leaving[source as usize] += 1;
                    entering[destination as usize] += 1;
                }
            }
            let most = leaving.into_iter().chain(entering).max().unwrap_or(0);
            busiest = busiest.max(f64::from(most) / f64::from(below));
        }
        let endpoint = if flows.is_empty() { 0.0 } else { 1.0 };
        Some(ChannelLoad { per_class: vec![endpoint, busiest], paths: Paths::Random })
    }
}
