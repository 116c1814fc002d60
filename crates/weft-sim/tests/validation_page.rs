//! The page on validation is made from what `weft validate` gives.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fmt::Write;
use weft_sim::experiment::validate::{self, Role, ValidateRequest, ValidationReport};
use weft_sim::experiment::{Context, Estimate, Interrupt, Progress};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/validation.md");
const GENERATED: &str = "<!-- From here on";

struct Quiet;

impl Progress for Quiet {
    fn estimate(&self, _: Estimate) {}
    fn advance(&self, _: f64, _: &str) {}
}

fn report() -> ValidationReport {
    let context = Context { interrupt: &Interrupt::default(), progress: &Quiet };
    validate::run(&ValidateRequest::default(), context).unwrap()
}

fn page(report: &ValidationReport) -> String {
    let mut text = String::new();
    for (title, role, mean) in [
        ("Predicted", Role::Predicted, report.mean_error_predicted),
        ("Calibrated", Role::Calibrated, report.mean_error_calibrated),
    ] {
        let mean = mean.unwrap_or(0.0) * 100.0;
        let figures = report.mean_error_predicted_without_limits.filter(|_| role == Role::Predicted);
        let figures = figures.map_or(String::new(), |mean| {
            format!(", {:.1} % without the limits, which have none where they are met", mean * 100.0)
        });
        write!(
            text,
            "\n## {title}\n\nMean error {mean:.1} %{figures}.\n\n| row | what | source | published | simulated | error |\n\
             |---|---|---|--:|--:|--:|\n"
        )
        .unwrap();
        for row in report.rows.iter().filter(|row| row.role == role) {
            let bound = row.bound.map(|bound| format!("{bound} ")).unwrap_or_default();
            let error = match (row.bound, row.relative_error) {
                (Some(_), 0.0) => "met".to_owned(),
                (_, error) => format!("{:+.1} %", error * 100.0),
            };
            writeln!(
                text,
                "| `{}` | {} | {} | {bound}{} {} | {:.3} {} | {error} |",
                row.id, row.quantity, row.source, row.published, row.unit, row.simulated, row.unit
            )
            .unwrap();
        }
        for row in report.rows.iter().filter(|row| row.role == role) {
            if let Some(note) = &row.note {
                write!(text, "\n`{}`: {note}\n", row.id).unwrap();
            }
        }
    }
    text
}

/// Catches a change of the model that moves a validated figure without the page saying so, and a row that
/// cannot be run any more.
#[test]
fn the_page_says_what_the_command_gives() {
    let present = std::fs::read_to_string(PAGE).unwrap();
    let start = present.find(GENERATED).expect("the page has the mark");
    let head = &present[..start + present[start..].find('\n').unwrap() + 1];
    let expected = format!("{head}{}", page(&report()));
    if std::env::var_os("WEFT_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &expected).unwrap();
    } else {
        assert!(present == expected, "docs/src/validation.md is stale: run the command that it names");
    }
}
