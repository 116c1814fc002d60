//! A real program on a machine, from its places to its report.
//!
//! ```text
//!   Request ─► places ─► LiveRun ─► Processes::start ─► simulate ─► end all, hear the last ─► Execution
//!                                        │                 ▲
//!                                        └─ deaths, aborts ┘ stop          guard: Ctrl-C, wall limit ─► stop
//! ```

use crate::domains::Domains;
use crate::job::Job;
use crate::launch::processes::{Processes, Start, environment_of};
use crate::launch::program::ProgramError;
use crate::launch::{Libraries, Missing, Recorder, program};
use crate::live::seating;
use crate::live_end::LiveEnd;
use crate::lock::lock;
use crate::report_text;
use crate::run::{LiveError, LiveRun};
use crate::setup::LiveSetup;
use crate::wall::Stopwatch;
use crate::watchers::{Guard, ProcessWatch, StartReport, Unwritten};
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{JoinHandle, Scope};
use std::time::Duration;
use weft_assembly as assembly;
use weft_client::device::HostModel;
use weft_machine::{Machine, Nic};
use weft_msg::{ActiveMessages, ClearToSend, Protocol, Rendezvous, SynchronousSends, Wildcards};
use weft_results::Conclusion;
use weft_sim::experiment::live::{LiveAccount, RunReport, RunRequest};
use weft_sim::experiment::{self, Control, ExperimentError, ExperimentOptions, Placement};
use weft_topo::Layout;
use weft_units::{Bytes, EndpointId, Span, Time};
use weft_workload::jobs;

/// A program to run as a job, and the options of the run.
#[derive(Clone, Debug)]
pub struct Request {
    /// On which machine, how many ranks, and where: all that the results depend on beside the program.
    pub run: RunRequest,
    /// The files and reports that are asked for.
    pub options: ExperimentOptions,
    /// How computation moves clocks.
    pub host: HostModel,
    /// The library that records ranks: preloaded, and added to their environment.
    pub recorder: Option<Recorder>,
    /// Added to the environment of every rank.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether the program may be one of MPI: a report of its early end then says so.
    pub may_use_mpi: bool,
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

/// The outcome of a job.
#[derive(Clone, Debug)]
pub struct Execution {
    /// How it ended.
    pub end: LiveEnd,
    /// Which rank waited for what, or died how: some lines, or none.
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
    /// The measurements of the run.
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
        "the machine does not say what {what} costs; add `{key}` to its [host], such as {key} = \"50ns\", or \
         --set host.{key}=50ns"
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
    /// A library that ranks load is not there.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The job cannot be simulated.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The program is there, and what its first line or its header names is not.
    #[error("{}: the interpreter that it names (its first line, `#!…`, or of a linked program the loader) is \
             not there; install it, or name it before the program", .0.display())]
    NoInterpreter(PathBuf),
    /// A process cannot be started.
    #[error(
        "a rank's process cannot be started: {0}; ask for fewer ranks, or raise the limits of processes and \
         open files (ulimit -u, -n)"
    )]
    Start(#[source] io::Error),
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

/// Everything that is known before the first process starts.
struct Plan {
    machine: Machine,
    layout: Layout,
    endpoints: Vec<EndpointId>,
    poll: Span,
    clock_read: Span,
    program: PathBuf,
    arguments: Vec<OsString>,
    libraries: Libraries,
    protocol: Protocol,
    /// Interfaces of a host that its ranks use.
    rails: u32,
}

impl Plan {
    fn of(request: &Request) -> Result<Plan, ExecuteError> {
        let (name, arguments) = request.command.split_first().ok_or(ExecuteError::NoProgram)?;
        let machine = experiment::machine::checked(&request.run.machine)?;
        let layout = assembly::layout(&machine).map_err(ExperimentError::input)?;
        let (poll, clock_read) = costs(&machine)?;
        let jobs = [jobs::Job { name: &name.to_string_lossy(), ranks: request.run.ranks.into() }];
        let placement = Placement {
            map: &request.run.map,
            jobs: &jobs,
            ranks_per_host: request.run.ranks_per_host,
            seed: request.run.seed,
        };
        let places = placement.places(&machine, &layout)?;
        let endpoints = places.iter().map(|place| place.endpoint).collect();
        let program = program::find(name)?;
        let libraries = Libraries::find()?;
        let protocol = protocol(&machine)?;
        let rails = rails(&machine, &layout)?;
        if rails > 1 && request.run.breakdown {
            return Err(no_rails("a breakdown follows messages by one interface"));
        }
        let arguments = arguments.to_vec();
        Ok(Plan {
            machine,
            layout,
            endpoints,
            poll,
            clock_read,
            program,
            arguments,
            libraries,
            protocol,
            rails,
        })
    }

    /// The run, none of whose processes has been started.
    fn live_run(&self, request: &Request) -> Result<LiveRun, ExecuteError> {
        let setup = LiveSetup {
            overlapping: true,
            protocol: &self.protocol,
            rails: self.rails,
            host: request.host,
            poll: self.poll,
            clock_read: self.clock_read,
            jumps: request.run.fast_polling,
            watchdog: request.watchdog,
            message_buffers: self.machine.host.message_buffers,
            domains: Domains::new(&request.run.domains),
            seed: request.run.seed,
        };
        let mut account = LiveAccount::open(
            request.run.clone(),
            request.options.clone(),
            seating(&self.endpoints),
            (&self.machine, &self.layout),
        )?;
        if self.rails > 1 {
            account.leave_out_path();
        }
        Ok(LiveRun::new(&self.machine, self.layout.clone(), account, &setup)?)
    }

    fn start(&self, request: &Request) -> Start {
        let mut environment = environment_of(&self.libraries, request.recorder.as_ref());
        environment.extend(request.environment.iter().cloned());
        Start {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            environment,
            label: request.label,
            // A rank is not in the terminal's foreground group: reading from it would stop the process
            // (SIGTTIN).
            input: !io::stdin().is_terminal(),
        }
    }
}

/// The interfaces of a host by which the messages of each of its ranks go.
fn rails(machine: &Machine, layout: &Layout) -> Result<u32, ExecuteError> {
    let rails = assembly::rails(machine, layout).map_err(ExperimentError::input)?;
    if rails > 1 && !matches!(machine.nic, Nic::Overheads(_) | Nic::Portals(_)) {
        return Err(no_rails("a real rank has its mailbox and its pages at one interface of this kind"));
    }
    Ok(rails)
}

fn no_rails(why: &str) -> ExecuteError {
    ExperimentError::input(format!(
        "messaging.rails: {why}; add --set messaging.rails=none, or replay a recording of the program"
    ))
    .into()
}

/// The machine's messaging as real ranks use it.
fn protocol(machine: &Machine) -> Result<Protocol, ExecuteError> {
    let mut protocol = assembly::protocol(machine, Wildcards::Free).map_err(ExperimentError::input)?;
    // The data of real ranks is moved by their own processors' orders.
    (protocol.rendezvous, protocol.clear_to_send) = (Rendezvous::Write, ClearToSend::Sender);
    // The provider copies what is sent eagerly, and has its completion from the copy.
    protocol.eager_ack = false;
    // A library that wants receipts and active messages sends them itself.
    (protocol.synchronous_sends, protocol.active_messages) =
        (SynchronousSends::Announced, ActiveMessages::None);
    Ok(protocol)
}

/// Starts the ranks' processes. Returns them, and the thread that watches them.
fn start_processes(
    job: &Arc<Job>,
    plan: &Plan,
    request: &Request,
    unwritten: &Unwritten,
) -> Result<(Processes, JoinHandle<()>), ExecuteError> {
    let watch = ProcessWatch {
        job: Arc::clone(job),
        output_to_error: request.output_to_error,
        unwritten: Arc::clone(unwritten),
    };
    Processes::start(job, &plan.start(request), Box::new(watch)).map_err(|error| match error.kind() {
        // The program itself has been found.
        io::ErrorKind::NotFound => ExecuteError::NoInterpreter(plan.program.clone()),
        _ => ExecuteError::Start(error),
    })
}

/// The ranks as the end of the simulation finds them, in words, before any of them is ended.
#[derive(Default)]
struct Scene {
    /// The ranks that wait, in a deadlock.
    waiting: String,
    /// The whereabouts of ranks when the job was ended from outside, or by one of them.
    others: String,
}

impl Scene {
    fn of(job: &Job, end: Option<&LiveEnd>) -> Scene {
        match end {
            Some(LiveEnd::Deadlock(waiting)) => {
                Scene { waiting: report_text::deadlock(job, waiting), others: String::new() }
            }
            Some(LiveEnd::NoProgress(waiting, full)) => {
                Scene { waiting: report_text::no_progress(job, waiting, full), others: String::new() }
            }
            // Ranks that have come to their ends are nowhere.
            Some(LiveEnd::Finished) => Scene::default(),
            _ => {
                let ended = match job.ended() {
                    Some(LiveEnd::RankEnded(rank, _) | LiveEnd::Aborted(rank, _)) => Some(rank),
                    _ => None,
                };
                Scene { waiting: String::new(), others: report_text::whereabouts(job, ended) }
            }
        }
    }
}

/// How the job ended, after its processes have: the first reason to end it counts more than what the
/// simulation found.
fn end_of(job: &Job, simulated: LiveEnd) -> LiveEnd {
    match job.ended().unwrap_or(simulated) {
        LiveEnd::Finished if !job.is_used() => LiveEnd::NoRank,
        LiveEnd::Stopped => LiveEnd::Finished,
        end => end,
    }
}

/// Runs a program. `begins` is called with the program's path before it starts. `control` hears how many of
/// its ranks have started.
///
/// # Errors
/// See [`ExecuteError`]; a program that fails is not an error but a [`LiveEnd`].
pub fn execute(
    request: &Request,
    control: Control<'_>,
    begins: &mut dyn FnMut(&Path),
) -> Result<Execution, ExecuteError> {
    std::thread::scope(|scope| execute_in(scope, request, control, begins))
}

/// [`execute`], with the scope of a thread that tells of progress.
fn execute_in<'scope>(
    scope: &'scope Scope<'scope, '_>,
    request: &Request,
    control: Control<'scope>,
    begins: &mut dyn FnMut(&Path),
) -> Result<Execution, ExecuteError> {
    let since = Stopwatch::start();
    let plan = Plan::of(request)?;
    let mut run = plan.live_run(request)?;
    let job = run.job();
    begins(&plan.program);
    let unwritten = Unwritten::default();
    let start_report = StartReport::begin(scope, Arc::clone(&job), control.progress);
    let (processes, watcher) = start_processes(&job, &plan, request, &unwritten)?;
    let guard = Guard::start(Arc::clone(&job), control.interrupt.clone(), since, request.wall_limit);
    let limit = request.time_limit.map_or(Time::NEVER, |limit| Time::ZERO + limit);
    let simulated = run.simulate(limit, &mut || processes.release());
    drop(start_report);
    let virtual_time = run.now();
    let scene = Scene::of(&job, simulated.as_ref().ok());
    if !matches!(simulated, Ok(LiveEnd::Finished)) {
        job.stop();
        processes.kill();
    }
    job.flush_output();
    // It ends when all ranks have ended and their output is passed on.
    let _ = watcher.join();
    drop(guard);
    let end = run.end_with_rtl(end_of(&job, simulated?))?;
    let reason = report_text::reason(&job, &end, request.may_use_mpi);
    let detail = if reason.is_empty() { scene.waiting } else { reason };
    let others = match end {
        LiveEnd::Finished
        | LiveEnd::NoRank
        | LiveEnd::Interrupted
        | LiveEnd::Deadlock(_)
        | LiveEnd::NoProgress(..) => String::new(),
        _ => scene.others,
    };
    let (messages, bytes) = run.sent();
    let said = Some(detail.clone()).filter(|detail| !detail.is_empty());
    let conclusion = Conclusion { ended: end.ending(), detail: said };
    let report = run.finish(&plan.machine, &plan.layout, conclusion)?;
    let wall = since.elapsed();
    let unwritten = lock(&unwritten).take().map(|error| error.to_string());
    Ok(Execution { end, detail, others, unwritten, virtual_time, messages, bytes, wall, report })
}
