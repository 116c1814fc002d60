//! HPCC: links measure how much they are used, sources set their window by the most used one.
//!
//! ```text
//!   link, each packet:  u = txRate/B + min(q, q_before)/(B·T)
//!                       U = U·(1 - τ/T) + u·τ/T,        τ = time since the packet before, at most T
//!   source, each answer, with U of the most used link:
//!     U ≥ η, or stage ≥ most:  W = W_c·η/U + W_AI,   stage = 0
//!     otherwise:               W = W_c + W_AI,       stage += 1      W_c = W once per round trip
//!   rate = W / T
//! ```
//! # Simplified
//! Packets do not carry the counters of each link for the source to compute U: links do, as in PINT, and a
//! packet carries the largest, in 16 bits. So U has all packets of a link, not one flow's samples.
//!
//! # Paper and code
//! The paper has a window with a rate W/T; the authors' simulation has the same equations on rates. This is
//! the paper's. As in that simulation a packet goes unless as much is under way as the window has.
//!
//! # Source
//! Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, algorithm 1; Ben Basat et al., "PINT:
//! Probabilistic In-band Network Telemetry", SIGCOMM 2020, section 4.3.

use crate::algorithm::{Algorithm, Arrival, Crossing, Notice, Path, Stamp};
use crate::answers::Answering;
use crate::in_flight::InFlight;
use crate::keys::{Configured, CongestionKeys, FlowSetting, of};
use crate::pacer::Pacer;
use serde::{Deserialize, Serialize};
use weft_keys::Condition;
use weft_units::{BitRate, Bytes, Span, Time};

/// U of 1, in fixed point.
const ONE: u64 = 1 << 12;
const PS_PER_S: u128 = 1_000_000_000_000;

const OWN: Condition<'static> = of(&["hpcc"]);

weft_keys::keys! {
    /// The keys of HPCC in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub struct HpccKeys {
        /// Thousandths of a link that are to be used.
        aim: Option<u32>, within(1, 1_000), only_where(OWN);
        /// Rounds of additive increase before a multiplicative one.
        stages: Option<u32>, only_where(OWN);
        /// Bytes by which a window grows at once.
        additive_bytes: Option<Bytes>, only_where(OWN);
    }
}

/// Constants of HPCC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parameters {
    /// T: the longest round trip through the empty network.
    pub round_trip: Span,
    /// η in thousandths: the use of links that is aimed at.
    pub aim: u32,
    /// Rounds of additive increase before a multiplicative one.
    pub most_stages: u32,
    /// W_AI.
    pub additive: Bytes,
    /// A packet without an answer for so long is lost.
    pub timeout: Span,
    /// The rule by which destinations answer.
    pub answering: Answering,
}

/// The use of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Link {
    last: Time,
    /// Bytes of the last packet, which the line carries from then on.
    bytes: u64,
    queue: u64,
    /// U in units of 2⁻¹², times 2¹⁶.
    used: u64,
}

impl Link {
    /// A packet leaves: the use of the link, in units of 2⁻¹².
    #[inline]
    fn measure(&mut self, crossing: &Crossing, round_trip: Span) -> u64 {
        /// A byte in the fixed point of `used`, over a rate and a time.
        const BYTE: u128 = 8 * PS_PER_S * ((ONE as u128) << 16);
        let (t, since) = (round_trip.as_ps(), crossing.now.saturating_since(self.last).as_ps());
        let tau = since.min(t);
        let whole = u128::from(crossing.rate.bits_per_second()) * u128::from(t);
        let queue = crossing.queue.get().min(self.queue);
        // u·τ/T: of txRate/B, the bits since the packet before over B·T, spread over that time. Divisions of
        // 128 bits take long: those by something that cancels are left out.
        let mut new = u128::from(self.bytes) * BYTE / whole;
        if since > t || since == 0 {
            new = new * u128::from(tau) / u128::from(since.max(1));
        }
        if queue > 0 {
            new += u128::from(queue) * BYTE / whole * u128::from(tau) / u128::from(t);
        }
        let stays = match self.used.checked_mul(t - tau) {
            Some(product) => u128::from(product / t),
            None => u128::from(self.used) * u128::from(t - tau) / u128::from(t),
        };
        self.used = (stays + new) as u64;
        (self.last, self.bytes, self.queue) = (crossing.now, crossing.bytes.get(), crossing.queue.get());
        self.used >> 16
    }
}

/// The window of a flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    path: Path,
    /// W, and W_c, in bytes times 2⁸.
    window: u64,
    reference: u64,
    stage: u32,
    /// Number of the first packet that was sent after W_c was last set.
    updated: u64,
    in_flight: InFlight,
    /// Number of the next answer: packets of a flow stay in order.
    answers: u64,
    pacer: Pacer,
}

impl Flow {
    fn largest(&self, parameters: &Parameters) -> u64 {
        let bits = u128::from(self.path.rate.bits_per_second()) * u128::from(parameters.round_trip.as_ps());
        ((bits / 8 / PS_PER_S) as u64).max(self.path.packet.get()) << 8
    }

    fn pace(&self, parameters: &Parameters) -> BitRate {
        let bits =
            u128::from(self.window) * 8 * PS_PER_S / 256 / u128::from(parameters.round_trip.as_ps().max(1));
        BitRate::from_bits_per_second((bits as u64).clamp(1, self.path.rate.bits_per_second()))
    }
}

/// Packets of a flow that have come and are not answered yet. They come in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Receiver {
    packets: u64,
    bytes: u64,
    first_came: Time,
    /// U that the last one has brought.
    used: u16,
}

impl Receiver {
    /// The answer to all that have come: U in 16 bits, and above it their number.
    fn answer(&mut self) -> Notice {
        let Receiver { packets, used, .. } = std::mem::take(self);
        Notice::answer(packets << 16 | u64::from(used), 0)
    }
}

/// HPCC.
pub struct Hpcc;

impl Algorithm for Hpcc {
    type Parameters = Parameters;
    type Link = Link;
    type Flow = Flow;
    type Receiver = Receiver;

    const MEASURES: bool = true;

    fn cross(
        link: &mut Link,
        stamp: &mut Stamp,
        crossing: &Crossing,
        (_, parameters): (&mut dyn FnMut() -> u64, &Parameters),
    ) {
        let used = link.measure(crossing, parameters.round_trip);
        // The source's own number travels until the first link has measured.
        let before = if crossing.hop == 0 { 0 } else { stamp.value };
        stamp.value = before.max(u16::try_from(used).unwrap_or(u16::MAX));
    }

    fn open(path: &Path, _: Time, parameters: &Parameters) -> Flow {
        let mut flow = Flow {
            path: *path,
            window: 0,
            reference: 0,
            stage: 0,
            updated: 0,
            in_flight: InFlight::default(),
            answers: 0,
            pacer: Pacer::default(),
        };
        flow.window = flow.largest(parameters);
        flow.reference = flow.window;
        flow
    }

    /// A packet goes unless as much is under way as the window has, as in the authors' simulation: one that
    /// had to fit would leave a flow of few packets less than its window by up to one, and for ever.
    fn earliest(flow: &Flow, _: Bytes, now: Time, parameters: &Parameters) -> Time {
        let fits = |under_way: Bytes| under_way.get() << 8 < flow.window;
        let full_until = flow.in_flight.full_until(fits, now, parameters.timeout);
        full_until.unwrap_or_else(|| flow.pacer.earliest(now))
    }

    fn send(flow: &mut Flow, bytes: Bytes, now: Time, parameters: &Parameters) -> u16 {
        flow.in_flight.send(bytes, now, parameters.timeout);
        flow.pacer.send(bytes, flow.pace(parameters), now);
        0
    }

    fn learn(flow: &mut Flow, notice: &Notice, now: Time, parameters: &Parameters) {
        let mut last = None;
        for _ in 0..notice.word >> 16 {
            let Some(answered) = flow.in_flight.answer(flow.answers as u16, now) else {
                // Lost packets were given up meanwhile.
                flow.answers = flow.in_flight.next();
                break;
            };
            flow.answers = answered.number + 1;
            last = Some(answered.number);
        }
        let Some(last) = last else { return };
        let is_new = last >= flow.updated;
        let (used, before) = (notice.word & 0xffff, flow.pace(parameters));
        let aim = ONE * u64::from(parameters.aim) / 1_000;
        let additive = parameters.additive.get() << 8;
        if used >= aim || flow.stage >= parameters.most_stages {
            flow.window =
                (u128::from(flow.reference) * u128::from(aim) / u128::from(used.max(1))) as u64 + additive;
            if is_new {
                flow.stage = 0;
            }
        } else {
            flow.window = flow.reference + additive;
            if is_new {
                flow.stage += 1;
            }
        }
        flow.window = flow.window.clamp(1 << 8, flow.largest(parameters));
        if is_new {
            (flow.reference, flow.updated) = (flow.window, flow.in_flight.next());
        }
        flow.pacer.change(before, flow.pace(parameters), now);
    }

    fn is_as_new(flow: &Flow, _: Time, parameters: &Parameters) -> bool {
        flow.in_flight.is_empty() && flow.window == flow.largest(parameters) && flow.stage == 0
    }

    fn rate(flow: &Flow, _: Time, parameters: &Parameters) -> BitRate {
        flow.pace(parameters)
    }

    fn receive(receiver: &mut Receiver, arrival: &Arrival, parameters: &Parameters) -> Option<Notice> {
        if receiver.packets == 0 {
            receiver.first_came = arrival.now;
        }
        receiver.packets += 1;
        receiver.bytes += arrival.bytes.get();
        receiver.used = arrival.stamp.value;
        (receiver.bytes >= parameters.answering.every.get()).then(|| receiver.answer())
    }

    fn answers_by(receiver: &Receiver, parameters: &Parameters) -> Time {
        match receiver.packets {
            0 => Time::NEVER,
            _ => receiver.first_came.saturating_add(parameters.answering.wait),
        }
    }

    fn answer(receiver: &mut Receiver, now: Time, parameters: &Parameters) -> Option<Notice> {
        (Hpcc::answers_by(receiver, parameters) <= now).then(|| receiver.answer())
    }
}

impl Configured for Hpcc {
    fn parameters(keys: &CongestionKeys, flow: &FlowSetting<'_>) -> Parameters {
        let keys = &keys.hpcc;
        Parameters {
            round_trip: flow.round_trip,
            aim: keys.aim.unwrap_or(950),
            most_stages: keys.stages.unwrap_or(5),
            additive: keys.additive_bytes.unwrap_or(flow.part(50, 1_000 * 20)),
            timeout: flow.timeout,
            answering: flow.answering,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: Parameters = Parameters {
        round_trip: Span::from_us(10),
        aim: 950,
        most_stages: 5,
        additive: Bytes::new(80),
        timeout: Span::from_us(1_000),
        answering: Answering::EACH,
    };

    fn at(ns: u64) -> Time {
        Time::ZERO + Span::from_ns(ns)
    }

    fn path() -> Path {
        Path::new(BitRate::from_gigabits(100), Span::from_us(10), Bytes::new(1_000))
    }

    /// Catches a use that is not txRate/B + q/(B·T), weighted by time.
    #[test]
    fn a_link_measures_its_use() {
        let mut link = Link::default();
        let mut expected = 0.0f64;
        let (mut now, mut queue_before) = (0u64, 0f64);
        let (rate, t) = (100e9, 10e-6);
        for packet in 0..2_000u64 {
            // 80 ns on the line, so half of it is used; the queue is half of the bytes of B·T at times.
            let queue = if packet > 1_000 { 62_500u64 } else { 0 };
            let crossing = Crossing {
                now: at(now),
                bytes: Bytes::new(1_000),
                queue: Bytes::new(queue),
                rate: BitRate::from_gigabits(100),
                carries: BitRate::from_gigabits(100),
                credit_words: Bytes::ZERO,
                hop: 1,
                starved: false,
            };
            let used = link.measure(&crossing, PARAMETERS.round_trip);
            if packet > 0 {
                let tau = 160e-9;
                let u = 8_000.0 / tau / rate + queue_before.min(queue as f64) * 8.0 / (rate * t);
                expected = expected * (1.0 - tau / t) + u * tau / t;
            }
            queue_before = queue as f64;
            assert!((used as f64 / ONE as f64 - expected).abs() < 0.01, "{packet}: {used} {expected}");
            now += 160;
        }
        assert!((expected - 1.0).abs() < 0.01, "{expected}");
    }

    /// Catches a window that does not follow the algorithm, answer by answer.
    #[test]
    fn the_window_follows_the_algorithm() {
        let mut flow = Hpcc::open(&path(), at(0), &PARAMETERS);
        let (largest, additive) = (125_000.0, 80.0);
        let (mut window, mut reference, mut stage, mut updated) = (largest, largest, 0, 0u64);
        let (mut next, mut under_way) = (0u64, std::collections::VecDeque::new());
        for step in 0..400u64 {
            let now = at(step * 100);
            Hpcc::send(&mut flow, Bytes::new(1_000), now, &PARAMETERS);
            under_way.push_back(next);
            next += 1;
            if step < 10 {
                continue;
            }
            let used = [8_000, 6_000, 3_000, 1_000, 3_890][(step / 60 % 5) as usize];
            Hpcc::learn(&mut flow, &Notice::answer(1 << 16 | used, 0), now, &PARAMETERS);
            let number: u64 = under_way.pop_front().unwrap();
            let is_new = number >= updated;
            let aim = (4_096 * 950 / 1_000) as f64;
            if used as f64 >= aim || stage >= 5 {
                window = reference * aim / used as f64 + additive;
                stage = if is_new { 0 } else { stage };
            } else {
                window = reference + additive;
                stage += i32::from(is_new);
            }
            window = window.min(largest);
            if is_new {
                (reference, updated) = (window, next);
            }
            let ours = flow.window as f64 / 256.0;
            assert!((ours - window).abs() < 1.0 && flow.stage as i32 == stage, "{step}: {ours} {window}");
        }
        assert!(window < largest / 2.0);
    }

    /// Catches packets that no answer counts, are counted twice, or wait for longer than they should.
    #[test]
    fn an_answer_counts_the_packets_since_the_one_before() {
        let answering = Answering { every: Bytes::new(3_000), wait: Span::from_us(2) };
        let parameters = Parameters { answering, ..PARAMETERS };
        let came = |used, ns| Arrival {
            now: at(ns),
            stamp: Stamp { ecn: false, value: used },
            bytes: Bytes::new(1_000),
            hops: 3,
        };
        let mut receiver = Receiver::default();
        let answers: Vec<_> =
            (1..=7).map(|used| Hpcc::receive(&mut receiver, &came(used, 100), &parameters)).collect();
        let word = |answer: &Option<Notice>| answer.map(|notice| notice.word);
        let (third, sixth) = (Some(3 << 16 | 3), Some(3 << 16 | 6));
        let words: Vec<_> = answers.iter().map(word).collect();
        assert_eq!(words, [None, None, third, None, None, sixth, None]);
        assert_eq!(Hpcc::answers_by(&receiver, &parameters), at(2_100));
        assert_eq!(Hpcc::answer(&mut receiver, at(2_099), &parameters), None);
        assert_eq!(word(&Hpcc::answer(&mut receiver, at(2_100), &parameters)), Some(1 << 16 | 7));
        assert_eq!(Hpcc::answers_by(&receiver, &parameters), Time::NEVER);
        let mut flow = Hpcc::open(&path(), at(0), &parameters);
        for _ in 0..7 {
            Hpcc::send(&mut flow, Bytes::new(1_000), at(0), &parameters);
        }
        for answer in answers.iter().flatten() {
            Hpcc::learn(&mut flow, answer, at(5_000), &parameters);
        }
        assert_eq!(flow.in_flight.bytes(at(5_000), parameters.timeout), Bytes::new(1_000));
    }

    /// Catches a window that does not hold packets back, and one that holds them for ever.
    #[test]
    fn the_window_holds_packets_back_until_answers_come() {
        let mut flow = Hpcc::open(&path(), at(0), &PARAMETERS);
        let mut sent = 0;
        let mut now = at(0);
        loop {
            let next = Hpcc::earliest(&flow, Bytes::new(1_000), now, &PARAMETERS);
            if next.saturating_since(now) > Span::from_us(100) {
                assert_eq!(next, at(0) + PARAMETERS.timeout);
                break;
            }
            now = next;
            Hpcc::send(&mut flow, Bytes::new(1_000), now, &PARAMETERS);
            sent += 1;
        }
        assert_eq!(sent, 125);
        Hpcc::learn(&mut flow, &Notice::answer(1 << 16 | 100, 0), now, &PARAMETERS);
        assert!(Hpcc::earliest(&flow, Bytes::new(1_000), now, &PARAMETERS) < now + Span::from_us(1));
    }
}
