//! A table of a machine file as whoever declares its keys reads it: each value is checked by its type, keeps
//! its place, and becomes a constant.

use super::document::{Entry as TableEntry, Item, Value};
use super::read::{Entry, FromItem, Reader, join};
use super::schema;
use super::source::Location;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use std::borrow::Cow;
use weft_keys::Reading;
use weft_keys::{Condition, Given, GivenKeys, Key, KeyType, Keys, Misfit, Problem, Word};

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
    /// Whether its keys are one value together: none has a source of its own.
    is_row: bool,
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
        TableKeys { entries, path, reader, is_needed: true, locations, is_row: false }
    }

    /// A row of a list, whose keys are one value together.
    pub fn row(
        item: &Item,
        entries: &'t [TableEntry],
        path: &'t str,
        reader: &'t mut Reader<'a>,
    ) -> TableKeys<'t, 'a> {
        TableKeys { is_row: true, ..TableKeys::new(item, entries, path, reader) }
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

    /// The items of a key in the rows of a list, as in `switch.classes.congestion`.
    fn in_rows(&self, path: &str) -> impl Iterator<Item = &Item> {
        let rows = path.split('.').try_fold(vec![self.reader.root], |tables, key| {
            let items = tables.into_iter().filter_map(|table| below(table, key));
            Some(items.flat_map(rows_of).collect::<Vec<_>>())
        });
        rows.into_iter().flatten()
    }
}

/// The items of a list; of another value itself.
fn rows_of(item: &Item) -> &[Item] {
    match &item.value {
        Value::Array(rows) => rows,
        _ => std::slice::from_ref(item),
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
        if self.is_row {
            let location = entry.item.location;
            self.locations.keys.push((key, location));
            return match (reading.read)(&entry.item.value.written()) {
                Ok(value) => Given::Value(value),
                Err(problem) => {
                    self.reader.report(location, problem);
                    Given::Wrong
                }
            };
        }
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
        let has = |item: &Item| match &bare(item).value {
            _ if condition.words.is_empty() => true,
            Value::Text(text) => condition.words.contains(&text.as_str()),
            _ => false,
        };
        let rows = condition.in_rows.into_iter().flat_map(|path| self.in_rows(path));
        self.item(condition.key).into_iter().chain(rows).any(has)
    }

    fn refuse(&mut self, key: &'static str, condition: &Condition<'_>) -> bool {
        let Some(entry) = self.entry(key) else { return true };
        let location = bare(&entry.item).location;
        let chosen = self.item(condition.key).map(bare);
        // Left behind in the file while a `--set` tries another value of the key that it goes with.
        if chosen.is_some_and(|item| item.location.is_set()) && !location.is_set() {
            return true;
        }
        let place = match chosen.map(|item| &item.value) {
            Some(Value::Text(text)) => format!("with {} = \"{text}\"", condition.key),
            None if condition.words.is_empty() => format!("without `{}`", condition.key),
            _ => "here".to_owned(),
        };
        let problem = Problem::new(
            format!("`{}` means nothing {place}", join(self.path, key)),
            "not used",
            format!("remove it, or write {}", condition.text()),
        );
        self.reader.report(location, problem);
        false
    }

    fn report_missing(&mut self, key: &'static Key) {
        if !self.is_needed {
            return;
        }
        if !self.is_row {
            return self.reader.missing_key(self.locations.section, self.path, key);
        }
        let title = format!("`{}` has no `{}`", self.path, key.name);
        let help = format!("write {} = …: {}", key.name, key.meaning);
        self.reader.report(self.locations.section, Problem::new(title, "", help));
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

/// The meaning of a key among those of its table, and what it goes with.
pub(crate) fn meaning(key: &Key, keys: &'static [Key]) -> String {
    let carries = |word: &&Word| word.keys.iter().any(|own| own.name == key.name);
    let holder = keys.iter().find(|holder| holder.words.iter().any(|word| carries(&word)));
    let words: Vec<&str> = holder
        .map_or(Vec::new(), |holder| holder.words.iter().filter(carries).map(|word| word.name).collect());
    let of_word = holder.map(|holder| Condition { key: holder.name, words: &words, in_rows: None });
    match key.condition.or(of_word) {
        Some(condition) => format!("{} Only with {}.", key.meaning, condition.text()),
        None => key.meaning.to_owned(),
    }
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
        property.insert("description".to_owned(), meaning(key, keys).into());
        let object = table.ensure_object();
        object.entry("properties").or_insert(json!({}))[key.name] = property.to_value();
        let needed = are_needed && keys.iter().any(|own| own.name == key.name) && key.is_needed;
        if needed && let Some(list) = object.entry("required").or_insert(json!([])).as_array_mut() {
            list.push(key.name.into());
        }
    }
}
