//! Figures of trees.
//!
//! Below, the links out of a subtree are those upwards from the switches at its top. D-mod-k numbers them so
//! that destination d outside the subtree takes link d modulo their number, and likewise, downwards, a
//! destination inside.

use super::{CLASSES, Level, Tree, TreeRouting, TreeUpDown};
use crate::figures::{Bisection, ChannelLoad, ClosedForms, Paths, mean_over_pairs, ordered_pairs};
use crate::pattern::Permutation;
use crate::traits::{RoutedTopology, Topology};
use weft_units::EndpointId;

/// Links that are cut, and their classes.
#[derive(Clone)]
struct Cut {
    links: u64,
    classes: Vec<usize>,
}

impl Tree {
    /// The levels below the top, whose switches have links up.
    fn levels_below_top(&self) -> &[Level] {
        &self.levels[..self.height as usize - 1]
    }

    /// Leaves of a subtree of a level.
    fn leaves(&self, l: usize) -> u32 {
        self.levels[l].endpoints / self.levels[0].endpoints
    }

    /// The fewest links that separate the leaves of a subtree of a level from all above: those out of it, or
    /// out of its children.
    fn separation(&self, l: usize) -> Cut {
        let level = &self.levels[l];
        let own = Cut { links: u64::from(level.links_out()), classes: vec![l + 1] };
        let Some(below) = l.checked_sub(1) else { return own };
        let mut children = self.separation(below);
        children.links *= u64::from(level.children);
        if children.links < own.links { children } else { own }
    }

    /// The fewest links that halve a subtree of a level with whole children on either side, or halves of
    /// each, or whole ones and the last, odd one halved. A leaf is not halved: `None` where a subtree has one
    /// alone; where they are odd, the halves differ by one. Of odd numbers other cuts may be smaller.
    fn halving(&self, l: usize) -> Option<Cut> {
        let (level, below) = (&self.levels[l], l.checked_sub(1)?);
        let child = self.halving(below);
        if level.children == 1 {
            return child;
        }
        let mut apart = self.separation(below);
        apart.links *= u64::from(level.children / 2);
        let Some(mut child) = child else { return Some(apart) };
        if level.children % 2 == 1 {
            apart.links += child.links;
            apart.classes.extend(&child.classes);
        }
        child.links *= u64::from(level.children);
        let equal_halves = self.leaves(below).is_multiple_of(2);
        Some(if equal_halves && child.links < apart.links { child } else { apart })
    }

    /// The largest load of a link from a level to the next, and back, in packets where every endpoint sends
    /// one to every other by D-mod-k.
    fn busiest_by_destination(&self, level: &Level) -> u64 {
        let (all, inside, links) = (self.endpoints(), level.endpoints, level.links_out());
        // The same link of all subtrees has the same destinations, of which each subtree has a whole share
        // or one more: the subtree with fewest sends to the rest.
        let shared = all.div_ceil(links);
        let outside = shared - shared / (all / inside);
        let up = u64::from(inside) * u64::from(outside);
        let down = u64::from(all - inside) * u64::from(inside.div_ceil(links));
        up.max(down)
    }
}

impl ClosedForms for TreeUpDown {
    fn diameter(&self) -> Option<u32> {
        let above_leaves = self.topology().levels().iter().skip(1);
        let highest = (1..).zip(above_leaves).filter(|(_, level)| level.children > 1).last();
        Some(highest.map_or(0, |(l, _)| 2 * l))
    }

    fn mean_distance(&self) -> Option<f64> {
        let tree = self.topology();
        let (mut sum, mut nearer) = (0, 0);
        for (l, level) in tree.levels().iter().enumerate() {
            sum += 2 * l as u128 * u128::from(level.endpoints - nearer);
            nearer = level.endpoints;
        }
        let endpoints = tree.endpoints();
        Some(mean_over_pairs(sum * u128::from(endpoints), ordered_pairs(endpoints)))
    }

    fn bisection(&self) -> Option<Bisection> {
        let tree = self.topology();
        let top = tree.levels().len() - 1;
        let Some(Cut { links, mut classes }) = tree.halving(top) else {
            return Some(Bisection { links: 0, cut: "all endpoints share one switch".to_owned() });
        };
        classes.dedup();
        let classes: Vec<&str> = classes.into_iter().map(|class| CLASSES[class]).collect();
        let unequal = if tree.leaves(top).is_multiple_of(2) { "" } else { " that differ by one leaf" };
        Some(Bisection { links, cut: format!("links of {}, into halves{unequal}", classes.join(" and ")) })
    }

    fn uniform_load(&self) -> Option<ChannelLoad> {
        let tree = self.topology();
        let all = tree.endpoints();
        if all == 1 {
            return Some(ChannelLoad {
                per_class: vec![0.0; tree.levels().len()],
                paths: Paths::Deterministic,
            });
        }
        let others = f64::from(all - 1);
        let (loads, paths): (Vec<f64>, Paths) = match self.routing() {
            TreeRouting::Ecmp { .. } => return None,
            TreeRouting::DModK => {
                let load = |level| tree.busiest_by_destination(level) as f64 / others;
                (tree.levels_below_top().iter().map(load).collect(), Paths::Deterministic)
            }
            // What leaves or enters a subtree spreads evenly over its links out.
            TreeRouting::UpDown
            | TreeRouting::Adaptive
            | TreeRouting::RoundRobin
            | TreeRouting::Multipath { .. } => {
                let load = |level: &Level| {
                    let packets = f64::from(level.endpoints) * f64::from(all - level.endpoints);
                    packets / others / f64::from(level.links_out())
                };
                (tree.levels_below_top().iter().map(load).collect(), Paths::Random)
            }
        };
        Some(ChannelLoad { per_class: [vec![1.0], loads].concat(), paths })
    }

    /// Random numbers spread what leaves or enters a subtree evenly over its links out; so do queues, turns
    /// and blocks in the long run.
    fn permutation_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        if let TreeRouting::DModK | TreeRouting::Ecmp { .. } = self.routing() {
            return None;
        }
        let tree = self.topology();
        let flows: Vec<(u32, u32)> = (0..tree.endpoints())
            .map(|source| (source, permutation.destination(EndpointId(source)).0))
            .filter(|(source, destination)| source != destination)
            .collect();
        let load = |level: &Level| {
            let subtrees = (tree.endpoints() / level.endpoints) as usize;
            let (mut leaving, mut entering) = (vec![0u32; subtrees], vec![0u32; subtrees]);
            for (from, to) in flows.iter().map(|(from, to)| (from / level.endpoints, to / level.endpoints)) {
                if from != to {
                    leaving[from as usize] += 1;
                    entering[to as usize] += 1;
                }
            }
            let most = leaving.into_iter().chain(entering).max().unwrap_or(0);
            f64::from(most) / f64::from(level.links_out())
        };
        let endpoint = if flows.is_empty() { 0.0 } else { 1.0 };
        let loads = tree.levels_below_top().iter().map(load);
        Some(ChannelLoad {
            per_class: std::iter::once(endpoint).chain(loads).collect(),
            paths: Paths::Random,
        })
    }
}
