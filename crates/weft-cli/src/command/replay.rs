//! `weft replay`: recorded programs on a machine.

use super::breakdown::{ListOptions, size_classes};
use super::live_view::{LiveOptions, LiveView};
use super::region::{region_in_words, region_ranks};
use super::scenario::{BesideOptions, groups_beside};
use super::simulation::{Shown, run_and_show};
use super::trace::{SpeedOptions, missing};
use crate::called;
use crate::exit::{Failure, Status};
use crate::options::{
    MachineOptions, PlaceOptions, RtlArguments, SimulationOptions, mapping_name, parse_seed,
};
use crate::output::{self, decimal, percent, thousands};
use crate::place::OutputFile;
use crate::standard_error::say;
use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use std::path::{Path, PathBuf};
use weft_results::{Ending, Table};
use weft_sim::experiment::app::KernelName;
use weft_sim::experiment::replay::{
    BusyLink, ComputeScale, Figures, Region, ReplayReport, ReplayRequest, ReplayRow, TraceInput, Wildcards,
    as_recorded,
};
use weft_sim::experiment::{ExperimentError, ExperimentOptions, Request};
use weft_units::Span;

/// Options of `weft replay`.
#[derive(Args)]
pub struct ReplayOptions {
    /// Traces in any format, or kernels of weft app such as halo3d@64,steps=10, unless a file is called so;
    /// several are replayed side by side
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    traces: Vec<PathBuf>,

    #[command(flatten)]
    jobs: JobOptions,
}

impl ReplayOptions {
    /// Runs it.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        let jobs: Vec<JobName> = self.traces.into_iter().map(JobName::Trace).collect();
        self.jobs.run(&jobs, words)
    }
}

/// A job as a command names it.
pub enum JobName {
    /// A trace, or the program of this name that the caller steps, or the kernel where no file has this name.
    Trace(PathBuf),
    /// A kernel, whatever files there are.
    Kernel(KernelName),
}

impl JobName {
    /// The name of a trace; `None`: no file is meant.
    fn path(&self) -> Option<&Path> {
        match self {
            JobName::Trace(path) => Some(path),
            JobName::Kernel(_) => None,
        }
    }
}

/// Options of a replay beside its traces.
#[derive(Args)]
pub struct JobOptions {
    #[command(flatten)]
    machine: MachineOptions,

    #[command(flatten)]
    places: PlaceOptions,

    /// When each trace starts, one time for each, such as 0,10ms; by default all at once
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', value_parser = parse_start)]
    start: Vec<Span>,

    /// Run each trace alone as well, on the same places, and show how much slower it is beside the others
    #[arg(long)]
    isolated: bool,

    /// Write what each trace sent over each link, as the table job_links. Every packet is followed, which
    /// takes longer
    #[arg(long, requires = "output", conflicts_with = "save_every")]
    links_by_job: bool,

    /// The message that a wildcard receive takes
    #[arg(long, value_name = "WHICH", default_value = "recorded")]
    wildcards: WildcardChoice,

    /// Carry real bytes in messages, and compare the memory of source and target at the end of each: a
    /// difference ends the run as lost-data (exit status 1)
    #[arg(long)]
    data: bool,

    /// Show where the time of each message went, from its post to its delivery: means by size, and with -o
    /// every piece of every message in the table `pieces`
    #[arg(long, conflicts_with = "save_every")]
    breakdown: bool,

    #[command(flatten)]
    list: ListOptions,

    /// A factor on the time of each computation of the traces: 0.25 for processors that are four times as
    /// fast, 0 to leave computation out
    #[arg(long, value_name = "FACTOR", default_value_t, allow_negative_numbers = true)]
    compute_scale: ComputeScale,

    #[command(flatten)]
    speed: SpeedOptions,

    /// Report only what lies in region K of the program: MPI_Pcontrol(K) opens it, MPI_Pcontrol(0) closes it.
    /// All of the trace is simulated
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    region: Option<Region>,

    #[command(flatten)]
    beside: BesideOptions,

    /// Seed of the random mapping and of all other random decisions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_seed)]
    #[arg(allow_negative_numbers = true)]
    seed: u64,

    #[command(flatten)]
    live: LiveOptions,

    #[command(flatten)]
    rtl: RtlArguments,

    #[command(flatten)]
    simulation: SimulationOptions,
}

/// The message that a wildcard receive takes.
#[derive(Clone, Copy, ValueEnum)]
enum WildcardChoice {
    /// the one that matched when the trace was recorded
    Recorded,
    /// the first that arrives on the machine
    Free,
}

/// A time from 0 on; 0 needs no unit.
fn parse_start(text: &str) -> Result<Span, String> {
    match text.trim() {
        "0" => Ok(Span::ZERO),
        text => text.parse::<Span>().map_err(|error| error.to_string()),
    }
}

impl JobOptions {
    /// Replays `jobs`.
    pub fn run(mut self, jobs: &[JobName], words: &[String]) -> Result<Status, Failure> {
        let traces: Vec<&Path> = jobs.iter().filter_map(JobName::path).collect();
        let others = self.machine.set_others(&as_recorded(&recorded(&traces))?);
        self.live.ask_for_telemetry(&mut self.simulation.results);
        let inputs = self.machine.file().into_iter().chain(self.places.file());
        let inputs = inputs.chain(self.beside.file());
        let inputs: Vec<_> = inputs.chain(traces.iter().copied()).collect();
        let options = self.simulation.experiment_options(words, self.breakdown, &inputs)?;
        let mut options = self.rtl.put_into(options, &self.simulation.results, &inputs)?;
        if let Some(path) = &options.timeline {
            let file = OutputFile { option: "--timeline", contents: "timeline", path };
            file.refuse_trace(&traces, &self.speed.options())?;
        }
        if let Some(output) = &mut options.output {
            let has_jobs = jobs.len() > 1 && self.beside.file().is_none();
            let rates = self.simulation.results.telemetry.is_some() && has_jobs;
            output.tables.extend(rates.then_some(Table::JobRates));
            output.tables.extend(self.links_by_job.then_some(Table::JobLinks));
        }
        let request = Request::Replay(self.request(jobs)?);
        if !others.is_empty() && !self.simulation.report.quiet {
            say!(
                "weft: the trace is of weft run and is replayed with its library: --set {}; give others \
                 with --set",
                others.join(" --set ")
            );
        }
        let live = self.live.is_wanted();
        let options = ExperimentOptions { live, ..options };
        let run = || run_and_show(&request, &options, self.simulation.report, self.list);
        match options.output.as_ref().filter(|_| live) {
            Some(output) => LiveView::during(&output.directory, run),
            None => run(),
        }
    }

    fn input(&self, job: &JobName) -> Result<TraceInput, ExperimentError> {
        let path = match job {
            JobName::Trace(path) => path,
            JobName::Kernel(name) => return Ok(TraceInput::kernel(name.clone())),
        };
        match called::program(path) {
            Some(program) => Ok(TraceInput::stepped(program)),
            None => Ok(TraceInput { speed: self.speed.speed(), ..TraceInput::at(path)? }),
        }
    }

    /// Refuses a speed where no trace is of a format that has one.
    fn refuse_idle_speed(&self, traces: &[TraceInput]) -> Result<(), Failure> {
        match self.speed.speed().filter(|_| traces.iter().all(|trace| trace.kernel.is_some())) {
            None => Ok(()),
            Some(_) => Err(Failure::input(
                "--speed is of a trace of SimGrid or Chakra; the cores of a kernel are those of [host.core]: \
                 --set host.core.clock=2GHz, or --compute-scale",
            )),
        }
    }

    fn request(&self, jobs: &[JobName]) -> Result<ReplayRequest, Failure> {
        let wildcards = match self.wildcards {
            WildcardChoice::Recorded => Wildcards::Recorded,
            WildcardChoice::Free => Wildcards::Free,
        };
        let traces: Vec<TraceInput> = jobs.iter().map(|job| self.input(job)).collect::<Result<_, _>>()?;
        self.refuse_idle_speed(&traces)?;
        Ok(ReplayRequest {
            machine: self.machine.input()?,
            traces,
            starts: self.start.clone(),
            isolated: self.isolated,
            map: self.places.mapping()?,
            ranks_per_host: self.places.ppn,
            wildcards,
            seed: self.seed,
            data: self.data,
            breakdown: self.breakdown,
            compute_scale: self.compute_scale,
            region: self.region,
            telemetry: self.simulation.results.telemetry,
            scenario: self.beside.read()?,
        })
    }
}

/// Those of the traces that the caller does not step.
fn recorded<'a>(traces: &[&'a Path]) -> Vec<&'a Path> {
    traces.iter().copied().filter(|path| called::program(path).is_none()).collect()
}

/// The fields of the request, at the top of the JSON document.
#[derive(Serialize)]
pub struct Header<'a> {
    command: &'static str,
    traces: Vec<&'a str>,
    map: &'static str,
    wildcards: Wildcards,
    seed: u64,
}

impl Shown for ReplayRequest {
    type Header<'a> = Header<'a>;

    fn header(&self, words: &[String]) -> Header<'_> {
        // The request is the same, and results are those of a replay: only whoever typed it knows.
        let is_app = words.get(1).is_some_and(|command| command == "app");
        Header {
            command: if is_app { "app" } else { "replay" },
            traces: self.traces.iter().map(|trace| trace.name.as_str()).collect(),
            map: mapping_name(&self.map),
            wildcards: self.wildcards,
            seed: self.seed,
        }
    }

    fn table(report: &ReplayReport, list: ListOptions) -> String {
        // The figures of a replay that did not come to its end are not those of its programs.
        let until = if report.ended == Ending::Interrupted { " until the interruption" } else { "" };
        let mut text = String::new();
        for row in report.rows.iter().map(|measured| &measured.row) {
            text += &figures_table(&row.trace, &row.figures, until);
            text += &missing(&row.unrecorded);
            text += "\n";
            if let Some(region) = &row.figures.region {
                text += &region_ranks(region);
                text += "\n";
            }
            if let Some(classes) = &row.figures.breakdown {
                text += &size_classes(classes, list);
            }
        }
        text += &jobs_table(report, until);
        let groups = groups_beside(&report.beside);
        if !groups.is_empty() {
            text += &(groups + "\n");
        }
        // All traces share the links.
        if let Some(last) = report.rows.last() {
            text += &links_table(&last.row.figures.busiest_links, until);
            let Figures { packets_dropped, repairs, .. } = &last.row.figures;
            text += &super::repairs::lines("all ranks", *packets_dropped, repairs);
            if let Some(energy) = &last.row.figures.energy {
                text += &format!("\n{}{until}\n", super::energy::line(energy));
            }
        }
        text
    }
}

/// The figures of a trace, line by line; each says `until` when they hold.
fn figures_table(trace: &str, figures: &Figures, until: &str) -> String {
    let share = percent(figures.communication_share);
    let measured = |figure: String| figure + until;
    let computation = match figures.memory_wait_share {
        Some(wait) => {
            format!("{}, of which wait for memory {}", percent(figures.computation_share), percent(wait))
        }
        None => percent(figures.computation_share),
    };
    let in_region = figures.region.as_ref().map(|region| {
        [
            ["region", &region_in_words(region)].map(str::to_owned),
            ["run time of all".to_owned(), measured(format!("{:.3} us", region.program_run_time_us))],
        ]
    });
    let lines = [
        ["trace", trace],
        ["run time", &measured(format!("{:.3} us", figures.run_time_us))],
        ["ranks", &figures.ranks.to_string()],
        ["computation", &measured(computation)],
        ["communication", &measured(format!("{share}, of which wait {}", percent(figures.wait_share)))],
        ["messages", &measured(figures.messages.to_string())],
        ["bytes", &measured(format!("{}B", thousands(figures.bytes as f64)))],
        ["completion time mean", &measured(format!("{} us", decimal(figures.completion_time_mean_us)))],
        ["completion time p99", &measured(format!("{} us", decimal(figures.completion_time_p99_us)))],
    ];
    let mut lines: Vec<[String; 2]> = lines.into_iter().map(|line| line.map(str::to_owned)).collect();
    lines.splice(1..1, in_region.into_iter().flatten());
    output::table(["", ""], [false, false], lines.into_iter())
}

/// A line for each job, where rows say what is of jobs.
fn jobs_table(report: &ReplayReport, until: &str) -> String {
    let line = |row: &ReplayRow| {
        let job = row.job.as_ref()?;
        let time = |us: f64| format!("{us:.3}");
        Some([
            job.job.to_string(),
            row.trace.clone(),
            row.figures.ranks.to_string(),
            time(job.start_us),
            time(job.end_us),
            time(row.figures.run_time_us),
            format!("{:.3}", job.throughput_gbps),
            decimal(job.isolated_run_time_us),
            decimal(job.slowdown),
        ])
    };
    let text = output::table_of_some(
        [
            &format!("job{until}"),
            "trace",
            "ranks",
            "start (us)",
            "end (us)",
            "run time (us)",
            "throughput (Gb/s)",
            "alone (us)",
            "slow-down",
        ],
        [true, false, true, true, true, true, true, true, true],
        report.rows.iter().filter_map(|measured| line(&measured.row)),
    );
    if text.is_empty() { text } else { text + "\n" }
}

fn links_table(links: &[BusyLink], until: &str) -> String {
    let links = links.iter().map(|link| {
        [
            link.name.clone(),
            link.class.clone(),
            percent(link.utilization),
            link.packets.to_string(),
            format!("{:.3}", link.stall_us),
        ]
    });
    output::table(
        [&format!("busiest links{until}"), "class", "utilization", "packets", "stall (us)"],
        [false, false, true, true, true],
        links,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches figures of a part of a program that look like those of all of it.
    #[test]
    fn figures_until_an_interruption_say_so() {
        let figures = serde_json::json!({
            "run_time_us": 1.0, "first_rank": 0, "ranks": 2, "computation_share": 0.5,
            "communication_share": 0.5, "wait_share": 0.1, "messages": 3, "bytes": 4,
            "completion_time_mean_us": null, "completion_time_p99_us": null, "packet_hops": 1,
            "packets_dropped": 0, "seed": 1, "busiest_links": [],
        });
        let figures: Figures = serde_json::from_value(figures).unwrap();
        let text = figures_table("ring.weft", &figures, " until the interruption");
        let marked = text.lines().filter(|line| line.ends_with("until the interruption")).count();
        assert_eq!(marked, 7, "{text}");
        assert!(!figures_table("ring.weft", &figures, "").contains("until"));
    }
}
