//! A trace while it is written: its progress, and its end where the user asks for one.

use crate::experiment::{Control, ExperimentError};
use weft_formats::{ConvertedTrace, Expand, ExpandedOps, Trace, TraceConversion, TraceError};
use weft_trace::op::Op;
use weft_units::{Bytes, RankId};

/// Operations between two looks at how far it has come.
const OPERATIONS_PER_LOOK: u64 = 10_000;
/// Bytes of an operation of an application in weft's own format: 4 in the mean, from 0.5 for
/// `broadcast-storm` to 5.5 for `halo3d`, on 64 and 1,000 ranks.
const KERNEL_OPERATION_BYTES: u64 = 4;

/// The size in weft's own format of a trace with as many bytes for each operation as `sources` have.
pub(super) fn size_as(sources: &[Trace], trace: &Trace) -> Bytes {
    let sum = |of: fn(&Trace) -> u64| sources.iter().map(of).sum::<u64>();
    let (bytes, operations) = (sum(|source| source.file_bytes().get()), sum(|source| source.operations()));
    let (bytes, operations) = match bytes == 0 || operations == 0 {
        // Kernels have no files.
        true => (KERNEL_OPERATION_BYTES, 1),
        false => (bytes, operations),
    };
    let size = u128::from(trace.operations()) * u128::from(bytes) / u128::from(operations);
    Bytes::new(size as u64)
}

/// Writes a trace, and tells how far it has come. Where the user asks for an end, nothing is left of it.
pub(super) fn write(
    conversion: TraceConversion<'_>,
    expand: &mut dyn Expand,
    control: Control<'_>,
) -> Result<ConvertedTrace, ExperimentError> {
    let TraceConversion { trace, output, .. } = conversion;
    let mut followed = Followed { expand, control, done: 0, operations: trace.operations().max(1) };
    let written = weft_formats::convert(conversion, &mut followed);
    control.progress.advance(1.0, "");
    written.map_err(|error| match control.interrupt.is_requested() {
        true => ExperimentError::Interrupted(format!("interrupted; {} is not written", output.display())),
        false => ExperimentError::input(error),
    })
}

/// Passes operations on to `expand`, and looks at `control` meanwhile.
struct Followed<'a> {
    expand: &'a mut dyn Expand,
    control: Control<'a>,
    /// Those that have passed.
    done: u64,
    /// All of the trace.
    operations: u64,
}

impl Expand for Followed<'_> {
    fn begin_rank(&mut self, rank: RankId) {
        self.expand.begin_rank(rank);
    }

    fn expand(&mut self, op: Op, into: &mut ExpandedOps<'_>) -> Result<(), TraceError> {
        if self.control.interrupt.is_requested() {
            return Err(into.error("interrupted"));
        }
        if self.done.is_multiple_of(OPERATIONS_PER_LOOK) {
            let share = self.done as f64 / self.operations as f64;
            self.control.progress.advance(share.min(0.999), "operations");
        }
        self.done += 1;
        self.expand.expand(op, into)
    }
}
