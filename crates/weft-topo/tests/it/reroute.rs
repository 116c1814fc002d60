//! Up*/down* tables over what failures leave of graphs.

use proptest::prelude::*;
use std::collections::BTreeSet;
use weft_topo::{
    AtSwitch, Attachment, Dead, EndpointId, Layout, PacketAt, PortId, Rerouted, RouteState, Routing,
    SpineLeafParameters, SwitchId, Topology, TopologyParameters, UpDownTables, Wiring, idle_path, prove,
};
use weft_units::VcId;

/// Both ports of the links of a topology that `fails` chooses by their number; those of endpoints by one.
fn dead_links(topology: &impl Topology, mut fails: impl FnMut(usize) -> bool) -> Dead {
    let mut dead = Dead::new();
    let mut number = 0;
    for switch in (0..topology.switches()).map(SwitchId) {
        for port in (0..topology.ports(switch)).map(PortId) {
            let other = match topology.peer(switch, port) {
                Attachment::Switch(other, far) if (switch, port) < (other, far) => Some((other, far)),
                Attachment::Endpoint(_) => None,
                Attachment::Switch(..) | Attachment::Nothing => continue,
            };
            if fails(number) {
                dead.insert((switch, port));
                dead.extend(other);
            }
            number += 1;
        }
    }
    dead
}

/// Walks from one endpoint to another, taking of the legal ports the one that `choose` picks, and returns the
/// links crossed between switches. `None`: nowhere to go.
fn walk(
    topology: &impl Topology,
    (wiring, tables, dead): (&Wiring, &UpDownTables, &Dead),
    (from, to): (EndpointId, EndpointId),
    mut choose: impl FnMut(usize) -> usize,
) -> Option<u32> {
    let (mut switch, mut port) = topology.attachment(from);
    for links in 0..=2 * topology.switches() {
        let at = AtSwitch { switch, address: topology.switch_address(switch), port, vc: VcId(0) };
        let legal = tables.ports(wiring, at, to);
        let all = legal.all();
        if all.is_empty() {
            return None;
        }
        let one = legal.of_destination(to).unwrap();
        assert!(all.contains(&one), "the port of a destination is legal");
        let out = all[choose(all.len())];
        match topology.peer(switch, out) {
            Attachment::Endpoint(endpoint) => {
                assert_eq!(endpoint, to);
                return Some(links);
            }
            Attachment::Switch(next, arrival) => {
                assert!(!dead.contains(&(switch, out)), "over a dead link");
                (switch, port) = (next, arrival);
            }
            Attachment::Nothing => panic!("to a port joined to nothing"),
        }
    }
    panic!("{from} to {to}: no end");
}

/// Numbers that look random.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 32) % u64::from(bound)) as u32
    }
}

fn examples() -> Vec<Layout> {
    TopologyParameters::examples().iter().map(|example| example.build().unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Catches tables that lead over dead links, in circles or nowhere although links are left, and ones
    /// whose turns close a circle of waiting: on every family, with any links dead.
    #[test]
    fn what_is_joined_is_served(
        which in any::<prop::sample::Index>(),
        share in 0u32..60,
        seed in any::<u64>(),
    ) {
        let examples = examples();
        let layout = &examples[which.index(examples.len())];
        prop_assume!(layout.switches() <= 400);
        let mut random = Rng(seed);
        let dead = dead_links(layout, |_| random.below(100) < share);
        let wiring = Wiring::new(layout);
        let tables = UpDownTables::new(&wiring, &dead);
        if let Err(cycle) = prove(&Rerouted::new(layout, &wiring, &tables)) {
            return Err(TestCaseError::fail(cycle.to_string()));
        }
        let islands = wiring.islands(&dead);
        let mut of = vec![0; layout.endpoints() as usize];
        for (number, island) in islands.iter().enumerate() {
            island.iter().for_each(|endpoint| of[endpoint.index()] = number);
        }
        prop_assert!(islands.windows(2).all(|pair| pair[0].len() >= pair[1].len()));
        for _ in 0..200 {
            let (from, to) = (random.below(layout.endpoints()), random.below(layout.endpoints()));
            let (from, to) = (EndpointId(from), EndpointId(to));
            let alive = |endpoint| !dead.contains(&layout.attachment(endpoint));
            if !alive(from) || !alive(to) {
                continue;
            }
            let draw = |n| random.below(n as u32) as usize;
            let links = walk(layout, (&wiring, &tables, &dead), (from, to), draw);
            prop_assert_eq!(links.is_some(), of[from.index()] == of[to.index()], "{} to {}", from, to);
            prop_assert_eq!(links.is_some(), tables.lead(&wiring, layout.attachment(from).0, to));
        }
    }
}

proptest! {
    /// Catches a packet that leaves its routing although its path is whole, and one that keeps a broken path:
    /// compared with the ports that a packet takes on an idle machine.
    #[test]
    fn a_path_is_whole_as_far_as_none_of_its_links_is_dead(
        which in any::<prop::sample::Index>(),
        share in 0u32..30,
        seed in any::<u64>(),
    ) {
        let examples: Vec<Layout> = examples().into_iter().filter(Routing::is_deterministic).collect();
        let layout = &examples[which.index(examples.len())];
        prop_assume!(layout.switches() <= 400);
        let mut random = Rng(seed);
        let dead = dead_links(layout, |_| random.below(100) < share);
        let wiring = Wiring::new(layout);
        let tables = UpDownTables::new(&wiring, &dead);
        for _ in 0..100 {
            let (from, to) = (random.below(layout.endpoints()), random.below(layout.endpoints()));
            let (from, to) = (EndpointId(from), EndpointId(to));
            if !layout.reachable(from, to) {
                continue;
            }
            let mut is_whole = true;
            idle_path(layout, from, to, |switch, port| {
                let leads_on = matches!(layout.peer(switch, port), Attachment::Switch(..));
                is_whole &= !leads_on || !dead.contains(&(switch, port));
            });
            let (switch, port) = layout.attachment(from);
            let at = AtSwitch { switch, address: layout.switch_address(switch), port, vc: VcId(0) };
            let packet = PacketAt { at, to: layout.endpoint_address(to), state: RouteState::default() };
            prop_assert_eq!(tables.keep_whole(&wiring, layout, &packet), is_whole, "{} to {}", from, to);
        }
    }
}

/// Catches an order of switches that bends the routes of whole trees: with the top level as roots every spine
/// serves every pair of leaves, by as many links as the tree's own routing.
#[test]
fn a_tree_keeps_its_routes() {
    for layout in examples().iter().filter(|layout| matches!(layout, Layout::Tree(_) | Layout::KaryTree(_))) {
        let (wiring, dead) = (Wiring::new(layout), Dead::new());
        let tables = UpDownTables::new(&wiring, &dead);
        let distances = |from: EndpointId| {
            let mut seen = vec![None; layout.switches() as usize];
            let mut open = vec![(layout.attachment(from).0, 0u32)];
            let mut next = 0;
            while let Some(&(switch, links)) = open.get(next) {
                next += 1;
                if seen[switch.index()].is_some() {
                    continue;
                }
                seen[switch.index()] = Some(links);
                for port in (0..layout.ports(switch)).map(PortId) {
                    if let Attachment::Switch(other, _) = layout.peer(switch, port) {
                        open.push((other, links + 1));
                    }
                }
            }
            seen
        };
        for from in (0..layout.endpoints()).step_by(3).map(EndpointId) {
            let shortest = distances(from);
            for to in (0..layout.endpoints()).map(EndpointId).filter(|&to| to != from) {
                let links = walk(layout, (&wiring, &tables, &dead), (from, to), |n| n - 1);
                assert_eq!(links, shortest[layout.attachment(to).0.index()], "{from} to {to}");
            }
            // The first hop upwards: every port that leads up.
            let (switch, port) = layout.attachment(from);
            let at = AtSwitch { switch, address: layout.switch_address(switch), port, vc: VcId(0) };
            let far = EndpointId(if from.0 < layout.endpoints() / 2 { layout.endpoints() - 1 } else { 0 });
            let up: BTreeSet<PortId> = tables.ports(&wiring, at, far).all().into_iter().collect();
            let ports = (0..layout.ports(switch)).map(PortId);
            let links_up =
                ports.filter(|&p| matches!(layout.peer(switch, p), Attachment::Switch(..))).count();
            let is_far = layout.attachment(far).0 != switch;
            assert!(up.len() > 1 || links_up == 1 || !is_far, "{from} has more than one way to {far}");
        }
    }
}

/// Catches leaves that are joined only through a third one, which no order by levels serves.
#[test]
fn two_leaves_without_a_common_spine_are_served() {
    let example = TopologyParameters::examples().into_iter().find_map(|one| match one {
        TopologyParameters::SpineLeaf(parameters) => Some(parameters),
        _ => None,
    });
    let tree = SpineLeafParameters { leaves: 4, spines: 3, ..example.unwrap() };
    let layout = TopologyParameters::SpineLeaf(tree).build().unwrap();
    let leaf = |endpoint: u32| layout.attachment(EndpointId(endpoint)).0;
    let (one, other) = (leaf(0), leaf(layout.endpoints() - 1));
    let mut dead = Dead::new();
    let mut spines = BTreeSet::new();
    for (leaf, keep) in [(one, 0), (other, 1)] {
        let mut behind = Vec::new();
        for port in (0..layout.ports(leaf)).map(PortId) {
            if let Attachment::Switch(spine, far) = layout.peer(leaf, port) {
                behind.push((port, spine, far));
            }
        }
        let all: Vec<SwitchId> =
            behind.iter().map(|(_, spine, _)| *spine).collect::<BTreeSet<_>>().into_iter().collect();
        spines.insert(all[keep]);
        for (port, spine, far) in behind.into_iter().filter(|(_, spine, _)| *spine != all[keep]) {
            dead.extend([(leaf, port), (spine, far)]);
        }
    }
    assert_eq!(spines.len(), 2);
    let wiring = Wiring::new(&layout);
    let tables = UpDownTables::new(&wiring, &dead);
    prove(&Rerouted::new(&layout, &wiring, &tables)).unwrap();
    let ends = (EndpointId(0), EndpointId(layout.endpoints() - 1));
    assert_eq!(
        walk(&layout, (&wiring, &tables, &dead), ends, |_| 0),
        Some(4),
        "leaf, spine, leaf, spine, leaf"
    );
    assert_eq!(wiring.islands(&dead).len(), 1);
}
