//! Credits, tags and buffer space: what a TLP takes, and gives back a while after it has left.
//!
//! A run of equal TLPs is kept as one entry, from which they are given back one after the other.

use super::parameters::PcieParameters;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{Span, Time};

/// A run of TLPs that have taken credits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The beginning of the line's busy period.
    pub since: Time,
    /// Bytes of it before the run.
    pub before: u64,
    /// Bytes of each on the line.
    pub bytes: u32,
    pub count: u32,
    /// Credits of each.
    pub each: [u32; 3],
    /// From its leaving to its credits' return.
    pub back: Span,
}

impl Kept {
    #[inline]
    pub(super) fn back(self, back: Span) -> Kept {
        Kept { back, ..self }
    }
}

/// An entry: the run, and when the last of it gives back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct WindowEntry {
    run: Kept,
    last: Time,
}

/// The window.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Window {
    entries: VecDeque<WindowEntry>,
    used: [u64; 3],
    /// The time at which all will have been given back.
    clear: Time,
}

impl Window {
    /// Gives back what is free at `now`, whole runs only.
    #[inline]
    fn release(&mut self, now: Time) {
        // So it is at most times: a transfer finds the port idle.
        match self.clear <= now {
            true => {
                self.entries.clear();
                self.used = [0; 3];
            }
            false => self.release_some(now),
        }
    }

    #[inline(never)]
    fn release_some(&mut self, now: Time) {
        while let Some(entry) = self.entries.front().filter(|entry| entry.last <= now) {
            let Kept { count, each, .. } = entry.run;
            for (used, each) in self.used.iter_mut().zip(each) {
                *used -= u64::from(count) * u64::from(each);
            }
            self.entries.pop_front();
        }
    }

    /// Takes the credits of `count` TLPs at `now`, if there are some for all.
    #[inline]
    pub(super) fn take(&mut self, now: Time, count: u32, each: [u32; 3], limits: [u64; 3]) -> bool {
        self.release(now);
        let taken = |which: usize| self.used[which] + u64::from(count) * u64::from(each[which]);
        let used = [taken(0), taken(1), taken(2)];
        let fits = (0..3).all(|which| used[which] <= limits[which]);
        if fits {
            self.used = used;
        }
        fits
    }

    /// Takes the credits of one TLP as soon as there are some; those are given back. Returns the time from
    /// `now` on at which it has them.
    pub(super) fn take_next(
        &mut self,
        now: Time,
        each: [u32; 3],
        (limits, parameters): ([u64; 3], &PcieParameters),
    ) -> Time {
        let mut at = now;
        self.release(now);
        while (0..3).any(|which| self.used[which] + u64::from(each[which]) > limits[which]) {
            let Some(entry) = self.entries.front_mut() else { break };
            at = at.max(entry.run.end_of_first(parameters));
            for (used, each) in self.used.iter_mut().zip(entry.run.each) {
                *used -= u64::from(each);
            }
            entry.run.count -= 1;
            entry.run.before += u64::from(entry.run.bytes);
            if entry.run.count == 0 {
                self.entries.pop_front();
            }
        }
        for (used, each) in self.used.iter_mut().zip(each) {
            *used += u64::from(each);
        }
        at
    }

    /// Notes where a run that has taken its credits is on the line.
    #[inline]
    pub(super) fn keep(&mut self, run: Kept, parameters: &PcieParameters) {
        let all = run.before + u64::from(run.count) * u64::from(run.bytes);
        let last = run.since + parameters.wire(all) + run.back;
        self.clear = self.clear.max(last);
        self.entries.push_back(WindowEntry { run, last });
    }
}

impl Kept {
    /// The time at which the first TLP of the rest gives back.
    fn end_of_first(&self, parameters: &PcieParameters) -> Time {
        self.since + parameters.wire(self.before + u64::from(self.bytes)) + self.back
    }
}
