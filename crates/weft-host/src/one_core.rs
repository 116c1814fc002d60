//! All of a job on one core while it is in virtual time.
//!
//! One rank runs at a time, and the simulation waits for it: a second core gains nothing and costs the time that it takes to
//! wake it, which is several times that of a switch on the same core. A few ranks are different: there each side looks for
//! its turn without sleeping, each on a core of its own.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// Jobs of no more ranks than this run on several cores.
const FEW: u32 = 4;

/// The calling thread stays on a core until this is dropped.
pub(crate) struct OneCore {
    core: usize,
    before: CpuSet,
}

impl OneCore {
    /// For a job of so many ranks. `None`: it is better off on several, or the system does not allow it.
    pub(crate) fn for_job(ranks: u32) -> Option<OneCore> {
        if ranks <= FEW {
            return None;
        }
        let before = sched_getaffinity(None).ok()?;
        let core = sched_getcpu();
        let mut one = CpuSet::new();
        one.set(core);
        sched_setaffinity(None, &one).ok()?;
        Some(OneCore { core, before })
    }

    /// Which.
    pub(crate) fn number(&self) -> usize {
        self.core
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        // What was allowed before is allowed again.
        let _ = sched_setaffinity(None, &self.before);
    }
}
