//! `switch.classes`: the table of traffic classes.

use super::diagnostic::Problem;
use super::document::{Item, Value};
use super::read::{Attribution, FromItem, Readable, Reader, attribution_schema, names};
use super::source::Location;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use std::borrow::Cow;
use weft_fabric::parameters::{ArbiterKind, SwitchParameters};
use weft_fabric::{ClassTableError, MAX_CLASSES, TrafficClass, TrafficClasses, TrafficKind};
use weft_units::Bytes;

names!(TrafficKind, "TrafficKind", "a kind of packets", {
    Acknowledgements = "acknowledgements",
    Data = "data",
    All = "all",
});

/// A priority: 0 is the lowest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Priority(u32);

impl Readable for Priority {
    const NAME: &'static str = "Priority";

    fn read(value: &Value) -> Result<Priority, Problem> {
        let problem = |label: String| {
            Problem::new("this is not a priority", label, "write 0 or more; the larger goes first")
        };
        match value {
            Value::Integer(integer) => {
                u32::try_from(*integer).map(Priority).map_err(|_| problem(format!("{integer}")))
            }
            other => Err(problem(format!("this is {}", other.describe()))),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> serde_json::Value {
        let description = "The larger goes first under strict priority.";
        json!({ "type": "integer", "minimum": 0, "description": description })
    }
}

/// A class as read.
#[derive(Clone, Debug)]
pub struct RawTrafficClass {
    name: String,
    kind: TrafficKind,
    up_to: Option<Bytes>,
    priority: Option<u32>,
    weight: Option<u32>,
    location: Location,
}

/// A class is one value, attributed as a whole.
impl FromItem for RawTrafficClass {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<RawTrafficClass> {
        const OWN: [&str; 5] = ["name", "of", "up_to", "priority", "weight"];
        let entries = reader.table(item, path, &[&OWN[..], &Attribution::KEYS].concat())?;
        let name = reader.field::<String>(item, entries, path, "name");
        let part = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item);
        let kind = optional::<TrafficKind>(part("of"), reader);
        let up_to = optional::<Bytes>(part("up_to"), reader);
        let priority = optional::<Priority>(part("priority"), reader);
        let weight = optional::<u32>(part("weight"), reader);
        // A class that a `--set` changed is no longer what its source says.
        let changed = entries.iter().find(|entry| entry.key_location.is_set());
        let (attribution, location) = match changed {
            Some(entry) => (Attribution::default(), entry.key_location),
            None => (Attribution::among(item, entries, path, reader)?, item.location),
        };
        let class = RawTrafficClass {
            name: name?,
            kind: kind?.unwrap_or(TrafficKind::All),
            up_to: up_to?,
            priority: priority?.map(|Priority(number)| number),
            weight: weight?,
            location,
        };
        let constant = attribution.constant(class.show(), path, location, reader)?;
        reader.constants.push(constant);
        Some(class)
    }
}

fn optional<T: Readable>(part: Option<&Item>, reader: &mut Reader<'_>) -> Option<Option<T>> {
    let Some(part) = part else { return Some(None) };
    T::read(&part.value).map_err(|problem| reader.report(part.location, problem)).ok().map(Some)
}

impl RawTrafficClass {
    /// The class in a line of a table of values.
    fn show(&self) -> String {
        let up_to = self.up_to.map_or(String::new(), |most| format!(", messages up to {most}"));
        let priority = self.priority.map_or(String::new(), |priority| format!(", priority {priority}"));
        let weight = self.weight.map_or(String::new(), |weight| format!(", weight {weight}"));
        format!("{}: {}{up_to}{priority}{weight}", self.name, self.kind.show())
    }
}

/// Gives a switch with one class another one of the highest priority, for acknowledgements and the notices of
/// congestion control: the multiple-priority crossbar of D1.4 §8.1.
pub(super) fn prioritize_answers(switch: &mut SwitchParameters) {
    if switch.channels.classes.count() > 1 {
        return;
    }
    let answers = TrafficClass { kind: TrafficKind::Acknowledgements, up_to: None, priority: 1, weight: 1 };
    let data = TrafficClass { kind: TrafficKind::All, priority: 0, ..answers };
    if let Ok(classes) = TrafficClasses::new(&[answers, data]) {
        switch.channels.classes = classes;
        switch.arbiter = ArbiterKind::StrictPriority;
    }
}

/// The table of traffic classes, which the arbiter of the switches can use. `at`: where the arbiter is named;
/// `payload`: the largest of a packet.
pub(super) fn check(
    raw: Vec<RawTrafficClass>,
    (arbiter, at): (ArbiterKind, Location),
    payload: Option<Bytes>,
    reader: &mut Reader<'_>,
) -> Option<TrafficClasses> {
    let (needs, key) = match arbiter {
        ArbiterKind::StrictPriority => (Some("strict-priority"), "priority"),
        ArbiterKind::WeightedRoundRobin => (Some("weighted-round-robin"), "weight"),
        _ => (None, ""),
    };
    if raw.is_empty() || raw.len() == 1 && needs.is_some() {
        let Some(arbiter) = needs else { return Some(TrafficClasses::default()) };
        let problem = Problem::new(
            format!("`{arbiter}` tells traffic classes apart, and there is only one"),
            "not an arbiter for this machine",
            "add [[switch.classes]] with at least two classes, or write arbiter = \"round-robin\"",
        );
        reader.report(at, problem);
        return None;
    }
    let mut classes = Vec::new();
    for class in &raw {
        let refuse = |reader: &mut Reader<'_>, title: String, label: &str, help: String| {
            reader.report(class.location, Problem::new(title, label, help));
        };
        let name = &class.name;
        let missing = match key {
            "priority" => class.priority.is_none(),
            "weight" => class.weight.is_none(),
            _ => false,
        };
        if missing {
            let title = format!("class `{name}` has no `{key}`");
            refuse(reader, title, "the arbiter needs it", format!("add {key} = … to it"));
            return None;
        }
        let priorities = raw.len() as u32;
        if class.priority.is_some_and(|priority| priority >= priorities) {
            let title = format!("class `{name}` has a priority beyond the {priorities} classes");
            let help = format!("write 0 to {}; the larger goes first", priorities - 1);
            refuse(reader, title, "too high", help);
            return None;
        }
        if class.weight == Some(0) {
            let title = format!("class `{name}` has a weight of 0");
            let help = "write the bytes that it may send in each round, such as 4096".to_owned();
            refuse(reader, title, "it would never send", help);
            return None;
        }
        if let (Some(most), Some(payload)) = (class.up_to, payload)
            && most > payload
        {
            let title = format!("class `{name}` takes messages up to {most}, which are several packets");
            let help =
                format!("write up_to = \"{payload}\" or less: only whole messages say how large they are");
            refuse(reader, title, "larger than a packet", help);
            return None;
        }
        classes.push(TrafficClass {
            kind: class.kind,
            up_to: class.up_to,
            priority: class.priority.unwrap_or(0) as u8,
            weight: class.weight.unwrap_or(1),
        });
    }
    let name = |class: usize| raw[class].name.as_str();
    let error = match TrafficClasses::new(&classes) {
        Ok(classes) => return Some(classes),
        Err(error) => error,
    };
    let (location, title, help) = match error {
        ClassTableError::Count(count) => {
            (raw[0].location, format!("{count} traffic classes"), format!("write at most {MAX_CLASSES}"))
        }
        ClassTableError::Uncovered(kind) => (
            raw[raw.len() - 1].location,
            format!("no traffic class takes all {kind}"),
            "let the last class be of = \"all\", without `up_to`".to_owned(),
        ),
        ClassTableError::Empty { class, before } => (
            raw[class].location,
            format!("class `{}` gets no packets: `{}` takes them all", name(class), name(before)),
            "put it before the other, or remove it".to_owned(),
        ),
    };
    reader.report(location, Problem::new(title, "", help));
    None
}

impl JsonSchema for RawTrafficClass {
    fn schema_name() -> Cow<'static, str> {
        "TrafficClass".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = attribution_schema();
        let number =
            |what: &str, least: u32| json!({ "type": "integer", "minimum": least, "description": what });
        let name = json!({ "type": "string", "description": "The name, for messages." });
        properties.insert("name".to_owned(), name);
        properties.insert("of".to_owned(), TrafficKind::schema());
        properties.insert("up_to".to_owned(), Bytes::schema());
        properties.insert("priority".to_owned(), Priority::schema());
        properties.insert("weight".to_owned(), number("Bytes in each round under weighted round robin.", 1));
        json_schema!({
            "type": "object",
            "description": "Packets with virtual channels, buffers and credits of their own.",
            "properties": properties,
            "required": ["name"],
            "additionalProperties": false,
        })
    }
}
