//! `weft trace`: what traces hold.

use crate::exit::{Failure, Status};
use crate::options::SayOptions;
use crate::output;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;
use weft_sim::experiment::trace::{self, OperationStats, TraceInfo, TraceStats};

/// The subcommands of `weft trace`.
#[derive(Subcommand)]
pub enum TraceCommand {
    /// What recorded it, ranks, operations, what is missing; does not read the operations
    Info(OneTrace),
    /// Operations and bytes by kind, computation
    Stats(OneTrace),
}

/// One trace.
#[derive(Args)]
pub struct OneTrace {
    /// A trace, as `weft record` makes it, or the parts of one that is being recorded
    #[arg(value_name = "TRACE", value_hint = ValueHint::FilePath)]
    trace: PathBuf,

    #[command(flatten)]
    say: SayOptions,
}

impl TraceCommand {
    /// Does it.
    pub fn run(self) -> Result<Status, Failure> {
        match self {
            TraceCommand::Info(one) => {
                let info = trace::info(&one.trace)?;
                if one.say.json { output::document(&info)? } else { output::text(&info_text(&info))? }
            }
            TraceCommand::Stats(one) => {
                let stats = trace::stats(&one.trace)?;
                if one.say.json { output::document(&stats)? } else { output::text(&stats_text(&stats))? }
            }
        }
        Ok(Status::Done)
    }
}

fn info_text(info: &TraceInfo) -> String {
    let whole = if info.complete { "whole" } else { "ends where recording was interrupted" };
    let lines = [
        ["program", &info.program],
        ["recorded by", &info.recorder],
        ["ranks", &info.ranks.to_string()],
        ["operations", &info.operations.to_string()],
        ["trace", whole],
        ["format version", &info.format_version.to_string()],
    ];
    let table =
        output::table(["", ""], [false, false], lines.into_iter().map(|line| line.map(str::to_owned)));
    let missing: String =
        info.not_recorded.iter().map(|(call, count)| format!("not recorded: {count} × {call}\n")).collect();
    table + &missing
}

fn stats_text(stats: &TraceStats) -> String {
    let row = |s: &OperationStats| [s.operation.clone(), s.count.to_string(), s.bytes.to_string()];
    let operations =
        output::table(["operation", "count", "bytes"], [false, true, true], stats.rows.iter().map(row));
    format!(
        "{operations}\n{} ranks, {:.3} us of computation, at most {:.3} us in one rank\n",
        stats.ranks, stats.computation_us, stats.computation_max_us
    )
}
