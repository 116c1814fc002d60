//! Parquet's hybrid of run lengths and packed bits, in which levels and places in a dictionary are written.
//!
//! ```text
//!   header  even: (count << 1), then the number that repeats, in whole bytes
//!           odd:  (groups << 1 | 1), then groups of 8 numbers of `width` bits, the lowest bit first
//! ```
//! # Why here
//! The Parquet library hands columns on in arrays of its own, which a replay would have to copy: reading a
//! trace took two fifths of its time, and takes a quarter (`bench/performance.md`).
//!
//! # Source
//! parquet-format, *Encodings*: RLE = 3.

use parquet::errors::{ParquetError, Result};

/// A number of an encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Run<'a> {
    /// A run length: one number, and the count of its repetitions.
    Same(u32, usize),
    /// Packed bits, and the count of numbers in them.
    Packed(&'a [u8], usize),
}

/// The first `count` numbers of `width` bits that lie in `bytes`, each passed through `of`.
///
/// # Errors
/// Where there are fewer, and where they are wider than 32 bits.
pub(crate) fn numbers<T: Copy>(
    bytes: &[u8],
    width: u32,
    count: usize,
    mut of: impl FnMut(u32) -> T,
) -> Result<Vec<T>> {
    let mut numbers = Vec::with_capacity(count.next_multiple_of(8));
    runs(bytes, width, count, |run| match run {
        Run::Same(number, count) => numbers.extend(std::iter::repeat_n(of(number), count)),
        Run::Packed(bytes, count) if width <= 8 => {
            let end = numbers.len() + count;
            for group in groups(bytes, width, count) {
                numbers.extend_from_slice(&group.map(&mut of));
            }
            numbers.truncate(end);
        }
        Run::Packed(bytes, count) => numbers.extend(unpack(bytes, width, count).map(&mut of)),
    })?;
    Ok(numbers)
}

/// Levels, which are numbers of at most 8 bits.
pub(crate) fn levels(bytes: &[u8], width: u32, count: usize) -> Result<Vec<u8>> {
    debug_assert!(width <= 8, "levels count the nesting of a column");
    let mut levels = Vec::with_capacity(count.next_multiple_of(8));
    runs(bytes, width, count, |run| match run {
        Run::Same(level, count) => levels.extend(std::iter::repeat_n(level as u8, count)),
        Run::Packed(bytes, count) if width == 1 => {
            let end = levels.len() + count;
            for &byte in bytes {
                levels.extend_from_slice(&bits(byte));
            }
            levels.truncate(end);
        }
        Run::Packed(bytes, count) => levels.extend(unpack(bytes, width, count).map(|level| level as u8)),
    })?;
    Ok(levels)
}

/// Hands on the runs that make `count` numbers; the last is cut.
fn runs<'a>(mut rest: &'a [u8], width: u32, count: usize, mut each: impl FnMut(Run<'a>)) -> Result<()> {
    if width > 32 {
        return Err(ParquetError::General(format!("numbers of {width} bits")));
    }
    let mut left = count;
    while left > 0 {
        let run = run(&mut rest, width, left).ok_or_else(|| {
            ParquetError::EOF(format!("{} numbers where there should be {count}", count - left))
        })?;
        let (Run::Same(_, length) | Run::Packed(_, length)) = run;
        left -= length;
        each(run);
    }
    Ok(())
}

/// Takes a run, of which no more than `most` numbers count; `None` where it is not whole, and where it is of
/// nothing or of a number with more bits.
fn run<'a>(rest: &mut &'a [u8], width: u32, most: usize) -> Option<Run<'a>> {
    let header = header(rest)?;
    let length = (header >> 1) as usize;
    if header & 1 == 0 {
        let (number, after) = rest.split_at_checked(width.div_ceil(8) as usize)?;
        *rest = after;
        let number = number.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        let fits = u64::from(number) >> width == 0;
        return (length > 0 && fits).then_some(Run::Same(number, length.min(most)));
    }
    let count = length.checked_mul(8)?.min(most);
    // The last group may be cut where its numbers do not count.
    let needed = (count as u64 * u64::from(width)).div_ceil(8) as usize;
    let packed = rest.get(..needed)?;
    *rest = rest.get(length.checked_mul(width as usize)?..).unwrap_or_default();
    (count > 0).then_some(Run::Packed(packed, count))
}

/// A number of up to 32 bits, seven to a byte, the lowest first.
fn header(rest: &mut &[u8]) -> Option<u32> {
    let mut number = 0;
    for shift in (0..32).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The bits of a byte, the lowest first.
#[inline]
fn bits(byte: u8) -> [u8; 8] {
    // Seven bits are moved into a byte each by adding shifts of them, which do not meet.
    let byte = u64::from(byte);
    let low = ((byte & 0x7f) * 0x0002_0408_1020_4081) & 0x0101_0101_0101_0101;
    (low | byte >> 7 << 56).to_le_bytes()
}

/// Groups of 8 numbers of `width` bits, at most 8, so many that there are `count`.
#[inline]
fn groups(bytes: &[u8], width: u32, count: usize) -> impl Iterator<Item = [u32; 8]> {
    let mask = (1u32 << width) - 1;
    (0..count.div_ceil(8)).map(move |group| {
        let rest = bytes.get(group * width as usize..).unwrap_or_default();
        // Bytes of later groups are in the way of none; behind the last there may be none.
        let word = rest.first_chunk().map_or_else(
            || rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
            |bytes| u64::from_le_bytes(*bytes),
        );
        std::array::from_fn(|number| (word >> (number as u32 * width)) as u32 & mask)
    })
}

/// `count` numbers of `width` bits, at most 32, which lie in `bytes`.
#[inline]
fn unpack(bytes: &[u8], width: u32, count: usize) -> impl Iterator<Item = u32> {
    let mask = (1u64 << width) - 1;
    let (words, last) = bytes.as_chunks::<4>();
    let mut words = words.iter();
    let last = last.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let (mut held, mut bits) = (0u64, 0);
    (0..count).map(move |_| {
        if bits < width {
            held |= words.next().map_or(last, |word| u32::from_le_bytes(*word).into()) << bits;
            bits += 32;
        }
        let number = (held & mask) as u32;
        held >>= width;
        bits -= width;
        number
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Encodes: runs of at least 8 as such, the rest packed.
    fn encode(numbers: &[u32], width: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut packed: Vec<u32> = Vec::new();
        let header = |bytes: &mut Vec<u8>, mut number: u32| {
            while number >= 0x80 {
                bytes.push(number as u8 | 0x80);
                number >>= 7;
            }
            bytes.push(number as u8);
        };
        let pack = |bytes: &mut Vec<u8>, packed: &mut Vec<u32>| {
            if packed.is_empty() {
                return;
            }
            packed.resize(packed.len().next_multiple_of(8), 0);
            header(bytes, (packed.len() as u32 / 4) | 1);
            let mut all = vec![0u8; packed.len() * width as usize / 8];
            for (place, number) in packed.drain(..).enumerate() {
                for bit in (0..width as usize).filter(|bit| number >> bit & 1 == 1) {
                    let at = place * width as usize + bit;
                    all[at / 8] |= 1 << (at % 8);
                }
            }
            bytes.extend(all);
        };
        for run in numbers.chunk_by(|one, next| one == next) {
            if run.len() < 8 || !packed.len().is_multiple_of(8) {
                packed.extend(run);
                continue;
            }
            pack(&mut bytes, &mut packed);
            header(&mut bytes, run.len() as u32 * 2);
            bytes.extend(&run[0].to_le_bytes()[..width.div_ceil(8) as usize]);
        }
        pack(&mut bytes, &mut packed);
        bytes
    }

    fn same(number: u32) -> u32 {
        number
    }

    fn some_numbers() -> impl Strategy<Value = (u32, Vec<u32>)> {
        (0u32..=32).prop_flat_map(|width| {
            let most = ((1u64 << width) - 1) as u32;
            let run = (prop_oneof![Just(0), Just(most), 0..=most], prop_oneof![1..4usize, 8..300usize]);
            let runs = prop::collection::vec(run, 0..12);
            (
                Just(width),
                runs.prop_map(|runs| {
                    runs.into_iter().flat_map(|(number, count)| std::iter::repeat_n(number, count)).collect()
                }),
            )
        })
    }

    proptest! {
        /// Catches a number that is lost, doubled or cut, and reading beyond the end.
        #[test]
        fn numbers_are_read_as_they_were_written(
            (width, written) in some_numbers(), cut in any::<prop::sample::Index>(),
        ) {
            let bytes = encode(&written, width);
            prop_assert_eq!(&numbers(&bytes, width, written.len(), same).unwrap(), &written);
            let few = cut.index(written.len() + 1);
            prop_assert_eq!(&numbers(&bytes, width, few, same).unwrap()[..], &written[..few]);
            if width <= 8 {
                let levels: Vec<u32> =
                    levels(&bytes, width, written.len()).unwrap().into_iter().map(u32::from).collect();
                prop_assert_eq!(&levels, &written);
            }
            prop_assert!(numbers(&bytes, width, written.len() + 8, same).is_err());
        }

        #[test]
        fn any_bytes_are_numbers_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..40), width in 0u32..40,
        ) {
            if let Ok(numbers) = numbers(&bytes, width, 100, same) {
                prop_assert_eq!(numbers.len(), 100);
            }
            if width <= 8 && let Ok(levels) = levels(&bytes, width, 100) {
                prop_assert_eq!(levels.len(), 100);
            }
        }
    }
}
