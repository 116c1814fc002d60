//! Valiant's routing on the Dragonfly: between groups always by way of a random group.
//!
//! A packet goes minimally to the random group, and from where it arrives there minimally to its destination.
//! So any pattern loads the global links as uniform traffic does, at twice the load. Packets inside one
//! group, and all packets where there are only two groups, go minimally.
//!
//! # Source
//! L. G. Valiant, "A scheme for fast parallel communication", SIAM J. Comput. 11(2), 1982; by groups: Kim,
//! Dally, Scott, Abts, ISCA 2008, section 4.1, with three virtual channels (`minimal.rs`).

use super::Dragonfly;
use crate::choice::below;
use crate::proof::{Channel, Ranked};
use crate::traits::{Address, AtSwitch, LocalView, NextHop, RouteState, RoutedTopology, Routing};
use serde::{Deserialize, Serialize};

/// Valiant's routing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DragonflyValiant {
    dragonfly: Dragonfly,
}

impl DragonflyValiant {
    /// Valiant's routing on `dragonfly`.
    pub fn new(dragonfly: Dragonfly) -> DragonflyValiant {
        DragonflyValiant { dragonfly }
    }
}

impl Dragonfly {
    /// A random group other than the packet's own and that of its destination. `None`: it stays in its group,
    /// or there is no third one.
    #[inline]
    pub(super) fn draw_third_group(
        &self,
        from: Address,
        to: Address,
        view: &mut impl LocalView,
    ) -> Option<u32> {
        let (source, target) = (self.group(from), self.group(to));
        if source == target || self.groups < 3 {
            return None;
        }
        let mut via = below(self.groups - 2, view.random());
        via += u32::from(via >= source.min(target));
        via += u32::from(via >= source.max(target));
        Some(via)
    }
}

/// The state of packets that go by way of another group: the group plus one; 0 without a detour and once it
/// is reached.
#[inline]
pub(super) fn state_of(via: Option<u32>) -> RouteState {
    RouteState(via.map_or(0, |group| group + 1))
}

/// The group of [`state_of`].
#[inline]
pub(super) fn via(state: RouteState) -> Option<u32> {
    state.0.checked_sub(1)
}

impl RoutedTopology for DragonflyValiant {
    type Topology = Dragonfly;

    #[inline]
    fn topology(&self) -> &Dragonfly {
        &self.dragonfly
    }
}

impl Routing for DragonflyValiant {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        3
    }

    // Not inlined, as PAR.
    #[inline(never)]
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        let dragonfly = &self.dragonfly;
        let here = dragonfly.group(at.address);
        if dragonfly.class(at.port).0 == 0 {
            *state = state_of(dragonfly.draw_third_group(at.address, to, view));
        } else if via(*state) == Some(here) {
            *state = state_of(None);
        }
        let port = match via(*state) {
            Some(group) => {
                let link = dragonfly.choose(here, dragonfly.switch_in_group(at.address), group, to);
                dragonfly.port_to_link(at.address, group, link)
            }
            None => dragonfly.minimal_port(at.address, to),
        };
        let vc = if dragonfly.class(port).0 == 0 { at.vc } else { dragonfly.next_vc(&at) };
        NextHop { port, vc }
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}

impl Ranked for DragonflyValiant {
    fn rank(&self, channel: Channel) -> u64 {
        self.dragonfly.channel_rank(channel)
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        self.dragonfly.turns(channel, 2, visit);
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        Some(self.dragonfly.channels_of_each_kind(self.virtual_channels()))
    }
}
