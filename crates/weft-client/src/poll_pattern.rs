//! The pattern of polls by which a rank shows that it waits.
//!
//! ```text
//!   empty poll ─► yield ─► empty poll            a pair, then an empty poll: the rank waits
//!   empty poll ─► empty poll ─► … ─► empty poll  as many in a row as its call, or fast polling, asks for
//!        └── a notice, a completion, a clock read: the pattern begins again
//! ```
//! The library above says nowhere that it waits: it polls. One empty poll proves nothing, because a program
//! may test once and go on.

use crate::operation::About;

/// Pairs of an empty poll and a yield after which the next empty poll is a wait. Each pair costs a turn.
const PAIRS_TO_WAIT: u32 = 1;

/// Empty polls in a row that are a wait in a call that synchronizes a window. MPICH 5 makes up to three there
/// without waiting: one for its counters, one in each loop that tests after its body.
pub(crate) const SYNCHRONIZING_EMPTY_POLLS: u32 = 8;

/// The empty polls in a row that are a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InARow {
    /// No number of them: only pairs count.
    Never,
    /// This many, whatever the calls that they are made in.
    Polls(u32),
    /// This many in one MPI call, which is the program's `call`th: requests may complete between two calls.
    PollsInCall {
        /// Empty polls.
        polls: u32,
        /// Count of the program's calls so far.
        call: u32,
    },
}

/// The polls of a rank since something last happened.
#[derive(Debug, Default)]
pub(crate) struct PollPattern {
    /// Pairs of an empty poll and a yield.
    pairs: u32,
    /// Whether the last poll was empty and no yield has followed it.
    polled_empty: bool,
    /// Empty polls in a row.
    empty_polls: u32,
    /// The call in which they are counted, as a count of the program's calls.
    counted_call: u32,
    /// Clock reads of the program at its last poll.
    clock_reads: u32,
    /// Whether its inbox was empty when the rank last looked. Before a job counts as deadlocked, every rank
    /// that waits is woken in vain.
    woken_in_vain: bool,
    /// The message that the rank has looked for in vain and has done nothing but poll since.
    looked_for: Option<About>,
}

impl PollPattern {
    /// Something has happened for which the rank may have waited.
    pub(crate) fn begin_again(&mut self) {
        (self.pairs, self.polled_empty, self.empty_polls) = (0, false, 0);
    }

    /// The program polls, and has read its clock `clock_reads` times so far: one that reads the clock between
    /// two polls may end by it.
    pub(crate) fn begin_poll(&mut self, clock_reads: u32) {
        if clock_reads != self.clock_reads {
            self.clock_reads = clock_reads;
            self.begin_again();
        }
    }

    /// Whether the last polls found nothing.
    pub(crate) fn has_empty_polls(&self) -> bool {
        self.empty_polls > 0
    }

    /// The program yields.
    pub(crate) fn yields(&mut self) {
        if std::mem::take(&mut self.polled_empty) {
            self.pairs += 1;
        }
    }

    /// Whether the next empty poll is a wait because of the pairs before it.
    pub(crate) fn has_pairs(&self) -> bool {
        self.pairs >= PAIRS_TO_WAIT
    }

    /// An empty poll is put off: it counts as a poll that a yield may follow.
    pub(crate) fn put_off(&mut self) {
        self.polled_empty = true;
    }

    /// An empty poll that was put off is made after all.
    pub(crate) fn make_up(&mut self) {
        self.empty_polls += 1;
    }

    /// The rank looks for something, and finds nothing if `empty`. Returns whether it waits.
    pub(crate) fn poll(&mut self, empty: bool, in_a_row: InARow) -> bool {
        let enough = match in_a_row {
            InARow::Never => u32::MAX,
            InARow::Polls(polls) => polls,
            InARow::PollsInCall { polls, call } => {
                if call != self.counted_call {
                    (self.counted_call, self.empty_polls) = (call, 0);
                }
                polls
            }
        };
        self.empty_polls += u32::from(empty);
        self.polled_empty = empty;
        empty && (self.has_pairs() || self.empty_polls >= enough)
    }

    /// The rank has looked into its inbox, and has found a notice or not.
    pub(crate) fn wakes(&mut self, with_notice: bool) {
        self.woken_in_vain = !with_notice;
        if with_notice {
            self.begin_again();
        }
    }

    /// Whether its inbox was empty when the rank last looked.
    pub(crate) fn is_woken_in_vain(&self) -> bool {
        self.woken_in_vain
    }

    /// The rank looks for a message: in vain, or (`None`) it finds one or does something else.
    pub(crate) fn looks_for(&mut self, in_vain: Option<About>) {
        self.looked_for = in_vain;
    }

    /// The message that the rank has looked for in vain and has done nothing but poll since.
    pub(crate) fn looked_for(&self) -> Option<About> {
        self.looked_for
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: bool = true;

    /// Catches a rank that is taken to wait at its first empty poll, or never.
    #[test]
    fn a_pair_and_an_empty_poll_are_a_wait() {
        let mut pattern = PollPattern::default();
        assert!(!pattern.poll(EMPTY, InARow::Never));
        assert!(!pattern.poll(EMPTY, InARow::Never), "no yield between");
        pattern.yields();
        assert!(pattern.has_pairs());
        assert!(pattern.poll(EMPTY, InARow::Never));
        pattern.begin_again();
        pattern.yields();
        assert!(!pattern.has_pairs(), "a yield without a poll before it");
    }

    /// Catches a program that waits with a time limit of its own and is never given its turn.
    #[test]
    fn a_clock_read_begins_the_pattern_again() {
        let mut pattern = PollPattern::default();
        pattern.begin_poll(3);
        pattern.poll(EMPTY, InARow::Never);
        pattern.yields();
        pattern.begin_poll(3);
        assert!(pattern.has_pairs());
        pattern.begin_poll(4);
        assert!(!pattern.has_pairs());
    }

    /// Catches polls of an earlier call that count, and a poll that finds something and counts.
    #[test]
    fn polls_in_a_row_count_in_their_call() {
        let mut pattern = PollPattern::default();
        let in_call = |call| InARow::PollsInCall { polls: 3, call };
        assert!(!pattern.poll(EMPTY, in_call(1)) && !pattern.poll(EMPTY, in_call(1)));
        assert!(!pattern.poll(EMPTY, in_call(2)));
        assert!(!pattern.poll(!EMPTY, in_call(2)) && !pattern.poll(EMPTY, in_call(2)));
        assert!(pattern.poll(EMPTY, in_call(2)));
        pattern.begin_again();
        assert!(!pattern.poll(EMPTY, InARow::Polls(2)));
        assert!(pattern.has_empty_polls());
        pattern.make_up();
        assert!(pattern.poll(EMPTY, InARow::Polls(3)));
        pattern.wakes(true);
        assert!(!pattern.has_empty_polls());
    }

    /// Catches a poll that was put off and starts no pair, and a notice that does not end the pattern.
    #[test]
    fn a_poll_put_off_starts_a_pair_and_a_notice_ends_it() {
        let mut pattern = PollPattern::default();
        pattern.put_off();
        pattern.yields();
        pattern.wakes(false);
        assert!(pattern.has_pairs() && pattern.is_woken_in_vain());
        pattern.wakes(true);
        assert!(!pattern.has_pairs() && !pattern.is_woken_in_vain());
    }
}
