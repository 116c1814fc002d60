//! GraphML. Document types are refused, and with them entities that grow.
//!
//! # Source
//! U. Brandes et al., "GraphML progress report: structural layer proposal", GD 2001; the primer of
//! graphml.graphdrawing.org. Ports, nested graphs and hyperedges are left out.

use super::draft::{Attributes, Draft, Edge, Fault, Node};
use roxmltree::{Document, Node as Element, ParsingOptions};
use std::collections::BTreeMap;

/// Most elements and texts of a file.
const MAX_NODES: u32 = 1 << 24;

/// Reads a graph.
pub(super) fn read(text: &str) -> Result<Draft, Fault> {
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let mend = "write GraphML without a document type, as networkx.write_graphml does";
        Fault::new(Some(error.pos().row as usize), error.to_string(), mend)
    })?;
    let elements =
        |name: &'static str| document.descendants().filter(move |one| one.tag_name().name() == name);
    let keys = elements("key");
    let names: BTreeMap<&str, &str> =
        keys.filter_map(|key| Some((key.attribute("id")?, key.attribute("attr.name")?))).collect();
    let line = |element: Element<'_, '_>| Some(document.text_pos_at(element.range().start).row as usize);
    let attribute = |element: Element<'_, '_>, name: &str| {
        element.attribute(name).map(str::to_owned).ok_or_else(|| {
            let what = format!("a {} has no `{name}`", element.tag_name().name());
            Fault::new(line(element), what, "nodes have an id, edges a source and a target")
        })
    };
    // The format has no word for parallel edges: writers just write them.
    let mut draft = Draft { is_multigraph: true, ..Draft::default() };
    for graph in elements("graph") {
        draft.is_directed |= graph.attribute("edgedefault") == Some("directed");
    }
    for node in elements("node") {
        let attributes = data(node, &names);
        draft.nodes.push(Node { name: attribute(node, "id")?, attributes, line: line(node) });
    }
    for edge in elements("edge") {
        let ends = [attribute(edge, "source")?, attribute(edge, "target")?];
        draft.edges.push(Edge { ends, attributes: data(edge, &names), line: line(edge) });
    }
    Ok(draft)
}

/// The attributes that the `data` of an element gives, by the names of their keys.
fn data(element: Element<'_, '_>, names: &BTreeMap<&str, &str>) -> Attributes {
    let data = element.children().filter(|child| child.tag_name().name() == "data");
    let pair = |data: Element<'_, '_>| {
        let key = names.get(data.attribute("key")?)?;
        Some(((*key).to_owned(), data.text().unwrap_or_default().trim().to_owned()))
    };
    data.filter_map(pair).collect()
}
