//! `[topology]`: who is joined to whom, and which way packets go.
//!
//! Keys, words and checks are those of the families in `weft-topo`; none is named here.

use super::document::Item;
use super::graph_file;
use super::read::{Entry, Format, FromItem, Reader, join};
use super::schema;
use super::shipped::shipped_file;
use super::source::Location;
use super::table::{self, Locations, TableKeys};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::path::PathBuf;
use weft_keys::Reading;
use weft_keys::word::not_one_of;
use weft_keys::{Condition, Given, GivenKeys, Key, KeyType, Magnitude, Problem, Word, Writing, Written};
use weft_topo::{
    Attachment, FamilyKeys, GraphClass, GraphDescription, Layout, SizeError, Topology, TopologyParameters,
};
use weft_units::{PortId, SwitchId};

const FAMILIES: &[FamilyKeys] = TopologyParameters::FAMILIES;

/// All families' names, as the value of `kind`.
fn kinds() -> Words {
    Words { what: "a topology", words: FAMILIES.iter().map(|family| family.name).collect() }
}

/// All routings' names, as the value of `routing`.
fn routings() -> Words {
    Words { what: "a routing", words: without_repetition(all_routings().map(|routing| routing.name)) }
}

/// The routings of all families.
fn all_routings() -> impl Iterator<Item = &'static Word> {
    FAMILIES.iter().flat_map(|family| family.routings)
}

/// The keys of all families, in their order.
fn family_keys() -> Vec<&'static Key> {
    distinct(FAMILIES.iter().flat_map(|family| family.keys))
}

/// The keys of all routings, in their order.
fn routing_keys() -> Vec<&'static Key> {
    distinct(all_routings().flat_map(|routing| routing.keys))
}

/// The first key of each name.
fn distinct(keys: impl Iterator<Item = &'static Key>) -> Vec<&'static Key> {
    let mut distinct: Vec<&Key> = Vec::new();
    for key in keys {
        if distinct.iter().all(|known| known.name != key.name) {
            distinct.push(key);
        }
    }
    distinct
}

fn without_repetition<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut distinct = Vec::new();
    for name in names {
        if !distinct.contains(&name) {
            distinct.push(name);
        }
    }
    distinct
}

/// One of some words.
struct Words {
    what: &'static str,
    words: Vec<&'static str>,
}

impl Format for Words {
    type Value = &'static str;

    fn read(&self, value: &Written) -> Result<&'static str, Problem> {
        let Written::Text(text) = value else { return Err(not_one_of(self.what, value, &self.words)) };
        let found = self.words.iter().find(|word| *word == text).copied();
        found.ok_or_else(|| not_one_of(self.what, value, &self.words))
    }

    fn show(&self, word: &&'static str) -> String {
        (*word).to_owned()
    }

    fn magnitude(&self, _: &&'static str) -> Option<Magnitude> {
        None
    }
}

/// The section as read.
#[derive(Clone, Debug)]
pub(crate) struct RawTopology {
    locations: Locations,
    family: &'static FamilyKeys,
    kind: Location,
    /// `None`: something is missing or wrong, and was reported.
    parameters: Option<TopologyParameters>,
    /// Whether the routing is one of another family, which was reported.
    has_wrong_routing: bool,
    /// Values that follow from others.
    derived: Vec<Derived>,
}

/// The value of a key that is not given and follows from others.
#[derive(Clone, Debug)]
struct Derived {
    key: &'static str,
    value: String,
    how: &'static str,
}

impl RawTopology {
    /// Whether a `--set` gave the kind or a list of sizes: then the file's link classes may be those of
    /// another topology.
    pub fn is_set(&self) -> bool {
        let is_list = |name: &str| {
            self.family.keys.iter().any(|key| key.name == name && key.writing == Writing::Counts)
        };
        let mut lists = self.locations.keys.iter().filter(|(name, _)| is_list(name));
        self.kind.is_set() || lists.any(|(_, location)| location.is_set())
    }
}

impl FromItem for RawTopology {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<RawTopology> {
        let (family_keys, routing_keys) = (family_keys(), routing_keys());
        let names = |keys: &[&'static Key]| keys.iter().map(|key| key.name).collect::<Vec<_>>();
        let known = [&["kind"][..], &names(&family_keys), &["routing"], &names(&routing_keys)].concat();
        let entries = reader.table(item, path, &known)?;
        let find = |name: &str| entries.iter().find(|entry| entry.key == name);
        let Some(kind) = find("kind") else {
            reader.missing(item.location, path, "kind");
            return None;
        };
        let kind = Entry::in_format(&kinds(), &kind.item, &join(path, "kind"), reader)?;
        let family = FAMILIES.iter().find(|family| family.name == kind.value)?;
        let is_set = kind.location.is_set();
        let table = TableKeys::new(item, entries, path, reader);
        let (has_wrong_routing, derived) = (false, Vec::new());
        let mut section = Section { table, family, is_set, has_wrong_routing, derived };
        for key in family_keys {
            if family.keys.iter().all(|own| own.name != key.name) {
                // What it belongs to is another kind.
                let _ = section.refuse(key.name, &Condition { key: "kind", words: &[], in_rows: None });
            }
        }
        let parameters = TopologyParameters::read(family.name, &mut section);
        let Section { table, has_wrong_routing, derived, .. } = section;
        let TableKeys { mut locations, .. } = table;
        locations.keys.push(("kind", kind.location));
        Some(RawTopology { locations, family, kind: kind.location, parameters, has_wrong_routing, derived })
    }
}

/// The section being read: its keys are those of a table, but for the routings of other families.
struct Section<'t, 'a> {
    table: TableKeys<'t, 'a>,
    family: &'static FamilyKeys,
    /// Whether a `--set` gave the kind or the routing: keys of the file that this leaves without a meaning
    /// are dropped.
    is_set: bool,
    has_wrong_routing: bool,
    derived: Vec<Derived>,
}

impl GivenKeys for Section<'_, '_> {
    fn value<T>(&mut self, key: &'static str, reading: Reading<T>) -> Given<T> {
        if key == "routing" && !self.can_route() {
            return Given::Absent;
        }
        self.table.value(key, reading)
    }

    fn other<T: KeyType>(&self, path: &'static str) -> Given<T> {
        self.table.other(path)
    }

    fn holds(&self, condition: &Condition<'_>) -> bool {
        self.table.holds(condition)
    }

    /// Reports a key that means nothing to this kind of topology and its routing, or drops it.
    fn refuse(&mut self, key: &'static str, _: &Condition<'_>) -> bool {
        let Some(location) = self.table.location(key) else { return true };
        if self.is_set && !location.is_set() {
            return true;
        }
        let problem = Problem::new(
            format!("`topology.{key}` means nothing to a topology of kind `{}`", self.family.name),
            "not used",
            format!("remove `{key}`, or choose another kind"),
        );
        self.table.reader.report(location, problem);
        false
    }

    fn report_missing(&mut self, key: &'static Key) {
        self.table.report_missing(key);
    }

    fn report(&mut self, key: &'static str, problem: Problem) {
        self.table.report(key, problem);
    }

    fn derive(&mut self, key: &'static str, value: String, how: &'static str) {
        self.derived.push(Derived { key, value, how });
    }
}

impl Section<'_, '_> {
    /// Whether the routing that is given, if one is, is one of the family. One of another family is reported,
    /// or left behind in the file while a `--set` tries another kind.
    fn can_route(&mut self) -> bool {
        let Some(location) = self.table.location("routing") else { return true };
        // A key of a routing stays in the file while a `--set` tries another routing.
        let kind_is_set = self.is_set;
        self.is_set |= location.is_set();
        let routings = self.family.routings;
        let Some(word) = self.table.text("routing") else { return true };
        let is_known = all_routings().any(|routing| routing.name == word);
        if !is_known || routings.iter().any(|routing| routing.name == word) {
            return true;
        }
        if kind_is_set && !location.is_set() {
            return false;
        }
        let able: Vec<&str> = routings.iter().map(|routing| routing.name).collect();
        let problem = Problem::new(
            format!("{word} does not route a topology of kind `{}`", self.family.name),
            "does not fit",
            format!("write routing = \"{}\"", able.join("\" or \"")),
        );
        self.table.reader.report(location, problem);
        self.has_wrong_routing = true;
        false
    }
}

impl RawTopology {
    /// Reports a machine of a size that cannot be built.
    fn report_size(&self, error: &SizeError, reader: &mut Reader<'_>) {
        let is_own = |name: &str| self.family.keys.iter().any(|key| key.name == name);
        let locations = || self.locations.keys.iter().filter(|(name, _)| is_own(name)).map(|given| given.1);
        // A `--set` is the likelier culprit.
        let set = locations().find(|location| location.is_set());
        let location = set.or_else(|| locations().next()).unwrap_or(self.kind);
        let problem = match error {
            SizeError::TooMany { what, count, limit } => Problem::new(
                format!("the machine would have {} {what}", weft_topo::counted(*count)),
                "too large",
                format!("make it smaller: at most {limit} {what}"),
            ),
            other => Problem::new(other.to_string(), "", "change the size of the machine"),
        };
        reader.report(location, problem);
    }
}

/// A topology that can be built.
pub(crate) struct Checked {
    pub locations: Locations,
    pub parameters: TopologyParameters,
    pub layout: Layout,
    /// Kinds of its links.
    pub link_classes: Vec<GraphClass>,
}

/// Reads the file of a graph that the section names. `None`: it is no graph, which was reported.
fn read_graph(graph: &mut GraphDescription, location: Location, reader: &mut Reader<'_>) -> Option<()> {
    let folder = match location.is_set() {
        true => PathBuf::new(),
        false => graph_file::folder_of(reader.sources.file_name()),
    };
    let text = match reader.files.get(&graph.file) {
        Some(text) => Ok(text.clone()),
        None => graph_file::text_of(&graph.file, &folder).or_else(|problem| {
            // A machine that ships, or one that was made of it, has its file with it.
            shipped_file(&graph.file).map(str::to_owned).ok_or(problem)
        }),
    };
    let read = text.and_then(|text| Ok((graph_file::read(&graph.file, &folder, &text)?, text)));
    match read {
        Ok((described, text)) => {
            reader.read_files.insert(graph.file.clone(), text);
            *graph = described;
            Some(())
        }
        Err(problem) => {
            reader.report(location, problem);
            None
        }
    }
}

/// Checks `[topology]`.
pub(super) fn check(mut raw: RawTopology, reader: &mut Reader<'_>) -> Option<Checked> {
    // Behind all that the file gives.
    for Derived { key, value, how } in std::mem::take(&mut raw.derived) {
        reader.derive(&join("topology", key), value, how);
    }
    let mut parameters = raw.parameters.take()?;
    if let Some(graph) = parameters.graph_file() {
        read_graph(graph, raw.locations.of("file"), reader)?;
    }
    if let Err(misfit) = parameters.check() {
        raw.locations.report(misfit, reader);
        return None;
    }
    let layout: Result<Layout, SizeError> = parameters.counts().check().and_then(|()| parameters.build());
    match layout {
        Ok(_) if raw.has_wrong_routing => None,
        Ok(layout) => {
            let link_classes = link_classes(&parameters, &layout);
            Some(Checked { locations: raw.locations, parameters, layout, link_classes })
        }
        Err(error) => {
            raw.report_size(&error, reader);
            None
        }
    }
}

/// Refuses a layout that joins more links and endpoints to a switch than it has ports.
pub(super) fn check_ports(layout: &Layout, most: u32) -> Result<(), Problem> {
    let joined = |switch| {
        let ports = (0..layout.ports(switch)).map(PortId);
        ports.filter(|port| layout.peer(switch, *port) != Attachment::Nothing).count() as u32
    };
    let switches = (0..layout.switches()).map(SwitchId);
    let widest = switches.map(|switch| (joined(switch), Reverse(switch))).max();
    match widest {
        Some((ports, Reverse(switch))) if ports > most => Err(Problem::new(
            format!("the layout joins {ports} links and endpoints to switch {}", switch.0),
            format!("a switch has {most} ports"),
            format!("change [topology] so that a switch needs {most} at most, or write ports = {ports}"),
        )),
        _ => Ok(()),
    }
}

/// The kinds of link of a layout: their names, and what else the topology knows of them.
fn link_classes(parameters: &TopologyParameters, layout: &Layout) -> Vec<GraphClass> {
    let named = |name: &str| {
        let known = parameters.links().iter().find(|class| class.name == name).cloned();
        known.unwrap_or_else(|| GraphClass {
            name: name.to_owned(),
            section: name.to_owned(),
            rate: None,
            latency: None,
        })
    };
    layout.link_classes().into_iter().map(named).collect()
}

impl JsonSchema for RawTopology {
    fn schema_name() -> Cow<'static, str> {
        "RawTopology".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = serde_json::Map::new();
        let mut add = |name: &str, description: String, mut schema: Schema| {
            schema.insert("description".to_owned(), description.into());
            properties.insert(name.to_owned(), schema.to_value());
        };
        add("kind", "The kind of topology.".to_owned(), schema::attributed(json!({ "enum": kinds().words })));
        let usual = "Which way packets go; the first that the kind of topology has where not given.";
        add("routing", usual.to_owned(), schema::attributed(json!({ "enum": routings().words })));
        for key in family_keys() {
            add(key.name, family_description(key), table::key_schema(key, generator));
        }
        for key in routing_keys() {
            add(key.name, routing_description(key), table::key_schema(key, generator));
        }
        json_schema!({
            "description": "Who is joined to whom, and which way packets go.",
            "type": "object",
            "properties": properties,
            "required": ["kind"],
            "additionalProperties": false,
        })
    }
}

/// The meaning of a key in every family that has it.
fn family_description(key: &Key) -> String {
    let meanings = FAMILIES.iter().flat_map(|family| {
        let own = family.keys.iter().filter(|own| own.name == key.name);
        own.map(move |own| (family.title, own.meaning))
    });
    by_meaning(meanings)
}

/// The meaning of a key in every routing that has it.
fn routing_description(key: &Key) -> String {
    let meanings = all_routings().flat_map(|routing| {
        let own = routing.keys.iter().filter(|own| own.name == key.name);
        own.map(move |own| (routing.name, own.meaning))
    });
    by_meaning(meanings)
}

/// `Torus, Mesh: switches along each dimension.`
fn by_meaning(meanings: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let mut grouped: Vec<(&str, Vec<&str>)> = Vec::new();
    for (title, meaning) in meanings {
        match grouped.iter_mut().find(|(known, _)| *known == meaning) {
            Some((_, titles)) if titles.contains(&title) => {}
            Some((_, titles)) => titles.push(title),
            None => grouped.push((meaning, vec![title])),
        }
    }
    let texts = grouped.iter().map(|(meaning, titles)| {
        let first = meaning.chars().next().map_or(String::new(), |first| first.to_lowercase().to_string());
        format!("{}: {first}{}", titles.join(", "), meaning.get(1..).unwrap_or(""))
    });
    texts.collect::<Vec<_>>().join(" ")
}
