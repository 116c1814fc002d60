//! Programs that can be ranks: found as a shell finds them, and looked at before they are started.
//!
//! A rank must load the client library, which a static program never does; and its MPI must take the
//! libfabric provider, which only MPICH's does without anything of real time beside it.
//!
//! # Not modelled
//! What a script starts: it is looked at no further than its first line. Wrappers inherit what ranks load.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A program that cannot be a rank.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// There is none of that name.
    #[error("{program} was not found{place}; write the path of a program that exists")]
    NotFound {
        /// As given.
        program: String,
        /// The places where it was looked for, as the message says them.
        place: &'static str,
    },
    /// It may not be run.
    #[error(
        "{0} cannot be run: it is {1}; make it an executable file (chmod +x), or write its interpreter \
         before it"
    )]
    NotExecutable(PathBuf, &'static str),
    /// It cannot be read.
    #[error("{0} cannot be read: {1}")]
    Unreadable(PathBuf, io::Error),
    /// It loads no libraries.
    #[error(
        "{0} is statically linked: it loads no libraries, so its messages and its clock cannot be taken \
         over; link it dynamically (without -static)"
    )]
    Static(PathBuf),
    /// A program of Open MPI, which cannot be used yet.
    #[error(
        "{0} is linked to Open MPI (libmpi.so.40), which runs in real time beside the network and cannot run \
         in virtual time yet; build it with MPICH: build/venv/bin/mpicc"
    )]
    OpenMpi(PathBuf),
}

/// The way in which a program is linked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Linked {
    /// No ELF file: a script.
    Script,
    /// It has an interpreter that loads its libraries.
    Dynamically,
    /// It has none.
    Statically,
}

/// Finds a program and makes sure that it can be a rank.
///
/// # Errors
/// See [`ProgramError`].
pub fn find(program: &OsStr) -> Result<PathBuf, ProgramError> {
    let path = locate(program)?;
    let unreadable = |error| ProgramError::Unreadable(path.clone(), error);
    let mut bytes = Vec::new();
    let metadata = path.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(ProgramError::NotExecutable(path, "no file"));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(ProgramError::NotExecutable(path, "not executable"));
    }
    File::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(unreadable)?;
    match linked(&bytes) {
        Linked::Statically => Err(ProgramError::Static(path)),
        Linked::Dynamically if contains(&bytes, b"libmpi.so.40\0") => Err(ProgramError::OpenMpi(path)),
        Linked::Dynamically | Linked::Script => Ok(path),
    }
}

fn locate(program: &OsStr) -> Result<PathBuf, ProgramError> {
    let name = Path::new(program);
    let not_found = |place| ProgramError::NotFound { program: name.display().to_string(), place };
    if program.as_encoded_bytes().contains(&b'/') {
        return if name.exists() { Ok(name.to_owned()) } else { Err(not_found("")) };
    }
    let Some(folders) = std::env::var_os("PATH").filter(|folders| !folders.is_empty()) else {
        return Err(not_found(": PATH, whose folders are searched, is not set"));
    };
    let mut places = std::env::split_paths(&folders).map(|folder| match folder.as_os_str().is_empty() {
        // The working directory: without a folder, the name would be looked for in PATH again.
        true => Path::new(".").join(name),
        false => folder.join(name),
    });
    let executable = |place: &PathBuf| {
        place.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    places.find(executable).ok_or_else(|| not_found(" in the folders of PATH"))
}

/// How a program is linked: an ELF file of 64 bits (little-endian, as all that weft runs on) with or without
/// a program header PT_INTERP.
fn linked(bytes: &[u8]) -> Linked {
    const INTERPRETER: u32 = 3;
    if !bytes.starts_with(b"\x7fELF\x02") {
        return Linked::Script;
    }
    let half = |at: usize| bytes.get(at..at + 2).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
    let headers = bytes.get(32..40).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes) as usize;
    let (size, count) = (usize::from(half(54)), usize::from(half(56)));
    let kinds = (0..count).filter_map(|index| {
        let at = headers.checked_add(index * size)?;
        bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
    });
    if kinds.into_iter().any(|kind| kind == INTERPRETER) { Linked::Dynamically } else { Linked::Statically }
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a check that refuses what can run, or lets through what would run outside virtual time.
    #[test]
    fn programs_are_told_apart() {
        assert!(find(OsStr::new("sh")).unwrap().ends_with("sh"));
        assert!(matches!(find(OsStr::new("no-such-program")), Err(ProgramError::NotFound { .. })));
        assert!(matches!(find(OsStr::new("./no-such-program")), Err(ProgramError::NotFound { .. })));
        assert!(matches!(find(OsStr::new("/etc/passwd")), Err(ProgramError::NotExecutable(..))));
        assert!(matches!(find(OsStr::new("/etc")), Err(ProgramError::NotExecutable(..))));
        let mut elf = vec![0; 64 + 56];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        (elf[32], elf[54], elf[56], elf[64]) = (64, 56, 1, 1);
        assert_eq!(linked(&elf), Linked::Statically);
        elf[64] = 3;
        assert_eq!(linked(&elf), Linked::Dynamically);
        assert_eq!(linked(&elf[..40]), Linked::Statically);
        assert_eq!(linked(b"#!/bin/sh\n"), Linked::Script);
    }
}
