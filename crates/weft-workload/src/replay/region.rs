//! The readings of ranks where their programs mark regions of interest.

use super::record::Cause;
use weft_trace::RegionMark;
use weft_units::{RankId, Span, Time};

/// The account of a rank at a mark: two readings give what the rank did between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionReading {
    /// The rank, counted over all programs.
    pub rank: RankId,
    /// The mark of the program.
    pub mark: RegionMark,
    /// The rank's clock.
    pub at: Time,
    /// Time in computation so far.
    pub computation: Span,
    /// Time in the software of the messaging layer so far.
    pub communication: Span,
    /// The step or message that led to this moment; [`Cause::Beginning`] where none is recorded.
    pub last: Cause,
}
