//! Who goes first: one file per arbiter.
//!
//! A request is numbered by input port and virtual channel; an arbiter is shown the numbers that are
//! eligible and names one.

pub(crate) mod islip;
pub(crate) mod random;
pub(crate) mod round_robin;

/// A set of requests or ports: bits in words.
#[inline]
pub(crate) fn next_from(words: &[u64], start: usize) -> Option<usize> {
    let first = start / 64;
    if first < words.len() {
        let bits = words[first] & u64::MAX << (start % 64);
        if bits != 0 {
            return Some(first * 64 + bits.trailing_zeros() as usize);
        }
        for (index, &word) in words.iter().enumerate().skip(first + 1) {
            if word != 0 {
                return Some(index * 64 + word.trailing_zeros() as usize);
            }
        }
    }
    None
}
