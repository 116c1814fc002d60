//! Networks with the hosts of `weft-workload`, each kind compiled here and nowhere else.

use crate::{NetworkError, NetworkSetup, SimulatedNetwork};
use weft_units::EndpointId;
use weft_workload::host::{NoRanks, SharedHost, SharedParameters};
use weft_workload::replay::{ReplayHost, ReplayParameters};
use weft_workload::traffic::{TrafficParameters, TrafficSource};

type MakeHost<'m, H> = &'m mut dyn FnMut(EndpointId) -> H;

impl NetworkSetup<'_> {
    /// Builds the network with a source of synthetic traffic at every endpoint.
    ///
    /// # Errors
    /// As [`NetworkSetup::build`].
    pub fn with_traffic(
        self,
        parameters: TrafficParameters,
        make_host: MakeHost<'_, TrafficSource>,
    ) -> Result<Box<dyn SimulatedNetwork<TrafficSource>>, NetworkError> {
        self.build(parameters, make_host)
    }

    /// Builds the network with the ranks of programs at its endpoints, and what is beside them.
    ///
    /// # Errors
    /// As [`NetworkSetup::build`].
    pub fn with_ranks(
        self,
        parameters: SharedParameters<ReplayParameters>,
        make_host: MakeHost<'_, SharedHost<ReplayHost>>,
    ) -> Result<Box<dyn SimulatedNetwork<SharedHost<ReplayHost>>>, NetworkError> {
        self.build(parameters, make_host)
    }

    /// Builds the network with programs at its endpoints that need no ranks beside them.
    ///
    /// # Errors
    /// As [`NetworkSetup::build`].
    pub fn without_ranks(
        self,
        parameters: SharedParameters<()>,
        make_host: MakeHost<'_, SharedHost<NoRanks>>,
    ) -> Result<Box<dyn SimulatedNetwork<SharedHost<NoRanks>>>, NetworkError> {
        self.build(parameters, make_host)
    }
}
