//! A result directory has one writer: the directory itself is locked, so that nothing is left of a writer
//! that was killed.

use crate::error::ResultsError;
use std::fs::{self, File, TryLockError};
use std::path::Path;

/// The number of the process that writes, for the message of the one that is refused.
const PROCESS: &str = "process";

/// Keeps other writers out until it is dropped.
pub(crate) struct DirectoryLock {
    /// `None` where the file system has no locks.
    _directory: Option<File>,
}

impl DirectoryLock {
    /// Locks `directory`, which exists; `working` is its hidden folder.
    ///
    /// # Errors
    /// Another process writes there.
    pub(crate) fn take(directory: &Path, working: &Path) -> Result<DirectoryLock, ResultsError> {
        let file = open(directory)?;
        let is_locked = accept(file.try_lock(), directory, working)?;
        Ok(DirectoryLock { _directory: is_locked.then_some(file) })
    }

    /// Whether a lock could be taken now; takes none.
    pub(crate) fn check(directory: &Path, working: &Path) -> Result<(), ResultsError> {
        accept(open(directory)?.try_lock_shared(), directory, working).map(drop)
    }

    /// Names this process as the writer.
    pub(crate) fn sign(&self, working: &Path) {
        // Without it the message lacks a number.
        let _ = fs::write(working.join(PROCESS), std::process::id().to_string());
    }
}

fn open(directory: &Path) -> Result<File, ResultsError> {
    File::open(directory).map_err(|e| ResultsError::file("read", directory, e))
}

/// Whether the lock is there. A file system without locks is written to without one.
fn accept(lock: Result<(), TryLockError>, directory: &Path, working: &Path) -> Result<bool, ResultsError> {
    match lock {
        Ok(()) => Ok(true),
        Err(TryLockError::Error(_)) => Ok(false),
        Err(TryLockError::WouldBlock) => {
            let process = fs::read_to_string(working.join(PROCESS)).ok();
            let process = process.and_then(|text| text.trim().parse().ok());
            Err(ResultsError::Busy { directory: directory.to_owned(), process })
        }
    }
}
