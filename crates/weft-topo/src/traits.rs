//! The seams: what a topology and a routing must answer.

use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, PortId, SwitchId, VcId};

/// Where an endpoint or a switch lies, packed by its topology as hardware packs it into a header:
/// torus coordinates, or Dragonfly group, switch and port. Computed once per packet, so that a hop
/// needs no division.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Address(pub u64);

/// What a port of a switch is joined to.
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

/// What is joined to what. Ports of a switch are numbered from 0 without gaps.
pub trait Topology {
    /// Number of endpoints.
    fn endpoints(&self) -> u32;
    /// Number of switches.
    fn switches(&self) -> u32;
    /// Number of ports of a switch, including those joined to nothing.
    fn ports(&self, switch: SwitchId) -> u32;
    /// What a port is joined to.
    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment;
    /// The switch and port of an endpoint.
    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId);
    /// The kind of link at a port. Both ends of a link give the same.
    fn link_class(&self, switch: SwitchId, port: PortId) -> LinkClass;
    /// Names of the kinds of link, as machine files write them.
    fn link_classes(&self) -> &'static [&'static str];
    /// The packed address of a switch.
    fn switch_address(&self, switch: SwitchId) -> Address;
    /// The packed address of an endpoint.
    fn endpoint_address(&self, endpoint: EndpointId) -> Address;
    /// Whether packets can go from one endpoint to the other: false only between sub-systems that no
    /// link joins. A routing is never asked for such a pair.
    fn reachable(&self, _from: EndpointId, _to: EndpointId) -> bool {
        true
    }
}

/// What a packet carries between routing decisions (an intermediate group, the dimension it travels
/// in, whether it crossed a dateline); zero at injection. Its meaning belongs to the routing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RouteState(pub u32);

/// Where a packet stands when it is routed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// The switch.
    pub switch: SwitchId,
    /// Its packed address.
    pub address: Address,
    /// The port the packet came in by.
    pub port: PortId,
    /// The virtual channel it came in on.
    pub vc: VcId,
}

/// The next step of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// The port it leaves by.
    pub port: PortId,
    /// The virtual channel it takes on that port's link.
    pub vc: VcId,
}

/// What an adaptive routing may look at: the queues of its own switch, and dice.
pub trait View {
    /// Bytes that wait for or occupy the buffer behind a port, over all its virtual channels.
    fn queued(&self, port: PortId) -> u64;
    /// A random number, uniform over 64 bits, from the stream of this switch.
    fn random(&mut self) -> u64;
}

/// Which way a packet goes. A pure function of its arguments.
pub trait Routing {
    /// Virtual channels that the routing needs on links between switches; links to and from
    /// endpoints carry the same number, of which injection uses channel 0.
    fn virtual_channels(&self) -> u32;
    /// The next step of a packet at `at` towards the endpoint at `to`. Must be a port of the switch
    /// that is joined to something; the endpoint's own port where `at` is its switch.
    fn route(&self, at: Position, to: Address, state: &mut RouteState, view: &mut impl View) -> Step;
    /// Whether every packet of a (source, destination) pair takes the same path, so that flows stay
    /// in order.
    fn is_deterministic(&self) -> bool;
}
