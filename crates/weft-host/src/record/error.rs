//! Reasons why a recording fails.

use super::mpi::Mpi;
use std::io;
use std::path::{Path, PathBuf};
use weft_formats::TraceError;
use weft_formats::parts::PartsError;

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No command.
    #[error("no command to record; write it behind `--`: weft record -o run.weft -- mpiexec -n 8 prog")]
    NoCommand,
    /// The trace exists.
    #[error("{} exists; name another file, or write over it with --force", .0.display())]
    OutputExists(PathBuf),
    /// The trace's path names something that is not a file.
    #[error("{} is not a file that can be written over; name another one", .0.display())]
    NoFile(PathBuf),
    /// Parts of an earlier recording are there.
    #[error(
        "{} holds what an earlier recording left; keep it with `weft trace convert`, remove it, or use \
         --force",
        .0.display()
    )]
    PartsExist(PathBuf),
    /// The command's first word names no program.
    #[error("{}: no such program, neither here nor on PATH", .0.display())]
    NoProgram(PathBuf),
    /// Neither launcher nor program says which MPI the program uses.
    #[error(
        "cannot tell which MPI `{0}` uses: it is not a launcher that weft knows, and no program in the \
         command is linked to an MPI library; say it with --mpi mpich, --mpi openmpi or --mpi abi"
    )]
    UnknownMpi(String),
    /// Launcher and program use different MPIs.
    #[error(
        "{} is linked to {linked}, but {} starts programs of {launcher}: put the launcher of {linked} first \
         on PATH or name it in full",
        .program.display(), .launcher_path.display()
    )]
    Mismatch {
        /// The program.
        program: PathBuf,
        /// The program's MPI.
        linked: Mpi,
        /// The launcher.
        launcher_path: PathBuf,
        /// The launcher's MPI.
        launcher: Mpi,
    },
    /// The recorder for this MPI is not built.
    #[error(
        "{}: the recorder for {mpi} is not there; build it: {}; or say where it is in WEFT_RECORDER_DIR",
        .library.display(), .mpi.build_hint()
    )]
    NoRecorder {
        /// The MPI.
        mpi: Mpi,
        /// The library that was looked for.
        library: PathBuf,
    },
    /// A file or folder cannot be made, read or removed.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No rank recorded anything.
    #[error(
        "nothing was recorded: the command ended with status {status} and no process in it called MPI_Init \
         through its C interface. The recorder does not see statically linked programs, programs that use \
         MPI from Fortran on Open MPI, nor MPI sessions"
    )]
    NothingRecorded {
        /// Exit status of the command.
        status: i32,
    },
    /// The disk was full before the first record of a rank, or files may not be so large.
    #[error(
        "nothing was recorded in {}: there was no room for the first megabyte of a rank (a full disk, or \
         ulimit -f); free space or choose another place",
        .0.display()
    )]
    NoRoom(PathBuf),
    /// The parts are all right, and the trace that they make cannot be written.
    #[error(
        "{source}; what was recorded is kept in {parts}: where there is room, weft trace convert {parts} \
         -o FILE makes the trace",
        parts = .parts.display()
    )]
    Unwritten {
        /// The folder of the parts.
        parts: PathBuf,
        /// Why not.
        source: TraceError,
    },
    /// The parts do not make a trace.
    #[error("{source}; what was recorded is kept in {}", .parts.display())]
    Conversion {
        /// The folder of the parts.
        parts: PathBuf,
        /// The fault in the parts.
        source: PartsError,
    },
}

/// The error of a file operation on `path`.
pub(super) fn file_error(path: &Path, source: io::Error) -> RecordError {
    RecordError::File { path: path.into(), source }
}
