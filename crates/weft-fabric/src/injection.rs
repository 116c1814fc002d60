//! Injection on several virtual channels: a place and credits for each traffic class.
//!
//! ```text
//!   interface ── class 0 ──► ▢ ─┐ credits of class 0's lanes
//!             ── class 1 ──► ▢ ─┼──► arbiter of the switches ──► line ──► switch
//!             ── class 2 ──► ▢ ─┘
//! ```
//! The interface is asked for packets of the classes whose places are free ([`InterfaceContext::admits`]), so
//! that a packet without credit keeps no other class from going. A class has as many places as lanes: among
//! its packets those of one lane stay in order. Whoever can go is chosen as in a switch: by strict priority,
//! in the ratio of weights, or else the first that came. With one channel none of this exists: see
//! [`Endpoint`](crate::endpoint::Endpoint).
//!
//! [`InterfaceContext::admits`]: crate::InterfaceContext::admits

use crate::arbiter::{
    ArbiterState, ArbiterUser, GroupHead, Grouping, OutputRequests, Remembered, RequestGroups,
};
use crate::constants::Constants;
use crate::credit::Credits;
use crate::packet::Packet;
use crate::traffic_class::MAX_CLASSES;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_engine::Stream;
use weft_topo::{ChannelPlan, LinkClass};
use weft_units::Time;

/// Keys the random streams of arbiters at endpoints.
const PURPOSE_INJECTION: u32 = 41;

/// A packet that the interface has handed over.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Staged {
    pub(crate) packet: Packet,
    /// The time of that.
    pub(crate) came: Time,
    /// The traffic class.
    class: u8,
}

/// The places and credits of an endpoint with several channels.
#[derive(Serialize, Deserialize)]
pub(crate) struct InjectionChannels {
    /// By virtual channel: space in the switch's input buffer.
    pub(crate) credits: Box<[Credits]>,
    /// In the order in which they came.
    staged: VecDeque<Staged>,
    /// By traffic class: how many of these are of it.
    taken: [u32; MAX_CLASSES],
    /// Whether a packet could go but for credits.
    pub(crate) stalls: bool,
    arbiter: Option<Box<ArbiterState>>,
}

impl InjectionChannels {
    /// The channels of an endpoint behind a link of this class; `None`: there is one.
    pub(crate) fn new(link: LinkClass, constants: &Constants) -> Option<Box<InjectionChannels>> {
        (!constants.plain_channels).then(|| InjectionChannels::for_all(link, constants))
    }

    /// The channels of an endpoint, also if there is one.
    pub(crate) fn for_all(link: LinkClass, constants: &Constants) -> Box<InjectionChannels> {
        Box::new(InjectionChannels {
            credits: (0..constants.vcs as u8).map(|vc| constants.initial_credits(vc)).collect(),
            staged: VecDeque::new(),
            taken: [0; MAX_CLASSES],
            stalls: false,
            arbiter: constants.arbiter_state(&[link]),
        })
    }

    /// Packets that wait.
    pub(crate) fn staged(&self) -> usize {
        self.staged.len()
    }

    /// A bit for each class that has a free place; `None`: one has more packets than places, since the
    /// interface does not ask whether it may.
    pub(crate) fn free_places(&self, plan: &ChannelPlan) -> Option<u8> {
        if self.staged.is_empty() {
            return Some((1u16 << plan.classes).wrapping_sub(1) as u8);
        }
        let mut free = 0;
        for (class, taken) in self.taken[..plan.classes as usize].iter().enumerate() {
            if *taken > plan.lanes {
                return None;
            }
            free |= u8::from(*taken < plan.lanes) << class;
        }
        Some(free)
    }

    /// The interface has handed over a packet.
    pub(crate) fn stage(&mut self, packet: Packet, came: Time, constants: &Constants) {
        let class = constants.switch.channels.classes.of(&packet);
        self.taken[usize::from(class)] += 1;
        self.staged.push_back(Staged { packet, came, class });
    }

    /// The channel that a packet would take now.
    fn channel(&self, staged: &Staged, plan: &ChannelPlan) -> u32 {
        let Packet { source, destination, .. } = staged.packet;
        let class = u32::from(staged.class);
        let mut lane = plan.lane_of_flow(source.0, destination.0);
        if plan.mixes_lanes() {
            let space = |lane: u32| self.credits[plan.channel(class, lane, 0) as usize].units();
            let others = (1..plan.lanes).map(|step| (lane + step) % plan.lanes);
            lane = others.fold(lane, |most, other| if space(other) > space(most) { other } else { most });
        }
        plan.channel(class, lane, 0)
    }

    /// Takes the packet from a place.
    #[inline]
    fn unstage(&mut self, place: usize) -> Option<Staged> {
        let taken = self.staged.remove(place)?;
        self.taken[usize::from(taken.class)] -= 1;
        Some(taken)
    }

    /// Takes the packet that goes now, with its channel. All credits that have returned must have been
    /// counted.
    pub(crate) fn take(&mut self, constants: &Constants) -> Option<(Staged, u8)> {
        let plan = &constants.plan;
        if self.staged.len() == 1 && constants.groups.count() == 0 {
            let vc = self.channel(&self.staged[0], plan);
            let space = constants.space(&self.staged[0].packet);
            return self.credits[vc as usize]
                .cover(space)
                .then(|| self.unstage(0))
                .flatten()
                .map(|only| (only, vc as u8));
        }
        // By channel, or by class where lanes are chosen here: the first in its order, if it has credit.
        let (mut seen, mut requests) = (0u64, 0u64);
        let mut places = [0usize; 64];
        for (place, staged) in self.staged.iter().enumerate() {
            let vc = self.channel(staged, plan);
            let order = if plan.mixes_lanes() { plan.channel(staged.class.into(), 0, 0) } else { vc };
            if seen >> order & 1 == 0 {
                seen |= 1 << order;
                if self.credits[vc as usize].cover(constants.space(&staged.packet)) {
                    requests |= 1 << vc;
                    places[vc as usize] = place;
                }
            }
        }
        if requests == 0 {
            return None;
        }
        let (requests, staged) = (&[requests], &self.staged);
        let first = staged[0];
        let random = Stream::new(first.came.as_ps(), first.packet.source.0.into(), PURPOSE_INJECTION);
        let staged = StagedRequests { requests, seen, places: &places, staged, constants, random };
        let choice = InjectionChoice { arbiter: &mut self.arbiter, requests: staged };
        let vc = constants.switch.arbiter.lend_to(choice)?;
        Some((self.unstage(places[vc])?, vc as u8))
    }
}

/// An endpoint that chooses, whatever the arbiter.
struct InjectionChoice<'a> {
    arbiter: &'a mut Option<Box<ArbiterState>>,
    requests: StagedRequests<'a>,
}

impl ArbiterUser for InjectionChoice<'_> {
    type Output = Option<usize>;

    fn with<A: Remembered>(mut self) -> Option<usize> {
        match A::PROPERTIES.grouping {
            Grouping::None => self.requests.first_of(|_| true),
            _ => A::lend(self.arbiter, |arbiter| arbiter.choose(0, &mut self.requests)),
        }
    }
}

/// The packets that an endpoint could send, as the arbiter sees them: the numbers of requests are those of
/// virtual channels. Of each class the first that came goes first.
struct StagedRequests<'a> {
    /// A bit for each channel with a packet that can go.
    requests: &'a [u64],
    /// A bit for each order in which packets wait.
    seen: u64,
    /// By channel: the place of its packet.
    places: &'a [usize],
    staged: &'a VecDeque<Staged>,
    constants: &'a Constants,
    random: Stream,
}

impl StagedRequests<'_> {
    /// The packet that came first on the channels of these.
    fn first_of(&self, is_one: impl Fn(usize) -> bool) -> Option<usize> {
        let requested = (0..64).filter(|&vc| self.requests[0] >> vc & 1 == 1 && is_one(vc));
        requested.min_by_key(|&vc| self.places[vc])
    }

    fn packet(&self, vc: usize) -> &Packet {
        &self.staged[self.places[vc]].packet
    }
}

impl<'a> OutputRequests<'a> for StagedRequests<'a> {
    fn all(&self) -> &'a [u64] {
        self.requests
    }

    fn groups(&self) -> &'a RequestGroups {
        &self.constants.groups
    }

    fn can_go(&mut self, _: usize) -> bool {
        true
    }

    /// Packets get their age on the way.
    fn age(&self, _: usize) -> u64 {
        0
    }

    fn bytes(&self, vc: usize) -> u64 {
        self.constants.packet_bytes(self.packet(vc)).get()
    }

    /// An endpoint keeps no turns.
    fn turn(&self) -> usize {
        0
    }

    fn take_turn(&mut self, _: usize) {}

    fn random(&mut self) -> &mut Stream {
        &mut self.random
    }

    fn head_of(&mut self, group: usize, _: usize) -> GroupHead {
        let groups = self.groups();
        match self.first_of(|vc| groups.holds(group, vc)) {
            Some(request) => GroupHead::Packet { request, bytes: self.bytes(request) },
            None if self.seen & groups.channels(group) != 0 => GroupHead::Blocked,
            None => GroupHead::Empty,
        }
    }
}
