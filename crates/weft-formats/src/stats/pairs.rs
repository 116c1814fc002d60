//! Messages from rank to rank: the matrix, and the pairs that send most.
//!
//! Ranks come one after the other. Of one rank all receivers are held, of those before it the rows of the
//! matrix, which has a bounded number of rows and columns.

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use weft_units::{Bytes, RankId};

/// Number of pairs in [`PairCount::top`].
const MAX_TOP_PAIRS: usize = 20;

/// Rows and columns of a matrix. Above it, neighbouring ranks are one block.
const MAX_SIDE: u32 = 1024;

/// Messages from one rank to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Pair {
    pub from_rank: u32,
    pub to_rank: u32,
    pub messages: u64,
    pub message_bytes: u64,
}

/// Messages from each rank to each, or from block to block of successive ranks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PairMatrix {
    /// Ranks of a block, the last of which may have fewer. 1: each rank is by itself.
    pub block_ranks: u32,
    /// Pairs of blocks with messages, by sender, then by receiver. A block is named by its first rank.
    pub rows: Vec<Pair>,
}

/// Messages or calls, and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Volume {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl Volume {
    pub(super) fn one(bytes: Bytes) -> Volume {
        Volume { count: 1, bytes: bytes.get() }
    }

    pub(super) fn add(&mut self, other: Volume) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// The messages of one rank, by receiver.
pub(super) type SentTo = BTreeMap<RankId, Volume>;

/// The messages of the ranks so far.
#[derive(Debug)]
pub(super) struct PairCount {
    block_ranks: u32,
    /// Of the block of the last rank, to each block.
    row: Vec<Volume>,
    rows: Vec<Pair>,
    /// Pairs of ranks.
    pub(super) pairs: u64,
    /// Those of them that send most bytes.
    pub(super) top: Vec<Pair>,
    /// Messages to each rank.
    pub(super) received: Vec<Volume>,
}

impl PairCount {
    pub(super) fn new(ranks: u32) -> PairCount {
        let block_ranks = ranks.div_ceil(MAX_SIDE).max(1);
        PairCount {
            block_ranks,
            row: vec![Volume::default(); ranks.div_ceil(block_ranks) as usize],
            rows: Vec::new(),
            pairs: 0,
            top: Vec::new(),
            received: vec![Volume::default(); ranks as usize],
        }
    }

    /// Adds the messages of the next rank; returns their sum.
    pub(super) fn add(&mut self, rank: RankId, sent: SentTo) -> Volume {
        let mut sum = Volume::default();
        self.pairs += sent.len() as u64;
        for (to, volume) in &sent {
            sum.add(*volume);
            // Readers refuse receivers that are not there.
            if let Some(received) = self.received.get_mut(to.index()) {
                received.add(*volume);
                self.row[(to.0 / self.block_ranks) as usize].add(*volume);
            }
        }
        let pair = |(to, Volume { count, bytes }): (RankId, Volume)| Pair {
            from_rank: rank.0,
            to_rank: to.0,
            messages: count,
            message_bytes: bytes,
        };
        self.top.extend(sent.into_iter().map(pair));
        self.top.sort_by_key(|pair| (Reverse(pair.message_bytes), pair.from_rank, pair.to_rank));
        self.top.truncate(MAX_TOP_PAIRS);
        if (rank.0 + 1).is_multiple_of(self.block_ranks) {
            self.end_row(rank);
        }
        sum
    }

    /// Ends the row of a block, of which this is the last rank.
    fn end_row(&mut self, rank: RankId) {
        let block_ranks = self.block_ranks;
        let from_rank = rank.0 / block_ranks * block_ranks;
        for (volume, block) in self.row.iter_mut().zip(0..) {
            let Volume { count, bytes } = std::mem::take(volume);
            if count > 0 {
                let to_rank = block * block_ranks;
                self.rows.push(Pair { from_rank, to_rank, messages: count, message_bytes: bytes });
            }
        }
    }

    /// The matrix of all ranks.
    pub(super) fn into_matrix(mut self) -> PairMatrix {
        if let Some(last) = (self.received.len() as u32).checked_sub(1) {
            self.end_row(RankId(last));
        }
        PairMatrix { block_ranks: self.block_ranks, rows: self.rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a block whose last ranks are lost, or that takes in those of the next.
    #[test]
    fn many_ranks_are_blocks() {
        let ranks = 2 * MAX_SIDE + 6;
        let mut count = PairCount::new(ranks);
        for rank in 0..ranks {
            let ten = Volume { count: 1, bytes: 10 };
            count.add(RankId(rank), SentTo::from([(RankId((rank + 3) % ranks), ten)]));
        }
        assert_eq!((count.pairs, count.top.len()), (u64::from(ranks), MAX_TOP_PAIRS));
        assert!(count.received.iter().all(|received| received.bytes == 10));
        let matrix = count.into_matrix();
        assert_eq!(matrix.block_ranks, 3);
        assert_eq!(matrix.rows.iter().map(|pair| pair.messages).sum::<u64>(), u64::from(ranks));
        let first = Pair { from_rank: 0, to_rank: 3, messages: 3, message_bytes: 30 };
        // The last block has two ranks: they send to ranks 1 and 2.
        let last = Pair { from_rank: 2052, to_rank: 0, messages: 2, message_bytes: 20 };
        assert_eq!((&matrix.rows[0], matrix.rows.last()), (&first, Some(&last)));
    }
}
