//! The virtual clock in place of the system's, for the thread that is the rank.
//!
//! ```text
//!   before the rank joins     from 500 s on, every look and every sleep moves it: start-up code that waits for time
//!                             to pass ends, and what it keeps of the clock is the same in every run
//!   from then on              1000 s + the rank's clock; every look costs time, so that a loop on the
//!                             clock ends
//! ```
//! The library is preloaded: its functions stand before those of the C library. Other threads keep the
//! system's clock. CPU time is the same clock: a rank's processor polls when it has nothing else to do. A double of seconds resolves 0.1 ns at 1000 s, and 238 ns at today's date.
//!
//! # Not covered
//! The processor's time-stamp counter, static programs, system calls without the C library, and `times()`,
//! which are real.

use crate::device::{HostModel, Shared, State};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

/// Seconds that a rank's clock shows at virtual time zero.
const BASE_S: u64 = 1000;
/// Seconds that it shows when the process starts.
const START_S: u64 = 500;
const NS_PER_S: u64 = 1_000_000_000;
const PS_PER_NS: u64 = 1000;

static DEVICE: OnceLock<&'static Shared> = OnceLock::new();
static OWNER: AtomicI32 = AtomicI32::new(0);
static SEVERAL: AtomicBool = AtomicBool::new(false);
static READS: AtomicU32 = AtomicU32::new(0);
/// What looks and sleeps have amounted to before the rank joined, in ns.
static BEFORE: AtomicU64 = AtomicU64::new(0);
/// How much of the rank's clock the program itself has taken, in ps.
static PROGRAM: AtomicU64 = AtomicU64::new(0);
/// What a look moves the clock by before the rank has joined, in ns.
const EARLY_LOOK: u64 = 10_000;

/// How far sleeps take the clock at most, in ps, so that it still can go on: 106 days.
const LAST_PS: u64 = u64::MAX / 2;

/// No thread's number, and not the one that stands for a rank that may join yet.
const NOBODY: i32 = -1;

thread_local! {
    static THREAD: Cell<i32> = const { Cell::new(0) };
}

/// The calling thread is the rank of this device.
pub(crate) fn belongs_to(device: &'static Shared) {
    OWNER.store(thread(), Ordering::Relaxed);
    let _ = DEVICE.set(device);
    watch_process();
}

/// At the end of the process the rank's clock has what it has done last; a fork of the process is no rank, and has the system's clocks.
#[expect(unsafe_code, reason = "functions that the C library calls")]
fn watch_process() {
    extern "C" fn ends() {
        if is_in_virtual_time() {
            crate::abi::settle();
        }
    }
    extern "C" fn forked() {
        OWNER.store(NOBODY, Ordering::Relaxed);
    }
    // SAFETY: functions that live as long as the process. Without room for them, nothing but what they do is missing.
    unsafe {
        libc::atexit(ends);
        libc::pthread_atfork(None, None, Some(forked));
    }
}

/// How often the rank has looked at its clock.
pub(crate) fn reads() -> u32 {
    READS.load(Ordering::Relaxed)
}

/// The program itself has taken so much more of the rank's clock, in ps.
pub(crate) fn add_program_ps(ps: u64) {
    PROGRAM.fetch_add(ps, Ordering::Relaxed);
}

/// How much of the rank's clock the program itself has taken: computation, sleeping, looking at the clock, in ps.
pub(crate) fn program_ps() -> u64 {
    PROGRAM.load(Ordering::Relaxed)
}

/// Whether the calling thread is a rank in virtual time.
pub(crate) fn is_in_virtual_time() -> bool {
    device().is_some()
}

/// Whether other threads than the rank's call the library too, this one among them. The MPI library sees to it that one calls at a time;
/// so from then on nothing may be done outside of its calls with what they use, and what one thread says of itself holds for it alone.
pub(crate) fn several_threads() -> bool {
    if SEVERAL.load(Ordering::Relaxed) {
        return true;
    }
    let owner = OWNER.load(Ordering::Relaxed);
    let other = owner > 0 && owner != thread();
    if other {
        SEVERAL.store(true, Ordering::Relaxed);
    }
    other
}

fn thread() -> i32 {
    let known = THREAD.get();
    if known != 0 {
        return known;
    }
    let id = rustix::thread::gettid().as_raw_nonzero().get();
    THREAD.set(id);
    id
}

/// The device whose rank the calling thread is, in virtual time.
fn device() -> Option<&'static Shared> {
    let device = DEVICE.get()?;
    let joined = matches!(device.state(), Some(State::Run));
    (joined && OWNER.load(Ordering::Relaxed) == thread()).then_some(*device)
}

/// Whether the process is a rank, or may become one.
pub(crate) fn is_job() -> bool {
    static JOB: OnceLock<bool> = OnceLock::new();
    *JOB.get_or_init(|| std::env::var_os("WEFT_JOB").is_some())
}

#[expect(unsafe_code, reason = "the system call itself: the C library's function is ours")]
fn real_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes one timespec.
    let status = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut time) };
    if status == 0 { time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64 } else { 0 }
}

/// CPU time of this thread, in ns.
pub(crate) fn thread_cpu_ns() -> u64 {
    real_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// What the clock shows, in ns; `None`: the system's.
fn shown_ns() -> Option<u64> {
    if let Some(device) = device() {
        take_account(device);
        READS.fetch_add(1, Ordering::Relaxed);
        let span = device.identity().clock_read.as_ps();
        device.look(span);
        add_program_ps(span);
        return Some(BASE_S * NS_PER_S + device.clock() / PS_PER_NS);
    }
    if !is_job() || OWNER.load(Ordering::Relaxed) != 0 && OWNER.load(Ordering::Relaxed) != thread() {
        return None;
    }
    if let Some(device) = DEVICE.get()
        && device.clock() > 0
    {
        // Between two times in virtual time: it must not go back.
        return Some(BASE_S * NS_PER_S + device.clock() / PS_PER_NS);
    }
    Some(early_ns(BEFORE.fetch_add(EARLY_LOOK, Ordering::Relaxed)))
}

/// What the clock shows before the rank has joined, when looks and sleeps have amounted to `before`, in ns. It never stands still, nor comes
/// to where virtual time begins.
fn early_ns(before: u64) -> u64 {
    let (start, end) = (START_S * NS_PER_S, BASE_S * NS_PER_S);
    // As it is for half of the way; then ever slower.
    let half = (end - start) / 2;
    let late = before.saturating_sub(half);
    let slowed = u128::from(late) * u128::from(half) / (u128::from(late) + u128::from(half));
    start + before.min(half) + slowed as u64
}

/// What the rank has done since its last call is in its clock: a poll that was put off, and, where computing is measured, what it has
/// computed.
fn take_account(device: &Shared) {
    match device.identity().host {
        HostModel::Cpu(_) => crate::abi::settle(),
        HostModel::None | HostModel::Fixed(_) => crate::abi::make_up(),
    }
}

/// The CPU time that the clock shows, in ns; `None`: the system's.
fn cpu_ns() -> Option<u64> {
    device().and_then(|_| shown_ns())
}

/// Lets the rank's clock pass; says whether it is a rank's.
fn sleep_ns(ns: u64) -> bool {
    let Some(device) = device() else {
        if is_job() {
            BEFORE.fetch_add(ns, Ordering::Relaxed);
        }
        return false;
    };
    take_account(device);
    READS.fetch_add(1, Ordering::Relaxed);
    let span = ns.saturating_mul(PS_PER_NS);
    let span = span.min(LAST_PS.saturating_sub(device.clock()));
    device.sleep(span);
    add_program_ps(span);
    crate::abi::slept();
    true
}

fn is_wall_clock(clock: libc::clockid_t) -> bool {
    matches!(
        clock,
        libc::CLOCK_REALTIME
            | libc::CLOCK_MONOTONIC
            | libc::CLOCK_MONOTONIC_RAW
            | libc::CLOCK_REALTIME_COARSE
            | libc::CLOCK_MONOTONIC_COARSE
            | libc::CLOCK_BOOTTIME
            | libc::CLOCK_TAI
    )
}

/// The functions of the C library that this one stands before.
#[expect(unsafe_code, reason = "C functions: their callers answer for the pointers")]
mod preload {
    use super::*;
    use libc::{c_int, c_long, c_void, clockid_t, time_t, timespec, timeval, useconds_t};

    #[unsafe(no_mangle)]
    unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
        let shown = match clock {
            libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => cpu_ns(),
            clock if is_wall_clock(clock) => shown_ns(),
            _ => None,
        };
        match shown {
            Some(ns) if !time.is_null() => {
                // SAFETY: not null, and by the C library's contract a timespec to write to.
                unsafe {
                    *time = timespec { tv_sec: (ns / NS_PER_S) as time_t, tv_nsec: (ns % NS_PER_S) as c_long }
                };
                0
            }
            // SAFETY: the same call with the same arguments.
            _ => unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int },
        }
    }

    /// C11's look at the time.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn timespec_get(time: *mut timespec, base: c_int) -> c_int {
        const TIME_UTC: c_int = 1;
        // SAFETY: the caller's pointer, as the C library would take it.
        let done = base == TIME_UTC && unsafe { clock_gettime(libc::CLOCK_REALTIME, time) } == 0;
        if done { base } else { 0 }
    }

    /// CPU time in microseconds.
    #[unsafe(no_mangle)]
    extern "C" fn clock() -> libc::clock_t {
        let ns = cpu_ns().unwrap_or_else(|| real_ns(libc::CLOCK_PROCESS_CPUTIME_ID));
        (ns / 1000) as libc::clock_t
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn getrusage(who: c_int, usage: *mut libc::rusage) -> c_int {
        // SAFETY: the same call with the same arguments.
        let status = unsafe { libc::syscall(libc::SYS_getrusage, who, usage) as c_int };
        let own = who == libc::RUSAGE_SELF || who == libc::RUSAGE_THREAD;
        if status == 0
            && own
            && let Some(ns) = cpu_ns()
        {
            let time = |ns: u64| timeval {
                tv_sec: (ns / NS_PER_S) as time_t,
                tv_usec: (ns % NS_PER_S / 1000) as libc::suseconds_t,
            };
            // SAFETY: the call has just written there.
            unsafe { ((*usage).ru_utime, (*usage).ru_stime) = (time(ns), time(0)) };
        }
        status
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
        match shown_ns() {
            Some(ns) if !time.is_null() => {
                // SAFETY: not null, and by the C library's contract a timeval to write to.
                unsafe {
                    *time = timeval {
                        tv_sec: (ns / NS_PER_S) as time_t,
                        tv_usec: (ns % NS_PER_S / 1000) as libc::suseconds_t,
                    }
                };
                0
            }
            // SAFETY: the same call with the same arguments.
            _ => unsafe { libc::syscall(libc::SYS_gettimeofday, time, zone) as c_int },
        }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn time(out: *mut time_t) -> time_t {
        let ns = shown_ns().unwrap_or_else(|| real_ns(libc::CLOCK_REALTIME));
        let seconds = (ns / NS_PER_S) as time_t;
        if !out.is_null() {
            // SAFETY: not null, and by the C library's contract a time_t to write to.
            unsafe { *out = seconds };
        }
        seconds
    }

    /// Of a sleep, in ns; `None`: not valid.
    unsafe fn length(request: *const timespec) -> Option<u64> {
        if request.is_null() {
            return None;
        }
        // SAFETY: not null, and by the C library's contract a timespec.
        let timespec { tv_sec, tv_nsec } = unsafe { *request };
        let valid = tv_sec >= 0 && (0..NS_PER_S as c_long).contains(&tv_nsec);
        valid.then(|| (tv_sec as u64).saturating_mul(NS_PER_S).saturating_add(tv_nsec as u64))
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn nanosleep(request: *const timespec, rest: *mut timespec) -> c_int {
        // SAFETY: the caller's pointer, as the C library would take it.
        match unsafe { length(request) } {
            Some(ns) if sleep_ns(ns) => 0,
            // SAFETY: the same call with the same arguments.
            _ => unsafe { libc::syscall(libc::SYS_nanosleep, request, rest) as c_int },
        }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn clock_nanosleep(
        clock: clockid_t,
        flags: c_int,
        request: *const timespec,
        rest: *mut timespec,
    ) -> c_int {
        // SAFETY: the caller's pointer, as the C library would take it.
        let wanted = if is_wall_clock(clock) { unsafe { length(request) } } else { None };
        let span = match (wanted, device()) {
            (Some(ns), Some(device)) if flags & libc::TIMER_ABSTIME != 0 => {
                take_account(device);
                Some(ns.saturating_sub(BASE_S * NS_PER_S + device.clock() / PS_PER_NS))
            }
            // Before the rank has joined, by the clock that it has been shown.
            (Some(ns), None) if flags & libc::TIMER_ABSTIME != 0 && is_job() => {
                Some(ns.saturating_sub(early_ns(BEFORE.load(Ordering::Relaxed))))
            }
            (wanted, _) => wanted,
        };
        match span {
            Some(ns) if sleep_ns(ns) => 0,
            _ => {
                // SAFETY: the same call with the same arguments.
                let status = unsafe { libc::syscall(libc::SYS_clock_nanosleep, clock, flags, request, rest) };
                // The function returns the error, the system call sets errno.
                if status == 0 {
                    0
                } else {
                    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)
                }
            }
        }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn usleep(us: useconds_t) -> c_int {
        let ns = u64::from(us) * 1000;
        if sleep_ns(ns) {
            return 0;
        }
        let request = timespec { tv_sec: (ns / NS_PER_S) as time_t, tv_nsec: (ns % NS_PER_S) as c_long };
        // SAFETY: a timespec of our own.
        unsafe {
            libc::syscall(libc::SYS_nanosleep, &raw const request, std::ptr::null_mut::<timespec>()) as c_int
        }
    }

    /// Seconds; returns what is left of them.
    #[unsafe(no_mangle)]
    extern "C" fn sleep(seconds: libc::c_uint) -> libc::c_uint {
        if sleep_ns(u64::from(seconds) * NS_PER_S) {
            return 0;
        }
        let request = timespec { tv_sec: seconds as time_t, tv_nsec: 0 };
        let mut rest = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: timespecs of our own.
        let status = unsafe { libc::syscall(libc::SYS_nanosleep, &raw const request, &raw mut rest) };
        if status == 0 { 0 } else { rest.tv_sec as libc::c_uint }
    }

    #[unsafe(no_mangle)]
    extern "C" fn sched_yield() -> c_int {
        if device().is_some() && !several_threads() {
            crate::abi::yielded();
            return 0;
        }
        // SAFETY: takes no arguments.
        unsafe { libc::syscall(libc::SYS_sched_yield) as c_int }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a clock that stands still before the rank joins, which start-up code may wait for for ever, or that reaches the time at
    /// which virtual time begins.
    #[test]
    fn the_early_clock_never_stands_still() {
        let mut before = 0;
        for step in [1, EARLY_LOOK, NS_PER_S, 100 * NS_PER_S, 300 * NS_PER_S, 1000 * NS_PER_S] {
            assert!(early_ns(before + step) > early_ns(before), "{step} after {before}");
            before += step;
            assert!(early_ns(before) < BASE_S * NS_PER_S);
        }
        assert_eq!(early_ns(7), START_S * NS_PER_S + 7);
    }
}
