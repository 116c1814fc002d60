//! A trace of graphs or of streams, kept in weft's own format in a file of its own while it is read.

use super::{DependencyCycle, RankGraph};
use crate::error::TraceError;
use crate::format::{FormatReader, FormatWriter};
use crate::header::{TraceHeader, TraceMetadata};
use crate::output::unwritable;
use crate::weft::{WeftReader, WeftWriter};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use weft_trace::op::StreamId;
use weft_trace::{Cursor, Kind, ReadError, TraceSource};
use weft_units::{Bytes, RankId};

/// The files of a run whose ranks are graphs.
pub(crate) trait GraphFiles {
    /// The name of the format.
    fn format(&self) -> &'static str;

    /// The file that was named.
    fn file(&self) -> &str;

    /// The names of all files.
    fn files(&self) -> Vec<&str> {
        vec![self.file()]
    }

    /// Size of the files.
    fn bytes(&self) -> u64;

    /// The origin of the trace, with its number of ranks. Notes are asked for when all ranks have been read.
    fn header(&self) -> TraceHeader;

    /// Reads a rank.
    fn rank(&mut self, rank: RankId) -> Result<RankGraph, TraceError>;

    /// The error for operations of a rank that wait for each other.
    fn cycle(&self, rank: RankId, cycle: DependencyCycle) -> TraceError;
}

/// The files of a run whose ranks have several streams.
pub(crate) trait StreamFiles {
    /// The name of the format.
    fn format(&self) -> &'static str;

    /// The file that was named.
    fn file(&self) -> &str;

    /// The names of all files.
    fn files(&self) -> Vec<&str> {
        vec![self.file()]
    }

    /// Size of the files.
    fn bytes(&self) -> u64;

    /// The origin of the trace, with its number of ranks. Notes are asked for when all ranks have been read.
    fn header(&self) -> TraceHeader;

    /// Writes the operations of a rank, which has been begun.
    fn write(&mut self, rank: RankId, writer: &mut dyn FormatWriter) -> Result<(), TraceError>;
}

/// Graphs as streams.
struct GraphStreams<F>(F);

impl<F: GraphFiles> StreamFiles for GraphStreams<F> {
    fn format(&self) -> &'static str {
        self.0.format()
    }

    fn file(&self) -> &str {
        self.0.file()
    }

    fn files(&self) -> Vec<&str> {
        self.0.files()
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn header(&self) -> TraceHeader {
        self.0.header()
    }

    fn write(&mut self, rank: RankId, writer: &mut dyn FormatWriter) -> Result<(), TraceError> {
        let graph = self.0.rank(rank)?;
        let chains = graph.chains().map_err(|cycle| self.0.cycle(rank, cycle))?;
        for (number, chain) in chains.iter().enumerate() {
            if number > 0 {
                writer.begin_stream(chain.core)?;
            }
            chain.ops.iter().try_for_each(|op| writer.push(op))?;
        }
        Ok(())
    }
}

/// A trace that was made of streams.
struct SpooledTrace {
    format: &'static str,
    file: String,
    files: Vec<PathBuf>,
    bytes: u64,
    spooled: WeftReader,
    metadata: TraceMetadata,
}

/// Reads all ranks of a run, one at a time, and opens what they make.
///
/// # Errors
/// What cannot be read, and a full disk.
pub(crate) fn spool(files: impl GraphFiles) -> Result<impl FormatReader + 'static, TraceError> {
    spool_streams(GraphStreams(files))
}

/// As [`spool`], of ranks that are streams already.
///
/// # Errors
/// As [`spool`].
pub(crate) fn spool_streams(mut files: impl StreamFiles) -> Result<impl FormatReader + 'static, TraceError> {
    let (format, file, bytes) = (files.format(), files.file().to_owned(), files.bytes());
    let names = files.files().into_iter().map(PathBuf::from).collect();
    // It is removed when it has been opened: the file goes on until it is closed.
    let folder = tempfile::tempdir().map_err(|error| unwritable(&std::env::temp_dir(), error))?;
    let path = folder.path().join(format!("{format}.weft"));
    let mut writer: Box<dyn FormatWriter> = Box::new(WeftWriter::create(&path, files.header())?);
    for rank in (0..files.header().ranks).map(RankId) {
        writer.begin_rank(rank)?;
        files.write(rank, &mut *writer)?;
    }
    *writer.header_mut() = files.header();
    let metadata = writer.finish()?;
    let spooled = WeftReader::open_as(file.clone(), &path)?;
    Ok(SpooledTrace { format, file, files: names, bytes, spooled, metadata })
}

impl TraceSource for SpooledTrace {
    fn file(&self) -> &str {
        &self.file
    }

    fn ranks(&self) -> u32 {
        self.spooled.ranks()
    }

    fn operations(&self) -> u64 {
        self.spooled.operations()
    }

    fn operations_of(&self, kind: Kind) -> u64 {
        self.spooled.operations_of(kind)
    }

    fn cursor_operations(&self) -> u64 {
        self.spooled.cursor_operations()
    }

    fn is_interrupted(&self) -> bool {
        false
    }

    fn unrecorded(&self) -> BTreeMap<String, u64> {
        self.metadata.header.unrecorded.clone()
    }

    fn stream_cores(&self, rank: RankId) -> Cow<'_, [u32]> {
        self.spooled.stream_cores(rank)
    }

    fn stream_at(&self, rank: RankId, stream: StreamId, position: u64) -> Result<Box<dyn Cursor>, ReadError> {
        self.spooled.stream_at(rank, stream, position)
    }
}

impl FormatReader for SpooledTrace {
    fn format(&self) -> &'static str {
        self.format
    }

    fn metadata(&self) -> &TraceMetadata {
        &self.metadata
    }

    fn file_bytes(&self) -> Bytes {
        Bytes::new(self.bytes)
    }

    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }
}
