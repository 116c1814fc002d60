//! Calls of MPI that do not return before what they wait for has come.
//!
//! ```text
//!   program ── MPI_Recv ──► here: the rank is inside a blocking call ──► MPI_Recv of the library
//! ```
//! Inside one, the program does not see whether a poll found anything: a poll that finds nothing there need not be answered
//! before virtual time has reached it, but can be put off until the next one, which saves its turn (see [`crate::rank`]).
//! Nothing depends on a call standing in the list: a wait inside one that does not, or that a program reaches without
//! the names here, takes one turn more and the same virtual time.
//!
//! The library is preloaded: its functions stand before those of MPI. They pass on their arguments as they are: every argument is
//! a number or a pointer of at most a register, in MPICH's interface as in the standard's.

use crate::abi;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

/// Blocking calls that the rank is inside of: a library above MPI may make its own within another's.
static DEPTH: AtomicU32 = AtomicU32::new(0);

/// Whether a poll of the rank is put off.
static PUT_OFF: AtomicBool = AtomicBool::new(false);

/// The rank's poll is put off: it has been told that nothing has come, and has not paid for it.
pub(crate) fn put_off() {
    PUT_OFF.store(true, Ordering::Relaxed);
}

/// Whether a poll is put off.
pub(crate) fn is_put_off() -> bool {
    PUT_OFF.load(Ordering::Relaxed)
}

/// The poll that was put off is made now; says whether one was.
pub(crate) fn take_put_off() -> bool {
    let put_off = is_put_off();
    PUT_OFF.store(false, Ordering::Relaxed);
    put_off
}

/// Whether the rank is inside a blocking call.
pub(crate) fn is_inside() -> bool {
    DEPTH.load(Ordering::Relaxed) > 0
}

/// The rank is inside a blocking call until this is dropped.
struct Inside;

impl Inside {
    fn enter() -> Inside {
        DEPTH.fetch_add(1, Ordering::Relaxed);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if DEPTH.fetch_sub(1, Ordering::Relaxed) == 1 {
            // The program may look at what it pleases now.
            abi::make_up();
        }
    }
}

/// The function of this name that stands behind ours: in the libraries that are loaded for all, or, where a program keeps its MPI
/// to itself as Python does, in a library called libmpi.
#[expect(unsafe_code, reason = "looking up functions is the dynamic linker's, in C")]
fn next(name: &'static CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    let found = known.load(Ordering::Relaxed);
    if !found.is_null() {
        return found;
    }
    // SAFETY: a name that ends in a zero byte.
    let mut found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    for library in [c"libmpi.so.12", c"libmpi_abi.so.1", c"libmpi_abi.so.0"] {
        if found.is_null() {
            // SAFETY: names that end in a zero byte; a library that is loaded already is only named anew.
            let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
            if !handle.is_null() {
                // SAFETY: a handle of a library that stays.
                found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            }
        }
    }
    if found.is_null() {
        eprintln!("weft: {} is called, and no MPI library has it", name.to_string_lossy());
        std::process::abort();
    }
    known.store(found, Ordering::Relaxed);
    found
}

macro_rules! number {
    ($argument:ident) => {
        usize
    };
}

/// Functions with these arguments that pass them on to those of the same name.
macro_rules! blocking {
    ($($name:ident)*, $arguments:tt) => { $( blocking!(@ $name $arguments); )* };
    (@ $name:ident ($($argument:ident)*)) => {
        #[unsafe(no_mangle)]
        #[expect(unsafe_code, reason = "passes on what a C program has called with")]
        unsafe extern "C-unwind" fn $name($($argument: usize),*) -> c_int {
            static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => unreachable!(),
            };
            let function = next(NAME, &NEXT);
            let _inside = Inside::enter();
            // SAFETY: the function of that name, which takes so many arguments, each in a register or a place of the stack of its own
            // whatever its type; a caller that has put less than a register there is served by a function that takes less.
            unsafe {
                let function: unsafe extern "C-unwind" fn($(number!($argument)),*) -> c_int = std::mem::transmute(function);
                function($($argument),*)
            }
        }
    };
}

#[allow(non_snake_case, reason = "MPI's names")]
mod functions {
    use super::*;

    blocking!(MPI_Barrier PMPI_Barrier, (a));
    blocking!(MPI_Wait PMPI_Wait, (a b));
    blocking!(MPI_Waitall PMPI_Waitall, (a b c));
    blocking!(MPI_Waitany PMPI_Waitany, (a b c d));
    blocking!(
        MPI_Waitsome PMPI_Waitsome MPI_Bcast PMPI_Bcast MPI_Bcast_c PMPI_Bcast_c,
        (a b c d e)
    );
    blocking!(
        MPI_Send PMPI_Send MPI_Send_c PMPI_Send_c MPI_Ssend PMPI_Ssend MPI_Ssend_c PMPI_Ssend_c
        MPI_Rsend PMPI_Rsend MPI_Rsend_c PMPI_Rsend_c
        MPI_Allreduce PMPI_Allreduce MPI_Allreduce_c PMPI_Allreduce_c
        MPI_Scan PMPI_Scan MPI_Scan_c PMPI_Scan_c MPI_Exscan PMPI_Exscan MPI_Exscan_c PMPI_Exscan_c
        MPI_Reduce_scatter PMPI_Reduce_scatter MPI_Reduce_scatter_c PMPI_Reduce_scatter_c
        MPI_Reduce_scatter_block PMPI_Reduce_scatter_block MPI_Reduce_scatter_block_c PMPI_Reduce_scatter_block_c,
        (a b c d e f)
    );
    blocking!(
        MPI_Recv PMPI_Recv MPI_Recv_c PMPI_Recv_c
        MPI_Reduce PMPI_Reduce MPI_Reduce_c PMPI_Reduce_c
        MPI_Allgather PMPI_Allgather MPI_Allgather_c PMPI_Allgather_c
        MPI_Alltoall PMPI_Alltoall MPI_Alltoall_c PMPI_Alltoall_c,
        (a b c d e f g)
    );
    blocking!(
        MPI_Gather PMPI_Gather MPI_Gather_c PMPI_Gather_c MPI_Scatter PMPI_Scatter MPI_Scatter_c PMPI_Scatter_c
        MPI_Allgatherv PMPI_Allgatherv MPI_Allgatherv_c PMPI_Allgatherv_c,
        (a b c d e f g h)
    );
    blocking!(
        MPI_Sendrecv_replace PMPI_Sendrecv_replace MPI_Sendrecv_replace_c PMPI_Sendrecv_replace_c
        MPI_Gatherv PMPI_Gatherv MPI_Gatherv_c PMPI_Gatherv_c MPI_Scatterv PMPI_Scatterv MPI_Scatterv_c PMPI_Scatterv_c
        MPI_Alltoallv PMPI_Alltoallv MPI_Alltoallv_c PMPI_Alltoallv_c
        MPI_Alltoallw PMPI_Alltoallw MPI_Alltoallw_c PMPI_Alltoallw_c,
        (a b c d e f g h i)
    );
    blocking!(
        MPI_Sendrecv PMPI_Sendrecv MPI_Sendrecv_c PMPI_Sendrecv_c,
        (a b c d e f g h i j k l)
    );
}
