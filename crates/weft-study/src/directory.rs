//! The directory of a study: what is done of it. A point is a file of its own, renamed when it is whole, so
//! that a study that was interrupted continues, nothing is done twice, and nothing is there by halves.

use crate::FORMAT_VERSION;
use crate::case::cases;
use crate::change::lost;
use crate::error::StudyError;
use crate::file::Study;
use crate::point::Point;
use crate::table;
use crate::value::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The manifest of a study.
pub(crate) const MANIFEST: &str = "study.json";
/// The folder of points.
const POINTS: &str = "points";
/// The folder of the tables that points keep.
const RESULTS: &str = "results";
/// The file of rows.
const ROWS: &str = "study.parquet";
/// The file of intervals.
const INTERVALS: &str = "intervals.parquet";
/// Exit statuses of a command that has measured something: done, and ended badly.
const MEASURED: [u8; 2] = [0, 1];
/// The exit status of a command that was interrupted.
const INTERRUPTED: u8 = 130;

/// The end of a point's command.
pub struct Outcome<'a> {
    /// The exit status.
    pub status: u8,
    /// The JSON document that it printed.
    pub output: &'a str,
    /// The error in its words; empty where there is none.
    pub message: &'a str,
}

/// A point that was refused. It is tried again the next time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failed {
    /// The point.
    pub id: String,
    /// The parameters of the point.
    pub parameters: Vec<(String, Value)>,
    /// The error in the command's words.
    pub message: String,
    /// The exit status of the command.
    pub status: u8,
}

/// The state of a study: what is done, and what was refused.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The directory.
    pub directory: PathBuf,
    /// Points of the study.
    pub points: usize,
    /// Points that are done.
    pub done: usize,
    /// Rows of the data set.
    pub rows: usize,
    /// Rows of the intervals.
    pub intervals: usize,
    /// Points that were refused.
    pub failed: Vec<Failed>,
}

/// A point's file.
#[derive(Serialize, Deserialize)]
struct Kept {
    format_version: u32,
    words: Vec<String>,
    /// The JSON document that the command printed.
    document: serde_json::Value,
}

/// `study.json`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Manifest {
    #[serde(flatten)]
    version: WriterVersion,
    /// The text of the study file.
    pub(crate) study: String,
    /// All points, in their order.
    pub(crate) points: Vec<Point>,
    /// Once all has been collected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) summary: Option<Summary>,
}

/// Who wrote a manifest: what every version of weft can read of it.
#[derive(Serialize, Deserialize)]
struct WriterVersion {
    format_version: u32,
    weft_version: String,
}

impl Manifest {
    /// The manifest of the study in `directory`.
    ///
    /// # Errors
    /// One that cannot be read, is damaged, or is of another version.
    pub(crate) fn read(directory: &Path) -> Result<Manifest, StudyError> {
        let path = directory.join(MANIFEST);
        let text = fs::read(&path).map_err(StudyError::file("read", &path))?;
        let damaged = |error: serde_json::Error| StudyError::DamagedManifest {
            path: path.clone(),
            why: error.to_string(),
        };
        let WriterVersion { format_version, weft_version } =
            serde_json::from_slice(&text).map_err(damaged)?;
        if (format_version, weft_version.as_str()) != (FORMAT_VERSION, env!("CARGO_PKG_VERSION")) {
            let found = format!("weft {weft_version} in format version {format_version}");
            return Err(StudyError::Version { path: directory.to_owned(), found });
        }
        serde_json::from_slice(&text).map_err(damaged)
    }
}

/// The points of the study in `directory` that are done.
fn measured(directory: &Path) -> Result<Vec<Point>, StudyError> {
    let mut points = Manifest::read(directory)?.points;
    points.retain(|point| point_file(directory, &point.id).is_file());
    Ok(points)
}

/// The document that the command of a finished point printed.
///
/// # Errors
/// A file that cannot be read, or is damaged.
pub(crate) fn document(directory: &Path, id: &str) -> Result<serde_json::Value, StudyError> {
    let path = point_file(directory, id);
    let text = fs::read(&path).map_err(StudyError::file("read", &path))?;
    let kept: Kept = serde_json::from_slice(&text)
        .map_err(|error| StudyError::Damaged { path, why: error.to_string() })?;
    Ok(kept.document)
}

/// The file of a finished point.
pub(crate) fn point_file(directory: &Path, id: &str) -> PathBuf {
    directory.join(POINTS).join(format!("{id}.json"))
}

/// The directory of the tables that a point keeps.
pub(crate) fn result_of(directory: &Path, id: &str) -> PathBuf {
    directory.join(RESULTS).join(id)
}

/// The directory of a study that is worked on.
pub struct StudyDirectory {
    path: PathBuf,
    study: Study,
    done: BTreeSet<String>,
    failed: Vec<Failed>,
    /// Keeps others out; `None` where the file system has no locks.
    _lock: Option<File>,
}

impl StudyDirectory {
    /// The directory at `path`, made where it is not there; `anew`: without what was done before.
    ///
    /// # Errors
    /// A directory of something else, of another version, of a study that has points which this one lacks, or
    /// that another process works on.
    pub fn open(study: Study, path: &Path, anew: bool) -> Result<StudyDirectory, StudyError> {
        fs::create_dir_all(path).map_err(StudyError::file("make the directory", path))?;
        let directory = File::open(path).map_err(StudyError::file("read", path))?;
        let lock = match directory.try_lock() {
            Ok(()) => Some(directory),
            Err(TryLockError::Error(_)) => None,
            Err(TryLockError::WouldBlock) => return Err(StudyError::Busy(path.to_owned())),
        };
        let manifest = path.join(MANIFEST);
        let mut files = fs::read_dir(path).map_err(StudyError::file("read", path))?;
        if manifest.is_file() {
            if anew {
                clear(path)?;
            } else if let Some(change) = lost(&measured(path)?, &study.points) {
                return Err(StudyError::AnotherStudy { path: path.to_owned(), change });
            }
        } else if files.next().is_some() {
            return Err(StudyError::NotAStudy(path.to_owned()));
        }
        let points = path.join(POINTS);
        fs::create_dir_all(&points).map_err(StudyError::file("make the directory", &points))?;
        let mut opened = StudyDirectory {
            path: path.to_owned(),
            study,
            done: BTreeSet::new(),
            failed: vec![],
            _lock: lock,
        };
        opened.write_manifest(None)?;
        let is_done = |point: &&Point| opened.file(&point.id).is_file();
        opened.done = opened.study.points.iter().filter(is_done).map(|point| point.id.clone()).collect();
        Ok(opened)
    }

    /// The study.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Points that are done, of this study.
    pub fn done(&self) -> usize {
        self.done.len()
    }

    /// Points that are to be done, in their order. Their words keep the tables that the study asks for.
    pub fn missing(&self) -> Vec<Point> {
        let missing = self.study.points.iter().filter(|point| !self.done.contains(&point.id)).cloned();
        let Some(tables) = self.study.presentation.kept() else { return missing.collect() };
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        missing
            .map(|point| {
                let directory = result_of(&path, &point.id);
                point.keeping(&directory, &tables)
            })
            .collect()
    }

    /// Keeps what a point's command has printed. Returns the failure of one that was refused. One that was
    /// interrupted is neither: it is run again.
    ///
    /// # Errors
    /// A failure of the file system.
    pub fn keep(&mut self, id: &str, outcome: &Outcome<'_>) -> Result<Option<Failed>, StudyError> {
        let Some(point) = self.study.points.iter().find(|point| point.id == id) else { return Ok(None) };
        let document: Option<serde_json::Value> = serde_json::from_str(outcome.output).ok();
        match document.filter(|document| document["rows"].is_array() && document["ended"].is_string()) {
            Some(document) if MEASURED.contains(&outcome.status) => {
                let kept = Kept { format_version: FORMAT_VERSION, words: point.words.clone(), document };
                self.write(&self.file(id), &json(&kept))?;
                self.done.insert(id.to_owned());
                Ok(None)
            }
            _ if outcome.status == INTERRUPTED => Ok(None),
            _ => {
                let message = match outcome.message.trim() {
                    "" => format!("it ended with status {} and printed no result", outcome.status),
                    message => message.to_owned(),
                };
                let parameters = point.parameters.clone();
                let failed = Failed { id: id.to_owned(), parameters, message, status: outcome.status };
                self.failed.push(failed.clone());
                Ok(Some(failed))
            }
        }
    }

    /// Collects what is done into the data set, whole or not.
    ///
    /// # Errors
    /// A failure of the file system, and a point's file that is damaged.
    pub fn finish(&self) -> Result<Summary, StudyError> {
        let mut documents = Vec::new();
        for point in self.study.points.iter().filter(|point| self.done.contains(&point.id)) {
            documents.push((point, document(&self.path, &point.id)?));
        }
        let place = |failed: &Failed| self.study.points.iter().position(|point| point.id == failed.id);
        let mut failed = self.failed.clone();
        failed.sort_by_key(place);
        let rows = table::rows(&documents);
        let mut cases = cases(&documents);
        self.study.presentation.derive(&mut cases);
        let intervals = table::intervals(&cases);
        for (name, frame) in [(ROWS, &rows), (INTERVALS, &intervals)] {
            let path = self.path.join(name);
            let bytes = frame.parquet(name).map_err(|error| StudyError::File {
                action: "write",
                path: path.clone(),
                source: io::Error::other(error),
            })?;
            self.write(&path, &bytes)?;
        }
        let summary = Summary {
            directory: self.path.clone(),
            points: self.study.points.len(),
            done: documents.len(),
            rows: rows.height(),
            intervals: intervals.height(),
            failed,
        };
        self.write_manifest(Some(summary.clone()))?;
        Ok(summary)
    }

    fn file(&self, id: &str) -> PathBuf {
        point_file(&self.path, id)
    }

    fn write_manifest(&self, summary: Option<Summary>) -> Result<(), StudyError> {
        let weft_version = env!("CARGO_PKG_VERSION").to_owned();
        let version = WriterVersion { format_version: FORMAT_VERSION, weft_version };
        let Study { text, points, .. } = &self.study;
        let manifest = Manifest { version, study: text.clone(), points: points.clone(), summary };
        self.write(&self.path.join(MANIFEST), &json(&manifest))
    }

    /// Writes a file so that nobody ever sees a part of it.
    fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), StudyError> {
        let write = || {
            let mut file = tempfile::Builder::new().prefix(".part").tempfile_in(&self.path)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            file.as_file().set_permissions(readable)?;
            file.persist(path)?;
            Ok(())
        };
        write().map_err(StudyError::file("write", path))
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("keys are texts");
    text.push(b'\n');
    text
}

/// Removes what a study has left, `study.json` last, so that the rest is known as a study's until then.
fn clear(path: &Path) -> Result<(), StudyError> {
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    for folder in [POINTS, RESULTS].map(|name| path.join(name)) {
        gone(fs::remove_dir_all(&folder)).map_err(StudyError::file("remove", &folder))?;
    }
    for name in [ROWS, INTERVALS, MANIFEST] {
        let file = path.join(name);
        gone(fs::remove_file(&file)).map_err(StudyError::file("remove", &file))?;
    }
    Ok(())
}
