//! How the user follows a run and ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weft_units::Bytes;

/// Ctrl-C, seen by the run at its next virtual epoch.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    requested: AtomicBool,
    /// Whether there is nothing yet that a run would keep.
    prepares: AtomicBool,
}

/// The time in which a run is prepared: it has written nothing, and may be ended at once. Ends when dropped.
#[derive(Debug)]
pub struct Preparation(Arc<Flags>);

impl Drop for Preparation {
    fn drop(&mut self) {
        self.0.prepares.store(false, Ordering::SeqCst);
    }
}

impl Interrupt {
    /// Asks the run to end. Returns whether it had been asked before.
    pub fn request(&self) -> bool {
        self.0.requested.swap(true, Ordering::Relaxed)
    }

    /// The flag itself, for a run that looks at it more often.
    pub fn flag(&self) -> &AtomicBool {
        &self.0.requested
    }

    /// Begins the preparation of a run: large machines take long to build, and nothing looks at the flag
    /// meanwhile.
    pub fn prepare(&self) -> Preparation {
        self.0.prepares.store(true, Ordering::SeqCst);
        Preparation(Arc::clone(&self.0))
    }

    /// Whether a run is being prepared, so that ending the process loses nothing.
    pub fn is_preparing(&self) -> bool {
        self.0.prepares.load(Ordering::SeqCst)
    }

    /// Whether the run is asked to end.
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Relaxed)
    }
}

/// An estimate of what a run will take, made before it begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Wall time in seconds; `None` where it cannot be estimated.
    pub wall_seconds: Option<f64>,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Whether it may take much more: nobody knows what interfaces keep for endpoints that are cut off.
    pub is_least: bool,
    /// Whether RTL runs beside, which is not in it.
    pub has_rtl: bool,
}

/// Listens to how far a run has come.
pub trait ProgressListener: Sync {
    /// Hears what the run will take, before it begins.
    fn estimate(&self, estimate: Estimate);
    /// Hears at virtual epochs the share of the work that is done, 0 to 1, and the present part of the work,
    /// such as `load 0.3`.
    fn advance(&self, share: f64, doing: &str);
    /// Hears, before a run begins, what its user should know.
    fn warn(&self, _warning: &str) {}
    /// Hears about how large a file will be, before it is written.
    fn file_size(&self, _size: Bytes) {}
}

/// A listener that says nothing.
pub struct Silent;

impl ProgressListener for Silent {
    fn estimate(&self, _: Estimate) {}
    fn advance(&self, _: f64, _: &str) {}
}

/// How the user ends and follows a run.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Whether to end; read at virtual epochs.
    pub interrupt: &'a Interrupt,
    /// Who hears of progress, at virtual epochs.
    pub progress: &'a dyn ProgressListener,
}
