//! The virtual clock in place of the system's, for the thread that is the rank.
//!
//! ```text
//!   before the rank joins     from 500 s on, every read and every sleep moves it: start-up code that
//!                             waits for time to pass ends, and the times that it keeps are the same in
//!                             every run
//!   from then on              1000 s + the rank's clock; every read costs time, so that a loop on the
//!                             clock ends
//! ```
//! CPU time is the same clock: a rank's processor polls when it has nothing else to do. A double of seconds
//! resolves 0.1 ns at 1000 s, and 238 ns at today's date.

use crate::device::{HostModel, Shared};
use crate::hook::{self, Event};
use crate::rank_thread::{self, is_job};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Nanoseconds of a second.
pub(crate) const NS_PER_S: u64 = 1_000_000_000;
const PS_PER_NS: u64 = 1000;
/// The rank's clock at virtual time zero, in ns.
const BASE_NS: u64 = 1000 * NS_PER_S;
/// The clock at the start of the process, in ns.
const START_NS: u64 = 500 * NS_PER_S;
/// Time that a clock read takes before the rank has joined, in ns.
const EARLY_READ_NS: u64 = 10_000;
/// The latest time to which a sleep takes the rank's clock, in ps: 106 days, so that the clock can still go
/// on.
const MAX_SLEEP_UNTIL_PS: u64 = u64::MAX / 2;

/// Reads of the clock in virtual time.
static READS: AtomicU32 = AtomicU32::new(0);
/// Sum of reads and sleeps before the rank joined, in ns.
static BEFORE_NS: AtomicU64 = AtomicU64::new(0);
/// Part of the rank's clock that the program itself has taken, in ps.
static PROGRAM_PS: AtomicU64 = AtomicU64::new(0);

/// Reads of the clock by the rank so far.
pub(crate) fn reads() -> u32 {
    READS.load(Ordering::Relaxed)
}

/// Adds to the time that the program itself has taken, in ps.
pub(crate) fn add_program_ps(ps: u64) {
    PROGRAM_PS.fetch_add(ps, Ordering::Relaxed);
}

/// Part of the rank's clock that the program itself has taken, in ps: computation, sleeps, clock reads.
pub(crate) fn program_ps() -> u64 {
    PROGRAM_PS.load(Ordering::Relaxed)
}

/// The system's own clock, in ns.
#[expect(unsafe_code, reason = "the system call itself: the C library's function is ours")]
pub(crate) fn real_ns(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    let status = unsafe { libc::syscall(libc::SYS_clock_gettime, id, &raw mut time) };
    if status == 0 { time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64 } else { 0 }
}

/// CPU time of this thread, in ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    real_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The clock of a rank as the program sees it, in ns.
fn rank_ns(device: &Shared) -> u64 {
    BASE_NS + device.clock() / PS_PER_NS
}

/// The program looks at the clock, if it is in virtual time. Returns the rank's device then.
pub(crate) fn look() -> Option<&'static Shared> {
    let device = rank_thread::device()?;
    settle(device);
    READS.fetch_add(1, Ordering::Relaxed);
    let span = device.identity().clock_read.as_ps();
    device.look(span);
    add_program_ps(span);
    Some(device)
}

/// Reads the clock: the time that it shows, in ns; `None`: the system's.
pub(crate) fn shown_ns() -> Option<u64> {
    if let Some(device) = look() {
        return Some(rank_ns(device));
    }
    if !rank_thread::may_be_rank() {
        return None;
    }
    match rank_thread::device_of_process() {
        // Between two times in virtual time: the clock must not go back.
        Some(device) if device.clock() > 0 => Some(rank_ns(device)),
        _ => Some(early_ns(BEFORE_NS.fetch_add(EARLY_READ_NS, Ordering::Relaxed))),
    }
}

/// The clock before the rank has joined, when reads and sleeps amount to `before`, all in ns. It never stands
/// still, and never reaches the time at which virtual time begins.
fn early_ns(before: u64) -> u64 {
    // Half of the way it runs at its own rate, then ever slower.
    let half = (BASE_NS - START_NS) / 2;
    let late = before.saturating_sub(half);
    let slowed = u128::from(late) * u128::from(half) / (u128::from(late) + u128::from(half));
    START_NS + before.min(half) + slowed as u64
}

/// Brings the rank's clock up to date with what the rank has done since its last call: a poll that was put
/// off, and, if computing is measured, its computation.
fn settle(device: &Shared) {
    hook::tell(match device.identity().host {
        HostModel::Cpu(_) => Event::Settles,
        HostModel::None | HostModel::Fixed(_) => Event::Looks,
    });
}

/// Reads the clock of CPU time, in ns; `None`: the system's.
pub(crate) fn cpu_ns() -> Option<u64> {
    rank_thread::device().and_then(|_| shown_ns())
}

/// Time until the clock shows `ns`, in ns, for a sleep with an absolute end.
pub(crate) fn until_ns(ns: u64) -> u64 {
    match rank_thread::device() {
        Some(device) => {
            settle(device);
            ns.saturating_sub(rank_ns(device))
        }
        // Before the rank has joined, by the clock that the process has been shown.
        None if is_job() => ns.saturating_sub(early_ns(BEFORE_NS.load(Ordering::Relaxed))),
        None => ns,
    }
}

/// Sleeps by the rank's clock, in ns. Returns whether the calling thread is a rank, which then has slept.
pub(crate) fn sleep_ns(ns: u64) -> bool {
    let Some(device) = rank_thread::device() else {
        if is_job() {
            BEFORE_NS.fetch_add(ns, Ordering::Relaxed);
        }
        return false;
    };
    settle(device);
    READS.fetch_add(1, Ordering::Relaxed);
    let span = ns.saturating_mul(PS_PER_NS);
    let span = span.min(MAX_SLEEP_UNTIL_PS.saturating_sub(device.clock()));
    device.sleep(span);
    add_program_ps(span);
    hook::tell(Event::Slept);
    true
}

/// Whether this clock of the system measures real time.
pub(crate) fn is_wall_clock(id: libc::clockid_t) -> bool {
    matches!(
        id,
        libc::CLOCK_REALTIME
            | libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_REALTIME_COARSE
            | libc::CLOCK_MONOTONIC_COARSE
            | libc::CLOCK_BOOTTIME
            | libc::CLOCK_TAI
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a clock that stands still before the rank joins, for which start-up code may wait for ever, or
    /// one that reaches the time at which virtual time begins.
    #[test]
    fn the_early_clock_never_stands_still() {
        let mut before = 0;
        for step in [1, EARLY_READ_NS, NS_PER_S, 100 * NS_PER_S, 300 * NS_PER_S, 1000 * NS_PER_S] {
            assert!(early_ns(before + step) > early_ns(before), "{step} after {before}");
            before += step;
            assert!(early_ns(before) < BASE_NS);
        }
        assert_eq!(early_ns(7), START_NS + 7);
    }
}
