//! One trace made of a recording, or of two, at another number of ranks.

use super::{OWN_FORMAT, TraceInfo, check_output, files, follow, info, open};
use crate::experiment::{Control, ExperimentError};
use std::path::{Path, PathBuf};
use weft_app::scale::{ScaleMode, scaled};
use weft_formats::{Trace, TraceConversion, TraceOptions};

/// A trace that is to be made at another number of ranks.
#[derive(Clone, Copy, Debug)]
pub struct ScaleRequest<'a> {
    /// One recording, or two of the same program and input on different numbers of ranks.
    pub inputs: &'a [PathBuf],
    /// Number of ranks of the new trace.
    pub ranks: u32,
    /// The size that stays the same: that of the problem, or of a rank's part.
    pub mode: ScaleMode,
    /// The new trace.
    pub output: &'a Path,
    /// Whether a file that exists is replaced.
    pub force: bool,
}

/// Makes the trace. Where it is interrupted, nothing is left of it.
///
/// # Errors
/// `output` exists and `force` is not given, recordings that follow no law, what cannot be read or written,
/// or an interruption.
pub fn scale(request: &ScaleRequest<'_>, control: Control<'_>) -> Result<TraceInfo, ExperimentError> {
    let ScaleRequest { inputs, ranks, mode, output, force } = request;
    let options = TraceOptions::default();
    let read: Vec<PathBuf> = inputs.iter().flat_map(|input| files(input, &options)).collect();
    check_output(output, *force, &read)?;
    let preparation = control.interrupt.prepare();
    let recordings = inputs.iter().map(|input| open(input, &options)).collect::<Result<Vec<_>, _>>()?;
    let trace = Trace::from(scaled(&recordings, *ranks, *mode).map_err(ExperimentError::input)?);
    control.progress.file_size(follow::size_as(&recordings, &trace));
    drop(preparation);
    let conversion = TraceConversion { trace: &trace, output, format: Some(OWN_FORMAT), options: &options };
    follow::write(conversion, &mut weft_formats::AsItIs, control)?;
    info(output, &options)
}
