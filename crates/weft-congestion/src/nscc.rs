//! NSCC of Ultra Ethernet: sources set their window by marks and by delay.
//!
//! ```text
//!   for each answer, d = round trip - base:            delay below tQ        tQ and above
//!     not marked     inc += α·acked·(tQ - d)  proportional    inc += fi·acked  fair
//!     marked         nothing: another path helps              once per round trip, if avg > tQ:
//!                                                             cwnd *= max(1 - γ·(avg - tQ)/avg, ½)
//!   every 8 packets, or round trip:   cwnd += inc/cwnd,   and η once per round trip
//!   fast increase: d < 1 µs for a whole window:   cwnd += ¼·a·acked
//!   a packet lost:  cwnd -= its bytes
//!   quick adapt, once per base + tQ: lost, or d > 4·tQ, and achieved < maxwnd/8:  cwnd = max(achieved, mtu)
//! ```
//! With a = BDP/BDP_ref and b = tQ/12 µs: α = 4·mss·a·b/tQ, fi = 5·mss·a, η = 0.15·mss·a, γ = 0.8; BDP_ref is
//! that of 100 Gb/s and 12 µs.
//!
//! # Simplified
//! tQ is the round trip, and three quarters of it where full buffers trim packets. Where packets may be lost
//! and none is sent again, they are given up after a time, or when 1,024 later ones have been answered; the
//! window is then less by their bytes, as for a NACK. After a quick adapt, all that was under way is ignored,
//! as in the reference.
//!
//! # Source
//! Ultra Ethernet Specification 1.0, section 3.6.13 (NSCC), by the equations of uet-htsim's sender.

use crate::algorithm::{Algorithm, Arrival, Crossing, Notice, Path, Repair, Stamp};
use crate::answers::{Answer, Answering, Batch};
use crate::in_flight::InFlight;
use crate::keys::{Configured, CongestionKeys, FlowSetting};
use crate::marking::RedParameters;
use serde::{Deserialize, Serialize};
use weft_units::{BitRate, Bytes, Span, Time};

const PS_PER_S: u128 = 1_000_000_000_000;
/// Fractions of a byte in which windows are counted.
const ONE: u64 = 1 << 16;
/// BDP_ref: 100 Gb/s times 12 µs.
const REFERENCE: u64 = 150_000;
/// Scaling of the ratio a.
const RATIO: u64 = 1 << 16;
/// Weight of a sample in the mean delay: 0.0125.
const MEAN: u64 = 80;
const FAST_BELOW: Span = Span::from_us(1);

/// Constants of NSCC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parameters {
    /// Marks of links.
    pub red: RedParameters,
    /// tQ: the queueing delay that is aimed at; `None`: the round trip, three quarters of it with trimming.
    pub target: Option<Span>,
    /// γ in thousandths.
    pub decrease: u32,
    /// A packet without an answer for so long is lost.
    pub timeout: Span,
    /// Whether full buffers trim packets.
    pub trim: bool,
    /// The rule by which destinations answer.
    pub answering: Answering,
}

impl Parameters {
    fn target(&self, path: &Path) -> Span {
        let trimmed = path.repair == Repair::Trim;
        let own = if trimmed { Span::from_ps(path.round_trip.as_ps() / 4 * 3) } else { path.round_trip };
        self.target.unwrap_or(own)
    }
}

/// The window of a flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    path: Path,
    /// cwnd in 2⁻¹⁶ bytes.
    window: u64,
    /// inc in bytes².
    increase: u64,
    /// Bytes answered since the window last grew, and when that was.
    answered: u64,
    grown: Time,
    /// The last time at which η was added.
    added: Time,
    /// The mean delay, in ps times 2⁸.
    mean: u64,
    /// The last decrease.
    decreased: Time,
    /// Bytes answered in a row with next to no delay.
    fast: u64,
    is_fast: bool,
    /// Bytes answered since the last quick adapt was looked at, and when the next look is.
    achieved: u64,
    adapt_at: Time,
    /// Number of the first packet whose answer counts.
    ignored: u64,
    in_flight: InFlight,
}

impl Flow {
    /// BDP in bytes.
    fn bdp(&self) -> u64 {
        let bits = u128::from(self.path.rate.bits_per_second()) * u128::from(self.path.round_trip.as_ps());
        ((bits / 8 / PS_PER_S) as u64).max(self.path.packet.get())
    }

    /// a times [`RATIO`].
    fn ratio(&self) -> u64 {
        (self.bdp() * RATIO / REFERENCE).max(1)
    }

    fn packet(&self) -> u64 {
        self.path.packet.get()
    }

    /// The largest window: 1.5 BDP.
    fn largest(&self) -> u64 {
        (self.bdp() * 3 / 2).max(2 * self.packet()) * ONE
    }

    /// Quick adapt, once per base + tQ: says whether the flow starts anew with what it achieved.
    fn adapt(&mut self, is_bad: bool, now: Time, parameters: &Parameters) -> bool {
        if now < self.adapt_at {
            return false;
        }
        let achieved = std::mem::take(&mut self.achieved);
        self.adapt_at = now.saturating_add(self.path.round_trip + parameters.target(&self.path));
        let starts_anew = is_bad && achieved < self.largest() / ONE / 8;
        if starts_anew {
            self.window = achieved.max(self.packet()) * ONE;
            self.ignored = self.in_flight.next();
            (self.increase, self.is_fast, self.fast) = (0, false, 0);
            self.bound();
        }
        starts_anew
    }

    fn bound(&mut self) {
        self.window = self.window.clamp(self.packet() * ONE, self.largest());
    }

    /// Makes effective what the window has gathered.
    fn grow(&mut self, now: Time) {
        let bytes = (self.window / ONE).max(1);
        self.window += (u128::from(self.increase) * u128::from(ONE) / u128::from(bytes)) as u64;
        (self.increase, self.answered, self.grown) = (0, 0, now);
        if self.added.saturating_add(self.path.round_trip) <= now {
            // η = 0.15·mss·a
            self.window += (u128::from(self.packet()) * u128::from(self.ratio()) * 15 / 100 * u128::from(ONE)
                / u128::from(RATIO)) as u64;
            self.added = now;
        }
        self.bound();
    }
}

/// NSCC.
pub struct Nscc;

impl Algorithm for Nscc {
    type Parameters = Parameters;
    type Link = ();
    type Flow = Flow;
    type Receiver = Batch;

    fn cross(
        (): &mut (),
        stamp: &mut Stamp,
        crossing: &Crossing,
        (random, parameters): (&mut dyn FnMut() -> u64, &Parameters),
    ) {
        stamp.ecn |= parameters.red.marks(crossing.queue, random);
    }

    fn concerns(crossing: &Crossing, parameters: &Parameters) -> bool {
        parameters.red.may_mark(crossing.queue)
    }

    fn open(path: &Path, now: Time, parameters: &Parameters) -> Flow {
        let mut flow = Flow {
            path: *path,
            window: 0,
            increase: 0,
            answered: 0,
            grown: now,
            added: now,
            mean: 0,
            decreased: now,
            fast: 0,
            is_fast: false,
            achieved: 0,
            adapt_at: now.saturating_add(path.round_trip + parameters.target(path)),
            ignored: 0,
            in_flight: InFlight::new(path.repair),
        };
        flow.window = flow.largest();
        flow
    }

    /// A packet goes unless as much is under way as the window has, as uet-htsim's sender does.
    fn earliest(flow: &Flow, _: Bytes, now: Time, parameters: &Parameters) -> Time {
        let fits = |under_way: Bytes| u128::from(under_way.get()) * u128::from(ONE) < u128::from(flow.window);
        flow.in_flight.full_until(fits, now, parameters.timeout).unwrap_or(now)
    }

    fn send(flow: &mut Flow, bytes: Bytes, now: Time, parameters: &Parameters) -> u16 {
        flow.in_flight.send(bytes, now, parameters.timeout)
    }

    fn learn(flow: &mut Flow, notice: &Notice, now: Time, parameters: &Parameters) {
        let answer = Answer::of(notice);
        let Some(answered) = flow.in_flight.answer_all(&answer, now) else { return };
        let (base, target) = (flow.path.round_trip, parameters.target(&flow.path));
        let acked = answered.bytes.get();
        flow.window = flow.window.saturating_sub(answered.lost.get() * ONE);
        flow.bound();
        if answered.number < flow.ignored {
            return;
        }
        let delay = answered.round_trip.saturating_sub(base);
        let sample = delay.as_ps() << 8;
        flow.mean = flow.mean - flow.mean / MEAN + sample / MEAN;
        flow.achieved += acked;
        let (d, tq) = (u128::from(delay.as_ps()), u128::from(target.as_ps().max(1)));
        let (mss, ratio) = (u128::from(flow.packet()), u128::from(flow.ratio()));
        if flow.adapt(d > 4 * tq, now, parameters) {
            return;
        }
        match (answer.ecn, delay >= target) {
            (false, true) => flow.increase += (5 * mss * ratio / u128::from(RATIO)) as u64 * acked,
            (false, false) => {
                if delay < FAST_BELOW {
                    flow.fast += acked;
                    flow.is_fast |= flow.fast > flow.window / ONE;
                } else {
                    (flow.fast, flow.is_fast) = (0, false);
                }
                if flow.is_fast {
                    let step = u128::from(acked) * ratio * u128::from(ONE) / u128::from(RATIO) / 4;
                    flow.window += step as u64;
                } else {
                    // α·(tQ - d) = 4·mss·a·b·(tQ - d)/tQ, b = tQ/12 µs
                    let reference = u128::from(Span::from_us(12).as_ps());
                    let per_byte = 4 * mss * ratio * tq / reference * (tq - d) / tq / u128::from(RATIO);
                    flow.increase += per_byte as u64 * acked;
                }
            }
            (true, true) => {
                let mean = u128::from(flow.mean >> 8);
                if mean > tq && flow.decreased.saturating_add(base) <= now {
                    let share = (mean - tq) * u128::from(parameters.decrease) / mean;
                    let kept = 1_000 - share.min(500);
                    flow.window = (u128::from(flow.window) * kept / 1_000) as u64;
                    flow.decreased = now;
                }
                (flow.fast, flow.is_fast) = (0, false);
            }
            (true, false) => (flow.fast, flow.is_fast) = (0, false),
        }
        flow.answered += acked;
        if flow.answered >= 8 * flow.packet() || flow.grown.saturating_add(base) <= now {
            flow.grow(now);
        }
        flow.bound();
    }

    fn timeout(parameters: &Parameters) -> Option<Span> {
        Some(parameters.timeout)
    }

    fn trims(parameters: &Parameters) -> bool {
        parameters.trim
    }

    fn lose(flow: &mut Flow, stamp: u16, now: Time, parameters: &Parameters) {
        let Some(lost) = flow.in_flight.lose(stamp) else { return };
        flow.window = flow.window.saturating_sub(lost.get() * ONE);
        (flow.fast, flow.is_fast) = (0, false);
        flow.bound();
        flow.adapt(true, now, parameters);
    }

    fn resend(flow: &mut Flow, stamp: u16, now: Time) {
        flow.in_flight.resend(stamp, now);
    }

    fn confirm(flow: &mut Flow, before: u16) {
        flow.in_flight.confirm(before);
    }

    fn is_as_new(flow: &Flow, _: Time, _: &Parameters) -> bool {
        flow.in_flight.is_empty() && flow.window == flow.largest()
    }

    fn rate(flow: &Flow, _: Time, _: &Parameters) -> BitRate {
        let bits =
            u128::from(flow.window / ONE) * 8 * PS_PER_S / u128::from(flow.path.round_trip.as_ps().max(1));
        BitRate::from_bits_per_second((bits as u64).min(flow.path.rate.bits_per_second()))
    }

    fn receive(batch: &mut Batch, arrival: &Arrival, parameters: &Parameters) -> Option<Notice> {
        batch.receive(arrival, &parameters.answering)
    }

    fn answers_by(batch: &Batch, parameters: &Parameters) -> Time {
        batch.due(&parameters.answering)
    }

    fn answer(batch: &mut Batch, now: Time, parameters: &Parameters) -> Option<Notice> {
        batch.answer_due(now, &parameters.answering)
    }
}

impl Configured for Nscc {
    fn parameters(keys: &CongestionKeys, flow: &FlowSetting<'_>) -> Parameters {
        Parameters {
            red: keys.red(RedParameters { low: flow.part(1, 5), high: flow.part(4, 5), most: 1_000 }),
            target: keys.target,
            decrease: 800,
            timeout: flow.timeout,
            answering: flow.answering,
            trim: flow.trim,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMETERS: Parameters = Parameters {
        red: RedParameters { low: Bytes::new(30_000), high: Bytes::new(120_000), most: 1_000 },
        target: None,
        decrease: 800,
        timeout: Span::from_us(10_000),
        trim: false,
        answering: Answering::EACH,
    };
    const PATH: Path = Path::new(BitRate::from_gigabits(100), Span::from_us(12), Bytes::new(4_000));

    /// One answer after `delay` beyond the base, from `sent` on.
    fn answer(flow: &mut Flow, sent: Time, (delay, ecn): (Span, bool)) -> Time {
        let stamp = Nscc::send(flow, Bytes::new(4_000), sent, &PARAMETERS);
        let now = sent + PATH.round_trip + delay;
        let word = Answer::to(stamp, ecn, 3).word();
        Nscc::learn(flow, &Notice::answer(word, 0), now, &PARAMETERS);
        now
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// A flow whose window and times are as the tests want them, far from its quick adapt.
    fn flow(window: u64, now: Time) -> Flow {
        let mut flow = Nscc::open(&PATH, Time::ZERO, &PARAMETERS);
        flow.window = window * ONE;
        (flow.grown, flow.added, flow.adapt_at) = (now, now, Time::NEVER);
        flow
    }

    fn window(flow: &Flow) -> f64 {
        flow.window as f64 / ONE as f64
    }

    /// Catches increases that are not those of the equations: at the reference, a and b are 1.
    #[test]
    fn the_window_grows_by_the_equations() {
        // Fair: eight answers at once, not marked, delayed by more than tQ; each adds 5·mss·acked.
        let mut fair = flow(60_000, at(105));
        for _ in 0..8 {
            answer(&mut fair, at(76), (Span::from_us(24), false));
        }
        let expected = 60_000.0 + 8.0 * 5.0 * 4_000.0 * 4_000.0 / 60_000.0;
        assert!((window(&fair) - expected).abs() < 2.0, "{} {expected}", window(&fair));
        // Proportional: α·acked·(tQ - d), α = 4·mss/12 µs, d = 3 µs.
        let mut proportional = flow(60_000, at(100));
        for _ in 0..8 {
            answer(&mut proportional, at(85), (Span::from_us(3), false));
        }
        let expected = 60_000.0 + 8.0 * 4.0 * 4_000.0 * (9.0 / 12.0) * 4_000.0 / 60_000.0;
        assert!((window(&proportional) - expected).abs() < 2.0, "{} {expected}", window(&proportional));
        // η: after a round trip 0.15·mss is added besides.
        let mut added = flow(60_000, at(80));
        answer(&mut added, at(85), (Span::from_us(3), false));
        let expected = 60_000.0 + 4.0 * 4_000.0 * 0.75 * 4_000.0 / 60_000.0 + 0.15 * 4_000.0;
        assert!((window(&added) - expected).abs() < 2.0, "{} {expected}", window(&added));
        // Fast: after a window of answers without delay, a quarter of what is answered.
        let mut fast = flow(8_000, at(100));
        for _ in 0..3 {
            answer(&mut fast, at(88), (Span::ZERO, false));
        }
        assert!((window(&fast) - 9_000.0).abs() < 2.0, "{}", window(&fast));
    }

    /// Catches a decrease that is not the equation's, comes twice in a round trip, or without delay.
    #[test]
    fn marks_with_delay_shrink_the_window_once_per_round_trip() {
        let mut flow = flow(100_000, at(1_100));
        let tq = 12.0f64;
        let mut mean = 0.0f64;
        let mut expected = 100_000.0f64;
        let mut decreased = f64::NEG_INFINITY;
        for step in 0..60u64 {
            let now = answer(&mut flow, at(1_000 + step), (Span::from_us(60), true));
            mean += (60.0 - mean) * 0.0125;
            let us = now.as_ps() as f64 / 1e6;
            if mean > tq && us >= decreased + 12.0 {
                expected *= (1.0 - 0.8 * (mean - tq) / mean).max(0.5);
                decreased = us;
            }
            (flow.grown, flow.added, flow.answered) = (now, now, 0);
            assert!(
                (window(&flow) - expected).abs() < 0.005 * expected,
                "{step}: {} {expected}",
                window(&flow)
            );
        }
        assert!(expected < 90_000.0, "{expected}");
        let before = window(&flow);
        for _ in 0..3 {
            answer(&mut flow, at(2_000), (Span::from_us(2), true));
        }
        let growth = window(&flow) - before;
        assert!((0.0..=600.5).contains(&growth), "no more than η: {growth}");
    }

    /// Catches a window that stays open in an incast, and one that shuts for ever.
    #[test]
    fn quick_adapt_takes_what_was_achieved() {
        let mut flow = Nscc::open(&PATH, Time::ZERO, &PARAMETERS);
        answer(&mut flow, at(0), (Span::from_us(60), true));
        assert_eq!(window(&flow), 4_000.0);
        // Packets sent before do not count, later ones do.
        let before = flow.mean;
        let stamp = Nscc::send(&mut flow, Bytes::new(4_000), at(80), &PARAMETERS);
        assert!(Nscc::earliest(&flow, Bytes::new(4_000), at(80), &PARAMETERS) > at(1_000));
        Nscc::learn(&mut flow, &Notice::answer(stamp.into(), 0), at(92), &PARAMETERS);
        assert!(flow.mean < before && window(&flow) > 8_000.0);
        assert_eq!(Nscc::earliest(&flow, Bytes::new(4_000), at(92), &PARAMETERS), at(92));
    }

    /// Catches a loss that takes nothing from the window or takes it twice, and an incast of lost packets
    /// that does not fall to what it achieves.
    #[test]
    fn losses_shrink_the_window_by_their_bytes() {
        let path = Path { repair: Repair::Trim, ..PATH };
        let mut flow = Nscc::open(&path, Time::ZERO, &PARAMETERS);
        flow.window = 100_000 * ONE;
        let sent: Vec<u16> =
            (0..25).map(|_| Nscc::send(&mut flow, Bytes::new(4_000), at(0), &PARAMETERS)).collect();
        assert_eq!(Nscc::earliest(&flow, Bytes::new(4_000), at(1), &PARAMETERS), Time::NEVER);
        for _ in 0..2 {
            Nscc::lose(&mut flow, sent[3], at(12), &PARAMETERS);
            assert_eq!(window(&flow), 96_000.0);
        }
        // What is lost is no longer under way, and the window is as much smaller.
        assert_eq!(Nscc::earliest(&flow, Bytes::new(4_000), at(12), &PARAMETERS), Time::NEVER);
        Nscc::learn(&mut flow, &Notice::answer(sent[0].into(), 0), at(13), &PARAMETERS);
        assert_eq!(Nscc::earliest(&flow, Bytes::new(4_000), at(13), &PARAMETERS), at(13));
        Nscc::resend(&mut flow, sent[3], at(13));
        // tQ is 9 us here: 21 us after the flow began it looks at what it has achieved, one packet.
        assert_eq!(PARAMETERS.target(&path), Span::from_us(9));
        Nscc::lose(&mut flow, sent[4], at(22), &PARAMETERS);
        assert_eq!(window(&flow), 4_000.0);
    }
}
