//! E-cube routing: the bits in which a packet's switch and its destination differ, the lowest first.
//!
//! # Source
//! H. Sullivan, T. R. Bashkow, "A large scale, homogeneous, fully distributed parallel machine", ISCA 1977.

use super::Hypercube;
use serde::{Deserialize, Serialize};
use weft_topo::{
    Address, AtSwitch, Attachment, Channel, ClosedForms, LocalView, NextHop, Ranked, RouteState,
    RoutedTopology, Routing, Topology,
};
use weft_units::{PortId, VcId};

// ANCHOR: routing
/// E-cube routing on a hypercube.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ECube {
    hypercube: Hypercube,
}

impl ECube {
    /// E-cube routing on `hypercube`.
    pub fn new(hypercube: Hypercube) -> ECube {
        ECube { hypercube }
    }
}

impl RoutedTopology for ECube {
    type Topology = Hypercube;
    fn topology(&self) -> &Hypercube {
        &self.hypercube
    }
}

impl Routing for ECube {
    fn virtual_channels(&self) -> u32 {
        1
    }
    #[inline]
    fn route(&self, at: AtSwitch, to: Address, _: &mut RouteState, _: &mut impl LocalView) -> NextHop {
        let differ = at.address.0 ^ to.0;
        let port = if differ == 0 { PortId(0) } else { Hypercube::port(differ.trailing_zeros()) };
        NextHop { port, vc: VcId(0) }
    }
    fn is_deterministic(&self) -> bool {
        true
    }
}

impl Ranked for ECube {
    // A packet corrects higher and higher bits.
    fn rank(&self, channel: Channel) -> u64 {
        channel.port.0.into()
    }
    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let Attachment::Switch(switch, _) = self.peer(channel.switch, channel.port) else { return };
        let higher = channel.port.0 + 1..self.ports(switch);
        higher.for_each(|port| visit(Channel { switch, port: PortId(port), vc: VcId(0) }));
    }
    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}

// Figures are counted; a closed form can come later.
impl ClosedForms for ECube {}
// ANCHOR_END: routing
