//! A rank's operations one after the other, decoded a page at a time.

use super::batch::Batch;
use super::column::Columns;
use super::reader::WeftReader;
use crate::error::TraceError;
use weft_trace::op::{Op, StreamId};
use weft_trace::{Cursor, ReadError};
use weft_units::RankId;

/// Entries of lists and bytes of texts that a cursor holds per operation on average, before it stops to
/// decode further: as much as the operations themselves take.
const ENTRIES_PER_ROW: usize = 16;

/// The operations of a stream in their order. Holds a page of them at most; an error ends it.
pub(crate) struct WeftCursor {
    trace: WeftReader,
    rank: RankId,
    stream: StreamId,
    /// Position of the next operation.
    position: u64,
    batch: Batch,
    /// The row of the next operation in the batch.
    next: usize,
    failed: bool,
    /// Ranks of the program.
    ranks: u32,
}

impl WeftCursor {
    pub(crate) fn new(trace: WeftReader, (rank, stream): (RankId, StreamId), position: u64) -> WeftCursor {
        let ranks = trace.ranks();
        WeftCursor { trace, rank, stream, position, batch: Batch::default(), next: 0, failed: false, ranks }
    }

    /// Decodes the next rows; says whether there are any.
    fn fill(&mut self) -> Result<bool, TraceError> {
        let WeftCursor { trace, rank, stream, position, batch, next, .. } = self;
        let rows = trace.stream_rows(*rank, *stream);
        let Some(row) = rows.start.checked_add(*position).filter(|row| rows.contains(row)) else {
            return Ok(false);
        };
        let (group, group_rows) = trace.group_of(row);
        let page = trace.page_rows();
        let from = row - group_rows.start;
        let to = ((from / page + 1) * page).min(rows.end.min(group_rows.end) - group_rows.start);
        let columns = Columns {
            trace,
            index: trace.group_index(group)?,
            group,
            entries: page as usize * ENTRIES_PER_ROW,
            rows: from..to,
        };
        *next = 0;
        batch.read(&columns, *rank, |row, (column, reason)| {
            trace.operation_error(*rank, *position + row as u64, column.name(), reason)
        })?;
        Ok(true)
    }

    /// The next operation where it does not lie in the batch, and what is wrong where it does.
    #[cold]
    fn next_batch(&mut self) -> Option<Result<Op, ReadError>> {
        if self.failed {
            return None;
        }
        let op = self.try_next().transpose();
        self.failed = matches!(op, Some(Err(_)));
        Some(op?.map_err(ReadError::from))
    }

    fn try_next(&mut self) -> Result<Option<Op>, TraceError> {
        if self.next == self.batch.len() && !self.fill()? {
            return Ok(None);
        }
        let op = self.batch.op(self.next, self.ranks).map_err(|(column, reason)| {
            self.trace.operation_error(self.rank, self.position, column.name(), reason)
        })?;
        self.next += 1;
        self.position += 1;
        Ok(Some(op))
    }
}

impl Iterator for WeftCursor {
    type Item = Result<Op, ReadError>;

    #[inline]
    fn next(&mut self) -> Option<Result<Op, ReadError>> {
        if self.next < self.batch.len()
            && !self.failed
            && let Ok(op) = self.batch.op(self.next, self.ranks)
        {
            self.next += 1;
            self.position += 1;
            return Some(Ok(op));
        }
        self.next_batch()
    }
}

impl Cursor for WeftCursor {
    fn next_position(&self) -> u64 {
        self.position
    }
}
