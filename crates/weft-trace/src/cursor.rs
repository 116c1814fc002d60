//! A rank's operations one after the other, decoded a page at a time.

use crate::error::TraceError;
use crate::format::Column;
use crate::kind::Kind;
use crate::op::Op;
use crate::reader::{GroupIndex, Trace};
use crate::row::Row;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use std::borrow::Cow;
use std::ops::Range;
use weft_units::RankId;

/// Entries of lists and bytes of texts that a cursor holds per operation on average, before it stops to
/// decode further: as much as the operations themselves take.
const ENTRIES_PER_ROW: usize = 16;

/// The operations of a rank in their order. Holds a page of them at most; an error ends it.
pub struct RankCursor {
    trace: Trace,
    rank: RankId,
    /// Position of the next operation.
    position: u64,
    chunk: std::vec::IntoIter<Op>,
    failed: bool,
}

impl RankCursor {
    pub(crate) fn new(trace: Trace, rank: RankId, position: u64) -> RankCursor {
        RankCursor { trace, rank, position, chunk: Vec::new().into_iter(), failed: false }
    }

    /// The rank.
    pub fn rank(&self) -> RankId {
        self.rank
    }

    /// How many operations of the rank lie before the next one. [`Trace::rank_at`] continues there.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Decodes the next chunk. It is empty at the end of the rank only.
    fn fill(&mut self) -> Result<(), TraceError> {
        let rank_rows = self.trace.rank_rows(self.rank);
        let Some(row) = rank_rows.start.checked_add(self.position).filter(|row| rank_rows.contains(row))
        else {
            self.chunk = Vec::new().into_iter();
            return Ok(());
        };
        let (group, group_rows) = self.trace.group_of(row);
        let page = self.trace.page_rows();
        let from = row - group_rows.start;
        let to = ((from / page + 1) * page).min(rank_rows.end.min(group_rows.end) - group_rows.start);
        self.chunk = self.decode(group, from..to)?.into_iter();
        Ok(())
    }

    fn decode(&self, group: usize, rows: Range<u64>) -> Result<Vec<Op>, TraceError> {
        let columns = Columns {
            trace: &self.trace,
            index: self.trace.group_index(group)?,
            group,
            entries: self.trace.page_rows() as usize * ENTRIES_PER_ROW,
            rows: rows.clone(),
        };
        let len = columns.row_count();
        let mut rows = Vec::with_capacity(len);
        rows.extend(self.kinds(&columns)?.into_iter().map(Row::empty));
        // Column by column: most rows have values in few of them, and no program needs all.
        let mut own = vec![false; len];
        let rank = self.rank.0.cast_signed();
        columns.scalars::<Int32Type>(Column::Rank, |offset, found| own[offset] = found == rank)?;
        columns.scalars::<Int64Type>(Column::SpanPs, |row, span| {
            rows[row].span_ps = Some(span.cast_unsigned());
        })?;
        columns.scalars::<Int32Type>(Column::Peer, |row, peer| {
            rows[row].peer = Some(peer.cast_unsigned());
        })?;
        columns.scalars::<Int32Type>(Column::Tag, |row, tag| rows[row].tag = Some(tag))?;
        columns.scalars::<Int64Type>(Column::Comm, |row, comm| {
            rows[row].comm = Some(comm.cast_unsigned());
        })?;
        columns.scalars::<Int64Type>(Column::Bytes, |row, bytes| {
            rows[row].bytes = Some(bytes.cast_unsigned());
        })?;
        columns.scalars::<Int64Type>(Column::ReceiveBytes, |row, bytes| {
            rows[row].receive_bytes = Some(bytes.cast_unsigned());
        })?;
        columns.scalars::<Int32Type>(Column::ElementBytes, |row, bytes| {
            rows[row].element_bytes = Some(bytes.cast_unsigned());
        })?;
        columns.scalars::<Int32Type>(Column::Request, |row, request| {
            rows[row].request = Some(request.cast_unsigned());
        })?;
        columns.scalars::<Int32Type>(Column::MatchedPeer, |row, peer| {
            rows[row].matched_peer = Some(peer.cast_unsigned());
        })?;
        columns.scalars::<Int32Type>(Column::MatchedTag, |row, tag| rows[row].matched_tag = Some(tag))?;
        columns.scalars::<Int32Type>(Column::Completed, |row, index| {
            rows[row].completed = Some(index.cast_unsigned());
        })?;
        columns.scalars::<Int64Type>(Column::Window, |row, window| {
            rows[row].window = Some(window.cast_unsigned());
        })?;
        let mut texts = Vec::new();
        columns.scalars::<ByteArrayType>(Column::Text, |row, text| texts.push((row, text)))?;
        for (row, text) in &texts {
            let text = std::str::from_utf8(text.data())
                .map_err(|error| self.fault(*row, (Column::Text, error.to_string())))?;
            rows[*row].text = Some(Cow::Borrowed(text));
        }
        let sizes = |values: &[i64]| values.iter().copied().map(i64::cast_unsigned).collect();
        // Lists may be read for fewer rows than asked for.
        let complete = [
            columns.lists::<Int32Type>(Column::Requests, |row, requests| {
                rows[row].requests = requests.iter().copied().map(i32::cast_unsigned).collect();
            })?,
            columns.lists::<Int64Type>(Column::SendCounts, |row, counts| {
                rows[row].send_counts = sizes(counts);
            })?,
            columns.lists::<Int64Type>(Column::ReceiveCounts, |row, counts| {
                rows[row].receive_counts = sizes(counts);
            })?,
            columns.lists::<Int64Type>(Column::Members, |row, members| {
                rows[row].members = members.iter().copied().collect();
            })?,
        ];
        let complete = complete.into_iter().fold(len, usize::min);
        let (mut ops, mut entries) = (Vec::with_capacity(complete), 0);
        for (offset, row) in rows[..complete].iter().enumerate() {
            if !own[offset] {
                let reason = format!("another rank among the rows of rank {}", self.rank);
                return Err(self.fault(offset, (Column::Rank, reason)));
            }
            row.check(self.trace.ranks()).map_err(|fault| self.fault(offset, fault))?;
            entries += row.entries();
            ops.push(row.to_op().map_err(|fault| self.fault(offset, fault))?);
            if entries > columns.entries {
                break;
            }
        }
        Ok(ops)
    }

    /// The kinds of the rows, by their names.
    fn kinds(&self, columns: &Columns<'_>) -> Result<Vec<Kind>, TraceError> {
        let mut kinds = vec![Err(ByteArray::new()); columns.row_count()];
        // Names lie in the dictionary of the page: where one lies says what it is.
        let mut known: Vec<(*const u8, usize, Kind)> = Vec::new();
        columns.scalars::<ByteArrayType>(Column::Operation, |row, name| {
            let (begin, len) = (name.data().as_ptr(), name.len());
            let seen = known.iter().find(|other| (other.0, other.1) == (begin, len));
            let kind = seen.map(|(.., kind)| *kind).or_else(|| Kind::from_name(name.data()));
            if let (None, Some(kind)) = (seen, kind) {
                known.push((begin, len, kind));
            }
            kinds[row] = kind.ok_or(name);
        })?;
        let kinds = kinds.into_iter().enumerate().map(|(row, kind)| {
            kind.map_err(|name| {
                let name = if name.is_empty() { &[][..] } else { name.data() };
                let name = String::from_utf8_lossy(name.get(..40).unwrap_or(name)).into_owned();
                let reason = format!("no operation is called `{name}`; use the weft that wrote the file");
                self.fault(row, (Column::Operation, reason))
            })
        });
        kinds.collect()
    }

    /// What is wrong with a row of those that come next.
    fn fault(&self, row: usize, (column, reason): (Column, String)) -> TraceError {
        self.trace.operation_error(self.rank, self.position + row as u64, column.name(), reason)
    }
}

impl Iterator for RankCursor {
    type Item = Result<Op, TraceError>;

    fn next(&mut self) -> Option<Result<Op, TraceError>> {
        if self.chunk.len() == 0 {
            if self.failed {
                return None;
            }
            if let Err(error) = self.fill() {
                self.failed = true;
                return Some(Err(error));
            }
        }
        let op = self.chunk.next()?;
        self.position += 1;
        Some(Ok(op))
    }
}

/// Some rows of a row group, from which columns are read.
struct Columns<'a> {
    trace: &'a Trace,
    index: &'a GroupIndex,
    group: usize,
    rows: Range<u64>,
    /// Entries after which lists are read no further.
    entries: usize,
}

impl Columns<'_> {
    /// Hands on the values of a column without lists, each with its row.
    fn scalars<T: DataType>(&self, column: Column, each: impl FnMut(usize, T::T)) -> Result<(), TraceError> {
        self.read_scalars::<T>(column, each)
            .map_err(|error| self.trace.column_error(self.group, column, error))
    }

    fn read_scalars<T: DataType>(
        &self,
        column: Column,
        mut each: impl FnMut(usize, T::T),
    ) -> ParquetResult<()> {
        let rows = self.row_count();
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let Some(mut reader) = self.reader::<T>(column)? else { return Ok(()) };
        let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
        check_rows(read, rows)?;
        if values.len() == rows {
            values.into_iter().enumerate().for_each(|(row, value)| each(row, value));
            return Ok(());
        }
        let present = levels.iter().enumerate().filter(|(_, level)| **level > 0);
        present.zip(values).for_each(|((row, _), value)| each(row, value));
        Ok(())
    }

    /// Hands on the lists of a column that are not empty, each with its row. Returns for how many rows:
    /// fewer than asked for where they are long.
    fn lists<T: DataType>(
        &self,
        column: Column,
        each: impl FnMut(usize, &[T::T]),
    ) -> Result<usize, TraceError> {
        self.read_lists::<T>(column, each).map_err(|error| self.trace.column_error(self.group, column, error))
    }

    fn read_lists<T: DataType>(
        &self,
        column: Column,
        mut each: impl FnMut(usize, &[T::T]),
    ) -> ParquetResult<usize> {
        /// Rows after which the number of entries is looked at.
        const STEP: usize = 64;
        /// The definition level of an entry; below it lie the empty list and null.
        const ENTRY: i16 = 2;
        let rows = self.row_count();
        let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let Some(mut reader) = self.reader::<T>(column)? else { return Ok(rows) };
        let mut read = 0;
        while read < rows && values.len() <= self.entries {
            let step = STEP.min(rows - read);
            let (records, ..) =
                reader.read_records(step, Some(&mut definition), Some(&mut repetition), &mut values)?;
            check_rows(records, step)?;
            read += records;
        }
        // A row begins where nothing is repeated.
        let (mut row, mut rest) = (0, &values[..]);
        let levels: Vec<_> = definition.into_iter().zip(repetition).collect();
        for list in levels.chunk_by(|_, (_, repetition)| *repetition > 0) {
            let entries = list.iter().filter(|(definition, _)| *definition >= ENTRY).count();
            let (values, after) = rest.split_at(entries.min(rest.len()));
            if row < rows && !values.is_empty() {
                each(row, values);
            }
            (row, rest) = (row + 1, after);
        }
        Ok(read)
    }

    /// A reader that stands at the first of the rows; `None` where all values are null.
    fn reader<T: DataType>(&self, column: Column) -> ParquetResult<Option<ColumnReaderImpl<T>>> {
        let Some(index) = &self.index[column as usize] else { return Ok(None) };
        let chunk = self.trace.chunk(self.group, column);
        let (pages, before) = index.pages(self.trace.source(), chunk, self.rows.start, self.rows.end)?;
        let mut reader = ColumnReaderImpl::<T>::new(chunk.column_descr_ptr(), Box::new(pages));
        check_rows(reader.skip_records(before)?, before)?;
        Ok(Some(reader))
    }

    fn row_count(&self) -> usize {
        (self.rows.end - self.rows.start) as usize
    }
}

fn check_rows(read: usize, expected: usize) -> ParquetResult<()> {
    match read == expected {
        true => Ok(()),
        false => Err(ParquetError::General(format!("{read} rows where there should be {expected}"))),
    }
}
