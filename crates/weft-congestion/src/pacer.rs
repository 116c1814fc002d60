//! The pacer: a flow's next packet waits until those before it have had their time at its rate.

use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Bytes, Span, Time};

/// Time from which the next packet of a flow may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Pacer {
    next: Time,
}

impl Pacer {
    /// When the next packet may go, from `now` on.
    pub(crate) fn earliest(&self, now: Time) -> Time {
        self.next.max(now)
    }

    /// A packet goes at `now`: the next one waits for as long as this takes at `rate`.
    pub(crate) fn send(&mut self, bytes: Bytes, rate: BitRate, now: Time) {
        self.next = self.next.max(now).saturating_add(rate.span(bytes));
    }

    /// The same, and a packet that goes late makes up for up to two packets: it has waited for a line that
    /// others use too.
    pub(crate) fn send_late(&mut self, bytes: Bytes, rate: BitRate, now: Time) {
        let span = rate.span(bytes);
        let late = now.saturating_since(self.next).min(span * 2);
        self.next = self.next.max(now).saturating_add(span) - late;
    }

    /// A packet goes at `now`: the next one waits for `span`.
    pub(crate) fn hold(&mut self, now: Time, span: Span) {
        self.next = self.next.max(now).saturating_add(span);
    }

    /// Moves a wait that has begun to another rate: what is left of it lasts as many bytes as before.
    pub(crate) fn change(&mut self, from: BitRate, to: BitRate, now: Time) {
        // From when on a packet could have gone is known still: no wait has begun.
        if self.next <= now {
            return;
        }
        let left = self.next.saturating_since(now).as_ps();
        let (from, to) = (u128::from(from.bits_per_second()), u128::from(to.bits_per_second()).max(1));
        let left = (u128::from(left) * from).div_ceil(to);
        let left = Span::from_ps(u64::try_from(left).unwrap_or(u64::MAX));
        self.next = now.saturating_add(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a packet that goes before its turn, and a wait that keeps the old rate.
    #[test]
    fn packets_are_apart_by_their_time_at_the_rate() {
        let (slow, fast) = (BitRate::from_gigabits(1), BitRate::from_gigabits(4));
        let mut pacer = Pacer::default();
        let at = |ns| Time::ZERO + Span::from_ns(ns);
        pacer.send(Bytes::new(1_000), slow, at(100));
        assert_eq!(pacer.earliest(at(100)), at(8_100));
        pacer.send(Bytes::new(1_000), slow, at(8_100));
        pacer.change(slow, fast, at(8_100));
        assert_eq!(pacer.earliest(at(8_200)), at(10_100));
        assert_eq!(pacer.earliest(at(20_000)), at(20_000));
    }

    /// Catches an answer that comes while nothing waits, and makes the limiter forget since when it is open:
    /// a flow that rests would seem to send whenever it is answered, and never end.
    #[test]
    fn a_new_rate_leaves_a_limiter_open_that_is() {
        let at = |ns| Time::ZERO + Span::from_ns(ns);
        let mut pacer = Pacer::default();
        pacer.send(Bytes::new(1_000), BitRate::from_gigabits(8), at(0));
        pacer.change(BitRate::from_gigabits(8), BitRate::from_gigabits(4), at(500));
        assert_eq!(
            pacer.earliest(Time::ZERO),
            at(1_500),
            "half of the wait is left, and takes twice as long"
        );
        pacer.change(BitRate::from_gigabits(4), BitRate::from_gigabits(8), at(2_000));
        assert_eq!(pacer.earliest(Time::ZERO), at(1_500));
    }

    /// Catches a rate that is lost where packets wait for the line, and a burst after a long time.
    #[test]
    fn a_late_packet_makes_up_for_two_at_most() {
        let rate = BitRate::from_gigabits(8);
        let mut pacer = Pacer::default();
        let at = |ns| Time::ZERO + Span::from_ns(ns);
        let mut send = |ns| {
            pacer.send_late(Bytes::new(1_000), rate, at(ns));
            pacer.earliest(Time::ZERO)
        };
        assert_eq!(send(10_000), at(9_000));
        assert_eq!(send(10_000), at(10_000));
        assert_eq!((send(10_300), send(11_100)), (at(11_000), at(12_000)));
    }
}
