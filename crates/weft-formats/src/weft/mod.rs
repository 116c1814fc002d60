//! weft's own format: a Parquet file, which any tool for tables reads.
//!
//! ```text
//!   Op ──▶ WeftWriter ── Row ──▶ file.weft ──▶ WeftReader ──▶ WeftCursor ── Op ──▶
//!                       (schema.rs)            footer, page    a page of rows
//!                                              index, checksum
//! ```

mod batch;
mod checksum;
mod column;
mod cursor;
mod hybrid;
mod operations;
mod pages;
mod reader;
mod row;
mod schema;
mod source;
mod thrift;
mod writer;

use crate::format::{BegunTrace, Format, WrittenAs};
use crate::header::TraceHeader;
use std::path::Path;
use std::sync::Arc;

pub(crate) use reader::WeftReader;
pub(crate) use row::MAX_BYTES;
pub(crate) use writer::WeftWriter;

/// The format.
pub(crate) const FORMAT: Format = Format {
    name: "weft",
    knows: |_, head| head.starts_with(b"PAR1"),
    open: |path, _| Ok(Arc::new(WeftReader::open(path)?)),
    open_bytes: |name, bytes, _| Ok(Arc::new(WeftReader::from_bytes(name, bytes)?)),
    writing: Some(WrittenAs { extension: "weft", create: |path, header, _| create(path, header) }),
};

/// Begins a trace at `path`, which replaces another of this name when it is finished.
pub(crate) fn create(path: &Path, header: TraceHeader) -> BegunTrace {
    Ok(Box::new(WeftWriter::create(path, header)?))
}
