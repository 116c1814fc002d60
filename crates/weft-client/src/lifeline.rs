//! Ends a rank whose simulator has ended.
//!
//! The system does so for processes that weft itself has started. One that a wrapper has started, a shell
//! say, would go on: it watches by itself, since no rank is to stay behind where weft is killed.

use crate::device::Shared;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, getppid, pidfd_open};

/// As of a process that has been killed.
const KILLED: i32 = 137;

/// Watches from a thread of its own, where nobody else does.
pub(crate) fn hold(device: &'static Shared) {
    let Some(simulator) = device.simulator() else { return };
    if getppid() == Some(simulator) {
        return;
    }
    let Ok(lives) = pidfd_open(simulator, PidfdFlags::empty()) else { return };
    // Where no thread can be had, the rank still looks whenever it waits for its turn.
    let _ = std::thread::Builder::new().name("weft lifeline".to_owned()).spawn(move || {
        // A signal may disturb it.
        while poll(&mut [PollFd::new(&lives, PollFlags::IN)], None) == Err(rustix::io::Errno::INTR) {}
        // Nothing is left to tell, and what runs at exit may wait for others.
        #[expect(unsafe_code, reason = "an end without what runs at exit")]
        // SAFETY: it takes a number and does not return.
        unsafe {
            libc::_exit(KILLED)
        }
    });
}
