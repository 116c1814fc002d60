//! Memory that the system refuses while the command runs: it says so and ends with status 1, where Rust would
//! abort. What the [estimate](weft_units::memory::available_memory) of a machine has missed ends so, as under
//! `ulimit -v`.

use crate::exit::Status;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Write, stderr, stdout};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the failure is to be told as a document, too.
static AS_DOCUMENT: AtomicBool = AtomicBool::new(false);

/// From here on a refusal is told as a JSON document on standard output, too.
pub fn tell_as_document() {
    AS_DOCUMENT.store(true, Ordering::Relaxed);
}

/// The system's memory, whose refusals end the command.
struct EndingAllocator;

#[global_allocator]
static ALLOCATOR: EndingAllocator = EndingAllocator;

#[expect(unsafe_code, reason = "on stable Rust only an allocator sees that memory is refused")]
// SAFETY: each call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for EndingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller's.
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as the caller's.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller's.
        given(unsafe { System.realloc(block, layout, size) }, size)
    }
}

/// The block, if it is one.
fn given(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        end(size);
    }
    block
}

/// Ends the command. Nothing here allocates.
#[cold]
fn end(size: usize) -> ! {
    const MEND: &str = "the run takes more than its estimate; raise the limit (ulimit -v, a job's memory), \
                        end other programs, or make the machine smaller";
    // Nobody is left to tell of a failure to tell.
    let _ = writeln!(stderr(), "weft: no memory: the system refuses {size} bytes: {MEND}");
    if AS_DOCUMENT.load(Ordering::Relaxed) {
        let status = Status::EndedBadly.code();
        let _ = writeln!(
            stdout(),
            "{{\n  \"error\": \"no memory: the system refuses {size} bytes: {MEND}\",\n  \
             \"exit_status\": {status}\n}}"
        );
    }
    std::process::exit(Status::EndedBadly.code().into())
}
