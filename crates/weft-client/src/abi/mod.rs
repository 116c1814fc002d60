//! `weft.h`: the calls of the header, each a thin step to [`Rank`].
//!
//! The header is made of the doc comments and declarations here, in [`interface`] and [`service`], and of the
//! records and flags in `operation` and `interface`; `tests/header.rs` makes it and holds it against the one
//! that is there.

#![expect(
    unsafe_code,
    reason = "a C interface: callers answer for the pointers that they pass, as weft.h says"
)]

mod interface;
mod port;
mod service;

use crate::blocking;
use crate::clock;
use crate::device::Shared;
use crate::hook::{self, Event};
use crate::lifeline;
use crate::operation::{Completion, Lent, flag};
use crate::rank::{CallOptions, INJECT_LIMIT, OutgoingMessage, Rank, RemotePlace, Selector};
use crate::rank_thread;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use weft_msg::Envelope;

/// The process's rank; there is at most one.
static RANK: AtomicPtr<Handle> = AtomicPtr::new(std::ptr::null_mut());

/// A rank: this process's side of the job.
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

/// The process's rank between two calls of the library, for its own thread; `None`: there is none, or other
/// threads call the library too.
///
/// # Safety
/// The calling thread is the rank's and outside any call of the library; the reference ends before the next
/// call.
unsafe fn between_calls<'a>() -> Option<&'a mut Rank> {
    let handle = RANK.load(Ordering::Acquire);
    if handle.is_null() || rank_thread::several_threads() {
        return None;
    }
    // SAFETY: set by `weft_open` from a leaked box. No other thread is a caller, and the caller promises the
    // rest.
    Some(unsafe { &mut (*handle).rank })
}

/// The rank has called `MPI_Pcontrol`.
pub(crate) fn mark(level: c_int) {
    // SAFETY: the rank's own thread comes from a call of its program, which MPI carries out without the
    // library.
    if let Some(rank) = unsafe { between_calls() } {
        rank.mark(level);
    }
}

/// The rank's thread has done something outside the library's calls.
fn on_event(event: Event) {
    // A poll is put off only between calls of the library: most looks find none.
    if event == Event::Looks && blocking::polls_put_off() == 0 {
        return;
    }
    // SAFETY: only the rank's own thread is in virtual time, and it yields, reads its clock, sleeps and ends
    // its process outside any call of the library. If the library ends the process, the rank does not have
    // its turn.
    let Some(rank) = (unsafe { between_calls() }) else { return };
    match event {
        Event::Yields => rank.yields(),
        Event::Looks => rank.make_up(),
        Event::Settles => rank.settle(),
        Event::Slept => rank.slept(),
    }
}

/// The device of this process, from its environment: by its path, so that it is there for programs whose
/// launchers close all that they inherit. The error is an errno.
fn device() -> Result<(&'static Shared, Shared), c_int> {
    let path = std::env::var_os("WEFT_DEVICE").ok_or(libc::ENOENT)?;
    let open = || {
        let file = File::options().read(true).write(true).open(&path);
        let file = file.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
        Shared::open(file).map_err(|_| libc::EPROTO)
    };
    let shared: &'static Shared = Box::leak(Box::new(open()?));
    Ok((shared, open()?))
}

/// Joins the job that the environment names (WEFT_JOB, the same for all its ranks, and WEFT_DEVICE).
/// -ENOENT: there is none, the process was not started by `weft run` or weft is gone. -EPROTO: its device is
/// of another version.
///
/// Does not enter virtual time: the first call that sends, receives or polls does. A second call
/// returns the same rank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_open(rank: *mut *mut Handle) -> c_int {
    if rank.is_null() {
        return -libc::EINVAL;
    }
    let mut handle = RANK.load(Ordering::Acquire);
    if handle.is_null() {
        let (shared, lists) = match device() {
            Ok(device) => device,
            Err(error) => return -error,
        };
        let Some(new) = Rank::new(shared, lists) else { return -libc::EPROTO };
        shared.set_process(std::process::id());
        hook::register(on_event);
        rank_thread::claim(shared);
        lifeline::hold(shared);
        handle = Box::into_raw(Box::new(Handle::of(new)));
        RANK.store(handle, Ordering::Release);
    }
    // SAFETY: not null; the header says that it points to room for a pointer.
    unsafe { *rank = handle };
    0
}

/// Leaves. Operations that are under way are forgotten, virtual interfaces freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_close(rank: *mut Handle) {
    // The rank itself stays: the program may open it again. It leaves when its process ends.
    // SAFETY: the header's contract.
    let handle = unsafe { of(rank) };
    handle.rank.close();
    handle.claimed.clear();
    handle.keys.clear();
}

/// Warns the user once that another thread than the rank's calls the library: the system chooses which of
/// them comes first.
fn warn_of_other_threads() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if rank_thread::several_threads() && !WARNED.swap(true, Ordering::Relaxed) {
        // A warning only: a standard error that takes nothing must not end the rank.
        let _ = writeln!(
            std::io::stderr(),
            "weft: several threads of this rank call the MPI library or weft.h; their order is the system's, \
             so the run is not deterministic, and only the thread that joined the job sees virtual time"
        );
    }
}

/// The rank behind a handle.
///
/// # Safety
/// A handle of `weft_open`, and no other call of the library is under way.
unsafe fn of<'a>(handle: *mut Handle) -> &'a mut Handle {
    assert!(!handle.is_null(), "weft.h: the rank is NULL; open it with weft_open");
    warn_of_other_threads();
    // SAFETY: the caller's promise.
    unsafe { &mut *handle }
}

/// This rank's number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_number(rank: *const Handle) -> u32 {
    // SAFETY: the header's contract.
    unsafe { of(rank.cast_mut()) }.rank.number()
}

/// The number of ranks in the job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_count(rank: *const Handle) -> u32 {
    // SAFETY: the header's contract.
    unsafe { of(rank.cast_mut()) }.rank.count()
}

/// The virtual clock in picoseconds since the job began. As every look at a clock it takes the machine's
/// `host.clock_read`, so that a loop which waits for a time ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_clock_ps(rank: *const Handle) -> u64 {
    clock::look();
    // SAFETY: the header's contract.
    unsafe { of(rank.cast_mut()) }.rank.clock()
}

/// For recorders: the virtual clock in picoseconds, and how much of it the program itself has taken, that is
/// computing by the host model of `weft run`, sleeping and looking at the clock. Takes no time and needs no
/// rank: 0 before the process is one. Either may be NULL.
///
/// # Safety
/// Places that are not null have room for a number; no other call is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_times(clock_ps: *mut u64, program_ps: *mut u64) {
    let handle = RANK.load(Ordering::Acquire);
    let mut clock = 0;
    on_event(Event::Looks);
    if !handle.is_null() {
        // SAFETY: set by `weft_open` from a leaked box; the header says that no other call is under way.
        let rank = unsafe { &mut (*handle).rank };
        if rank_thread::is_in_virtual_time() {
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

/// The largest message that weft_send carries with WEFT_INJECT.
#[unsafe(no_mangle)]
pub extern "C" fn weft_inject_limit(rank: *const Handle) -> usize {
    let _ = rank;
    INJECT_LIMIT
}

/// With multi-receive: how little must be left in a buffer before it is given back, of buffers that are
/// posted from now on. Default 64.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_set_min_multi_receive(rank: *mut Handle, bytes: usize) {
    // SAFETY: the header's contract.
    unsafe { of(rank) }.rank.set_min_multi_receive(bytes);
}

/// Sends. With WEFT_INJECT `context` is not used. -EAGAIN: poll and try again. -EINVAL: no such rank, or,
/// here as in all calls with flags, an endpoint that no rank has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_send(
    rank: *mut Handle,
    to: u32,
    tag: u64,
    buffer: *const c_void,
    length: usize,
    data: u64,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    let message = OutgoingMessage { to, tag, buffer: Lent { address: buffer as usize, length }, data };
    let Some(options) = CallOptions::of(flags, context as usize) else { return -libc::EINVAL };
    // SAFETY: the header's contract.
    match unsafe { of(rank) }.rank.send(message, options) {
        Ok(()) => 0,
        Err(error) => -error,
    }
}

fn source(from: u32) -> Option<u32> {
    (from != flag::ANY_SOURCE).then_some(from)
}

/// Posts a receive of a message from `from` (or WEFT_ANY_SOURCE) whose tag equals `tag` outside the bits of
/// `ignore`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_receive(
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
    let Some(options) = CallOptions::of(flags, context) else { return -libc::EINVAL };
    // SAFETY: the header's contract.
    let handle = unsafe { of(rank) };
    if flags & (flag::CLAIM | flag::DISCARD) != 0 {
        let Some(place) = handle.claimed.iter().position(|(owner, _)| *owner == context) else {
            return -libc::ENOENT;
        };
        let Some((_, envelope)) = handle.claimed.remove(place) else { return -libc::ENOENT };
        handle.rank.receive_claimed(&envelope, buffer, options);
        return 0;
    }
    handle.rank.receive(Selector { from: source(from), tag, ignore }, buffer, options);
    0
}

/// Looks for a message that has come and no receive has matched: 1 and its description in `found`, or 0.
/// Makes progress, never blocks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_peek(
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
    let selector = Selector { from: source(from), tag, ignore };
    let Some(options) = CallOptions::of(flags, context as usize) else { return -libc::EINVAL };
    let Some((completion, claimed)) = handle.rank.peek(selector, options) else {
        return 0;
    };
    handle.claimed.extend(claimed.map(|envelope| (context as usize, envelope)));
    if !found.is_null() {
        // SAFETY: not null; the header says that it points to room for a completion.
        unsafe { *found = completion };
    }
    1
}

/// Cancels the receive with this context: 0 and a completion with ECANCELED follows; -ENOENT: none is posted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_cancel(rank: *mut Handle, context: *mut c_void) -> c_int {
    // SAFETY: the header's contract.
    if unsafe { of(rank) }.rank.cancel(context as usize) { 0 } else { -libc::ENOENT }
}

/// Makes progress and takes up to `count` completions, in order. An empty poll costs virtual time and may
/// hand over to others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_poll(rank: *mut Handle, completions: *mut Completion, count: usize) -> isize {
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

/// For libraries that keep completions in queues of their own: whether (not 0) the program has some to read
/// there. As long as it has, it does not wait, though its polls find nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_set_unread(rank: *mut Handle, unread: u32) {
    // SAFETY: the header's contract.
    unsafe { of(rank) }.rank.set_unread(unread != 0);
}

/// A hint that the program has nothing to do but to wait (what sched_yield says).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_yield(rank: *mut Handle) {
    // SAFETY: the header's contract.
    unsafe { of(rank) }.rank.yields();
}

/// For libraries that match messages themselves: charges the search of so many list entries, each at the
/// machine's `messaging.matching_entry`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_search(rank: *mut Handle, entries: u64) {
    // SAFETY: the header's contract.
    unsafe { of(rank) }.rank.search(entries);
}

/// Lets peers of the job reach memory. They name it by `key` and virtual address. `key` is
/// taken as given where it is not UINT64_MAX, and chosen otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_register(
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
    let (may_read, may_write) = (access & flag::ACCESS_READ != 0, access & flag::ACCESS_WRITE != 0);
    handle.rank.register(Lent { address: base as usize, length }, chosen, may_read, may_write);
    // SAFETY: as above.
    unsafe { *key = chosen };
    0
}

/// Lets them no more: what comes from now on is refused.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_unregister(rank: *mut Handle, key: u64) -> c_int {
    // SAFETY: the header's contract.
    let handle = unsafe { of(rank) };
    if !handle.keys.remove(&key) {
        return -libc::ENOENT;
    }
    handle.rank.unregister(key);
    0
}

/// RDMA write. `remote` is an address in the peer's virtual memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_write(
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
    let Some(options) = CallOptions::of(flags, context as usize) else { return -libc::EINVAL };
    let place = RemotePlace { rank: to, address: remote, key };
    let local = Lent { address: local as usize, length };
    handle.rank.write(place, local, data, options);
    0
}

/// RDMA read. `remote` is an address in the peer's virtual memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_read(
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
    let Some(options) = CallOptions::of(flags, context as usize) else { return -libc::EINVAL };
    let place = RemotePlace { rank: from, address: remote, key };
    let local = Lent { address: local as usize, length };
    handle.rank.read(place, local, options);
    0
}
