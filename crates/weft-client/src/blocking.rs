//! Polls inside of calls of MPI that do not return before what they wait for has come.
//!
//! Inside one, the program does not see whether a poll found anything: a poll that finds nothing there need
//! not be answered before virtual time has reached it, but can be put off until the next one, which saves its
//! turn (see [`crate::rank`]). Nothing depends on a call standing in that list: a wait inside one that does
//! not, or of a program that does not
//! [say](crate::within) which call it is in, takes one turn more and the same virtual time.
//!
//! Inside some the library polls without a yield, though it does nothing there but to wait: that its empty
//! polls say so is known by the call alone. Where it looks through many requests for one that is complete, it
//! polls between them as well, also when one is complete that it has looked at already: how many polls two
//! whole looks have is known by how many requests there are. Where it synchronizes a window it also polls
//! without waiting for anything, a few times in a row: such polls may be put off, but a few of them are no
//! wait. Of a program that does not say which call it is in, each of these polls is made, and sees what has
//! come by its end.
//!
//! Inside of a probe the library looks for a message over and over, and neither polls for anything else nor
//! yields: that it waits, and sees the message at once as a receive does, is known by the call alone.

use crate::hook::{self, Event};
use crate::rank_thread;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

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
];

/// Those in which MPICH 5 polls without a yield, and only to wait.
const POLLING: &[&str] = &["MPI_Intercomm_create", "MPI_Intercomm_merge"];

/// Those that synchronize a window.
const SYNCHRONIZING: &[&str] = &[
    "MPI_Win_complete",
    "MPI_Win_fence",
    "MPI_Win_flush",
    "MPI_Win_flush_all",
    "MPI_Win_flush_local",
    "MPI_Win_flush_local_all",
    "MPI_Win_free",
    "MPI_Win_lock",
    "MPI_Win_lock_all",
    "MPI_Win_start",
    "MPI_Win_unlock",
    "MPI_Win_unlock_all",
    "MPI_Win_wait",
];

/// The manner in which an MPI call waits. It decides what polls inside the call mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum WaitKind {
    /// It may return before anything has come.
    Other,
    /// It does not, and may wait for anything.
    Blocking,
    /// It does not, may wait for anything, and a poll that finds nothing is all that says so.
    Polling,
    /// It does not, and looks through its requests over and over, with polls between some of them: only when
    /// as many polls in a row as two whole looks have have found nothing, it waits.
    Scanning,
    /// It does not, may wait for anything, and some polls in a row that find nothing are all that says so.
    Synchronizing,
    /// It does not, and waits for a message that it looks for.
    Probing,
}

/// The kind of the call of this name.
pub(crate) fn kind(name: &str) -> WaitKind {
    match name.strip_suffix("_c").unwrap_or(name) {
        "MPI_Mprobe" | "MPI_Probe" => WaitKind::Probing,
        "MPI_Waitany" | "MPI_Waitsome" => WaitKind::Scanning,
        name if POLLING.binary_search(&name).is_ok() => WaitKind::Polling,
        name if SYNCHRONIZING.binary_search(&name).is_ok() => WaitKind::Synchronizing,
        name if CALLS.binary_search(&name).is_ok() => WaitKind::Blocking,
        _ => WaitKind::Other,
    }
}

/// The [`WaitKind`] of the call that the rank is inside.
static INSIDE: AtomicU8 = AtomicU8::new(WaitKind::Other as u8);

/// Polls of the rank that are put off.
static PUT_OFF: AtomicU32 = AtomicU32::new(0);

/// The rank's poll is put off: it has been told that nothing has come, and has not paid for it.
pub(crate) fn put_off() {
    PUT_OFF.store(polls_put_off() + 1, Ordering::Relaxed);
}

/// The number of polls that are put off.
pub(crate) fn polls_put_off() -> u32 {
    PUT_OFF.load(Ordering::Relaxed)
}

/// The polls that were put off are made now; says how many.
pub(crate) fn take_put_off() -> u32 {
    let put_off = polls_put_off();
    PUT_OFF.store(0, Ordering::Relaxed);
    put_off
}

/// Whether the rank is inside a call of this kind. Of several threads, each is in a call of its own.
pub(crate) fn is_inside(kind: WaitKind) -> bool {
    INSIDE.load(Ordering::Relaxed) == kind as u8 && !rank_thread::several_threads()
}

/// Whether the program sees nothing before what it waits for has come.
pub(crate) fn hides_polls() -> bool {
    [WaitKind::Blocking, WaitKind::Polling, WaitKind::Synchronizing].into_iter().any(is_inside)
}

/// The rank enters a call, or goes back to the one that it was made in or to its program.
pub(crate) fn enter(kind: WaitKind) {
    if rank_thread::several_threads() {
        return;
    }
    if !matches!(kind, WaitKind::Blocking | WaitKind::Polling | WaitKind::Synchronizing) {
        // The program may look at what it pleases now.
        hook::tell(Event::Looks);
    }
    INSIDE.store(kind as u8, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a list that cannot be searched.
    #[test]
    fn blocking_calls_are_found_by_name() {
        assert!(CALLS.is_sorted() && POLLING.is_sorted() && SYNCHRONIZING.is_sorted());
        assert_eq!(["MPI_Recv", "MPI_Recv_c"].map(kind), [WaitKind::Blocking; 2]);
        assert_eq!(["MPI_Irecv", "MPI_Test", "MPI_Iprobe"].map(kind), [WaitKind::Other; 3]);
        let kinds = [WaitKind::Polling, WaitKind::Scanning, WaitKind::Synchronizing, WaitKind::Probing];
        assert_eq!(["MPI_Intercomm_merge", "MPI_Waitany", "MPI_Win_lock", "MPI_Probe"].map(kind), kinds);
    }
}
