//! The files of a result directory: their names, and how one is written so that nobody sees half of it.
//!
//! ```text
//!  out/run.json            written last: where it is, the result is whole
//!  out/performance.json
//!  out/flows.parquet …
//!  out/.weft/              while the run goes: parts of tables, the request, the last snapshot,
//!                          the result that is being replaced (see `previous`)
//! ```

use crate::error::ResultsError;
use crate::tables::Table;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file that makes a directory a result.
pub(crate) const MANIFEST: &str = "run.json";
pub(crate) const PERFORMANCE: &str = "performance.json";
pub(crate) const WORKING: &str = ".weft";
pub(crate) const REQUEST: &str = "request.json";
pub(crate) const SNAPSHOT: &str = "snapshot";

/// Reads a JSON file.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    let text = fs::read_to_string(path).map_err(|e| ResultsError::file("read", path, e))?;
    serde_json::from_str(&text)
        .map_err(|e| ResultsError::Damaged { path: path.to_owned(), why: e.to_string() })
}

/// A JSON file.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("manifests have text keys only");
    text.push(b'\n');
    text
}

/// Writes a file so that nobody ever sees a part of it: under another name in `working`, to the disk,
/// then renamed.
pub(crate) fn write_whole(working: &Path, path: &Path, pieces: &[&[u8]]) -> Result<(), ResultsError> {
    let name = path.file_name().expect("results have file names").to_string_lossy();
    let temporary = working.join(format!("{name}.new"));
    let write = || {
        let mut file = File::create(&temporary)?;
        pieces.iter().try_for_each(|piece| file.write_all(piece))?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    };
    write().map_err(|e| ResultsError::file("write", path, e))
}

/// Brings the names of a directory to the disk.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), ResultsError> {
    let sync = || File::open(directory)?.sync_all();
    sync().map_err(|e| ResultsError::file("write", directory, e))
}

/// The files of a finished result, `run.json` first, whether they are there or not.
pub(crate) fn result_files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let names = [MANIFEST.to_owned(), PERFORMANCE.to_owned()];
    names.into_iter().chain(Table::ALL.map(Table::file)).map(|name| directory.join(name))
}

/// Removes a finished result, `run.json` first, so that what is left at any time does not read as whole.
pub(crate) fn clear_finished(directory: &Path) -> Result<(), ResultsError> {
    for path in result_files(directory) {
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(ResultsError::file("remove", &path, e)),
        }
    }
    Ok(())
}
