//! Formats of trace files: what each brings, and the list of them.
//!
//! | a format has | as |
//! |---|---|
//! | a reader, which gives the operations of any rank | [`FormatReader`] |
//! | a writer, if it is written, which takes them rank by rank | [`FormatWriter`] |
//! | a line in [`FORMATS`], with how a file of it is known | [`Format`] |
//!
//! Everything else ([`crate::Trace`], checks, statistics, replays) works on these two traits.

use crate::error::TraceError;
use crate::header::{TraceHeader, TraceMetadata};
use crate::simgrid::FlopRate;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weft_trace::TraceSource;
use weft_trace::op::{Op, StreamId};
use weft_units::{Bytes, RankId};

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

/// A trace that is open for reading.
pub trait FormatReader: TraceSource {
    /// The name of the format, such as `weft`.
    fn format(&self) -> &'static str;

    /// The header of the trace and the writer's counts.
    fn metadata(&self) -> &TraceMetadata;

    /// Size of the file.
    fn file_bytes(&self) -> Bytes;

    /// All files that it is read from.
    fn files(&self) -> Vec<PathBuf> {
        vec![PathBuf::from(self.file())]
    }
}

/// A trace that is being written. Its file has its name when it is finished, and not before.
pub trait FormatWriter {
    /// The header, to set what is known only at the end of a recording. The number of ranks must stay.
    fn header_mut(&mut self) -> &mut TraceHeader;

    /// Begins the operations of a rank. Ranks come in order, none left out.
    ///
    /// # Errors
    /// A rank out of order, or a file that cannot be written.
    fn begin_rank(&mut self, rank: RankId) -> Result<(), TraceError>;

    /// Begins another stream of the rank that was begun last, on this core of it. The first stream of a rank
    /// is begun with it, on core 0.
    ///
    /// # Errors
    /// No rank was begun.
    fn begin_stream(&mut self, core: u32) -> Result<(), TraceError> {
        let _ = core;
        unreachable!("nobody begins streams where there are none")
    }

    /// Whether ranks of the format can have several streams. If not, none is begun.
    fn has_streams(&self) -> bool {
        false
    }

    /// Whether the streams of a rank are written mixed, in an order that their events and requests allow:
    /// with [`FormatWriter::switch_to`] in the place of [`FormatWriter::begin_stream`].
    fn mixes_streams(&self) -> bool {
        false
    }

    /// Goes on with a stream of the rank, on this core of it, or begins it.
    ///
    /// # Errors
    /// No rank was begun.
    fn switch_to(&mut self, stream: StreamId, core: u32) -> Result<(), TraceError> {
        let _ = (stream, core);
        unreachable!("nobody mixes streams where they are not mixed")
    }

    /// The stream is over: its number may begin another. Streams that are not ended go on to the rank's end.
    fn end_stream(&mut self, stream: StreamId) {
        let _ = stream;
    }

    /// Whether the operation is written as what it is. If not, it may be turned into others before it comes.
    fn carries(&self, op: &Op) -> bool {
        let _ = op;
        true
    }

    /// Adds the next operation of the rank and the stream that were begun last.
    ///
    /// # Errors
    /// An operation that makes no sense, or a file that cannot be written.
    fn push(&mut self, op: &Op) -> Result<(), TraceError>;

    /// Operations so far that the format cannot carry, with their number.
    fn left_out(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }

    /// Completes the file and gives it its name. Every rank must have been begun.
    ///
    /// # Errors
    /// Ranks that are missing, or a file that cannot be written.
    fn finish(self: Box<Self>) -> Result<TraceMetadata, TraceError>;
}

/// Facts that a format must be told, since its files do not say them.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct TraceOptions {
    /// The speed of a core, for formats that tell computation in floating-point operations.
    pub speed: Option<FlopRate>,
}

/// A trace that is being written in some format, or why it cannot be begun.
pub(crate) type BegunTrace = Result<Box<dyn FormatWriter>, TraceError>;

/// A trace that is open in some format, or why it is not.
pub(crate) type OpenTrace = Result<Arc<dyn FormatReader>, TraceError>;

/// A format of trace files.
pub(crate) struct Format {
    /// The name that `--format` takes.
    pub(crate) name: &'static str,
    /// Whether a file that begins with these bytes is of this format.
    pub(crate) knows: fn(&Path, &[u8]) -> bool,
    /// Opens a file.
    pub(crate) open: fn(&Path, &TraceOptions) -> OpenTrace,
    /// Opens a file that lies in memory: for tests and fuzzing. A run of several files is one of one rank.
    pub(crate) open_bytes: fn(&str, bytes::Bytes, &TraceOptions) -> OpenTrace,
    /// Writes files, if it is written.
    pub(crate) writing: Option<WrittenAs>,
}

/// How a format is written.
pub(crate) struct WrittenAs {
    /// The end of the names of its files.
    pub(crate) extension: &'static str,
    /// Begins a file, which replaces another of this name when it is finished.
    pub(crate) create: fn(&Path, TraceHeader, &TraceOptions) -> BegunTrace,
}

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
