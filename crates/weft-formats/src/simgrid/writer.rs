//! Writes the actions of all ranks into one file.
//!
//! Counts are bytes, but those of reductions, whose elements keep their size. A send or a receive that the
//! next operation waits for is written as the blocking one.

use super::datatype::{BYTE, elements};
use crate::error::TraceError;
use crate::flop_rate::FlopRate;
use crate::format::FormatWriter;
use crate::header::{TraceHeader, TraceMetadata};
use crate::output::{self, unwritable};
use crate::written::WrittenTrace;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use tempfile::NamedTempFile;
use weft_trace::Kind;
use weft_trace::op::{Collective, CollectiveSizes, CommId, Op, RequestId, SendMode};
use weft_units::RankId;

/// Writes one trace.
pub(super) struct ActionWriter {
    written: WrittenTrace,
    file: BufWriter<NamedTempFile>,
    speed: FlopRate,
    /// The send or the receive that came last, if a wait may make it blocking.
    held: Option<HeldMessage>,
    /// Open requests, with the source, the destination and the tag that they are waited for by; `None`: what
    /// they wait for is over.
    open: BTreeMap<RequestId, Option<RequestName>>,
    names: BTreeMap<RequestName, u32>,
    line: String,
}

/// Source, destination and tag of a message.
type RequestName = [i64; 3];

struct HeldMessage {
    request: RequestId,
    action: &'static str,
    partner: i64,
    tag: i64,
    bytes: u64,
    name: RequestName,
}

impl ActionWriter {
    /// Begins a trace at `path`, for cores of this speed, or of one operation per nanosecond.
    pub(super) fn create(
        path: &Path,
        header: TraceHeader,
        speed: Option<FlopRate>,
    ) -> Result<ActionWriter, TraceError> {
        let mut file = BufWriter::new(output::unfinished(path)?);
        let speed = speed.unwrap_or(FlopRate::ONE_PER_NS);
        writeln!(file, "# speed: {speed}\n# written by weft {}", env!("CARGO_PKG_VERSION"))
            .map_err(|error| unwritable(path, error))?;
        Ok(ActionWriter {
            written: WrittenTrace::new(path, header),
            file,
            speed,
            held: None,
            open: BTreeMap::new(),
            names: BTreeMap::new(),
            line: String::new(),
        })
    }

    fn leave_out(&mut self, what: impl Into<String>) {
        self.written.leave_out(what, 1);
    }

    /// Writes an action of the rank that was begun last.
    fn action(&mut self, action: std::fmt::Arguments<'_>) -> Result<(), TraceError> {
        let rank = self.written.rank().unwrap_or(RankId(0));
        self.line.clear();
        let _ = writeln!(self.line, "{rank} {action}");
        self.file.write_all(self.line.as_bytes()).map_err(|error| unwritable(&self.written.path, error))
    }

    fn rank(&self) -> i64 {
        self.written.rank().map_or(-1, |rank| rank.0.into())
    }

    /// Writes the send or the receive that was held back, as one that is waited for later.
    fn flush_held(&mut self) -> Result<(), TraceError> {
        let Some(HeldMessage { request, action, partner, tag, bytes, name }) = self.held.take() else {
            return Ok(());
        };
        let others = self.names.entry(name).or_default();
        *others += 1;
        if *others > 1 {
            self.leave_out(
                "requests of one source, destination and tag at once: SimGrid waits for one of them",
            );
        }
        self.open.insert(request, Some(name));
        self.action(format_args!("i{action} {partner} {tag} {bytes}"))
    }

    fn end_rank(&mut self) -> Result<(), TraceError> {
        self.flush_held()?;
        if !self.open.is_empty() {
            self.open.clear();
            self.names.clear();
            self.leave_out("ranks with requests that are not waited for: SimGrid waits for them at the end");
        }
        if self.written.rank().is_none() { Ok(()) } else { self.action(format_args!("finalize")) }
    }

    fn wait(&mut self, request: RequestId) -> Result<(), TraceError> {
        let Some(Some(name)) = self.open.remove(&request) else { return Ok(()) };
        if let Some(count) = self.names.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                self.names.remove(&name);
            }
        }
        let [source, destination, tag] = name;
        self.action(format_args!("wait {source} {destination} {tag}"))
    }

    fn wait_all(&mut self, requests: &[RequestId]) -> Result<(), TraceError> {
        let are_all = self.open.len() == requests.len()
            && requests.iter().all(|request| self.open.contains_key(request));
        if are_all && requests.len() > 1 {
            self.open.clear();
            self.names.clear();
            return self.action(format_args!("waitall"));
        }
        requests.iter().try_for_each(|&request| self.wait(request))
    }

    /// A message of a communicator that is not the world.
    fn in_world(&mut self, comm: CommId) {
        if comm != CommId::WORLD {
            self.leave_out("messages of communicators other than the world: written as of the world");
        }
    }

    fn write(&mut self, op: &Op) -> Result<(), TraceError> {
        match op {
            Op::Compute { span } => self.action(format_args!("compute {}", self.speed.flops(*span))),
            Op::Isend { to, tag, comm, bytes, mode, request, .. } => {
                self.in_world(*comm);
                if *mode != SendMode::Standard {
                    self.leave_out(format!("{}: written as isend", op.kind().name()));
                }
                let (partner, tag) = (i64::from(to.0), i64::from(*tag));
                let name = [self.rank(), partner, tag];
                let (request, bytes) = (*request, bytes.get());
                self.held = Some(HeldMessage { request, action: "send", partner, tag, bytes, name });
                Ok(())
            }
            Op::Irecv { from, tag, comm, bytes, matched, request, .. } => {
                self.in_world(*comm);
                if from.is_none() || tag.is_none() {
                    self.leave_out(match matched {
                        Some(_) => "receives from anybody: written as from whom they received",
                        None => "receives from anybody, it is not known from whom: written as such",
                    });
                }
                let from = from.or(matched.map(|(from, _)| from)).map_or(-1, |from| i64::from(from.0));
                let tag = tag.or(matched.map(|(_, tag)| tag)).map_or(-1, i64::from);
                let name = [from, self.rank(), tag];
                let (request, bytes) = (*request, bytes.get());
                self.held = Some(HeldMessage { request, action: "recv", partner: from, tag, bytes, name });
                Ok(())
            }
            Op::Wait { request } => self.wait(*request),
            Op::Waitall { requests } => self.wait_all(requests),
            Op::Waitany { requests, completed } => {
                self.leave_out("waitany: written as a wait for the one that completed");
                requests.get(*completed as usize).map_or(Ok(()), |&request| self.wait(request))
            }
            Op::Collective { kind, comm, root, sizes, request, .. } => {
                if let Some(request) = request {
                    self.leave_out("non-blocking collectives: written as blocking");
                    self.open.insert(*request, None);
                }
                if *comm != CommId::WORLD {
                    self.leave_out(format!("{} of a communicator other than the world", op.kind().name()));
                    return Ok(());
                }
                self.collective(*kind, root.map_or(0, |root| root.0), sizes)
            }
            Op::OneSided { request, .. } => {
                if let Some(request) = request {
                    self.open.insert(*request, None);
                }
                self.leave_out(op.kind().name());
                Ok(())
            }
            Op::Work { .. } => Err(self.written.no_work()),
            Op::Probe { .. }
            | Op::Communicator { .. }
            | Op::Window { .. }
            | Op::Sync { .. }
            | Op::Signal { .. }
            | Op::Await { .. }
            | Op::Marker { .. } => {
                self.leave_out(op.kind().name());
                Ok(())
            }
        }
    }

    fn collective(&mut self, kind: Collective, root: u32, sizes: &CollectiveSizes) -> Result<(), TraceError> {
        let (send, receive) = (sizes.send.get(), sizes.receive.get());
        let (count, datatype) = elements(send, sizes);
        match kind {
            Collective::Barrier => self.action(format_args!("barrier")),
            Collective::Broadcast => self.action(format_args!("bcast {count} {root} {datatype}")),
            Collective::Reduce => self.action(format_args!("reduce {count} 0 {root} {datatype}")),
            Collective::Allreduce => self.action(format_args!("allreduce {count} 0 {datatype}")),
            Collective::Gather => self.action(format_args!("gather {send} {receive} {root}")),
            Collective::Scatter => self.action(format_args!("scatter {send} {receive} {root}")),
            Collective::Allgather => self.action(format_args!("allgather {send} {receive}")),
            Collective::Alltoall => self.action(format_args!("alltoall {send} {receive}")),
            Collective::Gatherv => {
                let counts = self.list(&sizes.receive_counts, 1);
                self.action(format_args!("gatherv {send}{counts} {root}"))
            }
            Collective::Allgatherv => {
                let counts = self.list(&sizes.receive_counts, 1);
                self.action(format_args!("allgatherv {send}{counts}"))
            }
            Collective::Scatterv => {
                let counts = self.list(&sizes.send_counts, 1);
                self.action(format_args!("scatterv{counts} {receive} {root}"))
            }
            Collective::Alltoallv => {
                let (sends, receives) =
                    (self.list(&sizes.send_counts, 1), self.list(&sizes.receive_counts, 1));
                self.action(format_args!("alltoallv {send}{sends} {receive}{receives}"))
            }
            Collective::ReduceScatter => {
                let size = u64::from(sizes.element).max(1);
                // One datatype for all blocks: bytes, where the elements do not fit in one of them.
                let fits = |&&block: &&u64| elements(block, sizes) == (block / size, datatype);
                let all_fit = sizes.receive_counts.iter().filter(fits).count() == sizes.receive_counts.len();
                let (size, datatype) = if all_fit { (size, datatype) } else { (1, BYTE) };
                let counts = self.list(&sizes.receive_counts, size);
                self.action(format_args!("reducescatter{counts} 0 {datatype}"))
            }
            Collective::ReduceScatterBlock
            | Collective::Scan
            | Collective::Exscan
            | Collective::NeighborAllgather
            | Collective::NeighborAllgatherv
            | Collective::NeighborAlltoall
            | Collective::NeighborAlltoallv => {
                self.leave_out(Kind::Collective(kind).name());
                Ok(())
            }
        }
    }

    /// A number for each rank, with a space before each; noughts where the rank does not know them.
    fn list(&self, blocks: &[u64], size: u64) -> String {
        let mut text = String::new();
        for rank in 0..self.written.header.ranks as usize {
            let _ = write!(text, " {}", blocks.get(rank).copied().unwrap_or(0) / size);
        }
        text
    }
}

impl FormatWriter for ActionWriter {
    fn header_mut(&mut self) -> &mut TraceHeader {
        &mut self.written.header
    }

    fn carries(&self, op: &Op) -> bool {
        let Op::Collective { kind, comm, .. } = op else {
            return !matches!(op, Op::Window { .. } | Op::OneSided { .. } | Op::Sync { .. });
        };
        let lacks = matches!(
            kind,
            Collective::ReduceScatterBlock
                | Collective::Scan
                | Collective::Exscan
                | Collective::NeighborAllgather
                | Collective::NeighborAllgatherv
                | Collective::NeighborAlltoall
                | Collective::NeighborAlltoallv
        );
        *comm == CommId::WORLD && !lacks
    }

    fn begin_rank(&mut self, rank: RankId) -> Result<(), TraceError> {
        self.written.check_next(rank)?;
        self.end_rank()?;
        self.written.begin_next();
        self.action(format_args!("init"))
    }

    fn push(&mut self, op: &Op) -> Result<(), TraceError> {
        self.written.count(op)?;
        if let (Op::Wait { request }, Some(held)) = (op, &self.held)
            && held.request == *request
        {
            let Some(HeldMessage { action, partner, tag, bytes, .. }) = self.held.take() else {
                return Ok(());
            };
            return self.action(format_args!("{action} {partner} {tag} {bytes}"));
        }
        self.flush_held()?;
        self.write(op)
    }

    fn left_out(&self) -> BTreeMap<String, u64> {
        self.written.left_out().clone()
    }

    fn finish(mut self: Box<Self>) -> Result<TraceMetadata, TraceError> {
        self.written.check_whole()?;
        self.end_rank()?;
        let file =
            self.file.into_inner().map_err(|error| unwritable(&self.written.path, error.into_error()))?;
        output::finish(file, &self.written.path)?;
        Ok(self.written.into_metadata())
    }
}
