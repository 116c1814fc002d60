//! `weft record`: a real MPI program under the recorder.

use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::options::FormatOptions;
use crate::output;
use crate::standard_error;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use weft_host::record::{self, Mpi, RecordError, RecordRequest, RecordSummary};
use weft_results::date;

/// Options of `weft record`.
#[derive(Args)]
pub struct RecordOptions {
    /// File of the trace
    #[arg(short, long, value_name = "FILE", default_value = "trace.weft", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// Replace a trace that is there, and the parts that an earlier recording left
    #[arg(long)]
    force: bool,

    /// MPI library that the program is linked to; by default found from the launcher and the program
    #[arg(long, value_parser = mpi_parser())]
    mpi: Option<Mpi>,

    #[command(flatten)]
    format: FormatOptions,

    /// The launcher, the program and their arguments: mpiexec -n 8 prog args
    #[arg(last = true, required = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

fn mpi_parser() -> impl TypedValueParser<Value = Mpi> {
    PossibleValuesParser::new(Mpi::ALL.map(Mpi::word))
        .try_map(|word| Mpi::from_word(&word).ok_or("one of the possible values"))
}

impl RecordOptions {
    /// Runs it.
    pub fn run(self) -> Result<Status, Failure> {
        let interrupt = on_ctrl_c()?;
        let request = RecordRequest {
            output: self.output,
            force: self.force,
            mpi: self.mpi,
            recorder_folder: None,
            command: self.command,
            output_to_error: self.format.json,
            date: Some(date()),
        };
        let summary = match record::record(&request, || interrupt.is_requested()) {
            // Ended before its ranks had begun, as the user wanted.
            Err(RecordError::NothingRecorded { .. }) if interrupt.is_requested() => {
                return Err(Failure::interrupted("nothing was recorded before the interruption"));
            }
            other => other?,
        };
        if self.format.json {
            output::document(&RecordReport::of(&summary))?;
        } else {
            // Standard output is the program's.
            standard_error::text(&text(&RecordReport::of(&summary)));
        }
        Ok(match summary {
            RecordSummary { interrupted: true, .. } => Status::Interrupted,
            RecordSummary { program_status: 0, without_room: 0, .. } => Status::Done,
            _ => Status::EndedBadly,
        })
    }
}

/// The report of `weft record --json`.
#[derive(Serialize)]
struct RecordReport<'a> {
    /// The trace file.
    trace: String,
    /// Ranks.
    ranks: u32,
    /// Operations of all ranks.
    operations: u64,
    /// Calls that are not in the trace, with their counts.
    not_recorded: &'a BTreeMap<String, u64>,
    /// Whether each rank is recorded to its end.
    complete: bool,
    /// Ranks whose recording ended before they did, as there was no room for it.
    ranks_without_room: u32,
    /// Exit status of the program; 128 + n where signal n ended it.
    program_status: i32,
    /// Whether the user ended the recording.
    interrupted: bool,
}

impl RecordReport<'_> {
    fn of(summary: &RecordSummary) -> RecordReport<'_> {
        let header = &summary.metadata.header;
        RecordReport {
            trace: summary.trace.to_string_lossy().into_owned(),
            ranks: header.ranks,
            operations: summary.metadata.rank_operations.iter().sum(),
            not_recorded: &header.unrecorded,
            complete: !header.interrupted,
            ranks_without_room: summary.without_room,
            program_status: summary.program_status,
            interrupted: summary.interrupted,
        }
    }
}

fn text(report: &RecordReport) -> String {
    let missing: String = report
        .not_recorded
        .iter()
        .map(|(call, count)| format!("weft: not recorded: {count} × {call}\n"))
        .collect();
    let cut = cut_off(report.complete, report.ranks_without_room);
    let ended = match report.program_status {
        0 => String::new(),
        status => format!("weft: the program ended with status {status}\n"),
    };
    let (trace, ranks, operations) = (&report.trace, report.ranks, report.operations);
    format!("{missing}{ended}weft: {trace}: {ranks} ranks, {operations} operations{cut}\n")
}

/// The end of a trace, where it is not that of its program.
pub fn cut_off(complete: bool, ranks_without_room: u32) -> String {
    match (complete, ranks_without_room) {
        (true, _) => String::new(),
        (false, 0) => "; it ends where the ranks were stopped".to_owned(),
        (false, 1) => "; one rank's recording ends early, as there was no room for its part".to_owned(),
        (false, ranks) => {
            format!("; the recordings of {ranks} ranks end early, as there was no room for their parts")
        }
    }
}
