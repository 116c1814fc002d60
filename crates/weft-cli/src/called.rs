//! A command that is called in the process of another language: its output is kept, and an end is asked for
//! through what the caller holds and not by a signal.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use weft_sim::experiment::Interrupt;
use weft_sim::experiment::replay::Stepped;

/// The caller's side of a call.
#[derive(Clone, Default)]
pub struct Caller {
    /// The caller's wish to end, in the place of Ctrl-C.
    pub interrupt: Interrupt,
    /// Programs that the caller steps: the words name the first as `program:0`.
    pub programs: Vec<Arc<dyn Stepped>>,
}

/// A call that goes on in this thread.
struct Call {
    output: Vec<u8>,
    /// How a run has ended that ended badly.
    detail: String,
    caller: Caller,
}

thread_local! {
    static CALL: RefCell<Option<Call>> = const { RefCell::new(None) };
}

/// Does `run` as a call; returns what it wrote to standard output, and how a run has
/// ended that ended badly.
pub fn within<T>(caller: Caller, run: impl FnOnce() -> T) -> (T, String, String) {
    CALL.set(Some(Call { output: Vec::new(), detail: String::new(), caller }));
    let outcome = run();
    let (output, detail) = CALL.take().map(|call| (call.output, call.detail)).unwrap_or_default();
    (outcome, String::from_utf8_lossy(&output).into_owned(), detail)
}

/// Keeps how a run has ended badly; `false`: this thread is in no call.
pub fn keep_detail(detail: &str) -> bool {
    CALL.with_borrow_mut(|call| call.as_mut().map(|call| detail.clone_into(&mut call.detail)).is_some())
}

/// Keeps output; `false`: this thread is in no call, and the output goes where it always goes.
pub fn keep(text: &[u8]) -> bool {
    CALL.with_borrow_mut(|call| call.as_mut().map(|call| call.output.extend_from_slice(text)).is_some())
}

/// The caller's wish to end, where this thread is in a call.
pub fn interrupt() -> Option<Interrupt> {
    CALL.with_borrow(|call| call.as_ref().map(|call| call.caller.interrupt.clone()))
}

/// The caller's program of this name; `None`: it is a file.
pub fn program(name: &Path) -> Option<Arc<dyn Stepped>> {
    let index: usize = name.to_str()?.strip_prefix("program:")?.parse().ok()?;
    CALL.with_borrow(|call| call.as_ref()?.caller.programs.get(index).cloned())
}
