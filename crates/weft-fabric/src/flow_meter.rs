//! Counts of each flow at its destination, made only where telemetry of flows asks for them.
//!
//! ```text
//!   packet ──► endpoint ──► interface
//!                 └► meter: packets and payload by source and traffic class since it was asked for
//! ```
//! A flow is (source endpoint, destination endpoint, traffic class), as it is for congestion control. All
//! packets count that come, copies and corrupted ones among them; headers that full buffers have left over do
//! not, nor do acknowledgements and notices.

use crate::endpoint::Endpoint;
use crate::interface::Interface;
use crate::network::{Network, Site};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_engine::Simulation;
use weft_topo::{Routing, Topology};
use weft_units::{Bytes, EndpointId};

/// A flow of a network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct FlowId {
    /// The endpoint that sends it.
    pub source: EndpointId,
    /// The endpoint that it is for.
    pub destination: EndpointId,
    /// The traffic class, by its place in the list of classes.
    pub class: u8,
}

/// Packets of a flow that have come to its destination.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct FlowCount {
    /// Packets.
    pub packets: u64,
    /// Their payload.
    pub payload: Bytes,
}

/// The counts of an endpoint, by source and traffic class.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct FlowMeter {
    came: BTreeMap<(EndpointId, u8), FlowCount>,
}

impl FlowMeter {
    /// A packet of a traffic class has come, of `payload` bytes.
    pub(crate) fn count(&mut self, source: EndpointId, class: u8, payload: u32) {
        let count = self.came.entry((source, class)).or_default();
        count.packets += 1;
        count.payload += Bytes::new(payload.into());
    }
}

impl<N: Interface> Site<N> {
    /// Lets its endpoints count by flow from now on.
    fn meter_flows(&mut self) {
        for endpoint in &mut self.endpoints {
            endpoint.meter.get_or_insert_default();
            endpoint.set_receive_hook();
        }
    }

    /// The counts of its endpoints, by endpoint, source and class.
    fn flows(&self) -> impl Iterator<Item = (FlowId, FlowCount)> {
        let metered =
            self.endpoints.iter().filter_map(|Endpoint { id, meter, .. }| Some((*id, meter.as_ref()?)));
        metered.flat_map(|(destination, meter)| {
            let came = meter.came.iter();
            came.map(move |(&(source, class), &count)| (FlowId { source, destination, class }, count))
        })
    }
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// Lets endpoints count what comes by flow, from now on.
    pub fn meter_flows(simulation: &mut Simulation<Network<T, N>>) {
        simulation.sites_mut().for_each(|(_, site)| site.meter_flows());
    }

    /// The counts of each flow since [`Network::meter_flows`], in an order that does not depend on threads.
    pub fn flows(simulation: &Simulation<Network<T, N>>) -> impl Iterator<Item = (FlowId, FlowCount)> {
        simulation.sites().flat_map(|(_, site)| site.flows())
    }
}
