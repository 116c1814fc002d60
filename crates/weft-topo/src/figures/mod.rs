//! A machine's figures: size, distances, bisection and the load of its busiest channels.
//!
//! Closed forms where all endpoints send to all; a permutation is walked, once per endpoint. Nothing
//! here takes time quadratic in the number of endpoints.

mod dragonfly;
mod exanest;
mod kary_tree;
mod star;
mod torus;
mod valiant;

use crate::layout::{Layout, each};
use crate::path::idle_path;
use crate::pattern::{Pattern, Permutation, Undefined};
use crate::traits::{Attachment, Routing, Topology};
use serde::Serialize;
use weft_units::{EndpointId, PortId, SwitchId};

/// The figures of a machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figures {
    /// Endpoints.
    pub endpoints: u32,
    /// Switches.
    pub switches: u32,
    /// Links of each class: full-duplex cables. Counted per direction, as channels are, there are twice
    /// as many.
    pub links: Vec<ClassLinks>,
    /// Most links between switches on a minimal path of the routing, over all endpoints that can reach
    /// each other. Packet-hops count two more: injection and ejection.
    #[serde(rename = "diameter_hops")]
    pub diameter: u32,
    /// Mean number of links between switches on a minimal path of the routing, over all ordered pairs of
    /// distinct endpoints that can reach each other; 0 where there are none.
    #[serde(rename = "mean_distance_hops")]
    pub mean_distance: f64,
    /// The bisection.
    pub bisection: Bisection,
    /// The load of the busiest channels under each pattern.
    pub channel_loads: Vec<PatternLoad>,
}

/// How many links there are of a class.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClassLinks {
    /// Name of the class, as in [`Topology::link_classes`].
    pub class: &'static str,
    /// Full-duplex cables.
    pub links: u64,
}

/// Links whose removal leaves two halves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Bisection {
    /// Full-duplex cables across the cut.
    pub links: u64,
    /// Which cut. It is the natural one of the topology; that no other is smaller is not claimed.
    pub cut: String,
}

/// The load of the busiest channels under a pattern, or why it does not exist here.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PatternLoad {
    /// The pattern.
    pub pattern: Pattern,
    /// Its load.
    #[serde(serialize_with = "load_or_reason")]
    pub load: Result<ChannelLoad, Undefined>,
}

/// A load as it is, or the reason as `{"undefined": "..."}`.
fn load_or_reason<S: serde::Serializer>(
    load: &Result<ChannelLoad, Undefined>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Reason {
        undefined: String,
    }
    match load {
        Ok(load) => load.serialize(serializer),
        Err(reason) => Reason { undefined: reason.to_string() }.serialize(serializer),
    }
}

/// The load of the busiest channel of each class, when every endpoint injects one unit.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ChannelLoad {
    /// Largest load per link class, in units of what one endpoint injects. Class 0, the endpoint links,
    /// counts injection and ejection.
    pub per_class: Vec<f64>,
    /// Which paths are assumed.
    pub paths: Paths,
}

/// Which paths the load of a channel assumes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paths {
    /// The only ones the routing has.
    Deterministic,
    /// The expectation over the routing's dice.
    Random,
    /// The minimal ones of an adaptive routing, which are the best for this pattern.
    Minimal,
    /// A share of each flow on the minimal path and the rest over random intermediate groups (Valiant);
    /// the single share for all flows that makes the busiest channel least busy.
    Split {
        /// The share on the minimal path.
        minimal: f64,
    },
}

impl ChannelLoad {
    /// The load of the busiest channel between switches.
    pub fn busiest(&self) -> f64 {
        self.per_class.iter().skip(1).copied().fold(0.0, f64::max)
    }

    /// The channel-load bound: the largest share of an endpoint link's rate that every endpoint can
    /// inject before some channel is full, at most 1. `relative_rate` is the rate of each class divided
    /// by that of the endpoint links.
    pub fn bound(&self, relative_rate: &[f64]) -> f64 {
        let share = |(load, rate): (&f64, &f64)| if *load > 0.0 { rate / load } else { 1.0 };
        self.per_class.iter().zip(relative_rate).map(share).fold(1.0, f64::min)
    }
}

/// What each topology and routing answers in closed form.
pub(crate) trait ClosedForms {
    /// [`Figures::diameter`].
    fn diameter(&self) -> u32;
    /// [`Figures::mean_distance`].
    fn mean_distance(&self) -> f64;
    /// [`Figures::bisection`].
    fn bisection(&self) -> Bisection;
    /// The channel load when every endpoint sends to every other that it can reach.
    fn uniform_load(&self) -> ChannelLoad;
    /// The channel load of a permutation, where walking one path per endpoint is not the answer.
    fn permutation_load(&self, _permutation: &Permutation) -> Option<ChannelLoad> {
        None
    }
}

/// The figures of a machine.
pub fn figures(layout: &Layout) -> Figures {
    let forms = |pattern| PatternLoad { pattern, load: channel_load(layout, pattern) };
    Figures {
        endpoints: layout.endpoints(),
        switches: layout.switches(),
        links: count_links(layout),
        diameter: each!(layout, routing => routing.diameter()),
        mean_distance: each!(layout, routing => routing.mean_distance()),
        bisection: each!(layout, routing => routing.bisection()),
        channel_loads: Pattern::ALL.map(forms).to_vec(),
    }
}

/// The load of the busiest channels of a machine under a pattern.
///
/// # Errors
/// Where the pattern does not exist on the machine.
pub fn channel_load(layout: &Layout, pattern: Pattern) -> Result<ChannelLoad, Undefined> {
    if pattern == Pattern::Uniform {
        return Ok(each!(layout, routing => routing.uniform_load()));
    }
    let permutation = Permutation::new(pattern, layout)?;
    let closed = each!(layout, routing => routing.permutation_load(&permutation));
    Ok(closed.unwrap_or_else(|| {
        let loads = walk_permutation(layout, &permutation);
        loads.busiest_per_class(layout, Paths::Deterministic, |load| load as f64)
    }))
}

/// Cables of each class.
fn count_links(layout: &Layout) -> Vec<ClassLinks> {
    let classes = layout.link_classes();
    let mut ends = vec![0u64; classes.len()];
    for switch in (0..layout.switches()).map(SwitchId) {
        for port in (0..layout.ports(switch)).map(PortId) {
            ends[usize::from(layout.link_class(switch, port).0)] += match layout.peer(switch, port) {
                Attachment::Switch(..) => 1,
                Attachment::Endpoint(_) => 2,
                Attachment::Nothing => 0,
            };
        }
    }
    classes.iter().zip(ends).map(|(class, ends)| ClassLinks { class, links: ends / 2 }).collect()
}

/// A number for every port: the load of the link that leaves by it.
pub(crate) struct PortLoads {
    ports: u32,
    loads: Vec<u64>,
}

impl PortLoads {
    /// No load, for switches of at most so many ports.
    pub fn new(switches: u32, ports: u32) -> PortLoads {
        PortLoads { ports, loads: vec![0; switches as usize * ports as usize] }
    }

    /// The load of one port.
    pub fn at(&mut self, switch: SwitchId, port: PortId) -> &mut u64 {
        &mut self.loads[switch.index() * self.ports as usize + port.index()]
    }

    /// Every port and its load.
    pub fn iter(&self) -> impl Iterator<Item = (SwitchId, PortId, u64)> {
        let place =
            |i: usize| (SwitchId::from(i / self.ports as usize), PortId::from(i % self.ports as usize));
        self.loads.iter().enumerate().map(move |(i, &load)| (place(i).0, place(i).1, load))
    }

    /// The largest load per class.
    fn busiest_per_class(
        &self,
        topology: &impl Topology,
        paths: Paths,
        unit: impl Fn(u64) -> f64,
    ) -> ChannelLoad {
        let mut per_class = vec![0; topology.link_classes().len()];
        for (switch, port, load) in self.iter().filter(|&(_, _, load)| load > 0) {
            let class = usize::from(topology.link_class(switch, port).0);
            per_class[class] = load.max(per_class[class]);
        }
        ChannelLoad { per_class: per_class.into_iter().map(unit).collect(), paths }
    }
}

/// Sends one packet per endpoint through an idle network and counts what each port carries.
pub(crate) fn walk_permutation<L: Topology + Routing>(layout: &L, permutation: &Permutation) -> PortLoads {
    let most_ports = (0..layout.switches()).map(|s| layout.ports(SwitchId(s))).max().unwrap_or(0);
    let mut loads = PortLoads::new(layout.switches(), most_ports);
    for from in (0..layout.endpoints()).map(EndpointId) {
        let to = permutation.destination(from);
        if from != to {
            idle_path(layout, from, to, |switch, port| *loads.at(switch, port) += 1);
        }
    }
    loads
}

/// A mean over ordered pairs of distinct endpoints.
fn mean_over_pairs(sum: u128, pairs: u128) -> f64 {
    if pairs == 0 { 0.0 } else { sum as f64 / pairs as f64 }
}

/// Ordered pairs of distinct things out of `count`.
fn ordered_pairs(count: u32) -> u128 {
    u128::from(count) * u128::from(count.saturating_sub(1))
}
