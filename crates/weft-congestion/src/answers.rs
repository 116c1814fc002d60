//! Answers of destinations: one for several packets of a flow.
//!
//! ```text
//!   packets 7, 8, 10, 9 ──► batch ──► answer: 9 came last, 7, 8 and 10 too; marked or not; links; the wait
//!                             ▲
//!          so many bytes have come, a packet is marked, or the first has waited for long enough
//! ```
//! The word of a notice has it all:
//!
//! ```text
//!   63       49 48          25 24    17 16 15          0
//!  ┌───────────┬──────────────┬────────┬──┬─────────────┐   wait: of the last one for the answer, in ns
//!  │ wait      │ others       │ links  │ M│ last        │   others: bit i is packet last - 16 + i
//!  └───────────┴──────────────┴────────┴──┴─────────────┘   M: one of them is marked
//! ```
//! Packets may come in any order. One that is too far from the last to have a bit begins another batch.
//!
//! # Source
//! Ultra Ethernet Specification 1.0, section 3.5 (coalescing of acknowledgements: by bytes, by marks, by a
//! timer); 16,384 bytes by uet-htsim's destination. The words, and the timer's length, are ours.

use crate::algorithm::{Arrival, Notice};
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span, Time};

/// Others before the last that a word has bits for.
const BEFORE: u16 = 16;
/// Others, before and after.
const OTHERS: u16 = 24;
const WAIT_BITS: u32 = 15;

/// The rule by which packets are answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answering {
    /// Bytes of packets that are answered at once; none: each packet is.
    pub every: Bytes,
    /// The longest that a packet waits for its answer.
    pub wait: Span,
}

impl Answering {
    /// Each packet is answered at once.
    pub const EACH: Answering = Answering { every: Bytes::ZERO, wait: Span::ZERO };
    /// The longest wait that an answer can tell of.
    pub const LONGEST_WAIT: Span = Span::from_ns((1 << WAIT_BITS) - 1);
}

/// Packets of a flow that have come and are not answered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Batch {
    bytes: u64,
    /// The time at which the first one came, and the last.
    first_came: Time,
    last_came: Time,
    last: u16,
    others: u32,
    hops: u8,
    ecn: bool,
}

impl Batch {
    /// A packet has come. Returns an answer: to all that have, or to those before it.
    pub(crate) fn receive(&mut self, came: &Arrival, answering: &Answering) -> Option<Notice> {
        let earlier =
            (!self.is_empty() && !self.has_bits_for(came.stamp.value)).then(|| self.answer(came.now));
        self.add(came);
        let is_full = self.bytes >= answering.every.get() || came.stamp.ecn;
        earlier.or_else(|| is_full.then(|| self.answer(came.now)))
    }

    /// The time at which it is to be answered at the latest; [`Time::NEVER`]: it is empty.
    pub(crate) fn due(&self, answering: &Answering) -> Time {
        if self.is_empty() { Time::NEVER } else { self.first_came.saturating_add(answering.wait) }
    }

    /// The answer at `now`, if that is due.
    pub(crate) fn answer_due(&mut self, now: Time, answering: &Answering) -> Option<Notice> {
        (self.due(answering) <= now).then(|| self.answer(now))
    }

    fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether those that it has can be told by their distance from another one.
    fn has_bits_for(&self, stamp: u16) -> bool {
        let moved = moved(self.others | 1 << BEFORE, self.last, stamp);
        moved.is_some()
    }

    fn add(&mut self, came: &Arrival) {
        let stamp = came.stamp.value;
        if self.is_empty() {
            *self = Batch { first_came: came.now, last: stamp, ..Batch::default() };
        }
        let others = moved(self.others | 1 << BEFORE, self.last, stamp).unwrap_or(0);
        self.others = others & !(1 << BEFORE);
        (self.last, self.last_came, self.hops) = (stamp, came.now, came.hops);
        self.bytes += came.bytes.get().max(1);
        self.ecn |= came.stamp.ecn;
    }

    /// Empties it into an answer.
    fn answer(&mut self, now: Time) -> Notice {
        let Batch { last, others, hops, ecn, last_came, .. } = std::mem::take(self);
        let wait = now.saturating_since(last_came).min(Answering::LONGEST_WAIT);
        Notice::answer(Answer { last, others, hops, ecn, wait }.word(), 0)
    }
}

/// Bits of packets around `from`, as they lie around `to`. `None`: one has no bit there.
fn moved(bits: u32, from: u16, to: u16) -> Option<u32> {
    let ahead = to.wrapping_sub(from) as i16;
    let (wide, all) = (u64::from(bits) << 32, (1u64 << OTHERS) - 1);
    if ahead.unsigned_abs() >= 32 {
        return None;
    }
    let shifted = if ahead >= 0 { wide >> ahead } else { wide << -ahead };
    let kept = shifted >> 32 & all;
    (kept.count_ones() == bits.count_ones()).then_some(kept as u32)
}

/// An answer to packets of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Stamp of the packet that came last.
    pub last: u16,
    others: u32,
    /// Links that it crossed.
    pub hops: u8,
    /// Whether a link has marked one of them.
    pub ecn: bool,
    /// The time that the last one has waited for the answer.
    pub wait: Span,
}

impl Answer {
    /// The answer to one packet, at once.
    pub fn to(last: u16, ecn: bool, hops: u8) -> Answer {
        Answer { last, others: 0, hops, ecn, wait: Span::ZERO }
    }

    /// The answer in a notice.
    pub fn of(notice: &Notice) -> Answer {
        let word = notice.word;
        Answer {
            last: word as u16,
            ecn: word >> 16 & 1 == 1,
            hops: (word >> 17) as u8,
            others: (word >> 25) as u32 & ((1 << OTHERS) - 1),
            wait: Span::from_ns(word >> 49),
        }
    }

    /// The word of its notice. What is below a nanosecond of the wait is left out.
    pub fn word(&self) -> u64 {
        let Answer { last, others, hops, ecn, wait } = *self;
        let wait = wait.min(Answering::LONGEST_WAIT).as_ps() / 1_000;
        u64::from(last) | u64::from(ecn) << 16 | u64::from(hops) << 17 | u64::from(others) << 25 | wait << 49
    }

    /// The stamps of all packets that it answers, the last one last.
    pub fn stamps(self) -> impl Iterator<Item = u16> {
        let Answer { last, others, .. } = self;
        let mut left = others;
        let others = std::iter::from_fn(move || {
            let place = left.trailing_zeros();
            left &= left.wrapping_sub(1);
            (place < u32::from(OTHERS)).then(|| last.wrapping_add(place as u16).wrapping_sub(BEFORE))
        });
        others.chain(std::iter::once(last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Stamp;
    use proptest::prelude::*;

    const ANSWERING: Answering = Answering { every: Bytes::new(16_000), wait: Span::from_us(2) };

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    fn packet(value: u16, ns: u64) -> Arrival {
        Arrival { now: at(ns), stamp: Stamp { ecn: false, value }, bytes: Bytes::new(4_000), hops: 3 }
    }

    fn stamps(notice: Option<Notice>) -> Vec<u16> {
        notice.iter().flat_map(|notice| Answer::of(notice).stamps()).collect()
    }

    /// Catches an answer that does not come after its bytes, with a mark, or when its time is over.
    #[test]
    fn packets_are_answered_by_bytes_by_marks_and_by_time() {
        let mut batch = Batch::default();
        for value in 0..3 {
            assert_eq!(batch.receive(&packet(value, 100), &ANSWERING), None);
        }
        assert_eq!(stamps(batch.receive(&packet(3, 100), &ANSWERING)), [0, 1, 2, 3]);
        assert_eq!((batch.due(&ANSWERING), batch.answer_due(at(10_000), &ANSWERING)), (Time::NEVER, None));
        let mut ecn = packet(4, 200);
        ecn.stamp.ecn = true;
        let answer = batch.receive(&ecn, &ANSWERING).unwrap();
        assert_eq!(Answer::of(&answer), Answer::to(4, true, 3));
        batch.receive(&packet(5, 300), &ANSWERING);
        batch.receive(&packet(6, 1_300), &ANSWERING);
        assert_eq!((batch.due(&ANSWERING), batch.answer_due(at(2_299), &ANSWERING)), (at(2_300), None));
        let answer = Answer::of(&batch.answer_due(at(2_300), &ANSWERING).unwrap());
        assert_eq!((answer.wait, answer.stamps().collect::<Vec<_>>()), (Span::from_us(1), vec![5, 6]));
        assert_eq!(stamps(batch.receive(&packet(7, 300), &Answering::EACH)), [7]);
    }

    proptest! {
        /// Catches a packet that no answer has, or one that never came, in any order and where stamps begin
        /// anew.
        #[test]
        fn answers_have_all_packets_and_no_other(
            start: u16,
            steps in prop::collection::vec((-40i16..40, 0u64..3_000, any::<bool>()), 1..100),
            every in 1u64..100_000,
        ) {
            let answering = Answering { every: Bytes::new(every), ..ANSWERING };
            let (mut batch, mut now, mut place) = (Batch::default(), 0, start);
            let (mut came, mut answered) = (Vec::new(), Vec::new());
            for (step, ns, ecn) in steps {
                now += ns;
                answered.extend(stamps(batch.answer_due(at(now), &answering)));
                place = place.wrapping_add_signed(step);
                if batch.last == place && !batch.is_empty() {
                    continue; // the same packet twice is one bit
                }
                let mut packet = packet(place, now);
                packet.stamp.ecn = ecn && step % 5 == 0;
                came.push(place);
                answered.extend(stamps(batch.receive(&packet, &answering)));
            }
            answered.extend(stamps(batch.answer_due(at(now + 2_000), &answering)));
            came.sort_unstable();
            came.dedup();
            answered.sort_unstable();
            answered.dedup();
            prop_assert_eq!(came, answered);
        }
    }
}
