//! The longest dependent chain of a trace: how long it takes where messages take no time at all.
//!
//! An oracle for replays on an ideal network of zero cost, with no part of the messaging library in it.
//!
//! ```text
//!   rank 0  ──compute 5──isend──────compute 1──   chain: 5 (rank 0), then 4 (rank 1): 9
//!                           ╲
//!   rank 1  ──compute 2──irecv──wait──compute 4──
//! ```
//!
//! * Operations take no time; a rank's clock is moved by computation and by waiting only.
//! * Messages between two ranks with the same tag and communicator match in order. A wildcard receives
//!   what it received when the trace was recorded.
//! * A send has completed when it is posted. Synchronous ones, and standard and ready ones above the eager
//!   limit, complete when the receive has been posted too, whatever the receiver does meanwhile.
//! * A receive has completed when both sides have been posted.
//! * `waitany` waits for the request that completed when the trace was recorded.
//! * Collectives complete as [`Dependence`] says.

use crate::error::TraceError;
use crate::trace::Trace;
use std::collections::{BTreeMap, VecDeque};
use weft_trace::Cursor;
use weft_trace::op::{Collective, CommId, Op, RequestId, SendMode, StreamId};
use weft_units::{Bytes, RankId, Span, Time};

/// Whom a rank must await in a collective. Algorithms differ; these are the bounds between which all lie.
/// For barrier, allreduce, allgather, alltoall and reduce-scatter, and their variants, both are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dependence {
    /// Only those whose data it needs: the root in a broadcast or scatter, the members before it in a scan;
    /// all members at the root of a reduction or gather, nobody elsewhere.
    Data,
    /// All members, in every collective.
    AllMembers,
}

/// The longest dependent chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CriticalChain {
    /// The time at which the last rank ends.
    pub run_time: Span,
    /// Each rank by itself.
    pub ranks: Vec<RankChain>,
}

/// One rank of a [`CriticalChain`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RankChain {
    /// The sum of its computation.
    pub computation: Span,
    /// The time at which it ends.
    pub end: Time,
}

/// Why a trace has no longest chain.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An operation whose dependences the trace does not tell.
    #[error("rank {rank}, operation {position}: the trace does not say what a {operation} waits for")]
    Unsupported {
        /// The rank.
        rank: RankId,
        /// The operation of that rank, counted from 0.
        position: u64,
        /// The operation's name.
        operation: &'static str,
    },
    /// The ranks wait for each other, or for messages that nobody sends.
    #[error("rank {rank} waits for ever at operation {position}: {operation}")]
    Stuck {
        /// The first rank that does not end.
        rank: RankId,
        /// The operation of that rank, counted from 0.
        position: u64,
        /// The operation's name.
        operation: &'static str,
    },
}

/// Computes the longest dependent chain. Sends of more than `eager_limit` complete with their receive.
pub fn critical_chain(
    trace: &Trace,
    eager_limit: Bytes,
    dependence: Dependence,
) -> Result<CriticalChain, ChainError> {
    let mut chains = Chains::new(trace, eager_limit, dependence)?;
    while let Some(rank) = chains.runnable.pop_front() {
        chains.run(rank)?;
    }
    if let Some((rank, waiting)) =
        chains.ranks.iter().enumerate().find_map(|(rank, state)| Some((rank, state.waiting.as_ref()?)))
    {
        return Err(ChainError::Stuck {
            rank: RankId::from(rank),
            position: chains.ranks[rank].cursor.next_position() - 1,
            operation: waiting.kind().name(),
        });
    }
    let ranks: Vec<_> = chains.ranks.iter().map(|rank| rank.chain).collect();
    let last = ranks.iter().map(|rank| rank.end).max().unwrap_or(Time::ZERO);
    Ok(CriticalChain { run_time: last - Time::ZERO, ranks })
}

/// A request of a rank, or `None`: the blocking collective that it is in.
type RequestKey = Option<RequestId>;

struct RankState {
    cursor: Box<dyn Cursor>,
    chain: RankChain,
    /// When each request has completed, where that is known.
    requests: BTreeMap<RequestKey, Option<Time>>,
    /// The operation that the rank waits in.
    waiting: Option<Op>,
    /// Number of collectives called on each communicator so far. Members pair their calls by it.
    calls: BTreeMap<CommId, u64>,
}

/// One side of a message that has not met the other.
struct Posted {
    request: RequestId,
    time: Time,
    /// Whether the request still waits for the other side.
    open: bool,
}

/// Messages with the same key match in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ChannelKey {
    source: RankId,
    destination: RankId,
    comm: CommId,
    tag: i32,
}

/// The messages of one key. One side is always empty.
#[derive(Default)]
struct Channel {
    sends: VecDeque<Posted>,
    receives: VecDeque<Posted>,
}

/// One collective call, the same for all members: the communicator, and the number of its calls before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CallKey {
    comm: CommId,
    number: u64,
}

/// The arrival of a member in a collective.
#[derive(Clone, Copy)]
struct Arrival {
    time: Time,
    /// The request, until it has completed.
    open: Option<RequestKey>,
}

/// A collective that not all members have called.
struct Gathering {
    kind: Collective,
    root: Option<RankId>,
    /// By the order of the communicator.
    arrivals: Vec<Option<Arrival>>,
    arrived: usize,
}

struct Chains {
    eager_limit: Bytes,
    dependence: Dependence,
    ranks: Vec<RankState>,
    runnable: VecDeque<RankId>,
    channels: BTreeMap<ChannelKey, Channel>,
    members: BTreeMap<CommId, Vec<RankId>>,
    gatherings: BTreeMap<CallKey, Gathering>,
}

impl Chains {
    fn new(trace: &Trace, eager_limit: Bytes, dependence: Dependence) -> Result<Chains, TraceError> {
        let all: Vec<_> = (0..trace.ranks()).map(RankId).collect();
        let state = |&rank: &RankId| {
            Ok(RankState {
                cursor: trace.stream(rank, StreamId::FIRST)?,
                chain: RankChain::default(),
                requests: BTreeMap::new(),
                waiting: None,
                calls: BTreeMap::new(),
            })
        };
        Ok(Chains {
            eager_limit,
            dependence,
            ranks: all.iter().map(state).collect::<Result<_, TraceError>>()?,
            runnable: all.iter().copied().collect(),
            channels: BTreeMap::new(),
            members: [(CommId::WORLD, all)].into(),
            gatherings: BTreeMap::new(),
        })
    }

    /// Runs a rank until it waits or ends.
    fn run(&mut self, rank: RankId) -> Result<(), ChainError> {
        loop {
            let op = match self.ranks[rank.index()].waiting.take() {
                Some(op) => op,
                None => {
                    let Some(op) = self.ranks[rank.index()].cursor.next() else { return Ok(()) };
                    let op = op.map_err(TraceError::from)?;
                    self.post(rank, &op)?;
                    op
                }
            };
            if let Op::Probe { from, tag, comm, .. } = op {
                let key = ChannelKey { source: from, destination: rank, comm, tag };
                let channel = self.channels.get(&key);
                let message = channel.and_then(|channel| channel.sends.front()).map(|send| send.time);
                let state = &mut self.ranks[rank.index()];
                let Some(sent) = message else {
                    state.waiting = Some(op);
                    return Ok(());
                };
                state.chain.end = state.chain.end.max(sent);
                continue;
            }
            let state = &mut self.ranks[rank.index()];
            let awaited: Vec<RequestKey> = match &op {
                Op::Wait { request } => vec![Some(*request)],
                Op::Waitall { requests } => requests.iter().copied().map(Some).collect(),
                Op::Waitany { requests, completed } => vec![Some(requests[*completed as usize])],
                Op::Collective { request: None, .. } => vec![None],
                _ => continue,
            };
            let done: Option<Vec<Time>> =
                awaited.iter().map(|request| state.requests.get(request).copied().flatten()).collect();
            let Some(done) = done else {
                state.waiting = Some(op);
                return Ok(());
            };
            state.chain.end = done.into_iter().fold(state.chain.end, Time::max);
            for request in awaited {
                state.requests.remove(&request);
            }
        }
    }

    /// Starts an operation: everything that it does before it waits.
    fn post(&mut self, rank: RankId, op: &Op) -> Result<(), ChainError> {
        let state = &mut self.ranks[rank.index()];
        let time = state.chain.end;
        let unsupported = || ChainError::Unsupported {
            rank,
            position: state.cursor.next_position() - 1,
            operation: op.kind().name(),
        };
        match op {
            Op::Compute { span } => {
                state.chain.end = time.saturating_add(*span);
                state.chain.computation = state.chain.computation.saturating_add(*span);
            }
            Op::Isend { to, tag, comm, bytes, mode, request, .. } => {
                let open = match mode {
                    SendMode::Synchronous => true,
                    SendMode::Standard | SendMode::Ready => *bytes > self.eager_limit,
                    SendMode::Buffered => false,
                };
                state.requests.insert(Some(*request), (!open).then_some(time));
                let key = ChannelKey { source: rank, destination: *to, comm: *comm, tag: *tag };
                let send = Posted { request: *request, time, open };
                self.channels.entry(key).or_default().sends.push_back(send);
                self.meet(key);
            }
            Op::Irecv { from, tag, comm, matched, request, .. } => {
                let (matched_from, matched_tag) = matched.unzip();
                let (Some(from), Some(tag)) = (from.or(matched_from), tag.or(matched_tag)) else {
                    return Err(unsupported());
                };
                state.requests.insert(Some(*request), None);
                let key = ChannelKey { source: from, destination: rank, comm: *comm, tag };
                let receive = Posted { request: *request, time, open: true };
                self.channels.entry(key).or_default().receives.push_back(receive);
                self.meet(key);
            }
            Op::Collective { kind, comm, root, request, .. } => {
                if !self.members.contains_key(comm) || completion_needs_topology(*kind) {
                    return Err(unsupported());
                }
                let calls = state.calls.entry(*comm).or_default();
                let call = CallKey { comm: *comm, number: *calls };
                *calls += 1;
                state.requests.insert(*request, None);
                let members = self.members[comm].len();
                self.gatherings.entry(call).or_insert_with(|| Gathering::new(*kind, *root, members));
                self.arrive(call, rank, Arrival { time, open: Some(*request) });
            }
            Op::Communicator { comm, members } => {
                self.members.entry(*comm).or_insert_with(|| {
                    let member = |range: &weft_trace::op::RankRange, i: u32| {
                        RankId(range.first.wrapping_add_signed(range.stride.wrapping_mul(i.cast_signed())))
                    };
                    members.iter().flat_map(|range| (0..range.count).map(move |i| member(range, i))).collect()
                });
            }
            // Chains of streams are not walked: a trace with several has events.
            Op::Signal { .. } | Op::Await { .. } => return Err(unsupported()),
            // Its time is a machine's.
            Op::Work { .. } => return Err(unsupported()),
            Op::Window { .. } | Op::OneSided { .. } | Op::Sync { .. } => return Err(unsupported()),
            Op::Probe { .. }
            | Op::Wait { .. }
            | Op::Waitall { .. }
            | Op::Waitany { .. }
            | Op::Marker { .. } => {}
        }
        Ok(())
    }

    fn complete(&mut self, rank: RankId, request: RequestKey, time: Time) {
        self.ranks[rank.index()].requests.insert(request, Some(time));
        // A rank is put in the queue for each request that completes; it looks for itself whether it may go
        // on.
        if self.ranks[rank.index()].waiting.is_some() {
            self.runnable.push_back(rank);
        }
    }

    /// Matches the first send of a channel with the first receive, where there are both.
    fn meet(&mut self, key: ChannelKey) {
        let Some(channel) = self.channels.get_mut(&key) else { return };
        if channel.receives.is_empty() {
            // The destination may be looking for it.
            if matches!(self.ranks[key.destination.index()].waiting, Some(Op::Probe { .. })) {
                self.runnable.push_back(key.destination);
            }
            return;
        }
        if channel.sends.is_empty() {
            return;
        }
        let (Some(send), Some(receive)) = (channel.sends.pop_front(), channel.receives.pop_front()) else {
            return;
        };
        if channel.sends.is_empty() && channel.receives.is_empty() {
            self.channels.remove(&key);
        }
        let ChannelKey { source, destination, .. } = key;
        let time = send.time.max(receive.time);
        if send.open {
            self.complete(source, Some(send.request), time);
        }
        self.complete(destination, Some(receive.request), time);
    }

    /// Adds a member to a collective and completes the calls that waited for it.
    fn arrive(&mut self, call: CallKey, rank: RankId, arrival: Arrival) {
        let members = &self.members[&call.comm];
        let Some(gathering) = self.gatherings.get_mut(&call) else { return };
        let root = gathering.root.and_then(|root| members.iter().position(|&member| member == root));
        if let Some(own) = members.iter().position(|&member| member == rank) {
            gathering.arrivals[own] = Some(arrival);
            gathering.arrived += 1;
        }
        let mut completed = Vec::new();
        for (index, &member) in members.iter().enumerate() {
            let time = gathering.completion(index, root, self.dependence);
            if let (Some(time), Some(arrival)) = (time, &mut gathering.arrivals[index])
                && let Some(request) = arrival.open.take()
            {
                completed.push((member, request, time));
            }
        }
        if gathering.arrived == members.len() {
            self.gatherings.remove(&call);
        }
        for (member, request, time) in completed {
            self.complete(member, request, time);
        }
    }
}

impl Gathering {
    fn new(kind: Collective, root: Option<RankId>, members: usize) -> Gathering {
        Gathering { kind, root, arrivals: vec![None; members], arrived: 0 }
    }

    /// The time at which the member `index` is done; `None`: not all that it awaits have arrived.
    fn completion(&self, index: usize, root: Option<usize>, dependence: Dependence) -> Option<Time> {
        let arrival = |index: usize| self.arrivals[index].map(|arrival| arrival.time);
        let own = arrival(index)?;
        let awaited = match (dependence, self.kind) {
            (Dependence::Data, Collective::Broadcast | Collective::Scatter | Collective::Scatterv) => {
                return Some(own.max(arrival(root?)?));
            }
            (Dependence::Data, Collective::Reduce | Collective::Gather | Collective::Gatherv)
                if root != Some(index) =>
            {
                return Some(own);
            }
            (Dependence::Data, Collective::Scan | Collective::Exscan) => &self.arrivals[..=index],
            _ if self.arrived < self.arrivals.len() => return None,
            _ => &self.arrivals[..],
        };
        awaited.iter().try_fold(own, |latest, arrival| Some(latest.max((*arrival)?.time)))
    }
}

/// Whether a collective depends on a process topology, which traces do not have.
fn completion_needs_topology(kind: Collective) -> bool {
    matches!(
        kind,
        Collective::NeighborAllgather
            | Collective::NeighborAllgatherv
            | Collective::NeighborAlltoall
            | Collective::NeighborAlltoallv
    )
}
