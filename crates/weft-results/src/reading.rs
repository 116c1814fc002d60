//! The statements of a result directory: its request, its manifest, and whether its files are those that weft
//! wrote.

use crate::digest::file_sha;
use crate::error::ResultsError;
use crate::files::{MANIFEST, PERFORMANCE, REQUEST, WORKING, read_json};
use crate::lock::DirectoryLock;
use crate::manifest::{FORMAT_VERSION, Performance, RunManifest, TableSummary};
use crate::previous::{self, Snapshot};
use crate::tables::Table;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A request, and where the traces that it reads lie on this computer, in its order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StoredRequest<Q> {
    /// The request.
    pub request: Q,
    /// Paths from the root of the file system, so that the traces are found from any folder.
    pub trace_paths: Vec<PathBuf>,
}

/// The request of the result in `directory`, finished or saved, with the paths of its traces.
///
/// # Errors
/// A directory without a result, and a result that another version of weft wrote or that is damaged.
pub fn read_request<Q: DeserializeOwned>(directory: &Path) -> Result<StoredRequest<Q>, ResultsError> {
    put_back_if_killed(directory);
    let manifest = directory.join(MANIFEST);
    if manifest.is_file() {
        let RequestOf { request } = read_versioned(&manifest, None)?;
        let performance = directory.join(PERFORMANCE);
        let performance: Performance =
            if performance.is_file() { read_json(&performance)? } else { Performance::default() };
        return Ok(StoredRequest { request, trace_paths: performance.trace_paths });
    }
    let path = directory.join(WORKING).join(REQUEST);
    if !path.is_file() {
        return Err(ResultsError::NotAResult(directory.to_owned()));
    }
    read_versioned(&path, Some(1))
}

/// The request in `run.json`.
#[derive(Deserialize)]
struct RequestOf<Q> {
    request: Q,
}

/// `run.json` of the result in `directory`.
///
/// # Errors
/// As of [`read_request`].
pub fn read_manifest<Q, X>(directory: &Path) -> Result<RunManifest<Q, X>, ResultsError>
where
    Q: DeserializeOwned,
    X: DeserializeOwned,
{
    put_back_if_killed(directory);
    let path = directory.join(MANIFEST);
    if !path.is_file() {
        return Err(ResultsError::NotAResult(directory.to_owned()));
    }
    read_versioned(&path, None)
}

/// Makes sure that the files of the result in `directory` are those that weft wrote, as far as it says what
/// it wrote: to be asked before they are compared with others.
///
/// # Errors
/// The first file that is missing, differs or was not written with the others.
pub fn check_files(directory: &Path, tables: &BTreeMap<Table, TableSummary>) -> Result<(), ResultsError> {
    let performance = directory.join(PERFORMANCE);
    // Results of an earlier weft do not say it, and the file may be left out of a copy.
    let known = match performance.is_file() {
        true => read_json::<Performance>(&performance)?.sha256,
        false => BTreeMap::new(),
    };
    for table in Table::ALL {
        let path = directory.join(table.file());
        match (tables.contains_key(&table), path.is_file()) {
            (true, false) => return Err(ResultsError::Missing(path)),
            (false, true) => return Err(ResultsError::Foreign(path)),
            _ => {}
        }
    }
    for (name, sha) in known {
        let path = directory.join(&name);
        if !path.is_file() {
            return Err(ResultsError::Missing(path));
        }
        if file_sha(&path)?.to_string() != sha {
            return Err(ResultsError::Changed { path, sha });
        }
    }
    Ok(())
}

/// Puts back what a killed weft was replacing; where that is not possible, the directory reads as it is.
fn put_back_if_killed(directory: &Path) {
    let working = directory.join(WORKING);
    if previous::is_set_aside(directory)
        && let Ok(_lock) = DirectoryLock::take(directory, &working)
    {
        let _ = previous::put_back(directory, Snapshot::Keep);
    }
}

/// An interrupted result has its request twice, and is resumed from the one that the snapshot is of.
pub(crate) fn check_request(directory: &Path, request: &Path) -> Result<(), ResultsError> {
    let manifest = directory.join(MANIFEST);
    if !manifest.is_file() {
        return Ok(());
    }
    let of = |path: &Path| read_json::<RequestOf<serde_json::Value>>(path).map(|file| file.request);
    if of(&manifest)? == of(request)? {
        return Ok(());
    }
    let why = "its request is not the one that was saved".to_owned();
    Err(ResultsError::Damaged { path: manifest, why })
}

/// Who wrote a file, and in which format.
#[derive(Deserialize)]
struct Version {
    format_version: Option<u32>,
    weft_version: Option<String>,
}

/// Reads a file of this format version. A file that does not say its version has version `unsaid`; where
/// that is `None`, it is damaged.
pub(crate) fn read_versioned<T: DeserializeOwned>(
    path: &Path,
    unsaid: Option<u32>,
) -> Result<T, ResultsError> {
    // The version comes first: in another version the rest may be unknown here.
    let Version { format_version, weft_version } = read_json(path)?;
    match format_version.or(unsaid) {
        Some(FORMAT_VERSION) => read_json(path),
        Some(found) => Err(ResultsError::Version { path: path.to_owned(), found, weft_version }),
        None => {
            Err(ResultsError::Damaged { path: path.to_owned(), why: "it has no format_version".to_owned() })
        }
    }
}
