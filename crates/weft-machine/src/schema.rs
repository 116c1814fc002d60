//! The JSON Schema of machine files, generated from the raw types, and the keys that it knows.

use super::RawMachine;
use super::read;
use schemars::{Schema, json_schema};
use serde_json::{Value, json};
use weft_keys::{Writing, nearest};
use weft_topo::FamilyKeys;

/// The JSON Schema of machine files, as committed in `machines/machine.schema.json`.
pub fn schema() -> String {
    let schema = schemars::schema_for!(RawMachine);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain data");
    text + "\n"
}

/// The schema of values that are written in this way.
pub(super) fn of_writing(writing: &Writing) -> Value {
    match writing {
        Writing::Whole { least, most: None } => json!({ "type": "integer", "minimum": least }),
        Writing::Whole { least, most: Some(most) } => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Writing::Decimal { least, most } => {
            json!({ "type": ["integer", "number"], "minimum": least, "maximum": most })
        }
        Writing::Flag => json!({ "type": "boolean" }),
        Writing::Text(pattern) => json!({ "type": "string", "pattern": pattern }),
        Writing::AnyText | Writing::Path => json!({ "type": "string" }),
        Writing::Texts { least, most } => {
            let mut list = json!({ "type": "array", "items": { "type": "string" }, "minItems": least });
            if let Some(most) = most {
                list["maxItems"] = (*most).into();
            }
            list
        }
        Writing::Words([word]) => json!({ "const": word }),
        Writing::Words(words) => json!({ "enum": words }),
        Writing::Counts => json!({ "type": "array", "items": { "type": "integer", "minimum": 1 } }),
        Writing::AnyOf(ways) => json!({ "anyOf": ways.iter().map(of_writing).collect::<Vec<_>>() }),
        Writing::Described(writing, description) => {
            let mut schema = of_writing(writing);
            schema["description"] = (*description).into();
            schema
        }
    }
}

/// The schema of a value, bare or with its attribution.
pub(super) fn attributed(value: serde_json::Value) -> Schema {
    let mut properties = read::attribution_schema();
    properties.insert("value".to_owned(), value.clone());
    json_schema!({
        "anyOf": [
            value,
            {
                "type": "object",
                "properties": properties,
                "required": ["value"],
                "additionalProperties": false,
            },
        ],
    })
}

/// Every key that a machine file may have, such as `topology.dims`; link classes as in `links.*.rate`.
pub(super) fn known_paths() -> Vec<String> {
    let schema = schemars::schema_for!(RawMachine).to_value();
    let mut paths = Vec::new();
    collect(&schema, &schema, "", &mut paths);
    paths
}

/// Places of keys in a machine file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum KeyForm {
    /// A key with a value.
    Value,
    /// A table of keys.
    Section,
    /// A table of tables with names of the user's, as `links`.
    Classes,
    /// A list of tables.
    Rows,
}

/// The meaning of keys, for machines of one family of topologies.
pub(super) struct Documentation {
    schema: Value,
    family: FamilyKeys,
}

impl Documentation {
    /// That of the machines of a family.
    pub fn of(family: &FamilyKeys) -> Documentation {
        Documentation { schema: schemars::schema_for!(RawMachine).to_value(), family: *family }
    }

    /// The meaning of a key or a section, how it is written, and whether it must be given. `None`: there is
    /// nothing to say.
    pub fn of_key(&self, path: &str) -> Option<String> {
        let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
        let holder = self.at(section)?;
        let property = holder.get("properties").and_then(|properties| properties.get(key))?;
        let meaning = match section {
            "topology" => self.of_topology_key(key),
            _ => None,
        };
        let meaning = meaning.or_else(|| property.get("description")?.as_str().map(str::to_owned))?;
        let meaning = meaning.split_whitespace().collect::<Vec<_>>().join(" ");
        if !self.is_value(path) {
            return Some(meaning);
        }
        let needed = holder.get("required").and_then(Value::as_array);
        let is_needed = needed.is_some_and(|needed| needed.iter().any(|needed| needed == key));
        let is_needed = is_needed || section == "topology" && self.needs_topology_key(key);
        // The schema has the routings of all families.
        let is_routing = path == "topology.routing";
        let written = (!is_routing).then(|| way_of_writing(self.target(property))).flatten();
        // A text has one description, in its own schema.
        let written = written.filter(|written| *written != meaning);
        let must = is_needed.then(|| "Must be given.".to_owned());
        Some([Some(meaning), written, must].into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    /// The keys of a section, of a class of links, or of a row; of `[topology]` those of the family.
    pub fn keys(&self, section: &str) -> Vec<(String, KeyForm)> {
        let properties = self.at(section).and_then(|schema| schema.get("properties")?.as_object());
        let is_known = |key: &String| section != "topology" || self.is_topology_key(key);
        let known = properties.into_iter().flatten().filter(|(key, _)| is_known(key));
        known.map(|(key, property)| (key.clone(), self.form(property))).collect()
    }

    /// The form of a property.
    fn form(&self, property: &Value) -> KeyForm {
        let target = self.target(property);
        if target.get("items").is_some_and(|items| items.get("$ref").is_some()) {
            return KeyForm::Rows;
        }
        match (target.get("properties"), target.get("additionalProperties")) {
            (Some(_), _) => KeyForm::Section,
            (None, Some(of_others)) if of_others.is_object() => KeyForm::Classes,
            _ => KeyForm::Value,
        }
    }

    fn is_topology_key(&self, key: &str) -> bool {
        let FamilyKeys { keys, routings, .. } = self.family;
        let mut all = keys.iter().chain(routings.iter().flat_map(|routing| routing.keys));
        ["kind", "routing"].contains(&key) || all.any(|known| known.name == key)
    }

    /// A value that the key at a path could have, as a file writes it.
    pub fn example(&self, path: &str) -> Option<String> {
        let (section, key) = path.rsplit_once('.').unwrap_or(("", path));
        if path == "topology.routing" {
            return Some(format!("\"{}\"", self.family.routings.first()?.name));
        }
        let property = self.at(section)?.get("properties")?.get(key)?;
        // The key's own example goes before that of all values of its type.
        let own =
            property.get("description").and_then(Value::as_str).and_then(|text| behind(text, "such as "));
        let own = own.filter(|example| example.starts_with(|first: char| first.is_ascii_digit()));
        Some(own.map_or_else(|| example(self.target(property)), written))
    }

    /// Whether the key at a path has a value, and no keys of its own.
    pub fn is_value(&self, path: &str) -> bool {
        self.at(path).is_some_and(|schema| {
            schema.get("properties").is_none()
                && schema.get("additionalProperties").is_none_or(|more| !more.is_object())
        })
    }

    /// The meaning of a key of `[topology]` to this family and its routings.
    fn of_topology_key(&self, key: &str) -> Option<String> {
        let FamilyKeys { keys, routings, .. } = self.family;
        let all = keys.iter().chain(routings.iter().flat_map(|routing| routing.keys));
        let meaning = all.into_iter().find(|known| known.name == key).map(|known| known.meaning.to_owned());
        let routing = || {
            let words = routings.iter().map(|routing| {
                let first =
                    routing.meaning.chars().next().map_or(String::new(), |c| c.to_lowercase().to_string());
                let rest = routing.meaning.get(first.len()..).unwrap_or("").trim_end_matches('.');
                format!("`{}`: {first}{rest}", routing.name)
            });
            let words: Vec<String> = words.collect();
            let usual = routings.first().map_or("", |routing| routing.name);
            format!("Which way packets go; `{usual}` where not given. {}.", words.join("; "))
        };
        meaning.or_else(|| (key == "routing").then(routing))
    }

    fn needs_topology_key(&self, key: &str) -> bool {
        self.family.keys.iter().any(|known| known.name == key && known.is_needed)
    }

    /// The schema at a path; a class of links has that of all, and a list that of its rows.
    fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').filter(|key| !key.is_empty()).try_fold(&self.schema, |schema, key| {
            let properties = schema.get("properties").and_then(|properties| properties.get(key));
            properties
                .or_else(|| schema.get("additionalProperties").filter(|more| more.is_object()))
                .map(|one| self.target(one))
                .map(|one| match one.get("items").filter(|items| items.get("$ref").is_some()) {
                    Some(row) => self.target(row),
                    None => one,
                })
        })
    }

    /// The schema that another refers to.
    fn target<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let options = schema.get("anyOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let name = std::iter::once(schema).chain(options).find_map(|schema| schema.get("$ref")?.as_str());
        name.and_then(|name| self.schema.pointer(name.trim_start_matches('#'))).unwrap_or(schema)
    }
}

/// The word of a text behind these.
fn behind<'t>(text: &'t str, before: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    let end = rest.find([',', ' ', ':', ';', ')']).unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches('.'))
}

/// A value as a file writes it: a text in quotes.
fn written(value: &str) -> String {
    match value.parse::<i64>() {
        Ok(_) => value.to_owned(),
        Err(_) => format!("\"{value}\""),
    }
}

/// A value of a schema that may be bare or attributed, as a file writes it: the first of its words, or of the
/// examples in its description.
fn example(schema: &Value) -> String {
    let options = schema.get("anyOf").and_then(Value::as_array);
    let is_bare = |one: &&Value| one.get("properties").is_none();
    let described = schema.get("description").and_then(Value::as_str);
    if let Some(example) = described.and_then(|text| behind(text, "As in ")) {
        return written(example);
    }
    if let Some(bare) = options.and_then(|options| options.iter().find(is_bare)) {
        return example(bare);
    }
    let first_word = schema.get("enum").and_then(|words| words.get(0)).or_else(|| schema.get("const"));
    if let Some(word) = first_word.and_then(Value::as_str) {
        return written(word);
    }
    let first_type = |kind: &Value| match kind {
        Value::Array(kinds) => kinds.first().and_then(Value::as_str).map(str::to_owned),
        kind => kind.as_str().map(str::to_owned),
    };
    match schema.get("type").and_then(first_type).as_deref() {
        Some("integer") => schema.get("minimum").map_or("0".to_owned(), Value::to_string),
        Some("boolean") => "false".to_owned(),
        Some("array") => {
            let items = schema.get("items").map(example).unwrap_or_default();
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1);
            format!("[{}]", vec![items; least as usize].join(", "))
        }
        _ => "\"…\"".to_owned(),
    }
}

/// How a value is written, from the schema of a value that may be bare or attributed.
fn way_of_writing(schema: &Value) -> Option<String> {
    let options = schema.get("anyOf").and_then(Value::as_array);
    let is_attributed = |one: &Value| one.get("properties").is_some();
    let text = |schema: &Value| schema.get("description").and_then(Value::as_str).map(str::to_owned);
    if let Some(options) = options.filter(|options| options.iter().any(is_attributed)) {
        return options.iter().find(|one| !is_attributed(one)).and_then(way_of_writing);
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<String> =
            words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return Some(format!("One of {}.", words.join(", ")));
    }
    if let Some(word) = schema.get("const").and_then(Value::as_str) {
        return Some(format!("`{word}`."));
    }
    let of_kind = || match schema.get("type").and_then(Value::as_str)? {
        "integer" => Some("A whole number.".to_owned()),
        "boolean" => Some("`true` or `false`.".to_owned()),
        "array" => Some("A list of whole numbers.".to_owned()),
        _ => None,
    };
    let of_options = || {
        let all: Vec<String> = options?.iter().filter_map(way_of_writing).collect();
        (!all.is_empty()).then(|| all.join(" Or: "))
    };
    text(schema).or_else(of_kind).or_else(of_options)
}

fn collect(root: &Value, schema: &Value, path: &str, paths: &mut Vec<String>) {
    // A reference, or null beside one: `Option` of a section.
    let options = schema.get("anyOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let target = std::iter::once(schema).chain(options).find_map(|schema| schema.get("$ref")?.as_str());
    if let Some(target) = target.and_then(|target| root.pointer(target.trim_start_matches('#'))) {
        return collect(root, target, path, paths);
    }
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let properties = schema.get("properties").and_then(Value::as_object);
    let items = schema.get("additionalProperties").filter(|schema| schema.is_object());
    if properties.is_none() && items.is_none() {
        paths.push(path.to_owned());
    }
    for (key, schema) in properties.into_iter().flatten() {
        collect(root, schema, &below(key), paths);
    }
    if let Some(items) = items {
        collect(root, items, &below("*"), paths);
    }
}

/// The known key most like `path`: the same last part elsewhere, or the nearest spelling.
pub(super) fn nearest_path(path: &str) -> Option<String> {
    let mut known = known_paths();
    let segments: Vec<&str> = path.split('.').collect();
    // `links.x.rte` is compared with `links.x.rate`, not with `links.*.rate`.
    if let ["links", class, ..] = segments[..] {
        for known in &mut known {
            *known = known.replace("links.*", &format!("links.{class}"));
        }
    }
    let last = segments.last().copied().unwrap_or(path);
    if let [key] = segments[..] {
        let same_end: Vec<&String> =
            known.iter().filter(|known| known.rsplit('.').next() == Some(key)).collect();
        if let [only] = same_end[..] {
            return Some(only.clone());
        }
        let sections: std::collections::BTreeSet<&str> =
            known.iter().filter_map(|known| known.split('.').next()).collect();
        if let Some(near) = nearest(key, sections) {
            return Some(near.to_owned());
        }
    }
    // Among the keys of the same section first.
    let (section, _) = path.rsplit_once('.').unwrap_or(("", path));
    let siblings = known.iter().filter_map(|known| {
        let rest = known.strip_prefix(section)?.strip_prefix('.')?;
        rest.split('.').next()
    });
    match nearest(last, siblings) {
        Some(near) => Some(format!("{section}.{near}")),
        None => nearest(path, known.iter().map(String::as_str)).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_found() {
        let near = |path| nearest_path(path).unwrap_or_default();
        assert_eq!(near("dims"), "topology.dims");
        assert_eq!(near("topolgy"), "topology");
        assert_eq!(near("topology.dim"), "topology.dims");
        assert_eq!(near("links.x.rte"), "links.x.rate");
        assert_eq!(near("nic.mailbx"), "nic.mailbox");
        assert_eq!(near("nic.message_snd"), "nic.message_send");
        assert_eq!(near("topolgy.dims"), "topology.dims");
        assert_eq!(near("zzzzzzz"), "");
    }

    #[test]
    fn every_section_is_known() {
        let known = known_paths();
        for path in ["topology.kind", "links.*.rate", "ideal.gap", "messaging.algorithms", "machine.name"] {
            assert!(known.iter().any(|known| known == path), "{path} is not among {known:?}");
        }
    }
}
