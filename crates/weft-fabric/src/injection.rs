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
        if let (1, Some(only)) = (self.staged.len(), self.staged.front()) {
            let vc = self.channel(only, plan);
            let can_go = self.credits[vc as usize].cover(constants.space(&only.packet));
            return can_go.then(|| self.take_one_of(1 << vc, (1 << vc, &[0; 64]), constants)).flatten();
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
        self.take_one_of(requests, (seen, &places), constants)
    }

    /// Takes the packet that goes, of those on the channels of `requests`.
    fn take_one_of(
        &mut self,
        requests: u64,
        (seen, places): (u64, &[usize; 64]),
        constants: &Constants,
    ) -> Option<(Staged, u8)> {
        let (requests, staged) = (&[requests], &self.staged);
        let requests = StagedRequests { requests, seen, places, staged, constants, random: None };
        let choice = InjectionChoice { arbiter: &mut self.arbiter, requests };
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
            Grouping::None => self.requests.first_of(u64::MAX),
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
    random: Option<Stream>,
}

impl StagedRequests<'_> {
    /// The channel of the packet that came first, of those with a bit in `mask`.
    fn first_of(&self, mask: u64) -> Option<usize> {
        let (mut bits, mut first) = (self.requests[0] & mask, None);
        while bits != 0 {
            let vc = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            if first.is_none_or(|first: usize| self.places[vc] < self.places[first]) {
                first = Some(vc);
            }
        }
        first
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
        let first = self.staged[0];
        self.random.get_or_insert_with(|| {
            Stream::new(first.came.as_ps(), first.packet.source.0.into(), PURPOSE_INJECTION)
        })
    }

    fn head_of(&mut self, group: usize, _: usize) -> GroupHead {
        let channels = self.constants.groups.channels(group);
        match self.first_of(channels) {
            Some(request) => GroupHead::Packet { request, bytes: self.bytes(request) },
            None if self.seen & channels != 0 => GroupHead::Blocked,
            None => GroupHead::Empty,
        }
    }
}
