//! The keys of a star in machine files.

use super::{Star, StarRouting};
use crate::family::{Counts, Family};
use crate::size::SizeError;
use crate::{parameters, routings};

routings! {
    /// Routings of a star.
    pub enum StarRoutingWord {
        /// Out by the port of the destination.
        Minimal = "minimal",
    }
}

parameters! {
    /// A star.
    pub struct StarParameters routed by StarRoutingWord {
        /// Endpoints.
        endpoints: u32;
    }
}

impl Family for StarParameters {
    const NAME: &'static str = "star";
    const TITLE: &'static str = "Star";
    type Layout = StarRouting;

    fn counts(&self) -> Counts {
        let endpoints = u128::from(self.endpoints);
        Counts { endpoints, switches: 1, ports: endpoints, virtual_channels: 1 }
    }

    fn build(&self) -> Result<StarRouting, SizeError> {
        Ok(StarRouting::new(Star::new(u64::from(self.endpoints))?))
    }

    fn examples() -> Vec<StarParameters> {
        [1, 2, 9, 20]
            .map(|endpoints| StarParameters { endpoints, routing: StarRoutingWord::Minimal })
            .to_vec()
    }
}
