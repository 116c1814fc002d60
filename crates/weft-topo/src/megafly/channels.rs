//! Virtual channels of the Megafly.
//!
//! A minimal path climbs, takes one global link and descends, as in a tree: one virtual channel is enough. A
//! detour begins anew in the intermediate group, where it turns from a global link to another, or from a way
//! down to a way up. There it takes the second virtual channel:
//!
//! ```text
//!   up vc0 -> global vc0 -> down vc0 -> up vc1 -> global vc1 -> down vc1      ranks 0 to 5
//!                   \______________________________/
//! ```
//! Channels between are left out where a path does not need them; none goes back.
//!
//! # Source
//! Shpiner et al., HiPINEB 2017: fewer buffers than a Dragonfly needs (two and three) to avoid credit loops.
//! The channels as they are here are ours; a test shows that one is too few for detours.

use super::{GLOBAL, LOCAL, Megafly, MegaflyLayout, MegaflyRouting};
use crate::proof::{Channel, Ranked};
use crate::traits::{AtSwitch, Attachment, RoutedTopology, Routing, Topology};
use weft_units::{PortId, SwitchId, VcId};

impl MegaflyRouting {
    /// Virtual channels that it needs.
    pub(super) fn virtual_channels(&self) -> u32 {
        if *self == MegaflyRouting::Minimal { 1 } else { 2 }
    }
}

impl Megafly {
    /// Whether a packet has come up to a spine of its source's group. (To one of an intermediate group it
    /// comes up on the second virtual channel.)
    #[inline]
    pub(super) fn is_first_ascent(&self, at: &AtSwitch, is_spine: bool) -> bool {
        is_spine && at.port.0 < self.leaves && at.vc.0 == 0
    }

    /// The virtual channel of the next hop.
    #[inline]
    pub(super) fn next_vc(&self, at: &AtSwitch, is_spine: bool, port: PortId) -> VcId {
        let begins_anew = match is_spine {
            true => at.port.0 >= self.leaves && port.0 >= self.leaves,
            false => at.port.0 >= self.endpoints_per_leaf && port.0 >= self.endpoints_per_leaf,
        };
        VcId(at.vc.0 + u32::from(begins_anew))
    }
}

impl Ranked for MegaflyLayout {
    fn rank(&self, channel: Channel) -> u64 {
        let megafly = self.topology();
        let is_spine = channel.switch.0 >= megafly.first_spine();
        let step = match megafly.class(is_spine, channel.port) {
            LOCAL if !is_spine => 0,
            GLOBAL => 1,
            _ => 2,
        };
        3 * u64::from(channel.vc.0) + step
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let megafly = self.topology();
        let Attachment::Switch(switch, came_by) = megafly.peer(channel.switch, channel.port) else { return };
        let is_spine = switch.0 >= megafly.first_spine();
        let came_global = megafly.class(is_spine, came_by) == GLOBAL;
        let again = VcId(channel.vc.0 + 1);
        let may_detour = again.0 < self.virtual_channels();
        let is_second = channel.vc.0 > 0;
        for port in (0..megafly.ports(switch)).map(PortId).filter(|&port| port != came_by) {
            let is_joined = || megafly.peer(switch, port) != Attachment::Nothing;
            let vc = match (is_spine, megafly.class(is_spine, port)) {
                // Up, and on to another group, or down within the group; a second time only to go on.
                (true, LOCAL) if came_global || !is_second => channel.vc,
                (true, GLOBAL) if !came_global && is_joined() => channel.vc,
                // The detour goes on.
                (true, GLOBAL) if came_global && may_detour && is_joined() => again,
                (false, LOCAL) if may_detour => again,
                _ => continue,
            };
            visit(Channel { switch, port, vc });
        }
    }

    /// The channels of the spines and of one leaf of a group: groups are alike, and so are leaves.
    fn representatives(&self) -> Option<Vec<Channel>> {
        let megafly = self.topology();
        let spines = (0..megafly.spines).map(|spine| megafly.switch_at(0, megafly.leaves + spine));
        let ports = |switch| (0..megafly.ports(switch)).map(move |port| (switch, PortId(port)));
        let between = |&(switch, port): &(SwitchId, PortId)| {
            matches!(megafly.peer(switch, port), Attachment::Switch(..))
        };
        let vcs = |(switch, port)| {
            (0..self.virtual_channels()).map(move |vc| Channel { switch, port, vc: VcId(vc) })
        };
        let switches = std::iter::once(megafly.switch_at(0, 0)).chain(spines);
        Some(switches.flat_map(ports).filter(between).flat_map(vcs).collect())
    }
}
