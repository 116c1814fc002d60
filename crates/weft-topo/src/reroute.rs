//! Up*/down* tables over what is left of a graph whose links fail.
//!
//! ```text
//!   high   s0            every link leads up to the higher of its switches;
//!         ↗  ↖           a packet goes up any number of times, then down any number of times,
//!       s1    s2         never up after down: so no circle of waiting closes, on any graph,
//!         ↖  ↗ ↖         with a single virtual channel
//!   low    s3   s4
//! ```
//! The order of switches decides how good the routes are. Where some switches have no endpoints, as in trees,
//! those farther from endpoints are higher, so that all switches of the top level are roots and a tree keeps
//! its routes. Among equals the one nearer to a root is higher: the first of the highest switches of each
//! connected part. Where that order leaves two switches that are joined without a legal path, as after
//! failures that leave two leaves of a tree no common spine, the distance from the root alone decides: its
//! tree of shortest paths then serves every pair.
//!
//! A table has the length of the shortest legal path from each switch to each, for packets that may still go
//! up and for those that may not. The ports that a packet may take are those that shorten it.
//!
//! # Source
//! Schroeder et al., Autonet: a high-speed, self-configuring local area network using point-to-point links,
//! IEEE JSAC 9(8), 1991, section 5. Autonet orders switches by their distance from one root alone.

use crate::path::Idle;
use crate::proof::{Channel, Ranked};
use crate::traits::{
    Address, AtSwitch, Attachment, LocalView, NextHop, RouteState, RoutedTopology, Routing, Topology,
};
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use weft_units::{EndpointId, PortId, SwitchId, VcId};

/// No path, and in a wiring no switch.
const NONE: u32 = u32::MAX;
/// No path, in a table.
const NO_PATH: u16 = u16::MAX;

/// The links of a graph, for tables: who is behind each port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wiring {
    /// Number of the first port of each switch among all ports, and of all ports.
    first: Vec<u32>,
    /// By port of all: the switch and port behind its link; [`NONE`]: no switch.
    behind: Vec<(u32, u32)>,
    /// By endpoint: its switch and port.
    homes: Vec<(SwitchId, PortId)>,
    /// By switch: links to the nearest switch with an endpoint.
    heights: Vec<u32>,
    /// By switch: its packed address.
    addresses: Vec<Address>,
}

/// The links that are off together, each named by both of its ports; that of an endpoint by the switch's.
pub type Dead = BTreeSet<(SwitchId, PortId)>;

impl Wiring {
    /// The links of a topology.
    pub fn new(topology: &impl Topology) -> Wiring {
        let (mut first, mut behind) = (vec![0], Vec::new());
        for switch in (0..topology.switches()).map(SwitchId) {
            behind.extend((0..topology.ports(switch)).map(
                |port| match topology.peer(switch, PortId(port)) {
                    Attachment::Switch(switch, port) => (switch.0, port.0),
                    Attachment::Endpoint(_) | Attachment::Nothing => (NONE, NONE),
                },
            ));
            first.push(behind.len() as u32);
        }
        let homes: Vec<_> =
            (0..topology.endpoints()).map(|endpoint| topology.attachment(EndpointId(endpoint))).collect();
        let switches = (0..topology.switches()).map(SwitchId);
        let addresses = switches.map(|switch| topology.switch_address(switch)).collect();
        let mut wiring = Wiring { first, behind, homes, heights: Vec::new(), addresses };
        let with_endpoints: BTreeSet<u32> = wiring.homes.iter().map(|(switch, _)| switch.0).collect();
        wiring.heights = wiring.distances(with_endpoints, &Dead::new());
        wiring
    }

    /// Switches.
    pub fn switches(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// Bytes of the tables of one set of dead links.
    pub fn bytes_of_tables(&self) -> u64 {
        let switches = u64::from(self.switches());
        switches * switches * 2 * size_of::<u16>() as u64 + self.behind.len() as u64
    }

    /// A port that is joined to a switch, whether its link is dead or not; the first, where there is none.
    fn any_port(&self, switch: SwitchId) -> PortId {
        let to_switch = self.ports(switch.0).find(|&(_, behind, _)| behind != NONE);
        PortId(to_switch.map_or(0, |(port, ..)| port))
    }

    /// The switch and port of an endpoint.
    fn home(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        self.homes[endpoint.index()]
    }

    /// Ports of a switch: number at the switch, the switch behind, number among all ports.
    fn ports(&self, switch: u32) -> impl Iterator<Item = (u32, u32, usize)> + '_ {
        let (from, until) = (self.first[switch as usize], self.first[switch as usize + 1]);
        (from..until).map(move |port| (port - from, self.behind[port as usize].0, port as usize))
    }

    /// The switches behind the links of a switch that are not dead.
    fn neighbours<'a>(&'a self, switch: u32, dead: &'a Dead) -> impl Iterator<Item = u32> + 'a {
        let is_live = move |port| dead.is_empty() || !dead.contains(&(SwitchId(switch), PortId(port)));
        self.ports(switch)
            .filter(move |&(port, behind, _)| behind != NONE && is_live(port))
            .map(|(_, to, _)| to)
    }

    /// Links from each switch to the nearest of some; [`NONE`]: no path leads there.
    fn distances(&self, from: impl IntoIterator<Item = u32>, dead: &Dead) -> Vec<u32> {
        let mut distances = vec![NONE; self.switches() as usize];
        let mut queue: VecDeque<u32> = from.into_iter().collect();
        queue.iter().for_each(|&switch| distances[switch as usize] = 0);
        while let Some(switch) = queue.pop_front() {
            let next = distances[switch as usize] + 1;
            for neighbour in self.neighbours(switch, dead) {
                if distances[neighbour as usize] == NONE {
                    distances[neighbour as usize] = next;
                    queue.push_back(neighbour);
                }
            }
        }
        distances
    }

    /// The connected part of each switch, by its root: the first of its highest switches.
    fn parts(&self, dead: &Dead, heights: &[u32]) -> Vec<u32> {
        let mut parts = vec![NONE; self.switches() as usize];
        let mut roots: Vec<u32> = (0..self.switches()).collect();
        roots.sort_by_key(|&switch| (Reverse(heights[switch as usize]), switch));
        for root in roots {
            if parts[root as usize] != NONE {
                continue;
            }
            parts[root as usize] = root;
            let mut open = vec![root];
            while let Some(switch) = open.pop() {
                for neighbour in self.neighbours(switch, dead) {
                    if parts[neighbour as usize] == NONE {
                        parts[neighbour as usize] = root;
                        open.push(neighbour);
                    }
                }
            }
        }
        parts
    }

    /// Endpoints that dead links leave connected, group by group: the largest first, then by their first
    /// endpoint. An endpoint whose own link is dead is alone.
    pub fn islands(&self, dead: &Dead) -> Vec<Vec<EndpointId>> {
        let parts = self.parts(dead, &self.heights);
        let mut islands: std::collections::BTreeMap<(u32, u32), Vec<EndpointId>> = Default::default();
        for (endpoint, home) in self.homes.iter().enumerate() {
            let endpoint = endpoint as u32;
            let alone = if dead.contains(home) { endpoint } else { NONE };
            let part = if alone == NONE { parts[home.0.index()] } else { NONE };
            islands.entry((part, alone)).or_default().push(EndpointId(endpoint));
        }
        let mut islands: Vec<Vec<EndpointId>> = islands.into_values().collect();
        islands.sort_by_key(|island| (Reverse(island.len()), island[0]));
        islands
    }
}

/// Routes of all switches over the links that are left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpDownTables {
    /// By switch: its place in the order; the highest has 0.
    order: Vec<u32>,
    /// By port of all: whether it is joined to a switch by a link that is not dead.
    live: Vec<bool>,
    /// By destination, then switch: links of the shortest legal path of a packet that may go up.
    up: Vec<u16>,
    /// The same of a packet that has gone down.
    down: Vec<u16>,
}

impl UpDownTables {
    /// The tables for a graph without its dead links.
    pub fn new(wiring: &Wiring, dead: &Dead) -> UpDownTables {
        let ordered = |heights: &[u32]| UpDownTables::ordered(wiring, dead, heights);
        let tables = ordered(&wiring.heights);
        if tables.serve(wiring, dead) { tables } else { ordered(&vec![0; wiring.switches() as usize]) }
    }

    /// The tables for switches that are ordered by their heights first.
    fn ordered(wiring: &Wiring, dead: &Dead, heights: &[u32]) -> UpDownTables {
        let switches = wiring.switches();
        let parts = wiring.parts(dead, heights);
        let roots: BTreeSet<u32> = parts.iter().copied().collect();
        let depths = wiring.distances(roots, dead);
        let mut highest_first: Vec<u32> = (0..switches).collect();
        highest_first.sort_by_key(|&s| (Reverse(heights[s as usize]), depths[s as usize], s));
        let mut order = vec![0; switches as usize];
        highest_first.iter().zip(0..).for_each(|(&switch, place)| order[switch as usize] = place);
        let is_live = |switch: u32| {
            let live =
                move |(port, behind, _)| behind != NONE && !dead.contains(&(SwitchId(switch), PortId(port)));
            wiring.ports(switch).map(live)
        };
        let live = (0..switches).flat_map(is_live).collect();
        let size = switches as usize * switches as usize;
        let mut tables = UpDownTables { order, live, up: vec![NO_PATH; size], down: vec![NO_PATH; size] };
        (0..switches).for_each(|to| tables.fill(wiring, to, &highest_first));
        tables
    }

    /// Fills in the paths to one switch.
    fn fill(&mut self, wiring: &Wiring, to: u32, highest_first: &[u32]) {
        let UpDownTables { order, live, up, down } = self;
        let range = wiring.switches() as usize * to as usize..wiring.switches() as usize * (to as usize + 1);
        let (up, down) = (&mut up[range.clone()], &mut down[range]);
        let neighbours = |switch: u32| {
            wiring.ports(switch).filter(|&(_, _, port)| live[port]).map(|(_, behind, _)| behind as usize)
        };
        let mut queue = VecDeque::from([to]);
        down[to as usize] = 0;
        while let Some(switch) = queue.pop_front() {
            // Longer paths than the table has numbers for are left out; no graph has them.
            let next = down[switch as usize].saturating_add(1).min(NO_PATH - 1);
            for above in neighbours(switch) {
                if order[above] < order[switch as usize] && down[above] == NO_PATH {
                    down[above] = next;
                    queue.push_back(above as u32);
                }
            }
        }
        for &switch in highest_first {
            let own = order[switch as usize];
            let above = neighbours(switch).filter(|&above| order[above] < own && up[above] != NO_PATH);
            let over = above.map(|above| up[above].saturating_add(1).min(NO_PATH - 1)).min();
            up[switch as usize] = down[switch as usize].min(over.unwrap_or(NO_PATH));
        }
    }

    /// Whether every pair of switches with endpoints that links join has a legal path.
    fn serve(&self, wiring: &Wiring, dead: &Dead) -> bool {
        let parts = wiring.parts(dead, &wiring.heights);
        let ends: Vec<u32> = (0..wiring.switches()).filter(|&s| wiring.heights[s as usize] == 0).collect();
        let served = |from: u32, to: u32| {
            parts[from as usize] != parts[to as usize] || self.lead_to(wiring, SwitchId(from), SwitchId(to))
        };
        // Any switch may hold a packet for an endpoint when the routes change.
        ends.iter().all(|&to| (0..wiring.switches()).all(|from| served(from, to)))
    }

    fn lead_to(&self, wiring: &Wiring, from: SwitchId, to: SwitchId) -> bool {
        self.up[wiring.switches() as usize * to.index() + from.index()] != NO_PATH
    }

    /// Whether a path leads from a switch to an endpoint's.
    pub fn lead(&self, wiring: &Wiring, from: SwitchId, to: EndpointId) -> bool {
        self.lead_to(wiring, from, wiring.home(to).0)
    }

    /// Whether a packet may leave by a port of a switch: its link is not dead, or leads to an endpoint.
    pub fn is_whole(&self, wiring: &Wiring, switch: SwitchId, port: PortId) -> bool {
        let all = (wiring.first[switch.index()] + port.0) as usize;
        self.live[all] || wiring.behind[all].0 == NONE
    }

    /// Whether the rest of the path of a packet crosses no dead link, where a routing that is
    /// [deterministic](Routing::is_deterministic) routes it.
    pub fn keep_whole(&self, wiring: &Wiring, routing: &impl Routing, packet: &PacketAt) -> bool {
        let PacketAt { mut at, to, mut state } = *packet;
        // No path is longer than the graph.
        for _ in 0..=wiring.switches() {
            let NextHop { port, vc } = routing.route(at, to, &mut state, &mut Idle);
            if !self.is_whole(wiring, at.switch, port) {
                return false;
            }
            let (switch, port) = wiring.behind[(wiring.first[at.switch.index()] + port.0) as usize];
            if switch == NONE {
                return true;
            }
            let address = wiring.addresses[switch as usize];
            at = AtSwitch { switch: SwitchId(switch), address, port: PortId(port), vc };
        }
        false
    }

    /// Whether the link from one switch to another leads up.
    fn is_up(&self, from: u32, to: u32) -> bool {
        self.order[to as usize] < self.order[from as usize]
    }

    /// The ports that a packet at a switch may take towards an endpoint if these tables have brought it where
    /// it is: one that has come down goes on down. There are none where other tables have let it come down
    /// and only ways up are left.
    pub fn ports<'a>(&'a self, wiring: &'a Wiring, at: AtSwitch, to: EndpointId) -> LegalPorts<'a> {
        let all = wiring.first[at.switch.index()] + at.port.0;
        let (previous, _) = wiring.behind[all as usize];
        let must_go_down = previous != NONE && !self.is_up(previous, at.switch.0);
        self.legal(wiring, (at.switch, must_go_down), to)
    }

    /// The ports that a packet at a switch may take towards an endpoint if no tables have routed it before.
    pub fn first_ports<'a>(&'a self, wiring: &'a Wiring, at: SwitchId, to: EndpointId) -> LegalPorts<'a> {
        self.legal(wiring, (at, false), to)
    }

    fn legal<'a>(
        &'a self,
        wiring: &'a Wiring,
        (at, must_go_down): (SwitchId, bool),
        to: EndpointId,
    ) -> LegalPorts<'a> {
        let (home, port) = wiring.home(to);
        if home == at {
            return LegalPorts { at, choice: Choice::Only(port) };
        }
        let base = wiring.switches() as usize * home.index();
        let row = base..base + wiring.switches() as usize;
        let (up, down) = (&self.up[row.clone()], &self.down[row]);
        let links = if must_go_down { down[at.index()] } else { up[at.index()] };
        let ways = Ways { tables: self, wiring, up, down, links, must_go_down };
        LegalPorts { at, choice: Choice::Ways(ways) }
    }
}

/// A packet that a routing is about to route.
#[derive(Clone, Copy, Debug)]
pub struct PacketAt {
    /// The switch, and how it came there.
    pub at: AtSwitch,
    /// The packed address of its endpoint.
    pub to: Address,
    /// The memory of its routing.
    pub state: RouteState,
}

/// The ports that a packet may take.
pub struct LegalPorts<'a> {
    at: SwitchId,
    choice: Choice<'a>,
}

enum Choice<'a> {
    /// The port of its destination.
    Only(PortId),
    Ways(Ways<'a>),
}

/// Those of a switch that shorten a packet's path.
struct Ways<'a> {
    tables: &'a UpDownTables,
    wiring: &'a Wiring,
    /// By switch: links to the destination.
    up: &'a [u16],
    down: &'a [u16],
    /// From here.
    links: u16,
    must_go_down: bool,
}

impl Ways<'_> {
    fn of(&self, at: SwitchId) -> impl Iterator<Item = PortId> {
        let Ways { tables, wiring, up, down, links, must_go_down } = *self;
        let shortens = move |&(_, to, port): &(u32, u32, usize)| {
            if links == NO_PATH || !tables.live[port] {
                return false;
            }
            let rest = links - 1;
            if tables.is_up(at.0, to) {
                !must_go_down && up[to as usize] == rest
            } else {
                down[to as usize] == rest
            }
        };
        wiring.ports(at.0).filter(shortens).map(|(port, ..)| PortId(port))
    }
}

impl LegalPorts<'_> {
    /// Whether there are none: no path leads to the destination.
    pub fn is_empty(&self) -> bool {
        matches!(&self.choice, Choice::Ways(ways) if ways.links == NO_PATH)
    }

    /// All of them; none, where no path leads to the destination.
    pub fn all(&self) -> Vec<PortId> {
        match &self.choice {
            Choice::Only(port) => vec![*port],
            Choice::Ways(ways) => ways.of(self.at).collect(),
        }
    }

    /// The one that an endpoint and the switch choose between them: endpoints are spread evenly, and all
    /// packets for one endpoint take the same.
    pub fn of_destination(&self, endpoint: EndpointId) -> Option<PortId> {
        let ways = match &self.choice {
            Choice::Only(port) => return Some(*port),
            Choice::Ways(ways) => ways,
        };
        let count = ways.of(self.at).count() as u64;
        let mixed = mix(u64::from(self.at.0) << 32 | u64::from(endpoint.0));
        ways.of(self.at).nth((mixed % count.max(1)) as usize)
    }

    /// The one with the shortest queue; `turn` decides among several.
    pub fn shortest_queue(&mut self, turn: u64, mut queued: impl FnMut(PortId) -> u64) -> Option<PortId> {
        let ways = match &self.choice {
            Choice::Only(port) => return Some(*port),
            Choice::Ways(ways) => ways,
        };
        let ports: Vec<(u64, PortId)> = ways.of(self.at).map(|port| (queued(port), port)).collect();
        let shortest = ports.iter().map(|(queued, _)| *queued).min()?;
        let mut best = ports.iter().filter(|(queued, _)| *queued == shortest).map(|(_, port)| *port);
        let count = best.clone().count() as u64;
        best.nth((turn % count) as usize)
    }
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A topology on which tables route: what the proof looks at.
pub struct Rerouted<'a, T> {
    topology: &'a T,
    wiring: &'a Wiring,
    tables: &'a UpDownTables,
    /// Endpoints by their packed addresses, in order.
    endpoints: Vec<(Address, EndpointId)>,
}

impl<'a, T: Topology> Rerouted<'a, T> {
    /// The topology, where `tables` route on its `wiring`.
    pub fn new(topology: &'a T, wiring: &'a Wiring, tables: &'a UpDownTables) -> Rerouted<'a, T> {
        let all = (0..topology.endpoints()).map(EndpointId);
        let mut endpoints: Vec<_> =
            all.map(|endpoint| (topology.endpoint_address(endpoint), endpoint)).collect();
        endpoints.sort_by_key(|(address, _)| address.0);
        Rerouted { topology, wiring, tables, endpoints }
    }
}

impl<T: Topology> RoutedTopology for Rerouted<'_, T> {
    type Topology = T;

    fn topology(&self) -> &T {
        self.topology
    }
}

impl<T: Topology> Routing for Rerouted<'_, T> {
    fn virtual_channels(&self) -> u32 {
        1
    }

    fn route(&self, at: AtSwitch, to: Address, _: &mut RouteState, _: &mut impl LocalView) -> NextHop {
        let place = self.endpoints.partition_point(|(address, _)| address.0 < to.0);
        let endpoint = self.endpoints[place].1;
        let port = self.tables.ports(self.wiring, at, endpoint).of_destination(endpoint);
        NextHop { port: port.unwrap_or_else(|| self.wiring.any_port(at.switch)), vc: at.vc }
    }

    fn is_deterministic(&self) -> bool {
        true
    }
}

impl<T: Topology> Ranked for Rerouted<'_, T> {
    /// Channels that lead up rise with their switch, those that lead down lie above and rise as it falls.
    fn rank(&self, channel: Channel) -> u64 {
        let (own, switches) = (self.tables.order[channel.switch.index()], self.wiring.switches());
        let (behind, _) =
            self.wiring.behind[(self.wiring.first[channel.switch.index()] + channel.port.0) as usize];
        if behind != NONE && self.tables.is_up(channel.switch.0, behind) {
            (switches - own).into()
        } else {
            (switches + 1 + own).into()
        }
    }

    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        let number = (self.wiring.first[channel.switch.index()] + channel.port.0) as usize;
        let (here, _) = self.wiring.behind[number];
        if here == NONE || !self.tables.live[number] {
            return;
        }
        let has_come_down = !self.tables.is_up(channel.switch.0, here);
        for (port, to, all) in self.wiring.ports(here) {
            if self.tables.live[all] && !(has_come_down && self.tables.is_up(here, to)) {
                visit(Channel { switch: SwitchId(here), port: PortId(port), vc: VcId(channel.vc.0) });
            }
        }
    }

    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}
