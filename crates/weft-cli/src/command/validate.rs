//! `weft validate`: published measurements against the simulation.

use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::options::{ReportOptions, SetOptions, machine_name, whole_number};
use crate::output;
use crate::progress::Bar;
use clap::Args;
use weft_sim::experiment::Control;
use weft_sim::experiment::validate::{self, Role, ValidateRequest, ValidationReport};

/// Options of `weft validate`.
#[derive(Args)]
pub struct ValidateOptions {
    /// Compare only the rows of this machine; with --set needed where rows of two machines are left
    #[arg(short, long, value_name = "NAME", value_parser = machine_name(), hide_possible_values = true)]
    machine: Option<String>,

    /// Compare only rows whose id contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Show how each row changes when each constant that no source fixes is 10 % smaller or larger
    #[arg(long)]
    vary: bool,

    /// Threads that vary constants; the results do not depend on their number
    #[arg(long, value_name = "N", default_value_t = 1, requires = "vary")]
    #[arg(value_parser = whole_number(1..=64), allow_negative_numbers = true)]
    threads: u32,

    #[command(flatten)]
    sets: SetOptions,

    #[command(flatten)]
    report: ReportOptions,
}

impl ValidateOptions {
    /// Does it.
    pub fn run(self) -> Result<Status, Failure> {
        let interrupt = on_ctrl_c()?;
        let bar = Bar::new(self.report.quiet);
        let control = Control { interrupt: &interrupt, progress: &bar };
        let ValidateOptions { machine, only, vary, threads, .. } = self;
        let request = ValidateRequest { sets: self.sets.sets, machine, only, vary, threads };
        let report = validate::run(&request, control);
        drop(bar);
        // Whatever went wrong then, it was by the user's wish.
        if interrupt.is_requested() {
            return Err(Failure::interrupted("interrupted before every row was compared"));
        }
        let report = report?;
        if self.report.format.json {
            output::document(&report)?;
        } else {
            output::text(&text(&report))?;
        }
        Ok(Status::Done)
    }
}

fn signed_percent(fraction: f64) -> String {
    format!("{:+.1} %", 100.0 * fraction)
}

fn text(report: &ValidationReport) -> String {
    let rows = report.rows.iter().map(|row| {
        [
            row.id.clone(),
            row.published_text(),
            row.simulated_text(),
            row.unit.clone(),
            row.error_text(),
            row.role.name().to_owned(),
        ]
    });
    let mut text = output::table(
        ["row", "published", "simulated", "", "error", "role"],
        [false, true, true, false, true, false],
        rows,
    );
    for row in &report.rows {
        if let Some(command) = &row.command {
            text += &format!("{}: {command}\n", row.id);
        }
    }
    for row in &report.left_out {
        text += &format!("{}, left out: {}\n", row.id, row.why);
    }
    for summary in Role::ALL.into_iter().filter_map(|role| report.summary(role)) {
        text += &format!("{summary}\n");
    }
    if !report.sensitivity.is_empty() {
        let rows = report.sensitivity.iter().map(|s| {
            [
                s.constant.clone(),
                s.value.clone(),
                s.kind.name().to_owned(),
                s.id.clone(),
                signed_percent(s.change_at_minus_10),
                signed_percent(s.change_at_plus_10),
            ]
        });
        text += "\n";
        text += &output::table(
            ["constant", "value", "", "row", "at -10 %", "at +10 %"],
            [false, true, false, false, true, true],
            rows,
        );
    }
    if !report.ranges.is_empty() {
        let rows = report.ranges.iter();
        let rows = rows.map(|r| [r.constant.clone(), r.value.clone(), r.range.clone(), r.source.clone()]);
        text += "\n";
        text += &output::table(
            ["calibrated constant", "value", "range", "source of the range"],
            [false, true, false, false],
            rows,
        );
    }
    text
}
