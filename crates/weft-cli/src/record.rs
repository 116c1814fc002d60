//! Recording a real MPI program: the logic of `weft record`.
//!
//! ```text
//!  command ──► which MPI? ──► its recorder, preloaded into the command ──► OUT.parts/rank-*.part ──► OUT
//!            launcher's version,    LD_PRELOAD, WEFT_RECORD_PARTS            one per rank, while       when the command
//!            program's libraries                                             it runs                   has ended
//! ```
//! The parts are removed only when the trace is whole. The recorder is inert in processes that never initialize MPI, so
//! launchers, shells and Python wrappers between weft and the program do no harm.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use weft_trace::parts::{Parts, PartsError};
use weft_trace::{TraceHeader, TraceMetadata};

/// The MPI binary interfaces that the recorder is built for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mpi {
    /// MPICH and what is compatible with it (`libmpi.so.12`).
    Mpich,
    /// Open MPI (`libmpi.so.40`).
    OpenMpi,
    /// The MPI standard's own (`libmpi_abi.so.1`).
    Abi,
}

impl Mpi {
    /// All of them.
    pub const ALL: [Mpi; 3] = [Mpi::Mpich, Mpi::OpenMpi, Mpi::Abi];

    /// The word in the recorder's file name and in `--mpi`.
    pub fn word(self) -> &'static str {
        match self {
            Mpi::Mpich => "mpich",
            Mpi::OpenMpi => "openmpi",
            Mpi::Abi => "abi",
        }
    }

    /// The MPI of that word.
    pub fn from_word(word: &str) -> Option<Mpi> {
        Mpi::ALL.into_iter().find(|mpi| mpi.word() == word)
    }

    /// Whether programs built for `self` run under a launcher of `launcher`.
    fn runs_under(self, launcher: Mpi) -> bool {
        self == launcher || (self == Mpi::Abi && launcher == Mpi::Mpich)
    }

    fn build_hint(self) -> &'static str {
        match self {
            Mpi::Mpich | Mpi::Abi => "`pip install mpich` into build/venv, then `make -C recorder`",
            Mpi::OpenMpi => "`apt-get install openmpi-bin libopenmpi-dev`, then `make -C recorder`",
        }
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Mpi::Mpich => "MPICH",
            Mpi::OpenMpi => "Open MPI",
            Mpi::Abi => "the MPI standard ABI",
        })
    }
}

/// What is to be recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordRequest {
    /// The trace file to make. The parts lie beside it, in a folder of its name and `.parts`, while the command runs.
    pub output: PathBuf,
    /// Whether to write over the trace, or over the parts that an earlier recording left.
    pub force: bool,
    /// The program's MPI; `None`: found from the launcher and the program.
    pub mpi: Option<Mpi>,
    /// Where the recorder's libraries are; `None`: `WEFT_RECORDER_DIR`, else `build/recorder` or `lib/weft` above the
    /// running executable.
    pub recorder_folder: Option<PathBuf>,
    /// The launcher, the program and their arguments: `mpiexec -n 8 prog args`.
    pub command: Vec<OsString>,
    /// Whether what the command writes to standard output goes to standard error: standard output is kept for the caller.
    pub output_to_error: bool,
    /// When the recording was made (ISO 8601), for the trace's header.
    pub date: Option<String>,
}

/// What was recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordSummary {
    /// The trace file.
    pub trace: PathBuf,
    /// Its summary: ranks, operations, calls that were not recorded.
    pub metadata: TraceMetadata,
    /// Exit status of the command; 128 + n where signal n ended it.
    pub program_status: i32,
    /// Whether the recording was interrupted by the user.
    pub interrupted: bool,
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// No command.
    #[error("no command to record; write it behind `--`: weft record -o run.weft -- mpiexec -n 8 prog")]
    NoCommand,
    /// The trace exists.
    #[error("{} exists; name another file, or write over it with --force", .0.display())]
    OutputExists(PathBuf),
    /// The trace cannot be what is there.
    #[error("{} is no file that can be written over; name another one", .0.display())]
    NoFile(PathBuf),
    /// Parts of an earlier recording are there.
    #[error(
        "{} holds what an earlier recording left; look at it with `weft trace info`, then remove it or use --force", .0.display()
    )]
    PartsExist(PathBuf),
    /// The command's first word is no program.
    #[error("{}: no such program, neither here nor on PATH", .0.display())]
    NoProgram(PathBuf),
    /// It does not show which MPI the program uses.
    #[error(
        "cannot tell which MPI `{0}` uses: it is no launcher that weft knows, and no program in the command is linked to an MPI library; say it with --mpi mpich, --mpi openmpi or --mpi abi"
    )]
    UnknownMpi(String),
    /// Launcher and program do not fit.
    #[error(
        "{} is linked to {linked}, but {} starts programs of {launcher}: put the launcher of {linked} first on PATH or name it in full", .program.display(), .launcher_path.display()
    )]
    Mismatch {
        /// The program.
        program: PathBuf,
        /// Its MPI.
        linked: Mpi,
        /// The launcher.
        launcher_path: PathBuf,
        /// The launcher's MPI.
        launcher: Mpi,
    },
    /// The recorder for this MPI is not built.
    #[error("{}: the recorder for {mpi} is not there; build it: {}; or say where it is in WEFT_RECORDER_DIR", .library.display(), .mpi.build_hint())]
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
        /// What the system says.
        source: io::Error,
    },
    /// No rank recorded anything.
    #[error(
        "nothing was recorded: the command ended with status {status} and no process in it called MPI_Init through its C interface. The recorder does not see statically linked programs, programs that use MPI from Fortran on Open MPI, nor MPI sessions"
    )]
    NothingRecorded {
        /// Exit status of the command.
        status: i32,
    },
    /// The parts cannot be made a trace.
    #[error("{source}; what was recorded is kept in {}", .parts.display())]
    Conversion {
        /// The folder of the parts.
        parts: PathBuf,
        /// What is wrong.
        source: PartsError,
    },
}

/// Runs the command under the recorder, waits for its end, and makes the trace. Standard input, output and error are the
/// command's, but for [`RecordRequest::output_to_error`]. `interrupted` is asked again and again whether the user wants an end; the caller catches SIGINT, since
/// the trace is made after it.
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
    let metadata = recording.finish(|header| complete(header, request, stopped))?;
    let metadata = metadata.ok_or(RecordError::NothingRecorded { status: program_status })?;
    Ok(RecordSummary { trace: request.output.clone(), metadata, program_status, interrupted: stopped })
}

/// The environment variable by which ranks are told where their parts go.
pub const PARTS_VARIABLE: &str = "WEFT_RECORD_PARTS";

/// A recording that is under way, by whoever starts the ranks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    /// The recorder, to be preloaded into ranks.
    pub library: PathBuf,
    /// Where their parts go: for [`PARTS_VARIABLE`].
    pub parts: PathBuf,
    output: PathBuf,
}

impl Recording {
    /// A recording that is to become the trace `output`.
    ///
    /// # Errors
    /// A trace or parts that exist, or no recorder for this MPI.
    pub fn prepare(
        output: &Path,
        force: bool,
        mpi: Mpi,
        recorder_folder: Option<&Path>,
    ) -> Result<Recording, RecordError> {
        refuse_existing(output, force)?;
        // Written over is what a link leads to.
        let output = fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
        if output.exists() && !output.is_file() {
            return Err(RecordError::NoFile(output));
        }
        let library = recorder_library(recorder_folder, mpi)?;
        let parts = prepare_parts(&output, force)?;
        Ok(Recording { library, parts, output })
    }

    /// All ranks have ended: makes the trace; `None`: no rank has recorded anything. `complete` says what the parts do not
    /// know.
    ///
    /// # Errors
    /// Parts that make no trace.
    pub fn finish(
        self,
        complete: impl FnOnce(&mut TraceHeader),
    ) -> Result<Option<TraceMetadata>, RecordError> {
        let Recording { parts, output, .. } = self;
        let recorded = match Parts::open(&parts) {
            Ok(recorded) => recorded,
            Err(PartsError::NoParts { .. }) => {
                remove_parts(&parts)?;
                return Ok(None);
            }
            Err(source) => return Err(RecordError::Conversion { parts, source }),
        };
        let metadata = recorded
            .convert(&output, complete)
            .map_err(|source| RecordError::Conversion { parts: parts.clone(), source })?;
        remove_parts(&parts)?;
        Ok(Some(metadata))
    }

    /// The trace that it is to become.
    pub fn trace(&self) -> &Path {
        &self.output
    }

    /// Nothing was started.
    ///
    /// # Errors
    /// The folder of the parts cannot be removed.
    pub fn discard(self) -> Result<(), RecordError> {
        remove_parts(&self.parts)
    }
}

fn refuse_existing(output: &Path, force: bool) -> Result<(), RecordError> {
    if output.exists() && !force { Err(RecordError::OutputExists(output.to_owned())) } else { Ok(()) }
}

/// The MPI of a program that is started without a launcher, MPICH or what runs on it: the one that a program in the command is
/// linked to. Of scripts nothing is seen: they get MPICH itself.
pub fn mpi_of_ranks(command: &[OsString]) -> Mpi {
    let linked = command.iter().find_map(|word| linked_mpi(&find_program(word)?));
    linked.unwrap_or(Mpi::Mpich)
}

/// What the parts do not know.
fn complete(header: &mut TraceHeader, request: &RecordRequest, stopped: bool) {
    header.host_cores =
        std::thread::available_parallelism().ok().and_then(|cores| u32::try_from(cores.get()).ok());
    header.date = request.date.clone();
    header.interrupted |= stopped;
}

fn file_error(path: &Path, source: io::Error) -> RecordError {
    RecordError::File { path: path.into(), source }
}

/// How often the command is looked at, and how many looks after an interruption it is sent SIGINT (it may have got it
/// from the terminal already) and then SIGKILL.
const LOOK: Duration = Duration::from_millis(10);
const LOOKS_TO_INTERRUPT: u32 = 100;
const LOOKS_TO_KILL: u32 = 1000;

/// Waits for the command's end; whether the user ended it.
fn wait(mut child: Child, interrupted: impl Fn() -> bool) -> io::Result<(ExitStatus, bool)> {
    let mut looks = 0;
    loop {
        if let Some(status) = child.try_wait()? {
            // The command may have got SIGINT from the terminal and ended before weft looked.
            return Ok((status, interrupted()));
        }
        std::thread::sleep(LOOK);
        if interrupted() {
            looks += 1;
            if looks == LOOKS_TO_INTERRUPT {
                let id = rustix::process::Pid::from_child(&child);
                // It may have ended in the meantime: then there is nobody to tell.
                let _ = rustix::process::kill_process(id, rustix::process::Signal::INT);
            } else if looks == LOOKS_TO_KILL {
                child.kill()?;
            }
        }
    }
}

/// The folder of the parts, made anew.
fn prepare_parts(output: &Path, force: bool) -> Result<PathBuf, RecordError> {
    let absolute = std::path::absolute(output).map_err(|source| file_error(output, source))?;
    let mut name = absolute.into_os_string();
    name.push(".parts");
    let parts = PathBuf::from(name);
    if parts.exists() {
        if !force {
            return Err(RecordError::PartsExist(parts));
        }
        remove_parts(&parts)?;
    }
    fs::create_dir_all(&parts).map_err(|source| file_error(&parts, source))?;
    Ok(parts)
}

/// Removes the parts and their folder. Other files in it are left alone, with the folder.
fn remove_parts(parts: &Path) -> Result<(), RecordError> {
    for entry in fs::read_dir(parts).map_err(|source| file_error(parts, source))? {
        let path = entry.map_err(|source| file_error(parts, source))?.path();
        if path.extension() == Some(OsStr::new("part")) {
            fs::remove_file(&path).map_err(|source| file_error(&path, source))?;
        }
    }
    fs::remove_dir(parts).map_err(|source| file_error(parts, source))
}

/// The recorder before what is preloaded already.
fn preload(library: &Path, existing: Option<OsString>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    if let Some(existing) = existing.filter(|existing| !existing.is_empty()) {
        value.push(":");
        value.push(existing);
    }
    value
}

/// The recorder's library for an MPI.
fn recorder_library(folder: Option<&Path>, mpi: Mpi) -> Result<PathBuf, RecordError> {
    let name = format!("libweft-record-{}.so", mpi.word());
    let named =
        folder.map(PathBuf::from).or_else(|| std::env::var_os("WEFT_RECORDER_DIR").map(PathBuf::from));
    let library = match named {
        Some(folder) => folder.join(&name),
        None => {
            let executable =
                std::env::current_exe().map_err(|source| file_error(Path::new("weft"), source))?;
            let mut places = executable.ancestors().skip(1).flat_map(|above| {
                [above.join("build/recorder").join(&name), above.join("lib/weft").join(&name)]
            });
            places.find(|place| place.is_file()).unwrap_or_else(|| Path::new("build/recorder").join(&name))
        }
    };
    match std::path::absolute(&library) {
        Ok(absolute) if absolute.is_file() => Ok(absolute),
        _ => Err(RecordError::NoRecorder { mpi, library }),
    }
}

/// The program that a word of a command names: a path, or a name on PATH.
fn find_program(word: &OsStr) -> Option<PathBuf> {
    let executable = |path: &Path| {
        fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if word.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(word)).filter(|path| executable(path));
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(word))
        .find(|path| executable(path))
}

/// The MPI that the command uses: its launcher's, or the one that a program in it is linked to. Where both are known,
/// they have to fit.
fn find_mpi(launcher: &Path, command: &[OsString]) -> Result<Mpi, RecordError> {
    let started = launcher_mpi(launcher);
    let linked = command.iter().filter_map(|word| {
        let program = find_program(word)?;
        Some((linked_mpi(&program)?, program))
    });
    match (started, linked.into_iter().next()) {
        (Some(started), Some((linked, program))) if !linked.runs_under(started) => {
            Err(RecordError::Mismatch { program, linked, launcher_path: launcher.into(), launcher: started })
        }
        (_, Some((linked, _))) => Ok(linked),
        (Some(started), None) => Ok(started),
        (None, None) => {
            let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
            Err(RecordError::UnknownMpi(words.join(" ")))
        }
    }
}

/// The MPI of a launcher, by what it says of its version. Only programs with a launcher's name are asked.
fn launcher_mpi(launcher: &Path) -> Option<Mpi> {
    let name = launcher.file_name()?.to_str()?;
    if !["mpiexec", "mpirun", "orterun", "prterun"].iter().any(|known| name.starts_with(known)) {
        return None;
    }
    let output = Command::new(launcher).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    mpi_of_version(&text)
}

fn mpi_of_version(text: &str) -> Option<Mpi> {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if says(&["Open MPI", "OpenRTE", "PRRTE"]) {
        Some(Mpi::OpenMpi)
    } else if says(&["HYDRA", "MPICH", "Intel(R) MPI"]) {
        Some(Mpi::Mpich)
    } else {
        None
    }
}

/// Programs are searched for the names of their libraries up to this length: the names are near the start.
const SEARCHED_BYTES: u64 = 64 << 20;

/// The MPI library that an ELF program names among those it needs; `None` for scripts, and where another library of the
/// program brings MPI.
fn linked_mpi(program: &Path) -> Option<Mpi> {
    let mut bytes = Vec::new();
    fs::File::open(program).ok()?.take(SEARCHED_BYTES).read_to_end(&mut bytes).ok()?;
    mpi_of_program(&bytes)
}

fn mpi_of_program(bytes: &[u8]) -> Option<Mpi> {
    if !bytes.starts_with(b"\x7fELF") {
        return None;
    }
    // As entries of the string table: a NUL byte on both sides.
    let names: [(&[u8], Mpi); 5] = [
        (b"\0libmpi_abi.so.1\0", Mpi::Abi),
        (b"\0libmpi.so.40\0", Mpi::OpenMpi),
        (b"\0libmpi.so.12\0", Mpi::Mpich),
        (b"\0libmpich.so.12\0", Mpi::Mpich),
        (b"\0libmpich.so.10\0", Mpi::Mpich),
    ];
    names
        .into_iter()
        .find(|(name, _)| bytes.windows(name.len()).any(|window| window == *name))
        .map(|(_, mpi)| mpi)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a launcher that is taken for the other MPI's, as its ranks would then crash.
    #[test]
    fn launchers_are_known_by_their_versions() {
        for (text, mpi) in [
            ("HYDRA build details:\n    Version:    5.0.2\n", Some(Mpi::Mpich)),
            ("mpirun (Open MPI) 4.1.4\n", Some(Mpi::OpenMpi)),
            ("mpiexec (OpenRTE) 4.1.4\n", Some(Mpi::OpenMpi)),
            ("slurm 23.11\n", None),
        ] {
            assert_eq!(mpi_of_version(text), mpi, "{text}");
        }
    }

    /// Catches a name within another name, and text files that speak of MPI.
    #[test]
    fn programs_are_known_by_the_libraries_they_name() {
        assert_eq!(mpi_of_program(b"\x7fELF..\0libc.so.6\0libmpi.so.40\0"), Some(Mpi::OpenMpi));
        assert_eq!(mpi_of_program(b"\x7fELF..\0libmpi.so.12\0"), Some(Mpi::Mpich));
        assert_eq!(mpi_of_program(b"\x7fELF..\0libmpi_abi.so.1\0libmpi.so.12x\0"), Some(Mpi::Abi));
        assert_eq!(mpi_of_program(b"\x7fELF..\0mylibmpi.so.40\0"), None);
        assert_eq!(mpi_of_program(b"#!/bin/sh\n\0libmpi.so.40\0"), None);
    }

    #[test]
    fn the_standard_abi_runs_on_mpich_only() {
        assert!(Mpi::Abi.runs_under(Mpi::Mpich));
        assert!(!Mpi::Abi.runs_under(Mpi::OpenMpi));
        assert!(!Mpi::OpenMpi.runs_under(Mpi::Mpich));
    }

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
