//! A result directory while it is written. It is locked meanwhile.

use crate::digest::{Sha, file_sha};
use crate::ending::Ending;
use crate::error::ResultsError;
use crate::files::{
    MANIFEST, PERFORMANCE, REQUEST, SNAPSHOT, WORKING, clear_finished, json, sync_directory, write_whole,
};
use crate::live::LiveWriter;
use crate::lock::DirectoryLock;
use crate::manifest::{FORMAT_VERSION, Performance, RunManifest, WEFT_VERSION};
use crate::open_tables::{MergedTable, OpenTables};
use crate::previous::{self, Snapshot};
use crate::reading::{StoredRequest, check_request, read_versioned};
use crate::snapshot::{read_snapshot, write_snapshot};
use crate::tables::{Table, TableRow};
use serde::Serialize;
use serde::de::IgnoredAny;
use std::fs;
use std::path::{Path, PathBuf};

/// The file [`REQUEST`]: the request while the run goes, when there is no `run.json` and no
/// `performance.json` yet.
#[derive(Serialize)]
struct RequestFile<'a, Q> {
    format_version: u32,
    weft_version: &'static str,
    #[serde(flatten)]
    stored: &'a StoredRequest<Q>,
}

/// The treatment of a directory that holds something already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    /// Refuse, unless it is empty.
    Refuse,
    /// Replace what weft wrote there, when the new result is whole; the files of others stay.
    Replace,
}

/// Writes a result as the run goes.
///
/// Rows are handed over in order; a row of a table that was not asked for is dropped. After an error,
/// and when a writer is dropped before [`ResultsWriter::finish`], the directory holds nothing of the new run
/// that reads as a result, and again the one that it was to replace; a stored snapshot stays instead, so that
/// the run can be resumed.
pub struct ResultsWriter {
    directory: PathBuf,
    trace_paths: Vec<PathBuf>,
    tables: OpenTables,
    /// Of the file [`REQUEST`]; a snapshot is of this request only.
    request: Sha,
    /// For readers while the run goes; `None`: there are none.
    live: Option<LiveWriter>,
    /// Whether this writer has made the directory: it then takes it away if nothing comes of the run.
    made: bool,
    _lock: DirectoryLock,
}

impl ResultsWriter {
    /// A writer of `tables` into `directory`, which is made where it does not exist. The request is kept
    /// while the run goes.
    pub fn create<Q: Serialize>(
        directory: &Path,
        tables: &[Table],
        stored: &StoredRequest<Q>,
        existing: Existing,
    ) -> Result<ResultsWriter, ResultsError> {
        let made = !directory.exists();
        if made {
            fs::create_dir_all(directory).map_err(|e| ResultsError::file("make", directory, e))?;
        }
        let working = directory.join(WORKING);
        let lock = DirectoryLock::take(directory, &working)?;
        match existing {
            Existing::Refuse => previous::put_back(directory, Snapshot::Keep)?,
            Existing::Replace => previous::put_back(directory, Snapshot::Remove)?,
        }
        ResultsWriter::refuse(directory, existing)?;
        if let Err(error) = previous::set_aside(directory) {
            // The first error is the one to report.
            let _ = previous::put_back(directory, Snapshot::Keep);
            return Err(error);
        }
        fs::create_dir_all(&working).map_err(|e| ResultsError::file("make", &working, e))?;
        lock.sign(&working);
        let file = json(&RequestFile { format_version: FORMAT_VERSION, weft_version: WEFT_VERSION, stored });
        // From here on the writer clears up after itself.
        let writer = ResultsWriter {
            directory: directory.to_owned(),
            trace_paths: stored.trace_paths.clone(),
            tables: OpenTables::new(&working, tables),
            request: Sha::of(&[&file]),
            live: None,
            made,
            _lock: lock,
        };
        write_whole(&working, &working.join(REQUEST), &[&file])?;
        Ok(writer)
    }

    /// Whether a directory may be written to; to be asked before a long run begins.
    pub fn check(directory: &Path, existing: Existing) -> Result<(), ResultsError> {
        if directory.is_dir() {
            DirectoryLock::check(directory, &directory.join(WORKING))?;
        }
        ResultsWriter::refuse(directory, existing)
    }

    /// Refuses a directory because of what is in it.
    fn refuse(directory: &Path, existing: Existing) -> Result<(), ResultsError> {
        match fs::read_dir(directory) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => {
                Err(ResultsError::NotADirectory(directory.to_owned()))
            }
            Err(e) => Err(ResultsError::file("read", directory, e)),
            Ok(mut entries) => match entries.next() {
                Some(_) if existing == Existing::Refuse => {
                    let saved = directory.join(WORKING).join(SNAPSHOT).is_file();
                    let error = if saved { ResultsError::Saved } else { ResultsError::Exists };
                    Err(error(directory.to_owned()))
                }
                _ => Ok(()),
            },
        }
    }

    /// Continues the result in `directory` from its last snapshot: rows after it are dropped. Also
    /// returns the state that [`ResultsWriter::save`] was given.
    pub fn resume(directory: &Path) -> Result<(ResultsWriter, Vec<u8>), ResultsError> {
        let working = directory.join(WORKING);
        let path = working.join(SNAPSHOT);
        if !path.is_file() {
            return Err(ResultsError::NoSnapshot(directory.to_owned()));
        }
        let lock = DirectoryLock::take(directory, &working)?;
        lock.sign(&working);
        let request_path = working.join(REQUEST);
        let stored: StoredRequest<IgnoredAny> = read_versioned(&request_path, Some(1))?;
        check_request(directory, &request_path)?;
        let request = file_sha(&request_path)?;
        let bytes = fs::read(&path).map_err(|e| ResultsError::file("read", &path, e))?;
        let (saved, state) = read_snapshot(&path, &bytes, request)?;
        let writer = ResultsWriter {
            directory: directory.to_owned(),
            trace_paths: stored.trace_paths,
            tables: OpenTables::resume(&working, &saved, &path)?,
            request,
            live: None,
            made: false,
            _lock: lock,
        };
        // Only now is it sure that the run can go on: until then an interrupted result stays readable.
        clear_finished(directory)?;
        Ok((writer, state.to_vec()))
    }

    /// Whether rows of `table` are wanted: lets a run skip collecting them.
    pub fn wants(&self, table: Table) -> bool {
        self.tables.wants(table)
    }

    /// Adds a row to its table.
    pub fn push<R: TableRow>(&mut self, row: R) -> Result<(), ResultsError> {
        self.tables.push(row)
    }

    /// A virtual epoch has passed: all rows before it have been handed over. Row groups end here.
    pub fn epoch(&mut self) -> Result<(), ResultsError> {
        self.tables.epoch()?;
        match &self.live {
            Some(live) if live.is_due() => self.publish(),
            _ => Ok(()),
        }
    }

    /// Lets readers see, from now on, what has been written at epochs.
    ///
    /// # Errors
    /// A directory that cannot be written.
    pub fn go_live(&mut self) -> Result<(), ResultsError> {
        self.live = Some(LiveWriter::new());
        self.publish()
    }

    /// Lets readers see what has been written.
    pub(crate) fn publish(&mut self) -> Result<(), ResultsError> {
        let Some(live) = &mut self.live else { return Ok(()) };
        let tables = self.tables.publish(live.generation)?;
        live.publish(&self.directory.join(WORKING), tables)
    }

    /// Stores a snapshot: `state` is the run's own, and the tables are as they are now. It takes the
    /// place of the last one only when it is whole on the disk.
    pub fn save(&mut self, state: &[u8]) -> Result<(), ResultsError> {
        write_snapshot(&self.directory.join(WORKING), self.request, &self.tables.save()?, state)
    }

    /// Makes the result whole: merges the tables and writes the manifests, `run.json` last. Also for
    /// runs that were interrupted or ended badly, as `manifest.ended` says. An interrupted run keeps its
    /// snapshot, so that it can be resumed.
    ///
    /// The writer itself fills in `manifest.tables`, `performance.trace_paths` and `performance.sha256`.
    pub fn finish<Q: Serialize, X: Serialize>(
        mut self,
        manifest: RunManifest<Q, X>,
        performance: Performance,
    ) -> Result<(), ResultsError> {
        let finished = self.try_finish(manifest, performance);
        if finished.is_err() {
            // The first error is the one to report; what cannot be removed is no result without run.json.
            let _ = clear_finished(&self.directory);
        }
        finished
    }

    fn try_finish<Q: Serialize, X: Serialize>(
        &mut self,
        mut manifest: RunManifest<Q, X>,
        mut performance: Performance,
    ) -> Result<(), ResultsError> {
        performance.trace_paths = std::mem::take(&mut self.trace_paths);
        let working = self.directory.join(WORKING);
        // All tables are whole under temporary names before the first gets its own.
        let merged = self.tables.merge(&working)?;
        for MergedTable { table, summary, path } in merged {
            manifest.tables.insert(table, summary);
            let target = self.directory.join(table.file());
            fs::rename(&path, &target).map_err(|e| ResultsError::file("write", &target, e))?;
            performance.sha256.insert(table.file(), file_sha(&target)?.to_string());
        }
        let run_json = json(&manifest);
        performance.sha256.insert(MANIFEST.to_owned(), Sha::of(&[&run_json]).to_string());
        write_whole(&working, &self.directory.join(PERFORMANCE), &[&json(&performance)])?;
        write_whole(&working, &self.directory.join(MANIFEST), &[&run_json])?;
        previous::forget(&self.directory);
        if manifest.ended != Ending::Interrupted || !working.join(SNAPSHOT).exists() {
            fs::remove_dir_all(&working).map_err(|e| ResultsError::file("remove", &working, e))?;
        }
        sync_directory(&self.directory)
    }
}

impl Drop for ResultsWriter {
    /// Without a snapshot to resume from, the working folder is of no use, and what it was to replace comes
    /// back.
    fn drop(&mut self) {
        let working = self.directory.join(WORKING);
        if !working.join(SNAPSHOT).exists() {
            // Nobody is left to tell. What could not be put back stays, and the next weft tries again.
            let _ = previous::put_back(&self.directory, Snapshot::Keep);
            if !previous::is_set_aside(&self.directory) && !working.join(SNAPSHOT).exists() {
                let _ = fs::remove_dir_all(&working);
            }
        }
        if self.made {
            // It stays where there is anything in it.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}
