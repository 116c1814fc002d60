//! `switch.classes`: the table of traffic classes.

use super::read::Reader;
use super::row::{Row, RowValue};
use super::source::Location;
use super::table::Locations;
use std::fmt;
use weft_congestion::CongestionKind;
use weft_fabric::arbiter::Grouping;
use weft_fabric::parameters::{ArbiterKind, BufferPer, FlowControl, SwitchParameters};
use weft_fabric::{
    ClassTableError, MAX_CLASSES, Minimum, Operations, TrafficClass, TrafficClasses, TrafficKind, WHOLE_SHARE,
};
use weft_keys::{CountFromZero, KeyType, Problem, Writing, Written};
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

weft_keys::keys! {
    /// A class as a file gives it.
    #[derive(Clone, Debug)]
    pub(crate) struct ClassKeys {
        /// The name, for messages.
        name: String;
        /// The packets of it; all where not given.
        kind: TrafficKind = TrafficKind::All, key("of");
        /// Only packets of messages up to this size.
        up_to: Option<Bytes>;
        /// Only packets of messages of this operation.
        operation: Option<OperationName>;
        /// Only packets of this application of the command, counted from 0.
        job: Option<Job>;
        /// Only packets of messages whose program names the class; not where not given.
        by_name: bool = false;
        /// The priority; the larger goes first under strict priority.
        priority: Option<CountFromZero>;
        /// Bytes in each round under weighted round robin.
        weight: Option<u32>;
        /// The least part of a link that it has.
        minimum: Option<Minimum>;
        /// Input buffer of each of its virtual channels; an even part where not given.
        buffer: Option<Bytes>;
        /// Congestion control of its flows; that of the machine where not given.
        congestion: Option<CongestionKind>;
    }
}

impl RowValue for ClassKeys {
    type Keys = ClassKeys;
    const NAME: &'static str = "TrafficClass";
    const MEANING: &'static str = "Packets with virtual channels, buffers and credits of their own.";

    fn of(keys: ClassKeys, _: &Locations, _: &mut Reader<'_>) -> Option<ClassKeys> {
        Some(keys)
    }
}

impl fmt::Display for ClassKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            self.up_to.map(|most| format!("messages up to {most}")),
            self.operation.map(|operation| operation.show()),
            self.job.map(|Job(job)| format!("job {job}")),
            self.by_name.then(|| "by name".to_owned()),
            self.priority.map(|CountFromZero(priority)| format!("priority {priority}")),
            self.weight.map(|weight| format!("weight {weight}")),
            self.minimum.map(|minimum| format!("at least {}", minimum.show())),
            self.buffer.map(|buffer| format!("buffer {buffer}")),
            self.congestion.map(|kind| format!("congestion {}", kind.show())),
        ];
        let parts = parts.into_iter().flatten().map(|part| format!(", {part}")).collect::<String>();
        write!(f, "{}: {}{parts}", self.name, self.kind.show())
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
    raw: Vec<Row<ClassKeys>>,
    (arbiter, at): (ArbiterKind, Location),
    reader: &mut Reader<'_>,
) -> Option<ClassTable> {
    let grouping = arbiter.properties().grouping;
    if raw.is_empty() || raw.len() == 1 && grouping != Grouping::None {
        if grouping == Grouping::None {
            return Some(ClassTable::default());
        }
        let problem = Problem::new(
            format!("`{}` tells traffic classes apart, and there is only one", arbiter.word()),
            "not an arbiter for this machine",
            "add [[switch.classes]] with at least two classes, or write arbiter = \"round-robin\"",
        );
        reader.report(at, problem);
        return None;
    }
    let mut classes = Vec::new();
    for Row { value: class, location } in &raw {
        let refuse = |reader: &mut Reader<'_>, title: String, label: &str, help: String| {
            reader.report(*location, Problem::new(title, label, help));
        };
        let name = &class.name;
        let missing = match grouping {
            Grouping::None => None,
            Grouping::Weights => class.weight.is_none().then_some("weight"),
            Grouping::Priorities | Grouping::Shares => class.priority.is_none().then_some("priority"),
        };
        if let Some(key) = missing {
            let title = format!("class `{name}` has no `{key}`");
            refuse(reader, title, "the arbiter needs it", format!("add {key} = … to it"));
            return None;
        }
        let priorities = raw.len() as u32;
        if class.priority.is_some_and(|CountFromZero(priority)| priority >= priorities) {
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
        if raw.iter().filter(|other| other.value.name == *name).count() > 1 {
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
            priority: class.priority.map_or(0, |CountFromZero(priority)| priority) as u8,
            weight: class.weight.unwrap_or(1),
            minimum: class.minimum.unwrap_or_default(),
            buffer: class.buffer,
        });
    }
    if grouping == Grouping::Shares {
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
    let name = |class: usize| raw[class].value.name.as_str();
    let error = match TrafficClasses::new(&classes) {
        Ok(classes) => {
            let (names, locations) = raw.into_iter().map(|row| (row.value.name, row.location)).unzip();
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
