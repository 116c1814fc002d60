//! Opens a trace: the footer is read and checked, operations are found when a cursor asks for them.

use crate::cursor::RankCursor;
use crate::error::TraceError;
use crate::format::{self, Column, GROUP_ROWS};
use crate::header::{FORMAT_VERSION, METADATA_KEY, TraceMetadata, VersionOnly};
use crate::pages::PageIndex;
use crate::source::Source;
use crate::thrift;
use parquet::errors::ParquetError;
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{ColumnChunkMetaData, FooterTail, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use weft_units::{Bytes, RankId};

/// A trace that is open for reading. Clones share the file; threads may read at once.
#[derive(Clone)]
pub struct Trace {
    inner: Arc<Inner>,
}

struct Inner {
    file: String,
    source: Arc<Source>,
    parquet: ParquetMetaData,
    metadata: TraceMetadata,
    /// First row of each rank, and the number of rows at the end.
    rank_starts: Vec<u64>,
    /// First row of each row group, and the number of rows at the end.
    group_starts: Vec<u64>,
    /// Where the pages of each row group are; read when first needed.
    groups: Vec<OnceLock<GroupIndex>>,
    page_rows: usize,
}

/// The page index of each column of a row group; `None` where all values are null.
pub(crate) type GroupIndex = Vec<Option<PageIndex>>;

impl Trace {
    /// Opens a trace file. Only its footer is read.
    pub fn open(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
        let path = path.as_ref();
        let file = path.display().to_string();
        match Source::open(path) {
            Ok(source) => Trace::from_source(file, source),
            Err(source) => Err(TraceError::Read { file, source }),
        }
    }

    /// Opens a trace that lies in memory; `name` stands for the file in errors.
    pub fn from_bytes(name: &str, bytes: impl Into<bytes::Bytes>) -> Result<Trace, TraceError> {
        Trace::from_source(name.to_owned(), Source::Memory(bytes.into()))
    }

    fn from_source(file: String, source: Source) -> Result<Trace, TraceError> {
        let parquet = check_footer(&source)
            .and_then(|()| ParquetMetaDataReader::new().parse_and_finish(&source))
            .map_err(|error| TraceError::NotATrace { file: file.clone(), reason: error.to_string() })?;
        // The version comes first: a later one may have other columns.
        let metadata = read_metadata(&file, &parquet)?;
        check_schema(&file, &parquet)?;
        let header = |reason: String| TraceError::Header { file: file.clone(), reason };
        if metadata.rank_operations.len() != metadata.header.ranks as usize {
            let (listed, ranks) = (metadata.rank_operations.len(), metadata.header.ranks);
            return Err(header(format!("the operations of {listed} ranks are counted, there are {ranks}")));
        }
        let overflow = || header("more operations than can be counted".to_owned());
        let rank_starts = starts(metadata.rank_operations.iter().copied().map(Some)).ok_or_else(overflow)?;
        let group_rows = parquet
            .row_groups()
            .iter()
            .map(|group| u64::try_from(group.num_rows()).ok().filter(|&rows| rows <= GROUP_ROWS as u64));
        let group_starts = starts(group_rows)
            .ok_or_else(|| header(format!("row groups of at most {GROUP_ROWS} rows expected")))?;
        if rank_starts.last() != group_starts.last() {
            return Err(header(format!(
                "the ranks have {} operations, the file has {} rows",
                rank_starts.last().unwrap_or(&0),
                group_starts.last().unwrap_or(&0)
            )));
        }
        let groups = parquet.row_groups().iter().map(|_| OnceLock::new()).collect();
        let page_rows = format::page_rows(&metadata.header);
        let source = Arc::new(source);
        let inner = Inner { file, source, parquet, metadata, rank_starts, group_starts, groups, page_rows };
        Ok(Trace { inner: Arc::new(inner) })
    }

    /// The file's name, for messages.
    pub fn file(&self) -> &str {
        &self.inner.file
    }

    /// Size of the file.
    pub fn file_bytes(&self) -> Bytes {
        Bytes::new(self.inner.source.len())
    }

    /// What the trace says of itself.
    pub fn metadata(&self) -> &TraceMetadata {
        &self.inner.metadata
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.inner.metadata.header.ranks
    }

    /// Number of operations of all ranks.
    pub fn operations(&self) -> u64 {
        self.inner.rank_starts.last().copied().unwrap_or(0)
    }

    /// The operations of a rank from the first.
    pub fn rank(&self, rank: RankId) -> Result<RankCursor, TraceError> {
        self.rank_at(rank, 0)
    }

    /// The operations of a rank from `position` on: what [`RankCursor::position`] gave. A position behind
    /// the last operation gives none.
    pub fn rank_at(&self, rank: RankId, position: u64) -> Result<RankCursor, TraceError> {
        if rank.0 >= self.ranks() {
            let file = self.inner.file.clone();
            return Err(TraceError::NoSuchRank { file, rank: rank.0, ranks: self.ranks() });
        }
        Ok(RankCursor::new(self.clone(), rank, position))
    }

    /// The rows of a rank in the file.
    pub(crate) fn rank_rows(&self, rank: RankId) -> std::ops::Range<u64> {
        self.inner.rank_starts[rank.index()]..self.inner.rank_starts[rank.index() + 1]
    }

    /// The row group of a row, and its rows.
    pub(crate) fn group_of(&self, row: u64) -> (usize, std::ops::Range<u64>) {
        let starts = &self.inner.group_starts;
        let group = starts.partition_point(|&start| start <= row).saturating_sub(1);
        (group, starts[group]..starts[group + 1])
    }

    pub(crate) fn page_rows(&self) -> u64 {
        self.inner.page_rows as u64
    }

    pub(crate) fn source(&self) -> &Arc<Source> {
        &self.inner.source
    }

    pub(crate) fn chunk(&self, group: usize, column: Column) -> &ColumnChunkMetaData {
        self.inner.parquet.row_group(group).column(column as usize)
    }

    /// Where the pages of a row group are.
    pub(crate) fn group_index(&self, group: usize) -> Result<&GroupIndex, TraceError> {
        let cell = &self.inner.groups[group];
        if let Some(index) = cell.get() {
            return Ok(index);
        }
        let rows = self.inner.group_starts[group + 1] - self.inner.group_starts[group];
        let index = Column::ALL
            .into_iter()
            .map(|column| {
                let chunk = self.chunk(group, column);
                let nulls = chunk.statistics().and_then(|statistics| statistics.null_count_opt());
                let needed = matches!(column, Column::Rank | Column::Operation);
                if !needed && nulls.is_some_and(|nulls| nulls == chunk.num_values().cast_unsigned()) {
                    return Ok(None);
                }
                PageIndex::read(self.source(), chunk, rows)
                    .map(Some)
                    .map_err(|error| self.column_error(group, column, error))
            })
            .collect::<Result<_, _>>()?;
        Ok(cell.get_or_init(|| index))
    }

    pub(crate) fn column_error(&self, row_group: usize, column: Column, error: ParquetError) -> TraceError {
        let (file, reason) = (self.inner.file.clone(), error.to_string());
        TraceError::Column { file, row_group, column: column.name(), reason }
    }

    pub(crate) fn operation_error(
        &self,
        rank: RankId,
        position: u64,
        column: &'static str,
        reason: String,
    ) -> TraceError {
        TraceError::Operation { file: self.inner.file.clone(), rank: rank.0, position, column, reason }
    }
}

/// The running sum of `counts`, from 0; `None` where it overflows or a count is missing.
fn starts(counts: impl Iterator<Item = Option<u64>>) -> Option<Vec<u64>> {
    let mut starts = vec![0u64];
    let mut sum = 0u64;
    for count in counts {
        sum = sum.checked_add(count?)?;
        starts.push(sum);
    }
    Some(starts)
}

/// Checks the footer, where it is as long as the file's end says; the library says what is wrong otherwise.
fn check_footer(source: &Source) -> Result<(), ParquetError> {
    let Some(tail) = source.len().checked_sub(FOOTER_SIZE as u64) else { return Ok(()) };
    let length = FooterTail::try_from(&source.get_bytes(tail, FOOTER_SIZE)?[..])?.metadata_length();
    match tail.checked_sub(length as u64) {
        Some(start) => thrift::check(&thrift::FILE_METADATA, &source.get_bytes(start, length)?),
        None => Ok(()),
    }
}

fn read_metadata(file: &str, parquet: &ParquetMetaData) -> Result<TraceMetadata, TraceError> {
    let json = parquet
        .file_metadata()
        .key_value_metadata()
        .and_then(|pairs| pairs.iter().find(|pair| pair.key == METADATA_KEY))
        .and_then(|pair| pair.value.as_deref())
        .ok_or_else(|| TraceError::NotATrace {
            file: file.to_owned(),
            reason: format!("a Parquet file without `{METADATA_KEY}` in its metadata"),
        })?;
    let header = |error: serde_json::Error| TraceError::Header {
        file: file.to_owned(),
        reason: format!("`{METADATA_KEY}`: {error}"),
    };
    let VersionOnly { format_version } = serde_json::from_str(json).map_err(header)?;
    if !(1..=FORMAT_VERSION).contains(&format_version) {
        return Err(TraceError::Version {
            file: file.to_owned(),
            version: format_version,
            known: FORMAT_VERSION,
        });
    }
    serde_json::from_str(json).map_err(header)
}

fn check_schema(file: &str, parquet: &ParquetMetaData) -> Result<(), TraceError> {
    let expected = format::schema();
    let found = parquet.file_metadata().schema_descr().root_schema().get_fields();
    for (index, expected) in expected.get_fields().iter().enumerate() {
        let error = |found: String| TraceError::Schema {
            file: file.to_owned(),
            column: expected.name().to_owned(),
            expected: print(expected),
            found,
        };
        match found.get(index) {
            Some(found) if found == expected => {}
            Some(found) => return Err(error(format!("`{}`", print(found)))),
            None => return Err(error("nothing".to_owned())),
        }
    }
    Ok(())
}

fn print(column: &parquet::schema::types::Type) -> String {
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, column);
    String::from_utf8_lossy(&text).split_whitespace().collect::<Vec<_>>().join(" ")
}
