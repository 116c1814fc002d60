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

use crate::arbiter::ArbiterState;
use crate::arbiter::weighted_round_robin::ClassHead;
use crate::constants::Constants;
use crate::credit::Credits;
use crate::packet::Packet;
use crate::traffic_class::MAX_CLASSES;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_topo::{ChannelPlan, LinkClass};
use weft_units::Time;

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
            arbiter: ArbiterState::new(constants.switch.arbiter, [link].into_iter(), &constants.groups),
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

    /// The same as [`InjectionChannels::take`] where a single packet waits and no arbiter weighs bytes.
    #[inline]
    fn take_only(&mut self, constants: &Constants) -> Option<(Staged, u8)> {
        let only = self.staged.front()?;
        let vc = self.channel(only, &constants.plan);
        if !self.credits[vc as usize].cover(constants.space(&only.packet)) {
            return None;
        }
        if let Some(ArbiterState::StrictPriority(arbiter)) = self.arbiter.as_deref_mut() {
            arbiter.choose(0, &[1 << vc], &constants.groups, |_| true);
        }
        Some((self.unstage(0)?, vc as u8))
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
        let weighs = |arbiter: &ArbiterState| {
            !matches!(arbiter, ArbiterState::Islip(_) | ArbiterState::StrictPriority(_))
        };
        if self.staged.len() == 1 && !self.arbiter.as_deref().is_some_and(weighs) {
            return self.take_only(constants);
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
        let groups = &constants.groups;
        let first = || (0..64).filter(|&vc| requests >> vc & 1 == 1).min_by_key(|&vc| places[vc]);
        let staged = &self.staged;
        let arbiter =
            self.arbiter.as_deref_mut().filter(|arbiter| !matches!(arbiter, ArbiterState::Islip(_)));
        let vc = match arbiter {
            Some(ArbiterState::StrictPriority(arbiter)) => arbiter.choose(0, &[requests], groups, |_| true),
            Some(arbiter) => arbiter.choose_class(0, groups, |group, _| {
                let of_group = (0..64).filter(|&vc| requests >> vc & 1 == 1 && groups.holds(group, vc));
                match of_group.min_by_key(|&vc| places[vc]) {
                    Some(request) => {
                        let bytes = constants.packet_bytes(&staged[places[request]].packet).get();
                        ClassHead::Packet { request, bytes }
                    }
                    None if seen & groups.channels(group) != 0 => ClassHead::Blocked,
                    None => ClassHead::Empty,
                }
            }),
            None => first(),
        }?;
        Some((self.unstage(places[vc])?, vc as u8))
    }
}
