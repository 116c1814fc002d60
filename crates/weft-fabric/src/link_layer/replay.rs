//! The replay buffer of a link: what has been sent and not been answered.
//!
//! ```text
//!   sender                       far end
//!   ──P1──P2──P3────►              P1 whole: answer ok
//!        latency     ◄──ok 1──     P2 bad: answer repeat, P3 is thrown away
//!   ──P2──P3────►    ◄──repeat 2──
//! ```
//! Go-back-N: the receiver takes packets in order only. It finds a bad one at its tail, its answer is back a
//! latency
//! later, and that packet and all behind it go again. So nothing that went in between counts, and the sender
//! can
//! compute the whole of it at once: the line is taken until the end of the attempt that comes through, and
//! what is behind it goes then. Each packet arrives once and in order.
//!
//! A packet stays in the buffer until its answer is back, two latencies after its tail. A buffer that is
//! smaller than what a round trip carries makes the line wait.
//!
//! # Not modelled
//! The time of an answer on the other direction's line, and answers in error.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{Bytes, Time};

/// Packets without answer, oldest first.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(super) struct ReplayBuffer {
    /// When the answer is back, and how many bytes it is for.
    unanswered: VecDeque<(Time, u64)>,
    /// All their bytes.
    held: u64,
}

impl ReplayBuffer {
    /// A packet of `bytes` has been sent whose answer is back at `answer`. The time from which there is space
    /// for
    /// `largest` more in a buffer of `size`, which holds at least that.
    pub(super) fn hold(&mut self, (answer, bytes): (Time, Bytes), largest: Bytes, size: Bytes) -> Time {
        self.unanswered.push_back((answer, bytes.get()));
        self.held += bytes.get();
        let mut space_at = Time::ZERO;
        while self.held + largest.get() > size.get() {
            let Some((answer, bytes)) = self.unanswered.pop_front() else { break };
            self.held -= bytes;
            space_at = answer;
        }
        space_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches space that is found too early or too late: packets of 100 B in a buffer of 250 B.
    #[test]
    fn the_line_waits_for_the_oldest_answer() {
        let mut buffer = ReplayBuffer::default();
        let mut hold = |ps| {
            let answered = (Time::from_ps(ps), Bytes::new(100));
            buffer.hold(answered, Bytes::new(100), Bytes::new(250)).as_ps()
        };
        assert_eq!([hold(10), hold(20), hold(30), hold(40)], [0, 10, 20, 30]);
    }
}
