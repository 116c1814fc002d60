//! Turns of ranks.
//!
//! ```text
//!   simulation  begin ─────── goes on ──────────── end ──►     carries what the rank has posted
//!   rank          └──► runs ── gives its turn away ─┘
//! ```
//! Several ranks may have their turns at a time: see [`crate::live`]. Nothing that one of them does reaches another
//! before the simulation has ended its turn.

use crate::cores::Cores;
use crate::job::{Job, LOOK, lock};
use crate::wall::Stopwatch;
use std::sync::atomic::Ordering;
use weft_client::device::{Sharing, State, Turn};

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

impl Job {
    /// Says on which cores ranks and simulation may run, from the ranks' next turns on.
    pub(crate) fn set_cores(&self, cores: Option<Cores>) {
        self.put_on(self.placement.set(cores));
    }

    fn put_on(&self, cores: Option<Cores>) {
        let core = cores.map(|cores| cores.ranks);
        let sharing = cores.map_or(Sharing::One, |cores| cores.sharing(self.ranks()));
        self.members.iter().for_each(|member| member.device.set_core(core, sharing));
    }

    /// Gives a rank its turn, which must be [ended](Job::end_turn).
    pub(crate) fn begin_turn(&self, rank: u32, quiet_until: u64) {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let device = &self.members[rank as usize].device;
        // Under the lock, so that a death is not overwritten.
        let life = lock(&self.life);
        if life.deaths[rank as usize].is_none() {
            device.set_quiet_until(quiet_until);
            device.set_state(State::Run);
            device.give_turn(Turn::Rank);
        }
    }

    /// Waits until a turn that is under way is over, but does not end it: what a rank does to its memory in its turn, it has done
    /// at its beginning.
    pub(crate) fn let_finish(&self, rank: u32) {
        let device = &self.members[rank as usize].device;
        if device.turn() == Turn::Rank && device.state() == Some(State::Run) {
            self.await_turn(rank, || ());
        }
    }

    /// Waits until a rank has handed its turn back, and whether the simulation has given its core away meanwhile; `None`: it does not,
    /// or the run is to end. Whether it `takes_long` is for the eye, not for the simulation.
    fn await_turn(&self, rank: u32, takes_long: impl FnOnce()) -> Option<bool> {
        let device = &self.members[rank as usize].device;
        // Most turns are over before the clock would have been read.
        let mut since = None;
        let mut takes_long = Some(takes_long);
        let mut was_late = false;
        while device.turn() == Turn::Rank {
            was_late |= device.sleep_while(Turn::Rank, Some(LOOK));
            if device.turn() == Turn::Simulator {
                break;
            }
            if self.is_stopping() {
                return None;
            }
            if let Some(takes_long) = takes_long.take() {
                takes_long();
            }
            let since = since.get_or_insert_with(Stopwatch::start);
            if self.watchdog.is_some_and(|limit| since.elapsed() > limit) {
                lock(&self.life).silent = Some(rank);
                self.stop();
                return None;
            }
        }
        Some(was_late)
    }

    /// Ends a rank's turn, as soon as the rank hands it back.
    pub(crate) fn end_turn(&self, rank: u32) -> TurnEnd {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        let output = self.output.get();
        let takes_long = || output.iter().for_each(|output| output.waits_for(rank));
        let Some(was_late) = self.await_turn(rank, takes_long) else { return TurnEnd::Cut };
        output.iter().for_each(|output| output.turn_is_over(rank));
        if let Some(cores) = self.placement.turn_is_over(was_late) {
            self.put_on(Some(cores));
        }
        let device = &self.members[rank as usize].device;
        let life = lock(&self.life);
        match Job::wants(&life, rank, device) {
            Ok(State::Exit) => TurnEnd::Died,
            Ok(state) => {
                // Others may be in the turns that lead them there.
                let last = self.under_way.load(Ordering::Relaxed) == 0;
                if last && Job::is_fenced(&life) {
                    self.pause.store(true, Ordering::Release);
                }
                TurnEnd::Wants(state, device.clock())
            }
            Err(nonsense) => {
                drop(life);
                self.accuse(rank, nonsense);
                TurnEnd::Cut
            }
        }
    }
}
