//! The common part of commands that simulate: they run with progress and Ctrl-C, and show their report.

use super::breakdown::ListOptions;
use super::compared::{compared, tell_compared, tell_no_waves};
use crate::called;
use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::options::ReportOptions;
use crate::output;
use crate::progress::Bar;
use crate::standard_error::say;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::path::Path;
use weft_results::Ending;
use weft_sim::experiment::live::RunRequest;
use weft_sim::experiment::scenario::GroupRow;
use weft_sim::experiment::{
    BlockCompared, Control, Experiment, ExperimentOptions, Measured, Report, Request,
};

/// An experiment whose report the command shows.
pub trait Shown: Experiment {
    /// The fields that say what was asked for, at the top of the JSON document.
    type Header<'a>: Serialize
    where
        Self: 'a;

    /// The fields that say what was asked for by `words`.
    fn header(&self, words: &[String]) -> Self::Header<'_>;

    /// The fastest algorithm of each size, where several were asked for.
    fn best_by_size(_: &Report<Self::Row>) -> Vec<BestAlgorithm> {
        Vec::new()
    }

    /// The report as text, with so much of breakdowns.
    fn table(report: &Report<Self::Row>, list: ListOptions) -> String;
}

/// The fastest algorithm of a collective for one size.
#[derive(PartialEq, Debug, Serialize)]
pub struct BestAlgorithm {
    pub size_bytes: u64,
    pub algorithm: String,
    pub latency_us: f64,
}

/// Runs a request and shows its report, with so much of breakdowns.
pub fn run_and_show(
    request: &Request,
    options: &ExperimentOptions,
    report: ReportOptions,
    list: ListOptions,
) -> Result<Status, Failure> {
    let form = if report.format.json { Form::Json } else { Form::Text(list) };
    run(request, options, report.quiet, form)
}

/// Runs a request for its result directory only.
pub fn run_unshown(request: &Request, options: &ExperimentOptions, quiet: bool) -> Result<Status, Failure> {
    run(request, options, quiet, Form::Nothing)
}

/// The form in which a report is shown.
enum Form {
    Nothing,
    Json,
    Text(ListOptions),
}

fn run(request: &Request, options: &ExperimentOptions, quiet: bool, form: Form) -> Result<Status, Failure> {
    match request {
        Request::Traffic(request) => run_experiment(request, options, quiet, form),
        Request::Scenario(request) => run_experiment(request, options, quiet, form),
        Request::Replay(request) => run_experiment(request, options, quiet, form),
        Request::Osu(request) => run_experiment(request, options, quiet, form),
        Request::ExpectedBcast(request) => run_experiment(request, options, quiet, form),
        Request::Run(request) => Err(not_again(request)),
    }
}

fn run_experiment<E: Shown>(
    experiment: &E,
    options: &ExperimentOptions,
    quiet: bool,
    form: Form,
) -> Result<Status, Failure> {
    let interrupt = on_ctrl_c()?;
    let bar = Bar::new(quiet);
    let report = experiment.run(options, Control { interrupt: &interrupt, progress: &bar })?;
    drop(bar);
    tell_compared(options, report.ended, quiet);
    let status = Status::from(report.ended);
    match form {
        Form::Nothing => return Ok(status),
        Form::Json => output::document(&document(experiment, &report, options))?,
        Form::Text(list) => output::text(&text::<E>(&report, list, options))?,
    }
    if let (Status::EndedBadly | Status::Interrupted, Some(detail)) = (status, &report.detail) {
        let detail = format!("{}: {detail}", report.ended);
        if !called::keep_detail(&detail) {
            say!("weft: {detail}");
        }
    }
    let no_waves = tell_no_waves(options);
    Ok(no_waves.filter(|_| status == Status::Done).unwrap_or(status))
}

/// Real processes are not started again behind the user's back.
fn not_again(request: &RunRequest) -> Failure {
    Failure::input(format!(
        "these are results of real processes, which weft does not start again by itself: give the command \
         again, weft run -n {} … -- {}",
        request.ranks,
        request.program.join(" ")
    ))
}

/// The rows of a report, and behind them those of what was beside ranks.
pub struct Rows<'a, R>(&'a [Measured<R>], &'a [GroupRow]);

impl<'a, R> Rows<'a, R> {
    /// Those of a report.
    pub fn of(report: &'a Report<R>) -> Rows<'a, R> {
        Rows(&report.rows, &report.beside)
    }
}

impl<R: Serialize> Serialize for Rows<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.0.len() + self.1.len()))?;
        self.0.iter().try_for_each(|row| rows.serialize_element(row))?;
        self.1.iter().try_for_each(|row| rows.serialize_element(row))?;
        rows.end()
    }
}

/// The JSON document of a report: what was asked for, how it ended, the rows, how fast.
#[derive(Serialize)]
struct Document<'a, H, R: Serialize> {
    #[serde(flatten)]
    header: H,
    machine: &'a str,
    sets: &'a [String],
    ended: &'static str,
    detail: Option<&'a str>,
    rows: Rows<'a, R>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    best_by_size: Vec<BestAlgorithm>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rtl: Vec<BlockCompared>,
    packet_hops: u64,
    packet_hops_per_second: f64,
    wall_seconds: f64,
    peak_memory_bytes: u64,
    threads: u32,
    results: Option<&'a Path>,
}

fn document<'a, E: Shown>(
    experiment: &'a E,
    report: &'a Report<E::Row>,
    options: &'a ExperimentOptions,
) -> Document<'a, E::Header<'a>, E::Row> {
    let performance = &report.performance;
    Document {
        header: experiment.header(&options.command),
        machine: &experiment.machine().name,
        sets: &experiment.machine().sets,
        ended: report.ended.name(),
        detail: report.detail.as_deref(),
        rows: Rows::of(report),
        best_by_size: E::best_by_size(report),
        rtl: compared(options),
        packet_hops: performance.packet_hops,
        packet_hops_per_second: performance.packet_hops_per_second,
        wall_seconds: performance.wall_seconds,
        peak_memory_bytes: performance.peak_memory_bytes,
        threads: options.threads,
        results: directory(options),
    }
}

/// The report as text, and below it how the run ended and how fast it was.
fn text<E: Shown>(report: &Report<E::Row>, list: ListOptions, options: &ExperimentOptions) -> String {
    let performance = &report.performance;
    if report.rows.is_empty() && report.ended == Ending::Interrupted {
        let seconds = performance.wall_seconds;
        return format!("interrupted after {seconds:.1} s, before anything was measured\n");
    }
    let mut text = E::table(report, list);
    text += &format!(
        "\n{}: {} packet-hops in {:.1} s, {}/s, {}B of memory\n",
        report.ended,
        output::thousands(performance.packet_hops as f64),
        performance.wall_seconds,
        output::thousands(performance.packet_hops_per_second),
        output::thousands(performance.peak_memory_bytes as f64),
    );
    if let Some(directory) = directory(options) {
        text += &format!("results in {}\n", directory.display());
    }
    text
}

/// The result directory.
fn directory(options: &ExperimentOptions) -> Option<&Path> {
    options.output.as_ref().map(|output| output.directory.as_path())
}
