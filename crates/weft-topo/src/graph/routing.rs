//! Routings that work on any graph: shortest ways, chosen in several manners, and detours.
//!
//! At every switch some ports bring a packet nearer to its destination. The routings differ in which of them
//! a packet takes:
//! - shortest-path takes the one that a hash of the destination names, as tables of routers do: all packets
//!   for a destination meet on one tree;
//! - ECMP hashes source and destination, so that a flow keeps to one way;
//! - multipath hashes the block of the message as well, so that only the packets of a block keep to one way;
//! - spraying draws random numbers for every packet, round robin takes the ways in turn, and adaptive takes
//!   the shortest queue: packets of a flow may overtake;
//! - Valiant goes by way of a random switch that has endpoints, spraying;
//! - UGAL-L compares, at the source's switch, the shortest queue on a shortest way with the shortest towards
//!   a random switch, each weighted with the links of its way, as on the [Dragonfly](crate::Ugal);
//! - UGAL-G compares sums: it follows the shortest queues from switch to switch on either way, those of other
//!   switches as they have last published them;
//! - hierarchical keeps to modules, and goes from one to the next by gateways that a hash chooses
//!   (`modules.rs`); inside a module it is ECMP;
//! - table takes the next hop that the file of the graph names (`table.rs`).
//!
//! A packet takes the next virtual channel wherever it turns from down to up ([`Distances`] has the
//! directions). Channels are ranked by virtual channel; within one, those up by their place in the order,
//! then those down. So every hop raises the rank, whichever ways are taken; what the ways decide is how many
//! virtual channels there must be: one more than turns.
//!
//! # Source
//! Skeie et al., ICPADS 2004, for the virtual channels (`distances.rs`); L. G. Valiant, "A scheme for fast
//! parallel communication", SIAM J. Comput. 11, 1982; A. Singh, "Load-balanced routing in interconnection
//! networks", PhD thesis, Stanford 2005 (UGAL). `choice.rs` has that of ECMP.

use super::Graph;
use super::distances::{Distances, NoWay};
use super::modules::Modules;
use super::table::Table;
use crate::choice::{below, block_hash, flow_hash, shortest_queue, way_in_turn, way_of_flow};
use crate::family::RoutingWord;
use crate::proof::{Channel, Ranked};
use crate::routings;
use crate::traits::{Address, AtSwitch, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology};
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, PortId, SwitchId, VcId};

routings! {
    /// Routings of any graph.
    #[derive(Copy)]
    pub enum GraphRouting {
        /// A shortest way, chosen by the destination.
        ShortestPath = "shortest-path",
        /// A shortest way, chosen by a hash of source and destination, so that the packets of a pair stay in
        /// order.
        Ecmp = "ecmp" {
            /// Seed of the hash of flows; 1 where not given.
            hash_seed: u32 = 1;
        },
        /// Any of the shortest ways, drawn at random for every packet.
        Spray = "spray",
        /// All of the shortest ways in turn, one for every packet.
        RoundRobin = "round-robin",
        /// A shortest way for every block of a message, chosen by a hash of source, destination and block, so
        /// that blocks spread and the packets of a block stay in order.
        Multipath = "multipath" {
            /// Seed of the hash of flows; 1 where not given.
            hash_seed: u32 = 1;
        },
        /// The shortest way with the shortest queue, drawn at random where several are.
        Adaptive = "adaptive",
        /// By way of a random switch that has endpoints.
        Valiant = "valiant",
        /// A shortest way, or one by way of a random switch where the local queues say that it is faster.
        UgalL = "ugal-l" {
            /// Bias towards the minimal path, in bytes × hops; 0 where not given.
            ugal_threshold: Bytes = Bytes::ZERO;
        },
        /// As UGAL-L, with all queues of both ways, as switches publish them.
        UgalG = "ugal-g" {
            /// Bias towards the minimal path, in bytes × hops; 0 where not given.
            ugal_threshold: Bytes = Bytes::ZERO;
        },
        /// Inside modules as ECMP, and from one to the next by a gateway that a hash of source and
        /// destination chooses. Needs modules in the file of the graph.
        Hierarchical = "hierarchical" {
            /// Seed of the hash of flows; 1 where not given.
            hash_seed: u32 = 1;
        },
        /// The next hop that a table names. Needs next hops in the file of the graph.
        Table = "table",
    }
    looks_at_published_queues: UgalG;
}

impl GraphRouting {
    /// Virtual channels, where shortest ways have so many turns from down to up. On a detour a packet may
    /// turn as often on either part, and once where they meet.
    pub(crate) fn virtual_channels(self, turns: u32) -> u32 {
        if self.takes_detours() { 2 * (turns + 1) } else { turns + 1 }
    }

    /// Whether packets may go by way of a switch that lies on no shortest way.
    pub(super) fn takes_detours(self) -> bool {
        matches!(self, GraphRouting::Valiant | GraphRouting::UgalL { .. } | GraphRouting::UgalG { .. })
    }
}

/// A graph with one of its routings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GraphLayout {
    graph: Graph,
    /// Inside modules, where packets go by modules.
    distances: Distances,
    routing: GraphRouting,
    /// The modules, if packets go by them.
    modules: Option<Modules>,
    /// The next hops, if packets go by a table.
    table: Option<Table>,
}

impl GraphLayout {
    /// One of the routings on `graph`.
    ///
    /// # Errors
    /// Two switches between which no packet can go, in words; modules that do not fit together; a table that
    /// leads nowhere.
    pub fn new(graph: Graph, routing: GraphRouting) -> Result<GraphLayout, String> {
        let modules = match routing {
            GraphRouting::Hierarchical { .. } => {
                Some(Modules::of(&graph).map_err(|fault| fault.to_string())?)
            }
            _ => None,
        };
        let table = match routing {
            GraphRouting::Table => Some(Table::of(&graph).map_err(|fault| fault.to_string())?),
            _ => None,
        };
        let distances = match &modules {
            Some(modules) => Distances::inside(&graph, modules),
            None => Distances::of(&graph),
        };
        let name = |switch| graph.switch_name(switch);
        match distances {
            Ok(distances) => Ok(GraphLayout { graph, distances, routing, modules, table }),
            Err(NoWay::Apart(from, to)) if modules.is_some() => {
                Err(format!("no way leads from {} to {} inside their module", name(from), name(to)))
            }
            Err(NoWay::Apart(from, to)) => Err(format!("no way leads from {} to {}", name(from), name(to))),
            Err(NoWay::TooFar(from, to)) => Err(format!(
                "the way from {} to {} has more than {} links",
                name(from),
                name(to),
                super::distances::MAX_DISTANCE
            )),
        }
    }

    /// The routing.
    pub fn routing(&self) -> GraphRouting {
        self.routing
    }

    /// Distances between all switches with endpoints; `None`: packets keep to modules, and only those inside
    /// them are known.
    pub(super) fn distances(&self) -> Option<&Distances> {
        self.modules.is_none().then_some(&self.distances)
    }

    /// The next hops; `None`: packets do not go by a table.
    pub(super) fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    /// Most turns from down to up that a way has without detours.
    #[inline]
    fn turns(&self) -> u32 {
        self.table.as_ref().map_or(self.distances.turns(), Table::turns)
    }

    /// No packet crosses more links, where packets keep to modules: those of the longest way inside one, in
    /// each that it passes.
    pub(super) fn longest_by_modules(&self) -> Option<u32> {
        Some(self.modules.as_ref()?.most_passed() * self.distances.longest())
    }

    /// Ports of a switch that bring a packet nearer to another switch, which has endpoints.
    #[inline]
    fn ways(&self, switch: SwitchId, to: SwitchId) -> impl Iterator<Item = PortId> + Clone {
        let links = self.distances.to(to);
        let here = links[switch.index()];
        let first = self.graph.endpoints_at(switch);
        let neighbours = (first..).zip(self.graph.neighbours(switch));
        neighbours
            .filter(move |(_, next)| u32::from(links[next.switch as usize]) + 1 == u32::from(here))
            .map(|(port, _)| PortId(port))
    }

    /// Ports of a switch that lead to the next hop of its table.
    #[inline]
    fn ways_by_table(&self, switch: SwitchId, to: SwitchId) -> impl Iterator<Item = PortId> + Clone {
        let next = self.table.as_ref().and_then(|table| table.next(switch, to));
        let neighbours = (self.graph.endpoints_at(switch)..).zip(self.graph.neighbours(switch));
        neighbours
            .filter(move |(_, neighbour)| Some(SwitchId(neighbour.switch)) == next)
            .map(|(port, _)| PortId(port))
    }

    /// The switch by way of which a packet goes from one switch to another, if it does.
    #[inline]
    fn detour(&self, from: SwitchId, to: SwitchId, view: &mut impl LocalView) -> Option<SwitchId> {
        let threshold = match self.routing {
            _ if from == to => return None,
            GraphRouting::Valiant => None,
            GraphRouting::UgalL { ugal_threshold } | GraphRouting::UgalG { ugal_threshold } => {
                Some(ugal_threshold)
            }
            _ => return None,
        };
        let via = SwitchId(below(self.graph.with_endpoints, view.random()));
        if via == from || via == to {
            return None;
        }
        let Some(threshold) = threshold else { return Some(via) };
        let (minimal, detour) = if self.needs_published_queues() {
            let straight = self.queued_on_way(from, (from, to), view);
            let aside = self.queued_on_way(from, (from, via), view);
            (straight, aside + self.queued_on_way(from, (via, to), view))
        } else {
            let links = |from: SwitchId, to| u128::from(self.distances.to(to)[from.index()]);
            let (_, straight) = shortest_queue(self.ways(from, to), view)?;
            let (_, aside) = shortest_queue(self.ways(from, via), view)?;
            let hops = links(from, via) + links(via, to);
            (u128::from(straight) * links(from, to), u128::from(aside) * hops)
        };
        (minimal > detour + u128::from(threshold.get())).then_some(via)
    }

    /// Bytes before all links of the shortest way that follows the shortest queues, as the switch `own` sees
    /// them; of equal ones the first port's.
    fn queued_on_way(&self, own: SwitchId, way: (SwitchId, SwitchId), view: &impl LocalView) -> u128 {
        let (mut at, to) = way;
        let mut sum = 0;
        while at != to {
            let queued = |port| if at == own { view.queued(port) } else { view.published(at, port) };
            let shortest = self.ways(at, to).map(|port| (queued(port), port)).min();
            let next = shortest.and_then(|(_, port)| self.graph.neighbour(at, port));
            // A graph in which two switches lie apart has no layout.
            let (Some((queued, _)), Some(next)) = (shortest, next) else { break };
            sum += u128::from(queued);
            at = SwitchId(next.switch);
        }
        sum
    }

    /// The port by which a packet in state `state` leaves `at` towards another switch. `to` is where it goes
    /// in the end.
    #[inline]
    fn port(
        &self,
        at: SwitchId,
        (towards, to): (SwitchId, Address),
        state: RouteState,
        view: &mut impl LocalView,
    ) -> Option<PortId> {
        let ways = self.ways(at, towards);
        let destination = || (to.0 >> 32 ^ to.0 << 16) as u32;
        match self.routing {
            GraphRouting::ShortestPath => one_of(ways, |count| way_of_flow(destination(), at.0, count)),
            GraphRouting::Table => {
                one_of(self.ways_by_table(at, towards), |count| way_of_flow(destination(), at.0, count))
            }
            GraphRouting::Ecmp { .. }
            | GraphRouting::Multipath { .. }
            | GraphRouting::Hierarchical { .. } => one_of(ways, |count| way_of_flow(state.0, at.0, count)),
            GraphRouting::RoundRobin => one_of(ways, |count| match count {
                1 => 0,
                several => way_in_turn(view.turn(), several),
            }),
            GraphRouting::Spray | GraphRouting::Valiant => one_of(ways, |count| below(count, view.random())),
            GraphRouting::Adaptive | GraphRouting::UgalL { .. } | GraphRouting::UgalG { .. } => {
                shortest_queue(ways, view).map(|(port, _)| port)
            }
        }
    }
}

/// The way that `choose` names of so many. Looking for ways takes time: few are remembered.
#[inline]
fn one_of(ways: impl Iterator<Item = PortId> + Clone, choose: impl FnOnce(u32) -> u32) -> Option<PortId> {
    let mut few = [PortId(0); 8];
    let mut count = 0;
    for port in ways.clone() {
        if let Some(place) = few.get_mut(count) {
            *place = port;
        }
        count += 1;
    }
    let chosen = choose(count as u32) as usize;
    if count <= few.len() { few[..count].get(chosen).copied() } else { ways.clone().nth(chosen) }
}

impl RoutedTopology for GraphLayout {
    type Topology = Graph;

    #[inline]
    fn topology(&self) -> &Graph {
        &self.graph
    }
}

impl Routing for GraphLayout {
    #[inline]
    fn virtual_channels(&self) -> u32 {
        // A packet may turn as often in each module that it passes, and where it enters one.
        let modules = self.modules.as_ref().map_or(1, Modules::most_passed);
        modules * self.routing.virtual_channels(self.turns())
    }

    /// State: for ECMP the hash of source and destination; on a detour the switch by way of which it goes,
    /// plus one, until it is there.
    #[inline]
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        let (destination, own_port) = Graph::place(to);
        let came = self.graph.neighbour(at.switch, at.port);
        if came.is_none() {
            *state = match self.routing {
                GraphRouting::Ecmp { hash_seed }
                | GraphRouting::Multipath { hash_seed }
                | GraphRouting::Hierarchical { hash_seed } => {
                    let source = self.graph.first_endpoint[at.switch.index()] + at.port.0;
                    // Of ECMP the block is always 0.
                    RouteState(block_hash(flow_hash(hash_seed, source, to.0), state.0))
                }
                _ => RouteState(self.detour(at.switch, destination, view).map_or(0, |via| via.0 + 1)),
            };
        }
        let mut towards = destination;
        if self.routing.takes_detours()
            && let Some(via) = state.0.checked_sub(1)
        {
            if via == at.switch.0 {
                *state = RouteState::default();
            } else {
                towards = SwitchId(via);
            }
        }
        if let Some(modules) = &self.modules {
            towards = modules.towards(at.switch, destination, state.0);
        }
        if at.switch == towards {
            return NextHop { port: own_port, vc: at.vc };
        }
        // A graph in which two switches lie apart has no layout.
        let port = self.port(at.switch, (towards, to), *state, view).unwrap_or(own_port);
        let next = self.graph.neighbour(at.switch, port);
        let came_down = came.is_some_and(|came| self.distances.is_up(at.switch, SwitchId(came.switch)));
        let goes_up = next.is_some_and(|next| self.distances.is_up(at.switch, SwitchId(next.switch)));
        NextHop { port, vc: VcId(at.vc.0 + u32::from(came_down && goes_up)) }
    }

    fn is_deterministic(&self) -> bool {
        matches!(
            self.routing,
            GraphRouting::ShortestPath
                | GraphRouting::Ecmp { .. }
                | GraphRouting::Hierarchical { .. }
                | GraphRouting::Table
        )
    }

    fn spreads_blocks(&self) -> bool {
        matches!(self.routing, GraphRouting::Multipath { .. })
    }

    fn needs_published_queues(&self) -> bool {
        self.routing.needs_published_queues()
    }
}

impl Ranked for GraphLayout {
    fn rank(&self, channel: Channel) -> u64 {
        let switches = u64::from(self.graph.switches());
        let place = u64::from(self.distances.place(channel.switch));
        let next = self.graph.neighbour(channel.switch, channel.port);
        let is_up = next.is_some_and(|next| self.distances.is_up(channel.switch, SwitchId(next.switch)));
        let within = if is_up { switches - place } else { switches + place + 1 };
        u64::from(channel.vc.0) * (2 * switches + 1) + within
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let Some(here) = self.graph.neighbour(channel.switch, channel.port) else { return };
        let switch = SwitchId(here.switch);
        let came_down = self.distances.is_up(switch, channel.switch);
        let first = self.graph.endpoints_at(switch);
        for (port, next) in (first..).zip(self.graph.neighbours(switch)) {
            let turns = came_down && self.distances.is_up(switch, SwitchId(next.switch));
            let vc = VcId(channel.vc.0 + u32::from(turns));
            // No way leads back over the link that it came by, unless it was a detour's.
            let is_back = port == here.port && !self.routing.takes_detours();
            if vc.0 < self.virtual_channels() && !is_back {
                visit(Channel { switch, port: PortId(port), vc });
            }
        }
    }

    /// None: no switch need be like another.
    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}
