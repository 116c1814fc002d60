//! The nodes of a rank as operations of a graph.
//!
//! ```text
//!   node 7 COMM_RECV ──▶ receive ─ end ──▶ join (takes no time)      what depends on 7 waits for the join:
//!   node 8 COMP ──▶ compute                                          on the core of communication somebody
//!                                                                    waits for each message
//! ```
//! Collectives of a group begin in the order of their ids, as far as what they depend on lets them.

use super::ChakraNotes;
use super::et_def::{ChakraNode, CollectiveCommType, NodeType};
use super::groups::{ChakraGroup, Groups, OwnGroups};
use super::implied::without_implied;
use super::node::{NodeAction, NodeCollective, RankOfRun, core};
use crate::graph::{Dependency, GraphAction, GraphCollective, GraphOperation, RankGraph};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use weft_trace::op::{Collective, CommId, SignalAt};
use weft_units::{Bytes, RankId, Span};

/// Most operations of a rank.
const MAX_OPERATIONS: usize = 1 << 28;

/// A node that cannot be read, and why.
pub(super) struct NodeFault {
    pub(super) place: u64,
    pub(super) reason: String,
}

/// A rank that has been read.
pub(super) struct ReadRank {
    pub(super) graph: RankGraph,
    /// Of each operation, the place of its node in the file.
    pub(super) places: Vec<u64>,
}

/// A node waits for another.
#[derive(Clone, Copy, Debug)]
struct NodeNeed {
    /// The operation that waits.
    operation: u32,
    /// The id of the node that it waits for.
    on: u64,
    is_control: bool,
}

/// A collective whose group is looked up when all nodes have been read.
struct GroupCall {
    operation: u32,
    call: NodeCollective,
}

/// The nodes of a rank while they are read.
pub(super) struct RankNodes {
    of: RankOfRun,
    graph: RankGraph,
    places: Vec<u64>,
    /// Of each operation, the id of its node.
    ids: Vec<u64>,
    /// The first operation of each node, by its id.
    by_id: Vec<(u64, u32)>,
    needs: Vec<NodeNeed>,
    calls: Vec<GroupCall>,
    groups: OwnGroups,
}

impl RankNodes {
    pub(super) fn new(of: RankOfRun) -> RankNodes {
        RankNodes {
            of,
            graph: RankGraph::default(),
            places: Vec::new(),
            ids: Vec::new(),
            by_id: Vec::new(),
            needs: Vec::new(),
            calls: Vec::new(),
            groups: OwnGroups::default(),
        }
    }

    /// Adds a node, which lies at `place` of the file. Errors with the reason and the mend.
    pub(super) fn add(
        &mut self,
        node: &ChakraNode,
        place: u64,
        notes: &mut ChakraNotes,
    ) -> Result<(), String> {
        let operation = self.graph.nodes.len() as u32;
        if self.graph.nodes.len() > MAX_OPERATIONS {
            return Err(format!("more than {MAX_OPERATIONS} operations of one rank"));
        }
        if node.r#type == NodeType::MetadataNode as i32
            && let Some(inputs) = &node.inputs
        {
            self.groups.list(&inputs.values);
        }
        let (action, core) = match node.action(self.of, notes)? {
            NodeAction::Compute { span, core } => (GraphAction::Compute { span }, core),
            NodeAction::Send { to, bytes, tag } => {
                (GraphAction::Send { to, bytes, tag }, core::COMMUNICATION)
            }
            NodeAction::Receive { from, bytes, tag } => {
                (GraphAction::Receive { from: Some(from), bytes, tag: Some(tag) }, core::COMMUNICATION)
            }
            NodeAction::Collective(call) => {
                let number = self.calls.len() as u32;
                self.calls.push(GroupCall { operation, call });
                (GraphAction::Collective { number }, core::COMMUNICATION)
            }
        };
        self.by_id.push((node.id, operation));
        let mut push = |action, core| {
            self.graph.nodes.push(GraphOperation { action, core });
            self.places.push(place);
            self.ids.push(node.id);
        };
        push(action, core);
        if !matches!(action, GraphAction::Compute { .. }) {
            push(GraphAction::Compute { span: Span::ZERO }, core);
            self.graph.dependencies.push(Dependency {
                node: operation + 1,
                on: operation,
                at: SignalAt::End,
            });
        }
        let need = |is_control| move |&on: &u64| NodeNeed { operation, on, is_control };
        self.needs.extend(node.data_deps.iter().map(need(false)));
        self.needs.extend(node.ctrl_deps.iter().map(need(true)));
        Ok(())
    }

    /// The graph of the rank.
    pub(super) fn finish(
        mut self,
        groups: &mut Groups,
        notes: &mut ChakraNotes,
    ) -> Result<ReadRank, NodeFault> {
        self.by_id.sort_unstable();
        if let Some(pair) = self.by_id.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let [(id, _), (_, second)] = [pair[0], pair[1]];
            let reason = format!("node {id} stands in the file already; give each an id of its own");
            return Err(NodeFault { place: self.places[second as usize], reason });
        }
        self.look_up_groups(groups, notes)?;
        let own = std::mem::take(&mut self.graph.dependencies);
        let mut dependencies = own.clone();
        let is_whole = self.resolve(&mut dependencies, true)?;
        let mut order = if is_whole { self.order(&dependencies) } else { None };
        if order.is_none() && self.needs.iter().any(|need| need.is_control) {
            notes.unordered_ranks += 1;
            dependencies = own;
            self.resolve(&mut dependencies, false)?;
            order = self.order(&dependencies);
        }
        // Without an order there is a circle, which is found again where the graph is cut.
        let mut last: BTreeMap<CommId, u32> = BTreeMap::new();
        for &node in order.iter().flatten() {
            let GraphAction::Collective { number } = self.graph.nodes[node as usize].action else { continue };
            let comm = self.graph.collectives[number as usize].comm;
            if let Some(on) = last.insert(comm, node) {
                dependencies.push(Dependency { node, on, at: SignalAt::Start });
            }
        }
        self.graph.dependencies = match order {
            Some(order) => without_implied(dependencies, &order),
            None => dependencies,
        };
        self.graph.communicators = self.groups.communicators;
        Ok(ReadRank { graph: self.graph, places: self.places })
    }

    fn look_up_groups(&mut self, groups: &mut Groups, notes: &mut ChakraNotes) -> Result<(), NodeFault> {
        for GroupCall { operation, call } in &self.calls {
            let group = groups.find(&call.group, &mut self.groups, self.of.rank, self.of.ranks);
            let group = group.map_err(|reason| {
                let id = self.ids[*operation as usize];
                NodeFault { place: self.places[*operation as usize], reason: format!("node {id}: {reason}") }
            })?;
            let collective = collective(call, &group);
            notes.rootless += u64::from(collective.root.is_some());
            self.graph.collectives.push(collective);
        }
        Ok(())
    }

    /// Adds what the nodes wait for. Says whether all control dependencies that are asked for name nodes.
    fn resolve(&self, into: &mut Vec<Dependency>, with_control: bool) -> Result<bool, NodeFault> {
        let mut is_whole = true;
        for need in self.needs.iter().filter(|need| with_control || !need.is_control) {
            let found = self.by_id.binary_search_by_key(&need.on, |(id, _)| *id);
            let node = need.operation;
            match found {
                Ok(place) => {
                    let on = self.by_id[place].1;
                    let (on, at) = match self.graph.nodes[on as usize].action {
                        GraphAction::Compute { .. } => (on, SignalAt::End),
                        // It needs no receive in ASTRA-sim, and would need one here.
                        GraphAction::Send { .. } => (on, SignalAt::Start),
                        GraphAction::Receive { .. } | GraphAction::Collective { .. } => {
                            (on + 1, SignalAt::End)
                        }
                    };
                    into.push(Dependency { node, on, at });
                }
                Err(_) if need.is_control => is_whole = false,
                Err(_) => {
                    let id = self.ids[node as usize];
                    let reason = format!(
                        "node {id} waits for node {}, which is not in the file; copy it, or take it out \
                         of the data_deps",
                        need.on
                    );
                    return Err(NodeFault { place: self.places[node as usize], reason });
                }
            }
        }
        Ok(is_whole)
    }

    /// An order in which the operations can be done, lower ids first; `None`: some wait for each other.
    fn order(&self, dependencies: &[Dependency]) -> Option<Vec<u32>> {
        let count = self.graph.nodes.len();
        let (mut missing, mut users) = (vec![0u32; count], vec![Vec::new(); count]);
        for need in dependencies {
            missing[need.node as usize] += 1;
            users[need.on as usize].push(need.node);
        }
        let key = |node: u32| Reverse((self.ids[node as usize], node));
        let ready = (0..count as u32).filter(|node| missing[*node as usize] == 0);
        let mut ready: BinaryHeap<_> = ready.map(key).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse((_, node))) = ready.pop() {
            order.push(node);
            for user in &users[node as usize] {
                missing[*user as usize] -= 1;
                if missing[*user as usize] == 0 {
                    ready.push(key(*user));
                }
            }
        }
        (order.len() == count).then_some(order)
    }
}

/// The collective with its sizes. `comm_size` is the vector of reductions, the whole of what a rank gives to
/// all others in ALL_TO_ALL, and else the block of a rank, as the rings of ASTRA-sim take it.
fn collective(call: &NodeCollective, group: &ChakraGroup) -> GraphCollective {
    use CollectiveCommType as Type;
    let (all, block) = (call.bytes, call.bytes / u64::from(group.size));
    let root = Some(group.first);
    let (kind, root, send, receive): (Collective, Option<RankId>, u64, u64) = match call.kind {
        Type::AllReduce => (Collective::Allreduce, None, all, all),
        Type::Reduce => (Collective::Reduce, root, all, all),
        Type::AllGather => (Collective::Allgather, None, all, all),
        Type::Gather => (Collective::Gather, root, all, all),
        Type::Scatter => (Collective::Scatter, root, all, all),
        Type::Broadcast => (Collective::Broadcast, root, all, all),
        Type::AllToAll => (Collective::Alltoall, None, block, block),
        Type::ReduceScatter | Type::ReduceScatterBlock => (Collective::ReduceScatterBlock, None, all, block),
        Type::Barrier => (Collective::Barrier, None, 0, 0),
    };
    let (send, receive) = (Bytes::new(send), Bytes::new(receive));
    GraphCollective { kind, comm: group.comm, root, send, receive }
}
