//! One trace made of another, in another format.

use crate::error::TraceError;
use crate::format::TraceOptions;
use crate::header::TraceMetadata;
use crate::trace::{Trace, TraceWriter};
use std::collections::BTreeMap;
use std::path::Path;
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
    for rank in (0..trace.ranks()).map(RankId) {
        writer.begin_rank(rank)?;
        for op in trace.rank(rank)? {
            writer.push(&op?)?;
        }
    }
    let left_out = writer.left_out();
    Ok(ConvertedTrace { left_out, metadata: writer.finish()? })
}
