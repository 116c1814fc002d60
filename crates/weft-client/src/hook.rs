//! The one way up from the C library's functions to the rank.
//!
//! ```text
//!   program ─► sched_yield, clock_gettime, nanosleep, exit ─► hook ─► rank, if the process is one
//! ```
//! Those functions are called at any time and know no rank. The C interface, which makes the rank, registers
//! it here.

use std::sync::OnceLock;

/// Something that the rank's thread does outside the library's calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// It yields.
    Yields,
    /// It looks at something that a poll that was put off comes before.
    Looks,
    /// It needs a clock that counts the computation so far.
    Settles,
    /// It has slept.
    Slept,
}

static RANK: OnceLock<fn(Event)> = OnceLock::new();

/// Events go to `rank` from now on.
pub(crate) fn register(rank: fn(Event)) {
    // The second time it is the same.
    let _ = RANK.set(rank);
}

/// Hands an event to the rank, if the process is one.
pub(crate) fn tell(event: Event) {
    if let Some(rank) = RANK.get() {
        rank(event);
    }
}
