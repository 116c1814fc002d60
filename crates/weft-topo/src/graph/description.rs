//! A network as a list: switches, endpoints and links, before anything is checked.

use super::built::Built;
use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Span};

/// A network as a list. Whoever reads files of graphs makes one, in the order of the file.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct GraphDescription {
    /// The file, as the machine file names it.
    pub file: String,
    /// Switches. Links name them by their place in this list.
    pub switches: Vec<GraphSwitch>,
    /// Endpoints that the file names.
    pub endpoints: Vec<GraphEndpoint>,
    /// Links between switches.
    pub links: Vec<GraphLink>,
    /// Kinds of links between switches.
    pub classes: Vec<GraphClass>,
    /// The machine that was last made of it, so that the next one like it takes no time.
    #[serde(skip)]
    pub built: Built,
}

/// A switch of a graph.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct GraphSwitch {
    /// The name.
    pub name: String,
    /// Endpoints at it that have no names of their own; `None`: the file does not say.
    pub endpoints: Option<u32>,
    /// The module that it belongs to, for hierarchical routing; empty: none.
    #[serde(default)]
    pub module: String,
    /// Next hops to other switches, for the routing `table`.
    #[serde(default)]
    pub next: Vec<GraphHop>,
}

/// The next switch on the way to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GraphHop {
    /// The switch that packets go to, by its place in [`GraphDescription::switches`].
    pub to: u32,
    /// The switch that they go to next.
    pub via: u32,
}

/// An endpoint that has a name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GraphEndpoint {
    /// The name.
    pub name: String,
    /// The switch that it is joined to.
    pub switch: u32,
}

/// A full-duplex link between two switches, or several in parallel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GraphLink {
    /// The switches.
    pub ends: [u32; 2],
    /// Links in parallel, at least 1.
    pub count: u32,
    /// The kind of link, by its place in [`GraphDescription::classes`].
    pub class: u8,
}

/// A kind of link.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GraphClass {
    /// The name in `[links]` of the machine file.
    pub name: String,
    /// The section of `[links]` that has what the graph does not say of it.
    pub section: String,
    /// The rate, where the graph says it.
    pub rate: Option<BitRate>,
    /// The latency, where the graph says it.
    pub latency: Option<Span>,
}

impl GraphDescription {
    /// Endpoints at every switch: those with names, and those without. Where the file says nothing of
    /// endpoints at all, every switch has `usual`.
    pub(super) fn endpoints_at(&self, usual: u32) -> Vec<u64> {
        let is_silent = self.endpoints.is_empty() && self.switches.iter().all(|one| one.endpoints.is_none());
        let usual = if is_silent { usual } else { 0 };
        let unnamed = |switch: &GraphSwitch| u64::from(switch.endpoints.unwrap_or(usual));
        let mut counts: Vec<u64> = self.switches.iter().map(unnamed).collect();
        for endpoint in &self.endpoints {
            counts[endpoint.switch as usize] += 1;
        }
        counts
    }

    /// Links between switches at every switch.
    pub(super) fn links_at(&self) -> Vec<u64> {
        let mut counts = vec![0; self.switches.len()];
        for link in &self.links {
            for end in link.ends {
                counts[end as usize] += u64::from(link.count);
            }
        }
        counts
    }
}
