//! Swift: sources set their window by the delay of answers.
//!
//! ```text
//!   target = base + hops·h + clamp(α/√(cwnd/mss) + β, 0, range)
//!     α = range / (1/√least - 1/√most),   β = -α/√most      (windows in packets)
//!   delay < target:  cwnd += ai·mss·acked/cwnd         (below one packet: ai·acked)
//!   otherwise, once per round trip:  cwnd *= max(1 - b·(delay - target)/delay, 1 - mdf)
//! ```
//! Below one packet a flow waits for round trip · mss/cwnd between two packets.
//!
//! # Simplified
//! There is one window: the delay of hosts is not told apart from that of the fabric, since destinations
//! answer at once. Where lost packets are sent again, a loss takes as much as the longest delay, once per
//! round trip: time-outs and fast recovery are one here. Where not, they are given up after a time.
//!
//! # Source
//! Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM
//! 2020, algorithm 1 and section 3.5.

use crate::algorithm::{Algorithm, Arrival, Crossing, Notice, Path};
use crate::answers::{Answer, Answering, Batch};
use crate::in_flight::InFlight;
use crate::keys::{Configured, CongestionKeys, FlowSetting, of};
use crate::pacer::Pacer;
use serde::{Deserialize, Serialize};
use weft_keys::Condition;
use weft_units::{BitRate, Bytes, Span, Time};

const PS_PER_S: u128 = 1_000_000_000_000;
/// Thousandths.
const ONE: u64 = 1_000;

const OWN: Condition<'static> = of(&["swift"]);

weft_keys::keys! {
    /// The keys of Swift in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub struct SwiftKeys {
        /// Target per link crossed.
        hop_target: Option<Span>, only_where(OWN);
        /// The most that is added to the target for small windows.
        target_range: Option<Span>, only_where(OWN);
    }
}

/// Constants of Swift.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parameters {
    /// Target delay without hops and flows.
    pub base: Span,
    /// h: target per link crossed.
    pub per_hop: Span,
    /// Largest addition for small windows.
    pub range: Span,
    /// Window in thousandths of packets up to which the addition is all of it.
    pub least: u32,
    /// Window in packets from which there is none.
    pub most: u32,
    /// ai in thousandths of packets per round trip.
    pub increase: u32,
    /// b in thousandths.
    pub decrease: u32,
    /// mdf in thousandths: the most that is taken at once.
    pub most_decrease: u32,
    /// A packet without an answer for so long is lost.
    pub timeout: Span,
    /// Whether full buffers trim packets.
    pub trim: bool,
    /// The rule by which destinations answer.
    pub answering: Answering,
}

impl Parameters {
    /// The target delay of a window of `window` thousandths of packets over `hops` links.
    pub fn target(&self, window: u64, hops: u8) -> Span {
        // 1/√(n/1000) in 2⁻²⁰, as √(1000·2⁴⁰/n).
        let inverse_root = |thousandths: u64| u128::from(((ONE << 40) / thousandths.max(1)).isqrt());
        let (small, large) = (inverse_root(self.least.into()), inverse_root(u64::from(self.most) * ONE));
        let own = inverse_root(window).clamp(large, small.max(large));
        let range = u128::from(self.range.as_ps());
        let added = range * (own - large) / (small.saturating_sub(large)).max(1);
        self.base + self.per_hop * u64::from(hops) + Span::from_ps(added as u64)
    }
}

/// The window of a flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    path: Path,
    /// cwnd in thousandths of packets, times 2¹⁶.
    window: u64,
    /// The last round trip.
    round_trip: Span,
    /// The last decrease.
    decreased: Time,
    in_flight: InFlight,
    pacer: Pacer,
}

impl Flow {
    fn thousandths(&self) -> u64 {
        self.window >> 16
    }

    fn bytes(&self) -> u64 {
        (u128::from(self.window) * u128::from(self.path.packet.get()) / u128::from(ONE << 16)) as u64
    }

    /// The largest window: twice what the path holds.
    fn largest(&self) -> u64 {
        let bits = u128::from(self.path.rate.bits_per_second()) * u128::from(self.path.round_trip.as_ps());
        let packets = bits * 2 / 8 / PS_PER_S * u128::from(ONE) / u128::from(self.path.packet.get().max(1));
        ((packets as u64).max(2 * ONE)) << 16
    }
}

/// Swift.
pub struct Swift;

impl Algorithm for Swift {
    type Parameters = Parameters;
    type Link = ();
    type Flow = Flow;
    type Receiver = Batch;

    fn concerns(_: &Crossing, _: &Parameters) -> bool {
        false
    }

    fn open(path: &Path, _: Time, _: &Parameters) -> Flow {
        let mut flow = Flow {
            path: *path,
            window: 0,
            round_trip: path.round_trip,
            decreased: Time::ZERO,
            in_flight: InFlight::new(path.repair),
            pacer: Pacer::default(),
        };
        flow.window = flow.largest();
        flow
    }

    fn earliest(flow: &Flow, bytes: Bytes, now: Time, parameters: &Parameters) -> Time {
        let fits = |under_way: Bytes| (under_way + bytes).get() <= flow.bytes();
        let full_until = flow.in_flight.full_until(fits, now, parameters.timeout);
        full_until.unwrap_or_else(|| flow.pacer.earliest(now))
    }

    fn send(flow: &mut Flow, bytes: Bytes, now: Time, parameters: &Parameters) -> u16 {
        if flow.thousandths() < ONE {
            let wait =
                u128::from(flow.round_trip.as_ps()) * u128::from(ONE) / u128::from(flow.thousandths().max(1));
            flow.pacer.hold(now, Span::from_ps(wait as u64));
        }
        flow.in_flight.send(bytes, now, parameters.timeout)
    }

    fn learn(flow: &mut Flow, notice: &Notice, now: Time, parameters: &Parameters) {
        let answer = Answer::of(notice);
        let Some(answered) = flow.in_flight.answer_all(&answer, now) else { return };
        let delay = answered.round_trip;
        flow.round_trip = delay;
        let target = parameters.target(flow.thousandths(), answer.hops);
        let acked = u128::from(answered.bytes.get()) * u128::from(ONE << 16)
            / u128::from(flow.path.packet.get().max(1));
        if delay < target {
            let step = u128::from(parameters.increase) * acked / u128::from(ONE);
            let whole = u128::from(ONE << 16);
            let window = u128::from(flow.window);
            flow.window += (if window >= whole { step * whole / window } else { step }) as u64;
        } else if flow.decreased.saturating_add(flow.round_trip) <= now {
            let over = u128::from((delay - target).as_ps()) * u128::from(parameters.decrease);
            let share = (over / u128::from(delay.as_ps().max(1))) as u64;
            let kept = ONE - share.min(u64::from(parameters.most_decrease)).min(ONE);
            flow.window = (u128::from(flow.window) * u128::from(kept) / u128::from(ONE)) as u64;
            flow.decreased = now;
        }
        // At least a thousandth of a packet.
        flow.window = flow.window.clamp(1 << 16, flow.largest());
    }

    fn timeout(parameters: &Parameters) -> Option<Span> {
        Some(parameters.timeout)
    }

    fn trims(parameters: &Parameters) -> bool {
        parameters.trim
    }

    fn lose(flow: &mut Flow, stamp: u16, now: Time, parameters: &Parameters) {
        if flow.in_flight.lose(stamp).is_none() || flow.decreased.saturating_add(flow.round_trip) > now {
            return;
        }
        let kept = u128::from(ONE - u64::from(parameters.most_decrease).min(ONE));
        flow.window = ((u128::from(flow.window) * kept / u128::from(ONE)) as u64).max(1 << 16);
        flow.decreased = now;
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
        let bits = u128::from(flow.bytes()) * 8 * PS_PER_S / u128::from(flow.path.round_trip.as_ps().max(1));
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

impl Configured for Swift {
    fn parameters(keys: &CongestionKeys, flow: &FlowSetting<'_>) -> Parameters {
        let round_trip = flow.round_trip;
        Parameters {
            base: keys.target.unwrap_or(round_trip),
            per_hop: keys.swift.hop_target.unwrap_or(Span::from_ps(round_trip.as_ps() / 16)),
            range: keys.swift.target_range.unwrap_or(round_trip * 5),
            least: 100,
            most: 100,
            increase: 1_000,
            decrease: 800,
            most_decrease: 500,
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
        base: Span::from_us(10),
        per_hop: Span::from_us(1),
        range: Span::from_us(50),
        least: 100,
        most: 100,
        increase: 1_000,
        decrease: 800,
        most_decrease: 500,
        timeout: Span::from_us(10_000),
        trim: false,
        answering: Answering::EACH,
    };

    fn target(window: f64, hops: f64) -> f64 {
        let alpha = 50.0 / (1.0 / 0.1f64.sqrt() - 1.0 / 100f64.sqrt());
        let beta = -alpha / 100f64.sqrt();
        10.0 + hops + (alpha / window.sqrt() + beta).clamp(0.0, 50.0)
    }

    /// Catches a target that is not the equation's.
    #[test]
    fn the_target_scales_with_hops_and_window() {
        for window in [1u64, 99, 100, 101, 500, 1_000, 7_000, 99_000, 100_000, 1_000_000] {
            for hops in [0, 3, 5] {
                let (ours, exact) =
                    (PARAMETERS.target(window, hops), target(window as f64 / 1e3, hops.into()));
                assert!((ours.as_us_f64() - exact).abs() < 0.001, "{window}: {ours:?} {exact}");
            }
        }
    }

    /// Catches a window that does not follow the algorithm, answer by answer, also below one packet.
    #[test]
    fn the_window_follows_the_algorithm() {
        let path = Path::new(BitRate::from_gigabits(100), Span::from_us(10), Bytes::new(4_000));
        let mut flow = Swift::open(&path, Time::ZERO, &PARAMETERS);
        let (mut window, mut decreased) = (62.5f64, 0.0f64);
        let mut is_small = false;
        for step in 1..600u64 {
            let now = Time::ZERO + Span::from_us(step * 100);
            let stamp = Swift::send(&mut flow, Bytes::new(4_000), now, &PARAMETERS);
            let delay = if step % 150 < 50 { 90 } else { 12 };
            let then = now + Span::from_us(delay);
            let answer = Notice::answer(Answer::to(stamp, false, 2).word(), 0);
            Swift::learn(&mut flow, &answer, then, &PARAMETERS);
            let (d, t) = (delay as f64, target(window, 2.0));
            if d < t {
                window += if window >= 1.0 { 1.0 / window } else { 1.0 };
            } else if (step * 100 + delay) as f64 >= decreased + d {
                window *= (1.0 - 0.8 * (d - t) / d).max(0.5);
                decreased = (step * 100 + delay) as f64;
            }
            window = window.clamp(0.001, 62.5);
            is_small |= window < 0.5;
            let ours = flow.window as f64 / 65_536_000.0;
            assert!((ours - window).abs() < 0.01 * window + 0.002, "{step}: {ours} {window}");
        }
        assert!(is_small && window > 1.0);
    }
}
