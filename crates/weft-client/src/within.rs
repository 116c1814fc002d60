//! In which MPI call the process is: the library `weft-calls`, preloaded beside this one, says so. Nothing but reports,
//! [speed, and when a probe sees what it waits for](crate::blocking), depends on it.

#![expect(unsafe_code, reason = "a C function that another preloaded library calls")]

use crate::blocking::{self, Kind};
use crate::process_manager;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

include!("mpi_calls.rs");

macro_rules! names {
    ($($name:ident),*) => { &[$(stringify!($name)),*] };
}

const NAMES: &[&str] = mpi_calls!(names);

/// What is known of a call, by its number.
static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    std::iter::once(Kind::Other).chain(NAMES.iter().map(|name| blocking::kind(name))).collect()
});

/// The number of the call; 0: none.
static CALL: AtomicU32 = AtomicU32::new(0);
/// The first argument of that which the program has called.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// Counts calls, so that two in a row can be told apart.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// The name of an MPI call by its number; `None`: there is no such call.
pub fn name(call: u32) -> Option<&'static str> {
    NAMES.get(call.checked_sub(1)? as usize).copied()
}

/// The number of the call that the process is in, 0 for none, and how many there have been.
pub(crate) fn current() -> (u32, u32) {
    (CALL.load(Ordering::Relaxed), CALLS.load(Ordering::Relaxed))
}

/// The first argument of the call that the program is in, for those that look through so many requests.
pub(crate) fn first_argument() -> u32 {
    FIRST.load(Ordering::Relaxed)
}

/// The process enters this MPI call, with this first argument, or leaves it for the one that it was called in (0: none); returns the one
/// that it was in.
#[unsafe(no_mangle)]
extern "C" fn weft_within(call: u32, first: u32) -> u32 {
    process_manager::find();
    let before = CALL.swap(call, Ordering::Relaxed);
    if before == 0 {
        FIRST.store(first, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    blocking::enter(KINDS.get(call as usize).copied().unwrap_or(Kind::Other));
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches numbers that do not fit the log, and two names of one number.
    #[test]
    fn calls_are_numbered_from_one_on() {
        assert_eq!((name(0), name(1)), (None, Some("MPI_Accumulate")));
        let number = NAMES.iter().position(|name| *name == "MPI_Send").unwrap() as u32 + 1;
        assert_eq!(name(number), Some("MPI_Send"));
        assert!(NAMES.is_sorted() && NAMES.len() < 1 << 14);
        assert_eq!(name(NAMES.len() as u32 + 1), None);
    }
}
