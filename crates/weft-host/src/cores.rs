//! The cores on which a job runs while it is in virtual time.
//!
//! Ranks have a core apart from the simulation's, if there is one. A few ranks look for their turns without
//! sleeping, as the simulation does. Many ranks sleep, and several have their turns at a time: meanwhile the
//! simulation goes on on its own core. That pays while nothing else wants one of the two cores, and while
//! turns are short. If the simulation often waits so long for a turn that it gives its core away, the job is
//! put on one core for a moment. It stays there if it makes more turns in that time. From time to time the
//! other way is tried again. A job of a few ranks begins on one core, where a turn is two switches. On two
//! its ranks yield to each other, which is quick where both cores are idle and slow where they are not.

use crate::lock::lock;
use crate::wall::Stopwatch;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use weft_client::device::Sharing;

/// Ranks that are few: each looks for its turn without sleeping, for it may be the next again. Of more ranks,
/// most have long to wait.
const MAX_SPINNING_RANKS: u32 = 4;

/// Real time for which turns are counted before one and two cores are compared.
const SLICE_TIME: Duration = Duration::from_millis(100);
/// Slices until a few ranks are tried on a core of their own: where both cores are idle, turns are shorter.
const SLICES_UNTIL_FIRST_TRY: u32 = 2;
/// Slices between two comparisons.
const SLICES_UNTIL_RETRY: u32 = 50;
/// Turns between two reads of the real clock.
const TURNS_PER_CLOCK_READ: u32 = 16;
/// Turns for each late one, during which the simulation gives its core away: with fewer, ranks are tried on
/// its core.
const TURNS_PER_LATE_TURN: u32 = 20;

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
            ..=MAX_SPINNING_RANKS => Sharing::Few,
            _ => Sharing::Many,
        }
    }
}

/// Where a job runs, and how many turns it makes there.
#[derive(Debug, Default)]
pub(crate) struct Placement(Mutex<Pace>);

#[derive(Debug, Default)]
struct Pace {
    /// The cores that there are; `None`: the system has the choice.
    cores: Option<Cores>,
    /// Whether all is on the simulation's, although there is another.
    together: bool,
    /// Since the slice began: turns, and those that were late.
    turns: u32,
    late: u32,
    began: Option<Stopwatch>,
    /// Slices until the other way is tried.
    wait: u32,
    /// While it is: turns per second before.
    before: Option<u64>,
}

impl Pace {
    /// The cores on which the job runs.
    fn place(&self) -> Option<Cores> {
        self.cores.map(|cores| if self.together { Cores { ranks: cores.simulation, ..cores } } else { cores })
    }

    /// Ends a slice with `rate` turns per second. Returns whether the job changes its place.
    fn end_slice(&mut self, rate: u64) -> bool {
        // On one core it is always given away.
        let disturbed = self.together || self.late * TURNS_PER_LATE_TURN >= self.turns;
        if let Some(before) = self.before.take() {
            self.wait = SLICES_UNTIL_RETRY;
            // Not for a difference that may be chance.
            return rate < before + before / 10;
        }
        self.wait = self.wait.saturating_sub(1);
        let tries = disturbed && self.wait == 0;
        self.before = tries.then_some(rate);
        tries
    }
}

impl Placement {
    /// Of a job of so many ranks.
    pub fn of(ranks: u32) -> Placement {
        let together = ranks <= MAX_SPINNING_RANKS;
        let wait = if together { SLICES_UNTIL_FIRST_TRY } else { 0 };
        Placement(Mutex::new(Pace { together, wait, ..Pace::default() }))
    }

    fn pace(&self) -> MutexGuard<'_, Pace> {
        lock(&self.0)
    }

    /// There are these cores from now on: where the job runs.
    pub fn set(&self, cores: Option<Cores>) -> Option<Cores> {
        let mut pace = self.pace();
        // What was being tried has not been decided.
        let together = pace.together ^ pace.before.is_some();
        *pace = Pace { cores, together, wait: pace.wait, ..Pace::default() };
        pace.place()
    }

    /// Ends a turn, late or not. Returns the cores that the job tries from now on, or to which it goes back.
    pub fn end_turn(&self, late: bool) -> Option<Cores> {
        let mut pace = self.pace();
        pace.turns += 1;
        pace.late += u32::from(late);
        if !pace.turns.is_multiple_of(TURNS_PER_CLOCK_READ) || !pace.cores.is_some_and(Cores::are_apart) {
            return None;
        }
        let Some(took) = pace.began.map(Stopwatch::elapsed) else {
            (pace.turns, pace.late, pace.began) = (0, 0, Some(Stopwatch::start()));
            return None;
        };
        if took < SLICE_TIME {
            return None;
        }
        let rate = (u128::from(pace.turns) * 1_000_000_000 / took.as_nanos()) as u64;
        pace.together ^= pace.end_slice(rate);
        (pace.turns, pace.late, pace.began) = (0, 0, None);
        pace.place()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APART: Cores = Cores { simulation: 3, ranks: 4 };

    /// Lets slices go by, each with a rate for ranks apart and together and so many late turns of a hundred;
    /// says where they ran.
    fn run(rates: (u64, u64), late: u32, slices: usize) -> Vec<bool> {
        let mut pace = Pace { cores: Some(APART), ..Pace::default() };
        let step = |_| {
            let together = pace.together;
            (pace.turns, pace.late) = (100, late);
            pace.together ^= pace.end_slice(if together { rates.1 } else { rates.0 });
            together
        };
        (0..slices).map(step).collect()
    }

    /// Catches a job that stays where it is slower, one that gives up its second core without trying, and one
    /// that tries all the time.
    #[test]
    fn a_job_goes_where_its_turns_are_faster() {
        let share = |ran: &[bool]| ran.iter().filter(|together| **together).count();
        assert_eq!(share(&run((1000, 3000), 0, 1000)), 0, "nobody is late");
        let slower_together = run((1000, 900), 50, 1000);
        assert!((1..=1000 / SLICES_UNTIL_RETRY as usize + 1).contains(&share(&slower_together)));
        let faster_together = run((1000, 3000), 50, 1000);
        assert!(share(&faster_together) >= 1000 - 1000 / SLICES_UNTIL_RETRY as usize - 2);
        assert_eq!(share(&run((1000, 1050), 50, 40)), 1, "that may be chance");
    }

    /// Catches a few ranks that begin on a core apart, and many that do not.
    #[test]
    fn a_few_ranks_begin_on_the_core_of_the_simulation() {
        let begins = |ranks| Placement::of(ranks).set(Some(APART));
        assert_eq!(begins(2), Some(Cores { ranks: APART.simulation, ..APART }));
        assert_eq!(begins(MAX_SPINNING_RANKS + 1), Some(APART));
    }

    /// Catches turns that are counted as over when the job cannot run elsewhere.
    #[test]
    fn a_job_on_one_core_stays_there() {
        let placement = Placement::default();
        let one = Cores { ranks: 3, ..APART };
        assert_eq!(placement.set(Some(one)), Some(one));
        assert!((0..1000).all(|_| placement.end_turn(true).is_none()));
        assert_eq!(placement.set(None), None);
        assert!((0..1000).all(|_| placement.end_turn(true).is_none()));
    }
}
