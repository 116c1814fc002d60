//! The links of a result as a graph, and the shortest ways through it.
//!
//! ```text
//!  table of links ──► links by number, links into each switch ──► distances ──► does a flow cross a link?
//! ```
//! Where nobody knows the way of a flow, it crosses a link if that lies on one of the shortest ways, over
//! links that have carried packets. With a routing that takes detours that is not exact.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use weft_results::{LinkRow, ResultsError, StoredResult};
use weft_units::{EndpointId, PortId, SwitchId};

/// An end of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum End {
    /// An endpoint.
    Endpoint(u32),
    /// A port of a switch.
    Port(u32, u32),
}

impl End {
    fn of(endpoint: Option<EndpointId>, switch: Option<SwitchId>, port: Option<PortId>) -> Option<End> {
        match (endpoint, switch) {
            (Some(endpoint), _) => Some(End::Endpoint(endpoint.0)),
            (None, Some(switch)) => Some(End::Port(switch.0, port.map_or(0, |port| port.0))),
            (None, None) => None,
        }
    }
}

/// The beginning of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkFrom {
    /// At an endpoint.
    Endpoint(EndpointId),
    /// At a port of a switch.
    Port(SwitchId, PortId),
}

/// The links that a flow from one endpoint to another crosses; `None`: it may take several ways, or there is
/// none.
pub type Ways<'a> = &'a dyn Fn(u32, u32) -> Option<Vec<LinkFrom>>;

impl From<LinkFrom> for End {
    fn from(from: LinkFrom) -> End {
        match from {
            LinkFrom::Endpoint(endpoint) => End::Endpoint(endpoint.0),
            LinkFrom::Port(switch, port) => End::Port(switch.0, port.0),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Endpoint(endpoint) => write!(f, "endpoint {endpoint}"),
            End::Port(switch, port) => write!(f, "switch {switch} port {port}"),
        }
    }
}

/// One direction of a link that has carried packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub from: End,
    pub to: End,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.from, self.to)
    }
}

/// The links that have carried packets in any run.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub links: Vec<Link>,
    by_beginning: BTreeMap<End, usize>,
    into: BTreeMap<u32, Vec<usize>>,
    /// The switch of each endpoint that sends or receives.
    switch_of: BTreeMap<u32, u32>,
    /// The links of flows whose way is known.
    ways: BTreeMap<(u32, u32), BTreeSet<usize>>,
    /// Links from each switch to one, where that was asked for.
    distances: RefCell<BTreeMap<u32, BTreeMap<u32, u32>>>,
}

impl Network {
    /// Of a result.
    ///
    /// # Errors
    /// A result without the table of links, or one that cannot be read.
    pub fn of(result: &StoredResult) -> Result<Network, ResultsError> {
        let mut network = Network::default();
        result.visit(|row: LinkRow| {
            let from = End::of(row.from_endpoint, row.from_switch, row.from_port);
            let to = End::of(row.to_endpoint, row.to_switch, row.to_port);
            if let (true, Some(from), Some(to)) = (row.packets > 0, from, to) {
                network.add(Link { from, to });
            }
        })?;
        Ok(network)
    }

    /// Adds a link, if it is not there yet.
    pub fn add(&mut self, link: Link) {
        let number = self.links.len();
        let std::collections::btree_map::Entry::Vacant(vacant) = self.by_beginning.entry(link.from) else {
            return;
        };
        vacant.insert(number);
        if let End::Port(switch, _) = link.to {
            self.into.entry(switch).or_default().push(number);
        }
        if let (End::Endpoint(endpoint), End::Port(switch, _))
        | (End::Port(switch, _), End::Endpoint(endpoint)) = (link.from, link.to)
        {
            self.switch_of.insert(endpoint, switch);
        }
        self.links.push(link);
    }

    /// The number of the link that leaves there.
    pub fn number(
        &self,
        endpoint: Option<EndpointId>,
        switch: Option<SwitchId>,
        port: Option<PortId>,
    ) -> Option<usize> {
        self.by_beginning.get(&End::of(endpoint, switch, port)?).copied()
    }

    /// The links into a switch.
    pub fn into(&self, switch: u32) -> &[usize] {
        self.into.get(&switch).map_or(&[], Vec::as_slice)
    }

    /// Learns the ways of flows, as far as `ways` knows them.
    pub fn learn(&mut self, flows: &[(u32, u32)], ways: Ways<'_>) {
        for flow in flows.iter().filter(|flow| !self.ways.contains_key(flow)).copied().collect::<Vec<_>>() {
            let Some(way) = ways(flow.0, flow.1) else { continue };
            let number = |place: LinkFrom| self.by_beginning.get(&place.into()).copied();
            let links = way.into_iter().filter_map(number).collect();
            self.ways.insert(flow, links);
        }
    }

    /// Whether a flow from one endpoint to another crosses a link: on its way, where that is known, or else
    /// on one of the shortest.
    pub fn crosses(&self, (source, destination): (u32, u32), link: usize) -> bool {
        if let Some(way) = self.ways.get(&(source, destination)) {
            return way.contains(&link);
        }
        let ends = (self.switch_of.get(&source), self.switch_of.get(&destination));
        let (Some(&first), Some(&last)) = ends else { return false };
        match (self.links[link].from, self.links[link].to) {
            (End::Endpoint(from), _) => from == source,
            (_, End::Endpoint(to)) => to == destination,
            (End::Port(from, _), End::Port(to, _)) => {
                let to_last = |switch| self.distance(switch, last);
                let before = self.distance(first, from);
                match (before, to_last(to), to_last(first)) {
                    (Some(before), Some(after), Some(whole)) => before + 1 + after == whole,
                    _ => false,
                }
            }
        }
    }

    /// Links from one switch to another, at least; `None`: there is no way.
    fn distance(&self, from: u32, to: u32) -> Option<u32> {
        let mut distances = self.distances.borrow_mut();
        distances.entry(to).or_insert_with(|| self.distances_to(to)).get(&from).copied()
    }

    /// Links from every switch to one, against the stream.
    fn distances_to(&self, to: u32) -> BTreeMap<u32, u32> {
        let mut distances = BTreeMap::from([(to, 0)]);
        let mut next = VecDeque::from([(to, 0)]);
        while let Some((switch, distance)) = next.pop_front() {
            for link in self.into(switch) {
                if let End::Port(before, _) = self.links[*link].from
                    && !distances.contains_key(&before)
                {
                    distances.insert(before, distance + 1);
                    next.push_back((before, distance + 1));
                }
            }
        }
        distances
    }
}
