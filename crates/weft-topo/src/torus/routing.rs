//! Dimension-order routing of the torus and mesh, with datelines.
//!
//! A packet corrects its coordinates one dimension after the other, the shorter way round each ring.
//! Rings need two virtual channels: a packet that must pass the link between the last and the first
//! switch (the dateline) travels on channel 0 before and on channel 1 from that link on.
//!
//! ```text
//!   channel 0   0 -> 1 -> 2 -> 3 .        channel (x, v) of a ring of k, upwards, has the rank
//!                                 \            v = 0:  x
//!   channel 1        0 -> 1 -> 2   3->0        v = 1:  k + (x + 1) mod k
//! ```
//! Packets that do not pass the dateline stay on one channel, and may do so on either. They take the
//! one that dateline crossers use less where they travel, which keeps both equally busy.
//!
//! Where both ways round are equally long, the parity of the coordinates of source and destination
//! decides, so that both directions carry the same.
//!
//! # Source
//! W. J. Dally, C. L. Seitz, "Deadlock-free message routing in multiprocessor interconnection
//! networks", IEEE Trans. Computers C-36(5), 1987.

use super::{Axis, Torus};
use crate::proof::{Channel, Ranked};
use crate::traits::{
    Address, AtSwitch, Attachment, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology,
};
use serde::{Deserialize, Serialize};
use std::hint::select_unpredictable;
use weft_units::{PortId, VcId};

/// State: the route is planned.
const PLANNED: u32 = 1 << 31;
/// State: bit d set, the packet goes down dimension d.
const DOWN: u32 = 0;
/// State: bit d set, the packet enters dimension d on virtual channel 1.
const CHANNEL: u32 = 8;

/// Dimension-order routing with or without datelines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DimensionOrder {
    torus: Torus,
    datelines: bool,
    virtual_channels: u32,
}

impl DimensionOrder {
    /// Dimension order on `torus`. Without `datelines` there is one virtual channel and rings of four
    /// or more can deadlock: for studies of deadlock, and for meshes, where it makes no difference.
    pub fn new(torus: Torus, datelines: bool) -> DimensionOrder {
        let rings = torus.axes().iter().any(|axis| axis.wraps);
        DimensionOrder { torus, datelines, virtual_channels: if datelines && rings { 2 } else { 1 } }
    }

    /// Whether rings have datelines.
    pub fn datelines(&self) -> bool {
        self.datelines
    }

    /// Direction and channel in every dimension, decided once per packet. On its own: compiled into what
    /// every hop does, it would take its registers.
    #[inline(never)]
    fn plan(&self, from: Address, to: Address) -> RouteState {
        let axes = self.torus.axes();
        let coordinates = |axis: &Axis| (axis.coordinate(from), axis.coordinate(to));
        let parity = axes.iter().map(coordinates).fold(0, |sum, (s, t)| sum ^ s ^ t);
        let mut state = PLANNED;
        for (d, axis) in axes.iter().enumerate() {
            let (s, t) = coordinates(axis);
            // Without this dimension's target, whose parity follows from the source's in a tie.
            let down = axis.shorter_way_is_down(s, t, (parity ^ t) & 1 == 1);
            let crosses = if down { t > s } else { t < s };
            let spare = if down { s + t + 1 < axis.size } else { s + t >= axis.size };
            state |= u32::from(down) << (DOWN + d as u32);
            state |= u32::from(spare && !crosses && self.virtual_channels == 2) << (CHANNEL + d as u32);
        }
        RouteState(state)
    }

    /// Whether a packet goes down dimension `d`, in which source and destination differ.
    pub(super) fn goes_down(&self, from: Address, to: Address, d: usize) -> bool {
        self.plan(from, to).0 >> (DOWN + d as u32) & 1 == 1
    }

    /// Whether some packet takes two hops on end in dimension `d` from `from`. In a ring of three none
    /// does; in a ring of four only those half-way round do, which start at every other switch unless
    /// another dimension varies the parity.
    fn goes_on(&self, from: Address, d: usize, down: bool) -> bool {
        let axes = self.torus.axes();
        let axis = &axes[d];
        match (axis.wraps, axis.size) {
            (true, 3) => false,
            (true, 4) => {
                let others = axes.iter().enumerate().any(|(e, other)| e != d && other.size > 1);
                others || (axis.coordinate(from) & 1 == 1) == down
            }
            _ => true,
        }
    }
}

impl Axis {
    /// Whether the shorter way from `s` to `t` is down; `tie` where both are as long.
    fn shorter_way_is_down(&self, s: u32, t: u32, tie: bool) -> bool {
        if !self.wraps {
            return t < s;
        }
        let up = if t >= s { t - s } else { t + self.size - s };
        if 2 * up == self.size { tie } else { 2 * up > self.size }
    }
}

impl RoutedTopology for DimensionOrder {
    type Topology = Torus;

    #[inline]
    fn topology(&self) -> &Torus {
        &self.torus
    }
}

impl Routing for DimensionOrder {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        self.virtual_channels
    }

    #[inline]
    fn route(
        &self,
        at: AtSwitch,
        to: Address,
        state: &mut RouteState,
        _view: &mut impl LocalView,
    ) -> NextHop {
        let slot_mask = self.torus.slot_mask();
        let differ = (at.address.0 ^ to.0) & !slot_mask;
        if differ == 0 {
            return NextHop { port: PortId((to.0 & slot_mask) as u32), vc: at.vc };
        }
        if state.0 & PLANNED == 0 {
            *state = self.plan(at.address, to);
        }
        // Which dimension it is and what holds there, no processor can guess.
        let d = self.torus.first_dimension(differ);
        let axis = self.torus.axis(d);
        let down = state.0 >> (DOWN + d as u32) & 1 == 1;
        let port = self.torus.port(d, down);
        if self.virtual_channels == 1 {
            return NextHop { port, vc: VcId(0) };
        }
        let edge = select_unpredictable(down, 0, axis.size - 1);
        let at_dateline = axis.coordinate(at.address) == edge;
        let goes_on = at.port == self.torus.port(d, !down);
        let entered = VcId(state.0 >> (CHANNEL + d as u32) & 1);
        let vc = select_unpredictable(goes_on, at.vc, entered);
        NextHop { port, vc: select_unpredictable(at_dateline, VcId(1), vc) }
    }

    fn is_deterministic(&self) -> bool {
        true
    }
}

impl Ranked for DimensionOrder {
    fn rank(&self, channel: Channel) -> u64 {
        let Some((d, down)) = self.torus.direction(channel.port) else { return u64::MAX };
        let axis = &self.torus.axes()[d];
        let x = axis.coordinate(self.torus.switch_address(channel.switch));
        let travelled = if down { axis.size - 1 - x } else { x };
        let before: u64 = self.torus.axes()[..d].iter().map(|axis| 2 * u64::from(axis.size)).sum();
        before
            + match channel.vc.0 {
                0 => u64::from(travelled),
                _ => u64::from(axis.size + (travelled + 1) % axis.size),
            }
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let Some((d, down)) = self.torus.direction(channel.port) else { return };
        let Attachment::Switch(switch, _) = self.torus.peer(channel.switch, channel.port) else { return };
        let axis = &self.torus.axes()[d];
        let edge = if down { 0 } else { axis.size - 1 };
        let passes_dateline =
            |address| self.virtual_channels == 2 && axis.wraps && axis.coordinate(address) == edge;
        let from = self.torus.switch_address(channel.switch);
        let address = self.torus.switch_address(switch);
        if passes_dateline(from) && channel.vc == VcId(0) {
            return; // nothing passes the dateline on channel 0
        }
        // A packet on channel 1 has the dateline behind it or never meets it.
        let at_dateline = passes_dateline(address);
        let ends_here = at_dateline && channel.vc == VcId(1);
        if !ends_here && self.goes_on(from, d, down) && self.torus.neighbour(address, d, down).is_some() {
            let vc = if at_dateline { VcId(1) } else { channel.vc };
            visit(Channel { switch, port: channel.port, vc });
        }
        for d in d + 1..self.torus.axes().len() {
            for down in [false, true] {
                if self.torus.neighbour(address, d, down).is_some() {
                    for vc in 0..self.virtual_channels {
                        visit(Channel { switch, port: self.torus.port(d, down), vc: VcId(vc) });
                    }
                }
            }
        }
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}
