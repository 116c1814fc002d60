//! Random small machines, and packets that walk them.

use proptest::prelude::*;
use std::collections::{BTreeSet, VecDeque};
use weft_topo::*;
use weft_units::{Bytes, EndpointId, PortId, SwitchId, VcId};

pub fn torus(sizes: &[(u64, bool)], concentration: u64, datelines: bool) -> Layout {
    let dimensions: Vec<_> = sizes.iter().map(|&(size, wrap)| Dimension { size, wrap }).collect();
    Layout::Torus(DimensionOrder::new(
        Torus::new(&dimensions, concentration).expect("a machine that can be built"),
        datelines,
    ))
}

pub fn exanest(mezzanines: u64, datelines: bool) -> Layout {
    Layout::Exanest(ExanestOrder::new(
        Exanest::new(mezzanines).expect("a machine that can be built"),
        datelines,
    ))
}

pub fn tree(k: u64, n: u64, ascent: Ascent) -> Layout {
    Layout::KaryTree(UpDown::new(KaryTree::new(k, n).expect("a machine that can be built"), ascent))
}

/// A tree in the keys of machine files.
pub fn general_tree(down: &[u32], up: &[u32], parallel: &[u32], routing: TreeRouting) -> Layout {
    let [down, up, parallel] = [down, up, parallel].map(<[u32]>::to_vec);
    let parameters = TreeParameters { down, up, parallel, routing };
    assert_eq!(parameters.check(), Ok(()));
    Layout::Tree(parameters.build().expect("a machine that can be built"))
}

/// `[p, a, h, g]` is the size of the Dragonfly.
pub fn minimal([p, a, h, g]: [u64; 4], arrangement: GlobalLinks) -> Layout {
    dragonfly(([p, a, h, g], 1, arrangement), DragonflyRouting::Minimal)
}

/// `[p, a, h, g]` is the size of the Dragonfly.
pub fn ugal([p, a, h, g]: [u64; 4], arrangement: GlobalLinks) -> Layout {
    dragonfly(([p, a, h, g], 1, arrangement), DragonflyRouting::UgalL { ugal_threshold: Bytes::ZERO })
}

/// A Dragonfly of size `[p, a, h, g]` with so many links per pair of groups.
pub fn dragonfly(
    ([p, a, h, g], links_per_pair, global): ([u64; 4], u32, GlobalLinks),
    routing: DragonflyRouting,
) -> Layout {
    let [p, a, h, groups] = [p, a, h, g].map(|count| u32::try_from(count).expect("a small machine"));
    let parameters = DragonflyParameters { p, a, h, links_per_pair, groups, global, routing };
    Layout::Dragonfly(parameters.build().expect("a machine that can be built"))
}

/// Routings of the Dragonfly.
pub const DRAGONFLY_ROUTINGS: [DragonflyRouting; 5] = [
    DragonflyRouting::Minimal,
    DragonflyRouting::UgalL { ugal_threshold: Bytes::ZERO },
    DragonflyRouting::Valiant,
    DragonflyRouting::Par { ugal_threshold: Bytes::ZERO },
    DragonflyRouting::UgalG { ugal_threshold: Bytes::ZERO },
];

pub fn star(endpoints: u64) -> Layout {
    Layout::Star(StarRouting::new(Star::new(endpoints).expect("a machine that can be built")))
}

fn any_torus() -> impl Strategy<Value = Layout> {
    let dimension = || (1u64..=7, any::<bool>());
    let few = |most| move |sizes: &Vec<(u64, bool)>| sizes.iter().map(|d| d.0).product::<u64>() <= most;
    let sizes = prop_oneof![
        prop::collection::vec(dimension(), 1..=3),
        prop::collection::vec((1u64..=3, any::<bool>()), 4..=5),
        prop::collection::vec((4u64..=4, any::<bool>()), 1..=2),
        // Long enough for a way that starts before the dateline and ends well behind it.
        (8u64..=16, 1u64..=2).prop_map(|(long, short)| vec![(long, true), (short, true)]),
    ];
    (sizes.prop_filter("few switches", few(64)), 1u64..=3, any::<bool>())
        .prop_map(|(sizes, concentration, datelines)| torus(&sizes, concentration, datelines))
}

fn any_dragonfly() -> impl Strategy<Value = Layout> {
    let links = prop_oneof![2 => Just(1u64), 1 => 2u64..=3, 1 => 4u64..=6];
    let size = (1u64..=3, 1u64..=5, 0u64..=4, links).prop_flat_map(|(p, a, h, links)| {
        (Just([p, a, h]), Just(links as u32), 1..=(a * h / links + 1).min(9), any::<bool>())
    });
    (size, prop::sample::select(&DRAGONFLY_ROUTINGS)).prop_map(
        |(([p, a, h], links, g, palmtree), routing)| {
            let arrangement = if palmtree { GlobalLinks::Palmtree } else { GlobalLinks::Absolute };
            dragonfly(([p, a, h, g], links, arrangement), routing)
        },
    )
}

/// Routings of trees.
pub const TREE_ROUTINGS: [TreeRouting; 6] = [
    TreeRouting::DModK,
    TreeRouting::UpDown,
    TreeRouting::Ecmp { hash_seed: 1 },
    TreeRouting::Adaptive,
    TreeRouting::RoundRobin,
    TreeRouting::Multipath { hash_seed: 1 },
];

/// A tree of up to four levels.
pub fn any_tree() -> impl Strategy<Value = Layout> {
    let tier = (1u32..=5, 1u32..=3, 1u32..=3);
    let tiers = prop::collection::vec(tier, 0..=3)
        .prop_filter("few endpoints", |tiers| tiers.iter().map(|tier| tier.0).product::<u32>() <= 20);
    (1u32..=4, tiers, prop::sample::select(&TREE_ROUTINGS)).prop_map(|(leaf, tiers, routing)| {
        let tier = |(children, parents, parallel)| Tier { children, parents, parallel };
        let tiers: Vec<Tier> = tiers.into_iter().map(tier).collect();
        let tree = Tree::new(leaf, &tiers).expect("a machine that can be built");
        Layout::Tree(TreeUpDown::new(tree, routing))
    })
}

/// A small machine of any family of the registry. A new family is tested without a line here.
fn any_example() -> impl Strategy<Value = Layout> {
    prop::sample::select(TopologyParameters::examples())
        .prop_map(|parameters| parameters.build().expect("a machine that can be built"))
}

/// Any machine of at most a few hundred endpoints.
pub fn any_machine() -> impl Strategy<Value = Layout> {
    let mezzanines = prop_oneof![1u64..=4, Just(8), Just(12), Just(16)];
    let shape = prop_oneof![(2u64..=6, 1u64..=2), (2u64..=3, 3u64..=4), Just((2, 5))];
    prop_oneof![
        6 => any_example(),
        4 => any_torus(),
        4 => any_dragonfly(),
        4 => any_tree(),
        2 => (shape, any::<bool>()).prop_map(|((k, n), random)| {
            tree(k, n, if random { Ascent::Random } else { Ascent::DModK })
        }),
        1 => (mezzanines, any::<bool>()).prop_map(|(m, datelines)| exanest(m, datelines)),
        1 => (1u64..=20).prop_map(star),
        6 => any_graph(),
    ]
}

/// A connected graph of up to 16 switches, some without endpoints, some links in parallel: a random tree with
/// chords.
pub fn any_graph() -> impl Strategy<Value = Layout> {
    let switches = prop::collection::vec((any::<u32>(), 0u32..=2), 1..=16);
    let chords = prop::collection::vec((any::<u32>(), any::<u32>(), 1u32..=3), 0..=20);
    let routings = [
        GraphRouting::ShortestPath,
        GraphRouting::Ecmp { hash_seed: 1 },
        GraphRouting::Spray,
        GraphRouting::RoundRobin,
        GraphRouting::Multipath { hash_seed: 1 },
        GraphRouting::Adaptive,
        GraphRouting::Valiant,
        GraphRouting::UgalL { ugal_threshold: Bytes::ZERO },
        GraphRouting::UgalG { ugal_threshold: Bytes::ZERO },
    ];
    (switches, chords, prop::sample::select(routings.to_vec())).prop_map(|(switches, chords, routing)| {
        let count = switches.len() as u32;
        let parents = switches.iter().zip(0u32..).skip(1).map(|((parent, _), own)| (parent % own, own, 1));
        let chords = chords.into_iter().map(|(one, other, links)| (one % count, other % count, links));
        let mut joined = BTreeSet::new();
        let links = parents
            .chain(chords)
            .filter(|&(one, other, _)| one != other && joined.insert((one.min(other), one.max(other))));
        let links: Vec<_> =
            links.map(|(one, other, count)| GraphLink { ends: [one, other], count, class: 0 }).collect();
        // The first has one endpoint at least.
        let endpoints =
            |number: usize, endpoints: u32| if number == 0 { endpoints.max(1) } else { endpoints };
        let named = |(number, (_, given)): (usize, &(u32, u32))| GraphSwitch {
            name: format!("s{number}"),
            endpoints: Some(endpoints(number, *given)),
            ..GraphSwitch::default()
        };
        let link =
            GraphClass { name: "link".to_owned(), section: "link".to_owned(), rate: None, latency: None };
        let file = GraphDescription {
            file: "random.edges".to_owned(),
            switches: switches.iter().enumerate().map(named).collect(),
            endpoints: Vec::new(),
            links,
            classes: vec![link],
            ..GraphDescription::default()
        };
        let parameters = GraphParameters { file, endpoints_per_switch: 1, radix: u32::MAX, routing };
        assert_eq!(parameters.check(), Ok(()));
        Layout::Graph(parameters.build().expect("a machine that can be built"))
    })
}

/// Queues and random numbers that are random but repeatable (SplitMix64).
pub struct RandomView {
    /// Queues do not change while a routing decides, however often it draws random numbers.
    queues: u64,
    state: u64,
}

impl RandomView {
    pub fn new(seed: u64) -> RandomView {
        RandomView { queues: seed, state: seed }
    }
}

impl LocalView for RandomView {
    fn queued(&self, port: PortId) -> u64 {
        mix(self.queues ^ u64::from(port.0) << 32) % 5 * 256
    }

    fn published(&self, switch: SwitchId, port: PortId) -> u64 {
        mix(self.queues ^ u64::from(switch.0) << 16 ^ u64::from(port.0)) % 5 * 256
    }

    fn turn(&mut self) -> u32 {
        self.random() as u32
    }

    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// An idle network.
pub struct Idle;

impl LocalView for Idle {
    fn queued(&self, _port: PortId) -> u64 {
        0
    }

    fn random(&mut self) -> u64 {
        0
    }
}

/// The channels between switches that a packet takes; panics where it is lost, or takes more than
/// `bound` of them.
pub fn walk<L: Topology + Routing>(
    layout: &L,
    (from, to): (EndpointId, EndpointId),
    view: &mut impl LocalView,
    bound: usize,
) -> Vec<Channel> {
    let target = layout.endpoint_address(to);
    let (mut switch, mut port) = layout.attachment(from);
    let mut vc = VcId(0);
    let mut state = RouteState(if layout.spreads_blocks() { view.random() as u32 } else { 0 });
    let mut way = Vec::new();
    loop {
        let at = AtSwitch { switch, address: layout.switch_address(switch), port, vc };
        let step = layout.route(at, target, &mut state, view);
        assert!(step.vc.0 < layout.virtual_channels(), "{from} to {to} at {switch}: {step:?}");
        match layout.peer(switch, step.port) {
            Attachment::Nothing => panic!("{from} to {to} leaves {switch} by the unused port {}", step.port),
            Attachment::Endpoint(reached) => {
                assert_eq!(reached, to, "packet of {from} arrived elsewhere");
                return way;
            }
            Attachment::Switch(next, came_by) => {
                way.push(Channel { switch, port: step.port, vc: step.vc });
                assert!(way.len() <= bound, "{from} to {to} takes more than {bound} hops: {way:?}");
                (switch, port, vc) = (next, came_by, step.vc);
            }
        }
    }
}

/// Every ordered pair of endpoints that can reach each other.
pub fn pairs(layout: &impl Topology) -> impl Iterator<Item = (EndpointId, EndpointId)> {
    let all = move || (0..layout.endpoints()).map(EndpointId);
    all()
        .flat_map(move |from| all().map(move |to| (from, to)))
        .filter(|&(from, to)| layout.reachable(from, to))
}

/// Links from a switch to every other by breadth-first search; none where there is no way.
pub fn distances(layout: &impl Topology, from: SwitchId) -> Vec<Option<u32>> {
    let mut distance = vec![None; layout.switches() as usize];
    distance[from.index()] = Some(0);
    let mut frontier = VecDeque::from([(from, 0)]);
    while let Some((switch, hops)) = frontier.pop_front() {
        for port in (0..layout.ports(switch)).map(PortId) {
            if let Attachment::Switch(next, _) = layout.peer(switch, port)
                && distance[next.index()].is_none()
            {
                distance[next.index()] = Some(hops + 1);
                frontier.push_back((next, hops + 1));
            }
        }
    }
    distance
}
