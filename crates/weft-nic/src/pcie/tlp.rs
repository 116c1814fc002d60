//! Packets of the transaction layer: into how many a range of addresses is cut.

use super::AddressRange;
use super::parameters::PcieParameters;

/// The pieces of a range that is cut at multiples of a size: a first one up to the first multiple, whole
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

/// Cuts a range at multiples of `size`, a power of two. One of no bytes is a piece all the same.
#[inline]
pub fn split(range: AddressRange, size: u64) -> Pieces {
    let AddressRange { address, bytes } = range;
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

    /// Visits the runs of equal pieces: how many, and of how many bytes.
    #[inline]
    pub fn visit_runs(&self, mut visit: impl FnMut(u32, u64)) {
        let Pieces { head, whole, size, tail } = *self;
        if head > 0 {
            visit(1, head);
        }
        if whole > 0 {
            visit(whole, size);
        }
        // One of no bytes is a piece all the same.
        if tail > 0 || head == 0 && whole == 0 {
            visit(1, tail);
        }
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
    pub(super) fn wire(&self, parameters: &PcieParameters, bytes: u64) -> u32 {
        (u64::from(self.0) * parameters.completion_header + bytes) as u32
    }
}

/// Equal TLPs that follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub count: u32,
    /// Bytes of each on the line.
    pub bytes: u32,
    /// Credits of each: headers, data, a third resource.
    pub each: [u32; 3],
}
