//! Errors of studies.

use std::io;
use std::path::{Path, PathBuf};

/// A study that cannot be read, or whose results cannot be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A file that cannot be read at all.
    #[error("cannot read the study {}: {source}; name a study file, in TOML", path.display())]
    Unread {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file that is no TOML.
    #[error("{name}: this is no TOML\n{source}")]
    Toml {
        /// The file, as it was named.
        name: String,
        /// The error, with the line.
        source: toml::de::Error,
    },
    /// A field that says something wrong.
    #[error("{name}:{line}: `{field}`: {what}; {mend}")]
    Field {
        /// The file, as it was named.
        name: String,
        /// The line, counted from 1.
        line: usize,
        /// The field, such as `vary.load`.
        field: String,
        /// The mistake.
        what: String,
        /// The mend.
        mend: String,
    },
    /// A directory that holds something else.
    #[error(
        "{} exists and holds no study; name another directory with -o, or an empty one",
        .0.display()
    )]
    NotAStudy(PathBuf),
    /// A directory of a study that has measured what this one would not.
    #[error(
        "{} holds another study than this: {change}; name another directory with -o, or begin anew with \
         --force",
        path.display()
    )]
    AnotherStudy {
        /// The directory.
        path: PathBuf,
        /// The change.
        change: String,
    },
    /// A study of another version of weft.
    #[error(
        "{} holds results of {found}, and this is weft {}; name another directory with -o, or begin anew \
         with --force",
        path.display(),
        env!("CARGO_PKG_VERSION")
    )]
    Version {
        /// The directory.
        path: PathBuf,
        /// The weft that wrote it.
        found: String,
    },
    /// Another process works on it.
    #[error(
        "another weft works on the study in {}; wait for it, or name another directory with -o",
        .0.display()
    )]
    Busy(PathBuf),
    /// A file of the directory does not read any more.
    #[error(
        "{} is damaged ({why}); remove it, and weft sweep with the same study and -o runs its point again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        why: String,
    },
    /// The manifest of a study does not read any more.
    #[error(
        "{} is damaged ({why}); name another directory with -o, or begin anew with --force",
        path.display()
    )]
    DamagedManifest {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        why: String,
    },
    /// The same of one that is only shown.
    #[error(
        "{} is damaged ({why}); run the study again: weft sweep STUDY.toml -o {} --force",
        path.display(),
        path.parent().unwrap_or(Path::new(".")).display()
    )]
    DamagedStudy {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        why: String,
    },
    /// A study of which nothing can be shown as it was asked for.
    #[error("{} has nothing to show: {why}", path.display())]
    NothingToShow {
        /// The directory.
        path: PathBuf,
        /// The reason, with the mend.
        why: String,
    },
    /// The tables that a point keeps, which cannot be read or drawn.
    #[error(transparent)]
    Results(#[from] weft_results::ResultsError),
    /// A failure of the file system.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl StudyError {
    /// The error for a failed `action` on `path`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StudyError {
        let path = path.to_owned();
        move |source| StudyError::File { action, path, source }
    }

    /// Whether the study was all right and its results could not be kept.
    pub fn is_not_kept(&self) -> bool {
        matches!(self, StudyError::File { .. })
    }
}
