//! A topology together with a routing, dispatched statically.

use crate::dimension_order::DimensionOrder;
use crate::dragonfly_minimal::DragonflyMinimal;
use crate::exanest_order::ExanestOrder;
use crate::proof::{Channel, Ranked};
use crate::star::StarRouting;
use crate::traits::{Address, Attachment, LinkClass, Position, RouteState, Routing, Step, Topology, View};
use crate::ugal::Ugal;
use crate::up_down::UpDown;
use serde::{Deserialize, Serialize};
use weft_units::{EndpointId, PortId, SwitchId};

/// Every supported pair of a topology and a routing. Both traits are delegated to the pair.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Layout {
    /// Torus or mesh with dimension order.
    Torus(DimensionOrder),
    /// ExaNeSt machine with its dimension order.
    Exanest(ExanestOrder),
    /// k-ary n-tree with up/down routing.
    KaryTree(UpDown),
    /// Dragonfly with minimal routing.
    DragonflyMinimal(DragonflyMinimal),
    /// Dragonfly with UGAL-L.
    DragonflyUgal(Ugal),
    /// Star.
    Star(StarRouting),
}

/// The same expression for the routing of every variant.
macro_rules! each {
    ($layout:expr, $routing:ident => $answer:expr) => {
        match $layout {
            Layout::Torus($routing) => $answer,
            Layout::Exanest($routing) => $answer,
            Layout::KaryTree($routing) => $answer,
            Layout::DragonflyMinimal($routing) => $answer,
            Layout::DragonflyUgal($routing) => $answer,
            Layout::Star($routing) => $answer,
        }
    };
}

pub(crate) use each;

impl Topology for Layout {
    #[inline]
    fn endpoints(&self) -> u32 {
        each!(self, routing => routing.topology().endpoints())
    }

    #[inline]
    fn switches(&self) -> u32 {
        each!(self, routing => routing.topology().switches())
    }

    #[inline]
    fn ports(&self, switch: SwitchId) -> u32 {
        each!(self, routing => routing.topology().ports(switch))
    }

    #[inline]
    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        each!(self, routing => routing.topology().peer(switch, port))
    }

    #[inline]
    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        each!(self, routing => routing.topology().attachment(endpoint))
    }

    #[inline]
    fn link_class(&self, switch: SwitchId, port: PortId) -> LinkClass {
        each!(self, routing => routing.topology().link_class(switch, port))
    }

    fn link_classes(&self) -> &'static [&'static str] {
        each!(self, routing => routing.topology().link_classes())
    }

    #[inline]
    fn switch_address(&self, switch: SwitchId) -> Address {
        each!(self, routing => routing.topology().switch_address(switch))
    }

    #[inline]
    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        each!(self, routing => routing.topology().endpoint_address(endpoint))
    }

    #[inline]
    fn reachable(&self, from: EndpointId, to: EndpointId) -> bool {
        each!(self, routing => routing.topology().reachable(from, to))
    }
}

impl Routing for Layout {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        each!(self, routing => routing.virtual_channels())
    }

    // A call less per hop: where it is compiled in, only that of the routing is left.
    #[inline(always)]
    fn route(&self, at: Position, to: Address, state: &mut RouteState, view: &mut impl View) -> Step {
        each!(self, routing => routing.route(at, to, state, view))
    }

    fn is_deterministic(&self) -> bool {
        each!(self, routing => routing.is_deterministic())
    }
}

impl Ranked for Layout {
    #[inline]
    fn rank(&self, channel: Channel) -> u64 {
        each!(self, routing => routing.rank(channel))
    }

    #[inline]
    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        each!(self, routing => routing.successors(channel, visit));
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        each!(self, routing => routing.representatives())
    }
}
