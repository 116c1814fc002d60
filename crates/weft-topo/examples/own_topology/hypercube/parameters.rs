//! The keys of a hypercube in machine files.

use super::{ECube, Hypercube};
use weft_topo::{Counts, Family, SizeError};

// ANCHOR: parameters
weft_topo::routings! {
    /// Routings of a hypercube.
    pub enum HypercubeRouting {
        /// The bits in which switches differ, the lowest first.
        ECube = "e-cube",
    }
}

weft_topo::parameters! {
    /// A hypercube.
    pub struct HypercubeParameters routed by HypercubeRouting {
        /// Bits of a switch's number: 2^bits switches, each with an endpoint.
        bits: u32;
    }
}

impl Family for HypercubeParameters {
    const NAME: &'static str = "binary-cube";
    const TITLE: &'static str = "Hypercube";
    type Layout = ECube;

    fn counts(&self) -> Counts {
        let switches = 1u128.checked_shl(self.bits).unwrap_or(u128::MAX);
        let ports = switches.saturating_mul(1 + u128::from(self.bits));
        Counts { endpoints: switches, switches, ports, virtual_channels: 1 }
    }

    fn build(&self) -> Result<ECube, SizeError> {
        self.counts().check()?;
        Ok(ECube::new(Hypercube::new(self.bits)))
    }

    fn examples() -> Vec<HypercubeParameters> {
        let routing = HypercubeRouting::ECube;
        [1, 2, 3, 5].map(|bits| HypercubeParameters { bits, routing: routing.clone() }).to_vec()
    }
}
// ANCHOR_END: parameters
