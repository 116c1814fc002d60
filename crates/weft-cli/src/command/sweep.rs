//! `weft sweep`: a study, its points each a process of this command.
//!
//! ```text
//!  study ──missing points──► workers ──words──► processes of weft
//!                              │ exit status, JSON document, error
//!  data set ◄── finish ◄── keep, in this thread
//! ```

use crate::exit::{Failure, Status};
use crate::interrupt::on_ctrl_c;
use crate::options::{ReportOptions, whole_number};
use crate::output;
use crate::progress::Bar;
use crate::standard_error::say;
use crate::study::Sweep;
use clap::{Args, ValueHint};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use weft_sim::experiment::ProgressListener as _;
use weft_study::{Failed, Outcome, Point, StoredStudy, Summary};

/// How often a wish to end is looked for.
const INTERRUPT_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Points that were refused and are shown with their error.
const FAILURES_SHOWN: usize = 5;
/// Cases in the table at the end.
const CASES_SHOWN: usize = 40;

/// Options of `weft sweep`.
#[derive(Args)]
pub struct SweepOptions {
    /// The study, in TOML: a command, what is fixed, what varies, seeds
    #[arg(value_name = "STUDY.toml", value_hint = ValueHint::FilePath)]
    study: PathBuf,

    /// Directory of the study; an interrupted study continues there. By default the study's name, here
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,

    /// Points that run at the same time, a process each; by default one per core
    #[arg(short, long, value_name = "N", value_parser = whole_number(1..=1024))]
    #[arg(allow_negative_numbers = true)]
    jobs: Option<u32>,

    /// Do again what is done
    #[arg(long)]
    force: bool,

    /// List the commands of the points that are not done yet, and run none
    #[arg(long, conflicts_with = "force")]
    list: bool,

    #[command(flatten)]
    report: ReportOptions,
}

/// The end of a point's process.
struct Ended {
    id: String,
    status: u8,
    output: String,
    message: String,
}

impl SweepOptions {
    /// Runs it.
    pub fn run(self, words: &[String]) -> Result<Status, Failure> {
        let mut sweep = Sweep::open(&self.study, self.output.as_deref(), self.force)?;
        let missing = sweep.missing();
        if self.list {
            return list(&missing, self.report.format.json);
        }
        let (all, done) = (sweep.points(), sweep.points() - missing.len());
        if done > 0 && !self.report.quiet {
            say!("weft: {done} of {all} points are done already");
        }
        let jobs = self.jobs.map_or_else(cores, |jobs| jobs as usize);
        let is_whole = self.work(&mut sweep, &missing, (jobs, own_command(words)))?;
        let summary = sweep.finish()?;
        if self.report.format.json {
            output::document(&serde_json::json!({ "command": "sweep", "summary": summary }))?;
        } else {
            let study = StoredStudy::open(&summary.directory)?;
            output::text(&text(&summary, &study, is_whole))?;
        }
        if !is_whole {
            say!("weft: interrupted; the same command continues the study");
            return Ok(Status::Interrupted);
        }
        Ok(match summary.failed.iter().map(|failed| failed.status).max() {
            None => Status::Done,
            Some(2) => Status::BadInput,
            Some(_) => Status::EndedBadly,
        })
    }

    /// Does the missing points; returns whether it came to the last.
    fn work(
        &self,
        sweep: &mut Sweep,
        missing: &[Point],
        (jobs, command): (usize, OsString),
    ) -> Result<bool, Failure> {
        let interrupt = on_ctrl_c()?;
        let bar = Bar::new(self.report.quiet);
        let crew =
            Crew { command, next: AtomicUsize::new(0), ends: AtomicBool::new(false), live: Mutex::default() };
        let (sender, receiver) = channel();
        let mut outcome = Ok(());
        std::thread::scope(|scope| {
            for number in 0..jobs.min(missing.len()) {
                let (crew, sender) = (&crew, sender.clone());
                scope.spawn(move || crew.work(number, missing, &sender));
            }
            drop(sender);
            let mut done = 0;
            loop {
                match receiver.recv_timeout(INTERRUPT_CHECK_INTERVAL) {
                    Ok(ended) => {
                        let Ended { id, status, output, message } = &ended;
                        let outcome_of = Outcome { status: *status, output, message };
                        match sweep.keep(id, &outcome_of) {
                            Ok(Some(failed)) => bar.warn(&failure_line(&failed)),
                            Ok(None) => {}
                            Err(failure) => {
                                outcome = Err(failure);
                                crew.end();
                            }
                        }
                        done += 1;
                        let share = f64::from(done) / missing.len() as f64;
                        bar.advance(share.min(0.999), &format!("{done} of {} points", missing.len()));
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                if interrupt.is_requested() {
                    crew.end();
                }
            }
        });
        bar.advance(1.0, "");
        outcome.map(|()| !interrupt.is_requested())
    }
}

/// Workers, and the processes that they wait for.
struct Crew {
    command: OsString,
    /// The number of the point that is begun next.
    next: AtomicUsize,
    /// Whether no more points are begun.
    ends: AtomicBool,
    /// The processes that have not been waited for, by worker.
    live: Mutex<BTreeMap<usize, Child>>,
}

impl Crew {
    /// Begins one missing point after another, and sends how each ended.
    fn work(&self, number: usize, missing: &[Point], ended: &Sender<Ended>) {
        while !self.ends.load(Ordering::SeqCst) {
            let Some(point) = missing.get(self.next.fetch_add(1, Ordering::SeqCst)) else { return };
            let end = self.run(number, point).unwrap_or_else(|error| Ended {
                id: point.id.clone(),
                status: Status::EndedBadly.code(),
                output: String::new(),
                message: format!("cannot start {}: {error}", self.command.display()),
            });
            if ended.send(end).is_err() {
                return;
            }
        }
    }

    fn run(&self, number: usize, point: &Point) -> io::Result<Ended> {
        let mut child = Command::new(&self.command)
            .args(&point.words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (out, error) = (child.stdout.take(), child.stderr.take());
        self.live.lock().unwrap_or_else(PoisonError::into_inner).insert(number, child);
        let message = std::thread::spawn(move || {
            let mut text = Vec::new();
            let read = error.map(|mut error| error.read_to_end(&mut text));
            read.transpose().map(|_| text)
        });
        let mut output = Vec::new();
        if let Some(mut out) = out {
            out.read_to_end(&mut output)?;
        }
        let message = message.join().unwrap_or_else(|_| Ok(Vec::new()))?;
        // Both ends are closed: the process is at its end, and is waited for while nobody signals it.
        let child = self.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        let status = child.map(|mut child| child.wait()).transpose()?.and_then(|status| status.code());
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let message = text(message).trim().trim_start_matches("weft: ").to_owned();
        let killed = "its process was killed: there may be too little memory for so many at once; see --jobs";
        Ok(Ended {
            id: point.id.clone(),
            status: status.map_or(Status::EndedBadly.code(), |status| status as u8),
            output: if status.is_some() { text(output) } else { String::new() },
            message: if status.is_some() { message } else { killed.to_owned() },
        })
    }

    /// Begins no more points, and asks those that run to end.
    fn end(&self) {
        if self.ends.swap(true, Ordering::SeqCst) {
            return;
        }
        for child in self.live.lock().unwrap_or_else(PoisonError::into_inner).values() {
            // One that has ended meanwhile needs no signal.
            let _ = kill_process(Pid::from_child(child), Signal::INT);
        }
    }
}

/// The program that runs a point: this one. Within Python it is the script that has called this.
fn own_command(words: &[String]) -> OsString {
    let own = std::env::current_exe().ok().filter(|path| path.file_stem().is_some_and(|stem| stem == "weft"));
    own.map_or_else(|| words.first().map_or("weft".into(), OsString::from), PathBuf::into_os_string)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn list(missing: &[Point], json: bool) -> Result<Status, Failure> {
    if json {
        output::document(&serde_json::json!({ "command": "sweep", "points": missing }))?;
    } else {
        let line = |point: &Point| format!("weft {}\n", point.words.join(" "));
        output::text(&missing.iter().map(line).collect::<String>())?;
    }
    Ok(Status::Done)
}

/// The parameters of a refused point, and its error with key and mend.
fn failure_line(failed: &Failed) -> String {
    format!("{}: {}", failed.label(), failed.reason().join("\n    "))
}

fn text(summary: &Summary, study: &StoredStudy, is_whole: bool) -> String {
    let Summary { directory, points, done, rows, intervals, failed } = summary;
    let mut text = output::report_table(&study.table(CASES_SHOWN));
    text += &format!("{done} of {points} points done, {} refused\n", failed.len());
    for failed in failed.iter().take(FAILURES_SHOWN) {
        text += &format!("  {}\n", failure_line(failed));
    }
    if failed.len() > FAILURES_SHOWN {
        text +=
            &format!("  {} more: see {}/study.json\n", failed.len() - FAILURES_SHOWN, directory.display());
    }
    for missing in study.unmeasured() {
        text += &format!("{missing}\n");
    }
    let name = directory.display();
    if *rows == 0 && !is_whole && failed.is_empty() {
        return text + &format!("{name} has no results yet: the study was stopped before its first point\n");
    }
    if *rows == 0 {
        return text + &format!("{name} has no results to show; mend the study and run it again\n");
    }
    text + &format!(
        "{name}/study.parquet: {rows} rows\n{name}/intervals.parquet: {intervals} rows, over seeds\n\
         weft plot, report and view show it\n"
    )
}
