//! A finished result that is read: its manifest, and the rows of its tables.

use crate::error::ResultsError;
use crate::files::{MANIFEST, PERFORMANCE, WORKING, read_json};
use crate::lock::DirectoryLock;
use crate::manifest::{Performance, RunManifest};
use crate::reading::read_manifest;
use crate::row::{Row, Unreadable};
use crate::tables::{Table, TableRow};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A finished result. What was asked for is JSON here: this crate knows no request.
#[derive(Clone)]
pub struct StoredResult {
    /// The directory.
    pub directory: PathBuf,
    /// `run.json`.
    pub manifest: RunManifest<Value, Value>,
    /// The files of its tables while it is still being written; `None`: it is whole.
    pub(crate) live: Option<BTreeMap<Table, Vec<PathBuf>>>,
}

/// A run of a result, as its row of `run.json` describes it.
#[derive(Clone, Debug)]
pub struct RunOf<'a> {
    /// The number in the column `run`.
    pub run: u32,
    /// The row: what was measured. Seeds share one; of a run with several it is the first.
    pub row: &'a Value,
    /// The number of seeds of the row, and which of them this is, from 0 on.
    pub seed: (u32, u32),
}

impl StoredResult {
    /// The result in `directory`.
    ///
    /// # Errors
    /// A directory without a result, one that is still being written, and results of other versions.
    pub fn open(directory: &Path) -> Result<StoredResult, ResultsError> {
        if !directory.join(MANIFEST).is_file() && directory.join(WORKING).is_dir() {
            let is_locked = DirectoryLock::check(directory, &directory.join(WORKING)).is_err();
            let why = if is_locked { ResultsError::StillWritten } else { ResultsError::Killed };
            return Err(why(directory.to_owned()));
        }
        Ok(StoredResult { directory: directory.to_owned(), manifest: read_manifest(directory)?, live: None })
    }

    /// The directory's own name, for legends.
    pub fn name(&self) -> String {
        let path = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
        path.file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
    }

    /// `performance.json`; `None` where it was left out of a copy.
    pub fn performance(&self) -> Option<Performance> {
        read_json(&self.directory.join(PERFORMANCE)).ok()
    }

    /// The name of the machine.
    pub fn machine(&self) -> &str {
        self.manifest.request["machine"]["name"].as_str().unwrap_or("machine")
    }

    /// The values of the machine that `--set` has changed, such as `topology.k=4`.
    pub fn changes(&self) -> Vec<&str> {
        let sets = self.manifest.request["machine"]["sets"].as_array();
        sets.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The command that wrote it, such as `traffic`.
    pub fn command(&self) -> &str {
        self.manifest.request["command"].as_str().unwrap_or("weft")
    }

    /// Whether it has a table.
    pub fn has(&self, table: Table) -> bool {
        self.manifest.tables.contains_key(&table)
    }

    /// The rows of a table; 0 where it is not there.
    pub fn rows_of(&self, table: Table) -> u64 {
        self.manifest.tables.get(&table).map_or(0, |summary| summary.rows)
    }

    /// The runs, in order.
    pub fn runs(&self) -> Vec<RunOf<'_>> {
        let of = |(number, row): (usize, &'_ Value)| {
            let first = row["run"].as_u64().map_or(number as u32, |run| run as u32);
            let seeds = row["seeds"].as_u64().unwrap_or(1).max(1) as u32;
            (first, seeds)
        };
        let rows = self.manifest.rows.iter().enumerate();
        let each = rows.flat_map(|(number, row)| {
            let (first, seeds) = of((number, row));
            (0..seeds).map(move |seed| RunOf { run: first + seed, row, seed: (seeds, seed) })
        });
        // The groups of a scenario are rows of one run.
        let mut runs: Vec<RunOf<'_>> = each.collect();
        runs.dedup_by_key(|run| run.run);
        runs
    }

    /// Reads a table row by row, in the order of the file; the memory does not grow with it.
    ///
    /// # Errors
    /// A table that is not there, with the option that writes it, of another version, or damaged.
    pub fn visit<R: TableRow>(&self, mut visit: impl FnMut(R)) -> Result<(), ResultsError> {
        let table = R::TABLE;
        if !self.has(table) {
            let (directory, name) = (self.directory.clone(), table.name());
            return Err(match self.live {
                Some(_) => ResultsError::NotYet { directory, table: name },
                None => ResultsError::NoTable { directory, table: name, mend: R::OPTIONS },
            });
        }
        let whole = || vec![self.directory.join(table.file())];
        let files =
            self.live.as_ref().map_or_else(whole, |live| live.get(&table).cloned().unwrap_or_default());
        files.iter().try_for_each(|path| visit_file(path, &mut visit))
    }
}

/// Reads a file of rows in its order.
fn visit_file<R: Row>(path: &Path, visit: &mut impl FnMut(R)) -> Result<(), ResultsError> {
    if !path.is_file() {
        return Err(ResultsError::Missing(path.to_owned()));
    }
    let read = |e| ResultsError::parquet("read", path, e);
    let file = File::open(path).map_err(|e| ResultsError::file("read", path, e))?;
    let reader = SerializedFileReader::new(file).map_err(read)?;
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let version = metadata.into_iter().flatten().find(|entry| entry.key == "weft.version");
    let found = version.and_then(|entry| entry.value.clone()).unwrap_or_else(|| "no".to_owned());
    if found != R::VERSION.to_string() {
        return Err(ResultsError::TableVersion { path: path.to_owned(), found, wanted: R::VERSION });
    }
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(read)?;
        R::visit(&*group, visit).map_err(|unreadable| match unreadable {
            Unreadable::File(error) => read(error),
            Unreadable::Column(column) => ResultsError::Damaged {
                path: path.to_owned(),
                why: format!("the column {column} is missing or of another type"),
            },
        })?;
    }
    Ok(())
}

impl RunOf<'_> {
    /// A short description, such as `4096 B, load 0.5, seed 2`; empty where there is nothing to tell apart.
    pub fn label(&self) -> String {
        let mut words = Vec::new();
        if let Some(bytes) = self.row["size_bytes"].as_u64() {
            words.push(format!("{bytes} B"));
        }
        if let Some(load) = self.row["offered_load"].as_f64() {
            words.push(format!("load {load}"));
        }
        if let Some(way) = self.row["congestion"].as_str() {
            words.push(format!("congestion {way}"));
        }
        if let (seeds @ 2.., seed) = self.seed {
            words.push(format!("seed {} of {seeds}", seed + 1));
        }
        words.join(", ")
    }
}
