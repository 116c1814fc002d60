//! `switch.classes`: the table of traffic classes.

use super::congestion::CongestionKind;
use super::document::Item;
use super::read::{Attribution, FromItem, Reader, attribution_schema};
use super::source::Location;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use std::borrow::Cow;
use weft_fabric::parameters::{ArbiterKind, BufferPer, FlowControl, SwitchParameters};
use weft_fabric::{
    ClassTableError, MAX_CLASSES, Minimum, Operations, TrafficClass, TrafficClasses, TrafficKind, WHOLE_SHARE,
};
use weft_keys::{KeyType, Problem, Writing, Written};
use weft_units::Bytes;

weft_keys::words! {
    /// Operations of messages by their names in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum OperationName: "Operation", "an operation" {
        TwoSided = "two-sided",
        Collective = "collective",
        Put = "put",
        Get = "get",
        Atomic = "atomic",
        OneSided = "one-sided",
    }
}

impl OperationName {
    fn set(self) -> Operations {
        match self {
            OperationName::TwoSided => Operations::TWO_SIDED,
            OperationName::Collective => Operations::COLLECTIVE,
            OperationName::Put => Operations::PUT,
            OperationName::Get => Operations::GET,
            OperationName::Atomic => Operations::ATOMIC,
            OperationName::OneSided => Operations::ONE_SIDED,
        }
    }
}

/// The number of an application, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Job(u16);

impl KeyType for Job {
    const NAME: &'static str = "Job";
    const WRITING: Writing = Writing::Described(
        &Writing::Whole { least: 0, most: Some(u16::MAX as u64) },
        "The application of the command, counted from 0.",
    );

    fn read(value: &Written) -> Result<Job, Problem> {
        let problem = |label: String| {
            let mend = "write 0 for the first application of the command, 1 for the second, and so on";
            Problem::new("this is not an application", label, mend)
        };
        match value {
            Written::Integer(number) => {
                u16::try_from(*number).map(Job).map_err(|_| problem(number.to_string()))
            }
            other => Err(problem(format!("this is {}", other.describe()))),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A priority: 0 is the lowest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Priority(u32);

impl KeyType for Priority {
    const NAME: &'static str = "Priority";
    const WRITING: Writing = Writing::Described(
        &Writing::Whole { least: 0, most: None },
        "The larger goes first under strict priority.",
    );

    fn read(value: &Written) -> Result<Priority, Problem> {
        let problem = |label: String| {
            Problem::new("this is not a priority", label, "write 0 or more; the larger goes first")
        };
        match value {
            Written::Integer(integer) => {
                u32::try_from(*integer).map(Priority).map_err(|_| problem(format!("{integer}")))
            }
            other => Err(problem(format!("this is {}", other.describe()))),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// A class as read.
#[derive(Clone, Debug)]
pub struct RawTrafficClass {
    name: String,
    kind: TrafficKind,
    up_to: Option<Bytes>,
    operation: Option<OperationName>,
    job: Option<Job>,
    by_name: bool,
    priority: Option<u32>,
    weight: Option<u32>,
    minimum: Option<Minimum>,
    buffer: Option<Bytes>,
    pub(super) congestion: Option<CongestionKind>,
    location: Location,
}

/// A class is one value, attributed as a whole.
impl FromItem for RawTrafficClass {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<RawTrafficClass> {
        const OWN: [&str; 11] = [
            "name",
            "of",
            "up_to",
            "operation",
            "job",
            "by_name",
            "priority",
            "weight",
            "minimum",
            "buffer",
            "congestion",
        ];
        let entries = reader.table(item, path, &[&OWN[..], &Attribution::KEYS].concat())?;
        let name = reader.field::<String>(item, entries, path, "name");
        let part = |key: &str| entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item);
        let kind = optional::<TrafficKind>(part("of"), reader);
        let up_to = optional::<Bytes>(part("up_to"), reader);
        let operation = optional::<OperationName>(part("operation"), reader);
        let job = optional::<Job>(part("job"), reader);
        let by_name = optional::<bool>(part("by_name"), reader);
        let priority = optional::<Priority>(part("priority"), reader);
        let weight = optional::<u32>(part("weight"), reader);
        let minimum = optional::<Minimum>(part("minimum"), reader);
        let buffer = optional::<Bytes>(part("buffer"), reader);
        let congestion = optional::<CongestionKind>(part("congestion"), reader);
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
            operation: operation?,
            job: job?,
            by_name: by_name?.unwrap_or(false),
            priority: priority?.map(|Priority(number)| number),
            weight: weight?,
            minimum: minimum?,
            buffer: buffer?,
            congestion: congestion?,
            location,
        };
        let constant = attribution.constant(class.show(), path, location, reader)?;
        reader.constants.push(constant);
        Some(class)
    }
}

fn optional<T: KeyType>(part: Option<&Item>, reader: &mut Reader<'_>) -> Option<Option<T>> {
    let Some(part) = part else { return Some(None) };
    T::read(&part.value.written()).map_err(|problem| reader.report(part.location, problem)).ok().map(Some)
}

impl RawTrafficClass {
    /// The class in a line of a table of values.
    fn show(&self) -> String {
        let parts = [
            self.up_to.map(|most| format!("messages up to {most}")),
            self.operation.map(|operation| operation.show()),
            self.job.map(|Job(job)| format!("job {job}")),
            self.by_name.then(|| "by name".to_owned()),
            self.priority.map(|priority| format!("priority {priority}")),
            self.weight.map(|weight| format!("weight {weight}")),
            self.minimum.map(|minimum| format!("at least {}", minimum.show())),
            self.buffer.map(|buffer| format!("buffer {buffer}")),
            self.congestion.map(|kind| format!("congestion {}", kind.show())),
        ];
        let parts = parts.into_iter().flatten().map(|part| format!(", {part}")).collect::<String>();
        format!("{}: {}{parts}", self.name, self.kind.show())
    }
}

/// Gives a switch with one class another one of the highest priority, for acknowledgements and the notices of
/// congestion control: the multiple-priority crossbar of D1.4 §8.1. Where virtual channels share a port's
/// buffer, it has `buffer` of it for each channel of the routing. Where that is not given, it has an eighth
/// under credits; half under pause, because it must hold the head-room too, and under drop, where trimmed
/// packets come into it. `least`: what the largest packet takes.
pub(super) fn prioritize_answers(
    switch: &mut SwitchParameters,
    buffer: Option<Bytes>,
    of_routing: Option<u32>,
    least: Bytes,
) {
    if switch.channels.classes.count() > 1 {
        return;
    }
    let mut data = TrafficClass { weight: 1, ..TrafficClass::default() };
    let mut answers = TrafficClass { kind: TrafficKind::Acknowledgements, priority: 1, buffer, ..data };
    if let (BufferPer::Port, Some(of_routing)) = (switch.buffer_per, of_routing) {
        let channels = of_routing + u32::from(switch.channels.failover);
        let each = Bytes::new(switch.buffer.get() / u64::from(channels.max(1)));
        let parts = if switch.flow_control == FlowControl::Credits { 8 } else { 2 };
        let own = buffer.unwrap_or(Bytes::new(each.get() / parts).max(least)).min(each);
        (answers.buffer, data.buffer) = (Some(own), Some(each - own));
    }
    if let Ok(classes) = TrafficClasses::new(&[answers, data]) {
        switch.channels.classes = classes;
        switch.arbiter = ArbiterKind::StrictPriority;
    }
}

/// The traffic classes of a machine.
#[derive(Default)]
pub(super) struct ClassTable {
    pub(super) classes: TrafficClasses,
    /// Their names; none, where the file has no classes.
    pub(super) names: Vec<String>,
    /// The places of their tables.
    locations: Vec<Location>,
}

impl ClassTable {
    /// Refuses a class whose buffer is smaller than `least`, which the packet or head-room that is `for_what`
    /// takes.
    pub(super) fn check_buffers(
        &self,
        (least, for_what): (Bytes, &str),
        reader: &mut Reader<'_>,
    ) -> Option<()> {
        let classes = self.classes.all().iter().zip(&self.names).zip(&self.locations);
        for ((class, name), location) in classes {
            if let Some(buffer) = class.buffer
                && buffer < least
            {
                let problem = Problem::new(
                    format!("the buffer of class `{name}`, {buffer}, cannot hold {for_what}"),
                    format!("{least} at least"),
                    format!("write buffer = \"{least}\" or more, or leave it out"),
                );
                reader.report(*location, problem);
                return None;
            }
        }
        Some(())
    }

    /// Refuses buffers of classes where a port shares one out to its channels.
    pub(super) fn check_sharing(&self, buffer_per: BufferPer, reader: &mut Reader<'_>) -> Option<()> {
        let own = self.classes.all().iter().position(|class| class.buffer.is_some());
        let (BufferPer::Port, Some(class)) = (buffer_per, own) else { return Some(()) };
        let problem = Problem::new(
            format!(
                "class `{}` has a buffer of its own, and ports share theirs out evenly",
                self.names[class]
            ),
            "not with buffer_per = \"port\"",
            "write buffer_per = \"channel\", or leave the buffers of classes out",
        );
        reader.report(self.locations[class], problem);
        None
    }
}

/// The table of traffic classes, which the arbiter of the switches can use. `at`: where the arbiter is named.
pub(super) fn check(
    raw: Vec<RawTrafficClass>,
    (arbiter, at): (ArbiterKind, Location),
    reader: &mut Reader<'_>,
) -> Option<ClassTable> {
    let (needs, key) = match arbiter {
        ArbiterKind::StrictPriority => (Some("strict-priority"), "priority"),
        ArbiterKind::WeightedRoundRobin => (Some("weighted-round-robin"), "weight"),
        ArbiterKind::MinimumBandwidth => (Some("minimum-bandwidth"), "priority"),
        _ => (None, ""),
    };
    if raw.is_empty() || raw.len() == 1 && needs.is_some() {
        let Some(arbiter) = needs else { return Some(ClassTable::default()) };
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
        if raw.iter().filter(|other| other.name == *name).count() > 1 {
            let title = format!("two classes are called `{name}`");
            refuse(reader, title, "which of them?", "give each its own name".to_owned());
            return None;
        }
        classes.push(TrafficClass {
            kind: class.kind,
            up_to: class.up_to,
            operations: class.operation.map(OperationName::set),
            job: class.job.map(|Job(job)| job),
            by_name: class.by_name,
            priority: class.priority.unwrap_or(0) as u8,
            weight: class.weight.unwrap_or(1),
            minimum: class.minimum.unwrap_or_default(),
            buffer: class.buffer,
        });
    }
    if arbiter == ArbiterKind::MinimumBandwidth {
        if classes.iter().all(|class| class.minimum == Minimum::default()) {
            let problem = Problem::new(
                "no traffic class has a minimum bandwidth",
                "it would be strict priority",
                "add minimum = \"25%\" to a class, or write arbiter = \"strict-priority\"",
            );
            reader.report(at, problem);
            return None;
        }
        let share = |class: &TrafficClass| match class.minimum {
            Minimum::Share(share) => share.into(),
            Minimum::Rate(_) => 0u64, // the links say how much of them that is
        };
        let sum: u64 = classes.iter().map(share).sum();
        if sum > WHOLE_SHARE.into() {
            let problem = Problem::new(
                format!(
                    "the traffic classes have a minimum of {} of each link together",
                    weft_fabric::percent(sum)
                ),
                "more than there is",
                "write minima of at most 100% in all",
            );
            reader.report(raw[0].location, problem);
            return None;
        }
    }
    let name = |class: usize| raw[class].name.as_str();
    let error = match TrafficClasses::new(&classes) {
        Ok(classes) => {
            let (names, locations) = raw.into_iter().map(|class| (class.name, class.location)).unzip();
            return Some(ClassTable { classes, names, locations });
        }
        Err(error) => error,
    };
    let (location, title, help) = match error {
        ClassTableError::Count(count) => {
            (raw[0].location, format!("{count} traffic classes"), format!("write at most {MAX_CLASSES}"))
        }
        ClassTableError::Uncovered(kind) => (
            raw[raw.len() - 1].location,
            format!("no traffic class takes all {kind}"),
            "let the last class have a name and a priority alone, so that it takes all".to_owned(),
        ),
        ClassTableError::NoMessages { class } => (
            raw[class].location,
            format!(
                "class `{}` gets no packets: those that only answer say nothing of a message",
                name(class)
            ),
            "leave `operation`, `job` and `by_name` out, or write of = \"replies\" or \"all\"".to_owned(),
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
        properties.insert("of".to_owned(), crate::schema::of_writing(&TrafficKind::WRITING));
        properties.insert("up_to".to_owned(), crate::schema::of_writing(&Bytes::WRITING));
        properties.insert("operation".to_owned(), crate::schema::of_writing(&OperationName::WRITING));
        properties.insert("job".to_owned(), crate::schema::of_writing(&Job::WRITING));
        properties.insert("by_name".to_owned(), crate::schema::of_writing(&bool::WRITING));
        properties.insert("priority".to_owned(), crate::schema::of_writing(&Priority::WRITING));
        properties.insert("weight".to_owned(), number("Bytes in each round under weighted round robin.", 1));
        properties.insert("minimum".to_owned(), crate::schema::of_writing(&Minimum::WRITING));
        properties.insert("buffer".to_owned(), crate::schema::of_writing(&Bytes::WRITING));
        properties.insert("congestion".to_owned(), crate::schema::of_writing(&CongestionKind::WRITING));
        json_schema!({
            "type": "object",
            "description": "Packets with virtual channels, buffers and credits of their own.",
            "properties": properties,
            "required": ["name"],
            "additionalProperties": false,
        })
    }
}
