//! All ranks of a job on one core while it is in virtual time.
//!
//! Ranks take turns of some microseconds, and waking somebody on another core takes as long: so all ranks
//! have the same core. The simulation has another where there is one: it looks for its turn without sleeping,
//! and goes on while ranks have theirs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The calling thread stays on a core until this is dropped.
#[derive(Debug)]
pub struct OneCore {
    core: usize,
    before: CpuSet,
}

impl OneCore {
    /// On the core that it is on. `None`: the system does not allow it.
    pub fn here() -> Option<OneCore> {
        OneCore::on(sched_getcpu())
    }

    /// On this one. `None`: there is none, or the system does not allow it.
    pub fn on(core: usize) -> Option<OneCore> {
        if core >= CpuSet::MAX_CPU {
            return None;
        }
        let before = sched_getaffinity(None).ok()?;
        let mut one = CpuSet::new();
        one.set(core);
        sched_setaffinity(None, &one).ok()?;
        Some(OneCore { core, before })
    }

    /// Another of those on which it might run: `None`: there is none.
    pub fn another(&self) -> Option<usize> {
        let allowed = |core: &usize| *core != self.core && self.before.is_set(*core);
        (self.core + 1..CpuSet::MAX_CPU).chain(0..self.core).find(allowed)
    }

    /// Which.
    pub fn number(&self) -> usize {
        self.core
    }
}

impl Drop for OneCore {
    fn drop(&mut self) {
        // What was allowed before is allowed again.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a thread that stays where it was put.
    #[test]
    fn what_was_allowed_before_is_allowed_again() {
        let before = sched_getaffinity(None).unwrap();
        let one = OneCore::here().unwrap();
        assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
        assert_eq!(sched_getcpu(), one.number());
        drop(one);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
        assert!(OneCore::on(usize::MAX).is_none());
    }
}
