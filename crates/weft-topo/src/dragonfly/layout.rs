//! A Dragonfly with one of its routings.

use super::{Dragonfly, DragonflyMinimal, DragonflyPar, DragonflyValiant, Ugal};
use crate::figures::{Bisection, ChannelLoad, ClosedForms};
use crate::pattern::Permutation;
use crate::proof::{Channel, Ranked};
use crate::traits::{Address, AtSwitch, LocalView, NextHop, RouteState, RoutedTopology, Routing};
use serde::{Deserialize, Serialize};

/// A Dragonfly with one of its routings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum DragonflyLayout {
    /// Minimal.
    Minimal(DragonflyMinimal),
    /// UGAL-L or UGAL-G.
    Ugal(Ugal),
    /// Valiant.
    Valiant(DragonflyValiant),
    /// PAR.
    Par(DragonflyPar),
}

/// The same expression for every routing.
macro_rules! each {
    ($layout:expr, $routing:ident => $answer:expr) => {
        match $layout {
            DragonflyLayout::Minimal($routing) => $answer,
            DragonflyLayout::Ugal($routing) => $answer,
            DragonflyLayout::Valiant($routing) => $answer,
            DragonflyLayout::Par($routing) => $answer,
        }
    };
}

impl RoutedTopology for DragonflyLayout {
    type Topology = Dragonfly;

    #[inline]
    fn topology(&self) -> &Dragonfly {
        each!(self, routing => routing.topology())
    }
}

impl Routing for DragonflyLayout {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        each!(self, routing => routing.virtual_channels())
    }

    // As in `Layout`: only the call of the routing is left.
    #[inline(always)]
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        each!(self, routing => routing.route(at, to, state, view))
    }

    fn is_deterministic(&self) -> bool {
        each!(self, routing => routing.is_deterministic())
    }

    fn needs_published_queues(&self) -> bool {
        each!(self, routing => routing.needs_published_queues())
    }
}

impl Ranked for DragonflyLayout {
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

impl ClosedForms for DragonflyLayout {
    fn diameter(&self) -> Option<u32> {
        Some(self.topology().diameter())
    }

    fn mean_distance(&self) -> Option<f64> {
        Some(self.topology().mean_distance())
    }

    fn bisection(&self) -> Option<Bisection> {
        Some(self.topology().bisection())
    }

    fn uniform_load(&self) -> Option<ChannelLoad> {
        each!(self, routing => routing.uniform_load())
    }

    fn permutation_load(&self, permutation: &Permutation) -> Option<ChannelLoad> {
        each!(self, routing => routing.permutation_load(permutation))
    }

    fn longest_route(&self) -> Option<u32> {
        each!(self, routing => routing.longest_route())
    }

    fn idle_detour(&self) -> u32 {
        each!(self, routing => routing.idle_detour())
    }
}
