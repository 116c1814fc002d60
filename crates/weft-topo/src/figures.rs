//! A machine's figures: size, distances, bisection and the load of its busiest channels.
//!
//! Where the topology and its routing know a figure in closed form ([`ClosedForms`]), it is taken. Else it
//! is counted, by packets that walk through an idle network: from every endpoint up to 4,096 endpoints,
//! above that from one endpoint of each kind, or from a sample, and [`Figures::sources`] says so: the uniform
//! load is then the mean over links, of which the busiest carries at least as much. A permutation is walked,
//! once per endpoint. Nothing here takes time quadratic in the endpoints of a large machine.

mod counted;
mod split;

pub use counted::{SourceClass, SourcesCounted};
pub(crate) use split::best_split;

use crate::path::idle_path;
use crate::pattern::{Pattern, Permutation, Undefined};
use crate::traits::{Attachment, Routing, Topology};
use counted::{Distances, Sources, counted_permutation_load, counted_uniform_load, halves_by_number};
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
    /// each other; detours, as those of Valiant, are not minimal paths. Packet-hops count two more: injection
    /// and ejection.
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
    /// The endpoints that distances and the uniform load are counted from, where they have no closed form.
    #[serde(skip_serializing_if = "SourcesCounted::are_all")]
    pub sources: SourcesCounted,
}

/// The number of links of a class.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClassLinks {
    /// Name of the class, as in [`Topology::link_classes`].
    pub class: String,
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
    /// The load, or why it does not exist.
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
    /// The expectation over the routing's random numbers.
    Random,
    /// The minimal ones of an adaptive routing, which are the best for this pattern.
    Minimal,
    /// Those that packets of a routing with random numbers take through an idle network: a sample.
    Sampled,
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

/// The figures that a topology and its routing know in closed form. All answers are optional: figures
/// without a closed form are counted.
pub trait ClosedForms {
    /// [`Figures::diameter`].
    fn diameter(&self) -> Option<u32> {
        None
    }
    /// [`Figures::mean_distance`].
    fn mean_distance(&self) -> Option<f64> {
        None
    }
    /// [`Figures::bisection`].
    fn bisection(&self) -> Option<Bisection> {
        None
    }
    /// The channel load when every endpoint sends to every other that it can reach.
    fn uniform_load(&self) -> Option<ChannelLoad> {
        None
    }
    /// The channel load of a permutation, where one path per endpoint in an idle network is not the answer.
    fn permutation_load(&self, _permutation: &Permutation) -> Option<ChannelLoad> {
        None
    }
    /// Most links between switches that a packet takes under load; `None`: as many as in an idle network.
    fn longest_route(&self) -> Option<u32> {
        None
    }
    /// Links that a path through an idle network may be longer than the shortest path between its switches.
    fn idle_detour(&self) -> u32 {
        0
    }
    /// Kinds of endpoints: from all endpoints of a kind the machine looks the same. `None`: they are not
    /// known, and machines that are too large to be counted from every endpoint are counted from a sample.
    fn source_classes(&self) -> Option<Vec<SourceClass>> {
        None
    }
}

/// The figures of a machine.
pub fn figures<L: Topology + Routing + ClosedForms>(layout: &L) -> Figures {
    figures_with_progress(layout, &mut |_| {})
}

/// [`figures`], which take minutes for machines of millions of endpoints. `advance` hears the share that is
/// done, 0 to 1, by parts of the work that are of unlike length.
pub fn figures_with_progress<L: Topology + Routing + ClosedForms>(
    layout: &L,
    advance: &mut dyn FnMut(f64),
) -> Figures {
    // Distances, then the patterns.
    let parts = 1 + Pattern::ALL.len();
    let mut part = 0;
    let mut next_part = |within: f64| {
        advance((f64::from(part) + within) / parts as f64);
        part += u32::from(within >= 1.0);
    };
    let (diameter, mean_distance) = (layout.diameter(), layout.mean_distance());
    let counted = (diameter.is_none() || mean_distance.is_none()).then(|| Distances::count(layout));
    let sources = match &counted {
        Some(distances) => distances.sources,
        None if layout.uniform_load().is_none() => Sources::of(layout).basis(),
        None => SourcesCounted::All,
    };
    let links = count_links(layout);
    let bisection = layout.bisection().unwrap_or_else(|| halves_by_number(layout));
    next_part(1.0);
    let channel_loads = Pattern::ALL.map(|pattern| {
        let load = channel_load_with_progress(layout, pattern, &mut next_part);
        next_part(1.0);
        PatternLoad { pattern, load }
    });
    Figures {
        endpoints: layout.endpoints(),
        switches: layout.switches(),
        links,
        diameter: diameter.or(counted.as_ref().map(|counted| counted.longest)).unwrap_or(0),
        mean_distance: mean_distance.or(counted.as_ref().map(|counted| counted.mean)).unwrap_or(0.0),
        bisection,
        channel_loads: channel_loads.to_vec(),
        sources,
    }
}

/// The load of the busiest channels of a machine under a pattern.
///
/// # Errors
/// Where the pattern does not exist on the machine.
pub fn channel_load<L: Topology + Routing + ClosedForms>(
    layout: &L,
    pattern: Pattern,
) -> Result<ChannelLoad, Undefined> {
    channel_load_with_progress(layout, pattern, &mut |_| {})
}

/// [`channel_load`]. `advance` hears shares below 1.
fn channel_load_with_progress<L: Topology + Routing + ClosedForms>(
    layout: &L,
    pattern: Pattern,
    advance: &mut dyn FnMut(f64),
) -> Result<ChannelLoad, Undefined> {
    if pattern == Pattern::Uniform {
        return Ok(layout.uniform_load().unwrap_or_else(|| counted_uniform_load(layout)));
    }
    let permutation = Permutation::new(pattern, layout)?;
    Ok(layout
        .permutation_load(&permutation)
        .unwrap_or_else(|| counted_permutation_load(layout, &permutation, advance)))
}

/// Links of each class, each counted once for both directions.
pub fn count_links(layout: &impl Topology) -> Vec<ClassLinks> {
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
    classes
        .iter()
        .zip(ends)
        .map(|(class, ends)| ClassLinks { class: (*class).to_owned(), links: ends / 2 })
        .collect()
}

/// A number for every port: the load of the link that leaves by it.
#[derive(Clone, Debug)]
pub(crate) struct PortLoads {
    /// By switch: the place of its first port, and at the end the number of all.
    first_port: Vec<usize>,
    loads: Vec<u64>,
}

impl PortLoads {
    /// No load on the ports of a topology.
    pub fn of(topology: &impl Topology) -> PortLoads {
        PortLoads::new((0..topology.switches()).map(|switch| topology.ports(SwitchId(switch))))
    }

    /// No load, for switches of so many ports.
    pub fn new(ports: impl Iterator<Item = u32>) -> PortLoads {
        let mut all = 0;
        let behind = ports.map(|ports| {
            all += ports as usize;
            all
        });
        let first_port = std::iter::once(0).chain(behind).collect();
        PortLoads { first_port, loads: vec![0; all] }
    }

    /// The load of one port.
    pub fn at(&mut self, switch: SwitchId, port: PortId) -> &mut u64 {
        &mut self.loads[self.first_port[switch.index()] + port.index()]
    }

    /// Every port and its load.
    pub fn iter(&self) -> impl Iterator<Item = (SwitchId, PortId, u64)> {
        let of_switch = |(switch, ends): (u32, &[usize])| {
            let ports = (0..).map(PortId).zip(&self.loads[ends[0]..ends[1]]);
            ports.map(move |(port, &load)| (SwitchId(switch), port, load))
        };
        (0..).zip(self.first_port.windows(2)).flat_map(of_switch)
    }

    /// The largest load per class.
    pub fn busiest_per_class(
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
    let mut loads = PortLoads::of(layout);
    for from in (0..layout.endpoints()).map(EndpointId) {
        let to = permutation.destination(from);
        if from != to {
            idle_path(layout, from, to, |switch, port| *loads.at(switch, port) += 1);
        }
    }
    loads
}

/// A mean over ordered pairs of distinct endpoints.
pub(crate) fn mean_over_pairs(sum: u128, pairs: u128) -> f64 {
    if pairs == 0 { 0.0 } else { sum as f64 / pairs as f64 }
}

/// Ordered pairs of distinct things out of `count`.
pub(crate) fn ordered_pairs(count: u32) -> u128 {
    u128::from(count) * u128::from(count.saturating_sub(1))
}
