//! Sizes of datatypes, of those too that the program makes.

use crate::weft::MAX_BYTES;
use std::collections::BTreeMap;
use weft_trace::DataType;
use weft_units::Bytes;

/// Handle of the first datatype that a program makes.
const FIRST_MADE: u16 = 28;

/// `MPI_LONG_LONG_INT` is another name of `MPI_LONG_LONG`; the table of a file has the size of one of them.
const LONG_LONG: [u16; 2] = [16, 18];

/// Handles of the signed integers: char, short, int, long, and both names of long long.
const SIGNED: [i64; 6] = [3, 7, 9, 11, 16, 18];

/// Handles of the unsigned integers, in the same order.
const UNSIGNED: [i64; 5] = [4, 8, 10, 12, 17];

/// Handle of `MPI_FLOAT`.
const FLOAT: i64 = 13;

/// Handle of `MPI_DOUBLE`.
const DOUBLE: i64 = 14;

/// Bytes of the datatypes of MPI where the file has no table of them, by handle.
const STANDARD: [u32; FIRST_MADE as usize] =
    [0, 0, 1, 1, 1, 1, 4, 2, 2, 4, 4, 8, 8, 4, 8, 16, 8, 8, 8, 1, 0, 0, 8, 12, 12, 6, 8, 20];

/// The sizes that a rank knows.
pub(super) struct Datatypes {
    standard: Vec<u32>,
    made: BTreeMap<u16, u64>,
}

impl Datatypes {
    /// Those of the file's table; without one, those of a usual computer of 64 bits.
    pub(super) fn new(table: Option<Vec<u32>>) -> Datatypes {
        Datatypes { standard: table.unwrap_or_else(|| STANDARD.to_vec()), made: BTreeMap::new() }
    }

    /// The bytes of one of this type.
    pub(super) fn size(&self, handle: i64) -> Result<u64, String> {
        let standard = |handle: u16| self.standard.get(usize::from(handle)).copied().map(u64::from);
        let size = u16::try_from(handle).ok().and_then(|handle| match handle {
            handle if LONG_LONG.contains(&handle) => LONG_LONG.map(standard).into_iter().flatten().max(),
            handle => self.made.get(&handle).copied().or_else(|| standard(handle)),
        });
        size.ok_or_else(|| {
            format!(
                "datatype {handle}, whose size no call before tells; let the program ask for it with \
                 MPI_Type_size, or copy the file again"
            )
        })
    }

    /// The type of the elements of a reduction. `None`: a handle that is none.
    pub(super) fn data_type(&self, handle: i64) -> Option<DataType> {
        let bytes = self.size(handle).ok()?;
        Some(match handle {
            signed if SIGNED.contains(&signed) => DataType::signed(bytes),
            unsigned if UNSIGNED.contains(&unsigned) => DataType::unsigned(bytes),
            FLOAT => DataType::Float32,
            DOUBLE => DataType::Float64,
            _ => DataType::Other,
        })
    }

    /// The bytes of `count` of this type.
    pub(super) fn bytes(&self, count: i64, handle: i64) -> Result<Bytes, String> {
        let size = self.size(handle)?;
        let bytes = u64::try_from(count).ok().and_then(|count| count.checked_mul(size));
        bytes.filter(|&bytes| bytes <= MAX_BYTES).map(Bytes::new).ok_or_else(|| {
            format!("{count} elements of {size} bytes each; copy the file again, or trace the program again")
        })
    }

    /// A type of `count` elements of another.
    pub(super) fn make(&mut self, new: i64, count: u64, old: i64) -> Result<(), String> {
        let size = self.size(old)?.saturating_mul(count);
        self.keep(new, size);
        Ok(())
    }

    /// A type of some elements of each of several others.
    pub(super) fn make_struct(&mut self, new: i64, lengths: &[u32], old: &[u32]) -> Result<(), String> {
        let mut sum = 0u64;
        for (&length, &old) in lengths.iter().zip(old) {
            sum = sum.saturating_add(self.size(old.into())?.saturating_mul(length.into()));
        }
        self.keep(new, sum);
        Ok(())
    }

    /// A type of known size.
    pub(super) fn keep(&mut self, new: i64, size: u64) {
        if let Some(new) = u16::try_from(new).ok().filter(|&new| new >= FIRST_MADE) {
            self.made.insert(new, size);
        }
    }
}
