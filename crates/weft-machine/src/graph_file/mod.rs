//! Files of graphs: GraphML, the JSON of networkx, and edge lists.
//!
//! ```text
//!   .graphml ─▶ graphml.rs   ─┐
//!   .json    ─▶ networkx.rs  ─┼▶ Draft: nodes and edges with their attributes ─▶ GraphDescription
//!   .csv     ─▶ edge_list.rs ─┤
//!   other    ─▶ edge_list.rs ─┘
//! ```
//! All formats have the same attributes; others are left alone:
//!
//! | of | attribute | meaning |
//! |---|---|---|
//! | node | `type` | `switch`, which is usual, or `endpoint` (`host` is the same) |
//! | node | `endpoints` | endpoints without names at a switch |
//! | node | `module` | the module of a switch, for the routing `hierarchical`; those without are gateways |
//! | node | `next` | next hops of a switch, for the routing `table`: `TO:VIA,TO:VIA` |
//! | edge | `class` | section of `[links]`; `link` where not given |
//! | edge | `rate`, `latency` | in place of those of the section |
//! | edge | `links` | links in parallel; 1 where not given |

mod draft;
mod edge_list;
mod graphml;
mod networkx;

use draft::{Draft, Fault};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use weft_keys::Problem;
use weft_topo::GraphDescription;

/// Longest file of a graph that is read, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// Texts of files by the names with which a machine file has them.
pub type Files = BTreeMap<String, String>;

/// The text of a graph's file. `written` is the file as the machine file names it, from the folder `from`.
pub(crate) fn text_of(written: &str, from: &Path) -> Result<String, Problem> {
    text(&from.join(written))
}

/// Reads the graph of a file with this text.
pub(crate) fn read(written: &str, from: &Path, text: &str) -> Result<GraphDescription, Problem> {
    let path = from.join(written);
    let drafted = match extension(&path).as_str() {
        "graphml" | "xml" => graphml::read(text),
        "json" => networkx::read(text),
        "csv" => edge_list::read_csv(text),
        _ => edge_list::read(text),
    };
    let described = drafted.and_then(|draft: Draft| draft.describe());
    described.map(|graph| GraphDescription { file: written.to_owned(), ..graph }).map_err(|fault| {
        let Fault { line, what, mend } = fault;
        let place = line.map_or(String::new(), |line| format!(":{line}"));
        Problem::new(format!("{}{place}: {what}", path.display()), "", mend)
    })
}

fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

/// The text of a file that is not too long.
fn text(path: &Path) -> Result<String, Problem> {
    let refuse = |why: String| {
        let mend = "name a GraphML, JSON or edge-list file, by its path from the machine file";
        Problem::new(format!("cannot read {}: {why}", path.display()), "", mend)
    };
    let file = std::fs::File::open(path).map_err(|error| refuse(error.to_string()))?;
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(|error| refuse(error.to_string()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(refuse(format!("it is longer than {} MiB", MAX_FILE >> 20)));
    }
    // Spreadsheets begin a file with a mark of its encoding.
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned))
}

/// The folder from which a machine file called `name` names other files.
pub(crate) fn folder_of(name: &str) -> PathBuf {
    Path::new(name).parent().map(Path::to_owned).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(name: &str, text: &str) -> Result<GraphDescription, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        let text = text_of(name, folder.path()).map_err(|problem| problem.title)?;
        read(name, folder.path(), &text).map_err(|problem| problem.title)
    }

    const GRAPHML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="type" attr.type="string"/>
  <key id="d1" for="edge" attr.name="rate" attr.type="string"/>
  <graph edgedefault="undirected">
    <node id="a"/><node id="b"/>
    <node id="h0"><data key="d0">endpoint</data></node>
    <node id="h1"><data key="d0">host</data></node>
    <edge source="a" target="b"><data key="d1">200Gb/s</data></edge>
    <edge source="h0" target="a"/>
    <edge source="b" target="h1"/>
  </graph>
</graphml>"#;
    const JSON: &str = r#"{"directed": false, "multigraph": false, "graph": {},
        "nodes": [{"id": "a"}, {"id": "b"}, {"id": "h0", "type": "endpoint"}, {"id": "h1", "type": "host"}],
        "links": [{"source": "a", "target": "b", "rate": "200Gb/s"}, {"source": "h0", "target": "a"},
                  {"source": "b", "target": "h1"}]}"#;
    const EDGES: &str = "# two switches\na\nb\nh0 type=endpoint\nh1 type=host\n\
                         a b rate=200Gb/s\nh0 a\nb h1 # the last\n";

    /// Catches a format that is read as another graph than the others.
    #[test]
    fn all_formats_say_the_same() {
        let graph = describe("net.graphml", GRAPHML).unwrap();
        assert_eq!((graph.switches.len(), graph.endpoints.len(), graph.links.len()), (2, 2, 1));
        assert_eq!(graph.classes[0].name, "link 200Gb/s");
        for (name, text) in [("net.json", JSON), ("net.edges", EDGES)] {
            let other = describe(name, text).unwrap();
            assert_eq!(GraphDescription { file: graph.file.clone(), ..other }, graph, "{name}");
        }
    }

    /// Catches bad files that are read all the same, and reports without the line.
    #[test]
    fn bad_files_are_refused_with_line_and_reason() {
        for (name, text, expected) in [
            ("a.edges", "a b\nb a rate=fast\n", ":2: `fast` is not a bit rate"),
            ("a.edges", "a b links=0\n", ":1: `links=0`"),
            ("a.edges", "a b\nb b\n", ":2: a link joins b with itself"),
            ("a.edges", "a b\nb a\n", ":2: b and a are joined twice"),
            ("a.edges", "a b c\n", ":1: `c` is no attribute"),
            ("a.edges", "a b\na,c\n", ":2: `a,c` has a comma"),
            (
                "a.edges",
                "a b\n\u{1b}[31mred b\n",
                ":2: the name of a node holds a control character, \\u{1b}",
            ),
            ("a.csv", "a,b\na;c\n", ":2: `a;c` has a semicolon"),
            ("a.csv", "a,b\n,c\n", ":2: a name is empty"),
            ("a.csv", "a,b\nb,c,fast\n", ":2: `fast` is no attribute"),
            ("a.csv", "from,to,rate\na,b,1Gb/s,2\n", ":2: 4 fields where the first line has 3"),
            ("a.edges", "h type=endpoint\nh a\nh b\n", "endpoint h has 2 links"),
            ("a.edges", "h type=endpoint\na b\n", "endpoint h has 0 links"),
            ("a.edges", "g type=endpoint\nh type=endpoint\ng h\n", ":3: both g and h are endpoints"),
            ("a.edges", "a type=router\n", ":1: `router` is no type of node"),
            ("a.edges", "a next=b\na b\n", ":1: `b` is no next hop"),
            ("a.edges", "a next=b:c\na b\n", ":1: `c` in the next hops is no switch"),
            ("a.json", "{", "EOF while parsing"),
            (
                "a.json",
                r#"{"nodes": [{"id": 1}], "links": [{"source": 1, "target": 2}]}"#,
                "no node is called `2`",
            ),
            ("a.json", r#"{"nodes": [{}], "links": []}"#, "missing field `id`"),
            ("a.graphml", "<graphml><graph><node/></graph></graphml>", "a node has no `id`"),
            ("a.graphml", "<!DOCTYPE a [<!ENTITY b \"c\">]><graphml/>", "DTD"),
            ("a.graphml", "<graphml>", ":1: "),
        ] {
            let error = describe(name, text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    /// Catches next hops that are lost, or that belong to another switch.
    #[test]
    fn next_hops_are_those_of_their_switch() {
        let graph = describe("a.edges", "a next=c:b,b:b\nb\nc\na b\nb c\n").unwrap();
        let next: Vec<_> = graph.switches[0].next.iter().map(|hop| (hop.to, hop.via)).collect();
        assert_eq!(next, [(2, 1), (1, 1)]);
        assert!(graph.switches[1..].iter().all(|switch| switch.next.is_empty()));
    }

    /// Catches the two directions of a link that are taken for two links, and unlike ones that pass for one.
    #[test]
    fn directions_of_a_directed_graph_must_be_alike() {
        let text = |back: &str| {
            format!(
                r#"{{"directed": true, "nodes": [{{"id": 0}}, {{"id": 1}}],
                "edges": [{{"source": 0, "target": 1, "rate": "1Gb/s"}}, {{"source": 1, "target": 0{back}}}]}}"#
            )
        };
        assert_eq!(describe("a.json", &text(r#", "rate": "1Gb/s""#)).unwrap().links.len(), 1);
        let error = describe("a.json", &text(r#", "rate": "2Gb/s""#)).unwrap_err();
        assert!(error.contains("0 and 1 are joined by unlike directions"), "{error}");
    }

    /// Catches comma-separated lists that are taken for names, with and without a line of names.
    #[test]
    fn comma_separated_edges_are_edges() {
        let expected = describe("net.edges", EDGES).unwrap();
        let plain = "\u{feff}a\nb\r\nh0,type=endpoint\nh1, type=host\n\
                     a,b,rate=200Gb/s\n# a comment\n\"h0\",a\nb,h1\n";
        let graph = describe("net.csv", plain).unwrap();
        assert_eq!(GraphDescription { file: expected.file.clone(), ..graph }, expected);
        // As pandas writes them, with numbers of rows.
        let named = ",source,target,rate,links,weight\n0,a,b,200Gb/s,,0.5\n1,b,c,,2,1\n";
        let graph = describe("net.csv", named).unwrap();
        let links: Vec<_> = graph.links.iter().map(|link| (link.ends, link.count)).collect();
        assert_eq!(links, [([0, 1], 1), ([1, 2], 2)]);
        assert_eq!(graph.classes[0].name, "link 200Gb/s");
    }

    /// Catches the file that networkx.write_edgelist writes as it is called most often.
    #[test]
    fn edge_lists_of_networkx_are_read() {
        assert_eq!(describe("a.edges", "a b {}\nb c {}\n").unwrap().links.len(), 2);
        let error = describe("a.edges", "a b {'weight': 3}\n").unwrap_err();
        assert!(error.contains("Python's"), "{error}");
    }

    /// Catches one-way edges that silently become links, which go both ways.
    #[test]
    fn one_way_edges_of_directed_graphs_are_refused() {
        let json = |edges: &str| {
            let nodes = r#"[{"id": "a"}, {"id": "b"}, {"id": "h", "type": "host"}]"#;
            describe("a.json", &format!(r#"{{"directed": true, "nodes": {nodes}, "edges": [{edges}]}}"#))
        };
        let edge = |from: &str, to: &str| format!(r#"{{"source": "{from}", "target": "{to}"}}"#);
        let host = format!("{}, {}", edge("h", "a"), edge("a", "h"));
        let both = format!("{host}, {}, {}", edge("a", "b"), edge("b", "a"));
        assert_eq!(json(&both).unwrap().links.len(), 1);
        let error = json(&format!("{host}, {}", edge("a", "b"))).unwrap_err();
        assert!(error.contains("no edge leads from b back to a"), "{error}");
        let error = json(&format!("{}, {}, {}", edge("a", "b"), edge("b", "a"), edge("h", "a"))).unwrap_err();
        assert!(error.contains("no edge leads from a back to h"), "{error}");
    }

    /// Catches parallel edges of GraphML that are refused, or that count twice where both ways are written.
    #[test]
    fn parallel_edges_of_graphml_are_parallel_links() {
        let graph = |default: &str, edges: &[(&str, &str)]| {
            let edge = |(from, to): &(&str, &str)| format!(r#"<edge source="{from}" target="{to}"/>"#);
            let edges: String = edges.iter().map(edge).collect();
            let nodes = r#"<node id="a"/><node id="b"/>"#;
            let text = format!(r#"<graphml><graph edgedefault="{default}">{nodes}{edges}</graph></graphml>"#);
            describe("a.graphml", &text).map(|graph| graph.links[0].count)
        };
        let (forth, back) = (("a", "b"), ("b", "a"));
        assert_eq!(graph("undirected", &[forth, forth, back]).unwrap(), 3);
        assert_eq!(graph("directed", &[forth, back, back, forth]).unwrap(), 2);
        let error = graph("directed", &[forth, back, forth]).unwrap_err();
        assert!(error.contains("more links one way than back"), "{error}");
    }

    /// Catches links of a multigraph that get lost.
    #[test]
    fn links_of_a_multigraph_are_parallel() {
        let text = r#"{"multigraph": true, "nodes": [{"id": 0}, {"id": 1}],
            "links": [{"source": 0, "target": 1, "key": 0}, {"source": 1, "target": 0, "key": 1}]}"#;
        let links = describe("a.json", text).unwrap().links;
        assert_eq!(links.iter().map(|link| link.count).collect::<Vec<_>>(), [2]);
    }
}
