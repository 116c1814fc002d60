//! InfiniBand's congestion control: marks beyond a threshold, a table of delays.
//!
//! ```text
//!   link: queue > threshold, and space behind the link ──► FECN in a packet
//!   destination: FECN ──► BECN, a notice
//!   source: BECN ──► index += increase;  timer ──► index -= 1;  delay after a packet = table[index]
//! ```
//! The delay is (time of the packet >> shift) × multiplier: [`Parameters::delay`].
//!
//! # Not modelled
//! Marks in acknowledgements: a notice of its own carries each BECN. The table has one shape, linear in the
//! index. All flows of a source have an index of their own, as with `QP` granularity.
//!
//! # Source
//! InfiniBand Architecture Specification, Vol. 1, annex A10, by its parameters. A packet is marked at the
//! root of congestion alone: not where the link itself waits for credits, unless `marks_victims`.

use crate::algorithm::{Algorithm, Arrival, Crossing, Notice, Path, Stamp};
use crate::keys::{Configured, CongestionKeys, FlowSetting, of};
use crate::pacer::Pacer;
use serde::{Deserialize, Serialize};
use weft_keys::{Condition, CountFromZero};
use weft_units::{BitRate, Bytes, Span, Time};

const OWN: Condition<'static> = of(&["ib"]);

weft_keys::keys! {
    /// The keys of InfiniBand's congestion control in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub struct IbKeys {
        /// Queue before a link beyond which packets are marked.
        threshold: Option<Bytes>, only_where(OWN);
        /// Unmarked packets between two that are marked.
        marking_rate: Option<CountFromZero>, only_where(OWN);
        /// Smaller packets are not marked.
        packet_size: Option<Bytes>, only_where(OWN);
        /// Whether links that wait for credits mark too.
        marks_victims: Option<bool>, only_where(OWN);
        /// Steps in the table of delays for each notification.
        increase: Option<u32>, only_where(OWN);
        /// The last place of the table.
        limit: Option<u32>, only_where(OWN);
        /// Between two steps back.
        timer: Option<Span>, not_zero("20us"), only_where(OWN);
        /// Places of the table for each packet's time of delay, as a power of two from 0 to 3.
        shift: Option<CountFromZero>, within(CountFromZero(0), CountFromZero(3)), only_where(OWN);
    }
}

/// Constants of InfiniBand's congestion control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parameters {
    /// A queue beyond this marks.
    pub threshold: Bytes,
    /// Packets that go unmarked between two that are marked.
    pub marking_rate: u32,
    /// Smaller packets are not marked.
    pub packet_size: Bytes,
    /// Whether links without credits mark too.
    pub marks_victims: bool,
    /// Steps of the index for each BECN.
    pub increase: u32,
    /// Largest index.
    pub limit: u32,
    /// Between two steps back.
    pub timer: Span,
    /// Binary logarithm of the entries between two whole packet times of delay, 0 to 3.
    pub shift: u32,
}

impl Parameters {
    /// The delay after a packet that takes `packet` on the line.
    pub fn delay(&self, index: u32, packet: Span) -> Span {
        (Span::from_ps(packet.as_ps() >> self.shift)) * u64::from(index)
    }
}

/// Packets since the last mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Link {
    unmarked: u32,
}

/// The index of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    rate: BitRate,
    index: u32,
    /// The time from which the timer runs that takes the next step back.
    timer: Time,
    pacer: Pacer,
}

impl Flow {
    /// The index at `now`, and the time from which the timer then runs.
    fn index_at(&self, now: Time, parameters: &Parameters) -> (u32, Time) {
        let steps = now.saturating_since(self.timer).as_ps() / parameters.timer.as_ps().max(1);
        match u32::try_from(steps) {
            Ok(steps) if steps < self.index => {
                (self.index - steps, self.timer + parameters.timer * u64::from(steps))
            }
            _ => (0, now),
        }
    }

    /// Place in the table of delays at `now`.
    pub fn index(&self, now: Time, parameters: &Parameters) -> u32 {
        self.index_at(now, parameters).0
    }
}

/// InfiniBand's congestion control.
pub struct Ib;

impl Algorithm for Ib {
    type Parameters = Parameters;
    type Link = Link;
    type Flow = Flow;
    type Receiver = ();

    fn cross(
        link: &mut Link,
        stamp: &mut Stamp,
        crossing: &Crossing,
        (_, parameters): (&mut dyn FnMut() -> u64, &Parameters),
    ) {
        if !Ib::concerns(crossing, parameters) {
            return;
        }
        if link.unmarked < parameters.marking_rate {
            link.unmarked += 1;
        } else {
            link.unmarked = 0;
            stamp.ecn = true;
        }
    }

    fn concerns(crossing: &Crossing, parameters: &Parameters) -> bool {
        let is_root = !crossing.starved || parameters.marks_victims;
        crossing.queue > parameters.threshold && is_root && crossing.bytes >= parameters.packet_size
    }

    fn open(path: &Path, now: Time, _: &Parameters) -> Flow {
        Flow { rate: path.rate, index: 0, timer: now, pacer: Pacer::default() }
    }

    fn earliest(flow: &Flow, _: Bytes, now: Time, _: &Parameters) -> Time {
        flow.pacer.earliest(now)
    }

    fn send(flow: &mut Flow, bytes: Bytes, now: Time, parameters: &Parameters) -> u16 {
        (flow.index, flow.timer) = flow.index_at(now, parameters);
        let packet = flow.rate.span(bytes);
        flow.pacer.hold(now, packet + parameters.delay(flow.index, packet));
        0
    }

    fn learn(flow: &mut Flow, _: &Notice, now: Time, parameters: &Parameters) {
        (flow.index, flow.timer) = flow.index_at(now, parameters);
        flow.index = (flow.index + parameters.increase).min(parameters.limit);
    }

    fn is_as_new(flow: &Flow, now: Time, parameters: &Parameters) -> bool {
        flow.index(now, parameters) == 0 && flow.pacer.earliest(now) == now
    }

    fn rate(flow: &Flow, now: Time, parameters: &Parameters) -> BitRate {
        let entries = 1 << parameters.shift;
        let rate = flow.rate.bits_per_second() * entries;
        BitRate::from_bits_per_second(rate / (entries + u64::from(flow.index(now, parameters))))
    }

    fn receive((): &mut (), arrival: &Arrival, _: &Parameters) -> Option<Notice> {
        arrival.stamp.ecn.then(|| Notice::answer(0, 0))
    }
}

impl Configured for Ib {
    fn parameters(keys: &CongestionKeys, flow: &FlowSetting<'_>) -> Parameters {
        let keys = &keys.ib;
        Parameters {
            threshold: keys.threshold.unwrap_or(flow.path.packet * 8),
            marking_rate: keys.marking_rate.map_or(0, |CountFromZero(rate)| rate),
            packet_size: keys.packet_size.unwrap_or(Bytes::ZERO),
            marks_victims: keys.marks_victims.unwrap_or(false),
            increase: keys.increase.unwrap_or(1),
            limit: keys.limit.unwrap_or(127),
            timer: keys.timer.unwrap_or(Span::from_ps(153_600_000)),
            shift: keys.shift.map_or(3, |CountFromZero(shift)| shift),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: Parameters = Parameters {
        threshold: Bytes::new(8_000),
        marking_rate: 2,
        packet_size: Bytes::new(100),
        marks_victims: false,
        increase: 3,
        limit: 10,
        timer: Span::from_us(10),
        shift: 1,
    };

    fn crossing(queue: u64) -> Crossing {
        let rate = BitRate::from_gigabits(10);
        Crossing {
            now: Time::ZERO,
            bytes: Bytes::new(1_000),
            queue: Bytes::new(queue),
            rate,
            carries: rate,
            credit_words: Bytes::ZERO,
            hop: 1,
            starved: false,
        }
    }

    fn is_marked(link: &mut Link, crossing: &Crossing) -> bool {
        let mut stamp = Stamp::default();
        Ib::cross(link, &mut stamp, crossing, (&mut || 0, &PARAMETERS));
        stamp.ecn
    }

    /// Catches marks below the threshold, in small packets, by victims, and a wrong marking rate.
    #[test]
    fn one_packet_in_three_is_marked_at_the_root_alone() {
        let mut link = Link::default();
        assert!((0..9).all(|_| !is_marked(&mut link, &crossing(8_000))));
        let ecn: Vec<bool> = (0..6).map(|_| is_marked(&mut link, &crossing(8_001))).collect();
        assert_eq!(ecn, [false, false, true, false, false, true]);
        let mut eager = Link { unmarked: 2 };
        assert!(!is_marked(&mut eager, &Crossing { starved: true, ..crossing(9_000) }));
        assert!(!is_marked(&mut eager, &Crossing { bytes: Bytes::new(99), ..crossing(9_000) }));
        assert!(is_marked(&mut eager, &crossing(9_000)));
    }

    /// Catches an index that leaves its bounds or steps back at the wrong time, and a wrong delay.
    #[test]
    fn the_index_rises_with_notices_and_falls_with_the_timer() {
        let path = Path::new(BitRate::from_gigabits(10), Span::from_us(1), Bytes::new(1_000));
        let at = |us| Time::ZERO + Span::from_us(us);
        let mut flow = Ib::open(&path, at(0), &PARAMETERS);
        let notice = Notice::answer(0, 0);
        Ib::learn(&mut flow, &notice, at(100), &PARAMETERS);
        assert_eq!(flow.index(at(100), &PARAMETERS), 3);
        assert_eq!(flow.index(at(109), &PARAMETERS), 3);
        assert_eq!(flow.index(at(110), &PARAMETERS), 2);
        assert_eq!(flow.index(at(129), &PARAMETERS), 1);
        (0..4).for_each(|_| Ib::learn(&mut flow, &notice, at(129), &PARAMETERS));
        assert_eq!(flow.index(at(129), &PARAMETERS), 10);
        // 800 ns on the line, and 10 times half of it.
        Ib::send(&mut flow, Bytes::new(1_000), at(129), &PARAMETERS);
        assert_eq!(
            Ib::earliest(&flow, Bytes::new(1_000), at(129), &PARAMETERS),
            at(129) + Span::from_ns(4_800)
        );
        assert_eq!(Ib::rate(&flow, at(129), &PARAMETERS).bits_per_second(), 10_000_000_000 / 6);
        assert_eq!(flow.index(at(1_000), &PARAMETERS), 0);
        assert!(Ib::is_as_new(&flow, at(1_000), &PARAMETERS) && !Ib::is_as_new(&flow, at(129), &PARAMETERS));
    }
}
