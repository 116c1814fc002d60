//! The contents of a trace: of a file, or of the parts of a recording that is under way.

use super::ExperimentError;
use std::path::{Path, PathBuf};
use weft_formats::Trace;
use weft_formats::parts::Parts;

pub use weft_formats::{CollectiveStats, RankStats, TraceInfo, TraceStats};

/// Reads a trace's header and summary; of parts, all there is.
///
/// # Errors
/// What cannot be read, with the file.
pub fn info(trace: &Path) -> Result<TraceInfo, ExperimentError> {
    read(trace, |trace| Ok(TraceInfo::of(trace))).map(|(info, parts)| match parts {
        Some(folder) => TraceInfo { file: folder.display().to_string(), ..info },
        None => info,
    })
}

/// Reads a trace's operations.
///
/// # Errors
/// What cannot be read, with the file and place.
pub fn stats(trace: &Path) -> Result<TraceStats, ExperimentError> {
    read(trace, TraceStats::of).map(|(stats, _)| stats)
}

/// Makes one trace of the parts of a recording that was cut off. They stay.
///
/// # Errors
/// There are no parts, `output` exists and `force` is not given, or what cannot be read or written.
pub fn convert(parts: &Path, output: &Path, force: bool) -> Result<TraceInfo, ExperimentError> {
    let Some(folder) = parts_of(parts) else {
        let why = format!(
            "{} is no folder of parts; name one, such as run.weft.parts, which a recording leaves where it \
             is cut off",
            parts.display()
        );
        return Err(ExperimentError::input(why));
    };
    if output.exists() && !force {
        let why = format!("{} exists; name another file, or write over it with --force", output.display());
        return Err(ExperimentError::input(why));
    }
    let parts = Parts::open(&folder).map_err(ExperimentError::input)?;
    parts.convert(output, |_| {}).map_err(ExperimentError::input)?;
    info(output)
}

/// Reads a trace file, or the trace that parts make; then with their folder.
fn read<T>(
    path: &Path,
    read: impl FnOnce(&Trace) -> Result<T, weft_formats::TraceError>,
) -> Result<(T, Option<PathBuf>), ExperimentError> {
    let Some(folder) = parts_of(path) else {
        let trace = Trace::open(path).map_err(ExperimentError::input)?;
        return Ok((read(&trace).map_err(ExperimentError::input)?, None));
    };
    let no_room = |error| format!("no room for the parts of {} as one trace: {error}", folder.display());
    let temporary = tempfile::tempdir().map_err(|error| ExperimentError::input(no_room(error)))?;
    let file = temporary.path().join("parts.weft");
    let parts = Parts::open(&folder).map_err(ExperimentError::input)?;
    parts.convert(&file, |_| {}).map_err(ExperimentError::input)?;
    let trace = Trace::open(&file).map_err(ExperimentError::input)?;
    Ok((read(&trace).map_err(ExperimentError::input)?, Some(folder)))
}

/// The folder of parts that `path` stands for: itself, or the one beside a trace that is being recorded.
fn parts_of(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".parts");
    let beside = PathBuf::from(beside);
    (!path.exists() && beside.is_dir()).then_some(beside)
}
