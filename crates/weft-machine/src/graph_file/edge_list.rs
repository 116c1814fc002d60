//! Edge lists: a line for each edge, `from to key=value …`, or for a node, `name key=value …`.
//!
//! A `#` begins a comment. Nodes need no line of their own. Fields of a `.csv` are separated by commas; its
//! first line may name its columns, of which two are the ends and the others attributes.

use super::draft::{Attributes, Draft, Edge, Fault, Node};
use std::collections::BTreeSet;

/// Names of the columns with the ends of an edge, as tools write them.
const ENDS: [[&str; 2]; 3] = [["source", "target"], ["from", "to"], ["src", "dst"]];

/// Reads an edge list whose words are separated by blanks.
pub(super) fn read(text: &str) -> Result<Draft, Fault> {
    let mut list = ListedSoFar::default();
    for (number, line) in lines(text) {
        // So networkx.write_edgelist writes edges without attributes.
        let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "{}").collect();
        list.add(&words, number)?;
    }
    Ok(list.draft())
}

/// Reads an edge list whose fields are separated by commas.
pub(super) fn read_csv(text: &str) -> Result<Draft, Fault> {
    let mut list = ListedSoFar::default();
    let mut columns: Option<NamedColumns<'_>> = None;
    for (place, (number, line)) in lines(text).enumerate() {
        let fields: Vec<&str> = line.split(',').map(|field| field.trim().trim_matches('"')).collect();
        if place == 0
            && let Some(named) = NamedColumns::of(&fields)
        {
            columns = Some(named);
        } else if let Some(columns) = &columns {
            columns.add(&mut list, &fields, number)?;
        } else {
            list.add(&fields, number)?;
        }
    }
    Ok(list.draft())
}

/// Lines that say something, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = (1..).zip(text.lines());
    let stated = lines.map(|(number, line)| (number, line.split('#').next().unwrap_or_default()));
    stated.filter(|(_, line)| !line.trim().is_empty())
}

/// The columns of a file that names them.
struct NamedColumns<'a> {
    names: Vec<&'a str>,
    /// Those of the ends of an edge.
    ends: [usize; 2],
}

impl<'a> NamedColumns<'a> {
    /// `None`: the first line is an edge.
    fn of(fields: &[&'a str]) -> Option<NamedColumns<'a>> {
        let place = |name: &str| fields.iter().position(|field| field.eq_ignore_ascii_case(name));
        let ends = ENDS.iter().find_map(|[from, to]| Some([place(from)?, place(to)?]))?;
        Some(NamedColumns { names: fields.to_vec(), ends })
    }

    /// Adds the edge of a line. Empty fields say nothing.
    fn add(&self, list: &mut ListedSoFar, fields: &[&str], number: usize) -> Result<(), Fault> {
        if fields.len() != self.names.len() {
            let what = format!("{} fields where the first line has {}", fields.len(), self.names.len());
            return Err(Fault::new(Some(number), what, "write a field for each column"));
        }
        let others = fields.iter().zip(&self.names).enumerate();
        let others = others.filter(|(place, (field, _))| !self.ends.contains(place) && !field.is_empty());
        let attributes = others.map(|(_, (field, name))| ((*name).to_owned(), (*field).to_owned())).collect();
        list.add_named(&self.ends.map(|place| fields[place]), attributes, number)
    }
}

/// The nodes and edges of the lines so far.
#[derive(Default)]
struct ListedSoFar {
    draft: Draft,
    /// Ends of edges, with the lines that name them.
    named: Vec<(String, Option<usize>)>,
}

impl ListedSoFar {
    /// Adds a line: one or two names, then attributes.
    fn add(&mut self, words: &[&str], number: usize) -> Result<(), Fault> {
        let names = words.iter().take_while(|word| !word.contains('=')).take(2).count();
        self.add_named(&words[..names], attributes(&words[names..], number)?, number)
    }

    fn add_named(&mut self, names: &[&str], attributes: Attributes, number: usize) -> Result<(), Fault> {
        let line = Some(number);
        names.iter().try_for_each(|name| checked(name, number))?;
        match *names {
            [name] => self.draft.nodes.push(Node { name: name.to_owned(), attributes, line }),
            [from, to] => {
                let ends = [from, to].map(str::to_owned);
                self.named.extend(ends.clone().map(|name| (name, line)));
                self.draft.edges.push(Edge { ends, attributes, line });
            }
            _ => return Err(Fault::new(line, "attributes of nothing", "write the names of nodes first")),
        }
        Ok(())
    }

    /// All that was said, with the nodes that have no line of their own.
    fn draft(self) -> Draft {
        let ListedSoFar { mut draft, named } = self;
        let mut known: BTreeSet<String> = draft.nodes.iter().map(|node| node.name.clone()).collect();
        for (name, line) in named {
            if known.insert(name.clone()) {
                draft.nodes.push(Node { name, attributes: Attributes::new(), line });
            }
        }
        draft
    }
}

/// Refuses what is no name, but two in a notation that this file does not have.
fn checked(name: &str, number: usize) -> Result<(), Fault> {
    let line = Some(number);
    if name.is_empty() {
        return Err(Fault::new(line, "a name is empty", "write both ends of the edge"));
    }
    let separators =
        [(',', "comma", ".csv: such a file has commas"), (';', "semicolon", ".csv, with commas")];
    match separators.iter().find(|(separator, ..)| name.contains(*separator)) {
        None => Ok(()),
        Some((_, called, file)) => {
            let mend = format!("write two names with a blank between them, or call the file {file}");
            Err(Fault::new(line, format!("`{name}` has a {called}"), mend))
        }
    }
}

fn attributes(words: &[&str], line: usize) -> Result<Attributes, Fault> {
    let pair = |word: &&str| match word.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None if word.starts_with('{') => Err(Fault::new(
            Some(line),
            "attributes in Python's notation",
            "write the list with networkx.write_edgelist(graph, file, data=False), or the graph with \
             write_graphml, which keeps attributes",
        )),
        None => Err(Fault::new(
            Some(line),
            format!("`{word}` is no attribute"),
            "write one edge per line: two names, then attributes such as rate=100Gb/s",
        )),
    };
    words.iter().map(pair).collect()
}
