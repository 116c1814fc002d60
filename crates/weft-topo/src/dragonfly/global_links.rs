//! The global links of a group: where they lead, and which of several a packet takes.
//!
//! A group has a slot for each other group; the arrangement says which. With one link per pair of groups,
//! link j is that of slot j, and links fill the ports of one switch after the other. With several, the links
//! of slot j come before those of slot j + 1, and are dealt to the switches in turn: so those of a pair lie
//! on as many switches as can be, and all switches have alike many.
//!
//! ```text
//!   a = 4 switches, 3 links per pair, 4 groups
//!
//!   slot      0      1      2
//!   link    0 1 2  3 4 5  6 7 8
//!   switch  0 1 2  3 0 1  2 3 0
//! ```
//! Copy c of the links to a group ends there as copy c of the links back.
//!
//! A packet takes a link of its own switch, where that has one. Else it takes the one that ends at the
//! switch of its destination, if one does; else the number of the destination in its group chooses, so that a
//! flow stays in order and destinations spread evenly. So it goes the shortest way that has one global link.
//! Adaptive routings take the shortest queue, and this one among equals.
//!
//! # Source
//! C. Camarero, E. Vallejo, R. Beivide, "Topological characterization of Hamming and Dragonfly networks and
//! its implications on routing", ACM TACO 11(4), 2014 (arrangements). Frontier has four links between every
//! two groups; how they lie, and which one a packet takes, is ours.

use super::Dragonfly;
use crate::traits::{Address, LocalView};
use weft_keys::words;
use weft_units::PortId;

words! {
    /// Which group a slot of global links leads to.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
    pub enum GlobalLinks: "GlobalLinks", "an arrangement of global links" {
        /// Slot j of group G leads to group G - j - 1 (mod g): to the groups before its own, nearest first.
        Palmtree = "palmtree",
        /// Slot j of any group leads to the j-th other group.
        Absolute = "absolute",
    }
}

/// Switch, counted in its group, and port of every global link of a group, by number. All groups have the
/// same, so that a hop divides nothing.
pub(super) fn ends_of_links([a, h, links_per_pair, groups]: [u32; 4], first_port: u32) -> Vec<(u32, PortId)> {
    let place = |link| if links_per_pair == 1 { (link / h, link % h) } else { (link % a, link / a) };
    let end = |link| (place(link).0, PortId(first_port + place(link).1));
    (0..(groups - 1) * links_per_pair).map(end).collect()
}

impl Dragonfly {
    /// The slot of a group that leads to another.
    #[inline]
    fn slot(&self, group: u32, other: u32) -> u32 {
        match self.arrangement {
            GlobalLinks::Palmtree if other < group => group - other - 1,
            GlobalLinks::Palmtree => self.groups + group - other - 1,
            GlobalLinks::Absolute if other < group => other,
            GlobalLinks::Absolute => other - 1,
        }
    }

    /// The switch (in its group) and port by which `group` reaches `other` over one of the links between
    /// them.
    #[inline(always)]
    pub(crate) fn gateway(&self, group: u32, other: u32, copy: u32) -> (u32, PortId) {
        let slot = self.slot(group, other);
        let link = if self.links_per_pair == 1 { slot } else { slot * self.links_per_pair + copy };
        self.gateways[link as usize]
    }

    /// The group that the link at a global port leads to, and which of the links there it is; none at a spare
    /// port. `port` is counted among the global ports of the switch.
    pub(super) fn link_behind(&self, group: u32, switch: u32, port: u32) -> Option<(u32, u32)> {
        let (stride, step) =
            if self.links_per_pair == 1 { (self.global_per_switch, 1) } else { (1, self.switches_per_group) };
        let link = u64::from(switch) * u64::from(stride) + u64::from(port) * u64::from(step);
        let link = u32::try_from(link).ok().filter(|&link| (link as usize) < self.gateways.len())?;
        let (slot, copy) = (link / self.links_per_pair, link % self.links_per_pair);
        let other = match self.arrangement {
            GlobalLinks::Palmtree if slot < group => group - slot - 1,
            GlobalLinks::Palmtree => self.groups + group - slot - 1,
            GlobalLinks::Absolute if slot < group => slot,
            GlobalLinks::Absolute => slot + 1,
        };
        Some((other, copy))
    }

    /// The first of the links to a group that a switch itself has; the others follow in steps of as many as
    /// there are switches in a group.
    #[inline]
    fn own_link(&self, group: u32, switch: u32, other: u32) -> Option<u32> {
        let first = self.gateway(group, other, 0).0;
        let ahead = if switch >= first { switch - first } else { switch + self.switches_per_group - first };
        (ahead < self.links_per_pair).then_some(ahead)
    }

    /// The link by which a packet for `to` goes from a switch of `group` to `other`.
    #[inline(always)]
    pub(crate) fn choose(&self, group: u32, switch: u32, other: u32, to: Address) -> u32 {
        if self.links_per_pair == 1 { 0 } else { self.choose_of_several(group, switch, other, to) }
    }

    /// Not inlined: most machines have one link, and pass by.
    #[inline(never)]
    fn choose_of_several(&self, group: u32, switch: u32, other: u32, to: Address) -> u32 {
        let destination = self.switch_in_group(to) * self.endpoints_per_switch + self.endpoint_port(to).0;
        if let Some(own) = self.own_link(group, switch, other) {
            let more = (self.links_per_pair - 1 - own) / self.switches_per_group;
            return own + destination % (more + 1) * self.switches_per_group;
        }
        let ends_there = || self.own_link(other, self.switch_in_group(to), group);
        let ends_there = if self.group(to) == other { ends_there() } else { None };
        ends_there.unwrap_or_else(|| destination % self.links_per_pair)
    }

    /// As [`Dragonfly::choose`], but the link towards which the queue is shortest. Other switches' links are
    /// taken only where the switch has none itself, so that a packet goes to one other switch at most.
    #[inline(always)]
    pub(crate) fn choose_by_queue(&self, at: Address, other: u32, to: Address, view: &impl LocalView) -> u32 {
        if self.links_per_pair == 1 { 0 } else { self.shortest_of_several(at, other, to, view) }
    }

    #[inline(never)]
    fn shortest_of_several(&self, at: Address, other: u32, to: Address, view: &impl LocalView) -> u32 {
        let (group, switch) = (self.group(at), self.switch_in_group(at));
        let queued = |copy| view.queued(self.port_to_link(at, other, copy));
        let mut chosen = self.choose_of_several(group, switch, other, to);
        let mut least = queued(chosen);
        let (first, step) = match self.own_link(group, switch, other) {
            Some(own) => (own, self.switches_per_group),
            None => (0, 1),
        };
        for copy in (first..self.links_per_pair).step_by(step as usize) {
            let queued = queued(copy);
            if queued < least {
                (chosen, least) = (copy, queued);
            }
        }
        chosen
    }

    /// The port towards one of the links to another group: the link itself, or local to the switch that has
    /// it.
    #[inline(always)]
    pub(crate) fn port_to_link(&self, at: Address, other: u32, copy: u32) -> PortId {
        let here = self.switch_in_group(at);
        let (gateway, port) = self.gateway(self.group(at), other, copy);
        if gateway == here { port } else { self.local_port(here, gateway) }
    }

    /// The port towards the link that [`Dragonfly::choose`] says. Not inlined, as the choice.
    #[inline(never)]
    pub(crate) fn port_to_chosen_link(&self, at: Address, other: u32, to: Address) -> PortId {
        self.port_to_link(at, other, self.choose(self.group(at), self.switch_in_group(at), other, to))
    }
}
