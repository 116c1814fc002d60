//! The functions of `weft.h` that the library calls. `weft run` preloads them.

use std::ffi::{c_int, c_void};

/// A rank.
#[repr(C)]
pub struct WeftRank {
    _opaque: [u8; 0],
}

/// The outcome of an operation.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Completion {
    pub context: *mut c_void,
    pub flags: u64,
    pub length: usize,
    pub buffer: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub source: u32,
    pub error: i32,
    pub overflow: usize,
}

pub const ANY_SOURCE: u32 = u32::MAX;
pub const TAGGED: u64 = 1 << 0;
pub const COMPLETION: u64 = 1 << 3;
pub const SENT: u64 = 1 << 16;
pub const RECEIVED: u64 = 1 << 17;

unsafe extern "C" {
    pub fn weft_open(rank: *mut *mut WeftRank) -> c_int;
    pub fn weft_number(rank: *const WeftRank) -> u32;
    pub fn weft_count(rank: *const WeftRank) -> u32;
    pub fn weft_clock_ps(rank: *const WeftRank) -> u64;
    pub fn weft_send(
        rank: *mut WeftRank,
        to: u32,
        tag: u64,
        buffer: *const c_void,
        length: usize,
        data: u64,
        flags: u64,
        context: *mut c_void,
    ) -> c_int;
    pub fn weft_receive(
        rank: *mut WeftRank,
        from: u32,
        tag: u64,
        ignore: u64,
        buffer: *mut c_void,
        length: usize,
        flags: u64,
        context: *mut c_void,
    ) -> c_int;
    pub fn weft_poll(rank: *mut WeftRank, completions: *mut Completion, count: usize) -> isize;
    pub fn weft_yield(rank: *mut WeftRank);
    pub fn weft_search(rank: *mut WeftRank, entries: u64);
}
