//! `weft record`: a real MPI program under the recorder.

use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::options::SayOptions;
use crate::output;
use crate::progress::Bar;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weft_sim::experiment::Context;
use weft_sim::experiment::record::{self, RecordReport, RecordRequest};

/// Options of `weft record`.
#[derive(Args)]
pub struct RecordOptions {
    /// The trace to make
    #[arg(short, long, value_name = "FILE", default_value = "trace.weft", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// Write over a trace that is there
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    say: SayOptions,

    /// The launcher, the program and their arguments: mpiexec -n 8 prog args
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<String>,
}

impl RecordOptions {
    /// Runs it.
    pub fn run(self) -> Result<Status, Failure> {
        if self.output.exists() && !self.force {
            return Err(Failure::input(format!(
                "{} exists; name another file with -o, or write over it with --force",
                self.output.display()
            )));
        }
        let interrupt = on_ctrl_c()?;
        let bar = Bar::new(true);
        let request = RecordRequest { output: self.output, force: self.force, command: self.command };
        let report = record::run(&request, Context { interrupt: &interrupt, progress: &bar })?;
        if self.say.json {
            output::document(&report)?;
        } else {
            output::text(&text(&report))?;
        }
        Ok(match report {
            RecordReport { interrupted: true, .. } => Status::Interrupted,
            RecordReport { program_status: 0, .. } => Status::Done,
            _ => Status::EndedBadly,
        })
    }
}

fn text(report: &RecordReport) -> String {
    let missing: String =
        report.not_recorded.iter().map(|(call, count)| format!("not recorded: {count} × {call}\n")).collect();
    let ended = match report.program_status {
        0 => String::new(),
        status => format!("the program ended with status {status}\n"),
    };
    let (trace, ranks, operations) = (report.trace.display(), report.ranks, report.operations);
    format!("{trace}: {ranks} ranks, {operations} operations\n{missing}{ended}")
}
