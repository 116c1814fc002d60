//! A result directory while it is written, and what can be read back from it.
//!
//! ```text
//!  out/run.json            written last: where it is, the result is whole
//!  out/performance.json
//!  out/flows.parquet …
//!  out/.weft/              while the run goes: parts of tables, the request, the last snapshot
//! ```

use super::error::ResultsError;
use super::manifest::{Ending, FORMAT_VERSION, Performance, RunManifest, TableSummary};
use super::row::Row;
use super::table::{SavedTable, TableWriter};
use super::tables::{FlowRow, LinkRow, MessagePieceRow, MessageRow, RankRow, Table};
use crate::experiment::Request;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file that makes a directory a result.
pub(super) const MANIFEST: &str = "run.json";
const PERFORMANCE: &str = "performance.json";
const WORKING: &str = ".weft";
const REQUEST: &str = "request.json";
const SNAPSHOT: &str = "snapshot";
/// Begins a snapshot file; the number is its version.
const SNAPSHOT_MAGIC: &[u8; 16] = b"weft-snapshot/3\n";

/// The file of a table.
pub(super) fn table_file(table: Table) -> String {
    format!("{}.parquet", table.name())
}

/// The request while the run goes, when there is no `run.json` and no `performance.json` yet.
#[derive(Serialize, Deserialize)]
struct StoredRequest {
    request: Request,
    /// Where the request's traces lie on this computer.
    trace_paths: Vec<PathBuf>,
}

/// What to do where the directory holds something already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    /// Refuse, unless it is empty.
    Refuse,
    /// Remove what weft wrote there; the files of others stay.
    Replace,
}

/// The tables of a result at a virtual time, for a snapshot. Pieces are not among them: a run that records them is not saved.
#[derive(Serialize, Deserialize)]
struct SavedTables {
    messages: Option<SavedTable<MessageRow>>,
    flows: Option<SavedTable<FlowRow>>,
    links: Option<SavedTable<LinkRow>>,
    ranks: Option<SavedTable<RankRow>>,
}

/// Writes a result as the run goes.
///
/// Rows are handed over in order; a row of a table that was not asked for is let go. After an error,
/// and when a writer is dropped before [`ResultsWriter::finish`], the directory holds nothing that reads
/// as a result; a stored snapshot stays, so that the run can be resumed.
pub struct ResultsWriter {
    directory: PathBuf,
    trace_paths: Vec<PathBuf>,
    messages: Option<TableWriter<MessageRow>>,
    flows: Option<TableWriter<FlowRow>>,
    links: Option<TableWriter<LinkRow>>,
    ranks: Option<TableWriter<RankRow>>,
    pieces: Option<TableWriter<MessagePieceRow>>,
}

impl ResultsWriter {
    /// A writer of `tables` into `directory`, which is made where it does not exist.
    pub fn create(
        directory: &Path,
        tables: &[Table],
        request: &Request,
        existing: Existing,
    ) -> Result<ResultsWriter, ResultsError> {
        refuse_or_clear(directory, existing)?;
        let working = directory.join(WORKING);
        fs::create_dir_all(&working).map_err(|e| ResultsError::file("make", &working, e))?;
        let trace_paths = absolute_trace_paths(request)?;
        let stored = StoredRequest { request: request.clone(), trace_paths: trace_paths.clone() };
        write_whole(&working, &working.join(REQUEST), &[&json(&stored)])?;
        let has = |table| tables.contains(&table);
        Ok(ResultsWriter {
            directory: directory.to_owned(),
            trace_paths,
            messages: has(Table::Messages).then(|| TableWriter::new(&working)),
            flows: has(Table::Flows).then(|| TableWriter::new(&working)),
            links: has(Table::Links).then(|| TableWriter::new(&working)),
            ranks: has(Table::Ranks).then(|| TableWriter::new(&working)),
            pieces: has(Table::Pieces).then(|| TableWriter::new(&working)),
        })
    }

    /// Whether a directory may be written to; to be asked before a long run begins.
    pub fn check(directory: &Path, existing: Existing) -> Result<(), ResultsError> {
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
        let bytes = fs::read(&path).map_err(|e| ResultsError::file("read", &path, e))?;
        let damaged = |why: &str| ResultsError::Damaged { path: path.clone(), why: why.to_owned() };
        let rest = bytes.strip_prefix(SNAPSHOT_MAGIC).ok_or_else(|| damaged("it is no snapshot"))?;
        let (saved, state): (SavedTables, &[u8]) =
            postcard::take_from_bytes(rest).map_err(|e| damaged(&e.to_string()))?;
        let stored: StoredRequest = read_json(&working.join(REQUEST))?;
        let writer = ResultsWriter {
            directory: directory.to_owned(),
            trace_paths: stored.trace_paths,
            messages: saved.messages.map(|table| TableWriter::resume(&working, table)).transpose()?,
            flows: saved.flows.map(|table| TableWriter::resume(&working, table)).transpose()?,
            links: saved.links.map(|table| TableWriter::resume(&working, table)).transpose()?,
            ranks: saved.ranks.map(|table| TableWriter::resume(&working, table)).transpose()?,
            pieces: None,
        };
        // Only now is it sure that the run can go on: until then an interrupted result stays readable.
        clear_finished(directory)?;
        Ok((writer, state.to_vec()))
    }

    /// Whether rows of `table` are wanted: lets a run skip collecting them.
    pub fn wants(&self, table: Table) -> bool {
        match table {
            Table::Messages => self.messages.is_some(),
            Table::Flows => self.flows.is_some(),
            Table::Links => self.links.is_some(),
            Table::Ranks => self.ranks.is_some(),
            Table::Pieces => self.pieces.is_some(),
        }
    }

    /// Adds a message.
    pub fn message(&mut self, row: MessageRow) -> Result<(), ResultsError> {
        self.messages.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a flow.
    pub fn flow(&mut self, row: FlowRow) -> Result<(), ResultsError> {
        self.flows.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a link.
    pub fn link(&mut self, row: LinkRow) -> Result<(), ResultsError> {
        self.links.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a rank.
    pub fn rank(&mut self, row: RankRow) -> Result<(), ResultsError> {
        self.ranks.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a piece of a message.
    pub fn piece(&mut self, row: MessagePieceRow) -> Result<(), ResultsError> {
        self.pieces.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// A virtual epoch has passed: all rows before it have been handed over. Row groups end here.
    pub fn epoch(&mut self) -> Result<(), ResultsError> {
        self.messages.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.flows.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.links.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.ranks.as_mut().map_or(Ok(()), TableWriter::epoch)?;
        self.pieces.as_mut().map_or(Ok(()), TableWriter::epoch)
    }

    /// Stores a snapshot: `state` is the run's own, and the tables are as they are now. It takes the
    /// place of the last one only when it is whole on the disk.
    pub fn save(&mut self, state: &[u8]) -> Result<(), ResultsError> {
        debug_assert!(self.pieces.is_none(), "a run that records pieces is not saved");
        let saved = SavedTables {
            messages: self.messages.as_mut().map(TableWriter::save).transpose()?,
            flows: self.flows.as_mut().map(TableWriter::save).transpose()?,
            links: self.links.as_mut().map(TableWriter::save).transpose()?,
            ranks: self.ranks.as_mut().map(TableWriter::save).transpose()?,
        };
        let saved = postcard::to_stdvec(&saved).expect("rows have no type that postcard refuses");
        let working = self.directory.join(WORKING);
        write_whole(&working, &working.join(SNAPSHOT), &[SNAPSHOT_MAGIC, &saved, state])
    }

    /// Makes the result whole: merges the tables and writes the manifests, `run.json` last. Also for
    /// runs that were interrupted or ended badly, as `manifest.ended` says. An interrupted run keeps its
    /// snapshot, so that it can be resumed.
    ///
    /// The writer itself fills in `manifest.tables` and `performance.trace_paths`.
    pub fn finish(mut self, manifest: RunManifest, performance: Performance) -> Result<(), ResultsError> {
        let finished = self.try_finish(manifest, performance);
        if finished.is_err() {
            // The first error is the one to report; what cannot be removed is no result without run.json.
            let _ = clear_finished(&self.directory);
        }
        finished
    }

    fn try_finish(
        &mut self,
        mut manifest: RunManifest,
        mut performance: Performance,
    ) -> Result<(), ResultsError> {
        performance.trace_paths = std::mem::take(&mut self.trace_paths);
        let working = self.directory.join(WORKING);
        let summary = |version, rows| TableSummary { version, rows };
        let mut merged = Vec::new();
        // All tables are whole under temporary names before the first gets its own.
        if let Some(table) = self.messages.take() {
            manifest.tables.insert(Table::Messages, summary(MessageRow::VERSION, table.rows()));
            merged.push(merge(table, &working, Table::Messages)?);
        }
        if let Some(table) = self.flows.take() {
            manifest.tables.insert(Table::Flows, summary(FlowRow::VERSION, table.rows()));
            merged.push(merge(table, &working, Table::Flows)?);
        }
        if let Some(table) = self.links.take() {
            manifest.tables.insert(Table::Links, summary(LinkRow::VERSION, table.rows()));
            merged.push(merge(table, &working, Table::Links)?);
        }
        if let Some(table) = self.ranks.take() {
            manifest.tables.insert(Table::Ranks, summary(RankRow::VERSION, table.rows()));
            merged.push(merge(table, &working, Table::Ranks)?);
        }
        if let Some(table) = self.pieces.take() {
            manifest.tables.insert(Table::Pieces, summary(MessagePieceRow::VERSION, table.rows()));
            merged.push(merge(table, &working, Table::Pieces)?);
        }
        for (table, path) in merged {
            let target = self.directory.join(table_file(table));
            fs::rename(&path, &target).map_err(|e| ResultsError::file("write", &target, e))?;
        }
        write_whole(&working, &self.directory.join(PERFORMANCE), &[&json(&performance)])?;
        write_whole(&working, &self.directory.join(MANIFEST), &[&json(&manifest)])?;
        if manifest.ended != Ending::Interrupted || !working.join(SNAPSHOT).exists() {
            fs::remove_dir_all(&working).map_err(|e| ResultsError::file("remove", &working, e))?;
        }
        sync_directory(&self.directory)
    }
}

impl Drop for ResultsWriter {
    /// Without a snapshot to resume from, the working folder is of no use.
    fn drop(&mut self) {
        let working = self.directory.join(WORKING);
        if !working.join(SNAPSHOT).exists() {
            // Nobody is left to tell; a left-over folder is hidden and no result.
            let _ = fs::remove_dir_all(&working);
        }
    }
}

/// The request of the result in `directory`, finished or saved, with the paths of its traces.
pub fn read_request(directory: &Path) -> Result<Request, ResultsError> {
    let (mut request, trace_paths) = if directory.join(MANIFEST).is_file() {
        let performance = directory.join(PERFORMANCE);
        let performance: Performance =
            if performance.is_file() { read_json(&performance)? } else { Performance::default() };
        (read_manifest(directory)?.request, performance.trace_paths)
    } else {
        let path = directory.join(WORKING).join(REQUEST);
        if !path.is_file() {
            return Err(ResultsError::NotAResult(directory.to_owned()));
        }
        let stored: StoredRequest = read_json(&path)?;
        (stored.request, stored.trace_paths)
    };
    for (trace, path) in request.traces_mut().iter_mut().zip(trace_paths) {
        trace.path = path;
    }
    Ok(request)
}

/// The paths of a request's traces from the root, so that a rerun finds them from any folder.
fn absolute_trace_paths(request: &Request) -> Result<Vec<PathBuf>, ResultsError> {
    let absolute = |path: &Path| std::path::absolute(path).map_err(|e| ResultsError::file("read", path, e));
    request.traces().iter().map(|trace| absolute(&trace.path)).collect()
}

/// `run.json` of the result in `directory`.
pub fn read_manifest(directory: &Path) -> Result<RunManifest, ResultsError> {
    let path = directory.join(MANIFEST);
    if !path.is_file() {
        return Err(ResultsError::NotAResult(directory.to_owned()));
    }
    // The version comes first: of another version nothing else may be there as this one knows it.
    let Version { format_version: found } = read_json(&path)?;
    if found != FORMAT_VERSION {
        return Err(ResultsError::Version { path, found });
    }
    read_json(&path)
}

#[derive(Deserialize)]
struct Version {
    format_version: u32,
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    let text = fs::read_to_string(path).map_err(|e| ResultsError::file("read", path, e))?;
    serde_json::from_str(&text)
        .map_err(|e| ResultsError::Damaged { path: path.to_owned(), why: e.to_string() })
}

fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("manifests have text keys only");
    text.push(b'\n');
    text
}

fn merge<R: Row>(
    writer: TableWriter<R>,
    working: &Path,
    table: Table,
) -> Result<(Table, PathBuf), ResultsError> {
    let path = working.join(table_file(table));
    writer.merge(&path)?;
    Ok((table, path))
}

/// Writes a file so that nobody ever sees a part of it: under another name in `working`, to the disk,
/// then renamed.
fn write_whole(working: &Path, path: &Path, pieces: &[&[u8]]) -> Result<(), ResultsError> {
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

fn sync_directory(directory: &Path) -> Result<(), ResultsError> {
    let sync = || File::open(directory)?.sync_all();
    sync().map_err(|e| ResultsError::file("write", directory, e))
}

fn refuse_or_clear(directory: &Path, existing: Existing) -> Result<(), ResultsError> {
    ResultsWriter::check(directory, existing)?;
    clear_finished(directory)?;
    let working = directory.join(WORKING);
    if working.exists() {
        fs::remove_dir_all(&working).map_err(|e| ResultsError::file("remove", &working, e))?;
    }
    Ok(())
}

/// Removes a finished result, `run.json` first, so that what is left at any time does not read as whole.
fn clear_finished(directory: &Path) -> Result<(), ResultsError> {
    let names = [MANIFEST.to_owned(), PERFORMANCE.to_owned()];
    for path in names.into_iter().chain(Table::ALL.map(table_file)).map(|name| directory.join(name)) {
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(ResultsError::file("remove", &path, e)),
        }
    }
    Ok(())
}
