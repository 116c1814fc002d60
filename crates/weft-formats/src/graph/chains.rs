//! A graph as streams: chains of operations, with events where one chain waits for another.
//!
//! ```text
//!      a ──▶ b ──▶ d          stream 0   a  b  signal e  d …
//!            └───▶ c          stream 1   await e  c
//! ```
//! An operation goes on the chain whose last operation waits for the same others, or is one that it waits for
//! itself; else it begins a chain. Sends, receives and collectives are posted and not waited for in their
//! chain: who needs the end of one waits for its request. Where several chains do, a chain of its own waits
//! and signals to them. What nobody waits for is waited for at the end of its chain.

use super::{Dependency, DependencyCycle, GraphAction, GraphCollective, GraphCommunicator, RankGraph};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use weft_trace::op::{
    CollectiveBuffers, CollectiveSizes, CommId, EventId, Op, RequestId, SendMode, SignalAt,
};

/// A stream of the rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct StreamChain {
    /// The core that it sits on.
    pub(super) core: u32,
    pub(super) ops: Vec<Op>,
}

/// The place of an operation.
#[derive(Clone, Copy, Debug, Default)]
struct ChainPlace {
    chain: usize,
    position: usize,
    /// Whether it waits itself, and not the one before it for the same operations.
    waits: bool,
}

/// A chain while operations are put on it.
#[derive(Clone, Debug)]
struct Assignment {
    core: u32,
    nodes: Vec<u32>,
}

impl RankGraph {
    /// The streams of the rank. The first is on core 0; cores are numbered anew where some have no operation.
    ///
    /// # Errors
    /// Operations that wait for each other.
    pub(super) fn chains(&self) -> Result<Vec<StreamChain>, DependencyCycle> {
        let mut needs: Vec<Vec<Dependency>> = vec![Vec::new(); self.nodes.len()];
        for dependency in &self.dependencies {
            needs[dependency.node as usize].push(*dependency);
        }
        for needs in &mut needs {
            needs.sort_unstable_by_key(|need| (need.on, need.at));
            needs.dedup();
        }
        let (chains, places) = self.assign(&needs)?;
        Ok(self.written(&chains, &places, &needs))
    }

    /// Puts each operation on a chain, in an order in which they can be done.
    fn assign(
        &self,
        needs: &[Vec<Dependency>],
    ) -> Result<(Vec<Assignment>, Vec<ChainPlace>), DependencyCycle> {
        let mut missing: Vec<usize> = needs.iter().map(Vec::len).collect();
        let mut users: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for need in needs.iter().flatten() {
            users[need.on as usize].push(need.node);
        }
        let ready = (0..self.nodes.len() as u32).filter(|node| missing[*node as usize] == 0);
        let mut ready: BinaryHeap<Reverse<u32>> = ready.map(Reverse).collect();
        let mut chains: Vec<Assignment> = Vec::new();
        let mut places = vec![ChainPlace::default(); self.nodes.len()];
        // By core and what they wait for: the last such operation.
        let mut alike: BTreeMap<(u32, &[NeedKey]), u32> = BTreeMap::new();
        let keys: Vec<Vec<NeedKey>> =
            needs.iter().map(|needs| needs.iter().map(|n| (n.on, n.at)).collect()).collect();
        let mut done = 0;
        while let Some(Reverse(node)) = ready.pop() {
            done += 1;
            let at = node as usize;
            let core = self.nodes[at].core;
            let is_last = |chains: &[Assignment], places: &[ChainPlace], other: u32| {
                let place = places[other as usize];
                chains[place.chain].core == core && chains[place.chain].nodes.last() == Some(&other)
            };
            let twin =
                alike.get(&(core, &keys[at][..])).copied().filter(|twin| is_last(&chains, &places, *twin));
            let before = || {
                needs[at]
                    .iter()
                    .find(|need| self.follows(need) && is_last(&chains, &places, need.on))
                    .map(|need| need.on)
            };
            let tail = twin.or_else(before);
            let chain = match tail {
                Some(tail) => places[tail as usize].chain,
                None => {
                    chains.push(Assignment { core, nodes: Vec::new() });
                    chains.len() - 1
                }
            };
            places[at] = ChainPlace { chain, position: chains[chain].nodes.len(), waits: twin.is_none() };
            chains[chain].nodes.push(node);
            alike.insert((core, &keys[at][..]), node);
            for user in &users[at] {
                missing[*user as usize] -= 1;
                if missing[*user as usize] == 0 {
                    ready.push(Reverse(*user));
                }
            }
        }
        match done == self.nodes.len() {
            true => Ok((chains, places)),
            false => {
                let node = missing.iter().position(|missing| *missing > 0).unwrap_or(0) as u32;
                Err(DependencyCycle { node })
            }
        }
    }

    /// Whether an operation may stand behind the one that it waits for: not behind a computation whose start
    /// it waits for.
    fn follows(&self, need: &Dependency) -> bool {
        need.at == SignalAt::End || !self.computes(need.on)
    }

    fn computes(&self, node: u32) -> bool {
        matches!(self.nodes[node as usize].action, GraphAction::Compute { .. })
    }

    /// The operations of the chains, with all that they wait for.
    fn written(
        &self,
        chains: &[Assignment],
        places: &[ChainPlace],
        needs: &[Vec<Dependency>],
    ) -> Vec<StreamChain> {
        let mut signals: Vec<[Vec<EventId>; 2]> = vec![Default::default(); self.nodes.len()];
        let mut next = 0;
        let mut event = || {
            next += 1;
            EventId(next - 1)
        };
        // For the end of each message: the operations that wait for it.
        let mut ends: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        let mut awaited: Vec<Vec<EventId>> = vec![Vec::new(); self.nodes.len()];
        let mut requests: Vec<Vec<RequestId>> = vec![Vec::new(); self.nodes.len()];
        for need in needs.iter().flatten().filter(|need| places[need.node as usize].waits) {
            let (own, other) = (places[need.node as usize], places[need.on as usize]);
            let is_behind = own.chain == other.chain && other.position < own.position;
            if need.at == SignalAt::End && !self.computes(need.on) {
                ends[need.on as usize].push(need.node);
            } else if !is_behind || need.at == SignalAt::Start && self.computes(need.on) {
                let event = event();
                signals[need.on as usize][need.at as usize].push(event);
                awaited[need.node as usize].push(event);
            }
        }
        let mut waiters: Vec<StreamChain> = Vec::new();
        for (on, users) in (0..).zip(&ends) {
            let request = RequestId(on);
            match users[..] {
                [] => {}
                [user] => {
                    let (own, other) = (places[user as usize], places[on as usize]);
                    if own.chain != other.chain {
                        let posted = event();
                        signals[on as usize][SignalAt::Start as usize].push(posted);
                        awaited[user as usize].push(posted);
                    }
                    requests[user as usize].push(request);
                }
                _ => {
                    let posted = event();
                    signals[on as usize][SignalAt::Start as usize].push(posted);
                    let mut ops = vec![Op::Await { events: vec![posted] }, Op::Wait { request }];
                    for user in users {
                        let ended = event();
                        awaited[*user as usize].push(ended);
                        ops.push(Op::Signal { event: ended, at: SignalAt::End });
                    }
                    waiters.push(StreamChain { core: self.nodes[on as usize].core, ops });
                }
            }
        }
        let chain = |chain: &Assignment| {
            let mut ops = Vec::new();
            let mut left = Vec::new();
            for &node in &chain.nodes {
                let at = node as usize;
                if !awaited[at].is_empty() {
                    ops.push(Op::Await { events: awaited[at].clone() });
                }
                ops.extend(wait_for(&requests[at]));
                ops.push(self.op(node));
                for (which, events) in [SignalAt::Start, SignalAt::End].into_iter().zip(&signals[at]) {
                    ops.extend(events.iter().map(|event| Op::Signal { event: *event, at: which }));
                }
                if !self.computes(node) && ends[at].is_empty() {
                    left.push(RequestId(node));
                }
            }
            ops.extend(wait_for(&left));
            StreamChain { core: chain.core, ops }
        };
        let chains: Vec<StreamChain> = chains.iter().map(chain).chain(waiters).collect();
        let mut chains = numbered(chains);
        self.create_communicators(&mut chains, &mut event);
        chains
    }

    /// The first stream creates the communicators; others that need them wait for it.
    fn create_communicators(&self, chains: &mut [StreamChain], event: &mut impl FnMut() -> EventId) {
        let [first, others @ ..] = chains else { return };
        let create =
            |new: &GraphCommunicator| Op::Communicator { comm: new.comm, members: new.members.clone() };
        let mut ops: Vec<Op> = self.communicators.iter().map(create).collect();
        let is_in_one = |op: &Op| matches!(op, Op::Collective { comm, .. } if *comm != CommId::WORLD);
        for chain in others.iter_mut().filter(|chain| chain.ops.iter().any(is_in_one)) {
            let created = event();
            ops.push(Op::Signal { event: created, at: SignalAt::End });
            chain.ops.insert(0, Op::Await { events: vec![created] });
        }
        first.ops.splice(0..0, ops);
    }

    fn op(&self, node: u32) -> Op {
        let request = RequestId(node);
        let (comm, buffer) = (CommId::WORLD, None);
        match self.nodes[node as usize].action {
            GraphAction::Send { to, bytes, tag } => {
                Op::Isend { to, tag, comm, bytes, mode: SendMode::Standard, buffer, request }
            }
            GraphAction::Receive { from, bytes, tag } => {
                Op::Irecv { from, tag, comm, bytes, matched: None, buffer, request }
            }
            GraphAction::Compute { span } => Op::Compute { span },
            GraphAction::Collective { number } => {
                let GraphCollective { kind, comm, root, send, receive } = self.collectives[number as usize];
                let sizes = CollectiveSizes { send, receive, ..CollectiveSizes::default() };
                let (buffers, request) = (CollectiveBuffers::default(), Some(request));
                Op::Collective { kind, comm, root, sizes, buffers, request }
            }
        }
    }
}

/// An operation that is waited for, and whether for its start or its end.
type NeedKey = (u32, SignalAt);

/// A wait for requests, if there are any.
fn wait_for(requests: &[RequestId]) -> Option<Op> {
    match requests {
        [] => None,
        [request] => Some(Op::Wait { request: *request }),
        requests => Some(Op::Waitall { requests: requests.to_vec() }),
    }
}

/// Numbers the cores from 0 on, in their order, and puts a chain on core 0 first.
fn numbered(mut chains: Vec<StreamChain>) -> Vec<StreamChain> {
    let mut cores: Vec<u32> = chains.iter().map(|chain| chain.core).collect();
    cores.sort_unstable();
    cores.dedup();
    for chain in &mut chains {
        chain.core = cores.binary_search(&chain.core).unwrap_or(0) as u32;
    }
    match chains.iter().position(|chain| chain.core == 0) {
        Some(first) => chains[..=first].rotate_right(1),
        None => chains.push(StreamChain::default()),
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::super::GraphOperation;
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::Index;
    use std::collections::BTreeSet;
    use weft_units::{Bytes, RankId, Span};

    fn node(action: GraphAction) -> GraphOperation {
        GraphOperation { action, core: 0 }
    }

    fn compute(ns: u64) -> GraphOperation {
        node(GraphAction::Compute { span: Span::from_ns(ns) })
    }

    fn send() -> GraphOperation {
        node(GraphAction::Send { to: RankId(1), bytes: Bytes::new(1), tag: 0 })
    }

    fn receive() -> GraphOperation {
        node(GraphAction::Receive { from: None, bytes: Bytes::new(1), tag: Some(0) })
    }

    fn graph(nodes: Vec<GraphOperation>, needs: &[(u32, u32, SignalAt)]) -> RankGraph {
        let dependencies = needs.iter().map(|&(node, on, at)| Dependency { node, on, at }).collect();
        RankGraph { nodes, dependencies, ..RankGraph::default() }
    }

    fn names(graph: &RankGraph) -> Vec<String> {
        let name = |chain: &StreamChain| {
            let names: Vec<&str> = chain.ops.iter().map(|op| op.kind().name()).collect();
            names.join(" ")
        };
        graph.chains().unwrap().iter().map(name).collect()
    }

    /// Catches chains that are cut where they need not be, and events that nobody needs.
    #[test]
    fn a_sequence_is_one_stream_without_events() {
        let needs = [(1, 0, SignalAt::End), (2, 1, SignalAt::End)];
        assert_eq!(
            names(&graph(vec![receive(), compute(5), send()], &needs)),
            ["irecv wait compute isend wait"]
        );
        // Operations that wait for nothing are posted one after the other.
        assert_eq!(names(&graph(vec![send(), receive(), send()], &[])), ["isend irecv isend waitall"]);
        // Those that wait for the same are, too.
        let needs = [(1, 0, SignalAt::End), (2, 0, SignalAt::End)];
        assert_eq!(
            names(&graph(vec![receive(), send(), send()], &needs)),
            ["irecv wait isend isend waitall"]
        );
    }

    /// Catches an end that is signalled before it is waited for, and a start that is signalled at the end.
    #[test]
    fn what_crosses_chains_is_an_event() {
        let needs = [(2, 0, SignalAt::End), (3, 0, SignalAt::End), (3, 1, SignalAt::End)];
        let said = names(&graph(vec![receive(), compute(1), send(), send()], &needs));
        assert_eq!(
            said,
            [
                "irecv signal_start compute await isend wait",
                "await isend wait",
                "await wait signal_end signal_end",
            ]
        );
        let needs = [(1, 0, SignalAt::Start)];
        assert_eq!(
            names(&graph(vec![compute(1), send()], &needs)),
            ["compute signal_start", "await isend wait"]
        );
        assert_eq!(names(&graph(vec![receive(), send()], &needs)), ["irecv isend waitall"]);
    }

    /// Catches a circle that hangs, or is taken.
    #[test]
    fn circles_are_found() {
        let needs = [(1, 2, SignalAt::End), (2, 1, SignalAt::Start)];
        let found = graph(vec![send(), send(), send()], &needs).chains();
        assert_eq!(found, Err(DependencyCycle { node: 1 }));
    }

    /// Catches cores that are lost, and a first stream that is on another than the first core.
    #[test]
    fn cores_are_numbered_from_the_first() {
        let on = |core, node: GraphOperation| GraphOperation { core, ..node };
        let chains = graph(vec![on(7, compute(1)), on(3, compute(2))], &[]).chains().unwrap();
        let cores: Vec<u32> = chains.iter().map(|chain| chain.core).collect();
        assert_eq!(cores, [0, 1]);
        assert_eq!(chains[0].ops, [Op::Compute { span: Span::from_ns(2) }]);
        assert_eq!(RankGraph::default().chains().unwrap(), [StreamChain::default()]);
    }

    /// Does what streams can do, in an order that `choose` decides, and checks that no operation comes before
    /// those that it waits for. A message ends when it is waited for.
    fn execute(graph: &RankGraph, chains: &[StreamChain], choose: &mut impl FnMut(usize) -> usize) {
        let mut next = vec![0; chains.len()];
        let (mut started, mut ended) = (BTreeSet::new(), BTreeSet::new());
        let mut events: BTreeSet<EventId> = BTreeSet::new();
        loop {
            let able = |stream: &usize| match chains[*stream].ops.get(next[*stream]) {
                None => false,
                Some(Op::Await { events: awaited }) => awaited.iter().all(|event| events.contains(event)),
                Some(_) => true,
            };
            let able: Vec<usize> = (0..chains.len()).filter(able).collect();
            if able.is_empty() {
                break;
            }
            let stream = able[choose(able.len())];
            let op = &chains[stream].ops[next[stream]];
            next[stream] += 1;
            let mut wait = |request: &RequestId| {
                assert!(started.contains(&request.0), "it waits for a message that is not begun");
                assert!(ended.insert(request.0), "it waits for a message twice");
            };
            let node = match op {
                Op::Await { events: awaited } => {
                    awaited.iter().for_each(|event| assert!(events.remove(event)));
                    continue;
                }
                Op::Signal { event, .. } => {
                    assert!(events.insert(*event));
                    continue;
                }
                Op::Wait { request } => {
                    wait(request);
                    continue;
                }
                Op::Waitall { requests } => {
                    requests.iter().for_each(wait);
                    continue;
                }
                Op::Isend { request, .. } | Op::Irecv { request, .. } => request.0,
                Op::Compute { span } => span.as_ps() as u32,
                other => unreachable!("{other:?}"),
            };
            for need in graph.dependencies.iter().filter(|need| need.node == node) {
                let have = if need.at == SignalAt::End { &ended } else { &started };
                assert!(have.contains(&need.on), "operation {node} comes before {} has come so far", need.on);
            }
            started.insert(node);
            if matches!(op, Op::Compute { .. }) {
                ended.insert(node);
            }
        }
        assert_eq!(ended.len(), graph.nodes.len(), "streams that cannot go on");
        assert!(events.is_empty());
    }

    proptest! {
        /// Catches a dependency that is lost, streams that hang, and messages that are waited for twice or
        /// never.
        #[test]
        fn streams_keep_every_dependency(
            kinds in prop::collection::vec((0..3u8, 0..3u32), 1..30),
            needs in prop::collection::vec((any::<Index>(), any::<Index>(), any::<bool>()), 0..60),
            choices in prop::collection::vec(any::<Index>(), 1..200),
        ) {
            // A computation is known by its time.
            let of_kind = |(number, (kind, core)): (usize, &(u8, u32))| {
                let span = Span::from_ps(number as u64);
                let compute = GraphAction::Compute { span };
                let action = [compute, send().action, receive().action][usize::from(*kind)];
                GraphOperation { action, core: *core }
            };
            let nodes: Vec<GraphOperation> = kinds.iter().enumerate().map(of_kind).collect();
            // A number mixes the order in which they can be done.
            let mixed = |place: usize| (place * 7 + 3) % nodes.len();
            let order: Vec<usize> = (0..nodes.len()).map(mixed).collect();
            let is_order = order.iter().collect::<BTreeSet<_>>().len() == nodes.len();
            let node = |place: usize| if is_order { order[place] as u32 } else { place as u32 };
            let mut dependencies = Vec::new();
            for (a, b, at_end) in needs {
                let (a, b) = (a.index(nodes.len()), b.index(nodes.len()));
                if a != b {
                    let at = if at_end { SignalAt::End } else { SignalAt::Start };
                    dependencies.push(Dependency { node: node(a.max(b)), on: node(a.min(b)), at });
                }
            }
            let graph = RankGraph { nodes, dependencies, ..RankGraph::default() };
            let chains = graph.chains().unwrap();
            let mut choices = choices.iter().cycle();
            execute(&graph, &chains, &mut |able| choices.next().map_or(0, |choice| choice.index(able)));
        }
    }
}
