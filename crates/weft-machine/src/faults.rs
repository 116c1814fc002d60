//! `[[faults]]`: links that lose or corrupt packets, and links and switches that fail.

use super::diagnostic::Problem;
use super::document::{Item, Value};
use super::read::{Attribution, FromItem, Readable, Reader, attribution_schema, nearest};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::fmt;
use weft_fabric::MILLION;
use weft_topo::GraphClass;
use weft_units::Span;

/// Packets in a million.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Millionths(pub u32);

impl Readable for Millionths {
    const NAME: &'static str = "Millionths";

    fn read(value: &Value) -> Result<Millionths, Problem> {
        let problem = |label: String| {
            let help = format!("write how many packets in a million, from 0 to {MILLION}");
            Problem::new("this is not a share of the packets", label, help)
        };
        match value {
            Value::Integer(integer) => match u32::try_from(*integer) {
                Ok(count) if count <= MILLION => Ok(Millionths(count)),
                _ => Err(problem(format!("{integer} in a million"))),
            },
            other => Err(problem(format!("this is {}", other.describe()))),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }

    fn schema() -> serde_json::Value {
        json!({ "type": "integer", "minimum": 0, "maximum": MILLION, "description": "Packets in a million." })
    }
}

/// Which links a rule is about, in both directions. Names are those of tables and reports: `M1QAF1` for an
/// endpoint, `switch 7`, `router of M1QA`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum FaultyLinks {
    /// All of the machine.
    All,
    /// Those of one class of the topology.
    Class(String),
    /// All links of one endpoint or switch.
    Of(String),
    /// Those between two endpoints or switches.
    Between(String, String),
}

/// Links that fail alike. Several rules for one link add up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FaultRule {
    /// Which.
    pub links: FaultyLinks,
    /// Of a million packets so many are lost.
    pub drop: u32,
    /// Of a million packets so many are corrupted.
    pub corrupt: u32,
    /// The virtual time from which on they lose everything; `None`: never.
    pub off_at: Option<Span>,
}

/// A rule, and where it stands.
#[derive(Clone, Debug)]
pub struct RawFaultRule {
    rule: FaultRule,
    location: super::source::Location,
}

impl FromItem for RawFaultRule {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<RawFaultRule> {
        let rule = FaultRule::from_item(item, path, reader)?;
        Some(RawFaultRule { rule, location: item.location })
    }
}

impl JsonSchema for RawFaultRule {
    fn schema_name() -> Cow<'static, str> {
        FaultRule::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        FaultRule::json_schema(generator)
    }
}

/// A rule is one value, attributed as a whole.
impl FromItem for FaultRule {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<FaultRule> {
        const OWN: [&str; 6] = ["class", "of", "between", "drop", "corrupt", "off_at"];
        let entries = reader.table(item, path, &[&OWN[..], &Attribution::KEYS].concat())?;
        let part = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item);
        let choice = LinkChoice { class: part("class"), of: part("of"), between: part("between") };
        let links = choice.check(item, path, reader);
        let drop = optional::<Millionths>(part("drop"), reader);
        let corrupt = optional::<Millionths>(part("corrupt"), reader);
        let off_at = optional::<Span>(part("off_at"), reader);
        // A rule that a `--set` changed is no longer what its source says.
        let changed = entries.iter().find(|entry| entry.key_location.is_set());
        let (attribution, location) = match changed {
            Some(entry) => (Attribution::default(), entry.key_location),
            None => (Attribution::among(item, entries, path, reader)?, item.location),
        };
        let share = |share: Option<Millionths>| share.map_or(0, |Millionths(count)| count);
        let rule = FaultRule { links: links?, drop: share(drop?), corrupt: share(corrupt?), off_at: off_at? };
        if rule.drop + rule.corrupt > MILLION {
            let problem = Problem::new(
                format!("`{path}` loses and corrupts more packets than there are"),
                format!("{} in a million", rule.drop + rule.corrupt),
                format!("let drop and corrupt together be at most {MILLION}"),
            );
            reader.report(location, problem);
            return None;
        }
        let constant = attribution.constant(rule.to_string(), path, location, reader)?;
        reader.constants.push(constant);
        Some(rule)
    }
}

fn optional<T: Readable>(part: Option<&Item>, reader: &mut Reader<'_>) -> Option<Option<T>> {
    let Some(part) = part else { return Some(None) };
    T::read(&part.value).map_err(|problem| reader.report(part.location, problem)).ok().map(Some)
}

/// The keys that choose links, at most one of which a rule may have.
struct LinkChoice<'i> {
    class: Option<&'i Item>,
    of: Option<&'i Item>,
    between: Option<&'i Item>,
}

impl LinkChoice<'_> {
    /// The links that a rule at `path` means. `None`: a problem was reported.
    fn check(&self, rule: &Item, path: &str, reader: &mut Reader<'_>) -> Option<FaultyLinks> {
        let mut text = |item: &Item, key: &str| String::from_item(item, &format!("{path}.{key}"), reader);
        match (self.class, self.of, self.between) {
            (None, None, None) => Some(FaultyLinks::All),
            (Some(class), None, None) => text(class, "class").map(FaultyLinks::Class),
            (None, Some(of), None) => text(of, "of").map(FaultyLinks::Of),
            (None, None, Some(between)) => {
                if let Value::Array(ends) = &between.value
                    && let [one, other] = &ends[..]
                {
                    let (one, other) = (text(one, "between")?, text(other, "between")?);
                    return Some(FaultyLinks::Between(one, other));
                }
                let help = "write between = [\"M1QAF1\", \"M1QAF2\"]: the two ends of the link";
                reader.report(between.location, Problem::new("a link has two ends", "not two texts", help));
                None
            }
            _ => {
                let help = "keep one of `class`, `of` and `between`, or none of them for all links";
                let problem = Problem::new(format!("`{path}` says twice which links it means"), "", help);
                reader.report(rule.location, problem);
                None
            }
        }
    }
}

/// Checks that rules name classes which the topology has; without one they go unchecked.
pub(super) fn check(
    rules: Vec<RawFaultRule>,
    link_classes: Option<&[GraphClass]>,
    reader: &mut Reader<'_>,
) -> Option<Vec<FaultRule>> {
    for RawFaultRule { rule, location } in &rules {
        let FaultyLinks::Class(class) = &rule.links else { continue };
        let Some(classes) = link_classes else { continue };
        let names: Vec<&str> = classes.iter().map(|known| known.name.as_str()).collect();
        if names.contains(&class.as_str()) {
            continue;
        }
        let problem = Problem::new(
            format!("faults: this topology has no links of class `{class}`"),
            "",
            match nearest(class, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("its classes are {}", names.join(", ")),
            },
        );
        reader.report(*location, problem);
        return None;
    }
    Some(rules.into_iter().map(|raw| raw.rule).collect())
}

impl fmt::Display for FaultRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.links {
            FaultyLinks::All => write!(f, "all links:")?,
            FaultyLinks::Class(class) => write!(f, "{class} links:")?,
            FaultyLinks::Of(end) => write!(f, "links of {end}:")?,
            FaultyLinks::Between(one, other) => write!(f, "links between {one} and {other}:")?,
        }
        write!(f, " {} packets in a million lost, {} corrupted", self.drop, self.corrupt)?;
        self.off_at.map_or(Ok(()), |at| write!(f, ", off at {at}"))
    }
}

impl JsonSchema for FaultRule {
    fn schema_name() -> Cow<'static, str> {
        "FaultRule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = attribution_schema();
        let text = |what: &str| json!({ "type": "string", "description": what });
        properties.insert("class".to_owned(), text("Links of this class."));
        properties.insert("of".to_owned(), text("All links of this endpoint or switch."));
        properties.insert(
            "between".to_owned(),
            json!({
                "type": "array",
                "items": { "type": "string" },
                "minItems": 2,
                "maxItems": 2,
                "description": "The two ends of the link: endpoints or switches.",
            }),
        );
        properties.insert("drop".to_owned(), Millionths::schema());
        properties.insert("corrupt".to_owned(), Millionths::schema());
        properties.insert("off_at".to_owned(), Span::schema());
        json_schema!({
            "type": "object",
            "description": "Links that lose or corrupt packets, or fail for good.",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}
