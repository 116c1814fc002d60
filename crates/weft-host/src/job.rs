//! A job: the devices of its ranks, whose turn it is, and who lives.
//!
//! ```text
//!            joins            gives its turn away            PMI barrier, in its turn
//!   REAL ───────────► READY ◄────────────────► RUN ──────────────────────────► FENCE
//!    ▲                  WAIT ◄────────────────►  │                               │
//!    │                                           └──────── dies, leaves ──► EXIT │
//!    └───────────────────────── all are fenced: released together ───────────────┘
//! ```
//! The thread that simulates gives turns; the one that watches the processes tells of fences and deaths, which
//! end a turn from outside.

use crate::cores::Placement;
use crate::launch::output::Output;
use crate::nonsense::{LATEST, Nonsense};
use crate::reach::Reach;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use weft_client::device::{
    Awaited, DeviceError, Entry, HostModel, Identity, Notice, Post, Shared, State, Turn,
};
use weft_client::stand_in::StandIn;
use weft_msg::Envelope;
use weft_units::Span;

/// What a rank that has joined must tell between two looks at the wall clock.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Death {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

pub(crate) struct Member {
    pub device: Shared,
    file: OwnedFd,
    lists: Mutex<Shared>,
    pub reach: Mutex<Reach>,
}

#[derive(Default)]
pub(crate) struct Life {
    /// The process that was started for each rank.
    pub started: Vec<Option<u32>>,
    pub deaths: Vec<Option<Death>>,
    /// Ranks in a barrier of the process manager.
    fenced: Vec<bool>,
    /// The rank that has kept its turn for too long.
    pub silent: Option<u32>,
    /// Why the network has lost a message for good.
    lost: Option<String>,
    /// The rank that has written nonsense into its device, and what.
    accused: Option<(u32, Nonsense)>,
}

/// A job.
pub struct Job {
    pub(crate) members: Vec<Member>,
    pub(crate) life: Mutex<Life>,
    changed: Condvar,
    /// Raised when all ranks are fenced, or the run is to end: the simulation stops at the end of its window.
    pub(crate) pause: AtomicBool,
    /// Raised when the run is to end.
    stopping: AtomicBool,
    /// How long a rank may keep its turn; `None`: for ever.
    pub(crate) watchdog: Option<Duration>,
    /// Where ranks and simulation run.
    pub(crate) placement: Placement,
    /// Turns that have begun and not ended.
    pub(crate) under_way: AtomicU32,
    /// What the ranks print, where they are processes.
    pub(crate) output: OnceLock<Arc<Output>>,
}

/// What the simulation finds when it asks whether virtual time can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gathered {
    /// Every rank is in virtual time, fenced or gone.
    Joined,
    /// All are fenced, and wait to be released.
    Fenced,
    /// The run is to end.
    Stopping,
}

/// What a rank is told of the machine.
pub struct RankSetup {
    /// Its endpoint.
    pub endpoint: u32,
}

/// What all ranks are told.
pub struct JobSetup<'a> {
    /// The machine's messaging, as bytes.
    pub protocol: &'a [u8],
    /// The protection domain.
    pub domain: u16,
    /// How computation moves clocks.
    pub host: HostModel,
    /// Virtual time of an empty poll.
    pub poll: Span,
    /// Of a clock read.
    pub clock_read: Span,
    /// Whether a rank that only polls is taken to wait from its first empty poll on.
    pub jumps: bool,
    /// How long a rank may keep its turn in real time; `None`: for ever.
    pub watchdog: Option<Duration>,
    /// Largest message between virtual interfaces, in bytes.
    pub small: u32,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Poisoned by a panic of the other thread, which ends the run anyway.
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
            };
            let (device, file) = Shared::create(&identity, setup.protocol)?;
            let lists = Mutex::new(Shared::open(&file)?);
            Ok(Member { device, file, lists, reach: Mutex::default() })
        });
        let members: Vec<Member> = members.collect::<Result<_, DeviceError>>()?;
        let life = Life {
            started: vec![None; ranks.len()],
            deaths: vec![None; ranks.len()],
            fenced: vec![false; ranks.len()],
            silent: None,
            lost: None,
            accused: None,
        };
        Ok(Job {
            members,
            life: Mutex::new(life),
            changed: Condvar::new(),
            pause: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            watchdog: setup.watchdog,
            placement: Placement::default(),
            under_way: AtomicU32::new(0),
            output: OnceLock::new(),
        })
    }

    /// Ranks.
    pub fn ranks(&self) -> u32 {
        self.members.len() as u32
    }

    /// What the environment of all ranks' processes must hold as `WEFT_JOB`: a name that no other job has.
    pub fn name(&self) -> String {
        let first = self.members.first().map_or(-1, |member| member.file.as_raw_fd());
        format!("{}-{first}", std::process::id())
    }

    /// What the environment of a rank's process must hold as `WEFT_DEVICE`: where its device is to be found.
    pub fn device_path(&self, rank: u32) -> PathBuf {
        let file = self.members[rank as usize].file.as_raw_fd();
        PathBuf::from(format!("/proc/{}/fd/{file}", std::process::id()))
    }

    /// What its ranks print goes there. Before the first of them is in virtual time.
    pub(crate) fn prints_to(&self, output: &Arc<Output>) {
        // Once.
        let _ = self.output.set(Arc::clone(output));
    }

    /// The simulation is over: all that ranks have printed is passed on.
    pub fn is_over(&self) {
        if let Some(output) = self.output.get() {
            output.is_over();
        }
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

    /// A rank has entered a barrier of the process manager, in which it leaves virtual time. From the watching
    /// thread.
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

    /// The rank that has kept its turn for longer than the watchdog allows.
    pub fn silent(&self) -> Option<u32> {
        lock(&self.life).silent
    }

    /// The network has lost a message for good: the run is to end.
    pub(crate) fn message_failed(&self, reason: String) {
        lock(&self.life).lost.get_or_insert(reason);
        self.stop();
    }

    /// Why the network has lost a message for good.
    pub fn lost(&self) -> Option<String> {
        lock(&self.life).lost.clone()
    }

    /// A rank has written into its device what no library does: the run is to end. The first counts.
    pub(crate) fn accuse(&self, rank: u32, nonsense: Nonsense) {
        lock(&self.life).accused.get_or_insert((rank, nonsense));
        self.stop();
    }

    /// The rank that has written nonsense into its device, and what.
    pub fn accused(&self) -> Option<(u32, Nonsense)> {
        lock(&self.life).accused
    }

    /// What a waiting rank waits for, as it says.
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

    /// Whether any process has opened its device.
    pub fn is_used(&self) -> bool {
        self.members.iter().any(|member| member.device.process().is_some())
    }

    /// How a rank's process ended.
    pub fn death(&self, rank: u32) -> Option<Death> {
        lock(&self.life).deaths[rank as usize]
    }

    /// Whether every rank that lives is fenced.
    pub(crate) fn is_fenced(life: &Life) -> bool {
        let mut living = life.deaths.iter().zip(&life.fenced).filter(|(death, _)| death.is_none()).peekable();
        living.peek().is_some() && living.all(|(_, fenced)| *fenced)
    }

    /// Where all that live are fenced: a rank that has ended, for which they wait.
    pub(crate) fn missing(&self) -> Option<u32> {
        lock(&self.life).deaths.iter().position(Option::is_some).map(|rank| rank as u32)
    }

    /// Waits until no rank is outside virtual time.
    pub(crate) fn gather(&self) -> Gathered {
        // What they print outside comes rank by rank.
        let output = self.output.get();
        let mut printed = 0;
        let mut pass_on = |until: u32| {
            (printed..until).for_each(|rank| output.iter().for_each(|output| output.turn_is_over(rank)));
            printed = printed.max(until);
        };
        loop {
            if self.is_stopping() {
                return Gathered::Stopping;
            }
            let mut life = lock(&self.life);
            if Job::is_fenced(&life) {
                drop(life);
                output.iter().for_each(|output| output.goes_on());
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
                output.iter().for_each(|output| output.goes_on());
                pass_on(self.ranks());
                for (rank, member) in self.members.iter().enumerate() {
                    let fenced = lock(&self.life).fenced[rank];
                    while !fenced && !self.is_stopping() && member.device.turn() == Turn::Rank {
                        member.device.sleep_while(Turn::Rank, Some(LOOK));
                    }
                }
                return if self.is_sane() { Gathered::Joined } else { Gathered::Stopping };
            };
            drop(life);
            pass_on(rank as u32);
            output.iter().for_each(|output| output.waits_for(rank as u32));
            life = lock(&self.life);
            // A rank that joins wakes its own device; deaths and fences wake the condition.
            life = self
                .changed
                .wait_timeout(life, Duration::from_millis(1))
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
            drop(life);
            self.members[rank].device.sleep_while(Turn::Rank, Some(Duration::from_millis(1)));
        }
    }

    /// Lets all fenced ranks go, outside virtual time; those that were in it will join again at `clock`, in ps.
    pub(crate) fn release(&self, clock: u64) {
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

    /// A rank that polls is taken to have polled up to `clock`, in ps, and to be in this state there.
    pub(crate) fn polls_on(&self, rank: u32, clock: u64, state: State) {
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

    /// Who answers in place of a rank that waits, if it says what it has open.
    pub(crate) fn stand_in(&self, rank: u32, poll: Span) -> Option<StandIn> {
        let open = lock(&self.members[rank as usize].lists).open_operations()?;
        self.death(rank)
            .is_none()
            .then(|| StandIn::new((rank, self.ranks()), open, self.within_number(rank), poll))
    }

    /// The state of a rank, and its clock in ps.
    pub(crate) fn state(&self, rank: u32) -> (State, u64) {
        let device = &self.members[rank as usize].device;
        (device.state().unwrap_or(State::Exit), device.clock())
    }

    /// The state of a rank that has given its turn away, if it can be in it.
    pub(crate) fn wants(life: &Life, rank: u32, device: &Shared) -> Result<State, Nonsense> {
        let dead = life.deaths[rank as usize].is_some();
        let state = device.state().ok_or(Nonsense::State)?;
        let can_be = match state {
            State::Ready | State::Wait | State::Poll => true,
            State::Fence => life.fenced[rank as usize],
            State::Exit => dead,
            State::Real | State::Run => false,
        };
        match device.clock() {
            _ if !can_be => Err(Nonsense::State),
            clock if clock > LATEST && !dead => Err(Nonsense::Clock(clock)),
            _ => Ok(state),
        }
    }

    /// Whether all ranks that are in virtual time are in a state in which they can be.
    fn is_sane(&self) -> bool {
        let life = lock(&self.life);
        for (rank, member) in (0..).zip(&self.members) {
            if life.fenced[rank as usize] {
                continue;
            }
            if let Err(nonsense) = Job::wants(&life, rank, &member.device) {
                drop(life);
                self.accuse(rank, nonsense);
                return false;
            }
        }
        true
    }

    /// What a rank has posted in its turn, and what its clock has moved for.
    pub(crate) fn take_posts(&self, rank: u32) -> (Vec<(Post, Vec<u8>)>, Vec<Entry>) {
        let mut lists = lock(&self.members[rank as usize].lists);
        (lists.take_posts(), lists.take_log())
    }

    /// Puts a notice into a rank's inbox; says whether it found room.
    pub(crate) fn notify(&self, rank: u32, notice: Notice, bytes: &[u8], used: &mut usize) -> bool {
        lock(&self.members[rank as usize].lists).notify(notice, bytes, used)
    }
}
