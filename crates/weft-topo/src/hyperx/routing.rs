//! Routings of the HyperX: dimension order, and UGAL, which leaves it where the queues say so.
//!
//! In dimension order a packet takes a link for each coordinate that differs, the lowest dimension first.
//! With UGAL-L the source's switch also draws another switch, and compares its own two queues, each weighted
//! with the hops of its path. The packet goes straight if
//!
//! ```text
//!   q_min · H_min  <=  q_non · H_non + threshold
//! ```
//! and otherwise in dimension order to the drawn switch, and from there in dimension order on.
//!
//! UGAL-G knows all queues of both paths, and compares their sums: a queue at its own switch as it is, one of
//! another switch as that has last published it.
//!
//! ```text
//!   source's switch ▢▢ ---> ▢▢▢▢▢ switch ---> destination's switch       Σq = 2 + 5, in place of 2 · 2
//! ```
//! ```text
//!   virtual channel 0: straight, and on the way to the drawn switch    virtual channel 1: from there on
//! ```
//! Channels are ranked by virtual channel, then by dimension: every hop of a packet raises the rank.
//! Dimension order alone needs one virtual channel.
//!
//! # Source
//! J. H. Ahn et al., SC 2009, section 3.1 (dimension order; Valiant, with two virtual channels). For rows of
//! two dimension order is e-cube routing: H. Sullivan, T. R. Bashkow, ISCA 1977. A. Singh, "Load-balanced
//! routing in interconnection networks", PhD thesis, Stanford 2005 (UGAL). That UGAL-G adds up the queues of
//! a path is ours: q · H is what a switch that knows the first of them takes the sum for.

use super::HyperX;
use crate::choice::below;
use crate::family::RoutingWord;
use crate::proof::{Channel, Ranked};
use crate::routings;
use crate::traits::{
    Address, AtSwitch, Attachment, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology,
};
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, PortId, SwitchId, VcId};

routings! {
    /// Routings of a HyperX.
    #[derive(Copy)]
    pub enum HyperXRouting {
        /// A link for each coordinate that differs, the lowest dimension first.
        DimensionOrder = "dimension-order",
        /// Dimension order, or by way of a random switch where the local queues say that it is faster.
        UgalL = "ugal-l" {
            /// Bias towards the minimal path, in bytes × hops; 0 where not given.
            ugal_threshold: Bytes = Bytes::ZERO;
        },
        /// As UGAL-L, with all queues of both paths, as switches publish them.
        UgalG = "ugal-g" {
            /// Bias towards the minimal path, in bytes × hops; 0 where not given.
            ugal_threshold: Bytes = Bytes::ZERO;
        },
    }
    looks_at_published_queues: UgalG;
}

impl HyperXRouting {
    /// Virtual channels that it needs.
    #[inline]
    pub(super) fn virtual_channels(self) -> u32 {
        match self {
            HyperXRouting::DimensionOrder => 1,
            HyperXRouting::UgalL { .. } | HyperXRouting::UgalG { .. } => 2,
        }
    }

    /// The threshold of a routing that takes detours.
    #[inline]
    fn threshold(self) -> Option<Bytes> {
        match self {
            HyperXRouting::DimensionOrder => None,
            HyperXRouting::UgalL { ugal_threshold } | HyperXRouting::UgalG { ugal_threshold } => {
                Some(ugal_threshold)
            }
        }
    }
}

/// A HyperX with one of its routings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HyperXLayout {
    hyperx: HyperX,
    routing: HyperXRouting,
}

impl HyperXLayout {
    /// One of the routings on `hyperx`.
    pub fn new(hyperx: HyperX, routing: HyperXRouting) -> HyperXLayout {
        HyperXLayout { hyperx, routing }
    }

    /// The routing.
    pub fn routing(&self) -> HyperXRouting {
        self.routing
    }

    /// The address of the switch by way of which the packet is better off.
    #[inline]
    fn detour(
        &self,
        (from, to): (Address, Address),
        threshold: Bytes,
        view: &mut impl LocalView,
    ) -> Option<Address> {
        let straight = self.hyperx.towards(from, to)?;
        let drawn = below(self.hyperx.switches(), view.random());
        let via = self.hyperx.switch_address(SwitchId(drawn));
        // The source or the destination itself is no detour.
        let aside = self.hyperx.towards(from, via)?;
        let rest = self.hyperx.distance(via, to);
        if rest == 0 {
            return None;
        }
        let (minimal, detour) = match self.routing {
            HyperXRouting::UgalG { .. } => (
                self.queued_on_way(from, (from, to), view),
                self.queued_on_way(from, (from, via), view) + self.queued_on_way(from, (via, to), view),
            ),
            HyperXRouting::DimensionOrder | HyperXRouting::UgalL { .. } => {
                let hops = u128::from(self.hyperx.distance(from, via) + rest);
                let minimal = u128::from(view.queued(straight)) * u128::from(self.hyperx.distance(from, to));
                (minimal, u128::from(view.queued(aside)) * hops)
            }
        };
        (minimal > detour + u128::from(threshold.get())).then_some(via)
    }

    /// Bytes before all links of the way in dimension order from one switch to another, as that at `own` sees
    /// them.
    fn queued_on_way(&self, own: Address, way: (Address, Address), view: &impl LocalView) -> u128 {
        let (mut at, to) = way;
        let mut sum = 0;
        for row in &self.hyperx.rows {
            let (here, there) = (row.coordinate(at), row.coordinate(to));
            if here == there {
                continue;
            }
            let port = row.port(here, there);
            sum += u128::from(match at == own {
                true => view.queued(port),
                false => view.published(self.hyperx.switch_at(at), port),
            });
            at = Address(at.0 ^ u64::from(here ^ there) << row.shift);
        }
        sum
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

    /// Calls `visit` with the channels `vc` of a switch in all dimensions from `first` on.
    fn channels(&self, (switch, first): (SwitchId, usize), vc: VcId, visit: &mut impl FnMut(Channel)) {
        let ports = self.hyperx.ports;
        let first_port = self.hyperx.rows.get(first).map_or(ports, |row| row.first_port);
        (first_port..ports).for_each(|port| visit(Channel { switch, port: PortId(port), vc }));
    }
}

impl RoutedTopology for HyperXLayout {
    type Topology = HyperX;

    #[inline]
    fn topology(&self) -> &HyperX {
        &self.hyperx
    }
}

impl Routing for HyperXLayout {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        self.routing.virtual_channels()
    }

    /// State: the switch by way of which the packet goes, until it is there.
    #[inline]
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        let injected = at.port.0 < self.hyperx.concentration();
        if let (Some(threshold), true) = (self.routing.threshold(), injected)
            && let Some(via) = self.detour((at.address, to), threshold, view)
        {
            *state = self.remember(via);
        }
        let mut vc = at.vc;
        if let Some(via) = self.via(*state) {
            match self.hyperx.towards(at.address, via) {
                Some(port) => return NextHop { port, vc },
                None => (*state, vc) = (RouteState::default(), VcId(1)),
            }
        }
        let own = PortId((to.0 & self.hyperx.slot_mask()) as u32);
        NextHop { port: self.hyperx.towards(at.address, to).unwrap_or(own), vc }
    }

    fn is_deterministic(&self) -> bool {
        self.routing == HyperXRouting::DimensionOrder
    }

    fn needs_published_queues(&self) -> bool {
        self.routing.needs_published_queues()
    }
}

impl Ranked for HyperXLayout {
    fn rank(&self, channel: Channel) -> u64 {
        let dimension = self.hyperx.dimension(channel.port).unwrap_or_default() as u64;
        u64::from(channel.vc.0) * self.hyperx.rows.len() as u64 + dimension
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let Attachment::Switch(next, _) = self.peer(channel.switch, channel.port) else { return };
        let Some(dimension) = self.hyperx.dimension(channel.port) else { return };
        self.channels((next, dimension + 1), channel.vc, visit);
        if channel.vc.0 + 1 < self.virtual_channels() {
            self.channels((next, 0), VcId(channel.vc.0 + 1), visit);
        }
    }

    /// Every channel of the first switch: the machine looks the same from all switches.
    fn representatives(&self) -> Option<Vec<Channel>> {
        let mut channels = Vec::new();
        for vc in (0..self.virtual_channels()).map(VcId) {
            self.channels((SwitchId(0), 0), vc, &mut |channel| channels.push(channel));
        }
        Some(channels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_units::EndpointId;

    /// Queues of so many bytes at two ports; random numbers that draw one switch.
    struct Queues([(PortId, u64); 2], u64);

    impl LocalView for Queues {
        fn queued(&self, port: PortId) -> u64 {
            self.0.iter().find(|(other, _)| *other == port).map_or(0, |(_, bytes)| *bytes)
        }

        fn random(&mut self) -> u64 {
            self.1
        }
    }

    /// The switches on the way of a packet, and the virtual channels that it takes between them.
    fn way(layout: &HyperXLayout, queues: &mut Queues, to: EndpointId) -> (Vec<u32>, Vec<u32>) {
        let target = layout.endpoint_address(to);
        let (mut switch, mut port) = layout.attachment(EndpointId(0));
        let (mut vc, mut state) = (VcId(0), RouteState::default());
        let (mut switches, mut channels) = (vec![switch.0], vec![]);
        loop {
            let at = AtSwitch { switch, address: layout.switch_address(switch), port, vc };
            let next = layout.route(at, target, &mut state, queues);
            match layout.peer(switch, next.port) {
                Attachment::Switch(other, came_by) => (switch, port, vc) = (other, came_by, next.vc),
                _ => return (switches, channels),
            }
            switches.push(switch.0);
            channels.push(vc.0);
        }
    }

    /// Catches a detour that the queues do not ask for, one that goes another way than by the drawn switch,
    /// and one whose second part shares a virtual channel with the first parts of others.
    #[test]
    fn ugal_goes_by_way_of_the_drawn_switch_past_a_long_queue() {
        let ugal = |bytes| HyperXRouting::UgalL { ugal_threshold: Bytes::new(bytes) };
        let layout = |routing| HyperXLayout::new(HyperX::new(&[4, 4], 1).unwrap(), routing);
        // From 0 to 15: by 3. The random number draws switch 9 = (1, 2), which lies behind port 1.
        let drawn = (u64::MAX / 16) * 9 + u64::MAX / 32;
        let queues = |minimal, detour| Queues([(PortId(3), minimal), (PortId(1), detour)], drawn);
        let straight = (vec![0, 3, 15], vec![0, 0]);
        let around = (vec![0, 1, 9, 11, 15], vec![0, 0, 1, 1]);
        let to = EndpointId(15);
        assert_eq!(way(&layout(ugal(0)), &mut queues(0, 0), to), straight);
        assert_eq!(way(&layout(ugal(0)), &mut queues(1, 0), to), around);
        // Two hops against four.
        assert_eq!(way(&layout(ugal(0)), &mut queues(200, 100), to), straight);
        assert_eq!(way(&layout(ugal(0)), &mut queues(201, 100), to), around);
        assert_eq!(way(&layout(ugal(2)), &mut queues(201, 100), to), straight);
        assert_eq!(way(&layout(HyperXRouting::DimensionOrder), &mut queues(9999, 0), to), straight);
    }

    /// Own queues, and those of other switches, of so many bytes; random numbers that draw one switch.
    struct Known {
        own: Vec<(PortId, u64)>,
        published: Vec<(SwitchId, PortId, u64)>,
        rng: u64,
    }

    impl LocalView for Known {
        fn queued(&self, port: PortId) -> u64 {
            self.own.iter().find(|(other, _)| *other == port).map_or(0, |(_, bytes)| *bytes)
        }

        fn published(&self, switch: SwitchId, port: PortId) -> u64 {
            let place = |&&(other, at, _): &&(SwitchId, PortId, u64)| (other, at) == (switch, port);
            self.published.iter().find(place).map_or(0, |(_, _, bytes)| *bytes)
        }

        fn random(&mut self) -> u64 {
            self.rng
        }
    }

    /// Catches a link of either path whose queue UGAL-G does not count, one that it counts twice, a queue of
    /// another switch that is taken for its own, and a sum that is weighted with hops.
    #[test]
    fn ugal_g_compares_the_sums_of_all_queues_of_both_paths() {
        let layout = |bytes| {
            let routing = HyperXRouting::UgalG { ugal_threshold: Bytes::new(bytes) };
            HyperXLayout::new(HyperX::new(&[4, 4], 1).unwrap(), routing)
        };
        let (from, to) = (Address(0), layout(0).endpoint_address(EndpointId(15)));
        // Straight by 3; aside by 1, 9 = (1, 2), 11 = (3, 2).
        let rng = (u64::MAX / 16) * 9 + u64::MAX / 32;
        let straight = [(SwitchId(0), PortId(3)), (SwitchId(3), PortId(6))];
        let aside = [
            (SwitchId(0), PortId(1)),
            (SwitchId(1), PortId(5)),
            (SwitchId(9), PortId(3)),
            (SwitchId(11), PortId(6)),
        ];
        let known = |queues: &[((SwitchId, PortId), u64)]| {
            let own = queues.iter().filter(|((switch, _), _)| switch.0 == 0);
            let others = queues.iter().filter(|((switch, _), _)| switch.0 != 0);
            Known {
                own: own.map(|&((_, port), bytes)| (port, bytes)).collect(),
                published: others.map(|&((switch, port), bytes)| (switch, port, bytes)).collect(),
                rng,
            }
        };
        let detours = |threshold, queues: &[((SwitchId, PortId), u64)]| {
            let threshold_bytes = Bytes::new(threshold);
            layout(threshold).detour((from, to), threshold_bytes, &mut known(queues)).is_some()
        };
        for place in straight {
            assert!(detours(0, &[(place, 1)]), "{place:?}");
            assert!(!detours(1, &[(place, 1)]), "{place:?}");
            for other in aside {
                assert!(!detours(0, &[(place, 7), (other, 7)]), "{place:?} {other:?}");
                assert!(detours(0, &[(place, 8), (other, 7)]), "{place:?} {other:?}");
            }
        }
        let all: Vec<_> = aside.map(|place| (place, 10)).to_vec();
        assert!(!detours(0, &[vec![(straight[0], 20), (straight[1], 20)], all.clone()].concat()));
        assert!(detours(0, &[vec![(straight[0], 20), (straight[1], 21)], all].concat()));
    }
}
