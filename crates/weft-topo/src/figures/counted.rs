//! Figures by counting: packets walk through an idle network, and their hops and the ports that they leave
//! by are counted.

use super::{Bisection, ChannelLoad, ClosedForms, Paths, PortLoads, count_links, mean_over_pairs};
use crate::path::path;
use crate::pattern::Permutation;
use crate::traits::{Attachment, LocalView, Routing, Topology};
use serde::Serialize;
use weft_units::{EndpointId, PortId, SwitchId};

/// Most endpoints of a machine that is counted from every endpoint.
const MOST_COUNTED_ENDPOINTS: u32 = 4096;

/// Endpoints that a larger machine is counted from where its kinds of endpoints are not known.
const SAMPLED_SOURCES: u32 = 64;

/// Destinations that each of them sends to.
const SAMPLED_DESTINATIONS: u32 = 1 << 13;

/// Packets that are sent per pair of endpoints where the routing draws random numbers.
const THROWS: u32 = 16;

/// One endpoint of a kind, and the number of endpoints of that kind, itself included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceClass {
    /// One of them.
    pub endpoint: EndpointId,
    /// The number of endpoints of this kind.
    pub count: u32,
}

/// The endpoints that figures are counted from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourcesCounted {
    /// All of them, or a closed form that covers all.
    All,
    /// One of each kind: as good as all.
    OnePerKind,
    /// A sample, evenly spaced: the diameter is a lower bound, and the mean distance an estimate. The uniform
    /// load is an estimate of the mean over the links of a class, which the busiest exceeds.
    Sample,
}

impl SourcesCounted {
    /// Whether the figures are those from all endpoints, with nothing to say about it.
    pub fn are_all(&self) -> bool {
        *self == SourcesCounted::All
    }
}

/// Sources with their weights.
pub(super) struct Sources {
    classes: Vec<SourceClass>,
    basis: SourcesCounted,
}

impl Sources {
    /// The sources that a machine is counted from.
    pub fn of(layout: &(impl Topology + ClosedForms)) -> Sources {
        let endpoints = layout.endpoints();
        let one = |endpoint| SourceClass { endpoint: EndpointId(endpoint), count: 1 };
        if endpoints <= MOST_COUNTED_ENDPOINTS {
            return Sources { classes: (0..endpoints).map(one).collect(), basis: SourcesCounted::All };
        }
        if let Some(classes) = layout.source_classes() {
            return Sources { classes, basis: SourcesCounted::OnePerKind };
        }
        let spaced = |i: u32| (u64::from(i) * u64::from(endpoints) / u64::from(SAMPLED_SOURCES)) as u32;
        let classes = (0..SAMPLED_SOURCES).map(|i| one(spaced(i))).collect();
        Sources { classes, basis: SourcesCounted::Sample }
    }

    pub fn basis(&self) -> SourcesCounted {
        self.basis
    }
}

/// Other endpoints that one reaches.
fn reached(layout: &impl Topology, from: EndpointId) -> impl Iterator<Item = EndpointId> {
    let all = (0..layout.endpoints()).map(EndpointId);
    all.filter(move |&to| to != from && layout.reachable(from, to))
}

/// Distances counted by walking from each source to every other endpoint.
pub(super) struct Distances {
    /// Most links between switches on a path.
    pub longest: u32,
    /// The mean over all pairs.
    pub mean: f64,
    /// Counted from these.
    pub sources: SourcesCounted,
}

impl Distances {
    pub fn count<L: Topology + Routing + ClosedForms>(layout: &L) -> Distances {
        let Sources { classes, basis } = Sources::of(layout);
        let (mut longest, mut sum, mut pairs) = (0, 0, 0);
        for SourceClass { endpoint: from, count } in classes {
            for to in reached(layout, from) {
                // The last port leads to the endpoint.
                let mut ports = 0;
                path(layout, (from, to), &mut RandomView::zero(), |_, _| ports += 1);
                longest = longest.max(ports - 1);
                sum += u128::from(ports - 1) * u128::from(count);
                pairs += u128::from(count);
            }
        }
        Distances { longest, mean: mean_over_pairs(sum, pairs), sources: basis }
    }
}

/// Repeatable random numbers (SplitMix64) in a network without traffic.
struct RandomView(Option<u64>);

impl RandomView {
    /// Random numbers that are all zero: a routing that draws them takes one of its ways.
    fn zero() -> RandomView {
        RandomView(None)
    }
}

impl LocalView for RandomView {
    fn queued(&self, _port: PortId) -> u64 {
        0
    }

    fn turn(&mut self) -> u32 {
        self.random() as u32
    }

    fn random(&mut self) -> u64 {
        let Some(state) = &mut self.0 else { return 0 };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = *state;
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
}

/// The load of every port when each of some flows is one unit, spread over the random draws.
struct Walks<'a, L> {
    layout: &'a L,
    rng: RandomView,
    throws: u32,
    loads: PortLoads,
}

impl<L: Topology + Routing> Walks<'_, L> {
    fn new(layout: &L) -> Walks<'_, L> {
        let (rng, throws) = match layout.is_deterministic() {
            true => (RandomView::zero(), 1),
            false => (RandomView(Some(1)), THROWS),
        };
        Walks { layout, rng, throws, loads: PortLoads::of(layout) }
    }

    /// Sends `weight` units from one endpoint to another.
    fn send(&mut self, from: EndpointId, to: EndpointId, weight: u64) {
        for _ in 0..self.throws {
            path(self.layout, (from, to), &mut self.rng, |switch, port| {
                *self.loads.at(switch, port) += weight
            });
        }
    }

    fn busiest(&self, unit: f64) -> ChannelLoad {
        let paths = if self.throws == 1 { Paths::Deterministic } else { Paths::Sampled };
        let unit = unit * f64::from(self.throws);
        self.loads.busiest_per_class(self.layout, paths, |load| load as f64 / unit)
    }
}

/// The load of uniform traffic, by walking from each source to every other endpoint; of a machine that is
/// counted from a sample, the mean over links.
pub(super) fn counted_uniform_load<L: Topology + Routing + ClosedForms>(layout: &L) -> ChannelLoad {
    // Sources that reach fewer endpoints send more to each. In units that all shares are whole numbers of.
    let Sources { classes, basis } = Sources::of(layout);
    if basis == SourcesCounted::Sample {
        return mean_uniform_load(layout, &classes);
    }
    let reach: Vec<u64> =
        classes.iter().map(|class| reached(layout, class.endpoint).count() as u64).collect();
    let unit =
        reach.iter().filter(|&&count| count > 0).fold(1, |unit, &count| least_common_multiple(unit, count));
    let mut walks = Walks::new(layout);
    for (class, reach) in classes.iter().zip(&reach).filter(|(_, reach)| **reach > 0) {
        for to in reached(layout, class.endpoint) {
            walks.send(class.endpoint, to, unit / reach);
        }
    }
    walks.busiest(unit as f64)
}

/// The mean load of the links of each class under uniform traffic: the busiest carries at least as much. From
/// the hops of packets between some sources and destinations.
fn mean_uniform_load<L: Topology + Routing>(layout: &L, sources: &[SourceClass]) -> ChannelLoad {
    let endpoints = layout.endpoints();
    let stride = endpoints.div_ceil(SAMPLED_DESTINATIONS);
    let mut rng = if layout.is_deterministic() { RandomView::zero() } else { RandomView(Some(1)) };
    let (mut crossed, mut sent) = (vec![0u64; layout.link_classes().len()], 0u64);
    for (number, SourceClass { endpoint: from, .. }) in (0..).zip(sources) {
        // Each source begins at another place, so that together they meet more destinations.
        for to in (number % stride..endpoints).step_by(stride as usize).map(EndpointId) {
            if to != *from && layout.reachable(*from, to) {
                sent += 1;
                path(layout, (*from, to), &mut rng, |switch, port| {
                    crossed[usize::from(layout.link_class(switch, port).0)] += 1;
                });
            }
        }
    }
    let sources = f64::from(endpoints);
    // Both directions carry load between switches; of an endpoint's link each is counted alone.
    let channels = count_links(layout).into_iter().enumerate();
    let channels = channels.map(|(class, count)| count.links * if class == 0 { 1 } else { 2 });
    let mean = |(crossed, channels): (u64, u64)| match channels {
        0 => 0.0,
        _ => crossed as f64 / sent.max(1) as f64 * sources / channels as f64,
    };
    ChannelLoad { per_class: crossed.into_iter().zip(channels).map(mean).collect(), paths: Paths::Sampled }
}

fn least_common_multiple(one: u64, other: u64) -> u64 {
    let (mut a, mut b) = (one, other);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    one / a * other
}

/// Endpoints between two reports of progress.
const ENDPOINTS_PER_REPORT: u32 = 1 << 16;

/// The load of a permutation, by walking once per endpoint, or more often where the routing draws random
/// numbers. `advance` hears the share that is done, below 1.
pub(super) fn counted_permutation_load<L: Topology + Routing>(
    layout: &L,
    permutation: &Permutation,
    advance: &mut dyn FnMut(f64),
) -> ChannelLoad {
    let mut walks = Walks::new(layout);
    for from in (0..layout.endpoints()).map(EndpointId) {
        if from.0.is_multiple_of(ENDPOINTS_PER_REPORT) {
            advance(f64::from(from.0) / f64::from(layout.endpoints()));
        }
        let to = permutation.destination(from);
        if from != to {
            walks.send(from, to, 1);
        }
    }
    walks.busiest(1.0)
}

/// The cut between the lower and the upper half of the endpoints by number. A switch lies where most of its
/// endpoints are; one without endpoints where most of its neighbours are.
pub(super) fn halves_by_number(topology: &impl Topology) -> Bisection {
    let half = topology.endpoints() / 2;
    let neighbours =
        |switch: SwitchId| (0..topology.ports(switch)).map(move |port| topology.peer(switch, PortId(port)));
    // Positive: in the upper half.
    let mut side = vec![0i64; topology.switches() as usize];
    for switch in (0..topology.switches()).map(SwitchId) {
        side[switch.index()] = neighbours(switch)
            .map(|peer| match peer {
                Attachment::Endpoint(endpoint) if endpoint.0 < half => -1,
                Attachment::Endpoint(_) => 1,
                Attachment::Switch(..) | Attachment::Nothing => 0,
            })
            .sum();
    }
    // Sides spread from switches with endpoints to those without, one link further each round.
    for _ in 0..topology.switches() {
        let mut grown = side.clone();
        for switch in (0..topology.switches()).map(SwitchId).filter(|switch| side[switch.index()] == 0) {
            grown[switch.index()] = neighbours(switch)
                .map(|peer| match peer {
                    Attachment::Switch(other, _) => side[other.index()].signum(),
                    Attachment::Endpoint(_) | Attachment::Nothing => 0,
                })
                .sum();
        }
        if grown == side {
            break;
        }
        side = grown;
    }
    let is_upper = |switch: SwitchId| side[switch.index()] > 0;
    let crossing = |switch: SwitchId| {
        let crosses = |peer: &Attachment| match *peer {
            Attachment::Switch(other, _) => is_upper(other) != is_upper(switch),
            Attachment::Endpoint(_) | Attachment::Nothing => false,
        };
        neighbours(switch).filter(crosses).count() as u64
    };
    let ends: u64 = (0..topology.switches()).map(|switch| crossing(SwitchId(switch))).sum();
    Bisection { links: ends / 2, cut: "between the lower and the upper half of the endpoints".to_owned() }
}
