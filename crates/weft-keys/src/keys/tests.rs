//! Tables that are read by their declarations.

use super::*;
use crate::choices;
use crate::problem::Problem;
use crate::written::Written;
use std::collections::BTreeMap;
use weft_units::{Clock, Span};

choices! {
    /// Organization of a switch.
    #[derive(Clone, PartialEq, Eq, Debug)]
    enum Organization: "Organization", "an organization" {
        /// Queues at the inputs.
        Inputs = "inputs",
        /// Queues at both.
        Both = "both" {
            /// Rate of the crossbar.
            speedup: u32, within(1, 8);
            /// The buffer of an output.
            output: Option<u32>;
        },
        /// Queues at the outputs.
        Outputs = "outputs" (
            /// The buffer of an output.
            output: Option<u32>;
        ),
    }
}

keys! {
    /// A switch.
    #[derive(Clone, PartialEq, Eq, Debug)]
    struct Switch {
        /// Organization.
        kind: Organization;
        /// Ports, at least 2.
        ports: u32, within(2, 64);
        /// Lanes; as many as ports where not given.
        count: u32 = ports, key("lanes"), how("one for each port");
        /// Lanes that are spare.
        kept: Option<u32>, key("spare"), only_with("lanes", []);
        beside {
            /// Of another table.
            classes: u32 = 3;
        }
    }
}

/// A table, and what is said of it.
#[derive(Default)]
struct Table {
    entries: BTreeMap<&'static str, Written>,
    said: Vec<String>,
}

impl GivenKeys for Table {
    fn value<T>(&mut self, key: &'static str, reading: Reading<T>) -> Given<T> {
        match self.entries.get(key).map(reading.read) {
            Some(Ok(value)) => Given::Value(value),
            Some(Err(problem)) => {
                self.said.push(format!("{key}: {}", problem.title));
                Given::Wrong
            }
            None => Given::Absent,
        }
    }

    fn other<T: KeyType>(&self, path: &'static str) -> Given<T> {
        match self.entries.get(path).map(T::read) {
            Some(Ok(value)) => Given::Value(value),
            Some(Err(_)) => Given::Wrong,
            None => Given::Absent,
        }
    }

    fn holds(&self, condition: &Condition<'_>) -> bool {
        self.entries.get(condition.key).is_some_and(|written| match written {
            Written::Text(text) => condition.words.is_empty() || condition.words.contains(&text.as_str()),
            _ => condition.words.is_empty(),
        })
    }

    fn refuse(&mut self, key: &'static str, condition: &Condition<'_>) -> bool {
        let is_given = self.entries.contains_key(key);
        if is_given {
            self.said.push(format!("{key}: only with {}", condition.text()));
        }
        !is_given
    }

    fn report_missing(&mut self, key: &'static Key) {
        self.said.push(format!("{}: missing", key.name));
    }

    fn report(&mut self, key: &'static str, problem: Problem) {
        self.said.push(problem.title.replace("{}", key));
    }

    fn derive(&mut self, key: &'static str, value: String, how: &'static str) {
        self.said.push(format!("{key}: {value}, {how}"));
    }
}

fn read(entries: &[(&'static str, Written)]) -> (Option<Switch>, Vec<String>) {
    let mut table = Table { entries: entries.iter().cloned().collect(), ..Table::default() };
    (Switch::read(&mut table), table.said)
}

fn text(text: &str) -> Written {
    Written::Text(text.to_owned())
}

/// Catches defaults that do not see other fields, and keys of a word that are not read.
#[test]
fn a_table_becomes_its_type() {
    let (switch, said) =
        read(&[("kind", text("both")), ("speedup", Written::Integer(2)), ("ports", Written::Integer(4))]);
    let kind = Organization::Both { speedup: 2, output: None };
    assert_eq!(switch, Some(Switch { kind, ports: 4, count: 4, kept: None, classes: 3 }));
    assert_eq!(said, ["lanes: 4, one for each port"]);
    let given = [
        ("kind", text("outputs")),
        ("output", Written::Integer(7)),
        ("ports", Written::Integer(2)),
        ("lanes", Written::Integer(3)),
        ("spare", Written::Integer(1)),
    ];
    let kind = Organization::Outputs(Some(7));
    assert_eq!(read(&given).0, Some(Switch { kind, ports: 2, count: 3, kept: Some(1), classes: 3 }));
    let names: Vec<_> = Switch::KEYS.iter().map(|key| (key.name, key.is_needed)).collect();
    assert_eq!(names, [("kind", true), ("ports", true), ("lanes", false), ("spare", false)]);
    assert_eq!(Switch::KEYS[1].meaning, "Ports, at least 2.");
    assert_eq!(Switch::KEYS[0].words[1].keys[0].name, "speedup");
}

/// Catches mistakes that hide others, and keys that mean nothing and are taken.
#[test]
fn all_mistakes_are_said() {
    let (switch, said) = read(&[
        ("kind", text("inputs")),
        ("speedup", Written::Integer(2)),
        ("output", Written::Integer(2)),
        ("ports", Written::Integer(1)),
        ("spare", Written::Integer(1)),
    ]);
    assert_eq!(switch, None);
    assert_eq!(
        said,
        [
            "speedup: only with kind = \"both\"",
            "output: only with kind = \"both\" or \"outputs\"",
            "`ports` of 1 is too small",
            "spare: only with lanes = …",
        ]
    );
    let (_, said) = read(&[("kind", text("booth")), ("ports", text("many"))]);
    assert_eq!(said, ["kind: `booth` is not an organization", "ports: this is not a whole number"]);
    let (_, said) = read(&[("kind", text("both")), ("ports", Written::Integer(65))]);
    assert_eq!(said, ["speedup: missing", "`ports` of 65 is impossible"]);
}

keys! {
    /// Times.
    #[derive(Clone, PartialEq, Eq, Debug)]
    struct Times {
        /// The first.
        first: Span, not_zero("20us");
        /// The last; the first where not given.
        last: Span = first;
    }
}

keys! {
    /// A block that counts cycles of another table's clock.
    #[derive(Clone, PartialEq, Eq, Debug)]
    struct Block {
        /// The clock.
        clock: Clock, of("nic.clock");
        /// In whole cycles.
        engine: u32, cycles_of("nic.clock");
        /// The same as a time.
        latency: Span, cycles_of("nic.clock");
        /// A time or cycles.
        start: Span, time_of("nic.clock");
        /// Of another table, where not given.
        poll: Span, or_of("nic.poll");
        /// In the same table.
        times: Option<Times>, group();
    }
}

fn block(entries: &[(&'static str, &str)]) -> (Option<Block>, Vec<String>) {
    let entries = entries.iter().map(|(key, written)| (*key, text(written))).collect();
    let mut table = Table { entries, ..Table::default() };
    (Block::read(&mut table), table.said)
}

const CYCLES: [(&str, &str); 5] = [
    ("nic.clock", "100MHz"),
    ("engine", "11ns"),
    ("latency", "2 cycles"),
    ("start", "11ns"),
    ("nic.poll", "7ns"),
];

/// Catches costs that are converted by another clock or not rounded up, a value of another table that is
/// not found or goes before the own, and a group that is needed or lost.
#[test]
fn values_of_other_tables_and_groups_are_read() {
    let clock = Clock::from_hertz(100_000_000).unwrap();
    let ns = Span::from_ns;
    let expected = Block { clock, engine: 2, latency: ns(20), start: ns(11), poll: ns(7), times: None };
    assert_eq!(block(&CYCLES), (Some(expected.clone()), Vec::new()));
    let own = [("start", "3 cycles"), ("poll", "5ns"), ("first", "1ns")];
    let times = Some(Times { first: ns(1), last: ns(1) });
    let expected = Block { start: ns(30), poll: ns(5), times, ..expected };
    assert_eq!(block(&[&CYCLES[..], &own].concat()), (Some(expected), Vec::new()));
    let names: Vec<_> = Block::KEYS.iter().map(|key| (key.name, key.is_needed)).collect();
    let needed = [("engine", true), ("latency", true), ("start", true)];
    assert_eq!(names[..3], needed);
    assert_eq!(names[3..], [("poll", false), ("first", false), ("last", false)]);
}

/// Catches a group without its first key, a zero, and cycles of no clock that pass.
#[test]
fn mistakes_in_groups_and_costs_are_said() {
    let with = |more: &[(&'static str, &'static str)]| block(&[&CYCLES[..], more].concat());
    assert_eq!(with(&[("last", "1ns")]), (None, vec!["last: only with first = …".to_owned()]));
    assert_eq!(with(&[("first", "0ns")]), (None, vec!["`first` is zero".to_owned()]));
    let (read, said) = block(&[("engine", "1ns"), ("latency", "1ns"), ("start", "3 cycles")]);
    assert_eq!((read, said), (None, vec!["`start` counts cycles of no clock".to_owned()]));
    // What is wrong with the clock is said where it stands.
    let wrong = [("nic.clock", "0Hz"), ("start", "3 cycles")];
    assert_eq!(with(&wrong), (None, Vec::new()));
}
