//! Groups of requests that an arbiter tells apart by their virtual channels: priorities, or traffic classes.

use crate::traffic_class::MAX_CLASSES;
use weft_topo::LinkClass;

/// The requests that an arbiter tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grouping {
    /// None.
    None,
    /// Traffic classes of different priorities; groups are in the order of these, the highest first.
    Priorities,
    /// Traffic classes, which have weights.
    Weights,
    /// Traffic classes, which have guaranteed shares and priorities.
    Shares,
}

/// Groups of requests that an arbiter tells apart by their virtual channels: priorities, or traffic classes.
#[derive(Clone, Debug)]
pub struct RequestGroups {
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
    pub fn new(channels: u32, groups: Vec<(u64, u64)>) -> RequestGroups {
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
    pub fn with_shares(
        self,
        priorities: Vec<u8>,
        shares: Vec<[u32; MAX_CLASSES]>,
        largest: u64,
    ) -> RequestGroups {
        RequestGroups { priorities, shares, largest, ..self }
    }

    /// The priority of a group.
    pub fn priority(&self, group: usize) -> u8 {
        self.priorities[group]
    }

    /// The share of a group of links of a class; nothing of a class that a damaged snapshot makes up.
    pub fn share(&self, group: usize, link: LinkClass) -> u32 {
        self.shares.get(usize::from(link.0)).map_or(0, |shares| shares[group])
    }

    /// Bytes of the largest packet.
    pub fn largest(&self) -> i64 {
        self.largest as i64
    }

    /// The number of groups.
    #[inline]
    pub fn count(&self) -> usize {
        self.masks.len()
    }

    /// Whether a request belongs to a group.
    #[inline]
    pub fn holds(&self, group: usize, request: usize) -> bool {
        self.masks[group] >> (request % 64) & 1 == 1
    }

    /// The group of a request.
    #[inline]
    pub fn of(&self, request: usize) -> usize {
        self.masks.iter().position(|mask| mask >> (request % 64) & 1 == 1).unwrap_or(0)
    }

    /// A bit for each request of a word that belongs to a group.
    #[inline]
    pub fn channels(&self, group: usize) -> u64 {
        self.masks[group]
    }

    /// Whether some of the requests belong to a group.
    #[inline]
    pub fn any(&self, group: usize, requests: &[u64]) -> bool {
        requests.iter().any(|word| word & self.masks[group] != 0)
    }

    /// Bytes of a group in each round.
    pub fn weight(&self, group: usize) -> u64 {
        self.weights[group]
    }
}
