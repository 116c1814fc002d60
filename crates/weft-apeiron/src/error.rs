//! Mistakes in designs.

use std::path::PathBuf;

/// A mistake in a `config.yaml`, with its mend.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {what}; {mend}")]
pub struct Mistake {
    /// The file as the user named it.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// The mistake.
    pub what: String,
    /// The mend.
    pub mend: String,
}

/// Why a design cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DesignError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}; name a config.yaml of an APEIRON design", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// It has mistakes: all of them.
    #[error("{}", lines(.0))]
    Mistakes(Vec<Mistake>),
    /// A kernel has no source.
    #[error(
        "{config}:{line}: kernel {kernel} has no source: none of {looked} is there; write its function there"
    )]
    NoSource {
        /// The file of the design.
        config: String,
        /// The line of the kernel.
        line: usize,
        /// The kernel.
        kernel: String,
        /// The files that it may be in.
        looked: String,
    },
    /// Something is in the way that no build has made.
    #[error("{} is there, and is {is}; move it away, or name another FILE in -o", path.display())]
    InTheWay {
        /// The file.
        path: PathBuf,
        /// The kind of file that it is not.
        is: &'static str,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {error}; name another FILE in -o", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
}

fn lines(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(Mistake::to_string).collect::<Vec<_>>().join("\n")
}
