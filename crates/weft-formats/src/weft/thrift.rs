//! Checks Parquet's descriptions of its parts: the footer, the page index, the header of each page. They are
//! written in Thrift's compact protocol; [`check`] walks over them before the Parquet library does.
//!
//! ```text
//!   struct: field field … 0        field: id and type in a byte, value     list: size and type, elements
//! ```
//! The library believes the type that it expects of a field, whatever the file says, and skips fields that it
//! does not know: a list of 2³¹ booleans takes no bytes and minutes to skip. Here all that is not a field of
//! the format with the type of the format is refused. What remains takes a byte per element at least, so that
//! the time is bounded by the size of the file.
//!
//! # Source
//! parquet-format, `parquet.thrift`; Thrift, *Thrift compact protocol*.

use Shape::{Binary, Bool, Byte, I16, I32, I64, List, Struct};
use parquet::errors::{ParquetError, Result};

/// The type of a value. No list of booleans occurs.
pub(crate) enum Shape {
    Bool,
    Byte,
    I16,
    I32,
    I64,
    Binary,
    List(&'static Shape),
    /// Fields by id.
    Struct(&'static [(i16, Shape)]),
}

const EMPTY: Shape = Struct(&[]);

const STATISTICS: Shape =
    Struct(&[(1, Binary), (2, Binary), (3, I64), (4, I64), (5, Binary), (6, Binary), (7, Bool), (8, Bool)]);

const KEY_VALUE: Shape = Struct(&[(1, Binary), (2, Binary)]);

/// Without those types that a trace has no column of.
const LOGICAL_TYPE: Shape = Struct(&[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (6, EMPTY),
    (10, Struct(&[(1, Byte), (2, Bool)])),
]);

const SCHEMA_ELEMENT: Shape = Struct(&[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, Binary),
    (5, I32),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    (10, LOGICAL_TYPE),
]);

const SIZE_STATISTICS: Shape = Struct(&[(1, I64), (2, List(&I64)), (3, List(&I64))]);

const COLUMN_METADATA: Shape = Struct(&[
    (1, I32),
    (2, List(&I32)),
    (3, List(&Binary)),
    (4, I32),
    (5, I64),
    (6, I64),
    (7, I64),
    (8, List(&KEY_VALUE)),
    (9, I64),
    (10, I64),
    (11, I64),
    (12, STATISTICS),
    (13, List(&Struct(&[(1, I32), (2, I32), (3, I32)]))),
    (14, I64),
    (15, I32),
    (16, SIZE_STATISTICS),
]);

const COLUMN_CHUNK: Shape =
    Struct(&[(1, Binary), (2, I64), (3, COLUMN_METADATA), (4, I64), (5, I32), (6, I64), (7, I32)]);

const ROW_GROUP: Shape = Struct(&[
    (1, List(&COLUMN_CHUNK)),
    (2, I64),
    (3, I64),
    (4, List(&Struct(&[(1, I32), (2, Bool), (3, Bool)]))),
    (5, I64),
    (6, I64),
    (7, I16),
]);

/// The footer.
pub(crate) const FILE_METADATA: Shape = Struct(&[
    (1, I32),
    (2, List(&SCHEMA_ELEMENT)),
    (3, I64),
    (4, List(&ROW_GROUP)),
    (5, List(&KEY_VALUE)),
    (6, Binary),
    (7, List(&Struct(&[(1, EMPTY)]))),
]);

/// The offset index: the locations of a column's pages.
pub(crate) const OFFSET_INDEX: Shape =
    Struct(&[(1, List(&Struct(&[(1, I64), (2, I32), (3, I64)]))), (2, List(&I64))]);

/// The header of a page of version 1.
pub(crate) const PAGE_HEADER: Shape = Struct(&[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, I32),
    (5, Struct(&[(1, I32), (2, I32), (3, I32), (4, I32), (5, STATISTICS)])),
    (7, Struct(&[(1, I32), (2, I32), (3, Bool)])),
]);

/// Checks that `bytes` begin with a value of this shape.
///
/// # Errors
/// Where they end within it, and where they hold anything else.
pub(crate) fn check(shape: &Shape, bytes: &[u8]) -> Result<()> {
    let mut rest = bytes;
    value(shape, &mut rest).ok_or_else(|| {
        let at = bytes.len() - rest.len();
        ParquetError::General(format!("byte {at} of {} is not as Parquet has it", bytes.len()))
    })
}

/// Passes over a value that is not a field.
fn value(shape: &Shape, rest: &mut &[u8]) -> Option<()> {
    match shape {
        // Only as a field, whose type is its value.
        Bool => None,
        Byte => take(rest).map(drop),
        I16 | I32 | I64 => number(rest).map(drop),
        Binary => {
            let length = usize::try_from(number(rest)?).ok()?;
            *rest = rest.get(length..)?;
            Some(())
        }
        List(element) => {
            let head = take(rest)?;
            let size = if head >> 4 == 15 { number(rest)? } else { u64::from(head >> 4) };
            // Checked also for none: the library is not to meet an unexpected type at all.
            (wire_type(element) == head & 15).then_some(())?;
            (0..size).try_for_each(|_| value(element, rest))
        }
        Struct(fields) => {
            let mut id = 0i16;
            loop {
                let head = take(rest)?;
                if head == 0 {
                    return Some(());
                }
                id = match head >> 4 {
                    0 => {
                        let zigzag = number(rest)?;
                        i16::try_from((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)).ok()?
                    }
                    delta => id.checked_add(delta.into())?,
                };
                match (&fields.iter().find(|(known, _)| *known == id)?.1, head & 15) {
                    (Bool, 1 | 2) => {}
                    (field, wire) if wire == wire_type(field) => value(field, rest)?,
                    _ => return None,
                }
            }
        }
    }
}

/// The number that the protocol gives a type.
fn wire_type(shape: &Shape) -> u8 {
    match shape {
        Bool => 1,
        Byte => 3,
        I16 => 4,
        I32 => 5,
        I64 => 6,
        Binary => 8,
        List(_) => 9,
        Struct(_) => 12,
    }
}

fn take(rest: &mut &[u8]) -> Option<u8> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    Some(*first)
}

/// A number of up to 64 bits, seven to a byte, the lowest first.
fn number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page header: type, sizes, and a dictionary's own header.
    const HEADER: [u8; 14] =
        [0x15, 0x04, 0x15, 0x10, 0x15, 0x10, 0x4c, 0x15, 0x04, 0x15, 0x00, 0x11, 0x00, 0x00];

    #[test]
    fn a_page_header_is_one() {
        check(&PAGE_HEADER, &HEADER).unwrap();
        check(&PAGE_HEADER, &[&HEADER[..], &[1, 2, 3]].concat()).unwrap();
        for length in 0..HEADER.len() {
            assert!(check(&PAGE_HEADER, &HEADER[..length]).is_err(), "{length} bytes");
        }
    }

    /// Catches what fuzzing found: a list of 2³¹ - 1 booleans in an unknown field, which takes no bytes.
    #[test]
    fn lists_that_take_no_bytes_are_refused() {
        let mut header = vec![0x15, 0x04, 0xf9, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07];
        header.extend(&HEADER[2..]);
        assert!(check(&PAGE_HEADER, &header).is_err());
    }

    /// Catches a field that the library would read as another type than it is said to have.
    #[test]
    fn fields_have_the_type_of_the_format() {
        for wire in (0..16).filter(|&wire| wire != 5) {
            let mut header = HEADER;
            header[0] = 0x10 | wire;
            assert!(check(&PAGE_HEADER, &header).is_err(), "type {wire}");
        }
    }
}
