//! Several links per pair of groups of a Dragonfly.

use crate::machines::{DRAGONFLY_ROUTINGS, Dice, Idle, dragonfly, pairs, walk};
use std::collections::{BTreeMap, BTreeSet};
use weft_topo::*;
use weft_units::{Bytes, EndpointId, PortId, SwitchId};

const UGAL: DragonflyRouting = DragonflyRouting::UgalL { ugal_threshold: Bytes::ZERO };
const ARRANGEMENTS: [GlobalLinks; 2] = [GlobalLinks::Palmtree, GlobalLinks::Absolute];

/// Queues at some ports, and dice that always show the same.
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

/// Catches closed forms and proofs that do not hold, or take long, on a machine of the size of Frontier: 74
/// groups of 32 switches, 16 endpoints per switch, four links per pair of groups.
#[test]
fn the_dragonfly_of_frontier() {
    for (arrangement, routing) in
        ARRANGEMENTS.into_iter().flat_map(|one| DRAGONFLY_ROUTINGS.map(|routing| (one, routing)))
    {
        let layout = dragonfly(([16, 32, 10, 74], 4, arrangement), routing);
        assert_ne!(prove(&layout).expect("no deadlock").method, Method::Search);
        let figures = figures(&layout);
        assert_eq!((figures.endpoints, figures.switches, figures.diameter), (37_888, 2_368, 3));
        let links: Vec<_> = figures.links.iter().map(|class| class.links).collect();
        assert_eq!(links, [37_888, 74 * 32 * 31 / 2, 4 * 74 * 73 / 2]);
        assert_eq!(figures.bisection.links, 37 * 37 * 4);
        assert_eq!(figures.sources, SourcesCounted::All);
        // 512² flows on 4 links.
        let uniform = figures.channel_loads[0].load.as_ref().unwrap();
        assert!((uniform.per_class[2] - 65_536.0 / 37_887.0).abs() < 1e-9, "{uniform:?}");
        let mut dice = Dice::new(3);
        for _ in 0..10_000 {
            let from = EndpointId((dice.random() % u64::from(layout.endpoints())) as u32);
            let to = pattern::uniform(layout.endpoints(), from, dice.random());
            walk(&layout, (from, to), &mut dice, layout.longest_route().unwrap_or(3) as usize);
        }
    }
}
