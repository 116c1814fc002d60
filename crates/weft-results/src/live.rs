//! A result that can be read while it is written: what `--view` shows of a run that goes on.
//!
//! ```text
//!  parts that are whole ────┐
//!  rows of the open group ──┴─► .weft/live.json, NAME-live-N.parquet ──► StoredResult::open_live
//! ```
//! At an epoch, and not more than once in [`INTERVAL`] of wall time, the writer closes the open parts, writes
//! the rows of each open group into a file of their own, and names all of these files. What a reader sees is
//! as of one epoch. The result itself stays the same to the byte.

use crate::ending::Ending;
use crate::error::ResultsError;
use crate::files::{MANIFEST, REQUEST, WORKING, read_json, write_whole};
use crate::manifest::{RunManifest, TableSummary, Totals};
use crate::stored::StoredResult;
use crate::tables::Table;
use crate::wall_clock::Stopwatch;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Wall time between two looks that readers get, at least, in seconds.
const INTERVAL: f64 = 1.0;
const LIVE: &str = "live.json";

/// A table while it is written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct LiveTable {
    pub(crate) version: u32,
    pub(crate) rows: u64,
    /// Names in the working folder, in the order of rows.
    pub(crate) files: Vec<String>,
}

/// The file [`LIVE`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct LiveFile {
    /// Counts the times that it was written.
    pub(crate) generation: u64,
    pub(crate) tables: BTreeMap<Table, LiveTable>,
}

/// A writer whose result is read while it is written.
pub(crate) struct LiveWriter {
    since: Stopwatch,
    /// The next one.
    pub(crate) generation: u64,
}

impl LiveWriter {
    pub(crate) fn new() -> LiveWriter {
        LiveWriter { since: Stopwatch::start(), generation: 0 }
    }

    /// Whether readers are to see what has been written since.
    pub(crate) fn is_due(&self) -> bool {
        self.since.seconds() >= INTERVAL
    }

    /// Lets readers see these tables.
    pub(crate) fn publish(
        &mut self,
        working: &Path,
        tables: BTreeMap<Table, LiveTable>,
    ) -> Result<(), ResultsError> {
        let file = LiveFile { generation: self.generation, tables };
        let text = serde_json::to_vec(&file).expect("names and numbers");
        write_whole(working, &working.join(LIVE), &[&text])?;
        self.generation += 1;
        self.since = Stopwatch::start();
        Ok(())
    }
}

/// How far a result in a directory can be read while it is written: its generation, which grows; `None`: the
/// writer shows nothing, or not yet.
pub fn live_generation(directory: &Path) -> Option<u64> {
    read_json::<LiveFile>(&directory.join(WORKING).join(LIVE)).ok().map(|file| file.generation)
}

/// Removes what a writer that was killed has left for readers: to be asked before a new one begins.
pub fn forget_live(directory: &Path) {
    // What stays is written over soon.
    let _ = std::fs::remove_file(directory.join(WORKING).join(LIVE));
}

/// Whether a directory holds a whole result.
pub fn is_whole(directory: &Path) -> bool {
    directory.join(MANIFEST).is_file()
}

impl StoredResult {
    /// The result in `directory` as far as it is written, where its writer lets readers see it. It has no
    /// totals and no rows, and its ending says nothing.
    ///
    /// # Errors
    /// A directory whose writer shows nothing.
    pub fn open_live(directory: &Path) -> Result<StoredResult, ResultsError> {
        let working = directory.join(WORKING);
        let live: LiveFile = read_json(&working.join(LIVE))?;
        let file: Value = read_json(&working.join(REQUEST))?;
        let mut manifest =
            RunManifest::new(file["request"].clone(), Value::Null, Ending::Interrupted, Totals::default());
        let mut files: BTreeMap<Table, Vec<PathBuf>> = BTreeMap::new();
        // A table without rows is one that comes at the end.
        for (table, live) in live.tables.into_iter().filter(|(_, live)| live.rows > 0) {
            manifest.tables.insert(table, TableSummary { version: live.version, rows: live.rows });
            files.insert(table, live.files.iter().map(|name| working.join(name)).collect());
        }
        Ok(StoredResult { directory: directory.to_owned(), manifest, live: Some(files) })
    }

    /// Whether it is still being written.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// How it ended, in words.
    pub fn ended(&self) -> String {
        if self.is_live() { "goes on".to_owned() } else { self.manifest.ended.to_string() }
    }
}
