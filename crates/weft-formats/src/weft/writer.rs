//! Writes a trace: operations in, one Parquet file out, whole or not at all.

use super::checksum;
use super::row::Row;
use super::schema::{self, Column, GROUP_ENTRIES, GROUP_ROWS, GROUP_ROWS_AT_END_OF_RANK, MAX_ENTRIES};
use crate::error::TraceError;
use crate::format::FormatWriter;
use crate::header::{
    FIRST_FORMAT_VERSION, FORMAT_VERSION, METADATA_KEY, StreamMetadata, TraceHeader, TraceMetadata,
};
use crate::output::{self, unwritable};
use bytes::Bytes;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;
use weft_trace::Kind;
use weft_trace::op::Op;
use weft_units::RankId;

/// Writes one trace. Until it is finished it lies beside its place under a hidden name, and is removed when
/// the writer is dropped or fails.
pub(crate) struct WeftWriter {
    path: PathBuf,
    header: TraceHeader,
    file: SerializedFileWriter<BufWriter<NamedTempFile>>,
    group: Group,
    operations: BTreeMap<Kind, u64>,
    /// The streams of each rank begun.
    rank_streams: Vec<Vec<StreamMetadata>>,
}

impl WeftWriter {
    /// Begins a trace at `path`. An existing file is replaced when the trace is finished.
    pub(crate) fn create(path: &Path, header: TraceHeader) -> Result<WeftWriter, TraceError> {
        let path = path.to_owned();
        let temporary = output::unfinished(&path)?;
        let properties = Arc::new(properties(schema::page_rows(&header)));
        let file =
            SerializedFileWriter::new(BufWriter::new(temporary), Arc::new(schema::schema()), properties)
                .map_err(|error| unwritable(&path, error))?;
        Ok(WeftWriter {
            path,
            header,
            file,
            group: Group::default(),
            operations: BTreeMap::new(),
            rank_streams: Vec::new(),
        })
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        if self.group.rows == 0 {
            return Ok(());
        }
        let group = std::mem::take(&mut self.group);
        group.write(&mut self.file).map_err(|error| unwritable(&self.path, error))
    }

    fn misuse(&self, reason: String) -> TraceError {
        TraceError::Misuse { path: self.path.clone(), reason }
    }
}

impl FormatWriter for WeftWriter {
    fn header_mut(&mut self) -> &mut TraceHeader {
        &mut self.header
    }

    fn begin_rank(&mut self, rank: RankId) -> Result<(), TraceError> {
        let expected = self.rank_streams.len();
        if rank.index() != expected || rank.0 >= self.header.ranks {
            let reason =
                format!("rank {rank} begun where rank {expected} of {} comes next", self.header.ranks);
            return Err(self.misuse(reason));
        }
        if self.group.rows >= GROUP_ROWS_AT_END_OF_RANK {
            self.flush()?;
        }
        self.rank_streams.push(vec![StreamMetadata { operations: 0, core: 0 }]);
        Ok(())
    }

    fn has_streams(&self) -> bool {
        true
    }

    fn begin_stream(&mut self, core: u32) -> Result<(), TraceError> {
        let Some(streams) = self.rank_streams.last_mut() else {
            return Err(self.misuse("a stream before the first rank was begun".to_owned()));
        };
        streams.push(StreamMetadata { operations: 0, core });
        Ok(())
    }

    fn push(&mut self, op: &Op) -> Result<(), TraceError> {
        let ranks = self.header.ranks;
        let rank = self.rank_streams.len().wrapping_sub(1);
        let Some(stream) = self.rank_streams.last_mut().and_then(|streams| streams.last_mut()) else {
            return Err(self.misuse("an operation before the first rank was begun".to_owned()));
        };
        let row = Row::from_op(op);
        if let Err((column, reason)) = row.check(ranks) {
            let position = stream.operations;
            let column = column.name();
            return Err(self.misuse(format!("rank {rank}, operation {position}, column {column}: {reason}")));
        }
        self.group.push(rank as u32, &row);
        stream.operations += 1;
        *self.operations.entry(row.kind).or_default() += 1;
        if self.group.rows >= GROUP_ROWS || self.group.entries >= GROUP_ENTRIES {
            self.flush()?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<TraceMetadata, TraceError> {
        let begun = self.rank_streams.len();
        if begun != self.header.ranks as usize {
            return Err(self.misuse(format!("finished after {begun} of {} ranks", self.header.ranks)));
        }
        self.flush()?;
        let is_event = |kind: &Kind| matches!(kind, Kind::Signal(_) | Kind::Await);
        let has_streams = self.rank_streams.iter().any(|streams| streams.len() > 1);
        let has_events = self.operations.keys().any(is_event);
        let of_rank = |streams: &Vec<StreamMetadata>| streams.iter().map(|stream| stream.operations).sum();
        let metadata = TraceMetadata {
            format_version: if has_streams || has_events { FORMAT_VERSION } else { FIRST_FORMAT_VERSION },
            header: self.header,
            operations: self
                .operations
                .iter()
                .map(|(kind, &count)| (kind.name().to_owned(), count))
                .collect(),
            rank_operations: self.rank_streams.iter().map(of_rank).collect(),
            rank_streams: if has_streams { self.rank_streams } else { Vec::new() },
        };
        let json = serde_json::to_string(&metadata).expect("strings and numbers always make JSON");
        self.file.append_key_value_metadata(KeyValue::new(METADATA_KEY.to_owned(), json));
        checksum::entries().into_iter().for_each(|entry| self.file.append_key_value_metadata(entry));
        let path = self.path;
        let mut buffer = self.file.into_inner().map_err(|error| unwritable(&path, error))?;
        buffer.flush().map_err(|error| unwritable(&path, error))?;
        let temporary = buffer.into_inner().map_err(|error| unwritable(&path, error.into_error()))?;
        checksum::seal(temporary.as_file()).map_err(|error| unwritable(&path, error))?;
        output::finish(temporary, &path)?;
        Ok(metadata)
    }
}

/// A column is dictionary-encoded while its dictionary is smaller than this: it is read with every chunk.
const DICTIONARY_BYTES: usize = 32 * 1024;

fn properties(page_rows: usize) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("weft ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::UNCOMPRESSED)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_data_page_size_limit(schema::PAGE_BYTES)
        .set_data_page_row_count_limit(page_rows)
        .set_write_batch_size(page_rows);
    // Times hardly repeat. Texts always lie in a dictionary: all of a row group fit.
    builder = builder.set_column_dictionary_enabled(ColumnPath::from(Column::SpanPs.name()), false);
    let all_texts = 2 * (GROUP_ENTRIES + MAX_ENTRIES);
    builder = builder.set_column_dictionary_page_size_limit(ColumnPath::from(Column::Text.name()), all_texts);
    builder.build()
}

/// The rows of a row group that is not yet written, column by column.
#[derive(Default)]
struct Group {
    rows: usize,
    /// Entries of lists and bytes of texts.
    entries: usize,
    rank: Values<Int32Type>,
    operation: Values<ByteArrayType>,
    span_ps: Values<Int64Type>,
    peer: Values<Int32Type>,
    tag: Values<Int32Type>,
    comm: Values<Int64Type>,
    bytes: Values<Int64Type>,
    receive_bytes: Values<Int64Type>,
    element_bytes: Values<Int32Type>,
    request: Values<Int32Type>,
    matched_peer: Values<Int32Type>,
    matched_tag: Values<Int32Type>,
    completed: Values<Int32Type>,
    window: Values<Int64Type>,
    text: Values<ByteArrayType>,
    requests: Values<Int32Type>,
    send_counts: Values<Int64Type>,
    receive_counts: Values<Int64Type>,
    members: Values<Int64Type>,
    buffer: Values<Int64Type>,
    receive_buffer: Values<Int64Type>,
    reduction: Values<ByteArrayType>,
    data_type: Values<ByteArrayType>,
    flops: Values<Int64Type>,
}

impl Group {
    fn push(&mut self, rank: u32, row: &Row) {
        let int32 = |value: Option<u32>| value.map(u32::cast_signed);
        let int64 = |value: Option<u64>| value.map(u64::cast_signed);
        let name = |name: &'static str| ByteArray::from(Bytes::from_static(name.as_bytes()));
        self.rank.values.push(rank.cast_signed());
        self.operation.values.push(name(row.kind.name()));
        self.span_ps.push(int64(row.span_ps));
        self.peer.push(int32(row.peer));
        self.tag.push(row.tag);
        self.comm.push(int64(row.comm));
        self.bytes.push(int64(row.bytes));
        self.receive_bytes.push(int64(row.receive_bytes));
        self.element_bytes.push(int32(row.element_bytes));
        self.request.push(int32(row.request));
        self.matched_peer.push(int32(row.matched_peer));
        self.matched_tag.push(row.matched_tag);
        self.completed.push(int32(row.completed));
        self.window.push(int64(row.window));
        self.text.push(row.text.as_deref().map(ByteArray::from));
        self.requests.push_list(row.requests.iter().map(|value| value.cast_signed()));
        self.send_counts.push_list(row.send_counts.iter().map(|value| value.cast_signed()));
        self.receive_counts.push_list(row.receive_counts.iter().map(|value| value.cast_signed()));
        self.members.push_list(row.members.iter().copied());
        self.buffer.push(int64(row.buffer));
        self.receive_buffer.push(int64(row.receive_buffer));
        self.reduction.push(row.reduction.map(name));
        self.data_type.push(row.data_type.map(name));
        self.flops.push(int64(row.flops));
        self.rows += 1;
        self.entries += row.entries();
    }

    fn write<W: Write + Send>(self, file: &mut SerializedFileWriter<W>) -> Result<(), ParquetError> {
        let mut group = file.next_row_group()?;
        self.rank.write(&mut group)?;
        self.operation.write(&mut group)?;
        self.span_ps.write(&mut group)?;
        self.peer.write(&mut group)?;
        self.tag.write(&mut group)?;
        self.comm.write(&mut group)?;
        self.bytes.write(&mut group)?;
        self.receive_bytes.write(&mut group)?;
        self.element_bytes.write(&mut group)?;
        self.request.write(&mut group)?;
        self.matched_peer.write(&mut group)?;
        self.matched_tag.write(&mut group)?;
        self.completed.write(&mut group)?;
        self.window.write(&mut group)?;
        self.text.write(&mut group)?;
        self.requests.write(&mut group)?;
        self.send_counts.write(&mut group)?;
        self.receive_counts.write(&mut group)?;
        self.members.write(&mut group)?;
        self.buffer.write(&mut group)?;
        self.receive_buffer.write(&mut group)?;
        self.reduction.write(&mut group)?;
        self.data_type.write(&mut group)?;
        self.flops.write(&mut group)?;
        group.close()?;
        Ok(())
    }
}

/// The values of one column with Parquet's levels: which are null, and where lists begin.
struct Values<T: DataType> {
    values: Vec<T::T>,
    definition: Vec<i16>,
    repetition: Vec<i16>,
}

impl<T: DataType> Default for Values<T> {
    fn default() -> Values<T> {
        Values { values: Vec::new(), definition: Vec::new(), repetition: Vec::new() }
    }
}

impl<T: DataType> Values<T> {
    fn push(&mut self, value: Option<T::T>) {
        self.definition.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    /// An empty list is written as null.
    fn push_list(&mut self, values: impl ExactSizeIterator<Item = T::T>) {
        let len = values.len();
        if len == 0 {
            self.definition.push(0);
            self.repetition.push(0);
            return;
        }
        self.definition.extend(std::iter::repeat_n(2, len));
        self.repetition.push(0);
        self.repetition.extend(std::iter::repeat_n(1, len - 1));
        self.values.extend(values);
    }

    /// Writes the next column of `group`.
    fn write<W: Write + Send>(self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        let mut column = group.next_column()?.expect("a column of values for every column of the schema");
        let definition = (!self.definition.is_empty()).then_some(&self.definition[..]);
        let repetition = (!self.repetition.is_empty()).then_some(&self.repetition[..]);
        column.typed::<T>().write_batch(&self.values, definition, repetition)?;
        column.close()
    }
}
