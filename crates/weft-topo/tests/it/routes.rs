//! The routes of packets.

use crate::machines::{Idle, RandomView, any_machine, distances, minimal, pairs, ugal, walk};
use proptest::prelude::*;
use weft_topo::*;
use weft_units::{Bytes, EndpointId, PortId, SwitchId, VcId};

/// Most hops that a packet of the routing takes.
fn hop_bound(layout: &Layout) -> usize {
    layout.longest_route().unwrap_or_else(|| figures(layout).diameter) as usize
}

proptest! {
    /// Catches packets that are lost, go in circles, or use a virtual channel that is not there.
    #[test]
    fn every_packet_reaches_its_destination(layout in any_machine(), seed: u64) {
        let bound = hop_bound(&layout);
        let mut rng = RandomView::new(seed);
        for (from, to) in pairs(&layout) {
            walk(&layout, (from, to), &mut rng, bound);
        }
    }

    /// Catches detours: all routings but Valiant take shortest paths in an idle network, Dragonfly's among
    /// those with one global link.
    #[test]
    fn paths_are_shortest_in_an_idle_network(layout in any_machine()) {
        let minimal_dragonfly = matches!(layout, Layout::Dragonfly(_)) && layout.idle_detour() == 1;
        for from in (0..layout.endpoints()).map(EndpointId) {
            let distance = distances(&layout, layout.attachment(from).0);
            for to in (0..layout.endpoints()).map(EndpointId).filter(|&to| layout.reachable(from, to)) {
                let hops = walk(&layout, (from, to), &mut Idle, 64).len() as u32;
                let shortest = distance[layout.attachment(to).0.index()].unwrap();
                prop_assert!(hops <= shortest + layout.idle_detour());
                prop_assert!(hops == shortest || !minimal_dragonfly || hops == 3 && shortest == 2);
            }
        }
    }

    /// Catches a routing that claims to keep flows in order and looks at queues or random numbers, and one
    /// that claims the contrary without using them where it could.
    #[test]
    fn deterministic_routings_do_not_look_around(layout in any_machine(), seed: u64) {
        if layout.is_deterministic() {
            for (from, to) in pairs(&layout) {
                let first = walk(&layout, (from, to), &mut RandomView::new(seed), 64);
                prop_assert_eq!(first, walk(&layout, (from, to), &mut Idle, 64));
            }
        } else {
            let never = matches!(
                layout,
                Layout::Torus(_)
                    | Layout::Exanest(_)
                    | Layout::Dragonfly(DragonflyLayout::Minimal(_))
                    | Layout::Star(_)
            );
            prop_assert!(!never);
        }
    }

    /// Catches sub-systems that are said to be apart and are joined, or the contrary.
    #[test]
    fn reachable_means_that_there_is_a_way(layout in any_machine()) {
        for from in (0..layout.endpoints()).map(EndpointId) {
            let distance = distances(&layout, layout.attachment(from).0);
            for to in (0..layout.endpoints()).map(EndpointId) {
                let way = distance[layout.attachment(to).0.index()].is_some();
                prop_assert_eq!(layout.reachable(from, to), way);
            }
        }
    }
}

/// Catches a bound of routes by modules that leaves out a gateway that lies farther, on all pairs.
#[test]
fn routes_by_modules_keep_their_bound() {
    let examples = TopologyParameters::examples();
    let mut farther = 0;
    for parameters in examples.iter().filter(|one| one.routing() == "hierarchical") {
        let layout = parameters.build().unwrap();
        for from in (0..layout.endpoints()).map(EndpointId) {
            let distance = distances(&layout, layout.attachment(from).0);
            for to in (0..layout.endpoints()).map(EndpointId).filter(|&to| to != from) {
                let hops = walk(&layout, (from, to), &mut Idle, hop_bound(&layout)).len() as u32;
                let shortest = distance[layout.attachment(to).0.index()].unwrap();
                assert!(hops <= shortest + layout.idle_detour());
                farther += u32::from(hops > shortest);
            }
        }
    }
    assert!(farther > 0, "a hash chooses farther gateways too");
}

/// One queue of `bytes` at one port; random numbers that are all `random`.
struct OneQueue {
    port: PortId,
    bytes: u64,
    random: u64,
}

impl LocalView for OneQueue {
    fn queued(&self, port: PortId) -> u64 {
        if port == self.port { self.bytes } else { 0 }
    }

    fn random(&mut self) -> u64 {
        self.random
    }
}

#[test]
fn ugal_detours_only_past_a_long_queue() {
    // g = 9 groups of 4 switches; switch 0 of group 0 has the palmtree links to groups 8 and 7.
    let (adaptive, direct) =
        (ugal([2, 4, 2, 9], GlobalLinks::Palmtree), minimal([2, 4, 2, 9], GlobalLinks::Palmtree));
    let (from, to) = (EndpointId(0), EndpointId(8 * 8));
    let way = walk(&direct, (from, to), &mut Idle, 3);
    let port = way[0].port;
    let detour = |bytes| walk(&adaptive, (from, to), &mut OneQueue { port, bytes, random: u64::MAX / 2 }, 5);
    assert_eq!(detour(0), way);
    let around = detour(1);
    assert_ne!(around[0].port, port);
    assert!(around.len() > way.len());
    // The threshold is in bytes times hops of the minimal path.
    let dragonfly = Dragonfly::new(DragonflySize { p: 2, a: 4, h: 2, g: 9 }, GlobalLinks::Palmtree).unwrap();
    let patient = Layout::Dragonfly(DragonflyLayout::Ugal(Ugal::new(dragonfly, 300)));
    let hops = way.len() as u64;
    let patient = |bytes| walk(&patient, (from, to), &mut OneQueue { port, bytes, random: u64::MAX / 2 }, 5);
    assert_eq!(patient(300 / hops), way);
    assert_eq!(patient(300 / hops + 1), around);
    let channels: Vec<_> = around.iter().map(|channel| channel.vc).collect();
    assert!(channels.is_sorted() && channels.last() >= Some(&VcId(1)), "{channels:?}");
}

/// One published queue of `bytes` at a port of a switch; random numbers that are the same.
struct OnePublished {
    at: (SwitchId, PortId),
    bytes: u64,
}

impl LocalView for OnePublished {
    fn queued(&self, _port: PortId) -> u64 {
        0
    }

    fn published(&self, switch: SwitchId, port: PortId) -> u64 {
        if (switch, port) == self.at { self.bytes } else { 0 }
    }

    fn random(&mut self) -> u64 {
        u64::MAX / 2
    }
}

/// Catches UGAL-G that looks at another queue than that before the global link of its group, and UGAL-L that
/// looks beyond its switch.
#[test]
fn ugal_g_sees_the_queue_before_a_global_link_of_another_switch() {
    let (size, arrangement) = (DragonflySize { p: 2, a: 4, h: 2, g: 9 }, GlobalLinks::Palmtree);
    let dragonfly = || Dragonfly::new(size, arrangement).unwrap();
    let group_g = Layout::Dragonfly(DragonflyLayout::Ugal(Ugal::with_published_queues(dragonfly(), 0)));
    let local = Layout::Dragonfly(DragonflyLayout::Ugal(Ugal::new(dragonfly(), 0)));
    let megafly = |routing| {
        let parameters = MegaflyParameters {
            endpoints_per_leaf: 2,
            leaves: 2,
            spines: 2,
            global_per_spine: 2,
            groups: 5,
            routing,
        };
        Layout::Megafly(parameters.build().unwrap())
    };
    let ugal_threshold = Bytes::ZERO;
    let spines = [MegaflyRouting::UgalG { ugal_threshold }, MegaflyRouting::UgalL { ugal_threshold }];
    for [global, local] in [[group_g, local], spines.map(megafly)] {
        let mut detours = 0;
        for to in (0..global.endpoints()).map(EndpointId).filter(|&to| global.group_of(to) != 0) {
            let pair = (EndpointId(0), to);
            let way = walk(&local, pair, &mut Idle, 8);
            assert_eq!(way, walk(&global, pair, &mut Idle, 8));
            let leaves = |channel: &&Channel| {
                global.link_classes()[usize::from(global.link_class(channel.switch, channel.port).0)]
                    == "global"
            };
            let link = way.iter().find(leaves).unwrap();
            let mut view = OnePublished { at: (link.switch, link.port), bytes: 1 };
            assert_eq!(walk(&local, pair, &mut view, 8), way);
            let goes_round = walk(&global, pair, &mut view, 8) != way;
            // The queue of its own switch it sees as it is, which is empty here. Where the detour leaves by
            // the same link, it is no better.
            assert!(!goes_round || link.switch != way[0].switch);
            detours += u32::from(goes_round);
        }
        assert!(detours > global.endpoints() / 3, "{detours}");
        assert!(global.needs_published_queues() && !local.needs_published_queues());
    }
}

#[test]
fn ugal_draws_every_intermediate_group_alike() {
    let groups = 9u64;
    let layout = ugal([1, 4, 2, groups], GlobalLinks::Absolute);
    let (from, to) = (EndpointId(4 * 4), EndpointId(6 * 4));
    let port = walk(&layout, (from, to), &mut Idle, 3)[0].port;
    let mut through = vec![0; groups as usize];
    let draws = 700;
    for i in 0..draws {
        let random = u64::MAX / draws * i + u64::MAX / draws / 2;
        let way = walk(&layout, (from, to), &mut OneQueue { port, bytes: 1 << 20, random }, 5);
        let visited: Vec<_> = way.iter().map(|channel| channel.switch.0 / 4).collect();
        through[*visited.iter().find(|&&group| group != 4).unwrap_or(&6) as usize] += 1;
    }
    // Group 4's links to two other groups and to its target leave by the same switch: over that switch a
    // detour looks as busy as the minimal path and is not taken.
    let share = draws / (groups - 2);
    for (group, &count) in through.iter().enumerate().filter(|&(group, _)| group != 4 && group != 6) {
        assert!(count == 0 || count == share, "group {group}: {through:?}");
    }
    let minimal = through[6];
    assert!(minimal <= 2 * share && minimal.is_multiple_of(share), "{through:?}");
    assert_eq!(through.iter().sum::<u64>(), draws);
}

#[test]
fn a_torus_loads_both_ways_and_both_channels_alike() {
    let layout = crate::machines::torus(&[(8, true), (8, true)], 1, true);
    let mut ports = [0u32; 5];
    let mut channels = [0u32; 2];
    for (from, to) in pairs(&layout) {
        for channel in walk(&layout, (from, to), &mut Idle, 8) {
            ports[channel.port.index()] += 1;
            channels[channel.vc.index()] += 1;
        }
    }
    assert!(ports[1..].iter().all(|&load| load == ports[1]), "{ports:?}");
    let share = f64::from(channels[0]) / f64::from(channels[0] + channels[1]);
    assert!((0.4..0.6).contains(&share), "{channels:?}");
}

#[test]
fn d_mod_k_sends_all_packets_for_a_destination_through_one_root() {
    let layout = crate::machines::tree(4, 3, Ascent::DModK);
    let root = |from, to| {
        let way = walk(&layout, (EndpointId(from), EndpointId(to)), &mut Idle, 4);
        way.iter().map(|channel| channel.switch).max().unwrap_or(SwitchId(0))
    };
    assert_eq!(root(0, 63), root(17, 63));
    assert_eq!(root(5, 63), root(40, 63));
    assert_ne!(root(0, 63), root(0, 62));
}
