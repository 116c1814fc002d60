//! `weft run`: a real MPI program in virtual time.

use super::breakdown::size_classes;
use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::options::{
    MachineOptions, PlaceOptions, ResultOptions, SayOptions, mapping_name, parse_positive_span,
};
use crate::output;
use clap::{Args, ValueHint};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weft_cli::record::{self, Recording};
use weft_host::{Execution, HostModel, INJECT_LIMIT, Outcome, Recorder, Request, execute};
use weft_sim::experiment::Measured;
use weft_sim::experiment::live::{RunRequest, RunRow};
use weft_units::{Span, Time};

/// Real time that a rank may keep its turn for where the user does not say.
const WATCHDOG: &str = "10min";

/// Options of `weft run`.
#[derive(Args)]
pub struct RunOptions {
    #[command(flatten)]
    machine: MachineOptions,

    /// Ranks, each a process
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65536))]
    ranks: u32,

    #[command(flatten)]
    places: PlaceOptions,

    /// How computation moves clocks: none (it takes no time), cpu[:SCALE] (CPU time of the rank, times SCALE; not the
    /// same twice), fixed:TIME (so much before each call)
    #[arg(long, value_name = "none|cpu[:SCALE]|fixed:TIME", default_value = "none", value_parser = parse_host)]
    host: HostModel,

    /// Seed of the random mapping and of all random decisions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Begin every line of output with its rank
    #[arg(long)]
    label: bool,

    /// End when virtual time reaches this
    #[arg(long, value_name = "TIME", value_parser = parse_positive_span)]
    time_limit: Option<Span>,

    /// End when so much real time has passed, such as 90s
    #[arg(long, value_name = "TIME", value_parser = parse_wall)]
    wall_limit: Option<Duration>,

    /// End when a rank computes, or waits outside MPI, for so much real time without a break
    #[arg(long, value_name = "TIME", default_value = WATCHDOG, value_parser = parse_wall)]
    watchdog: Duration,

    /// Take a rank that polls in vain to wait until something comes: faster for programs that test in loops; a program
    /// that counts its polls or waits for the clock sees the difference
    #[arg(long)]
    fast_polling: bool,

    /// Show where the time of each message went, from its post to its delivery: means by size, and with -o every piece of every
    /// message in the table pieces
    #[arg(long)]
    breakdown: bool,

    #[command(flatten)]
    results: ResultOptions,

    /// Record what the ranks do as a trace, which weft replay replays
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record: Option<PathBuf>,

    #[command(flatten)]
    say: SayOptions,

    /// Nothing of weft's own on standard error but errors
    #[arg(long)]
    quiet: bool,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// The most that a call may cost.
const LONGEST_CALL: Span = Span::from_ns(1_000_000_000);

fn parse_host(text: &str) -> Result<HostModel, String> {
    let wrong = || format!("`{text}` is no host model; write none, cpu, cpu:2.5 or fixed:200ns");
    match text.split_once(':') {
        None if text == "none" => Ok(HostModel::None),
        None if text == "cpu" => Ok(HostModel::Cpu(1_000_000)),
        Some(("cpu", scale)) => {
            let scale: f64 = scale.parse().map_err(|_| wrong())?;
            // The device carries millionths.
            let millionths = (scale * 1e6).round();
            if (1.0..=f64::from(u32::MAX)).contains(&millionths) {
                Ok(HostModel::Cpu(millionths as u32))
            } else {
                Err("a scale of CPU time lies between 0.000001 and 4294".to_owned())
            }
        }
        Some(("fixed", span)) => match parse_positive_span(span)? {
            // Millions of calls fit what a clock can count.
            span if span <= LONGEST_CALL => Ok(HostModel::Fixed(span)),
            _ => Err(format!("`{text}`: a call takes at most {LONGEST_CALL}; write fixed:200ns")),
        },
        _ => Err(wrong()),
    }
}

fn parse_wall(text: &str) -> Result<Duration, String> {
    let seconds = |number: &str, unit: f64| {
        number.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0).map(|n| n * unit)
    };
    let parsed = [("min", 60.0), ("ms", 1e-3), ("h", 3600.0), ("s", 1.0)]
        .into_iter()
        .find_map(|(unit, size)| text.strip_suffix(unit).map(|number| seconds(number, size)));
    match parsed.flatten().map(Duration::try_from_secs_f64) {
        Some(Ok(duration)) if !duration.is_zero() => Ok(duration),
        _ => Err(format!("`{text}` is no real time; write 90s, 1.5min or 2h")),
    }
}

fn host_name(host: HostModel) -> String {
    match host {
        HostModel::None => "none".to_owned(),
        HostModel::Cpu(1_000_000) => "cpu".to_owned(),
        HostModel::Cpu(millionths) => format!("cpu:{}", f64::from(millionths) / 1e6),
        HostModel::Fixed(span) => format!("fixed:{span}"),
    }
}

/// What `weft run --json` says.
#[derive(Serialize)]
struct Document<'a> {
    command: &'static str,
    program: &'a [String],
    machine: &'a str,
    sets: &'a [String],
    ranks: u32,
    map: &'static str,
    host: &'a str,
    seed: u64,
    ended: &'static str,
    detail: Option<&'a str>,
    virtual_time_us: f64,
    messages: u64,
    bytes: u64,
    rows: &'a [Measured<RunRow>],
    packet_hops: u64,
    packet_hops_per_second: f64,
    wall_seconds: f64,
    peak_memory_bytes: u64,
    exit_status: u8,
    results: Option<&'a Path>,
}

impl RunOptions {
    /// Runs it.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        let recording = self.recording()?;
        let request = Request {
            run: RunRequest {
                machine: self.machine.input()?,
                program: self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
                ranks: self.ranks,
                map: self.places.mapping()?,
                ranks_per_host: self.places.ppn,
                host: host_name(self.host),
                fast_polling: self.fast_polling,
                seed: self.seed,
                breakdown: self.breakdown,
            },
            options: self.results.run_options(words, self.breakdown)?,
            recorder: recording.as_ref().map(recorder),
            host: self.host,
            label: self.label,
            output_to_error: self.say.json,
            time_limit: self.time_limit,
            wall_limit: self.wall_limit,
            watchdog: Some(self.watchdog),
            command: self.command,
        };
        let interrupt = on_ctrl_c()?;
        let quiet = self.quiet;
        let execution = execute(&request, &interrupt, &mut |program| {
            if !quiet {
                eprintln!(
                    "weft: {} ranks of {} on {}, --host {}{}",
                    request.run.ranks,
                    program.display(),
                    request.run.machine.name,
                    request.run.host,
                    match request.host {
                        HostModel::None => ": computation takes no time",
                        HostModel::Cpu(_) => ": CPU time is measured, so that no two runs are the same",
                        HostModel::Fixed(_) => "",
                    }
                );
            }
        });
        let execution = match (execution, recording) {
            (Ok(execution), Some(recording)) => {
                finish_recording(recording, &execution, &request.run.host, quiet)?;
                execution
            }
            (Ok(execution), None) => execution,
            (Err(error), recording) => {
                // The first error is the one to tell.
                let _ = recording.map(Recording::discard);
                return Err(error.into());
            }
        };
        let status = execution.outcome.exit_status();
        let name = execution.outcome.name();
        if !execution.detail.is_empty() {
            eprintln!("weft: {name}: {}", execution.detail);
        } else if quiet && status != 0 && execution.outcome != Outcome::Finished {
            // Otherwise the last line says so.
            eprintln!("weft: {name}: {:.3} us of virtual time", microseconds(&execution));
        }
        if !execution.others.is_empty() {
            eprintln!("{}", execution.others);
        }
        if self.say.json {
            output::document(&document(&request, &execution, status))?;
        } else if !quiet {
            let rows = execution.report.rows.iter().filter_map(|row| row.row.figures.breakdown.as_deref());
            rows.for_each(|classes| eprint!("{}", size_classes(classes)));
            eprintln!(
                "weft: {}: {:.3} us of virtual time, {} messages, {}B, {:.1} s of real time",
                execution.outcome.name(),
                microseconds(&execution),
                execution.messages,
                output::thousands(execution.bytes.get() as f64),
                execution.wall.as_secs_f64(),
            );
            if let Some(output) = &request.options.output {
                eprintln!("weft: results in {}", output.directory.display());
            }
        }
        if let Some(error) = &execution.unwritten {
            return Err(Failure::input(format!(
                "what ranks printed cannot be written: {error}; results and traces are whole"
            )));
        }
        Ok(match status {
            0 => Status::Done,
            status => Status::Program(status),
        })
    }
}

impl RunOptions {
    /// The recording that is asked for.
    fn recording(&self) -> Result<Option<Recording>, Failure> {
        let Some(trace) = &self.record else { return Ok(None) };
        let place = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if self.results.timeline.as_deref().is_some_and(|timeline| place(timeline) == place(trace)) {
            return Err(Failure::input(format!(
                "--record and --timeline both name {}; name two files",
                trace.display()
            )));
        }
        if self.results.output.as_deref().is_some_and(|output| place(trace).starts_with(place(output))) {
            return Err(Failure::input(format!(
                "--record {} lies in the directory of --output, which holds nothing but results; write the trace beside it",
                trace.display()
            )));
        }
        let mpi = record::mpi_of_ranks(&self.command);
        Ok(Some(Recording::prepare(trace, self.results.force, mpi, None)?))
    }
}

fn recorder(recording: &Recording) -> Recorder {
    let variable = (record::PARTS_VARIABLE, recording.parts.clone());
    Recorder { library: recording.library.clone(), variable }
}

/// Makes the trace. What differs between two runs of one program, such as the date, is not in it.
fn finish_recording(
    recording: Recording,
    execution: &Execution,
    host: &str,
    quiet: bool,
) -> Result<(), Failure> {
    let trace = recording.trace().display().to_string();
    let ended_well = execution.outcome == Outcome::Finished;
    let recorded = recording.finish(|header| {
        header.interrupted |= !ended_well;
        header.virtual_time = Some(host.to_owned());
        header.buffered_limit = Some(INJECT_LIMIT as u64);
    })?;
    match recorded {
        None => eprintln!("weft: nothing was recorded: no process called MPI_Init through its C interface"),
        Some(metadata) => {
            let operations: u64 = metadata.rank_operations.iter().sum();
            let cut = if metadata.header.interrupted { "; it ends where the ranks were stopped" } else { "" };
            if !quiet {
                eprintln!("weft: {trace}: {} ranks, {operations} operations{cut}", metadata.header.ranks);
            }
            for (call, count) in metadata.header.unrecorded.iter().filter(|_| !quiet) {
                eprintln!("weft: not recorded: {count} × {call}");
            }
        }
    }
    Ok(())
}

fn microseconds(execution: &Execution) -> f64 {
    (execution.virtual_time - Time::ZERO).as_ps() as f64 / 1e6
}

fn document<'a>(request: &'a Request, execution: &'a Execution, exit_status: u8) -> Document<'a> {
    let (run, performance) = (&request.run, &execution.report.performance);
    Document {
        command: "run",
        program: &run.program,
        machine: &run.machine.name,
        sets: &run.machine.sets,
        ranks: run.ranks,
        map: mapping_name(&run.map),
        host: &run.host,
        seed: run.seed,
        ended: execution.outcome.ending().name(),
        detail: Some(execution.detail.as_str()).filter(|detail| !detail.is_empty()),
        virtual_time_us: microseconds(execution),
        messages: execution.messages,
        bytes: execution.bytes.get(),
        rows: &execution.report.rows,
        packet_hops: performance.packet_hops,
        packet_hops_per_second: performance.packet_hops_per_second,
        wall_seconds: execution.wall.as_secs_f64(),
        peak_memory_bytes: performance.peak_memory_bytes,
        exit_status,
        results: request.options.output.as_ref().map(|output| output.directory.as_path()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_models_and_real_times_are_read() {
        assert_eq!(parse_host("none"), Ok(HostModel::None));
        assert_eq!(parse_host("cpu:2.5"), Ok(HostModel::Cpu(2_500_000)));
        assert_eq!(parse_host("fixed:200ns"), Ok(HostModel::Fixed(Span::from_ns(200))));
        for wrong in ["", "none:1", "cpu:0", "cpu:x", "cpu:-1", "fixed", "fixed:0ns", "fixed:2s", "gpu"] {
            assert!(parse_host(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_wall("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_wall("1.5min"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_wall("200ms"), Ok(Duration::from_millis(200)));
        for wrong in ["", "90", "0s", "-1s", "infs", "NaNs", "s"] {
            assert!(parse_wall(wrong).is_err(), "{wrong}");
        }
    }
}
