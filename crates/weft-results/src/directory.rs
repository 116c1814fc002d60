//! A result directory while it is written, and what can be read back from it.
//!
//! ```text
//!  out/run.json            written last: where it is, the result is whole
//!  out/performance.json
//!  out/flows.parquet …
//!  out/.weft/              while the run goes: parts of tables, the request, the last snapshot,
//!                          the result that is being replaced (see `previous`)
//! ```
//! The directory is locked while it is written.

use crate::digest::{Sha, file_sha};
use crate::ending::Ending;
use crate::error::ResultsError;
use crate::live::LiveWriter;
use crate::lock::DirectoryLock;
use crate::manifest::{FORMAT_VERSION, Performance, RunManifest, TableSummary, WEFT_VERSION};
use crate::open_tables::{MergedTable, OpenTables, SavedTables, table_file};
use crate::previous::{self, Snapshot};
use crate::tables::{
    CallRow, FlowRateRow, FlowRow, JobLinkRow, JobRateRow, LinkRow, MessagePieceRow, MessageRow, PacketRow,
    PartRow, QueueRow, RankRow, RateRow, Table,
};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file that makes a directory a result.
pub(crate) const MANIFEST: &str = "run.json";
const PERFORMANCE: &str = "performance.json";
pub(crate) const WORKING: &str = ".weft";
pub(crate) const REQUEST: &str = "request.json";
pub(crate) const SNAPSHOT: &str = "snapshot";
/// The beginning of every snapshot file, whatever its version.
const SNAPSHOT_MAGIC: &[u8] = b"weft-snapshot/";
/// The version of a snapshot file, which follows.
const SNAPSHOT_VERSION: &[u8] = b"21\n";

/// A request, and where the traces that it reads lie on this computer, in its order.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StoredRequest<Q> {
    /// The request.
    pub request: Q,
    /// Paths from the root of the file system, so that the traces are found from any folder.
    pub trace_paths: Vec<PathBuf>,
}

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
            tables: OpenTables::resume(&working, saved)?,
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

    /// Adds a message.
    pub fn message(&mut self, row: MessageRow) -> Result<(), ResultsError> {
        self.tables.messages.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a flow.
    pub fn flow(&mut self, row: FlowRow) -> Result<(), ResultsError> {
        self.tables.flows.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a link.
    pub fn link(&mut self, row: LinkRow) -> Result<(), ResultsError> {
        self.tables.links.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a rank.
    pub fn rank(&mut self, row: RankRow) -> Result<(), ResultsError> {
        self.tables.ranks.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds the calls of an operation by a rank.
    pub fn calls(&mut self, row: CallRow) -> Result<(), ResultsError> {
        self.tables.calls.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a switch or an interface.
    pub fn part(&mut self, row: PartRow) -> Result<(), ResultsError> {
        self.tables.parts.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a piece of a message.
    pub fn piece(&mut self, row: MessagePieceRow) -> Result<(), ResultsError> {
        self.tables.pieces.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a link that a packet has crossed.
    pub fn packet(&mut self, row: PacketRow) -> Result<(), ResultsError> {
        self.tables.packets.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds the traffic of a link in an interval of telemetry.
    pub fn rate(&mut self, row: RateRow) -> Result<(), ResultsError> {
        self.tables.rates.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a queue at the end of an interval of telemetry.
    pub fn queue(&mut self, row: QueueRow) -> Result<(), ResultsError> {
        self.tables.queues.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds what came of a flow in an interval of telemetry.
    pub fn flow_rate(&mut self, row: FlowRateRow) -> Result<(), ResultsError> {
        self.tables.flow_rates.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds what came of a job in an interval of telemetry.
    pub fn job_rate(&mut self, row: JobRateRow) -> Result<(), ResultsError> {
        self.tables.job_rates.as_mut().map_or(Ok(()), |table| table.push(row))
    }

    /// Adds a link as a job used it.
    pub fn job_link(&mut self, row: JobLinkRow) -> Result<(), ResultsError> {
        self.tables.job_links.as_mut().map_or(Ok(()), |table| table.push(row))
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
        let saved =
            postcard::to_stdvec(&self.tables.save()?).expect("rows have no type that postcard refuses");
        let working = self.directory.join(WORKING);
        let sha = Sha::of(&[&self.request.0, &saved, state]);
        let pieces = [SNAPSHOT_MAGIC, SNAPSHOT_VERSION, &sha.0, &saved, state];
        write_whole(&working, &working.join(SNAPSHOT), &pieces)
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
            let target = self.directory.join(table_file(table));
            fs::rename(&path, &target).map_err(|e| ResultsError::file("write", &target, e))?;
            performance.sha256.insert(table_file(table), file_sha(&target)?.to_string());
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

/// The request of the result in `directory`, finished or saved, with the paths of its traces.
///
/// # Errors
/// A directory without a result, and a result that another version of weft wrote or that is damaged.
pub fn read_request<Q: DeserializeOwned>(directory: &Path) -> Result<StoredRequest<Q>, ResultsError> {
    put_back_if_killed(directory);
    let manifest = directory.join(MANIFEST);
    if manifest.is_file() {
        let RequestOf { request } = read_versioned(&manifest, None)?;
        let performance = directory.join(PERFORMANCE);
        let performance: Performance =
            if performance.is_file() { read_json(&performance)? } else { Performance::default() };
        return Ok(StoredRequest { request, trace_paths: performance.trace_paths });
    }
    let path = directory.join(WORKING).join(REQUEST);
    if !path.is_file() {
        return Err(ResultsError::NotAResult(directory.to_owned()));
    }
    read_versioned(&path, Some(1))
}

/// The request in `run.json`.
#[derive(Deserialize)]
struct RequestOf<Q> {
    request: Q,
}

/// `run.json` of the result in `directory`.
///
/// # Errors
/// As of [`read_request`].
pub fn read_manifest<Q, X>(directory: &Path) -> Result<RunManifest<Q, X>, ResultsError>
where
    Q: DeserializeOwned,
    X: DeserializeOwned,
{
    put_back_if_killed(directory);
    let path = directory.join(MANIFEST);
    if !path.is_file() {
        return Err(ResultsError::NotAResult(directory.to_owned()));
    }
    read_versioned(&path, None)
}

/// Makes sure that the files of the result in `directory` are those that weft wrote, as far as it says what
/// it wrote: to be asked before they are compared with others.
///
/// # Errors
/// The first file that is missing, differs or was not written with the others.
pub fn check_files(directory: &Path, tables: &BTreeMap<Table, TableSummary>) -> Result<(), ResultsError> {
    let performance = directory.join(PERFORMANCE);
    // Results of an earlier weft do not say it, and the file may be left out of a copy.
    let known = match performance.is_file() {
        true => read_json::<Performance>(&performance)?.sha256,
        false => BTreeMap::new(),
    };
    for table in Table::ALL {
        let path = directory.join(table_file(table));
        match (tables.contains_key(&table), path.is_file()) {
            (true, false) => return Err(ResultsError::Missing(path)),
            (false, true) => return Err(ResultsError::Foreign(path)),
            _ => {}
        }
    }
    for (name, sha) in known {
        let path = directory.join(&name);
        if !path.is_file() {
            return Err(ResultsError::Missing(path));
        }
        if file_sha(&path)?.to_string() != sha {
            return Err(ResultsError::Changed { path, sha });
        }
    }
    Ok(())
}

/// Puts back what a killed weft was replacing; where that is not possible, the directory reads as it is.
fn put_back_if_killed(directory: &Path) {
    let working = directory.join(WORKING);
    if previous::is_set_aside(directory)
        && let Ok(_lock) = DirectoryLock::take(directory, &working)
    {
        let _ = previous::put_back(directory, Snapshot::Keep);
    }
}

/// An interrupted result has its request twice, and is resumed from the one that the snapshot is of.
fn check_request(directory: &Path, request: &Path) -> Result<(), ResultsError> {
    let manifest = directory.join(MANIFEST);
    if !manifest.is_file() {
        return Ok(());
    }
    let of = |path: &Path| read_json::<RequestOf<serde_json::Value>>(path).map(|file| file.request);
    if of(&manifest)? == of(request)? {
        return Ok(());
    }
    let why = "its request is not the one that was saved".to_owned();
    Err(ResultsError::Damaged { path: manifest, why })
}

/// Who wrote a file, and in which format.
#[derive(Deserialize)]
struct Version {
    format_version: Option<u32>,
    weft_version: Option<String>,
}

/// Reads a file of this format version. A file that does not say its version has version `unsaid`; where
/// that is `None`, it is damaged.
fn read_versioned<T: DeserializeOwned>(path: &Path, unsaid: Option<u32>) -> Result<T, ResultsError> {
    // The version comes first: in another version the rest may be unknown here.
    let Version { format_version, weft_version } = read_json(path)?;
    match format_version.or(unsaid) {
        Some(FORMAT_VERSION) => read_json(path),
        Some(found) => Err(ResultsError::Version { path: path.to_owned(), found, weft_version }),
        None => {
            Err(ResultsError::Damaged { path: path.to_owned(), why: "it has no format_version".to_owned() })
        }
    }
}

/// The tables of a snapshot of this request, and the state of the run that it was saved with.
fn read_snapshot<'a>(
    path: &Path,
    bytes: &'a [u8],
    request: Sha,
) -> Result<(SavedTables, &'a [u8]), ResultsError> {
    let damaged = |why: String| ResultsError::Damaged { path: path.to_owned(), why };
    let rest = bytes.strip_prefix(SNAPSHOT_MAGIC);
    let rest = rest.ok_or_else(|| damaged("it is not a snapshot".to_owned()))?;
    let rest = rest
        .strip_prefix(SNAPSHOT_VERSION)
        .ok_or_else(|| ResultsError::SnapshotVersion { path: path.to_owned() })?;
    let (sha, rest) = rest.split_first_chunk().ok_or_else(|| damaged("it is cut short".to_owned()))?;
    if Sha::of(&[&request.0, rest]).0 != *sha {
        return Err(damaged("its checksum does not fit".to_owned()));
    }
    postcard::take_from_bytes(rest).map_err(|e| damaged(e.to_string()))
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    let text = fs::read_to_string(path).map_err(|e| ResultsError::file("read", path, e))?;
    serde_json::from_str(&text)
        .map_err(|e| ResultsError::Damaged { path: path.to_owned(), why: e.to_string() })
}

fn json(value: &impl Serialize) -> Vec<u8> {
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

fn sync_directory(directory: &Path) -> Result<(), ResultsError> {
    let sync = || File::open(directory)?.sync_all();
    sync().map_err(|e| ResultsError::file("write", directory, e))
}

/// The files of a finished result, `run.json` first, whether they are there or not.
pub(crate) fn result_files(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let names = [MANIFEST.to_owned(), PERFORMANCE.to_owned()];
    names.into_iter().chain(Table::ALL.map(table_file)).map(|name| directory.join(name))
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
