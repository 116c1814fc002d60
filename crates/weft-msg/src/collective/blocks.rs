//! How a buffer is divided into blocks.

/// A piece of a buffer. Where it exceeds the end it goes on at the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// Where it starts, in bytes.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

/// A buffer of consecutive blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blocks<'a> {
    /// `count` blocks of `block` bytes.
    Equal { block: u64, count: u32 },
    /// A vector of `bytes`, cut between elements of `element` bytes into `count` blocks as equal as
    /// can be, the longer ones first; a fraction of an element at its end belongs to the last block.
    Split { bytes: u64, element: u64, count: u32 },
    /// Block i ends at byte `ends[i]`.
    Ends(&'a [u64]),
}

impl Blocks<'_> {
    /// The number of blocks.
    pub fn count(&self) -> u32 {
        match self {
            Blocks::Equal { count, .. } | Blocks::Split { count, .. } => *count,
            Blocks::Ends(ends) => ends.len() as u32,
        }
    }

    /// The size of the buffer.
    pub fn total(&self) -> u64 {
        self.offset(self.count())
    }

    /// Where block `index` starts; for `index` = count, the end.
    fn offset(&self, index: u32) -> u64 {
        match self {
            Blocks::Equal { block, .. } => block * u64::from(index),
            Blocks::Split { bytes, count, .. } if index == *count => *bytes,
            Blocks::Split { bytes, element, count } => {
                let (elements, count, index) = (bytes / element, u64::from(*count), u64::from(index));
                (elements / count * index + index.min(elements % count)) * element
            }
            Blocks::Ends(ends) => index.checked_sub(1).map_or(0, |before| ends[before as usize]),
        }
    }

    /// Block `index`.
    pub fn block(&self, index: u32) -> Extent {
        self.between(index, index + 1)
    }

    /// Blocks `first` to before `end`.
    pub fn between(&self, first: u32, end: u32) -> Extent {
        let offset = self.offset(first);
        Extent { offset, bytes: self.offset(end) - offset }
    }

    /// `blocks` blocks from `first`, going on with block 0 after the last.
    pub fn cyclic(&self, first: u32, blocks: u32) -> Extent {
        let end = first + blocks;
        match end.checked_sub(self.count()) {
            None | Some(0) => self.between(first, end),
            Some(wrapped) => Extent {
                offset: self.offset(first),
                bytes: self.total() - self.offset(first) + self.offset(wrapped),
            },
        }
    }

    /// The whole buffer.
    pub fn whole(&self) -> Extent {
        self.between(0, self.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches a vector that loses bytes at the cuts, or is cut within an element.
        #[test]
        fn a_vector_is_cut_between_elements_without_loss(
            bytes in 0u64..1000, element in 1u64..17, count in 1u32..40,
        ) {
            let layout = Blocks::Split { bytes, element, count };
            let mut end = 0;
            for index in 0..count {
                let block = layout.block(index);
                prop_assert_eq!(block.offset, end);
                prop_assert_eq!(block.offset % element, 0);
                end += block.bytes;
            }
            prop_assert_eq!(end, bytes);
            prop_assert_eq!(layout.whole(), Extent { offset: 0, bytes });
        }

        #[test]
        fn a_cyclic_piece_is_the_sum_of_its_blocks(
            ends in prop::collection::vec(0u64..50, 1..20), first in 0u32..20, blocks in 0u32..20,
        ) {
            let mut sum = 0;
            let ends: Vec<u64> = ends.into_iter().map(|size| { sum += size; sum }).collect();
            let layout = Blocks::Ends(&ends);
            let (first, blocks) = (first % layout.count(), blocks.min(layout.count()));
            let expected: u64 = (first..first + blocks).map(|i| layout.block(i % layout.count()).bytes).sum();
            prop_assert_eq!(layout.cyclic(first, blocks).bytes, expected);
        }
    }
}
