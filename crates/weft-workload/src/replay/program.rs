//! Programs to be replayed: the places of their ranks and the source of their operations.
//!
//! ```text
//!   a trace:     rank ──▶ cursor ──▶ Op, Op, …            read from a file
//!   a function:  (rank, position) ──▶ Op                  computed when it is needed
//! ```
//! A function keeps nothing: a rank that was saved goes on at its position, and a million operations
//! take no memory.

use crate::mapping::Place;
use std::sync::Arc;
use weft_trace::Trace;
use weft_trace::op::Op;
use weft_units::RankId;

/// A program that is a function of rank and position.
pub trait Generated: Send + Sync {
    /// The program's name in messages, such as `osu_bcast`.
    fn name(&self) -> &str;

    /// Number of ranks.
    fn ranks(&self) -> u32;

    /// Number of operations of `rank`.
    fn operations(&self, rank: RankId) -> u64;

    /// Operation `position` of `rank`, the same whenever it is asked for; `None` at the end of the
    /// program and after it.
    fn operation(&self, rank: RankId, position: u64) -> Option<Op>;
}

/// The source of a program's operations.
#[derive(Clone)]
pub enum Operations {
    /// A recorded program.
    Recorded(Trace),
    /// A function.
    Generated(Arc<dyn Generated>),
}

impl Operations {
    /// The program's name in messages: of a trace, its file.
    pub fn name(&self) -> &str {
        match self {
            Operations::Recorded(trace) => trace.file(),
            Operations::Generated(program) => program.name(),
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        match self {
            Operations::Recorded(trace) => trace.ranks(),
            Operations::Generated(program) => program.ranks(),
        }
    }

    /// Number of operations of all ranks.
    pub fn count(&self) -> u64 {
        match self {
            Operations::Recorded(trace) => trace.operations(),
            Operations::Generated(program) => {
                (0..program.ranks()).map(|rank| program.operations(RankId(rank))).sum()
            }
        }
    }
}

impl From<Trace> for Operations {
    fn from(trace: Trace) -> Operations {
        Operations::Recorded(trace)
    }
}

/// A program to be replayed.
#[derive(Clone)]
pub struct Program {
    /// The source of its operations.
    pub operations: Operations,
    /// The place of each rank.
    pub places: Vec<Place>,
}
