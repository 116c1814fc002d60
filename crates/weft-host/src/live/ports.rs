//! IntraNode ports of a node with ways of their own into the switch: they hang off the endpoints of the node.
//!
//! ```text
//!   rank at endpoint 2 ── Send, Take, … ──► endpoint 3 ══► switch
//!          ▲                                    │
//!          └────── Delivered, Sent, Failed ─────┘
//! ```
//! Programs name a port by node and number. Where a node has several endpoints, port `n` is interface
//! `n % m` of its endpoint `n / m`, with `m` interfaces at each. A rank opens any port of its node. It keeps
//! its table at the endpoint at which it sits, and the port's endpoint sends and receives for it at the same
//! instant, as the [`rails`](super::rails) of a host do.
//!
//! Where a node has one endpoint, a port is that endpoint's interface of the same number.
//!
//! # Source
//! TEXTAROSSA D2.8 §2: the switch joins all ports of the IP, and each of the M IntraNode ports has FIFOs of
//! its own in both directions.

use super::header::LiveHeader;
use super::rails::HandedOver;
use super::{Handler, InterfaceLimits, LiveHost, LiveParameters};
use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use weft_nic::gvas::Pdid;
use weft_nic::{Delivered, HostContext};
use weft_units::{EndpointId, Time};

/// The place of a port: an endpoint, and the number of the port among its interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PortPlace {
    pub endpoint: EndpointId,
    pub interface: u16,
}

/// The endpoints of a node, and the ports that hang off each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NodePorts {
    /// Endpoints of a node.
    pub endpoints: u32,
    /// Interfaces of each.
    pub interfaces: u32,
}

impl NodePorts {
    /// The ports of a machine with these limits.
    pub fn of(limits: &InterfaceLimits) -> NodePorts {
        let InterfaceLimits { interfaces, endpoints, .. } = *limits;
        NodePorts { endpoints, interfaces: (interfaces / endpoints).max(1) }
    }

    /// The node of an endpoint.
    pub fn node(&self, endpoint: EndpointId) -> u32 {
        endpoint.0 / self.endpoints
    }

    /// The endpoints of a node, the first one first.
    pub fn endpoints_of(&self, node: u32) -> impl Iterator<Item = EndpointId> + use<> {
        let first = node * self.endpoints;
        (first..first + self.endpoints).map(EndpointId)
    }

    /// The place of a port of a node that has it.
    pub fn place(&self, node: u32, port: u16) -> PortPlace {
        if self.endpoints == 1 {
            return PortPlace { endpoint: EndpointId(node), interface: port };
        }
        let (way, interface) = (u32::from(port) / self.interfaces, u32::from(port) % self.interfaces);
        PortPlace { endpoint: EndpointId(node * self.endpoints + way), interface: interface as u16 }
    }

    /// The number of the port at a place.
    pub fn port(&self, place: PortPlace) -> u16 {
        let way = place.endpoint.0 % self.endpoints;
        (way * self.interfaces) as u16 + place.interface
    }
}

/// The endpoints at which the ranks sit that have opened ports, by node and port: of nodes with several
/// endpoints alone.
#[derive(Default)]
pub(super) struct PortOwners(Mutex<BTreeMap<(u32, u16), EndpointId>>);

/// A request to the endpoint of a port by the rank that has opened it, besides sending.
#[derive(Clone, Copy)]
pub(super) enum PortAction {
    /// Opens it in a domain.
    Open(Pdid),
    /// Takes the oldest message out of its queue at this time.
    Take(Time),
}

impl LiveParameters {
    /// The rank at an endpoint opens a port of its node, unless one at another endpoint has. Says whether it
    /// is its own now.
    pub(super) fn own_port(&self, home: EndpointId, port: u16) -> bool {
        let ports = self.node_ports;
        ports.endpoints == 1
            || *lock(&self.port_owners.0).entry((ports.node(home), port)).or_insert(home) == home
    }

    /// Nobody has that port of the node any more.
    pub(super) fn disown_port(&self, home: EndpointId, port: u16) {
        if self.node_ports.endpoints > 1 {
            lock(&self.port_owners.0).remove(&(self.node_ports.node(home), port));
        }
    }

    /// The endpoint of the rank that has opened a port of a node; the port's, if nobody has.
    fn owner(&self, at: PortPlace) -> EndpointId {
        let ports = self.node_ports;
        if ports.endpoints == 1 {
            return at.endpoint;
        }
        let port = (ports.node(at.endpoint), ports.port(at));
        lock(&self.port_owners.0).get(&port).copied().unwrap_or(at.endpoint)
    }
}

impl<C: HostContext<LiveHost>> Handler<'_, C> {
    /// The node of this endpoint.
    pub(super) fn own_node(&self) -> u32 {
        self.parameters.node_ports.node(self.context.endpoint())
    }

    /// The place of a port of this node.
    pub(super) fn place_of(&self, port: u16) -> PortPlace {
        self.parameters.node_ports.place(self.own_node(), port)
    }

    /// The number of the port of this endpoint that is this interface of it.
    pub(super) fn own_port_at(&self, interface: u16) -> u16 {
        self.parameters.node_ports.port(PortPlace { endpoint: self.context.endpoint(), interface })
    }

    /// Has the endpoint of a port do something now.
    pub(super) fn act_at_port(&mut self, port: u16, action: PortAction) {
        let PortPlace { endpoint, interface } = self.place_of(port);
        match endpoint == self.context.endpoint() {
            true => self.act(interface, action),
            false => self.hand_over(endpoint, HandedOver::Action(interface, action)),
        }
    }

    /// Does what the rank that has a port of this endpoint wants.
    pub(super) fn act(&mut self, interface: u16, action: PortAction) {
        match action {
            PortAction::Open(domain) => self.context.capabilities().open(interface, domain),
            PortAction::Take(at) => self.context.capabilities().take(interface, at),
        }
    }

    /// Writes a register at the other endpoints of the node, where it is theirs as well.
    pub(super) fn write_beside(&mut self, address: u32, value: u32) {
        let (ports, here) = (self.parameters.node_ports, self.context.endpoint());
        let mut registers = self.context.capabilities().registers();
        if registers.as_mut().is_none_or(|registers| !registers.is_of_node(address)) {
            return;
        }
        for endpoint in ports.endpoints_of(ports.node(here)).filter(|endpoint| *endpoint != here) {
            self.hand_over(endpoint, HandedOver::Register { address, value });
        }
    }

    /// Writes a register that a rank at another endpoint of the node has written there.
    pub(super) fn write_too(&mut self, address: u32, value: u32) {
        let written = self
            .context
            .capabilities()
            .registers()
            .is_some_and(|registers| registers.write_register(address, value).is_ok());
        debug_assert!(written, "registers of one node differ");
    }

    /// A message for a port has come by this endpoint: its rank's has it, which may be another.
    pub(super) fn arrive_at_port(mut self, message: &Delivered<LiveHeader>) {
        let (ports, here) = (self.parameters.node_ports, self.context.endpoint());
        let at = PortPlace { endpoint: here, interface: message.interface };
        let message = Delivered { interface: ports.port(at), ..*message };
        let home = self.parameters.owner(at);
        match home == here {
            true => self.arrive_home(&message),
            false => self.hand_over(home, HandedOver::Delivered(message)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches ports of two nodes at one endpoint, a place that has another number than led to it, and
    /// machines of one endpoint per node on which a port is not the interface of its number.
    #[test]
    fn every_port_has_a_place_of_its_own() {
        for (endpoints, interfaces) in [(1, 2), (2, 1), (4, 1), (2, 3)] {
            let ports = NodePorts { endpoints, interfaces };
            let mut seen = std::collections::BTreeSet::new();
            for node in 0..3 {
                for port in 0..(endpoints * interfaces) as u16 {
                    let place = ports.place(node, port);
                    assert!(seen.insert((place.endpoint, place.interface)));
                    assert_eq!((ports.node(place.endpoint), ports.port(place)), (node, port));
                    assert!(ports.endpoints_of(node).any(|endpoint| endpoint == place.endpoint));
                }
            }
        }
        let alone = NodePorts { endpoints: 1, interfaces: 2 };
        assert_eq!(alone.place(7, 40), PortPlace { endpoint: EndpointId(7), interface: 40 });
    }
}
