//! The pages of one column of one row group: found by the page index, and believed only when checked.
//!
//! The Parquet library trusts some of what a page says of itself: how many values its dictionary has,
//! that there is a dictionary at all. [`Pages`] stands between, so that a hostile file is refused before
//! the library allocates, panics or hangs.

use crate::format::MAX_GROUP_VALUES;
use crate::source::Source;
use crate::thrift;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::index_reader::decode_offset_index;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;

/// Longest header of a page, in bytes: one of numbers alone has less than 64, and statistics are small.
const LONGEST_HEADER: usize = 1024;

/// Where the pages of a column of a row group are.
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
        let pages = Pages {
            source: Arc::clone(source),
            left: locations.clone().into_iter(),
            values: 0,
            has_dictionary: self.dictionary.is_some(),
            inner: SerializedPageReader::new(Arc::clone(source), &meta, 0, Some(locations))?,
            physical_type: chunk.column_type(),
            levels: chunk.column_descr().max_def_level() > 0,
            dictionary: self.dictionary.is_some(),
        };
        Ok((pages, (from - self.data[first].first_row_index as u64) as usize))
    }
}

/// Some pages of a column, each checked before it is handed on.
pub(crate) struct Pages {
    inner: SerializedPageReader<Source>,
    physical_type: Type,
    /// Whether the column has levels: whether a value may take no space at all.
    levels: bool,
    /// Whether a dictionary comes next.
    dictionary: bool,
    /// Whether there has been one.
    has_dictionary: bool,
    source: Arc<Source>,
    /// Pages that are left.
    left: std::vec::IntoIter<PageLocation>,
    /// Values of the data pages so far.
    values: usize,
}

impl Pages {
    fn check(&mut self, page: &Page) -> Result<()> {
        match page {
            Page::DictionaryPage { buf, num_values, encoding, .. } => {
                let count = *num_values as usize;
                let plain = matches!(encoding, Encoding::PLAIN | Encoding::PLAIN_DICTIONARY);
                let fits = match self.physical_type {
                    Type::BYTE_ARRAY => holds_texts(buf, count),
                    Type::INT64 => count.checked_mul(8).is_some_and(|size| size <= buf.len()),
                    _ => count.checked_mul(4).is_some_and(|size| size <= buf.len()),
                };
                match self.dictionary && plain && fits {
                    true => Ok(()),
                    false => Err(general(format!("a dictionary of {num_values} values that is none"))),
                }
            }
            Page::DataPage { num_values, encoding, def_level_encoding, rep_level_encoding, .. } => {
                let levels = !self.levels
                    || (*def_level_encoding == Encoding::RLE && *rep_level_encoding == Encoding::RLE);
                let known = match encoding {
                    // The library reads beyond the end of texts that lie in the page itself.
                    Encoding::PLAIN => self.physical_type != Type::BYTE_ARRAY,
                    Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY => self.has_dictionary,
                    _ => false,
                };
                self.values = self.values.saturating_add(*num_values as usize);
                match levels && known && self.values <= MAX_GROUP_VALUES {
                    true => Ok(()),
                    false => Err(general(format!("a page of {num_values} values encoded as {encoding}"))),
                }
            }
            Page::DataPageV2 { .. } => Err(general("a data page of version 2".to_owned())),
        }
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(location) = self.left.next() else { return Ok(None) };
        let length = (location.compressed_page_size as usize).min(LONGEST_HEADER);
        let header = self.source.get_bytes(location.offset as u64, length)?;
        thrift::check(&thrift::PAGE_HEADER, &header)?;
        let Some(page) = self.inner.get_next_page()? else { return Ok(None) };
        self.check(&page)?;
        if self.dictionary != page.is_dictionary_page() {
            return Err(general("a dictionary where there should be none, or none".to_owned()));
        }
        self.dictionary = false;
        Ok(Some(page))
    }

    /// Says nothing of the number of rows: no page is asked for that is not needed.
    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let next = PageMetadata { num_rows: None, num_levels: None, is_dict: self.dictionary };
        Ok((self.left.len() > 0).then_some(next))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.get_next_page().map(|_| ())
    }

    /// Pages that the index names begin at rows.
    fn at_record_boundary(&mut self) -> Result<bool> {
        Ok(true)
    }
}

/// Whether `count` texts, each after its length, lie in a dictionary.
fn holds_texts(buf: &[u8], count: usize) -> bool {
    let mut rest = buf;
    (0..count).all(|_| {
        let text = rest.split_first_chunk().and_then(|(len, after)| {
            let len = usize::try_from(u32::from_le_bytes(*len)).ok()?;
            after.get(len..)
        });
        text.map(|after| rest = after).is_some()
    })
}

fn general(reason: String) -> ParquetError {
    ParquetError::General(reason)
}
