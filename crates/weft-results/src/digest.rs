//! The digest of a result: two results are the same where their digests are.

use crate::error::ResultsError;
use crate::files::MANIFEST;
use crate::tables::Table;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// SHA-256 of names, lengths and bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// SHA-256 of bytes alone, as `sha256sum` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Sha(pub(crate) [u8; 32]);

impl Sha {
    /// Of pieces, one after the other.
    pub(crate) fn of(pieces: &[&[u8]]) -> Sha {
        let mut hasher = Sha256::new();
        pieces.iter().for_each(|piece| hasher.update(piece));
        Sha(hasher.finalize().into())
    }
}

impl fmt::Display for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Digest(self.0).fmt(f)
    }
}

/// [`Sha`] of a file.
pub(crate) fn file_sha(path: &Path) -> Result<Sha, ResultsError> {
    let read = |e: io::Error| ResultsError::file("read", path, e);
    let mut hasher = Sha256::new();
    hash_contents(&mut hasher, &mut File::open(path).map_err(read)?).map_err(read)?;
    Ok(Sha(hasher.finalize().into()))
}

/// The digest of the result in `directory`: over `run.json` and the tables, not `performance.json` and
/// nothing that others put beside them.
pub fn digest(directory: &Path) -> Result<Digest, ResultsError> {
    if !directory.join(MANIFEST).is_file() {
        return Err(ResultsError::NotAResult(directory.to_owned()));
    }
    let mut hasher = Sha256::new();
    for name in [MANIFEST.to_owned()].into_iter().chain(Table::ALL.map(Table::file)) {
        let path = directory.join(&name);
        if path.exists() {
            hash_file(&mut hasher, &name, &path)?;
        }
    }
    Ok(Digest(hasher.finalize().into()))
}

/// The digest of one input file, such as a trace, under the name `""`.
pub fn file_digest(path: &Path) -> Result<Digest, ResultsError> {
    let mut hasher = Sha256::new();
    hash_file(&mut hasher, "", path)?;
    Ok(Digest(hasher.finalize().into()))
}

fn hash_file(hasher: &mut Sha256, name: &str, path: &Path) -> Result<(), ResultsError> {
    let read = |e: io::Error| ResultsError::file("read", path, e);
    let mut file = File::open(path).map_err(read)?;
    for length in [name.len() as u64, file.metadata().map_err(read)?.len()] {
        hasher.update(length.to_le_bytes());
    }
    hasher.update(name);
    hash_contents(hasher, &mut file).map_err(read)
}

fn hash_contents(hasher: &mut Sha256, file: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => hasher.update(&buffer[..count]),
        }
    }
}
