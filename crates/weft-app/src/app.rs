//! An application: its name, its laws, its options, and how it becomes a kernel.

use crate::grid::ranks_in_words;
use crate::options::{AppOption, Options};
use crate::part::KernelPart;
use weft_units::Bytes;

/// An application.
pub struct App {
    /// The name on the command line.
    pub name: &'static str,
    /// The summary, in one line.
    pub summary: &'static str,
    /// The laws of its messages and computations, with their source.
    pub laws: &'static str,
    /// The programs that it agrees with.
    pub checked: Verification,
    /// The options with their defaults.
    pub options: &'static [AppOption],
    /// The bytes that a rank keeps in memory; `None`: no law says.
    pub memory: Option<MemoryLaw>,
    /// The function from options to operations.
    pub build: fn(&Options<'_>) -> Result<Vec<KernelPart>, AppError>,
}

/// The bytes that a rank of an application keeps, of its options.
pub type MemoryLaw = fn(&Options<'_>) -> Result<Bytes, AppError>;

/// Whether a kernel was compared with the program that it stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verification {
    /// Tests compare it with recordings of this program, as far as the text says.
    Against(&'static str),
    /// It was compared with nothing, for this reason.
    Unchecked(&'static str),
}

/// Why there is no such kernel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AppError {
    /// The text does not name a kernel.
    #[error(
        "there is no file `{text}`, and no kernel: {reason}; write NAME@RANKS[,OPTION=VALUE...], such as \
         halo3d@64,steps=10"
    )]
    Name {
        /// The text.
        text: String,
        /// The fault.
        reason: String,
    },
    /// The text is no option.
    #[error("`{text}`: {reason}; write OPTION=VALUE, such as steps=10")]
    Option {
        /// The text.
        text: String,
        /// The fault.
        reason: String,
    },
    /// No application has this name.
    #[error("there is no application `{name}`; {suggestion}")]
    UnknownApp {
        /// The name.
        name: String,
        /// The one that is like it, or all.
        suggestion: String,
    },
    /// The application has no such option.
    #[error("{app} has no option `{option}`; {suggestion}")]
    UnknownOption {
        /// The application.
        app: &'static str,
        /// The option.
        option: String,
        /// The one that is like it, or all.
        suggestion: String,
    },
    /// Two options say the same thing.
    #[error("{app}: {one} and {other} exclude each other; leave one of them out")]
    Both {
        /// The application.
        app: &'static str,
        /// The options.
        one: &'static str,
        /// The second.
        other: &'static str,
    },
    /// An option has a value that it cannot have.
    #[error("{app}: {option}={value}: expected {expected}; {mend}")]
    Value {
        /// The application.
        app: &'static str,
        /// The option.
        option: &'static str,
        /// The value.
        value: String,
        /// The values that it can have.
        expected: String,
        /// The mend.
        mend: String,
    },
    /// The ranks do not make what the application needs.
    #[error("{app} on {}: {reason}; {mend}", ranks_in_words(std::slice::from_ref(.ranks)))]
    Ranks {
        /// The application.
        app: &'static str,
        /// Number of ranks.
        ranks: u32,
        /// The fault.
        reason: String,
        /// The mend.
        mend: String,
    },
}
