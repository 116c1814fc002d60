//! `weft.h`: the calls of the header, each a thin step to [`Rank`].

#![expect(
    unsafe_code,
    reason = "a C interface: callers answer for the pointers that they pass, as weft.h says"
)]

use crate::clock;
use crate::device::Shared;
use crate::operation::{Completion, Lent, flag};
use crate::rank::{INJECT_LIMIT, Rank, RemotePlace};
use std::collections::{BTreeSet, VecDeque};
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::sync::atomic::{AtomicPtr, Ordering};
use weft_msg::Envelope;

/// The process's rank; there is at most one.
static RANK: AtomicPtr<Handle> = AtomicPtr::new(std::ptr::null_mut());

/// `weft_rank` of the header.
pub struct Handle {
    rank: Rank,
    /// Messages that were claimed, by context.
    claimed: VecDeque<(usize, Envelope)>,
    /// Keys of registered memory.
    keys: BTreeSet<u64>,
    next_key: u64,
}

/// Keys that the library chooses begin here: programs that choose their own begin at 0.
const FIRST_OWN_KEY: u64 = 1 << 32;

impl Handle {
    fn of(rank: Rank) -> Handle {
        Handle { rank, claimed: VecDeque::new(), keys: BTreeSet::new(), next_key: FIRST_OWN_KEY }
    }
}

/// The rank has yielded.
pub(crate) fn yielded() {
    let handle = RANK.load(Ordering::Acquire);
    if !handle.is_null() {
        // SAFETY: set by `weft_open` from a leaked box. sched_yield comes from the rank's own thread
        // (`clock::device` says so) between calls of the library, never within one.
        unsafe { (*handle).rank.yields() };
    }
}

/// The device of this process, from its environment.
fn device() -> Option<(&'static Shared, Shared)> {
    let path = std::env::var_os("WEFT_DEVICE")?;
    let open = || Shared::open(File::options().read(true).write(true).open(&path).ok()?).ok();
    let shared: &'static Shared = Box::leak(Box::new(open()?));
    Some((shared, open()?))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_open(rank: *mut *mut Handle) -> c_int {
    if rank.is_null() {
        return -libc::EINVAL;
    }
    let mut handle = RANK.load(Ordering::Acquire);
    if handle.is_null() {
        let Some((shared, lists)) = device() else { return -libc::ENOENT };
        let Some(new) = Rank::new(shared, lists) else { return -libc::EPROTO };
        shared.set_process(std::process::id());
        clock::belongs_to(shared);
        handle = Box::into_raw(Box::new(Handle::of(new)));
        RANK.store(handle, Ordering::Release);
    }
    // SAFETY: not null; the header says that it points to room for a pointer.
    unsafe { *rank = handle };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_close(rank: *mut Handle) {
    // The rank itself stays: the program may open it again. It leaves when its process ends.
    // SAFETY: the header's contract.
    let handle = unsafe { of(rank) };
    handle.rank.close();
    handle.claimed.clear();
    handle.keys.clear();
}

/// The rank behind a handle.
///
/// # Safety
/// A handle of `weft_open`, and no other call of the library is under way.
unsafe fn of<'a>(handle: *mut Handle) -> &'a mut Handle {
    assert!(!handle.is_null(), "weft.h: the rank is NULL; open it with weft_open");
    // SAFETY: the caller's promise.
    unsafe { &mut *handle }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_number(rank: *const Handle) -> u32 {
    // SAFETY: the header's contract.
    unsafe { of(rank.cast_mut()) }.rank.number()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_count(rank: *const Handle) -> u32 {
    // SAFETY: the header's contract.
    unsafe { of(rank.cast_mut()) }.rank.count()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_clock_ps(rank: *const Handle) -> u64 {
    // SAFETY: the header's contract.
    unsafe { of(rank.cast_mut()) }.rank.clock()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_times(clock_ps: *mut u64, program_ps: *mut u64) {
    let handle = RANK.load(Ordering::Acquire);
    let mut clock = 0;
    if !handle.is_null() {
        // SAFETY: set by `weft_open` from a leaked box; the header says that no other call is under way.
        let rank = unsafe { &mut (*handle).rank };
        if clock::is_in_virtual_time() {
            rank.settle();
        }
        clock = rank.clock();
    }
    for (place, ps) in [(clock_ps, clock), (program_ps, clock::program_ps())] {
        if !place.is_null() {
            // SAFETY: not null; the header says that it points to room for a number.
            unsafe { *place = ps };
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn weft_inject_limit(_rank: *const Handle) -> usize {
    INJECT_LIMIT
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_set_min_multi_receive(rank: *mut Handle, bytes: usize) {
    // SAFETY: the header's contract.
    unsafe { of(rank) }.rank.set_min_multi_receive(bytes);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_send(
    rank: *mut Handle,
    to: u32,
    tag: u64,
    buffer: *const c_void,
    length: usize,
    data: u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    let buffer = Lent { address: buffer as usize, length };
    // SAFETY: the header's contract.
    match unsafe { of(rank) }.rank.send(to, tag, buffer, data, flags, context as usize) {
        Ok(()) => 0,
        Err(error) => -error,
    }
}

fn source(from: u32) -> Option<u32> {
    (from != u32::MAX).then_some(from)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_receive(
    rank: *mut Handle,
    from: u32,
    tag: u64,
    ignore: u64,
    buffer: *mut c_void,
    length: usize,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    let (buffer, context) = (Lent { address: buffer as usize, length }, context as usize);
    // SAFETY: the header's contract.
    let handle = unsafe { of(rank) };
    if flags & (flag::CLAIM | flag::DISCARD) != 0 {
        let Some(place) = handle.claimed.iter().position(|(owner, _)| *owner == context) else {
            return -libc::ENOENT;
        };
        let Some((_, envelope)) = handle.claimed.remove(place) else { return -libc::ENOENT };
        handle.rank.receive_claimed(&envelope, buffer, flags, context);
        return 0;
    }
    handle.rank.receive(source(from), tag, ignore, buffer, flags, context);
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_peek(
    rank: *mut Handle,
    from: u32,
    tag: u64,
    ignore: u64,
    flags: u64,
    context: *mut c_void,
    found: *mut Completion,
) -> c_int {
    // SAFETY: the header's contract.
    let handle = unsafe { of(rank) };
    let Some((completion, claimed)) = handle.rank.peek(source(from), tag, ignore, flags, context as usize)
    else {
        return 0;
    };
    handle.claimed.extend(claimed.map(|envelope| (context as usize, envelope)));
    if !found.is_null() {
        // SAFETY: not null; the header says that it points to room for a completion.
        unsafe { *found = completion };
    }
    1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_cancel(rank: *mut Handle, context: *mut c_void) -> c_int {
    // SAFETY: the header's contract.
    if unsafe { of(rank) }.rank.cancel(context as usize) { 0 } else { -libc::ENOENT }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_poll(rank: *mut Handle, completions: *mut Completion, count: usize) -> isize {
    let mut taken = 0;
    // SAFETY: the header's contract.
    unsafe { of(rank) }.rank.poll(|completion| {
        if taken == count || completions.is_null() {
            return false;
        }
        // SAFETY: the header says that there is room for `count` completions.
        unsafe { completions.add(taken).write(completion) };
        taken += 1;
        true
    }) as isize
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_yield(rank: *mut Handle) {
    // SAFETY: the header's contract.
    unsafe { of(rank) }.rank.yields();
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_register(
    rank: *mut Handle,
    base: *mut c_void,
    length: usize,
    access: u64,
    key: *mut u64,
) -> c_int {
    if key.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the header's contract; not null.
    let (handle, wanted) = unsafe { (of(rank), *key) };
    let mut chosen = wanted;
    if wanted == u64::MAX {
        while handle.keys.contains(&handle.next_key) {
            handle.next_key += 1;
        }
        chosen = handle.next_key;
        handle.next_key += 1;
    }
    if !handle.keys.insert(chosen) {
        return -libc::EEXIST;
    }
    handle.rank.register(Lent { address: base as usize, length }, chosen, access & 1 != 0, access & 2 != 0);
    // SAFETY: as above.
    unsafe { *key = chosen };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_unregister(rank: *mut Handle, key: u64) -> c_int {
    // SAFETY: the header's contract.
    let handle = unsafe { of(rank) };
    if !handle.keys.remove(&key) {
        return -libc::ENOENT;
    }
    handle.rank.unregister(key);
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_write(
    rank: *mut Handle,
    to: u32,
    local: *const c_void,
    length: usize,
    remote: u64,
    key: u64,
    data: u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the header's contract.
    let handle = unsafe { of(rank) };
    if to >= handle.rank.count() || flags & flag::INJECT != 0 && length > INJECT_LIMIT {
        return -libc::EINVAL;
    }
    let place = RemotePlace { rank: to, address: remote, key };
    let local = Lent { address: local as usize, length };
    handle.rank.write(place, local, data, flags, context as usize);
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn weft_read(
    rank: *mut Handle,
    from: u32,
    local: *mut c_void,
    length: usize,
    remote: u64,
    key: u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the header's contract.
    let handle = unsafe { of(rank) };
    if from >= handle.rank.count() {
        return -libc::EINVAL;
    }
    let place = RemotePlace { rank: from, address: remote, key };
    handle.rank.read(place, Lent { address: local as usize, length }, flags, context as usize);
    0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    /// The names of functions that follow `before` in a text.
    fn functions<'a>(text: &'a str, before: &str) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        for (at, _) in text.match_indices(before) {
            let name = &text[at + before.len() - "weft_".len()..];
            let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
            if name[end..].starts_with('(') {
                names.insert(&name[..end]);
            }
        }
        names
    }

    /// Catches a call that the header promises and the library does not have, and the reverse.
    #[test]
    fn the_header_declares_what_the_library_has() {
        let declared: String = include_str!("../../../include/weft.h")
            .lines()
            .filter(|line| !line.trim_start().starts_with("*") && !line.trim_start().starts_with("/*"))
            .collect::<Vec<_>>()
            .join("\n");
        let declared = functions(&declared, "weft_");
        let defined = functions(include_str!("abi.rs"), "extern \"C\" fn weft_");
        assert!(declared.len() > 15, "{declared:?}");
        assert_eq!(declared, defined);
    }
}
