//! The result that `--force` replaces: kept until the new one is whole.
//!
//! ```text
//!  out/run.json, *.parquet   ──moved──► out/.weft/leaving/   ──renamed──► out/.weft/previous/
//!  out/.weft/* (a snapshot)               not yet all of it                 all of it
//! ```
//! A folder `leaving` belongs back into the directory, whatever else is there. A folder `previous` does,
//! unless there is a new result or a snapshot of it. So it does not matter at which point weft was killed.

use crate::error::ResultsError;
use crate::files::{MANIFEST, SNAPSHOT, WORKING, clear_finished, result_files};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const LEAVING: &str = "leaving";
const PREVIOUS: &str = "previous";

/// Moves the result in `directory` aside, if there is one.
pub(crate) fn set_aside(directory: &Path) -> Result<(), ResultsError> {
    let working = directory.join(WORKING);
    if !directory.join(MANIFEST).is_file() && !working.join(SNAPSHOT).is_file() {
        clear_finished(directory)?;
        return remove_folder(&working);
    }
    let leaving = working.join(LEAVING);
    let inner = leaving.join(WORKING);
    make_folder(&inner)?;
    for path in entries(&working)?.into_iter().filter(|path| *path != leaving) {
        move_into(&inner, &path)?;
    }
    for path in result_files(directory).filter(|path| path.exists()) {
        move_into(&leaving, &path)?;
    }
    rename(&leaving, &working.join(PREVIOUS))
}

/// Puts back the result that a writer has set aside and not replaced, unless there is a snapshot to keep.
pub(crate) fn put_back(directory: &Path, snapshot: Snapshot) -> Result<(), ResultsError> {
    let working = directory.join(WORKING);
    let (leaving, previous) = (working.join(LEAVING), working.join(PREVIOUS));
    if previous.is_dir() {
        if directory.join(MANIFEST).is_file() {
            return remove_folder(&previous);
        }
        if snapshot == Snapshot::Keep && working.join(SNAPSHOT).is_file() {
            return Ok(());
        }
        clear_finished(directory)?;
        for path in entries(&working)?.into_iter().filter(|path| *path != previous) {
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(|e| ResultsError::file("remove", &path, e))?;
        }
        rename(&previous, &leaving)?;
    }
    if !leaving.is_dir() {
        return Ok(());
    }
    let inner = leaving.join(WORKING);
    if inner.is_dir() {
        entries(&inner)?.iter().try_for_each(|path| move_into(&working, path))?;
    }
    // `run.json` comes last, so that half a result does not read as whole.
    let mut files: Vec<PathBuf> = result_files(&leaving).filter(|path| path.exists()).collect();
    files.reverse();
    files.iter().try_for_each(|path| move_into(directory, path))?;
    remove_folder(&leaving)?;
    // It stays where it holds a snapshot.
    let _ = fs::remove_dir(&working);
    Ok(())
}

/// Removes the result that was set aside: the new one is whole.
pub(crate) fn forget(directory: &Path) {
    // What stays is removed by the next weft, which sees the new result beside it.
    let _ = remove_folder(&directory.join(WORKING).join(PREVIOUS));
}

/// Whether a result was set aside and is not replaced yet.
pub(crate) fn is_set_aside(directory: &Path) -> bool {
    [LEAVING, PREVIOUS].iter().any(|name| directory.join(WORKING).join(name).is_dir())
}

/// The treatment of a snapshot of the run that was to replace a result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Snapshot {
    /// The run may be resumed: what it was to replace stays aside.
    Keep,
    /// The run is given up.
    Remove,
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let paths = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    paths.map_err(|e: io::Error| ResultsError::file("read", folder, e))
}

fn make_folder(path: &Path) -> Result<(), ResultsError> {
    fs::create_dir_all(path).map_err(|e| ResultsError::file("make", path, e))
}

fn remove_folder(path: &Path) -> Result<(), ResultsError> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(ResultsError::file("remove", path, e)),
        _ => Ok(()),
    }
}

fn move_into(folder: &Path, path: &Path) -> Result<(), ResultsError> {
    rename(path, &folder.join(path.file_name().unwrap_or_default()))
}

fn rename(from: &Path, to: &Path) -> Result<(), ResultsError> {
    fs::rename(from, to).map_err(|e| ResultsError::file("move", from, e))
}
