//! One trace made of another, in another format.
//!
//! ```text
//!   Trace ── Op ──▶ Expand ── Op, … ──▶ ExpandedOps ──▶ FormatWriter
//! ```
//! What the new format does not carry may be turned into operations that it does: into what, another crate
//! knows.

use crate::error::TraceError;
use crate::format::TraceOptions;
use crate::header::TraceMetadata;
use crate::rank_order::{PlacedOp, RankOrder};
use crate::trace::{Trace, TraceWriter};
use std::collections::BTreeMap;
use std::path::Path;
use weft_trace::op::{Op, StreamId};
use weft_units::RankId;

/// A trace to be written in another format.
#[derive(Clone, Copy)]
pub struct TraceConversion<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// The new one.
    pub output: &'a Path,
    /// The name of its format; `None`: the one whose files end as `output` does.
    pub format: Option<&'a str>,
    /// Facts that both formats must be told.
    pub options: &'a TraceOptions,
}

/// A trace that was written in another format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConvertedTrace {
    /// Summary of the new trace.
    pub metadata: TraceMetadata,
    /// Operations that its format cannot carry, with their number: they are not in the new trace, or are
    /// there as something simpler.
    pub left_out: BTreeMap<String, u64>,
}

/// Turns operations into others that a format carries. All of a rank's come by here, in an order that its
/// events and requests allow.
pub trait Expand {
    /// The operations of a rank begin.
    fn begin_rank(&mut self, rank: RankId);

    /// Passes an operation on, or what it is turned into.
    ///
    /// # Errors
    /// An operation that makes no sense, and what cannot be written.
    fn expand(&mut self, op: Op, into: &mut ExpandedOps<'_>) -> Result<(), TraceError>;
}

/// Passes every operation on as it is.
pub struct AsItIs;

impl Expand for AsItIs {
    fn begin_rank(&mut self, _: RankId) {}

    fn expand(&mut self, op: Op, into: &mut ExpandedOps<'_>) -> Result<(), TraceError> {
        into.push(&op)
    }
}

/// The place where operations go on, in the stream of the one that is expanded.
pub struct ExpandedOps<'w> {
    writer: &'w mut TraceWriter,
    file: &'w str,
    rank: RankId,
    stream: StreamId,
    core: u32,
    position: u64,
}

impl ExpandedOps<'_> {
    /// A stream of the rank that no trace has.
    const BRANCH: StreamId = StreamId(u32::MAX);

    /// Whether the format carries the operation as it is.
    pub fn carries(&self, op: &Op) -> bool {
        self.writer.carries(op)
    }

    /// Adds an operation.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn push(&mut self, op: &Op) -> Result<(), TraceError> {
        self.writer.push(op)
    }

    /// Whether operations can be done beside those of the stream.
    pub fn has_branches(&self) -> bool {
        self.writer.mixes_streams()
    }

    /// Adds a stream of the rank, with these operations, on the core of this one.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn branch(&mut self, ops: impl IntoIterator<Item = Op>) -> Result<(), TraceError> {
        self.writer.switch_to(Self::BRANCH, self.core)?;
        ops.into_iter().try_for_each(|op| self.writer.push(&op))?;
        self.writer.end_stream(Self::BRANCH);
        self.writer.switch_to(self.stream, self.core)
    }

    /// The error for the operation that is expanded.
    pub fn error(&self, reason: impl std::fmt::Display) -> TraceError {
        TraceError::Operation {
            file: self.file.to_owned(),
            rank: self.rank.0,
            position: self.position,
            column: "operation",
            reason: format!("{reason}; record the trace again"),
        }
    }
}

/// Writes a trace in another format. One operation is in memory at a time, besides what it is turned into.
///
/// # Errors
/// No such format is written, or what cannot be read, expanded or written.
pub fn convert(
    conversion: TraceConversion<'_>,
    expand: &mut dyn Expand,
) -> Result<ConvertedTrace, TraceError> {
    let TraceConversion { trace, output, format, options } = conversion;
    let header = trace.metadata().header.clone();
    let mut writer = TraceWriter::create_as(output, format, header, options)?;
    let file = trace.file();
    let mut merged = 0;
    for rank in (0..trace.ranks()).map(RankId) {
        writer.begin_rank(rank)?;
        expand.begin_rank(rank);
        let cores = trace.stream_cores(rank);
        let mut pass = |writer: &mut TraceWriter, PlacedOp { stream, position, op }: PlacedOp| {
            let core = cores.get(stream.index()).copied().unwrap_or(0);
            expand.expand(op, &mut ExpandedOps { writer, file, rank, stream, core, position })
        };
        if cores.len() > 1 && writer.has_streams() && !writer.mixes_streams() {
            for (stream, core) in (0..).map(StreamId).zip(cores.iter()) {
                if stream != StreamId::FIRST {
                    writer.begin_stream(*core)?;
                }
                for (position, op) in (0..).zip(trace.stream(rank, stream)?) {
                    pass(&mut writer, PlacedOp { stream, position, op: op? })?;
                }
            }
            continue;
        }
        if cores.len() > 1 && !writer.has_streams() {
            merged += cores.len() as u64;
        }
        let mut order = RankOrder::of(&**trace, rank)?;
        while let Some(placed) = order.next()? {
            if writer.mixes_streams() {
                let core = cores.get(placed.stream.index()).copied().unwrap_or(0);
                writer.switch_to(placed.stream, core)?;
            }
            pass(&mut writer, placed)?;
        }
    }
    let mut left_out = writer.left_out();
    if merged > 0 {
        let what = "streams of ranks: written as one, in an order that their events allow; a wait of one \
                    keeps the others";
        left_out.insert(what.to_owned(), merged);
    }
    Ok(ConvertedTrace { left_out, metadata: writer.finish()? })
}
