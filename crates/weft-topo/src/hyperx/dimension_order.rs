//! Dimension-order routing of the HyperX: a link for each coordinate that differs, the lowest first.
//!
//! Links are ranked by their dimension, so that one virtual channel is enough.
//!
//! # Source
//! Ahn et al., SC 2009, section 3.1 (DOR); for rows of two it is e-cube routing, H. Sullivan, T. R. Bashkow,
//! ISCA 1977.

use super::HyperX;
use crate::proof::{Channel, Ranked};
use crate::traits::{
    Address, AtSwitch, Attachment, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology,
};
use serde::{Deserialize, Serialize};
use weft_units::{PortId, SwitchId, VcId};

/// Dimension order.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HyperXOrder {
    hyperx: HyperX,
}

impl HyperXOrder {
    /// Dimension order on `hyperx`.
    pub fn new(hyperx: HyperX) -> HyperXOrder {
        HyperXOrder { hyperx }
    }
}

impl HyperX {
    /// The port of the next hop towards the endpoint at `to`, dimension after dimension.
    #[inline]
    pub(super) fn next_port(&self, at: Address, to: Address) -> PortId {
        self.towards(at, to).unwrap_or(PortId((to.0 & self.slot_mask()) as u32))
    }

    /// Calls `visit` with all channels `vc` of a switch in dimensions from `first` on.
    pub(super) fn channels_from(
        &self,
        (switch, first): (SwitchId, usize),
        vc: VcId,
        visit: &mut impl FnMut(Channel),
    ) {
        let first_port = self.rows.get(first).map_or(self.ports, |row| row.first_port);
        (first_port..self.ports).for_each(|port| visit(Channel { switch, port: PortId(port), vc }));
    }

    /// Every channel of the first switch: the machine looks the same from all switches, and so do all ports
    /// of a dimension.
    pub(super) fn channels_of_each_kind(&self, virtual_channels: u32) -> Vec<Channel> {
        let mut channels = Vec::new();
        for vc in 0..virtual_channels {
            self.channels_from((SwitchId(0), 0), VcId(vc), &mut |channel| channels.push(channel));
        }
        channels
    }

    /// The rank of a channel: its dimension, after all dimensions of the virtual channels before.
    pub(super) fn channel_rank(&self, channel: Channel) -> u64 {
        let dimension = self.dimension(channel.port).unwrap_or_default() as u64;
        u64::from(channel.vc.0) * self.rows.len() as u64 + dimension
    }
}

impl RoutedTopology for HyperXOrder {
    type Topology = HyperX;

    #[inline]
    fn topology(&self) -> &HyperX {
        &self.hyperx
    }
}

impl Routing for HyperXOrder {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        1
    }

    #[inline]
    fn route(&self, at: AtSwitch, to: Address, _: &mut RouteState, _: &mut impl LocalView) -> NextHop {
        NextHop { port: self.hyperx.next_port(at.address, to), vc: VcId(0) }
    }

    fn is_deterministic(&self) -> bool {
        true
    }
}

impl Ranked for HyperXOrder {
    fn rank(&self, channel: Channel) -> u64 {
        self.hyperx.channel_rank(channel)
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let Attachment::Switch(next, _) = self.peer(channel.switch, channel.port) else { return };
        let Some(dimension) = self.hyperx.dimension(channel.port) else { return };
        self.hyperx.channels_from((next, dimension + 1), channel.vc, visit);
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        Some(self.hyperx.channels_of_each_kind(1))
    }
}
