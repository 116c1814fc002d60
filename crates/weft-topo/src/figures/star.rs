//! Figures of the star.

use super::{Bisection, ChannelLoad, ClosedForms, Paths};
use crate::star::StarRouting;
use crate::traits::Topology;

impl ClosedForms for StarRouting {
    fn diameter(&self) -> u32 {
        0
    }

    fn mean_distance(&self) -> f64 {
        0.0
    }

    fn bisection(&self) -> Bisection {
        Bisection { links: 0, cut: "all endpoints share one switch".to_owned() }
    }

    fn uniform_load(&self) -> ChannelLoad {
        let endpoint = if self.topology().endpoints() > 1 { 1.0 } else { 0.0 };
        ChannelLoad { per_class: vec![endpoint], paths: Paths::Deterministic }
    }
}
