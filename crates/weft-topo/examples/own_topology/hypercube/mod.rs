//! Hypercube: switches whose numbers differ in one bit are joined.
//!
//! ```text
//!    6 --- 7         Ports of a switch: 0 its endpoint, then one for each bit.
//!   /|    /|
//!  2 --- 3 |
//!  | 4 --| 5
//!  |/    |/
//!  0 --- 1
//! ```

mod parameters;
mod routing;

pub use parameters::HypercubeParameters;
pub use routing::ECube;

use serde::{Deserialize, Serialize};
use weft_topo::{Address, Attachment, LinkClass, Topology};
use weft_units::{EndpointId, PortId, SwitchId};

// ANCHOR: topology
/// A hypercube with an endpoint at every switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hypercube {
    bits: u32,
}

impl Hypercube {
    /// A hypercube of 2^bits switches.
    pub fn new(bits: u32) -> Hypercube {
        Hypercube { bits }
    }

    /// The port to the switch whose number differs in this bit.
    pub fn port(bit: u32) -> PortId {
        PortId(1 + bit)
    }
}

impl Topology for Hypercube {
    fn endpoints(&self) -> u32 {
        self.switches()
    }
    fn switches(&self) -> u32 {
        1 << self.bits
    }
    fn ports(&self, _: SwitchId) -> u32 {
        1 + self.bits
    }
    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        match port.0.checked_sub(1) {
            None => Attachment::Endpoint(EndpointId(switch.0)),
            Some(bit) => Attachment::Switch(SwitchId(switch.0 ^ 1 << bit), port),
        }
    }
    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        (SwitchId(endpoint.0), PortId(0))
    }
    fn link_class(&self, _: SwitchId, port: PortId) -> LinkClass {
        LinkClass(u8::from(port.0 > 0))
    }
    fn link_classes(&self) -> Vec<&str> {
        vec!["endpoint", "cube"]
    }
    fn switch_address(&self, switch: SwitchId) -> Address {
        Address(switch.0.into())
    }
    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        Address(endpoint.0.into())
    }
}
// ANCHOR_END: topology
