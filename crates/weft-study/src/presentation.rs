//! The presentation of a study: columns that follow from what was measured, its table, its pictures, and the
//! published figure that it repeats.
//!
//! ```toml
//! keep = ["messages"]                 # tables that each point keeps, for pictures of them
//! table = ["run_time_us", "efficiency"]
//!
//! [[derive]]                          # against the first case in the file of the same `within`
//! name = "efficiency"
//! of = "run_time_us"
//! as = "strong-efficiency"
//! within = ["case"]
//! over = "ranks"
//!
//! [[pictures]]
//! name = "efficiency"
//! x = "ranks"
//! y = "efficiency"
//!
//! [[pictures]]                        # of the points' own tables
//! name = "completion"
//! what = "fct-cdf"
//! by = "case"                         # a panel for each of its values
//!
//! [published]
//! source = "D1.4 §11.2, Fig. 36"
//! shows = "Run times of four applications."
//! agrees = ["…"]
//! differs = ["…"]
//! ```

use crate::case::{Case, Mean};
use crate::error::StudyError;
use serde::Deserialize;
use serde_json::Value as Json;
use std::ops::Range;
use toml::Spanned;
use weft_analysis::picture::PictureKind;
use weft_results::Table;

/// The fields of a study file that say how it is shown.
pub(crate) const FIELDS: [&str; 5] = ["keep", "table", "derive", "pictures", "published"];

/// How a study is shown.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub(crate) struct Presentation {
    /// The tables that each point keeps.
    #[serde(default)]
    keep: Vec<Spanned<String>>,
    /// The measured fields of the table of cases; empty: the most telling ones.
    #[serde(default)]
    pub(crate) table: Vec<String>,
    #[serde(default)]
    derive: Vec<DerivedColumn>,
    /// The pictures of the study; empty: one over each parameter that varies.
    #[serde(default)]
    pub(crate) pictures: Vec<NamedPicture>,
    /// The published figure.
    pub(crate) published: Option<Published>,
}

/// A column that follows from a measured one.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DerivedColumn {
    name: Spanned<String>,
    of: String,
    #[serde(rename = "as")]
    law: Law,
    /// The parameters that a case and the first one, with which it is compared, have in common.
    #[serde(default)]
    within: Vec<String>,
    /// Of strong efficiency: the parameter that has the number of processes.
    over: Option<String>,
}

/// How a derived column follows from its cause in a case and in the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Law {
    /// This one's over the first one's.
    Ratio,
    /// The first one's over this one's: the times of the same work.
    SpeedUp,
    /// The first one's over this one's: the times of as much work for each process (TR-488 §6.2).
    WeakEfficiency,
    /// The speed-up by the number of processes (TR-488 §6.2).
    StrongEfficiency,
}

/// A picture of a study.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NamedPicture {
    pub(crate) name: Spanned<String>,
    /// The axes of a picture of cases.
    pub(crate) x: Option<String>,
    pub(crate) y: Option<String>,
    /// The kind of a picture of the points' own tables.
    what: Option<String>,
    /// The parameter each of whose values has a panel of its own.
    pub(crate) by: Option<String>,
}

/// A figure of a document, and how the study compares.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    /// Document, section and figure.
    pub(crate) source: String,
    /// The contents of the figure.
    pub(crate) shows: String,
    #[serde(default)]
    pub(crate) agrees: Vec<String>,
    #[serde(default)]
    pub(crate) differs: Vec<String>,
}

impl NamedPicture {
    /// The kind, of a picture of the points' own tables.
    pub(crate) fn kind(&self) -> Option<PictureKind> {
        self.what.as_deref().and_then(|what| what.parse().ok())
    }
}

impl Presentation {
    /// How the study `text`, of the file `name`, is shown.
    ///
    /// # Errors
    /// A field of the wrong form, a table or picture that there is not.
    pub(crate) fn parse(name: &str, text: &str) -> Result<Presentation, StudyError> {
        let refuse = |at: Range<usize>, field: &str, what: &str, mend: &str| StudyError::Field {
            name: name.to_owned(),
            line: text[..at.start.min(text.len())].matches('\n').count() + 1,
            field: field.to_owned(),
            what: what.to_owned(),
            mend: mend.to_owned(),
        };
        let presentation: Presentation = toml::from_str(text).map_err(|error| {
            let mend = "the page on weft sweep has an example of each of these fields";
            let what = error.message().replace('\n', " ");
            refuse(error.span().unwrap_or_default(), &FIELDS.join(", "), &what, mend)
        })?;
        if let Some(table) = presentation.keep.iter().find(|table| table.get_ref().parse::<Table>().is_err())
        {
            let what = format!("no option writes a table {}", table.get_ref());
            let mend = "write tables that --tables takes, such as keep = [\"messages\"]";
            return Err(refuse(table.span(), "keep", &what, mend));
        }
        for picture in &presentation.pictures {
            let wrong = match (&picture.what, &picture.y) {
                (Some(_), None) if picture.kind().is_none() => {
                    ("no kind of picture is called so", "weft plot --help has the kinds")
                }
                (Some(_), None) if presentation.keep.is_empty() => {
                    ("the points keep no tables", "write keep = [\"messages\"], or the tables that it reads")
                }
                (Some(_), None) | (None, Some(_)) => continue,
                _ => ("it has neither what nor y, or both", "write y, a measured field, or what, a kind"),
            };
            return Err(refuse(picture.name.span(), "pictures", wrong.0, wrong.1));
        }
        let no_processes =
            |derived: &&DerivedColumn| derived.law == Law::StrongEfficiency && derived.over.is_none();
        if let Some(derived) = presentation.derive.iter().find(no_processes) {
            let mend = "add over = \"ranks\", the parameter that has their number";
            let what = "strong efficiency is by the number of processes";
            return Err(refuse(derived.name.span(), "derive", what, mend));
        }
        Ok(presentation)
    }

    /// The tables that each point keeps, as `--tables` takes them; `None`: none.
    pub(crate) fn kept(&self) -> Option<String> {
        let names: Vec<&str> = self.keep.iter().map(|table| table.get_ref().as_str()).collect();
        (!names.is_empty()).then(|| names.join(","))
    }

    /// Adds the derived columns to cases.
    pub(crate) fn derive(&self, cases: &mut [Case]) {
        for derived in &self.derive {
            let values: Vec<Option<f64>> = cases.iter().map(|case| derived.value(case, cases)).collect();
            for (case, value) in cases.iter_mut().zip(values) {
                let mean =
                    value.map(|mean| (derived.name.get_ref().clone(), Mean { mean, half_width: None }));
                case.means.extend(mean);
            }
        }
    }
}

impl DerivedColumn {
    fn value(&self, case: &Case, cases: &[Case]) -> Option<f64> {
        let is_alike =
            |other: &&Case| self.within.iter().all(|name| other.parameter(name) == case.parameter(name));
        let first = cases.iter().find(is_alike)?;
        let (of_first, own) = (first.mean(&self.of)?.mean, case.mean(&self.of)?.mean);
        let processes = |case: &Case| case.parameter(self.over.as_deref()?).and_then(Json::as_f64);
        let value = match self.law {
            Law::Ratio => own / of_first,
            Law::SpeedUp | Law::WeakEfficiency => of_first / own,
            Law::StrongEfficiency => of_first / own * processes(first)? / processes(case)?,
        };
        value.is_finite().then_some(value)
    }
}
