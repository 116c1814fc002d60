//! The list of all formats, and the one that a file is of.

use crate::error::TraceError;
use crate::format::{Format, WrittenAs};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// All formats. A file that none of them knows is read as one of the first, whose reader says what is wrong.
const FORMATS: &[Format] = &[
    crate::weft::FORMAT,
    crate::dumpi::FORMAT,
    crate::goal::FORMAT,
    crate::goal::BINARY,
    crate::liballprof::FORMAT,
    crate::chakra::FORMAT,
    crate::simgrid::FORMAT,
    crate::vef::FORMAT,
];

/// The first bytes of a file, by which formats know it: some lines of a text.
const HEAD_BYTES: u64 = 4096;

impl Format {
    /// The format of a file. One that cannot be read is for the first, whose reader says why.
    ///
    /// # Errors
    /// It is of none of them.
    pub(crate) fn of(path: &Path) -> Result<&'static Format, TraceError> {
        let Ok(head) = first_bytes(path) else { return Ok(&FORMATS[0]) };
        let known = FORMATS.iter().find(|format| (format.knows)(path, &head));
        let is_file = path.is_file();
        known.or(if is_file { None } else { Some(&FORMATS[0]) }).ok_or_else(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            TraceError::UnknownFormat { file: path.display().to_string(), names: names.join(", ") }
        })
    }

    /// The format in which `path` is written: of this name, or else the one whose files end so.
    pub(crate) fn for_writing(path: &Path, name: Option<&str>) -> Result<&'static WrittenAs, TraceError> {
        let is_it = |format: &Format, writing: &WrittenAs| match name {
            Some(name) => format.name == name,
            None => path.extension().is_some_and(|extension| extension == writing.extension),
        };
        let written = || FORMATS.iter().filter_map(|format| Some((format, format.writing.as_ref()?)));
        let found = written().find(|(format, writing)| is_it(format, writing));
        found.map(|(_, writing)| writing).ok_or_else(|| {
            let names: Vec<_> = written().map(|(format, _)| format.name).collect();
            let asked = name
                .map_or("its name tells no format".to_owned(), |name| format!("no format {name} is written"));
            let reason = format!("{asked}; give --format {}", names.join(" or --format "));
            TraceError::Misuse { path: path.to_owned(), reason }
        })
    }

    /// The format of a file that lies in memory.
    pub(crate) fn of_bytes(bytes: &[u8]) -> &'static Format {
        let head = &bytes[..bytes.len().min(HEAD_BYTES as usize)];
        FORMATS.iter().find(|format| (format.knows)(Path::new(""), head)).unwrap_or(&FORMATS[0])
    }
}

/// The begin of a regular file. Devices and pipes are not opened: they may have no end.
fn first_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    if path.metadata()?.is_file() {
        File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    }
    Ok(head)
}
