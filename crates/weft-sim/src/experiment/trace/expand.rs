//! Collectives as messages and computation, for formats that do not carry them; and windows with fences.
//!
//! | a collective | becomes |
//! |---|---|
//! | that blocks | its rounds: receives and sends, a wait for all of them, then copies and reductions |
//! | that does not block, where streams are mixed | the same beside its stream, from its call to its wait |
//! | that does not block, elsewhere | the same, where it begins |
//!
//! Its messages are of the world, with tags from 2^30 on, which MPICH gives to no program. Those of blocking
//! collectives have one for each communicator and kind: all members begin them in one order, so that messages
//! of a pair are not taken for each other. A tag stands for a buffer where nobody knows one, and a machine
//! whose interfaces translate addresses would take new ones amiss. Windows are in windows.rs; their creation,
//! their end and their fences are barriers, too.

use super::windows::{RankWindows, WindowAccesses};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use weft_formats::{Expand, ExpandedOps, Trace, TraceError};
use weft_msg::{CollectiveCall, ExpandedCollective, ExpandedStep, Expansion, Protocol};
use weft_trace::op::{
    Collective, CollectiveSizes, CommId, EventId, Op, RankRange, RequestId, SendMode, SignalAt, WindowSync,
};
use weft_units::{RankId, Span};

/// The first tag of a collective's message.
const FIRST_TAG: i32 = 1 << 30;

/// Tags of a communicator, and communicators that have their own.
const COMM_TAGS: u32 = 1 << 17;
const COMMS: u32 = 1 << 12;

/// The first tag of a communicator's collectives that do not block. Below are those of the kinds.
const NON_BLOCKING_TAG: u32 = 32;

/// Turns the collectives that a format does not carry into messages.
pub(super) struct OperationExpander<'p> {
    protocol: &'p Protocol,
    ranks: u32,
    rank: RankId,
    collectives: Expansion,
    windows: RankWindows,
    accesses: WindowAccesses,
    /// Communicators of the rank that no collective has used.
    unused: BTreeMap<CommId, Vec<RankRange>>,
    /// Communicators of all ranks, numbered as they come.
    comms: BTreeMap<CommId, u32>,
    /// Open requests of the rank that were collectives, and the event at their end. `None`: they are over.
    replaced: BTreeMap<RequestId, Option<EventId>>,
    /// Events of the rank, counted downwards: a trace counts upwards.
    next_event: EventId,
    expanded: BTreeMap<String, u64>,
    /// Messages of the program with such tags.
    high_tags: u64,
}

impl OperationExpander<'_> {
    /// For a trace, by the table of algorithms and the costs of this library.
    ///
    /// # Errors
    /// One-sided operations that cannot be read.
    pub(super) fn new<'p>(
        protocol: &'p Protocol,
        trace: &Trace,
    ) -> Result<OperationExpander<'p>, TraceError> {
        let (ranks, rank) = (trace.ranks(), RankId(0));
        Ok(OperationExpander {
            protocol,
            ranks,
            rank,
            collectives: Expansion::new(rank, ranks),
            windows: RankWindows::default(),
            accesses: WindowAccesses::of(trace)?,
            unused: BTreeMap::new(),
            comms: BTreeMap::new(),
            replaced: BTreeMap::new(),
            next_event: EventId(u32::MAX),
            expanded: BTreeMap::new(),
            high_tags: 0,
        })
    }

    /// The collectives that were expanded, and how, with the number of calls.
    pub(super) fn expanded(mut self) -> BTreeMap<String, u64> {
        if self.high_tags > 0 && !self.expanded.is_empty() {
            let what = "messages of the program with tags from 2^30 on: as those of expanded collectives";
            self.expanded.insert(what.to_owned(), self.high_tags);
        }
        self.expanded
    }

    fn count(&mut self, what: String) {
        *self.expanded.entry(what).or_default() += 1;
    }

    fn event(&mut self) -> EventId {
        let event = self.next_event;
        self.next_event = EventId(event.0 - 1);
        event
    }

    fn collective(
        &mut self,
        call: &CollectiveCall<'_>,
        into: &mut ExpandedOps<'_>,
    ) -> Result<(), TraceError> {
        if let Some(members) = self.unused.remove(&call.comm) {
            self.collectives.create(call.comm, &members).map_err(|error| into.error(error))?;
        }
        let expanded = self.collectives.expand(self.protocol, call).map_err(|error| into.error(error))?;
        let mut name = format!("{}: by {}", weft_msg::collective_name(call.kind), expanded.algorithm);
        if let Some(replaced) = expanded.replaced {
            let _ = write!(name, ", in the place of {replaced}");
        }
        let within = match call.request {
            None => kind_tag(call.kind),
            Some(_) => NON_BLOCKING_TAG + expanded.number % (COMM_TAGS - NON_BLOCKING_TAG),
        };
        let tag = tag(&mut self.comms, call.comm, within);
        let ops = operations(expanded, tag);
        match call.request {
            None => ops.iter().try_for_each(|op| into.push(op))?,
            Some(request) if into.has_branches() => {
                let (begin, end) = (self.event(), self.event());
                let at = SignalAt::End;
                into.push(&Op::Signal { event: begin, at })?;
                let first = Op::Await { events: vec![begin] };
                let last = Op::Signal { event: end, at };
                into.branch([vec![first], ops, vec![last]].concat())?;
                self.replaced.insert(request, Some(end));
            }
            Some(request) => {
                name += ", blocking, where it begins";
                ops.iter().try_for_each(|op| into.push(op))?;
                self.replaced.insert(request, None);
            }
        }
        self.count(name);
        Ok(())
    }

    /// An operation on a window with fences only, or such a fence.
    fn window(&mut self, op: &Op, into: &mut ExpandedOps<'_>) -> Result<(), TraceError> {
        let (ops, barrier) = match *op {
            Op::Window { window, comm, .. } => {
                self.windows.create(window, comm, &mut self.accesses);
                (Vec::new(), Some(window))
            }
            Op::Sync { kind: WindowSync::Fence, window, .. } => {
                (self.windows.fence(window, self.rank, &self.accesses), Some(window))
            }
            Op::Sync { window, .. } => (Vec::new(), Some(window)),
            Op::OneSided { target, .. } if target == self.rank => (Vec::new(), None),
            _ => (self.windows.access(op), None),
        };
        let mut name = format!("{}: by messages", op.kind().name());
        if let Op::OneSided { request: Some(request), .. } = op {
            name += ", waited for in the next fence";
            self.replaced.insert(*request, None);
        }
        self.count(name);
        ops.iter().try_for_each(|op| into.push(op))?;
        let Some(comm) = barrier.and_then(|window| self.windows.comm(window)) else { return Ok(()) };
        let (kind, sizes, buffers) = (Collective::Barrier, CollectiveSizes::default(), Default::default());
        let call = CollectiveCall { kind, comm, root: None, sizes: &sizes, buffers, request: None };
        self.collective(&call, into)
    }

    /// Waits for requests of which some were collectives.
    fn wait(&mut self, requests: &[RequestId], into: &mut ExpandedOps<'_>) -> Result<(), TraceError> {
        let mut events = Vec::new();
        let mut others = Vec::new();
        for request in requests {
            match self.replaced.remove(request) {
                None => others.push(*request),
                Some(event) => events.extend(event),
            }
        }
        if !others.is_empty() {
            into.push(&wait_for(others))?;
        }
        if events.is_empty() { Ok(()) } else { into.push(&Op::Await { events }) }
    }
}

impl Expand for OperationExpander<'_> {
    fn begin_rank(&mut self, rank: RankId) {
        self.rank = rank;
        self.collectives = Expansion::new(rank, self.ranks);
        self.windows = RankWindows::default();
        self.unused.clear();
        self.replaced.clear();
        self.next_event = EventId(u32::MAX);
    }

    fn expand(&mut self, op: Op, into: &mut ExpandedOps<'_>) -> Result<(), TraceError> {
        match &op {
            Op::Communicator { comm, members } => {
                self.unused.insert(*comm, members.clone());
            }
            Op::Collective { kind, comm, root, sizes, buffers, request } if !into.carries(&op) => {
                let (kind, comm, root) = (*kind, *comm, *root);
                let (buffers, request) = (*buffers, *request);
                return self.collective(&CollectiveCall { kind, comm, root, sizes, buffers, request }, into);
            }
            Op::Window { window, .. } | Op::OneSided { window, .. } | Op::Sync { window, .. }
                if self.accesses.has_fences_only(*window) && !into.carries(&op) =>
            {
                return self.window(&op, into);
            }
            Op::Isend { tag, .. } if *tag >= FIRST_TAG => self.high_tags += 1,
            // Few programs have collectives that do not block.
            _ if self.replaced.is_empty() => {}
            Op::Wait { request } => return self.wait(&[*request], into),
            Op::Waitall { requests } => return self.wait(requests, into),
            Op::Waitany { requests, completed }
                if requests.iter().any(|it| self.replaced.contains_key(it)) =>
            {
                let completed = requests.get(*completed as usize);
                return self.wait(completed.map_or(&[], std::slice::from_ref), into);
            }
            _ => {}
        }
        into.push(&op)
    }
}

/// The tag of a blocking collective within its communicator.
fn kind_tag(kind: Collective) -> u32 {
    let place = weft_msg::COLLECTIVE_NAMES.iter().position(|(other, _)| *other == kind);
    place.map_or(0, |place| place as u32)
}

fn wait_for(requests: Vec<RequestId>) -> Op {
    match requests[..] {
        [request] => Op::Wait { request },
        _ => Op::Waitall { requests },
    }
}

/// The tag of that number within a communicator.
fn tag(comms: &mut BTreeMap<CommId, u32>, comm: CommId, within: u32) -> i32 {
    let known = comms.len() as u32;
    let comm = *comms.entry(comm).or_insert(known) % COMMS;
    FIRST_TAG + (comm * COMM_TAGS + within).cast_signed()
}

/// The operations of a collective, with this tag.
fn operations(collective: ExpandedCollective<'_>, tag: i32) -> Vec<Op> {
    let compute = |span: Span| (span > Span::ZERO).then_some(Op::Compute { span });
    let (comm, buffer) = (CommId::WORLD, None);
    let mut ops: Vec<Op> = compute(collective.call).into_iter().collect();
    for round in collective {
        // No request of a round outlives it. A trace counts them upwards.
        let mut requests: Vec<RequestId> = Vec::new();
        for step in round.steps {
            let request = RequestId(u32::MAX - requests.len() as u32);
            let op = match step {
                ExpandedStep::Compute(span) => {
                    ops.extend(compute(span));
                    continue;
                }
                ExpandedStep::Receive { from, bytes } => {
                    let (from, tag) = (Some(from), Some(tag));
                    Op::Irecv { from, tag, comm, bytes, matched: None, buffer, request }
                }
                ExpandedStep::Send { to, bytes } => {
                    Op::Isend { to, tag, comm, bytes, mode: SendMode::Standard, buffer, request }
                }
            };
            ops.push(op);
            requests.push(request);
        }
        if !requests.is_empty() {
            ops.push(wait_for(requests));
        }
        ops.extend(compute(round.work));
    }
    ops
}
