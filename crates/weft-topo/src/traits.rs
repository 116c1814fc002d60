//! The traits of topologies and routings, and the views that routings get.

use crate::names::{self, UnknownEndpoint};
use crate::pattern::Shape;
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, PortId, SwitchId, VcId};

/// Where an endpoint or a switch lies, packed by its topology as hardware packs it into a header:
/// torus coordinates, or Dragonfly group, switch and port. Computed once per packet, so that a hop
/// needs no division.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(pub u64);

/// The other end of the link at a port of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// A port of another switch (links are full duplex; the relation is symmetric).
    Switch(SwitchId, PortId),
    /// An endpoint.
    Endpoint(EndpointId),
    /// Nothing: the edge of a mesh, a spare port.
    Nothing,
}

/// A kind of link of one topology, such as the X rings or the links to endpoints; index into
/// [`Topology::link_classes`]. A machine file gives rate and latency for each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkClass(pub u8);

/// A graph of switches and endpoints. Ports of a switch are numbered from 0 without gaps.
pub trait Topology {
    /// Number of endpoints.
    fn endpoints(&self) -> u32;
    /// Number of switches.
    fn switches(&self) -> u32;
    /// Number of ports of a switch, including those joined to nothing.
    fn ports(&self, switch: SwitchId) -> u32;
    /// The other end of the link at a port.
    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment;
    /// The switch and port of an endpoint.
    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId);
    /// The kind of link at a port. Both ends of a link give the same.
    fn link_class(&self, switch: SwitchId, port: PortId) -> LinkClass;
    /// Names of the kinds of link, as machine files write them.
    fn link_classes(&self) -> Vec<&str>;
    /// The packed address of a switch.
    fn switch_address(&self, switch: SwitchId) -> Address;
    /// The packed address of an endpoint.
    fn endpoint_address(&self, endpoint: EndpointId) -> Address;
    /// Whether packets can go from one endpoint to the other: false only between sub-systems that no
    /// link joins. A routing is never asked for such a pair.
    fn reachable(&self, _from: EndpointId, _to: EndpointId) -> bool {
        true
    }
    /// How its rings lie in the numbers of its endpoints. Where it has none: one ring of all endpoints.
    fn shape(&self) -> Shape {
        Shape { concentration: 1, sizes: vec![self.endpoints()] }
    }
    /// The group of an endpoint: endpoints whose minimal paths to another group share its few links. Groups
    /// follow each other in endpoint order. The endpoints of a switch, where the topology has no other.
    fn group_of(&self, endpoint: EndpointId) -> u32 {
        self.attachment(endpoint).0.0
    }
    /// The parts of the machine that an endpoint lies in, for collectives that go part by part: the widest
    /// that the topology has, and one within it. Group and switch, where the topology has no others.
    fn parts_of(&self, endpoint: EndpointId) -> [u32; 2] {
        [self.group_of(endpoint), self.attachment(endpoint).0.0]
    }
    /// The name of an endpoint: its number, where the topology gives no other.
    fn endpoint_name(&self, endpoint: EndpointId) -> String {
        endpoint.to_string()
    }
    /// The kind of path from one endpoint to another, in the words of the machine's own documents; `None`:
    /// they have none.
    fn path_kind(&self, _from: EndpointId, _to: EndpointId) -> Option<String> {
        None
    }
    /// The endpoint of a name, as [`Topology::endpoint_name`] writes it.
    ///
    /// # Errors
    /// Where no endpoint has this name; the error carries the nearest that exists.
    fn endpoint(&self, name: &str) -> Result<EndpointId, UnknownEndpoint> {
        names::numbered_endpoint(self.endpoints(), name)
    }
    /// The name of a switch: after its endpoint where it has one alone that has a name, such as
    /// `switch of M1QAF1`; else its number, such as `switch 7`.
    fn switch_name(&self, switch: SwitchId) -> String {
        names::switch_name(self, switch)
    }
    /// The switch of a name, as [`Topology::switch_name`] writes it, or of its number; `None`: no switch
    /// has this name.
    fn switch(&self, name: &str) -> Option<SwitchId> {
        names::switch(self, name)
    }
}

/// The memory of a packet between routing decisions (an intermediate group, the dimension it travels
/// in, whether it crossed a dateline). At injection it is the packet's [block](Routing::spreads_blocks) or
/// zero. Its meaning belongs to the routing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RouteState(pub u32);

/// A packet at a switch that routes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AtSwitch {
    /// The switch.
    pub switch: SwitchId,
    /// The packed address of the switch.
    pub address: Address,
    /// The port the packet came in by.
    pub port: PortId,
    /// The virtual channel it came in on.
    pub vc: VcId,
}

/// The next hop of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextHop {
    /// The port it leaves by.
    pub port: PortId,
    /// The virtual channel it takes on that port's link.
    pub vc: VcId,
}

/// The view of an adaptive routing: the queues of its own switch, and random numbers.
pub trait LocalView {
    /// Bytes that wait for or occupy the buffer behind a port, over all its virtual channels. Where the link
    /// of the port is off, more than any that is on can have.
    fn queued(&self, port: PortId) -> u64;
    /// Queues of many ports will be asked for: what a switch can work out once for all of them, it does now.
    fn take_stock(&mut self) {}
    /// The same of any switch, as it was last published and has become known here; 0 where nothing has. Only
    /// for routings that [need it](Routing::needs_published_queues).
    fn published(&self, _switch: SwitchId, _port: PortId) -> u64 {
        0
    }
    /// A number of this switch that is one more every time; it wraps.
    fn turn(&mut self) -> u32 {
        0
    }
    /// A random number, uniform over 64 bits, from the stream of this switch.
    fn random(&mut self) -> u64;
}

/// Which way packets go. A pure function of its arguments.
pub trait Routing {
    /// Virtual channels that the routing needs on links between switches; links to and from
    /// endpoints carry the same number, of which injection uses channel 0.
    fn virtual_channels(&self) -> u32;
    /// The next hop of a packet at `at` towards the endpoint at `to`. Must be a port of the switch
    /// that is joined to something; the endpoint's own port where `at` is its switch.
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop;
    /// Whether every packet of a (source, destination) pair takes the same path, so that flows stay
    /// in order.
    fn is_deterministic(&self) -> bool;
    /// Whether packets of a (source, destination) pair may take several paths, but those of one block of a
    /// message, such as the 16 KB of an RDMA engine, one. The state of a packet is then its block at
    /// injection: a number that the interface gives, alike for packets that must stay in order.
    fn spreads_blocks(&self) -> bool {
        false
    }
    /// Whether it looks at [queues of other switches](LocalView::published).
    fn needs_published_queues(&self) -> bool {
        false
    }
}

/// A routing that owns the topology on which it routes. It answers for that topology: it implements
/// [`Topology`] as well.
pub trait RoutedTopology: Routing {
    /// The topology.
    type Topology: Topology;
    /// The topology on which it routes.
    fn topology(&self) -> &Self::Topology;
}

impl<R: RoutedTopology> Topology for R {
    #[inline]
    fn endpoints(&self) -> u32 {
        self.topology().endpoints()
    }

    #[inline]
    fn switches(&self) -> u32 {
        self.topology().switches()
    }

    #[inline]
    fn ports(&self, switch: SwitchId) -> u32 {
        self.topology().ports(switch)
    }

    #[inline]
    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        self.topology().peer(switch, port)
    }

    #[inline]
    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        self.topology().attachment(endpoint)
    }

    #[inline]
    fn link_class(&self, switch: SwitchId, port: PortId) -> LinkClass {
        self.topology().link_class(switch, port)
    }

    fn link_classes(&self) -> Vec<&str> {
        self.topology().link_classes()
    }

    #[inline]
    fn switch_address(&self, switch: SwitchId) -> Address {
        self.topology().switch_address(switch)
    }

    #[inline]
    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        self.topology().endpoint_address(endpoint)
    }

    #[inline]
    fn reachable(&self, from: EndpointId, to: EndpointId) -> bool {
        self.topology().reachable(from, to)
    }

    fn shape(&self) -> Shape {
        self.topology().shape()
    }

    fn group_of(&self, endpoint: EndpointId) -> u32 {
        self.topology().group_of(endpoint)
    }

    fn parts_of(&self, endpoint: EndpointId) -> [u32; 2] {
        self.topology().parts_of(endpoint)
    }

    fn endpoint_name(&self, endpoint: EndpointId) -> String {
        self.topology().endpoint_name(endpoint)
    }

    fn path_kind(&self, from: EndpointId, to: EndpointId) -> Option<String> {
        self.topology().path_kind(from, to)
    }

    fn endpoint(&self, name: &str) -> Result<EndpointId, UnknownEndpoint> {
        self.topology().endpoint(name)
    }

    fn switch_name(&self, switch: SwitchId) -> String {
        self.topology().switch_name(switch)
    }

    fn switch(&self, name: &str) -> Option<SwitchId> {
        self.topology().switch(name)
    }
}
