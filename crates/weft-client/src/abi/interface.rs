//! Virtual interfaces in `weft.h`.

use super::{Handle, of};
use crate::interface::{Address, Delivery, InterfaceCompletion, WantedDomain};
use crate::operation::Lent;
use crate::rank::Transfer;
use std::ffi::{c_int, c_void};

/// A virtual interface of this process.
pub struct InterfaceHandle {
    pub(super) rank: *mut Handle,
    pub(super) number: u16,
}

/// The interface behind a handle: its rank, and its number if it is still open.
///
/// # Safety
/// A handle of `weft_interface_allocate` that has not been freed, and no other call of the library is under
/// way.
pub(super) unsafe fn behind<'a>(handle: *const InterfaceHandle) -> (&'a mut Handle, u16) {
    assert!(!handle.is_null(), "weft.h: the interface is NULL; allocate it with weft_interface_allocate");
    // SAFETY: the caller's promise; the rank is never freed.
    unsafe { (of((*handle).rank), (*handle).number) }
}

/// Whether memory that a program passes can be such.
fn is_lent(memory: Lent) -> bool {
    memory.length == 0 || memory.address != 0
}

/// The same for a call that passes memory: its interface must be open, its memory some. The error is an
/// errno.
///
/// # Safety
/// As of [`behind`].
pub(super) unsafe fn with_memory<'a>(
    handle: *const InterfaceHandle,
    address: usize,
    length: usize,
) -> Result<(&'a mut Handle, u16, Lent), c_int> {
    // SAFETY: the caller's promise.
    let (handle, number) = unsafe { behind(handle) };
    let memory = Lent { address, length };
    if !is_lent(memory) {
        return Err(libc::EINVAL);
    }
    match handle.rank.interface_address(number) {
        Some(_) => Ok((handle, number, memory)),
        None => Err(libc::EBADF),
    }
}

/// Allocates a virtual interface of this node: a page of the packetizer, a mailbox, and, as long as the node
/// has them, a page of RDMA channels. The only call, with weft_interface_free, that goes through the system
/// software. `domain` is its protection domain: WEFT_DOMAIN_JOB, WEFT_DOMAIN_PRIVATE, or the number of one
/// that the job has been given (`weft run --pdid`). Whoever is in the domain reaches all memory of this
/// process. -EINVAL: `domain` is above 65535. -EPERM: the job has not been given it. -ENOSPC: the node has no
/// more interfaces, or there is no more private domain. -EOVERFLOW: no global address names this process,
/// since its node is numbered above 4194303, or more than seven processes of the job come before it on the
/// node.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_allocate(
    rank: *mut Handle,
    domain: u32,
    interface: *mut *mut InterfaceHandle,
) -> c_int {
    let Some(domain) = WantedDomain::of(domain.into()).filter(|_| !interface.is_null()) else {
        return -libc::EINVAL;
    };
    // SAFETY: the header's contract.
    let opened = unsafe { of(rank) }.rank.open_interface(domain);
    match opened {
        Ok(Address { interface: number, .. }) => {
            // SAFETY: not null; the header says that it points to room for a pointer.
            unsafe { *interface = Box::into_raw(Box::new(InterfaceHandle { rank, number })) };
            0
        }
        Err(error) => -error,
    }
}

/// Gives it back. What is under way is forgotten, and nothing is reached by it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_free(interface: *mut InterfaceHandle) {
    if interface.is_null() {
        return;
    }
    // SAFETY: the header's contract: allocated by `weft_interface_allocate` and not freed before.
    let handle = unsafe { Box::from_raw(interface) };
    // SAFETY: as above.
    let rank = unsafe { of(handle.rank) };
    if rank.rank.interface_address(handle.number).is_some() {
        rank.rank.close_interface(handle.number);
    }
}

/// From now on peers reach by this interface only memory that weft_register lets them reach, words of
/// notifications included: the rest is EFAULT to them, as memory that is not mapped is. So it is on cards
/// whose driver registers buffers. -EBADF: the interface is not open any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_restrict(interface: *mut InterfaceHandle) -> c_int {
    // SAFETY: the header's contract.
    let (handle, number) = unsafe { behind(interface) };
    if handle.rank.interface_address(number).is_none() {
        return -libc::EBADF;
    }
    handle.rank.restrict_interface(number);
    0
}

/// The global address of memory of this process behind the interface; of the interface itself with NULL.
/// Peers learn it by messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_address(
    interface: *const InterfaceHandle,
    memory: *const c_void,
) -> Address {
    // SAFETY: the header's contract.
    let (handle, number) = unsafe { behind(interface) };
    let own = handle.rank.interface_address(number).unwrap_or_default();
    Address { memory: memory as u64, ..own }
}

/// The largest small message, in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_limit(interface: *const InterfaceHandle) -> usize {
    // SAFETY: the header's contract.
    unsafe { behind(interface) }.0.rank.largest_small()
}

/// Sends a small message, as one packet, to the mailbox of another interface. The bytes are taken at once.
/// There is no completion unless it fails: then one with WEFT_SENT and the error. -EMSGSIZE: it is too large.
/// -EBADF: the interface is not open any more, as of all calls on interfaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_send(
    interface: *mut InterfaceHandle,
    to: Address,
    bytes: *const c_void,
    length: usize,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the header's contract.
    let (handle, number, bytes) = match unsafe { with_memory(interface, bytes as usize, length) } {
        Ok(found) => found,
        Err(error) => return -error,
    };
    match handle.rank.send_small(number, to, bytes, context as usize) {
        Ok(()) => 0,
        Err(error) => -error,
    }
}

/// Takes the oldest message out of the interface's mailbox: its length, and in `from`, unless that is NULL,
/// who sent it. What does not fit into `length` bytes is lost. -EAGAIN: there is none; that poll costs
/// virtual time and may hand over to others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_receive(
    interface: *mut InterfaceHandle,
    buffer: *mut c_void,
    length: usize,
    from: *mut Address,
) -> isize {
    // SAFETY: the header's contract.
    let (handle, number, buffer) = match unsafe { with_memory(interface, buffer as usize, length) } {
        Ok(found) => found,
        Err(error) => return -error as isize,
    };
    match handle.rank.receive_small(number, buffer) {
        Some((taken, sender)) => {
            if !from.is_null() {
                // SAFETY: not null; the header says that it points to room for an address.
                unsafe { *from = sender };
            }
            taken as isize
        }
        None => -libc::EAGAIN as isize,
    }
}

/// RDMA write: `length` bytes of `local` to the memory that `to` names, any that its process has mapped and
/// may write, and behind them, unless `notify` is 0, the eight bytes of `word` to that address in the same
/// process, where its owner may wait for them. The buffer must stay as it is until the completion,
/// WEFT_WRITTEN. Needs a page of RDMA channels of `interface`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_write(
    interface: *mut InterfaceHandle,
    local: *const c_void,
    length: usize,
    to: Address,
    notify: u64,
    word: u64,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the header's contract.
    let (handle, number, local) = match unsafe { with_memory(interface, local as usize, length) } {
        Ok(found) => found,
        Err(error) => return -error,
    };
    let transfer = Transfer { local, remote: to, context: context as usize };
    handle.rank.put(number, transfer, (notify != 0).then_some((notify, word)));
    0
}

/// As weft_interface_write, but nothing comes back from the target: the completion, WEFT_WRITTEN, comes when
/// the interface has the data, and the buffer may be used again. A second one comes with an errno if the
/// target cannot carry it out. `path` says how the process at the target learns of it, on machines whose
/// interface has several paths: WEFT_PATH_MACHINE, WEFT_PATH_KERNEL, ... With WEFT_ANSWERED added the target
/// answers, and there is one completion, which comes with the answer. On machines whose hosts have a GPU,
/// the kind of memory that each of the two buffers lies in may be added too: WEFT_MEMORY_GPU_DIRECT <<
/// WEFT_SOURCE_SHIFT, and << WEFT_TARGET_SHIFT; where it is not, it is as the machine file says. On a card
/// whose host has no GPU the completion has ENODEV. -EINVAL: there is no such path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_deliver(
    interface: *mut InterfaceHandle,
    local: *const c_void,
    length: usize,
    to: Address,
    notify: u64,
    word: u64,
    path: u32,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the header's contract.
    let (handle, number, local) = match unsafe { with_memory(interface, local as usize, length) } {
        Ok(found) => found,
        Err(error) => return -error,
    };
    let Some(delivery) = Delivery::of(path) else { return -libc::EINVAL };
    let transfer = Transfer { local, remote: to, context: context as usize };
    handle.rank.deliver(number, transfer, (notify, word), delivery);
    0
}

/// RDMA read: `length` bytes of the memory that `from` names, any that its process has mapped and may read,
/// into `local`. They are there with the completion, WEFT_READ. Needs a page of RDMA channels of the
/// interface that `from` names, by which the data comes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_read(
    interface: *mut InterfaceHandle,
    local: *mut c_void,
    length: usize,
    from: Address,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the header's contract.
    let (handle, number, local) = match unsafe { with_memory(interface, local as usize, length) } {
        Ok(found) => found,
        Err(error) => return -error,
    };
    handle.rank.get(number, Transfer { local, remote: from, context: context as usize });
    0
}

/// Makes progress and takes up to `count` completions of the interface, in order. A poll that finds none
/// costs virtual time and may hand over to others: so does one that waits for a word in memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_interface_poll(
    interface: *mut InterfaceHandle,
    completions: *mut InterfaceCompletion,
    count: usize,
) -> isize {
    // SAFETY: the header's contract.
    let (handle, number) = unsafe { behind(interface) };
    if handle.rank.interface_address(number).is_none() {
        return -libc::EBADF as isize;
    }
    let mut taken = 0;
    handle.rank.poll_interface(number, |completion| {
        if taken == count || completions.is_null() {
            return false;
        }
        // SAFETY: the header says that there is room for `count` completions.
        unsafe { completions.add(taken).write(completion) };
        taken += 1;
        true
    }) as isize
}
