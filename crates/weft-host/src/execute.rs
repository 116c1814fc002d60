//! A real program on a machine, from its places to its report.
//!
//! ```text
//!   Request ─► places ─► LiveRun ─► Processes::start ─► simulate ─► end all, hear the last ─► Execution
//!                                        │                 ▲
//!                                        └─ deaths, aborts ┘ stop          guard: Ctrl-C, wall limit ─► stop
//! ```

use crate::job::{Death, Job};
use crate::launch::processes::{Processes, Start, Watch, environment_of};
use crate::launch::program::ProgramError;
use crate::launch::{Libraries, Missing, program};
use crate::live::seating;
use crate::nonsense::Nonsense;
use crate::run::{LiveEnd, LiveError, LiveRun, LiveSetup};
use crate::waiting;
use crate::wall::Stopwatch;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use weft_client::device::HostModel;
use weft_msg::{ActiveMessages, ClearToSend, Rendezvous, SynchronousSends, Wildcards};
use weft_sim::assembly;
use weft_sim::experiment::live::{LiveAccount, RunReport, RunRequest};
use weft_sim::experiment::{self, ExperimentError, Interrupt, RunOptions};
use weft_sim::machine::Machine;
use weft_sim::results::Ending;
use weft_units::{Bytes, Span, Time};

/// How often limits in real time are looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Request {
    /// On which machine, how many ranks, and where: all that the results depend on beside the program.
    pub run: RunRequest,
    /// Where results go.
    pub options: RunOptions,
    /// How computation moves clocks.
    pub host: HostModel,
    /// What is preloaded into ranks and added to their environment, to record them.
    pub recorder: Option<Recorder>,
    /// Whether every line of output begins with its rank.
    pub label: bool,
    /// Whether ranks' standard output goes to standard error.
    pub output_to_error: bool,
    /// End when virtual time reaches this.
    pub time_limit: Option<Span>,
    /// End when so much real time has passed.
    pub wall_limit: Option<Duration>,
    /// End when a rank keeps its turn for so long in real time.
    pub watchdog: Option<Duration>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// A recorder of MPI calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorder {
    /// Its library.
    pub library: PathBuf,
    /// What it is told by the environment: a variable and its value.
    pub variable: (&'static str, PathBuf),
}

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Every rank has ended with status 0.
    Finished,
    /// This rank was the first to end otherwise, or inside MPI; the others were ended.
    RankEnded(u32, Death),
    /// This rank has called MPI_Abort with this status.
    Aborted(u32, i32),
    /// Every rank has ended with status 0, and none has used the network interface at all.
    NoRank,
    /// Nothing can ever happen again.
    Deadlock,
    /// A rank has kept its turn for longer than the watchdog allows.
    Silent(u32),
    /// The network has lost a message for good: why.
    Lost(String),
    /// This rank has written into its device what no library does.
    Broken(u32, Nonsense),
    /// Virtual time has reached its limit.
    TimeLimit,
    /// So has real time.
    WallLimit,
    /// The user asked for it.
    Interrupted,
}

impl Outcome {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Finished => "finished",
            Outcome::RankEnded(..) => "rank failed",
            Outcome::Aborted(..) => "aborted",
            Outcome::NoRank => "no rank",
            Outcome::Deadlock => "deadlock",
            Outcome::Silent(_) => "silent",
            Outcome::Lost(_) => "lost data",
            Outcome::Broken(..) => "broken rank",
            Outcome::TimeLimit | Outcome::WallLimit => "limit reached",
            Outcome::Interrupted => "interrupted",
        }
    }

    /// Its name in results.
    pub fn ending(&self) -> Ending {
        match self {
            Outcome::Finished => Ending::Finished,
            Outcome::RankEnded(..) | Outcome::Aborted(..) | Outcome::Broken(..) | Outcome::NoRank => {
                Ending::RankFailed
            }
            Outcome::Deadlock => Ending::Deadlock,
            Outcome::Lost(_) => Ending::LostData,
            Outcome::Silent(_) | Outcome::TimeLimit | Outcome::WallLimit => Ending::LimitReached,
            Outcome::Interrupted => Ending::Interrupted,
        }
    }

    /// The exit status of the command: that of the program where it has one, else as DESIGN.md says.
    pub fn exit_status(&self) -> u8 {
        match self {
            Outcome::Finished => 0,
            Outcome::RankEnded(_, death) => status_of(*death),
            Outcome::Aborted(_, status) => status_of(Death::Exited(*status)),
            Outcome::Deadlock
            | Outcome::Silent(_)
            | Outcome::Lost(_)
            | Outcome::Broken(..)
            | Outcome::TimeLimit
            | Outcome::WallLimit => 1,
            Outcome::NoRank => 2,
            Outcome::Interrupted => 130,
        }
    }
}

/// As a shell has it; a rank that leaves MPI behind has failed whatever it says.
fn status_of(death: Death) -> u8 {
    match death {
        Death::Exited(status) => u8::try_from(status & 0xff).unwrap_or(1).max(1),
        Death::Killed(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
    }
}

/// What a job has done.
#[derive(Clone, Debug)]
pub struct Execution {
    /// How it ended.
    pub outcome: Outcome,
    /// Who waited for what, which rank died how: some lines, or none.
    pub detail: String,
    /// Where the other ranks were when the job was ended, a line each; none where that says nothing.
    pub others: String,
    /// Why some of what ranks printed could not be written.
    pub unwritten: Option<String>,
    /// The largest clock of a rank at the end.
    pub virtual_time: Time,
    /// Messages that carried data of ranks, those of MPI itself included.
    pub messages: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// Real time, start and end of processes included.
    pub wall: Duration,
    /// What was measured.
    pub report: RunReport,
}

/// Why nothing was run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// The machine, or the places on it.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The machine does not say what real programs need.
    #[error(
        "the machine does not say what {what} costs; add `{key}` to its [host], such as {key} = \"50ns\", or --set host.{key}=50ns"
    )]
    Cost {
        /// In words.
        what: &'static str,
        /// The key.
        key: &'static str,
    },
    /// No program is named.
    #[error("no program to run; write it behind `--`: weft run -m exanest -n 4 -- ./program")]
    NoProgram,
    /// The program cannot be a rank.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// What ranks load is not there.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The job cannot be simulated.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The program is there, and what its first line or its header names is not.
    #[error("{}: the interpreter that it names (its first line, `#!…`, or of a linked program the loader) is not there; install it, or name it before the program", .0.display())]
    NoInterpreter(PathBuf),
    /// A process cannot be started.
    #[error(
        "a rank's process cannot be started: {0}; ask for fewer ranks, or raise the limits of processes and open files (ulimit -u, -n)"
    )]
    Start(#[source] io::Error),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Poisoned by a panic of the other thread, which ends the run anyway.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Hears what ranks say and how they end.
struct Hearer {
    job: Arc<Job>,
    first: Arc<Mutex<Option<Outcome>>>,
    output_to_error: bool,
    /// Why what a rank printed could not be passed on, though somebody reads.
    unwritten: Arc<Mutex<Option<io::Error>>>,
}

impl Hearer {
    fn ends(&self, outcome: Outcome) {
        lock(&self.first).get_or_insert(outcome);
        self.job.stop();
    }
}

impl Watch for Hearer {
    fn lines(&mut self, _: u32, error: bool, lines: &[u8]) {
        let written = if error || self.output_to_error {
            io::stderr().write_all(lines)
        } else {
            let mut out = io::stdout().lock();
            out.write_all(lines).and_then(|()| out.flush())
        };
        // Where nobody reads any more the job goes on, and nobody misses anything.
        if let Some(error) = written.err().filter(|error| error.kind() != io::ErrorKind::BrokenPipe) {
            lock(&self.unwritten).get_or_insert(error);
        }
    }

    fn ended(&mut self, rank: u32, death: Death, inside: bool) {
        if !self.job.is_stopping() && (inside || death != Death::Exited(0)) {
            self.ends(Outcome::RankEnded(rank, death));
        }
    }

    fn aborted(&mut self, rank: u32, status: i32) {
        self.ends(Outcome::Aborted(rank, status));
    }
}

/// Ends the job on Ctrl-C and at its limit in real time, until dropped.
struct Guard {
    done: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Guard {
    fn start(
        job: Arc<Job>,
        interrupt: Interrupt,
        since: Stopwatch,
        limit: Option<Duration>,
        first: Arc<Mutex<Option<Outcome>>>,
    ) -> Guard {
        let done = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&done);
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                let outcome = if interrupt.is_requested() {
                    Some(Outcome::Interrupted)
                } else {
                    limit.filter(|limit| since.elapsed() >= *limit).map(|_| Outcome::WallLimit)
                };
                if let Some(outcome) = outcome {
                    lock(&first).get_or_insert(outcome);
                    return job.stop();
                }
                std::thread::sleep(LOOK);
            }
        });
        Guard { done, thread: Some(thread) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // It cannot fail but by a panic, which is told elsewhere.
            let _ = thread.join();
        }
    }
}

/// The costs that real programs need of a machine.
fn costs(machine: &Machine) -> Result<(Span, Span), ExecuteError> {
    let poll = machine.host.poll.filter(|span| *span > Span::ZERO);
    let clock_read = machine.host.clock_read.filter(|span| *span > Span::ZERO);
    Ok((
        poll.ok_or(ExecuteError::Cost { what: "an empty poll", key: "poll" })?,
        clock_read.ok_or(ExecuteError::Cost { what: "a look at the clock", key: "clock_read" })?,
    ))
}

/// Runs a program. `begins` is told of the job before it starts.
///
/// # Errors
/// See [`ExecuteError`]; a program that fails is no error but an [`Outcome`].
pub fn execute(
    request: &Request,
    interrupt: &Interrupt,
    begins: &mut dyn FnMut(&std::path::Path),
) -> Result<Execution, ExecuteError> {
    let since = Stopwatch::start();
    let (name, arguments) = request.command.split_first().ok_or(ExecuteError::NoProgram)?;
    let machine = experiment::machine::checked(&request.run.machine)?;
    let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
    let (poll, clock_read) = costs(&machine)?;
    let places = experiment::places(
        &request.run.map,
        request.run.ranks.into(),
        request.run.ranks_per_host,
        request.run.seed,
        &machine,
        &layout,
    )?;
    let endpoints: Vec<_> = places.iter().map(|place| place.endpoint).collect();
    let program = program::find(name)?;
    let libraries = Libraries::find()?;
    let mut protocol = assembly::protocol(&machine, Wildcards::Free).map_err(ExperimentError::input)?;
    // The data of real ranks is moved by their own processors' orders.
    (protocol.rendezvous, protocol.clear_to_send) = (Rendezvous::Write, ClearToSend::Sender);
    // A library that wants receipts and active messages sends them itself.
    (protocol.synchronous_sends, protocol.active_messages) =
        (SynchronousSends::Announced, ActiveMessages::None);
    let setup = LiveSetup {
        overlapping: true,
        protocol: &protocol,
        host: request.host,
        poll,
        clock_read,
        jumps: request.run.fast_polling,
        watchdog: request.watchdog,
        seed: request.run.seed,
    };
    let account = LiveAccount::open(
        request.run.clone(),
        request.options.clone(),
        seating(&endpoints),
        (&machine, &layout),
    )?;
    let mut run = LiveRun::new(&machine, layout.clone(), account, &setup)?;
    let job = run.job();
    let first = Arc::new(Mutex::new(None));
    begins(&program);
    let start = Start {
        program,
        arguments: arguments.to_vec(),
        environment: environment_of(&libraries, request.recorder.as_ref()),
        label: request.label,
        // A rank is no foreground process of a terminal, which would stop it when it reads.
        input: !io::stdin().is_terminal(),
    };
    let unwritten = Arc::new(Mutex::new(None));
    let hearer = Hearer {
        job: Arc::clone(&job),
        first: Arc::clone(&first),
        output_to_error: request.output_to_error,
        unwritten: Arc::clone(&unwritten),
    };
    let (processes, watcher) =
        Processes::start(&job, &start, Box::new(hearer)).map_err(|error| match error.kind() {
            // The program itself has been found.
            io::ErrorKind::NotFound => ExecuteError::NoInterpreter(start.program.clone()),
            _ => ExecuteError::Start(error),
        })?;
    let guard =
        Guard::start(Arc::clone(&job), interrupt.clone(), since, request.wall_limit, Arc::clone(&first));
    let until = request.time_limit.map_or(Time::MAX, |limit| Time::ZERO + limit);
    let end = run.simulate(until, &mut || processes.release());
    let virtual_time = run.now();
    let (mut detail, mut others) = (String::new(), String::new());
    match &end {
        Ok(LiveEnd::Deadlock(waiting)) => detail = waiting::describe(&job, waiting),
        // Nobody is told of where ranks are that have come to their ends.
        Ok(LiveEnd::Finished) => {}
        _ => {
            let ended = match *lock(&first) {
                Some(Outcome::RankEnded(rank, _) | Outcome::Aborted(rank, _)) => Some(rank),
                _ => None,
            };
            others = waiting::whereabouts(&job, ended);
        }
    }
    if !matches!(end, Ok(LiveEnd::Finished)) {
        job.stop();
        processes.kill();
    }
    job.is_over();
    // It ends when all ranks have, and what they said is said.
    let _ = watcher.join();
    drop(guard);
    let outcome = match (end?, lock(&first).take()) {
        (_, Some(outcome)) => outcome,
        (LiveEnd::Deadlock(_), None) => Outcome::Deadlock,
        (LiveEnd::Silent(rank), None) => Outcome::Silent(rank),
        (LiveEnd::Missing(rank), None) => Outcome::RankEnded(rank, Death::Exited(0)),
        (LiveEnd::Lost(reason), None) => Outcome::Lost(reason),
        (LiveEnd::Broken(rank, nonsense), None) => Outcome::Broken(rank, nonsense),
        (LiveEnd::TimeLimit, None) => Outcome::TimeLimit,
        (LiveEnd::Finished, None) if !job.is_used() => Outcome::NoRank,
        (LiveEnd::Finished | LiveEnd::Stopped, None) => Outcome::Finished,
    };
    match &outcome {
        Outcome::RankEnded(rank, death) => {
            let without = if *death == Death::Exited(0) { " without MPI_Finalize" } else { "" };
            detail = format!(
                "rank {rank} has {}{without}{}",
                waiting::ending(*death),
                waiting::after(&job, *rank)
            );
            if *death != Death::Exited(0) && !job.is_used() {
                // Its own messages say what else it may have been.
                detail += ", and no rank had called MPI_Init by then: what it printed may say why. Where something else has started \
                           it and closed its descriptors (Python's subprocess: close_fds=False keeps them), name the program itself";
            }
        }
        Outcome::Aborted(rank, status) => {
            detail =
                format!("rank {rank} called MPI_Abort with status {status}{}", waiting::after(&job, *rank));
        }
        Outcome::Lost(reason) => detail.clone_from(reason),
        Outcome::NoRank => {
            detail = "the program has used neither MPICH nor weft.h, so that nothing ran in virtual time; name a program that is \
                      linked to MPICH with libfabric (libmpi.so.12, build/venv/bin/mpicc) or to libweft_client.so"
                .to_owned();
        }
        Outcome::Broken(rank, nonsense) => {
            detail = format!(
                "rank {rank} wrote {nonsense} into its device; has its program written over memory that is not its own, or is its \
                 library not this weft's?"
            );
        }
        Outcome::Silent(rank) => {
            detail = format!(
                "rank {rank} computed or waited outside MPI for longer than the watchdog allows (--watchdog)"
            );
        }
        _ => {}
    }
    let (messages, bytes) = run.sent();
    let said = Some(detail.clone()).filter(|detail| !detail.is_empty());
    let report = run.finish(&machine, &layout, outcome.ending(), said)?;
    if matches!(outcome, Outcome::Finished | Outcome::NoRank | Outcome::Interrupted | Outcome::Deadlock) {
        others.clear();
    }
    let wall = since.elapsed();
    let unwritten = lock(&unwritten).take().map(|error| error.to_string());
    Ok(Execution { outcome, detail, others, unwritten, virtual_time, messages, bytes, wall, report })
}
