//! Edge lists: a line for each edge, `from to key=value …`, or for a node, `name key=value …`.
//!
//! What follows `#` is a comment. Nodes need no line of their own.

use super::draft::{Attributes, Draft, Edge, Fault, Node};
use std::collections::BTreeSet;

/// Reads an edge list.
pub(super) fn read(text: &str) -> Result<Draft, Fault> {
    let mut draft = Draft::default();
    let mut named = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let (names, rest): (Vec<&str>, Vec<&str>) = {
            let words: Vec<&str> = line.split_whitespace().collect();
            let names = words.iter().take_while(|word| !word.contains('=')).take(2).count();
            (words[..names].to_vec(), words[names..].to_vec())
        };
        let attributes = attributes(&rest, number)?;
        let line = Some(number);
        match names[..] {
            [] if rest.is_empty() => {}
            [name] => draft.nodes.push(Node { name: name.to_owned(), attributes, line }),
            [from, to] => {
                named.extend([(from.to_owned(), line), (to.to_owned(), line)]);
                draft.edges.push(Edge { ends: [from, to].map(str::to_owned), attributes, line });
            }
            _ => return Err(Fault::new(line, "attributes of nothing", "write the names of nodes first")),
        }
    }
    let mut known: BTreeSet<String> = draft.nodes.iter().map(|node| node.name.clone()).collect();
    for (name, line) in named {
        if known.insert(name.clone()) {
            draft.nodes.push(Node { name, attributes: Attributes::new(), line });
        }
    }
    Ok(draft)
}

fn attributes(words: &[&str], line: usize) -> Result<Attributes, Fault> {
    let pair = |word: &&str| match word.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Fault::new(
            Some(line),
            format!("`{word}` is no attribute"),
            "write one edge per line: two names, then attributes such as rate=100Gb/s",
        )),
    };
    words.iter().map(pair).collect()
}
