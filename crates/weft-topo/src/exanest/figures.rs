//! Figures of the ExaNeSt machine. The link between F1 and its router, inside the FPGA, is a link like any
//! other here: packets wait for it and cross it. Only [`ExanestPath`](crate::ExanestPath) counts without it,
//! as TR-488 does.

use super::{ExanestOrder, MPSOCS};
use crate::figures::{Bisection, ChannelLoad, ClosedForms, Paths, mean_over_pairs, ordered_pairs};
use crate::traits::{RoutedTopology, Topology};

impl ClosedForms for ExanestOrder {
    fn diameter(&self) -> Option<u32> {
        Some({
            // To F1 and its router, and the same back.
            self.topology().subsystems().iter().map(|qfdbs| 4 + qfdbs.diameter()).max().unwrap_or(0)
        })
    }

    fn mean_distance(&self) -> Option<f64> {
        let mpsocs = u128::from(MPSOCS);
        let (mut sum, mut pairs) = (0, 0);
        for qfdbs in self.topology().subsystems() {
            let inside = u128::from(qfdbs.switches()) * ordered_pairs(MPSOCS);
            // To the router and from it; and three of four sources and of four destinations are not F1.
            let beside_f1 = ordered_pairs(qfdbs.switches()) * 2 * mpsocs * (mpsocs - 1);
            let to_routers = ordered_pairs(qfdbs.switches()) * 2 * mpsocs * mpsocs;
            sum += inside + beside_f1 + to_routers + qfdbs.distances() * mpsocs * mpsocs;
            pairs += ordered_pairs(qfdbs.endpoints());
        }
        Some(mean_over_pairs(sum, pairs))
    }

    fn bisection(&self) -> Option<Bisection> {
        let subsystems = self.topology().subsystems();
        let qfdbs = &subsystems[0];
        let Bisection { links, cut } = qfdbs.bisection();
        Some(match subsystems.len() {
            1 => Bisection { links, cut },
            _ => Bisection { links, cut: format!("{cut} of the larger sub-system") },
        })
    }

    fn uniform_load(&self) -> Option<ChannelLoad> {
        let mut per_class = vec![0.0; self.topology().link_classes().len()];
        for qfdbs in self.topology().subsystems() {
            let endpoints = f64::from(qfdbs.endpoints());
            // The link between F1 and another MPSoC carries what that one sends to, or gets from, all but
            // the two others.
            let qfdb = (endpoints - 3.0) / (endpoints - 1.0);
            // The link between F1 and the router carries what the four send to other QFDBs.
            let mpsocs = f64::from(MPSOCS);
            let router = mpsocs * (endpoints - mpsocs) / (endpoints - 1.0);
            let mut loads = qfdbs.uniform_load();
            loads.splice(1..1, [qfdb, router]);
            for (busiest, load) in per_class.iter_mut().zip(loads) {
                *busiest = load.max(*busiest);
            }
        }
        Some(ChannelLoad { per_class, paths: Paths::Deterministic })
    }
}
