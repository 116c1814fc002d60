//! Programs to be replayed: the places of their ranks and the source of their operations.
//!
//! ```text
//!   a trace:     rank ──▶ cursor ──▶ Op, Op, …            read from a file
//!   a function:  (rank, position) ──▶ Op                  computed when it is needed
//!   stepped:     rank, clock, what it has received ──▶ Op  decided while the program runs
//! ```
//! A function keeps nothing: a rank that was saved goes on at its position, and a million operations
//! take no memory. A stepped program keeps what it likes, so that its ranks cannot be saved.

use crate::mapping::CorePlace;
use std::sync::Arc;
use weft_trace::TraceSource;
use weft_trace::op::{Op, RequestId};
use weft_units::{Bytes, RankId, Time};

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

/// A message that a receive of the program has taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedMessage {
    /// The receive.
    pub request: RequestId,
    /// The rank that sent it.
    pub source: RankId,
    /// The message's tag.
    pub tag: Option<i32>,
    /// The message's payload.
    pub bytes: Bytes,
}

/// A program whose ranks decide what they do next when their last operation has ended.
///
/// Ranks are asked by any thread, and in an order that depends on the threads: what one rank does must not
/// depend on what another has done before in real time.
pub trait Stepped: Send + Sync {
    /// The program's name in messages.
    fn name(&self) -> &str;

    /// Number of ranks.
    fn ranks(&self) -> u32;

    /// The next operation of `rank`, whose last one has ended at `at` of its clock; `None`: its program is
    /// over. `received`: the messages that its receives have taken since it was last asked.
    ///
    /// # Errors
    /// The program is wrong: the run ends with this text.
    fn next(&self, rank: RankId, at: Time, received: &[ReceivedMessage]) -> Result<Option<Op>, String>;
}

/// The source of a program's operations.
#[derive(Clone)]
pub enum Operations {
    /// A recorded program.
    Recorded(Arc<dyn TraceSource>),
    /// A function.
    Generated(Arc<dyn Generated>),
    /// A program that decides as it goes.
    Stepped(Arc<dyn Stepped>),
}

impl Operations {
    /// The program's name in messages: of a trace, its file.
    pub fn name(&self) -> &str {
        match self {
            Operations::Recorded(trace) => trace.file(),
            Operations::Generated(program) => program.name(),
            Operations::Stepped(program) => program.name(),
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        match self {
            Operations::Recorded(trace) => trace.ranks(),
            Operations::Generated(program) => program.ranks(),
            Operations::Stepped(program) => program.ranks(),
        }
    }

    /// Number of operations of all ranks; 0 for a stepped program, of which nobody knows it before.
    pub fn count(&self) -> u64 {
        match self {
            Operations::Recorded(trace) => trace.operations(),
            Operations::Generated(program) => {
                (0..program.ranks()).map(|rank| program.operations(RankId(rank))).sum()
            }
            Operations::Stepped(_) => 0,
        }
    }
}

impl From<Arc<dyn TraceSource>> for Operations {
    fn from(trace: Arc<dyn TraceSource>) -> Operations {
        Operations::Recorded(trace)
    }
}

/// A program to be replayed.
#[derive(Clone)]
pub struct Program {
    /// The source of its operations.
    pub operations: Operations,
    /// The place of each rank.
    pub places: Vec<CorePlace>,
}
