//! `weft explain`: why a program takes as long as it does.

use super::rerun::check_trace;
use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::options::{ReportOptions, ThreadOptions, parse_positive_span, whole_number};
use crate::output::{self, percent};
use crate::progress::Bar;
use crate::standard_error::say;
use clap::{Args, ValueHint};
use serde::Serialize;
use std::path::{Path, PathBuf};
use weft_results::Ending;
use weft_sim::experiment::explain::{self, DEFAULT_TOP, Diagnosis, Explained};
use weft_sim::experiment::kernels::{KernelActivity, KernelFigures, KernelLimit};
use weft_sim::experiment::path::CategoryRow;
use weft_sim::experiment::replay::Region;
use weft_sim::experiment::{Control, Request, read_manifest, read_request};
use weft_units::{Bytes, Span};

/// Ranks in the text.
const RANKS_SHOWN: usize = 32;

/// Options of `weft explain`.
#[derive(Args)]
pub struct ExplainOptions {
    /// A directory that weft replay, weft osu or weft run wrote with -o
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// Explain only the last part of a replay, such as 1ms; explaining all of a long one takes much memory
    #[arg(long, value_name = "TIME", value_parser = parse_positive_span)]
    last: Option<Span>,

    /// Explain only what lies in region K of the program: MPI_Pcontrol(K) opens it, MPI_Pcontrol(0) closes
    /// it. A real program must have been run with the same --region
    #[arg(long, value_name = "K", allow_negative_numbers = true, conflicts_with = "last")]
    region: Option<Region>,

    /// Explain only this size of a benchmark, such as 4K; all take long
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = parse_size)]
    size: Option<Bytes>,

    /// Places, and longest pieces, that are listed
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TOP as u32)]
    #[arg(value_parser = whole_number(1..=1_000_000), allow_negative_numbers = true)]
    top: u32,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    report: ReportOptions,
}

impl ExplainOptions {
    /// Explains the result.
    pub fn run(self) -> Result<Status, Failure> {
        let mut request = read_request(&self.directory)?;
        let manifest = read_manifest(&self.directory)?;
        request.traces_mut().iter_mut().try_for_each(check_trace)?;
        // Real processes were explained when they ended.
        if !self.report.quiet && !matches!(request, Request::Run(_)) {
            say!("weft: running {} again, to record its critical path", self.directory.display());
        }
        let interrupt = on_ctrl_c()?;
        let bar = Bar::new(self.report.quiet);
        let control = Control { interrupt: &interrupt, progress: &bar };
        let Self { last, region, size, .. } = self;
        let (threads, top) = (self.threads.threads, self.top as usize);
        let options = explain::ExplainOptions { last, threads, region, size, top };
        let explained = explain::run(&request, &manifest, options, control)?;
        drop(bar);
        let Some(runs) = explained else { return Ok(Status::Interrupted) };
        if self.report.format.json {
            let ended = Some(manifest.ended).filter(|ended| *ended != Ending::Finished);
            let directory = self.directory.to_string_lossy();
            let document = Document::of(&directory, &request, &runs);
            output::document(&Document { ended: ended.map(Ending::name), ..document })?;
        } else {
            let note = note(&request, &runs);
            let texts: Vec<String> = runs.iter().map(|run| verdict(run, note) + &text(run)).collect();
            output::text(&(remark(manifest.ended) + &texts.join("\n")))?;
        }
        Ok(Status::Done)
    }
}

/// The explanation of a whole result, run again; `None`: the user interrupted it.
pub fn explained_again(
    directory: &Path,
    threads: u32,
    quiet: bool,
) -> Result<Option<Vec<serde_json::Value>>, Failure> {
    let mut request = read_request(directory)?;
    let manifest = read_manifest(directory)?;
    request.traces_mut().iter_mut().try_for_each(check_trace)?;
    let interrupt = on_ctrl_c()?;
    let bar = Bar::new(quiet);
    let control = Control { interrupt: &interrupt, progress: &bar };
    let options = explain::ExplainOptions { last: None, threads, region: None, size: None, top: DEFAULT_TOP };
    let explained = explain::run(&request, &manifest, options, control)?;
    let value = |run: &Explained| serde_json::to_value(run).map_err(|error| Failure::bug(error.to_string()));
    explained.map(|runs| runs.iter().map(value).collect()).transpose()
}

/// The remark above the explanation of a run that did not come to its end.
fn remark(ended: Ending) -> String {
    match ended {
        Ending::Finished => String::new(),
        ended => format!("the run ended with {ended}: explained is what its ranks had done by then\n\n"),
    }
}

/// The remark about computation that takes no time: nobody can be late by it.
fn note(request: &Request, runs: &[Explained]) -> Option<&'static str> {
    let computes = |run: &Explained| run.diagnosis.as_ref().is_some_and(|found| found.efficiency.is_some());
    match request {
        // The kernels of a dataflow design have clocks of their own.
        Request::Run(_) if runs.iter().any(|run| run.kernels.is_some()) => None,
        Request::Run(request) if request.host == "none" => Some(
            "Computation counts no time (--host none), so that no imbalance shows: run it with --host cpu.",
        ),
        Request::Replay(_) if !runs.iter().any(computes) => Some(
            "No computation is in the recording, so that no imbalance shows: record it with weft run \
             --host cpu.",
        ),
        _ => None,
    }
}

/// The sentence that names the pattern, and how much of the run is computation.
fn verdict(explained: &Explained, note: Option<&str>) -> String {
    if let Some(limit) = &explained.kernels {
        return kernels_text(limit);
    }
    let Some(Diagnosis { sentence, efficiency, .. }) = &explained.diagnosis else { return String::new() };
    let note = note.map_or(String::new(), |note| format!("{note}\n"));
    let efficiency = efficiency.map_or(String::new(), |efficiency| {
        format!("Parallel efficiency {}: the ranks compute for so much of their time.\n", percent(efficiency))
    });
    format!("{sentence}\n{note}{efficiency}\n")
}

/// The kernels of a dataflow design, and which of them is the limit.
fn kernels_text(limit: &KernelLimit) -> String {
    let row = |own: &KernelFigures| {
        let waits = |activity| own.waits.iter().filter(move |wait| wait.activity == activity);
        let share = |activity| percent(waits(activity).fold(0.0, |sum, wait| sum + wait.share));
        let longest = own.waits.first().map_or(String::new(), |wait| {
            format!("{} {} ({})", wait.activity.name(), wait.stream, percent(wait.share))
        });
        [
            own.rank.to_string(),
            own.kernel.clone(),
            us(own.time_us),
            percent(own.works),
            share(KernelActivity::Reads),
            share(KernelActivity::Writes),
            longest,
        ]
    };
    let table = output::table(
        ["node", "kernel", "time (us)", "works", "waits to read", "to write", "longest wait"],
        [true, false, true, true, true, true, false],
        limit.kernels.iter().map(row),
    );
    format!("{}\n\n{table}\n", limit.sentences.join("\n"))
}

/// The report of `weft explain --json`.
#[derive(Serialize)]
struct Document<'a> {
    command: &'static str,
    directory: &'a str,
    machine: &'a str,
    /// How the run ended, where it did not come to its end: what its ranks had done by then is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'static str>,
    /// The reason for which no imbalance shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// The categories of all views of all runs.
    rows: Vec<ViewRow<'a>>,
    /// The whole explanation.
    runs: &'a [Explained],
}

/// A category of one view.
#[derive(Serialize)]
struct ViewRow<'a> {
    run: u32,
    of: &'a str,
    /// `critical path`, `own time` of the rank that it ends at, `mean time` of all ranks.
    view: &'static str,
    #[serde(flatten)]
    row: &'a CategoryRow,
}

/// The views of a run.
fn views(explained: &Explained) -> [(&'static str, &[CategoryRow]); 3] {
    [
        ("critical path", &explained.critical_path),
        ("own time", &explained.own_time),
        ("mean time", &explained.mean_time),
    ]
}

impl<'a> Document<'a> {
    fn of(directory: &'a str, request: &'a Request, runs: &'a [Explained]) -> Document<'a> {
        let machine = request.machine().name.as_str();
        let rows = runs.iter().flat_map(|explained| {
            let Explained { run, of, .. } = explained;
            let rows = move |(view, rows): (_, &'a [CategoryRow])| {
                rows.iter().map(move |row| ViewRow { run: *run, of, view, row })
            };
            views(explained).into_iter().flat_map(rows)
        });
        let note = note(request, runs);
        Document { command: "explain", directory, machine, ended: None, note, rows: rows.collect(), runs }
    }
}

fn parse_size(text: &str) -> Result<Bytes, String> {
    text.parse::<Bytes>().map_err(|error| error.to_string())
}

/// Categories as a table, those without time left out, with their sum.
pub fn categories(rows: &[CategoryRow]) -> String {
    let row = |row: &CategoryRow| [row.category.clone(), format!("{:.6}", row.time_us), percent(row.share)];
    let total = ["total".to_owned(), format!("{:.6}", sum(rows)), String::new()];
    let rows = rows.iter().filter(|row| row.time_us > 0.0).map(row);
    output::table(["category", "time (us)", "share"], [false, true, true], rows.chain([total]))
}

fn sum(rows: &[CategoryRow]) -> f64 {
    rows.iter().map(|row| row.time_us).sum()
}

/// The views side by side.
fn side_by_side(explained: &Explained) -> String {
    let views = views(explained).map(|(_, rows)| rows);
    let mut names: Vec<&str> = Vec::new();
    for row in views.iter().flat_map(|rows| rows.iter()) {
        if row.time_us > 0.0 && !names.contains(&row.category.as_str()) {
            names.push(&row.category);
        }
    }
    let cells = |category: &str| {
        let cell = |rows: &[CategoryRow]| {
            let row = rows.iter().find(|row| row.category == category);
            row.map_or(("-".to_owned(), String::new()), |row| (us(row.time_us), percent(row.share)))
        };
        let [(a, a_share), (b, b_share), (c, c_share)] = views.map(cell);
        [category.to_owned(), a, a_share, b, b_share, c, c_share]
    };
    let [a, b, c] = views.map(|rows| us(sum(rows)));
    let total = ["total".to_owned(), a, String::new(), b, String::new(), c, String::new()];
    output::table(
        ["", "path (us)", "", "last rank (us)", "", "mean (us)", ""],
        [false, true, true, true, true, true, true],
        names.into_iter().map(cells).chain([total]),
    )
}

fn us(time: f64) -> String {
    format!("{time:.3}")
}

/// A run for people.
fn text(explained: &Explained) -> String {
    let Explained { of, from_us, to_us, rank, .. } = explained;
    let mut text = match explained.region {
        None => format!("{of}: from {from_us:.3} to {to_us:.3} us, where {rank} ends\n\n"),
        Some(region) => {
            format!("{of}, region {region}: from {from_us:.3} to {to_us:.3} us, where {rank} leaves it\n\n")
        }
    };
    text += &side_by_side(explained);
    let places = explained.places.iter().map(|row| {
        let pieces = row.pieces.to_string();
        [us(row.time_us), percent(row.share), pieces, row.what.clone(), row.place.clone()]
    });
    text += "\n";
    text += &output::table(
        ["time (us)", "share", "pieces", "critical path: what", "where"],
        [true, true, true, false, false],
        places,
    );
    let longest = explained
        .longest
        .iter()
        .map(|row| [us(row.time_ns / 1e3), us(row.from_ns / 1e3), row.what.clone(), row.place.clone()]);
    text += "\n";
    text += &output::table(
        ["time (us)", "at (us)", "longest pieces: what", "where"],
        [true, true, false, false],
        longest,
    );
    text + "\n" + &ranks_text(explained)
}

/// The own time of ranks.
fn ranks_text(explained: &Explained) -> String {
    let row = |rank: &weft_sim::experiment::path::RankTimeRow| {
        let share = |category: &str| {
            let row = rank.categories.iter().find(|row| row.category == category);
            percent(row.map_or(0.0, |row| row.share))
        };
        [
            rank.name.clone(),
            us(rank.time_us),
            share("computation"),
            share("software"),
            share("interface"),
            share("network latency"),
            share("serialization"),
            share("contention"),
            share("late partner"),
        ]
    };
    let table = output::table(
        ["rank", "own (us)", "comp.", "softw.", "interf.", "netw.", "serial.", "cont.", "late"],
        [false, true, true, true, true, true, true, true, true],
        explained.ranks.iter().take(RANKS_SHOWN).map(row),
    );
    match explained.ranks.len().checked_sub(RANKS_SHOWN) {
        Some(more @ 1..) => format!("{table}and {more} more ranks: see --json\n"),
        _ => table,
    }
}
