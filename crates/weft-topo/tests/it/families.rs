//! The families of the registry: tables, counts and the machines made of them.

use std::collections::BTreeSet;
use weft_keys::Reading;
use weft_keys::{Condition, Given, GivenKeys, Key, KeyType, Problem, Written};
use weft_topo::*;
use weft_units::SwitchId;

/// Catches counts in closed form that differ from the machine: estimates of memory are made of them.
#[test]
fn counts_agree_with_what_is_built() {
    for parameters in TopologyParameters::examples() {
        let (counts, layout) = (parameters.counts(), parameters.build().unwrap());
        assert_eq!(counts.endpoints, u128::from(layout.endpoints()), "{parameters:?}");
        assert_eq!(parameters.needs_published_queues(), layout.needs_published_queues(), "{parameters:?}");
        assert_eq!(counts.switches, u128::from(layout.switches()), "{parameters:?}");
        let ports =
            (0..layout.switches()).map(|switch| u128::from(layout.ports(SwitchId(switch)))).sum::<u128>();
        assert!((ports..=2 * ports).contains(&counts.ports), "{parameters:?}: {ports}");
        let channels = layout.virtual_channels();
        assert!((channels..=2 * channels).contains(&counts.virtual_channels), "{parameters:?}: {channels}");
    }
}

/// Catches an example that a machine file could not describe, and a family or a routing without one.
#[test]
fn every_family_has_examples_with_every_routing() {
    let examples = TopologyParameters::examples();
    assert!(examples.iter().all(|parameters| parameters.check().is_ok()));
    for family in TopologyParameters::FAMILIES {
        let own: Vec<_> = examples.iter().filter(|one| one.family().name == family.name).collect();
        assert!(own.len() > 1, "{} has too few examples", family.name);
        let routings: BTreeSet<_> = own.iter().map(|one| one.routing()).collect();
        assert_eq!(routings, family.routings.iter().map(|routing| routing.name).collect::<BTreeSet<_>>());
        let endpoints: BTreeSet<_> = own.iter().map(|one| one.counts().endpoints).collect();
        assert!(endpoints.iter().all(|count| (1..=1000).contains(count)), "{}: {endpoints:?}", family.name);
    }
}

/// Catches families that a machine file cannot tell apart, and keys that mean two kinds of value.
#[test]
fn names_and_keys_are_unambiguous() {
    let families = TopologyParameters::FAMILIES;
    let names: BTreeSet<_> = families.iter().map(|family| family.name).collect();
    assert_eq!(names.len(), families.len());
    let keys = |family: &FamilyKeys| {
        let of_routings = family.routings.iter().flat_map(|routing| routing.keys);
        family.keys.iter().chain(of_routings).copied().collect::<Vec<Key>>()
    };
    let all: Vec<Key> = families.iter().flat_map(keys).collect();
    for key in &all {
        assert!(!["kind", "routing"].contains(&key.name));
        assert!(
            all.iter().all(|other| other.name != key.name || other.writing == key.writing),
            "{}",
            key.name
        );
        assert!(key.meaning.ends_with(['.', ';']) && !key.meaning.starts_with(' '), "{}", key.meaning);
    }
    for family in families {
        assert!(!family.keys.is_empty() && !family.routings.is_empty(), "{}", family.name);
    }
}

/// A machine that gives some keys.
#[derive(Default)]
struct Table {
    values: Vec<(&'static str, Written)>,
    missing: Vec<&'static str>,
    derived: Vec<(&'static str, String)>,
    wrong: Vec<String>,
}

impl GivenKeys for Table {
    fn value<T>(&mut self, key: &'static str, reading: Reading<T>) -> Given<T> {
        match self.values.iter().find(|(name, _)| *name == key).map(|(_, written)| (reading.read)(written)) {
            Some(Ok(value)) => Given::Value(value),
            Some(Err(problem)) => {
                self.report(key, problem);
                Given::Wrong
            }
            None => Given::Absent,
        }
    }

    fn other<T: KeyType>(&self, _: &'static str) -> Given<T> {
        Given::Absent
    }

    fn holds(&self, _: &Condition<'_>) -> bool {
        true
    }

    fn refuse(&mut self, key: &'static str, _: &Condition<'_>) -> bool {
        self.values.iter().all(|(name, _)| *name != key)
    }

    fn report_missing(&mut self, key: &'static weft_topo::weft_keys::Key) {
        self.missing.push(key.name);
    }

    fn report(&mut self, _: &'static str, problem: Problem) {
        self.wrong.push(problem.title);
    }

    fn derive(&mut self, key: &'static str, value: String, _: &'static str) {
        self.derived.push((key, value));
    }
}

/// Catches a key that is read as another, defaults that do not follow from what is given, and missing keys
/// that are not all named.
#[test]
fn parameters_are_read_with_their_defaults() {
    let read = |family: &str, values: &[(&'static str, Written)]| {
        let mut given = Table { values: values.to_vec(), ..Table::default() };
        (TopologyParameters::read(family, &mut given), given)
    };
    let text = |text: &str| Written::Text(text.to_owned());
    let values = [
        ("p", Written::Integer(3)),
        ("h", Written::Integer(2)),
        ("global", text("absolute")),
        ("routing", text("ugal-l")),
    ];
    let (dragonfly, given) = read("dragonfly", &values);
    let ugal_threshold = weft_units::Bytes::ZERO;
    let routing = DragonflyRouting::UgalL { ugal_threshold };
    let global = GlobalLinks::Absolute;
    let expected = DragonflyParameters { p: 3, a: 6, h: 2, links_per_pair: 1, groups: 13, global, routing };
    assert_eq!(dragonfly, Some(TopologyParameters::Dragonfly(expected)));
    assert_eq!(
        given.derived.iter().map(|(key, value)| (*key, value.as_str())).collect::<Vec<_>>(),
        [("a", "6"), ("groups", "13")]
    );
    let (tree, given) = read("kary-tree", &[]);
    assert_eq!((tree, given.missing), (None, vec!["k", "n"]));
    assert_eq!(read("moebius", &[]).0, None);
    let (star, given) = read("star", &[("endpoints", Written::Integer(2)), ("routing", text("ugal-l"))]);
    assert_eq!((star, given.wrong), (None, vec!["`ugal-l` is not a routing".to_owned()]));
}
