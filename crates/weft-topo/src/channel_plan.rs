//! The virtual channels of a link: those of the routing, in lanes, for each traffic class.
//!
//! ```text
//!   number = class · (R · L)  +  lane · R  +  r
//!
//!   R = 2, L = 2, two classes:     ┌── class 0 ──┬── class 1 ──┐
//!                                  │ lane 0 lane 1│ lane 0 lane 1│
//!                                r │  0 1    0 1 │  0 1    0 1 │
//!                           number │  0 1    2 3 │  4 5    6 7 │
//! ```
//! A routing needs R channels so that no packets wait for each other in a circle. More channels are copies of
//! these: *lanes*, so that fewer packets stand behind one that cannot go on. Each traffic class has lanes of
//! its own. The routing sees r alone.
//!
//! # Source
//! Dally, "Virtual-Channel Flow Control", IEEE TPDS 1992: channels beyond those that break cycles, shared by
//! its classes, raise the throughput.

use crate::Address;
use crate::proof::{Channel, Ranked};
use crate::traits::{AtSwitch, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology};
use serde::{Deserialize, Serialize};
use weft_units::VcId;

weft_keys::words! {
    /// The rule by which a packet takes its lane.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub enum LaneChoice: "LaneChoice", "a way to take a lane" {
        /// By a hash of source and destination, for the whole way: packets of a pair stay in order.
        #[default]
        Flow = "flow",
        /// At each hop the lane with most room behind the link: packets of a pair may overtake each other.
        Room = "room",
    }
}

/// The virtual channels of a link, and their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChannelPlan {
    /// R: channels that the routing needs.
    pub routing: u32,
    /// L: lanes of each traffic class.
    pub lanes: u32,
    /// Traffic classes.
    pub classes: u32,
    /// How packets take their lane.
    pub lane: LaneChoice,
}

/// A number of virtual channels that a routing and the traffic classes cannot use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{total} virtual channels cannot be shared evenly: {classes} traffic classes need {routing} each for \
     their routing; write a multiple of {}, such as {}",
    .routing * .classes,
    (.routing * .classes) * (.total / (.routing * .classes) + 1)
)]
pub struct UnevenChannels {
    /// The number.
    pub total: u32,
    /// Channels that the routing needs.
    pub routing: u32,
    /// Traffic classes.
    pub classes: u32,
}

impl ChannelPlan {
    /// `total` virtual channels for a routing that needs `routing`, and so many `classes`, all at least 1.
    /// Without a total: as many as these need.
    ///
    /// # Errors
    /// A total that is no multiple of what one lane of each class takes.
    pub fn new(
        total: Option<u32>,
        routing: u32,
        classes: u32,
        lane: LaneChoice,
    ) -> Result<ChannelPlan, UnevenChannels> {
        let needed = routing.max(1) * classes.max(1);
        let total = total.unwrap_or(needed);
        if total == 0 || !total.is_multiple_of(needed) {
            return Err(UnevenChannels { total, routing, classes });
        }
        Ok(ChannelPlan { routing: routing.max(1), lanes: total / needed, classes: classes.max(1), lane })
    }

    /// All virtual channels of a link.
    pub fn total(&self) -> u32 {
        self.routing * self.lanes * self.classes
    }

    /// Whether there are no channels but the routing's.
    pub fn is_plain(&self) -> bool {
        self.total() == self.routing
    }

    /// Whether packets of one pair and class may take different lanes.
    pub fn mixes_lanes(&self) -> bool {
        self.lanes > 1 && self.lane == LaneChoice::Room
    }

    /// The channel that the routing knows a channel as.
    #[inline]
    pub fn of_routing(&self, vc: u32) -> u32 {
        vc % self.routing
    }

    /// The class of a channel.
    #[inline]
    pub fn class(&self, vc: u32) -> u32 {
        vc / (self.routing * self.lanes)
    }

    /// The channel of a class and lane that the routing knows as `r`.
    #[inline]
    pub fn channel(&self, class: u32, lane: u32, r: u32) -> u32 {
        (class * self.lanes + lane) * self.routing + r
    }

    /// The lane of a channel.
    #[inline]
    pub fn lane(&self, vc: u32) -> u32 {
        vc / self.routing % self.lanes
    }

    /// The channel of another lane of the same class that the routing knows as the same.
    #[inline]
    pub fn in_lane(&self, vc: u32, lane: u32) -> u32 {
        self.channel(self.class(vc), lane, self.of_routing(vc))
    }

    /// The virtual channels of a class.
    pub fn of_class(&self, class: u32) -> std::ops::Range<u32> {
        self.channel(class, 0, 0)..self.channel(class + 1, 0, 0)
    }

    /// The lane of the packets from one endpoint to another, where they keep one.
    #[inline]
    pub fn lane_of_flow(&self, source: u32, destination: u32) -> u32 {
        // The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit of the pair moves every bit of it.
        let mut mixed = u64::from(source) << 32 | u64::from(destination);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (((mixed >> 32) * u64::from(self.lanes)) >> 32) as u32
    }
}

/// A layout with all the virtual channels of a plan, for the deadlock proof.
#[derive(Clone, Debug)]
pub struct WithChannels<L> {
    /// The layout, which knows the channels of its routing.
    pub layout: L,
    /// All channels.
    pub plan: ChannelPlan,
}

impl<L: Topology + Routing> Routing for WithChannels<&L> {
    fn virtual_channels(&self) -> u32 {
        self.plan.total()
    }

    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        let came = at.vc.0;
        let at = AtSwitch { vc: VcId(self.plan.of_routing(came)), ..at };
        let NextHop { port, vc } = self.layout.route(at, to, state, view);
        NextHop { port, vc: VcId(came - at.vc.0 + vc.0) }
    }

    fn is_deterministic(&self) -> bool {
        self.layout.is_deterministic() && !self.plan.mixes_lanes()
    }
}

impl<L: Topology + Routing> RoutedTopology for WithChannels<&L> {
    type Topology = L;

    fn topology(&self) -> &L {
        self.layout
    }
}

impl<L: Topology + Ranked> Ranked for WithChannels<&L> {
    fn rank(&self, channel: Channel) -> u64 {
        self.layout.rank(Channel { vc: VcId(self.plan.of_routing(channel.vc.0)), ..channel })
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let plan = self.plan;
        let (class, lane) = (plan.class(channel.vc.0), plan.lane(channel.vc.0));
        let lanes = if plan.mixes_lanes() { 0..plan.lanes } else { lane..lane + 1 };
        let of_routing = Channel { vc: VcId(plan.of_routing(channel.vc.0)), ..channel };
        self.layout.successors(of_routing, &mut |next| {
            let in_lane = |lane| VcId(plan.channel(class, lane, next.vc.0));
            lanes.clone().for_each(|lane| visit(Channel { vc: in_lane(lane), ..next }));
        });
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        let (plan, few) = (self.plan, self.layout.representatives()?);
        let copies = (0..plan.classes).flat_map(|class| (0..plan.lanes).map(move |lane| (class, lane)));
        let of_copy = |(class, lane)| {
            let channel = move |known: &Channel| VcId(plan.channel(class, lane, known.vc.0));
            few.iter().map(move |known| Channel { vc: channel(known), ..*known }).collect::<Vec<_>>()
        };
        Some(copies.flat_map(of_copy).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Method, TopologyParameters, prove};

    fn plans(routing: u32) -> Vec<ChannelPlan> {
        let shapes = [(1, 1), (2, 1), (1, 2), (3, 2), (2, 4)];
        let of_choice = |lane| {
            shapes.map(|(lanes, classes)| {
                ChannelPlan::new(Some(routing * lanes * classes), routing, classes, lane).unwrap()
            })
        };
        [LaneChoice::Flow, LaneChoice::Room].into_iter().flat_map(of_choice).collect()
    }

    /// Catches two channels of one number, and a number that is read as another channel.
    #[test]
    fn a_number_is_one_channel() {
        for plan in (1..5).flat_map(plans) {
            let mut numbers = Vec::new();
            for (class, lane) in (0..plan.classes).flat_map(|c| (0..plan.lanes).map(move |l| (c, l))) {
                for r in 0..plan.routing {
                    let vc = plan.channel(class, lane, r);
                    assert_eq!((plan.class(vc), plan.lane(vc), plan.of_routing(vc)), (class, lane, r));
                    assert!(plan.of_class(class).contains(&vc));
                    numbers.push(vc);
                }
            }
            assert_eq!(numbers, (0..plan.total()).collect::<Vec<_>>());
        }
    }

    /// Catches a total that leaves a class or a lane without a channel of the routing.
    #[test]
    fn an_uneven_number_is_refused_with_those_that_fit() {
        let new = |total, routing, classes| ChannelPlan::new(total, routing, classes, LaneChoice::Flow);
        assert_eq!(new(None, 2, 3).unwrap().total(), 6);
        assert_eq!(new(Some(12), 2, 3).unwrap().lanes, 2);
        let error = new(Some(7), 2, 3).unwrap_err().to_string();
        assert!(error.ends_with("write a multiple of 6, such as 12"), "{error}");
        assert!(new(Some(0), 1, 1).is_err());
    }

    /// Catches a lane that most flows share.
    #[test]
    fn flows_are_spread_over_the_lanes() {
        let plan = ChannelPlan::new(Some(4), 1, 1, LaneChoice::Flow).unwrap();
        let mut flows = [0u32; 4];
        for (source, destination) in (0..64).flat_map(|s| (0..64).map(move |d| (s, d))) {
            flows[plan.lane_of_flow(source, destination) as usize] += 1;
        }
        assert!(flows.iter().all(|&lane| (900..1150).contains(&lane)), "{flows:?}");
    }

    /// Catches lanes or classes that break the proof of a routing, mend one that deadlocks, or leave out
    /// channels: the proof holds for all of them exactly where it holds for the routing's.
    #[test]
    fn the_proof_holds_for_all_channels_where_it_holds_for_the_routings() {
        for parameters in TopologyParameters::examples() {
            let layout = parameters.build().unwrap();
            if layout.endpoints() > 64 {
                continue;
            }
            let alone = prove(&layout);
            for plan in plans(layout.virtual_channels()) {
                let all = prove(&WithChannels { layout: &layout, plan });
                assert_eq!(alone.is_ok(), all.is_ok(), "{parameters:?} {plan:?}");
                let (Ok(alone), Ok(all)) = (&alone, &all) else { continue };
                let copies = u64::from(plan.lanes * plan.classes);
                let ways = if plan.mixes_lanes() { u64::from(plan.lanes) } else { 1 };
                assert_eq!(all.channels, alone.channels * copies);
                if all.method == Method::Ranks && alone.method == Method::Ranks {
                    assert_eq!(all.turns, alone.turns * copies * ways);
                }
            }
        }
    }
}
