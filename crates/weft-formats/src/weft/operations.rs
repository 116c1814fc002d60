//! A trace in weft's own format as a source of operations.

use super::cursor::WeftCursor;
use super::reader::WeftReader;
use crate::error::TraceError;
use crate::format::FormatReader;
use crate::header::TraceMetadata;
use parquet::file::reader::Length;
use std::borrow::Cow;
use std::collections::BTreeMap;
use weft_trace::op::StreamId;
use weft_trace::{Cursor, Kind, ReadError, TraceSource};
use weft_units::{Bytes, RankId};

impl TraceSource for WeftReader {
    fn file(&self) -> &str {
        &self.inner.file
    }

    fn ranks(&self) -> u32 {
        self.ranks()
    }

    fn operations(&self) -> u64 {
        self.inner.rank_starts.last().copied().unwrap_or(0)
    }

    fn operations_of(&self, kind: Kind) -> u64 {
        self.inner.metadata.operations.get(kind.name()).copied().unwrap_or(0)
    }

    fn cursor_operations(&self) -> u64 {
        self.page_rows()
    }

    fn is_interrupted(&self) -> bool {
        self.inner.metadata.header.interrupted
    }

    fn unrecorded(&self) -> BTreeMap<String, u64> {
        self.inner.metadata.header.unrecorded.clone()
    }

    fn stream_cores(&self, rank: RankId) -> Cow<'_, [u32]> {
        match self.inner.metadata.rank_streams.get(rank.index()) {
            None => Cow::Borrowed(&[0]),
            Some(streams) => streams.iter().map(|stream| stream.core).collect(),
        }
    }

    fn stream_at(&self, rank: RankId, stream: StreamId, position: u64) -> Result<Box<dyn Cursor>, ReadError> {
        let file = || self.inner.file.clone();
        if rank.0 >= self.ranks() {
            return Err(TraceError::NoSuchRank { file: file(), rank: rank.0, ranks: self.ranks() }.into());
        }
        let streams = self.inner.metadata.rank_streams.get(rank.index()).map_or(1, Vec::len);
        if stream.index() >= streams {
            let (stream, streams) = (stream.0, streams as u32);
            return Err(TraceError::NoSuchStream { file: file(), rank: rank.0, stream, streams }.into());
        }
        Ok(Box::new(WeftCursor::new(self.clone(), (rank, stream), position)))
    }
}

impl FormatReader for WeftReader {
    fn format(&self) -> &'static str {
        super::FORMAT.name
    }

    fn metadata(&self) -> &TraceMetadata {
        &self.inner.metadata
    }

    fn file_bytes(&self) -> Bytes {
        Bytes::new(self.inner.source.len())
    }
}
