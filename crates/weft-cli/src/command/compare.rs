//! `weft compare`: results beside each other.

use super::plot::open_all;
use crate::exit::{Failure, Status};
use crate::options::FormatOptions;
use crate::output;
use crate::place::{OutputFile, write_whole};
use clap::{Args, ValueEnum, ValueHint};
use std::path::{Path, PathBuf};
use weft_analysis::Comparison;
use weft_analysis::picture::{Picture, PictureKind, ShownPart};
use weft_plot::page::{self, change_text, p_text, value_text};
use weft_sim::experiment::{machine, read_request};
use weft_study::{StoredStudy, StudyPicture, is_study};

/// Pictures in which the lines of several results lie over each other.
const OVERLAID: [PictureKind; 5] = [
    PictureKind::LoadCurve,
    PictureKind::FctCdf,
    PictureKind::SlowDown,
    PictureKind::Throughput,
    PictureKind::LinkUtilization,
];

/// Options of `weft compare`.
#[derive(Args)]
pub struct CompareOptions {
    /// Directories that weft wrote with -o; the first is what the others are compared with. Studies are
    /// compared case by case; of one study alone, the values of a parameter
    #[arg(value_name = "DIR", num_args = 1.., required = true, value_hint = ValueHint::DirPath)]
    directories: Vec<PathBuf>,

    /// Of one study: the parameter whose values are compared; by default the first that is not a number
    #[arg(long, value_name = "PARAMETER")]
    by: Option<String>,

    /// Divide rates by the price of each machine for an endpoint: its file gives `cost` or `port_cost` of
    /// every class of links
    #[arg(long, value_name = "WHAT")]
    per: Option<Per>,

    /// Write the comparison as a page to this file as well
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    html: Option<PathBuf>,

    /// Replace a page that is there
    #[arg(long, requires = "html")]
    force: bool,

    #[command(flatten)]
    format: FormatOptions,
}

/// The measure of a machine that rates are divided by.
#[derive(Clone, Copy, ValueEnum)]
enum Per {
    /// The price.
    Cost,
}

/// The price for an endpoint of the machine of a result.
fn cost_of(directory: &Path) -> Result<f64, Failure> {
    if is_study(directory) {
        let why = "--per: a study may have a machine for each point; name results of weft traffic -o DIR";
        return Err(Failure::input(why));
    }
    let request = read_request(directory)?;
    let cost = machine::cost(request.machine());
    Ok(cost
        .map_err(|error| Failure::input(format!("--per cost: {}: {error}", directory.display())))?
        .per_endpoint())
}

/// A study of which some point is done.
fn measured(directory: &Path) -> Result<StoredStudy, Failure> {
    let study = StoredStudy::open(directory)?;
    study.check_measured()?;
    Ok(study)
}

impl CompareOptions {
    /// Compares them.
    pub fn run(self) -> Result<Status, Failure> {
        if let Some(path) = &self.html {
            let file = OutputFile { option: "--html", contents: "page", path };
            self.directories.iter().try_for_each(|directory| file.refuse_within(directory))?;
            if !self.force {
                file.refuse_existing()?;
            }
        }
        let mut comparison = self.comparison()?;
        if let Some(Per::Cost) = self.per {
            let costs = self.directories.iter().map(|directory| cost_of(directory));
            comparison = comparison.per_cost(&costs.collect::<Result<Vec<f64>, _>>()?);
        }
        if let Some(path) = &self.html {
            let page = page::comparison(&comparison, &self.pictures()?);
            let page = page.map_err(|error| Failure::bug(error.to_string()))?;
            write_whole(path, page.as_bytes())?;
        }
        if self.format.json {
            output::document(&serde_json::json!({ "command": "compare", "comparison": comparison }))?;
        } else {
            output::text(&text(&comparison))?;
        }
        Ok(Status::Done)
    }
}

impl CompareOptions {
    /// Pictures of all of them: of results those in which lines lie over each other, as far as their tables
    /// are there; of studies one each.
    fn pictures(&self) -> Result<Vec<Picture>, Failure> {
        if self.directories.iter().any(|directory| is_study(directory)) {
            let picture = |directory| Ok(StoredStudy::open(directory)?.picture(&StudyPicture::default())?);
            return self.directories.iter().map(|directory| picture(directory)).collect();
        }
        let results = open_all(&self.directories)?;
        let drawn = OVERLAID.into_iter().filter_map(|kind| kind.of(&results, ShownPart::default()).ok());
        Ok(drawn.collect())
    }

    /// The comparison of results, of studies, or of the values of a parameter of one study.
    fn comparison(&self) -> Result<Comparison, Failure> {
        let names = self.directories.iter().map(|directory| directory.display().to_string()).collect();
        let studies = self.directories.iter().filter(|directory| is_study(directory)).count();
        if self.by.is_some() && (studies, self.directories.len()) != (1, 1) {
            return Err(Failure::input("--by: it is of one study; name that alone, or leave --by out"));
        }
        match self.directories.as_slice() {
            [one] if studies == 1 => {
                let parts = measured(one)?.apart(self.by.as_deref())?;
                let (names, rows): (Vec<String>, Vec<_>) = parts.into_iter().unzip();
                Comparison::of_rows(&rows, names).ok_or_else(|| {
                    let by = "none of its cases is there with each value; choose another parameter with --by";
                    Failure::input(format!("{}: {by}", one.display()))
                })
            }
            [one] => {
                let one = one.display();
                Err(Failure::input(format!(
                    "{one} alone: name a second result to compare it with, or a study"
                )))
            }
            several if studies == several.len() => {
                let rows = several.iter().map(|one| Ok(measured(one)?.rows()));
                let rows: Vec<_> = rows.collect::<Result<_, Failure>>()?;
                Comparison::of_rows(&rows, names).ok_or_else(|| {
                    Failure::input("the studies have no case in common: the same parameters are compared")
                })
            }
            _ if studies > 0 => {
                Err(Failure::input("a study and a result cannot be compared; name studies alone, or results"))
            }
            several => Ok(Comparison::of(&open_all(several)?, names)?),
        }
    }
}

/// The comparison for people: a block per result after the first.
fn text(comparison: &Comparison) -> String {
    let first = &comparison.results[0];
    let mut text = String::new();
    let (differing, same) = comparison.differing();
    if differing.is_empty() {
        return format!("no difference: the same in all are {same} quantities; --json has them\n");
    }
    for (number, name) in comparison.results.iter().enumerate().skip(1) {
        let row = |row: &weft_analysis::ComparedRow| {
            let (quantity, values) = row.told();
            let (one, other) = (&values[0], &values[number]);
            let [one_text, other_text] = [one, other].map(value_text);
            [row.case.clone(), quantity, one_text, other_text, change_text(other), p_text(other)]
        };
        text += &output::table(
            ["case", "quantity", first, name, "change", "p"],
            [false, false, true, true, true, true],
            differing.iter().map(|compared| row(compared)),
        );
        text += "\n";
    }
    if same > 0 {
        text += &format!("the same in all: {same} quantities; --json has them\n");
    }
    if !comparison.unmatched.is_empty() {
        text += &format!("not in all results: {}\n", comparison.unmatched.join("; "));
    }
    text
}
