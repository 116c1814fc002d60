//! Where the operations of a recorded program come from: any rank's, from any position on.

use crate::kind::Kind;
use crate::op::Op;
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

    /// The operations of a rank from `position` on: what [`Cursor::next_position`] gave. A position behind
    /// the last operation gives none.
    ///
    /// # Errors
    /// There is no such rank. That a file is damaged is found as late as by the cursor.
    fn rank_at(&self, rank: RankId, position: u64) -> Result<Box<dyn Cursor>, ReadError>;

    /// The operations of a rank from the first.
    ///
    /// # Errors
    /// As [`TraceSource::rank_at`].
    fn rank(&self, rank: RankId) -> Result<Box<dyn Cursor>, ReadError> {
        self.rank_at(rank, 0)
    }
}

/// The operations of a rank in their order. An error ends it.
pub trait Cursor: Iterator<Item = Result<Op, ReadError>> + Send + Sync {
    /// Number of operations of the rank before the next one.
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
