//! Who goes first: one file per arbiter.
//!
//! A request is numbered by input port and virtual channel; an arbiter is shown the numbers that are
//! eligible and names one.

pub(crate) mod age;
pub(crate) mod islip;
pub(crate) mod minimum_bandwidth;
pub(crate) mod random;
pub(crate) mod round_robin;
pub(crate) mod strict_priority;
pub(crate) mod weighted_round_robin;

use crate::parameters::ArbiterKind;
use crate::traffic_class::MAX_CLASSES;
use islip::Islip;
use minimum_bandwidth::MinimumBandwidth;
use serde::{Deserialize, Serialize};
use strict_priority::StrictPriority;
use weft_topo::LinkClass;
use weighted_round_robin::{ClassHead, WeightedRoundRobin};

/// The memory of an arbiter beyond a turn per output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ArbiterState {
    Islip(Islip),
    StrictPriority(StrictPriority),
    WeightedRoundRobin(WeightedRoundRobin),
    MinimumBandwidth(MinimumBandwidth),
}

impl ArbiterState {
    /// The memory of an arbiter of a switch whose outputs have links of these classes; `None`: it needs none.
    pub(crate) fn new(
        kind: ArbiterKind,
        links: impl ExactSizeIterator<Item = LinkClass>,
        groups: &RequestGroups,
    ) -> Option<Box<ArbiterState>> {
        let outputs = links.len();
        let state = match kind {
            ArbiterKind::RoundRobin | ArbiterKind::Random | ArbiterKind::Age => return None,
            ArbiterKind::Islip(iterations) => ArbiterState::Islip(Islip::new(outputs, iterations)),
            ArbiterKind::StrictPriority => ArbiterState::StrictPriority(StrictPriority::new(outputs, groups)),
            ArbiterKind::WeightedRoundRobin => {
                ArbiterState::WeightedRoundRobin(WeightedRoundRobin::new(outputs))
            }
            ArbiterKind::MinimumBandwidth => ArbiterState::MinimumBandwidth(MinimumBandwidth::new(links)),
        };
        Some(Box::new(state))
    }

    /// The request of an output that goes, by an arbiter that looks at the first packet of each class.
    /// `head(class, pointer)` says what a class has, from `pointer` on. `None`: none can go.
    #[inline]
    pub(crate) fn choose_class(
        &mut self,
        output: usize,
        groups: &RequestGroups,
        head: impl FnMut(usize, usize) -> ClassHead,
    ) -> Option<usize> {
        match self {
            ArbiterState::WeightedRoundRobin(weights) => weights.choose(output, groups, head),
            ArbiterState::MinimumBandwidth(minima) => minima.choose(output, groups, head),
            ArbiterState::Islip(_) | ArbiterState::StrictPriority(_) => None,
        }
    }

    /// The next turn of its priority or class belongs to `request`.
    pub(crate) fn give_turn(&mut self, output: usize, request: u16, groups: &RequestGroups) {
        match self {
            ArbiterState::StrictPriority(priorities) => priorities.give_turn(output, request, groups),
            ArbiterState::WeightedRoundRobin(weights) => weights.give_turn(output, request, groups),
            ArbiterState::MinimumBandwidth(minima) => minima.give_turn(output, request, groups),
            ArbiterState::Islip(_) => {}
        }
    }
}

/// Groups of requests that an arbiter tells apart by their virtual channels: priorities, or traffic classes.
#[derive(Clone, Debug)]
pub(crate) struct RequestGroups {
    /// By group: a bit for each request of a word. All words have the same, since a port's channels take a
    /// power of two of numbers, at most 64.
    masks: Vec<u64>,
    /// By group: bytes in each round.
    weights: Vec<u64>,
    /// By group: priority, where shares are guaranteed.
    priorities: Vec<u8>,
    /// By class of links and group: the share that is guaranteed, of [`WHOLE_SHARE`].
    ///
    /// [`WHOLE_SHARE`]: crate::traffic_class::WHOLE_SHARE
    shares: Vec<[u32; MAX_CLASSES]>,
    /// Bytes of the largest packet, where shares are guaranteed.
    largest: u64,
}

impl RequestGroups {
    /// Groups given as (virtual channels, a bit each; weight), where ports have so many channels.
    pub(crate) fn new(channels: u32, groups: Vec<(u64, u64)>) -> RequestGroups {
        let stride = channels.next_power_of_two().min(64);
        let repeated = |(of_port, _): &(u64, u64)| {
            (0..64 / stride).fold(0, |mask, port| mask | of_port << (port * stride))
        };
        RequestGroups {
            masks: groups.iter().map(repeated).collect(),
            weights: groups.iter().map(|(_, weight)| (*weight).max(1)).collect(),
            priorities: Vec::new(),
            shares: Vec::new(),
            largest: 0,
        }
    }

    /// The same groups with these priorities, and shares by class of links, for packets of so many bytes.
    pub(crate) fn with_shares(
        self,
        priorities: Vec<u8>,
        shares: Vec<[u32; MAX_CLASSES]>,
        largest: u64,
    ) -> RequestGroups {
        RequestGroups { priorities, shares, largest, ..self }
    }

    /// The priority of a group.
    pub(crate) fn priority(&self, group: usize) -> u8 {
        self.priorities[group]
    }

    /// The share of a group of links of a class; nothing of a class that a damaged snapshot makes up.
    pub(crate) fn share(&self, group: usize, link: LinkClass) -> u32 {
        self.shares.get(usize::from(link.0)).map_or(0, |shares| shares[group])
    }

    /// Bytes of the largest packet.
    pub(crate) fn largest(&self) -> i64 {
        self.largest as i64
    }

    /// The number of groups.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.masks.len()
    }

    /// Whether a request belongs to a group.
    #[inline]
    pub(crate) fn holds(&self, group: usize, request: usize) -> bool {
        self.masks[group] >> (request % 64) & 1 == 1
    }

    /// The group of a request.
    #[inline]
    pub(crate) fn of(&self, request: usize) -> usize {
        self.masks.iter().position(|mask| mask >> (request % 64) & 1 == 1).unwrap_or(0)
    }

    /// A bit for each request of a word that belongs to a group.
    #[inline]
    pub(crate) fn channels(&self, group: usize) -> u64 {
        self.masks[group]
    }

    /// Whether some of the requests belong to a group.
    #[inline]
    pub(crate) fn any(&self, group: usize, requests: &[u64]) -> bool {
        requests.iter().any(|word| word & self.masks[group] != 0)
    }

    /// Bytes of a group in each round.
    pub(crate) fn weight(&self, group: usize) -> u64 {
        self.weights[group]
    }
}

/// A set of requests or ports: bits in words.
#[inline]
pub(crate) fn next_from(words: &[u64], start: usize) -> Option<usize> {
    let first = start / 64;
    if first < words.len() {
        let bits = words[first] & u64::MAX << (start % 64);
        if bits != 0 {
            return Some(first * 64 + bits.trailing_zeros() as usize);
        }
        for (index, &word) in words.iter().enumerate().skip(first + 1) {
            if word != 0 {
                return Some(index * 64 + word.trailing_zeros() as usize);
            }
        }
    }
    None
}
