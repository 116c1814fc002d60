//! `weft rerun`: the same again, or onwards from where it was saved.

use super::breakdown::ListOptions;
use super::simulation::{run_and_show, run_unshown};
use crate::exit::{Failure, Status};
use crate::options::{ReportOptions, ThreadOptions, parse_positive_span};
use crate::output;
use crate::standard_error::say;
use clap::{Args, ValueHint};
use std::path::{Path, PathBuf};
use weft_results::{Ending, Existing, check_files, digest};
use weft_sim::experiment::replay::TraceInput;
use weft_sim::experiment::{ExperimentOptions, Output, Request, Start, read_manifest, read_request};
use weft_units::Span;

/// Options of `weft rerun`.
#[derive(Args)]
pub struct RerunOptions {
    /// A directory that weft wrote with -o
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    directory: PathBuf,

    /// Continue an interrupted run from its last saved state (see --save-every), in the same directory
    #[arg(long, conflicts_with_all = ["output", "force"])]
    resume: bool,

    /// With --resume: save the whole state each time this much virtual time has passed
    #[arg(long, value_name = "TIME", value_parser = parse_positive_span, requires = "resume")]
    save_every: Option<Span>,

    /// Directory for the second result; by default the result is compared and removed
    #[arg(short, long, value_name = "DIR2", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,

    /// Replace results that are in DIR2 already
    #[arg(long, requires = "output")]
    force: bool,

    #[command(flatten)]
    threads: ThreadOptions,

    #[command(flatten)]
    report: ReportOptions,
}

impl RerunOptions {
    /// Runs it.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        let mut request = read_request(&self.directory)?;
        request.traces_mut().iter_mut().try_for_each(check_trace)?;
        if self.resume { self.resume(&request, words) } else { self.repeat(&request, words) }
    }

    fn options(&self, output: Output, words: &[String]) -> ExperimentOptions {
        ExperimentOptions {
            threads: self.threads.threads,
            output: Some(output),
            live: false,
            save_every: self.save_every,
            timeline: None,
            check: false,
            // What it repeats was allowed once.
            unlimited: true,
            rtl: None,
            command: words.to_vec(),
        }
    }

    fn resume(&self, request: &Request, words: &[String]) -> Result<Status, Failure> {
        let output = Output { directory: self.directory.clone(), tables: Vec::new(), start: Start::Resume };
        run_and_show(request, &self.options(output, words), self.report, ListOptions::default())
    }

    fn repeat(&self, request: &Request, words: &[String]) -> Result<Status, Failure> {
        let manifest = read_manifest(&self.directory)?;
        if manifest.ended == Ending::Interrupted {
            return Err(Failure::input(format!(
                "{} was interrupted, at a point that cannot be repeated exactly; continue it with --resume",
                self.directory.display()
            )));
        }
        // Before a simulation whose result would be compared with something else.
        check_files(&self.directory, &manifest.tables)?;
        let temporary;
        let (directory, existing) = match &self.output {
            Some(directory) => {
                (directory.as_path(), if self.force { Existing::Replace } else { Existing::Refuse })
            }
            None => {
                temporary = tempfile::tempdir().map_err(|error| {
                    Failure::input(format!("no room for a second result: {error}; name one with -o"))
                })?;
                (temporary.path(), Existing::Refuse)
            }
        };
        let tables = manifest.tables.keys().copied().collect();
        let output = Output { directory: directory.to_owned(), tables, start: Start::Fresh(existing) };
        let status = run_unshown(request, &self.options(output, words), self.report.quiet)?;
        if status == Status::Interrupted {
            return Ok(status);
        }
        self.compare(directory, &manifest.weft_version)
    }

    fn compare(&self, second: &Path, first_version: &str) -> Result<Status, Failure> {
        let (first, second) = (digest(&self.directory)?, digest(second)?);
        let same = first == second;
        if self.report.format.json {
            output::document(&serde_json::json!({
                "command": "rerun",
                "same": same,
                "digest": first.to_string(),
                "digest_rerun": second.to_string(),
            }))?;
        } else if same {
            output::text(&format!("same digest {first}\n"))?;
        } else {
            output::text(&format!("digest {first}\nrerun  {second}\n"))?;
        }
        if !same {
            let version = env!("CARGO_PKG_VERSION");
            let why = if first_version == version {
                "one version of weft must give the same results: please report this".to_owned()
            } else {
                format!("it was made by weft {first_version}, and this is {version}")
            };
            say!("weft: the results differ: {why}");
        }
        Ok(if same { Status::Done } else { Status::EndedBadly })
    }
}

/// Makes sure that a trace is what it was.
pub fn check_trace(trace: &mut TraceInput) -> Result<(), Failure> {
    trace.program().map_err(|error| Failure::input(error.to_string()))?;
    if !trace.is_file() {
        return Ok(());
    }
    // Without performance.json nobody knows where it was: it may be in the current folder.
    let path =
        if trace.path.as_os_str().is_empty() { PathBuf::from(&trace.name) } else { trace.path.clone() };
    let found = TraceInput::at(&path)?;
    if found.digest != trace.digest {
        return Err(Failure::input(format!(
            "{} has changed since the run; put the trace back that was replayed (SHA-256 digest {})",
            path.display(),
            trace.digest
        )));
    }
    trace.path = path;
    Ok(())
}
