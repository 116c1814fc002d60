//! Errors of results on a disk.

use crate::manifest::FORMAT_VERSION;
use std::io;
use std::path::{Path, PathBuf};

/// Results that cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// The directory holds something already.
    #[error(
        "{} exists and is not empty; name another directory with -o, or write over it with --force",
        .0.display()
    )]
    Exists(PathBuf),
    /// The directory holds a run that was saved and did not end.
    #[error(
        "{} holds a saved run; continue it with `weft rerun {} --resume`, name another directory with -o, or \
         write over it with --force",
        .0.display(),
        .0.display()
    )]
    Saved(PathBuf),
    /// A file stands where the directory should be.
    #[error("{} is not a directory; name a directory for results with -o", .0.display())]
    NotADirectory(PathBuf),
    /// Another process writes into the directory.
    #[error(
        "another weft{} writes into {}; wait for it, or name another directory with -o",
        process.map_or(String::new(), |process| format!(" (process {process})")),
        directory.display()
    )]
    Busy {
        /// The directory.
        directory: PathBuf,
        /// The process, where it said so.
        process: Option<u32>,
    },
    /// A file of a finished result is not there.
    #[error("{} is missing; put it back, or run the command again", .0.display())]
    Missing(PathBuf),
    /// A table that the run did not write.
    #[error("{} is not of this run: run.json does not name it; move it elsewhere", .0.display())]
    Foreign(PathBuf),
    /// A file of a finished result is not what was written.
    #[error(
        "{} is not the file that weft wrote (SHA-256 {sha}, as performance.json says); put that one back, or \
         run the command again",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The checksum of the file that weft wrote.
        sha: String,
    },
    /// The directory holds no finished run.
    #[error(
        "{} holds no finished run: it has no run.json; name a directory that weft wrote with -o",
        .0.display()
    )]
    NotAResult(PathBuf),
    /// A run writes into the directory, and nothing of it is whole yet.
    #[error(
        "{} is still being written: its tables and run.json appear when the run ends; wait for it",
        .0.display()
    )]
    StillWritten(PathBuf),
    /// A run was killed before its end.
    #[error(
        "{} holds no result: the run that wrote it was killed before its end, and no process writes it any \
         more; run its command again with --force",
        .0.display()
    )]
    Killed(PathBuf),
    /// A table of flows over time, of a network that does not count them.
    #[error(
        "only packets are counted by flow: leave `flow_rates` out of --tables, or take a machine with \
         `fabric.kind = \"packet\"`"
    )]
    NoFlowRates,
    /// Telemetry that would fill a disk.
    #[error(
        "telemetry would write up to {} GB: {}, or write it with --no-limit",
        bytes / 1_000_000_000,
        match enough {
            Some(enough) => format!("look every {enough} or less often"),
            None => "leave it out".to_owned(),
        }
    )]
    TooMuchTelemetry {
        /// Bytes on the disk.
        bytes: u128,
        /// An interval that writes less than is refused.
        enough: Option<String>,
    },
    /// Telemetry that takes for ever.
    #[error(
        "telemetry every {every} looks at all links {looks} times or more: {}, or look all the same with \
         --no-limit",
        match enough {
            Some(enough) => format!("look every {enough} or less often"),
            None => "leave it out".to_owned(),
        }
    )]
    TooManyLooks {
        /// The interval.
        every: String,
        /// The number of looks, or the one that is not exceeded.
        looks: u64,
        /// An interval at which there are fewer than are refused.
        enough: Option<String>,
    },
    /// Telemetry whose looks take much longer than what is simulated between them.
    #[error(
        "telemetry every {every} would look for more than ten seconds at each microsecond of virtual \
         time: {}, or look all the same with --no-limit",
        match enough {
            Some(enough) => format!("look every {enough} or less often"),
            None => "leave it out".to_owned(),
        }
    )]
    SlowLooks {
        /// The interval.
        every: String,
        /// An interval whose looks are quick enough.
        enough: Option<String>,
    },
    /// A result that is still being written lacks a table, which comes at its end or while it goes on.
    #[error("{} has no rows of the table {table} yet; wait: its run goes on", directory.display())]
    NotYet {
        /// The result.
        directory: PathBuf,
        /// The table.
        table: &'static str,
    },
    /// A result lacks the table that a picture or a report is drawn of.
    #[error("{} has no table {table}; run the command again with {mend}", directory.display())]
    NoTable {
        /// The result.
        directory: PathBuf,
        /// The table.
        table: &'static str,
        /// The options that write it.
        mend: &'static str,
    },
    /// A table of another version of weft.
    #[error(
        "{} has version {found} of its table, and this weft reads version {wanted}; run the command \
         again, or read it with Polars or DuckDB",
        path.display()
    )]
    TableVersion {
        /// The file.
        path: PathBuf,
        /// The version that it says.
        found: String,
        /// The version that is read.
        wanted: u32,
    },
    /// A result has nothing of what is to be drawn.
    #[error("{}: nothing to draw: {why}", directory.display())]
    NothingToDraw {
        /// The result.
        directory: PathBuf,
        /// The reason, and the mend.
        why: String,
    },
    /// There is nothing to continue from.
    #[error(
        "{} holds no saved state to resume; runs save it with --save-every, such as --save-every 100us",
        .0.display()
    )]
    NoSnapshot(PathBuf),
    /// The disk is full. Nothing that reads as whole is left.
    #[error(
        "no room on the disk while writing {}; what the run writes is not kept: free some room, or write to \
         another disk",
        .0.display()
    )]
    DiskFull(PathBuf),
    /// A file has reached the limit of file sizes. Nothing that reads as whole is left.
    #[error(
        "{} reaches the limit of file sizes; what the run writes is not kept: raise the limit (ulimit -f), \
         or write less with --tables",
        .0.display()
    )]
    FileTooLarge(PathBuf),
    /// Another failure of the file system.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The action that failed: "write", "read".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The result was written in another format.
    #[error(
        "{} was written by {} in format version {found}, and this weft reads version {FORMAT_VERSION}: {}",
        path.display(),
        weft_version.as_ref().map_or("a weft".to_owned(), |version| format!("weft {version}")),
        mend(*found)
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The format version of the file.
        found: u32,
        /// The version of the weft that wrote it, where the file says so.
        weft_version: Option<String>,
    },
    /// The state of a run was saved in another format.
    #[error(
        "{} was saved by another version of weft, whose state this one cannot read; run the command again",
        path.display()
    )]
    SnapshotVersion {
        /// The file.
        path: PathBuf,
    },
    /// A file that weft wrote does not read any more.
    #[error("{} is damaged ({why}); run it again into a new directory", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The contradiction that was found.
        why: String,
    },
}

/// The mend for a result of format version `found`.
fn mend(found: u32) -> &'static str {
    match found {
        ..FORMAT_VERSION => {
            "since then nic.model = \"full\" is \"exanet\", and \"simple\" is \"overheads\"; run the command \
             again"
        }
        _ => "read it with the weft that wrote it",
    }
}

impl ResultsError {
    /// The error for a failed `action` on `path`.
    pub fn file(action: &'static str, path: &Path, source: io::Error) -> ResultsError {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ResultsError::DiskFull(path.to_owned())
            }
            io::ErrorKind::FileTooLarge => ResultsError::FileTooLarge(path.to_owned()),
            _ => ResultsError::File { action, path: path.to_owned(), source },
        }
    }

    /// The error for a failed write of a Parquet file.
    pub(crate) fn parquet(
        action: &'static str,
        path: &Path,
        error: parquet::errors::ParquetError,
    ) -> ResultsError {
        match error {
            parquet::errors::ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => ResultsError::file(action, path, *source),
                Err(other) => ResultsError::Damaged { path: path.to_owned(), why: other.to_string() },
            },
            other => ResultsError::Damaged { path: path.to_owned(), why: other.to_string() },
        }
    }
}
