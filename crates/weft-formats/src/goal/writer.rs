//! Writes the operations of ranks as graphs, in text or in binary.
//!
//! ```text
//!   isend r1       l1: send …
//!   irecv r2       l2: recv …        l2 irequires l1
//!   waitall r1 r2
//!   compute        l3: calc …        l3 requires l1, l3 requires l2
//! ```
//! What comes after a message waits for its start, what comes after a wait for the ends that it waited for,
//! and what comes after a computation for its end. An `await` is a wait for the points of other streams at
//! which events are signalled. A wait behind another, and a signal behind a wait, get a `calc 0` between, so
//! that each is still seen.
//!
//! Times are whole nanoseconds. What is left goes on to the next computation of the stream: sums stay exact,
//! but for less than a nanosecond at the end of a stream.

use super::tags::GoalTags;
use super::{MAX_NANOSECONDS, MAX_NODES};
use crate::error::TraceError;
use crate::format::FormatWriter;
use crate::graph::{Dependency, GraphAction, GraphOperation};
use crate::header::{TraceHeader, TraceMetadata};
use crate::output::unwritable;
use crate::written::WrittenTrace;
use std::collections::BTreeMap;
use std::path::Path;
use weft_trace::op::{CommId, EventId, Op, RequestId, SendMode, SignalAt, StreamId};
use weft_units::{Bytes, RankId, Span};

/// Picoseconds of the unit of `calc`.
const NANOSECOND: u64 = 1000;

/// Cores that `cpu` can name.
const CORES: u32 = 256;

/// A file of GOAL, of one of its two forms.
pub(super) trait GoalFile {
    /// The block of the next rank begins.
    fn begin_rank(&mut self, rank: RankId) -> std::io::Result<()>;

    /// The next operation of the rank: they are numbered from 0.
    fn operation(&mut self, operation: &GraphOperation) -> std::io::Result<()>;

    /// An operation of the rank waits for an earlier one.
    fn dependency(&mut self, dependency: Dependency) -> std::io::Result<()>;

    /// The block of the rank ends.
    fn end_rank(&mut self) -> std::io::Result<()>;

    /// Gives the file its name.
    fn finish(self: Box<Self>, path: &Path) -> Result<(), TraceError>;
}

/// A point of a rank's graph that others wait for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct GraphPoint {
    node: u32,
    at: SignalAt,
    /// Whether it is the end of a message. Only one operation waits for such: a reader waits once for each.
    is_arrival: bool,
}

/// A stream while its operations come.
#[derive(Clone, Debug, Default)]
struct WrittenStream {
    core: u32,
    /// For what the next operation waits.
    after: Vec<GraphPoint>,
    /// For what the last one waited, or where it starts.
    start: Vec<GraphPoint>,
    /// Computation that is not written: less than a nanosecond.
    left: Span,
}

/// Writes one trace.
pub(super) struct GoalWriter {
    written: WrittenTrace,
    file: Box<dyn GoalFile>,
    tags: GoalTags,
    /// The streams of the rank.
    streams: BTreeMap<StreamId, WrittenStream>,
    current: StreamId,
    /// Operations of the rank.
    nodes: u32,
    /// The messages of open requests.
    open: BTreeMap<RequestId, u32>,
    events: BTreeMap<EventId, GraphPoint>,
}

impl GoalWriter {
    /// Begins a trace that becomes `path`.
    pub(super) fn new(path: &Path, header: TraceHeader, file: Box<dyn GoalFile>) -> GoalWriter {
        GoalWriter {
            written: WrittenTrace::new(path, header),
            file,
            tags: GoalTags::default(),
            streams: BTreeMap::new(),
            current: StreamId::FIRST,
            nodes: 0,
            open: BTreeMap::new(),
            events: BTreeMap::new(),
        }
    }

    fn leave_out(&mut self, what: impl Into<String>) {
        self.written.leave_out(what, 1);
    }

    fn stream(&mut self) -> &mut WrittenStream {
        self.streams.entry(self.current).or_default()
    }

    /// Writes an operation of the stream, behind these points.
    fn node(&mut self, action: GraphAction, after: &[GraphPoint]) -> Result<u32, TraceError> {
        if self.nodes as usize >= MAX_NODES {
            return Err(self.written.misuse(format!("more than {MAX_NODES} operations of one rank")));
        }
        let (node, core) = (self.nodes, self.stream().core);
        self.nodes += 1;
        if core >= CORES {
            self.leave_out(format!("operations on core {CORES} of a rank and above: on one below"));
        }
        let failed = |error| unwritable(&self.written.path, error);
        self.file.operation(&GraphOperation { action, core: core % CORES }).map_err(failed)?;
        for GraphPoint { node: on, at, .. } in after {
            self.file.dependency(Dependency { node, on: *on, at: *at }).map_err(failed)?;
        }
        Ok(node)
    }

    /// Writes the next operation of the stream.
    fn next(&mut self, action: GraphAction) -> Result<u32, TraceError> {
        let after = std::mem::take(&mut self.stream().after);
        let node = self.node(action, &after)?;
        let start = vec![GraphPoint { node, at: SignalAt::Start, is_arrival: false }];
        let ends = matches!(action, GraphAction::Compute { .. });
        let end = vec![GraphPoint { node, at: SignalAt::End, is_arrival: false }];
        let stream = self.stream();
        stream.after = if ends { end } else { start.clone() };
        stream.start = start;
        Ok(node)
    }

    /// An operation without time behind these points.
    fn join(&mut self, points: &[GraphPoint]) -> Result<GraphPoint, TraceError> {
        let node = self.node(GraphAction::Compute { span: Span::ZERO }, points)?;
        Ok(GraphPoint { node, at: SignalAt::End, is_arrival: false })
    }

    /// The stream goes on when these points have been reached, too.
    fn wait_for(&mut self, points: &[GraphPoint]) -> Result<(), TraceError> {
        let waits_again = points.iter().any(|point| point.is_arrival)
            && self.stream().after.iter().any(|point| point.is_arrival);
        if waits_again {
            let after = std::mem::take(&mut self.stream().after);
            self.stream().after = vec![self.join(&after)?];
        }
        let stream = self.stream();
        stream.start = stream.after.clone();
        stream.after.extend(points);
        // Who waits for the end of an operation waits for its start.
        let ended: Vec<u32> =
            stream.after.iter().filter(|it| it.at == SignalAt::End).map(|it| it.node).collect();
        stream.after.retain(|point| point.at == SignalAt::End || !ended.contains(&point.node));
        stream.after.sort_unstable();
        stream.after.dedup();
        Ok(())
    }

    /// The stream goes on when these requests are complete. Those of what was left out are.
    fn wait(&mut self, requests: &[RequestId]) -> Result<(), TraceError> {
        let ended = requests.iter().filter_map(|request| self.open.remove(request));
        let points: Vec<GraphPoint> =
            ended.map(|node| GraphPoint { node, at: SignalAt::End, is_arrival: true }).collect();
        if points.is_empty() { Ok(()) } else { self.wait_for(&points) }
    }

    fn signal(&mut self, event: EventId, at: SignalAt) -> Result<(), TraceError> {
        let stream = self.stream();
        let points = if at == SignalAt::Start { stream.start.clone() } else { stream.after.clone() };
        let point = match points[..] {
            [point] if !point.is_arrival => point,
            _ => {
                let join = self.join(&points)?;
                let stream = self.stream();
                if at == SignalAt::End {
                    stream.after = vec![join];
                } else {
                    stream.after.retain(|point| !points.contains(point));
                    stream.after.push(join);
                    stream.start = vec![join];
                }
                join
            }
        };
        self.events.insert(event, point);
        Ok(())
    }

    fn awaits(&mut self, events: &[EventId]) -> Result<(), TraceError> {
        let mut points = Vec::with_capacity(events.len());
        for event in events {
            let point = self.events.remove(event);
            let rank = self.written.rank().map_or(0, RankId::index);
            points.push(point.ok_or_else(|| {
                let reason = format!("rank {rank} awaits event {}, which nobody has signalled", event.0);
                self.written.misuse(reason + "; weft trace stats says where")
            })?);
        }
        self.wait_for(&points)
    }

    fn compute(&mut self, span: Span) -> Result<(), TraceError> {
        let stream = self.stream();
        let all = u128::from(stream.left.as_ps()) + u128::from(span.as_ps());
        // Less than a nanosecond, so it fits.
        stream.left = Span::from_ps((all % u128::from(NANOSECOND)) as u64);
        let mut nanoseconds = all / u128::from(NANOSECOND);
        if nanoseconds == 0 {
            stream.start = stream.after.clone();
        }
        while nanoseconds > 0 {
            let part = nanoseconds.min(MAX_NANOSECONDS.into());
            nanoseconds -= part;
            self.next(GraphAction::Compute { span: Span::from_ns(part as u64) })?;
        }
        Ok(())
    }

    /// Bytes of a message. LogGOPSim counts one less than there are, with numbers that have no sign.
    fn bytes(&mut self, bytes: Bytes) -> Bytes {
        if bytes == Bytes::ZERO {
            self.leave_out("messages and receives of no bytes: of one byte, as LogGOPSim needs it");
        }
        bytes.max(Bytes::new(1))
    }

    fn send(&mut self, op: &Op) -> Result<(), TraceError> {
        let Op::Isend { to, tag, comm, bytes, mode, request, .. } = *op else { return Ok(()) };
        if mode != SendMode::Standard {
            self.leave_out(format!("{}: written as send", op.kind().name()));
        }
        let (bytes, tag) = (self.bytes(bytes), self.tags.of(comm, tag).cast_signed());
        let node = self.next(GraphAction::Send { to, bytes, tag })?;
        self.open.insert(request, node);
        Ok(())
    }

    fn receive(&mut self, op: &Op) -> Result<(), TraceError> {
        let Op::Irecv { from, tag, comm, bytes, matched, request, .. } = *op else { return Ok(()) };
        if (from.is_none() || tag.is_none()) && matched.is_some() {
            self.leave_out("receives from anybody: written as from whom they received");
        }
        let from = from.or(matched.map(|(from, _)| from));
        let tag = tag.or(matched.map(|(_, tag)| tag));
        if tag.is_none() {
            self.leave_out("receives of any tag: they may take a message of another communicator");
        }
        let tag = tag.map(|tag| self.tags.of(comm, tag).cast_signed());
        let bytes = self.bytes(bytes);
        let node = self.next(GraphAction::Receive { from, bytes, tag })?;
        self.open.insert(request, node);
        Ok(())
    }

    fn end_rank(&mut self) -> Result<(), TraceError> {
        let open = self.open.len() as u64;
        if open > 0 {
            let what = "requests that are not waited for: weft waits for them at the end of their stream";
            self.written.leave_out(what, open);
        }
        self.open.clear();
        self.events.clear();
        self.streams.clear();
        (self.current, self.nodes) = (StreamId::FIRST, 0);
        if self.written.rank().is_none() {
            return Ok(());
        }
        self.file.end_rank().map_err(|error| unwritable(&self.written.path, error))
    }
}

impl FormatWriter for GoalWriter {
    fn header_mut(&mut self) -> &mut TraceHeader {
        &mut self.written.header
    }

    fn carries(&self, op: &Op) -> bool {
        !matches!(op, Op::Collective { .. } | Op::Window { .. } | Op::OneSided { .. } | Op::Sync { .. })
    }

    fn has_streams(&self) -> bool {
        true
    }

    fn mixes_streams(&self) -> bool {
        true
    }

    fn switch_to(&mut self, stream: StreamId, core: u32) -> Result<(), TraceError> {
        self.current = stream;
        self.stream().core = core;
        Ok(())
    }

    fn end_stream(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
    }

    fn begin_rank(&mut self, rank: RankId) -> Result<(), TraceError> {
        self.written.check_next(rank)?;
        self.end_rank()?;
        self.written.begin_next();
        self.file.begin_rank(rank).map_err(|error| unwritable(&self.written.path, error))
    }

    fn push(&mut self, op: &Op) -> Result<(), TraceError> {
        self.written.count(op)?;
        match op {
            Op::Compute { span } => self.compute(*span),
            Op::Isend { .. } => self.send(op),
            Op::Irecv { .. } => self.receive(op),
            Op::Wait { request } => self.wait(&[*request]),
            Op::Waitall { requests } => self.wait(requests),
            Op::Waitany { requests, completed } => {
                self.leave_out("waitany: written as a wait for the one that completed");
                self.wait(requests.get(*completed as usize).map_or(&[], std::slice::from_ref))
            }
            Op::Signal { event, at } => self.signal(*event, *at),
            Op::Await { events } => self.awaits(events),
            // Tags tell its messages from others.
            Op::Communicator { comm, .. } if *comm != CommId::WORLD => Ok(()),
            Op::Work { .. } => Err(self.written.no_work()),
            Op::Probe { .. }
            | Op::Collective { .. }
            | Op::Communicator { .. }
            | Op::Window { .. }
            | Op::OneSided { .. }
            | Op::Sync { .. }
            | Op::Marker { .. } => {
                self.leave_out(op.kind().name());
                Ok(())
            }
        }
    }

    fn left_out(&self) -> BTreeMap<String, u64> {
        self.written.left_out().clone()
    }

    fn finish(mut self: Box<Self>) -> Result<TraceMetadata, TraceError> {
        self.written.check_whole()?;
        self.end_rank()?;
        self.file.finish(&self.written.path)?;
        Ok(self.written.into_metadata())
    }
}
