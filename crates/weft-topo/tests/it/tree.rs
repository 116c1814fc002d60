//! Routings of trees.

use crate::machines::{Idle, RandomView, TREE_ROUTINGS, general_tree, pairs, walk};
use std::collections::{BTreeMap, BTreeSet};
use weft_keys::Misfit;
use weft_topo::*;
use weft_units::{EndpointId, PortId, SwitchId, VcId};

/// Full trees: of each level as many links as endpoints.
const FULL: [[&[u32]; 3]; 4] = [
    [&[4, 4, 8], &[4, 4], &[1, 1]],
    [&[4, 8], &[4], &[2]],
    [&[4, 4, 4], &[4, 4], &[2, 1]],
    [&[3, 3, 6], &[3, 3], &[1, 3]],
];

fn machine([down, up, parallel]: [&[u32]; 3], routing: TreeRouting) -> Layout {
    general_tree(down, up, parallel, routing)
}

/// Catches digits of D-mod-k in the wrong order, above all with links in parallel: on full trees every shift
/// by a constant goes without two packets on one channel (Zahavi 2012).
#[test]
fn d_mod_k_shifts_without_contention_on_full_trees() {
    for shape in FULL {
        let layout = machine(shape, TreeRouting::DModK);
        for shift in 1..layout.endpoints() {
            let mut taken = BTreeSet::new();
            for from in 0..layout.endpoints() {
                let to = (from + shift) % layout.endpoints();
                for channel in walk(&layout, (EndpointId(from), EndpointId(to)), &mut Idle, 4) {
                    assert!(taken.insert(channel), "{shape:?} shifted by {shift}: {channel} is taken");
                }
            }
        }
    }
}

/// Catches a load of D-mod-k on a full tree that is not that of all its links alike.
#[test]
fn d_mod_k_is_balanced_on_full_trees_under_uniform_traffic() {
    for shape in FULL {
        let load = |routing| channel_load(&machine(shape, routing), Pattern::Uniform).unwrap().per_class;
        assert_eq!(load(TreeRouting::DModK), load(TreeRouting::UpDown), "{shape:?}");
    }
}

/// Flows by the port of the switch that they leave by, over all pairs.
fn flows_per_port(layout: &Layout) -> BTreeMap<(SwitchId, PortId), u32> {
    let mut flows = BTreeMap::new();
    for (from, to) in pairs(layout) {
        for channel in walk(layout, (from, to), &mut Idle, 4) {
            *flows.entry((channel.switch, channel.port)).or_default() += 1;
        }
    }
    flows
}

/// Catches a hash that leaves links unused: one of the destination alone, or the same one at every level,
/// after which flows that meet at a switch of level 1 would all go on by one port.
#[test]
fn ecmp_uses_all_links() {
    let layout = machine(FULL[0], TreeRouting::Ecmp { hash_seed: 1 });
    let flows = flows_per_port(&layout);
    // 32 leaves, then as many switches of level 1: a link up carries the flows of 4 sources on average.
    let (least, most) = (flows.values().min().unwrap(), flows.values().max().unwrap());
    let links = 2 * (32 * 4 + 32 * 4);
    assert_eq!(flows.len(), links);
    // Of 496 and 448 flows a link has a quarter, give or take five standard deviations.
    assert!(*least > 50 && *most < 180, "{least} to {most}");
}

/// Catches a seed without effect, and paths that depend on anything but the pair.
#[test]
fn another_seed_is_another_choice_of_ways() {
    let ways = |hash_seed| {
        let layout = machine(FULL[0], TreeRouting::Ecmp { hash_seed });
        pairs(&layout).map(|pair| walk(&layout, pair, &mut RandomView::new(3), 4)).collect::<Vec<_>>()
    };
    let [one, two] = [ways(1), ways(2)];
    assert_eq!(one, ways(1));
    let differ = one.iter().zip(&two).filter(|(one, two)| one != two).count();
    // Between subtrees 1 of 16 ways stays the same by chance, within one 1 of 4.
    assert!(differ * 10 > 8 * one.len(), "{differ} of {}", one.len());
}

/// Queues of these bytes at the ports; random numbers that are all `random`.
struct Queues<'q> {
    bytes: &'q [u64],
    random: u64,
}

impl LocalView for Queues<'_> {
    fn queued(&self, port: PortId) -> u64 {
        self.bytes[port.index()]
    }

    fn random(&mut self) -> u64 {
        self.random
    }
}

/// Catches an adaptive routing that looks at the wrong ports, takes a longer queue, or prefers one of equal
/// ones.
#[test]
fn adaptive_takes_the_shortest_queue() {
    // Leaves of ports 0 to 3 down and 4 to 7 up, by pairs to two spines; a spine has two links to each leaf.
    let layout = general_tree(&[4, 8], &[4], &[2], TreeRouting::Adaptive);
    let port = |switch, port, to, bytes: &[u64], random| {
        let switch = SwitchId(switch);
        let at = AtSwitch {
            switch,
            address: layout.switch_address(switch),
            port: PortId(port),
            vc: weft_units::VcId(0),
        };
        let to = layout.endpoint_address(EndpointId(to));
        layout.route(at, to, &mut RouteState::default(), &mut Queues { bytes, random }).port.0
    };
    assert_eq!(port(0, 0, 15, &[0, 0, 0, 0, 9, 8, 7, 8], 5), 6);
    let ties = [0, 0, 0, 0, 9, 2, 7, 2];
    assert_eq!([0, u64::MAX].map(|random| port(0, 0, 15, &ties, random)), [5, 7]);
    assert_eq!(port(0, 0, 3, &[9; 8], 5), 3);
    // Down from spine 4 to leaf 3: port 3 or 7.
    assert_eq!(port(4, 0, 15, &[0, 0, 0, 9, 0, 0, 0, 1], 5), 7);
    assert_eq!(port(4, 0, 15, &[0, 0, 0, 1, 0, 0, 0, 9], 5), 3);
}

#[test]
fn routings_say_whether_they_keep_order() {
    let keep = TREE_ROUTINGS.map(|routing| machine(FULL[1], routing).is_deterministic());
    assert_eq!(keep, [true, false, true, false, false, false]);
}

#[test]
fn a_tree_of_tens_of_thousands_has_figures_in_closed_form() {
    let layout = general_tree(&[32, 32, 64], &[16, 32], &[1, 1], TreeRouting::DModK);
    let figures = figures(&layout);
    assert_eq!((figures.endpoints, figures.switches, figures.diameter), (65_536, 2048 + 1024 + 512, 4));
    assert_eq!(figures.bisection.links, 16_384);
    assert_eq!(figures.sources, SourcesCounted::All);
    let load = figures.channel_loads[0].load.as_ref().unwrap();
    assert!((load.per_class[1] - 2.0 * 65_504.0 / 65_535.0).abs() < 1e-9, "{load:?}");
    let links: Vec<_> = figures.links.iter().map(|class| (class.class.as_str(), class.links)).collect();
    assert_eq!(links, [("endpoint", 65_536), ("level1", 32_768), ("level2", 32_768)]);
}

/// Catches combinations that are not refused, and refusals that name the wrong key or no mend.
#[test]
fn impossible_trees_are_refused_with_the_key_and_the_mend() {
    let misfit = |down: &[u32], up: &[u32], parallel: &[u32]| {
        let [down, up, parallel] = [down, up, parallel].map(<[u32]>::to_vec);
        let routing = TreeRouting::DModK;
        let Misfit { key, title, label, help } =
            TreeParameters { down, up, parallel, routing }.check().unwrap_err();
        format!("{key}: {title}; {label}; {help}")
    };
    let levels = "down: a tree has 1 to 6 levels of switches; these are";
    assert_eq!(misfit(&[], &[], &[]), format!("{levels} 0; write down = [4, 4, 8]"));
    assert!(misfit(&[2; 7], &[2; 6], &[1; 6]).starts_with(&format!("{levels} 7")));
    assert_eq!(
        misfit(&[4, 4, 8], &[4], &[1]),
        "up: `up` has a number for each level but the top; 1 for 3 levels; write 2 of them, such as \
         up = [4, 4], or remove `up`"
    );
    assert_eq!(
        misfit(&[4, 8], &[4], &[1, 2]),
        "parallel: `parallel` has a number for each level but the top; 2 for 2 levels; write 1 of them, such \
         as parallel = [1], or remove `parallel`"
    );
    assert!(misfit(&[4], &[4], &[]).ends_with("1 for 1 levels; remove `up`"));
    let remainder = "write a divisor of 2 in place of";
    assert_eq!(
        misfit(&[4, 4, 8], &[4, 6], &[1, 4]),
        format!(
            "parallel: ports between levels 1 and 2 do not come in groups of 4; up[1] = 6 and down[2] = 8; \
             {remainder} 4, or change these ports"
        )
    );
    assert!(misfit(&[4, 6], &[4], &[4]).contains(remainder));
    assert!(misfit(&[2; 6], &[1 << 12; 5], &[1 << 11; 5]).contains("down[1] = 2"));
    let wide = [2, 1 << 12, 1 << 12, 1 << 12, 1 << 12, 1 << 12];
    assert!(
        misfit(&wide, &wide[1..], &[1 << 11; 5])
            .starts_with("parallel: so many links in parallel do not fit")
    );
}

/// Catches a spine-leaf network that is not the tree of its name: four leaves of four endpoints, two spines.
#[test]
fn a_spine_leaf_network_is_a_tree_of_two_levels() {
    let routing = TreeRouting::Ecmp { hash_seed: 1 };
    let parameters =
        SpineLeafParameters { leaves: 4, spines: 2, endpoints_per_leaf: 4, links_per_spine: 2, routing };
    let layout = Layout::Tree(parameters.build().unwrap());
    assert_eq!(layout, general_tree(&[4, 8], &[4], &[2], routing));
    assert_eq!((layout.endpoints(), layout.switches()), (16, 6));
    assert_eq!(layout.link_classes(), ["endpoint", "level1"]);
}

/// Random numbers that are none, and turns one after the other.
struct Turns(u32);

impl LocalView for Turns {
    fn queued(&self, _port: PortId) -> u64 {
        0
    }

    fn turn(&mut self) -> u32 {
        self.0 += 1;
        self.0
    }

    fn random(&mut self) -> u64 {
        0
    }
}

/// The port by which a packet of a block leaves the first switch.
fn first_port(layout: &Layout, to: EndpointId, block: u32, view: &mut impl LocalView) -> PortId {
    let (switch, port) = layout.attachment(EndpointId(0));
    let at = AtSwitch { switch, address: layout.switch_address(switch), port, vc: VcId(0) };
    layout.route(at, layout.endpoint_address(to), &mut RouteState(block), view).port
}

/// Catches turns that leave out a port, or take one twice before another.
#[test]
fn round_robin_takes_all_ports_in_turn() {
    let graph = SlimFlyParameters { q: 5, p: 1, routing: GraphRouting::RoundRobin };
    assert!(!Layout::Graph(graph.build().unwrap()).is_deterministic());
    let layout = machine(FULL[1], TreeRouting::RoundRobin);
    let far = EndpointId(layout.endpoints() - 1);
    let mut turns = Turns(0);
    let ports: Vec<PortId> = (0..12).map(|_| first_port(&layout, far, 0, &mut turns)).collect();
    let ways = ports.iter().collect::<BTreeSet<_>>().len();
    assert!(ways > 1);
    for round in ports.windows(ways) {
        assert_eq!(round.iter().collect::<BTreeSet<_>>().len(), ways, "{ports:?}");
    }
}

/// Catches packets of one block on several ways, blocks that all take one, and a packet of no block that does
/// not go as with ECMP.
#[test]
fn multipath_spreads_blocks_and_keeps_each_together() {
    let layout = machine(FULL[1], TreeRouting::Multipath { hash_seed: 1 });
    let ecmp = machine(FULL[1], TreeRouting::Ecmp { hash_seed: 1 });
    assert!(layout.spreads_blocks() && !ecmp.spreads_blocks());
    let far = EndpointId(layout.endpoints() - 1);
    let port = |layout, block| first_port(layout, far, block, &mut Turns(0));
    assert_eq!(port(&layout, 0), port(&ecmp, 0));
    let ports: Vec<PortId> = (1..200).map(|block| port(&layout, block)).collect();
    assert_eq!(ports, (1..200).map(|block| port(&layout, block)).collect::<Vec<_>>());
    let ways = ports.iter().collect::<BTreeSet<_>>();
    for way in &ways {
        let share = ports.iter().filter(|port| port == way).count() * ways.len();
        assert!((100..300).contains(&share), "{ports:?}");
    }
}
