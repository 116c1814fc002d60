//! Figures of the ExaNeSt machine.

use super::{Bisection, ChannelLoad, ClosedForms, Paths, mean_over_pairs, ordered_pairs};
use crate::exanest::MPSOCS;
use crate::exanest_order::ExanestOrder;
use crate::traits::Topology;

impl ClosedForms for ExanestOrder {
    fn diameter(&self) -> u32 {
        let longest = self.topology().subsystems().into_iter().map(|qfdbs| match qfdbs.switches() {
            1 => 1,
            _ => 2 + qfdbs.diameter(), // to F1 and from F1
        });
        longest.max().unwrap_or(0)
    }

    fn mean_distance(&self) -> f64 {
        let mpsocs = u128::from(MPSOCS);
        let (mut sum, mut pairs) = (0, 0);
        for qfdbs in self.topology().subsystems() {
            let inside = u128::from(qfdbs.switches()) * ordered_pairs(MPSOCS);
            // Three of four sources and of four destinations are not F1.
            let beside_f1 = ordered_pairs(qfdbs.switches()) * 2 * mpsocs * (mpsocs - 1);
            sum += inside + beside_f1 + qfdbs.distances() * mpsocs * mpsocs;
            pairs += ordered_pairs(qfdbs.endpoints());
        }
        mean_over_pairs(sum, pairs)
    }

    fn bisection(&self) -> Bisection {
        let subsystems = self.topology().subsystems();
        let qfdbs = &subsystems[0];
        let Bisection { links, cut } = qfdbs.bisection();
        match (qfdbs.switches(), subsystems.len()) {
            (1, _) => Bisection { links: 4, cut: "two and two MPSoCs of the QFDB".to_owned() },
            (_, 1) => Bisection { links, cut },
            _ => Bisection { links, cut: format!("{cut} of the larger sub-system") },
        }
    }

    fn uniform_load(&self) -> ChannelLoad {
        let mut per_class = vec![0.0; self.topology().link_classes().len()];
        for qfdbs in self.topology().subsystems() {
            let endpoints = f64::from(qfdbs.endpoints());
            // The link between F1 and another MPSoC carries what that one sends to, or gets from, all but
            // the two others.
            let qfdb = (endpoints - 3.0) / (endpoints - 1.0);
            let mut loads = qfdbs.uniform_load();
            loads.insert(1, qfdb);
            for (busiest, load) in per_class.iter_mut().zip(loads) {
                *busiest = load.max(*busiest);
            }
        }
        ChannelLoad { per_class, paths: Paths::Deterministic }
    }
}
