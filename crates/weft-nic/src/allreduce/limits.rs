//! What the allreduce accelerator can do, and what it says of what it cannot.
//!
//! # Source
//! TR-488 §4.7.

use serde::{Deserialize, Serialize};
use weft_units::{Bytes, EndpointId};

/// What a machine file says of the accelerator's limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AcceleratorLimits {
    /// Ranks of an operation.
    pub ranks: u32,
    /// Endpoints of a board (QFDB), numbered one after the other; the first has the server module.
    pub board: u32,
    /// Bytes of one operation; longer vectors take several.
    pub vector: Bytes,
}

/// A group or operation that the accelerator cannot serve.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AcceleratorError {
    /// The machine has none.
    #[error("this machine has no allreduce accelerator; choose another algorithm")]
    Absent,
    /// Too large.
    #[error("{ranks} ranks exceed the accelerator's {limit}; use fewer or another algorithm")]
    TooManyRanks {
        /// Of the group.
        ranks: u32,
        /// At most.
        limit: u32,
    },
    /// Two ranks on one MPSoC.
    #[error(
        "ranks {first} and {second} are on one endpoint and the accelerator serves one rank on each; use --ppn 1"
    )]
    SharedEndpoint {
        /// A rank of the group.
        first: u32,
        /// Another.
        second: u32,
    },
    /// Not a multiple of the board's endpoints.
    #[error("{ranks} ranks are no whole boards of {board}; use a multiple of {board}")]
    PartialBoard {
        /// Of the group.
        ranks: u32,
        /// Endpoints of a board.
        board: u32,
    },
    /// Ranks of a board that are not next to each other.
    #[error("ranks {first} to {} are not the {board} endpoints of one board; number ranks board by board", first + board - 1)]
    ScatteredBoard {
        /// The first of them.
        first: u32,
        /// Endpoints of a board.
        board: u32,
    },
    /// A number of boards that exchanges between pairs cannot reduce.
    #[error("{ranks} ranks are {boards} boards, and servers exchange in pairs: use {board}, {}, {}, {} … ranks", 2 * board, 4 * board, 8 * board)]
    Unpaired {
        /// Of the group.
        ranks: u32,
        /// Their boards.
        boards: u32,
        /// Endpoints of a board.
        board: u32,
    },
    /// Neither sum, minimum nor maximum of int, float or double.
    #[error("the accelerator computes sum, min and max of int, float and double, not {what}")]
    Unsupported {
        /// What was asked for.
        what: String,
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

    /// Catches a group that is let through and would never end, and an error that does not say what to do.
    #[test]
    fn every_limit_is_named() {
        for good in [4, 8, 16, 32, 64] {
            assert_eq!(check(0..good), Ok(()));
        }
        assert_eq!(check([7, 6, 5, 4, 0, 1, 2, 3]), Ok(()), "any order of boards, and within them");
        let text = |members: Vec<u32>| check(members).unwrap_err().to_string();
        assert!(text((0..128).collect()).contains("128 ranks exceed the accelerator's 64"));
        assert!(text(vec![0, 1, 1, 2]).contains("ranks 1 and 2 are on one endpoint"));
        assert!(text((0..6).collect()).contains("6 ranks are no whole boards of 4"));
        assert!(text(vec![]).contains("0 ranks"));
        assert!(text(vec![0, 1, 2, 4, 3, 5, 6, 7]).contains("ranks 0 to 3 are not"));
        assert!(
            text((0..12).collect()).contains("3 boards, and servers exchange in pairs: use 4, 8, 16, 32")
        );
    }
}
