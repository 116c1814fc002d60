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
mod pages;
mod reader;
mod row;
mod schema;
mod source;
mod thrift;
mod writer;

use crate::error::TraceError;
use crate::format::{Format, FormatReader};
use reader::WeftReader;
use std::sync::Arc;
use writer::WeftWriter;

/// The format.
pub(crate) const FORMAT: Format = Format {
    knows: |head| head.starts_with(b"PAR1"),
    open: |path| Ok(Arc::new(WeftReader::open(path)?)),
    create: |path, header| Ok(Box::new(WeftWriter::create(path, header)?)),
};

/// Opens a trace that lies in memory; `name` stands for the file in errors.
pub(crate) fn from_bytes(name: &str, bytes: bytes::Bytes) -> Result<Arc<dyn FormatReader>, TraceError> {
    Ok(Arc::new(WeftReader::from_bytes(name, bytes)?))
}
