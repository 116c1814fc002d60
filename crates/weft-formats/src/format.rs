//! Formats of trace files: what each brings, and the list of them.
//!
//! | a format has | as |
//! |---|---|
//! | a reader, which gives the operations of any rank | [`FormatReader`] |
//! | a writer, which takes them rank by rank | [`FormatWriter`] |
//! | a line in [`FORMATS`], with the first bytes that it is known by | [`Format`] |
//!
//! Everything else ([`crate::Trace`], checks, statistics, replays) works on these two traits.

use crate::error::TraceError;
use crate::header::{TraceHeader, TraceMetadata};
use crate::weft;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use weft_trace::TraceSource;
use weft_trace::op::Op;
use weft_units::{Bytes, RankId};

/// All formats. A file that none of them knows is read as one of the first, whose reader says what is wrong.
const FORMATS: &[Format] = &[weft::FORMAT];

/// The first bytes of a file, by which formats know it.
const HEAD_BYTES: u64 = 64;

/// A trace that is open for reading.
pub trait FormatReader: TraceSource {
    /// The header of the trace and the writer's counts.
    fn metadata(&self) -> &TraceMetadata;

    /// Size of the file.
    fn file_bytes(&self) -> Bytes;
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

    /// Adds the next operation of the rank that was begun last.
    ///
    /// # Errors
    /// An operation that makes no sense, or a file that cannot be written.
    fn push(&mut self, op: &Op) -> Result<(), TraceError>;

    /// Completes the file and gives it its name. Every rank must have been begun.
    ///
    /// # Errors
    /// Ranks that are missing, or a file that cannot be written.
    fn finish(self: Box<Self>) -> Result<TraceMetadata, TraceError>;
}

/// A trace that is being written in some format, or why it cannot be begun.
pub(crate) type BegunTrace = Result<Box<dyn FormatWriter>, TraceError>;

/// A format of trace files.
pub(crate) struct Format {
    /// Whether a file that begins with these bytes is of this format.
    pub(crate) knows: fn(&[u8]) -> bool,
    /// Opens a file.
    pub(crate) open: fn(&Path) -> Result<Arc<dyn FormatReader>, TraceError>,
    /// Begins a file, which replaces another of this name when it is finished.
    pub(crate) create: fn(&Path, TraceHeader) -> BegunTrace,
}

impl Format {
    /// The format of a file.
    pub(crate) fn of(path: &Path) -> &'static Format {
        let head = first_bytes(path).unwrap_or_default();
        FORMATS.iter().find(|format| (format.knows)(&head)).unwrap_or(&FORMATS[0])
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
