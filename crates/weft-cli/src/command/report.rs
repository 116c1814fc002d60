//! `weft report`: a result, a study or a trace in one page.

use super::explain::explained_again;
use super::trace::{SpeedOptions, is_named_trace};
use crate::exit::{Failure, Status};
use crate::options::{ReportOptions, ThreadOptions};
use crate::output;
use crate::place::{OutputFile, write_whole};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weft_analysis::report::{CriticalPath, Report};
use weft_analysis::sections::SectionedReport;
use weft_results::StoredResult;
use weft_sim::experiment::machine::MachineMap;
use weft_sim::experiment::{read_request, trace};
use weft_study::{StoredStudy, is_study};

/// Options of `weft report`.
#[derive(Args)]
pub struct ReportPageOptions {
    /// A directory that weft wrote with -o, of a result or a study, or a trace in any format
    #[arg(value_name = "DIR", value_hint = ValueHint::AnyPath)]
    directory: PathBuf,

    /// The page's file
    #[arg(short, long, value_name = "FILE", default_value = "report.html", value_hint = ValueHint::FilePath)]
    output: PathBuf,

    /// Run a replay or a benchmark again, to find its critical path as `weft explain` does
    #[arg(long)]
    explain: bool,

    /// Replace a page that is there
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    speed: SpeedOptions,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    report: ReportOptions,
}

impl ReportPageOptions {
    /// Writes it.
    pub fn run(self) -> Result<Status, Failure> {
        if is_study(&self.directory) {
            return self.of_study();
        }
        match is_named_trace(&self.directory)? {
            true => self.of_trace(),
            false => self.of_result(),
        }
    }

    fn of_trace(self) -> Result<Status, Failure> {
        let trace = &self.directory;
        if self.explain {
            let path = trace.display();
            return Err(Failure::input(format!(
                "--explain: {path} is a trace, which has no times of messages; replay it, and explain what \
                 comes of it: `weft replay -m MACHINE {path} -o DIR`"
            )));
        }
        let file = OutputFile { option: "--output", contents: "page", path: &self.output };
        file.refuse_trace(&[trace], &self.speed.options())?;
        if !self.force {
            file.refuse_existing()?;
        }
        let report = trace::report(trace, &self.speed.options())?;
        self.write(&report)
    }

    fn of_study(self) -> Result<Status, Failure> {
        self.speed.refuse_for_results()?;
        if self.explain {
            let why = "--explain: a study has no times of messages; run one of its points with -o DIR, and \
                       explain that";
            return Err(Failure::input(why));
        }
        let file = OutputFile { option: "--output", contents: "page", path: &self.output };
        file.refuse_within(&self.directory)?;
        if !self.force {
            file.refuse_existing()?;
        }
        let report = StoredStudy::open(&self.directory)?.report()?;
        self.write(&report)
    }

    /// Writes the page of a trace or a study.
    fn write(&self, report: &SectionedReport) -> Result<Status, Failure> {
        let page = weft_plot::sectioned_report(report).map_err(|error| Failure::bug(error.to_string()))?;
        write_whole(&self.output, page.as_bytes())?;
        if self.report.format.json {
            let document = serde_json::json!({ "command": "report", "file": self.output, "report": report });
            output::document(&document)?;
        } else {
            let pictures: usize = report.sections.iter().map(|section| section.pictures.len()).sum();
            let warnings: String = report.warnings.iter().map(|warning| format!("  {warning}\n")).collect();
            output::text(&format!("{}: {pictures} pictures\n{warnings}", self.output.display()))?;
        }
        Ok(Status::Done)
    }

    fn of_result(self) -> Result<Status, Failure> {
        self.speed.refuse_for_results()?;
        let result = StoredResult::open(&self.directory)?;
        let file = OutputFile { option: "--output", contents: "page", path: &self.output };
        file.refuse_within(&self.directory)?;
        if !self.force {
            file.refuse_existing()?;
        }
        let explained = match self.explain {
            true => explained_again(&self.directory, self.threads.threads, self.report.quiet)?,
            false => Some(Vec::new()),
        };
        let Some(explained) = explained else { return Ok(Status::Interrupted) };
        // Without the machine, flows may take any of the shortest ways.
        let map = read_request(&self.directory).ok().and_then(|of| MachineMap::of(of.machine()).ok());
        let ways = |from, to| map.as_ref()?.only_way(from, to);
        let report = Report::of(&result, &explained, &ways)?;
        let page = weft_plot::page::report(&report).map_err(|error| Failure::bug(error.to_string()))?;
        write_whole(&self.output, page.as_bytes())?;
        if self.report.format.json {
            let document = serde_json::json!({ "command": "report", "file": self.output, "report": report });
            output::document(&document)?;
        } else {
            let (file, pictures) = (self.output.display(), report.pictures.len());
            let verdict = |path: &CriticalPath| Some(format!("  {}: {}\n", path.of, path.verdict.as_ref()?));
            let verdicts = report.critical_paths.iter().filter_map(verdict);
            let warnings = report.warnings.iter().map(|warning| format!("  {warning}\n"));
            let lines: String = verdicts.chain(warnings).collect();
            output::text(&format!("{file}: {pictures} pictures\n{lines}"))?;
        }
        Ok(Status::Done)
    }
}
