//! A trace that is open for reading, and one that is being written, whatever their formats.

use crate::error::TraceError;
use crate::format::{Format, FormatReader, FormatWriter, TraceOptions};
use crate::header::{TraceHeader, TraceMetadata};
use crate::weft;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;
use weft_trace::TraceSource;

/// A trace that is open for reading. Clones share the file; threads may read at once.
#[derive(Clone)]
pub struct Trace(Arc<dyn FormatReader>);

impl Trace {
    /// Opens a trace file of any format. Of weft's own format only the footer is read; others are read once,
    /// to count their operations.
    ///
    /// # Errors
    /// A file that cannot be read, or is no trace.
    pub fn open(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
        Trace::open_with(path, &TraceOptions::default())
    }

    /// The name of the format of a file; `None`: it is of none.
    pub fn format_of(path: impl AsRef<Path>) -> Option<&'static str> {
        Format::of(path.as_ref()).ok().map(|format| format.name)
    }

    /// As [`Trace::open`], with what the format must be told.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn open_with(path: impl AsRef<Path>, options: &TraceOptions) -> Result<Trace, TraceError> {
        let path = path.as_ref();
        (Format::of(path)?.open)(path, options).map(Trace)
    }

    /// Opens a trace that lies in memory, of one file; `name` stands for the file in errors.
    ///
    /// # Errors
    /// Bytes that are no trace.
    pub fn from_bytes(name: &str, bytes: impl Into<bytes::Bytes>) -> Result<Trace, TraceError> {
        let bytes = bytes.into();
        (Format::of_bytes(&bytes).open_bytes)(name, bytes, &TraceOptions::default()).map(Trace)
    }

    /// The trace as a replay sees it.
    pub fn source(&self) -> Arc<dyn TraceSource> {
        Arc::clone(&self.0) as Arc<dyn TraceSource>
    }
}

/// A trace whose format is not one of weft's: its reader is another crate's.
impl<R: FormatReader + 'static> From<R> for Trace {
    fn from(reader: R) -> Trace {
        Trace(Arc::new(reader))
    }
}

impl Deref for Trace {
    type Target = dyn FormatReader;

    fn deref(&self) -> &(dyn FormatReader + 'static) {
        &*self.0
    }
}

/// Writes one trace. Ranks are written one after the other:
///
/// ```
/// # fn main() -> Result<(), weft_formats::TraceError> {
/// use weft_formats::{TraceHeader, TraceWriter};
/// use weft_trace::op::Op;
/// use weft_units::{RankId, Span};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("two.weft");
/// let mut writer = TraceWriter::create(&path, TraceHeader { ranks: 2, ..TraceHeader::default() })?;
/// for rank in 0..2 {
///     writer.begin_rank(RankId(rank))?;
///     writer.push(&Op::Compute { span: Span::from_us(20) })?;
/// }
/// writer.finish()?;
/// # Ok(())
/// # }
/// ```
///
/// The file appears under its name with [`TraceWriter::finish`]; until then it lies beside it under a
/// hidden name, and it is removed when the writer is dropped or fails.
pub struct TraceWriter(Box<dyn FormatWriter>);

impl TraceWriter {
    /// Begins a trace at `path`, in weft's own format. An existing file is replaced when the trace is
    /// finished.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn create(path: impl AsRef<Path>, header: TraceHeader) -> Result<TraceWriter, TraceError> {
        weft::create(path.as_ref(), header).map(TraceWriter)
    }

    /// Begins a trace at `path` in the format of this name, or else in that whose files end as `path` does.
    ///
    /// # Errors
    /// No such format is written, or the file cannot be.
    pub fn create_as(
        path: impl AsRef<Path>,
        format: Option<&str>,
        header: TraceHeader,
        options: &TraceOptions,
    ) -> Result<TraceWriter, TraceError> {
        let path = path.as_ref();
        (Format::for_writing(path, format)?.create)(path, header, options).map(TraceWriter)
    }

    /// Completes the file and gives it its name. Every rank must have been begun.
    ///
    /// # Errors
    /// As [`FormatWriter::finish`].
    pub fn finish(self) -> Result<TraceMetadata, TraceError> {
        self.0.finish()
    }
}

impl Deref for TraceWriter {
    type Target = dyn FormatWriter;

    fn deref(&self) -> &(dyn FormatWriter + 'static) {
        &*self.0
    }
}

impl DerefMut for TraceWriter {
    fn deref_mut(&mut self) -> &mut (dyn FormatWriter + 'static) {
        &mut *self.0
    }
}
