//! Opens a trace: the footer is read and checked, operations are found when a cursor asks for them. Before
//! the first of them is read, the checksum of all is checked.

use super::checksum::{self, ContentsSum, Footer};
use super::pages::PageIndex;
use super::schema::{self, Column, GROUP_ROWS};
use super::source::Source;
use super::thrift;
use crate::error::TraceError;
use crate::header::{FORMAT_VERSION, METADATA_KEY, TraceMetadata, VersionOnly};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use weft_trace::op::StreamId;
use weft_units::RankId;

/// A trace that is open for reading. Clones share the file; threads may read at once.
#[derive(Clone)]
pub(crate) struct WeftReader {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) file: String,
    pub(super) source: Arc<Source>,
    parquet: ParquetMetaData,
    pub(super) metadata: TraceMetadata,
    /// First row of each rank, and the number of rows at the end.
    pub(super) rank_starts: Vec<u64>,
    /// First row of each row group, and the number of rows at the end.
    group_starts: Vec<u64>,
    /// The page index of each row group; read when first needed.
    groups: Vec<OnceLock<GroupIndex>>,
    page_rows: usize,
    /// Number of the columns that it has; files of earlier builds lack the last ones.
    columns: usize,
    /// `None`: a trace of an earlier weft.
    contents_sum: Option<ContentsSum>,
    /// Whether the contents fit their checksum; found out when a row is first needed.
    contents: OnceLock<Result<(), String>>,
}

/// The page index of each column of a row group; `None` where all values are null.
pub(crate) type GroupIndex = Vec<Option<PageIndex>>;

impl WeftReader {
    /// Opens a trace file. Only its footer is read.
    pub(crate) fn open(path: &Path) -> Result<WeftReader, TraceError> {
        WeftReader::open_as(path.display().to_string(), path)
    }

    /// Opens a trace file that has the name `file` in errors.
    pub(crate) fn open_as(file: String, path: &Path) -> Result<WeftReader, TraceError> {
        match Source::open(path) {
            Ok(source) => WeftReader::from_source(file, source),
            Err(source) => Err(TraceError::Read { file, source }),
        }
    }

    /// Opens a trace that lies in memory; `name` stands for the file in errors.
    pub(crate) fn from_bytes(name: &str, bytes: bytes::Bytes) -> Result<WeftReader, TraceError> {
        WeftReader::from_source(name.to_owned(), Source::Memory(bytes))
    }

    fn from_source(file: String, source: Source) -> Result<WeftReader, TraceError> {
        let not_a_trace =
            |error: ParquetError| TraceError::NotATrace { file: file.clone(), reason: error.to_string() };
        let footer = check_footer(&source).map_err(not_a_trace)?;
        let parquet = ParquetMetaDataReader::new().parse_and_finish(&source).map_err(not_a_trace)?;
        let contents_sum = footer.map_or(Ok(None), |footer| footer.check());
        let contents_sum = contents_sum
            .map_err(|reason| TraceError::Damaged { file: file.clone(), reason: reason.to_owned() })?;
        // The version comes first: a later one may have other columns.
        let metadata = read_metadata(&file, &parquet)?;
        let columns = check_schema(&file, &parquet)?;
        let header = |reason: String| TraceError::Header { file: file.clone(), reason };
        if metadata.rank_operations.len() != metadata.header.ranks as usize {
            let (listed, ranks) = (metadata.rank_operations.len(), metadata.header.ranks);
            return Err(header(format!("the operations of {listed} ranks are counted, there are {ranks}")));
        }
        check_streams(&metadata).map_err(header)?;
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
        let page_rows = schema::page_rows(&metadata.header);
        let source = Arc::new(source);
        let inner = Inner {
            file,
            source,
            parquet,
            metadata,
            rank_starts,
            group_starts,
            groups,
            page_rows,
            columns,
            contents_sum,
            contents: OnceLock::new(),
        };
        Ok(WeftReader { inner: Arc::new(inner) })
    }

    /// Number of ranks.
    pub(crate) fn ranks(&self) -> u32 {
        self.inner.metadata.header.ranks
    }

    /// The rows of a rank in the file.
    pub(crate) fn rank_rows(&self, rank: RankId) -> std::ops::Range<u64> {
        self.inner.rank_starts[rank.index()]..self.inner.rank_starts[rank.index() + 1]
    }

    /// The rows of a stream of a rank in the file.
    pub(crate) fn stream_rows(&self, rank: RankId, stream: StreamId) -> std::ops::Range<u64> {
        let rows = self.rank_rows(rank);
        let Some(streams) = self.inner.metadata.rank_streams.get(rank.index()) else { return rows };
        let before: u64 = streams[..stream.index()].iter().map(|stream| stream.operations).sum();
        let start = rows.start + before;
        start..start + streams[stream.index()].operations
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

    /// The page index of a row group.
    pub(crate) fn group_index(&self, group: usize) -> Result<&GroupIndex, TraceError> {
        let cell = &self.inner.groups[group];
        if let Some(index) = cell.get() {
            return Ok(index);
        }
        self.check_contents()?;
        let rows = self.inner.group_starts[group + 1] - self.inner.group_starts[group];
        let index = Column::ALL
            .into_iter()
            .map(|column| {
                // Added since the file was written: null.
                if column as usize >= self.inner.columns {
                    return Ok(None);
                }
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

    /// Makes sure, once, that the rows are those that were written.
    fn check_contents(&self) -> Result<(), TraceError> {
        let Some(sum) = &self.inner.contents_sum else { return Ok(()) };
        let checked = self.inner.contents.get_or_init(|| checksum::check_contents(self.source(), sum));
        let damaged = |reason| TraceError::Damaged { file: self.inner.file.clone(), reason };
        checked.clone().map_err(damaged)
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

/// The footer, checked as far as the library trusts it; `None`: the library says what is wrong.
fn check_footer(source: &Source) -> Result<Option<Footer>, ParquetError> {
    let footer = Footer::read(source)?;
    if let Some(footer) = &footer {
        thrift::check(&thrift::FILE_METADATA, &footer.bytes)?;
    }
    Ok(footer)
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

/// Checks that the operations of the streams of each rank are those of the rank.
fn check_streams(metadata: &TraceMetadata) -> Result<(), String> {
    let TraceMetadata { rank_streams, rank_operations, header, .. } = metadata;
    if rank_streams.is_empty() {
        return Ok(());
    }
    if rank_streams.len() != header.ranks as usize {
        return Err(format!(
            "the streams of {} ranks are listed, there are {}",
            rank_streams.len(),
            header.ranks
        ));
    }
    for (rank, (streams, operations)) in rank_streams.iter().zip(rank_operations).enumerate() {
        let mut counts = streams.iter().map(|stream| stream.operations);
        let sum = counts.try_fold(0u64, u64::checked_add);
        if sum != Some(*operations) || streams.is_empty() {
            return Err(format!("the streams of rank {rank} do not have its {operations} operations"));
        }
        let cores = streams.iter().map(|stream| stream.core);
        if streams[0].core != 0 || cores.max().is_some_and(|core| core as usize >= streams.len()) {
            return Err(format!("the streams of rank {rank} sit on cores that are not numbered from 0 on"));
        }
    }
    Ok(())
}

/// Checks the columns; those that were added to the format may be missing. Returns how many of them it has.
fn check_schema(file: &str, parquet: &ParquetMetaData) -> Result<usize, TraceError> {
    let expected = schema::schema();
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
            None if index >= Column::FIRST_ADDED as usize => return Ok(index),
            None => return Err(error("nothing".to_owned())),
        }
    }
    Ok(Column::ALL.len())
}

fn print(column: &parquet::schema::types::Type) -> String {
    let mut text = Vec::new();
    parquet::schema::printer::print_schema(&mut text, column);
    String::from_utf8_lossy(&text).split_whitespace().collect::<Vec<_>>().join(" ")
}
