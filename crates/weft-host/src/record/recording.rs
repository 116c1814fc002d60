//! The recording of one run: the recorder's library, the folder of the ranks' parts, and the trace that they
//! become.

use super::error::{RecordError, file_error};
use super::mpi::Mpi;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use weft_formats::TraceHeader;
use weft_formats::parts::{Converted, Parts, PartsError};

/// Environment variable that names the folder of the parts to the ranks.
pub const PARTS_VARIABLE: &str = "WEFT_RECORD_PARTS";

/// A recording that is under way. Whoever starts the ranks holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    /// The recorder's library, to be preloaded into ranks.
    pub library: PathBuf,
    /// Folder of the parts: the value of [`PARTS_VARIABLE`].
    pub parts: PathBuf,
    output: PathBuf,
}

impl Recording {
    /// Makes ready a recording that becomes the trace `output`.
    ///
    /// # Errors
    /// A trace or parts that exist already, or no recorder for this MPI.
    pub fn prepare(
        output: &Path,
        force: bool,
        mpi: Mpi,
        recorder_folder: Option<&Path>,
    ) -> Result<Recording, RecordError> {
        refuse_existing(output, force)?;
        // A symbolic link stays: the file that it names is written.
        let output = fs::canonicalize(output).unwrap_or_else(|_| output.to_owned());
        if output.exists() && !output.is_file() {
            return Err(RecordError::NoFile(output));
        }
        let library = recorder_library(recorder_folder, mpi)?;
        let parts = prepare_parts(&output, force)?;
        Ok(Recording { library, parts, output })
    }

    /// Makes the trace when all ranks have ended; `None`: no rank recorded anything. `complete` fills in the
    /// header's fields that no part knows.
    ///
    /// # Errors
    /// Parts for which there was no room, or that do not make a trace.
    pub fn finish(self, complete: impl FnOnce(&mut TraceHeader)) -> Result<Option<Converted>, RecordError> {
        let Recording { parts, output, .. } = self;
        let recorded = match Parts::open(&parts) {
            Ok(recorded) => recorded,
            Err(PartsError::NoParts { .. }) => {
                remove_parts(&parts)?;
                return Ok(None);
            }
            Err(PartsError::NoRoom { .. }) => {
                remove_parts(&parts)?;
                return Err(RecordError::NoRoom(output));
            }
            Err(source) => return Err(RecordError::Conversion { parts, source }),
        };
        let converted = recorded.convert(&output, complete).map_err(|source| match source {
            PartsError::Trace(source) => RecordError::Unwritten { parts: parts.clone(), source },
            source => RecordError::Conversion { parts: parts.clone(), source },
        })?;
        remove_parts(&parts)?;
        Ok(Some(converted))
    }

    /// The trace that the recording becomes.
    pub fn trace(&self) -> &Path {
        &self.output
    }

    /// Removes the parts of a recording whose ranks were not started.
    ///
    /// # Errors
    /// The folder of the parts cannot be removed.
    pub fn discard(self) -> Result<(), RecordError> {
        remove_parts(&self.parts)
    }
}

/// # Errors
/// `output` exists, and `force` is not given.
pub(super) fn refuse_existing(output: &Path, force: bool) -> Result<(), RecordError> {
    if output.exists() && !force { Err(RecordError::OutputExists(output.to_owned())) } else { Ok(()) }
}

/// Makes the empty folder of the parts.
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

/// Removes the parts and their folder. The folder stays if it holds other files.
fn remove_parts(parts: &Path) -> Result<(), RecordError> {
    for entry in fs::read_dir(parts).map_err(|source| file_error(parts, source))? {
        let path = entry.map_err(|source| file_error(parts, source))?.path();
        if path.extension() == Some(OsStr::new("part")) {
            fs::remove_file(&path).map_err(|source| file_error(&path, source))?;
        }
    }
    fs::remove_dir(parts).map_err(|source| file_error(parts, source))
}

/// The recorder's library for an MPI, where `weft record` would find it.
///
/// # Errors
/// It is not there; the message has the mend.
pub fn recorder(mpi: Mpi) -> Result<PathBuf, RecordError> {
    recorder_library(None, mpi)
}

/// The recorder's library for an MPI, in `folder` or in the folders of an installation.
fn recorder_library(folder: Option<&Path>, mpi: Mpi) -> Result<PathBuf, RecordError> {
    let name = format!("libweft-record-{}.so", mpi.word());
    let named =
        folder.map(PathBuf::from).or_else(|| std::env::var_os("WEFT_RECORDER_DIR").map(PathBuf::from));
    let library = match named {
        Some(folder) => folder.join(&name),
        None => {
            let executable =
                std::env::current_exe().map_err(|source| file_error(Path::new("weft"), source))?;
            let mut candidates = executable.ancestors().skip(1).flat_map(|above| {
                [above.join("build/recorder").join(&name), above.join("lib/weft").join(&name)]
            });
            candidates
                .find(|candidate| candidate.is_file())
                .unwrap_or_else(|| Path::new("build/recorder").join(&name))
        }
    };
    match std::path::absolute(&library) {
        Ok(absolute) if absolute.is_file() => Ok(absolute),
        _ => Err(RecordError::NoRecorder { mpi, library }),
    }
}
