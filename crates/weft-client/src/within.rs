//! The MPI call that the process is in, which the library `weft-calls` says: it is preloaded next to this
//! one.
//!
//! Only reports, speed, and when a probe sees its message (`blocking`) depend on it.

use std::sync::atomic::{AtomicU32, Ordering};

macro_rules! names {
    ($($name:ident),*) => { &[$(stringify!($name)),*] };
}

pub(crate) const NAMES: &[&str] = weft_mpi_calls::mpi_calls!(names);

/// The number of the call; 0: none.
static CALL: AtomicU32 = AtomicU32::new(0);
/// First argument of the call that the program has made.
static FIRST_ARGUMENT: AtomicU32 = AtomicU32::new(0);
/// Calls that the program has made so far: they tell two calls in a row apart.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// The name of an MPI call by its number; `None`: there is no such call.
pub fn name(call: u32) -> Option<&'static str> {
    NAMES.get(call.checked_sub(1)? as usize).copied()
}

/// The number of the call that the process is in, 0 for none, and the count of calls so far.
pub(crate) fn current() -> (u32, u32) {
    (CALL.load(Ordering::Relaxed), CALLS.load(Ordering::Relaxed))
}

/// First argument of the call that the program is in: the number of requests, for calls that look through
/// some.
pub(crate) fn first_argument() -> u32 {
    FIRST_ARGUMENT.load(Ordering::Relaxed)
}

/// Notes that the process is in this MPI call, with this first argument. Returns the call that it was in
/// before.
pub(crate) fn set(call: u32, first_argument: u32) -> u32 {
    let before = CALL.swap(call, Ordering::Relaxed);
    if before == 0 {
        FIRST_ARGUMENT.store(first_argument, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
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
