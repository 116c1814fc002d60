//! Accurate Congestion Control: links compute max-min fair rates, without a state per flow.
//!
//! ```text
//!   pulse k             pulse k+1            pulse k+2           every 20 µs, everywhere at once
//!   ──┼────────────────────┼───────────────────┼─────►
//!     │ each flow sends a flow-rate packet (FRP) with (reported rate, hop of its bottleneck)
//!     │   each link on its way adds it up:  bottlenecked here: n += 1    elsewhere: s += rate
//!     │   and lowers what it offers to the link's fair rate; the destination returns it
//!     │                    └ each link: fair = (C·(1 - margin) - s) / n
//! ```
//! D1.4 §8.1 has the parts: contention points before links, classes of flows "bottlenecked here" and
//! "elsewhere", flow-rate packets, pulses, flow-init messages, the link margin and three enhancements. **The
//! arithmetic of the contention point is not in the text and is ours**:
//!
//! - A source reports min(rate that it was offered, its [demand](self#demand)), and the number of the link on
//!   its way that offered it, or none if it is limited by its demand.
//! - A link counts a flow as bottlenecked here if the report names it, or ([Mind-the-gap](Parameters)) if the
//!   reported rate is not below the link's fair rate: such a flow is misclassified while rates move.
//! - C' is what the margin and the words for credits of the other direction, as of the last period, leave.
//! - fair = max((C' - s)/n, C'/flows) where n > 0. Where all are bottlenecked elsewhere, it is what is left,
//!   and the largest reported rate: C' - s + max; without Mind-the-gap C'/flows where
//!   they use more than C'. Never more than C'.
//!
//! Newton's method finds the water level of one link so, from below after the first step; links follow one
//! another in the order of their levels.
//!
//! # Demand
//! The rate limiter of a flow knows when it was open and the source had nothing for it: then the flow rests.
//! It looks back at a period at each pulse:
//!
//! ```text
//!   all ──── rested for more than a 16th of the period ───► limited: rate = sent
//!    ▲                                                         │  ▲
//!    │                                                         ▼  │ each pulse: rate += (sample - rate)/8
//!    └──────────────── rate ≥ 63/64 of the offer ──────────────┘  sample: what it sent; if it hardly rested,
//!                                                                 the offer, less the share of its rest
//! ```
//! One packet that waits makes no flow greedy: all but the first of a message do. The mean over eight periods
//! is what a flow of messages needs of a link whose bursts and gaps take longer than a period.
//!
//! # Flows
//! A new flow wants all that it is offered, and sends at full speed until its first answer, or not at all
//! with Wait-for-feedback. It announces itself with its second packet, with Wait-for-feedback before its
//! first, by a flow-init message (not FRP-only), which the links count at once. If it has rested for a whole
//! period, it is over: a flow-end message (ours) takes it from the links. If it sends again within
//! [`Flow::REMEMBERED`] periods, it is one of single messages: it goes on as limited, without a flow-init
//! message, and is over when it asks for less than a 64th of its offer. With Wait-to-rise, a rate that rises
//! gets to the new one in steps that double eight times per period, until the next answer confirms it.
//!
//! # Units
//! A rate counts a packet with the framing of the link that adds most, and each link counts its capacity in
//! such packets of the largest size: [`Crossing::carries`]. So a share is one of what the link can carry.
//!
//! # Short-circuit
//! The switch before the first link that offers a flow less than 15/16 of what it reports answers the source
//! at once, and the flow-rate packet goes on to the links behind. Such an answer is an upper bound of the
//! offer: it lowers the rate of the source, and neither confirms a rise nor lets a flow begin. The document
//! names the mechanism; **what is said here of it is ours**.
//!
//! # Simplified
//! An answer from inside the fabric takes as long as its flow-rate packet has taken to there, and no time on
//! the lines of the way back.
//!
//! # Source
//! RED-SEA D1.4 §8.1.

use crate::algorithm::{Algorithm, Crossing, Notice, Path, ShortCircuit};
use crate::keys::{Configured, CongestionKeys, FlowSetting, of};
use crate::pacer::Pacer;
use crate::points::CongestionKind;
use serde::{Deserialize, Serialize};
use weft_keys::{Condition, CountFromZero};
use weft_units::{BitRate, Bytes, Span, Time};

const OWN: Condition<'static> = of(&["acc", "acc-frp-only", "acc-frp-init"]);

weft_keys::keys! {
    /// The keys of Accurate Congestion Control in machine files.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub struct AccKeys {
        /// Between two rate re-evaluation pulses.
        period: Option<Span>, not_zero("20us"), only_where(OWN);
        /// Thousandths of a link that flows do not get.
        margin: Option<CountFromZero>, within(CountFromZero(0), CountFromZero(999)), only_where(OWN);
        /// Whether a new flow waits for its first answer.
        wait_for_feedback: Option<bool>, only_where(OWN);
        /// Whether links find flows that are bottlenecked there and say otherwise.
        mind_the_gap: Option<bool>, only_where(OWN);
        /// Whether a rate rises step by step until it is confirmed.
        wait_to_rise: Option<bool>, only_where(OWN);
        /// Whether switches answer a flow from inside the fabric where they offer it less than it uses.
        short_circuit: Option<bool>, only_where(OWN);
    }
}

/// Constants of Accurate Congestion Control.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parameters {
    /// Between two rate re-evaluation pulses.
    pub period: Span,
    /// Share of a link that is not given to flows, in thousandths.
    pub margin: u32,
    /// Whether a new flow announces itself, and its end, between pulses.
    pub flow_init: bool,
    /// Whether a new flow waits for its first answer.
    pub wait_for_feedback: bool,
    /// Whether links find flows that are bottlenecked here and reported elsewhere.
    pub mind_the_gap: bool,
    /// Whether rates rise step by step until confirmed.
    pub wait_to_rise: bool,
    /// Whether switches answer from inside the fabric.
    pub short_circuit: bool,
}

/// A rate in 24 bits of a packet: 19 bits and a power of two, rounded down.
fn pack(rate: u64) -> u64 {
    let shift = (64 - rate.leading_zeros()).saturating_sub(19);
    u64::from(shift) << 19 | rate >> shift
}

fn unpack(packed: u64) -> u64 {
    (packed & 0x7_ffff) << (packed >> 19 & 0x1f)
}

/// No link: a flow that is limited by its demand, or that has not been answered.
const NOWHERE: u8 = u8::MAX;
/// All links: a new flow, until its first pulse.
const EVERYWHERE: u8 = NOWHERE - 1;

/// The purpose of a flow-rate packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Pulse,
    Init,
    End,
    /// An answer from inside the fabric.
    ShortCircuit,
}

/// The time at which a flow-rate packet left its source, in 24 bits of its tag: units of 1.024 ns, counted
/// anew every 17 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Departure(u32);

impl Departure {
    const UNIT: u32 = 10;
    const BITS: u32 = 24;

    fn at(now: Time) -> Departure {
        Departure((now.as_ps() >> Departure::UNIT) as u32 & ((1 << Departure::BITS) - 1))
    }

    /// The time since, rounded up, so that an answer is never back sooner than its question could be.
    fn until(self, now: Time) -> Span {
        let units = Departure::at(now).0.wrapping_sub(self.0) & ((1 << Departure::BITS) - 1);
        Span::from_ps(u64::from(units + 1) << Departure::UNIT)
    }
}

/// A flow-rate packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FlowRate {
    purpose: Purpose,
    /// The rate that the source uses, and the hop of the link that limits it.
    reported: (u64, u8),
    /// The least fair rate on the way so far, and the hop of its link.
    offered: (u64, u8),
    left: Departure,
    /// Whether the source has had an answer from inside the fabric.
    is_answered: bool,
}

impl FlowRate {
    fn word(&self) -> u64 {
        let hops = u64::from(self.reported.1) << 8 | u64::from(self.offered.1);
        pack(self.reported.0) << 40 | pack(self.offered.0) << 16 | hops
    }

    fn tag(&self) -> u32 {
        self.left.0 << 3 | u32::from(self.is_answered) << 2 | self.purpose as u32
    }

    fn notice(&self) -> Notice {
        Notice { to_source: false, class: 0, word: self.word(), tag: self.tag() }
    }

    fn of(notice: &Notice) -> FlowRate {
        let Notice { word, tag, .. } = *notice;
        FlowRate {
            purpose: match tag & 3 {
                0 => Purpose::Pulse,
                1 => Purpose::Init,
                2 => Purpose::End,
                _ => Purpose::ShortCircuit,
            },
            left: Departure(tag >> 3),
            is_answered: tag >> 2 & 1 == 1,
            reported: (unpack(word >> 40 & 0xff_ffff), (word >> 8) as u8),
            offered: (unpack(word >> 16 & 0xff_ffff), word as u8),
        }
    }

    /// A packet of a source that is offered its line's rate so far.
    fn new(purpose: Purpose, reported: (u64, u8), line: u64) -> FlowRate {
        let offered = (unpack(pack(line)), NOWHERE);
        FlowRate { purpose, reported, offered, left: Departure::default(), is_answered: false }
    }

    /// Whether the switch before the link of this hop, which has made its offer, is to answer.
    fn turns_back_at(&self, hop: u8) -> bool {
        let is_lower = self.offered.0 < self.reported.0 - self.reported.0 / 16;
        hop > 0 && self.offered.1 == hop && is_lower && !self.is_answered && self.purpose != Purpose::End
    }
}

/// The flows that a link has heard of in one period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Sums {
    /// Flows bottlenecked here.
    here: u64,
    /// Flows bottlenecked elsewhere, and the sum of their rates.
    elsewhere: u64,
    rates: u64,
    /// The largest of these.
    most: u64,
}

impl Sums {
    fn add(&mut self, rate: u64, is_here: bool) {
        if is_here {
            self.here += 1;
        } else {
            self.elsewhere += 1;
            self.rates += rate;
            self.most = self.most.max(rate);
        }
    }

    fn remove(&mut self, rate: u64, is_here: bool) {
        if is_here {
            self.here = self.here.saturating_sub(1);
        } else {
            self.elsewhere = self.elsewhere.saturating_sub(1);
            self.rates = self.rates.saturating_sub(rate);
        }
    }

    /// The fair rate of a link with so much to give. `finds_gaps`: flows that are bottlenecked here and
    /// reported elsewhere are counted as here.
    fn fair(&self, capacity: u64, finds_gaps: bool) -> u64 {
        let flows = self.here + self.elsewhere;
        let left = capacity.saturating_sub(self.rates);
        let fair = match (flows, self.here) {
            (0, _) => capacity,
            // More than it has is used: some that are bottlenecked here say otherwise, and go unfound.
            (_, 0) if self.rates > capacity && !finds_gaps => capacity / flows,
            (_, 0) => (left + self.most).max(capacity / flows),
            (_, here) => (left / here).max(capacity / flows),
        };
        // A link that gives nothing would never hear of its flows again.
        fair.min(capacity).max(1)
    }
}

/// A contention point: the registers of one link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Link {
    /// Number of the pulse from which the sums count.
    pulse: u64,
    /// The flows of this period so far.
    sums: Sums,
    /// Those of the period before, with those that have come and gone since.
    known: Sums,
    /// The fair rate in bits per second; 0: no flow has come yet.
    fair: u64,
    /// Bytes of words for credits that the link had carried at the pulse.
    credit_words: Bytes,
    /// Their share of the line in the period before, in 2^-16.
    credit_share: u32,
}

impl Link {
    /// The fair rate that it offers, if it has been asked for one.
    pub fn fair_rate(&self) -> Option<BitRate> {
        (self.fair > 0).then(|| BitRate::from_bits_per_second(self.fair))
    }

    /// The rate that flows may have of it, in bits per second.
    fn capacity(&self, at: &Crossing, parameters: &Parameters) -> u64 {
        let whole = u128::from(at.carries.bits_per_second());
        let flows = whole * u128::from(1_000 - parameters.margin.min(999)) / 1_000;
        flows.saturating_sub(whole * u128::from(self.credit_share) / 65_536) as u64
    }

    /// Begins a period.
    fn begin_period(&mut self, pulse: u64, at: &Crossing, parameters: &Parameters) {
        let time = u128::from(parameters.period.as_ps()) * u128::from(pulse.saturating_sub(self.pulse));
        let words = u128::from((at.credit_words - self.credit_words).bits()) * 1_000_000_000_000;
        let line = u128::from(at.rate.bits_per_second()) * time;
        self.credit_share = (words * 65_536 / line.max(1)).min(65_536) as u32;
        self.credit_words = at.credit_words;
        self.known = if pulse == self.pulse + 1 { self.sums } else { Sums::default() };
        (self.pulse, self.sums) = (pulse, Sums::default());
        self.fair = self.known.fair(self.capacity(at, parameters), parameters.mind_the_gap);
    }

    fn relay(&mut self, packet: &mut FlowRate, at: &Crossing, parameters: &Parameters) {
        let pulse = at.now.as_ps() / parameters.period.as_ps().max(1);
        if pulse != self.pulse {
            self.begin_period(pulse, at, parameters);
        }
        let capacity = self.capacity(at, parameters);
        if self.fair == 0 {
            self.fair = self.known.fair(capacity, parameters.mind_the_gap);
        }
        let (rate, hop) = packet.reported;
        let is_new = packet.purpose == Purpose::Init;
        let is_named = hop == at.hop || hop == EVERYWHERE;
        let is_here = is_named || parameters.mind_the_gap && rate >= self.fair;
        if packet.purpose == Purpose::End {
            // It comes with a pulse: the flow has told of itself in the period before, and not in this one.
            self.known.remove(rate, is_here);
        } else {
            self.sums.add(rate, is_here);
        }
        if is_new {
            self.known.add(rate, is_here);
        }
        if packet.purpose != Purpose::Pulse {
            self.fair = self.known.fair(capacity, parameters.mind_the_gap);
        }
        if self.fair < packet.offered.0 {
            packet.offered = (unpack(pack(self.fair)), at.hop);
        }
    }
}

/// A rise that has not been confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Rise {
    from: u64,
    since: Time,
}

/// The demand of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Demand {
    /// All that it is offered.
    All,
    /// Bits per second of its own.
    Limited(u64),
}

/// The rate limiter of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flow {
    line: u64,
    /// The rate that the network offers, in bits per second.
    offered: u64,
    /// Hop of the link that does.
    hop: u8,
    rise: Option<Rise>,
    /// Whether an answer has come.
    is_answered: bool,
    /// The time at which a flow-init message is to go.
    init: Option<Time>,
    /// The next pulse.
    pulse: Time,
    demand: Demand,
    /// Bytes sent since the last pulse.
    sent: u64,
    /// Time since then in which the limiter was open and nothing came, up to `rested_until`.
    rested: Span,
    rested_until: Time,
    /// The last report.
    reported: (u64, u8),
    /// Whether links have been told of the flow.
    is_announced: bool,
    /// From when on links have not been told of it any more.
    over_since: Option<Time>,
    /// Whether it has come back after its end.
    recurs: bool,
    pacer: Pacer,
}

impl Flow {
    /// Periods for which a flow is remembered after its end.
    pub const REMEMBERED: u64 = 32;

    /// The rate at `now`.
    fn allowed(&self, now: Time, parameters: &Parameters) -> u64 {
        let Some(Rise { from, since }) = self.rise else { return self.offered };
        // Eight steps fill a period, each twice the one before: after k of them (2^k - 1)/255 of the way.
        let step = now.saturating_since(since).as_ps() * 8 / parameters.period.as_ps().max(1) + 1;
        let way = u128::from(self.offered.saturating_sub(from));
        let part = way * ((1u128 << step.min(8)) - 1) / 255;
        from + part as u64
    }

    /// Whether it is forgotten.
    fn is_forgotten(&self, now: Time, parameters: &Parameters) -> bool {
        // A flow that waits for feedback is to do so each time.
        let periods = if parameters.wait_for_feedback { 0 } else { Flow::REMEMBERED };
        self.over_since.is_some_and(|over| over.saturating_add(parameters.period * periods) <= now)
    }

    /// It sends after its end.
    fn come_back(&mut self, over: Time, now: Time, parameters: &Parameters) {
        let period = parameters.period.as_ps().max(1);
        let missed = now.saturating_since(over).as_ps() / period;
        let rate = if let Demand::Limited(rate) = self.demand { rate } else { 0 };
        let rate = (0..missed).fold(rate, |rate, _| rate - rate / 8);
        self.demand = Demand::Limited(rate);
        (self.over_since, self.recurs) = (None, true);
        (self.offered, self.hop, self.rise) = (self.line, NOWHERE, None);
        self.begin_period(now, parameters);
        self.rested = parameters.period.saturating_sub(self.pulse.saturating_since(now));
    }

    /// Begins a period, at a pulse or within it.
    fn begin_period(&mut self, now: Time, parameters: &Parameters) {
        let period = parameters.period.as_ps().max(1);
        self.pulse = Time::from_ps((now.as_ps() / period + 1).saturating_mul(period));
        (self.sent, self.rested, self.rested_until) = (0, Span::ZERO, now);
    }

    /// Looks back at the period that ends.
    fn look_back(&mut self, parameters: &Parameters) {
        let period = parameters.period.as_ps().max(1);
        let sent = (u128::from(self.sent) * 8 * 1_000_000_000_000 / u128::from(period)) as u64;
        let rested = self.rested.as_ps().min(period);
        let hardly_rested = rested <= period / 16;
        let used = (u128::from(self.offered) * u128::from(period - rested) / u128::from(period)) as u64;
        let sample = if hardly_rested { used } else { sent };
        let rate = match self.demand {
            Demand::All => sample,
            Demand::Limited(rate) => rate - rate / 8 + sample / 8,
        };
        let wants_all = rate >= self.offered - self.offered / 64;
        self.demand = if wants_all { Demand::All } else { Demand::Limited(rate) };
        self.recurs &= !wants_all;
    }

    /// Whether it is over, after a period that has been looked back at.
    fn ends(&self, parameters: &Parameters) -> bool {
        // A pulse waits for what is on the line: no two are a period apart to the picosecond.
        let rested = self.rested.as_ps() >= parameters.period.as_ps() / 16 * 15;
        let is_idle = self.sent == 0 && rested;
        let is_small = matches!(self.demand, Demand::Limited(rate) if rate < self.offered / 64);
        is_idle && (is_small || !self.recurs)
    }
}

/// Accurate Congestion Control.
pub struct Acc;

impl Algorithm for Acc {
    type Parameters = Parameters;
    type Link = Link;
    type Flow = Flow;
    type Receiver = ();

    const RELAYS: bool = true;
    const TELLS_RATES: bool = true;

    fn fair_rate(link: &Link) -> Option<BitRate> {
        link.fair_rate()
    }

    fn relay(
        link: &mut Link,
        notice: &mut Notice,
        at: &Crossing,
        parameters: &Parameters,
    ) -> Option<ShortCircuit> {
        if notice.to_source {
            return None;
        }
        let mut packet = FlowRate::of(notice);
        if at.hop == 0 {
            packet.left = Departure::at(at.now);
        }
        link.relay(&mut packet, at, parameters);
        let turns_back = parameters.short_circuit && packet.turns_back_at(at.hop);
        packet.is_answered |= turns_back;
        (notice.word, notice.tag) = (packet.word(), packet.tag());
        let answer = FlowRate { purpose: Purpose::ShortCircuit, ..packet };
        let back = Notice { to_source: true, tag: answer.tag(), ..*notice };
        turns_back.then(|| ShortCircuit { notice: back, way: packet.left.until(at.now) })
    }

    fn concerns(_: &Crossing, _: &Parameters) -> bool {
        false
    }

    fn open(path: &Path, now: Time, parameters: &Parameters) -> Flow {
        let line = path.carries.bits_per_second();
        let mut flow = Flow {
            line,
            offered: line,
            hop: NOWHERE,
            rise: None,
            is_answered: false,
            init: (parameters.flow_init && parameters.wait_for_feedback).then_some(now),
            pulse: now,
            demand: Demand::All,
            sent: 0,
            rested: Span::ZERO,
            rested_until: now,
            reported: (line, EVERYWHERE),
            is_announced: false,
            over_since: None,
            recurs: false,
            pacer: Pacer::default(),
        };
        flow.begin_period(now, parameters);
        flow
    }

    fn earliest(flow: &Flow, _: Bytes, now: Time, parameters: &Parameters) -> Time {
        if parameters.wait_for_feedback && !flow.is_answered {
            return Time::NEVER;
        }
        flow.pacer.earliest(now)
    }

    fn rest(flow: &mut Flow, until: Time) {
        let from = flow.pacer.earliest(flow.rested_until);
        if until > from {
            flow.rested += until - from;
            flow.rested_until = until;
        }
    }

    fn send(flow: &mut Flow, bytes: Bytes, now: Time, parameters: &Parameters) -> u16 {
        if let Some(over) = flow.over_since {
            flow.come_back(over, now, parameters);
        }
        if !flow.is_announced && parameters.flow_init && flow.sent > 0 {
            flow.init = Some(now);
        }
        flow.sent += bytes.get();
        flow.rested_until = now;
        flow.pacer.send_late(bytes, BitRate::from_bits_per_second(flow.allowed(now, parameters)), now);
        0
    }

    fn learn(flow: &mut Flow, notice: &Notice, now: Time, parameters: &Parameters) {
        let FlowRate { purpose, offered: (offered, hop), .. } = FlowRate::of(notice);
        let before = flow.allowed(now, parameters);
        let offered = offered.min(flow.line).max(1);
        if purpose == Purpose::ShortCircuit {
            if offered < before {
                (flow.offered, flow.hop, flow.rise) = (offered, hop, None);
                let rates = [before, offered].map(BitRate::from_bits_per_second);
                flow.pacer.change(rates[0], rates[1], now);
            }
            return;
        }
        // A rise is confirmed by another answer that is not lower by a sixteenth.
        let is_confirmed = flow.rise.is_some()
            && offered >= flow.offered - flow.offered / 16
            && offered <= flow.offered + flow.offered / 16;
        let rises = flow.is_answered && offered > before + before / 16;
        flow.rise =
            (parameters.wait_to_rise && rises && !is_confirmed).then_some(Rise { from: before, since: now });
        (flow.offered, flow.hop, flow.is_answered) = (offered, hop, true);
        let after = flow.allowed(now, parameters);
        let rates = [before, after].map(BitRate::from_bits_per_second);
        flow.pacer.change(rates[0], rates[1], now);
    }

    fn due(flow: &Flow) -> Time {
        match flow.over_since {
            Some(_) => Time::NEVER,
            None => flow.init.unwrap_or(flow.pulse),
        }
    }

    fn step(flow: &mut Flow, now: Time, parameters: &Parameters) -> Option<Notice> {
        if flow.init.take().is_some() {
            (flow.reported, flow.is_announced) = ((flow.line, EVERYWHERE), true);
            return Some(FlowRate::new(Purpose::Init, flow.reported, flow.line).notice());
        }
        flow.look_back(parameters);
        if flow.ends(parameters) {
            flow.over_since = Some(now);
            let end = FlowRate::new(Purpose::End, flow.reported, 0);
            return (parameters.flow_init && flow.is_announced).then(|| end.notice());
        }
        flow.reported = match flow.demand {
            Demand::Limited(rate) => (rate, NOWHERE),
            Demand::All => (flow.offered, flow.hop),
        };
        flow.is_announced = true;
        flow.begin_period(now, parameters);
        Some(FlowRate::new(Purpose::Pulse, flow.reported, flow.line).notice())
    }

    fn is_as_new(flow: &Flow, now: Time, parameters: &Parameters) -> bool {
        flow.is_forgotten(now, parameters) && flow.pacer.earliest(now) == now
    }

    fn is_quiet(flow: &Flow) -> bool {
        flow.over_since.is_some()
    }

    fn rate(flow: &Flow, now: Time, parameters: &Parameters) -> BitRate {
        BitRate::from_bits_per_second(flow.allowed(now, parameters))
    }

    fn reflect(notice: &Notice, _: &Parameters) -> Option<Notice> {
        let is_asked = FlowRate::of(notice).purpose != Purpose::End;
        is_asked.then_some(Notice { to_source: true, ..*notice })
    }
}

impl Configured for Acc {
    fn parameters(keys: &CongestionKeys, flow: &FlowSetting<'_>) -> Parameters {
        let (keys, is_whole) = (&keys.acc, flow.kind == CongestionKind::Acc);
        Parameters {
            period: keys.period.unwrap_or(Span::from_us(20)),
            margin: keys.margin.map_or(50, |CountFromZero(margin)| margin),
            flow_init: flow.kind != CongestionKind::AccFrpOnly,
            wait_for_feedback: keys.wait_for_feedback.unwrap_or(false),
            mind_the_gap: keys.mind_the_gap.unwrap_or(is_whole),
            wait_to_rise: keys.wait_to_rise.unwrap_or(is_whole),
            short_circuit: keys.short_circuit.unwrap_or(is_whole),
        }
    }
}

#[cfg(test)]
mod tests;
