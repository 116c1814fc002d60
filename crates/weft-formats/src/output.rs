//! A file that appears under its name when it is whole, and not before.

use crate::error::TraceError;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

/// A hidden file beside `path`, which is removed unless it gets that name.
pub(crate) fn unfinished(path: &Path) -> Result<NamedTempFile, TraceError> {
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(unwritable(path, "it is no regular file"));
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    tempfile::Builder::new()
        .prefix(".weft-trace-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(|error| unwritable(path, error))
}

/// Gives it its name. Another file of this name is replaced.
pub(crate) fn finish(file: NamedTempFile, path: &Path) -> Result<(), TraceError> {
    file.as_file().sync_all().map_err(|error| unwritable(path, error))?;
    file.persist(path).map_err(|error| unwritable(path, error.error))?;
    Ok(())
}

pub(crate) fn unwritable(path: &Path, error: impl std::fmt::Display) -> TraceError {
    TraceError::Write { path: path.to_owned(), reason: error.to_string() }
}
