//! Packets of a flow that are under way: sent and not answered.

use crate::algorithm::Repair;
use crate::answers::Answer;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{Bytes, Span, Time};

/// Answers that may overtake one another by so many packets; what is older has been lost for good.
const REORDERED: usize = 1_024;

/// State of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum State {
    UnderWay,
    Answered,
    /// Lost, and not sent again yet.
    Lost,
}

/// A packet that has been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Sent {
    at: Time,
    bytes: u32,
    state: State,
}

/// Packets that one answer has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answered {
    /// From when the last of them was sent until its answer came, less its wait for that.
    pub(crate) round_trip: Span,
    /// Bytes of all of them.
    pub(crate) bytes: Bytes,
    /// Number of the last, counted from the flow's beginning.
    pub(crate) number: u64,
    /// Bytes of packets before it that have been given up.
    pub(crate) lost: Bytes,
}

/// Packets under way, by their number. A stamp has the number's last 16 bits.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct InFlight {
    packets: VecDeque<Sent>,
    /// Number of the first of them.
    first: u64,
    bytes: u64,
    /// Whether lost packets are sent again. If so, none is ever given up.
    are_resent: bool,
}

impl InFlight {
    /// Nothing is under way.
    pub(crate) fn new(repair: Repair) -> InFlight {
        InFlight { are_resent: repair != Repair::None, ..InFlight::default() }
    }

    /// Bytes under way at `now`; those sent `timeout` ago and before count as lost.
    pub(crate) fn bytes(&self, now: Time, timeout: Span) -> Bytes {
        let late = |sent: &&Sent| self.is_given_up(sent, now, timeout);
        let lost: u64 = self.packets.iter().take_while(late).map(Sent::missing).sum();
        Bytes::new(self.bytes - lost)
    }

    /// Until when another packet waits; `None`: it may go. `fits`: whether it may beside so many bytes. One
    /// packet may always go.
    #[inline]
    pub(crate) fn full_until(&self, fits: impl Fn(Bytes) -> bool, now: Time, timeout: Span) -> Option<Time> {
        // Where all of them fit, it does not matter which of them are lost.
        if self.bytes == 0 || fits(Bytes::new(self.bytes)) {
            return None;
        }
        let under_way = self.bytes(now, timeout);
        (under_way > Bytes::ZERO && !fits(under_way)).then(|| self.gives_up(now, timeout))
    }

    fn is_given_up(&self, sent: &Sent, now: Time, timeout: Span) -> bool {
        !self.are_resent && sent.at.saturating_add(timeout) <= now
    }

    /// Time at which the oldest packet will be given up; [`Time::NEVER`]: none will be.
    pub(crate) fn gives_up(&self, now: Time, timeout: Span) -> Time {
        if self.are_resent {
            return Time::NEVER;
        }
        let ends = self.packets.iter().filter(|sent| sent.state == State::UnderWay);
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
            .is_some_and(|sent| sent.state == State::Answered || self.is_given_up(sent, at, timeout))
        {
            self.drop_first();
        }
        let stamp = self.next() as u16;
        self.packets.push_back(Sent { at, bytes: bytes.get() as u32, state: State::UnderWay });
        self.bytes += bytes.get();
        stamp
    }

    /// The packet with this stamp counts as lost; returns its bytes. `None`: it is not under way.
    pub(crate) fn lose(&mut self, stamp: u16) -> Option<Bytes> {
        let (sent, _) = self.get(stamp)?;
        if sent.state != State::UnderWay {
            return None;
        }
        sent.state = State::Lost;
        let bytes = Bytes::new(sent.bytes.into());
        self.bytes -= bytes.get();
        Some(bytes)
    }

    /// The lost packet with this stamp goes again.
    pub(crate) fn resend(&mut self, stamp: u16, now: Time) {
        if let Some((sent, _)) = self.get(stamp)
            && sent.state == State::Lost
        {
            (sent.at, sent.state) = (now, State::UnderWay);
            let bytes = u64::from(sent.bytes);
            self.bytes += bytes;
        }
    }

    /// An answer has come. `None`: all its packets were answered before, or given up.
    pub(crate) fn answer_all(&mut self, answer: &Answer, now: Time) -> Option<Answered> {
        let mut all: Option<Answered> = None;
        for stamp in answer.stamps() {
            if let Some(one) = self.answer(stamp, now) {
                let (bytes, lost) = all.map_or((Bytes::ZERO, Bytes::ZERO), |all| (all.bytes, all.lost));
                all = Some(Answered { bytes: bytes + one.bytes, lost: lost + one.lost, ..one });
            }
        }
        let all = all?;
        Some(Answered { round_trip: all.round_trip.saturating_sub(answer.wait), ..all })
    }

    /// An answer has come to the packet with this stamp. `None`: it has come before, or it was given up.
    pub(crate) fn answer(&mut self, stamp: u16, now: Time) -> Option<Answered> {
        let (sent, number) = self.get(stamp)?;
        let missing = sent.missing();
        if sent.state == State::Answered {
            return None;
        }
        sent.state = State::Answered;
        let Sent { at, bytes, .. } = *sent;
        self.bytes -= missing;
        let lost = self.drop_answered(number);
        let (bytes, lost) = (Bytes::new(bytes.into()), Bytes::new(lost));
        Some(Answered { round_trip: now.saturating_since(at), bytes, number, lost })
    }

    /// All packets before the one of this stamp have come.
    pub(crate) fn confirm(&mut self, before: u16) {
        let place = usize::from(before.wrapping_sub(self.first as u16));
        if place <= self.packets.len() {
            for _ in 0..place {
                self.drop_first();
            }
        }
    }

    /// The packet with this stamp, and its number.
    fn get(&mut self, stamp: u16) -> Option<(&mut Sent, u64)> {
        let place = usize::from(stamp.wrapping_sub(self.first as u16));
        let number = self.first + place as u64;
        Some((self.packets.get_mut(place)?, number))
    }

    /// Forgets the first packets as far as they are answered, or so far before the one of `number` that they
    /// are given up. Returns the bytes of the latter.
    fn drop_answered(&mut self, number: u64) -> u64 {
        let mut lost = 0;
        while let Some(sent) = self.packets.front()
            && (sent.state == State::Answered || !self.are_resent && self.first + REORDERED as u64 <= number)
        {
            lost += self.drop_first();
        }
        lost
    }

    /// Forgets the first packet; returns its bytes if it was under way.
    fn drop_first(&mut self) -> u64 {
        let missing = self.packets.pop_front().map_or(0, |sent| sent.missing());
        self.first += 1;
        self.bytes -= missing;
        missing
    }
}

impl Sent {
    /// Bytes that are under way.
    fn missing(&self) -> u64 {
        if self.state == State::UnderWay { u64::from(self.bytes) } else { 0 }
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

    /// Catches a lost packet whose bytes stay under way or are counted twice when it goes again, a second
    /// answer that counts, and a packet that is given up although it will be sent again.
    #[test]
    fn what_is_lost_goes_again() {
        let mut under_way = InFlight::new(Repair::Resend);
        let stamps: Vec<u16> = (0..3).map(|ns| under_way.send(Bytes::new(10), at(ns), TIMEOUT)).collect();
        assert_eq!(under_way.lose(stamps[0]), Some(Bytes::new(10)));
        assert_eq!((under_way.lose(stamps[0]), under_way.bytes(at(10), TIMEOUT)), (None, Bytes::new(20)));
        assert_eq!(under_way.answer(stamps[1], at(500)).unwrap().number, 1);
        under_way.resend(stamps[0], at(1_000));
        under_way.resend(stamps[0], at(2_000));
        assert_eq!(under_way.bytes(at(900_000), TIMEOUT), Bytes::new(20));
        assert_eq!(under_way.gives_up(at(1_000), TIMEOUT), Time::NEVER);
        let again = under_way.answer(stamps[0], at(1_400)).unwrap();
        assert_eq!((again.number, again.round_trip), (0, Span::from_ns(400)));
        assert_eq!(under_way.answer(stamps[0], at(1_500)), None);
        assert_eq!(under_way.bytes(at(1_500), TIMEOUT), Bytes::new(10));
        // The answer to the last is lost, and a later one says that all before it have come.
        under_way.confirm(3);
        assert!(under_way.is_empty());
        assert_eq!((under_way.next(), under_way.bytes(at(1_500), TIMEOUT)), (3, Bytes::ZERO));
        under_way.confirm(2);
        assert_eq!(under_way.next(), 3, "what was confirmed before is no news");
    }
}
