//! DCQCN: links mark (ECN), destinations send congestion notifications, sources cut their rate and recover.
//!
//! ```text
//!   notification:  R_T = R_C    R_C = R_C·(1 - α/2)    α = (1 - g)·α + g    i = 0, both counts
//!   α timer:       α = (1 - g)·α
//!   increase, by timer and by bytes, i = steps since the last notification:
//!     max(i) < F   fast recovery     R_C = (R_C + R_T)/2
//!     otherwise    additive          R_T += R_AI,   R_C = (R_C + R_T)/2
//!     min(i) > F   hyper             R_T += R_HAI,  R_C = (R_C + R_T)/2
//! ```
//! # Where buffers lose packets
//! The paper has a network that loses none. Over one that does, destinations answer packets, and sources
//! send lost ones again, at the flow's rate: each by itself, as improved RoCE does. A loss does not cut the
//! rate. A notification is then an answer with a mark.
//!
//! # Paper and code
//! The paper cuts at each notification, has g = 1/256 and timers of 55 µs. The authors' simulation cuts at
//! most every 4 µs ([`Parameters::cut_interval`]), and has g = 1/16 and an increase timer of 1,500 µs. The
//! defaults of machine files are the paper's.
//!
//! # Source
//! Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015: section 3, figure 14.
//! Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018, section 3.1, for what is sent again.

use crate::algorithm::{Algorithm, Arrival, Crossing, Notice, Path, Repair, Stamp};
use crate::answers::{Answer, Answering, Batch};
use crate::keys::{Configured, CongestionKeys, FlowSetting, of};
use crate::marking::RedParameters;
use crate::pacer::Pacer;
use serde::{Deserialize, Serialize};
use weft_keys::{Condition, CountFromZero};
use weft_units::{BitRate, Bytes, Span, Time};

/// α of 1, in fixed point.
const ONE: u64 = 1 << 32;

const OWN: Condition<'static> = of(&["dcqcn"]);

weft_keys::keys! {
    /// The keys of DCQCN in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub struct DcqcnKeys {
        /// Least time between two notifications about a flow.
        notification_interval: Option<Span>, only_where(OWN);
        /// Least time between two cuts of a rate.
        cut_interval: Option<Span>, only_where(OWN);
        /// Power of two that g is one over.
        gain_shift: Option<CountFromZero>, within(CountFromZero(0), CountFromZero(16)), only_where(OWN);
        /// Between two steps of alpha without a notification.
        alpha_timer: Option<Span>, not_zero("20us"), only_where(OWN);
        /// Between two increases by time.
        increase_timer: Option<Span>, not_zero("20us"), only_where(OWN);
        /// Bytes between two increases by bytes.
        increase_bytes: Option<Bytes>, only_where(OWN);
        /// Increases of fast recovery.
        fast_steps: Option<u32>, only_where(OWN);
        /// Step of additive increase.
        additive_rate: Option<BitRate>, only_where(OWN);
        /// Step of hyper increase.
        hyper_rate: Option<BitRate>, only_where(OWN);
        /// The least rate of a flow.
        least_rate: Option<BitRate>, only_where(OWN);
    }
}

/// Constants of DCQCN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parameters {
    /// Marks of links.
    pub red: RedParameters,
    /// Least time between two notifications about a flow.
    pub notification_interval: Span,
    /// Least time between two cuts; zero: each notification cuts.
    pub cut_interval: Span,
    /// g is 1 over 2 to this power.
    pub gain_shift: u32,
    /// Between two steps of α without a notification.
    pub alpha_timer: Span,
    /// Between two increases by time.
    pub increase_timer: Span,
    /// Between two increases by bytes.
    pub increase_bytes: Bytes,
    /// F: increases of fast recovery.
    pub fast_steps: u32,
    /// R_AI.
    pub additive: BitRate,
    /// R_HAI.
    pub hyper: BitRate,
    /// The least rate.
    pub least: BitRate,
    /// The rule by which destinations answer; `None`: no packet is lost, and they only notify.
    pub answering: Option<Answering>,
    /// A packet without an answer for so long is lost, if they answer.
    pub timeout: Span,
    /// Whether full buffers trim packets.
    pub trim: bool,
}

/// The rates of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    line: u64,
    /// The largest packet on the line.
    packet: Bytes,
    /// Packets sent, where destinations answer.
    sent: u16,
    /// R_C in bits per second.
    current: u64,
    /// R_T.
    target: u64,
    /// α in units of 2⁻³².
    alpha: u64,
    /// The last step of α, by timer or notification.
    alpha_stepped: Time,
    /// The last increase by time, or the cut after which none has been.
    increased: Time,
    by_time: u32,
    by_bytes: u32,
    /// Bytes since the last increase by bytes.
    bytes: u64,
    /// The last cut; `None`: never.
    cut: Option<Time>,
    pacer: Pacer,
}

/// The time from which a destination may notify again, and the packets that it has not answered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Receiver {
    quiet_until: Time,
    batch: Batch,
}

impl Flow {
    /// Carries out the timers' steps up to `now`.
    fn advance(&mut self, now: Time, parameters: &Parameters) {
        if self.cut.is_none() {
            return; // at line rate, as it began
        }
        let alpha_timer = parameters.alpha_timer.as_ps().max(1);
        let steps = now.saturating_since(self.alpha_stepped).as_ps() / alpha_timer;
        // α is zero long before so many steps.
        for _ in 0..steps.min(40 << parameters.gain_shift) {
            self.alpha -= self.alpha >> parameters.gain_shift;
        }
        self.alpha_stepped += Span::from_ps(steps * alpha_timer);
        let timer = parameters.increase_timer.as_ps().max(1);
        let steps = now.saturating_since(self.increased).as_ps() / timer;
        for _ in 0..steps {
            if self.current == self.line && self.target == self.line {
                break;
            }
            self.by_time = self.by_time.saturating_add(1);
            self.increase(parameters);
        }
        self.increased += Span::from_ps(steps * timer);
    }

    /// One increase.
    fn increase(&mut self, parameters: &Parameters) {
        let (most, least) = (self.by_time.max(self.by_bytes), self.by_time.min(self.by_bytes));
        if most >= parameters.fast_steps {
            let is_hyper = least > parameters.fast_steps;
            let step = if is_hyper { parameters.hyper } else { parameters.additive };
            self.target = (self.target + step.bits_per_second()).min(self.line);
        }
        // Rounded up, so that it gets there.
        self.current = (self.current + self.target).div_ceil(2);
    }

    fn at(&self, now: Time, parameters: &Parameters) -> Flow {
        let mut flow = *self;
        flow.advance(now, parameters);
        flow
    }
}

/// DCQCN.
pub struct Dcqcn;

impl Algorithm for Dcqcn {
    type Parameters = Parameters;
    type Link = ();
    type Flow = Flow;
    type Receiver = Receiver;

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

    fn open(path: &Path, now: Time, _: &Parameters) -> Flow {
        let line = path.rate.bits_per_second();
        Flow {
            line,
            packet: path.packet,
            sent: 0,
            current: line,
            target: line,
            alpha: ONE,
            alpha_stepped: now,
            increased: now,
            by_time: 0,
            by_bytes: 0,
            bytes: 0,
            cut: None,
            pacer: Pacer::default(),
        }
    }

    fn earliest(flow: &Flow, _: Bytes, now: Time, _: &Parameters) -> Time {
        flow.pacer.earliest(now)
    }

    fn send(flow: &mut Flow, bytes: Bytes, now: Time, parameters: &Parameters) -> u16 {
        flow.advance(now, parameters);
        if flow.cut.is_some() {
            flow.bytes += bytes.get();
            while flow.bytes >= parameters.increase_bytes.get().max(1) {
                flow.bytes -= parameters.increase_bytes.get().max(1);
                flow.by_bytes = flow.by_bytes.saturating_add(1);
                flow.increase(parameters);
            }
        }
        flow.pacer.send(bytes, BitRate::from_bits_per_second(flow.current), now);
        if parameters.answering.is_none() {
            return 0;
        }
        flow.sent = flow.sent.wrapping_add(1);
        flow.sent.wrapping_sub(1)
    }

    fn learn(flow: &mut Flow, notice: &Notice, now: Time, parameters: &Parameters) {
        if parameters.answering.is_some() && !Answer::of(notice).ecn {
            return;
        }
        flow.advance(now, parameters);
        let before = BitRate::from_bits_per_second(flow.current);
        if flow.cut.is_none_or(|cut| cut.saturating_add(parameters.cut_interval) <= now) {
            flow.target = flow.current;
            let cut = (u128::from(flow.current) * u128::from(flow.alpha) / u128::from(2 * ONE)) as u64;
            flow.current = (flow.current - cut).max(parameters.least.bits_per_second()).min(flow.line);
            (flow.by_time, flow.by_bytes, flow.bytes) = (0, 0, 0);
            (flow.cut, flow.increased) = (Some(now), now);
        }
        flow.alpha = flow.alpha - (flow.alpha >> parameters.gain_shift) + (ONE >> parameters.gain_shift);
        flow.alpha_stepped = now;
        flow.pacer.change(before, BitRate::from_bits_per_second(flow.current), now);
    }

    fn timeout(parameters: &Parameters) -> Option<Span> {
        parameters.answering.map(|_| parameters.timeout)
    }

    fn trims(parameters: &Parameters) -> bool {
        parameters.trim
    }

    fn resend(flow: &mut Flow, _: u16, now: Time) {
        flow.pacer.send(flow.packet, BitRate::from_bits_per_second(flow.current), now);
    }

    fn is_as_new(flow: &Flow, now: Time, parameters: &Parameters) -> bool {
        let then = flow.at(now, parameters);
        flow.cut.is_none() && then.pacer.earliest(now) == now
    }

    fn rate(flow: &Flow, now: Time, parameters: &Parameters) -> BitRate {
        BitRate::from_bits_per_second(flow.at(now, parameters).current)
    }

    fn receive(receiver: &mut Receiver, arrival: &Arrival, parameters: &Parameters) -> Option<Notice> {
        let notifies = arrival.stamp.ecn && arrival.now >= receiver.quiet_until;
        if notifies {
            receiver.quiet_until = arrival.now.saturating_add(parameters.notification_interval);
        }
        match &parameters.answering {
            None => notifies.then(|| Notice::answer(0, 0)),
            Some(answering) => {
                let stamp = Stamp { ecn: notifies, ..arrival.stamp };
                receiver.batch.receive(&Arrival { stamp, ..*arrival }, answering)
            }
        }
    }

    fn answers_by(receiver: &Receiver, parameters: &Parameters) -> Time {
        parameters.answering.map_or(Time::NEVER, |answering| receiver.batch.due(&answering))
    }

    fn answer(receiver: &mut Receiver, now: Time, parameters: &Parameters) -> Option<Notice> {
        receiver.batch.answer_due(now, parameters.answering.as_ref()?)
    }
}

impl Configured for Dcqcn {
    fn parameters(keys: &CongestionKeys, flow: &FlowSetting<'_>) -> Parameters {
        let red = RedParameters { low: Bytes::new(5_000), high: Bytes::new(200_000), most: 10 };
        let (red, keys) = (keys.red(red), &keys.dcqcn);
        Parameters {
            red,
            notification_interval: keys.notification_interval.unwrap_or(Span::from_us(50)),
            cut_interval: keys.cut_interval.unwrap_or(Span::ZERO),
            gain_shift: keys.gain_shift.map_or(8, |CountFromZero(shift)| shift),
            alpha_timer: keys.alpha_timer.unwrap_or(Span::from_us(55)),
            increase_timer: keys.increase_timer.unwrap_or(Span::from_us(55)),
            increase_bytes: keys.increase_bytes.unwrap_or(Bytes::new(10_000_000)),
            fast_steps: keys.fast_steps.unwrap_or(5),
            additive: keys.additive_rate.unwrap_or(BitRate::from_bits_per_second(40_000_000)),
            hyper: keys.hyper_rate.unwrap_or(BitRate::from_bits_per_second(400_000_000)),
            least: keys.least_rate.unwrap_or(BitRate::from_bits_per_second(100_000_000)),
            answering: (flow.path.repair != Repair::None).then_some(flow.answering),
            timeout: flow.timeout,
            trim: flow.trim,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        Parameters {
            red: RedParameters { low: Bytes::new(5_000), high: Bytes::new(200_000), most: 10 },
            notification_interval: Span::from_us(50),
            cut_interval: Span::ZERO,
            gain_shift: 4,
            alpha_timer: Span::from_us(55),
            increase_timer: Span::from_us(55),
            increase_bytes: Bytes::new(10_000_000),
            fast_steps: 5,
            additive: BitRate::from_bits_per_second(40_000_000),
            hyper: BitRate::from_bits_per_second(400_000_000),
            least: BitRate::from_bits_per_second(100_000_000),
            answering: None,
            timeout: Span::MAX,
            trim: false,
        }
    }

    /// Catches packets without a number of their own where they are answered, an answer that cuts, and a
    /// marked one that does not.
    #[test]
    fn answers_cut_only_with_a_mark() {
        let answering = Answering { every: Bytes::new(2_000), wait: Span::from_us(1) };
        let parameters = Parameters { answering: Some(answering), ..parameters() };
        let mut flow = flow();
        let mut receiver = Receiver::default();
        let mut cuts = Vec::new();
        for number in 0..8u16 {
            assert_eq!(Dcqcn::send(&mut flow, Bytes::new(1_000), at(0), &parameters), number);
            let stamp = Stamp { ecn: number >= 5, value: number };
            let came = Arrival { now: at(number.into()), stamp, bytes: Bytes::new(1_000), hops: 3 };
            if let Some(notice) = Dcqcn::receive(&mut receiver, &came, &parameters) {
                let before = flow.current;
                Dcqcn::learn(&mut flow, &notice, at(10), &parameters);
                cuts.push((Answer::of(&notice).stamps().collect::<Vec<_>>(), flow.current < before));
            }
        }
        assert_eq!(cuts, [(vec![0, 1], false), (vec![2, 3], false), (vec![4, 5], true), (vec![6, 7], false)]);
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    fn flow() -> Flow {
        let path = Path::new(BitRate::from_gigabits(40), Span::from_us(4), Bytes::new(1_024));
        Dcqcn::open(&path, at(0), &parameters())
    }

    /// Catches a step of the equations that is wrong, by the equations in floating point.
    #[test]
    fn rate_and_alpha_follow_the_equations() {
        let parameters = parameters();
        let mut flow = flow();
        let notice = Notice::answer(0, 0);
        let (mut current, mut target, mut alpha, g) = (40e9f64, 40e9f64, 1.0f64, 1.0 / 16.0);
        let close = |flow: &Flow, current: f64, target: f64, alpha: f64| {
            assert!((flow.current as f64 - current).abs() < 100.0, "{} {current}", flow.current);
            assert!((flow.target as f64 - target).abs() < 100.0, "{} {target}", flow.target);
            assert!((flow.alpha as f64 / ONE as f64 - alpha).abs() < 1e-6);
        };
        for cut in [10, 20, 30] {
            Dcqcn::learn(&mut flow, &notice, at(cut), &parameters);
            target = current;
            current *= 1.0 - alpha / 2.0;
            alpha = (1.0 - g) * alpha + g;
            close(&flow, current, target, alpha);
        }
        for step in 1..=20u64 {
            // Both timers have fired `step` times after the cut at 30 us.
            alpha *= 1.0 - g;
            if step >= 5 {
                target = (target + 40e6).min(40e9);
            }
            current = (current + target) / 2.0;
            close(&flow.at(at(30 + 55 * step), &parameters), current, target, alpha);
        }
        // With as many increases by bytes, it goes on by hyper increase.
        let mut hyper = flow.at(at(30 + 55 * 20), &parameters);
        for step in 1..=8 {
            hyper.by_bytes = step;
            hyper.increase(&parameters);
            target = (target + if step > 5 { 400e6 } else { 40e6 }).min(40e9);
            current = (current + target) / 2.0;
            close(&hyper, current, target, alpha);
        }
    }

    /// Catches cuts below the least rate, and increases above the line's.
    #[test]
    fn the_rate_keeps_its_bounds() {
        let parameters = parameters();
        let mut flow = flow();
        (0..50).for_each(|_| Dcqcn::learn(&mut flow, &Notice::answer(0, 0), at(1), &parameters));
        assert_eq!(Dcqcn::rate(&flow, at(1), &parameters), parameters.least);
        let later = at(10_000_000);
        assert_eq!(Dcqcn::rate(&flow, later, &parameters), BitRate::from_gigabits(40));
    }

    /// Catches increases by bytes that come at other counts, and a pacer with another rate.
    #[test]
    fn bytes_increase_the_rate_and_the_rate_spaces_packets() {
        let parameters = Parameters { increase_bytes: Bytes::new(3_000), ..parameters() };
        let mut flow = flow();
        Dcqcn::learn(&mut flow, &Notice::answer(0, 0), at(0), &parameters);
        assert_eq!(flow.current, 20_000_000_000);
        let mut now = at(0);
        for packet in 1..=6u32 {
            now = Dcqcn::earliest(&flow, Bytes::new(1_000), now, &parameters);
            Dcqcn::send(&mut flow, Bytes::new(1_000), now, &parameters);
            assert_eq!(flow.by_bytes, packet / 3);
        }
        // Five packets of 400 ns at 20 Gb/s, of which the last three at 30 Gb/s took 267.
        let expected = 2 * 400_000 + 3 * 266_667;
        assert!(now.as_ps().abs_diff(expected) < 10, "{}", now.as_ps());
    }

    /// Catches notifications that come more often than they may.
    #[test]
    fn a_destination_notifies_once_per_interval() {
        let mut receiver = Receiver::default();
        let mut notified = |us, ecn| {
            let stamp = Stamp { ecn, value: 0 };
            let arrival = Arrival { now: at(us), stamp, bytes: Bytes::new(1), hops: 2 };
            Dcqcn::receive(&mut receiver, &arrival, &parameters()).is_some()
        };
        let seen = [(1, false), (2, true), (3, true), (51, true), (52, true)];
        assert_eq!(seen.map(|(us, ecn)| notified(us, ecn)), [false, true, false, false, true]);
    }
}
