//! A job: the devices of its ranks, whose turn it is, and who lives.
//!
//! ```text
//!            joins            gives its turn away            PMI barrier, in its turn
//!   REAL ───────────► READY ◄────────────────► RUN ──────────────────────────► FENCE
//!    ▲                  WAIT ◄────────────────►  │                               │
//!    │                                           └──────── dies, leaves ──► EXIT │
//!    └───────────────────────── all are fenced: released together ───────────────┘
//! ```
//! The thread that simulates gives turns; the one that watches the processes tells of fences and deaths,
//! which end a turn from outside.

use crate::cores::{Cores, Placement};
use crate::launch::output::Output;
use crate::live_end::{Death, LiveEnd};
use crate::lock::lock;
use crate::nonsense::{LATEST, Nonsense};
use crate::reach::Reach;
use crate::stand_in::StandIn;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use weft_client::device::{
    Awaited, DeviceError, HostModel, Identity, LogEntry, Notice, Post, Shared, Sharing, State, Turn,
};
use weft_msg::Envelope;
use weft_units::{Span, Time};

/// Real time between two checks of a rank that holds its turn against the watchdog.
pub(crate) const WATCHDOG_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// Real time between two checks of a rank outside virtual time, for deaths and barriers.
const OUTSIDE_CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Polls in a row, after the first, that a rank may say it makes before it waits.
const MOST_POLLS: u32 = 64;

/// A rank of the job.
struct Member {
    device: Shared,
    file: OwnedFd,
    /// A second handle for those lists of the device that need it exclusively.
    lists: Mutex<Shared>,
    reach: Mutex<Reach>,
}

/// Processes of the ranks, and the end of the job.
#[derive(Default)]
struct Life {
    /// The process that was started for each rank.
    started: Vec<Option<u32>>,
    deaths: Vec<Option<Death>>,
    /// Ranks in a barrier of the process manager.
    fenced: Vec<bool>,
    /// The first reason to end the job.
    end: Option<LiveEnd>,
}

impl Life {
    /// Whether every rank that lives is in a barrier of the process manager, and one is.
    fn all_fenced(&self) -> bool {
        let mut living = self.deaths.iter().zip(&self.fenced).filter(|(death, _)| death.is_none()).peekable();
        living.peek().is_some() && living.all(|(_, fenced)| *fenced)
    }

    /// The state of a rank that has given its turn away, if it can be in it.
    fn state_of(&self, rank: u32, device: &Shared) -> Result<State, Nonsense> {
        let dead = self.deaths[rank as usize].is_some();
        let state = device.state().ok_or(Nonsense::State)?;
        let can_be = match state {
            State::Ready | State::Wait | State::Poll | State::Until => true,
            State::Fence => self.fenced[rank as usize],
            State::Exit => dead,
            State::Real | State::Run => false,
        };
        match device.clock() {
            _ if !can_be => Err(Nonsense::State),
            clock if clock > LATEST && !dead => Err(Nonsense::Clock(clock)),
            _ => Ok(state),
        }
    }
}

/// A job.
pub struct Job {
    members: Vec<Member>,
    life: Mutex<Life>,
    changed: Condvar,
    /// Raised when all ranks are fenced, nothing is pending of any, or the run is to end: the simulation
    /// stops at the end of its window.
    pause: AtomicBool,
    /// Raised when the run is to end.
    stopping: AtomicBool,
    /// Raised when the ranks have left their first barrier of the process manager.
    released: AtomicBool,
    /// Real time for which a rank may keep its turn; `None`: for ever.
    watchdog: Option<Duration>,
    /// The cores of ranks and simulation.
    placement: Placement,
    /// Turns that have begun and not ended.
    turns_under_way: AtomicU32,
    /// The output of the ranks, if they are processes.
    output: OnceLock<Arc<Output>>,
}

/// The state of the job when the simulation asks whether virtual time can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gathered {
    /// Every rank is in virtual time, fenced or gone.
    Joined,
    /// All are fenced, and wait to be released.
    Fenced,
    /// The run is to end.
    Stopping,
}

/// Ranks on their way into virtual time, which those with MPI enter by a barrier of the process manager.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrivals {
    /// Those with a process.
    pub started: u32,
    /// Those that are in the barrier, or in virtual time.
    pub met: u32,
    /// Whether the barrier has let them go.
    pub released: bool,
    /// Those in virtual time, or at their ends.
    pub joined: u32,
}

/// A rank's place on the machine.
pub struct RankSetup {
    /// The endpoint.
    pub endpoint: u32,
}

/// Settings of all ranks.
pub struct JobSetup<'a> {
    /// The machine's messaging and the costs of posts, serialized.
    pub messaging: &'a [u8],
    /// The protection domain.
    pub domain: u16,
    /// How computation moves clocks.
    pub host: HostModel,
    /// Virtual time of an empty poll.
    pub poll: Span,
    /// Virtual time of a clock read.
    pub clock_read: Span,
    /// Whether a rank that only polls is taken to wait from its first empty poll on.
    pub jumps: bool,
    /// Real time for which a rank may keep its turn; `None`: for ever.
    pub watchdog: Option<Duration>,
    /// Largest message between virtual interfaces, in bytes.
    pub small: u32,
    /// Interfaces of a host by which the messages of each of its ranks go.
    pub rails: u32,
}

impl Job {
    /// Devices for all ranks, none of which has a process yet.
    ///
    /// # Errors
    /// No memory for a device.
    pub fn new(ranks: &[RankSetup], setup: &JobSetup<'_>) -> Result<Job, DeviceError> {
        let count = ranks.len() as u32;
        let members = (0..count).zip(ranks).map(|(rank, own)| {
            let identity = Identity {
                rank,
                ranks: count,
                endpoint: own.endpoint,
                domain: setup.domain,
                host: setup.host,
                poll: setup.poll,
                clock_read: setup.clock_read,
                jumps: setup.jumps,
                small: setup.small,
                rails: setup.rails,
            };
            let (device, file) = Shared::create(&identity, setup.messaging)?;
            let lists = Mutex::new(Shared::open(&file)?);
            Ok(Member { device, file, lists, reach: Mutex::default() })
        });
        let members: Vec<Member> = members.collect::<Result<_, DeviceError>>()?;
        let life = Life {
            started: vec![None; ranks.len()],
            deaths: vec![None; ranks.len()],
            fenced: vec![false; ranks.len()],
            end: None,
        };
        Ok(Job {
            members,
            life: Mutex::new(life),
            changed: Condvar::new(),
            pause: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            released: AtomicBool::new(false),
            watchdog: setup.watchdog,
            placement: Placement::of(count),
            turns_under_way: AtomicU32::new(0),
            output: OnceLock::new(),
        })
    }

    /// Ranks.
    pub fn ranks(&self) -> u32 {
        self.members.len() as u32
    }

    /// A name that no other job has, for `WEFT_JOB` in the environment of all ranks' processes.
    pub fn name(&self) -> String {
        let first = self.members.first().map_or(-1, |member| member.file.as_raw_fd());
        format!("{}-{first}", std::process::id())
    }

    /// The path of a rank's device, for `WEFT_DEVICE` in the environment of the rank's process.
    pub fn device_path(&self, rank: u32) -> PathBuf {
        let file = self.members[rank as usize].file.as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{file}", std::process::id()))
    }

    /// The ranks print to this output. Before the first of them is in virtual time.
    pub(crate) fn set_output(&self, output: &Arc<Output>) {
        // Once.
        let _ = self.output.set(Arc::clone(output));
    }

    /// Passes on all that the ranks have printed and will print: the simulation is over.
    pub fn flush_output(&self) {
        if let Some(output) = self.output.get() {
            output.flush();
        }
    }

    /// The output of the ranks, if they are processes.
    pub(crate) fn output(&self) -> Option<&Output> {
        self.output.get().map(|output| &**output)
    }

    /// The process of a rank has been started. From the watching thread.
    pub fn started(&self, rank: u32, process: u32) {
        lock(&self.life).started[rank as usize] = Some(process);
    }

    /// The process of a rank has ended: its turn, too. From the watching thread.
    pub fn died(&self, rank: u32, death: Death) {
        let mut life = lock(&self.life);
        life.deaths[rank as usize] = Some(death);
        let member = &self.members[rank as usize];
        member.device.set_state(State::Exit);
        member.device.give_turn(Turn::Simulator);
        drop(life);
        self.changed.notify_all();
    }

    /// A rank has entered a barrier of the process manager, in which it leaves virtual time. From the
    /// watching thread.
    pub fn fence(&self, rank: u32) {
        let mut life = lock(&self.life);
        life.fenced[rank as usize] = true;
        let device = &self.members[rank as usize].device;
        if device.state() == Some(State::Run) {
            device.set_state(State::Fence);
            device.give_turn(Turn::Simulator);
        }
        drop(life);
        self.changed.notify_all();
    }

    /// The run is to end: no rank gets another turn. From any thread.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.pause.store(true, Ordering::Release);
        self.members.iter().for_each(|member| member.device.nudge());
        self.changed.notify_all();
    }

    /// Whether the run is to end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Stops the job for this reason. The first reason counts. From any thread.
    pub(crate) fn end(&self, end: LiveEnd) {
        lock(&self.life).end.get_or_insert(end);
        self.stop();
    }

    /// The reason for which the job was ended, if it was.
    pub fn ended(&self) -> Option<LiveEnd> {
        lock(&self.life).end.clone()
    }

    /// Ends the job because a rank has written into its device what no library does.
    pub(crate) fn accuse(&self, rank: u32, nonsense: Nonsense) {
        self.end(LiveEnd::Broken(rank, nonsense));
    }

    /// Operations that a waiting rank waits for, as it says.
    pub fn awaited(&self, rank: u32) -> Vec<Awaited> {
        lock(&self.members[rank as usize].lists).awaited()
    }

    /// The MPI call in which a waiting rank waits, as it says; `None`: none that is known.
    pub fn within(&self, rank: u32) -> Option<&'static str> {
        weft_client::within::name(self.within_number(rank))
    }

    /// The number of that call, as the rank says; 0: none.
    pub(crate) fn within_number(&self, rank: u32) -> u32 {
        lock(&self.members[rank as usize].lists).within()
    }

    /// MPI calls that all ranks had made when they last waited, as they say, modulo 2^32.
    pub(crate) fn calls_of_waiting(&self) -> u32 {
        let calls = self.members.iter().map(|member| lock(&member.lists).calls());
        calls.fold(0, u32::wrapping_add)
    }

    /// Whether any process has opened its device.
    pub fn is_used(&self) -> bool {
        self.members.iter().any(|member| member.device.process().is_some())
    }

    /// How a rank's process ended.
    pub fn death(&self, rank: u32) -> Option<Death> {
        lock(&self.life).deaths[rank as usize]
    }

    /// A rank that has ended, for which all others wait if they are in a barrier of the process manager.
    pub(crate) fn missing(&self) -> Option<u32> {
        lock(&self.life).deaths.iter().position(Option::is_some).map(|rank| rank as u32)
    }

    /// Waits until no rank is outside virtual time.
    pub(crate) fn gather(&self) -> Gathered {
        // What they print outside comes rank by rank.
        let output = self.output.get();
        let mut printed = 0;
        let mut pass_on = |until: u32| {
            (printed..until).for_each(|rank| output.iter().for_each(|output| output.end_turn(rank)));
            printed = printed.max(until);
        };
        loop {
            if self.is_stopping() {
                return Gathered::Stopping;
            }
            let mut life = lock(&self.life);
            if life.all_fenced() {
                drop(life);
                output.iter().for_each(|output| output.wait_for_nobody());
                pass_on(self.ranks());
                return Gathered::Fenced;
            }
            let outside = self
                .members
                .iter()
                .zip(&life.fenced)
                .position(|(member, fenced)| !fenced && member.device.state() == Some(State::Real));
            let Some(rank) = outside else {
                // One may be between the state and the turn.
                drop(life);
                output.iter().for_each(|output| output.wait_for_nobody());
                pass_on(self.ranks());
                for (rank, member) in self.members.iter().enumerate() {
                    let fenced = lock(&self.life).fenced[rank];
                    while !fenced && !self.is_stopping() && member.device.turn() == Turn::Rank {
                        member.device.sleep_while(Turn::Rank, Some(WATCHDOG_CHECK_INTERVAL));
                    }
                }
                return if self.check_states() { Gathered::Joined } else { Gathered::Stopping };
            };
            drop(life);
            pass_on(rank as u32);
            output.iter().for_each(|output| output.wait_for(rank as u32));
            life = lock(&self.life);
            // A rank that joins wakes its own device; deaths and fences wake the condition.
            life = self
                .changed
                .wait_timeout(life, OUTSIDE_CHECK_INTERVAL)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
            drop(life);
            self.members[rank].device.sleep_while(Turn::Rank, Some(OUTSIDE_CHECK_INTERVAL));
        }
    }

    /// Counts of the ranks on their way into virtual time.
    pub(crate) fn arrivals(&self) -> Arrivals {
        let life = lock(&self.life);
        let count = |is_there: &dyn Fn(usize) -> bool| {
            (0..self.members.len()).filter(|rank| is_there(*rank)).count() as u32
        };
        let is_outside = |rank: usize| self.members[rank].device.state() == Some(State::Real);
        Arrivals {
            started: count(&|rank| life.started[rank].is_some()),
            met: count(&|rank| life.fenced[rank] || !is_outside(rank)),
            released: self.released.load(Ordering::Acquire),
            joined: count(&|rank| !life.fenced[rank] && !is_outside(rank)),
        }
    }

    /// Lets all fenced ranks go, outside virtual time; those that were in it will join again at `clock`, in
    /// ps.
    pub(crate) fn release(&self, clock: u64) {
        self.released.store(true, Ordering::Release);
        let mut life = lock(&self.life);
        for (member, fenced) in self.members.iter().zip(&mut life.fenced) {
            if std::mem::take(fenced) && member.device.state() == Some(State::Fence) {
                member.device.set_clock(clock);
                member.device.set_state(State::Real);
                member.device.give_turn(Turn::Rank);
            }
        }
        self.pause.store(self.is_stopping(), Ordering::Release);
    }

    /// The largest clock of all ranks, in ps.
    pub(crate) fn largest_clock(&self) -> u64 {
        self.members.iter().map(|member| member.device.clock()).max().unwrap_or(0)
    }

    /// Notes that a rank has polled up to `clock`, in ps, and is in this state there.
    pub(crate) fn set_polled(&self, rank: u32, clock: u64, state: State) {
        let life = lock(&self.life);
        if life.deaths[rank as usize].is_none() {
            let device = &self.members[rank as usize].device;
            device.set_clock(clock);
            device.set_state(state);
        }
    }

    /// Whether a rank that waits receives a message of this envelope, as far as it says.
    pub(crate) fn may_receive(&self, rank: u32, envelope: &Envelope) -> bool {
        lock(&self.members[rank as usize].lists).may_receive(envelope)
    }

    /// The stand-in of a rank that waits, if the rank says which operations it has open.
    pub(crate) fn stand_in(&self, rank: u32) -> Option<StandIn> {
        let member = &self.members[rank as usize];
        let open = lock(&member.lists).open_operations()?;
        let identity = member.device.identity();
        self.death(rank).is_none().then(|| StandIn::new(&identity, open, self.within_number(rank)))
    }

    /// Polls that a rank makes after the first before it waits, as far as a library makes so many.
    pub(crate) fn polls(&self, rank: u32) -> u32 {
        self.members[rank as usize].device.polls().min(MOST_POLLS)
    }

    /// The time to which a rank waits, no later than one that a clock may show.
    pub(crate) fn until(&self, rank: u32) -> Time {
        Time::from_ps(self.members[rank as usize].device.until().min(LATEST))
    }

    /// The state of a rank, and its clock in ps.
    pub(crate) fn state(&self, rank: u32) -> (State, u64) {
        let device = &self.members[rank as usize].device;
        (device.state().unwrap_or(State::Exit), device.clock())
    }

    /// Checks that all ranks in virtual time are in states in which they can be. The first that is not ends
    /// the job.
    fn check_states(&self) -> bool {
        let life = lock(&self.life);
        for (rank, member) in (0..).zip(&self.members) {
            if life.fenced[rank as usize] {
                continue;
            }
            if let Err(nonsense) = life.state_of(rank, &member.device) {
                drop(life);
                self.accuse(rank, nonsense);
                return false;
            }
        }
        true
    }

    /// Takes what a rank has posted in its turn, and the log of its clock.
    pub(crate) fn take_posts(&self, rank: u32) -> (Vec<(Post, Vec<u8>)>, Vec<LogEntry>) {
        let mut lists = lock(&self.members[rank as usize].lists);
        (lists.take_posts(), lists.take_log())
    }

    /// Puts a notice into a rank's inbox; says whether it found room.
    pub(crate) fn notify(&self, rank: u32, notice: Notice, bytes: &[u8], used: &mut usize) -> bool {
        lock(&self.members[rank as usize].lists).notify(notice, bytes, used)
    }

    /// The device of a rank.
    pub(crate) fn device(&self, rank: u32) -> &Shared {
        &self.members[rank as usize].device
    }

    /// The memory of a rank that the interface may reach.
    pub(crate) fn reach(&self, rank: u32) -> MutexGuard<'_, Reach> {
        lock(&self.members[rank as usize].reach)
    }

    /// The process that a rank says it is; `None`: it has not opened its device.
    pub(crate) fn process(&self, rank: u32) -> Option<u32> {
        self.device(rank).process()
    }

    /// The process that was started for a rank.
    pub(crate) fn started_process(&self, rank: u32) -> Option<u32> {
        lock(&self.life).started[rank as usize]
    }

    /// Raised when the simulation is to stop at the end of its window.
    pub(crate) fn pause(&self) -> &AtomicBool {
        &self.pause
    }

    /// The thread that simulates stops at the end of its window.
    pub(crate) fn pause_simulation(&self) {
        self.pause.store(true, Ordering::Release);
    }

    /// It may go on, unless the run is to end.
    pub(crate) fn unpause_simulation(&self) {
        self.pause.store(self.is_stopping(), Ordering::Release);
    }

    /// Real time for which a rank may keep its turn; `None`: for ever.
    pub(crate) fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Sets the cores of ranks and simulation, from the ranks' next turns on.
    pub(crate) fn set_cores(&self, cores: Option<Cores>) {
        self.put_on(self.placement.set(cores));
    }

    fn put_on(&self, cores: Option<Cores>) {
        let core = cores.map(|cores| cores.ranks);
        let sharing = cores.map_or(Sharing::One, |cores| cores.sharing(self.ranks()));
        self.members.iter().for_each(|member| member.device.set_core(core, sharing));
    }

    /// Begins a turn of a rank that lives. Until `quiet_until`, in ps, nothing can come for it.
    pub(crate) fn begin_turn(&self, rank: u32, quiet_until: u64) {
        self.turns_under_way.fetch_add(1, Ordering::Relaxed);
        // Under the lock, so that a death is not overwritten.
        let life = lock(&self.life);
        if life.deaths[rank as usize].is_none() {
            let device = self.device(rank);
            device.set_quiet_until(quiet_until);
            device.set_state(State::Run);
            device.give_turn(Turn::Rank);
        }
    }

    /// Ends a turn that the rank has handed back, `late` if the simulation had to give its core away. Returns
    /// the rank's state and clock, in ps.
    ///
    /// # Errors
    /// A state in which the rank cannot be.
    pub(crate) fn end_turn(&self, rank: u32, late: bool) -> Result<(State, u64), Nonsense> {
        if let Some(cores) = self.placement.end_turn(late) {
            self.put_on(Some(cores));
        }
        // Others may be in the turns that lead them to their states.
        let last = self.turns_under_way.load(Ordering::Relaxed) == 0;
        let device = self.device(rank);
        let life = lock(&self.life);
        let state = life.state_of(rank, device)?;
        if state != State::Exit && last && life.all_fenced() {
            self.pause.store(true, Ordering::Release);
        }
        Ok((state, device.clock()))
    }

    /// The simulation waits for the end of a turn.
    pub(crate) fn await_turn(&self) {
        self.turns_under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
