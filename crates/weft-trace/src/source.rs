//! Where the operations of a recorded program come from: any rank's, from any position on.

use crate::kind::Kind;
use crate::op::{Op, SignalAt, StreamId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use weft_units::RankId;

/// A recorded program. Threads may read it at once.
pub trait TraceSource: Send + Sync {
    /// The file's name, for messages.
    fn file(&self) -> &str;

    /// Number of ranks.
    fn ranks(&self) -> u32;

    /// Number of operations of all ranks.
    fn operations(&self) -> u64;

    /// Number of operations of one kind, of all ranks. No operation is read for it.
    fn operations_of(&self, kind: Kind) -> u64;

    /// Most operations that a cursor keeps in memory.
    fn cursor_operations(&self) -> u64;

    /// Whether the recording ended before the program did.
    fn is_interrupted(&self) -> bool;

    /// Calls that the program made and the trace lacks, with their number.
    fn unrecorded(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// The core of the rank that each of its streams sits on, counted from 0; a rank without streams of its
    /// own has one, on core 0. There is such a rank.
    fn stream_cores(&self, rank: RankId) -> Cow<'_, [u32]> {
        let _ = rank;
        Cow::Borrowed(&[0])
    }

    /// The operations of a stream of a rank from `position` on: what [`Cursor::next_position`] gave. A
    /// position behind the last operation gives none.
    ///
    /// # Errors
    /// There is no such rank or stream. That a file is damaged is found as late as by the cursor.
    fn stream_at(&self, rank: RankId, stream: StreamId, position: u64) -> Result<Box<dyn Cursor>, ReadError>;

    /// The operations of a stream of a rank from the first.
    ///
    /// # Errors
    /// As [`TraceSource::stream_at`].
    fn stream(&self, rank: RankId, stream: StreamId) -> Result<Box<dyn Cursor>, ReadError> {
        self.stream_at(rank, stream, 0)
    }
}

/// The streams of a rank.
pub fn streams(trace: &dyn TraceSource, rank: RankId) -> impl Iterator<Item = StreamId> + use<> {
    (0..trace.stream_cores(rank).len() as u32).map(StreamId)
}

/// Whether ranks of a trace have several streams, or events.
pub fn has_streams(trace: &dyn TraceSource) -> bool {
    let kinds = [Kind::Signal(SignalAt::Start), Kind::Signal(SignalAt::End), Kind::Await];
    kinds.into_iter().any(|kind| trace.operations_of(kind) > 0)
        || (0..trace.ranks()).any(|rank| trace.stream_cores(RankId(rank)).len() > 1)
}

/// The operations of a stream in their order. An error ends it.
pub trait Cursor: Iterator<Item = Result<Op, ReadError>> + Send + Sync {
    /// Number of operations of the stream before the next one.
    fn next_position(&self) -> u64;
}

/// Why operations cannot be read. The text, of the format's reader, names the file, the place and the mend.
#[derive(Debug)]
pub struct ReadError(Box<dyn Error + Send + Sync>);

impl ReadError {
    /// The error of a format's reader.
    pub fn new(error: impl Error + Send + Sync + 'static) -> ReadError {
        ReadError(Box::new(error))
    }

    /// The reader's own error, if it is an `E`.
    ///
    /// # Errors
    /// This error as it was: the reader's is of another type.
    pub fn downcast<E: Error + 'static>(self) -> Result<E, ReadError> {
        self.0.downcast().map(|error| *error).map_err(ReadError)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}
