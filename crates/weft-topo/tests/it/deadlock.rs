//! The proof against an oracle: strongly connected components (Tarjan) of the channel dependency graph
//! that walking packets leave behind.

use crate::machines::{RandomView, any_machine, exanest, pairs, torus, walk};
use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use weft_topo::*;
use weft_units::{EndpointId, PortId, SwitchId};

/// Every turn that packets between all pairs take; several random draws for adaptive routings.
fn walked_turns(layout: &Layout, seed: u64) -> BTreeSet<(Channel, Channel)> {
    let throws = if layout.is_deterministic() { 1 } else { 8 };
    let mut turns = BTreeSet::new();
    for throw in 0..throws {
        let mut rng = RandomView::new(seed.wrapping_add(throw));
        for (from, to) in pairs(layout) {
            let way = walk(layout, (from, to), &mut rng, 64);
            turns.extend(way.windows(2).map(|pair| (pair[0], pair[1])));
        }
    }
    turns
}

/// Whether the graph of the turns has a cycle.
fn has_cycle(turns: &BTreeSet<(Channel, Channel)>) -> bool {
    let mut graph = DiGraph::<(), ()>::new();
    let mut vertex = BTreeMap::new();
    for &(from, to) in turns {
        let from = *vertex.entry(from).or_insert_with(|| graph.add_node(()));
        let to = *vertex.entry(to).or_insert_with(|| graph.add_node(()));
        graph.add_edge(from, to, ());
    }
    tarjan_scc(&graph).iter().any(|component| component.len() > 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Catches a proof of a routing that can deadlock, a cycle that no packets can form, and turns that
    /// the proof does not know of.
    #[test]
    fn proof_and_oracle_agree(layout in any_machine(), seed: u64) {
        let turns = walked_turns(&layout, seed);
        for &(from, to) in &turns {
            let mut known = false;
            layout.successors(from, &mut |next| known |= next == to);
            prop_assert!(known, "the proof does not know the turn from {from} to {to}");
        }
        match prove(&layout) {
            Ok(proof) => {
                prop_assert!(!has_cycle(&turns));
                // With datelines the ranks alone must do.
                let datelines = match &layout {
                    Layout::Torus(routing) => routing.datelines(),
                    Layout::Exanest(routing) => routing.datelines(),
                    _ => true,
                };
                prop_assert!(proof.method == Method::Ranks || !datelines);
            }
            Err(cycle) => {
                prop_assert!(has_cycle(&turns));
                let next = cycle.channels.iter().cycle().skip(1);
                for (&from, &to) in cycle.channels.iter().zip(next) {
                    prop_assert!(turns.contains(&(from, to)), "no packet turns from {from} to {to}");
                }
            }
        }
    }

    /// Catches representatives that leave out a kind of channel: every turn of every channel has the
    /// same difference of ranks as some turn of a representative.
    #[test]
    fn representatives_stand_for_all(layout in any_machine()) {
        let Some(few) = layout.representatives() else { return Ok(()) };
        let steps = |channels: &mut dyn Iterator<Item = Channel>| {
            let mut steps = BTreeSet::new();
            for channel in channels {
                layout.successors(channel, &mut |next| {
                    steps.insert((layout.rank(channel), layout.rank(next)));
                });
            }
            steps
        };
        let walked = walked_turns(&layout, 1);
        let all = steps(&mut walked.iter().flat_map(|&(from, to)| [from, to]));
        prop_assert!(all.is_subset(&steps(&mut few.into_iter())));
    }
}

#[test]
fn rings_of_four_without_datelines_deadlock_and_say_where() {
    let cycle = prove(&torus(&[(4, true), (4, true)], 1, false)).unwrap_err();
    assert_eq!(cycle.channels.len(), 4);
    let text = cycle.to_string();
    assert!(text.starts_with("4 channels can wait for each other in a circle:\n  switch "), "{text}");
    assert!(prove(&torus(&[(4, false), (4, false)], 1, false)).is_ok());
    assert!(prove(&torus(&[(3, true), (3, true)], 1, false)).is_ok());
    assert!(prove(&torus(&[(5, true)], 1, false)).is_err());
    assert!(prove(&exanest(8, false)).is_err());
    assert!(prove(&exanest(8, true)).is_ok());
}

/// A layout whose ranks say nothing, so that the proof must search.
struct Unranked(Layout);

impl Topology for Unranked {
    fn endpoints(&self) -> u32 {
        self.0.endpoints()
    }
    fn switches(&self) -> u32 {
        self.0.switches()
    }
    fn ports(&self, switch: SwitchId) -> u32 {
        self.0.ports(switch)
    }
    fn peer(&self, switch: SwitchId, port: PortId) -> Attachment {
        self.0.peer(switch, port)
    }
    fn attachment(&self, endpoint: EndpointId) -> (SwitchId, PortId) {
        self.0.attachment(endpoint)
    }
    fn link_class(&self, switch: SwitchId, port: PortId) -> LinkClass {
        self.0.link_class(switch, port)
    }
    fn link_classes(&self) -> Vec<&str> {
        self.0.link_classes()
    }
    fn switch_address(&self, switch: SwitchId) -> Address {
        self.0.switch_address(switch)
    }
    fn endpoint_address(&self, endpoint: EndpointId) -> Address {
        self.0.endpoint_address(endpoint)
    }
}

impl Routing for Unranked {
    fn virtual_channels(&self) -> u32 {
        self.0.virtual_channels()
    }
    fn route(&self, at: AtSwitch, to: Address, state: &mut RouteState, view: &mut impl LocalView) -> NextHop {
        self.0.route(at, to, state, view)
    }
    fn is_deterministic(&self) -> bool {
        self.0.is_deterministic()
    }
}

impl Ranked for Unranked {
    fn rank(&self, _channel: Channel) -> u64 {
        0
    }
    fn successors(&self, channel: Channel, visit: &mut impl FnMut(Channel)) {
        self.0.successors(channel, visit);
    }
    fn representatives(&self) -> Option<Vec<Channel>> {
        None
    }
}

proptest! {
    /// Catches a search that misses a cycle, finds one that is none, or leaves channels out.
    #[test]
    fn search_and_ranks_agree(layout in any_machine()) {
        match (prove(&layout), prove(&Unranked(layout.clone()))) {
            (Ok(ranks), Ok(search)) => {
                prop_assert_eq!((search.channels, search.turns), (ranks.channels, ranks.turns));
                prop_assert!(search.method == Method::Search || search.turns == 0);
            }
            (ranks, search) => prop_assert_eq!(ranks, search),
        }
    }
}

#[test]
fn the_proof_says_how_it_was_found() {
    let layout = torus(&[(4, true), (4, true)], 1, true);
    let ranks = prove(&layout).unwrap();
    assert!(
        ranks
            .to_string()
            .ends_with("endpoints take every packet, so requests and replies share the channels")
    );
    assert!(prove(&Unranked(layout)).unwrap().to_string().contains("close no cycle"));
    // Alone, a ring of four splits its longest ways so that no circle closes.
    assert!(prove(&torus(&[(4, true)], 1, false)).is_ok());
}
