//! `weft plot`: pictures of results.

use super::trace::{SpeedOptions, is_named_trace};
use crate::exit::{Failure, Status};
use crate::options::FormatOptions;
use crate::output;
use crate::place::{OutputFile, write_whole};
use crate::value::suggested;
use clap::builder::StringValueParser;
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};
use weft_analysis::picture::{Picture, PictureKind, ShownPart, ShownWindow};
use weft_results::{StoredResult, Table};
use weft_sim::experiment::trace::{self, TracePicture};
use weft_study::{StoredStudy, StudyPicture, is_study};
use weft_units::{Span, Time};

/// Options of `weft plot`.
#[derive(Args)]
#[command(after_help = after_help())]
pub struct PlotOptions {
    /// Directories that weft wrote with -o, of which several come into one picture; or that of one study; or
    /// a trace in any format
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::AnyPath)]
    directories: Vec<PathBuf>,

    /// The picture; by default a load curve of several loads, else queues with telemetry, or rates where
    /// nothing queued, else links, or completion times; of a trace the communication matrix; of a study one
    /// that its file describes
    #[arg(long, value_name = "KIND", value_parser = suggested(kinds(), StringValueParser::new()))]
    #[arg(hide_possible_values = true)]
    what: Option<String>,

    /// The picture's file, .svg or .png; by default KIND.svg
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Number of the run that is shown, as in the column `run`; by default the first
    #[arg(long, value_name = "N")]
    run: Option<u32>,

    /// Time from which on queues and rates are shown, such as 20us
    #[arg(long, value_name = "TIME")]
    from: Option<Span>,

    /// Time until which they are shown; by default the end
    #[arg(long, value_name = "TIME")]
    to: Option<Span>,

    /// Of a study: the parameter of the horizontal axis; by default the load or the size, or else the first
    /// that has numbers
    #[arg(long, value_name = "PARAMETER")]
    x: Option<String>,

    /// Of a study: the measured field, such as latency_mean_ns; by default the two most telling ones
    #[arg(long, value_name = "FIELD")]
    y: Option<String>,

    /// Replace a picture that is there
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    speed: SpeedOptions,

    #[command(flatten)]
    format: FormatOptions,
}

/// The kinds, each with what it shows.
/// The names of pictures, of results and of traces.
fn kinds() -> impl Iterator<Item = &'static str> {
    let results = PictureKind::ALL.map(PictureKind::name);
    results.into_iter().chain(TracePicture::ALL.map(TracePicture::name))
}

fn after_help() -> String {
    let line = |name: &str, title: &str| format!("  {name:22}{title}\n");
    let results = PictureKind::ALL.map(|kind| line(kind.name(), kind.title())).concat();
    let traces = TracePicture::ALL.map(|kind| line(kind.name(), kind.title())).concat();
    format!("Kinds:\n{results}\nKinds of a trace:\n{traces}")
}

/// The subject of a picture.
enum Subject<'a> {
    Results(Vec<StoredResult>, PictureKind),
    Trace(&'a Path, TracePicture),
    Study(Box<StoredStudy>),
}

impl PlotOptions {
    /// Draws it.
    pub fn run(self) -> Result<Status, Failure> {
        let subject = self.subject()?;
        let what = match &subject {
            Subject::Results(_, what) => what.name(),
            Subject::Trace(_, what) => what.name(),
            Subject::Study(_) => "study",
        };
        let path = self.output.clone().unwrap_or_else(|| PathBuf::from(format!("{what}.svg")));
        let form = Form::of(&path)?;
        let file = OutputFile { option: "--output", contents: "picture", path: &path };
        match &subject {
            Subject::Results(..) | Subject::Study(_) => {
                self.directories.iter().try_for_each(|directory| file.refuse_within(directory))?;
            }
            Subject::Trace(trace, _) => file.refuse_trace(&[trace], &self.speed.options())?,
        }
        if !self.force {
            file.refuse_existing()?;
        }
        let picture = match subject {
            Subject::Results(results, what) => what.of(&results, self.part())?,
            Subject::Trace(path, what) => trace::picture(path, &self.speed.options(), what)?,
            Subject::Study(study) => {
                study.picture(&StudyPicture { name: self.what.clone(), x: self.x, y: self.y })?
            }
        };
        write_whole(&path, &form.drawn(&picture)?)?;
        if self.format.json {
            let document = serde_json::json!({ "command": "plot", "file": path, "picture": picture });
            output::document(&document)?;
        } else {
            output::text(&format!("{}: {}\n", path.display(), picture.title))?;
        }
        Ok(Status::Done)
    }

    /// The part that is shown.
    fn part(&self) -> ShownPart {
        let at = |span| Time::ZERO + span;
        let window = ShownWindow { from: at(self.from.unwrap_or_default()), to: self.to.map(at) };
        ShownPart { run: self.run, window }
    }

    /// Results, or a trace, and the picture that is asked for.
    fn subject(&self) -> Result<Subject<'_>, Failure> {
        let what = self.what.as_deref();
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(Failure::input(format!("--from {from} is not before --to {to}; change them round")));
        }
        if let [one] = self.directories.as_slice()
            && is_study(one)
        {
            let is_both = what.is_some() && (self.x.is_some() || self.y.is_some());
            if is_both || self.run.or(self.from.map(|_| 0)).or(self.to.map(|_| 0)).is_some() {
                let why =
                    "--run, --from, --to: a study is drawn over its parameters; say --x and --y, or --what";
                return Err(Failure::input(why));
            }
            self.speed.refuse_for_results()?;
            return Ok(Subject::Study(Box::new(StoredStudy::open(one)?)));
        }
        if self.x.is_some() || self.y.is_some() {
            return Err(Failure::input(
                "--x, --y: they are of a study; leave them out, or name one study alone",
            ));
        }
        match self.directories.as_slice() {
            [one] if is_named_trace(one)? => {
                if self.run.is_some() {
                    return Err(Failure::input("--run: a trace has no runs; leave it out"));
                }
                if self.from.or(self.to).is_some() {
                    let why = "--from, --to: a trace has no telemetry; leave them out, or replay it first";
                    return Err(Failure::input(why));
                }
                let what = what.map_or(Ok(TracePicture::CommunicationMatrix), str::parse);
                Ok(Subject::Trace(one, what.map_err(unknown_kind)?))
            }
            several => {
                if let Some(trace) = several.iter().find(|path| trace::is_trace(path)) {
                    let path = trace.display();
                    return Err(Failure::input(format!("{path} is a trace: name it alone, without others")));
                }
                self.speed.refuse_for_results()?;
                let results = open_all(several)?;
                let what = match what {
                    Some(what) => what.parse().map_err(unknown_kind)?,
                    None => usual(&results),
                };
                Ok(Subject::Results(results, what))
            }
        }
    }
}

fn unknown_kind(error: String) -> Failure {
    Failure::input(format!("--what: {error}"))
}

/// The results in directories.
pub fn open_all(directories: &[PathBuf]) -> Result<Vec<StoredResult>, Failure> {
    directories.iter().map(|directory| Ok(StoredResult::open(directory)?)).collect()
}

/// The picture of results that nobody has asked a certain one of.
fn usual(results: &[StoredResult]) -> PictureKind {
    let loads = |result: &StoredResult| {
        result.manifest.rows.iter().filter(|row| row["offered_load"].is_number()).count()
    };
    if results.iter().all(|result| loads(result) > 1) {
        return PictureKind::LoadCurve;
    }
    // In the order of how much they tell. Flows fill no queues, so their table is empty.
    let of_tables = [
        (Table::Queues, PictureKind::QueueHeatMap),
        (Table::Rates, PictureKind::Rates),
        (Table::Links, PictureKind::LinkUtilization),
        (Table::Messages, PictureKind::FctCdf),
    ];
    let is_drawn = |table| results.iter().all(|result| result.rows_of(table) > 0);
    let found = of_tables.into_iter().find(|(table, _)| is_drawn(*table));
    found.map_or(PictureKind::LinkUtilization, |(_, kind)| kind)
}

/// The form of a picture.
#[derive(Clone, Copy)]
enum Form {
    Svg,
    Png,
}

impl Form {
    /// The form that the name of a file asks for.
    fn of(path: &Path) -> Result<Form, Failure> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("svg") => Ok(Form::Svg),
            Some("png") => Ok(Form::Png),
            _ => Err(Failure::input(format!(
                "--output {} is neither .svg nor .png; name the picture so",
                path.display()
            ))),
        }
    }

    fn drawn(self, picture: &Picture) -> Result<Vec<u8>, Failure> {
        let drawn = match self {
            Form::Svg => weft_plot::svg(picture).map(String::into_bytes),
            Form::Png => weft_plot::png(picture),
        };
        drawn.map_err(|error| Failure::bug(error.to_string()))
    }
}
