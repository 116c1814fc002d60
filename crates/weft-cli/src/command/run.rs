//! `weft run`: a real MPI program in virtual time.

use super::breakdown::{ListOptions, size_classes};
use super::compared::{compared, tell_compared, tell_no_waves};
use super::live_view::{LiveOptions, LiveView};
use super::record::cut_off;
use super::region::region_summary;
use super::scenario::{BesideOptions, groups_beside};
use super::simulation::Rows;
use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::options::{
    MachineOptions, PlaceOptions, ReportOptions, ResultOptions, RtlArguments, mapping_name,
    parse_positive_span, parse_seed, whole_number,
};
use crate::output;
use crate::place::{OutputFile, located};
use crate::progress::Bar;
use crate::standard_error::{self, say};
use clap::{Args, ValueHint};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weft_formats::parts::Converted;
use weft_host::record::{self, Recording};
use weft_host::{Execution, HostModel, INJECT_LIMIT, LiveEnd, Recorder, Request, execute};
use weft_sim::experiment::live::{RunRequest, RunRow};
use weft_sim::experiment::replay::{Figures, Region};
use weft_sim::experiment::{BlockCompared, Control};
use weft_units::{Span, Time};

/// The default of the watchdog: the longest real time for which a rank may hold its turn.
const WATCHDOG: &str = "10min";

/// Options of `weft run`.
#[derive(Args)]
pub struct RunOptions {
    #[command(flatten)]
    machine: MachineOptions,

    /// Number of ranks; each is a process
    #[arg(short = 'n', long, value_name = "N", value_parser = whole_number(1..=65536))]
    #[arg(allow_negative_numbers = true)]
    ranks: u32,

    #[command(flatten)]
    execution: ExecutionOptions,
}

/// The ranks of a run: how many, on which machine.
pub struct RanksWanted {
    /// The machine.
    pub machine: MachineOptions,
    /// Ranks.
    pub ranks: u32,
    /// Added to the environment of each.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether their program may be one of MPI.
    pub may_use_mpi: bool,
}

/// How a job runs, and what is kept of it.
#[derive(Args)]
pub struct ExecutionOptions {
    #[command(flatten)]
    pub places: PlaceOptions,

    /// How computation advances the clock of a rank: none (not at all), cpu[:SCALE] (by its CPU time, times
    /// SCALE; not reproducible), fixed:TIME (by TIME per call)
    #[arg(
        long,
        value_name = "none|cpu[:SCALE]|fixed:TIME",
        default_value = "none",
        value_parser = parse_host
    )]
    host: HostModel,

    #[command(flatten)]
    beside: BesideOptions,

    /// Seed of the random mapping and of all other random decisions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_seed)]
    #[arg(allow_negative_numbers = true)]
    seed: u64,

    /// Protection domains of the job, such as 7 or 7,8: interfaces are of the first, unless a program asks
    /// weft_interface_allocate for another of them. Without it, the job is of domain 1
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pdid: Vec<u16>,

    /// Begin every line of output with the number of its rank
    #[arg(long)]
    label: bool,

    /// End the run when virtual time reaches this
    #[arg(long, value_name = "TIME", value_parser = parse_positive_span)]
    time_limit: Option<Span>,

    /// End the run after this much real time, such as 90s
    #[arg(long, value_name = "TIME", value_parser = parse_wall)]
    wall_limit: Option<Duration>,

    /// End the run when a rank computes, or waits outside MPI, for this much real time without a break
    #[arg(long, value_name = "TIME", default_value = WATCHDOG, value_parser = parse_wall)]
    watchdog: Duration,

    /// Let a rank that polls in vain wait until something arrives: faster for programs that test in loops.
    /// Programs that count their polls, or wait for the clock, see the difference
    #[arg(long)]
    fast_polling: bool,

    /// Show where the time of each message went, from its post to its delivery: means by size, and with -o
    /// every piece of every message in the table `pieces`
    #[arg(long)]
    breakdown: bool,

    #[command(flatten)]
    list: ListOptions,

    /// Report, break down and with -o explain only what lies in region K of the program: MPI_Pcontrol(K)
    /// opens it, MPI_Pcontrol(0) closes it
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    region: Option<Region>,

    #[command(flatten)]
    live: LiveOptions,

    #[command(flatten)]
    rtl: RtlArguments,

    #[command(flatten)]
    results: ResultOptions,

    /// Record what the ranks do as a trace, for weft replay
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    record: Option<PathBuf>,

    #[command(flatten)]
    report: ReportOptions,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// Launchers of MPI programs elsewhere.
const LAUNCHERS: [&str; 8] =
    ["mpiexec", "mpirun", "mpiexec.hydra", "srun", "orterun", "prterun", "aprun", "jsrun"];

/// The most that a call may cost.
const LONGEST_CALL: Span = Span::from_ns(1_000_000_000);

fn parse_host(text: &str) -> Result<HostModel, String> {
    let wrong = || format!("`{text}` is not a host model; write none, cpu, cpu:2.5 or fixed:200ns");
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
    let parsed = humantime::parse_duration(text).ok().filter(|duration| !duration.is_zero());
    parsed.ok_or_else(|| format!("`{text}` is not a real time; write 90s, 1.5min or 2h"))
}

fn host_name(host: HostModel) -> String {
    match host {
        HostModel::None => "none".to_owned(),
        HostModel::Cpu(1_000_000) => "cpu".to_owned(),
        HostModel::Cpu(millionths) => format!("cpu:{}", f64::from(millionths) / 1e6),
        HostModel::Fixed(span) => format!("fixed:{span}"),
    }
}

/// The report of `weft run --json`.
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
    rows: Rows<'a, RunRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rtl: Vec<BlockCompared>,
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
        let RunOptions { machine, ranks, execution } = self;
        execution.run(RanksWanted { machine, ranks, environment: Vec::new(), may_use_mpi: true }, words)
    }
}

impl ExecutionOptions {
    /// Runs a job.
    pub fn run(mut self, job: RanksWanted, words: &[String]) -> Result<Status, Failure> {
        self.refuse_launcher(&job)?;
        self.live.ask_for_telemetry(&mut self.results);
        let recording = self.recording(&job)?;
        let shown = Shown { quiet: self.report.quiet, json: self.report.format.json, list: self.list };
        let live = self.live.is_wanted();
        let mut request = self.request(job, words, recording.as_ref())?;
        request.options.live = live;
        let directory = request.options.output.as_ref().map(|output| output.directory.clone());
        match directory.filter(|_| live) {
            Some(directory) => LiveView::during(&directory, || run_ranks(&request, recording, shown)),
            None => run_ranks(&request, recording, shown),
        }
    }
}

/// The words that a run is told in.
#[derive(Clone, Copy)]
struct Shown {
    quiet: bool,
    json: bool,
    list: ListOptions,
}

/// Runs the ranks, and tells what came of it.
fn run_ranks(request: &Request, recording: Option<Recording>, shown: Shown) -> Result<Status, Failure> {
    let Shown { quiet, json, list } = shown;
    let interrupt = on_ctrl_c()?;
    let bar = Bar::new(quiet);
    let execution = execute(request, Control { interrupt: &interrupt, progress: &bar }, &mut |program| {
        if !quiet {
            announce(request, program);
        }
    });
    let (execution, recorded) = match (execution, recording) {
        (Ok(execution), recording) => {
            let recorded = recording.map(|it| finish_recording(it, &execution, &request.run.host));
            (execution, recorded)
        }
        (Err(error), recording) => {
            // The first error is the one to tell.
            let _ = recording.map(Recording::discard);
            return Err(error.into());
        }
    };
    let status = match execution.end.exit_status() {
        0 if recorded.as_ref().is_some_and(|recorded| !recorded.is_whole) => 1,
        status => status,
    };
    explain_end(&execution, quiet);
    tell_compared(&request.options, execution.end.ending(), quiet);
    if json {
        output::document(&document(request, &execution, status))?;
    } else if !quiet {
        summarize(request, &execution, list);
    }
    if let Some(recorded) = recorded {
        recorded.tell(quiet);
    }
    if let Some(error) = &execution.unwritten {
        return Err(Failure::not_kept(format!(
            "what ranks printed cannot be written: {error}; results and traces are whole"
        )));
    }
    let no_waves = tell_no_waves(&request.options);
    Ok(match status {
        0 => no_waves.unwrap_or(Status::Done),
        status => Status::Program(status),
    })
}

impl ExecutionOptions {
    /// Refuses a launcher of MPI in the place of the program: its ranks would not be those of weft.
    fn refuse_launcher(&self, job: &RanksWanted) -> Result<(), Failure> {
        let name = self.command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        if !LAUNCHERS.iter().any(|launcher| name == *launcher) {
            return Ok(());
        }
        let name = name.to_string_lossy();
        Err(Failure::input(format!(
            "weft starts the ranks itself: leave {name} and its options out, as in weft run -m {} -n {} -- \
             ./program",
            job.machine.machine, job.ranks
        )))
    }

    /// The request to the host: the program, its machine, and the limits of the run.
    fn request(
        self,
        job: RanksWanted,
        words: &[String],
        recording: Option<&Recording>,
    ) -> Result<Request, Failure> {
        let inputs = self.inputs(&job);
        let options = self.results.experiment_options(words, self.breakdown, &inputs)?;
        let options = self.rtl.put_into(options, &self.results, &inputs)?;
        Ok(Request {
            run: RunRequest {
                machine: job.machine.input()?,
                program: self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
                ranks: job.ranks,
                map: self.places.mapping()?,
                ranks_per_host: self.places.ppn,
                host: host_name(self.host),
                fast_polling: self.fast_polling,
                seed: self.seed,
                domains: self.pdid.clone(),
                breakdown: self.breakdown,
                region: self.region,
                telemetry: self.results.telemetry,
                scenario: self.beside.read()?,
            },
            options,
            recorder: recording.map(recorder),
            host: self.host,
            environment: job.environment,
            may_use_mpi: job.may_use_mpi,
            label: self.label,
            output_to_error: self.report.format.json,
            time_limit: self.time_limit,
            wall_limit: self.wall_limit,
            watchdog: Some(self.watchdog),
            command: self.command,
        })
    }

    /// The files that the run reads.
    fn inputs<'a>(&'a self, job: &'a RanksWanted) -> Vec<&'a Path> {
        let files = job.machine.file().into_iter().chain(self.places.file()).chain(self.beside.file());
        files.chain(self.command.first().map(Path::new)).collect()
    }

    /// The recording that is asked for.
    fn recording(&self, job: &RanksWanted) -> Result<Option<Recording>, Failure> {
        let Some(trace) = &self.record else { return Ok(None) };
        if self.results.timeline.as_deref().is_some_and(|timeline| located(timeline) == located(trace)) {
            return Err(Failure::input(format!(
                "--record and --timeline both name {}; name two files",
                trace.display()
            )));
        }
        let file = OutputFile { option: "--record", contents: "trace", path: trace };
        self.results.check_file(file, &self.inputs(job))?;
        let mpi = record::mpi_of_ranks(&self.command);
        Ok(Some(Recording::prepare(trace, self.results.force, mpi, None)?))
    }
}

fn recorder(recording: &Recording) -> Recorder {
    let variable = (record::PARTS_VARIABLE, recording.parts.clone());
    Recorder { library: recording.library.clone(), variable }
}

/// A recording whose program has ended.
struct Recorded {
    /// Whether it is a trace of all that the ranks did.
    is_whole: bool,
    /// The trace, and what is not in it: lines for people.
    lines: Vec<String>,
}

impl Recorded {
    /// Prints it, also where the user wants no words and something is missing.
    fn tell(&self, quiet: bool) {
        if !quiet || !self.is_whole {
            self.lines.iter().for_each(|line| say!("weft: {line}"));
        }
    }
}

/// Makes the trace. What differs between two runs of one program, such as the date, is not in it.
fn finish_recording(recording: Recording, execution: &Execution, host: &str) -> Recorded {
    let trace = recording.trace().display().to_string();
    let ended_well = execution.end == LiveEnd::Finished;
    let recorded = recording.finish(|header| {
        header.interrupted |= !ended_well;
        header.virtual_time = Some(host.to_owned());
        header.buffered_limit = Some(INJECT_LIMIT as u64);
    });
    let (metadata, without_room) = match recorded {
        Ok(Some(Converted { metadata, without_room })) => (metadata, without_room),
        Ok(None) => {
            // A job over weft.h alone has nothing to record, which is no fault of the run.
            say!("weft: nothing was recorded: no process called MPI_Init through its C interface");
            return Recorded { is_whole: true, lines: Vec::new() };
        }
        Err(error) => return Recorded { is_whole: false, lines: vec![error.to_string()] },
    };
    let operations: u64 = metadata.rank_operations.iter().sum();
    let cut = cut_off(!metadata.header.interrupted, without_room);
    let unrecorded = metadata.header.unrecorded.iter();
    let mut lines: Vec<_> =
        unrecorded.map(|(call, count)| format!("not recorded: {count} × {call}")).collect();
    lines.push(format!("{trace}: {} ranks, {operations} operations{cut}", metadata.header.ranks));
    Recorded { is_whole: without_room == 0, lines }
}

/// Names the run before it begins: a long one prints nothing else for a while.
fn announce(request: &Request, program: &Path) {
    say!(
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

/// Explains a run that did not end well, also where the user wants no other words.
fn explain_end(execution: &Execution, quiet: bool) {
    let name = end_name(execution);
    if !execution.detail.is_empty() {
        say!("weft: {name}: {}", execution.detail);
    } else if quiet && execution.end.exit_status() != 0 && execution.end != LiveEnd::Finished {
        // Otherwise the summary says so.
        say!("weft: {name}: {:.3} us of virtual time", microseconds(execution));
    }
    if !execution.others.is_empty() {
        say!("{}", execution.others);
    }
}

/// Prints the end of a run in a few lines.
fn summarize(request: &Request, execution: &Execution, list: ListOptions) {
    execution.report.rows.iter().for_each(|row| standard_error::text(&region_summary(&row.row.figures)));
    let energies = execution.report.rows.iter().filter_map(|row| row.row.figures.energy.as_ref());
    energies.for_each(|energy| say!("weft: {}", super::energy::line(energy)));
    for Figures { packets_dropped, repairs, .. } in execution.report.rows.iter().map(|row| &row.row.figures) {
        standard_error::text(&super::repairs::lines("weft", *packets_dropped, repairs));
    }
    let rows = execution.report.rows.iter().filter_map(|row| row.row.figures.breakdown.as_deref());
    rows.for_each(|classes| standard_error::text(&size_classes(classes, list)));
    standard_error::text(&groups_beside(&execution.report.beside));
    say!(
        "weft: {}: {:.3} us of virtual time, {} messages, {}B, {:.1} s of real time",
        end_name(execution),
        microseconds(execution),
        execution.messages,
        output::thousands(execution.bytes.get() as f64),
        execution.wall.as_secs_f64(),
    );
    if let Some(output) = &request.options.output {
        say!("weft: results in {}", output.directory.display());
    }
}

/// The end, with the option that chose it.
fn end_name(execution: &Execution) -> String {
    let name = execution.end.name();
    match execution.end {
        LiveEnd::TimeLimit => format!("{name} (--time-limit)"),
        LiveEnd::WallLimit => format!("{name} (--wall-limit)"),
        _ => name.to_owned(),
    }
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
        ended: execution.end.ending().name(),
        detail: Some(execution.detail.as_str()).filter(|detail| !detail.is_empty()),
        virtual_time_us: microseconds(execution),
        messages: execution.messages,
        bytes: execution.bytes.get(),
        rows: Rows::of(&execution.report),
        rtl: compared(&request.options),
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
        assert_eq!(parse_wall("1.25h"), Ok(Duration::from_secs(4500)));
        for wrong in ["", "90", "0s", "-1s", "infs", "NaNs", "s"] {
            assert!(parse_wall(wrong).is_err(), "{wrong}");
        }
    }
}
