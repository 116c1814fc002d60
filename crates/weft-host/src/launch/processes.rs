//! The processes of a job: started, watched, ended.
//!
//! ```text
//!   Processes::start ─► N children ─┬─ PMI socket ──► pmi ──► job.fence
//!                                   ├─ standard output, error ──► lines of ours
//!                                   └─ pidfd ──► job.died
//! ```
//! One thread watches them all. A child dies with the thread that started it, even if weft is killed: its
//! parent-death signal says so. Nothing lies in a file system: devices are memory files.

use super::door::Door;
use super::pmi::{Asked, LONGEST_LINE, Pmi};
use crate::execute::Recorder;
use crate::job::{Death, Job};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};

/// The number of the descriptor by which a rank speaks PMI.
const PMI_DESCRIPTOR: i32 = 3;

/// What is to be started.
#[derive(Clone, Debug)]
pub struct Start {
    /// The program, found.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Added to the environment of every rank.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether every line of output begins with its rank.
    pub label: bool,
    /// Whether rank 0 reads the standard input of this process.
    pub input: bool,
}

/// What is said about the processes beside their output.
pub trait Watch: Send {
    /// A line of output of a rank, its end included where there was one.
    fn line(&mut self, rank: u32, error: bool, line: &[u8]);
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Poisoned by a panic of the other thread, which ends the run anyway.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

struct Watched {
    rank: u32,
    child: Child,
    pidfd: OwnedFd,
    streams: [Option<Stream>; 3],
    death: Option<Death>,
}

/// A stream of lines from a rank.
struct Stream {
    from: Box<dyn ReadFd>,
    pending: Vec<u8>,
}

trait ReadFd: Read + Send {
    fn descriptor(&self) -> i32;
}

impl<T: Read + AsRawFd + Send> ReadFd for T {
    fn descriptor(&self) -> i32 {
        self.as_raw_fd()
    }
}

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
            let place = door.as_ref().map(Door::place);
            let mut children = Vec::new();
            let mut sockets = Vec::new();
            for rank in 0..job.ranks() {
                match start_rank(&job, &start, rank, place.as_deref()) {
                    Ok((watched, socket)) => {
                        children.push(watched);
                        sockets.push(Some(socket));
                    }
                    Err(error) => {
                        children.iter_mut().for_each(|watched: &mut Watched| drop(watched.child.kill()));
                        drop(sender.send(Err(error)));
                        return;
                    }
                }
            }
            let ids = children.iter().map(|watched| watched.child.id()).collect();
            let pmi = Arc::new(Mutex::new(sockets));
            let in_barrier = Arc::new(Mutex::new(Vec::new()));
            let processes = Processes { pmi: Arc::clone(&pmi), in_barrier: Arc::clone(&in_barrier), ids };
            drop(sender.send(Ok(processes)));
            let server = Pmi::new(children.len() as u32, &job.name());
            Watcher { job, pmi, in_barrier, server, door, watch, label: start.label }.watch(children);
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

fn start_rank(job: &Job, start: &Start, rank: u32, place: Option<&str>) -> io::Result<(Watched, UnixStream)> {
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
    let stream = |from: Box<dyn ReadFd>| Some(Stream { from, pending: Vec::new() });
    let streams = [
        stream(Box::new(ours.try_clone()?)),
        child.stdout.take().map(without_blocking).transpose()?.and_then(stream),
        child.stderr.take().map(without_blocking).transpose()?.and_then(stream),
    ];
    Ok((Watched { rank, child, pidfd, streams, death: None }, ours))
}

/// Output of a rank, which what the rank has started may hold open after its end: looking must not wait.
fn without_blocking<T: ReadFd + AsFd + 'static>(from: T) -> io::Result<Box<dyn ReadFd>> {
    rustix::io::ioctl_fionbio(&from, true)?;
    Ok(Box::new(from))
}

struct Watcher {
    job: Arc<Job>,
    pmi: Arc<Mutex<Vec<Option<UnixStream>>>>,
    in_barrier: Arc<Mutex<Vec<u32>>>,
    server: Pmi,
    door: Option<Door>,
    watch: Box<dyn Watch>,
    label: bool,
}

impl Watcher {
    /// Watches until all have ended and all is said.
    fn watch(mut self, mut children: Vec<Watched>) {
        loop {
            let mut places = Vec::new();
            let mut waits = Vec::new();
            for (index, watched) in children.iter().enumerate() {
                if watched.death.is_none() {
                    places.push((index, None));
                    waits.push(watched.pidfd.as_raw_fd());
                }
                for (which, stream) in watched.streams.iter().enumerate() {
                    if let Some(stream) = stream {
                        places.push((index, Some(which)));
                        waits.push(stream.from.descriptor());
                    }
                }
            }
            if places.is_empty() {
                return;
            }
            let own = waits.len();
            waits.extend(self.door.iter().flat_map(Door::descriptors));
            let ready = ready(&waits);
            let knocks = ready[own..].contains(&true);
            for ((index, which), ready) in places.into_iter().zip(ready) {
                if !ready {
                    continue;
                }
                match which {
                    Some(which) => self.read(&mut children[index], which),
                    None => self.reap(&mut children[index]),
                }
            }
            if knocks {
                self.admit(&mut children);
            }
        }
    }

    /// Ranks that have not inherited their stream have another from now on.
    fn admit(&mut self, children: &mut [Watched]) {
        for (rank, stream) in self.door.as_mut().map(Door::look).unwrap_or_default() {
            let Some(watched) = children.get_mut(rank as usize) else { continue };
            // One that speaks already keeps what it has.
            if watched.death.is_some() || self.server.is_inside(rank) {
                continue;
            }
            if let Ok(answers) = stream.try_clone() {
                lock(&self.pmi)[rank as usize] = Some(answers);
                watched.streams[0] = Some(Stream { from: Box::new(stream), pending: Vec::new() });
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
        // What it has said before comes first, to the process manager too: that it aborts, and is killed for it.
        for which in 0..3 {
            self.read(watched, which);
        }
        // Said before the simulation finds that others wait for it.
        self.watch.ended(watched.rank, death, self.server.is_inside(watched.rank));
        self.job.died(watched.rank, death);
    }

    fn read(&mut self, watched: &mut Watched, which: usize) {
        let Some(stream) = &mut watched.streams[which] else { return };
        let mut buffer = [0; 16 << 10];
        let count = match stream.from.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => return,
            Err(_) => 0,
        };
        stream.pending.extend_from_slice(&buffer[..count]);
        let mut lines = Vec::new();
        while let Some(end) = stream.pending.iter().position(|byte| *byte == b'\n') {
            lines.push(stream.pending.drain(..=end).collect::<Vec<u8>>());
        }
        let ended = count == 0 || which == 0 && stream.pending.len() > LONGEST_LINE;
        if ended {
            if which != 0 && !stream.pending.is_empty() {
                lines.push(std::mem::take(&mut stream.pending));
            }
            watched.streams[which] = None;
        }
        for line in lines {
            match which {
                0 => self.ask(watched.rank, &line),
                _ if self.label => {
                    let labelled = [format!("[{}] ", watched.rank).as_bytes(), &line].concat();
                    self.watch.line(watched.rank, which == 2, &labelled);
                }
                _ => self.watch.line(watched.rank, which == 2, &line),
            }
        }
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
            Asked::Abort(status) => self.watch.aborted(rank, status),
            Asked::Nonsense(why) => {
                let text = format!("weft: rank {rank} sent its process manager {why}\n");
                self.watch.line(rank, true, text.as_bytes());
            }
        }
    }
}

/// Which of the descriptors can be read; waits until one can.
fn ready(descriptors: &[i32]) -> Vec<bool> {
    #[expect(unsafe_code, reason = "the descriptors belong to the children's table, which outlives the call")]
    // SAFETY: each was taken from an open stream or pidfd that the caller holds during this call.
    let borrowed: Vec<_> =
        descriptors.iter().map(|fd| unsafe { std::os::fd::BorrowedFd::borrow_raw(*fd) }).collect();
    let mut waits: Vec<PollFd<'_>> = borrowed.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let _ = poll(&mut waits, None);
    waits.iter().map(|wait| !wait.revents().is_empty()).collect()
}

/// What ranks of one program share in their environment, by name.
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
        // UCX, which MPICH brings along and does not use here, would wait thousands of yields long for its hooks in every process.
        ("UCX_MEM_MMAP_HOOK_MODE", "none"),
    ] {
        environment.insert(key.into(), value.into());
    }
    environment.into_iter().collect()
}
