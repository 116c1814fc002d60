//! Progressive adaptive routing (PAR) on the Dragonfly: as UGAL-L, and the source's group may think again.
//!
//! The source's switch decides as in UGAL-L. A packet that goes minimally, and had to go to another switch of
//! its group for it, is asked about once more there: that switch draws an intermediate group of its own, and
//! compares its queues in the same way, with the links that are left of the paths. It sees the queue before
//! the global link itself; the source's switch sees that one only once it has grown back to it. A packet on a
//! detour is not asked about again.
//!
//! A packet that leaves its minimal path takes a second local link in the source's group, and so a fourth
//! virtual channel:
//!
//! ```text
//!   local vc0 -> local vc1 -> global vc1 -> local vc2 -> global vc2 -> local vc3      ranks 0 2 3 4 5 6
//! ```
//! Channels that a path does not need are left out; none goes back.
//!
//! # Source
//! N. Jiang, J. Kim, W. J. Dally, "Indirect adaptive routing on large scale interconnection networks", ISCA
//! 2009, section 3.3: PAR, with one virtual channel more than UGAL.

use super::valiant::{state_of, via};
use super::{Dragonfly, GLOBAL, LOCAL, Ugal};
use crate::proof::{Channel, Ranked};
use crate::traits::{
    Address, AtSwitch, Attachment, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology,
};
use serde::{Deserialize, Serialize};
use weft_units::{PortId, VcId};

/// Progressive adaptive routing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DragonflyPar {
    /// The same without a second thought.
    ugal: Ugal,
}

impl DragonflyPar {
    /// PAR on `dragonfly`; `threshold` favours the minimal path, in bytes times hops.
    pub fn new(dragonfly: Dragonfly, threshold: u64) -> DragonflyPar {
        DragonflyPar { ugal: Ugal::new(dragonfly, threshold) }
    }

    /// The virtual channel of the hop to a port, for a packet that came by a link of one class and channel;
    /// `None`: no packet turns so.
    #[inline]
    fn next_vc(&self, came_by: PortId, vc: VcId, port: PortId) -> Option<VcId> {
        let dragonfly = self.topology();
        match (dragonfly.class(came_by), dragonfly.class(port)) {
            // On detours a second time, in the source's group.
            (LOCAL, LOCAL) => (vc.0 == 0).then_some(VcId(1)),
            (LOCAL, GLOBAL) => (vc.0 < 3).then_some(VcId(vc.0.max(1))),
            (GLOBAL, GLOBAL) => (vc.0 < 2).then_some(VcId(2)),
            (GLOBAL, LOCAL) => (vc.0 < 3).then_some(VcId(vc.0 + 1)),
            (_, GLOBAL) => Some(VcId(1)),
            _ => Some(VcId(0)),
        }
    }

    /// Whether a packet is at the second switch of its minimal path, in the source's group.
    #[inline]
    fn may_think_again(&self, at: &AtSwitch, state: RouteState) -> bool {
        at.vc.0 == 0 && via(state).is_none() && self.topology().class(at.port) == LOCAL
    }
}

impl RoutedTopology for DragonflyPar {
    type Topology = Dragonfly;

    #[inline]
    fn topology(&self) -> &Dragonfly {
        self.ugal.topology()
    }
}

impl Routing for DragonflyPar {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        4
    }

    // Not inlined, so that the usual routings stay small where all of them are called from one place.
    #[inline(never)]
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        let dragonfly = self.topology();
        if dragonfly.class(at.port).0 == 0 || self.may_think_again(&at, *state) {
            *state = state_of(self.ugal.detour::<false>(at.address, to, view));
        } else if via(*state) == Some(dragonfly.group(at.address)) {
            *state = state_of(None);
        }
        let port = dragonfly.adaptive_port(at.address, via(*state), to, view);
        let vc = if dragonfly.class(port).0 == 0 { at.vc } else { self.vc_of_hop(&at, port) };
        NextHop { port, vc }
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}

impl DragonflyPar {
    /// [`DragonflyPar::next_vc`] of a turn that a packet takes.
    #[inline]
    fn vc_of_hop(&self, at: &AtSwitch, port: PortId) -> VcId {
        let vc = self.next_vc(at.port, at.vc, port);
        debug_assert!(vc.is_some(), "no packet turns to port {port} at {at:?}");
        vc.unwrap_or(at.vc)
    }
}

impl Ranked for DragonflyPar {
    fn rank(&self, channel: Channel) -> u64 {
        self.topology().channel_rank(channel)
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let dragonfly = self.topology();
        let Attachment::Switch(switch, came_by) = dragonfly.peer(channel.switch, channel.port) else {
            return;
        };
        for port in (0..dragonfly.ports(switch)).map(PortId) {
            if dragonfly.class(port).0 == 0 || dragonfly.peer(switch, port) == Attachment::Nothing {
                continue;
            }
            if let Some(vc) = self.next_vc(came_by, channel.vc, port) {
                visit(Channel { switch, port, vc });
            }
        }
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        Some(self.topology().channels_of_each_kind(self.virtual_channels()))
    }
}
