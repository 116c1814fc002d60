//! Progress of a rank: its polls, and when it waits.
//!
//! MPICH's blocking calls poll and yield in turn; its tests never yield. An empty poll, a yield and another
//! empty poll mean that the rank does nothing until something comes (see [`crate::poll_pattern`]). It is
//! resumed when that comes, which ends the poll under way. If a machine file says what taking a message
//! costs, that cost was measured with ranks that polled: it contains the part of a poll that passes on
//! average before a poll sees the message. Anything that costs time in between, or a look at the clock,
//! begins the pattern again. So does a poll while completions lie in another queue of the library above:
//! MPICH looks at those of its other interfaces in every 256th poll only. Looking for a message
//! (`weft_peek`) never waits. Inside a [blocking call](crate::blocking) a rank that waits has no turn for a
//! notice that ends nothing: the simulator answers in its place.

use super::Rank;
use crate::blocking::{self, WaitKind};
use crate::clock;
use crate::device::{Call, State};
use crate::operation::Completion;
use crate::poll_pattern::{InARow, SYNCHRONIZING_EMPTY_POLLS};
use crate::within;
use std::sync::LazyLock;

/// Empty polls in a row that are a wait with fast polling. MPICH empties its queues at its end by fewer,
/// without waiting.
const FAST_EMPTY_POLLS: u32 = 64;
/// Empty polls in a row that are a wait in a call that looks through `requests` requests: more than two whole
/// looks have.
///
/// MPICH 5 polls before each eighth request, if `MPIR_CVAR_REQUEST_POLL_FREQ` does not say otherwise, and
/// after the last one. A request that completes just after MPICH has passed it is seen in the next look,
/// which `MPI_Waitsome` takes to the end (`MPIR_Waitany_state`, `MPIR_Waitsome_state`).
fn more_than_two_looks(requests: u32) -> u32 {
    static REQUESTS_PER_POLL: LazyLock<u32> = LazyLock::new(|| {
        let set = std::env::var("MPIR_CVAR_REQUEST_POLL_FREQ").ok();
        set.and_then(|set| set.parse().ok()).filter(|requests| *requests > 0).unwrap_or(8)
    });
    2 * (requests / *REQUESTS_PER_POLL) + 2
}

/// The empty polls in a row that are a wait in the MPI call that the rank is in, with fast polling or
/// without.
fn in_a_row(fast: bool) -> InARow {
    let in_call = |polls| InARow::PollsInCall { polls, call: within::current().1 };
    if blocking::is_inside(WaitKind::Synchronizing) {
        in_call(SYNCHRONIZING_EMPTY_POLLS)
    } else if blocking::is_inside(WaitKind::Scanning) {
        in_call(more_than_two_looks(within::first_argument()))
    } else if fast {
        InARow::Polls(FAST_EMPTY_POLLS)
    } else {
        InARow::Never
    }
}

impl Rank {
    /// Makes progress and takes completions; see `weft_poll`.
    pub fn poll(&mut self, mut take: impl FnMut(Completion) -> bool) -> usize {
        self.begin_poll();
        self.port.polled_interface = None;
        if self.port.completions.is_empty() {
            self.make_progress(true);
            if blocking::is_inside(WaitKind::Polling) {
                self.yields();
            }
        }
        let mut taken = 0;
        while let Some(completion) = self.port.completions.front() {
            if !take(*completion) {
                break;
            }
            self.port.completions.pop_front();
            taken += 1;
        }
        if taken > 0 {
            self.port.pattern.begin_again();
        }
        self.port.leave();
        taken
    }

    /// The program polls: what it has computed is charged, and whether it has looked at the clock is seen.
    pub(crate) fn begin_poll(&mut self) {
        if !self.port.pattern.has_pairs() && !blocking::is_inside(WaitKind::Synchronizing) {
            self.make_up();
        }
        self.port.enter(Call::Poll);
        self.port.pattern.begin_poll(clock::reads());
    }

    /// The program has nothing to do; see `weft_yield`.
    pub fn yields(&mut self) {
        self.port.pattern.yields();
    }

    /// Takes what has come; polling costs time and, where nothing can have come yet, the turn.
    pub(crate) fn make_progress(&mut self, polls: bool) {
        if self.take_notices() {
            return;
        }
        let port = &mut self.port;
        if polls && port.may_put_off() {
            blocking::put_off();
            port.pattern.put_off();
            return;
        }
        let put_off = blocking::take_put_off();
        port.polls_in_vain();
        let in_a_row = in_a_row(port.jumps);
        let are_a_wait = put_off + 1 == SYNCHRONIZING_EMPTY_POLLS;
        let mut waits = port.pattern.poll(polls, in_a_row) || are_a_wait;
        if port.has_unread {
            // It polls one queue of several, and will come to the one that is not empty.
            port.pattern.begin_again();
            waits = false;
        }
        if waits {
            if put_off > 0 && port.polled_interface.is_none() {
                port.tell_open(&self.process);
            }
            port.wait(if put_off > 0 { State::Poll } else { State::Wait }, put_off);
            port.lists.set_nothing_open();
            self.take_notices();
        } else {
            self.look();
        }
    }

    /// Whatever can have come by the rank's clock has, and is taken; says whether there was anything.
    fn look(&mut self) -> bool {
        if self.port.shared.clock() <= self.port.shared.quiet_until() {
            return false;
        }
        self.port.hand_over(State::Ready);
        self.take_notices()
    }

    /// Polls that were put off are made, up to the first that finds something: another call follows than the
    /// poll that they were put off to.
    pub(crate) fn make_up(&mut self) {
        for _ in 0..blocking::take_put_off() {
            self.port.polls_in_vain();
            self.port.pattern.make_up();
            if self.look() {
                break;
            }
        }
    }
}
