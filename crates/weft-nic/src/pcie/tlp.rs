//! Packets of the transaction layer: into how many a stretch of addresses is cut.

use super::Stretch;
use super::parameters::PcieParameters;

/// The pieces of a stretch that is cut at multiples of a size: a first one up to the first multiple, whole
/// ones, and the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pieces {
    /// Bytes of the first; 0: it begins at a multiple.
    head: u64,
    /// Pieces of the whole size.
    whole: u32,
    size: u64,
    /// Bytes of the last; 0: it ends at a multiple.
    tail: u64,
}

/// Cuts a stretch at multiples of `size`, a power of two. One of no bytes is a piece all the same.
#[inline]
pub fn split(stretch: Stretch, size: u64) -> Pieces {
    let Stretch { address, bytes } = stretch;
    let behind = address & (size - 1);
    let head = if behind == 0 { 0 } else { (size - behind).min(bytes) };
    let rest = bytes - head;
    Pieces { head, whole: (rest >> size.trailing_zeros()) as u32, size, tail: rest & (size - 1) }
}

impl Pieces {
    /// The number of pieces.
    #[inline]
    pub fn count(&self) -> u32 {
        (u32::from(self.head > 0) + self.whole + u32::from(self.tail > 0)).max(1)
    }

    /// Runs of equal pieces: how many, and of how many bytes.
    #[inline]
    pub fn runs(&self) -> impl Iterator<Item = (u32, u64)> + use<> {
        let mut rest = *self;
        // One of no bytes is a piece all the same.
        let mut is_empty = rest.head == 0 && rest.whole == 0 && rest.tail == 0;
        std::iter::from_fn(move || {
            let (head, whole) = (std::mem::take(&mut rest.head), std::mem::take(&mut rest.whole));
            if head > 0 {
                rest.whole = whole;
                return Some((1, head));
            }
            if whole > 0 {
                return Some((whole, rest.size));
            }
            let tail = std::mem::take(&mut rest.tail);
            (tail > 0 || std::mem::take(&mut is_empty)).then_some((1, tail))
        })
    }
}

/// The completions of one read request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Completions(pub(super) u32);

impl Completions {
    #[inline]
    pub(super) fn count(&self) -> u32 {
        self.0
    }

    /// Bytes on the line: their headers, and the data.
    #[inline]
    pub(super) fn wire(&self, parameters: &PcieParameters, bytes: u64) -> u64 {
        u64::from(self.0) * parameters.completion_header + bytes
    }
}

/// Equal TLPs that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub count: u32,
    /// Bytes of each on the line.
    pub bytes: u64,
    /// Credits of each: headers, data, a third resource.
    pub each: [u64; 3],
}
