//! A file under `validation/`: what a publication measured, and the experiments that give the same.

use super::super::ExperimentError;
use super::Layer;
use serde::{Deserialize, Serialize};

const EXANEST: &str = include_str!("../../../../../validation/exanest.toml");

/// Whether a constant of the machine was calibrated on a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// One was: the row says how well the calibration fits.
    Calibrated,
    /// None was: the row tests the model.
    Predicted,
}

/// A limit instead of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Bound {
    AtMost,
    AtLeast,
}

impl Bound {
    pub(super) fn name(self) -> &'static str {
        match self {
            Bound::AtMost => "at most",
            Bound::AtLeast => "at least",
        }
    }
}

/// An OSU run that gives a quantity: a latency in µs, a bandwidth in Gb/s, of `expected-bcast` expected over observed.
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
}

/// A published measurement.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    pub id: String,
    pub source: String,
    pub quantity: String,
    pub unit: String,
    pub published: f64,
    pub bound: Option<Bound>,
    pub role: Role,
    pub measure: Measure,
    pub minus: Option<Measure>,
    /// The quantity is a quotient: what it is divided by.
    pub over: Option<Measure>,
    pub note: Option<String>,
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
    /// TR-488's.
    pub(super) fn exanest() -> Result<Publication, ExperimentError> {
        toml::from_str(EXANEST).map_err(ExperimentError::input)
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
    use crate::machine::{Kind, load};
    use std::collections::BTreeSet;

    /// Catches two rows of one name, and figures without a unit that reports know.
    #[test]
    fn every_row_has_a_name_of_its_own_and_a_unit() {
        let publication = Publication::exanest().unwrap();
        let ids: BTreeSet<&str> = publication.rows().iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids.len(), publication.rows().len());
        let is_quotient = |row: &&Row| row.over.is_some() || row.measure.benchmark == "expected-bcast";
        assert!(publication.rows().iter().filter(is_quotient).all(|row| row.unit == "ratio"));
        assert!(publication.rows().iter().all(|row| matches!(row.unit.as_str(), "us" | "Gb/s" | "ratio")));
        assert!(!publication.publication.name.is_empty() && !publication.publication.title.is_empty());
    }

    /// Catches a row that is called predicted although a constant rests on it, and a calibration on a row
    /// that does not exist.
    #[test]
    fn roles_agree_with_the_machine_file() {
        let publication = Publication::exanest().unwrap();
        let machine = load(publication.machine(), &[] as &[&str]).unwrap();
        let calibrated = machine.constants.iter().filter(|constant| constant.kind == Kind::Calibrated);
        let used: BTreeSet<&str> = calibrated.filter_map(|constant| constant.row.as_deref()).collect();
        let said = publication.rows().iter().filter(|row| row.role == Role::Calibrated);
        let said: BTreeSet<&str> = said.map(|row| row.id.as_str()).collect();
        assert_eq!(used, said, "rows that machine constants name, and rows that call themselves calibrated");
    }
}
