//! Critical paths: where the time of a replay went.
//!
//! ```text
//!  rank 0 ─[compute]─[send]╮                              from the end back to the beginning:
//!                          ╰ interface ─ links, switches ─ interface ╮
//!  rank 1 ─[compute]─ ┄┄┄┄┄┄┄┄┄┄ waits ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄[receive]─[compute]─ end
//! ```
//! A [`Record`] of a replay is walked backwards: what a processor did is taken whole; a
//! wait is explained by the message that ended it, from its notice through interfaces, links and switches
//! back to when it was posted, and on at the rank that posted it. A message that was there before somebody
//! waited for it is no cause. Every picosecond is in exactly one [`Piece`].
//!
//! | file | is |
//! |---|---|
//! | `piece` | what a picosecond can be spent on |
//! | `leg` | host, injection, fabric, ejection |
//! | `trace` | the record, sorted so that the walk finds what it needs |
//! | `chain` | one message, from its post to its notice |
//! | `walk` | the critical path; the own time of a rank, or of a message |
//!
//! # Source
//! The walk is that of Yang and Miller 1988, "Critical path analysis for the execution of parallel and
//! distributed programs".
//!
//! # Not modelled
//! Slack: what would be critical if a piece were shorter.

mod chain;
mod leg;
mod piece;
mod trace;
mod walk;

pub use leg::{Leg, LegTimes};
pub use piece::{Category, Location, Piece, PieceKind};
pub use trace::{Pace, PathTrace};
pub use walk::{Walk, message_time, rank_time, way_time};

#[cfg(doc)]
use crate::replay::Record;
