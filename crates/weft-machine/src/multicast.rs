//! `[[multicast]]`: groups of endpoints to which switches copy packets.

use super::document::{Item, Value};
use super::read::{Attribution, FromItem, Reader, attribution_schema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::fmt;
use weft_keys::Problem;

/// A multicast group. Whether its members exist is for whoever has the layout.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupRule {
    /// The group's name.
    pub name: String,
    /// The members: names of endpoints, `first:last` for all from one to another, or `all`.
    pub members: Vec<String>,
    /// The member that sends; `None`: any may.
    pub root: Option<String>,
}

/// A group, and where it stands.
#[derive(Clone, Debug)]
pub struct RawGroupRule {
    rule: GroupRule,
    location: super::source::Location,
}

impl FromItem for RawGroupRule {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<RawGroupRule> {
        let rule = GroupRule::from_item(item, path, reader)?;
        Some(RawGroupRule { rule, location: item.location })
    }
}

impl JsonSchema for RawGroupRule {
    fn schema_name() -> Cow<'static, str> {
        GroupRule::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        GroupRule::json_schema(generator)
    }
}

/// A group is one value, attributed as a whole.
impl FromItem for GroupRule {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<GroupRule> {
        const OWN: [&str; 3] = ["name", "members", "root"];
        let entries = reader.table(item, path, &[&OWN[..], &Attribution::KEYS].concat())?;
        let part = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item);
        let mut missing = |key: &str, help: &str| {
            let problem = Problem::new(format!("`{path}` has no `{key}`"), "", help.to_owned());
            reader.report(item.location, problem);
        };
        let Some(name) = part("name") else {
            missing("name", "write name = \"…\": patterns and messages call the group by it");
            return None;
        };
        let Some(members) = part("members") else {
            missing("members", MEMBERS);
            return None;
        };
        let name = String::from_item(name, &format!("{path}.name"), reader);
        let Value::Array(list) = &members.value else {
            let problem = Problem::new("this is no list of endpoints", members.value.describe(), MEMBERS);
            reader.report(members.location, problem);
            return None;
        };
        let list: Option<Vec<String>> =
            list.iter().map(|one| String::from_item(one, &format!("{path}.members"), reader)).collect();
        let root = match part("root") {
            Some(root) => Some(String::from_item(root, &format!("{path}.root"), reader)?),
            None => None,
        };
        // A group that a `--set` changed is no longer what its source says.
        let changed = entries.iter().find(|entry| entry.key_location.is_set());
        let (attribution, location) = match changed {
            Some(entry) => (Attribution::default(), entry.key_location),
            None => (Attribution::among(item, entries, path, reader)?, item.location),
        };
        let rule = GroupRule { name: name?, members: list?, root };
        let constant = attribution.constant(rule.to_string(), path, location, reader)?;
        reader.constants.push(constant);
        Some(rule)
    }
}

/// The mend of members that cannot be read.
const MEMBERS: &str =
    "write members = [\"0:15\", \"20\"]: names of endpoints, from one to another, or \"all\"";

/// Checks that no two groups have the same name.
pub(super) fn check(rules: Vec<RawGroupRule>, reader: &mut Reader<'_>) -> Option<Vec<GroupRule>> {
    for (place, RawGroupRule { rule, location }) in rules.iter().enumerate() {
        if rules[..place].iter().any(|before| before.rule.name == rule.name) {
            let what = format!("multicast: two groups are called `{}`", rule.name);
            reader.report(*location, Problem::new(what, "", "give each group a name of its own"));
            return None;
        }
    }
    Some(rules.into_iter().map(|raw| raw.rule).collect())
}

impl fmt::Display for GroupRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GroupRule { name, members, root } = self;
        write!(f, "{name}: {}", members.join(", "))?;
        root.as_ref().map_or(Ok(()), |root| write!(f, "; {root} sends"))
    }
}

impl JsonSchema for GroupRule {
    fn schema_name() -> Cow<'static, str> {
        "GroupRule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = attribution_schema();
        let text = |what: &str| json!({ "type": "string", "description": what });
        properties.insert("name".to_owned(), text("The group's name."));
        properties.insert(
            "members".to_owned(),
            json!({
                "type": "array",
                "items": { "type": "string" },
                "minItems": 1,
                "description": "Its members: endpoints, `first:last` for all from one to another, or `all`.",
            }),
        );
        properties.insert("root".to_owned(), text("The member that sends; any may where not given."));
        json_schema!({
            "type": "object",
            "description": "Endpoints to which switches copy packets.",
            "properties": properties,
            "required": ["name", "members"],
            "additionalProperties": false,
        })
    }
}
