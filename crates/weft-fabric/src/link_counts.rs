//! Packets that links have carried, and their fates, without the times that a whole
//! [`LinkReport`](crate::LinkReport) has to work out: sums over all links are asked for several times in a
//! run.

use crate::endpoint::Endpoint;
use crate::fault::Fault;
use crate::interface::Interface;
use crate::link::CarriedCounts;
use crate::link_layer::LayerState;
use crate::network::{Network, Site};
use crate::switch::Peer;
use weft_engine::Simulation;
use weft_topo::{Routing, Topology};
use weft_units::{PacketCounts, Time};

weft_units::counters! {
    /// Packets of links since the counters were last reset.
    pub struct LinkCounts {
        /// Packets, lost ones included.
        pub packets: u64,
        /// Packets that came to an endpoint.
        pub delivered: u64,
        /// Packets of these to which links did something, or that found no space behind them.
        pub counts: PacketCounts,
    }
}

impl LinkCounts {
    /// Adds one direction of a link, with its fault and its layer. Most have nothing but packets.
    #[inline]
    pub(crate) fn add(
        &mut self,
        carried: CarriedCounts,
        (fault, layer): (Option<&Fault>, Option<&LayerState>),
        until: Time,
    ) {
        self.packets += carried.packets;
        if let Some(fault) = fault {
            self.counts += fault.counts(until);
        }
        if let Some(counts) = layer.and_then(LayerState::counts) {
            self.counts += *counts;
        }
    }
}

impl<T: Topology + Routing + Sync, N: Interface> Network<T, N> {
    /// The sum over both directions of all links, as it was at `until`, after which no packet was on a line.
    pub fn link_counts(simulation: &Simulation<Network<T, N>>, until: Time) -> LinkCounts {
        let network = simulation.model();
        let mut sum = LinkCounts::default();
        for (_, site) in simulation.sites() {
            sum += network.counts_of(site, until);
        }
        sum
    }

    /// Whether the machine says what power its links take, so that their reports have some.
    pub fn links_have_power(&self) -> bool {
        let mut layers = self.constants.links.iter().filter_map(|kind| kind.layer.as_deref());
        layers.any(|kind| kind.layer.power.is_some())
    }

    /// The links that begin at a site, and the buffers at the ends of those that lead to it.
    fn counts_of(&self, site: &Site<N>, until: Time) -> LinkCounts {
        let mut sum = LinkCounts::default();
        for endpoint in &site.endpoints {
            endpoint.add_counts(&mut sum, until);
        }
        let switch = site.switch.state();
        for output in 0..switch.links() {
            let peer = switch.ports[output].peer;
            if peer == Peer::Nothing {
                continue;
            }
            let LinkCounts { packets, counts, .. } = sum;
            switch.add_counts(output, &mut sum, until);
            if let Peer::Endpoint(_) = peer {
                sum.delivered += sum.packets - packets - (sum.counts.lost() - counts.lost());
            }
            if let Some(occupancy) = &switch.occupancy {
                sum.counts += occupancy.filled(self.constants.channels.of_port(output)).counts();
            }
        }
        sum
    }
}

impl<N: Interface> Endpoint<N> {
    /// The counts of its link, and of its interface.
    pub(crate) fn counts(&self, until: Time) -> LinkCounts {
        let mut link = LinkCounts::default();
        self.add_counts(&mut link, until);
        link
    }

    #[inline]
    fn add_counts(&self, sum: &mut LinkCounts, until: Time) {
        sum.add(self.carried, (self.fault.as_deref(), self.layer.as_deref()), until);
        sum.counts.resent += self.flow_table.as_ref().map_or(0, |flow_table| flow_table.resent);
        if let Some(ledger) = self.interface.counts() {
            sum.counts += ledger.counts;
        }
    }
}
