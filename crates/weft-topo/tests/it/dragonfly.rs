//! The Dragonfly: several links per pair of groups, detours, and the second thoughts of PAR.

use crate::machines::{DRAGONFLY_ROUTINGS, Idle, RandomView, dragonfly, pairs, walk};
use std::collections::{BTreeMap, BTreeSet};
use weft_topo::*;
use weft_units::{Bytes, EndpointId, PortId, SwitchId, VcId};

const UGAL: DragonflyRouting = DragonflyRouting::UgalL { ugal_threshold: Bytes::ZERO };
const ARRANGEMENTS: [GlobalLinks; 2] = [GlobalLinks::Palmtree, GlobalLinks::Absolute];

/// Queues at some ports, and random numbers that are all the same.
struct Queues<'a> {
    random: u64,
    queues: &'a [(PortId, u64)],
}

impl LocalView for Queues<'_> {
    fn queued(&self, port: PortId) -> u64 {
        self.queues.iter().find(|queue| queue.0 == port).map_or(0, |queue| queue.1)
    }

    fn random(&mut self) -> u64 {
        self.random
    }
}

/// The global links of a walk.
fn global_links(layout: &Layout, way: &[Channel]) -> Vec<Channel> {
    let is_global = |channel: &&Channel| layout.link_class(channel.switch, channel.port).0 == 2;
    way.iter().filter(is_global).copied().collect()
}

/// Catches a packet that leaves its switch although that has a link to the group of its destination, or
/// passes by the link that ends at the switch of its destination.
#[test]
fn the_minimal_path_is_the_shortest_with_one_global_link() {
    for ([p, a, h, g], links) in [([2, 4, 3, 5], 3), ([1, 3, 4, 4], 4), ([2, 5, 2, 4], 2), ([1, 2, 5, 3], 5)]
    {
        for arrangement in ARRANGEMENTS {
            let layout = dragonfly(([p, a, h, g], links, arrangement), DragonflyRouting::Minimal);
            let switch = |endpoint: EndpointId| layout.attachment(endpoint).0;
            // Pairs of switches that a global link joins.
            let mut joined = BTreeSet::new();
            let switches = (0..layout.switches()).map(SwitchId);
            let ports = |switch| (0..layout.ports(switch)).map(move |port| (switch, PortId(port)));
            for (from, port) in switches.flat_map(ports) {
                if layout.link_class(from, port).0 == 2
                    && let Attachment::Switch(to, _) = layout.peer(from, port)
                {
                    joined.insert((from, to));
                }
            }
            let group = |endpoint| switch(endpoint).0 / a as u32;
            for (from, to) in pairs(&layout).filter(|&(from, to)| group(from) != group(to)) {
                let ends = |end| joined.iter().filter(move |(here, _)| *here == end);
                let shortest = if joined.contains(&(switch(from), switch(to))) {
                    1
                } else if ends(switch(from)).any(|(_, there)| there.0 / a as u32 == group(to))
                    || ends(switch(to)).any(|(_, there)| there.0 / a as u32 == group(from))
                {
                    2
                } else {
                    3
                };
                let way = walk(&layout, (from, to), &mut Idle, 3);
                assert_eq!(way.len(), shortest, "{from} to {to}: {layout:?}");
                assert_eq!(global_links(&layout, &way).len(), 1);
            }
        }
    }
}

/// Catches destinations that all choose the same of several links.
#[test]
fn destinations_spread_over_the_links_of_a_pair() {
    let layout = dragonfly(([16, 32, 10, 74], 4, GlobalLinks::Palmtree), DragonflyRouting::Minimal);
    let mut flows = BTreeMap::<Channel, u32>::new();
    for (from, to) in (0..512).flat_map(|from| (0..512).map(move |to| (from, 7 * 512 + to))) {
        let way = walk(&layout, (EndpointId(from), EndpointId(to)), &mut Idle, 3);
        *flows.entry(global_links(&layout, &way)[0]).or_default() += 1;
    }
    assert_eq!(flows.into_values().collect::<Vec<_>>(), [512 * 512 / 4; 4]);
}

/// Catches an adaptive routing that is blind to the queues of parallel links, that leaves the link of its own
/// switch for that of another, and one that waits at a link while another of the switch is free.
#[test]
fn adaptive_routings_take_the_shortest_queue_of_parallel_links() {
    // Two groups: there are no detours. Links of group 0 lie on switches 0 to 2 of 5.
    let machine = |routing| dragonfly(([1, 5, 1, 2], 3, GlobalLinks::Palmtree), routing);
    let (minimal, adaptive) = (machine(DragonflyRouting::Minimal), machine(UGAL));
    // From switch 4 to switch 4 of the other group, to whom no link leads.
    let pair = (EndpointId(4), EndpointId(9));
    let way = walk(&minimal, pair, &mut Idle, 3);
    let chosen = way[0].port;
    let with = |queues: &[(PortId, u64)]| walk(&adaptive, pair, &mut Queues { random: 0, queues }, 3);
    assert_eq!(with(&[]), way);
    // Port 0 is the endpoint, ports 1 to 3 lead to switches 0 to 2.
    let others: Vec<_> = (1..=3).map(PortId).filter(|&port| port != chosen).collect();
    assert_eq!(with(&[(chosen, 5), (others[0], 4), (others[1], 3)])[0].port, others[1]);
    assert_eq!(with(&[(chosen, 3), (others[0], 4), (others[1], 3)])[0].port, chosen);
    // Switch 0 has a link itself (port 5): it is taken whatever its queue.
    let own = walk(
        &adaptive,
        (EndpointId(0), EndpointId(9)),
        &mut Queues { random: 0, queues: &[(PortId(5), 9)] },
        3,
    );
    assert_eq!(own[0].port, PortId(5));
    // One switch per group, four links to the other: ports 1 to 4.
    let adaptive = dragonfly(([1, 1, 4, 2], 4, GlobalLinks::Palmtree), UGAL);
    let queues = [1, 2, 4].map(|port| (PortId(port), 7));
    let way = walk(&adaptive, (EndpointId(0), EndpointId(1)), &mut Queues { random: 0, queues: &queues }, 1);
    assert_eq!(way[0].port, PortId(3));
}

/// The throw that draws number `drawn` of `count`.
fn throw(drawn: u64, count: u64) -> u64 {
    (u64::MAX / count).saturating_mul(drawn) + u64::MAX / count / 2
}

/// The largest load of a port of each class if every flow takes each detour once; ejection is not counted.
fn walked_loads(
    layout: &Layout,
    groups: u64,
    flows: impl Iterator<Item = (EndpointId, EndpointId)>,
) -> [u64; 3] {
    let mut loads = BTreeMap::<(SwitchId, PortId), u64>::new();
    for flow in flows.filter(|(from, to)| from != to) {
        for way in 0..groups - 2 {
            let mut view = Queues { random: throw(way, groups - 2), queues: &[] };
            for channel in walk(layout, flow, &mut view, 5) {
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
    let sizes = [
        ([2, 3, 2, 5], 1),
        ([1, 4, 2, 9], 1),
        ([2, 4, 2, 5], 2),
        ([1, 4, 3, 4], 3),
        ([2, 5, 2, 4], 3),
        ([2, 3, 2, 3], 3),
        ([3, 2, 5, 4], 3),
    ];
    for ((size, links), arrangement) in sizes.into_iter().flat_map(|size| ARRANGEMENTS.map(|one| (size, one)))
    {
        let layout = dragonfly((size, links, arrangement), DragonflyRouting::Valiant);
        let agree = |load: &ChannelLoad, walked: [u64; 3], unit: f64| {
            assert_eq!(load.paths, Paths::Random);
            for (class, (&walked, &found)) in walked.iter().zip(&load.per_class).enumerate().skip(1) {
                let expected = walked as f64 / ((size[3] - 2) as f64 * unit);
                assert!((expected - found).abs() < 1e-9, "{layout:?} class {class}: {found}, not {expected}");
            }
        };
        let uniform = channel_load(&layout, Pattern::Uniform).unwrap();
        let others = f64::from(layout.endpoints() - 1);
        agree(&uniform, walked_loads(&layout, size[3], pairs(&layout)), others);
        for pattern in [Pattern::Tornado, Pattern::BitComplement] {
            let permutation = Permutation::new(pattern, &layout).unwrap();
            let sources = (0..layout.endpoints()).map(EndpointId);
            let flows = sources.map(|from| (from, permutation.destination(from)));
            agree(&channel_load(&layout, pattern).unwrap(), walked_loads(&layout, size[3], flows), 1.0);
        }
    }
}

/// Catches a second switch that never asks again, that asks where the packet is on a detour or has come to
/// another group, weighs a path with other links than are left of it, or ignores the threshold.
#[test]
fn another_switch_of_the_source_group_may_leave_the_minimal_path() {
    // Groups of 4 switches with one endpoint each; switch 0 of group 0 has the links to groups 8 and 7.
    let machine = |routing| dragonfly(([1, 4, 2, 9], 1, GlobalLinks::Palmtree), routing);
    let par = |bias| machine(DragonflyRouting::Par { ugal_threshold: Bytes::new(bias) });
    let (minimal, ugal) = (machine(DragonflyRouting::Minimal), machine(UGAL));
    // From switch 3 of group 0 to switch 3 of group 8, whose link to group 0 ends at switch 3.
    let pair = (EndpointId(3), EndpointId(8 * 4 + 3));
    let way = walk(&minimal, pair, &mut Idle, 3);
    let (local, global) = (way[0].port, way[1].port);
    assert_eq!((way.len(), way[1].switch), (2, SwitchId(0)));
    // No local port has the number of a global one: this queue stands at the second switch.
    let queues = [(global, 1000)];
    let mut lengths = BTreeSet::new();
    for drawn in 0..7 {
        let mut view = Queues { random: throw(drawn, 7), queues: &queues };
        assert_eq!(walk(&ugal, pair, &mut view, 5), way);
        let around = walk(&par(0), pair, &mut view, 6);
        assert_eq!((around[0], around[1].switch), (Channel { vc: VcId(0), ..way[0] }, SwitchId(0)));
        assert_ne!(around[1].port, global);
        let channels: Vec<_> = around.iter().map(|channel| channel.vc.0).collect();
        assert!(channels.is_sorted() && channels[1] == 1, "{around:?}");
        assert_eq!(global_links(&par(0), &around).len(), 2);
        lengths.insert(around.len());
        // One link is left of the minimal path; the detour's own queue counts its links from here.
        assert_eq!(walk(&par(999), pair, &mut view, 6), around);
        assert_eq!(walk(&par(1000), pair, &mut view, 6).len(), way.len());
        let left = around.len() as u64 - 1;
        let with = |bytes| {
            let queues = [(global, 1000), (around[1].port, bytes)];
            walk(&par(0), pair, &mut Queues { random: throw(drawn, 7), queues: &queues }, 6).len()
        };
        // The switch's own port back to the source, or to others, may be one that the source looks at too.
        if around[1].port != local {
            assert_eq!((with(999 / left), with(1000 / left + 1)), (around.len(), way.len()), "{around:?}");
        }
    }
    assert!(lengths.contains(&6) && lengths.len() > 1, "{lengths:?}");
}

/// PAR as it would be with the channels of UGAL: the second local link of the source's group on the first's.
struct OneChannelLess(Layout);

impl OneChannelLess {
    fn merged(channel: Channel) -> Channel {
        Channel { vc: VcId(channel.vc.0.saturating_sub(1)), ..channel }
    }
}

impl RoutedTopology for OneChannelLess {
    type Topology = Layout;
    fn topology(&self) -> &Layout {
        &self.0
    }
}

impl Routing for OneChannelLess {
    fn virtual_channels(&self) -> u32 {
        self.0.virtual_channels() - 1
    }
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        self.0.route(at, to, state, view)
    }
    fn is_deterministic(&self) -> bool {
        false
    }
}

impl Ranked for OneChannelLess {
    fn rank(&self, channel: Channel) -> u64 {
        self.0.rank(channel)
    }
    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        for vc in (0..self.0.virtual_channels()).map(VcId).filter(|vc| vc.0.saturating_sub(1) == channel.vc.0)
        {
            self.0.successors(Channel { vc, ..channel }, &mut |next| visit(OneChannelLess::merged(next)));
        }
    }
    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}

/// Catches a virtual channel of PAR that it does not need.
#[test]
fn a_second_thought_needs_the_fourth_virtual_channel() {
    let par = dragonfly(
        ([1, 3, 1, 4], 1, GlobalLinks::Palmtree),
        DragonflyRouting::Par { ugal_threshold: Bytes::ZERO },
    );
    assert_eq!(prove(&par).unwrap().method, Method::Ranks);
    assert!(prove(&OneChannelLess(par)).is_err());
}

/// Catches closed forms and proofs that do not hold, or take long, on a machine of the size of Frontier: 74
/// groups of 32 switches, 16 endpoints per switch, four links per pair of groups.
#[test]
fn the_dragonfly_of_frontier() {
    let palmtree = DRAGONFLY_ROUTINGS.map(|routing| (GlobalLinks::Palmtree, routing));
    let absolute =
        [DragonflyRouting::Minimal, DragonflyRouting::Valiant].map(|one| (GlobalLinks::Absolute, one));
    for (arrangement, routing) in palmtree.into_iter().chain(absolute) {
        let layout = dragonfly(([16, 32, 10, 74], 4, arrangement), routing.clone());
        assert_ne!(prove(&layout).expect("no deadlock").method, Method::Search);
        let figures = figures(&layout);
        assert_eq!((figures.endpoints, figures.switches, figures.diameter), (37_888, 2_368, 3));
        let links: Vec<_> = figures.links.iter().map(|class| class.links).collect();
        assert_eq!(links, [37_888, 74 * 32 * 31 / 2, 4 * 74 * 73 / 2]);
        assert_eq!(figures.bisection.links, 37 * 37 * 4);
        assert_eq!(figures.sources, SourcesCounted::All);
        // 512² flows on 4 links; on detours twice.
        let uniform = figures.channel_loads[0].load.as_ref().unwrap();
        let links = if routing == DragonflyRouting::Valiant { 2.0 } else { 1.0 };
        assert!((uniform.per_class[2] - links * 65_536.0 / 37_887.0).abs() < 1e-9, "{uniform:?}");
        let mut rng = RandomView::new(3);
        for _ in 0..10_000 {
            let from = EndpointId((rng.random() % u64::from(layout.endpoints())) as u32);
            let to = pattern::uniform(layout.endpoints(), from, rng.random());
            walk(&layout, (from, to), &mut rng, layout.longest_route().unwrap_or(3) as usize);
        }
    }
}
