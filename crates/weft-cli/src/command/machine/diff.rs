//! `weft machine diff`: what sets one machine apart from another.

use crate::exit::{Failure, Status};
use crate::options::{FormatOptions, machine_name};
use crate::output;
use clap::Args;
use weft_sim::experiment::machine::{self, KeyDifference, MachineDifferences};

/// Longest text of a cell in characters: a description has many lines.
const MAX_CELL: usize = 60;

/// Options of `weft machine diff`.
#[derive(Args)]
pub struct DiffOptions {
    /// A machine that ships with weft, or a machine file
    #[arg(value_name = "A", value_parser = machine_name(), hide_possible_values = true)]
    a: String,

    /// The machine to compare it with
    #[arg(value_name = "B", value_parser = machine_name(), hide_possible_values = true)]
    b: String,

    /// Compare kinds and sources of values as well
    #[arg(long)]
    sources: bool,

    #[command(flatten)]
    format: FormatOptions,
}

impl DiffOptions {
    /// Compares them.
    pub fn run(&self) -> Result<Status, Failure> {
        let none: [String; 0] = [];
        let (a, b) = (machine::input(&self.a, &none)?, machine::input(&self.b, &none)?);
        let differences = machine::diff((&self.a, &a), (&self.b, &b), self.sources)?;
        if self.format.json {
            output::document(&differences)?;
        } else {
            output::text(&text(&differences))?;
        }
        Ok(if differences.same { Status::Done } else { Status::EndedBadly })
    }
}

fn text(found: &MachineDifferences) -> String {
    let MachineDifferences { a, b, same, figures, rows, sources } = found;
    if *same {
        let what = if sources.is_some() { "values, figures and sources" } else { "values and figures" };
        return format!("{a} and {b} have the same {what}\n");
    }
    let number = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    let figures = figures.iter().map(|row| [row.figure.clone(), number(row.a), number(row.b)]);
    let figures = output::table_of_some(["figure", a, b], [false, true, true], figures);
    let of_keys = |title: &str, rows: &[KeyDifference], most: usize| {
        let rows = rows
            .iter()
            .map(|row| [row.key.clone(), cell(row.a.as_deref(), most), cell(row.b.as_deref(), most)]);
        output::table_of_some([title, a, b], [false; 3], rows)
    };
    let rows = of_keys("key", rows, MAX_CELL);
    let sources = of_keys("source of", sources.as_deref().unwrap_or_default(), usize::MAX);
    [figures, rows, sources].into_iter().filter(|table| !table.is_empty()).collect::<Vec<_>>().join("\n")
}

/// A value in one line; a dash where there is none.
fn cell(value: Option<&str>, most: usize) -> String {
    let Some(value) = value else { return "-".to_owned() };
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
