//! Multicast trees: the way of a packet that switches copy for the members of a group.
//!
//! ```text
//!   root ══► s0 ──┬─ port 1 ──► s1 ──┬─ port 0 ══► member 4
//!                 │                  └─ port 2 ──► s3 ── port 0 ══► member 9
//!                 └─ port 0 ══► member 1
//! ```
//! A tree is the union of the unicast ways from its root to each member: those that the routing takes where
//! all queues are empty and all random numbers are zero. Each branch is therefore a turn that unicast packets
//! take, and the [proof](crate::prove) of the routing covers it: a copy waits for its own channel alone,
//! which lies after the channel that it came by.
//!
//! Two ways may meet again at a switch. What is there already is used: a node is a switch with the channel by
//! which the packet comes, and a member whose switch has a node hangs on that node. So no channel carries the
//! packet twice, and no member gets it twice.
//!
//! # Source
//! Ni and McKinley 1993, "A survey of wormhole routing techniques in direct networks": multicast by copies at
//! routers, base routing conformed paths. Duato, Yalamanchili, Ni, "Interconnection Networks", chapter 5: a
//! tree of copies is free of deadlock where each copy may wait on its own, in a buffer for whole packets.
//!
//! # Not modelled
//! Trees with the fewest links. Where the ways to two members part early, as under D-mod-k, both are kept,
//! although one might have served both.

use crate::path::{Hop, hops};
use crate::proof::{Channel, Ranked};
use crate::traits::{Attachment, Routing, Topology};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use weft_units::{EndpointId, PortId, SwitchId, VcId};

/// The end of a branch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BranchEnd {
    /// Another node, by its number.
    Node(u32),
    /// A member of the group.
    Member(EndpointId),
}

/// A copy that a switch sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Branch {
    /// The port that it leaves by.
    pub port: PortId,
    /// The virtual channel that it takes there.
    pub vc: VcId,
    /// The node or member that it goes to.
    pub to: BranchEnd,
}

/// A switch that the packet comes to, by one of its channels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TreeNode {
    /// The switch.
    pub switch: SwitchId,
    /// The port that the packet comes in by.
    pub port: PortId,
    /// The virtual channel that it comes in on.
    pub vc: VcId,
    /// The copies that the switch sends: at least one.
    pub branches: Box<[Branch]>,
}

/// A multicast tree. Node 0 is the root's switch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MulticastTree {
    nodes: Box<[TreeNode]>,
}

/// Numbers of a tree that has been checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TreeProof {
    /// Nodes: switches, counted once for each channel that the packet comes to them by.
    pub nodes: u64,
    /// Copies between switches.
    pub links: u64,
    /// Copies to members.
    pub members: u64,
}

/// Two endpoints that no link joins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no links join endpoint {root} with endpoint {member}")]
pub struct NotJoined {
    /// The root.
    pub root: EndpointId,
    /// The member that cannot be reached from it.
    pub member: EndpointId,
}

/// A tree that may not be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TreeError {
    /// A branch that does not end where its link does.
    #[error("a branch of switch {} by port {} does not end where its link does", .from.switch, .from.port)]
    Astray {
        /// The branch.
        from: Channel,
    },
    /// A node that two branches end at, or none.
    #[error("{branches} branches end at switch {switch}, which a tree comes to by one")]
    Rejoined {
        /// The switch.
        switch: SwitchId,
        /// Branches that end at its node.
        branches: u32,
    },
    /// A member that two branches end at.
    #[error("two branches end at endpoint {member}")]
    Twice {
        /// The member.
        member: EndpointId,
    },
    /// A turn that the routing does not take, so that its proof does not cover it.
    #[error("from {from} to {to} is no turn of the routing, so that the deadlock proof does not cover it")]
    Turn {
        /// The channel by which the packet comes.
        from: Channel,
        /// The channel of the copy.
        to: Channel,
    },
}

impl MulticastTree {
    /// The tree from `root` to those of `members` that are not the root.
    ///
    /// # Errors
    /// A member that cannot be reached.
    pub fn new<L: Topology + Routing>(
        layout: &L,
        root: EndpointId,
        members: &[EndpointId],
    ) -> Result<MulticastTree, NotJoined> {
        let (switch, port) = layout.attachment(root);
        let mut draft = Draft::default();
        draft.node(switch, port, VcId(0));
        for &member in members.iter().filter(|&&member| member != root) {
            if !layout.reachable(root, member) {
                return Err(NotJoined { root, member });
            }
            let way: Vec<Hop> = hops(layout, root, member).collect();
            draft.join(&way, layout, member);
        }
        let nodes = draft.nodes.into_iter().map(|node| TreeNode {
            switch: node.switch,
            port: node.port,
            vc: node.vc,
            branches: node.branches.into(),
        });
        Ok(MulticastTree { nodes: nodes.collect() })
    }

    /// A tree of these nodes, which need not be one: see [`MulticastTree::prove`].
    pub fn from_nodes(nodes: Vec<TreeNode>) -> MulticastTree {
        MulticastTree { nodes: nodes.into() }
    }

    /// The nodes. The first is the root's switch.
    pub fn nodes(&self) -> &[TreeNode] {
        &self.nodes
    }

    /// The copies that the switch of node `node` sends.
    #[inline]
    pub fn branches(&self, node: u32) -> &[Branch] {
        &self.nodes[node as usize].branches
    }

    /// Shows that it is a tree, and that each branch between switches is a turn of the routing.
    ///
    /// # Errors
    /// The first branch that is not so.
    pub fn prove<L: Topology + Ranked>(&self, layout: &L) -> Result<TreeProof, TreeError> {
        let mut proof = TreeProof { nodes: self.nodes.len() as u64, ..TreeProof::default() };
        let mut parents = vec![0u32; self.nodes.len()];
        let mut members = BTreeSet::new();
        // By node: the channel that leads to it; `None`: the root's own link.
        let mut came_by: Vec<Option<Channel>> = vec![None; self.nodes.len()];
        let channel = |node: &TreeNode, branch: &Branch| Channel {
            switch: node.switch,
            port: branch.port,
            vc: branch.vc,
        };
        for node in &self.nodes {
            for branch in &node.branches {
                let from = channel(node, branch);
                let peer = layout.peer(node.switch, branch.port);
                match branch.to {
                    BranchEnd::Member(member) => {
                        proof.members += 1;
                        if peer != Attachment::Endpoint(member) {
                            return Err(TreeError::Astray { from });
                        }
                        if !members.insert(member) {
                            return Err(TreeError::Twice { member });
                        }
                    }
                    BranchEnd::Node(number) => {
                        proof.links += 1;
                        let next = self.nodes.get(number as usize).ok_or(TreeError::Astray { from })?;
                        if peer != Attachment::Switch(next.switch, next.port) || branch.vc != next.vc {
                            return Err(TreeError::Astray { from });
                        }
                        parents[number as usize] += 1;
                        came_by[number as usize] = Some(from);
                    }
                }
            }
        }
        for (number, (node, &branches)) in self.nodes.iter().zip(&parents).enumerate() {
            if branches != u32::from(number > 0) {
                return Err(TreeError::Rejoined { switch: node.switch, branches });
            }
        }
        for (node, from) in self.nodes.iter().zip(came_by) {
            let Some(from) = from else { continue };
            let mut turns = BTreeSet::new();
            layout.successors(from, &mut |next| {
                turns.insert(next);
            });
            let to_nodes = node.branches.iter().filter(|branch| matches!(branch.to, BranchEnd::Node(_)));
            if let Some(to) = to_nodes.map(|branch| channel(node, branch)).find(|to| !turns.contains(to)) {
                return Err(TreeError::Turn { from, to });
            }
        }
        Ok(proof)
    }
}

/// A node of a tree that grows.
struct DraftNode {
    switch: SwitchId,
    port: PortId,
    vc: VcId,
    branches: Vec<Branch>,
}

/// A tree that grows.
#[derive(Default)]
struct Draft {
    nodes: Vec<DraftNode>,
    /// The first node of a switch.
    of_switch: BTreeMap<SwitchId, u32>,
    /// By the channel that the packet comes by.
    of_channel: BTreeMap<(SwitchId, PortId, VcId), u32>,
}

impl Draft {
    /// Adds a node.
    fn node(&mut self, switch: SwitchId, port: PortId, vc: VcId) -> u32 {
        let number = self.nodes.len() as u32;
        self.nodes.push(DraftNode { switch, port, vc, branches: Vec::new() });
        self.of_switch.entry(switch).or_insert(number);
        self.of_channel.insert((switch, port, vc), number);
        number
    }

    /// Joins the way to a member, where the tree comes nearest to its end.
    fn join(&mut self, way: &[Hop], layout: &impl Topology, member: EndpointId) {
        let of_member = way.last().and_then(|last| self.of_switch.get(&last.at.switch));
        let on_the_way = || {
            way.iter().enumerate().rev().find_map(|(place, Hop { at, .. })| {
                let node = self.of_channel.get(&(at.switch, at.port, at.vc))?;
                Some((place, *node))
            })
        };
        let from = match of_member {
            Some(&node) => Some((way.len() - 1, node)),
            None => on_the_way(),
        };
        let (place, mut node) = from.expect("every way begins at the root's switch, which is a node");
        for Hop { next, .. } in &way[place..] {
            let switch = self.nodes[node as usize].switch;
            let to = match layout.peer(switch, next.port) {
                Attachment::Switch(peer, port) => BranchEnd::Node(self.node(peer, port, next.vc)),
                Attachment::Endpoint(_) | Attachment::Nothing => BranchEnd::Member(member),
            };
            self.nodes[node as usize].branches.push(Branch { port: next.port, vc: next.vc, to });
            if let BranchEnd::Node(number) = to {
                node = number;
            }
        }
    }
}
