//! Why a run has no outcome.

use weft_results::ResultsError;

/// Why a run has no outcome.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExperimentError {
    /// Something about the request is wrong; the message shows the mend.
    #[error(transparent)]
    Input(Box<dyn std::error::Error + Send + Sync>),
    /// Results cannot be written or read.
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The user ended it before there was an outcome.
    #[error("{0}")]
    Interrupted(String),
}

impl ExperimentError {
    /// Wraps an error about the request.
    pub fn input(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> ExperimentError {
        ExperimentError::Input(error.into())
    }
}
