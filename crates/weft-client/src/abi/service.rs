//! Services of the simulated machine in `weft.h`.

use super::{Handle, of};
use crate::rank::ServiceRequest;
use std::ffi::{c_int, c_void};

/// A request as a program makes it.
struct ServiceCall {
    node: u32,
    key: u32,
    put: Option<usize>,
}

/// Asks, if the request can be.
///
/// # Safety
/// A rank of `weft_open`, and no other call of the library is under way.
unsafe fn ask(rank: *mut Handle, wanted: ServiceCall, context: *mut c_void) -> c_int {
    let ServiceCall { node, key, put } = wanted;
    // SAFETY: the caller's promise.
    let handle = unsafe { of(rank) };
    let Ok(key) = u16::try_from(key) else { return -libc::EINVAL };
    let put = put.map(|bytes| bytes as u64);
    if put.is_some_and(|bytes| bytes > ServiceRequest::MOST_BYTES) {
        return -libc::EINVAL;
    }
    handle.rank.ask(ServiceRequest { node, key, put }, context as usize);
    0
}

/// Asks the key-value store of a node, an endpoint of the machine with one of the services of `weft run
/// --scenario`, for the value of a key. weft_poll gives a completion with WEFT_SERVED when the answer has
/// come: `length` is the size of the value, or 8 where the key has none. The model knows sizes, and no
/// contents. -EINVAL: `key` is above 65535.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_service_get(
    rank: *mut Handle,
    node: u32,
    key: u32,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the header's contract.
    unsafe { ask(rank, ServiceCall { node, key, put: None }, context) }
}

/// Puts a value of `length` bytes for a key there; the answer has 8. -EINVAL: as of weft_service_get, or
/// `length` is above 1 GiB.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weft_service_put(
    rank: *mut Handle,
    node: u32,
    key: u32,
    length: usize,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the header's contract.
    unsafe { ask(rank, ServiceCall { node, key, put: Some(length) }, context) }
}
