//! Why a recording has no scale.

use weft_formats::TraceError;
use weft_trace::ReadError;

/// Why a recording cannot be scaled.
#[derive(Debug, thiserror::Error)]
pub enum ScaleError {
    /// A recording cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// A recording as a whole has what cannot be scaled.
    #[error("{file}: {reason}; record the program again, without it")]
    Recording {
        /// The trace.
        file: String,
        /// The fault.
        reason: String,
    },
    /// An operation that no law says at another scale.
    #[error("{file}: rank {rank}, operation {position}: {reason}; it cannot be scaled, write a kernel")]
    Operation {
        /// The trace.
        file: String,
        /// The rank.
        rank: u32,
        /// The operation, counted from 0.
        position: u64,
        /// The fault.
        reason: String,
    },
    /// Messages that follow no grid.
    #[error("{file}: {reason}; such a recording cannot be scaled, write a kernel")]
    Pattern {
        /// The trace.
        file: String,
        /// The fault.
        reason: String,
    },
    /// Two recordings are not of the same program.
    #[error("{one} and {other} are not of the same program and input: {reason}")]
    Different {
        /// A trace.
        one: String,
        /// The other.
        other: String,
        /// The first difference.
        reason: String,
    },
    /// The number of ranks.
    #[error("--ranks {ranks}: {reason}; {mend}")]
    Ranks {
        /// The number.
        ranks: u32,
        /// The fault.
        reason: String,
        /// The mend.
        mend: String,
    },
}

impl ScaleError {
    /// The error of a reader.
    pub(super) fn read(error: impl Into<ReadError>) -> ScaleError {
        ScaleError::Read(error.into())
    }

    /// The error for a file whose messages follow no grid.
    pub(super) fn pattern(file: &str, reason: impl Into<String>) -> ScaleError {
        ScaleError::Pattern { file: file.to_owned(), reason: reason.into() }
    }
}

impl From<TraceError> for ScaleError {
    fn from(error: TraceError) -> ScaleError {
        ScaleError::Read(error.into())
    }
}
