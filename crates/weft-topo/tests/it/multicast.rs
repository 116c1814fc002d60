//! Multicast trees on random machines.

use crate::machines::{any_machine, star, tree};
use proptest::prelude::*;
use std::collections::BTreeSet;
use weft_topo::*;
use weft_units::{EndpointId, PortId, SwitchId, VcId};

/// The members that a packet reaches that follows the branches from node 0, and the channels it takes.
fn follow(tree: &MulticastTree) -> (Vec<EndpointId>, Vec<Channel>) {
    let (mut members, mut channels, mut open) = (Vec::new(), Vec::new(), vec![0]);
    while let Some(number) = open.pop() {
        let node = &tree.nodes()[number as usize];
        for branch in tree.branches(number) {
            channels.push(Channel { switch: node.switch, port: branch.port, vc: branch.vc });
            match branch.to {
                BranchEnd::Node(next) => open.push(next),
                BranchEnd::Member(member) => members.push(member),
            }
        }
    }
    (members, channels)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Catches a member that is left out or reached twice, a channel that carries a packet twice, and a turn
    /// that the proof of the routing does not cover; on every topology and routing.
    #[test]
    fn each_member_is_reached_once_by_turns_of_the_routing(
        layout in any_machine(),
        root: prop::sample::Index,
        chosen in prop::collection::vec(any::<bool>(), 256),
    ) {
        let root = EndpointId(root.index(layout.endpoints() as usize) as u32);
        let is_member = |e: &EndpointId| layout.reachable(root, *e) && chosen[e.index() % 256];
        let members: Vec<EndpointId> = (0..layout.endpoints()).map(EndpointId).filter(is_member).collect();
        let tree = MulticastTree::new(&layout, root, &members).unwrap();
        let (mut reached, mut channels) = follow(&tree);
        reached.sort_unstable();
        let expected: Vec<EndpointId> = members.iter().copied().filter(|&e| e != root).collect();
        prop_assert_eq!(&reached, &expected);
        let count = channels.len();
        channels.sort_unstable();
        channels.dedup();
        prop_assert_eq!(channels.len(), count, "a channel carries the packet twice");
        let proof = tree.prove(&layout).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(proof.members, expected.len() as u64);
        prop_assert_eq!((proof.links, count as u64), (proof.nodes - 1, proof.links + proof.members));
    }
}

/// Catches a tree that carries a packet over each spine for the members of one leaf.
#[test]
fn a_switch_of_members_is_entered_once() {
    // Two levels of radix 8: 4 leaves of 4 endpoints, and D-mod-k, by which each member of a leaf has a
    // spine of its own.
    let layout = tree(4, 2, Ascent::DModK);
    let members: Vec<EndpointId> = (0..layout.endpoints()).map(EndpointId).collect();
    let tree = MulticastTree::new(&layout, EndpointId(0), &members).unwrap();
    let leaves: BTreeSet<SwitchId> = members.iter().map(|&e| layout.attachment(e).0).collect();
    for leaf in leaves {
        assert_eq!(tree.nodes().iter().filter(|node| node.switch == leaf).count(), 1, "switch {leaf}");
    }
    assert_eq!(tree.prove(&layout).unwrap().members, 15);
}

/// Two leaves of four endpoints and two spines, and the tree of a root in the first leaf.
fn small() -> (Layout, Vec<TreeNode>) {
    let layout = tree(2, 2, Ascent::DModK);
    let members: Vec<EndpointId> = (0..layout.endpoints()).map(EndpointId).collect();
    let nodes = MulticastTree::new(&layout, EndpointId(0), &members).unwrap().nodes().to_vec();
    (layout, nodes)
}

/// Each way in which nodes are no tree, or no tree of this routing, is refused.
#[test]
fn what_is_no_tree_of_the_routing_is_refused() {
    let (layout, nodes) = small();
    let proves = |nodes: Vec<TreeNode>| MulticastTree::from_nodes(nodes).prove(&layout);
    proves(nodes.clone()).unwrap();
    let leaf_of_root = nodes[0].switch;
    let spine = nodes.iter().position(|node| node.port != PortId(0) && node.switch != leaf_of_root);
    assert!(spine.is_some() && nodes.len() > 2, "{nodes:?}");

    // A member twice.
    let mut twice = nodes.clone();
    let member =
        |node: &TreeNode| node.branches.iter().copied().find(|b| matches!(b.to, BranchEnd::Member(_)));
    let place = nodes.iter().position(|node| member(node).is_some()).unwrap();
    let mut branches = twice[place].branches.to_vec();
    branches.push(member(&nodes[place]).unwrap());
    twice[place].branches = branches.into();
    assert!(matches!(proves(twice), Err(TreeError::Twice { .. })));

    // Two branches to one node.
    let mut rejoined = nodes.clone();
    let mut branches = rejoined[0].branches.to_vec();
    branches.extend(branches.iter().copied().find(|b| matches!(b.to, BranchEnd::Node(_))));
    rejoined[0].branches = branches.into();
    let error = proves(rejoined).unwrap_err().to_string();
    assert!(error.starts_with("2 branches end at switch"), "{error}");

    // A branch by another port than its node's.
    let mut astray = nodes.clone();
    let first = astray[0].branches.iter_mut().find(|b| matches!(b.to, BranchEnd::Node(_))).unwrap();
    first.vc = VcId(7);
    assert!(matches!(proves(astray), Err(TreeError::Astray { .. })));

    // Down to a leaf and up again: real links, and a turn that up-down routing never takes.
    let down = nodes.iter().position(|node| node.switch != leaf_of_root && member(node).is_some()).unwrap();
    let leaf = nodes[down].clone();
    let up = (0..layout.ports(leaf.switch)).map(PortId).filter(|&port| port != leaf.port);
    let (port, peer, came_by) = up
        .filter_map(|port| match layout.peer(leaf.switch, port) {
            Attachment::Switch(peer, came_by) => Some((port, peer, came_by)),
            _ => None,
        })
        .next()
        .unwrap();
    let mut turning = nodes;
    let mut branches = leaf.branches.to_vec();
    branches.push(Branch { port, vc: VcId(0), to: BranchEnd::Node(turning.len() as u32) });
    turning[down].branches = branches.into();
    turning.push(TreeNode { switch: peer, port: came_by, vc: VcId(0), branches: Box::default() });
    let error = proves(turning).unwrap_err();
    assert!(matches!(error, TreeError::Turn { .. }), "{error}");
    assert!(error.to_string().contains("no turn of the routing"), "{error}");
}

/// Catches a tree that needs a switch besides the one that all members share.
#[test]
fn a_star_copies_at_its_switch() {
    let layout = star(5);
    let members: Vec<EndpointId> = [1, 3, 4].map(EndpointId).to_vec();
    let tree = MulticastTree::new(&layout, EndpointId(3), &members).unwrap();
    assert_eq!((tree.nodes().len(), tree.branches(0).len()), (1, 2));
}
