//! What can go wrong with results on a disk.

use std::io;
use std::path::{Path, PathBuf};

/// Results that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The directory holds something already.
    #[error("{} exists and is not empty; name another directory with -o, or write over it with --force", .0.display())]
    Exists(PathBuf),
    /// The directory holds a run that was saved and did not end.
    #[error(
        "{} holds a saved run; continue it with `weft rerun {} --resume`, name another directory with -o, or \
         write over it with --force",
        .0.display(),
        .0.display()
    )]
    Saved(PathBuf),
    /// What should be a directory is not one.
    #[error("{} is not a directory; name a directory for results with -o", .0.display())]
    NotADirectory(PathBuf),
    /// The directory holds no finished run.
    #[error("{} holds no finished run: it has no run.json; name a directory that weft wrote with -o", .0.display())]
    NotAResult(PathBuf),
    /// There is nothing to continue from.
    #[error("{} holds no saved state to resume; runs save it with --save-every, such as --save-every 100us", .0.display())]
    NoSnapshot(PathBuf),
    /// The disk is full. Nothing that reads as whole is left.
    #[error("no room on the disk while writing {}; the results of this run are not kept: free some room, or name a \
             directory on another disk with -o", .0.display())]
    DiskFull(PathBuf),
    /// Another failure of the file system.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried: "write", "read".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The result was written by a weft with another layout.
    #[error(
        "{} has format version {found}, and this weft reads version {}; read it with the weft that wrote it",
        path.display(),
        super::FORMAT_VERSION
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// A file that weft wrote does not read any more.
    #[error("{} is damaged ({why}); run it again into a new directory", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
}

impl ResultsError {
    /// The error for a failed `action` on `path`.
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> ResultsError {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ResultsError::DiskFull(path.to_owned())
            }
            _ => ResultsError::File { action, path: path.to_owned(), source },
        }
    }

    /// The error for a failed write of a Parquet file.
    pub(super) fn parquet(
        action: &'static str,
        path: &Path,
        error: parquet::errors::ParquetError,
    ) -> ResultsError {
        match error {
            parquet::errors::ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => ResultsError::file(action, path, *source),
                Err(other) => ResultsError::Damaged { path: path.to_owned(), why: other.to_string() },
            },
            other => ResultsError::Damaged { path: path.to_owned(), why: other.to_string() },
        }
    }
}
