//! `[topology]`: who is joined to whom, and which way packets go.
//!
//! Keys, words and checks are those of the families in `weft-topo`; none is named here.

use super::document::{Entry as TableEntry, Item, Value};
use super::graph_file;
use super::read::{Entry, Format, FromItem, Reader, join};
use super::schema;
use super::shipped::shipped_file;
use super::source::Location;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use std::borrow::Cow;
use std::path::PathBuf;
use weft_keys::word::not_one_of;
use weft_keys::{KeyType, Magnitude, Problem, Written};
use weft_topo::{
    FamilyKeys, GivenKeys, GraphClass, GraphDescription, Key, KeyKind, KeyValue, Layout, Misfit, RoutingWord,
    SizeError, TopologyParameters,
};
use weft_units::Bytes;

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
fn all_routings() -> impl Iterator<Item = &'static RoutingWord> {
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

impl Format for KeyKind {
    type Value = KeyValue;

    fn read(&self, value: &Written) -> Result<KeyValue, Problem> {
        match self {
            KeyKind::Count => u32::read(value).map(KeyValue::Count),
            KeyKind::Counts => Vec::<u32>::read(value).map(KeyValue::Counts),
            KeyKind::Size => Bytes::read(value).map(KeyValue::Size),
            KeyKind::Flag => bool::read(value).map(KeyValue::Flag),
            // The file is read where it is known from which folder.
            KeyKind::Graph => match value {
                Written::Text(file) => {
                    let unread = GraphDescription { file: file.clone(), ..GraphDescription::default() };
                    Ok(KeyValue::Graph(Box::new(unread)))
                }
                other => {
                    let label = format!("this is {}", other.describe());
                    Err(Problem::new("this is not the path of a file", label, "write \"net.graphml\""))
                }
            },
            KeyKind::Word { what, words } => {
                Words { what, words: words.to_vec() }.read(value).map(KeyValue::Word)
            }
        }
    }

    fn show(&self, value: &KeyValue) -> String {
        value.to_string()
    }

    fn magnitude(&self, value: &KeyValue) -> Option<Magnitude> {
        match value {
            KeyValue::Count(count) => count.magnitude(),
            KeyValue::Size(bytes) => bytes.magnitude(),
            KeyValue::Counts(_) | KeyValue::Flag(_) | KeyValue::Graph(_) | KeyValue::Word(_) => None,
        }
    }
}

/// A key that the machine gives.
#[derive(Clone, Debug)]
struct Given {
    key: &'static str,
    entry: Entry<KeyValue>,
}

/// The section as read: values are of the kinds that their keys have.
#[derive(Clone, Debug)]
pub(crate) struct RawTopology {
    location: Location,
    family: &'static FamilyKeys,
    kind: Location,
    /// Keys of the family, then of routings.
    given: Vec<Given>,
    /// Keys of other families.
    foreign: Vec<(&'static str, Location)>,
    routing: Option<Entry<&'static str>>,
}

impl RawTopology {
    /// Whether a `--set` gave the kind or a list of sizes: then the file's link classes may be those of
    /// another topology.
    pub fn is_set(&self) -> bool {
        let lists = self.given.iter().filter(|given| matches!(given.entry.value, KeyValue::Counts(_)));
        self.kind.is_set() || lists.into_iter().any(|given| given.entry.location.is_set())
    }
}

impl RawTopology {
    /// The places of its keys.
    fn locations(&self) -> Locations {
        let given = self.given.iter().map(|given| (given.key, given.entry.location));
        Locations { section: self.location, keys: given.chain([("kind", self.kind)]).collect() }
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
        let of_family = read_keys(family.keys, entries, path, reader);
        // `Some(None)`: the section names no routing.
        let routing = match find("routing") {
            Some(entry) => {
                Entry::in_format(&routings(), &entry.item, &join(path, "routing"), reader).map(Some)
            }
            None => Some(None),
        };
        let of_routing = read_keys(routing_keys.iter().copied(), entries, path, reader);
        let own = |key: &Key| family.keys.iter().any(|own| own.name == key.name);
        let foreign = family_keys.into_iter().filter(|key| !own(key));
        let foreign =
            foreign.filter_map(|key| Some((key.name, value_location(&find(key.name)?.item)))).collect();
        Some(RawTopology {
            location: item.location,
            family,
            kind: kind.location,
            given: [of_family?, of_routing?].concat(),
            foreign,
            routing: routing?,
        })
    }
}

/// Those of some keys that a table has. `None`: problems were reported.
fn read_keys(
    keys: impl IntoIterator<Item = &'static Key>,
    entries: &[TableEntry],
    path: &str,
    reader: &mut Reader<'_>,
) -> Option<Vec<Given>> {
    let mut given = Some(Vec::new());
    for key in keys {
        let Some(entry) = entries.iter().find(|entry| entry.key == key.name) else { continue };
        match (Entry::in_format(&key.kind, &entry.item, &join(path, key.name), reader), &mut given) {
            (Some(entry), Some(given)) => given.push(Given { key: key.name, entry }),
            _ => given = None,
        }
    }
    given
}

/// Where a value stands, which may be attributed.
fn value_location(item: &Item) -> Location {
    let Value::Table(entries) = &item.value else { return item.location };
    entries.iter().find(|entry| entry.key == "value").map_or(item.location, |entry| entry.item.location)
}

/// The section being checked.
struct Section<'r, 'a> {
    raw: RawTopology,
    reader: &'r mut Reader<'a>,
    /// Whether a `--set` gave the kind or the routing: keys of the file that this leaves without a meaning
    /// are dropped.
    is_set: bool,
}

impl GivenKeys for Section<'_, '_> {
    fn value(&self, key: &'static str) -> Option<KeyValue> {
        if key == "routing" {
            return self.raw.routing.as_ref().map(|routing| KeyValue::Word(routing.value));
        }
        let given = self.raw.given.iter().find(|given| given.key == key)?;
        Some(given.entry.value.clone())
    }

    fn report_missing(&mut self, key: &'static str) {
        self.reader.missing(self.raw.location, "topology", key);
    }

    fn derive(&mut self, key: &'static str, value: KeyValue, how: &'static str) {
        self.reader.derive(&format!("topology.{key}"), value, how);
    }
}

impl Section<'_, '_> {
    /// Reports a key that means nothing here, or drops it.
    fn refuse(&mut self, key: &str, location: Location) {
        if self.is_set && !location.is_set() {
            self.reader.forget(&format!("topology.{key}"));
            return;
        }
        let problem = Problem::new(
            format!("`topology.{key}` means nothing to a topology of kind `{}`", self.raw.family.name),
            "not used",
            format!("remove `{key}`, or choose another kind"),
        );
        self.reader.report(location, problem);
    }

    /// The routing, which the family must have. `None`: a problem was reported.
    fn routing(&mut self) -> Option<&'static RoutingWord> {
        let routings = self.raw.family.routings;
        let usual = routings.first()?;
        let Some(Entry { value, location }) = self.raw.routing else { return Some(usual) };
        if let Some(routing) = routings.iter().find(|routing| routing.name == value) {
            return Some(routing);
        }
        if self.is_set && !location.is_set() {
            self.raw.routing = None;
            self.reader.forget("topology.routing");
            return Some(usual);
        }
        let able: Vec<&str> = routings.iter().map(|routing| routing.name).collect();
        let problem = Problem::new(
            format!("{value} does not route a topology of kind `{}`", self.raw.family.name),
            "does not fit",
            format!("write routing = \"{}\"", able.join("\" or \"")),
        );
        self.reader.report(location, problem);
        None
    }

    /// Reports or drops the keys of routings other than this one.
    fn refuse_keys_of_other_routings(&mut self, routing: &RoutingWord) {
        let family = self.raw.family;
        let is_own = |key: &str| family.keys.iter().chain(routing.keys).any(|own| own.name == key);
        let others: Vec<(&str, Location)> = self
            .raw
            .given
            .iter()
            .filter(|given| !is_own(given.key))
            .map(|given| (given.key, given.entry.location))
            .collect();
        for (key, location) in others {
            self.refuse(key, location);
        }
    }

    /// Reports parameters that fit no machine.
    fn report_misfit(&mut self, misfit: Misfit) {
        report_misfit(misfit, &self.raw.locations(), self.reader);
    }

    /// Reports a machine of a size that cannot be built.
    fn report_size(&mut self, error: &SizeError) {
        let own = |given: &&Given| self.raw.family.keys.iter().any(|key| key.name == given.key);
        let locations = || self.raw.given.iter().filter(own).map(|given| given.entry.location);
        // A `--set` is the likelier culprit.
        let set = locations().find(|location| location.is_set());
        let location = set.or_else(|| locations().next()).unwrap_or(self.raw.kind);
        let problem = match error {
            SizeError::TooMany { what, count, limit } => Problem::new(
                format!("the machine would have {} {what}", weft_topo::counted(*count)),
                "too large",
                format!("make it smaller: at most {limit} {what}"),
            ),
            other => Problem::new(other.to_string(), "", "change the size of the machine"),
        };
        self.reader.report(location, problem);
    }
}

/// The places of the keys in the file.
pub(crate) struct Locations {
    section: Location,
    keys: Vec<(&'static str, Location)>,
}

/// Reports parameters that do not fit a machine.
pub(crate) fn report_misfit(misfit: Misfit, locations: &Locations, reader: &mut Reader<'_>) {
    let Misfit { key, title, label, help } = misfit;
    let given = locations.keys.iter().find(|given| given.0 == key);
    let location = given.map_or(locations.section, |given| given.1);
    reader.report(location, Problem::new(title, label, help));
}

/// A topology that can be built.
pub(crate) struct Checked {
    pub locations: Locations,
    pub parameters: TopologyParameters,
    /// Kinds of its links.
    pub link_classes: Vec<GraphClass>,
}

/// Reads the files of graphs that the section names. `None`: one is no graph, which was reported.
fn read_graphs(mut raw: RawTopology, reader: &mut Reader<'_>) -> Option<RawTopology> {
    let mut are_read = true;
    for Given { entry, .. } in &mut raw.given {
        let KeyValue::Graph(graph) = &mut entry.value else { continue };
        let folder = match entry.location.is_set() {
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
                **graph = described;
            }
            Err(problem) => {
                reader.report(entry.location, problem);
                are_read = false;
            }
        }
    }
    are_read.then_some(raw)
}

/// Checks `[topology]`.
pub(super) fn check(raw: RawTopology, reader: &mut Reader<'_>) -> Option<Checked> {
    let is_set = raw.kind.is_set();
    let raw = read_graphs(raw, reader)?;
    let mut section = Section { raw, reader, is_set };
    for (key, location) in std::mem::take(&mut section.raw.foreign) {
        section.refuse(key, location);
    }
    let routing = section.routing();
    // A key of a routing stays in the file while a `--set` tries another routing.
    section.is_set |= section.raw.routing.as_ref().is_some_and(|routing| routing.location.is_set());
    match routing {
        Some(routing) => section.refuse_keys_of_other_routings(routing),
        // Reported; the size is checked all the same.
        None => section.raw.routing = None,
    }
    let parameters = TopologyParameters::read(section.raw.family.name, &mut section)?;
    if let Err(misfit) = parameters.check() {
        section.report_misfit(misfit);
        return None;
    }
    let layout: Result<Layout, SizeError> = parameters.counts().check().and_then(|()| parameters.build());
    match layout {
        Ok(layout) => {
            routing?;
            let link_classes = link_classes(&parameters, &layout);
            Some(Checked { locations: section.raw.locations(), parameters, link_classes })
        }
        Err(error) => {
            section.report_size(&error);
            None
        }
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
    weft_topo::Topology::link_classes(layout).into_iter().map(named).collect()
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
            add(key.name, family_description(key), key_schema(key.kind, generator));
        }
        for key in routing_keys() {
            add(key.name, routing_description(key), key_schema(key.kind, generator));
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

fn key_schema(kind: KeyKind, generator: &mut SchemaGenerator) -> Schema {
    match kind {
        KeyKind::Count => generator.subschema_for::<Entry<u32>>(),
        KeyKind::Counts => generator.subschema_for::<Entry<Vec<u32>>>(),
        KeyKind::Size => generator.subschema_for::<Entry<Bytes>>(),
        KeyKind::Flag => generator.subschema_for::<Entry<bool>>(),
        KeyKind::Graph => schema::attributed(json!({ "type": "string" })),
        KeyKind::Word { words, .. } => schema::attributed(json!({ "enum": words })),
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
