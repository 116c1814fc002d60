//! The detours of the Megafly, and its largest machine.

use crate::machines::{Idle, RandomView, pairs, walk};
use std::collections::BTreeMap;
use weft_topo::*;
use weft_units::{Bytes, EndpointId, PortId, SwitchId, VcId};

const NO_BIAS: Bytes = Bytes::ZERO;

fn megafly([endpoints_per_leaf, leaves, spines, global_per_spine, groups]: [u64; 5]) -> Megafly {
    let size = MegaflySize { endpoints_per_leaf, leaves, spines, global_per_spine, groups };
    Megafly::new(size).expect("a machine that can be built")
}

fn layout(size: [u64; 5], routing: MegaflyRouting) -> MegaflyLayout {
    MegaflyLayout::new(megafly(size), routing)
}

fn routings() -> [MegaflyRouting; 5] {
    let ugal_threshold = NO_BIAS;
    [
        MegaflyRouting::Minimal,
        MegaflyRouting::Valiant,
        MegaflyRouting::UgalL { ugal_threshold },
        MegaflyRouting::Par { ugal_threshold },
        MegaflyRouting::UgalG { ugal_threshold },
    ]
}

/// Random numbers that are all the same, and queues at some ports.
struct Fixed<'a> {
    random: u64,
    queues: &'a [(PortId, u64)],
}

impl LocalView for Fixed<'_> {
    fn queued(&self, port: PortId) -> u64 {
        self.queues.iter().find(|queue| queue.0 == port).map_or(0, |queue| queue.1)
    }

    fn random(&mut self) -> u64 {
        self.random
    }
}

/// The throw that draws number `drawn` of `count`.
fn throw(drawn: u64, count: u64) -> u64 {
    (u64::MAX / count).saturating_mul(drawn) + u64::MAX / count / 2
}

/// The largest load of a port of each class if every flow takes each detour once; ejection is not counted.
fn walked_loads(layout: &MegaflyLayout, flows: impl Iterator<Item = (EndpointId, EndpointId)>) -> [u64; 3] {
    let ways = u64::from(layout.topology().groups() - 2);
    let mut loads = BTreeMap::<(SwitchId, PortId), u64>::new();
    for flow in flows.filter(|(from, to)| from != to) {
        for way in 0..ways {
            let mut view = Fixed { random: throw(way, ways), queues: &[] };
            for channel in walk(layout, flow, &mut view, 6) {
                *loads.entry((channel.switch, channel.port)).or_default() += 1;
            }
        }
    }
    let mut busiest = [0; 3];
    for ((switch, port), load) in loads {
        let class = usize::from(layout.link_class(switch, port).0);
        busiest[class] = load.max(busiest[class]);
    }
    busiest
}

/// Catches loads of detours that the figures route otherwise than packets go, and a group that is drawn more
/// often than others.
#[test]
fn loads_of_detours_agree_with_walks_over_every_group() {
    for size in
        [[2, 3, 2, 2, 5], [2, 2, 2, 2, 3], [3, 3, 2, 2, 4], [1, 3, 2, 3, 5], [2, 2, 2, 7, 4], [1, 2, 4, 4, 6]]
    {
        let layout = layout(size, MegaflyRouting::Valiant);
        let ways = f64::from(layout.topology().groups() - 2);
        let agree = |load: &ChannelLoad, walked: [u64; 3], unit: f64| {
            assert_eq!(load.paths, Paths::Random);
            for (class, (&walked, &found)) in walked.iter().zip(&load.per_class).enumerate().skip(1) {
                let expected = walked as f64 / (ways * unit);
                assert!((expected - found).abs() < 1e-9, "{size:?} class {class}: {found} is not {expected}");
            }
        };
        let uniform = channel_load(&layout, Pattern::Uniform).unwrap();
        let others = f64::from(layout.endpoints() - 1);
        agree(&uniform, walked_loads(&layout, pairs(&layout)), others);
        for pattern in [Pattern::Tornado, Pattern::BitComplement] {
            let permutation = Permutation::new(pattern, &layout).unwrap();
            let flows =
                (0..layout.endpoints()).map(EndpointId).map(|from| (from, permutation.destination(from)));
            agree(&channel_load(&layout, pattern).unwrap(), walked_loads(&layout, flows), 1.0);
        }
    }
}

/// Catches examples whose figures, proof or routes differ from what is counted on them: the properties of all
/// families take random machines, this takes every one.
#[test]
fn minimal_loads_agree_with_walks_on_every_example() {
    for parameters in
        MegaflyParameters::examples().iter().filter(|one| one.routing == MegaflyRouting::Minimal)
    {
        let layout = parameters.build().unwrap();
        let uniform = channel_load(&layout, Pattern::Uniform).unwrap();
        let mut loads = BTreeMap::<(SwitchId, PortId), u64>::new();
        let (mut longest, mut sum) = (0, 0);
        for flow in pairs(&layout).filter(|(from, to)| from != to) {
            let way = walk(&layout, flow, &mut Idle, 3);
            (longest, sum) = (way.len().max(longest), sum + way.len());
            way.iter().for_each(|channel| *loads.entry((channel.switch, channel.port)).or_default() += 1);
        }
        let others = f64::from(layout.endpoints().max(2) - 1);
        for class in 1..3u8 {
            let of_class =
                loads.iter().filter(|((switch, port), _)| layout.link_class(*switch, *port).0 == class);
            let expected = of_class.map(|(_, &load)| load).max().unwrap_or(0) as f64 / others;
            let found = uniform.per_class[usize::from(class)];
            assert!(
                (expected - found).abs() < 1e-9,
                "{parameters:?} class {class}: {found} is not {expected}"
            );
        }
        let figures = figures(&layout);
        assert_eq!(figures.diameter as usize, longest, "{parameters:?}");
        let mean = sum as f64 / (f64::from(layout.endpoints()) * others);
        assert!((figures.mean_distance - mean).abs() < 1e-9, "{parameters:?}");
    }
}

/// Catches routes of the RED-SEA machine that are longer than the paths of the topology.
#[test]
fn the_288_endpoints_of_red_sea() {
    for routing in routings() {
        let layout = layout([6, 6, 6, 6, 8], routing);
        assert_eq!(prove(&layout).unwrap().method, Method::Ranks);
        let figures = figures(&layout);
        assert_eq!((figures.endpoints, figures.switches), (288, 96));
        // 28 pairs of groups with five links, and one more for each of four.
        assert_eq!(
            figures.links.iter().map(|class| class.links).collect::<Vec<_>>(),
            [288, 8 * 36, 28 * 5 + 4]
        );
        // Groups opposite each other are on one side: 16 pairs of groups are cut.
        assert_eq!(figures.bisection.links, 16 * 5);
        let mut rng = RandomView::new(11);
        for pair in pairs(&layout) {
            let way = walk(&layout, pair, &mut rng, 6);
            assert!([0, 2, 3, 4, 6].contains(&way.len()), "{way:?}");
        }
    }
}

/// Catches a leaf that looks at other queues than its own, takes a detour where it is no faster, or weighs a
/// path with other links than it has.
#[test]
fn the_leaf_detours_only_past_a_long_queue() {
    // Leaves have ports up from 6, spines only ports below: queues named here stand at leaves.
    let size = [6, 2, 2, 2, 5];
    let (from, to) = (EndpointId(0), EndpointId(3 * 12));
    let way = walk(&layout(size, MegaflyRouting::Minimal), (from, to), &mut Idle, 3);
    let queue = way[0].port;
    // The throw of a group whose links leave by the other spine.
    let throws = (0..3).map(|drawn| throw(drawn, 3));
    let valiant = layout(size, MegaflyRouting::Valiant);
    let around = |random| walk(&valiant, (from, to), &mut Fixed { random, queues: &[] }, 6);
    let random = throws.into_iter().find(|&random| around(random)[0].port != queue).unwrap();
    let detour = around(random);
    let other = detour[0].port;
    let adaptive = |bias: u64, queues: &[(PortId, u64)]| {
        let ugal_threshold = Bytes::new(bias);
        let layout = layout(size, MegaflyRouting::UgalL { ugal_threshold });
        walk(&layout, (from, to), &mut Fixed { random, queues }, 6)
    };
    assert_eq!(adaptive(0, &[]), way);
    assert_eq!(adaptive(0, &[(queue, 1)]), detour);
    let hops = detour.len() as u64;
    assert_eq!(adaptive(0, &[(queue, 100 * hops), (other, 300)]), way);
    assert_eq!(adaptive(0, &[(queue, 100 * hops + 1), (other, 300)]), detour);
    assert_eq!(adaptive(300, &[(queue, 100)]), way);
    assert_eq!(adaptive(300, &[(queue, 101)]), detour);
}

/// Catches a spine that never asks again, that asks where the packet is on a detour or has come to another
/// group, and one that goes by a port of another spine.
#[test]
fn the_spine_of_the_source_group_may_leave_the_minimal_path() {
    let size = [6, 2, 2, 2, 5];
    let (from, to) = (EndpointId(0), EndpointId(3 * 12));
    let [minimal, _, ugal, par, _] = routings().map(|routing| layout(size, routing));
    let way = walk(&minimal, (from, to), &mut Idle, 3);
    let spine = way[1].switch;
    let queues = [(way[1].port, 1000)];
    let group = |channel: &Channel| match par.topology().peer(channel.switch, channel.port) {
        Attachment::Switch(next, _) if channel.vc.0 < 2 => (next.0 - 10) / 2,
        _ => panic!("{channel} ends nowhere"),
    };
    let mut ways = Vec::new();
    for drawn in 0..2 {
        let mut view = Fixed { random: throw(drawn, 2), queues: &queues };
        assert_eq!(walk(&ugal, (from, to), &mut view, 6), way);
        let around = walk(&par, (from, to), &mut view, 6);
        assert_eq!((around[0], around[1].switch), (way[0], spine));
        if around[1].port == way[1].port {
            assert_eq!(around, way);
        } else {
            assert_ne!(group(&around[1]), 3);
            assert!(around.len() > way.len() && around.last().unwrap().vc == VcId(1), "{around:?}");
        }
        ways.push(around);
    }
    assert_ne!(ways[0], ways[1]);
    assert!(ways.contains(&way));
    // Several links to the group: another of them is no detour.
    let size = [8, 1, 1, 4, 3];
    let [minimal, .., par, _] = routings().map(|routing| layout(size, routing));
    let (from, to) = (EndpointId(0), EndpointId(2 * 8));
    let way = walk(&minimal, (from, to), &mut Idle, 3);
    let queues = [(way[1].port, 1000)];
    let lengths: Vec<_> = (0..4)
        .map(|drawn| walk(&par, (from, to), &mut Fixed { random: throw(drawn, 4), queues: &queues }, 6).len())
        .collect();
    assert_eq!(lengths, [4, 4, 3, 3]);
}

/// A layout whose channels are all said to be the first.
struct OneChannel(MegaflyLayout);

impl RoutedTopology for OneChannel {
    type Topology = Megafly;
    fn topology(&self) -> &Megafly {
        self.0.topology()
    }
}

impl Routing for OneChannel {
    fn virtual_channels(&self) -> u32 {
        1
    }
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        NextHop { vc: VcId(0), ..self.0.route(at, to, state, view) }
    }
    fn is_deterministic(&self) -> bool {
        self.0.is_deterministic()
    }
}

impl Ranked for OneChannel {
    fn rank(&self, channel: Channel) -> u64 {
        self.0.rank(channel)
    }
    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        for vc in (0..self.0.virtual_channels()).map(VcId) {
            self.0.successors(Channel { vc, ..channel }, &mut |next| visit(Channel { vc: VcId(0), ..next }));
        }
    }
    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}

/// Catches virtual channels that no routing needs.
#[test]
fn a_detour_needs_the_second_virtual_channel() {
    for routing in routings() {
        let layout = layout([2, 2, 2, 2, 5], routing);
        let is_enough = prove(&OneChannel(layout.clone())).is_ok();
        assert_eq!(is_enough, layout.virtual_channels() == 1, "{:?}", layout.routing());
        assert_eq!(is_enough, *layout.routing() == MegaflyRouting::Minimal);
    }
}

/// Catches tables and figures that grow with the square of the groups or of the endpoints of k = 64.
#[test]
fn the_megafly_of_1_049_600_endpoints() {
    // The figures of UGAL are those of PAR.
    let [minimal, valiant, _, par, _] = routings();
    for routing in [minimal, valiant, par] {
        let layout = layout([32, 32, 32, 32, 1025], routing);
        assert_eq!(prove(&layout).unwrap().method, Method::RanksBySymmetry);
        let mut rng = RandomView::new(5);
        for _ in 0..10_000 {
            let from = EndpointId((rng.random() % u64::from(layout.endpoints())) as u32);
            let to = pattern::uniform(layout.endpoints(), from, rng.random());
            let bound = layout.longest_route().unwrap_or(3) as usize;
            walk(&layout, (from, to), &mut rng, bound);
        }
        let figures = figures(&layout);
        let links: Vec<_> = figures.links.iter().map(|class| class.links).collect();
        assert_eq!(links, [1_049_600, 1_049_600, 1025 * 512]);
        assert_eq!(figures.bisection.links, 512 * 513);
        // A group sends to one or two others: minimal paths share one link, detours all.
        let tornado = figures.channel_loads[2].load.as_ref().unwrap();
        let is_minimal = *layout.routing() == MegaflyRouting::Minimal;
        assert_eq!(tornado.busiest() > 100.0, is_minimal, "{tornado:?}");
    }
}
