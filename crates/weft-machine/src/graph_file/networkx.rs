//! The JSON of networkx, as `node_link_data` writes it.

use super::draft::{Attributes, Draft, Edge, Fault, Node};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
struct Graph {
    #[serde(default)]
    directed: bool,
    #[serde(default)]
    multigraph: bool,
    nodes: Vec<GraphNode>,
    #[serde(alias = "edges")]
    links: Vec<GraphEdge>,
}

#[derive(Deserialize)]
struct GraphNode {
    id: Value,
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

#[derive(Deserialize)]
struct GraphEdge {
    source: Value,
    target: Value,
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

/// Reads a graph.
pub(super) fn read(text: &str) -> Result<Draft, Fault> {
    let graph: Graph = serde_json::from_str(text).map_err(|error| {
        let mend = "write it with networkx.node_link_data: nodes with `id`, links with `source` and `target`";
        Fault::new(Some(error.line()), error.to_string(), mend)
    })?;
    let node =
        |node: GraphNode| Node { name: plain(&node.id), attributes: plain_all(node.attributes), line: None };
    let edge = |edge: GraphEdge| Edge {
        ends: [plain(&edge.source), plain(&edge.target)],
        attributes: plain_all(edge.attributes),
        line: None,
    };
    Ok(Draft {
        nodes: graph.nodes.into_iter().map(node).collect(),
        edges: graph.links.into_iter().map(edge).collect(),
        is_directed: graph.directed,
        is_multigraph: graph.multigraph,
    })
}

/// A value as text, without the quotes of a string.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn plain_all(attributes: Map<String, Value>) -> Attributes {
    attributes.into_iter().map(|(key, value)| (key, plain(&value))).collect()
}
