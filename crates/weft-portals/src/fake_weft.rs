//! A stand-in for the `weft.h` of a job of two ranks, of which this process is rank 0: what it sends to
//! itself comes back, and what it sends to the other is lost. Each poll takes a millisecond of virtual time,
//! and every third send finds the device full.

use crate::weft::{ANY_SOURCE, Completion, RECEIVED, SENT, WeftRank};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A millisecond, in ps.
const MS: u64 = 1_000_000_000;

/// Yields in a row without a completion before a wait is taken to have no end.
const MOST_YIELDS: u32 = 100;

/// A buffer of the library that waits for a message; its place as a number.
struct Posted {
    tag: u64,
    ignore: u64,
    place: usize,
    length: usize,
    context: usize,
}

/// The device.
#[derive(Default)]
pub struct Device {
    posted: Vec<Posted>,
    /// Messages that no buffer has been posted for.
    early: VecDeque<(u64, Vec<u8>)>,
    /// Context, flags, length and tag.
    completions: VecDeque<(usize, u64, usize, u64)>,
    clock: u64,
    sends: u32,
    yields: u32,
    /// List entries that the library has charged.
    pub searched: u64,
}

static DEVICE: Mutex<Option<Device>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<Device>> {
    DEVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at the device.
pub fn device<R>(look: impl FnOnce(&mut Device) -> R) -> R {
    look(lock().get_or_insert_default())
}

impl Device {
    /// Hands a message to the first buffer that it is for, if there is one.
    fn arrive(&mut self, tag: u64, bytes: Vec<u8>) {
        let place = self.posted.iter().position(|posted| (posted.tag ^ tag) & !posted.ignore == 0);
        let Some(place) = place else { return self.early.push_back((tag, bytes)) };
        let Posted { place, length, context, .. } = self.posted.remove(place);
        let moved = bytes.len().min(length);
        // SAFETY: the library keeps a buffer that it has posted until its completion.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), place as *mut u8, moved) };
        self.completions.push_back((context, RECEIVED, moved, tag));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_open(rank: *mut *mut WeftRank) -> c_int {
    *lock() = None;
    // SAFETY: room for a pointer, which nobody follows.
    unsafe { rank.write(ptr::NonNull::dangling().as_ptr()) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn weft_number(_: *const WeftRank) -> u32 {
    0
}

#[unsafe(no_mangle)]
extern "C" fn weft_count(_: *const WeftRank) -> u32 {
    2
}

#[unsafe(no_mangle)]
extern "C" fn weft_clock_ps(_: *const WeftRank) -> u64 {
    device(|device| device.clock)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_send(
    _: *mut WeftRank,
    to: u32,
    tag: u64,
    buffer: *const c_void,
    length: usize,
    _: u64,
    _: u64,
    context: *mut c_void,
) -> c_int {
    device(|device| {
        device.sends += 1;
        if device.sends.is_multiple_of(3) {
            return -libc::EAGAIN;
        }
        device.completions.push_back((context as usize, SENT, length, tag));
        if to == 0 {
            // SAFETY: the library sends bytes of its own.
            let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) }.to_vec();
            device.arrive(tag, bytes);
        }
        0
    })
}

#[unsafe(no_mangle)]
extern "C" fn weft_receive(
    _: *mut WeftRank,
    from: u32,
    tag: u64,
    ignore: u64,
    buffer: *mut c_void,
    length: usize,
    _: u64,
    context: *mut c_void,
) -> c_int {
    assert!(from == ANY_SOURCE || from == 0, "a receive from rank {from}");
    device(|device| {
        device.posted.push(Posted { tag, ignore, place: buffer as usize, length, context: context as usize });
        let early = device.early.iter().position(|(of, _)| (of ^ tag) & !ignore == 0);
        if let Some((tag, bytes)) = early.and_then(|early| device.early.remove(early)) {
            device.arrive(tag, bytes);
        }
    });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_poll(_: *mut WeftRank, completions: *mut Completion, count: usize) -> isize {
    device(|device| {
        device.clock += MS;
        let count = count.min(device.completions.len());
        for (place, (context, flags, length, tag)) in device.completions.drain(..count).enumerate() {
            let (context, buffer) = (context as *mut c_void, ptr::null_mut());
            let (data, source, error, overflow) = (0, 0, 0, 0);
            let completion =
                Completion { context, flags, length, buffer, data, tag, source, error, overflow };
            // SAFETY: room for `count`.
            unsafe { completions.add(place).write(completion) };
            device.yields = 0;
        }
        count as isize
    })
}

#[unsafe(no_mangle)]
extern "C" fn weft_yield(_: *mut WeftRank) {
    device(|device| {
        device.yields += 1;
        assert!(device.yields < MOST_YIELDS, "the library waits for what nobody sends");
    });
}

#[unsafe(no_mangle)]
extern "C" fn weft_search(_: *mut WeftRank, entries: u64) {
    device(|device| device.searched += entries);
}
