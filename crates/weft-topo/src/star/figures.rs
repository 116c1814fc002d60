//! Figures of the star.

use super::StarRouting;
use crate::figures::{Bisection, ChannelLoad, ClosedForms, Paths};
use crate::traits::{RoutedTopology, Topology};

impl ClosedForms for StarRouting {
    fn diameter(&self) -> Option<u32> {
        Some(0)
    }

    fn mean_distance(&self) -> Option<f64> {
        Some(0.0)
    }

    fn bisection(&self) -> Option<Bisection> {
        Some(Bisection { links: 0, cut: "all endpoints share one switch".to_owned() })
    }

    fn uniform_load(&self) -> Option<ChannelLoad> {
        let endpoint = if self.topology().endpoints() > 1 { 1.0 } else { 0.0 };
        Some(ChannelLoad { per_class: vec![endpoint], paths: Paths::Deterministic })
    }
}
