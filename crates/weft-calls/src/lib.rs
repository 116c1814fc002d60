//! MPI calls by name: a library that `weft run` preloads into ranks.
//!
//! ```text
//!   program ─ MPI_Send ─► here: weft_within(MPI_Send) ─► MPI_Send of who is next ─► weft_within(what it was)
//!                                                        (the recorder, or the MPI library)
//! ```
//! It stands before the MPI library and hands every call on as it came. It knows no MPI: a call's arguments
//! are thirteen machine words, as many as the longest has, of which those that there are lie where the
//! calling convention has them, and what it returns is a word. So it serves MPICH, its standard ABI and any
//! other library alike, needs none to be built, and is harmless in a process that has none.
//!
//! # Why its own library
//! The client library is also linked to programs and to the simulator; these must not have functions of MPI's
//! names.
//!
//! # Not covered
//! Calls that neither wait nor communicate; Fortran bindings that do not go through the C functions; programs
//! that look MPI's functions up in the library by a handle of their own. They run, without names.

#![expect(unsafe_code, reason = "hands C calls on, with the arguments that they came with")]

use std::ffi::{CStr, c_int, c_void};
use std::io::Write;
use std::sync::atomic::{AtomicPtr, Ordering};
use weft_mpi_calls::mpi_calls;

/// A call as the calling convention has it: integers and pointers are a word each.
type Function = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> usize;
/// `weft_within` of the client library.
type Within = unsafe extern "C" fn(u32, u32) -> u32;

/// `weft_mark` of the client library.
type Mark = unsafe extern "C" fn(c_int);
/// MPI_Pcontrol, which is variadic.
type Control = unsafe extern "C" fn(c_int, ...) -> c_int;

/// Exit status where the program calls a function that no library has: that of a program that cannot be
/// started.
const NO_FUNCTION: c_int = 127;

/// An address that is looked up once; `NOWHERE`: no library has it.
struct Found(AtomicPtr<c_void>);

const NOWHERE: *mut c_void = std::ptr::without_provenance_mut(1);

impl Found {
    const fn new() -> Found {
        Found(AtomicPtr::new(std::ptr::null_mut()))
    }

    fn get(&self, look: impl FnOnce() -> *mut c_void) -> Option<*mut c_void> {
        let mut found = self.0.load(Ordering::Relaxed);
        if found.is_null() {
            found = look();
            if found.is_null() {
                found = NOWHERE;
            }
            self.0.store(found, Ordering::Relaxed);
        }
        Some(found).filter(|found| *found != NOWHERE)
    }
}

/// Says which call the process is in, and with which first argument it has been called; `None`: the client
/// library is not there.
fn within(call: u32, first: usize) -> Option<u32> {
    static WITHIN: Found = Found::new();
    // SAFETY: a name that ends with 0.
    let look = || unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"weft_within".as_ptr()) };
    let function = WITHIN.get(look)?;
    // SAFETY: the client library's function of that name has this type.
    Some(unsafe { std::mem::transmute::<*mut c_void, Within>(function)(call, first as u32) })
}

/// The function of this name that stands behind this library's.
fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a name that ends with 0.
    let look = || unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    let found = look();
    if !found.is_null() {
        return found;
    }
    // Python modules load the MPI library for themselves only, where it is not looked for.
    // SAFETY: the callback keeps to its type, and takes no data.
    unsafe { libc::dl_iterate_phdr(Some(promote), std::ptr::null_mut()) };
    look()
}

/// Shows a loaded MPI library to all.
unsafe extern "C" fn promote(object: *mut libc::dl_phdr_info, _: libc::size_t, _: *mut c_void) -> c_int {
    // SAFETY: the loader passes an object that lives during the call; its name may be missing.
    let name = unsafe { (*object).dlpi_name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: the loader's names end with 0.
    let path = unsafe { CStr::from_ptr(name) }.to_bytes();
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if [&b"libmpi.so"[..], b"libmpi_abi.so", b"libmpich.so"].iter().any(|start| file.starts_with(start)) {
        // SAFETY: its own path; it is loaded already.
        unsafe { libc::dlopen(name, libc::RTLD_NOLOAD | libc::RTLD_GLOBAL | libc::RTLD_LAZY) };
    }
    0
}

/// The function that a call is handed on to.
fn function(found: &Found, name: &CStr) -> Function {
    let Some(function) = found.get(|| next(name)) else {
        // The status says it too, where standard error takes nothing.
        let _ = writeln!(
            std::io::stderr(),
            "weft: the program calls {}, which no MPI library that it has loaded provides",
            name.to_string_lossy()
        );
        std::process::exit(NO_FUNCTION);
    };
    // SAFETY: it is called with what its caller has passed for a function of this name.
    unsafe { std::mem::transmute::<*mut c_void, Function>(function) }
}

mod numbers {
    macro_rules! numbers {
        ($first:ident, $($name:ident),*) => {
            /// The numbers of calls: 0 is none.
            #[repr(u32)]
            pub enum Number { $first = 1, $($name),* }
        };
    }
    weft_mpi_calls::mpi_calls!(numbers);
}

macro_rules! calls {
    ($($name:ident),*) => {
        $(
            /// Hands the call of this name on.
            ///
            /// # Safety
            /// That of the MPI library's function.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(
                a: usize, b: usize, c: usize, d: usize, e: usize, f: usize, g: usize,
                h: usize, i: usize, j: usize, k: usize, l: usize, m: usize,
            ) -> usize {
                static NEXT: Found = Found::new();
                // MPI names are C strings without a 0 in them.
                const BYTES: &[u8] = concat!(stringify!($name), "\0").as_bytes();
                const NAME: &CStr = match CStr::from_bytes_with_nul(BYTES) {
                    Ok(name) => name,
                    Err(_) => panic!("a name with a 0 in it"),
                };
                let function = function(&NEXT, NAME);
                let before = within(numbers::Number::$name as u32, a);
                if let Some(outer @ 1..) = before {
                    // MPI libraries call their own functions: what the program has called counts.
                    within(outer, 0);
                }
                // SAFETY: the caller's contract; words beyond its arguments are never looked at.
                let result = unsafe { function(a, b, c, d, e, f, g, h, i, j, k, l, m) };
                if let Some(before) = before {
                    within(before, 0);
                }
                result
            }
        )*
    };
}
mpi_calls!(calls);

/// Hands MPI_Pcontrol on, after the client library has noted its level: it opens or closes a region. MPI
/// gives the arguments behind the level no meaning: they are left out.
///
/// # Safety
/// That of the MPI library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Pcontrol(level: c_int) -> c_int {
    static NEXT: Found = Found::new();
    static MARK: Found = Found::new();
    let function = function(&NEXT, c"MPI_Pcontrol");
    // SAFETY: a name that ends with 0.
    let look = || unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"weft_mark".as_ptr()) };
    if let Some(mark) = MARK.get(look) {
        // SAFETY: the client library's function of that name has this type.
        unsafe { std::mem::transmute::<*mut c_void, Mark>(mark)(level) };
    }
    // SAFETY: MPI's function takes a level and whatever follows.
    unsafe { std::mem::transmute::<Function, Control>(function)(level) }
}

/// Hands MPI_Abort on. The launcher is to end who comes back from it, and with it the job: what it did until
/// then would be something else in every run, so that it ends here.
///
/// # Safety
/// That of the MPI library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn MPI_Abort(communicator: usize, status: usize) -> usize {
    static NEXT: Found = Found::new();
    let function = function(&NEXT, c"MPI_Abort");
    // SAFETY: the caller's contract; words beyond its arguments are never looked at.
    let result = unsafe { function(communicator, status, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) };
    if within(0, 0).is_some() {
        // SAFETY: what the program has printed, all of its streams, is written; then nothing of it runs any
        // more.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(status as c_int);
        }
    }
    result
}
