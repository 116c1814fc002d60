//! `weft trace`: what traces hold, and traces made of others, or of what a recording has left.

use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::options::{FormatOptions, whole_number};
use crate::output;
use crate::progress::Bar;
use clap::{Args, Subcommand, ValueHint};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use weft_sim::experiment::trace::{
    self, ConvertRequest, FlopRate, KERNEL, ScaleMode, ScaleRequest, StreamsInfo, TraceInfo, TraceOptions,
    TraceStats, tables,
};
use weft_sim::experiment::{Control, ExperimentError, machine};

/// The subcommands of `weft trace`.
#[derive(Subcommand)]
pub enum TraceCommand {
    /// Show program, recorder, ranks and counts of operations, and what is missing; the operations of weft's
    /// own format are not read
    Info(OneTrace),
    /// Count operations and bytes by kind, and add up computation
    Stats(StatsOptions),
    /// Write a trace in another format, or make one of the parts of a recording that was cut off; its source
    /// stays
    Convert(Conversion),
    /// Write a recording as it would be on another number of ranks: its laws are found in it, and in a second
    /// recording of the same program and input on another number of ranks, if there is one
    Scale(Scaling),
}

/// A recording that becomes one of another number of ranks.
#[derive(Args)]
pub struct Scaling {
    /// A recording, or two of the same program and input on different numbers of ranks
    #[arg(value_name = "RECORDING", required = true, num_args = 1..=2, value_hint = ValueHint::FilePath)]
    inputs: Vec<PathBuf>,

    /// Number of ranks of the new trace, at least as many as the recordings have
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = whole_number(1..=i32::MAX as u32))]
    ranks: u32,

    /// The work of a rank stays the same; otherwise that of all ranks together does
    #[arg(long)]
    weak: bool,

    /// The trace, in weft's own format
    #[arg(short, long, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// Write over a trace that exists
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    format: FormatOptions,
}

/// A trace or parts, and the trace that they become.
#[derive(Args)]
pub struct Conversion {
    /// A trace in any format, or the folder of a recording's parts, or the trace that they were to become
    #[arg(value_name = "INPUT", value_hint = ValueHint::AnyPath)]
    input: PathBuf,

    /// The trace
    #[arg(short, long, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// The format, where the end of the name does not tell it: weft, goal or goal-binary (LogGOPSim), ti
    /// (SimGrid, time-independent), or vef
    #[arg(long = "format", value_name = "FORMAT")]
    output_format: Option<String>,

    /// The machine whose library turns collectives into messages, where the format has none; otherwise
    /// MPICH 5's algorithms do
    #[arg(short, long, value_name = "NAME|FILE")]
    machine: Option<String>,

    #[command(flatten)]
    speed: SpeedOptions,

    /// Write over a trace that exists
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    format: FormatOptions,
}

/// The speed of cores, for formats that tell computation in floating-point operations.
#[derive(Args)]
pub struct SpeedOptions {
    /// Floating-point operations per second of a core, such as 1Gf, of a trace of SimGrid or Chakra
    #[arg(long, value_name = "SPEED")]
    speed: Option<FlopRate>,
}

impl SpeedOptions {
    /// The speed, if it is given.
    pub fn speed(&self) -> Option<FlopRate> {
        self.speed
    }

    /// Refuses a speed where results are shown, which have none.
    pub fn refuse_for_results(&self) -> Result<(), Failure> {
        match self.speed {
            None => Ok(()),
            Some(_) => Err(Failure::input("--speed is of a trace of SimGrid; leave it out for results")),
        }
    }

    /// The options of a reader.
    pub fn options(&self) -> TraceOptions {
        TraceOptions { speed: self.speed }
    }
}

/// Whether a path that may be of results is one of a trace. Both are told by their content.
///
/// # Errors
/// It is not there.
pub fn is_named_trace(path: &Path) -> Result<bool, Failure> {
    let is_trace = trace::is_trace(path);
    if !is_trace && !path.exists() {
        return Err(Failure::input(format!(
            "{} is not there: no run.json of results, and no trace; name a directory that weft wrote with \
             -o, or a trace",
            path.display()
        )));
    }
    Ok(is_trace)
}

/// One trace.
#[derive(Args)]
pub struct OneTrace {
    /// A trace in any format, or the folder of parts of a recording that is under way
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    trace: PathBuf,

    #[command(flatten)]
    speed: SpeedOptions,

    #[command(flatten)]
    format: FormatOptions,
}

/// One trace whose operations are counted.
#[derive(Args)]
pub struct StatsOptions {
    #[command(flatten)]
    one: OneTrace,

    /// Most intervals of the evolution over time; there are between half as many and so many [default: 50]
    #[arg(long, value_name = "N", value_parser = whole_number(2..=10_000), allow_negative_numbers = true)]
    intervals: Option<u32>,
}

impl TraceCommand {
    /// Does it.
    pub fn run(self) -> Result<Status, Failure> {
        match self {
            TraceCommand::Info(one) => {
                let info = trace::info(&one.trace, &one.speed.options())?;
                if one.format.json { output::document(&info)? } else { output::text(&info_text(&info))? }
            }
            TraceCommand::Stats(StatsOptions { one, intervals }) => {
                let intervals = intervals.and_then(NonZeroU32::new);
                let stats = trace::stats(&one.trace, &one.speed.options(), intervals)?;
                if one.format.json { output::document(&stats)? } else { output::text(&stats_text(&stats))? }
            }
            TraceCommand::Scale(scaling) => {
                let request = ScaleRequest {
                    inputs: &scaling.inputs,
                    ranks: scaling.ranks,
                    mode: if scaling.weak { ScaleMode::Weak } else { ScaleMode::Strong },
                    output: &scaling.output,
                    force: scaling.force,
                };
                let info = followed(|control| trace::scale(&request, control))?;
                match scaling.format.json {
                    true => output::document(&info)?,
                    false => output::text(&info_text(&info))?,
                }
            }
            TraceCommand::Convert(conversion) => {
                let machine = conversion.machine.as_ref();
                let machine = machine.map(|name| machine::input(name, &[])).transpose()?;
                let request = ConvertRequest {
                    input: &conversion.input,
                    output: &conversion.output,
                    format: conversion.output_format.as_deref(),
                    options: conversion.speed.options(),
                    machine: machine.as_ref(),
                    force: conversion.force,
                };
                let converted = followed(|control| trace::convert(&request, control))?;
                match conversion.format.json {
                    true => output::document(&converted)?,
                    false => {
                        let lists = expanded(&converted.expanded)
                            + &left_out(&converted.left_out)
                            + &recorded_with(&converted.recorded_with);
                        output::text(&(info_text(&converted.info) + &lists))?;
                    }
                }
            }
        }
        Ok(Status::Done)
    }
}

/// Writes a trace with progress and Ctrl-C.
fn followed<T>(write: impl FnOnce(Control<'_>) -> Result<T, ExperimentError>) -> Result<T, Failure> {
    let interrupt = on_ctrl_c()?;
    let bar = Bar::new(false);
    Ok(write(Control { interrupt: &interrupt, progress: &bar })?)
}

/// Of a trace whose footer is in order: damage of the rows is seen where they are read.
const WHOLE: &str = "whole; weft trace stats checks its operations too";

fn info_text(info: &TraceInfo) -> String {
    let whole = if info.interrupted { "ends where recording was interrupted" } else { WHOLE };
    // Other programs do not say it.
    let mpi = match info.mpi_library.as_str() {
        "" => "-".to_owned(),
        library => format!("{library} (MPI {})", info.mpi_version),
    };
    let time = info.virtual_time.as_ref().map_or("real".to_owned(), |host| format!("virtual, --host {host}"));
    let operations =
        format!("{}, {} to {} per rank", info.operations, info.rank_operations_min, info.rank_operations_max);
    let streams = info.streams.map(|streams| {
        let StreamsInfo { streams, rank_streams_max, rank_cores_max, events, open_events_max } = streams;
        format!(
            "{streams}, at most {rank_streams_max} on {rank_cores_max} cores per rank; {events} events, at \
             most {open_events_max} open per rank"
        )
    });
    let lines = [
        ["program", &info.command.join(" ")],
        ["recorded by", &info.recorder],
        ["date", info.date.as_deref().unwrap_or("-")],
        ["time", &time],
        ["library", &mpi],
        ["ranks", &info.ranks.to_string()],
        ["operations", &operations],
        ["trace", whole],
        ["format", info.format],
        ["format version", &info.format_version.to_string()],
    ];
    // Nobody has recorded a kernel.
    let of_kernels = ["program", "ranks", "operations", "format"];
    let lines = lines.into_iter().filter(|[name, _]| info.format != KERNEL || of_kernels.contains(name));
    let of_streams = streams.as_deref().map(|streams| ["streams", streams]);
    let lines = lines.chain(of_streams).map(|line| line.map(str::to_owned));
    let table = output::table(["", ""], [false, false], lines);
    let kinds = info.operations_by_kind.iter().map(|(kind, count)| [kind.clone(), count.to_string()]);
    let kinds = output::table_of_some(["operation", "count"], [false, true], kinds);
    table + "\n" + &kinds + &missing(&info.unrecorded) + &notes(&info.notes)
}

/// How a reader of another program's trace has helped itself.
fn notes(notes: &BTreeMap<String, u64>) -> String {
    notes.iter().map(|(note, count)| format!("note: {count} × {note}\n")).collect()
}

/// The operations that a format cannot carry.
fn left_out(left_out: &BTreeMap<String, u64>) -> String {
    left_out.iter().map(|(what, count)| format!("the format cannot carry: {count} × {what}\n")).collect()
}

/// The operations that were turned into others.
fn expanded(expanded: &BTreeMap<String, u64>) -> String {
    expanded.iter().map(|(what, count)| format!("expanded: {count} × {what}\n")).collect()
}

/// The library that a trace was recorded with, which the new one does not tell.
fn recorded_with(settings: &[String]) -> String {
    if settings.is_empty() {
        return String::new();
    }
    let sets: Vec<String> = settings.iter().map(|setting| format!("--set {setting}")).collect();
    format!(
        "note: the source asks a replay for the library of weft run; of this trace, say it: {}\n",
        sets.join(" ")
    )
}

/// Calls that are not in the trace.
pub(super) fn missing(unrecorded: &BTreeMap<String, u64>) -> String {
    unrecorded.iter().map(|(call, count)| format!("not recorded: {count} × {call}\n")).collect()
}

/// Rows of tables that are as long as there are kinds.
const KINDS: usize = 20;

/// Rows of tables that may be of any length.
const FIRST: usize = 10;

fn stats_text(stats: &TraceStats) -> String {
    // Where all is done in the world, its row says nothing new.
    let communicators = if stats.communicators == 0 { 0 } else { FIRST };
    let parts = [
        tables::operations(stats, KINDS),
        tables::message_sizes(stats, KINDS),
        tables::collectives(stats, KINDS),
        tables::reductions(stats, KINDS),
        tables::pairs(stats, FIRST),
        tables::communicators(stats, communicators),
        tables::evolution(stats, FIRST),
        tables::ranks(stats, FIRST),
    ];
    let parts = parts.iter().map(output::report_table).filter(|part| !part.is_empty());
    let parts: String = parts.map(|part| part + "\n").collect();
    let summary = format!(
        "{} ranks, {} pairs that send; {:.3} us of computation, {:.3} to {:.3} us in one rank\n",
        stats.ranks,
        stats.pairs,
        stats.computation_sum_us,
        stats.computation_min_us,
        stats.computation_max_us
    );
    parts + &summary + &missing(&stats.unrecorded) + &notes(&stats.notes)
}
