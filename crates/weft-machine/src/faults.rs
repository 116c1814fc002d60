//! `[[faults]]`: links that lose, corrupt, duplicate or reorder packets, and links and switches that fail.

mod schedule;

pub use schedule::ScheduledOutage;

use super::document::{Item, Value};
use super::read::{Attribution, FromItem, Reader, attribution_schema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::fmt;
use weft_fabric::MILLION;
use weft_keys::{KeyType, Problem, Writing, Written, nearest};
use weft_topo::GraphClass;
use weft_units::Span;

/// Packets in a million.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Millionths(pub u32);

impl KeyType for Millionths {
    const NAME: &'static str = "Millionths";
    const WRITING: Writing =
        Writing::Described(&Writing::Whole { least: 0, most: Some(MILLION as u64) }, "Packets in a million.");

    fn read(value: &Written) -> Result<Millionths, Problem> {
        let problem = |label: String| {
            let help = format!("write how many packets in a million, from 0 to {MILLION}");
            Problem::new("this is not a share of the packets", label, help)
        };
        match value {
            Written::Integer(integer) => match u32::try_from(*integer) {
                Ok(count) if count <= MILLION => Ok(Millionths(count)),
                _ => Err(problem(format!("{integer} in a million"))),
            },
            other => Err(problem(format!("this is {}", other.describe()))),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
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

/// The times at which the links of a rule are off.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Outage {
    /// Never.
    Never,
    /// Once.
    Once {
        /// The virtual time from which on they lose everything.
        off_at: Span,
        /// The virtual time from which on they do no longer; `None`: they never come back.
        on_at: Option<Span>,
    },
    /// At times that are drawn from the seed.
    Random {
        /// Mean of the exponential time from when a link works to when it fails.
        mean_time_to_failure: Span,
        /// Mean of the exponential time from then to when it works again.
        mean_time_to_repair: Span,
        /// The virtual time from which on none fails any more.
        until: Span,
    },
    /// As a file says, which names the links as well.
    Schedule(Vec<ScheduledOutage>),
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
    /// Of a million packets so many arrive twice.
    pub duplicate: u32,
    /// Of a million packets so many may be overtaken by the next.
    pub reorder: u32,
    /// The times at which they lose everything.
    pub outage: Outage,
}

impl FaultRule {
    /// Outages with a time of their own that begin at the end of a run or after it.
    pub fn outages_after(&self, end: Span) -> usize {
        match &self.outage {
            Outage::Once { off_at, .. } => usize::from(*off_at >= end),
            Outage::Schedule(outages) => outages.iter().filter(|outage| outage.off_at >= end).count(),
            Outage::Never | Outage::Random { .. } => 0,
        }
    }
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
        const OWN: [&str; 13] = [
            "class",
            "of",
            "between",
            "drop",
            "corrupt",
            "duplicate",
            "reorder",
            "off_at",
            "on_at",
            "mean_time_to_failure",
            "mean_time_to_repair",
            "until",
            "schedule",
        ];
        let entries = reader.table(item, path, &[&OWN[..], &Attribution::KEYS].concat())?;
        let part = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item);
        let choice = LinkChoice { class: part("class"), of: part("of"), between: part("between") };
        let links = choice.check(item, path, reader);
        let drop = optional::<Millionths>(part("drop"), reader);
        let corrupt = optional::<Millionths>(part("corrupt"), reader);
        let duplicate = optional::<Millionths>(part("duplicate"), reader);
        let reorder = optional::<Millionths>(part("reorder"), reader);
        let times = OutageKeys {
            off_at: part("off_at"),
            on_at: part("on_at"),
            mean_time_to_failure: part("mean_time_to_failure"),
            mean_time_to_repair: part("mean_time_to_repair"),
            until: part("until"),
            schedule: part("schedule"),
        };
        let outage = times.check(&choice, reader);
        // A rule that a `--set` changed is no longer what its source says.
        let changed = entries.iter().find(|entry| entry.key_location.is_set());
        let (attribution, location) = match changed {
            Some(entry) => (Attribution::default(), entry.key_location),
            None => (Attribution::among(item, entries, path, reader)?, item.location),
        };
        let share = |share: Option<Millionths>| share.map_or(0, |Millionths(count)| count);
        let rule = FaultRule {
            links: links?,
            drop: share(drop?),
            corrupt: share(corrupt?),
            duplicate: share(duplicate?),
            reorder: share(reorder?),
            outage: outage?,
        };
        let together = rule.drop + rule.corrupt + rule.duplicate + rule.reorder;
        if together > MILLION {
            let problem = Problem::new(
                format!("`{path}` does something to more packets than there are"),
                format!("{together} in a million"),
                format!("let drop, corrupt, duplicate and reorder together be at most {MILLION}"),
            );
            reader.report(location, problem);
            return None;
        }
        let constant = attribution.constant(rule.to_string(), path, location, reader)?;
        reader.constants.push(constant);
        Some(rule)
    }
}

fn optional<T: KeyType>(part: Option<&Item>, reader: &mut Reader<'_>) -> Option<Option<T>> {
    let Some(part) = part else { return Some(None) };
    T::read(&part.value.written()).map_err(|problem| reader.report(part.location, problem)).ok().map(Some)
}

/// The keys that say when links are off.
struct OutageKeys<'i> {
    off_at: Option<&'i Item>,
    on_at: Option<&'i Item>,
    mean_time_to_failure: Option<&'i Item>,
    mean_time_to_repair: Option<&'i Item>,
    until: Option<&'i Item>,
    schedule: Option<&'i Item>,
}

impl OutageKeys<'_> {
    /// The times at which the links of a rule are off. `None`: a problem was reported.
    fn check(&self, links: &LinkChoice<'_>, reader: &mut Reader<'_>) -> Option<Outage> {
        let random = [self.mean_time_to_failure, self.mean_time_to_repair, self.until];
        let once = [self.off_at, self.on_at];
        let first = |of: &[Option<&Item>]| of.iter().flatten().next().map(|item| item.location);
        let kinds = [first(&once), first(&random), self.schedule.map(|item| item.location)];
        let mut given = kinds.into_iter().flatten();
        if let (Some(_), Some(second)) = (given.next(), given.next()) {
            let help =
                "keep off_at with on_at, or the mean times, or the schedule; another rule may have the other";
            reader.report(second, Problem::new("a rule says twice when its links are off", "", help));
            return None;
        }
        match (self.schedule, first(&random)) {
            (Some(schedule), _) => OutageKeys::scheduled(schedule, links, reader),
            (None, Some(location)) => self.random(location, reader),
            (None, None) => self.once(reader),
        }
    }

    fn once(&self, reader: &mut Reader<'_>) -> Option<Outage> {
        let (off_at, on_at) = (optional::<Span>(self.off_at, reader)?, optional::<Span>(self.on_at, reader)?);
        match (off_at, on_at, self.on_at) {
            (None, None, _) => Some(Outage::Never),
            (Some(off), Some(on), Some(item)) if on <= off => {
                let problem = Problem::new(
                    format!("links come back at {on}, before they fail at {off}"),
                    "not later than off_at",
                    "let on_at be later than off_at, or leave it out: they then stay off",
                );
                reader.report(item.location, problem);
                None
            }
            (Some(off_at), on_at, _) => Some(Outage::Once { off_at, on_at }),
            (None, Some(on), item) => {
                let help = "write off_at as well: when the links fail";
                let problem =
                    Problem::new(format!("links come back at {on} and never fail"), "no off_at", help);
                if let Some(item) = item {
                    reader.report(item.location, problem);
                }
                None
            }
        }
    }

    fn random(&self, location: super::source::Location, reader: &mut Reader<'_>) -> Option<Outage> {
        let failure = optional::<Span>(self.mean_time_to_failure, reader)?;
        let repair = optional::<Span>(self.mean_time_to_repair, reader)?;
        let until = optional::<Span>(self.until, reader)?;
        let (Some(mean_time_to_failure), Some(mean_time_to_repair), Some(until)) = (failure, repair, until)
        else {
            let help = "write mean_time_to_failure, mean_time_to_repair and until: the virtual time \
                        from which on nothing fails any more, such as the length of the run";
            reader.report(location, Problem::new("random failures need three times", "not all given", help));
            return None;
        };
        let keys = [("mean_time_to_failure", failure), ("mean_time_to_repair", repair)];
        for (key, time) in keys {
            if time == Some(Span::ZERO) {
                let problem = Problem::new(format!("`{key}` is zero"), "", "write a mean time such as 100us");
                reader.report(location, problem);
                return None;
            }
        }
        Some(Outage::Random { mean_time_to_failure, mean_time_to_repair, until })
    }

    fn scheduled(item: &Item, links: &LinkChoice<'_>, reader: &mut Reader<'_>) -> Option<Outage> {
        if [links.class, links.of, links.between].iter().any(Option::is_some) {
            let help = "leave out `class`, `of` and `between`, or write off_at and on_at";
            reader.report(item.location, Problem::new("a schedule names its links itself", "", help));
            return None;
        }
        let name = String::from_item(item, "schedule", reader)?;
        schedule::read(&name, item.location, reader).map(Outage::Schedule)
    }
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
        if self.duplicate + self.reorder > 0 {
            write!(f, ", {} duplicated, {} reordered", self.duplicate, self.reorder)?;
        }
        match &self.outage {
            Outage::Never => Ok(()),
            Outage::Once { off_at, on_at: None } => write!(f, ", off at {off_at}"),
            Outage::Once { off_at, on_at: Some(on_at) } => write!(f, ", off at {off_at}, on at {on_at}"),
            Outage::Random { mean_time_to_failure, mean_time_to_repair, until } => write!(
                f,
                ", failing after {mean_time_to_failure} and repaired after {mean_time_to_repair} in the \
                 mean, until {until}"
            ),
            Outage::Schedule(outages) => write!(f, ", {} times off by schedule", outages.len()),
        }
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
        properties.insert("drop".to_owned(), crate::schema::of_writing(&Millionths::WRITING));
        properties.insert("corrupt".to_owned(), crate::schema::of_writing(&Millionths::WRITING));
        properties.insert("duplicate".to_owned(), crate::schema::of_writing(&Millionths::WRITING));
        properties.insert("reorder".to_owned(), crate::schema::of_writing(&Millionths::WRITING));
        for key in ["off_at", "on_at", "mean_time_to_failure", "mean_time_to_repair", "until"] {
            properties.insert(key.to_owned(), crate::schema::of_writing(&Span::WRITING));
        }
        properties.insert("schedule".to_owned(), text("A file of times at which links are off."));
        json_schema!({
            "type": "object",
            "description":
                "Links that lose, corrupt, duplicate or reorder packets, or are off for a time or for good.",
            "properties": properties,
            "additionalProperties": false,
        })
    }
}
