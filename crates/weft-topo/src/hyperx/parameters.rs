//! The keys of a HyperX, a hypercube and a fully connected network in machine files.

use super::{HyperX, HyperXLayout, HyperXRouting, MAX_HYPERX_DIMENSIONS, ports_per_switch};
use crate::drawing::Places;
use crate::family::{Counts, Family};
use crate::parameters;
use crate::size::{SizeError, product};
use weft_keys::Misfit;
use weft_units::Bytes;

parameters! {
    /// A HyperX.
    pub struct HyperXParameters routed by HyperXRouting {
        /// Switches along each dimension.
        dims: Vec<u32>;
        /// Endpoints at every switch; 1 where not given.
        endpoints_per_switch: u32 = 1;
    }
}

parameters! {
    /// A hypercube.
    pub struct HypercubeParameters routed by HyperXRouting {
        /// Dimensions: 2^dimensions switches.
        dimensions: u32;
        /// Endpoints at every switch; 1 where not given.
        endpoints_per_switch: u32 = 1;
    }
}

parameters! {
    /// A network in which every switch is joined to every other.
    pub struct FullyConnectedParameters routed by HyperXRouting {
        /// Switches.
        switches: u32;
        /// Endpoints at every switch; 1 where not given.
        endpoints_per_switch: u32 = 1;
    }
}

fn counts(sizes: &[u32], endpoints_per_switch: u32, routing: HyperXRouting) -> Counts {
    let switches = product(sizes.iter().map(|&size| u64::from(size)));
    Counts {
        endpoints: switches.saturating_mul(u128::from(endpoints_per_switch)),
        switches,
        ports: switches.saturating_mul(ports_per_switch(sizes, endpoints_per_switch)),
        virtual_channels: routing.virtual_channels(),
    }
}

fn build(
    sizes: &[u32],
    endpoints_per_switch: u32,
    routing: HyperXRouting,
) -> Result<HyperXLayout, SizeError> {
    Ok(HyperXLayout::new(HyperX::new(sizes, endpoints_per_switch)?, routing))
}

fn routings() -> [HyperXRouting; 3] {
    let ugal_threshold = Bytes::ZERO;
    [
        HyperXRouting::DimensionOrder,
        HyperXRouting::UgalL { ugal_threshold },
        HyperXRouting::UgalG { ugal_threshold },
    ]
}

impl Family for HyperXParameters {
    const NAME: &'static str = "hyperx";
    const TITLE: &'static str = "HyperX";
    type Layout = HyperXLayout;

    fn check(&self) -> Result<(), Misfit> {
        if (1..=MAX_HYPERX_DIMENSIONS).contains(&self.dims.len()) {
            return Ok(());
        }
        Err(Misfit {
            key: "dims",
            title: format!("a HyperX has 1 to {MAX_HYPERX_DIMENSIONS} dimensions"),
            label: format!("these are {}", self.dims.len()),
            help: "write dims = [8, 8]".to_owned(),
        })
    }

    fn counts(&self) -> Counts {
        counts(&self.dims, self.endpoints_per_switch, self.routing)
    }

    fn build(&self) -> Result<HyperXLayout, SizeError> {
        build(&self.dims, self.endpoints_per_switch, self.routing)
    }

    fn places(&self, _: &Self::Layout) -> Places {
        Places::grid(&self.dims, false)
    }

    fn examples() -> Vec<HyperXParameters> {
        let dims: [&[u32]; 10] =
            [&[1], &[2], &[5], &[3, 3], &[4, 2], &[1, 4], &[3, 1, 2], &[4, 4], &[3, 2, 3], &[2, 3, 2, 2]];
        let sizes = dims.into_iter().zip([1, 2, 3].into_iter().cycle());
        let example = |(dims, endpoints_per_switch): (&[u32], u32)| {
            let dims = dims.to_vec();
            routings().map(|routing| HyperXParameters { dims: dims.clone(), endpoints_per_switch, routing })
        };
        sizes.flat_map(example).collect()
    }
}

impl HypercubeParameters {
    fn sizes(&self) -> Vec<u32> {
        // No list of thousands of dimensions: a machine with too many is refused by their number.
        vec![2; self.dimensions.min(1 + MAX_HYPERX_DIMENSIONS as u32) as usize]
    }
}

impl Family for HypercubeParameters {
    const NAME: &'static str = "hypercube";
    const TITLE: &'static str = "Hypercube";
    type Layout = HyperXLayout;

    fn check(&self) -> Result<(), Misfit> {
        if self.dimensions as usize <= MAX_HYPERX_DIMENSIONS {
            return Ok(());
        }
        Err(Misfit {
            key: "dimensions",
            title: format!("a hypercube has 1 to {MAX_HYPERX_DIMENSIONS} dimensions"),
            label: format!("2^{} switches", self.dimensions),
            help: format!("write dimensions = {MAX_HYPERX_DIMENSIONS} or less"),
        })
    }

    fn counts(&self) -> Counts {
        counts(&self.sizes(), self.endpoints_per_switch, self.routing)
    }

    fn build(&self) -> Result<HyperXLayout, SizeError> {
        build(&self.sizes(), self.endpoints_per_switch, self.routing)
    }

    fn places(&self, _: &Self::Layout) -> Places {
        Places::grid(&self.sizes(), false)
    }

    fn examples() -> Vec<HypercubeParameters> {
        let example = |(dimensions, endpoints_per_switch)| {
            routings().map(|routing| HypercubeParameters { dimensions, endpoints_per_switch, routing })
        };
        [(1, 1), (2, 3), (3, 1), (4, 2), (5, 1)].into_iter().flat_map(example).collect()
    }
}

impl Family for FullyConnectedParameters {
    const NAME: &'static str = "fully-connected";
    const TITLE: &'static str = "Fully connected network";
    type Layout = HyperXLayout;

    fn counts(&self) -> Counts {
        counts(&[self.switches], self.endpoints_per_switch, self.routing)
    }

    fn build(&self) -> Result<HyperXLayout, SizeError> {
        build(&[self.switches], self.endpoints_per_switch, self.routing)
    }

    fn places(&self, _: &Self::Layout) -> Places {
        Places::numbered_on_circle(self.switches)
    }

    fn examples() -> Vec<FullyConnectedParameters> {
        let example = |(switches, endpoints_per_switch)| {
            routings().map(|routing| FullyConnectedParameters { switches, endpoints_per_switch, routing })
        };
        [(1, 2), (2, 1), (3, 2), (7, 1), (16, 1)].into_iter().flat_map(example).collect()
    }
}
