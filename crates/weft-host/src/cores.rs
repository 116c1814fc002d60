//! On which cores a job runs while it is in virtual time.
//!
//! Ranks have a core apart from the simulation's, if there is one. A few ranks look for their turns without sleeping, as the simulation
//! does. That is worth it only while turns are short: where most take long, something else wants one of the two cores, or the program
//! computes, and both are better off on one. Many ranks sleep, and several have their turns at a time: while they do, the simulation
//! goes on on its own core.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use weft_client::device::Sharing;

/// So many ranks are few: each looks for its turn without sleeping, for it may be the next again. Of more, most have long to wait.
const FEW: u32 = 4;

/// How many turns in time outweigh one for which the simulation had to sleep,
const LATE: u32 = 20;
/// and how much is too late.
const TOO_LATE: u32 = 20 * LATE;

/// The cores of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cores {
    /// Of the simulation.
    pub simulation: usize,
    /// Of all ranks.
    pub ranks: usize,
}

impl Cores {
    /// Whether they are two.
    fn are_apart(self) -> bool {
        self.simulation != self.ranks
    }

    /// Who shares them with so many ranks.
    pub fn sharing(self, ranks: u32) -> Sharing {
        match ranks {
            _ if !self.are_apart() => Sharing::One,
            ..=FEW => Sharing::Few,
            _ => Sharing::Many,
        }
    }
}

/// Where a job runs, and how late its turns have been of late.
#[derive(Debug, Default)]
pub(crate) struct Placement {
    cores: Mutex<Option<Cores>>,
    late: AtomicU32,
}

impl Placement {
    /// It runs there from now on.
    pub fn set(&self, cores: Option<Cores>) {
        // Poisoned by a panic of another thread, which ends the run anyway.
        *self.cores.lock().unwrap_or_else(PoisonError::into_inner) = cores;
        self.late.store(0, Ordering::Relaxed);
    }

    /// A turn is over, for which the simulation had to sleep or not: the cores that are better from now on.
    pub fn turn_is_over(&self, slept: bool, ranks: u32) -> Option<Cores> {
        let late = self.late.load(Ordering::Relaxed);
        let late = if slept { late + LATE } else { late.saturating_sub(1) };
        self.late.store(late, Ordering::Relaxed);
        if late <= TOO_LATE {
            return None;
        }
        self.late.store(0, Ordering::Relaxed);
        let cores = *self.cores.lock().unwrap_or_else(PoisonError::into_inner);
        let cores = cores.filter(|cores| cores.sharing(ranks) == Sharing::Few)?;
        Some(Cores { ranks: cores.simulation, ..cores })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a job that gives up its second core for a few late turns, and one that never does.
    #[test]
    fn a_job_whose_turns_are_late_goes_to_one_core() {
        let placement = Placement::default();
        placement.set(Some(Cores { simulation: 3, ranks: 4 }));
        for turn in 0..10_000 {
            assert_eq!(placement.turn_is_over(turn % 50 == 0, FEW), None);
        }
        let moved = (0..100).find_map(|_| placement.turn_is_over(true, FEW));
        assert_eq!(moved, Some(Cores { simulation: 3, ranks: 3 }));
        placement.set(moved);
        assert_eq!((0..1000).find_map(|_| placement.turn_is_over(true, FEW)), None);
    }
}
