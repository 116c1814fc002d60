//! One table on its way to a file.
//!
//! ```text
//!  push ──► rows of the open group ──(epoch)──► row group in the open part ──(save)──► closed part
//!                                                                                         │ finish
//!                                                NAME.parquet ◄── column chunks, copied ──┘
//! ```
//!
//! Where a row group ends depends on rows and virtual epochs alone: rows of the open group are saved as
//! rows. So the file is the same to the byte however often the run was saved and resumed.

use crate::digest::{Sha, file_sha};
use crate::error::ResultsError;
use crate::live::LiveTable;
use crate::manifest::TableSummary;
use crate::row::Row;
use crate::tables::TableRow;
use parquet::basic::Compression;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::TypePtr;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use weft_units::Time;

/// A row group ends at the first epoch at which it has at least this number of rows.
pub const GROUP_ROWS: usize = 64 << 10;
/// A row group ends at this number of rows even between epochs: tables written at the end of a run have no
/// epochs, and a machine may have millions of links.
pub const GROUP_ROWS_LIMIT: usize = 1 << 20;

/// A part that is whole on the disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct TablePart {
    /// File name in the working folder.
    name: String,
    /// The length of the file.
    bytes: u64,
    /// The checksum of the file; taken when the table is saved.
    sha: Option<Sha>,
}

/// All that a table needs to continue after a resume.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SavedTable {
    /// The name: not all tables may be known to who resumes.
    pub(crate) table: String,
    /// The version of its columns.
    pub(crate) version: u32,
    /// A [`TableState`].
    state: Vec<u8>,
}

/// A table at a virtual time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(bound = "R: TableRow")]
struct TableState<R> {
    parts: Vec<TablePart>,
    /// The open row group.
    group: Vec<R>,
    rows: u64,
}

/// Writes the rows of one table into parts in a working folder, and merges these into one file.
pub(crate) struct TableWriter<R: TableRow> {
    working: PathBuf,
    schema: TypePtr,
    group: Vec<R>,
    rows: u64,
    last: Option<(u32, Time, u64, u64)>,
    parts: Vec<TablePart>,
    open: Option<OpenPart>,
}

/// The writer of a table, whatever its rows are.
pub(crate) trait AnyTableWriter: Any {
    /// A virtual epoch has passed.
    fn epoch(&mut self) -> Result<(), ResultsError>;
    /// Closes the open part, so that it is whole on the disk, and returns what a resume needs.
    fn save(&mut self) -> Result<SavedTable, ResultsError>;
    /// The files of the table for a reader: all parts, and one of the rows of the open group.
    fn publish(&mut self, generation: u64) -> Result<LiveTable, ResultsError>;
    /// Merges all parts into a file at `path`, which is whole on the disk afterwards.
    fn merge(self: Box<Self>, path: &Path) -> Result<TableSummary, ResultsError>;
}

struct OpenPart {
    name: String,
    path: PathBuf,
    writer: SerializedFileWriter<BufWriter<File>>,
}

impl<R: TableRow> TableWriter<R> {
    /// An empty table whose parts go into the folder `working`, which must exist.
    pub(crate) fn new(working: &Path) -> TableWriter<R> {
        TableWriter {
            working: working.to_owned(),
            schema: R::schema(),
            group: Vec::new(),
            rows: 0,
            last: None,
            parts: Vec::new(),
            open: None,
        }
    }

    /// The table as it was saved. Its parts must still be what they were; later ones are written over.
    pub(crate) fn resume(working: &Path, saved: &SavedTable) -> Result<TableWriter<R>, ResultsError> {
        let state = postcard::from_bytes(&saved.state).map_err(|e| ResultsError::Damaged {
            path: working.to_owned(),
            why: format!("the saved rows of the table {}: {e}", R::TABLE),
        })?;
        let TableState { parts, group, rows } = state;
        for part in &parts {
            let path = working.join(&part.name);
            let bytes = path.metadata().map_err(|e| ResultsError::file("read", &path, e))?.len();
            if bytes != part.bytes {
                let why = format!("it has {bytes} bytes instead of {}", part.bytes);
                return Err(ResultsError::Damaged { path, why });
            }
            if part.sha != Some(file_sha(&path)?) {
                let why = "its checksum does not fit".to_owned();
                return Err(ResultsError::Damaged { path, why });
            }
        }
        let last = group.last().map(R::order);
        Ok(TableWriter { group, rows, last, parts, ..TableWriter::new(working) })
    }

    /// Adds a row. Rows must come in the order of [`Row::order`].
    pub(crate) fn push(&mut self, row: R) -> Result<(), ResultsError> {
        let order = row.order();
        debug_assert!(self.last.is_none_or(|last| last <= order), "rows of {} come in order", R::TABLE);
        self.last = Some(order);
        self.rows += 1;
        self.group.push(row);
        if self.group.len() >= GROUP_ROWS_LIMIT { self.end_group() } else { Ok(()) }
    }

    /// Encodes the open group's rows as a row group of the open part.
    fn end_group(&mut self) -> Result<(), ResultsError> {
        let mut open = match self.open.take() {
            Some(open) => open,
            None => {
                let name = format!("{}-{:05}.parquet", R::TABLE, self.parts.len());
                let path = self.working.join(&name);
                let file = File::create(&path).map_err(|e| ResultsError::file("write", &path, e))?;
                let writer = self.file(file).map_err(|e| ResultsError::parquet("write", &path, e))?;
                OpenPart { name, path, writer }
            }
        };
        let written = write_group(&mut open.writer, &self.group);
        let written = written.map_err(|e| ResultsError::parquet("write", &open.path, e));
        self.open = Some(open);
        written?;
        self.group.clear();
        Ok(())
    }

    /// The writer of a file of the table.
    fn file(&self, file: File) -> Result<SerializedFileWriter<BufWriter<File>>, ParquetError> {
        SerializedFileWriter::new(BufWriter::new(file), self.schema.clone(), properties::<R>().into())
    }

    fn close_part(&mut self) -> Result<(), ResultsError> {
        let Some(OpenPart { name, path, writer }) = self.open.take() else { return Ok(()) };
        let buffered = writer.into_inner().map_err(|e| ResultsError::parquet("write", &path, e))?;
        let bytes = sync(&path, buffered)?;
        self.parts.push(TablePart { name, bytes, sha: None });
        Ok(())
    }
}

impl<R: TableRow> AnyTableWriter for TableWriter<R> {
    fn epoch(&mut self) -> Result<(), ResultsError> {
        if self.group.len() >= GROUP_ROWS { self.end_group() } else { Ok(()) }
    }

    fn save(&mut self) -> Result<SavedTable, ResultsError> {
        self.close_part()?;
        for part in self.parts.iter_mut().filter(|part| part.sha.is_none()) {
            part.sha = Some(file_sha(&self.working.join(&part.name))?);
        }
        let state = TableState { parts: self.parts.clone(), group: self.group.clone(), rows: self.rows };
        let state = postcard::to_stdvec(&state).expect("rows have no type that postcard refuses");
        Ok(SavedTable { table: R::TABLE.name().to_owned(), version: R::VERSION, state })
    }

    fn publish(&mut self, generation: u64) -> Result<LiveTable, ResultsError> {
        self.close_part()?;
        let mut files: Vec<String> = self.parts.iter().map(|part| part.name.clone()).collect();
        let name = |generation| format!("{}-live-{generation}.parquet", R::TABLE);
        if !self.group.is_empty() {
            let path = self.working.join(name(generation));
            let file = File::create(&path).map_err(|e| ResultsError::file("write", &path, e))?;
            let written = self.file(file).and_then(|mut writer| {
                write_group(&mut writer, &self.group)?;
                writer.close()
            });
            written.map_err(|e| ResultsError::parquet("write", &path, e))?;
            files.push(name(generation));
        }
        // A reader may still be at the last one.
        if let Some(old) = generation.checked_sub(2) {
            let _ = std::fs::remove_file(self.working.join(name(old)));
        }
        Ok(LiveTable { version: R::VERSION, rows: self.rows, files })
    }

    fn merge(mut self: Box<Self>, path: &Path) -> Result<TableSummary, ResultsError> {
        if !self.group.is_empty() {
            self.end_group()?;
        }
        self.close_part()?;
        let write = |e| ResultsError::parquet("write", path, e);
        let file = File::create(path).map_err(|e| ResultsError::file("write", path, e))?;
        let mut merged = self.file(file).map_err(write)?;
        for part in &self.parts {
            let part_path = self.working.join(&part.name);
            let read = |e| ResultsError::parquet("read", &part_path, e);
            let part = File::open(&part_path).map_err(|e| ResultsError::file("read", &part_path, e))?;
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&part).map_err(read)?;
            for group in metadata.row_groups() {
                let mut copy = merged.next_row_group().map_err(write)?;
                for column in group.columns() {
                    let chunk = ColumnCloseResult {
                        bytes_written: column.compressed_size() as u64,
                        rows_written: group.num_rows() as u64,
                        metadata: column.clone(),
                        bloom_filter: None,
                        column_index: None,
                        offset_index: None,
                    };
                    copy.append_column(&part, chunk).map_err(write)?;
                }
                copy.close().map_err(write)?;
            }
        }
        sync(path, merged.into_inner().map_err(write)?)?;
        Ok(TableSummary { version: R::VERSION, rows: self.rows })
    }
}

/// Writes rows as a row group.
fn write_group<R: Row>(
    writer: &mut SerializedFileWriter<BufWriter<File>>,
    rows: &[R],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    R::write(rows, &mut group)?;
    group.close()?;
    Ok(())
}

/// Brings all of a file to the disk; returns its length.
fn sync(path: &Path, buffered: BufWriter<File>) -> Result<u64, ResultsError> {
    let file = buffered.into_inner().map_err(|e| ResultsError::file("write", path, e.into_error()))?;
    file.sync_all().map_err(|e| ResultsError::file("write", path, e))?;
    Ok(file.metadata().map_err(|e| ResultsError::file("write", path, e))?.len())
}

/// How every file of a table is written. There is no page index: its offsets would have to be
/// rewritten when column chunks are copied.
fn properties<R: TableRow>() -> WriterProperties {
    let entry = |key: &str, value: String| KeyValue::new(format!("weft.{key}"), value);
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_created_by(concat!("weft ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![
            entry("table", R::TABLE.name().to_owned()),
            entry("version", R::VERSION.to_string()),
        ]))
        .build()
}
