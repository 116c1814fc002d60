//! Whether standard output was closed when weft was started (`>&-`).
//!
//! Rust opens `/dev/null` in place of a closed standard descriptor before `main`, so that a report would be
//! lost without a word. The look is taken before that.

use std::sync::atomic::{AtomicBool, Ordering};

static STANDARD_OUTPUT: AtomicBool = AtomicBool::new(false);

/// Whether standard output was closed.
pub fn standard_output() -> bool {
    STANDARD_OUTPUT.load(Ordering::Relaxed)
}

/// The loader calls what is in this section before anything of Rust's runtime.
#[used]
#[expect(unsafe_code, reason = "nothing else is called before Rust's runtime")]
// SAFETY: the section holds pointers to functions of this kind.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

#[expect(unsafe_code, reason = "a descriptor that may be closed is nothing that a safe function takes")]
extern "C" fn look() {
    // SAFETY: asks for the flags of a descriptor; one that is closed is an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    STANDARD_OUTPUT.store(flags == -1, Ordering::Relaxed);
}
