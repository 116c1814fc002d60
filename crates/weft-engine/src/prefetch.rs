//! Asking for memory before it is needed.
//!
//! The state of a large machine does not fit any cache, and most of what a site touches is known before
//! its turn: asked for together, its lines come in the time of one.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for the cache lines of `what`, which will be read or written soon. Changes nothing but speed.
#[inline]
pub fn prefetch<T: ?Sized>(what: &T) {
    let start = std::ptr::from_ref(what).cast::<u8>();
    let lines = (start.addr() % LINE + size_of_val(what)).div_ceil(LINE);
    if size_of_val(what) == 0 {
        return;
    }
    for line in 0..lines {
        line_at(start.wrapping_add(line * LINE));
    }
}

/// Asks for the cache line at `place`, to the second level: what a switch of many ports needs for its turn
/// would displace from the first level what the turn before it still works with.
#[inline]
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the instruction has no safe form; the gain is in bench/performance.md")]
fn line_at(place: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
    // SAFETY: a prefetch is a hint: it reads nothing that the program could see, and faults at no
    // address. Its instruction is part of every x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T1>(place.cast()) }
}

#[inline]
#[cfg(not(target_arch = "x86_64"))]
fn line_at(_: *const u8) {}
