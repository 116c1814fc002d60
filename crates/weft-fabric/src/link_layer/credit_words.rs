//! Words by which a link gives credits back for the other direction.
//!
//! ```text
//!   this direction   ══ packet ══╪▇╪══ rest of it ══►     a word goes at once, into a packet if one is there
//!                                 │
//!   opposite one     ◄── its buffer, which is at this end, has space again
//! ```
//! Space is announced by one word per packet, as soon as the packet's tail has left the buffer. Words go
//! before packets and one after the other. The line carries them beside the packets, so that these come
//! later.
//!
//! # Deadlock
//! A word waits for words only, never for credits, and needs no buffer.
//!
//! # Not modelled
//! A packet that has been granted its line when a word cuts into it: its tail is taken to be on time, and the
//! line to be free a word later, for the packet after it. Words that are lost, and words for packets that a
//! fault has lost.

use crate::link::{Line, LineRate};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{Bytes, Time};

/// The words of one direction.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct CreditWords {
    /// When each of those begins that the packets' line does not know of yet, in order.
    due: VecDeque<Time>,
    /// The line as words alone see it.
    line: Line,
    /// Bytes of those that the packets' line has carried.
    carried: Bytes,
}

impl CreditWords {
    /// Sends a `word` that is ready at `ready`; returns when its last bit has left.
    pub(super) fn announce(&mut self, rate: &LineRate, word: Bytes, ready: Time) -> Time {
        self.due.push_back(ready.max(self.line.busy_until()));
        self.line.send(rate, ready, word)
    }

    /// Occupies the packets' `line` with the words that begin before `granted`, when a packet is granted the
    /// line or space becomes known. Words that begin at a later time are known to no grant of this one.
    pub(super) fn occupy(&mut self, line: &mut Line, rate: &LineRate, word: Bytes, granted: Time) {
        while let Some(&began) = self.due.front()
            && began < granted
        {
            self.due.pop_front();
            line.send(rate, began, word);
            self.carried += word;
        }
    }

    /// Bytes of the words that have gone over the packets' line.
    pub(super) fn carried(&self) -> Bytes {
        self.carried
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_units::{BitRate, LineCode};

    const WORD: Bytes = Bytes::new(16);

    fn at(ns: u64) -> Time {
        Time::from_ps(1000 * ns)
    }

    /// A line on which a byte takes a nanosecond.
    fn rate() -> LineRate {
        LineRate::new(BitRate::from_gigabits(8), LineCode::NONE).unwrap()
    }

    /// Catches words that overlap, that wait for a packet, that delay a packet before them, and that are
    /// forgotten or counted twice.
    #[test]
    fn words_go_one_after_the_other_and_packets_after_them() {
        let (rate, mut words, mut line) = (rate(), CreditWords::default(), Line::default());
        // A packet of 100 B is on the line until 100 ns.
        line.send(&rate, at(0), Bytes::new(100));
        assert_eq!(words.announce(&rate, WORD, at(40)), at(56), "into the packet");
        assert_eq!(words.announce(&rate, WORD, at(50)), at(72), "behind the first word");
        assert_eq!(words.announce(&rate, WORD, at(500)), at(516));
        words.occupy(&mut line, &rate, WORD, at(56));
        assert_eq!(line.busy_until(), at(116), "the second begins at 56, which a grant at 56 does not know");
        words.occupy(&mut line, &rate, WORD, at(300));
        assert_eq!(line.busy_until(), at(132));
        words.occupy(&mut line, &rate, WORD, at(1000));
        assert_eq!(line.busy_until(), at(516), "on an idle line");
    }

    /// Catches memory that grows with the words of a line on which no packet ever goes.
    #[test]
    fn a_line_without_packets_keeps_no_words() {
        let (rate, mut words, mut line) = (rate(), CreditWords::default(), Line::default());
        for packet in 1..1000 {
            words.occupy(&mut line, &rate, WORD, at(100 * packet));
            words.announce(&rate, WORD, at(100 * packet + 50));
            assert!(words.due.len() <= 1);
        }
        assert_eq!(line.busy_until(), at(100 * 998 + 66));
    }
}
