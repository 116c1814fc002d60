//! `weft validate`: published measurements against the simulation.

use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::options::{SayOptions, SetOptions};
use crate::output;
use crate::progress::Bar;
use clap::Args;
use weft_sim::experiment::Context;
use weft_sim::experiment::validate::{self, Role, ValidateRequest, ValidationReport};

/// Options of `weft validate`.
#[derive(Args)]
pub struct ValidateOptions {
    /// Only rows whose id contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,

    /// Shows how each row moves when each constant that no source fixes is 10 % smaller or larger
    #[arg(long)]
    vary: bool,

    /// Threads that vary constants; what comes out does not depend on it
    #[arg(long, value_name = "N", default_value_t = 1, requires = "vary", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,

    #[command(flatten)]
    sets: SetOptions,

    /// No progress on standard error
    #[arg(long)]
    quiet: bool,

    #[command(flatten)]
    say: SayOptions,
}

impl ValidateOptions {
    /// Does it.
    pub fn run(self) -> Result<Status, Failure> {
        let interrupt = on_ctrl_c()?;
        let bar = Bar::new(self.quiet);
        let context = Context { interrupt: &interrupt, progress: &bar };
        let ValidateOptions { only, vary, threads, .. } = self;
        let request = ValidateRequest { sets: self.sets.sets, only, vary, threads };
        let report = validate::run(&request, context)?;
        drop(bar);
        if interrupt.is_requested() {
            return Ok(Status::Interrupted);
        }
        if self.say.json {
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
        let published = match row.bound {
            Some(bound) => format!("{bound} {}", row.published),
            None => row.published.to_string(),
        };
        let role = match row.role {
            Role::Calibrated => "calibrated",
            Role::Predicted => "predicted",
        };
        let error = if row.relative_error == 0.0 && row.bound.is_some() {
            "met".to_owned()
        } else {
            signed_percent(row.relative_error)
        };
        [row.id.clone(), published, format!("{:.3}", row.simulated), row.unit.clone(), error, role.to_owned()]
    });
    let mut text = output::table(
        ["row", "published", "simulated", "", "error", "role"],
        [false, true, true, false, true, false],
        rows,
    );
    for (name, mean) in [
        ("calibrated rows", report.mean_error_calibrated),
        ("predicted rows", report.mean_error_predicted),
        ("predicted rows that are no limits", report.mean_error_predicted_without_limits),
    ] {
        if let Some(mean) = mean {
            text += &format!("mean error of {name}: {:.1} %\n", 100.0 * mean);
        }
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
    text
}
