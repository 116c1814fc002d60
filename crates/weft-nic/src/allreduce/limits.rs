//! The limits of the allreduce accelerator, and the check of a group against them.
//!
//! # Source
//! TR-488 §4.7.

use serde::{Deserialize, Serialize};
use weft_units::{Bytes, EndpointId};

weft_keys::keys! {
    /// The accelerator's limits in a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct AcceleratorLimits {
        /// Ranks of an operation.
        ranks: u32;
        /// Endpoints of a board (QFDB), numbered one after the other; the first has the server module.
        board: u32;
        /// Bytes of an operation; longer vectors take several.
        vector: Bytes;
    }
}

/// The limit of the accelerator that a request exceeds. Messaging has the words for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcceleratorError {
    /// The machine has no accelerator.
    Absent,
    /// A group of more ranks than the accelerator serves.
    TooManyRanks {
        /// Ranks of the group.
        ranks: u32,
        /// The most ranks that a group may have.
        limit: u32,
    },
    /// Two ranks on one MPSoC.
    SharedEndpoint {
        /// A rank of the group.
        first: u32,
        /// The other rank.
        second: u32,
    },
    /// A number of ranks that is not a multiple of the board's endpoints.
    PartialBoard {
        /// Ranks of the group.
        ranks: u32,
        /// Endpoints of a board.
        board: u32,
    },
    /// Ranks in a row that are not the endpoints of one board.
    ScatteredBoard {
        /// The first of the ranks.
        first: u32,
        /// Endpoints of a board.
        board: u32,
    },
    /// A number of boards that exchanges between pairs cannot reduce.
    Unpaired {
        /// Ranks of the group.
        ranks: u32,
        /// Boards of the group.
        boards: u32,
        /// Endpoints of a board.
        board: u32,
    },
}

impl AcceleratorLimits {
    /// Whether the accelerator can serve a group, given its members' endpoints in rank order.
    ///
    /// # Errors
    /// Names the limit that is exceeded.
    pub fn check(&self, members: &[EndpointId]) -> Result<(), AcceleratorError> {
        let (ranks, board) = (members.len() as u32, self.board.max(1));
        if ranks > self.ranks {
            return Err(AcceleratorError::TooManyRanks { ranks, limit: self.ranks });
        }
        let mut places: Vec<(EndpointId, u32)> = members.iter().copied().zip(0..).collect();
        places.sort_unstable();
        if let Some(pair) = places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(AcceleratorError::SharedEndpoint { first: pair[0].1, second: pair[1].1 });
        }
        if ranks == 0 || !ranks.is_multiple_of(board) {
            return Err(AcceleratorError::PartialBoard { ranks, board });
        }
        for (of_board, first) in members.chunks(board as usize).zip((0..).step_by(board as usize)) {
            let number = of_board[0].0 / board;
            if of_board.iter().any(|endpoint| endpoint.0 / board != number) {
                return Err(AcceleratorError::ScatteredBoard { first, board });
            }
        }
        let boards = ranks / board;
        if !boards.is_power_of_two() {
            return Err(AcceleratorError::Unpaired { ranks, boards, board });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: AcceleratorLimits = AcceleratorLimits { ranks: 64, board: 4, vector: Bytes::new(256) };

    fn check(members: impl IntoIterator<Item = u32>) -> Result<(), AcceleratorError> {
        LIMITS.check(&members.into_iter().map(EndpointId).collect::<Vec<_>>())
    }

    /// Catches a group that is let through and would never end, and an error that names another limit.
    #[test]
    fn every_limit_is_named() {
        use AcceleratorError::*;
        for good in [4, 8, 16, 32, 64] {
            assert_eq!(check(0..good), Ok(()));
        }
        assert_eq!(check([7, 6, 5, 4, 0, 1, 2, 3]), Ok(()), "any order of boards, and within them");
        assert_eq!(check(0..128), Err(TooManyRanks { ranks: 128, limit: 64 }));
        assert_eq!(check([0, 1, 1, 2]), Err(SharedEndpoint { first: 1, second: 2 }));
        assert_eq!(check(0..6), Err(PartialBoard { ranks: 6, board: 4 }));
        assert_eq!(check([]), Err(PartialBoard { ranks: 0, board: 4 }));
        assert_eq!(check([0, 1, 2, 4, 3, 5, 6, 7]), Err(ScatteredBoard { first: 0, board: 4 }));
        assert_eq!(check(0..12), Err(Unpaired { ranks: 12, boards: 3, board: 4 }));
    }
}
