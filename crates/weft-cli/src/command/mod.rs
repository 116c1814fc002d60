//! The commands, one file each.

mod apeiron;
mod app;
mod breakdown;
mod compare;
mod compared;
mod doctor;
mod energy;
mod explain;
mod live_view;
mod machine;
mod osu;
mod pages;
mod plot;
mod record;
mod region;
mod repairs;
mod replay;
mod report;
mod rerun;
mod run;
mod scenario;
mod simulation;
mod sweep;
mod trace;
mod traffic;
mod validate;
mod view;

use crate::exit::{Failure, Status};
use clap::{CommandFactory as _, Subcommand};

/// The commands of weft.
#[derive(Subcommand)]
pub enum Command {
    /// List, show and check machines: values with their sources, figures, the deadlock proof
    #[command(subcommand)]
    Machine(machine::MachineCommand),
    /// Simulate traffic patterns at one or several loads: throughput and latency curves
    Traffic(traffic::TrafficOptions),
    /// Run the OSU micro-benchmarks on simulated ranks: latency, bandwidth, collectives
    Osu(osu::OsuOptions),
    /// Run an application kernel, which needs no recording, on any number of simulated ranks
    App(app::AppOptions),
    /// Check, show, draw, build and run APEIRON designs: dataflow kernels on the Communication IP
    #[command(subcommand)]
    Apeiron(apeiron::ApeironCommand),
    /// Run a real MPI program and record a trace of it
    Record(record::RecordOptions),
    /// Run a real MPI program in virtual time
    Run(run::RunOptions),
    /// Show what a trace holds, and make traces of what recordings have left
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Replay one or several traces on a machine
    Replay(replay::ReplayOptions),
    /// Explain where the time of a program went: its critical path, split exactly
    Explain(explain::ExplainOptions),
    /// Draw results as SVG or PNG: load curves, distributions, queues, rates, links, ranks
    Plot(plot::PlotOptions),
    /// Write a result as one HTML page: figures, pictures, slow messages, hot links, assumed constants
    Report(report::ReportPageOptions),
    /// Show results as a page in the browser: the machine over time, ranks, messages, plots
    View(view::ViewOptions),
    /// Run a study: any parameter and seeds over processes, into one data set; continues where it stopped
    Sweep(sweep::SweepOptions),
    /// Compare results row by row, with the significance of differences over seeds
    Compare(compare::CompareOptions),
    /// Compare simulated values with published measurements, row by row
    Validate(validate::ValidateOptions),
    /// Run a result directory's command again and compare the results, or resume an interrupted run
    Rerun(rerun::RerunOptions),
    /// Say what is installed and what is missing for weft run and weft record, with the mend
    Doctor(doctor::DoctorOptions),
    /// Write manual pages and shell completions below a folder, as `make install` does
    #[command(hide = true)]
    Pages(pages::PagesOptions),
}

impl Command {
    /// Runs the command. `words` is the command as typed.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        match self {
            Command::Machine(command) => command.run(),
            Command::Traffic(options) => options.run(words),
            Command::Osu(options) => options.run(words),
            Command::App(options) => options.run(words),
            Command::Apeiron(command) => command.run(words),
            Command::Record(options) => options.run(),
            Command::Run(options) => options.run(words),
            Command::Trace(command) => command.run(),
            Command::Replay(options) => options.run(words),
            Command::Explain(options) => options.run(),
            Command::Plot(options) => options.run(),
            Command::Report(options) => options.run(),
            Command::View(options) => options.run(),
            Command::Sweep(options) => options.run(words),
            Command::Compare(options) => options.run(),
            Command::Doctor(options) => options.run(),
            Command::Validate(options) => options.run(),
            Command::Rerun(options) => options.run(words),
            Command::Pages(options) => options.run(crate::Weft::command()),
        }
    }
}
