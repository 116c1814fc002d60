//! Polls inside of calls of MPI that do not return before what they wait for has come.
//!
//! Inside one, the program does not see whether a poll found anything: a poll that finds nothing there need not be answered
//! before virtual time has reached it, but can be put off until the next one, which saves its turn (see [`crate::rank`]).
//! Nothing depends on a call standing in the list: a wait inside one that does not, or of a program that does not
//! [say](crate::within) which call it is in, takes one turn more and the same virtual time.
//!
//! Inside of a probe the library looks for a message over and over, and neither polls for anything else nor yields: that it waits,
//! and sees the message at once as a receive does, is known by the call alone.

use crate::abi;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The calls, without those for large counts, which have a `_c` behind their names.
const CALLS: &[&str] = &[
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Allreduce",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Exscan",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Recv",
    "MPI_Reduce",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Rsend",
    "MPI_Scan",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Send",
    "MPI_Sendrecv",
    "MPI_Sendrecv_replace",
    "MPI_Ssend",
    "MPI_Wait",
    "MPI_Waitall",
    "MPI_Waitany",
    "MPI_Waitsome",
];

/// What is known of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// It may return before anything has come.
    Other,
    /// It does not, and may wait for anything.
    Blocking,
    /// It does not, and waits for a message that it looks for.
    Probing,
}

/// What is known of the call of this name.
pub(crate) fn kind(name: &str) -> Kind {
    match name.strip_suffix("_c").unwrap_or(name) {
        "MPI_Mprobe" | "MPI_Probe" => Kind::Probing,
        name if CALLS.binary_search(&name).is_ok() => Kind::Blocking,
        _ => Kind::Other,
    }
}

/// The [`Kind`] of the call that the rank is inside.
static INSIDE: AtomicU8 = AtomicU8::new(Kind::Other as u8);

/// Whether a poll of the rank is put off.
static PUT_OFF: AtomicBool = AtomicBool::new(false);

/// The rank's poll is put off: it has been told that nothing has come, and has not paid for it.
pub(crate) fn put_off() {
    PUT_OFF.store(true, Ordering::Relaxed);
}

/// Whether a poll is put off.
pub(crate) fn is_put_off() -> bool {
    PUT_OFF.load(Ordering::Relaxed)
}

/// The poll that was put off is made now; says whether one was.
pub(crate) fn take_put_off() -> bool {
    let put_off = is_put_off();
    PUT_OFF.store(false, Ordering::Relaxed);
    put_off
}

/// Whether the rank is inside a call of this kind.
pub(crate) fn is_inside(kind: Kind) -> bool {
    INSIDE.load(Ordering::Relaxed) == kind as u8
}

/// The rank enters a call, or goes back to the one that it was made in or to its program.
pub(crate) fn enter(kind: Kind) {
    if kind != Kind::Blocking {
        // The program may look at what it pleases now.
        abi::make_up();
    }
    INSIDE.store(kind as u8, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a list that cannot be searched.
    #[test]
    fn blocking_calls_are_found_by_name() {
        assert!(CALLS.is_sorted());
        assert_eq!(["MPI_Recv", "MPI_Recv_c"].map(kind), [Kind::Blocking; 2]);
        assert_eq!(["MPI_Irecv", "MPI_Test", "MPI_Iprobe"].map(kind), [Kind::Other; 3]);
        assert_eq!(kind("MPI_Probe"), Kind::Probing);
    }
}
