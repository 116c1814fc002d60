//! Turns of ranks.
//!
//! ```text
//!   simulation  begin ─────── goes on ──────────── end ──►     carries the posts of the rank
//!   rank          └──► runs ── gives its turn away ─┘
//! ```
//! Several ranks may have their turns at a time: see [`crate::live`]. Nothing that one of them does reaches
//! another before the simulation has ended its turn.

use crate::job::{Job, WATCHDOG_CHECK_INTERVAL};
use crate::live_end::LiveEnd;
use crate::wall::Stopwatch;
use weft_client::device::{State, Turn as Side};

/// Why a turn ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TurnEnd {
    /// The rank wants this; its clock in ps.
    Wants(State, u64),
    /// It has died.
    Died,
    /// It has kept the turn for too long, or the run is to end.
    Cut,
}

/// The turn of a rank.
pub(crate) struct Turn<'a> {
    job: &'a Job,
    rank: u32,
}

impl Turn<'_> {
    /// The turn of this rank.
    pub(crate) fn of(job: &Job, rank: u32) -> Turn<'_> {
        Turn { job, rank }
    }

    /// Begins the turn, which must be [ended](Turn::end). Until `quiet_until`, in ps, nothing can come for
    /// the rank.
    pub(crate) fn begin(&self, quiet_until: u64) {
        self.job.begin_turn(self.rank, quiet_until);
    }

    /// Waits until the rank has handed back a turn that is under way, without ending it: the rank writes its
    /// memory in its turn, but at the time of the turn's beginning.
    pub(crate) fn let_finish(&self) {
        let device = self.job.device(self.rank);
        if device.turn() == Side::Rank && device.state() == Some(State::Run) {
            self.wait(|| ());
        }
    }

    /// Ends the turn as soon as the rank hands it back.
    pub(crate) fn end(&self) -> TurnEnd {
        self.job.await_turn();
        let output = self.job.output();
        let takes_long = || output.iter().for_each(|output| output.wait_for(self.rank));
        let Some(was_late) = self.wait(takes_long) else { return TurnEnd::Cut };
        output.iter().for_each(|output| output.end_turn(self.rank));
        match self.job.end_turn(self.rank, was_late) {
            Ok((State::Exit, _)) => TurnEnd::Died,
            Ok((state, clock)) => TurnEnd::Wants(state, clock),
            Err(nonsense) => {
                self.job.accuse(self.rank, nonsense);
                TurnEnd::Cut
            }
        }
    }

    /// Waits until the rank has handed its turn back. Returns whether the simulation has given its core away
    /// meanwhile; `None`: the rank keeps its turn, or the run is to end. `takes_long` is called once, for the
    /// eye only.
    fn wait(&self, takes_long: impl FnOnce()) -> Option<bool> {
        let device = self.job.device(self.rank);
        // Most turns are over before the clock would have been read.
        let mut since = None;
        let mut takes_long = Some(takes_long);
        let mut was_late = false;
        while device.turn() == Side::Rank {
            was_late |= device.sleep_while(Side::Rank, Some(WATCHDOG_CHECK_INTERVAL));
            if device.turn() == Side::Simulator {
                break;
            }
            if self.job.is_stopping() {
                return None;
            }
            if let Some(takes_long) = takes_long.take() {
                takes_long();
            }
            let since = since.get_or_insert_with(Stopwatch::start);
            if self.job.watchdog().is_some_and(|limit| since.elapsed() > limit) {
                self.job.end(LiveEnd::Silent(self.rank));
                return None;
            }
        }
        Some(was_late)
    }
}
