//! A rank's operations one after the other, decoded a page at a time.

use crate::error::TraceError;
use crate::format::Column;
use crate::kind::Kind;
use crate::op::Op;
use crate::reader::{GroupIndex, Trace};
use crate::row::Row;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArrayType, DataType, Int32Type, Int64Type};
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
        let mut rank = columns.scalars::<Int32Type>(Column::Rank)?;
        let mut operation = columns.scalars::<ByteArrayType>(Column::Operation)?;
        let mut span_ps = columns.scalars::<Int64Type>(Column::SpanPs)?;
        let mut peer = columns.scalars::<Int32Type>(Column::Peer)?;
        let mut tag = columns.scalars::<Int32Type>(Column::Tag)?;
        let mut comm = columns.scalars::<Int64Type>(Column::Comm)?;
        let mut bytes = columns.scalars::<Int64Type>(Column::Bytes)?;
        let mut receive_bytes = columns.scalars::<Int64Type>(Column::ReceiveBytes)?;
        let mut element_bytes = columns.scalars::<Int32Type>(Column::ElementBytes)?;
        let mut request = columns.scalars::<Int32Type>(Column::Request)?;
        let mut matched_peer = columns.scalars::<Int32Type>(Column::MatchedPeer)?;
        let mut matched_tag = columns.scalars::<Int32Type>(Column::MatchedTag)?;
        let mut completed = columns.scalars::<Int32Type>(Column::Completed)?;
        let mut window = columns.scalars::<Int64Type>(Column::Window)?;
        let mut text = columns.scalars::<ByteArrayType>(Column::Text)?;
        let mut requests = columns.lists::<Int32Type>(Column::Requests)?;
        let mut send_counts = columns.lists::<Int64Type>(Column::SendCounts)?;
        let mut receive_counts = columns.lists::<Int64Type>(Column::ReceiveCounts)?;
        let mut members = columns.lists::<Int64Type>(Column::Members)?;

        // Lists may have been read for fewer rows than asked for.
        let complete = [requests.rows, send_counts.rows, receive_counts.rows, members.rows];
        let complete = complete.into_iter().fold((rows.end - rows.start) as usize, usize::min);
        let (mut ops, mut entries) = (Vec::with_capacity(complete), 0);
        for offset in 0..complete {
            let position = self.position + offset as u64;
            let fault = |(column, reason): (Column, String)| {
                self.trace.operation_error(self.rank, position, column.name(), reason)
            };
            let found = rank.next().map(i32::cast_unsigned);
            if found != Some(self.rank.0) {
                let reason = format!("rank {found:?} among the rows of rank {}", self.rank);
                return Err(fault((Column::Rank, reason)));
            }
            let name = operation.next();
            let name = name.as_ref().map_or(&[][..], |name| name.data());
            let kind = Kind::from_name(name).ok_or_else(|| {
                let reason = format!(
                    "no operation is called `{}`; use the weft that wrote the file",
                    String::from_utf8_lossy(name.get(..40).unwrap_or(name))
                );
                fault((Column::Operation, reason))
            })?;
            let text = text.next();
            let text = match text.as_ref().map(|text| std::str::from_utf8(text.data())) {
                None => None,
                Some(Ok(text)) => Some(Cow::Borrowed(text)),
                Some(Err(error)) => return Err(fault((Column::Text, error.to_string()))),
            };
            let unsigned = |values: Vec<i64>| values.into_iter().map(i64::cast_unsigned).collect();
            let row = Row {
                kind,
                span_ps: span_ps.next().map(i64::cast_unsigned),
                peer: peer.next().map(i32::cast_unsigned),
                tag: tag.next(),
                comm: comm.next().map(i64::cast_unsigned),
                bytes: bytes.next().map(i64::cast_unsigned),
                receive_bytes: receive_bytes.next().map(i64::cast_unsigned),
                element_bytes: element_bytes.next().map(i32::cast_unsigned),
                request: request.next().map(i32::cast_unsigned),
                matched_peer: matched_peer.next().map(i32::cast_unsigned),
                matched_tag: matched_tag.next(),
                completed: completed.next().map(i32::cast_unsigned),
                window: window.next().map(i64::cast_unsigned),
                text,
                requests: requests.next().into_iter().map(i32::cast_unsigned).collect(),
                send_counts: unsigned(send_counts.next()),
                receive_counts: unsigned(receive_counts.next()),
                members: Cow::Owned(members.next()),
            };
            row.check(self.trace.ranks()).map_err(fault)?;
            entries += row.entries();
            ops.push(row.into_op().map_err(fault)?);
            if entries > columns.entries {
                break;
            }
        }
        Ok(ops)
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
    /// A column without lists.
    fn scalars<T: DataType>(&self, column: Column) -> Result<Scalars<T>, TraceError> {
        self.read_scalars(column).map_err(|error| self.trace.column_error(self.group, column, error))
    }

    fn read_scalars<T: DataType>(&self, column: Column) -> ParquetResult<Scalars<T>> {
        let rows = self.row_count();
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let Some(mut reader) = self.reader::<T>(column)? else {
            return Ok(Scalars { levels: levels.into_iter(), values: values.into_iter() });
        };
        let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
        check_rows(read, rows)?;
        if self.trace.chunk(self.group, column).column_descr().max_def_level() == 0 {
            levels = vec![1; rows];
        }
        Ok(Scalars { levels: levels.into_iter(), values: values.into_iter() })
    }

    /// A column of lists, for fewer rows than asked for where the lists are long.
    fn lists<T: DataType>(&self, column: Column) -> Result<Lists<T>, TraceError> {
        self.read_lists(column).map_err(|error| self.trace.column_error(self.group, column, error))
    }

    fn read_lists<T: DataType>(&self, column: Column) -> ParquetResult<Lists<T>> {
        /// Rows after which the number of entries is looked at.
        const STEP: usize = 64;
        let rows = self.row_count();
        let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut read = rows;
        if let Some(mut reader) = self.reader::<T>(column)? {
            read = 0;
            while read < rows && values.len() <= self.entries {
                let step = STEP.min(rows - read);
                let (records, ..) =
                    reader.read_records(step, Some(&mut definition), Some(&mut repetition), &mut values)?;
                check_rows(records, step)?;
                read += records;
            }
        }
        let levels = definition.into_iter().zip(repetition).collect::<Vec<_>>().into_iter().peekable();
        Ok(Lists { levels, values: values.into_iter(), rows: read })
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

/// The values of a column without lists, row by row.
struct Scalars<T: DataType> {
    levels: std::vec::IntoIter<i16>,
    values: std::vec::IntoIter<T::T>,
}

impl<T: DataType> Scalars<T> {
    fn next(&mut self) -> Option<T::T> {
        match self.levels.next()? {
            0 => None,
            _ => self.values.next(),
        }
    }
}

/// The values of a column of lists, row by row.
struct Lists<T: DataType> {
    /// Definition and repetition levels.
    levels: std::iter::Peekable<std::vec::IntoIter<(i16, i16)>>,
    values: std::vec::IntoIter<T::T>,
    rows: usize,
}

impl<T: DataType> Lists<T> {
    fn next(&mut self) -> Vec<T::T> {
        /// The level of an entry; below it lie the empty list and null.
        const ENTRY: i16 = 2;
        let Some((definition, _)) = self.levels.next() else { return Vec::new() };
        if definition < ENTRY {
            return Vec::new();
        }
        let mut len = 1;
        while self.levels.next_if(|&(_, repetition)| repetition > 0).is_some() {
            len += 1;
        }
        self.values.by_ref().take(len).collect()
    }
}
