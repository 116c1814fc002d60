//! `[messaging]`: what the library between program and interface costs, and its algorithms.

use super::read::{Reader, section_of_keys};
use super::row::{Row, RowValue};
use super::table::Locations;
use super::value::Bounds;
use serde::{Deserialize, Serialize};
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
        algorithms: Option<Vec<Row<Rule>>>,
    }
}

impl RawMessaging {
    /// The library. `None`: a problem was reported.
    pub(super) fn check(self) -> Option<Messaging> {
        let Library { profile, progress } = self.library?;
        let protocol = Protocol { algorithms: profile.table(), ..self.protocol? };
        let rules = self.algorithms.unwrap_or_default().into_iter().map(|row| row.value).collect();
        Some(Messaging { profile, progress, protocol, rules })
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

impl From<NamedCollective> for Collective {
    fn from(NamedCollective(collective): NamedCollective) -> Collective {
        collective
    }
}

weft_keys::keys! {
    /// One rule: `algorithm` carries out `operation` where ranks and bytes lie in the bounds.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct Rule {
        /// The collective.
        operation: Collective, read_as(NamedCollective);
        /// Members of the communicator; any number where not given.
        ranks: Bounds = Bounds::ANY;
        /// Bytes; any number where not given.
        bytes: Bounds = Bounds::ANY;
        /// How it is carried out.
        algorithm: Algorithm;
    }
}

impl RowValue for Rule {
    type Keys = Rule;
    const NAME: &'static str = "Rule";
    const MEANING: &'static str =
        "`algorithm` carries out `operation` where ranks and bytes lie in the bounds.";

    fn of(rule: Rule, locations: &Locations, reader: &mut Reader<'_>) -> Option<Rule> {
        let Rule { operation, algorithm, .. } = rule;
        if algorithm.performs(operation) {
            return Some(rule);
        }
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
        reader.report(locations.of("algorithm"), problem);
        None
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rule { operation, ranks, bytes, algorithm } = self;
        write!(f, "{} on {ranks} ranks of {bytes} bytes: {algorithm}", collective_name(*operation))
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
