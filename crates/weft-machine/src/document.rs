//! The raw document: TOML with the place of every key and value, and `--set` applied to it.

use super::diagnostic::Placed;
use super::diagnostic::{Diagnostic, START};
use super::source::{FILE, Location, Source, Sources};
use std::collections::BTreeSet;
use toml::de::{DeTable, DeValue};
use weft_keys::{Problem, Written};

/// Parts that a `--set` key may have: twice those of the deepest key there is.
const MAX_DEPTH: usize = 8;

/// Syntax errors that are shown: a file that is no machine has one in each of its lines.
const SYNTAX_ERRORS_SHOWN: usize = 3;

/// A value with its place.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub location: Location,
    pub value: Value,
}

/// A TOML value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i128),
    /// A float, or an integer beyond 128 bits, as written.
    Float(String),
    Boolean(bool),
    Datetime,
    Array(Vec<Item>),
    Table(Vec<Entry>),
}

/// A key of a table and what it stands for.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub key: String,
    pub key_location: Location,
    pub item: Item,
}

impl Value {
    /// The value without its place.
    pub fn written(&self) -> Written {
        match self {
            Value::Text(text) => Written::Text(text.clone()),
            Value::Integer(integer) => Written::Integer(*integer),
            Value::Float(text) => Written::Float(text.clone()),
            Value::Boolean(truth) => Written::Boolean(*truth),
            Value::Datetime => Written::Datetime,
            Value::Array(items) => Written::List(items.iter().map(|item| item.value.written()).collect()),
            Value::Table(_) => Written::Table,
        }
    }

    /// The kind of value, with its article.
    pub fn describe(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a decimal number",
            Value::Boolean(_) => "a truth value",
            Value::Datetime => "a date",
            Value::Array(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

impl Item {
    fn from_toml(source: u32, span: std::ops::Range<usize>, offset: usize, value: DeValue<'_>) -> Item {
        let shifted = |span: std::ops::Range<usize>| span.start + offset..span.end + offset;
        let value = match value {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(value) => Value::Integer(value),
                Err(_) => Value::Float(integer.to_string()),
            },
            DeValue::Float(float) => Value::Float(float.to_string()),
            DeValue::Boolean(truth) => Value::Boolean(truth),
            DeValue::Datetime(_) => Value::Datetime,
            DeValue::Array(items) => Value::Array(
                items
                    .into_iter()
                    .map(|item| Item::from_toml(source, item.span(), offset, item.into_inner()))
                    .collect(),
            ),
            DeValue::Table(table) => Value::Table(entries(source, offset, table)),
        };
        Item { location: Location::new(source, shifted(span)), value }
    }
}

/// The entries of a table in the order of the text.
fn entries(source: u32, offset: usize, table: DeTable<'_>) -> Vec<Entry> {
    let mut entries: Vec<Entry> = table
        .into_iter()
        .map(|(key, item)| Entry {
            key_location: Location::new(source, key.span().start + offset..key.span().end + offset),
            key: key.into_inner().into_owned(),
            item: Item::from_toml(source, item.span(), offset, item.into_inner()),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_location.1);
    entries
}

/// Reads the file (source 0) and applies the `--set` arguments (the other sources) to it.
pub(super) fn read(sources: &Sources) -> Result<Item, Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(sources.text(FILE));
    let mut diagnostics = syntax_errors(&errors, sources);
    let span = table.span();
    let mut root = entries(FILE, 0, table.into_inner());
    for (number, source) in sources.0.iter().enumerate().skip(1) {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        if let Err(Located { problem, location }) = set(&mut root, number, source) {
            diagnostics.push(problem.at(location, sources));
        }
    }
    if diagnostics.is_empty() {
        Ok(Item { location: Location::new(FILE, span.start..span.start), value: Value::Table(root) })
    } else {
        Err(diagnostics)
    }
}

/// The first syntax errors, at most one of each line, and how many more lines have one.
fn syntax_errors(errors: &[toml::de::Error], sources: &Sources) -> Vec<Diagnostic> {
    let mut diagnostics: Vec<Diagnostic> = errors
        .iter()
        .map(|error| {
            let Located { problem, location } = syntax(error, FILE, 0);
            problem.at(location, sources)
        })
        .collect();
    // The parser tells of some lines again when it has read all.
    let mut lines = BTreeSet::new();
    diagnostics.retain(|diagnostic| lines.insert(diagnostic.place.as_ref().map(|place| place.line)));
    if let Some(rest) = diagnostics.len().checked_sub(SYNTAX_ERRORS_SHOWN).filter(|rest| *rest > 0) {
        diagnostics.truncate(SYNTAX_ERRORS_SHOWN);
        let (lines, are) = if rest == 1 { ("line", "is") } else { ("lines", "are") };
        let title = format!("{rest} more {lines} {are} no TOML");
        let help = format!("if this is to be a machine file, start from one that is: {START}");
        diagnostics.push(Problem::new(title, "", help).nowhere());
    }
    diagnostics
}

struct Located {
    problem: Problem,
    location: Location,
}

fn syntax(error: &toml::de::Error, source: u32, offset: usize) -> Located {
    let span = error.span().unwrap_or(0..0);
    let message = error.message().to_owned();
    let help = if message.contains("duplicate key") {
        "keep one of the two"
    } else if message.contains("quote") || message.contains("string values must be quoted") {
        "texts stand in quotes, as in rate = \"16Gb/s\""
    } else {
        "see https://toml.io for how TOML is written"
    };
    Located {
        problem: Problem::new("this is not TOML", message, help),
        location: Location::new(source, span.start + offset..span.end + offset),
    }
}

/// Applies one `key.path=value`.
fn set(root: &mut Vec<Entry>, number: u32, source: &Source) -> Result<(), Located> {
    let text = &source.text;
    let error = |span: std::ops::Range<usize>, problem| {
        Err(Located { problem, location: Location::new(number, span) })
    };
    let Some(equals) = text.find('=') else {
        let problem = Problem::new("--set needs a key and a value", "no `=`", "write --set topology.n=3");
        return error(0..text.len(), problem);
    };
    let item = set_value(number, text, equals + 1)?;
    let mut segments = Vec::new();
    let mut start = 0;
    for segment in text[..equals].split('.') {
        let trimmed = segment.trim();
        let at = start + (segment.len() - segment.trim_start().len());
        if trimmed.is_empty() {
            let problem = Problem::new(
                "--set needs a key and a value",
                "a part of the key is missing",
                "write --set topology.n=3",
            );
            return error(start..start + segment.len(), problem);
        }
        segments.push((trimmed, Location::new(number, at..at + trimmed.len())));
        start += segment.len() + 1;
    }
    if segments.len() > MAX_DEPTH {
        let problem = Problem::new(
            "no key is that deep",
            format!("{} parts", segments.len()),
            "write section.key=value",
        );
        return error(0..equals, problem);
    }
    insert(root, &segments, item)
}

/// The value after the `=` at `offset`: TOML, or else bare text.
fn set_value(number: u32, text: &str, offset: usize) -> Result<Item, Located> {
    let after = &text[offset..];
    let trimmed = after.trim();
    let start = offset + (after.len() - after.trim_start().len());
    match DeValue::parse(trimmed) {
        Ok(value) => Ok(Item::from_toml(number, value.span(), start, value.into_inner())),
        // What opens as TOML but is none is a slip; `16Gb/s` and `ideal` are texts.
        Err(error) if trimmed.starts_with(['[', '{', '"', '\'']) || trimmed.is_empty() => {
            Err(syntax(&error, number, start))
        }
        Err(_) => Ok(Item {
            location: Location::new(number, start..start + trimmed.len()),
            value: Value::Text(trimmed.to_owned()),
        }),
    }
}

/// Puts `item` at the path, making the tables on the way. Whether the format knows the path is for
/// the next stage to say.
fn insert(table: &mut Vec<Entry>, path: &[(&str, Location)], item: Item) -> Result<(), Located> {
    let Some((&(key, key_location), rest)) = path.split_first() else { return Ok(()) };
    let at = match table.iter().position(|entry| entry.key == key) {
        Some(at) => at,
        None => {
            let item = Item { location: key_location, value: Value::Table(Vec::new()) };
            table.push(Entry { key: key.to_owned(), key_location, item });
            table.len() - 1
        }
    };
    let entry = &mut table[at];
    if rest.is_empty() {
        entry.key_location = key_location;
        entry.item = item;
        return Ok(());
    }
    descend(&mut entry.item, (key, key_location), rest, item)
}

/// Goes on with `path` below the value of `key`.
fn descend(
    below: &mut Item,
    (key, key_location): (&str, Location),
    path: &[(&str, Location)],
    item: Item,
) -> Result<(), Located> {
    let is_value = |how: &str| {
        Err(Located {
            problem: Problem::new(
                format!("`{key}` is a value and has no parts"),
                how,
                format!("set it as a whole: end the key with `{key}`"),
            ),
            location: key_location,
        })
    };
    match &mut below.value {
        Value::Table(entries) if entries.iter().any(|entry| entry.key == "value") => {
            is_value("a value with its source")
        }
        Value::Table(entries) => insert(entries, path, item),
        Value::Array(items) if items.iter().all(|item| matches!(item.value, Value::Table(_))) => {
            let Some((&(index, location), rest)) = path.split_first() else { return Ok(()) };
            let count = items.len();
            let Some(row) = index.parse().ok().and_then(|index: usize| items.get_mut(index)) else {
                return Err(Located {
                    problem: Problem::new(
                        format!("`{key}` has no row `{index}`"),
                        format!("it has {count} rows"),
                        "rows are numbered from 0",
                    ),
                    location,
                });
            };
            if rest.is_empty() {
                *row = item;
                return Ok(());
            }
            descend(row, (index, location), rest, item)
        }
        other => is_value(other.describe()),
    }
}
