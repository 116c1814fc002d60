//! Packets of a flow that are under way: sent and not answered.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{Bytes, Span, Time};

/// Answers that may overtake one another by so many packets; what is older has been lost.
const REORDERED: usize = 1_024;

/// A packet under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Sent {
    at: Time,
    bytes: u32,
    is_answered: bool,
}

/// An answered packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answered {
    /// From when it was sent until its answer came.
    pub(crate) round_trip: Span,
    pub(crate) bytes: Bytes,
    /// Number of the packet, counted from the flow's beginning.
    pub(crate) number: u64,
    /// Bytes of packets before it that have been lost.
    pub(crate) lost: Bytes,
}

/// Packets under way, by their number. A stamp has the number's last 16 bits.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct InFlight {
    packets: VecDeque<Sent>,
    /// Number of the first of them.
    first: u64,
    bytes: u64,
}

impl InFlight {
    /// Bytes under way at `now`; those sent `timeout` ago and before count as lost.
    pub(crate) fn bytes(&self, now: Time, timeout: Span) -> Bytes {
        let late = |sent: &&Sent| sent.at.saturating_add(timeout) <= now;
        let lost: u64 = self.packets.iter().take_while(late).map(Sent::missing).sum();
        Bytes::new(self.bytes - lost)
    }

    /// Time at which the oldest packet will count as lost; [`Time::NEVER`]: none is under way.
    pub(crate) fn gives_up(&self, now: Time, timeout: Span) -> Time {
        let ends = self.packets.iter().filter(|sent| !sent.is_answered);
        ends.map(|sent| sent.at.saturating_add(timeout)).find(|end| *end > now).unwrap_or(Time::NEVER)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Number of the next packet.
    pub(crate) fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// A packet goes; returns its stamp.
    pub(crate) fn send(&mut self, bytes: Bytes, at: Time, timeout: Span) -> u16 {
        while self
            .packets
            .front()
            .is_some_and(|sent| sent.is_answered || sent.at.saturating_add(timeout) <= at)
        {
            self.drop_first();
        }
        let stamp = self.next() as u16;
        self.packets.push_back(Sent { at, bytes: bytes.get() as u32, is_answered: false });
        self.bytes += bytes.get();
        stamp
    }

    /// An answer has come to the packet with this stamp. `None`: it is not under way.
    pub(crate) fn answer(&mut self, stamp: u16, now: Time) -> Option<Answered> {
        let place = usize::from(stamp.wrapping_sub(self.first as u16));
        let number = self.first + place as u64;
        let sent = self.packets.get_mut(place).filter(|sent| !sent.is_answered)?;
        sent.is_answered = true;
        let Sent { at, bytes, .. } = *sent;
        self.bytes -= u64::from(bytes);
        let mut lost = 0;
        while self
            .packets
            .front()
            .is_some_and(|sent| sent.is_answered || self.first + REORDERED as u64 <= number)
        {
            lost += self.drop_first();
        }
        let (bytes, lost) = (Bytes::new(bytes.into()), Bytes::new(lost));
        Some(Answered { round_trip: now.saturating_since(at), bytes, number, lost })
    }

    /// Forgets the first packet; returns its bytes if it has not been answered.
    fn drop_first(&mut self) -> u64 {
        let missing = self.packets.pop_front().map_or(0, |sent| sent.missing());
        self.first += 1;
        self.bytes -= missing;
        missing
    }
}

impl Sent {
    fn missing(&self) -> u64 {
        if self.is_answered { 0 } else { u64::from(self.bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Span = Span::from_us(100);

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    /// Catches bytes that stay under way after their answer, also where stamps begin anew.
    #[test]
    fn answers_empty_it_in_any_order() {
        let mut under_way = InFlight::default();
        for round in 0..70_000u64 {
            let stamps = [0, 1].map(|_| under_way.send(Bytes::new(10), at(round * 100), TIMEOUT));
            assert_eq!(under_way.bytes(at(round * 100), TIMEOUT), Bytes::new(20));
            let second = under_way.answer(stamps[1], at(round * 100 + 50)).unwrap();
            assert_eq!((second.number, second.round_trip), (2 * round + 1, Span::from_ns(50)));
            assert_eq!(under_way.answer(stamps[1], at(round * 100 + 60)), None);
            assert_eq!(under_way.answer(stamps[0], at(round * 100 + 70)).unwrap().number, 2 * round);
            assert!(under_way.is_empty());
        }
    }

    /// Catches a lost packet that fills the window for ever.
    #[test]
    fn what_is_lost_is_given_up() {
        let mut under_way = InFlight::default();
        under_way.send(Bytes::new(10), at(0), TIMEOUT);
        assert_eq!(under_way.gives_up(at(0), TIMEOUT), at(100_000));
        assert_eq!(under_way.bytes(at(99_999), TIMEOUT), Bytes::new(10));
        assert_eq!(under_way.bytes(at(100_000), TIMEOUT), Bytes::ZERO);
        let mut lost = Bytes::ZERO;
        for number in 0..1_100 {
            let stamp = under_way.send(Bytes::new(10), at(10 + number), TIMEOUT);
            lost += under_way.answer(stamp, at(20 + number)).unwrap().lost;
        }
        assert_eq!((lost, under_way.is_empty()), (Bytes::new(10), true));
    }
}
