//! Columns of some rows of a row group, decoded from their pages.
//!
//! ```text
//!   page of data:   [repetition levels] [definition levels] values      levels: length in 4 bytes, hybrid
//!   values:         numbers as they are, or: width in a byte, then places in the dictionary as hybrid
//! ```
//! A page says what it likes: whatever does not fit is an error.
//!
//! # Source
//! parquet-format, *Data Pages* and *Encodings*: PLAIN = 0, RLE_DICTIONARY = 8.

use super::hybrid;
use super::pages::{Data, Dictionary, Pages, general};
use super::reader::{GroupIndex, WeftReader};
use super::schema::Column;
use crate::error::TraceError;
use parquet::errors::{ParquetError, Result};
use std::ops::Range;

/// The definition level of an entry of a list; below it lie the empty list and null.
const ENTRY: u8 = 2;

/// A fixed-size entry of a dictionary. Pages of most columns hold the same type directly.
pub(crate) trait Value: Copy + Default {
    /// The first `count` of them that lie one after the other.
    fn plain(bytes: &[u8], count: usize) -> Option<Vec<Self>>;

    /// All of a dictionary.
    fn dictionary(Dictionary { bytes, count }: &Dictionary) -> Option<Vec<Self>> {
        Self::plain(bytes, *count)
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl Value for $number {
            fn plain(bytes: &[u8], count: usize) -> Option<Vec<$number>> {
                const SIZE: usize = size_of::<$number>();
                let bytes = bytes.get(..count.checked_mul(SIZE)?)?;
                let (numbers, _) = bytes.as_chunks::<SIZE>();
                Some(numbers.iter().map(|&number| <$number>::from_le_bytes(number)).collect())
            }
        })*
    };
}

numbers! { u32 u64 }

/// A place in a dictionary of texts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place(pub(crate) u32);

impl Value for Place {
    /// Texts do not lie in pages of data.
    fn plain(_: &[u8], _: usize) -> Option<Vec<Place>> {
        None
    }

    fn dictionary(Dictionary { bytes, count }: &Dictionary) -> Option<Vec<Place>> {
        // A text takes four bytes at least.
        (*count <= bytes.len() / 4).then(|| (0..*count as u32).map(Place).collect())
    }
}

/// The texts of a dictionary, each after its length.
pub(crate) struct Texts {
    bytes: bytes::Bytes,
    places: Vec<Range<usize>>,
}

impl Texts {
    fn of(dictionary: &Dictionary) -> Option<Texts> {
        let bytes = dictionary.bytes.clone();
        let mut places = Vec::new();
        let mut at = 0;
        for _ in 0..dictionary.count {
            let begin = at + 4;
            let length = bytes.get(at..begin)?.try_into().map(u32::from_le_bytes).ok()?;
            at = begin.checked_add(length as usize).filter(|end| *end <= bytes.len())?;
            places.push(begin..at);
        }
        Some(Texts { bytes, places })
    }

    /// All of them, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| &self.bytes[place.clone()])
    }

    /// The text of a place.
    pub(crate) fn text(&self, place: Place) -> &[u8] {
        &self.bytes[self.places[place.0 as usize].clone()]
    }
}

/// The lists of some rows, one after the other.
#[derive(Default)]
pub(crate) struct Lists<T> {
    /// End of each row's list in `entries`; no ends at all: all lists are empty.
    pub(crate) ends: Vec<usize>,
    pub(crate) entries: Vec<T>,
}

impl<T> Lists<T> {
    /// The list of a row.
    pub(crate) fn of(&self, row: usize) -> &[T] {
        let Some(&end) = self.ends.get(row) else { return &[] };
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[begin..end]
    }

    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.entries.clear();
    }
}

/// Some rows of a row group, from which columns are read.
pub(crate) struct Columns<'a> {
    pub(crate) trace: &'a WeftReader,
    pub(crate) index: &'a GroupIndex,
    pub(crate) group: usize,
    pub(crate) rows: Range<u64>,
    /// Entries after which lists are read no further.
    pub(crate) entries: usize,
}

impl Columns<'_> {
    /// Number of rows.
    pub(crate) fn row_count(&self) -> usize {
        (self.rows.end - self.rows.start) as usize
    }

    /// Reads a column without lists: for each row a value, which counts where the column's bit is then set in
    /// `present`; none at all where all are null.
    pub(crate) fn scalars<T: Value>(
        &self,
        column: Column,
        values: &mut Vec<T>,
        present: &mut [u32],
    ) -> std::result::Result<(), TraceError> {
        values.clear();
        let mut scalars = Scalars { column, values, present };
        self.read(column, |pages, skip| {
            let dictionary = dictionary::<T>(pages)?;
            scalars.read(pages, skip, &dictionary)
        })
        .map(|_| ())
    }

    /// Reads a column of texts without nulls or with: for each row a place among those that are returned.
    pub(crate) fn texts(
        &self,
        column: Column,
        places: &mut Vec<Place>,
        present: &mut [u32],
    ) -> std::result::Result<Option<Texts>, TraceError> {
        places.clear();
        let mut scalars = Scalars { column, values: places, present };
        self.read(column, |pages, skip| {
            let texts = pages.dictionary.as_ref().and_then(Texts::of).ok_or_else(no_dictionary)?;
            let dictionary = dictionary::<Place>(pages)?;
            scalars.read(pages, skip, &dictionary)?;
            Ok(texts)
        })
    }

    /// Reads a column of lists. Returns for how many rows: fewer than asked for where they are long.
    pub(crate) fn lists<T: Value>(
        &self,
        column: Column,
        lists: &mut Lists<T>,
    ) -> std::result::Result<usize, TraceError> {
        lists.clear();
        let read = self.read(column, |pages, skip| {
            let dictionary = dictionary::<T>(pages)?;
            let mut skip = skip;
            let rows = self.row_count();
            while lists.ends.len() < rows && lists.entries.len() <= self.entries {
                let page = pages.next_data()?.ok_or_else(|| too_few(lists.ends.len(), rows))?;
                skip = self.read_lists(&page, skip, &dictionary, lists)?;
            }
            Ok(lists.ends.len())
        })?;
        Ok(read.unwrap_or(self.row_count()))
    }

    /// Reads the lists of a page but the first `skip`, up to the number of rows and not much more than
    /// `self.entries` entries. Returns the number of lists still to be skipped.
    fn read_lists<T: Value>(
        &self,
        page: &Data,
        skip: usize,
        dictionary: &[T],
        lists: &mut Lists<T>,
    ) -> Result<usize> {
        let rows = self.row_count();
        let mut rest = &page.bytes[..];
        let mut repetitions = levels(&mut rest, 1, page.count)?;
        repetitions.push(0);
        let definitions = levels(&mut rest, 2, page.count)?;
        let Some((0, later)) = repetitions.split_first() else {
            return Err(general("a page that begins within a row".to_owned()));
        };
        // Entries up to the end of each row. A row ends where the next entry repeats nothing, and with the
        // page.
        let (mut ends, mut entries) = (Vec::with_capacity(page.count), 0);
        for (definition, next) in definitions.iter().zip(later) {
            entries += usize::from(*definition == ENTRY);
            if *next == 0 {
                ends.push(entries);
            }
        }
        let first = skip.min(ends.len());
        let before = first.checked_sub(1).map_or(0, |last| ends[last]);
        let known = lists.entries.len();
        let mut end = before;
        for &row_end in ends[first..].iter().take(rows - lists.ends.len()) {
            end = row_end;
            lists.ends.push(known + end - before);
            if known + end - before > self.entries {
                break;
            }
        }
        lists.entries.extend(&read_values(page, rest, dictionary, end)?[before..]);
        Ok(skip - first)
    }

    /// Reads a column from its pages and the number of values that come before the first row; `None` where
    /// all values are null.
    fn read<R>(
        &self,
        column: Column,
        read: impl FnOnce(&mut Pages, usize) -> Result<R>,
    ) -> std::result::Result<Option<R>, TraceError> {
        let Some(index) = &self.index[column as usize] else { return Ok(None) };
        let chunk = self.trace.chunk(self.group, column);
        index
            .pages(self.trace.source(), chunk, self.rows.start, self.rows.end)
            .and_then(|(mut pages, before)| read(&mut pages, before))
            .map(Some)
            .map_err(|error| self.trace.column_error(self.group, column, error))
    }
}

/// A column without lists while it is read: values of the rows so far, and for all rows the columns that are
/// not null.
struct Scalars<'a, T> {
    column: Column,
    values: &'a mut Vec<T>,
    /// For each row a bit per column.
    present: &'a mut [u32],
}

impl<T: Value> Scalars<'_, T> {
    /// Reads values, all but the first `skip`, until there is one for each row.
    fn read(&mut self, pages: &mut Pages, mut skip: usize, dictionary: &[T]) -> Result<()> {
        let Scalars { column, values, present } = self;
        let (column, rows) = (*column, present.len());
        while values.len() < rows {
            let page = pages.next_data()?.ok_or_else(|| too_few(values.len(), rows))?;
            let first = skip.min(page.count);
            let end = page.count.min(first + rows - values.len());
            skip -= first;
            let mut rest = &page.bytes[..];
            let levels = match column {
                Column::Rank | Column::Operation => None,
                _ => Some(levels(&mut rest, 1, page.count)?),
            };
            let present = &mut present[values.len()..][..end - first];
            let Some(levels) = levels else {
                values.extend(&read_values(&page, rest, dictionary, end)?[first..]);
                present.iter_mut().for_each(|present| *present |= 1 << column as u32);
                continue;
            };
            let count = |levels: &[u8]| levels.iter().map(|&level| u32::from(level)).sum::<u32>() as usize;
            let (before, levels) = (count(&levels[..first]), &levels[first..end]);
            for (present, &level) in present.iter_mut().zip(levels) {
                *present |= u32::from(level) << column as u32;
            }
            let mut found = read_values(&page, rest, dictionary, before + count(levels))?;
            // Without a branch: what stands where there is none does not matter.
            found.push(T::default());
            let mut at = before;
            values.extend(levels.iter().map(|&level| {
                let value = found[at];
                at += usize::from(level);
                value
            }));
        }
        Ok(())
    }
}

fn dictionary<T: Value>(pages: &Pages) -> Result<Vec<T>> {
    let Some(dictionary) = &pages.dictionary else { return Ok(Vec::new()) };
    T::dictionary(dictionary)
        .ok_or_else(|| general(format!("a dictionary of {} values that is none", dictionary.count)))
}

/// The first values of a page, which lie in `bytes`.
fn read_values<T: Value>(page: &Data, bytes: &[u8], dictionary: &[T], count: usize) -> Result<Vec<T>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut known = true;
    let values = if page.places {
        let (&width, places) = bytes.split_first().ok_or_else(|| too_few(0, count))?;
        let values = hybrid::numbers(places, width.into(), count, |place| {
            let value = dictionary.get(place as usize);
            known &= value.is_some();
            value.copied().unwrap_or_default()
        })?;
        known.then_some(values)
    } else {
        T::plain(bytes, count)
    };
    values.ok_or_else(|| general(format!("{count} values are not in the page")))
}

/// Takes the levels of a page's `count` values, of so many bits.
fn levels(rest: &mut &[u8], width: u32, count: usize) -> Result<Vec<u8>> {
    let parts = rest.split_first_chunk().and_then(|(length, after)| {
        after.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
    });
    let (encoded, after) =
        parts.ok_or_else(|| ParquetError::EOF("a page that ends in its levels".to_owned()))?;
    *rest = after;
    hybrid::levels(encoded, width, count)
}

fn too_few(read: usize, expected: usize) -> ParquetError {
    general(format!("{read} rows where there should be {expected}"))
}

fn no_dictionary() -> ParquetError {
    general("texts without a dictionary".to_owned())
}
