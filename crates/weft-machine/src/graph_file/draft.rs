//! Nodes and edges with their attributes, as every format has them, and the graph that they describe.

use std::collections::BTreeMap;
use weft_topo::{GraphClass, GraphDescription, GraphEndpoint, GraphHop, GraphLink, GraphSwitch};
use weft_units::{BitRate, Span};

/// Something wrong in a file.
#[derive(Debug)]
pub(super) struct Fault {
    pub line: Option<usize>,
    pub what: String,
    pub mend: String,
}

impl Fault {
    pub fn new(line: Option<usize>, what: impl Into<String>, mend: impl Into<String>) -> Fault {
        Fault { line, what: what.into(), mend: mend.into() }
    }
}

pub(super) type Attributes = BTreeMap<String, String>;

pub(super) struct Node {
    pub name: String,
    pub attributes: Attributes,
    pub line: Option<usize>,
}

pub(super) struct Edge {
    /// Names of nodes.
    pub ends: [String; 2],
    pub attributes: Attributes,
    pub line: Option<usize>,
}

/// A file in full.
#[derive(Default)]
pub(super) struct Draft {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
    /// Whether an edge is one direction of a link.
    pub is_directed: bool,
    /// Whether several edges between two nodes are links in parallel.
    pub is_multigraph: bool,
}

/// The kind of a node, and its number among its kind.
#[derive(Clone, Copy)]
enum Role {
    Switch(u32),
    Endpoint(usize),
}

impl Draft {
    /// The graph.
    pub fn describe(&self) -> Result<GraphDescription, Fault> {
        let mut graph = GraphDescription::default();
        let mut roles = BTreeMap::new();
        // Endpoints, and the switches of each.
        let mut endpoints: Vec<(&Node, Vec<u32>)> = Vec::new();
        for node in &self.nodes {
            if let Some(control) = node.name.chars().find(|sign| sign.is_control()) {
                // Reports print it: a terminal would act on it.
                let what =
                    format!("the name of a node holds a control character, {}", control.escape_unicode());
                return Err(Fault::new(node.line, what, "leave it out"));
            }
            let role = if is_endpoint(node)? {
                endpoints.push((node, Vec::new()));
                Role::Endpoint(endpoints.len() - 1)
            } else {
                let own = parsed(node.attributes.get("endpoints"), "endpoints", 0, node.line)?;
                let module = node.attributes.get("module").cloned().unwrap_or_default();
                let name = node.name.clone();
                graph.switches.push(GraphSwitch { name, endpoints: own, module, next: Vec::new() });
                Role::Switch(graph.switches.len() as u32 - 1)
            };
            if roles.insert(&node.name, role).is_some() {
                let what = format!("two nodes are called `{}`", node.name);
                return Err(Fault::new(node.line, what, "give every node its own name"));
            }
        }
        for node in &self.nodes {
            if let Some(&Role::Switch(switch)) = roles.get(&node.name) {
                graph.switches[switch as usize].next = next_hops(node, &roles)?;
            }
        }
        // Links by their switches, the lower first.
        let mut links = BTreeMap::new();
        let mut one_way: BTreeMap<[&String; 2], &Edge> = BTreeMap::new();
        for edge in &self.edges {
            let [one, other] = &edge.ends;
            match (role(&roles, one, edge)?, role(&roles, other, edge)?) {
                (Role::Switch(from), Role::Switch(to)) => {
                    self.add_link(&mut graph, &mut links, [from, to], edge)?;
                }
                (Role::Switch(switch), Role::Endpoint(number))
                | (Role::Endpoint(number), Role::Switch(switch)) => {
                    let (node, switches) = &mut endpoints[number];
                    let is_back = self.is_directed && one_way.remove(&[other, one]).is_some();
                    if !is_back {
                        switches.push(switch);
                        one_way.insert([one, other], edge);
                    }
                    refuse_own_link(edge, &node.name)?;
                }
                (Role::Endpoint(_), Role::Endpoint(_)) => {
                    let what = format!("both {one} and {other} are endpoints");
                    return Err(Fault::new(edge.line, what, "join endpoints to switches"));
                }
            }
        }
        for (node, switches) in endpoints {
            let &[switch] = switches.as_slice() else {
                let what = format!("endpoint {} has {} links", node.name, switches.len());
                return Err(Fault::new(node.line, what, "give every endpoint one link, to a switch"));
            };
            graph.endpoints.push(GraphEndpoint { name: node.name.clone(), switch });
        }
        if self.is_directed {
            one_way.values().next().map_or(Ok(()), |edge| Err(no_way_back(edge)))?;
            links.values().try_for_each(KnownLinks::refuse_one_way)?;
        }
        Ok(graph)
    }

    /// Adds a link between two switches, or what an edge says further of one.
    fn add_link<'a>(
        &self,
        graph: &mut GraphDescription,
        known: &mut BTreeMap<[u32; 2], KnownLinks<'a>>,
        ends: [u32; 2],
        edge: &'a Edge,
    ) -> Result<(), Fault> {
        if ends[0] == ends[1] {
            let what = format!("a link joins {} with itself", edge.ends[0]);
            return Err(Fault::new(edge.line, what, "remove the link"));
        }
        let count = parsed(edge.attributes.get("links"), "links", 1, edge.line)?.unwrap_or(1);
        let class = class(graph, edge)?;
        let pair = [ends[0].min(ends[1]), ends[0].max(ends[1])];
        // Both directions of an undirected graph are one.
        let direction = usize::from(self.is_directed && ends != pair);
        let next = graph.links.len();
        let known = known.entry(pair).or_insert(KnownLinks { place: next, links: [0; 2], edge });
        let is_parallel = known.links[direction] > 0;
        known.links[direction] = known.links[direction].saturating_add(count);
        if known.place == next {
            graph.links.push(GraphLink { ends, count, class });
            return Ok(());
        }
        let [one, other] = [&edge.ends[0], &edge.ends[1]];
        if is_parallel && !self.is_multigraph {
            let what = format!("{one} and {other} are joined twice");
            let mend = "remove one of the links; where they are parallel, write a single one with links=2";
            return Err(Fault::new(edge.line, what, mend));
        }
        let link = &mut graph.links[known.place];
        if link.class != class {
            let are = if is_parallel { "parallel links" } else { "directions" };
            let what = format!("{other} and {one} are joined by unlike {are}");
            return Err(Fault::new(edge.line, what, "give all links of two switches the same attributes"));
        }
        link.count = known.links.into_iter().max().unwrap_or(count);
        Ok(())
    }
}

/// The links between two switches.
struct KnownLinks<'a> {
    /// Place in the graph.
    place: usize,
    /// Links from the lower switch to the higher and, of a directed graph, back.
    links: [u32; 2],
    /// The first edge.
    edge: &'a Edge,
}

impl KnownLinks<'_> {
    /// Refuses links of a directed graph that do not go both ways.
    fn refuse_one_way(&self) -> Result<(), Fault> {
        match self.links {
            [one, other] if one == other => Ok(()),
            [0, _] | [_, 0] => Err(no_way_back(self.edge)),
            _ => {
                let [one, other] = &self.edge.ends;
                let what = format!("{one} and {other} are joined by more links one way than back");
                Err(Fault::new(self.edge.line, what, "write as many edges one way as back"))
            }
        }
    }
}

/// A directed edge without its counterpart.
fn no_way_back(edge: &Edge) -> Fault {
    let [from, to] = &edge.ends;
    let what = format!("the graph is directed, and no edge leads from {to} back to {from}");
    let mend = "a link goes both ways: write the edge back, or write the graph as an undirected one, as \
                networkx's to_undirected() makes it";
    Fault::new(edge.line, what, mend)
}

fn is_endpoint(node: &Node) -> Result<bool, Fault> {
    match node.attributes.get("type").map(String::as_str) {
        None | Some("switch") => Ok(false),
        Some("endpoint" | "host") => Ok(true),
        Some(other) => {
            let what = format!("`{other}` is no type of node");
            Err(Fault::new(node.line, what, "write type=switch or type=endpoint"))
        }
    }
}

/// The next hops that a switch names, `next=TO:VIA,TO:VIA`.
fn next_hops(node: &Node, roles: &BTreeMap<&String, Role>) -> Result<Vec<GraphHop>, Fault> {
    let text = node.attributes.get("next").map_or("", String::as_str);
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    let mend = "write next=TO:VIA,TO:VIA with names of switches, where VIA is the next one on the way to TO";
    let switch = |name: &str| match roles.get(&name.to_owned()) {
        Some(Role::Switch(switch)) => Ok(*switch),
        _ => Err(Fault::new(node.line, format!("`{name}` in the next hops is no switch"), mend)),
    };
    let hop = |word: &str| {
        let unreadable = || Fault::new(node.line, format!("`{word}` is no next hop"), mend);
        let (to, via) = word.split_once(':').ok_or_else(unreadable)?;
        Ok(GraphHop { to: switch(to)?, via: switch(via)? })
    };
    words.map(hop).collect()
}

fn role(roles: &BTreeMap<&String, Role>, name: &String, edge: &Edge) -> Result<Role, Fault> {
    roles.get(name).copied().ok_or_else(|| {
        Fault::new(edge.line, format!("no node is called `{name}`"), "name nodes that the file has")
    })
}

/// A whole number that an attribute gives, at least `least`.
fn parsed(text: Option<&String>, key: &str, least: u32, line: Option<usize>) -> Result<Option<u32>, Fault> {
    let Some(text) = text else { return Ok(None) };
    let number = text.trim().parse::<u32>().ok().filter(|&number| number >= least);
    number.map(Some).ok_or_else(|| {
        let mend = format!("write a whole number from {least} to {}", u32::MAX);
        Fault::new(line, format!("`{key}={text}` is no count"), mend)
    })
}

/// Endpoints share one class of links, whose values the machine file has.
fn refuse_own_link(edge: &Edge, endpoint: &str) -> Result<(), Fault> {
    let own =
        ["class", "rate", "latency", "links"].into_iter().find(|key| edge.attributes.contains_key(*key));
    match own {
        None => Ok(()),
        Some(key) => {
            let what = format!("the link of endpoint {endpoint} has a {key} of its own");
            Err(Fault::new(edge.line, what, "remove it: links of endpoints are those of [links.endpoint]"))
        }
    }
}

/// The class of an edge, which is added where it is new.
fn class(graph: &mut GraphDescription, edge: &Edge) -> Result<u8, Fault> {
    let section = edge.attributes.get("class").map_or("link", String::as_str);
    let unreadable = |error: weft_units::ParseQuantityError| {
        let what = format!("`{}` is not {}", error.text, error.expected);
        Fault::new(edge.line, what, format!("write {}", error.mend))
    };
    let rate = edge.attributes.get("rate").map(|text| text.parse::<BitRate>());
    let rate = rate.transpose().map_err(unreadable)?;
    let latency = edge.attributes.get("latency").map(|text| text.parse::<Span>());
    let latency = latency.transpose().map_err(unreadable)?;
    let mut name = section.to_owned();
    for own in [rate.map(|rate| rate.to_string()), latency.map(|latency| latency.to_string())] {
        name.extend(own.map(|own| format!(" {own}")));
    }
    if section == "endpoint" {
        let mend = "endpoints are nodes, or a number at a switch";
        return Err(Fault::new(edge.line, "a link between switches has the class `endpoint`", mend));
    }
    if let Some(place) = graph.classes.iter().position(|class| class.name == name) {
        return Ok(place as u8);
    }
    // The first class of a machine is that of endpoints.
    if graph.classes.len() + 1 >= usize::from(u8::MAX) {
        let mend = "give more links the same class, rate and latency";
        return Err(Fault::new(edge.line, "there are more than 254 kinds of links", mend));
    }
    graph.classes.push(GraphClass { name, section: section.to_owned(), rate, latency });
    Ok(graph.classes.len() as u8 - 1)
}
