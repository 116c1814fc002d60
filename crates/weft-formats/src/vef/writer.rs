//! Writes a trace as VEF: each send and each part in a collective becomes a record.
//!
//! Ranks come one after the other: their records and waits are kept in a temporary file. When all have come,
//! the records are put into one order, each after one thing (merge.rs).
//!
//! Which receive gets a message is found by counting: of one communicator, source, destination and tag, the
//! first receive that is posted gets the first message, and so on (MPI 4.1 §3.5).

use super::merge::{
    self, AwaitedByRank, KeptCollectives, KeptRecord, KeptRecords, MessageKey, NumberedMessage,
};
use crate::error::TraceError;
use crate::format::FormatWriter;
use crate::header::{TraceHeader, TraceMetadata};
use crate::written::WrittenTrace;
use std::collections::BTreeMap;
use std::path::Path;
use weft_trace::op::{Collective, CollectiveSizes, Op, RankRange, RequestId, SendMode};
use weft_units::{Bytes, RankId, Span};

/// Writes one trace.
pub(super) struct RecordWriter {
    written: WrittenTrace,
    kept: KeptRecords,
    collectives: KeptCollectives,
    rank: RankProgress,
}

/// A request of the rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OpenRequest {
    Receive(NumberedMessage),
    Part {
        communicator: u32,
        number: u32,
    },
    /// One that nothing in the new trace waits for.
    Other,
}

/// The rank that is written.
#[derive(Default)]
struct RankProgress {
    /// Computation since the last record or wait.
    since: Span,
    /// Whether it has computed before the waits since its last record.
    has_computed: bool,
    /// Picoseconds that whole nanoseconds have left over.
    rest: u64,
    requests: BTreeMap<RequestId, OpenRequest>,
    sent: BTreeMap<MessageKey, u32>,
    posted: BTreeMap<MessageKey, u32>,
}

impl RankProgress {
    /// Whether it computes behind its last record.
    fn computes_last(&self) -> bool {
        self.has_computed || self.since > Span::ZERO
    }
}

/// A receive that must be waited for, and nobody knows whose it is.
const UNKNOWN: &str = "receives from anybody, it is not known from whom: nothing waits for them";

impl RecordWriter {
    /// Begins a trace at `path`.
    pub(super) fn create(path: &Path, header: TraceHeader) -> Result<RecordWriter, TraceError> {
        let world = RankRange { first: 0, stride: 1, count: header.ranks };
        Ok(RecordWriter {
            written: WrittenTrace::new(path, header),
            kept: KeptRecords::new()?,
            collectives: KeptCollectives::of_world(world),
            rank: RankProgress::default(),
        })
    }

    fn leave_out(&mut self, what: impl Into<String>) {
        self.written.leave_out(what, 1);
    }

    /// The number of the rank.
    fn number(&self) -> u32 {
        self.written.rank().map_or(0, |rank| rank.0)
    }

    fn end_rank(&mut self) {
        let rank = std::mem::take(&mut self.rank);
        if rank.computes_last() {
            self.leave_out("computation behind the last record of a rank");
        }
        self.collectives.end_rank();
    }

    /// The computation since the last record or wait, in whole nanoseconds. The rest is carried on.
    fn computed_ns(&mut self) -> u64 {
        let rank = &mut self.rank;
        let ps = std::mem::take(&mut rank.since).as_ps().saturating_add(rank.rest);
        rank.rest = ps % 1000;
        ps / 1000
    }

    /// Keeps a record that comes now.
    fn keep(&mut self, record: &KeptRecord) -> Result<(), TraceError> {
        self.rank.has_computed = false;
        self.kept.push(record)
    }

    fn wait(&mut self, requests: &[RequestId]) -> Result<(), TraceError> {
        for request in requests {
            let on = match self.rank.requests.remove(request) {
                None | Some(OpenRequest::Other) => continue,
                Some(OpenRequest::Receive(message)) => AwaitedByRank::Message(self.kept.wait_for(message)),
                Some(OpenRequest::Part { communicator, number }) => {
                    AwaitedByRank::Part { communicator, number }
                }
            };
            let ns = self.computed_ns();
            self.rank.has_computed |= ns > 0;
            self.kept.push(&KeptRecord::Wait { on, ns })?;
        }
        Ok(())
    }

    fn write(&mut self, op: &Op) -> Result<(), TraceError> {
        match op {
            Op::Compute { span } => {
                self.rank.since = Span::from_ps(self.rank.since.as_ps().saturating_add(span.as_ps()));
            }
            Op::Isend { to, tag, comm, bytes, mode, request, .. } => {
                if *mode != SendMode::Standard {
                    self.leave_out(format!("{}: written as any send", op.kind().name()));
                }
                if *tag != 0 {
                    self.leave_out("tags of messages");
                }
                let key = MessageKey { comm: *comm, from: self.number(), to: to.0, tag: *tag };
                let count = self.rank.sent.entry(key).or_default();
                let message = NumberedMessage { key, number: *count };
                *count += 1;
                let ns = self.computed_ns();
                self.keep(&KeptRecord::Send { message, bytes: *bytes, ns })?;
                self.rank.requests.insert(*request, OpenRequest::Other);
            }
            Op::Irecv { from, tag, comm, matched, request, .. } => {
                let from = from.or(matched.map(|(from, _)| from));
                let tag = tag.or(matched.map(|(_, tag)| tag));
                let open = match (from, tag) {
                    (Some(from), Some(tag)) => {
                        let key = MessageKey { comm: *comm, from: from.0, to: self.number(), tag };
                        let count = self.rank.posted.entry(key).or_default();
                        let message = NumberedMessage { key, number: *count };
                        *count += 1;
                        OpenRequest::Receive(message)
                    }
                    _ => {
                        self.leave_out(UNKNOWN);
                        OpenRequest::Other
                    }
                };
                self.rank.requests.insert(*request, open);
            }
            Op::Wait { request } => self.wait(&[*request])?,
            Op::Waitall { requests } => self.wait(requests)?,
            Op::Waitany { requests, completed } => {
                let completed = requests.get(*completed as usize).copied();
                self.wait(completed.as_slice())?;
            }
            Op::Collective { request, .. } => {
                let part = self.collective(op)?;
                if let Some(request) = request {
                    self.rank.requests.insert(*request, part);
                }
            }
            Op::Communicator { comm, members } => self.collectives.create(*comm, members),
            Op::OneSided { request, .. } => {
                if let Some(request) = request {
                    self.rank.requests.insert(*request, OpenRequest::Other);
                }
                self.leave_out(op.kind().name());
            }
            Op::Work { .. } => return Err(self.written.no_work()),
            Op::Probe { .. }
            | Op::Window { .. }
            | Op::Sync { .. }
            | Op::Signal { .. }
            | Op::Await { .. }
            | Op::Marker { .. } => self.leave_out(op.kind().name()),
        }
        Ok(())
    }

    /// Writes the rank's part in a collective, if the format has it.
    fn collective(&mut self, op: &Op) -> Result<OpenRequest, TraceError> {
        let Op::Collective { kind, comm, root, sizes, request, .. } = op else {
            return Ok(OpenRequest::Other);
        };
        let is_root = *root == Some(RankId(self.number()));
        let members = self.collectives.members(*comm);
        let Some((operation, sent, received)) = vef_sizes(*kind, sizes, is_root, members) else {
            self.leave_out(op.kind().name());
            return Ok(OpenRequest::Other);
        };
        if *kind == Collective::Alltoallv && sizes.send_counts.windows(2).any(|pair| pair[0] != pair[1]) {
            self.leave_out("alltoallv: written with the same for each member");
        }
        let Some((communicator, number)) = self.collectives.part(*comm) else {
            return Err(self.written.misuse(format!(
                "communicator {} does not exist for rank {}",
                comm.0,
                self.number()
            )));
        };
        let ns = self.computed_ns();
        let is_blocking = request.is_none();
        self.keep(&KeptRecord::Part { communicator, number, operation, sent, received, is_blocking, ns })?;
        Ok(OpenRequest::Part { communicator, number })
    }
}

/// The number of a collective in the format with what a member sends and receives there; `None`: there is no
/// such collective.
fn vef_sizes(
    kind: Collective,
    sizes: &CollectiveSizes,
    is_root: bool,
    members: u64,
) -> Option<(u8, Bytes, Bytes)> {
    let CollectiveSizes { send, receive, .. } = *sizes;
    let none = Bytes::ZERO;
    let all = |block: Bytes| Bytes::new(block.get().saturating_mul(members).min(super::MAX_BYTES));
    Some(match kind {
        Collective::Broadcast if is_root => (0, send, none),
        Collective::Broadcast => (0, none, receive),
        Collective::Reduce if is_root => (1, none, send),
        Collective::Reduce => (1, send, none),
        Collective::Allreduce => (2, send, send),
        Collective::Gather if is_root => (3, send, all(send)),
        Collective::Gatherv if is_root => (3, send, receive),
        Collective::Gather | Collective::Gatherv => (3, send, none),
        Collective::Scatter if is_root => (4, all(receive), receive),
        Collective::Scatterv if is_root => (4, send, receive),
        Collective::Scatter | Collective::Scatterv => (4, none, receive),
        Collective::Allgather => (5, send, all(send)),
        Collective::Allgatherv => (5, send, receive),
        Collective::Barrier => (6, none, none),
        Collective::Alltoall => (7, send, none),
        Collective::Alltoallv => (7, send, Bytes::new(1)),
        Collective::ReduceScatter
        | Collective::ReduceScatterBlock
        | Collective::Scan
        | Collective::Exscan
        | Collective::NeighborAllgather
        | Collective::NeighborAllgatherv
        | Collective::NeighborAlltoall
        | Collective::NeighborAlltoallv => return None,
    })
}

impl FormatWriter for RecordWriter {
    fn header_mut(&mut self) -> &mut TraceHeader {
        &mut self.written.header
    }

    fn begin_rank(&mut self, rank: RankId) -> Result<(), TraceError> {
        self.written.check_next(rank)?;
        if self.written.rank().is_some() {
            self.end_rank();
        }
        self.written.begin_next();
        self.kept.begin_rank();
        self.collectives.begin_rank();
        Ok(())
    }

    fn carries(&self, op: &Op) -> bool {
        match op {
            Op::Collective { kind, .. } => vef_sizes(*kind, &CollectiveSizes::default(), false, 1).is_some(),
            op => !matches!(op, Op::Window { .. } | Op::OneSided { .. } | Op::Sync { .. }),
        }
    }

    fn push(&mut self, op: &Op) -> Result<(), TraceError> {
        self.written.count(op)?;
        self.write(op)
    }

    fn left_out(&self) -> BTreeMap<String, u64> {
        let mut left_out = self.written.left_out().clone();
        if self.written.rank().is_some() && self.rank.computes_last() {
            *left_out.entry("computation behind the last record of a rank".to_owned()).or_default() += 1;
        }
        let parts = self.collectives.incomplete();
        if parts > 0 {
            left_out.insert("collectives in which not all members take part".to_owned(), parts);
        }
        left_out
    }

    fn finish(mut self: Box<Self>) -> Result<TraceMetadata, TraceError> {
        self.written.check_whole()?;
        if self.written.rank().is_some() {
            self.end_rank();
        }
        let RecordWriter { mut written, kept, collectives, .. } = *self;
        let merged = merge::write(&written.path, kept, collectives)?;
        for (note, count) in [
            ("waits for what never comes: written as none", merged.unmatched),
            (
                "waits: what follows comes after the computation, or after what was waited for, whichever is \
                 later on a network of 1 us and 1 ns per byte",
                merged.waits,
            ),
        ] {
            if count > 0 {
                written.header.notes.insert(note.to_owned(), count);
            }
        }
        Ok(written.into_metadata())
    }
}
