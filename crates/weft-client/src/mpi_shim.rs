//! The entries of the library `weft-calls`: it says which MPI call the process enters and leaves, and where
//! the program marks regions.

#![expect(unsafe_code, reason = "a C function that another preloaded library calls")]

use crate::abi;
use crate::blocking::{self, WaitKind};
use crate::process_manager;
use crate::within;
use std::sync::LazyLock;

/// Kinds of the calls, by their numbers.
static KINDS: LazyLock<Vec<WaitKind>> = LazyLock::new(|| {
    std::iter::once(WaitKind::Other).chain(within::NAMES.iter().map(|name| blocking::kind(name))).collect()
});

/// The process enters the MPI call of this number with this first argument, or leaves it for the call in
/// which it was made (0: none). Returns the call that it was in before.
#[unsafe(no_mangle)]
extern "C" fn weft_within(call: u32, first_argument: u32) -> u32 {
    process_manager::find();
    let before = within::set(call, first_argument);
    blocking::enter(KINDS.get(call as usize).copied().unwrap_or(WaitKind::Other));
    before
}

/// The program has called `MPI_Pcontrol` with this level.
#[unsafe(no_mangle)]
extern "C" fn weft_mark(level: i32) {
    abi::mark(level);
}
