//! The keys of a graph in machine files.

use super::modules::Modules;
use super::table::Table;
use super::{
    Graph, GraphClass, GraphDescription, GraphEndpoint, GraphHop, GraphLayout, GraphLink, GraphRouting,
    GraphSwitch,
};
use crate::family::{Counts, Family};
use crate::parameters;
use crate::size::SizeError;
use crate::traits::Routing;
use std::collections::BTreeSet;
use std::sync::Arc;
use weft_keys::{KeyType, Misfit, Problem, Writing, Written};

/// A graph stands in machine files as the path of its file. Who reads machine files reads that too.
impl KeyType for GraphDescription {
    const NAME: &'static str = "GraphFile";
    const WRITING: Writing = Writing::Path;

    fn read(written: &Written) -> Result<GraphDescription, Problem> {
        match written {
            Written::Text(file) => Ok(GraphDescription { file: file.clone(), ..GraphDescription::default() }),
            other => {
                let label = format!("this is {}", other.describe());
                Err(Problem::new("this is not the path of a file", label, "write \"net.graphml\""))
            }
        }
    }

    fn show(&self) -> String {
        self.file.clone()
    }
}

parameters! {
    /// A graph.
    pub struct GraphParameters routed by GraphRouting {
        /// The file of the graph: GraphML, JSON of networkx, or an edge list; its path from the machine file.
        file: GraphDescription;
        /// Endpoints at every switch, where the file names none; 1 where not given.
        endpoints_per_switch: u32 = 1;
        /// Most ports of a switch, endpoints included; any number where not given.
        radix: u32 = u32::MAX;
    }
}

/// A graph that is no machine.
enum WhyNot {
    Size(SizeError),
    Apart(String),
}

impl GraphParameters {
    /// The mend of a graph that cannot be a machine, as a report on the key `file`.
    fn misfit(title: String, help: &str) -> Misfit {
        Misfit { key: "file", title, label: String::new(), help: help.to_owned() }
    }

    /// The machine, or why there is none: its size, or two switches between which no packet can go.
    fn layout(&self) -> Result<Arc<GraphLayout>, WhyNot> {
        self.file.built.get_or(self, || {
            let graph = Graph::new(&self.file, self.endpoints_per_switch).map_err(WhyNot::Size)?;
            GraphLayout::new(graph, self.routing).map_err(WhyNot::Apart)
        })
    }

    /// A switch with more ports than a switch has.
    fn over_radix(&self) -> Option<Misfit> {
        let endpoints = self.file.endpoints_at(self.endpoints_per_switch);
        let ports = endpoints.iter().zip(self.file.links_at()).map(|(endpoints, links)| endpoints + links);
        let most = u64::from(self.radix).min(u64::from(u16::MAX));
        let (switch, ports) = self.file.switches.iter().zip(ports).find(|(_, ports)| *ports > most)?;
        Some(GraphParameters::misfit(
            format!("switch {} would have {ports} ports; its radix is {most}", switch.name),
            "take links or endpoints away, or raise topology.radix",
        ))
    }

    /// A switch or endpoint whose name another has.
    fn repeated_name(&self) -> Option<Misfit> {
        let switches = self.file.switches.iter().map(|switch| &switch.name);
        let endpoints = self.file.endpoints.iter().map(|endpoint| &endpoint.name);
        let mut known = BTreeSet::new();
        let twice = switches.chain(endpoints).find(|name| !name.is_empty() && !known.insert(*name))?;
        Some(GraphParameters::misfit(
            format!("two nodes are called `{twice}`"),
            "give every node its own name",
        ))
    }

    /// A link that joins a switch with itself, or two switches that are already joined.
    fn wrong_link(&self) -> Option<Misfit> {
        let name = |switch: u32| &self.file.switches[switch as usize].name;
        let mut known = BTreeSet::new();
        for link in &self.file.links {
            let [one, other] = link.ends;
            if one == other {
                let title = format!("a link joins {} with itself", name(one));
                return Some(GraphParameters::misfit(title, "remove the link"));
            }
            if !known.insert([one.min(other), one.max(other)]) {
                return Some(GraphParameters::misfit(
                    format!("{} and {} are joined twice", name(one), name(other)),
                    "remove one of the links; where they are parallel, write a single one with links=2",
                ));
            }
        }
        None
    }
}

impl Family for GraphParameters {
    const NAME: &'static str = "graph";
    const TITLE: &'static str = "Graph";
    type Layout = GraphLayout;

    fn check(&self) -> Result<(), Misfit> {
        if self.file.switches.is_empty() {
            return Err(GraphParameters::misfit("the graph has no switches".to_owned(), "add a node"));
        }
        let wrong = self.repeated_name().or_else(|| self.wrong_link()).or_else(|| self.over_radix());
        if let Some(misfit) = wrong {
            return Err(misfit);
        }
        // What the limits refuse is reported as a size.
        let Ok(graph) = Graph::new(&self.file, self.endpoints_per_switch) else { return Ok(()) };
        if graph.first_endpoint.last() == Some(&0) {
            let title = "the graph has no endpoints".to_owned();
            return Err(GraphParameters::misfit(title, "mark nodes with type=endpoint, or give endpoints"));
        }
        if let GraphRouting::Hierarchical { .. } = self.routing
            && let Err(fault) = Modules::of(&graph)
        {
            return Err(GraphParameters::misfit(fault.to_string(), fault.mend()));
        }
        if self.routing == GraphRouting::Table
            && let Err(fault) = Table::of(&graph)
        {
            return Err(GraphParameters::misfit(fault.to_string(), fault.mend()));
        }
        match self.layout() {
            Err(WhyNot::Apart(why)) => {
                Err(GraphParameters::misfit(why, "join the parts of the graph by links"))
            }
            Ok(_) | Err(WhyNot::Size(_)) => Ok(()),
        }
    }

    fn counts(&self) -> Counts {
        let sum = |counts: Vec<u64>| counts.into_iter().map(u128::from).sum::<u128>();
        let endpoints = sum(self.file.endpoints_at(self.endpoints_per_switch));
        Counts {
            endpoints,
            switches: self.file.switches.len() as u128,
            ports: endpoints + sum(self.file.links_at()),
            virtual_channels: self.layout().map_or(1, |layout| layout.virtual_channels()),
        }
    }

    fn build(&self) -> Result<GraphLayout, SizeError> {
        match self.layout() {
            Ok(layout) => Ok((*layout).clone()),
            Err(WhyNot::Size(error)) => Err(error),
            Err(WhyNot::Apart(_)) => Err(SizeError::Apart),
        }
    }

    fn links(&self) -> &[GraphClass] {
        &self.file.classes
    }

    fn graph_file(&mut self) -> Option<&mut GraphDescription> {
        Some(&mut self.file)
    }

    fn examples() -> Vec<GraphParameters> {
        let routings = [
            GraphRouting::ShortestPath,
            GraphRouting::Ecmp { hash_seed: 1 },
            GraphRouting::Spray,
            GraphRouting::RoundRobin,
            GraphRouting::Multipath { hash_seed: 1 },
            GraphRouting::Adaptive,
            GraphRouting::Valiant,
            GraphRouting::UgalL { ugal_threshold: weft_units::Bytes::ZERO },
            GraphRouting::UgalG { ugal_threshold: weft_units::Bytes::ZERO },
        ];
        let graphs = [
            // A single switch; a ring of seven; one of nine with chords; a tree with two links in parallel.
            (graph(1, &[]), 3),
            (graph(7, &[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 0]]), 1),
            (graph(9, &std::array::from_fn::<_, 9, _>(|i| [i as u32, (i as u32 + 2) % 9])), 2),
            (tree_with_names(), 1),
        ];
        let mut examples = Vec::new();
        for (file, endpoints_per_switch) in graphs {
            for routing in routings {
                let file = file.clone();
                examples.push(GraphParameters { file, endpoints_per_switch, radix: u32::MAX, routing });
            }
        }
        let routing = GraphRouting::Hierarchical { hash_seed: 1 };
        for (file, endpoints_per_switch) in [(two_modules(), 2), (chain_of_modules(), 1)] {
            examples.push(GraphParameters { file, endpoints_per_switch, radix: u32::MAX, routing });
        }
        for (file, endpoints_per_switch) in [(one_way_ring(), 1), (tree_by_one_root(), 1)] {
            let routing = GraphRouting::Table;
            examples.push(GraphParameters { file, endpoints_per_switch, radix: u32::MAX, routing });
        }
        examples
    }
}

/// A graph of so many switches, joined by links of one kind.
fn graph(switches: u32, links: &[[u32; 2]]) -> GraphDescription {
    let name = |number: u32| GraphSwitch { name: format!("s{number}"), ..GraphSwitch::default() };
    GraphDescription {
        file: "example.edges".to_owned(),
        switches: (0..switches).map(name).collect(),
        endpoints: Vec::new(),
        links: links.iter().map(|&ends| GraphLink { ends, count: 1, class: 0 }).collect(),
        classes: vec![GraphClass {
            name: "link".to_owned(),
            section: "link".to_owned(),
            rate: None,
            latency: None,
        }],
        ..GraphDescription::default()
    }
}

/// Two roots, three leaves, and five endpoints at these; the first root is joined to the first leaf twice.
fn tree_with_names() -> GraphDescription {
    let mut tree = graph(5, &[[0, 2], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4]]);
    tree.links[0].count = 2;
    let endpoint = |(number, switch)| GraphEndpoint { name: format!("host{number}"), switch };
    tree.endpoints = [(0, 2), (1, 3), (2, 3), (3, 4), (4, 4)].map(endpoint).to_vec();
    tree
}

/// A ring of seven in which all packets go the same way round.
fn one_way_ring() -> GraphDescription {
    let mut ring = graph(7, &[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 0]]);
    for (at, switch) in (0..7).zip(&mut ring.switches) {
        let others = (0..7).filter(|&to| to != at);
        switch.next = others.map(|to| GraphHop { to, via: (at + 1) % 7 }).collect();
    }
    ring
}

/// The tree, all of whose packets go by way of the first root.
fn tree_by_one_root() -> GraphDescription {
    let mut tree = tree_with_names();
    let leaves = 2..5;
    tree.switches[0].next = leaves.clone().map(|to| GraphHop { to, via: to }).collect();
    for at in leaves.clone() {
        let others = leaves.clone().filter(|&to| to != at);
        tree.switches[at as usize].next = others.map(|to| GraphHop { to, via: 0 }).collect();
    }
    tree
}

/// A ring of five and a row of three, joined by two gateways that are unlike far away.
fn two_modules() -> GraphDescription {
    let rings = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [5, 6], [6, 7]];
    let gateways = [[0, 8], [8, 5], [2, 9], [9, 7]];
    in_modules(graph(10, &[&rings[..], &gateways[..]].concat()), &["ring"; 5], &["row"; 3])
}

/// Three modules in a row of which one has a ring, with two gateways between each two; the way from the first
/// to the last passes the second.
fn chain_of_modules() -> GraphDescription {
    let links = [[0, 1], [2, 3], [3, 4], [4, 2], [5, 6]];
    let gateways = [[0, 7], [7, 2], [1, 8], [8, 3], [3, 9], [9, 5], [4, 10], [10, 6]];
    let chain = graph(11, &[&links[..], &gateways[..]].concat());
    in_modules(chain, &["first"; 2], &["ring", "ring", "ring", "last", "last"])
}

/// The modules of the first switches, which alone have endpoints.
fn in_modules(mut graph: GraphDescription, first: &[&str], second: &[&str]) -> GraphDescription {
    let names =
        first.iter().chain(second).map(|name| (*name).to_owned()).chain(std::iter::repeat(String::new()));
    for (switch, name) in graph.switches.iter_mut().zip(names) {
        switch.endpoints = Some(if name.is_empty() { 0 } else { 2 });
        switch.module = name;
    }
    graph
}
