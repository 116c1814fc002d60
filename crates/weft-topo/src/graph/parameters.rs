//! The keys of a graph in machine files.

use super::{
    Graph, GraphClass, GraphDescription, GraphEndpoint, GraphLayout, GraphLink, GraphRouting, GraphSwitch,
};
use crate::family::{Counts, Family, KeyKind, KeyType, KeyValue, Misfit};
use crate::parameters;
use crate::size::SizeError;
use std::collections::BTreeSet;

impl KeyType for GraphDescription {
    const KIND: KeyKind = KeyKind::Graph;

    fn from_value(value: KeyValue) -> Option<GraphDescription> {
        if let KeyValue::Graph(description) = value { Some(*description) } else { None }
    }

    fn into_value(self) -> KeyValue {
        KeyValue::Graph(Box::new(self))
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

impl GraphParameters {
    /// The mend of a graph that cannot be a machine, as a report on the key `file`.
    fn misfit(title: String, help: &str) -> Misfit {
        Misfit { key: "file", title, label: String::new(), help: help.to_owned() }
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
        GraphLayout::new(graph, self.routing)
            .map(|_| ())
            .map_err(|why| GraphParameters::misfit(why, "join the parts of the graph by links"))
    }

    fn counts(&self) -> Counts {
        let sum = |counts: Vec<u64>| counts.into_iter().map(u128::from).sum::<u128>();
        let endpoints = sum(self.file.endpoints_at(self.endpoints_per_switch));
        let graph = Graph::new(&self.file, self.endpoints_per_switch).ok();
        let layout = graph.and_then(|graph| GraphLayout::new(graph, self.routing).ok());
        Counts {
            endpoints,
            switches: self.file.switches.len() as u128,
            ports: endpoints + sum(self.file.links_at()),
            virtual_channels: layout.map_or(1, |layout| crate::Routing::virtual_channels(&layout)),
        }
    }

    fn build(&self) -> Result<GraphLayout, SizeError> {
        let graph = Graph::new(&self.file, self.endpoints_per_switch)?;
        GraphLayout::new(graph, self.routing).map_err(|_| SizeError::Apart)
    }

    fn links(&self) -> &[GraphClass] {
        &self.file.classes
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
        examples
    }
}

/// A graph of so many switches, joined by links of one kind.
fn graph(switches: u32, links: &[[u32; 2]]) -> GraphDescription {
    let name = |number: u32| GraphSwitch { name: format!("s{number}"), endpoints: None };
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
