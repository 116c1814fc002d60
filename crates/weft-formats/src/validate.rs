//! Whether a trace makes sense as a whole: checked before a replay starts, rank by rank, in little memory.
//!
//! * Requests are started before they are waited for, and not started again before they have completed.
//! * Events are signalled, and each once before it is awaited.
//! * Communicators and windows exist where they are used; the members of a communicator agree on them.
//! * The members of a communicator call the same collectives in the same order: the same kind and root,
//!   blocking or not, and the same size where the standard demands one.
//!
//! Whether every message is received is not checked: that takes as much memory as the replay itself,
//! which ends with a report of who waits for what.

use crate::error::TraceError;
use crate::rank_order::{PlacedOp, RankOrder};
use crate::trace::Trace;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use weft_trace::op::{Collective, CommId, EventId, Op, RankRange, RequestId, StreamId, WindowId, WindowSync};
use weft_units::{RankId, Span};

/// The longest that a rank may compute in all, so that no point in virtual time overflows: 106 days.
const MAX_COMPUTATION: Span = Span::from_ps(1 << 63);

/// The most ranges of members of all communicators together: 192 MB of them.
const MAX_MEMBER_RANGES: usize = 1 << 24;

/// Checks a trace as a whole.
pub fn validate(trace: &Trace) -> Result<(), TraceError> {
    let mut check = TraceCheck::new(trace);
    for rank in (0..trace.ranks()).map(RankId) {
        check.rank(rank)?;
    }
    if trace.metadata().header.interrupted { Ok(()) } else { check.creations() }
}

/// The state of the check between ranks: communicators as the ranks read so far know them.
struct TraceCheck<'t> {
    trace: &'t Trace,
    communicators: BTreeMap<CommId, Communicator>,
}

impl TraceCheck<'_> {
    fn new(trace: &Trace) -> TraceCheck<'_> {
        let world = vec![RankRange { first: 0, stride: 1, count: trace.ranks() }];
        let world = Communicator { members: world, ..Communicator::default() };
        TraceCheck { trace, communicators: [(CommId::WORLD, world)].into() }
    }

    /// Checks the operations of a rank by themselves, then its collectives against those of other ranks.
    fn rank(&mut self, rank: RankId) -> Result<(), TraceError> {
        let trace = self.trace;
        let mut checked = RankCheck::new(trace, rank, &mut self.communicators);
        let mut order = RankOrder::of(&**trace, rank)?;
        while let Some(PlacedOp { stream, position, op }) = order.next()? {
            checked.op(&op).map_err(|(column, reason)| {
                let reason = match stream {
                    StreamId::FIRST => reason,
                    StreamId(stream) => format!("{reason} (stream {stream})"),
                };
                let file = trace.file().to_owned();
                TraceError::Operation { file, rank: rank.0, position, column, reason }
            })?;
        }
        let sequences = checked.sequences;
        for (comm, sequence) in sequences {
            self.agree(comm, rank, sequence)?;
        }
        Ok(())
    }

    /// Compares the collectives of `rank` on a communicator with those of the first member that was read.
    fn agree(&mut self, comm: CommId, rank: RankId, sequence: Sequence) -> Result<(), TraceError> {
        let communicator = self.communicators.entry(comm).or_default();
        match communicator.reference {
            None => communicator.reference = Some((rank, sequence)),
            Some((reference, expected)) if expected != sequence => {
                return self.find_difference(comm, reference, rank);
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Finds the first collective in which two members of a communicator differ. An interrupted recording may
    /// have none: some members have come further than others.
    fn find_difference(&self, comm: CommId, reference: RankId, rank: RankId) -> Result<(), TraceError> {
        let trace = self.trace;
        let interrupted = trace.metadata().header.interrupted;
        let calls = |rank| -> Result<_, TraceError> {
            let mut order = RankOrder::of(&**trace, rank)?;
            Ok(std::iter::from_fn(move || {
                loop {
                    match order.next().transpose()? {
                        Ok(PlacedOp { position, op, .. }) => match Call::of(&op) {
                            Some((on, call)) if on == comm => return Some(Ok((position, call))),
                            _ => {}
                        },
                        Err(error) => return Some(Err(error)),
                    }
                }
            }))
        };
        let (mut expected, mut found) = (calls(reference)?, calls(rank)?);
        loop {
            let (expected, found) = (expected.next().transpose()?, found.next().transpose()?);
            match (expected, found) {
                (Some((_, a)), Some((_, b))) if a == b => {}
                (None, None) => return Ok(()),
                (None, _) | (_, None) if interrupted => return Ok(()),
                (expected, found) => {
                    let describe = |rank: RankId, call: Option<(u64, Call)>| match call {
                        Some((position, call)) => format!("rank {rank}, operation {position}: {call}"),
                        None => format!("rank {rank}: no further collective"),
                    };
                    return Err(TraceError::Collectives {
                        file: trace.file().to_owned(),
                        comm: comm.0,
                        first: describe(reference, expected),
                        second: describe(rank, found),
                    });
                }
            }
        }
    }

    /// Checks that all members of each communicator create it.
    fn creations(&self) -> Result<(), TraceError> {
        for (comm, communicator) in &self.communicators {
            let members: u64 = communicator.members.iter().map(|range| u64::from(range.count)).sum();
            if communicator.known_to != members {
                let reason = format!(
                    "communicator {} has {members} members, {} of them create it; record the trace again",
                    comm.0, communicator.known_to
                );
                return Err(TraceError::Header { file: self.trace.file().to_owned(), reason });
            }
        }
        Ok(())
    }
}

/// A communicator as the first of its members to be read knows it.
#[derive(Default)]
struct Communicator {
    members: Vec<RankRange>,
    /// Number of ranks that create it.
    known_to: u64,
    /// The first member that was read, and its collectives.
    reference: Option<(RankId, Sequence)>,
}

/// The collectives of one rank on one communicator: their number and a hash over all of them.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Sequence {
    count: u64,
    hash: u64,
}

impl Sequence {
    fn add(&mut self, call: &Call) {
        let root = call.root.map_or(0, |rank| u64::from(rank.0) + 1);
        for word in [call.kind as u64, u64::from(call.blocking), root, call.bytes] {
            // One round of FNV-1a with the word folded in; the first difference is looked for when the
            // hashes differ, so that nothing depends on its quality but the chance to miss one.
            self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
        }
        self.count += 1;
    }
}

/// The part of a collective call on which all members of a communicator must agree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Call {
    kind: Collective,
    blocking: bool,
    root: Option<RankId>,
    /// Zero where members may differ.
    bytes: u64,
}

impl Call {
    fn of(op: &Op) -> Option<(CommId, Call)> {
        let Op::Collective { kind, comm, root, sizes, request, .. } = op else { return None };
        let same_size = matches!(
            kind,
            Collective::Broadcast
                | Collective::Reduce
                | Collective::Allreduce
                | Collective::Scan
                | Collective::Exscan
        );
        let root = root.filter(|_| has_root(*kind));
        let bytes = if same_size { sizes.send.get() } else { 0 };
        Some((*comm, Call { kind: *kind, blocking: request.is_none(), root, bytes }))
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = weft_trace::Kind::Collective(self.kind).name();
        write!(f, "{}{kind}", if self.blocking { "" } else { "non-blocking " })?;
        if let Some(root) = self.root {
            write!(f, " with root {root}")?;
        }
        if self.bytes > 0 {
            write!(f, " of {} bytes", self.bytes)?;
        }
        Ok(())
    }
}

fn has_root(kind: Collective) -> bool {
    matches!(
        kind,
        Collective::Broadcast
            | Collective::Reduce
            | Collective::Gather
            | Collective::Gatherv
            | Collective::Scatter
            | Collective::Scatterv
    )
}

fn contains(members: &[RankRange], rank: RankId) -> bool {
    members.iter().any(|range| {
        let distance = i64::from(rank.0) - i64::from(range.first);
        match i64::from(range.stride) {
            0 => distance == 0,
            stride => distance % stride == 0 && (0..i64::from(range.count)).contains(&(distance / stride)),
        }
    })
}

type RowError = (&'static str, String);

/// The state of a rank while its operations are read.
struct RankCheck<'a> {
    rank: RankId,
    interrupted: bool,
    communicators: &'a mut BTreeMap<CommId, Communicator>,
    requests: BTreeSet<RequestId>,
    /// Events that have been signalled, and not awaited.
    events: BTreeSet<EventId>,
    windows: BTreeSet<WindowId>,
    /// The collectives on each communicator that the rank is a member of.
    sequences: BTreeMap<CommId, Sequence>,
    computation: Span,
    /// Ranges of members of all communicators.
    ranges: usize,
}

impl<'a> RankCheck<'a> {
    fn new(
        trace: &Trace,
        rank: RankId,
        communicators: &'a mut BTreeMap<CommId, Communicator>,
    ) -> RankCheck<'a> {
        if let Some(world) = communicators.get_mut(&CommId::WORLD) {
            world.known_to += 1;
        }
        let ranges = communicators.values().map(|communicator| communicator.members.len()).sum();
        RankCheck {
            rank,
            interrupted: trace.metadata().header.interrupted,
            communicators,
            requests: BTreeSet::new(),
            events: BTreeSet::new(),
            windows: BTreeSet::new(),
            sequences: [(CommId::WORLD, Sequence::default())].into(),
            computation: Span::ZERO,
            ranges,
        }
    }

    fn op(&mut self, op: &Op) -> Result<(), RowError> {
        match op {
            Op::Compute { span } => {
                let sum = self.computation.as_ps().saturating_add(span.as_ps());
                self.computation = Span::from_ps(sum);
                if self.computation > MAX_COMPUTATION {
                    let reason =
                        "the rank computes for more than 106 days in all; record it again".to_owned();
                    return Err(("span_ps", reason));
                }
            }
            Op::Isend { comm, request, .. } | Op::Irecv { comm, request, .. } => {
                self.member(*comm)?;
                self.start(*request)?;
            }
            Op::Probe { comm, .. } => self.member(*comm)?,
            Op::Wait { request } => self.complete(*request, "request")?,
            Op::Waitall { requests } => {
                for request in requests {
                    self.complete(*request, "requests")?;
                }
            }
            Op::Waitany { requests, completed } => {
                if let Some(request) = requests.iter().find(|request| !self.requests.contains(request)) {
                    return Err(unknown(*request, "requests"));
                }
                self.complete(requests[*completed as usize], "requests")?;
            }
            Op::Collective { comm, request, .. } => {
                self.collective(op)?;
                self.member(*comm)?;
                request.map_or(Ok(()), |request| self.start(request))?;
            }
            Op::Communicator { comm, members } => self.create(*comm, members)?,
            Op::Window { window, comm, .. } => {
                self.member(*comm)?;
                self.windows.insert(*window);
            }
            Op::OneSided { window, request, .. } => {
                self.exists(*window)?;
                request.map_or(Ok(()), |request| self.start(request))?;
            }
            Op::Sync { kind, window, .. } => {
                self.exists(*window)?;
                if *kind == WindowSync::Free {
                    self.windows.remove(window);
                }
            }
            Op::Signal { event, .. } => {
                if !self.events.insert(*event) {
                    let reason = format!("event {} is signalled again before it has been awaited", event.0);
                    return Err(("request", reason + "; give each signal an event of its own"));
                }
            }
            Op::Await { events } => {
                if let Some(event) = events.iter().find(|event| !self.events.remove(event)) {
                    let reason = format!("event {} is awaited, and nothing signals it before", event.0);
                    return Err(("requests", reason + ": add the signal, or break the circle of waits"));
                }
            }
            Op::Work { .. } | Op::Marker { .. } => {}
        }
        Ok(())
    }

    fn start(&mut self, request: RequestId) -> Result<(), RowError> {
        if self.requests.insert(request) {
            return Ok(());
        }
        let reason = format!("request {} is started again before it has completed", request.0);
        Err(("request", reason + "; add the wait that is missing, or record the trace again"))
    }

    fn complete(&mut self, request: RequestId, column: &'static str) -> Result<(), RowError> {
        if self.requests.remove(&request) { Ok(()) } else { Err(unknown(request, column)) }
    }

    fn member(&self, comm: CommId) -> Result<(), RowError> {
        if self.sequences.contains_key(&comm) {
            return Ok(());
        }
        let reason = format!("communicator {} is not one of rank {}", comm.0, self.rank);
        Err(("comm", reason + "; a `communicator` operation must come first"))
    }

    fn exists(&self, window: WindowId) -> Result<(), RowError> {
        if self.windows.contains(&window) {
            return Ok(());
        }
        Err(("window", format!("window {} does not exist; a `window` operation must come first", window.0)))
    }

    fn create(&mut self, comm: CommId, members: &[RankRange]) -> Result<(), RowError> {
        let wrong = |reason: &str| Err(("members", format!("communicator {}: {reason}", comm.0)));
        if self.sequences.insert(comm, Sequence::default()).is_some() {
            return wrong("created for the second time; each needs a number of its own");
        }
        if !contains(members, self.rank) {
            return wrong("the rank that creates it is not a member; only members have this operation");
        }
        match self.communicators.entry(comm) {
            Entry::Vacant(_) if self.ranges + members.len() > MAX_MEMBER_RANGES => {
                wrong("all communicators together have too many members; record fewer ranks")
            }
            Entry::Vacant(entry) => {
                self.ranges += members.len();
                entry.insert(Communicator { members: members.to_vec(), known_to: 1, reference: None });
                Ok(())
            }
            Entry::Occupied(mut entry) if entry.get().members.as_slice() == members => {
                entry.get_mut().known_to += 1;
                Ok(())
            }
            Entry::Occupied(_) => wrong("its members differ from those that another rank gives"),
        }
    }

    fn collective(&mut self, op: &Op) -> Result<(), RowError> {
        let (Some((comm, call)), Op::Collective { sizes, root, .. }) = (Call::of(op), op) else {
            return Ok(());
        };
        self.member(comm)?;
        let members = &self.communicators[&comm].members;
        let name = weft_trace::Kind::Collective(call.kind).name();
        match root {
            None if has_root(call.kind) => return Err(("peer", format!("a {name} needs a root"))),
            // An intact sequence repeats the root of the other members: it is looked up for the first.
            Some(root) if has_root(call.kind) && self.is_first(comm) && !contains(members, *root) => {
                return Err(("peer", format!("root {root} is not a member of communicator {}", comm.0)));
            }
            _ => {}
        }
        let at_root = *root == Some(self.rank);
        let (sends, receives) = match call.kind {
            Collective::Alltoallv => (true, true),
            Collective::Allgatherv | Collective::ReduceScatter => (false, true),
            Collective::Gatherv => (false, at_root),
            Collective::Scatterv => (at_root, false),
            _ => (false, false),
        };
        let count: u64 = members.iter().map(|range| u64::from(range.count)).sum();
        for (needed, counts, column) in
            [(sends, &sizes.send_counts, "send_counts"), (receives, &sizes.receive_counts, "receive_counts")]
        {
            if needed && counts.len() as u64 != count {
                let reason = format!("{} counts of a {name} among {count} members", counts.len());
                return Err((column, reason + "; one for each member is needed"));
            }
        }
        self.sequences.entry(comm).or_default().add(&call);
        Ok(())
    }

    fn is_first(&self, comm: CommId) -> bool {
        self.interrupted || self.communicators[&comm].reference.is_none()
    }
}

fn unknown(request: RequestId, column: &'static str) -> RowError {
    let reason = format!("request {} is waited for, but was not started or has completed", request.0);
    (column, reason + "; remove the wait, or record the trace again")
}
