//! Flows of a scenario: transfers with a start, a size and a gap or a rate, as of a traffic generator.
//!
//! ```text
//!   gap:   transfer ─ sent ─ gap ─ transfer ─ sent ─ gap ─ …      one at a time
//!   rate:  ├─ phase ─┬───────┬───────┬ …                     at its times, whatever the network takes
//!          start     0    size/rate
//! ```
//! Flows with a rate are out of phase: each begins at a time of its own within the first interval.
//! # Source
//! RED-SEA D1.4 §8.1: RDMA flows with controllable start time, size, inter-transfer gap (long term rate).

use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weft_engine::{Payload, Stream, below};
use weft_fabric::Purpose;
use weft_nic::{Delivered, Failure, Host, HostContext, Message, Observer, Offer};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

/// Sizes of transfers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Sizes {
    /// All alike.
    Fixed(Bytes),
    /// Drawn from a distribution: points (size, millionths of transfers that are no larger), both rising,
    /// from 0 to 1,000,000; in between it is linear.
    Drawn(Vec<(u64, u32)>),
}

/// A million.
const MILLION: u32 = 1_000_000;

impl Sizes {
    /// Distributions by name.
    ///
    /// # Source
    /// `web-search`: Alizadeh et al., "Data Center TCP", SIGCOMM 2010, figure 4. `data-mining`: Greenberg et
    /// al., "VL2", SIGCOMM 2009, figure 2. `hadoop`: Roy et al., "Inside the Social Network's (Datacenter)
    /// Network", SIGCOMM 2015, section 5.1. These three are a few points from memory of the papers, and
    /// coarse. `key-value`: Atikoglu et al., "Workload Analysis of a Large-Scale Key-Value Store",
    /// SIGMETRICS 2012: sizes of values of pool ETC, a generalized Pareto distribution of σ = 214.476 and
    /// k = 0.348238, at its percentiles.
    pub fn named(name: &str) -> Option<Sizes> {
        let points: &[(u64, u32)] = match name {
            "web-search" => &[
                (1, 0),
                (10_000, 150_000),
                (20_000, 200_000),
                (30_000, 300_000),
                (50_000, 400_000),
                (80_000, 530_000),
                (200_000, 600_000),
                (1_000_000, 700_000),
                (2_000_000, 800_000),
                (5_000_000, 900_000),
                (10_000_000, 970_000),
                (30_000_000, MILLION),
            ],
            "data-mining" => &[
                (100, 0),
                (1_500, 500_000),
                (3_000, 600_000),
                (4_500, 700_000),
                (10_000, 800_000),
                (400_000, 900_000),
                (3_000_000, 950_000),
                (100_000_000, 990_000),
                (1_000_000_000, MILLION),
            ],
            "hadoop" => {
                &[(100, 0), (1_000, 500_000), (10_000, 700_000), (1_000_000, 950_000), (100_000_000, MILLION)]
            }
            "key-value" => &[
                (1, 0),
                (23, 100_000),
                (50, 200_000),
                (168, 500_000),
                (463, 800_000),
                (757, 900_000),
                (2_446, 990_000),
                (6_211, 999_000),
                (30_000, MILLION),
            ],
            _ => return None,
        };
        Some(Sizes::Drawn(points.to_vec()))
    }

    /// The names of [`Sizes::named`].
    pub const NAMES: [&'static str; 4] = ["web-search", "data-mining", "hadoop", "key-value"];

    /// Size of the next transfer.
    pub(crate) fn draw(&self, rng: &mut Stream) -> Bytes {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Drawn(points) => {
                let share = rng.below(MILLION);
                let place = points.partition_point(|(_, up_to)| *up_to <= share).clamp(1, points.len() - 1);
                let ((from, low), (to, high)) = (points[place - 1], points[place]);
                let part =
                    u64::from(share.saturating_sub(low)) * (to - from) / u64::from((high - low).max(1));
                Bytes::new((from + part).max(1))
            }
        }
    }

    /// The largest size.
    pub fn largest(&self) -> Bytes {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Drawn(points) => Bytes::new(points.last().map_or(0, |(size, _)| *size)),
        }
    }

    /// Mean size in bytes.
    pub fn mean(&self) -> u64 {
        match self {
            Sizes::Fixed(bytes) => bytes.get(),
            Sizes::Drawn(points) => {
                let parts = points.windows(2).map(|pair| {
                    let ((from, low), (to, high)) = (pair[0], pair[1]);
                    u128::from(from + to) * u128::from(high - low) / 2
                });
                (parts.sum::<u128>() / u128::from(MILLION)) as u64
            }
        }
    }
}

/// The rule by which a transfer follows another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Pace {
    /// So long after the interface has taken all of the one before.
    Gap(Span),
    /// So that this rate is met in the long term, whether or not the network keeps up.
    Rate(BitRate),
}

/// A flow of transfers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FlowPlan {
    /// The group that it is counted with.
    pub group: u32,
    /// The endpoint where it begins.
    pub source: EndpointId,
    /// The destination; of several, each transfer to one drawn among them.
    pub to: Vec<EndpointId>,
    /// Sizes of its transfers.
    pub sizes: Sizes,
    /// The rule by which they follow one another.
    pub pace: Pace,
    /// The time from which on there are transfers.
    pub start: Time,
    /// From there to the first.
    pub phase: Span,
    /// From here on there is none.
    pub stop: Time,
    /// Their number; `None`: as many as there is time for.
    pub transfers: Option<u64>,
    /// The traffic class of its messages; `None`: the first that takes them.
    pub class: Option<u8>,
}

/// All that the flows of a scenario share.
#[derive(Clone, Debug, Default)]
pub struct ScenarioParameters {
    /// The flows, by source.
    pub flows: Vec<FlowPlan>,
    /// Transfers that begin before this time are not among the latencies.
    pub counted_from: Time,
    /// Whether every transfer that is delivered is to be reported.
    pub report_transfers: bool,
}

/// The state of a flow at its source.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Generator {
    /// Number of the flow.
    flow: u32,
    rng: Stream,
    begun: u64,
    bytes: u64,
}

/// The flows that begin at one endpoint.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Generators {
    generators: Box<[Generator]>,
}

/// The next transfer of a flow, by its place at the source.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Next(u32);

impl Payload for Next {
    fn tie(&self) -> u128 {
        self.0.into()
    }
}

/// The transfers of a flow since the run began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct FlowTally {
    /// Transfers that have begun.
    pub begun: u64,
    /// The time at which the first of them did.
    pub first: Option<Time>,
    /// Transfers that were delivered.
    pub delivered: u64,
    /// Payload of these.
    pub bytes: Bytes,
    /// The time at which the last of these was noticed.
    pub last: Time,
}

impl FlowTally {
    /// Adds what another part of the run has counted of the same flow.
    fn merge(&mut self, other: &FlowTally) {
        self.begun += other.begun;
        self.first = [self.first, other.first].into_iter().flatten().min();
        self.delivered += other.delivered;
        self.bytes += other.bytes;
        self.last = self.last.max(other.last);
    }
}

/// A transfer that was delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TransferReport {
    /// The flow.
    pub flow: u32,
    /// The destination.
    pub destination: EndpointId,
    /// Counts the messages of the source.
    pub number: u32,
    /// Payload.
    pub bytes: Bytes,
    /// The time at which it began.
    pub created_at: Time,
    /// The time at which its last byte was delivered.
    pub delivered: Time,
    /// Links crossed, injection and ejection included.
    pub hops: u8,
}

/// The output of the flows of a partition: adds up in any order.
#[derive(Default, Serialize, Deserialize)]
pub struct ScenarioOutput {
    /// By group: from birth to delivery, to a thousandth, of transfers that begin after warm-up.
    pub latency: BTreeMap<u32, Histogram<10>>,
    /// By flow.
    pub flows: BTreeMap<u32, FlowTally>,
    /// Every transfer, if asked for; in no particular order.
    pub transfers: Vec<TransferReport>,
    /// Transfers that failed.
    pub failed: u64,
}

impl ScenarioOutput {
    /// Adds another's counts, and empties it.
    pub fn take(&mut self, other: &mut ScenarioOutput) {
        for (group, latency) in std::mem::take(&mut other.latency) {
            self.latency.entry(group).or_default().merge(&latency);
        }
        for (flow, tally) in std::mem::take(&mut other.flows) {
            self.flows.entry(flow).or_default().merge(&tally);
        }
        self.transfers.append(&mut other.transfers);
        self.failed += std::mem::take(&mut other.failed);
    }
}

impl Observer for ScenarioOutput {
    fn failed(&mut self, _: &Failure) {
        self.failed += 1;
    }
}

const PURPOSE_SCENARIO: u32 = 41;

impl Generators {
    /// The flows of these numbers.
    pub fn new(flows: &[u32], seed: u64) -> Generators {
        let generators = flows.iter().map(|&flow| Generator {
            flow,
            rng: Stream::new(seed, flow.into(), PURPOSE_SCENARIO),
            begun: 0,
            bytes: 0,
        });
        Generators { generators: generators.collect() }
    }

    /// Begins the next transfer of the flow in a place. Returns the flow, if it has another.
    fn begin(
        &mut self,
        Next(place): Next,
        parameters: &ScenarioParameters,
        context: &mut impl HostContext<Self>,
    ) -> Option<u32> {
        let now = context.now();
        let generator = &mut self.generators[place as usize];
        let plan = &parameters.flows[generator.flow as usize];
        if now >= plan.stop || plan.transfers.is_some_and(|most| generator.begun >= most) {
            return None;
        }
        let to = match plan.to.len() {
            1 => plan.to[0],
            many => plan.to[below(many as u32, &mut || generator.rng.next_u64()) as usize],
        };
        let bytes = plan.sizes.draw(&mut generator.rng);
        generator.begun += 1;
        generator.bytes += bytes.get();
        let (flow, sent) = (generator.flow, Bytes::new(generator.bytes));
        let message = Message {
            header: Some(OfFlow::new(flow)),
            token: matches!(plan.pace, Pace::Gap(_)).then_some(place),
            purpose: Purpose { class: plan.class, ..Purpose::PLAIN },
            ..Message::new(to, bytes, now)
        };
        context.send(message, now);
        if let Pace::Rate(rate) = plan.pace {
            let next = plan.start.saturating_add(plan.phase).saturating_add(rate.span(sent));
            context.set_timer(next.max(now), Next(place));
        }
        Some(flow)
    }
}

impl ScenarioOutput {
    /// A transfer of a flow has begun.
    fn begun(&mut self, flow: u32, now: Time) {
        let tally = self.flows.entry(flow).or_default();
        tally.begun += 1;
        tally.first = tally.first.or(Some(now));
    }

    /// A transfer of a flow has come to an endpoint.
    fn delivered<T>(
        &mut self,
        flow: u32,
        message: &Delivered<T>,
        destination: EndpointId,
        parameters: &ScenarioParameters,
    ) {
        let Delivered { number, bytes, created_at, noticed: delivered, hops, .. } = *message;
        let tally = self.flows.entry(flow).or_default();
        tally.delivered += 1;
        tally.bytes += bytes;
        tally.last = tally.last.max(delivered);
        if created_at >= parameters.counted_from {
            let group = parameters.flows[flow as usize].group;
            self.latency.entry(group).or_default().record(delivered - created_at);
        }
        if parameters.report_transfers {
            let report = TransferReport { flow, destination, number, bytes, created_at, delivered, hops };
            self.transfers.push(report);
        }
    }
}

/// The header of a transfer: its flow, in 24 bits, so that events of flows are a cache line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OfFlow([u8; 3]);

impl OfFlow {
    /// The most flows that there can be.
    pub const MOST: usize = 1 << 24;

    fn new(flow: u32) -> OfFlow {
        let [low, middle, high, _] = flow.to_le_bytes();
        OfFlow([low, middle, high])
    }

    /// The number of the flow.
    pub fn flow(self) -> u32 {
        let OfFlow([low, middle, high]) = self;
        u32::from_le_bytes([low, middle, high, 0])
    }
}

impl Host for Generators {
    type Parameters = ScenarioParameters;
    type Timer = Next;
    type Header = OfFlow;
    type Output = ScenarioOutput;

    const PASSIVE: bool = true;

    fn is_active(&self) -> bool {
        !self.generators.is_empty()
    }

    fn start(&mut self, parameters: &ScenarioParameters, context: &mut impl HostContext<Self>) {
        for (generator, place) in self.generators.iter().zip(0..) {
            let FlowPlan { start, phase, .. } = parameters.flows[generator.flow as usize];
            context.set_timer(start.saturating_add(phase).max(context.now()), Next(place));
        }
    }

    fn timer(&mut self, next: Next, parameters: &ScenarioParameters, context: &mut impl HostContext<Self>) {
        let begun = self.begin(next, parameters, context);
        let now = context.now();
        begun.into_iter().for_each(|flow| context.output().begun(flow, now));
    }

    fn sent(&mut self, place: u32, parameters: &ScenarioParameters, context: &mut impl HostContext<Self>) {
        let flow = self.generators[place as usize].flow;
        if let Pace::Gap(gap) = parameters.flows[flow as usize].pace {
            context.set_timer(context.now().saturating_add(gap), Next(place));
        }
    }

    fn delivered(
        &mut self,
        message: &Delivered<OfFlow>,
        parameters: &ScenarioParameters,
        context: &mut impl HostContext<Self>,
    ) {
        let here = context.endpoint();
        if let Some(of) = message.header {
            context.output().delivered(of.flow(), message, here, parameters);
        }
    }

    /// Transfers are posted, not offered.
    fn next_offer(&self) -> Time {
        Time::NEVER
    }

    fn offer(&mut self, _: &ScenarioParameters, _: Time) -> Offer<OfFlow> {
        Offer::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a distribution that is not one, and draws that do not follow it.
    #[test]
    fn draws_follow_the_distribution() {
        for name in Sizes::NAMES {
            let sizes = Sizes::named(name).unwrap();
            let Sizes::Drawn(points) = &sizes else { panic!("a distribution") };
            assert!(points.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "{name}");
            assert_eq!((points[0].1, points[points.len() - 1].1), (0, MILLION), "{name}");
            let mut rng = Stream::new(1, 2, 3);
            let drawn: Vec<u64> = (0..100_000).map(|_| sizes.draw(&mut rng).get()).collect();
            for &(size, up_to) in points {
                let share = drawn.iter().filter(|&&drawn| drawn <= size).count() as f64 / 1e5;
                assert!((share - f64::from(up_to) / 1e6).abs() < 0.01, "{name}: {share} up to {size}");
            }
        }
        assert_eq!(Sizes::named("none"), None);
        // ∫ of the two pieces: half of them at 50 bytes in the mean, half at 550.
        assert_eq!(Sizes::Drawn(vec![(0, 0), (100, 500_000), (1_000, MILLION)]).mean(), 300);
    }
}
