//! The differences of two machines: `weft machine diff`.
//!
//! Values are compared as they are in use: as the model takes them, with units, whatever the way they were
//! written. A class of links that one machine does not name has the values of its `links.default`.

use super::{assembled, source};
use crate::experiment::{ExperimentError, MachineInput};
use serde::Serialize;
use std::collections::BTreeMap;
use weft_machine::{Constant, Machine};
use weft_topo::{Layout, Topology as _, count_links};

/// A key that two machines do not have alike.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KeyDifference {
    /// The key, such as `links.x.rate`.
    pub key: String,
    /// The value in the first machine, with its unit; `None`: it does not have the key.
    pub a: Option<String>,
    /// The value in the second.
    pub b: Option<String>,
}

/// A number that two machines do not have alike.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FigureDifference {
    /// The things that are counted, such as `links of class x`.
    pub figure: String,
    /// In the first machine; `None`: it has no links of this class.
    pub a: Option<u64>,
    /// In the second.
    pub b: Option<u64>,
}

/// The report of `weft machine diff`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MachineDifferences {
    /// The first machine, as it was named.
    pub a: String,
    /// The second.
    pub b: String,
    /// Whether the lists are all empty.
    pub same: bool,
    /// Endpoints, switches and links.
    pub figures: Vec<FigureDifference>,
    /// Keys, in the order of the format.
    pub rows: Vec<KeyDifference>,
    /// Keys that both have, with kinds and sources that differ; `None`: it was not asked for them.
    pub sources: Option<Vec<KeyDifference>>,
}

/// Compares two machines; `with_sources`: their kinds and sources as well.
///
/// # Errors
/// A machine that is not valid.
pub fn diff(
    a: (&str, &MachineInput),
    b: (&str, &MachineInput),
    with_sources: bool,
) -> Result<MachineDifferences, ExperimentError> {
    let (one, other) = (Side::of(a.1)?, Side::of(b.1)?);
    let rows = keys(&one, &other);
    let figures = figures(&one.layout, &other.layout);
    let sources = with_sources.then(|| sources(&one, &other));
    Ok(MachineDifferences {
        a: a.0.to_owned(),
        b: b.0.to_owned(),
        same: rows.is_empty() && figures.is_empty() && sources.as_ref().is_none_or(Vec::is_empty),
        figures,
        rows,
        sources,
    })
}

/// One of two machines.
struct Side {
    machine: Machine,
    layout: Layout,
}

impl Side {
    fn of(input: &MachineInput) -> Result<Side, ExperimentError> {
        let (machine, layout) = assembled(input)?;
        Ok(Side { machine, layout })
    }

    /// The values by key.
    fn constants(&self) -> BTreeMap<&str, &Constant> {
        self.machine.constants.iter().map(|constant| (constant.path.as_str(), constant)).collect()
    }

    /// Name, title and description.
    fn identity(&self) -> [(&'static str, &str); 3] {
        let Machine { name, title, description, .. } = &self.machine;
        [("machine.name", name), ("machine.title", title), ("machine.description", description.trim())]
    }

    /// The value of a class of links that is named by `links.default` alone.
    fn usual<'c>(&self, constants: &BTreeMap<&str, &'c Constant>, key: &str) -> Option<&'c Constant> {
        let (class, value) = key.strip_prefix("links.")?.rsplit_once('.')?;
        let usual = constants.get(format!("links.default.{value}").as_str())?;
        self.layout.link_classes().contains(&class).then_some(*usual)
    }
}

/// The keys with values that differ.
fn keys(one: &Side, other: &Side) -> Vec<KeyDifference> {
    let identities = one.identity().into_iter().zip(other.identity());
    let identities = identities.filter(|(a, b)| a != b).map(|((key, a), (_, b))| {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        KeyDifference { key: key.to_owned(), a: given(a), b: given(b) }
    });
    let (a, b) = (one.constants(), other.constants());
    let value = |constant: Option<&Constant>| constant.map(|constant| constant.value.clone());
    let values = all_keys(one, other).into_iter().filter_map(|key| {
        let in_one = a.get(key).copied().or_else(|| one.usual(&a, key));
        let in_other = b.get(key).copied().or_else(|| other.usual(&b, key));
        let (a, b) = (value(in_one), value(in_other));
        (a != b).then(|| KeyDifference { key: key.to_owned(), a, b })
    });
    let mut rows: Vec<KeyDifference> = identities.chain(values).collect();
    if rows.iter().all(|row| !row.key.starts_with("topology.")) {
        rows.extend(other_graph(one, other));
    }
    rows
}

/// The difference of two graphs whose files have one name and other contents.
fn other_graph(one: &Side, other: &Side) -> Option<KeyDifference> {
    let contents =
        |side: &Side| Some(format!("{}, by its contents", side.machine.get("topology.file")?.value));
    let (a, b) = (contents(one)?, contents(other)?);
    (one.layout != other.layout).then(|| KeyDifference {
        key: "topology.file".to_owned(),
        a: Some(a),
        b: Some(b),
    })
}

/// The keys of both machines: each key of the second behind the one that it follows there.
fn all_keys<'s>(one: &'s Side, other: &'s Side) -> Vec<&'s str> {
    let mut keys: Vec<&str> = one.machine.constants.iter().map(|constant| constant.path.as_str()).collect();
    let mut behind = 0;
    for constant in &other.machine.constants {
        behind = match keys.iter().position(|key| *key == constant.path) {
            Some(place) => place + 1,
            None => {
                keys.insert(behind, &constant.path);
                behind + 1
            }
        };
    }
    keys
}

/// The keys that both have, of which kind or source differ.
fn sources(one: &Side, other: &Side) -> Vec<KeyDifference> {
    let b = other.constants();
    let said = |constant: &Constant| format!("{}: {}", constant.kind.name(), source(constant));
    let both = one.machine.constants.iter().filter_map(|a| Some((a, *b.get(a.path.as_str())?)));
    let differing = both.filter(|(a, b)| said(a) != said(b));
    differing
        .map(|(a, b)| KeyDifference { key: a.path.clone(), a: Some(said(a)), b: Some(said(b)) })
        .collect()
}

/// The numbers of endpoints, switches and links that differ.
fn figures(one: &Layout, other: &Layout) -> Vec<FigureDifference> {
    let counts = |layout: &Layout| {
        let links = count_links(layout);
        let whole = [
            ("endpoints".to_owned(), layout.endpoints().into()),
            ("switches".to_owned(), layout.switches().into()),
            ("links".to_owned(), links.iter().map(|class| class.links).sum()),
        ];
        let classes = links.into_iter().map(|class| (format!("links of class {}", class.class), class.links));
        whole.into_iter().chain(classes).collect::<Vec<(String, u64)>>()
    };
    let (a, b) = (counts(one), counts(other));
    let find = |counts: &[(String, u64)], figure: &str| {
        counts.iter().find(|(name, _)| name == figure).map(|(_, count)| *count)
    };
    let mut names: Vec<&String> = a.iter().map(|(name, _)| name).collect();
    names.extend(b.iter().map(|(name, _)| name).filter(|name| find(&a, name).is_none()));
    let rows = names.into_iter().map(|name| FigureDifference {
        figure: name.clone(),
        a: find(&a, name),
        b: find(&b, name),
    });
    rows.filter(|row| row.a != row.b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(sets: &[&str]) -> MachineInput {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        super::super::input("exanest", &sets).unwrap()
    }

    fn keys_of(a: &[&str], b: &[&str]) -> Vec<String> {
        let found = diff(("a", &input(a)), ("b", &input(b)), false).unwrap();
        assert_eq!(found.same, found.rows.is_empty() && found.figures.is_empty());
        found.rows.into_iter().map(|row| row.key).collect()
    }

    /// Catches a difference where a class of links is named with the value that it has anyway, and none where
    /// it has another.
    #[test]
    fn a_class_of_links_has_the_usual_values() {
        assert_eq!(keys_of(&[], &["links.x.rate=10Gb/s"]), [""; 0]);
        assert_eq!(keys_of(&[], &["links.x.rate=10000Mb/s"]), [""; 0]);
        assert_eq!(keys_of(&["links.x.rate=20Gb/s"], &[]), ["links.x.rate"]);
        let both = ["links.x.rate=10Gb/s", "links.default.rate=20Gb/s"];
        assert_eq!(keys_of(&[], &both), ["links.default.rate"]);
    }

    /// Catches sources that count without being asked for, or do not when asked for.
    #[test]
    fn sources_are_compared_on_request() {
        let (plain, set) = (input(&[]), input(&["packet.header=16"]));
        let found = |with| diff(("a", &plain), ("b", &set), with).unwrap();
        assert!(found(false).same && found(false).sources.is_none());
        let sources = found(true).sources.unwrap();
        assert_eq!((sources.len(), sources[0].key.as_str()), (1, "packet.header"));
        assert_eq!(sources[0].b.as_deref(), Some("set: --set packet.header=16"));
        assert!(!found(true).same);
    }

    /// Catches two graphs that count as the same for the name of their files.
    #[test]
    fn graphs_are_compared_by_their_contents() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("net.edges");
        let file = format!("topology.file={}", path.display());
        let with = |edges: &str| {
            std::fs::write(&path, edges).unwrap();
            let sets =
                ["nic.model=overheads", "topology.kind=graph", "topology.routing=shortest-path", &file]
                    .map(str::to_owned);
            Side::of(&super::super::input("communication-ip", &sets).unwrap()).unwrap()
        };
        let ring = with("a b\nb c\nc d\nd a\n");
        assert_eq!(keys(&ring, &with("a b\nb c\nc d\nd a\n")), []);
        let found = keys(&ring, &with("a b\nb c\nc a\nc d\n"));
        assert_eq!((found.len(), found[0].key.as_str()), (1, "topology.file"));
    }
}
