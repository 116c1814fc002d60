//! `[messaging]`: what the library between program and interface costs, and its algorithms.

use super::document::{Entry as TableEntry, Item};
use super::read::{Attribution, FromItem, Reader, attribution_schema, section_of_keys};
use super::value::Bounds;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use weft_keys::word::one_of;
use weft_keys::{KeyType, Problem, Writing, Written};
use weft_msg::{Algorithm, AlgorithmTable, COLLECTIVE_NAMES, Protocol, collective_name};
use weft_trace::op::Collective;

weft_keys::keys! {
    /// The library that is modelled.
    #[derive(Clone, Copy, Debug)]
    pub(super) struct Library {
        /// The table of collective algorithms.
        profile: Profile;
        /// Who moves messages on while the program computes.
        progress: Progress;
    }
}

section_of_keys! {
    /// The messaging library.
    struct RawMessaging {
        keys {
            library: Library,
            protocol: Protocol,
        }
        /// Rules that go before the profile's; the first that holds counts.
        algorithms: Option<Vec<Rule>>,
    }
}

impl RawMessaging {
    /// The library. `None`: a problem was reported.
    pub(super) fn check(self) -> Option<Messaging> {
        let Library { profile, progress } = self.library?;
        let protocol = Protocol { algorithms: profile.table(), ..self.protocol? };
        Some(Messaging { profile, progress, protocol, rules: self.algorithms.unwrap_or_default() })
    }
}

weft_keys::words! {
    /// The tables of algorithms that ship.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum Profile: "Profile", "a table of algorithms" {
        /// ExaNet-MPI (TR-488 §5.2.1, §6.1.3).
        Exanest = "exanest",
        /// MPICH 3.2.1.
        Mpich321 = "mpich-3.2.1",
        /// MPICH 5.0.
        Mpich5 = "mpich-5",
        /// Open MPI 4.1.
        Openmpi41 = "openmpi-4.1",
    }
}

impl Profile {
    /// The table of algorithms that libraries of this kind choose from.
    fn table(self) -> AlgorithmTable {
        match self {
            Profile::Exanest => AlgorithmTable::exanest(),
            Profile::Mpich321 => AlgorithmTable::mpich(),
            Profile::Mpich5 => AlgorithmTable::mpich_5(),
            Profile::Openmpi41 => AlgorithmTable::openmpi(),
        }
    }
}

weft_keys::words! {
    /// Who moves messages on while the program computes.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum Progress: "Progress", "a progress rule" {
        /// Nobody: it happens inside the program's calls.
        Call = "call",
        /// A thread of the library.
        Thread = "thread",
        /// The interface.
        Nic = "nic",
    }
}

/// A collective by its name in machine files.
struct NamedCollective(Collective);

impl NamedCollective {
    const NAMES: [&'static str; COLLECTIVE_NAMES.len()] = {
        let mut names = [""; COLLECTIVE_NAMES.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = COLLECTIVE_NAMES[at].1;
            at += 1;
        }
        names
    };
}

impl KeyType for NamedCollective {
    const NAME: &'static str = "Collective";
    const WRITING: Writing = Writing::Words(&NamedCollective::NAMES);

    fn read(written: &Written) -> Result<NamedCollective, Problem> {
        let name = one_of("a collective", written, &NamedCollective::NAMES)?;
        let named = COLLECTIVE_NAMES.iter().find(|(_, known)| *known == name);
        Ok(NamedCollective(named.expect("it is one of these names").0))
    }

    fn show(&self) -> String {
        collective_name(self.0).to_owned()
    }
}

/// One rule: `algorithm` carries out `operation` where ranks and bytes lie in the bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rule {
    /// The collective.
    pub operation: Collective,
    /// Members of the communicator.
    pub ranks: Bounds,
    /// Bytes.
    pub bytes: Bounds,
    /// How it is carried out.
    pub algorithm: Algorithm,
}

/// A rule is one value, attributed as a whole.
impl FromItem for Rule {
    fn from_item(item: &Item, path: &str, reader: &mut Reader<'_>) -> Option<Rule> {
        let known = [&["operation", "ranks", "bytes", "algorithm"][..], &Attribution::KEYS].concat();
        let entries = reader.table(item, path, &known)?;
        let row = Row { item, path, entries };
        let operation = row.needed("operation", reader).map(|NamedCollective(operation)| operation);
        let algorithm: Option<Algorithm> = row.needed("algorithm", reader);
        let ranks = row.bounds("ranks", reader);
        let bytes = row.bounds("bytes", reader);
        // A rule that a `--set` changed is no longer what its source says.
        let changed = entries.iter().find(|entry| entry.key_location.is_set());
        let (attribution, location) = match changed {
            Some(entry) => (Attribution::default(), entry.key_location),
            None => (Attribution::among(item, entries, path, reader)?, item.location),
        };
        if let (Some(operation), Some(algorithm)) = (operation, algorithm)
            && !algorithm.performs(operation)
        {
            let able: Vec<&str> = Algorithm::performing(operation).map(|able| able.name()).collect();
            let problem = Problem::new(
                format!("{algorithm} cannot carry out {}", collective_name(operation)),
                "does not fit",
                if able.is_empty() {
                    "leave this rule out: no algorithm carries it out yet".to_owned()
                } else {
                    format!("write algorithm = \"{}\"", able.join("\" or \""))
                },
            );
            reader.report(row.part("algorithm").map_or(item.location, |part| part.location), problem);
            return None;
        }
        let rule = Rule { operation: operation?, ranks: ranks?, bytes: bytes?, algorithm: algorithm? };
        let constant = attribution.constant(rule.to_string(), path, location, reader)?;
        reader.constants.push(constant);
        Some(rule)
    }
}

/// A row of the table of rules, as it stands in the file.
struct Row<'i> {
    item: &'i Item,
    path: &'i str,
    entries: &'i [TableEntry],
}

impl<'i> Row<'i> {
    fn part(&self, key: &str) -> Option<&'i Item> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    /// The value of a key that every rule has. `None`: a problem was reported.
    fn needed<T: KeyType>(&self, key: &str, reader: &mut Reader<'_>) -> Option<T> {
        let Some(part) = self.part(key) else {
            reader.missing(self.item.location, self.path, key);
            return None;
        };
        T::read(&part.value.written()).map_err(|problem| reader.report(part.location, problem)).ok()
    }

    /// The bounds under a key; without it, none. `None`: a problem was reported.
    fn bounds(&self, key: &str, reader: &mut Reader<'_>) -> Option<Bounds> {
        let Some(part) = self.part(key) else { return Some(Bounds { first: 0, last: None }) };
        Bounds::read(&part.value.written()).map_err(|problem| reader.report(part.location, problem)).ok()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { operation, ranks, bytes, algorithm } = self;
        write!(f, "{} on {ranks} ranks of {bytes} bytes: {algorithm}", collective_name(*operation))
    }
}

impl JsonSchema for Rule {
    fn schema_name() -> Cow<'static, str> {
        "Rule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut properties = attribution_schema();
        properties.insert("operation".to_owned(), crate::schema::of_writing(&NamedCollective::WRITING));
        properties.insert("ranks".to_owned(), crate::schema::of_writing(&Bounds::WRITING));
        properties.insert("bytes".to_owned(), crate::schema::of_writing(&Bounds::WRITING));
        properties.insert("algorithm".to_owned(), crate::schema::of_writing(&Algorithm::WRITING));
        json_schema!({
            "type": "object",
            "description": "`algorithm` carries out `operation` where ranks and bytes lie in the bounds.",
            "properties": properties,
            "required": ["operation", "algorithm"],
            "additionalProperties": false,
        })
    }
}

/// The messaging library of a machine.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Messaging {
    /// Costs and limits, with the algorithms of the profile alone.
    pub protocol: Protocol,
    /// The table of collective algorithms, after `rules`.
    pub profile: Profile,
    /// Who moves messages on while the program computes.
    pub progress: Progress,
    /// Rules that go before the profile's; the first that holds counts.
    pub rules: Vec<Rule>,
}
