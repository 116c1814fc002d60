//! Whether a job stands still: no rank that waits can hear of anything any more.
//!
//! ```text
//!   nothing is pending in the network ───────────────┐
//!   it only repeats what full mailboxes have refused ┴─► the ranks that wait get turns in vain
//!                                                          │ one sends, calls, takes a message: begin again
//!                                                          └ none does: deadlock, or no progress
//! ```
//! Waiting is guessed from how a rank polls: one that only tests must have had its turns.

use weft_nic::Refused;
use weft_units::{Span, Time};

/// Turns that ranks that wait are given in vain before that is a standstill. A program may test and yield in
/// vain and then go on by itself, and MPICH moves a message of a rank to itself piece by piece as it polls.
const MAX_TURNS_IN_VAIN: u32 = 1000;
/// Repetitions of each refused message, on average, that a standstill takes beside: a process that has made
/// room is seen by the next of them, and by then the pauses between them are the longest.
const MIN_REPEATS: u64 = 16;
/// Least virtual time between two looks at whether the network does anything but repeat.
const LOOK_INTERVAL: Span = Span::from_us(10_000);
/// The looks are no further apart than this part of the virtual time that has passed: a long run is not
/// looked at too often, and one that stands still ends soon.
const LOOK_PART: u64 = 100;
/// Virtual time for which a network that repeats goes on after each turn in vain.
const REPEAT_STRETCH: Span = Span::from_us(1);

/// The state of a job that can only change if something happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Activity {
    /// Messages that ranks have sent.
    pub sent: u64,
    /// MPI calls that ranks have made.
    pub calls: u32,
    /// Messages that full mailboxes have refused, with how often they have.
    pub refused: Refused,
}

impl Activity {
    /// Whether nothing has happened since `before`, repetitions aside.
    fn is_as(&self, before: &Activity) -> bool {
        let of = |activity: &Activity| (activity.sent, activity.calls, activity.refused.messages);
        of(self) == of(before)
    }
}

/// The next step of a job whose ranks wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StandstillStep {
    /// Give them turns, though nothing has come.
    GiveTurns,
    /// Let the network go on repeating.
    GoOn,
    /// End it.
    End,
}

/// The account of turns that ranks were given although no notice had come.
#[derive(Default)]
pub(crate) struct Standstill {
    /// The job at the first of them.
    first: Activity,
    /// Turns of each rank.
    given: u32,
    /// The ranks that waited at the first of them, and since when.
    since: Vec<(u32, Time)>,
    /// The time to which the network is to go on before the next look; `None`: as if nothing stood still.
    next_look: Option<Time>,
}

impl Standstill {
    /// The next step of a job that is in this state, whose ranks wait, each since a time.
    pub(crate) fn step(&mut self, now: Activity, waiting: Vec<(u32, Time)>, time: Time) -> StandstillStep {
        if self.given == 0 || !now.is_as(&self.first) {
            *self = Standstill { first: now, since: waiting.clone(), ..Standstill::default() };
        }
        self.given = self.given.saturating_add(1);
        let repeats = now.refused.repeats.saturating_sub(self.first.refused.repeats);
        self.next_look = None;
        if self.given <= MAX_TURNS_IN_VAIN {
            if now.refused.messages > 0 {
                // Those that are woken make a poll, some of them later than others.
                let last = waiting.iter().map(|(_, clock)| *clock).max().unwrap_or(time);
                self.next_look = Some(time.max(last) + REPEAT_STRETCH);
            }
            StandstillStep::GiveTurns
        } else if repeats < MIN_REPEATS * now.refused.messages {
            StandstillStep::GoOn
        } else {
            StandstillStep::End
        }
    }

    /// The time of the next look at a network that is at `now`.
    pub(crate) fn next_look(&self, now: Time) -> Time {
        let far = LOOK_INTERVAL.max(Span::from_ps(now.as_ps() / LOOK_PART));
        self.next_look.unwrap_or_else(|| now.saturating_add(far))
    }

    /// The network does more than to repeat.
    pub(crate) fn moves(&mut self) {
        self.next_look = None;
    }

    /// The ranks that waited when it began, and since when.
    pub(crate) fn take_since(&mut self) -> Vec<(u32, Time)> {
        std::mem::take(&mut self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(sent: u64, messages: u64, repeats: u64) -> Activity {
        Activity { sent, calls: 0, refused: Refused { messages, repeats } }
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// Catches a job that ends while one of its ranks goes on after many tests, and one that never ends.
    #[test]
    fn a_job_ends_when_all_turns_were_in_vain() {
        let mut standstill = Standstill::default();
        let waiting = || vec![(3, at(5))];
        for _ in 0..MAX_TURNS_IN_VAIN - 1 {
            assert_eq!(standstill.step(activity(7, 0, 0), waiting(), at(9)), StandstillStep::GiveTurns);
        }
        assert_eq!(standstill.next_look(at(9)), at(10_009), "nothing repeats");
        for _ in 0..MAX_TURNS_IN_VAIN {
            assert_eq!(
                standstill.step(activity(8, 0, 0), waiting(), at(9)),
                StandstillStep::GiveTurns,
                "it has sent"
            );
        }
        assert_eq!(standstill.step(activity(8, 0, 0), waiting(), at(9)), StandstillStep::End);
        assert_eq!(standstill.take_since(), waiting());
    }

    /// Catches a job that ends before each refused message was repeated, and looks that are far apart while
    /// ranks get turns.
    #[test]
    fn a_job_with_full_mailboxes_ends_when_they_have_refused_all_again() {
        let mut standstill = Standstill::default();
        let mut step = |repeats| {
            let step = standstill.step(activity(7, 36, repeats), vec![(1, at(5))], at(9));
            (step, standstill.next_look(at(9)))
        };
        for _ in 0..MAX_TURNS_IN_VAIN {
            assert_eq!(step(100), (StandstillStep::GiveTurns, at(10)));
        }
        assert_eq!(step(100 + 36 * MIN_REPEATS - 1), (StandstillStep::GoOn, at(10_009)));
        assert_eq!(step(100 + 36 * MIN_REPEATS), (StandstillStep::End, at(10_009)));
        assert_eq!(
            standstill.step(activity(7, 35, 900), Vec::new(), at(9)),
            StandstillStep::GiveTurns,
            "one was taken"
        );
    }
}
