//! The processes of a job: started, watched, ended.
//!
//! ```text
//!   Processes::start ─► N children ─┬─ PMI socket ──► pmi ──► job.fence
//!                                   ├─ standard output, error ──► output
//!                                   └─ pidfd ──► job.died
//! ```
//! One thread watches them all. A child dies with the thread that started it, even if weft is killed: its
//! parent-death signal says so. Nothing lies in a file system: devices are memory files.

use super::Recorder;
use super::door::Door;
use super::output::{Left, Output, Pipes};
use super::pmi::{Asked, LONGEST_LINE, Pmi};
use super::poller::{Poller, open_descriptor};
use crate::job::Job;
use crate::live_end::Death;
use crate::lock::lock;
use crate::wall::Stopwatch;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The number of the descriptor by which a rank speaks PMI.
const PMI_DESCRIPTOR: i32 = 3;

/// How long nobody looks after a rank that has printed more than is collected, or after those that have
/// ended.
const SHORT: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// So long what a rank has started may print when all ranks have ended.
const LINGER: Duration = Duration::from_secs(1);

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A program to start, and how its ranks are started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program, found.
    pub program: PathBuf,
    /// The program's arguments.
    pub arguments: Vec<OsString>,
    /// Added to the environment of every rank.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether every line of output begins with its rank.
    pub label: bool,
    /// Whether rank 0 reads the standard input of this process.
    pub input: bool,
}

/// An observer of the processes: it gets their output and their ends.
pub trait Watch: Send {
    /// Whole lines that a rank has printed, their ends included where there were some.
    fn lines(&mut self, rank: u32, error: bool, lines: &[u8]);
    /// A rank has ended; `inside`: between MPI_Init and MPI_Finalize.
    fn ended(&mut self, rank: u32, death: Death, inside: bool);
    /// A rank has called MPI_Abort.
    fn aborted(&mut self, rank: u32, status: i32);
}

/// The processes of a job, from the side of the run.
pub struct Processes {
    pmi: Arc<Mutex<Vec<Option<UnixStream>>>>,
    in_barrier: Arc<Mutex<Vec<u32>>>,
    ids: Vec<u32>,
}

struct Watched {
    rank: u32,
    child: Child,
    pidfd: OwnedFd,
    /// The stream of the rank's requests to its process manager.
    asks: Option<Asks>,
    /// The descriptors of its pipes, and what can come of them.
    prints: [(RawFd, Left); 2],
    death: Option<Death>,
}

/// Lines for the process manager.
struct Asks {
    from: UnixStream,
    pending: Vec<u8>,
}

/// Something of a rank that can become ready.
#[derive(Clone, Copy)]
enum Ready {
    Ended,
    Asks,
    Prints,
}

impl Ready {
    const ALL: [Ready; 3] = [Ready::Ended, Ready::Asks, Ready::Prints];

    /// The key under which a descriptor of a rank is watched.
    fn key(self, rank: u32) -> u64 {
        u64::from(rank) << 2 | self as u64
    }
}

/// The key of the door and of the guests in it.
const DOOR_KEY: u64 = u64::MAX;

impl Processes {
    /// Starts the ranks and watches them in a thread of its own, which ends when all have ended.
    ///
    /// # Errors
    /// The first process that cannot be started; those before it are ended.
    pub fn start(
        job: &Arc<Job>,
        start: &Start,
        watch: Box<dyn Watch>,
    ) -> io::Result<(Processes, std::thread::JoinHandle<()>)> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (job, start) = (Arc::clone(job), start.clone());
        // A child dies with the thread that started it: so it is the thread that watches.
        let watcher = std::thread::Builder::new().name("processes".to_owned()).spawn(move || {
            // Without it ranks must inherit their descriptors.
            let door = Door::open().ok();
            let begun = Watcher::begin(job, &start, watch, door);
            let (watcher, children) = match begun {
                Ok(begun) => begun,
                Err(error) => return drop(sender.send(Err(error))),
            };
            drop(sender.send(Ok(watcher.processes(&children))));
            watcher.watch(children);
        })?;
        let processes = receiver.recv().map_err(|_| io::Error::other("the watching thread has ended"))??;
        Ok((processes, watcher))
    }

    /// Lets all ranks that are in the process manager's barrier go.
    pub fn release(&self) {
        let waiting = std::mem::take(&mut *lock(&self.in_barrier));
        let mut sockets = lock(&self.pmi);
        for rank in waiting {
            if let Some(socket) = &mut sockets[rank as usize] {
                // A rank that is gone needs no answer.
                let _ = socket.write_all(b"cmd=barrier_out\n");
            }
        }
    }

    /// Ends all that still run.
    pub fn kill(&self) {
        for id in &self.ids {
            if let Some(process) = i32::try_from(*id).ok().and_then(Pid::from_raw) {
                // The group of the rank: what it has started goes too. One that is gone cannot be killed.
                let _ = rustix::process::kill_process_group(process, rustix::process::Signal::KILL);
            }
        }
    }
}

fn start_rank(
    job: &Job,
    start: &Start,
    rank: u32,
    place: Option<&str>,
) -> io::Result<(Watched, UnixStream, Pipes)> {
    let (ours, theirs) = UnixStream::pair()?;
    let input = if rank == 0 && start.input { Stdio::inherit() } else { Stdio::null() };
    let mut command = Command::new(&start.program);
    command
        .args(&start.arguments)
        .envs(start.environment.iter().map(|(key, value)| (key, value)))
        .env("WEFT_JOB", job.name())
        .env("WEFT_DEVICE", job.device_path(rank))
        .env("PMI_FD", PMI_DESCRIPTOR.to_string())
        .env("PMI_RANK", rank.to_string())
        .env("PMI_SIZE", job.ranks().to_string())
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let socket = theirs.as_raw_fd();
    if let (Some(place), Ok(inherited)) = (place, std::fs::read_link(format!("/proc/self/fd/{socket}"))) {
        command.env("WEFT_PMI", format!("{place}:{}", inherited.display()));
    }
    #[expect(unsafe_code, reason = "what must happen between fork and exec")]
    // SAFETY: the closure calls functions that are safe after fork (system calls only) and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            if libc::dup2(socket, PMI_DESCRIPTOR) < 0 {
                return Err(io::Error::last_os_error());
            }
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // The same addresses in every run: programs that print or hash them are reproducible.
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            Ok(())
        });
    }
    let mut child = command.spawn()?;
    drop(theirs);
    job.started(rank, child.id());
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| io::Error::other("the system gave a process no number"))?;
    let pidfd = pidfd_open(process, PidfdFlags::empty())?;
    let piped = || io::Error::other("a process has no pipe for its output");
    let pipes =
        [child.stdout.take().ok_or_else(piped)?.into(), child.stderr.take().ok_or_else(piped)?.into()];
    let asks = Some(Asks { from: ours.try_clone()?, pending: Vec::new() });
    Ok((Watched { rank, child, pidfd, asks, prints: [(-1, Left::Nothing); 2], death: None }, ours, pipes))
}

struct Watcher {
    job: Arc<Job>,
    pmi: Arc<Mutex<Vec<Option<UnixStream>>>>,
    in_barrier: Arc<Mutex<Vec<u32>>>,
    server: Pmi,
    door: Option<Door>,
    watch: Arc<Mutex<Box<dyn Watch>>>,
    output: Arc<Output>,
    poller: Poller,
    /// Descriptors of ranks that are watched.
    watched: usize,
    /// Ranks whose processes have not ended.
    living: usize,
    /// Ranks that have printed more than is collected.
    full: BTreeSet<u32>,
}

impl Watcher {
    /// Starts all ranks. Where one cannot be started, those before it are ended.
    fn begin(
        job: Arc<Job>,
        start: &Start,
        watch: Box<dyn Watch>,
        door: Option<Door>,
    ) -> io::Result<(Watcher, Vec<Watched>)> {
        let place = door.as_ref().map(Door::place);
        let (mut children, mut sockets, mut pipes) = (Vec::new(), Vec::new(), Vec::new());
        let watch = Arc::new(Mutex::new(watch));
        let started = (0..job.ranks()).try_for_each(|rank| {
            let (watched, socket, of_rank) = start_rank(&job, start, rank, place.as_deref())?;
            children.push(watched);
            sockets.push(Some(socket));
            pipes.push(of_rank);
            Ok(())
        });
        let output =
            started.and_then(|()| Ok((Output::new(pipes, Arc::clone(&watch), start.label)?, Poller::new()?)));
        let (output, poller) = match output {
            Ok((output, poller)) => (Arc::new(output), poller),
            Err(error) => {
                children.iter_mut().for_each(|watched: &mut Watched| drop(watched.child.kill()));
                return Err(error);
            }
        };
        for watched in &mut children {
            watched.prints = output.descriptors(watched.rank).map(|pipe| (pipe, Left::More));
        }
        job.set_output(&output);
        let server = Pmi::new(children.len() as u32, &job.name());
        let (pmi, in_barrier) = (Arc::new(Mutex::new(sockets)), Arc::new(Mutex::new(Vec::new())));
        let (living, full) = (children.len(), BTreeSet::new());
        let mut watcher =
            Watcher { job, pmi, in_barrier, server, door, watch, output, poller, watched: 0, living, full };
        if let Err(error) = watcher.begin_watching(&children) {
            children.iter_mut().for_each(|watched| drop(watched.child.kill()));
            return Err(error);
        }
        Ok((watcher, children))
    }

    fn begin_watching(&mut self, children: &[Watched]) -> io::Result<()> {
        if let Some(door) = &self.door {
            door.watch(&self.poller, DOOR_KEY)?;
        }
        for Watched { rank, pidfd, asks, prints, .. } in children {
            self.add(pidfd, Ready::Ended.key(*rank))?;
            if let Some(asks) = asks {
                self.add(&asks.from, Ready::Asks.key(*rank))?;
            }
            for (pipe, _) in prints {
                self.add(open_descriptor(*pipe), Ready::Prints.key(*rank))?;
            }
        }
        Ok(())
    }

    fn add(&mut self, descriptor: impl AsFd, key: u64) -> io::Result<()> {
        self.poller.add(descriptor, key)?;
        self.watched += 1;
        Ok(())
    }

    fn remove(&mut self, descriptor: impl AsFd) {
        self.poller.remove(descriptor);
        self.watched -= 1;
    }

    /// The side of the run.
    fn processes(&self, children: &[Watched]) -> Processes {
        Processes {
            pmi: Arc::clone(&self.pmi),
            in_barrier: Arc::clone(&self.in_barrier),
            ids: children.iter().map(|watched| watched.child.id()).collect(),
        }
    }

    /// Watches until all have ended and all is said; not for longer than they live by much, since what they
    /// have started may hold their pipes for ever.
    fn watch(mut self, mut children: Vec<Watched>) {
        let mut ended = None;
        loop {
            let have_ended = self.living == 0;
            if have_ended && ended.get_or_insert_with(Stopwatch::start).elapsed() > LINGER {
                return;
            }
            if self.watched == 0 && self.full.is_empty() {
                return;
            }
            let is_full = !self.full.is_empty();
            let mut knocks = false;
            for key in self.poller.wait((is_full || have_ended).then_some(SHORT)) {
                let of_rank = (children.get_mut((key >> 2) as usize), Ready::ALL.get((key & 3) as usize));
                match of_rank {
                    (Some(watched), Some(Ready::Ended)) => self.reap(watched),
                    (Some(watched), Some(Ready::Asks)) => self.listen(watched),
                    (Some(watched), Some(Ready::Prints)) => self.collect(watched),
                    _ => knocks = true,
                }
            }
            if knocks {
                self.admit(&mut children);
            }
            if is_full {
                for rank in self.full.clone() {
                    self.collect(&mut children[rank as usize]);
                }
            }
        }
    }

    /// Ranks that have not inherited their stream have another from now on.
    fn admit(&mut self, children: &mut [Watched]) {
        let Some(door) = &mut self.door else { return };
        for (rank, stream) in door.look(&self.poller, DOOR_KEY) {
            let Some(watched) = children.get_mut(rank as usize) else { continue };
            // One that speaks already keeps what it has.
            if watched.death.is_some() || self.server.is_inside(rank) {
                continue;
            }
            let Ok(answers) = stream.try_clone() else { continue };
            if self.add(&stream, Ready::Asks.key(rank)).is_ok() {
                self.hang_up(watched);
                lock(&self.pmi)[rank as usize] = Some(answers);
                watched.asks = Some(Asks { from: stream, pending: Vec::new() });
            }
        }
    }

    fn reap(&mut self, watched: &mut Watched) {
        let Ok(Some(status)) = watched.child.try_wait() else { return };
        let death = match status.code() {
            Some(code) => Death::Exited(code),
            None => Death::Killed(status.signal().unwrap_or(0)),
        };
        watched.death = Some(death);
        self.living -= 1;
        self.remove(&watched.pidfd);
        // What it has said before comes first, to the process manager too: that it aborts, and is killed for
        // it.
        self.collect(watched);
        // What it has started may hold its end open and say nothing.
        if watched.asks.as_ref().is_some_and(|asks| ready(&[asks.from.as_raw_fd()], Some(NOW)) == [true]) {
            self.listen(watched);
        }
        // Said before the simulation finds that others wait for it.
        lock(&self.watch).ended(watched.rank, death, self.server.is_inside(watched.rank));
        self.job.died(watched.rank, death);
    }

    fn collect(&mut self, watched: &mut Watched) {
        let rank = watched.rank;
        let left = self.output.collect(rank);
        for ((pipe, before), left) in watched.prints.iter_mut().zip(left) {
            let pipe = open_descriptor(*pipe);
            match (*before == Left::More, left == Left::More) {
                (true, false) => self.remove(pipe),
                // It was watched before: the system has room for it.
                (false, true) => drop(self.add(pipe, Ready::Prints.key(rank))),
                _ => {}
            }
            *before = left;
        }
        if left.contains(&Left::Full) {
            self.full.insert(rank);
        } else {
            self.full.remove(&rank);
        }
    }

    /// Hears no more of a rank's requests.
    fn hang_up(&mut self, watched: &mut Watched) {
        if let Some(asks) = watched.asks.take() {
            self.remove(&asks.from);
        }
    }

    fn listen(&mut self, watched: &mut Watched) {
        let Some(asks) = &mut watched.asks else { return };
        let mut buffer = [0; 16 << 10];
        let count = match asks.from.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => return,
            Err(_) => 0,
        };
        asks.pending.extend_from_slice(&buffer[..count]);
        let mut lines = Vec::new();
        while let Some(end) = asks.pending.iter().position(|byte| *byte == b'\n') {
            lines.push(asks.pending.drain(..=end).collect::<Vec<u8>>());
        }
        if count == 0 || asks.pending.len() > LONGEST_LINE {
            self.hang_up(watched);
        }
        lines.iter().for_each(|line| self.ask(watched.rank, line));
    }

    fn ask(&mut self, rank: u32, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        match self.server.line(rank, line.trim_end()) {
            Asked::Answer(answer) => {
                if let Some(socket) = &mut lock(&self.pmi)[rank as usize] {
                    // A rank that is gone needs no answer.
                    let _ = socket.write_all(answer.as_bytes());
                }
            }
            Asked::Barrier => {
                lock(&self.in_barrier).push(rank);
                self.job.fence(rank);
            }
            Asked::Abort(status) => lock(&self.watch).aborted(rank, status),
            Asked::Nonsense(why) => {
                let text = format!("weft: rank {rank} sent its process manager {why}\n");
                lock(&self.watch).lines(rank, true, text.as_bytes());
            }
            Asked::Disorder => {
                let text = format!(
                    "weft: the MPI library of rank {rank} asks its process manager for values in an order \
                     that weft does not know, and would take one for another: please report this\n"
                );
                let mut watch = lock(&self.watch);
                watch.lines(rank, true, text.as_bytes());
                watch.aborted(rank, 1);
            }
        }
    }
}

/// Which of the descriptors can be read; waits until one can, or for so long.
fn ready(descriptors: &[i32], at_most: Option<Timespec>) -> Vec<bool> {
    #[expect(unsafe_code, reason = "the descriptors belong to the children's table, which outlives the call")]
    // SAFETY: each was taken from an open stream or pidfd that the caller holds during this call.
    let borrowed: Vec<_> =
        descriptors.iter().map(|fd| unsafe { std::os::fd::BorrowedFd::borrow_raw(*fd) }).collect();
    let mut waits: Vec<PollFd<'_>> = borrowed.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let _ = poll(&mut waits, at_most.as_ref());
    waits.iter().map(|wait| !wait.revents().is_empty()).collect()
}

/// The environment that the ranks of one program share, by name.
pub fn environment_of(
    libraries: &super::Libraries,
    recorder: Option<&Recorder>,
) -> Vec<(OsString, OsString)> {
    let mut environment: BTreeMap<OsString, OsString> = BTreeMap::new();
    let mut preload = libraries.client.clone().into_os_string();
    // Before the recorder: it hands calls on to whoever stands behind it.
    if let Some(calls) = &libraries.calls {
        preload.push(":");
        preload.push(calls);
    }
    if let Some(Recorder { library, variable: (name, value) }) = recorder {
        preload.push(":");
        preload.push(library);
        environment.insert(name.into(), value.into());
    }
    if let Some(before) = std::env::var_os("LD_PRELOAD").filter(|before| !before.is_empty()) {
        preload.push(":");
        preload.push(before);
    }
    environment.insert("LD_PRELOAD".into(), preload);
    environment.insert("FI_PROVIDER".into(), "weft".into());
    environment.insert("FI_PROVIDER_PATH".into(), libraries.provider_folder.clone().into());
    // By chance otherwise, and with it the order in which a Python program goes through a set.
    if std::env::var_os("PYTHONHASHSEED").is_none() {
        environment.insert("PYTHONHASHSEED".into(), "0".into());
    }
    for (key, value) in [
        ("MPIR_CVAR_CH4_NETMOD", "ofi"),
        ("MPIR_CVAR_NOLOCAL", "1"),
        ("MPIR_CVAR_ENABLE_GPU", "0"),
        ("MPIR_CVAR_CH4_OFI_ENABLE_ATOMICS", "0"),
        // Queues for ranks of one node, which do not use them here: a megabyte of each process.
        ("MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_NUM_CELLS", "1"),
        // UCX, which MPICH brings along and does not use here, would wait thousands of yields long for its
        // hooks in every process.
        ("UCX_MEM_MMAP_HOOK_MODE", "none"),
    ] {
        environment.insert(key.into(), value.into());
    }
    environment.into_iter().collect()
}
