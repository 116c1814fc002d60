//! A row of a list, such as `[[faults]]`: several keys that are one value, attributed as a whole.

use super::document::Item;
use super::read::{Attribution, FromItem, Reader, attribution_schema};
use super::schema;
use super::source::Location;
use super::table::{Locations, TableKeys, all_keys, meaning, names};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Display;
use weft_keys::{Keys, Writing};

/// A value that a row of a list gives. It is shown in one line of the table of constants.
pub(crate) trait RowValue: Sized + Display {
    /// The keys of a row.
    type Keys: Keys;
    /// The name in the schema.
    const NAME: &'static str;
    /// The meaning of a row, a sentence.
    const MEANING: &'static str;

    /// Checks that the keys fit together. `None`: they do not, which was reported.
    fn of(keys: Self::Keys, locations: &Locations, reader: &mut Reader<'_>) -> Option<Self>;
}

/// A row, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Row<T> {
    /// The value.
    pub value: T,
    /// Of the row, or of the `--set` that changed it.
    pub location: Location,
}

impl<T: RowValue> FromItem for Row<T> {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<Row<T>> {
        let known = [&names(T::Keys::KEYS)[..], &Attribution::KEYS].concat();
        let entries = reader.table(item, path, &known)?;
        let mut table = TableKeys::row(item, entries, path, reader);
        let keys = T::Keys::read(&mut table);
        let locations = table.locations;
        let value = keys.and_then(|keys| T::of(keys, &locations, reader));
        // A row that a `--set` changed is no longer what its source says.
        let changed = entries.iter().find(|entry| entry.key_location.is_set());
        let (attribution, location) = match changed {
            Some(entry) => (Attribution::default(), entry.key_location),
            None => (Attribution::among(item, entries, path, reader)?, item.location),
        };
        let value = value?;
        let constant = attribution.constant(value.to_string(), path, location, reader)?;
        reader.constants.push(constant);
        Some(Row { value, location })
    }
}

impl<T: RowValue> JsonSchema for Row<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = attribution_schema();
        let mut needed: Vec<Value> = Vec::new();
        for key in all_keys(T::Keys::KEYS) {
            let mut property = schema::of_writing(&key.writing);
            let written = match key.writing {
                Writing::Described(_, written) => format!(" {written}"),
                _ => String::new(),
            };
            property["description"] = format!("{}{written}", meaning(key, T::Keys::KEYS)).into();
            properties.insert(key.name.to_owned(), property);
            needed.extend(key.is_needed.then(|| key.name.into()));
        }
        let mut table = json_schema!({
            "type": "object",
            "description": T::MEANING,
            "properties": properties,
            "additionalProperties": false,
        });
        if !needed.is_empty() {
            table.insert("required".to_owned(), json!(needed));
        }
        table
    }
}
