//! Ports and registers of the machine's network interface in `weft.h`.

use super::interface::{InterfaceHandle, behind, with_memory};
use super::{Handle, of};
use crate::device::Post;
use crate::interface::Address;
use crate::operation::flag;
use std::ffi::{CStr, c_char, c_int, c_void};

/// Bytes of the name of a kernel or of a stream.
const KERNEL_NAME: usize = 255;

/// Allocates the virtual interface of that number as a port: the process is the hardware behind it, keeps
/// its own time, and polls nothing. So are the IntraNode ports of the Communication IP, whose headers carry
/// 16 bytes of the program's. A program that sends messages to ranks has port 0 for them. -ENXIO: the node
/// has no such port. -EBUSY: somebody has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_port_open(
    rank: *mut Handle,
    port: u16,
    interface: *mut *mut InterfaceHandle,
) -> c_int {
    if interface.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the header's contract.
    match unsafe { of(rank) }.rank.open_port(port) {
        Ok(Address { interface: number, .. }) => {
            let handle = InterfaceHandle { rank, number };
            // SAFETY: not null; the header says that it points to room for a pointer.
            unsafe { *interface = Box::into_raw(Box::new(handle)) };
            0
        }
        Err(error) => -error,
    }
}

/// Sends a packet by a port now, with 16 bytes at `header` in its header and `length` bytes of payload, at
/// most weft_interface_limit. The bytes are taken at once; weft_port_sent says when the port had them.
/// -EMSGSIZE: it is too large.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_port_send(
    interface: *mut InterfaceHandle,
    to: Address,
    header: *const c_void,
    payload: *const c_void,
    length: usize,
) -> c_int {
    if header.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the header's contract.
    let found = unsafe { with_memory(interface, payload as usize, length) };
    let (handle, number, payload) = match found {
        Ok(found) => found,
        Err(error) => return -error,
    };
    // SAFETY: not null; the header says that there are so many bytes.
    let header = unsafe { header.cast::<[u8; Post::HEADER]>().read_unaligned() };
    match handle.rank.send_packet(number, to, header, payload) {
        Ok(()) => 0,
        Err(error) => -error,
    }
}

/// Takes the oldest packet that has come to a port: the length of its payload, its header, and when it came
/// in picoseconds. What does not fit into `length` bytes is lost. Waits for nothing and takes no time.
/// -EAGAIN: there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_port_take(
    interface: *mut InterfaceHandle,
    header: *mut c_void,
    payload: *mut c_void,
    length: usize,
    at_ps: *mut u64,
) -> isize {
    if header.is_null() || at_ps.is_null() {
        return -(libc::EINVAL as isize);
    }
    // SAFETY: the header's contract.
    let found = unsafe { with_memory(interface, payload as usize, length) };
    let (handle, number, room) = match found {
        Ok(found) => found,
        Err(error) => return -(error as isize),
    };
    let Some((bytes, at)) = handle.rank.take_packet(number) else { return -(libc::EAGAIN as isize) };
    // A message of weft_interface_send has no header.
    let (own, rest) = bytes.split_at(Post::HEADER.min(bytes.len()));
    let mut all = [0; Post::HEADER];
    all[..own.len()].copy_from_slice(own);
    room.fill(rest);
    // SAFETY: not null; the header says that there is room.
    unsafe {
        header.cast::<[u8; Post::HEADER]>().write_unaligned(all);
        *at_ps = at;
    }
    rest.len() as isize
}

/// Takes the end of the oldest packet that a port has been given: 1, and when the port had all of it in
/// picoseconds; 0: there is none. Takes no time. A negative errno: that packet has failed, as
/// weft_interface_poll says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_port_sent(interface: *mut InterfaceHandle, at_ps: *mut u64) -> c_int {
    if at_ps.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the header's contract.
    let (handle, number) = unsafe { behind(interface) };
    match handle.rank.take_sent(number) {
        Ok(Some(at)) => {
            // SAFETY: not null; the header says that there is room for a number.
            unsafe { *at_ps = at };
            1
        }
        Ok(None) => 0,
        Err(error) => -error,
    }
}

/// Waits until something has come for the rank or the clock shows `until_ps`: 1 or 0. With UINT64_MAX until
/// something has come, or nothing can any more. Takes no time of its own: the clock shows when it came.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_wait_until(rank: *mut Handle, until_ps: u64) -> c_int {
    let until = (until_ps != u64::MAX).then_some(until_ps);
    // SAFETY: the header's contract.
    unsafe { of(rank) }.rank.wait_until(until).into()
}

/// The program has computed until the clock shows `until_ps`, and looks at nothing that comes meanwhile. Does
/// nothing if it shows more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_pass_until(rank: *mut Handle, until_ps: u64) {
    // SAFETY: the header's contract.
    unsafe { of(rank) }.rank.pass_until(until_ps);
}

/// Says that a kernel of this node has spent so many picoseconds on one activity: WEFT_KERNEL_WORKS, or
/// WEFT_KERNEL_READS or WEFT_KERNEL_WRITES with the stream that it waited for. Each call makes a row of the
/// table `kernels`, and `weft explain` shows them. Takes no time. -EINVAL: no such activity, or names of more
/// than 255 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_kernel_time(
    rank: *mut Handle,
    kernel: *const c_char,
    activity: u32,
    stream: *const c_char,
    time_ps: u64,
) -> c_int {
    let known = [flag::KERNEL_WORKS, flag::KERNEL_READS, flag::KERNEL_WRITES];
    if kernel.is_null() || stream.is_null() || !known.contains(&activity) {
        return -libc::EINVAL;
    }
    // SAFETY: not null; the header says that they are texts.
    let [kernel, stream] = unsafe { [kernel, stream].map(|text| CStr::from_ptr(text).to_bytes()) };
    if kernel.len().max(stream.len()) > KERNEL_NAME {
        return -libc::EINVAL;
    }
    let names = [kernel, stream].join(&0);
    // SAFETY: the header's contract.
    unsafe { of(rank) }.rank.tell_kernel_time(&names, activity, time_ps);
    0
}

/// Reads the register of the node's network interface at that address. -ENOTSUP: the machine's interface has
/// no registers. -EFAULT: none there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_register_read(rank: *mut Handle, address: u32, value: *mut u32) -> c_int {
    if value.is_null() {
        return -libc::EINVAL;
    }
    // SAFETY: the header's contract.
    match unsafe { of(rank) }.rank.access_register(address, None) {
        Ok(read) => {
            // SAFETY: not null; the header says that there is room for a number.
            unsafe { *value = read };
            0
        }
        Err(error) => -error,
    }
}

/// Writes it. Errors as weft_register_read; -EACCES: it is only read. -EINVAL: it does not take that value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_register_write(rank: *mut Handle, address: u32, value: u32) -> c_int {
    // SAFETY: the header's contract.
    match unsafe { of(rank) }.rank.access_register(address, Some(value)) {
        Ok(_) => 0,
        Err(error) => -error,
    }
}
