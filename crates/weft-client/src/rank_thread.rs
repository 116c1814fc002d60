//! Which thread of the process is the rank.
//!
//! The thread that opens the rank is the rank; other threads keep the system's clock. A fork of the process
//! is no rank.

use crate::device::{Shared, State};
use crate::hook::{self, Event};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The device of the process's rank, once it is open.
static DEVICE: OnceLock<&'static Shared> = OnceLock::new();
/// The thread that is the rank; 0: none yet.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// Whether a thread other than the rank's has called the library.
static SEVERAL: AtomicBool = AtomicBool::new(false);

/// The owner in a fork of a rank: no thread has this number, and it is not 0, so that none can become the
/// rank.
const NOBODY: i32 = -1;

thread_local! {
    static THREAD: Cell<i32> = const { Cell::new(0) };
}

/// The calling thread is the rank of this device.
pub(crate) fn claim(device: &'static Shared) {
    OWNER.store(this_thread(), Ordering::Relaxed);
    let _ = DEVICE.set(device);
    watch_process();
}

/// Makes the clock whole when the process exits, and gives a fork of the process the system's clocks.
#[expect(unsafe_code, reason = "functions that the C library calls")]
fn watch_process() {
    extern "C" fn exits() {
        if is_in_virtual_time() {
            hook::tell(Event::Settles);
        }
    }
    extern "C" fn forked() {
        OWNER.store(NOBODY, Ordering::Relaxed);
    }
    // SAFETY: functions that live as long as the process. If the system has no room for them, only what they
    // do is missing.
    unsafe {
        libc::atexit(exits);
        libc::pthread_atfork(None, None, Some(forked));
    }
}

/// Whether the calling thread is a rank in virtual time.
pub(crate) fn is_in_virtual_time() -> bool {
    device().is_some()
}

/// Whether threads other than the rank's call the library too, the calling one included.
///
/// The MPI library lets one thread call at a time. From then on nothing outside the library's calls may touch
/// the rank's state, and what one thread says of itself holds for it alone.
pub(crate) fn several_threads() -> bool {
    if SEVERAL.load(Ordering::Relaxed) {
        return true;
    }
    let owner = OWNER.load(Ordering::Relaxed);
    let other = owner > 0 && owner != this_thread();
    if other {
        SEVERAL.store(true, Ordering::Relaxed);
    }
    other
}

fn this_thread() -> i32 {
    let known = THREAD.get();
    if known != 0 {
        return known;
    }
    let id = rustix::thread::gettid().as_raw_nonzero().get();
    THREAD.set(id);
    id
}

/// The device whose rank the calling thread is, in virtual time.
pub(crate) fn device() -> Option<&'static Shared> {
    let device = DEVICE.get()?;
    let joined = matches!(device.state(), Some(State::Run));
    (joined && OWNER.load(Ordering::Relaxed) == this_thread()).then_some(*device)
}

/// The device of the process's rank, in virtual time or not.
pub(crate) fn device_of_process() -> Option<&'static Shared> {
    DEVICE.get().copied()
}

/// Whether the calling thread is the rank, or may become it.
pub(crate) fn may_be_rank() -> bool {
    let owner = OWNER.load(Ordering::Relaxed);
    is_job() && (owner == 0 || owner == this_thread())
}

/// Whether the process is a rank, or may become one.
pub(crate) fn is_job() -> bool {
    static JOB: OnceLock<bool> = OnceLock::new();
    *JOB.get_or_init(|| std::env::var_os("WEFT_JOB").is_some())
}
