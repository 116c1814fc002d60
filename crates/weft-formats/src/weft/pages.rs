//! The pages of one column of one row group: found by the page index, and believed only when checked.
//!
//! The Parquet library reads the headers of pages, whose bytes are checked before. What the pages hold is
//! decoded [here](super::column), since the library makes of it arrays that nobody wants, and trusts some of
//! what a page says of itself.

use super::schema::MAX_GROUP_VALUES;
use super::source::Source;
use super::thrift;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::index_reader::decode_offset_index;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// Longest header of a page, in bytes: one of numbers alone has less than 64, and statistics are small.
const MAX_PAGE_HEADER_BYTES: usize = 1024;

/// The locations of the pages of one column in one row group.
pub(crate) struct PageIndex {
    dictionary: Option<PageLocation>,
    data: Vec<PageLocation>,
}

impl PageIndex {
    /// Reads and checks the index of a column of a row group of `rows` rows.
    pub(crate) fn read(source: &Source, chunk: &ColumnChunkMetaData, rows: u64) -> Result<PageIndex> {
        if chunk.compression() != Compression::UNCOMPRESSED {
            return Err(general(format!("compressed with {}, a trace is not", chunk.compression())));
        }
        let range = chunk.offset_index_range().ok_or_else(|| general("no page index".to_owned()))?;
        let length = usize::try_from(range.end - range.start).map_err(|error| general(error.to_string()))?;
        let index = source.get_bytes(range.start, length)?;
        thrift::check(&thrift::OFFSET_INDEX, &index)?;
        let data = decode_offset_index(&index)?.page_locations().clone();

        let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
        let first = data.first().ok_or_else(|| general("no pages".to_owned()))?;
        let rows_ascend = first.first_row_index == 0
            && data.is_sorted_by(|a, b| a.first_row_index < b.first_row_index)
            && data.last().is_some_and(|last| (last.first_row_index as u64) < rows);
        let sizes_make_sense = data.iter().all(|page| page.offset >= 0 && page.compressed_page_size > 0);
        let dictionary_size = first.offset.checked_sub(start).and_then(|size| i32::try_from(size).ok());
        match dictionary_size {
            Some(size) if start >= 0 && size >= 0 && rows_ascend && sizes_make_sense => {
                let dictionary =
                    PageLocation { offset: start, compressed_page_size: size, first_row_index: 0 };
                Ok(PageIndex { dictionary: (size > 0).then_some(dictionary), data })
            }
            _ => Err(general("the page index makes no sense".to_owned())),
        }
    }

    /// The pages that hold the rows from `from` up to `to`, and the number of rows of the first that
    /// come before `from`.
    pub(crate) fn pages(
        &self,
        source: &Arc<Source>,
        chunk: &ColumnChunkMetaData,
        from: u64,
        to: u64,
    ) -> Result<(Pages, usize)> {
        let after = |row: u64| self.data.partition_point(|page| page.first_row_index as u64 <= row);
        let (first, end) = (after(from).saturating_sub(1), after(to.saturating_sub(1)));
        let data = &self.data[first..end];
        let locations: Vec<_> = self.dictionary.iter().chain(data).cloned().collect();
        // Where the chunk would begin if these were all its pages: the library takes what lies between
        // its begin and the first page for a dictionary.
        let meta = ColumnChunkMetaData::builder(chunk.column_descr_ptr())
            .set_compression(Compression::UNCOMPRESSED)
            .set_data_page_offset(locations[0].offset)
            .build()?;
        let mut pages = Pages {
            source: Arc::clone(source),
            left: locations.clone().into_iter(),
            inner: SerializedPageReader::new(Arc::clone(source), &meta, 0, Some(locations))?,
            physical_type: chunk.column_type(),
            levels: chunk.column_descr().max_def_level() > 0,
            values: 0,
            dictionary: None,
        };
        if self.dictionary.is_some() {
            pages.dictionary = pages.read_dictionary()?;
        }
        Ok((pages, (from - self.data[first].first_row_index as u64) as usize))
    }
}

/// The values that those of a column's data refer to, one after the other.
pub(crate) struct Dictionary {
    pub(crate) bytes: Bytes,
    /// Number of values that the page header promises.
    pub(crate) count: usize,
}

/// A page of data.
pub(crate) struct Data {
    /// Levels, and the values behind them.
    pub(crate) bytes: Bytes,
    /// Number of values, nulls included.
    pub(crate) count: usize,
    /// Whether they are places in the dictionary.
    pub(crate) places: bool,
}

/// Some pages of a column.
pub(crate) struct Pages {
    inner: SerializedPageReader<Source>,
    physical_type: Type,
    /// Whether the column has levels.
    levels: bool,
    /// The column's dictionary, if it has one.
    pub(crate) dictionary: Option<Dictionary>,
    source: Arc<Source>,
    /// Pages that are left.
    left: std::vec::IntoIter<PageLocation>,
    /// Values of the data pages so far.
    values: usize,
}

impl Pages {
    fn next_page(&mut self) -> Result<Option<Page>> {
        let Some(location) = self.left.next() else { return Ok(None) };
        let length = (location.compressed_page_size as usize).min(MAX_PAGE_HEADER_BYTES);
        let header = self.source.get_bytes(location.offset as u64, length)?;
        thrift::check(&thrift::PAGE_HEADER, &header)?;
        self.inner.get_next_page()
    }

    fn read_dictionary(&mut self) -> Result<Option<Dictionary>> {
        match self.next_page()? {
            Some(Page::DictionaryPage {
                buf: bytes,
                num_values,
                encoding: Encoding::PLAIN | Encoding::PLAIN_DICTIONARY,
                ..
            }) => Ok(Some(Dictionary { bytes, count: num_values as usize })),
            _ => Err(general("no dictionary where there should be one".to_owned())),
        }
    }

    /// The next page of data.
    pub(crate) fn next_data(&mut self) -> Result<Option<Data>> {
        let Some(page) = self.next_page()? else { return Ok(None) };
        let Page::DataPage {
            buf: bytes, num_values, encoding, def_level_encoding, rep_level_encoding, ..
        } = page
        else {
            return Err(general("another page than one of data of version 1".to_owned()));
        };
        let levels =
            !self.levels || (def_level_encoding == Encoding::RLE && rep_level_encoding == Encoding::RLE);
        let known = match encoding {
            // weft writes all texts into dictionaries.
            Encoding::PLAIN => self.physical_type != Type::BYTE_ARRAY,
            Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => self.dictionary.is_some(),
            _ => false,
        };
        let count = num_values as usize;
        self.values = self.values.saturating_add(count);
        match levels && known && self.values <= MAX_GROUP_VALUES {
            true => Ok(Some(Data { bytes, count, places: encoding != Encoding::PLAIN })),
            false => Err(general(format!("a page of {num_values} values encoded as {encoding}"))),
        }
    }
}

pub(crate) fn general(reason: String) -> ParquetError {
    ParquetError::General(reason)
}
