//! UGAL-L on the HyperX: dimension order, or by way of a random switch where the queues say so.
//!
//! The source's switch draws another switch and compares its own two queues, each weighted with the hops of
//! its path. The packet goes in dimension order if
//!
//! ```text
//!   q_min · H_min  <=  q_non · H_non + threshold
//! ```
//! and otherwise in dimension order to the drawn switch, and from there likewise to its destination.
//!
//! ```text
//!   virtual channel 0: straight, and on the way to the drawn switch      virtual channel 1: from there on
//! ```
//! Every packet raises its channel's dimension, and begins anew only on the higher virtual channel.
//!
//! # Source
//! A. Singh, "Load-balanced routing in interconnection networks", PhD thesis, Stanford 2005 (UGAL); Ahn et
//! al., SC 2009, section 3.1 (Valiant on the HyperX, with two virtual channels).

use super::HyperX;
use crate::proof::{Channel, Ranked};
use crate::traits::{
    Address, AtSwitch, Attachment, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology,
};
use serde::{Deserialize, Serialize};
use weft_units::{SwitchId, VcId};

/// UGAL with local information.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HyperXUgal {
    hyperx: HyperX,
    threshold: u64,
}

impl HyperXUgal {
    /// UGAL-L on `hyperx`; `threshold` favours dimension order, in bytes times hops.
    pub fn new(hyperx: HyperX, threshold: u64) -> HyperXUgal {
        HyperXUgal { hyperx, threshold }
    }

    /// The address of the switch by way of which the packet is better off.
    #[inline]
    fn detour(&self, from: Address, to: Address, view: &mut impl LocalView) -> Option<Address> {
        let straight = self.hyperx.towards(from, to)?;
        let drawn = (u128::from(view.random()) * u128::from(self.hyperx.switches())) >> 64;
        let via = self.hyperx.switch_address(SwitchId(drawn as u32));
        // The source or the destination itself is no detour.
        let aside = self.hyperx.towards(from, via)?;
        let rest = self.hyperx.distance(via, to);
        let hops = u128::from(self.hyperx.distance(from, via) + rest);
        let minimal = u128::from(view.queued(straight)) * u128::from(self.hyperx.distance(from, to));
        let detour = u128::from(view.queued(aside)) * hops;
        (rest > 0 && minimal > detour + u128::from(self.threshold)).then_some(via)
    }

    /// The state of a packet that goes by way of the switch at `via`: its coordinates plus one.
    #[inline]
    fn remember(&self, via: Address) -> RouteState {
        // Rows of five waste most of their fields, three bits each: 2^24 switches take at most 31 bits.
        RouteState((via.0 >> self.hyperx.rows[0].shift) as u32 + 1)
    }

    /// The switch by way of which the packet goes, before it is there.
    #[inline]
    fn via(&self, state: RouteState) -> Option<Address> {
        let fields = state.0.checked_sub(1)?;
        Some(Address(u64::from(fields) << self.hyperx.rows[0].shift))
    }
}

impl RoutedTopology for HyperXUgal {
    type Topology = HyperX;

    #[inline]
    fn topology(&self) -> &HyperX {
        &self.hyperx
    }
}

impl Routing for HyperXUgal {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        2
    }

    #[inline]
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        let injected = at.port.0 < self.hyperx.concentration();
        if injected && let Some(via) = self.detour(at.address, to, view) {
            *state = self.remember(via);
        }
        let mut vc = at.vc;
        let towards = self.via(*state).and_then(|via| {
            let port = self.hyperx.towards(at.address, via);
            if port.is_none() {
                *state = RouteState::default();
                vc = VcId(1);
            }
            port
        });
        NextHop { port: towards.unwrap_or_else(|| self.hyperx.next_port(at.address, to)), vc }
    }

    fn is_deterministic(&self) -> bool {
        false
    }
}

impl Ranked for HyperXUgal {
    fn rank(&self, channel: Channel) -> u64 {
        self.hyperx.channel_rank(channel)
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let Attachment::Switch(next, _) = self.peer(channel.switch, channel.port) else { return };
        let Some(dimension) = self.hyperx.dimension(channel.port) else { return };
        self.hyperx.channels_from((next, dimension + 1), channel.vc, visit);
        if channel.vc == VcId(0) {
            self.hyperx.channels_from((next, 0), VcId(1), visit);
        }
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        Some(self.hyperx.channels_of_each_kind(2))
    }
}
