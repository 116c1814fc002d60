//! One trace made of another, in another format.

use crate::error::TraceError;
use crate::format::TraceOptions;
use crate::header::TraceMetadata;
use crate::rank_order::{PlacedOp, RankOrder};
use crate::trace::{Trace, TraceWriter};
use std::collections::BTreeMap;
use std::path::Path;
use weft_trace::op::StreamId;
use weft_units::RankId;

/// A trace that was written in another format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConvertedTrace {
    /// Summary of the new trace.
    pub metadata: TraceMetadata,
    /// Operations that its format cannot carry, with their number: they are not in the new trace, or are
    /// there as something simpler.
    pub left_out: BTreeMap<String, u64>,
}

/// Writes a trace at `output`, in the format of this name, or else in that whose files end as `output` does.
/// One operation is in memory at a time.
///
/// # Errors
/// No such format is written, or what cannot be read or written.
pub fn convert(
    trace: &Trace,
    output: &Path,
    format: Option<&str>,
    options: &TraceOptions,
) -> Result<ConvertedTrace, TraceError> {
    let header = trace.metadata().header.clone();
    let mut writer = TraceWriter::create_as(output, format, header, options)?;
    let mut merged = 0;
    for rank in (0..trace.ranks()).map(RankId) {
        writer.begin_rank(rank)?;
        let cores = trace.stream_cores(rank);
        if cores.len() > 1 && !writer.has_streams() {
            merged += cores.len() as u64;
            let mut order = RankOrder::of(&**trace, rank)?;
            while let Some(PlacedOp { op, .. }) = order.next()? {
                writer.push(&op)?;
            }
            continue;
        }
        for (stream, core) in (0..).map(StreamId).zip(cores.iter()) {
            if stream != StreamId::FIRST {
                writer.begin_stream(*core)?;
            }
            for op in trace.stream(rank, stream)? {
                writer.push(&op?)?;
            }
        }
    }
    let mut left_out = writer.left_out();
    if merged > 0 {
        let what = "streams of ranks: written as one, in an order that their events allow";
        left_out.insert(what.to_owned(), merged);
    }
    Ok(ConvertedTrace { left_out, metadata: writer.finish()? })
}
