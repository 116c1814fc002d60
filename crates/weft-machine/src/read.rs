//! From the raw document to raw types: sections by their fields, values by [`Reading`].
//!
//! Reading goes on after a mistake, so that one run names them all.

use super::constant::{Constant, Kind};
use super::diagnostic::Placed;
use super::diagnostic::{Diagnostic, START};
use super::document::{Entry as TableEntry, Item, Value};
use super::graph_file::Files;
use super::schema;
use super::source::{Location, Sources};
use serde_json::json;
use std::collections::BTreeMap;
use weft_keys::Reading;
use weft_keys::word::not_one_of;
use weft_keys::{Key, Magnitude, Problem, Written, nearest};

/// How values of one kind are written, where a type alone does not say.
pub(super) trait Format {
    /// The values.
    type Value;
    /// Reads one; the problem says what was expected and the mend.
    fn read(&self, written: &Written) -> Result<Self::Value, Problem>;
    /// The shortest text that reads as it.
    fn show(&self, value: &Self::Value) -> String;
    /// The size in the base unit, where values can be compared.
    fn magnitude(&self, value: &Self::Value) -> Option<Magnitude>;
}

impl<T> Format for Reading<T> {
    type Value = T;

    fn read(&self, written: &Written) -> Result<T, Problem> {
        (self.read)(written)
    }

    fn show(&self, value: &T) -> String {
        (self.show)(value)
    }

    fn magnitude(&self, value: &T) -> Option<Magnitude> {
        (self.magnitude)(value)
    }
}

/// A value as written: bare, or with its attribution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<T> {
    pub value: T,
    pub location: Location,
}

/// The state of reading: the problems and the constants found so far.
pub(super) struct Reader<'a> {
    pub sources: &'a Sources,
    /// The whole document: what a key means may depend on one of another section.
    pub root: &'a Item,
    pub diagnostics: Vec<Diagnostic>,
    /// Tables that lack keys. Each has one of the diagnostics.
    pub lacks: Vec<Lack>,
    pub constants: Vec<Constant>,
    /// Files that are not read anew: those of a result.
    pub files: &'a Files,
    /// Files that the machine names.
    pub read_files: Files,
}

/// The keys that one table lacks.
#[derive(Debug)]
pub(super) struct Lack {
    /// The table; empty at the root, whose keys are sections.
    path: String,
    location: Location,
    keys: Vec<String>,
    /// The meaning of the first, if whoever reads it knows.
    meaning: Option<&'static str>,
    /// The place in the reader's diagnostics.
    diagnostic: usize,
}

impl Lack {
    fn problem(&self) -> Problem {
        let path = &self.path;
        match (self.keys.as_slice(), path.is_empty()) {
            ([key], true) => {
                let help = format!("add [{key}] and its keys; {START}");
                Problem::new(format!("the section [{key}] is missing"), "", help)
            }
            ([key], false) => {
                let title = format!("the key `{}` is missing", join(path, key));
                let meaning = self.meaning.map_or(String::new(), |meaning| format!(": {meaning}"));
                Problem::new(title, "", format!("add `{key}` to [{path}]{meaning}"))
            }
            (keys, true) => {
                let title = format!("the sections [{}] are missing", keys.join("], ["));
                Problem::new(title, "", format!("add them and their keys; {START}"))
            }
            (keys, false) => {
                let title = format!("of [{path}] the keys `{}` are missing", keys.join("`, `"));
                Problem::new(title, "", format!("add them; {START}"))
            }
        }
    }
}

impl Reader<'_> {
    /// Reports a problem at a place.
    pub fn report(&mut self, location: Location, problem: Problem) {
        self.diagnostics.push(problem.at(location, self.sources));
    }

    /// Drops the values at `path` and below from the table of constants: they are not in use. Gives the
    /// path of the first that a `--set` asked for, where there is one.
    pub fn forget(&mut self, path: &str) -> Option<String> {
        let below = |constant: &mut Constant| {
            constant.path.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let dropped: Vec<Constant> = self.constants.extract_if(.., below).collect();
        dropped.into_iter().find(|constant| constant.kind == Kind::Set).map(|constant| constant.path)
    }

    /// Adds a value that follows from others.
    pub fn derive(&mut self, path: &str, value: impl ToString, how: &str) {
        self.constants.push(Constant {
            path: path.to_owned(),
            value: value.to_string(),
            kind: Kind::Derived,
            source: None,
            how: Some(how.to_owned()),
            row: None,
            range: None,
            range_source: None,
        });
    }

    /// The entries of a table; reports what is no table and keys that the format does not know.
    pub fn table<'i>(&mut self, item: &'i Item, path: &str, known: &[&str]) -> Option<&'i [TableEntry]> {
        let Value::Table(entries) = &item.value else {
            let name = if path.is_empty() { "the machine" } else { path };
            self.report(
                item.location,
                Problem::new(
                    format!("`{name}` is a table"),
                    format!("this is {}", item.value.describe()),
                    format!("write its keys: {}", known.join(", ")),
                ),
            );
            return None;
        };
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let full = join(path, &entry.key);
            let problem = Problem::new(
                format!("there is no key `{full}`"),
                "unknown key",
                match nearest_here(path, &entry.key, known).or_else(|| schema::nearest_path(&full)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the keys here are {}", known.join(", ")),
                },
            );
            self.report(entry.key_location, problem);
        }
        Some(entries)
    }

    /// Reads a field of a table, reporting it where it is missing and must not be.
    pub fn field<T: FromItem>(
        &mut self,
        table: &Item,
        entries: &[TableEntry],
        path: &str,
        key: &str,
    ) -> Option<T> {
        match entries.iter().find(|entry| entry.key == key) {
            Some(entry) => T::from_item(&entry.item, &join(path, key), self),
            None => T::absent().or_else(|| {
                self.missing(table.location, path, key);
                None
            }),
        }
    }

    /// Reports that the section at `path` lacks `key`, together with all else that it lacks.
    pub fn missing(&mut self, location: Location, path: &str, key: &str) {
        self.lacks_key(location, path, (key, None));
    }

    /// Reports that the section at `path` lacks a key that is declared with its meaning.
    pub fn missing_key(&mut self, location: Location, path: &str, key: &Key) {
        self.lacks_key(location, path, (key.name, Some(key.meaning)));
    }

    fn lacks_key(&mut self, location: Location, path: &str, (key, meaning): (&str, Option<&'static str>)) {
        let same = |lack: &Lack| lack.location == location && lack.path == path;
        let at = self.lacks.iter().position(same).unwrap_or_else(|| {
            let diagnostic = self.diagnostics.len();
            let (path, keys) = (path.to_owned(), Vec::new());
            self.lacks.push(Lack { path, location, keys, meaning: None, diagnostic });
            self.lacks.len() - 1
        });
        let lack = &mut self.lacks[at];
        lack.keys.push(key.to_owned());
        lack.meaning = lack.meaning.or(meaning);
        let (at, told) = (lack.diagnostic, lack.problem().at(location, self.sources));
        match self.diagnostics.get_mut(at) {
            Some(diagnostic) => *diagnostic = told,
            None => self.diagnostics.push(told),
        }
    }
}

/// The key of the table at `path` that is most like another; none of the root, whose keys are sections.
fn nearest_here(path: &str, key: &str, known: &[&str]) -> Option<String> {
    let near = nearest(key, known.iter().copied())?;
    (!path.is_empty()).then(|| join(path, near))
}

/// `path.key`, or `key` at the root.
pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A thing that can be read from a document. `None`: a problem was reported.
pub(super) trait FromItem: Sized {
    /// Reads it.
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<Self>;
    /// The value where the key is missing; `None`: it must not be missing.
    fn absent() -> Option<Self> {
        None
    }
}

impl<T: FromItem> FromItem for Option<T> {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<Option<T>> {
        T::from_item(item, path, reader).map(Some)
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}

impl<T: FromItem> FromItem for BTreeMap<String, T> {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let Value::Table(entries) = &item.value else {
            return reader.table(item, path, &["default"]).map(|_| BTreeMap::new());
        };
        let mut whole = Some(BTreeMap::new());
        for entry in entries {
            match (T::from_item(&entry.item, &join(path, &entry.key), reader), &mut whole) {
                (Some(value), Some(map)) => {
                    map.insert(entry.key.clone(), value);
                }
                _ => whole = None,
            }
        }
        whole
    }
}

impl<T: FromItem> FromItem for Vec<T> {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let Value::Array(items) = &item.value else {
            let problem = Problem::new(
                format!("`{path}` is a list of tables"),
                format!("this is {}", item.value.describe()),
                format!("write each as [[{path}]], or all of them by --set '{path}=[{{KEY=VALUE, ...}}]'"),
            );
            reader.report(item.location, problem);
            return None;
        };
        let rows =
            items.iter().enumerate().map(|(row, item)| T::from_item(item, &format!("{path}.{row}"), reader));
        let rows: Vec<Option<T>> = rows.collect();
        rows.into_iter().collect()
    }
}

impl FromItem for String {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<String> {
        let problem = match &item.value {
            // Lines of a file from Windows end as all others do.
            Value::Text(text) if text.contains("\r\n") => {
                let value = Value::Text(text.replace("\r\n", "\n"));
                return String::from_item(&Item { value, ..item.clone() }, path, reader);
            }
            // Reports print it: a terminal would obey it.
            Value::Text(text) => match text.chars().find(|c| c.is_control() && !['\n', '\t'].contains(c)) {
                None => return Some(text.clone()),
                Some(control) => Problem::new(
                    format!("`{path}` holds a control character"),
                    format!("this one: {}", control.escape_unicode()),
                    "leave it out",
                ),
            },
            other => Problem::new(
                format!("`{path}` is a text"),
                format!("this is {}", other.describe()),
                "put it in quotes",
            ),
        };
        reader.report(item.location, problem);
        None
    }
}

impl<T> Entry<T> {
    /// Reads a value in a format, bare or with its attribution.
    pub fn in_format(
        format: &impl Format<Value = T>,
        item: &Item,
        path: &str,
        reader: &mut Reader<'_>,
    ) -> Option<Entry<T>> {
        let (written, attribution) = match &item.value {
            Value::Table(entries) => {
                let attribution = Attribution::from_item(item, path, reader);
                let Some(value) = entries.iter().find(|entry| entry.key == "value") else {
                    reader.missing(item.location, path, "value");
                    return None;
                };
                (&value.item, attribution)
            }
            _ => (item, Some(Attribution::default())),
        };
        let value = match format.read(&written.value.written()) {
            Ok(value) => value,
            Err(problem) => {
                reader.report(written.location, problem);
                return None;
            }
        };
        let attribution = attribution?;
        if let Some(Err(problem)) = attribution.range.as_deref().map(|range| within(format, &value, range)) {
            reader.report(written.location, problem);
            return None;
        }
        let constant = attribution.constant(format.show(&value), path, written.location, reader)?;
        reader.constants.push(constant);
        Some(Entry { value, location: written.location })
    }
}

/// The schema of the keys that stand next to a value.
pub(super) fn attribution_schema() -> serde_json::Map<String, serde_json::Value> {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let kind =
        json!({ "enum": Kind::WRITTEN.map(Kind::name), "description": "How well the value is known." });
    [
        ("source", text("Document and section.")),
        ("kind", kind),
        ("how", text("How it was estimated or fitted.")),
        (
            "row",
            text(
                "Calibrated: the validation rows it is fitted on, with `, ` between; measured: the row it is \
                 taken from.",
            ),
        ),
        ("range", text("Calibrated: the values that it may have, such as `100ns..150ns`.")),
        (
            "range_source",
            text("Calibrated: document and section of the range, or `ours: …` with the reason."),
        ),
    ]
    .map(|(key, schema)| (key.to_owned(), schema))
    .into_iter()
    .collect()
}

/// The source of a value: the keys next to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Attribution {
    kind: Option<Kind>,
    source: Option<String>,
    how: Option<String>,
    row: Option<String>,
    range: Option<String>,
    range_source: Option<String>,
}

impl Attribution {
    /// The keys.
    pub const KEYS: [&'static str; 6] = ["source", "kind", "how", "row", "range", "range_source"];

    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<Attribution> {
        let known = [&["value"][..], &Attribution::KEYS].concat();
        let entries = reader.table(item, path, &known)?;
        Attribution::among(item, entries, path, reader)
    }

    /// The attribution among the keys of a table, which may hold others.
    pub fn among(
        table: &Item,
        entries: &[TableEntry],
        path: &str,
        reader: &mut Reader<'_>,
    ) -> Option<Attribution> {
        let [source, how, row, range, range_source] = ["source", "how", "row", "range", "range_source"]
            .map(|key| reader.field::<Option<String>>(table, entries, path, key));
        let mut kind = None;
        if let Some(entry) = entries.iter().find(|entry| entry.key == "kind") {
            kind = match &entry.item.value {
                Value::Text(text) => Kind::WRITTEN.into_iter().find(|kind| kind.name() == text),
                _ => None,
            };
            if kind.is_none() {
                let names = Kind::WRITTEN.map(Kind::name);
                reader.report(
                    entry.item.location,
                    not_one_of("a kind of source", &entry.item.value.written(), &names),
                );
                return None;
            }
        }
        Some(Attribution {
            kind,
            source: source?,
            how: how?,
            row: row?,
            range: range?,
            range_source: range_source?,
        })
    }

    /// The row in the table of constants, after checking that the attribution is whole.
    pub fn constant(
        self,
        value: String,
        path: &str,
        location: Location,
        reader: &mut Reader<'_>,
    ) -> Option<Constant> {
        let Attribution { kind, source, how, row, range, range_source } = self;
        let has_range = range.is_some() || range_source.is_some();
        let lacks = |what: &str, help: &str| Problem::new(format!("`{path}` {what}"), "", help);
        let problem = match kind {
            None if source.is_some() || how.is_some() || row.is_some() || has_range => Some(lacks(
                "has a source but no kind",
                "add kind = \"measured\", \"datasheet\", \"assumed\" or \"calibrated\"",
            )),
            Some(Kind::Assumed) if how.is_none() && source.is_none() => {
                Some(lacks("is assumed without a reason", "add how = \"…\": what the estimate rests on"))
            }
            Some(Kind::Measured | Kind::Datasheet | Kind::Calibrated) if source.is_none() => {
                Some(lacks("has a kind but no source", "add source = \"…\": document and section"))
            }
            Some(Kind::Calibrated) if row.is_none() || range.is_none() => Some(lacks(
                "is calibrated, on what?",
                "add row = \"…\", the validation row, and range = \"100ns..150ns\", the values it may have",
            )),
            Some(Kind::Calibrated) if range_source.is_none() => Some(lacks(
                "has a range without a source",
                "add range_source = \"…\": document and section, or \"ours: …\" with the reason",
            )),
            Some(Kind::Datasheet | Kind::Assumed) if row.is_some() => {
                Some(lacks("is not calibrated", "leave out row, or write kind = \"calibrated\""))
            }
            Some(Kind::Measured | Kind::Datasheet | Kind::Assumed) if has_range => Some(lacks(
                "is not calibrated",
                "leave out range and range_source, or write kind = \"calibrated\"",
            )),
            _ => None,
        };
        if let Some(problem) = problem {
            reader.report(location, problem);
            return None;
        }
        let (kind, source) = match kind {
            Some(kind) => (kind, source),
            None if location.is_set() => {
                (Kind::Set, Some(format!("--set {}", reader.sources.text(location.0))))
            }
            None => (Kind::Unsourced, None),
        };
        Some(Constant { path: path.to_owned(), value, kind, source, how, row, range, range_source })
    }
}

/// Checks that a calibrated value lies within `low..high`, both included.
fn within<F: Format>(format: &F, value: &F::Value, range: &str) -> Result<(), Problem> {
    let ends = range.split_once("..").ok_or_else(|| {
        Problem::new(format!("`{range}` is not a range"), "", "write range = \"100ns..150ns\"")
    })?;
    let read = |text: &str| format.read(&Written::Text(text.trim().to_owned()));
    let (low, high) = (read(ends.0)?, read(ends.1)?);
    match (format.magnitude(&low), format.magnitude(value), format.magnitude(&high)) {
        (Some(low), Some(value), Some(high)) if value.is_between(low, high) => Ok(()),
        (Some(_), Some(_), Some(_)) => Err(Problem::new(
            format!("{} is outside its range {range}", format.show(value)),
            "outside the range",
            "calibrate within the range, or give another range with its source",
        )),
        _ => Err(Problem::new(
            format!("{} cannot be calibrated: it has no order", format.show(value)),
            "",
            "write kind = \"assumed\"",
        )),
    }
}

/// A section of the file: a table with these keys.
macro_rules! section {
    ($(#[$doc:meta])* struct $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub(crate) struct $name {
            #[schemars(skip)]
            #[allow(dead_code)] // Not every section is asked for its place.
            pub(crate) location: crate::source::Location,
            $($(#[$field_doc])* pub(crate) $field: $type,)*
        }

        impl crate::read::FromItem for $name {
            fn from_item(
                item: &crate::document::Item,
                path: &str,
                reader: &mut crate::read::Reader<'_>,
            ) -> Option<$name> {
                let entries = reader.table(item, path, &[$(stringify!($field)),*])?;
                $(let $field = reader.field(item, entries, path, stringify!($field));)*
                Some($name { location: item.location, $($field: $field?,)* })
            }
        }
    };
}

/// A section of the file whose keys are declared elsewhere, with tables and lists below it: groups of keys
/// are read by [`weft_keys::Keys`]. A group `where` another key has some words is in use with these: nothing
/// of it is missed with the others. Further groups may stand behind a `;` among the tables: the order is that
/// of the constants.
macro_rules! section_of_keys {
    ($(#[doc = $doc:literal])* struct $name:ident {
        $(
            keys { $(
                $group:ident: $group_type:ty $(where $condition:literal = [$($word:literal),*])?,
            )* }
            $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
        );+
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            /// The places of its keys.
            #[allow(dead_code, reason = "not every section is asked for its places")]
            pub(crate) locations: crate::table::Locations,
            $(
                $(
                    /// `None`: something of it is missing or wrong, and was reported.
                    pub(crate) $group: Option<$group_type>,
                )*
                $($(#[$field_doc])* pub(crate) $field: $type,)*
            )+
        }

        impl crate::read::FromItem for $name {
            fn from_item(
                item: &crate::document::Item,
                path: &str,
                reader: &mut crate::read::Reader<'_>,
            ) -> Option<$name> {
                let mut known = vec![$($(stringify!($field),)*)+];
                $($(known.extend(crate::table::names(<$group_type as weft_keys::Keys>::KEYS));)*)+
                let entries = reader.table(item, path, &known)?;
                let mut locations = crate::table::Locations { section: item.location, keys: Vec::new() };
                $(
                    let mut table = crate::table::TableKeys::new(item, entries, path, reader);
                    $(
                        $(table.is_needed = weft_keys::GivenKeys::holds(
                            &table,
                            &weft_keys::Condition { key: $condition, words: &[$($word),*], in_rows: None },
                        );)?
                        let $group = <$group_type as weft_keys::Keys>::read(&mut table);
                        table.is_needed = true;
                    )*
                    locations.keys.extend(table.locations.keys);
                    $(let $field = reader.field(item, entries, path, stringify!($field));)*
                )+
                Some($name { locations, $($($group,)* $($field: $field?,)*)+ })
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $(#[doc = $doc])*
                #[derive(schemars::JsonSchema)]
                #[schemars(deny_unknown_fields)]
                #[allow(dead_code, reason = "only its schema is wanted")]
                struct Tables { $($($(#[$field_doc])* $field: $type,)*)+ }
                let mut schema = <Tables as schemars::JsonSchema>::json_schema(generator);
                $($(crate::table::add_to_schema(
                    <$group_type as weft_keys::Keys>::KEYS,
                    <[&str]>::is_empty(&[$($condition)?]),
                    &mut schema,
                    generator,
                );)*)+
                schema
            }
        }
    };
}
pub(super) use section;
pub(super) use section_of_keys;
