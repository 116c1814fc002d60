//! The table `calls`.

use crate::row::row;
use weft_units::{RankId, Span, Time};

row! {
    /// The calls of one operation by one rank.
    CallRow version 1
        written by Default: "--tables calls (of weft replay, osu or run)"
        ordered by |row| (row.run, Time::ZERO, row.rank.0.into(), 0);
    /// Index of the run in `run.json`.
    run: u32,
    /// The rank.
    rank: RankId,
    /// The operation: as traces name it, such as `isend`, and of `weft run` the MPI call, such as `MPI_Send`.
    operation: String,
    /// Calls that have begun. Of `weft run`: those in which the library had something to do.
    calls: u64,
    /// Time in them, waiting included.
    time_ps: Span,
}
