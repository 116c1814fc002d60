//! Sending again: packets that full buffers have lost or trimmed, where congestion control answers each.
//!
//! ```text
//!   source                          switch                          destination
//!   kept until answered ── packet ──► full: lost                   Received: which have come?
//!        ▲                          └► or trimmed ── header ─────►   │ new: to the interface
//!        │ sent again, same stamp                                    │ known: answered again
//!        └──── answer: came | header alone, all before … came ◄──────┘ header alone: answered
//! ```
//! A stamp has the last 16 bits of the packet's number in its flow, which stays the same when the packet goes
//! again. So the destination tells a second copy from the first, and the interface gets each packet once.
//! Packets come out of order, as they do over several paths.
//!
//! A packet goes again when its header came alone, or after the algorithm's time-out without an answer. An
//! answer may be lost as well: each says up to which packet all have come.
//!
//! Whenever packets of a flow are late, its time-out doubles for those that go from then on, up to 64 times:
//! once for all that had been sent by then. It halves again after [`ON_FIRST`] packets in a row that were
//! answered without having been sent again. So a time-out that is shorter than the queues does not keep on
//! filling them with copies.
//!
//! # Source
//! Ours, after the selective acknowledgements and the packet trimming of the Ultra Ethernet Specification
//! 1.0, and Handley et al., "Re-architecting datacenter networks and stacks for low latency and high
//! performance", SIGCOMM 2017. The doubling is that of RFC 6298, section 5.5; that copies say nothing of the
//! time that an answer takes is Karn's rule.

use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_congestion::Notice;
use weft_units::{Span, Time};

/// Packets between the first that is not answered and the last sent: half of what 16 bits tell apart.
const MOST: usize = 1 << 14;

/// Doublings of the time-out, at most.
const MOST_BACK_OFF: u8 = 6;

/// Packets in a row that are answered at once, after which the time-out halves.
const ON_FIRST: u16 = 64;

/// The part of an answer that concerns sending again, in the tag of its notice.
///
/// ```text
///   27      17  16  15            0
///  ┌──────────┬───┬───────────────┐
///  │    0     │ H │ before        │   H: the header came alone
///  └──────────┴───┴───────────────┘   before: all packets before this one have come
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Confirmation {
    pub(crate) is_header_alone: bool,
    pub(crate) before: u16,
}

impl Confirmation {
    /// That in a notice.
    pub(crate) fn of(notice: &Notice) -> Confirmation {
        Confirmation { is_header_alone: notice.tag >> 16 & 1 == 1, before: notice.tag as u16 }
    }

    /// The notice with this in its tag.
    pub(crate) fn on(self, notice: Notice) -> Notice {
        Notice { tag: u32::from(self.is_header_alone) << 16 | u32::from(self.before), ..notice }
    }
}

/// A packet that its source keeps.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Kept {
    packet: Packet,
    /// Time at which it was sent last; `None`: it waits to be sent again.
    sent: Option<Time>,
    /// The end of its time-out, as that was when it was sent.
    ends: Time,
    /// Whether it has been sent again.
    is_copy: bool,
}

/// The packets of a flow that are not answered, by number.
#[derive(Serialize, Deserialize)]
pub(crate) struct Unanswered {
    /// Number of the first of them.
    first: u64,
    /// `None`: answered.
    packets: VecDeque<Option<Kept>>,
    /// No packet is late before this.
    due: Time,
    /// So often the time-out has doubled.
    back_off: u8,
    /// The last time at which it did. That packets from before are late as well says nothing new.
    doubled: Time,
    /// Packets in a row that were answered without having been sent again.
    on_first: u16,
}

impl Unanswered {
    /// Those of a flow that begins.
    pub(crate) fn new() -> Unanswered {
        Unanswered {
            first: 0,
            packets: VecDeque::new(),
            due: Time::NEVER,
            back_off: 0,
            doubled: Time::ZERO,
            on_first: 0,
        }
    }

    /// The end of the time-out of a packet that was sent at `sent`.
    fn end(&self, sent: Time, timeout: Span) -> Time {
        sent.saturating_add(timeout.checked_mul(1 << self.back_off).unwrap_or(Span::MAX))
    }

    /// Whether stamps would repeat if another packet went.
    pub(crate) fn is_full(&self) -> bool {
        self.packets.len() >= MOST
    }

    /// A packet goes, stamped with the next number.
    pub(crate) fn keep(&mut self, packet: &Packet, now: Time, timeout: Span) {
        debug_assert!(packet.stamp().value == (self.first + self.packets.len() as u64) as u16, "in turn");
        let ends = self.end(now, timeout);
        self.packets.push_back(Some(Kept { packet: *packet, sent: Some(now), ends, is_copy: false }));
        self.due = self.due.min(ends);
    }

    /// The packet of a stamp has come.
    pub(crate) fn answer(&mut self, stamp: u16) {
        let answered = self.get(stamp).and_then(Option::take);
        if answered.is_some_and(|kept| !kept.is_copy) {
            self.answered_at_once();
        }
        while let Some(None) = self.packets.front() {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    fn answered_at_once(&mut self) {
        self.on_first += 1;
        if self.on_first >= ON_FIRST {
            self.on_first = 0;
            self.back_off = self.back_off.saturating_sub(1);
        }
    }

    /// All packets before that of a stamp have come.
    pub(crate) fn confirm(&mut self, before: u16) {
        let place = usize::from(before.wrapping_sub(self.first as u16));
        if place <= self.packets.len() {
            self.packets.drain(..place);
            self.first += place as u64;
        }
    }

    /// The packet of a stamp is lost: it waits to be sent again. Says whether that is news.
    pub(crate) fn lose(&mut self, stamp: u16) -> bool {
        let kept = self.get(stamp).and_then(Option::as_mut);
        kept.is_some_and(|kept| kept.sent.take().is_some())
    }

    /// The packet of a stamp, if it waits to be sent again.
    pub(crate) fn waiting(&self, stamp: u16) -> Option<&Packet> {
        let place = usize::from(stamp.wrapping_sub(self.first as u16));
        let kept = self.packets.get(place)?.as_ref()?;
        kept.sent.is_none().then_some(&kept.packet)
    }

    /// The packet of a stamp goes again.
    pub(crate) fn resend(&mut self, stamp: u16, now: Time, timeout: Span) {
        let ends = self.end(now, timeout);
        if let Some(Some(kept)) = self.get(stamp) {
            (kept.sent, kept.ends, kept.is_copy) = (Some(now), ends, true);
        }
        self.due = self.due.min(ends);
    }

    /// No packet is late before this time.
    pub(crate) fn due(&self) -> Time {
        self.due
    }

    /// The stamps of packets that are without an answer for too long. They wait to be sent again from now on.
    pub(crate) fn late(&mut self, now: Time) -> Vec<u16> {
        let Unanswered { packets, first, doubled, .. } = self;
        let (mut late, mut earliest, mut is_news) = (Vec::new(), Time::NEVER, false);
        for (kept, number) in packets.iter_mut().zip(*first..) {
            let Some(kept) = kept else { continue };
            let Some(sent) = kept.sent else { continue };
            if kept.ends <= now {
                is_news |= sent >= *doubled;
                kept.sent = None;
                late.push(number as u16);
            } else {
                earliest = earliest.min(kept.ends);
            }
        }
        if is_news {
            self.back_off = (self.back_off + 1).min(MOST_BACK_OFF);
            (self.doubled, self.on_first) = (now, 0);
        }
        self.due = earliest;
        late
    }

    fn get(&mut self, stamp: u16) -> Option<&mut Option<Kept>> {
        self.packets.get_mut(usize::from(stamp.wrapping_sub(self.first as u16)))
    }
}

/// The packets of a flow that have come to its destination.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Received {
    /// All packets before that of this number have come.
    before: u64,
    /// Whether each from there on has; the first has not.
    beyond: VecDeque<bool>,
}

impl Received {
    /// A packet has come. Says whether it is the first of its number.
    pub(crate) fn take(&mut self, stamp: u16) -> bool {
        let place = stamp.wrapping_sub(self.before as u16);
        if usize::from(place) >= 2 * MOST {
            return false; // it lies before: the source keeps no more than MOST under way
        }
        let place = usize::from(place);
        if self.beyond.len() <= place {
            self.beyond.resize(place + 1, false);
        }
        let is_new = !std::mem::replace(&mut self.beyond[place], true);
        while self.beyond.front() == Some(&true) {
            self.beyond.pop_front();
            self.before += 1;
        }
        is_new
    }

    /// The part of an answer to a packet that has come, or whose header has.
    pub(crate) fn confirmation(&self, is_header_alone: bool) -> Confirmation {
        Confirmation { is_header_alone, before: self.before as u16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Addressing, HeaderBits, MessagePart};
    use proptest::prelude::*;
    use weft_congestion::Stamp;
    use weft_units::EndpointId;

    const TIMEOUT: Span = Span::from_us(10);

    fn packet(number: u64) -> Packet {
        let (source, destination) = (EndpointId(0), EndpointId(1));
        let addressing = Addressing { source, destination, message: number as u32 };
        let mut packet = Packet::new(addressing, 64, HeaderBits::EMPTY, MessagePart::Piece);
        packet.set_stamp(Stamp { ecn: false, value: number as u16 });
        packet
    }

    /// Catches a tag whose parts overlap.
    #[test]
    fn a_confirmation_keeps_its_parts() {
        for (is_header_alone, before) in [(false, 0), (true, 0), (false, u16::MAX), (true, 4_711)] {
            let confirmation = Confirmation { is_header_alone, before };
            let notice = confirmation.on(Notice::answer(u64::MAX, 0));
            assert_eq!(Confirmation::of(&Notice::from_parts(notice.head(), notice.word)), confirmation);
        }
    }

    /// Catches a late packet that is not found, one that is found twice, or one that is late before its time.
    #[test]
    fn packets_without_an_answer_are_late_once() {
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        let mut kept = Unanswered::new();
        for number in 0..4 {
            kept.keep(&packet(number), at(number), TIMEOUT);
        }
        kept.answer(1);
        assert_eq!((kept.due(), kept.late(at(9))), (at(10), vec![]));
        // The time-out doubles with that, of what goes from now on.
        assert_eq!((kept.late(at(12)), kept.due()), (vec![0, 2], at(13)));
        assert_eq!((kept.late(at(12)), kept.lose(0)), (vec![], false));
        kept.resend(0, at(12), TIMEOUT);
        assert!(kept.waiting(0).is_none() && kept.waiting(2).is_some() && kept.waiting(1).is_none());
        kept.confirm(3);
        assert!(kept.waiting(2).is_none());
        assert_eq!((kept.late(at(12)), kept.late(at(13)), kept.back_off), (vec![], vec![3], 1));
        kept.answer(3);
        assert!(kept.packets.is_empty());
    }

    /// Catches a time-out that does not double, that grows without end, that an answer to a copy resets, or
    /// that never comes down again.
    #[test]
    fn the_time_out_doubles_until_answers_come_in_time() {
        let mut kept = Unanswered::new();
        let mut now = Time::ZERO;
        kept.keep(&packet(0), now, TIMEOUT);
        for doublings in [0, 1, 2, 3, 4, 5, 6, 6, 6] {
            let end = now + TIMEOUT * (1 << doublings);
            assert_eq!(kept.late(Time::from_ps(end.as_ps() - 1)), vec![]);
            assert_eq!((kept.due(), kept.late(end)), (end, vec![0]));
            now = end;
            kept.resend(0, now, TIMEOUT);
        }
        kept.answer(0);
        assert_eq!(kept.back_off, MOST_BACK_OFF, "a copy says nothing");
        for number in 1..=u64::from(ON_FIRST) {
            kept.keep(&packet(number), now, TIMEOUT);
            kept.answer(number as u16);
        }
        assert_eq!(kept.back_off, MOST_BACK_OFF - 1);
    }

    /// Catches a time-out that doubles with each packet of a burst that is lost: the last would go again
    /// after hundreds of time-outs.
    #[test]
    fn a_lost_burst_doubles_the_time_out_once() {
        let mut kept = Unanswered::new();
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        for number in 0..9 {
            kept.keep(&packet(number), at(number), TIMEOUT);
        }
        for number in 0..9 {
            assert_eq!((kept.due(), kept.late(at(10 + number))), (at(10 + number), vec![number as u16]));
            kept.resend(number as u16, at(10 + number), TIMEOUT);
        }
        assert_eq!((kept.back_off, kept.due()), (1, at(30)));
        // The copies are lost as well.
        assert_eq!((kept.late(at(38)).len(), kept.back_off), (9, 2));
    }

    proptest! {
        /// A network that loses, delays, repeats and trims packets and loses answers: each packet is handed
        /// over once and the source ends with nothing kept, also beyond the numbers that a stamp tells apart.
        #[test]
        fn each_packet_is_handed_over_once(
            total in 1u64..300,
            start in prop::sample::select(vec![0u64, 65_500, (1 << 20) - 7]),
            chances in prop::collection::vec(any::<u8>(), 4_000),
        ) {
            let mut source = Unanswered { first: start, ..Unanswered::new() };
            let mut destination = Received { before: start, ..Received::default() };
            let mut chances = chances.into_iter().cycle();
            let (mut handed, mut under_way) = (vec![0u32; total as usize], Vec::new());
            let (mut next, mut now, mut again) = (start, Time::ZERO, Vec::new());
            let mut steps = 0;
            while next < start + total || !source.packets.is_empty() {
                steps += 1;
                prop_assert!(steps < 1_000_000, "it never ends");
                let chance = chances.next().unwrap();
                now += Span::from_us(1);
                again.extend(source.late(now));
                if let Some(stamp) = again.pop() {
                    if let Some(packet) = source.waiting(stamp).copied() {
                        source.resend(stamp, now, TIMEOUT);
                        under_way.push(packet);
                    }
                } else if next < start + total && !source.is_full() {
                    let packet = packet(next);
                    source.keep(&packet, now, TIMEOUT);
                    under_way.push(packet);
                    next += 1;
                }
                if under_way.is_empty() || chance < 60 {
                    continue;
                }
                let came = under_way.remove(usize::from(chance) % under_way.len());
                let stamp = came.stamp().value;
                let is_header_alone = chance % 5 == 0;
                if chance % 7 == 0 {
                    continue; // lost
                }
                if chance % 11 == 0 {
                    under_way.push(came); // a link repeats it
                }
                if !is_header_alone && destination.take(stamp) {
                    handed[(u64::from(came.message) - (start & u64::from(u32::MAX))) as usize] += 1;
                }
                let answer = destination.confirmation(is_header_alone);
                if chance % 13 == 0 {
                    continue; // the answer is lost
                }
                if !answer.is_header_alone {
                    source.answer(stamp);
                } else if source.lose(stamp) {
                    again.push(stamp);
                }
                source.confirm(answer.before);
            }
            prop_assert!(handed.iter().all(|count| *count == 1), "{:?}", handed);
        }
    }
}
