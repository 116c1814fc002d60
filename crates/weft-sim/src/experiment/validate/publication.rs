//! A file under `validation/`: what a publication measured, and the experiments that give the same.

use super::super::ExperimentError;
use super::super::load::Load;
use super::super::replay::Mapping;
use super::Layer;
use serde::{Deserialize, Deserializer, Serialize};

/// The files, in the order of reports.
const FILES: [&str; 12] = [
    include_str!("../../../../../validation/exanest.toml"),
    include_str!("../../../../../validation/communication-ip.toml"),
    include_str!("../../../../../validation/carvnet-riscv.toml"),
    include_str!("../../../../../validation/bxi2-rails.toml"),
    include_str!("../../../../../validation/apenetx-u200.toml"),
    include_str!("../../../../../validation/carvnet-acc.toml"),
    include_str!("../../../../../validation/mezzanine-acc.toml"),
    include_str!("../../../../../validation/bxi3-broadcast.toml"),
    include_str!("../../../../../validation/bxi3-queues.toml"),
    include_str!("../../../../../validation/exanest-applications.toml"),
    include_str!("../../../../../validation/nest.toml"),
    include_str!("../../../../../validation/bxi-applications.toml"),
];

/// How far the machine's constants rest on the figure of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Independent: no constant rests on it, so that the row tests the model.
    Predicted,
    /// One-sided, or a range: met, or missed by some amount.
    Limit,
    /// A difference, ratio or repeat of rows that constants rest on.
    Derived,
    /// A constant was fitted to it: the row says how well the calibration fits.
    Calibrated,
}

impl Role {
    /// All roles, in the order of reports.
    pub const ALL: [Role; 4] = [Role::Predicted, Role::Limit, Role::Derived, Role::Calibrated];

    /// The name in files and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Predicted => "predicted",
            Role::Limit => "limit",
            Role::Derived => "derived",
            Role::Calibrated => "calibrated",
        }
    }
}

/// A limit instead of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Limit {
    AtMost,
    AtLeast,
    /// From `published` to `to`, both included.
    Within,
}

/// A share in per cent, as `3 %`.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Percent(pub f64);

impl TryFrom<String> for Percent {
    type Error = String;

    fn try_from(text: String) -> Result<Percent, String> {
        let number = text.strip_suffix('%').map(str::trim_end).and_then(|number| number.parse().ok());
        number.map(Percent).ok_or_else(|| format!("`{text}` is no share; write \"3 %\""))
    }
}

/// The figure of a group of flows in a scenario, or of an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Figure {
    /// Mean latency.
    Mean,
    /// 99th percentile of latency.
    P99,
    /// Throughput.
    Throughput,
    /// Time from when the group begins until all flows have their new shares.
    SettlesAfterStart,
    /// The same from when the group stops.
    SettlesAfterStop,
    /// Of an application: from its start to the end of its last rank.
    RunTime,
    /// Of an application: time in messaging software or waiting as a share of the ranks' time.
    Communication,
    /// Of an application: the mean of its messages' times, from posted to delivered.
    CompletionMean,
    /// Of an application: the longest of them.
    CompletionMax,
    /// Of an application beside another one: its run time by that alone, on the same places.
    Slowdown,
}

/// An OSU run that gives a quantity: a latency in µs, a bandwidth in Gb/s, of `expected-bcast` expected over
/// observed.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measure {
    pub benchmark: String,
    pub size: String,
    pub from: Option<String>,
    pub to: Option<String>,
    pub ranks: Option<u32>,
    pub ranks_per_host: Option<u32>,
    /// Of OSU's two and five, where that many would take long.
    pub warm_up: Option<u32>,
    pub iterations: Option<u32>,
    pub layer: Option<Layer>,
    pub algorithm: Option<String>,
    /// Whether ranks meet after each collective, as in OSU.
    pub barrier: Option<bool>,
    /// Of `scenario`, whose `size` is the file's name: the group of flows, and its figure. The first change
    /// of the scenario is where the group begins, the last where it stops. Of `queues`, of such a file too:
    /// switches, such as `0-7`, and `from` and `to` are times.
    pub group: Option<String>,
    pub figure: Option<Figure>,
    /// Of `app`, whose `size` names the kernel: a factor on its computations.
    pub compute_scale: Option<String>,
    /// Of `app`: the kernel that runs beside it, and which rank sits where.
    pub beside: Option<String>,
    pub map: Option<Mapping>,
    /// Of `traffic`, whose `size` is that of messages and whose `group` is the pattern: the share that
    /// endpoints offer. `from` is the length of the warm-up, `to` the measured time.
    pub load: Option<Load>,
    /// Another machine than the publication's.
    pub machine: Option<String>,
    /// Changes to the machine for this run alone, as by `--set`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A published measurement.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub id: String,
    pub source: String,
    pub quantity: String,
    pub unit: String,
    /// `None`: the copy of the document leaves it blank.
    pub published: Option<f64>,
    /// The other end of `published`, where the limit is a range.
    pub to: Option<f64>,
    pub limit: Option<Limit>,
    pub role: Role,
    /// The rows that a derived one follows from.
    #[serde(default)]
    pub of: Vec<String>,
    /// The largest error that a test lets pass: today's and a little more.
    pub bound: Option<Percent>,
    pub measure: Measure,
    pub minus: Option<Measure>,
    /// The quantity is a product: by what else.
    #[serde(default, deserialize_with = "one_or_more")]
    pub times: Vec<Measure>,
    /// The quantity is a quotient: by what it is divided.
    #[serde(default, deserialize_with = "one_or_more")]
    pub over: Vec<Measure>,
    /// The quantity is one of so many equal parts of what is measured.
    pub parts: Option<u32>,
    pub note: Option<String>,
}

/// A measure, or a list of them.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Measure>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        One(Box<Measure>),
        More(Vec<Measure>),
    }
    Ok(match Written::deserialize(deserializer)? {
        Written::One(measure) => vec![*measure],
        Written::More(measures) => measures,
    })
}

impl Measure {
    /// The command that gives the quantity.
    fn command(&self, machine: &str) -> String {
        let machine = self.machine.as_deref().unwrap_or(machine);
        let mut words = match self.benchmark.as_str() {
            // A kernel is called by its name wherever a trace is.
            "app" => match (&self.beside, &self.map) {
                (Some(beside), map) => {
                    let map = map.as_ref().map_or("linear", Mapping::name);
                    format!("weft replay -m {machine} {} {beside} --isolated --map {map}", self.size)
                }
                (None, _) => format!("weft replay -m {machine} {}", self.size),
            },
            "traffic" => {
                let words =
                    [("size", Some(&self.size)), ("warm-up", self.from.as_ref()), ("time", self.to.as_ref())];
                let load = self.load.map(|load| load.to_string());
                let words =
                    words.into_iter().chain([("pattern", self.group.as_ref()), ("load", load.as_ref())]);
                words.fold(format!("weft traffic -m {machine}"), |all, (option, value)| match value {
                    Some(value) => format!("{all} --{option} {value}"),
                    None => all,
                })
            }
            "selftest" => format!("weft machine selftest {machine}"),
            "scenario" => format!("weft traffic -m {machine} --scenario scenarios/{}", self.size),
            "queues" => {
                format!("weft traffic -m {machine} --scenario scenarios/{} --telemetry 1us", self.size)
            }
            benchmark => format!("weft osu {benchmark} -m {machine} --sizes {}", self.size),
        };
        words +=
            &self.compute_scale.as_ref().map_or(String::new(), |scale| format!(" --compute-scale {scale}"));
        if !matches!(self.benchmark.as_str(), "selftest" | "scenario" | "queues" | "traffic") {
            for (option, value) in [("from", &self.from), ("to", &self.to), ("algorithm", &self.algorithm)] {
                words += &value.as_ref().map_or(String::new(), |value| format!(" --{option} {value}"));
            }
            for (option, value) in [
                ("ranks", self.ranks),
                ("ppn", self.ranks_per_host),
                ("warm-up", self.warm_up),
                ("iterations", self.iterations),
            ] {
                words += &value.map_or(String::new(), |value| format!(" --{option} {value}"));
            }
            words += if self.layer == Some(Layer::Nic) { " --layer nic" } else { "" };
            words += if self.barrier == Some(false) { " --no-barrier" } else { "" };
        }
        self.set.iter().fold(words, |words, set| {
            let quote = if set.contains([' ', '[', '{']) { "'" } else { "" };
            format!("{words} --set {quote}{set}{quote}")
        })
    }
}

impl Row {
    /// The command that gives the quantity, or those that it is computed of.
    pub(super) fn command(&self, machine: &str) -> String {
        let mut command = self.measure.command(machine);
        let others = self.minus.iter().map(|other| ("less", other));
        let others = others.chain(self.times.iter().map(|other| ("times", other)));
        for (word, other) in others.chain(self.over.iter().map(|other| ("over", other))) {
            command += &format!(", {word} {}", other.command(machine));
        }
        match self.parts {
            Some(parts) => format!("{command}, divided by {parts}"),
            None => command,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    name: String,
    machine: String,
    title: String,
}

/// A publication with its rows.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Publication {
    publication: Head,
    #[serde(rename = "row")]
    rows: Vec<Row>,
}

impl Publication {
    /// All publications, in the order of reports.
    pub(super) fn all() -> Result<Vec<Publication>, ExperimentError> {
        FILES.into_iter().map(|text| toml::from_str(text).map_err(ExperimentError::input)).collect()
    }

    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The machine that it measured.
    pub(super) fn machine(&self) -> &str {
        &self.publication.machine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use weft_machine::{Kind, load};

    fn ids<'a>(rows: impl IntoIterator<Item = &'a Row>) -> BTreeSet<&'a str> {
        rows.into_iter().map(|row| row.id.as_str()).collect()
    }

    /// Catches two rows of one name, figures without a unit that reports know, and a publication that a
    /// report would name by nothing.
    #[test]
    fn every_row_has_a_name_of_its_own_and_a_unit() {
        let publications = Publication::all().unwrap();
        let rows: Vec<&Row> = publications.iter().flat_map(Publication::rows).collect();
        assert_eq!(ids(rows.iter().copied()).len(), rows.len());
        let is_quotient = |row: &&&Row| !row.over.is_empty() || row.measure.benchmark == "expected-bcast";
        assert!(rows.iter().filter(is_quotient).all(|row| row.unit == "ratio"));
        assert!(rows.iter().all(|row| matches!(row.unit.as_str(), "us" | "Gb/s" | "ratio")));
        for Publication { publication, .. } in &publications {
            assert!(!publication.name.is_empty() && !publication.title.is_empty());
        }
    }

    /// Catches a row that is called predicted although a constant rests on it, and a calibration on a row
    /// that does not exist.
    #[test]
    fn roles_agree_with_the_machine_files() {
        let publications = Publication::all().unwrap();
        // A machine may have several.
        let machines: BTreeSet<&str> = publications.iter().map(Publication::machine).collect();
        for name in machines {
            let machine = load(name, &[] as &[&str]).unwrap();
            let used = machine.constants.iter().filter_map(|constant| constant.row.as_deref());
            let used = used.flat_map(|rows| rows.split(", ")).collect();
            let of_machine = publications.iter().filter(|publication| publication.machine() == name);
            let rows = of_machine.flat_map(Publication::rows);
            let said = ids(rows.filter(|row| row.role == Role::Calibrated));
            assert_eq!(said, used, "rows that call themselves calibrated, and rows that constants name");
            let fitted = machine.constants.iter().filter(|constant| constant.kind == Kind::Calibrated);
            assert!(fitted.clone().all(|constant| constant.row.is_some() && constant.range_source.is_some()));
        }
    }

    /// Catches a limit that counts as a figure or the other way round, a derived row that follows from
    /// nothing that was fitted, and a predicted row whose error no test bounds.
    #[test]
    fn roles_have_what_they_need() {
        for publication in Publication::all().unwrap() {
            let rows = publication.rows();
            let fitted = |row: &&Row| matches!(row.role, Role::Calibrated | Role::Derived);
            let fitted = ids(rows.iter().filter(fitted));
            for row in rows {
                let Row { id, role, limit, of, .. } = row;
                assert!(*role != Role::Limit || limit.is_some(), "{id}");
                assert!(*role != Role::Predicted || limit.is_none(), "{id}: one-sided, and no prediction");
                assert_eq!(
                    *limit == Some(Limit::Within),
                    row.to.zip(row.published).is_some_and(|(to, published)| to > published),
                    "{id}"
                );
                assert_eq!(*role == Role::Derived, !of.is_empty(), "{id}");
                assert!(of.iter().all(|other| other != id && fitted.contains(other.as_str())), "{id}");
                let is_blank = row.published.is_none();
                let rests = matches!(role, Role::Limit | Role::Calibrated);
                assert!(!is_blank || !rests, "{id}: nothing can rest on a blank");
                assert!(*role != Role::Predicted || row.bound.is_some() != is_blank, "{id}");
            }
        }
    }

    #[test]
    fn a_bound_is_a_share_in_per_cent() {
        let percent = |text: &str| Percent::try_from(text.to_owned()).map(|percent| percent.0);
        assert_eq!(percent("3 %"), Ok(3.0));
        assert_eq!(percent("0.5%"), Ok(0.5));
        percent("3").unwrap_err();
    }
}
