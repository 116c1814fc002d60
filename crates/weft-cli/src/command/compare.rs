//! `weft compare`: results beside each other.

use super::plot::open_all;
use crate::exit::{Failure, Status};
use crate::options::FormatOptions;
use crate::output;
use crate::place::{OutputFile, write_whole};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weft_analysis::Comparison;
use weft_plot::page::{self, change_text, p_text, value_text};

/// Options of `weft compare`.
#[derive(Args)]
pub struct CompareOptions {
    /// Directories that weft wrote with -o; the first is what the others are compared with
    #[arg(value_name = "DIR", num_args = 2.., required = true, value_hint = ValueHint::DirPath)]
    directories: Vec<PathBuf>,

    /// Write the comparison as a page to this file as well
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,

    /// Replace a page that is there
    #[arg(long, requires = "html")]
    force: bool,

    #[command(flatten)]
    format: FormatOptions,
}

impl CompareOptions {
    /// Compares them.
    pub fn run(self) -> Result<Status, Failure> {
        let results = open_all(&self.directories)?;
        if let Some(path) = &self.html {
            let file = OutputFile { option: "--html", contents: "page", path };
            self.directories.iter().try_for_each(|directory| file.refuse_within(directory))?;
            if !self.force {
                file.refuse_existing()?;
            }
        }
        let names = self.directories.iter().map(|directory| directory.display().to_string()).collect();
        let comparison = Comparison::of(&results, names)?;
        if let Some(path) = &self.html {
            write_whole(path, page::comparison(&comparison).as_bytes())?;
        }
        if self.format.json {
            output::document(&serde_json::json!({ "command": "compare", "comparison": comparison }))?;
        } else {
            output::text(&text(&comparison))?;
        }
        Ok(Status::Done)
    }
}

/// The comparison for people: a block per result after the first.
fn text(comparison: &Comparison) -> String {
    let first = &comparison.results[0];
    let mut text = String::new();
    for (number, name) in comparison.results.iter().enumerate().skip(1) {
        let row = |row: &weft_analysis::ComparedRow| {
            let (one, other) = (&row.values[0], &row.values[number]);
            let [one_text, other_text] = [one, other].map(value_text);
            [row.case.clone(), row.quantity.clone(), one_text, other_text, change_text(other), p_text(other)]
        };
        text += &output::table(
            ["case", "quantity", first, name, "change", "p"],
            [false, false, true, true, true, true],
            comparison.rows.iter().map(row),
        );
        text += "\n";
    }
    if !comparison.unmatched.is_empty() {
        text += &format!("not in all results: {}\n", comparison.unmatched.join("; "));
    }
    text
}
