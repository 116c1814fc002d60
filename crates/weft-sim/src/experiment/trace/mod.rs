//! The contents of a trace: of a file in any format, or of the parts of a recording that is under way; and
//! one trace made of another.

mod expand;
mod follow;
mod picture;
mod report;
mod scale;
pub mod tables;
mod windows;

use super::machine::checked;
use super::replay::recorded_settings;
use super::{Control, ExperimentError, MachineInput};
use expand::OperationExpander;
use serde::Serialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use weft_app::{AppError, Kernel, KernelName};
use weft_formats::parts::Parts;
use weft_formats::{ConvertedTrace, Trace, TraceConversion};
use weft_msg::{AlgorithmTable, Protocol, Wildcards};

pub use picture::{TracePicture, picture};
pub use report::report;
pub use scale::{ScaleRequest, scale};
pub use weft_app::scale::ScaleMode;
pub use weft_formats::{
    CollectiveStats, FlopRate, RankStats, StreamsInfo, TraceInfo, TraceOptions, TraceStats,
};

/// The format of a kernel, which is no file.
pub const KERNEL: &str = Kernel::FORMAT;

/// The name of weft's own format, and how the names of its files end.
const OWN_FORMAT: &str = "weft";
/// The begin of the names of parts of a recording.
const FIRST_PART: &str = "rank-00000.part";

/// Whether a path is a trace, by its content, or something that a trace is made of: a file, or the parts of a
/// recording, or the name of a kernel. A directory of results is none.
pub fn is_trace(path: &Path) -> bool {
    match path.is_dir() {
        true => path.join(FIRST_PART).is_file(),
        false => path.exists() || parts_of(path).is_some() || kernel_called(path).is_some(),
    }
}

/// All files of a trace, or of a path that is none.
pub fn files(path: &Path, options: &TraceOptions) -> Vec<PathBuf> {
    let known = Trace::open_with(path, options).map(|trace| trace.files());
    known.unwrap_or_else(|_| vec![path.to_owned()])
}

/// Reads a trace's header and summary; of parts, all there is.
///
/// # Errors
/// What cannot be read, with the file.
pub fn info(trace: &Path, options: &TraceOptions) -> Result<TraceInfo, ExperimentError> {
    read(trace, options, |trace| TraceInfo::of(trace).map_err(ExperimentError::input)).map(|(info, parts)| {
        match parts {
            Some(folder) => TraceInfo { file: folder.display().to_string(), ..info },
            None => info,
        }
    })
}

/// Reads a trace's operations; time in at most so many intervals, or in a usual number of them.
///
/// # Errors
/// What cannot be read, with the file and place.
pub fn stats(
    trace: &Path,
    options: &TraceOptions,
    intervals: Option<NonZeroU32>,
) -> Result<TraceStats, ExperimentError> {
    let of = |trace: &Trace| match intervals {
        Some(intervals) => TraceStats::with_intervals(trace, intervals),
        None => TraceStats::of(trace),
    };
    read(trace, options, |trace| of(trace).map_err(ExperimentError::input)).map(|(stats, _)| stats)
}

/// A trace that is to be made of another, or of the parts of a recording that was cut off. They stay.
#[derive(Clone, Copy, Debug)]
pub struct ConvertRequest<'a> {
    /// A trace, or the folder of the parts, or the trace that they were to become.
    pub input: &'a Path,
    /// The new trace.
    pub output: &'a Path,
    /// The format of the new trace by name; `None`: the one whose files end as `output` does.
    pub format: Option<&'a str>,
    /// Facts that both formats must be told.
    pub options: TraceOptions,
    /// The machine by whose library operations are expanded that the format does not carry; `None`: by the
    /// table of algorithms of MPICH 5, which computes nothing.
    pub machine: Option<&'a MachineInput>,
    /// Whether a file that exists is replaced.
    pub force: bool,
}

/// A trace that was made of another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NewTrace {
    /// The new trace.
    #[serde(flatten)]
    pub info: TraceInfo,
    /// Operations that its format cannot carry, with their number: left out, or written as something simpler.
    pub left_out: BTreeMap<String, u64>,
    /// Operations that its format cannot carry and that were turned into others, and how, with their number.
    pub expanded: BTreeMap<String, u64>,
    /// Values of messaging under which a replay of the source is of the library that it was recorded with in
    /// virtual time, where the new format does not keep what asks for them.
    pub recorded_with: Vec<String>,
}

/// Makes a trace. Where it is interrupted, nothing is left of it.
///
/// # Errors
/// `output` exists and `force` is not given, what cannot be read or written, or an interruption.
pub fn convert(request: &ConvertRequest<'_>, control: Control<'_>) -> Result<NewTrace, ExperimentError> {
    let ConvertRequest { input, output, format, options, machine, force } = request;
    if parts_of(input).is_none() && !input.exists() && kernel_called(input).is_none() {
        let why = format!(
            "{} is no folder of parts and no trace: it is not there; name a trace, or parts, such as \
             run.weft.parts, which a recording leaves where it is cut off",
            input.display()
        );
        return Err(ExperimentError::input(why));
    }
    check_output(output, *force, &files(input, options))?;
    // Parts become a trace first, in a folder that has to be removed.
    let mut preparation = parts_of(input).is_none().then(|| control.interrupt.prepare());
    let write = |trace: &Trace| {
        let settings = recorded_settings(&trace.metadata().header);
        let protocol = library(*machine, &settings)?;
        let mut expander = OperationExpander::new(&protocol, trace).map_err(ExperimentError::input)?;
        let conversion = TraceConversion { trace, output, format: *format, options };
        if kernel_called(input).is_some() && writes_own_format(output, *format) {
            control.progress.file_size(follow::size_as(std::slice::from_ref(trace), trace));
        }
        drop(preparation.take());
        let converted = follow::write(conversion, &mut expander, control)?;
        Ok::<_, ExperimentError>((converted, expander.expanded(), settings))
    };
    let ((converted, expanded, settings), _) = read(input, options, write)?;
    let ConvertedTrace { metadata, left_out } = converted;
    let mut info = info(output, options)?;
    // What its file cannot say of itself.
    for (told, known) in
        [(metadata.header.notes, &mut info.notes), (metadata.header.unrecorded, &mut info.unrecorded)]
    {
        known.extend(told);
    }
    let is_kept = info.virtual_time.is_some();
    let settings = settings.into_iter().filter(|_| !is_kept).map(|(key, value)| format!("{key}={value}"));
    Ok(NewTrace { recorded_with: settings.collect(), info, left_out, expanded })
}

/// Whether a trace of this name is written in weft's own format.
fn writes_own_format(output: &Path, format: Option<&str>) -> bool {
    match format {
        Some(format) => format == OWN_FORMAT,
        None => output.extension().is_some_and(|extension| extension == OWN_FORMAT),
    }
}

/// Whether a trace may be written at `output`, which is made of files.
fn check_output(output: &Path, force: bool, files: &[PathBuf]) -> Result<(), ExperimentError> {
    if output.exists() && !force {
        let why = format!("{} exists; name another file, or write over it with --force", output.display());
        return Err(ExperimentError::input(why));
    }
    let is_same = |path: &PathBuf| {
        path.canonicalize().is_ok_and(|own| output.canonicalize().is_ok_and(|other| own == other))
    };
    if output.exists() && files.iter().any(is_same) {
        let why = format!("{} is of the trace that is read; write the new one elsewhere", output.display());
        return Err(ExperimentError::input(why));
    }
    Ok(())
}

/// The messaging library of a machine, as a trace asks for it; without one, it costs nothing and chooses as
/// MPICH 5.
fn library(
    machine: Option<&MachineInput>,
    settings: &[(&'static str, String)],
) -> Result<Protocol, ExperimentError> {
    let Some(machine) = machine else {
        return Ok(Protocol { algorithms: AlgorithmTable::mpich_5(), ..Protocol::zero() });
    };
    let mut machine = machine.clone();
    machine.sets.extend(settings.iter().map(|(key, value)| format!("{key}={value}")));
    weft_assembly::protocol(&checked(&machine)?, Wildcards::Recorded).map_err(ExperimentError::input)
}

/// Reads a trace file, or the trace that parts make; then with their folder.
fn read<T>(
    path: &Path,
    options: &TraceOptions,
    read: impl FnOnce(&Trace) -> Result<T, ExperimentError>,
) -> Result<(T, Option<PathBuf>), ExperimentError> {
    let Some(folder) = parts_of(path) else {
        return Ok((read(&open(path, options)?)?, None));
    };
    let no_room = |error| format!("no room for the parts of {} as one trace: {error}", folder.display());
    let temporary = tempfile::tempdir().map_err(|error| ExperimentError::input(no_room(error)))?;
    let file = temporary.path().join("parts.weft");
    let parts = Parts::open(&folder).map_err(ExperimentError::input)?;
    parts.convert(&file, |_| {}).map_err(ExperimentError::input)?;
    let trace = Trace::open(&file).map_err(ExperimentError::input)?;
    Ok((read(&trace)?, Some(folder)))
}

/// Opens the trace at `path`; where there is none, the kernel that is called so.
fn open(path: &Path, options: &TraceOptions) -> Result<Trace, ExperimentError> {
    match kernel_called(path) {
        Some(name) => {
            let kernel = name.and_then(|name| Kernel::new(&name)).map_err(ExperimentError::input)?;
            Ok(Trace::from(kernel))
        }
        None => Trace::open_with(path, options).map_err(ExperimentError::input),
    }
}

/// The kernel that `path` calls, such as `halo3d@64`; `None`: a file of that name exists, or no kernel can
/// have it.
pub(crate) fn kernel_called(path: &Path) -> Option<Result<KernelName, AppError>> {
    let name = kernel_named(path.to_str()?)?;
    (!path.exists()).then_some(name)
}

/// The kernel that a text names, unless it stands for a file; `None`: no kernel can have that name.
pub(crate) fn kernel_named(text: &str) -> Option<Result<KernelName, AppError>> {
    let is_one = text.contains('@') || weft_app::apps::find(text).is_ok();
    (is_one && !text.contains(MAIN_SEPARATOR)).then(|| text.parse())
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
