//! The functions of the C library that the virtual clock stands in for.
//!
//! The library is preloaded: its functions take precedence over those of the C library. Each asks
//! [`mod@clock`], and makes the system call itself where the calling thread is not a rank.
//!
//! # Not covered
//! The processor's time-stamp counter, static programs, system calls without the C library, and `times()`,
//! which are real.

#![expect(unsafe_code, reason = "C functions: their callers answer for the pointers")]

use crate::clock::{self, NS_PER_S};
use crate::hook::{self, Event};
use crate::rank_thread;
use libc::{c_int, c_long, c_void, clockid_t, time_t, timespec, timeval, useconds_t};

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(id: clockid_t, time: *mut timespec) -> c_int {
    let shown = match id {
        libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID => clock::cpu_ns(),
        id if clock::is_wall_clock(id) => clock::shown_ns(),
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
        _ => unsafe { libc::syscall(libc::SYS_clock_gettime, id, time) as c_int },
    }
}

/// C11's clock read.
#[unsafe(no_mangle)]
unsafe extern "C" fn timespec_get(time: *mut timespec, base: c_int) -> c_int {
    const TIME_UTC: c_int = 1;
    // SAFETY: the caller's pointer, as the C library would take it.
    let done = base == TIME_UTC && unsafe { clock_gettime(libc::CLOCK_REALTIME, time) } == 0;
    if done { base } else { 0 }
}

/// CPU time in microseconds, as C has it.
#[unsafe(no_mangle)]
extern "C" fn clock() -> libc::clock_t {
    let ns = clock::cpu_ns().unwrap_or_else(|| clock::real_ns(libc::CLOCK_PROCESS_CPUTIME_ID));
    (ns / 1000) as libc::clock_t
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getrusage(who: c_int, usage: *mut libc::rusage) -> c_int {
    // SAFETY: the same call with the same arguments.
    let status = unsafe { libc::syscall(libc::SYS_getrusage, who, usage) as c_int };
    let own = who == libc::RUSAGE_SELF || who == libc::RUSAGE_THREAD;
    let shown = if status == 0 && own { clock::cpu_ns() } else { None };
    if let Some(ns) = shown {
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
    match clock::shown_ns() {
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
    let ns = clock::shown_ns().unwrap_or_else(|| clock::real_ns(libc::CLOCK_REALTIME));
    let seconds = (ns / NS_PER_S) as time_t;
    if !out.is_null() {
        // SAFETY: not null, and by the C library's contract a time_t to write to.
        unsafe { *out = seconds };
    }
    seconds
}

/// Length of a sleep in ns; `None`: not valid.
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
        Some(ns) if clock::sleep_ns(ns) => 0,
        // SAFETY: the same call with the same arguments.
        _ => unsafe { libc::syscall(libc::SYS_nanosleep, request, rest) as c_int },
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    id: clockid_t,
    flags: c_int,
    request: *const timespec,
    rest: *mut timespec,
) -> c_int {
    // SAFETY: the caller's pointer, as the C library would take it.
    let wanted = if clock::is_wall_clock(id) { unsafe { length(request) } } else { None };
    let span = match wanted {
        Some(ns) if flags & libc::TIMER_ABSTIME != 0 => Some(clock::until_ns(ns)),
        wanted => wanted,
    };
    match span {
        Some(ns) if clock::sleep_ns(ns) => 0,
        _ => {
            // SAFETY: the same call with the same arguments.
            let status = unsafe { libc::syscall(libc::SYS_clock_nanosleep, id, flags, request, rest) };
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
    if clock::sleep_ns(ns) {
        return 0;
    }
    let request = timespec { tv_sec: (ns / NS_PER_S) as time_t, tv_nsec: (ns % NS_PER_S) as c_long };
    // SAFETY: a timespec of our own.
    unsafe {
        libc::syscall(libc::SYS_nanosleep, &raw const request, std::ptr::null_mut::<timespec>()) as c_int
    }
}

/// Sleeps for seconds; returns those that are left.
#[unsafe(no_mangle)]
extern "C" fn sleep(seconds: libc::c_uint) -> libc::c_uint {
    if clock::sleep_ns(u64::from(seconds) * NS_PER_S) {
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
    if rank_thread::is_in_virtual_time() && !rank_thread::several_threads() {
        hook::tell(Event::Yields);
        return 0;
    }
    // SAFETY: takes no arguments.
    unsafe { libc::syscall(libc::SYS_sched_yield) as c_int }
}
