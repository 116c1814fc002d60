//! The keys of a torus or a mesh in machine files.

use super::{Dimension, DimensionOrder, MAX_DIMENSIONS, Torus};
use crate::drawing::Places;
use crate::family::{Counts, Family};
use crate::size::{SizeError, product};
use crate::{parameters, routings};
use weft_keys::Misfit;

routings! {
    /// Routings of a torus or a mesh.
    pub enum TorusRouting {
        /// One dimension after the other, the shorter way round each ring.
        DimensionOrder = "dimension-order" {
            /// Two virtual channels against deadlock in rings; true where not given.
            datelines: bool = true;
        },
    }
}

parameters! {
    /// A torus.
    pub struct TorusParameters routed by TorusRouting {
        /// Switches along each dimension.
        dims: Vec<u32>;
        /// Endpoints at every switch; 1 where not given.
        endpoints_per_switch: u32 = 1;
    }
}

parameters! {
    /// A mesh: a torus without the links that close its rings.
    pub struct MeshParameters routed by TorusRouting {
        /// Switches along each dimension.
        dims: Vec<u32>;
        /// Endpoints at every switch; 1 where not given.
        endpoints_per_switch: u32 = 1;
    }
}

fn check(dims: &[u32]) -> Result<(), Misfit> {
    if (1..=MAX_DIMENSIONS).contains(&dims.len()) {
        return Ok(());
    }
    Err(Misfit {
        key: "dims",
        title: format!("a torus or mesh has 1 to {MAX_DIMENSIONS} dimensions"),
        label: format!("these are {}", dims.len()),
        help: "write dims = [4, 4, 2]".to_owned(),
    })
}

fn counts(dims: &[u32], endpoints_per_switch: u32, routing: &TorusRouting) -> Counts {
    let TorusRouting::DimensionOrder { datelines } = routing;
    let switches = product(dims.iter().map(|&size| u64::from(size)));
    let ports_per_switch = 2 * dims.len() as u128 + u128::from(endpoints_per_switch);
    Counts {
        endpoints: switches.saturating_mul(u128::from(endpoints_per_switch)),
        switches,
        ports: switches.saturating_mul(ports_per_switch),
        virtual_channels: 1 + u32::from(*datelines),
    }
}

fn build(
    dims: &[u32],
    wrap: bool,
    endpoints_per_switch: u32,
    routing: &TorusRouting,
) -> Result<DimensionOrder, SizeError> {
    let TorusRouting::DimensionOrder { datelines } = routing;
    let dimensions: Vec<_> = dims.iter().map(|&size| Dimension { size: u64::from(size), wrap }).collect();
    Ok(DimensionOrder::new(Torus::new(&dimensions, u64::from(endpoints_per_switch))?, *datelines))
}

/// Sizes of small grids, odd and even, flat and long, with one and with more endpoints per switch.
fn examples() -> impl Iterator<Item = (Vec<u32>, u32, TorusRouting)> {
    let dims: [&[u32]; 16] = [
        &[1],
        &[2],
        &[3],
        &[4],
        &[7],
        &[16],
        &[2, 2],
        &[4, 3],
        &[4, 4],
        &[5, 6],
        &[16, 2],
        &[2, 1, 3],
        &[4, 2, 4],
        &[3, 3, 3, 2],
        &[2, 2, 2, 2, 2],
        &[2, 1, 1, 1, 1, 1, 1, 2],
    ];
    dims.into_iter().zip([1, 2, 3].into_iter().cycle()).flat_map(|(dims, endpoints_per_switch)| {
        [true, false].map(|datelines| {
            (dims.to_vec(), endpoints_per_switch, TorusRouting::DimensionOrder { datelines })
        })
    })
}

impl Family for TorusParameters {
    const NAME: &'static str = "torus";
    const TITLE: &'static str = "Torus";
    type Layout = DimensionOrder;

    fn check(&self) -> Result<(), Misfit> {
        check(&self.dims)
    }

    fn counts(&self) -> Counts {
        counts(&self.dims, self.endpoints_per_switch, &self.routing)
    }

    fn build(&self) -> Result<DimensionOrder, SizeError> {
        build(&self.dims, true, self.endpoints_per_switch, &self.routing)
    }

    fn places(&self, _: &Self::Layout) -> Places {
        Places::grid(&self.dims, true)
    }

    fn examples() -> Vec<TorusParameters> {
        examples()
            .map(|(dims, endpoints_per_switch, routing)| TorusParameters {
                dims,
                endpoints_per_switch,
                routing,
            })
            .collect()
    }
}

impl Family for MeshParameters {
    const NAME: &'static str = "mesh";
    const TITLE: &'static str = "Mesh";
    type Layout = DimensionOrder;

    fn check(&self) -> Result<(), Misfit> {
        check(&self.dims)
    }

    fn counts(&self) -> Counts {
        counts(&self.dims, self.endpoints_per_switch, &self.routing)
    }

    fn build(&self) -> Result<DimensionOrder, SizeError> {
        build(&self.dims, false, self.endpoints_per_switch, &self.routing)
    }

    fn places(&self, _: &Self::Layout) -> Places {
        Places::grid(&self.dims, false)
    }

    fn examples() -> Vec<MeshParameters> {
        examples()
            .map(|(dims, endpoints_per_switch, routing)| MeshParameters {
                dims,
                endpoints_per_switch,
                routing,
            })
            .collect()
    }
}
