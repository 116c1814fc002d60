//! The checksums of a trace: SHA-256 of all that lies before the footer, and of the footer.
//!
//! ```text
//!   [ row groups, page index ][ footer: weft.contents_sha256 = C, weft.footer_sha256 = F ][ length, PAR1 ]
//!     C is of these             F is of these, with noughts in the place of F
//! ```
//! The footer is checked when a trace is opened, the rest before the first row is read: `weft trace info`
//! need not read all of a long trace. The writer leaves noughts for both and fills them in when the file is
//! whole.
//!
//! # Source
//! Thrift, *compact protocol*: a binary field is its header, its length and its bytes.

use super::source::Source;
use parquet::errors::ParquetError;
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{FooterTail, KeyValue};
use parquet::file::reader::{ChunkReader, Length};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const CONTENTS_KEY: &str = "weft.contents_sha256";
const FOOTER_KEY: &str = "weft.footer_sha256";

/// Hexadecimal digits of a checksum.
const DIGITS: usize = 64;
/// In the place of a checksum that is not known.
const UNKNOWN: [u8; DIGITS] = [b'0'; DIGITS];
/// Between a key and its checksum: the header of the field `value`, and the length.
const FIELD: [u8; 2] = [0x18, DIGITS as u8];
/// Bytes that are read at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// The checksum of all that lies before the footer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ContentsSum {
    digits: [u8; DIGITS],
    /// The first byte of the footer.
    end: u64,
}

/// The footer of a file: its bytes, and the first of them.
pub(crate) struct Footer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) start: u64,
}

impl Footer {
    /// The footer, where it is as long as the file's end says; `None`: the library says what is wrong.
    pub(crate) fn read(source: &Source) -> Result<Option<Footer>, ParquetError> {
        let Some(tail) = source.len().checked_sub(FOOTER_SIZE as u64) else { return Ok(None) };
        let length = FooterTail::try_from(&source.get_bytes(tail, FOOTER_SIZE)?[..])?.metadata_length();
        let Some(start) = tail.checked_sub(length as u64) else { return Ok(None) };
        Ok(Some(Footer { bytes: source.get_bytes(start, length)?.into(), start }))
    }

    /// Checks the footer. `None`: it has no checksums, as traces of an earlier weft.
    pub(crate) fn check(&self) -> Result<Option<ContentsSum>, &'static str> {
        let (contents, footer) = (self.place(CONTENTS_KEY), self.place(FOOTER_KEY));
        match (contents, footer) {
            (None, None) => Ok(None),
            (Some(contents), Some(footer)) => {
                if self.sum(&footer) != self.bytes[footer] {
                    return Err("the checksum of its footer does not fit");
                }
                let digits = self.bytes[contents].try_into().map_err(|_| "it has half a checksum")?;
                Ok(Some(ContentsSum { digits, end: self.start }))
            }
            _ => Err("one of its two checksums is missing"),
        }
    }

    /// The checksum with noughts in its place.
    fn sum(&self, place: &Range<usize>) -> [u8; DIGITS] {
        let mut hasher = Sha256::new();
        hasher.update(&self.bytes[..place.start]);
        hasher.update(UNKNOWN);
        hasher.update(&self.bytes[place.end..]);
        digits(hasher)
    }

    /// The place of a checksum.
    fn place(&self, key: &str) -> Option<Range<usize>> {
        let before = [key.as_bytes(), &FIELD].concat();
        let at = self.bytes.windows(before.len()).position(|bytes| bytes == before)? + before.len();
        (at + DIGITS <= self.bytes.len()).then_some(at..at + DIGITS)
    }
}

/// Checks all that lies before the footer.
pub(crate) fn check_contents(source: &Source, expected: &ContentsSum) -> Result<(), String> {
    let found = contents(source, expected.end).map_err(|error| error.to_string())?;
    if found == expected.digits { Ok(()) } else { Err("the checksum of its rows does not fit".to_owned()) }
}

/// The entries of the footer for checksums that are filled in by [`seal`].
pub(crate) fn entries() -> [KeyValue; 2] {
    let unknown = || "0".repeat(DIGITS);
    [CONTENTS_KEY, FOOTER_KEY].map(|key| KeyValue::new(key.to_owned(), unknown()))
}

/// Fills in the checksums of a file that is whole otherwise.
pub(crate) fn seal(file: &File) -> Result<(), ParquetError> {
    let io = |error: std::io::Error| ParquetError::External(Box::new(error));
    let source =
        Source::File { file: file.try_clone().map_err(io)?, len: file.metadata().map_err(io)?.len() };
    let missing = || ParquetError::General("no place for checksums in the footer".to_owned());
    let mut footer = Footer::read(&source)?.ok_or_else(missing)?;
    let (of_contents, of_footer) =
        footer.place(CONTENTS_KEY).zip(footer.place(FOOTER_KEY)).ok_or_else(missing)?;
    footer.bytes[of_contents].copy_from_slice(&contents(&source, footer.start)?);
    let sum = footer.sum(&of_footer);
    footer.bytes[of_footer].copy_from_slice(&sum);
    file.write_all_at(&footer.bytes, footer.start).map_err(io)
}

fn contents(source: &Source, end: u64) -> Result<[u8; DIGITS], ParquetError> {
    let mut hasher = Sha256::new();
    let mut at = 0;
    while at < end {
        let length = PIECE_BYTES.min(end - at);
        hasher.update(source.get_bytes(at, length as usize)?);
        at += length;
    }
    Ok(digits(hasher))
}

fn digits(hasher: Sha256) -> [u8; DIGITS] {
    const HEXADECIMAL: &[u8; 16] = b"0123456789abcdef";
    let sum = hasher.finalize();
    std::array::from_fn(|digit| {
        let byte = sum[digit / 2];
        HEXADECIMAL[usize::from(if digit.is_multiple_of(2) { byte >> 4 } else { byte & 15 })]
    })
}
