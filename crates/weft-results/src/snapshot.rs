//! The file of a snapshot: the tables and the run's own state at a virtual time, of one request.

use crate::digest::Sha;
use crate::error::ResultsError;
use crate::files::{SNAPSHOT, write_whole};
use crate::table_writer::SavedTable;
use std::path::Path;

/// The beginning of every snapshot file, whatever its version.
const MAGIC: &[u8] = b"weft-snapshot/";
/// The version of a snapshot file, which follows.
const VERSION: &[u8] = b"21\n";

/// Writes a snapshot of this request. It takes the place of the last one only when it is whole on the disk.
pub(crate) fn write_snapshot(
    working: &Path,
    request: Sha,
    tables: &[SavedTable],
    state: &[u8],
) -> Result<(), ResultsError> {
    let saved = postcard::to_stdvec(tables).expect("names, numbers and bytes");
    let sha = Sha::of(&[&request.0, &saved, state]);
    write_whole(working, &working.join(SNAPSHOT), &[MAGIC, VERSION, &sha.0, &saved, state])
}

/// The tables of a snapshot of this request, and the state of the run that it was saved with.
pub(crate) fn read_snapshot<'a>(
    path: &Path,
    bytes: &'a [u8],
    request: Sha,
) -> Result<(Vec<SavedTable>, &'a [u8]), ResultsError> {
    let damaged = |why: String| ResultsError::Damaged { path: path.to_owned(), why };
    let rest = bytes.strip_prefix(MAGIC);
    let rest = rest.ok_or_else(|| damaged("it is not a snapshot".to_owned()))?;
    let rest =
        rest.strip_prefix(VERSION).ok_or_else(|| ResultsError::SnapshotVersion { path: path.to_owned() })?;
    let (sha, rest) = rest.split_first_chunk().ok_or_else(|| damaged("it is cut short".to_owned()))?;
    if Sha::of(&[&request.0, rest]).0 != *sha {
        return Err(damaged("its checksum does not fit".to_owned()));
    }
    postcard::take_from_bytes(rest).map_err(|e| damaged(e.to_string()))
}
