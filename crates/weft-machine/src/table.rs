//! A table of a machine file as whoever declares its keys reads it: each value is checked by its type, keeps
//! its place, and becomes a constant.

use super::document::{Entry as TableEntry, Item, Value};
use super::read::{Entry, FromItem, Reader, join};
use super::schema;
use super::source::Location;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use std::borrow::Cow;
use weft_keys::keys::Reading;
use weft_keys::{Condition, Given, GivenKeys, Key, KeyType, Keys, Misfit, Problem};

/// The places of a table's keys.
#[derive(Clone, Debug)]
pub(crate) struct Locations {
    /// Of the table.
    pub section: Location,
    /// Of the values that it gives.
    pub keys: Vec<(&'static str, Location)>,
}

impl Locations {
    /// The place of a key's value, or of the table where it is not given.
    pub fn of(&self, key: &str) -> Location {
        self.keys.iter().find(|given| given.0 == key).map_or(self.section, |given| given.1)
    }

    /// Reports parameters that do not fit together.
    pub fn report(&self, misfit: Misfit, reader: &mut Reader<'_>) {
        reader.report(self.of(misfit.key), misfit.into());
    }
}

/// A table whose keys are those of a type that is declared elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    /// `None`: something of it is missing or wrong, and was reported.
    pub keys: Option<T>,
    /// The places of its keys.
    pub locations: Locations,
}

impl<T> Table<T> {
    /// The value, where its keys fit together as these checks say. `None`: a problem was reported.
    pub fn check<const CHECKS: usize>(
        self,
        checks: impl FnOnce(&T) -> [Result<(), Misfit>; CHECKS],
        reader: &mut Reader<'_>,
    ) -> Option<T> {
        let misfits = checks(self.keys.as_ref()?).into_iter().filter_map(Result::err);
        let reported = misfits.map(|misfit| self.locations.report(misfit, reader)).count();
        self.keys.filter(|_| reported == 0)
    }
}

impl<T: Keys> FromItem for Table<T> {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<Table<T>> {
        let entries = reader.table(item, path, &names(T::KEYS))?;
        let mut table = TableKeys::new(item, entries, path, reader);
        let keys = T::read(&mut table);
        Some(Table { keys, locations: table.locations })
    }
}

impl<T: Keys> JsonSchema for Table<T> {
    fn schema_name() -> Cow<'static, str> {
        T::TYPE_NAME.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({ "type": "object", "additionalProperties": false });
        add_to_schema(T::KEYS, true, &mut schema, generator);
        schema
    }
}

/// A table whose keys are being read.
pub(crate) struct TableKeys<'t, 'a> {
    entries: &'t [TableEntry],
    path: &'t str,
    /// Who is told of problems.
    pub reader: &'t mut Reader<'a>,
    /// Whether what is missing is reported, and what makes no sense: not of keys that are not in use.
    pub is_needed: bool,
    /// The places of the values read so far.
    pub locations: Locations,
}

impl<'t, 'a> TableKeys<'t, 'a> {
    /// The table at a path. Its entries are known.
    pub fn new(
        item: &Item,
        entries: &'t [TableEntry],
        path: &'t str,
        reader: &'t mut Reader<'a>,
    ) -> TableKeys<'t, 'a> {
        let locations = Locations { section: item.location, keys: Vec::new() };
        TableKeys { entries, path, reader, is_needed: true, locations }
    }

    /// The place of a key's value; `None`: it is not given.
    pub fn location(&self, key: &str) -> Option<Location> {
        self.entry(key).map(|entry| bare(&entry.item).location)
    }

    /// The text that a key has as its value; `None`: it is not given, or no text.
    pub fn text(&self, key: &str) -> Option<&'t str> {
        match &bare(&self.entry(key)?.item).value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn entry(&self, key: &str) -> Option<&'t TableEntry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The item of a key of this table, or of another with its section, as in `fabric.flow_control`.
    fn item(&self, path: &str) -> Option<&Item> {
        if path.contains('.') {
            return at(self.reader.root, path);
        }
        self.entry(path).map(|entry| &entry.item)
    }
}

/// The item of a key of a table.
fn below<'i>(table: &'i Item, key: &str) -> Option<&'i Item> {
    let Value::Table(entries) = &table.value else { return None };
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
}

/// The item at a path, such as `nic.rdma.poll`.
pub(crate) fn at<'i>(root: &'i Item, path: &str) -> Option<&'i Item> {
    path.split('.').try_fold(root, below)
}

/// A value, which may be attributed.
pub(crate) fn bare(item: &Item) -> &Item {
    below(item, "value").unwrap_or(item)
}

impl GivenKeys for TableKeys<'_, '_> {
    fn value<T>(&mut self, key: &'static str, reading: Reading<T>) -> Given<T> {
        let Some(entry) = self.entry(key) else { return Given::Absent };
        match Entry::in_format(&reading, &entry.item, &join(self.path, key), self.reader) {
            Some(Entry { value, location }) => {
                self.locations.keys.push((key, location));
                Given::Value(value)
            }
            None => Given::Wrong,
        }
    }

    fn other<T: KeyType>(&self, path: &'static str) -> Given<T> {
        let item = at(self.reader.root, path);
        item.map_or(Given::Absent, |item| {
            T::read(&bare(item).value.written()).map_or(Given::Wrong, Given::Value)
        })
    }

    fn holds(&self, condition: &Condition<'_>) -> bool {
        let Some(item) = self.item(condition.key) else { return false };
        match &bare(item).value {
            _ if condition.words.is_empty() => true,
            Value::Text(text) => condition.words.contains(&text.as_str()),
            _ => false,
        }
    }

    fn refuse(&mut self, key: &'static str, condition: &Condition<'_>) -> bool {
        let Some(entry) = self.entry(key) else { return true };
        let location = bare(&entry.item).location;
        let chosen_by = self.item(condition.key).map(|item| bare(item).location);
        // Left behind in the file while a `--set` tries another value of the key that it goes with.
        if chosen_by.is_some_and(Location::is_set) && !location.is_set() {
            return true;
        }
        let problem = Problem::new(
            format!("`{}` means nothing here", join(self.path, key)),
            "not used",
            format!("remove it, or write {}", condition.text()),
        );
        self.reader.report(location, problem);
        false
    }

    fn report_missing(&mut self, key: &'static str) {
        if self.is_needed {
            self.reader.missing(self.locations.section, self.path, key);
        }
    }

    fn report(&mut self, key: &'static str, problem: Problem) {
        if !self.is_needed {
            return;
        }
        let title = problem.title.replace("{}", &join(self.path, key));
        self.reader.report(self.locations.of(key), Problem { title, ..problem });
    }

    fn derive(&mut self, key: &'static str, value: String, how: &'static str) {
        self.reader.derive(&join(self.path, key), value, how);
    }
}

/// Keys with those that their words carry, in their order, each name once.
pub(crate) fn all_keys(keys: &'static [Key]) -> Vec<&'static Key> {
    let mut all: Vec<&Key> = Vec::new();
    for key in keys {
        all.push(key);
        for own in key.words.iter().flat_map(|word| all_keys(word.keys)) {
            if all.iter().all(|known| known.name != own.name) {
                all.push(own);
            }
        }
    }
    all
}

/// The names of keys, with those that their words carry.
pub(crate) fn names(keys: &'static [Key]) -> Vec<&'static str> {
    all_keys(keys).into_iter().map(|key| key.name).collect()
}

/// The schema of a key's value.
pub(crate) fn key_schema(key: &Key, generator: &mut SchemaGenerator) -> Schema {
    let definition = schema::attributed(schema::of_writing(&key.writing));
    generator.definitions_mut().entry(key.type_name).or_insert(definition.to_value());
    json_schema!({ "$ref": format!("#/$defs/{}", key.type_name) })
}

/// Adds keys to the schema of a table. Those that must be given are said to, if `are_needed`.
pub(crate) fn add_to_schema(
    keys: &'static [Key],
    are_needed: bool,
    table: &mut Schema,
    generator: &mut SchemaGenerator,
) {
    for key in all_keys(keys) {
        let mut property = key_schema(key, generator);
        property.insert("description".to_owned(), key.meaning.into());
        let object = table.ensure_object();
        object.entry("properties").or_insert(json!({}))[key.name] = property.to_value();
        let needed = are_needed && keys.iter().any(|own| own.name == key.name) && key.is_needed;
        if needed && let Some(list) = object.entry("required").or_insert(json!([])).as_array_mut() {
            list.push(key.name.into());
        }
    }
}
