//! Whether the critical path is recorded.

use std::sync::atomic::{AtomicU32, Ordering};

/// Which recording is under way: 0 is none. One that begins anew has the next number, and ranks number their
/// steps anew.
#[derive(Debug, Default)]
pub struct Recording(AtomicU32);

impl Recording {
    /// The number of the recording under way; 0: none.
    pub fn number(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Begins a new recording. The one before is forgotten.
    pub fn begin_anew(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
