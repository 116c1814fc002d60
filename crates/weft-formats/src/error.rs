//! Errors of a trace file. Each names the file, the place in it, and the mend.

use std::fmt;
use std::path::PathBuf;
use weft_trace::ReadError;

/// Why a trace cannot be written, read or replayed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be opened or read.
    #[error("{file}: cannot be read: {source}")]
    Read {
        /// The file.
        file: String,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The file cannot be written. What was written has been removed.
    #[error("{path}: cannot be written: {reason}; free space or choose another place")]
    Write {
        /// The file that was to be made.
        path: PathBuf,
        /// The operating system's error, in words.
        reason: String,
    },
    /// The operations given to the writer do not make a trace.
    #[error("{path}: {reason}")]
    Misuse {
        /// The file that was to be made.
        path: PathBuf,
        /// The fault of the operations.
        reason: String,
    },
    /// No trace at all, or one that was cut short.
    #[error("{file}: not a whole trace ({reason}); copy it again, or record it again with `weft record`")]
    NotATrace {
        /// The file.
        file: String,
        /// The Parquet reader's error.
        reason: String,
    },
    /// A file of no format.
    #[error("{file}: begins as no trace does that is read ({names}); copy it again, or name another file")]
    UnknownFormat {
        /// The file.
        file: String,
        /// The formats.
        names: String,
    },
    /// A bit of it is not what was written.
    #[error("{file}: damaged: {reason}; copy it again, or record it again with `weft record`")]
    Damaged {
        /// The file.
        file: String,
        /// Which checksum does not fit.
        reason: String,
    },
    /// Written by a later weft.
    #[error(
        "{file}: written in version {version} of the trace format, this weft reads up to {known}; \
         use a newer weft"
    )]
    Version {
        /// The file.
        file: String,
        /// The version in the file.
        version: u64,
        /// The last version that is understood.
        known: u64,
    },
    /// The columns are not those of a trace.
    #[error(
        "{file}: column {column}: expected `{expected}`, found {found}; \
         convert the file with weft, not by hand"
    )]
    Schema {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// The column as it must be.
        expected: String,
        /// The column as it is.
        found: String,
    },
    /// The summary in the file's metadata is wrong.
    #[error("{file}: metadata: {reason}; record the trace again")]
    Header {
        /// The file.
        file: String,
        /// The fault in the summary.
        reason: String,
    },
    /// A column of a row group cannot be decoded.
    #[error(
        "{file}: row group {row_group}, column {column}: {reason}; \
         the file is damaged, copy or record it again"
    )]
    Column {
        /// The file.
        file: String,
        /// The row group, counted from 0.
        row_group: usize,
        /// The column.
        column: &'static str,
        /// The fault in the column.
        reason: String,
    },
    /// An operation makes no sense.
    #[error("{file}: rank {rank}, operation {position}, column {column}: {reason}")]
    Operation {
        /// The file.
        file: String,
        /// The rank.
        rank: u32,
        /// The operation of that rank, counted from 0.
        position: u64,
        /// The column.
        column: &'static str,
        /// The fault in the operation, and the mend.
        reason: String,
    },
    /// The members of a communicator do not call the same collectives.
    #[error(
        "{file}: communicator {comm}: its members call different collectives: {first}; {second}; \
         record the trace again"
    )]
    Collectives {
        /// The file.
        file: String,
        /// The communicator.
        comm: u64,
        /// The call of one member where they first differ.
        first: String,
        /// The call of another member at the same place.
        second: String,
    },
    /// The trace has no such rank.
    #[error("{file}: has ranks 0 to {}, not {rank}", .ranks.saturating_sub(1))]
    NoSuchRank {
        /// The file.
        file: String,
        /// The rank asked for.
        rank: u32,
        /// The number of ranks in the trace.
        ranks: u32,
    },
    /// A place in a file of another program makes no sense.
    #[error("{file}: {place}: {reason}")]
    Foreign {
        /// The file.
        file: String,
        /// The place.
        place: FilePlace,
        /// The fault, and the mend.
        reason: String,
    },
    /// The files of a run do not fit together, or one is missing.
    #[error("{file}: {reason}")]
    Run {
        /// The file that was named.
        file: String,
        /// The fault, and the mend.
        reason: String,
    },
    /// The rank has no such stream.
    #[error("{file}: rank {rank} has streams 0 to {}, not {stream}", .streams.saturating_sub(1))]
    NoSuchStream {
        /// The file.
        file: String,
        /// The rank.
        rank: u32,
        /// The stream asked for.
        stream: u32,
        /// The number of streams of the rank.
        streams: u32,
    },
    /// Of a reader with errors of its own.
    #[error(transparent)]
    Reader(ReadError),
}

/// A place in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FilePlace {
    /// A byte, counted from 0.
    Byte(u64),
    /// A line, counted from 1.
    Line(u64),
    /// A line of those that begin with this rank, counted from 1.
    LineOfRank(u32, u64),
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilePlace::Byte(byte) => write!(f, "byte {byte}"),
            FilePlace::Line(line) => write!(f, "line {line}"),
            FilePlace::LineOfRank(rank, line) => write!(f, "line {line} of rank {rank}"),
        }
    }
}

impl From<TraceError> for ReadError {
    fn from(error: TraceError) -> ReadError {
        ReadError::new(error)
    }
}

impl From<ReadError> for TraceError {
    fn from(error: ReadError) -> TraceError {
        error.downcast().unwrap_or_else(TraceError::Reader)
    }
}
