//! The routing of the star: out by the port of the destination.

use super::Star;
use crate::proof::{Channel, Ranked};
use crate::traits::{Address, AtSwitch, LocalView, NextHop, RouteState, RoutedTopology, Routing};
use serde::{Deserialize, Serialize};
use weft_units::PortId;

/// Out by the port of the destination.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StarRouting {
    star: Star,
}

impl StarRouting {
    /// Routing on `star`.
    pub fn new(star: Star) -> StarRouting {
        StarRouting { star }
    }
}

impl RoutedTopology for StarRouting {
    type Topology = Star;

    #[inline]
    fn topology(&self) -> &Star {
        &self.star
    }
}

impl Routing for StarRouting {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        1
    }

    #[inline]
    fn route(
        &self,
        at: AtSwitch,
        to: Address,
        _state: &mut RouteState,
        _view: &mut impl LocalView,
    ) -> NextHop {
        NextHop { port: PortId(to.0 as u32), vc: at.vc }
    }

    fn is_deterministic(&self) -> bool {
        true
    }
}

impl Ranked for StarRouting {
    fn rank(&self, _channel: Channel) -> u64 {
        u64::MAX
    }

    fn successors(&self, _channel: Channel, _visit: &mut impl FnMut(Channel)) {}

    fn representatives(&self) -> Option<Vec<Channel>> {
        Some(Vec::new())
    }
}
