//! The JSON Schema of machine files, generated from the raw types, and the keys that it knows.

use super::RawMachine;
use super::read::nearest;
use serde_json::Value;

/// The JSON Schema of machine files, as committed in `machines/machine.schema.json`.
pub fn schema() -> String {
    let schema = schemars::schema_for!(RawMachine);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain data");
    text + "\n"
}

/// Every key that a machine file may have, such as `topology.dims`; link classes as in `links.*.rate`.
pub(super) fn known_paths() -> Vec<String> {
    let schema = schemars::schema_for!(RawMachine).to_value();
    let mut paths = Vec::new();
    collect(&schema, &schema, "", &mut paths);
    paths
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
