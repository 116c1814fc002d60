//! MPICH's shared memory, kept to the process that asks for it.
//!
//! MPICH makes a segment in `/dev/shm` for the ranks of a node even where every rank is a node of its own, as
//! in virtual time, and names it after what it finds at its start: the process manager's space, the rank, the
//! clock. Under a virtual clock those are the same in every job, so that two jobs on one computer, or a job
//! and what a killed one left behind, would write into each other's queues. Here such a segment is memory
//! without a name, which goes with the process.
//!
//! The library is preloaded: its functions stand before those of the C library.
//!
//! # Source
//! MPICH 5, `src/mpl/src/shm/mpl_shm_posix.c`: `mpich_shm_%x_%d`. Those of further virtual communication
//! interfaces are called `mpich_vci_%x_%d`.

/// The beginnings of the names that MPICH gives to its segments.
const MPICH: [&[u8]; 2] = [b"mpich_shm_", b"mpich_vci_"];

/// Whether a name is that of a segment of MPICH.
fn is_private(name: &[u8]) -> bool {
    let begin = name.iter().position(|byte| *byte != b'/').unwrap_or(name.len());
    MPICH.iter().any(|beginning| name[begin..].starts_with(beginning))
}

#[cfg(not(test))]
#[expect(unsafe_code, reason = "the C library's functions, with its types")]
mod in_place_of_libc {
    use super::is_private;
    use crate::rank_thread::is_job;
    use libc::{c_char, c_int, mode_t};
    use std::ffi::CStr;

    /// The C library's directory of named memory: shm_open(3).
    const FOLDER: &[u8] = b"/dev/shm/";

    #[unsafe(no_mangle)]
    unsafe extern "C" fn shm_open(name: *const c_char, flags: c_int, mode: mode_t) -> c_int {
        // SAFETY: by the contract of shm_open(3) a string.
        let name = unsafe { CStr::from_ptr(name) };
        if is_job() && is_private(name.to_bytes()) {
            // SAFETY: a string, and flags that exist.
            return unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
        }
        let Some(path) = path(name) else { return -1 };
        // SAFETY: a string that ends with its only zero.
        unsafe { libc::open(path.as_ptr().cast(), flags | libc::O_NOFOLLOW | libc::O_CLOEXEC, mode) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn shm_unlink(name: *const c_char) -> c_int {
        // SAFETY: by the contract of shm_unlink(3) a string.
        let name = unsafe { CStr::from_ptr(name) };
        if is_job() && is_private(name.to_bytes()) {
            return 0;
        }
        let Some(path) = path(name) else { return -1 };
        // SAFETY: a string that ends with its only zero.
        unsafe { libc::unlink(path.as_ptr().cast()) }
    }

    /// Where the C library keeps the memory of this name, with a zero at the end; `None`: no name, as `errno`
    /// says.
    fn path(name: &CStr) -> Option<Vec<u8>> {
        let bytes = name.to_bytes();
        let begin = bytes.iter().position(|byte| *byte != b'/').unwrap_or(bytes.len());
        let bytes = &bytes[begin..];
        if bytes.is_empty() || bytes.len() > 255 || bytes.contains(&b'/') {
            // SAFETY: the C library's own variable of this thread.
            unsafe { *libc::__errno_location() = libc::EINVAL };
            return None;
        }
        Some([FOLDER, bytes, b"\0"].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a program's own shared memory taken away from it, and MPICH's left in common.
    #[test]
    fn only_what_mpich_names_is_private() {
        assert!(is_private(b"/mpich_shm_e8cd700b_0") && is_private(b"mpich_vci_1_1"));
        assert!(!is_private(b"/mine") && !is_private(b"/a_mpich_shm_") && !is_private(b""));
    }
}
