//! Which MPI a command uses: the launcher's own word, and the libraries that its programs are linked to.

use super::error::RecordError;
use crate::launch::is_wheel;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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

    /// How to build the recorder for it.
    pub(super) fn build_hint(self) -> &'static str {
        match self {
            Mpi::Mpich | Mpi::Abi if is_wheel() => {
                "`pip install mpich`, then `pip install --force-reinstall --no-deps .` in the clone"
            }
            Mpi::OpenMpi if is_wheel() => {
                "`apt-get install openmpi-bin libopenmpi-dev`, then `pip install --force-reinstall \
                 --no-deps .` in the clone"
            }
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

/// The MPI of a command that weft starts without a launcher: the one that a program in the command is linked
/// to. A script names no library: it gets MPICH.
pub fn mpi_of_ranks(command: &[OsString]) -> Mpi {
    let linked = command.iter().find_map(|word| linked_mpi(&find_program(word)?));
    linked.unwrap_or(Mpi::Mpich)
}

/// The program that a word of a command names: a path, or a name on PATH.
pub(super) fn find_program(word: &OsStr) -> Option<PathBuf> {
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

/// The MPI that the command uses: its launcher's, or the one that a program in it is linked to. If both are
/// known, they must fit.
pub(super) fn find_mpi(launcher: &Path, command: &[OsString]) -> Result<Mpi, RecordError> {
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

/// The MPI that a launcher's `--version` names. Only a program with a launcher's name is run.
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
    let names = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if names(&["Open MPI", "OpenRTE", "PRRTE"]) {
        Some(Mpi::OpenMpi)
    } else if names(&["HYDRA", "MPICH", "Intel(R) MPI"]) {
        Some(Mpi::Mpich)
    } else {
        None
    }
}

/// Bytes at the start of a program that are searched for the names of its libraries, which are near the
/// start.
const MAX_SEARCHED_BYTES: u64 = 64 << 20;

/// The MPI library that an ELF program names among those it needs; `None` for scripts, and for a program that
/// gets MPI through another library.
fn linked_mpi(program: &Path) -> Option<Mpi> {
    let mut bytes = Vec::new();
    fs::File::open(program).ok()?.take(MAX_SEARCHED_BYTES).read_to_end(&mut bytes).ok()?;
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
}
