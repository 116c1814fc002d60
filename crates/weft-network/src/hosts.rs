//! Networks with the hosts of `weft-workload`, each kind compiled here and nowhere else.

use crate::{NetworkError, NetworkSetup, SimulatedNetwork};
use weft_units::EndpointId;
use weft_workload::replay::{ReplayHost, ReplayParameters};
use weft_workload::scenario::{ScenarioHost, ScenarioParameters};
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

    /// Builds the network with the ranks of programs at its endpoints.
    ///
    /// # Errors
    /// As [`NetworkSetup::build`].
    pub fn with_ranks(
        self,
        parameters: ReplayParameters,
        make_host: MakeHost<'_, ReplayHost>,
    ) -> Result<Box<dyn SimulatedNetwork<ReplayHost>>, NetworkError> {
        self.build(parameters, make_host)
    }

    /// Builds the network with the flows of a scenario at its endpoints.
    ///
    /// # Errors
    /// As [`NetworkSetup::build`].
    pub fn with_scenario(
        self,
        parameters: ScenarioParameters,
        make_host: MakeHost<'_, ScenarioHost>,
    ) -> Result<Box<dyn SimulatedNetwork<ScenarioHost>>, NetworkError> {
        self.build(parameters, make_host)
    }
}
