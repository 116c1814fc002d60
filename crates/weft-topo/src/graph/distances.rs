//! Distances in a graph, and which directions of its links go up: routings are made of both.
//!
//! Switches stand in an order: first those that are farthest from endpoints, among equals by the order in
//! which a breadth-first search from the first one meets them. A link goes up towards the switch that stands
//! earlier. In a tree these are the directions that everybody calls so.
//!
//! ```text
//!   a way:    up ▲  up ▲  down ▼  down ▼ │ up ▲  down ▼
//!   channel:   0     0      0       0    │  1      1        a turn from down to up takes the next channel
//! ```
//! # Source
//! T. Skeie, O. Lysne, J. Flich, P. López, A. Robles, J. Duato, "LASH-TOR: a generic transition-oriented
//! routing algorithm", ICPADS 2004: shortest paths that change the virtual channel
//! at every turn from down to up.
//! M. Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014, for the search
//! from many switches at a time.

use super::modules::Modules;
use super::{Graph, Neighbour};
use crate::traits::Topology;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::SwitchId;

/// Most links of a shortest way.
pub(super) const MAX_DISTANCE: u32 = 254;

/// The distance of a switch of another module.
const UNREACHED: u8 = u8::MAX;

/// Switches that the search starts from at a time: the bits of a set, which is a cache line.
const AT_ONCE: u32 = 512;

/// A graph on which no routing works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoWay {
    /// No way leads from the one switch to the other.
    Apart(SwitchId, SwitchId),
    /// The way from the one to the other is longer than [`MAX_DISTANCE`] links.
    TooFar(SwitchId, SwitchId),
}

/// The ends of the ways that are measured.
#[derive(Clone, Copy)]
struct Ends<'a> {
    /// The first so many switches are destinations.
    destinations: u32,
    /// Modules that ways stay in; `None`: they may go anywhere.
    modules: Option<&'a Modules>,
}

/// Distances in a graph, and its directions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Distances {
    switches: usize,
    /// By destination, which is a switch with endpoints, and switch: links of a shortest way. Where only the
    /// ways inside modules were measured, any switch is one, and some are [`UNREACHED`].
    links: Vec<u8>,
    /// By switch: its place in the order.
    order: Vec<u32>,
    /// Most turns from down to up on a shortest way between two switches with endpoints.
    turns: u32,
    diameter: u32,
}

impl Distances {
    /// Measures a graph.
    ///
    /// # Errors
    /// Two switches between which no packet can go.
    pub(super) fn of(graph: &Graph) -> Result<Distances, NoWay> {
        Distances::measured(graph, Ends { destinations: graph.with_endpoints, modules: None })
    }

    /// Measures the modules of a graph: distances inside each, and to the gateways that it is joined to. No
    /// shortest way passes a gateway here, and every switch is a destination.
    ///
    /// # Errors
    /// Two switches of a module between which no packet can go inside it.
    pub(super) fn inside(graph: &Graph, modules: &Modules) -> Result<Distances, NoWay> {
        let all = graph.switches();
        let distances = Distances::measured(graph, Ends { destinations: all, modules: Some(modules) })?;
        for (from, to) in (0..all).flat_map(|from| (0..all).map(move |to| (SwitchId(from), SwitchId(to)))) {
            let shared =
                modules.of_switch(from).is_some() && modules.of_switch(from) == modules.of_switch(to);
            if shared && distances.to(to)[from.index()] == UNREACHED {
                return Err(NoWay::Apart(from, to));
            }
        }
        Ok(distances)
    }

    fn measured(graph: &Graph, ends: Ends<'_>) -> Result<Distances, NoWay> {
        let switches = graph.switches() as usize;
        let mut distances = Distances {
            switches,
            links: vec![UNREACHED; switches * ends.destinations as usize],
            order: order(graph),
            turns: 0,
            diameter: 0,
        };
        for first in (0..ends.destinations).step_by(AT_ONCE as usize) {
            distances.search(graph, first, ends)?;
        }
        Ok(distances)
    }

    /// By switch: links of a shortest way to `destination`, which is one of those measured.
    #[inline]
    pub(super) fn to(&self, destination: SwitchId) -> &[u8] {
        &self.links[destination.index() * self.switches..][..self.switches]
    }

    /// Links of the longest way that was measured, to gateways included.
    pub(super) fn longest(&self) -> u32 {
        self.links.iter().filter(|&&links| links != UNREACHED).max().map_or(0, |&links| links.into())
    }

    /// Whether the link from one switch to another goes up.
    #[inline]
    pub(super) fn is_up(&self, from: SwitchId, to: SwitchId) -> bool {
        self.order[to.index()] < self.order[from.index()]
    }

    /// The place of a switch in the order, counted from 0.
    pub(super) fn place(&self, switch: SwitchId) -> u32 {
        self.order[switch.index()]
    }

    /// Most turns from down to up on a shortest way.
    #[inline]
    pub(super) fn turns(&self) -> u32 {
        self.turns
    }

    /// Most links of a shortest way between two switches with endpoints.
    pub(super) fn diameter(&self) -> u32 {
        self.diameter
    }

    /// Searches backwards from the switches `first` and the [`AT_ONCE`] - 1 after it, link by link. Member b
    /// of a set is destination `first + b`.
    fn search(&mut self, graph: &Graph, first: u32, ends: Ends<'_>) -> Result<(), NoWay> {
        let many = AT_ONCE.min(ends.destinations - first);
        let mut last = vec![Set::NONE; self.switches];
        for member in 0..many {
            let destination = (first + member) as usize;
            last[destination] = Set::one(member);
            self.links[destination * self.switches + destination] = 0;
        }
        let mut reached = last.clone();
        let mut turning = Turning::new(self.switches);
        let everything = Set::first(many);
        for distance in 1.. {
            let mut found = vec![Set::NONE; self.switches];
            for switch in (0..self.switches as u32).map(SwitchId) {
                let neighbours = graph.neighbours(switch);
                let all = neighbours.iter().fold(Set::NONE, |all, next| all.or(&last[next.switch as usize]));
                let new = all.without(&reached[switch.index()]);
                for member in new.members() {
                    let destination = (first + member) as usize;
                    self.links[destination * self.switches + switch.index()] = distance as u8;
                }
                found[switch.index()] = new;
            }
            let is_end = found.iter().all(Set::is_empty);
            if is_end || distance > MAX_DISTANCE {
                let missing = reached.iter().position(|reached| *reached != everything);
                let Some(switch) = missing.filter(|_| !is_end || ends.modules.is_none()) else { break };
                let member = everything.without(&reached[switch]).members().next().unwrap_or(0);
                let (from, to) = (SwitchId(switch as u32), SwitchId(first + member));
                return Err(if is_end { NoWay::Apart(from, to) } else { NoWay::TooFar(from, to) });
            }
            for switch in (0..self.switches as u32).map(SwitchId) {
                let found = &found[switch.index()];
                if found.is_empty() {
                    continue;
                }
                for next in graph.neighbours(switch) {
                    let ways = found.and(&last[next.switch as usize]);
                    let is_up = self.is_up(switch, SwitchId(next.switch));
                    turning.go(switch, next, &ways, is_up);
                }
                reached[switch.index()] = reached[switch.index()].or(found);
            }
            if found[..graph.with_endpoints as usize].iter().any(|found| !found.is_empty()) {
                self.diameter = self.diameter.max(distance);
            }
            last = found;
            let gateways =
                |one: &usize| ends.modules.is_some_and(|all| all.is_gateway(SwitchId(*one as u32)));
            (0..self.switches).filter(gateways).for_each(|gateway| last[gateway] = Set::NONE);
        }
        self.turns = self.turns.max(turning.most(ends.destinations));
        Ok(())
    }
}

/// The turns from down to up on shortest ways to the destinations of a search.
struct Turning {
    switches: usize,
    /// By number of turns less one, switch, and whether a packet came to it going down: the destinations to
    /// which a shortest way has at least so many turns.
    at_least: Vec<Vec<[Set; 2]>>,
}

impl Turning {
    fn new(switches: usize) -> Turning {
        Turning { switches, at_least: Vec::new() }
    }

    /// The destinations of `ways` are reached from `switch` by way of `next`, whose own ways are known.
    fn go(&mut self, switch: SwitchId, next: &Neighbour, ways: &Set, is_up: bool) {
        if ways.is_empty() {
            return;
        }
        let after = usize::from(!is_up);
        for came_down in [false, true] {
            let turns_here = came_down && is_up;
            for place in 0..=self.at_least.len() {
                // Destinations to which enough turns are left from `next` on.
                let left = |place: usize| self.at_least[place][next.switch as usize][after];
                let ways = match (turns_here, place) {
                    (true, 0) => *ways,
                    (true, _) => ways.and(&left(place - 1)),
                    (false, _) if place == self.at_least.len() => continue,
                    (false, _) => ways.and(&left(place)),
                };
                if ways.is_empty() {
                    continue;
                }
                if place == self.at_least.len() {
                    self.at_least.push(vec![[Set::NONE; 2]; self.switches]);
                }
                let here = &mut self.at_least[place][switch.index()][usize::from(came_down)];
                *here = here.or(&ways);
            }
        }
    }

    /// Most turns of a way from one of the first switches.
    fn most(&self, first: u32) -> u32 {
        let is_taken =
            |ways: &Vec<[Set; 2]>| ways[..first as usize].iter().any(|[injected, _]| !injected.is_empty());
        self.at_least.iter().filter(|ways| is_taken(ways)).count() as u32
    }
}

/// Some of [`AT_ONCE`] destinations. The operations are loops over words that the compiler makes vectors of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
struct Set([u64; (AT_ONCE / u64::BITS) as usize]);

impl Set {
    const NONE: Set = Set([0; _]);

    fn one(member: u32) -> Set {
        let mut set = Set::NONE;
        set.0[(member / u64::BITS) as usize] = 1 << (member % u64::BITS);
        set
    }

    /// The members below `count`.
    fn first(count: u32) -> Set {
        (0..count).fold(Set::NONE, |set, member| set.or(&Set::one(member)))
    }

    #[inline]
    fn or(&self, other: &Set) -> Set {
        Set(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    #[inline]
    fn and(&self, other: &Set) -> Set {
        Set(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    #[inline]
    fn without(&self, other: &Set) -> Set {
        Set(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.0.iter().fold(0, |all, word| all | word) == 0
    }

    /// The members, in order.
    fn members(&self) -> impl Iterator<Item = u32> {
        (0..).zip(self.0).flat_map(|(place, word)| {
            let lowest = |rest: &u64| Some(rest & (rest - 1)).filter(|rest| *rest != 0);
            let words = std::iter::successors(Some(word).filter(|word| *word != 0), lowest);
            words.map(move |rest| place * u64::BITS + rest.trailing_zeros())
        })
    }
}

/// By switch: its place in the order of directions.
pub(super) fn order(graph: &Graph) -> Vec<u32> {
    let switches = graph.switches();
    let from_endpoints = met(graph, (0..graph.with_endpoints).map(SwitchId));
    let farthest = (0..switches).max_by_key(|&one| (from_endpoints[one as usize].0, u32::MAX - one));
    let from_top = met(graph, farthest.into_iter().map(SwitchId));
    let mut sorted: Vec<u32> = (0..switches).collect();
    sorted.sort_by_key(|&one| {
        let ((height, _), (_, place)) = (from_endpoints[one as usize], from_top[one as usize]);
        (u32::MAX - height, place)
    });
    let mut order = vec![0; sorted.len()];
    for (place, &switch) in (0..).zip(&sorted) {
        order[switch as usize] = place;
    }
    order
}

/// By switch: the links from the nearest of some switches, and the place in a breadth-first search from
/// them. Switches that it does not meet have 0 and the last place.
fn met(graph: &Graph, from: impl Iterator<Item = SwitchId>) -> Vec<(u32, u32)> {
    let mut met = vec![(0, u32::MAX); graph.switches() as usize];
    let mut waiting = VecDeque::new();
    let mut count = 0;
    let mut meet = |switch: SwitchId, links: u32, met: &mut Vec<(u32, u32)>| {
        let is_new = met[switch.index()].1 == u32::MAX;
        if is_new {
            met[switch.index()] = (links, count);
            count += 1;
        }
        is_new
    };
    for switch in from {
        if meet(switch, 0, &mut met) {
            waiting.push_back(switch);
        }
    }
    while let Some(switch) = waiting.pop_front() {
        let links = met[switch.index()].0 + 1;
        for next in graph.neighbours(switch) {
            let next = SwitchId(next.switch);
            if meet(next, links, &mut met) {
                waiting.push_back(next);
            }
        }
    }
    met
}

#[cfg(test)]
mod tests {
    use super::super::{GraphClass, GraphDescription, GraphLink, GraphSwitch};
    use super::*;

    /// Catches destinations that are lost or mixed up between the words of a set or between searches: a mesh
    /// of more switches than one search starts from, whose distances are known.
    #[test]
    fn distances_of_a_mesh_are_those_of_its_coordinates() {
        const SIDE: u32 = 24;
        let places = || (0..SIDE * SIDE).map(|switch| (switch % SIDE, switch / SIDE));
        let link = |from: u32, to| GraphLink { ends: [from, to], count: 1, class: 0 };
        let right = places().filter(|(x, _)| x + 1 < SIDE).map(|(x, y)| link(y * SIDE + x, y * SIDE + x + 1));
        let up = places().filter(|(_, y)| y + 1 < SIDE).map(|(x, y)| link(y * SIDE + x, (y + 1) * SIDE + x));
        let name = |(x, y)| GraphSwitch { name: format!("{x} {y}"), ..GraphSwitch::default() };
        let class = GraphClass { name: "link".into(), section: "link".into(), rate: None, latency: None };
        let description = GraphDescription {
            file: "test".into(),
            switches: places().map(name).collect(),
            links: right.chain(up).collect(),
            classes: vec![class],
            ..GraphDescription::default()
        };
        let distances = Distances::of(&Graph::new(&description, 1).unwrap()).unwrap();
        assert_eq!(distances.diameter(), 2 * (SIDE - 1));
        for (to, (x, y)) in (0..).map(SwitchId).zip(places()) {
            let expected = places().map(|(other_x, other_y)| x.abs_diff(other_x) + y.abs_diff(other_y));
            assert!(distances.to(to).iter().map(|&links| u32::from(links)).eq(expected), "{to}");
        }
    }
}
