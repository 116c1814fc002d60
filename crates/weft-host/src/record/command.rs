//! Runs a command under the recorder until it ends.

use super::error::{RecordError, file_error};
use super::mpi::{Mpi, find_mpi, find_program};
use super::recording::{PARTS_VARIABLE, Recording, refuse_existing};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use weft_formats::parts::Converted;
use weft_formats::{TraceHeader, TraceMetadata};

/// A command to record, and the trace to make of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordRequest {
    /// The trace file to make. While the command runs, the parts lie next to it, in a folder of the trace's
    /// name with `.parts` appended.
    pub output: PathBuf,
    /// Whether to write over the trace, or over the parts that an earlier recording left.
    pub force: bool,
    /// The program's MPI; `None`: [found](super) from the launcher and the program.
    pub mpi: Option<Mpi>,
    /// The folder of the recorder's libraries; `None`: `WEFT_RECORDER_DIR`, else `build/recorder` or
    /// `lib/weft` above the running executable.
    pub recorder_folder: Option<PathBuf>,
    /// The launcher, the program and their arguments: `mpiexec -n 8 prog args`.
    pub command: Vec<OsString>,
    /// Whether the command's standard output goes to standard error, which keeps standard output for the
    /// caller.
    pub output_to_error: bool,
    /// The date of the recording (ISO 8601), for the trace's header.
    pub date: Option<String>,
}

/// A recording that became a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordSummary {
    /// The trace file.
    pub trace: PathBuf,
    /// Summary of the trace: ranks, operations, calls that were not recorded.
    pub metadata: TraceMetadata,
    /// Ranks whose recording ended before they did, as there was no room for it.
    pub without_room: u32,
    /// Exit status of the command; 128 + n if signal n ended it.
    pub program_status: i32,
    /// Whether the recording was interrupted by the user.
    pub interrupted: bool,
}

/// Runs the command under the recorder, waits for its end, and makes the trace.
///
/// The command inherits standard input, output and error, except as [`RecordRequest::output_to_error`] says.
/// `interrupted` says whether the user wants an end; it is polled. The caller catches SIGINT, because the
/// trace is made after it.
///
/// # Errors
/// No program, no recorder for its MPI, files that exist or cannot be written, or a command that recorded
/// nothing.
pub fn record(request: &RecordRequest, interrupted: impl Fn() -> bool) -> Result<RecordSummary, RecordError> {
    let launcher_word = request.command.first().ok_or(RecordError::NoCommand)?;
    refuse_existing(&request.output, request.force)?;
    let launcher = find_program(launcher_word).ok_or_else(|| RecordError::NoProgram(launcher_word.into()))?;
    let mpi = match request.mpi {
        Some(mpi) => mpi,
        None => find_mpi(&launcher, &request.command)?,
    };
    let folder = request.recorder_folder.as_deref();
    let recording = Recording::prepare(&request.output, request.force, mpi, folder)?;

    let child = Command::new(&launcher)
        .args(&request.command[1..])
        .env("LD_PRELOAD", preload(&recording.library, std::env::var_os("LD_PRELOAD")))
        .env(PARTS_VARIABLE, &recording.parts)
        .stdout(if request.output_to_error { Stdio::from(io::stderr()) } else { Stdio::inherit() })
        .spawn()
        .map_err(|source| file_error(&launcher, source));
    let (status, stopped) = match child {
        Ok(child) => wait(child, interrupted).map_err(|source| file_error(&launcher, source))?,
        Err(error) => {
            recording.discard()?;
            return Err(error);
        }
    };
    let program_status = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    let converted = recording.finish(|header| complete(header, request, stopped))?;
    let Converted { metadata, without_room } =
        converted.ok_or(RecordError::NothingRecorded { status: program_status })?;
    let trace = request.output.clone();
    Ok(RecordSummary { trace, metadata, without_room, program_status, interrupted: stopped })
}

/// Fills in the header's fields that no part knows.
fn complete(header: &mut TraceHeader, request: &RecordRequest, stopped: bool) {
    header.host_cores =
        std::thread::available_parallelism().ok().and_then(|cores| u32::try_from(cores.get()).ok());
    header.date = request.date.clone();
    header.interrupted |= stopped;
}

/// Real time between two checks whether the command has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Checks after an interruption until the command is sent SIGINT, which the terminal may have sent already.
const CHECKS_TO_INTERRUPT: u32 = 100;
/// Checks after an interruption until the command is sent SIGKILL.
const CHECKS_TO_KILL: u32 = 1000;

/// Waits for the command's end. Returns its status, and whether the user ended it.
fn wait(mut child: Child, interrupted: impl Fn() -> bool) -> io::Result<(ExitStatus, bool)> {
    let mut checks = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            // The command may have got SIGINT from the terminal and ended before weft checked.
            return Ok((status, interrupted()));
        }
        std::thread::sleep(CHECK_INTERVAL);
        if interrupted() {
            checks += 1;
            if checks == CHECKS_TO_INTERRUPT {
                let id = rustix::process::Pid::from_child(&child);
                // It may have ended in the meantime: then nobody is left to signal.
                let _ = rustix::process::kill_process(id, rustix::process::Signal::INT);
            } else if checks == CHECKS_TO_KILL {
                child.kill()?;
            }
        }
    }
}

/// `LD_PRELOAD` with the recorder in front of the libraries that it names already.
fn preload(library: &Path, existing: Option<OsString>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    if let Some(existing) = existing.filter(|existing| !existing.is_empty()) {
        value.push(":");
        value.push(existing);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Catches a recording that overwrites a trace, or what an interrupted one left.
    #[test]
    fn what_exists_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let request = RecordRequest {
            output: folder.path().join("run.weft"),
            force: false,
            mpi: Some(Mpi::Mpich),
            recorder_folder: Some(folder.path().into()),
            command: vec!["true".into()],
            output_to_error: false,
            date: None,
        };
        let missing = record(&request, || false).unwrap_err();
        assert!(matches!(missing, RecordError::NoRecorder { mpi: Mpi::Mpich, .. }), "{missing}");
        assert!(missing.to_string().contains("make -C recorder"));
        fs::write(folder.path().join("libweft-record-mpich.so"), "").unwrap();
        fs::create_dir(folder.path().join("run.weft.parts")).unwrap();
        assert!(matches!(record(&request, || false), Err(RecordError::PartsExist(_))));
        fs::write(&request.output, "precious").unwrap();
        assert!(matches!(record(&request, || false), Err(RecordError::OutputExists(_))));
        assert_eq!(fs::read(&request.output).unwrap(), b"precious");
    }

    #[test]
    fn a_preload_that_is_there_stays() {
        assert_eq!(preload(Path::new("/r.so"), Some("/a.so".into())), "/r.so:/a.so");
        assert_eq!(preload(Path::new("/r.so"), Some("".into())), "/r.so");
        assert_eq!(preload(Path::new("/r.so"), None), "/r.so");
    }
}
