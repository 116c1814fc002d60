//! Any graph: switches joined as a list says, with routings that work on all graphs.
//!
//! ```text
//!   file ──▶ GraphDescription ──▶ Graph ──────────▶ GraphLayout
//!            names, links,        ports, numbers    distances, directions, a routing
//!            classes
//! ```
//! A family that is nothing but a graph, such as the Slim Fly, makes a description as well and has the same
//! routings.
//!
//! Switches with endpoints are numbered first, each kind in the order of the description. Endpoints are
//! numbered by switch: those with names first. Ports of a switch: its endpoints, then its links in the order
//! of the description.

mod built;
mod description;
mod distances;
mod figures;
mod modules;
mod parameters;
mod routing;
mod table;

pub use built::Built;
pub use description::{GraphClass, GraphDescription, GraphEndpoint, GraphHop, GraphLink, GraphSwitch};
pub use parameters::GraphParameters;
pub use routing::{GraphLayout, GraphRouting};

use crate::names::{UnknownEndpoint, numbered_endpoint};
use crate::size::{SizeError, check_counts};
use crate::traits::{Address, Attachment, LinkClass, Topology};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use weft_units::{EndpointId, PortId, SwitchId};

/// Most switches with endpoints of a graph: the distances from each to all take a byte per pair.
pub const MAX_GRAPH_SWITCHES: u64 = 1 << 16;

/// One direction of a link between switches, by its end at this switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Neighbour {
    switch: u32,
    /// The port of the link at the other switch.
    port: u32,
    class: u8,
}

/// Switches joined as a list says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Graph {
    /// By switch: its first endpoint, and at the end the number of endpoints.
    first_endpoint: Vec<u32>,
    /// By switch: the place of its first neighbour, and at the end the number of all.
    first_neighbour: Vec<u32>,
    neighbours: Vec<Neighbour>,
    /// Switches that have endpoints: the first so many.
    with_endpoints: u32,
    /// Empty where the graph gives no names.
    switch_names: Vec<String>,
    /// Empty where endpoints have no names.
    endpoint_names: Vec<String>,
    /// Kinds of link: that of endpoints first.
    classes: Vec<String>,
    /// Names of modules; empty where no switch names one.
    #[serde(default)]
    modules: Vec<String>,
    /// By switch: its module.
    #[serde(default)]
    module_of: Vec<Option<u32>>,
    /// The entries of a table of next hops.
    #[serde(default)]
    next_hops: Vec<NextHopEntry>,
}

/// An entry of a table: switches by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct NextHopEntry {
    at: u32,
    to: u32,
    via: u32,
}

impl Graph {
    /// The graph of a description, in which places exist and numbers are not zero. Where it says nothing of
    /// endpoints, every switch has so many.
    ///
    /// # Errors
    /// More of something than a machine may have.
    pub fn new(description: &GraphDescription, endpoints_per_switch: u32) -> Result<Graph, SizeError> {
        let endpoints_at = description.endpoints_at(endpoints_per_switch);
        let endpoints: u128 = endpoints_at.iter().map(|&count| u128::from(count)).sum();
        let links: u128 = description.links.iter().map(|link| u128::from(link.count)).sum();
        check_counts(endpoints, endpoints_at.len() as u128, endpoints + 2 * links)?;
        let order = numbering(&endpoints_at);
        let with_endpoints = endpoints_at.iter().filter(|&&count| count > 0).count() as u64;
        if with_endpoints > MAX_GRAPH_SWITCHES {
            let (count, limit) = (u128::from(with_endpoints), MAX_GRAPH_SWITCHES);
            return Err(SizeError::TooMany { what: "switches with endpoints in a graph", count, limit });
        }
        // Counts are below their limits, checked above.
        let in_order = |counts: &[u64]| -> Vec<u32> {
            let mut sorted = vec![0; counts.len()];
            for (place, &count) in order.iter().zip(counts) {
                sorted[*place as usize] = count as u32;
            }
            sorted
        };
        let first_endpoint = running_sum(&in_order(&endpoints_at));
        let first_neighbour = running_sum(&in_order(&description.links_at()));
        let neighbours = neighbours(description, &order, &first_neighbour, &first_endpoint);
        let classes = description.classes.iter().map(|class| class.name.clone());
        let (modules, module_of) = modules(description, &order);
        Ok(Graph {
            modules,
            module_of,
            next_hops: next_hops(description, &order),
            with_endpoints: with_endpoints as u32,
            switch_names: switch_names(description, &order),
            endpoint_names: endpoint_names(description, &order, &first_endpoint),
            classes: std::iter::once("endpoint".to_owned()).chain(classes).collect(),
            first_endpoint,
            first_neighbour,
            neighbours,
        })
    }

    /// Endpoints at a switch.
    #[inline]
    fn endpoints_at(&self, switch: SwitchId) -> u32 {
        self.first_endpoint[switch.index() + 1] - self.first_endpoint[switch.index()]
    }

    /// The links of a switch to others: of port `endpoints_at` first.
    #[inline]
    fn neighbours(&self, switch: SwitchId) -> &[Neighbour] {
        let range: Range<usize> =
            self.first_neighbour[switch.index()] as usize..self.first_neighbour[switch.index() + 1] as usize;
        &self.neighbours[range]
    }

    /// The link to another switch at a port.
    #[inline]
    fn neighbour(&self, switch: SwitchId, port: PortId) -> Option<Neighbour> {
        let place = port.0.checked_sub(self.endpoints_at(switch))?;
        self.neighbours(switch).get(place as usize).copied()
    }

    /// The switch and the port of an address.
    #[inline]
    fn place(address: Address) -> (SwitchId, PortId) {
        (SwitchId((address.0 >> 32) as u32), PortId(address.0 as u32))
    }
}

/// The number of every switch of a description: those with endpoints first.
fn numbering(endpoints_at: &[u64]) -> Vec<u32> {
    let mut next_with = 0;
    let mut next_without = endpoints_at.iter().filter(|&&count| count > 0).count() as u32;
    let number = |&count: &u64| {
        let next = if count > 0 { &mut next_with } else { &mut next_without };
        *next += 1;
        *next - 1
    };
    endpoints_at.iter().map(number).collect()
}

/// The sums of all counts before each, and of all.
fn running_sum(counts: &[u32]) -> Vec<u32> {
    let mut sum = 0;
    let before = counts.iter().map(|count| {
        sum += count;
        sum - count
    });
    let mut sums: Vec<u32> = before.collect();
    sums.push(sum);
    sums
}

/// Both directions of all links, by switch.
fn neighbours(
    description: &GraphDescription,
    order: &[u32],
    first_neighbour: &[u32],
    first_endpoint: &[u32],
) -> Vec<Neighbour> {
    let nothing = Neighbour { switch: 0, port: 0, class: 0 };
    let mut neighbours = vec![nothing; first_neighbour.last().map_or(0, |&count| count as usize)];
    let mut next = first_neighbour.to_vec();
    for link in &description.links {
        let ends = link.ends.map(|end| order[end as usize] as usize);
        for _ in 0..link.count {
            let places = ends.map(|end| next[end]);
            for (end, other) in [(0, 1), (1, 0)] {
                let endpoints = first_endpoint[ends[other] + 1] - first_endpoint[ends[other]];
                let port = endpoints + places[other] - first_neighbour[ends[other]];
                let switch = ends[other] as u32;
                neighbours[places[end] as usize] = Neighbour { switch, port, class: 1 + link.class };
                next[ends[end]] += 1;
            }
        }
    }
    neighbours
}

/// The next hops of all switches, by number.
fn next_hops(description: &GraphDescription, order: &[u32]) -> Vec<NextHopEntry> {
    let of_switch = |(&at, switch): (&u32, &GraphSwitch)| -> Vec<NextHopEntry> {
        let number = |place: u32| order[place as usize];
        let entry = |hop: &GraphHop| NextHopEntry { at, to: number(hop.to), via: number(hop.via) };
        switch.next.iter().map(entry).collect()
    };
    order.iter().zip(&description.switches).flat_map(of_switch).collect()
}

/// The names of modules, and the module of each switch by number.
fn modules(description: &GraphDescription, order: &[u32]) -> (Vec<String>, Vec<Option<u32>>) {
    let mut names: Vec<String> = Vec::new();
    let mut module_of = vec![None; order.len()];
    for (number, GraphSwitch { module, .. }) in order.iter().zip(&description.switches) {
        if module.is_empty() {
            continue;
        }
        let known = names.iter().position(|name| name == module);
        let place = known.unwrap_or_else(|| {
            names.push(module.clone());
            names.len() - 1
        });
        module_of[*number as usize] = Some(place as u32);
    }
    (names, module_of)
}

/// The names of switches by number.
fn switch_names(description: &GraphDescription, order: &[u32]) -> Vec<String> {
    if description.switches.iter().all(|switch| switch.name.is_empty()) {
        return Vec::new();
    }
    let mut names = vec![String::new(); order.len()];
    for (number, switch) in order.iter().zip(&description.switches) {
        names[*number as usize] = switch.name.clone();
    }
    names
}

/// The names of endpoints by number. Where some have names, the others are called after their switch.
fn endpoint_names(description: &GraphDescription, order: &[u32], first_endpoint: &[u32]) -> Vec<String> {
    if description.endpoints.is_empty() {
        return Vec::new();
    }
    let mut names = vec![String::new(); first_endpoint.last().map_or(0, |&count| count as usize)];
    let mut next = first_endpoint.to_vec();
    for endpoint in &description.endpoints {
        let switch = order[endpoint.switch as usize] as usize;
        names[next[switch] as usize] = endpoint.name.clone();
        next[switch] += 1;
    }
    for (switch, &number) in description.switches.iter().zip(order) {
        let number = number as usize;
        for unnamed in next[number]..first_endpoint[number + 1] {
            names[unnamed as usize] = format!("{}.{}", switch.name, unnamed - next[number]);
        }
    }
    names
}

impl Topology for Graph {
    fn endpoints(&self) -> u32 {
        self.first_endpoint.last().copied().unwrap_or(0)
    }

    fn switches(&self) -> u32 {
        self.first_endpoint.len() as u32 - 1
    }

    #[inline]
    fn ports(&self, switch: SwitchId) -> u32 {
        self.endpoints_at(switch) + self.neighbours(switch).len() as u32
    }

    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        match self.neighbour(switch, port) {
            Some(Neighbour { switch, port, .. }) => Attachment::Switch(SwitchId(switch), PortId(port)),
            None => Attachment::Endpoint(EndpointId(self.first_endpoint[switch.index()] + port.0)),
        }
    }

    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        // Only switches with endpoints, whose first endpoints all differ.
        let first = &self.first_endpoint[..self.with_endpoints as usize];
        let switch = first.partition_point(|&first| first <= endpoint.0) - 1;
        (SwitchId(switch as u32), PortId(endpoint.0 - first[switch]))
    }

    #[inline]
    fn link_class(&self, switch: SwitchId, port: PortId) -> LinkClass {
        LinkClass(self.neighbour(switch, port).map_or(0, |neighbour| neighbour.class))
    }

    fn link_classes(&self) -> Vec<&str> {
        self.classes.iter().map(String::as_str).collect()
    }

    fn switch_address(&self, switch: SwitchId) -> Address {
        Address(u64::from(switch.0) << 32)
    }

    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        let (switch, port) = self.attachment(endpoint);
        Address(u64::from(switch.0) << 32 | u64::from(port.0))
    }

    fn endpoint_name(&self, endpoint: EndpointId) -> String {
        self.endpoint_names.get(endpoint.index()).cloned().unwrap_or_else(|| endpoint.to_string())
    }

    fn endpoint(&self, name: &str) -> Result<EndpointId, UnknownEndpoint> {
        if self.endpoint_names.is_empty() {
            return numbered_endpoint(self.endpoints(), name);
        }
        let found = self.endpoint_names.iter().position(|known| known == name);
        let names = &self.endpoint_names;
        found.map(|place| EndpointId(place as u32)).ok_or_else(|| UnknownEndpoint {
            name: name.to_owned(),
            first: names.first().cloned().unwrap_or_default(),
            last: names.last().cloned().unwrap_or_default(),
            near: weft_keys::fewest_edits(name, names).cloned().unwrap_or_default(),
        })
    }

    fn switch_name(&self, switch: SwitchId) -> String {
        match self.switch_names.get(switch.index()) {
            Some(name) => format!("switch {name}"),
            None => format!("switch {switch}"),
        }
    }

    fn switch(&self, name: &str) -> Option<SwitchId> {
        let name = name.strip_prefix("switch ")?;
        if self.switch_names.is_empty() {
            let number = name.parse().ok().filter(|&number| number < self.switches())?;
            return Some(SwitchId(number));
        }
        let place = self.switch_names.iter().position(|known| known == name)?;
        Some(SwitchId(place as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two switches with endpoints, a switch without between them, and two links in parallel.
    fn description() -> GraphDescription {
        let switch = |name: &str, endpoints| GraphSwitch {
            name: name.to_owned(),
            endpoints,
            ..GraphSwitch::default()
        };
        let link = |ends, count| GraphLink { ends, count, class: 0 };
        let endpoint = |name: &str, switch| GraphEndpoint { name: name.to_owned(), switch };
        GraphDescription {
            file: "test".to_owned(),
            switches: vec![switch("core", None), switch("a", Some(1)), switch("b", None)],
            endpoints: vec![endpoint("host1", 2), endpoint("host0", 1)],
            links: vec![link([0, 1], 2), link([2, 0], 1)],
            classes: vec![GraphClass {
                name: "link".to_owned(),
                section: "link".to_owned(),
                rate: None,
                latency: None,
            }],
            ..GraphDescription::default()
        }
    }

    /// Catches numbers, names or ports that belong to another switch, and ends of a link that disagree.
    #[test]
    fn switches_with_endpoints_come_first_and_ports_meet() {
        let graph = Graph::new(&description(), 7).unwrap();
        assert_eq!((graph.endpoints(), graph.switches()), (3, 3));
        let names: Vec<_> = (0..3).map(|switch| graph.switch_name(SwitchId(switch))).collect();
        assert_eq!(names, ["switch a", "switch b", "switch core"]);
        let names: Vec<_> = (0..3).map(|endpoint| graph.endpoint_name(EndpointId(endpoint))).collect();
        assert_eq!(names, ["host0", "a.0", "host1"]);
        assert_eq!(graph.endpoint("host1"), Ok(EndpointId(2)));
        assert_eq!(graph.endpoint("hots1").unwrap_err().near, "host1");
        assert_eq!(graph.switch("switch core"), Some(SwitchId(2)));
        let at = |switch, port| graph.peer(SwitchId(switch), PortId(port));
        let of = |switch, port| Attachment::Switch(SwitchId(switch), PortId(port));
        assert_eq!([at(0, 2), at(0, 3), at(1, 1)], [of(2, 0), of(2, 1), of(2, 2)]);
        assert_eq!([at(2, 0), at(2, 1), at(2, 2)], [of(0, 2), of(0, 3), of(1, 1)]);
        assert_eq!(at(1, 0), Attachment::Endpoint(EndpointId(2)));
        assert_eq!(graph.attachment(EndpointId(2)), (SwitchId(1), PortId(0)));
    }

    /// Catches endpoints of which nobody spoke, and usual endpoints where the file has its own.
    #[test]
    fn every_switch_has_the_usual_endpoints_where_the_file_names_none() {
        let mut silent = description();
        silent.endpoints.clear();
        silent.switches[1].endpoints = None;
        assert_eq!(Graph::new(&silent, 7).unwrap().endpoints(), 21);
        silent.switches[1].endpoints = Some(u32::MAX);
        assert!(Graph::new(&silent, 1).unwrap_err().to_string().contains("4294967295 endpoints"));
    }
}
