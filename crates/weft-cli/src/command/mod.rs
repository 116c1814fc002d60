//! The commands, one file each.

mod breakdown;
mod explain;
mod machine;
mod osu;
mod record;
mod replay;
mod rerun;
mod run;
mod simulation;
mod trace;
mod traffic;
mod validate;

use crate::exit::{Failure, Status};
use clap::Subcommand;

/// What weft does.
#[derive(Subcommand)]
pub enum Command {
    /// Machines: what ships, every value with its source, figures, the deadlock proof
    #[command(subcommand)]
    Machine(machine::MachineCommand),
    /// Traffic patterns × loads: throughput and latency curves
    Traffic(traffic::TrafficOptions),
    /// OSU micro-benchmarks on simulated ranks: latency, bandwidth, collectives
    Osu(osu::OsuOptions),
    /// Runs a real MPI program and records a trace
    Record(record::RecordOptions),
    /// Runs a real MPI program in virtual time
    Run(run::RunOptions),
    /// Traces: what they hold
    #[command(subcommand)]
    Trace(trace::TraceCommand),
    /// Replays one or several traces on a machine
    Replay(replay::ReplayOptions),
    /// Why a program takes as long as it does: its critical path, split exactly
    Explain(explain::ExplainOptions),
    /// Published measurements against the simulation, row by row
    Validate(validate::ValidateOptions),
    /// Runs the run of a result directory again and compares, or resumes it
    Rerun(rerun::RerunOptions),
}

impl Command {
    /// Does it. `words` is the command as typed.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        match self {
            Command::Machine(command) => command.run(),
            Command::Traffic(options) => options.run(words),
            Command::Osu(options) => options.run(words),
            Command::Record(options) => options.run(),
            Command::Run(options) => options.run(words),
            Command::Trace(command) => command.run(),
            Command::Replay(options) => options.run(words),
            Command::Explain(options) => options.run(),
            Command::Validate(options) => options.run(),
            Command::Rerun(options) => options.run(words),
        }
    }
}
