//! A study's directory that is read: whole, or as far as it has come.

use crate::case::{Case, cases};
use crate::directory::{Failed, MANIFEST, Manifest, document, point_file};
use crate::error::StudyError;
use crate::file::CASE;
use crate::point::Point;
use crate::presentation::{Presentation, StudyText};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

/// Whether a directory is that of a study.
pub fn is_study(path: &Path) -> bool {
    path.join(MANIFEST).is_file()
}

/// A study as far as it is done.
pub struct StoredStudy {
    /// The directory.
    pub directory: PathBuf,
    /// All points, in their order.
    pub points: Vec<Point>,
    /// Points that are done, with how each ended.
    pub done: Vec<(Point, String)>,
    /// Points that were refused when the study was last collected.
    pub failed: Vec<Failed>,
    /// The cases, with the measured values.
    pub cases: Vec<Case>,
    /// How it is shown.
    pub(crate) presentation: Presentation,
}

/// A parameter that varies over the cases of a study.
#[derive(Clone, PartialEq, Debug)]
pub struct StudyAxis {
    /// The name of its column.
    pub name: String,
    /// The values: numbers by size, others as they come.
    pub values: Vec<Json>,
}

impl StudyAxis {
    /// Whether all of its values are numbers.
    pub fn is_numeric(&self) -> bool {
        self.values.iter().all(Json::is_number)
    }
}

impl StoredStudy {
    /// The study in `directory`.
    ///
    /// # Errors
    /// A directory without one, of another version of weft, or with a damaged file.
    pub fn open(directory: &Path) -> Result<StoredStudy, StudyError> {
        let manifest = Manifest::read(directory).map_err(|error| match error {
            StudyError::DamagedManifest { path, why } => StudyError::DamagedStudy { path, why },
            other => other,
        })?;
        let is_done = |point: &&Point| point_file(directory, &point.id).is_file();
        let documents: Vec<(&Point, Json)> = manifest
            .points
            .iter()
            .filter(is_done)
            .map(|point| Ok((point, document(directory, &point.id)?)))
            .collect::<Result<_, StudyError>>()?;
        let ended = |document: &Json| document["ended"].as_str().unwrap_or_default().to_owned();
        let done = documents.iter().map(|(point, document)| ((*point).clone(), ended(document))).collect();
        let presentation = Presentation::parse(StudyText { name: MANIFEST, text: &manifest.study })?;
        let mut cases = cases(&documents);
        presentation.derive(&mut cases);
        let failed = manifest.summary.map(|summary| summary.failed).unwrap_or_default();
        let (directory, points) = (directory.to_owned(), manifest.points);
        Ok(StoredStudy { directory, points, done, failed, cases, presentation })
    }

    /// The directory's own name, for headings.
    pub fn name(&self) -> String {
        let path = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
        path.file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
    }

    /// The reason why nothing of it can be shown.
    ///
    /// # Errors
    /// No point is done: all were refused, or none has been run.
    pub fn check_measured(&self) -> Result<(), StudyError> {
        let why = match self.failed.first() {
            _ if !self.cases.is_empty() => return Ok(()),
            Some(first) if self.failed.len() == self.points.len() => {
                let (all, label, reason) = (self.points.len(), first.label(), first.reason().join("\n    "));
                format!("all {all} points were refused, the first of them ({label}): {reason}")
            }
            _ => "no point is done; continue the study with weft sweep".to_owned(),
        };
        Err(StudyError::NothingToShow { path: self.directory.clone(), why })
    }

    /// The parameters that are the same in all cases.
    pub fn fixed(&self) -> Vec<(String, Json)> {
        let Some(first) = self.cases.first() else { return Vec::new() };
        let all = first.parameters.iter().chain(&first.measured_of);
        let is_same = |(name, value): &&(String, Json)| {
            self.cases.iter().all(|case| case.parameter(name) == Some(value))
        };
        all.filter(is_same).cloned().collect()
    }

    /// The parameters that vary. Of two that always change together there is one: the first with numbers, or
    /// else the first.
    pub fn axes(&self) -> Vec<StudyAxis> {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.cases.iter().flat_map(|case| case.parameters.iter().chain(&case.measured_of)) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let mut axes: Vec<(Vec<usize>, StudyAxis)> = Vec::new();
        for name in names {
            let (partition, axis) = self.axis(name);
            if axis.values.len() < 2 {
                continue;
            }
            match axes.iter_mut().find(|(other, _)| *other == partition) {
                Some((_, known)) if axis.is_numeric() && !known.is_numeric() => *known = axis,
                Some(_) => {}
                None => axes.push((partition, axis)),
            }
        }
        let mut axes: Vec<StudyAxis> = axes.into_iter().map(|(_, axis)| axis).collect();
        for axis in axes.iter_mut().filter(|axis| axis.is_numeric()) {
            let number = |value: &Json| value.as_f64().unwrap_or_default();
            axis.values.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        axes
    }

    /// The same, but the names of cases stand for what changes with them alone.
    pub(crate) fn axes_by_name(&self) -> Vec<StudyAxis> {
        let mut axes = self.axes();
        let (of_names, names) = self.axis(CASE);
        if let Some(axis) = axes.iter_mut().find(|axis| self.axis(&axis.name).0 == of_names) {
            *axis = names;
        }
        axes
    }

    /// A column with its values as they come, and for each case which of them it has.
    fn axis(&self, name: &str) -> (Vec<usize>, StudyAxis) {
        let mut values: Vec<Json> = Vec::new();
        let place = |case: &Case| {
            let value = case.parameter(name).unwrap_or(&Json::Null);
            values.iter().position(|known| known == value).unwrap_or_else(|| {
                values.push(value.clone());
                values.len() - 1
            })
        };
        let partition = self.cases.iter().map(place).collect();
        (partition, StudyAxis { name: name.to_owned(), values })
    }
}

/// A value of a parameter as people write it.
pub(crate) fn text(value: &Json) -> String {
    match value {
        Json::Null => "-".to_owned(),
        Json::String(text) => text.clone(),
        Json::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

/// A parameter with its value: of a text the value alone, which says what it is.
pub(crate) fn label(name: &str, value: &Json) -> String {
    match value {
        Json::String(text) if text.parse::<f64>().is_err() => text.clone(),
        value => format!("{} {}", name.replace('_', " "), text(value)),
    }
}
