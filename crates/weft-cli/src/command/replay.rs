//! `weft replay`: recorded programs on a machine.

use super::breakdown::size_classes;
use super::simulation::run_and_show;
use crate::exit::{Failure, Status};
use crate::options::{MachineOptions, PlaceOptions, SayOptions, SimulationOptions, mapping_name};
use crate::output::{self, decimal, percent, thousands};
use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use std::path::PathBuf;
use weft_sim::experiment::Request;
use weft_sim::experiment::replay::{
    BusyLink, Figures, ReplayReport, ReplayRequest, TraceInput, Wildcards, as_recorded,
};

/// Options of `weft replay`.
#[derive(Args)]
pub struct ReplayOptions {
    #[command(flatten)]
    machine: MachineOptions,

    /// Traces, as `weft record` makes them; several run side by side
    #[arg(required = true, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    traces: Vec<PathBuf>,

    #[command(flatten)]
    places: PlaceOptions,

    /// Which message a wildcard receive takes
    #[arg(long, value_name = "WHICH", default_value = "recorded")]
    wildcards: WildcardChoice,

    /// Messages carry real bytes, and the memory of source and target is compared at the end of each: a
    /// difference ends the run as lost-data (exit status 1)
    #[arg(long)]
    data: bool,

    /// Show where the time of each message went, from its post to its delivery: means by size, and with -o every piece of every
    /// message in the table pieces
    #[arg(long, conflicts_with = "save_every")]
    breakdown: bool,

    /// Seed of the random mapping and of all random decisions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    simulation: SimulationOptions,

    #[command(flatten)]
    say: SayOptions,
}

/// Which message a wildcard receive takes.
#[derive(Clone, Copy, ValueEnum)]
enum WildcardChoice {
    /// the one that matched when the trace was recorded
    Recorded,
    /// the first that arrives on the machine
    Free,
}

impl ReplayOptions {
    /// Runs it.
    pub fn run(mut self, words: &[String]) -> Result<Status, Failure> {
        let others = self.machine.set_others(&as_recorded(&self.traces)?);
        if !others.is_empty() && !self.simulation.quiet {
            eprintln!(
                "weft: recorded by weft run: replayed with its library, --set {}; give others with --set",
                others.join(" --set ")
            );
        }
        let options = self.simulation.run_options(words, self.breakdown)?;
        let request = Request::Replay(self.request()?);
        run_and_show(&request, &options, self.simulation.quiet, self.say.json)
    }

    fn request(&self) -> Result<ReplayRequest, Failure> {
        let wildcards = match self.wildcards {
            WildcardChoice::Recorded => Wildcards::Recorded,
            WildcardChoice::Free => Wildcards::Free,
        };
        Ok(ReplayRequest {
            machine: self.machine.input()?,
            traces: self.traces.iter().map(|path| TraceInput::at(path)).collect::<Result<_, _>>()?,
            map: self.places.mapping()?,
            ranks_per_host: self.places.ppn,
            wildcards,
            seed: self.seed,
            data: self.data,
            breakdown: self.breakdown,
        })
    }
}

/// What was asked for, at the top of the JSON document.
#[derive(Serialize)]
pub struct Header<'a> {
    command: &'static str,
    traces: Vec<&'a str>,
    map: &'static str,
    wildcards: Wildcards,
    seed: u64,
}

/// The header of a request.
pub fn header(request: &ReplayRequest) -> Header<'_> {
    Header {
        command: "replay",
        traces: request.traces.iter().map(|trace| trace.name.as_str()).collect(),
        map: mapping_name(&request.map),
        wildcards: request.wildcards,
        seed: request.seed,
    }
}

/// The report for people.
pub fn table(report: &ReplayReport) -> String {
    let mut text = String::new();
    for row in report.rows.iter().map(|measured| &measured.row) {
        text += &figures_table("trace", &row.trace, &row.figures);
        text += "\n";
        if let Some(classes) = &row.figures.breakdown {
            text += &size_classes(classes);
        }
    }
    // All traces share the links.
    if let Some(last) = report.rows.last() {
        text += &links_table(&last.row.figures.busiest_links);
    }
    text
}

/// What the ranks of a program did.
fn figures_table(what: &str, name: &str, figures: &Figures) -> String {
    let share = percent(figures.communication_share);
    let lines = [
        [what, name],
        ["run time", &format!("{:.3} us", figures.run_time_us)],
        ["ranks", &figures.ranks.to_string()],
        ["computation", &percent(figures.computation_share)],
        ["communication", &format!("{share}, of which wait {}", percent(figures.wait_share))],
        ["messages", &figures.messages.to_string()],
        ["bytes", &format!("{}B", thousands(figures.bytes as f64))],
        ["completion time mean", &format!("{} us", decimal(figures.completion_time_mean_us))],
        ["completion time p99", &format!("{} us", decimal(figures.completion_time_p99_us))],
    ];
    output::table(["", ""], [false, false], lines.into_iter().map(|line| line.map(str::to_owned)))
}

fn links_table(links: &[BusyLink]) -> String {
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
        ["busiest links", "class", "utilization", "packets", "stall (us)"],
        [false, false, true, true, true],
        links,
    )
}
