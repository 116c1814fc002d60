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
        Writing::Path => json!({ "type": "string" }),
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

    /// The schema at a path; a class of links has that of all.
    fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').filter(|key| !key.is_empty()).try_fold(&self.schema, |schema, key| {
            let properties = schema.get("properties").and_then(|properties| properties.get(key));
            properties
                .or_else(|| schema.get("additionalProperties").filter(|more| more.is_object()))
                .map(|one| self.target(one))
        })
    }

    /// The schema that another refers to.
    fn target<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let options = schema.get("anyOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let name = std::iter::once(schema).chain(options).find_map(|schema| schema.get("$ref")?.as_str());
        name.and_then(|name| self.schema.pointer(name.trim_start_matches('#'))).unwrap_or(schema)
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
