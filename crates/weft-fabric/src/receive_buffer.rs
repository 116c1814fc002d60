//! Receiving buffers of endpoints: space that an interface gives back when it has taken what lay there.
//!
//! ```text
//!   switch: credits ──packet──► receiving buffer ──► interface keeps the space ── free ──► credit returns,
//!              ▲                                                                           a latency later
//!              └────────────────────────────────────────────────────────────────────────────────┘
//! ```
//! Without one, an endpoint consumes whatever arrives. With one, a packet waits in the switch while the
//! buffer is full, and others wait behind it. Packets of all virtual channels of the routing share the buffer
//! of their traffic class and lane: the switch counts its credits on the first of these channels.
//!
//! # Not modelled
//! Words on the line for these credits. Notices of congestion control take no space, so that networks with
//! it have no receiving buffers.

use crate::channel::Channel;
use crate::conservation::NotConserved;
use crate::constants::Constants;
use crate::credit::{Credit, Credits};
use crate::event::{Entity, Wire};
use crate::interface::Interface;
use crate::network::{Network, Site};
use crate::packet::Packet;
use crate::switch::Peer;
use serde::{Deserialize, Serialize};
use weft_engine::{Simulation, SiteId};
use weft_topo::{Routing, Topology};
use weft_units::{Bytes, SwitchId, Time};

/// Space that a packet takes in the receiving buffer of its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReceiveSpace {
    /// The virtual channel on which the switch counts it.
    vc: u8,
    units: u32,
    /// Bytes of a unit of credit.
    unit: u32,
}

impl ReceiveSpace {
    /// The space of a packet that has come.
    pub(crate) fn of(packet: &Packet, constants: &Constants) -> ReceiveSpace {
        let unit = constants.switch.credit.bytes(1).get() as u32;
        ReceiveSpace { vc: packet.channel().vc, units: constants.space(packet), unit }
    }

    /// Units of credit.
    pub(crate) fn units(self) -> u32 {
        self.units
    }

    /// Bytes of it.
    pub fn bytes(self) -> Bytes {
        Bytes::new(u64::from(self.units) * u64::from(self.unit))
    }

    /// Cuts off `bytes` of it, in whole units of credit, or all of it: that part, and the rest.
    pub fn split(self, bytes: Bytes) -> [Option<ReceiveSpace>; 2] {
        let units = bytes.get() / u64::from(self.unit);
        let units = u32::try_from(units).unwrap_or(u32::MAX).min(self.units);
        [units, self.units - units].map(|units| (units > 0).then_some(ReceiveSpace { units, ..self }))
    }
}

/// Space that an interface gives back.
#[derive(Clone, Copy)]
pub(crate) struct Freed {
    pub(crate) space: ReceiveSpace,
    pub(crate) at: Time,
}

impl<T: Topology + Routing, N: Interface> Network<T, N> {
    /// Gives each endpoint a receiving buffer, before the run begins: `bytes` of header, payload and footer
    /// of packets, which must hold the largest. Does nothing where senders count no credits.
    pub fn limit_receivers(&mut self, sites: &mut [Site<N>], bytes: Bytes) {
        if !self.constants.has_credits {
            return;
        }
        let units = self.constants.switch.credit.held_by(bytes);
        debug_assert!(units >= self.constants.largest_space, "no packet would ever arrive");
        self.constants.receive_buffer = Some(units);
        let Constants { channels, plan, vcs, .. } = &self.constants;
        for site in sites {
            let state = site.switch.state_mut();
            let (ports, credits) = (&state.ports, &mut state.credits);
            let of_endpoints = ports.iter().enumerate().filter(|(_, port)| is_endpoint(port.peer));
            for (port, _) in of_endpoints {
                for vc in (0..*vcs).filter(|vc| plan.of_routing(*vc) == 0) {
                    credits[channels.at(port, vc as u8)] = Credits::new(units);
                }
            }
        }
    }

    /// Returns the credits for space that the interface of an endpoint has given back.
    pub(crate) fn give_back_freed(&self, site: &mut Site<N>, index: u32, freed: impl Iterator<Item = Freed>) {
        let (endpoint, port) = (&mut site.endpoints[index as usize], site.endpoint_ports[index as usize]);
        let state = site.switch.state_mut();
        let latency = self.constants.link(state.ports[usize::from(port)].class).latency;
        for Freed { space: ReceiveSpace { vc, units, .. }, at } in freed {
            endpoint.held_space -= units;
            let credit = Credit { channel: Channel { port, vc }, amount: units };
            state.expect_credit(at + latency, credit, &self.constants);
        }
    }
}

pub(crate) fn is_endpoint(peer: Peer) -> bool {
    matches!(peer, Peer::Endpoint(_))
}

/// Checks that the credits for the receiving buffer of each endpoint, those on their way back, the packets on
/// the link and the space that the interface keeps add up to the buffer.
///
/// # Errors
/// The first endpoint where they do not.
pub(crate) fn check_receivers<T, N>(simulation: &Simulation<Network<T, N>>) -> Result<(), NotConserved>
where
    T: Topology + Routing + Sync,
    N: Interface,
{
    let Network { constants, .. } = simulation.model();
    let Some(units) = constants.receive_buffer else { return Ok(()) };
    let counted: Vec<u8> =
        (0..constants.vcs as u8).filter(|vc| constants.plan.of_routing((*vc).into()) == 0).collect();
    let mut on_links = std::collections::BTreeMap::<(SiteId, u32), u64>::new();
    for event in simulation.pending() {
        if let (Wire::Packet(packet), Entity::Endpoint(index)) = (event.payload, Entity::of(event.order)) {
            *on_links.entry((event.site, index)).or_default() += u64::from(constants.space(&packet));
        }
    }
    for (id, site) in simulation.sites() {
        let state = site.switch.state();
        for (index, (endpoint, port)) in (0..).zip(site.endpoints_with_ports()) {
            let credits =
                counted.iter().map(|vc| state.credits[constants.channels.at(port.into(), *vc)].units());
            let returning = state.returning.of(port.into()).map(|(_, credit)| u64::from(credit.amount));
            let accounted = credits.map(u64::from).sum::<u64>()
                + returning.sum::<u64>()
                + on_links.get(&(id, index)).copied().unwrap_or(0)
                + u64::from(endpoint.held_space);
            let capacity = u64::from(units) * counted.len() as u64;
            if accounted != capacity {
                let buffer =
                    format!("the receiving buffer of endpoint {} at switch {}", endpoint.id, SwitchId(id.0));
                return Err(NotConserved::Credits { buffer, accounted, capacity });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches space that is lost or made where it is cut.
    #[test]
    fn space_is_cut_in_whole_units() {
        let space = ReceiveSpace { vc: 1, units: 10, unit: 64 };
        assert_eq!(space.bytes(), Bytes::new(640));
        let units = |bytes| space.split(Bytes::new(bytes)).map(|part| part.map(|part| part.units));
        assert_eq!(units(0), [None, Some(10)]);
        assert_eq!(units(63), [None, Some(10)]);
        assert_eq!(units(130), [Some(2), Some(8)]);
        assert_eq!(units(640), [Some(10), None]);
        assert_eq!(units(u64::MAX), [Some(10), None]);
    }
}
