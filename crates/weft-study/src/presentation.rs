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

use crate::case::{Case, Mean, is_outcome};
use crate::error::StudyError;
use crate::form;
use crate::point::Point;
use crate::value::Value;
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::ops::Range;
use toml::Spanned;
use weft_analysis::is_case;
use weft_analysis::picture::PictureKind;
use weft_results::{Table, WrittenBy};

/// A study file, for its mistakes.
#[derive(Clone, Copy)]
pub(crate) struct StudyText<'a> {
    /// The name of the file.
    pub(crate) name: &'a str,
    /// All of it.
    pub(crate) text: &'a str,
}

/// The fields of a study file that say how it is shown.
pub(crate) const FIELDS: [&str; 5] = ["keep", "table", "derive", "pictures", "published"];

/// How a study is shown.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
pub(crate) struct Presentation {
    /// The heading of its report; `None`: the name of its directory.
    pub(crate) title: Option<String>,
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

impl StudyText<'_> {
    pub(crate) fn refused(&self, at: Range<usize>, field: &str, what: &str, mend: &str) -> StudyError {
        StudyError::Field {
            name: self.name.to_owned(),
            line: self.text[..at.start.min(self.text.len())].matches('\n').count() + 1,
            field: field.to_owned(),
            what: what.to_owned(),
            mend: mend.to_owned(),
        }
    }

    fn check_once<'n>(
        &self,
        field: &str,
        names: impl Iterator<Item = &'n Spanned<String>>,
    ) -> Result<(), StudyError> {
        let mut seen = BTreeSet::new();
        for name in names {
            if !seen.insert(name.get_ref()) {
                let what = format!("two are called {}", name.get_ref());
                return Err(self.refused(name.span(), field, &what, "give each a name of its own"));
            }
        }
        Ok(())
    }
}

impl NamedPicture {
    /// The kind, of a picture of the points' own tables.
    pub(crate) fn kind(&self) -> Option<PictureKind> {
        self.what.as_deref().and_then(|what| what.parse().ok())
    }
}

impl Presentation {
    /// How the study of this text is shown.
    ///
    /// # Errors
    /// A field of the wrong form, a table or picture that there is not, a name that stands twice.
    pub(crate) fn parse(study: StudyText<'_>) -> Result<Presentation, StudyError> {
        let refuse = |at, field: &str, what: &str, mend: &str| study.refused(at, field, what, mend);
        let presentation: Presentation =
            toml::from_str(study.text).map_err(|error| form::mistake(study, &error))?;
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
                (Some(_), None) => {
                    let Some(table) = presentation.lacks(picture) else { continue };
                    let name = picture.name.get_ref();
                    let what = format!("{name} is drawn from a table that the points do not keep");
                    let mend = format!("add \"{table}\" to keep");
                    return Err(refuse(picture.name.span(), "pictures", &what, &mend));
                }
                (None, Some(_)) => continue,
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
        let columns = presentation.derive.iter().map(|derived| &derived.name);
        study.check_once("derive", columns)?;
        study.check_once("pictures", presentation.pictures.iter().map(|picture| &picture.name))?;
        Ok(presentation)
    }

    /// A table that a picture is drawn from and that the points do not keep; tables that options of their own
    /// write are there without being kept.
    fn lacks(&self, picture: &NamedPicture) -> Option<&'static str> {
        let tables = picture.kind()?.tables();
        let is_there = |table: &Table| {
            let is_kept = self.keep.iter().any(|kept| kept.get_ref() == table.name());
            is_kept || table.declaration().written_by == WrittenBy::Option
        };
        let first = tables.first()?;
        (!tables.iter().any(is_there)).then_some(first.name())
    }

    /// Makes sure that whatever it compares or draws by is a parameter of the points, or tells rows apart,
    /// and that derived columns have names of their own.
    ///
    /// # Errors
    /// The first name that is neither, or is a column already.
    pub(crate) fn check(&self, study: StudyText<'_>, points: &[Point]) -> Result<(), StudyError> {
        let is_known =
            |name: &str| is_case(name) || points.iter().any(|point| point.parameter(name).is_some());
        let of_columns = self.derive.iter().flat_map(|derived| {
            let names = derived.within.iter().map(|name| ("within", name));
            let names = names.chain(derived.over.iter().map(|name| ("over", name)));
            names.map(|(key, name)| ("derive", &derived.name, key, name))
        });
        let of_pictures = self.pictures.iter().flat_map(|picture| {
            let names = picture.by.iter().map(|name| ("by", name));
            let names = names.chain(picture.x.iter().map(|name| ("x", name)));
            names.map(|(key, name)| ("pictures", &picture.name, key, name))
        });
        for (field, of, key, name) in of_columns.chain(of_pictures) {
            if !is_known(name) {
                let parameters =
                    points.iter().flat_map(|point| &point.parameters).map(|(name, _)| name.as_str());
                let parameters: BTreeSet<&str> = parameters.filter(|name| *name != "seed").collect();
                let choice = parameters.into_iter().collect::<Vec<_>>().join(", ");
                let what = format!("{key}: the points have no parameter {name}");
                return Err(study.refused(of.span(), field, &what, &format!("choose from {choice}")));
            }
        }
        self.derive.iter().try_for_each(|derived| derived.check(study, points))
    }

    /// The names of the derived columns.
    pub(crate) fn derived(&self) -> impl Iterator<Item = &str> {
        self.derive.iter().map(|derived| derived.name.get_ref().as_str())
    }

    /// The fields that have to be measured for its columns and pictures, as `derive: run_time_us`.
    pub(crate) fn needed(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let columns = self.derive.iter().map(|derived| ("derive", derived.of.as_str()));
        let table = self.table.iter().map(|field| ("table", field.as_str()));
        let pictures = self.pictures.iter().filter_map(|picture| Some(("pictures", picture.y.as_deref()?)));
        columns.chain(table).chain(pictures).filter(|(_, field)| self.derived().all(|own| own != *field))
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

/// Columns of every data set that are no parameters.
const OWN_COLUMNS: [&str; 5] = ["point", "command", "ended", "seed", "seeds"];
/// Fields that tell rows apart by words.
const WORDS: [&str; 3] = ["congestion", "group", "name"];

impl DerivedColumn {
    /// Makes sure that its name is that of no other column, and that it is over numbers.
    fn check(&self, study: StudyText<'_>, points: &[Point]) -> Result<(), StudyError> {
        let refuse = |field: &str, what: &str, mend: &str| {
            Err(study.refused(self.name.span(), &format!("derive.{field}"), what, mend))
        };
        let name = self.name.get_ref().as_str();
        let is_parameter = points.iter().any(|point| point.parameter(name).is_some());
        if is_parameter || is_case(name) || OWN_COLUMNS.contains(&name) {
            let what = format!("there is a column {name} already");
            return refuse("name", &what, "write another, such as name = \"efficiency\"");
        }
        // Columns are shown in the unit at the end of their names, and a ratio has none.
        if is_outcome(name) {
            let what = format!("{name} is called as a measured field is");
            return refuse("name", &what, "write a name without a unit, such as name = \"efficiency\"");
        }
        let Some(over) = self.over.as_deref() else { return Ok(()) };
        let is_number = |value: &Value| match value {
            Value::Integer(number) => *number > 0,
            Value::Number(number) => *number > 0.0,
            _ => false,
        };
        let mut values = points.iter().filter_map(|point| point.parameter(over));
        let found = match values.clone().next() {
            None => WORDS.contains(&over).then(|| "words".to_owned()),
            Some(_) => values.find(|value| !is_number(value)).map(Value::set),
        };
        match found {
            None => Ok(()),
            Some(found) => {
                let what = format!("{over} is {found}, which is no number above 0");
                refuse(
                    "over",
                    &what,
                    "write the parameter that has the number of processes, such as \"ranks\"",
                )
            }
        }
    }

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
