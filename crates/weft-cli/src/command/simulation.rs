//! What all commands that simulate have in common: running with progress and Ctrl-C, and showing the
//! report.

use super::{osu, replay, traffic};
use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::output;
use crate::progress::Bar;
use serde::Serialize;
use std::path::Path;
use weft_sim::experiment::live::RunRequest;
use weft_sim::experiment::{self, Context, MachineInput, Report, Request, RunOptions};

/// Runs a request and shows its report.
pub fn run_and_show(
    request: &Request,
    options: &RunOptions,
    quiet: bool,
    json: bool,
) -> Result<Status, Failure> {
    let interrupt = on_ctrl_c()?;
    let bar = Bar::new(quiet);
    let context = Context { interrupt: &interrupt, progress: &bar };
    match request {
        Request::Traffic(request) => {
            let report = experiment::traffic::run(request, options, context)?;
            drop(bar);
            let header = traffic::header(request);
            show(&report, &header, &request.machine, options, json, traffic::table)
        }
        Request::Replay(request) => {
            let report = experiment::replay::run(request, options, context)?;
            drop(bar);
            let header = replay::header(request);
            show(&report, &header, &request.machine, options, json, replay::table)
        }
        Request::Osu(request) => {
            let report = experiment::osu::run(request, options, context)?;
            drop(bar);
            let header = osu::header(request);
            show(&report, &header, &request.machine, options, json, osu::table)
        }
        Request::ExpectedBcast(request) => {
            let report = experiment::osu::run_expected(request, options, context)?;
            drop(bar);
            let header = osu::expected_header(request);
            show(&report, &header, &request.machine, options, json, osu::expected_table)
        }
        Request::Run(request) => Err(not_again(request)),
    }
}

/// Real processes are not started again behind the user's back.
fn not_again(request: &RunRequest) -> Failure {
    Failure::input(format!(
        "these are results of real processes, which weft does not start again by itself: give the command again, \
         weft run -n {} … -- {}",
        request.ranks,
        request.program.join(" ")
    ))
}

/// Runs a request for its result directory only.
pub fn run_quietly(request: &Request, options: &RunOptions, quiet: bool) -> Result<Status, Failure> {
    let interrupt = on_ctrl_c()?;
    let bar = Bar::new(quiet);
    let context = Context { interrupt: &interrupt, progress: &bar };
    Ok(match request {
        Request::Traffic(request) => experiment::traffic::run(request, options, context)?.ended,
        Request::Replay(request) => experiment::replay::run(request, options, context)?.ended,
        Request::Osu(request) => experiment::osu::run(request, options, context)?.ended,
        Request::ExpectedBcast(request) => experiment::osu::run_expected(request, options, context)?.ended,
        Request::Run(request) => return Err(not_again(request)),
    }
    .into())
}

/// The JSON document of a report: what was asked for, how it ended, the rows, how fast.
#[derive(Serialize)]
struct Document<'a, H, R: Serialize> {
    #[serde(flatten)]
    header: &'a H,
    machine: &'a str,
    sets: &'a [String],
    ended: &'static str,
    detail: Option<&'a str>,
    rows: &'a [experiment::Measured<R>],
    packet_hops: u64,
    packet_hops_per_second: f64,
    wall_seconds: f64,
    peak_memory_bytes: u64,
    threads: u32,
    results: Option<&'a Path>,
}

fn show<H: Serialize, R: Serialize>(
    report: &Report<R>,
    header: &H,
    machine: &MachineInput,
    options: &RunOptions,
    json: bool,
    table: impl FnOnce(&Report<R>) -> String,
) -> Result<Status, Failure> {
    let performance = &report.performance;
    let results = options.output.as_ref().map(|output| output.directory.as_path());
    if json {
        output::document(&Document {
            header,
            machine: &machine.name,
            sets: &machine.sets,
            ended: report.ended.name(),
            detail: report.detail.as_deref(),
            rows: &report.rows,
            packet_hops: performance.packet_hops,
            packet_hops_per_second: performance.packet_hops_per_second,
            wall_seconds: performance.wall_seconds,
            peak_memory_bytes: performance.peak_memory_bytes,
            threads: options.threads,
            results,
        })?;
    } else {
        let mut text = table(report);
        text += &format!(
            "\n{}: {} packet-hops in {:.1} s, {}/s, {}B of memory\n",
            report.ended,
            output::thousands(performance.packet_hops as f64),
            performance.wall_seconds,
            output::thousands(performance.packet_hops_per_second),
            output::thousands(performance.peak_memory_bytes as f64),
        );
        if let Some(directory) = results {
            text += &format!("results in {}\n", directory.display());
        }
        output::text(&text)?;
    }
    let status = Status::from(report.ended);
    if let (Status::EndedBadly, Some(detail)) = (status, &report.detail) {
        eprintln!("weft: {}: {detail}", report.ended);
    }
    Ok(status)
}
