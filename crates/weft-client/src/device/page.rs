//! The first page: whose turn it is, the rank's state and clock, what it is told of the machine.

use super::log::OutsideCounts;
use super::{PROTOCOL, Shared};
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weft_units::Span;

/// How often a side without the turn looks whether it has it before it sleeps, since waking takes longer than
/// most turns last.
#[derive(Clone, Copy)]
struct Looks {
    /// So often without giving its core to others,
    with_core: u32,
    /// and so often in all.
    all: u32,
}

impl Looks {
    /// At once to sleep: on the core of the simulator nobody can give a rank its turn before it sleeps, on
    /// one of many ranks others wait for the core, and a rank outside virtual time has long to wait.
    const NONE: Looks = Looks { with_core: 1, all: 1 };
    /// Of the simulator on the core of the ranks: only the rank whose turn it is wants the core, and need not
    /// wake it afterwards.
    const YIELDS: Looks = Looks { with_core: 1, all: 200 };
    /// Of the simulator on a core of its own.
    const ALONE: Looks = Looks { with_core: 2000, all: 2200 };
    /// Of a rank on a core that it shares with few others: it may be the next again.
    const AMONG_FEW: Looks = Looks { with_core: 20, all: 120 };
}

/// On which cores a job runs while it is in virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Sharing {
    /// Ranks and simulator share one.
    One = 0,
    /// Few ranks share one, and the simulator has another.
    Few = 1,
    /// Many ranks share one, and the simulator has another.
    Many = 2,
}

impl Sharing {
    fn of(word: u32) -> Sharing {
        [Sharing::Few, Sharing::Many]
            .into_iter()
            .find(|sharing| *sharing as u32 == word)
            .unwrap_or(Sharing::One)
    }
}

/// Who may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Turn {
    /// The simulator.
    Simulator = 0,
    /// The rank.
    Rank = 1,
}

/// The condition under which a rank without the turn goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum State {
    /// It runs in real time, outside virtual time: it has not joined yet.
    Real = 0,
    /// To go on when virtual time has reached its clock.
    Ready = 1,
    /// It has the turn.
    Run = 2,
    /// To go on when there is a notice.
    Wait = 3,
    /// It is in a barrier of the process manager.
    Fence = 4,
    /// It has left.
    Exit = 5,
    /// It polls: to go on at its clock if there is a notice by then, and else the same after each poll that
    /// it says it makes; after the last as [`State::Wait`].
    Poll = 6,
    /// To go on when there is a notice, or when virtual time has reached the time that it says.
    Until = 7,
}

impl State {
    fn of(word: u32) -> Option<State> {
        use State::{Exit, Fence, Poll, Ready, Real, Run, Until, Wait};
        [Real, Ready, Run, Wait, Fence, Exit, Poll, Until].into_iter().find(|state| *state as u32 == word)
    }
}

/// How computation moves a rank's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HostModel {
    /// It takes no time.
    None,
    /// The thread's CPU time, times a scale in millionths.
    Cpu(u32),
    /// This span for each call of the library.
    Fixed(Span),
}

/// The first page.
#[repr(C)]
pub(super) struct Page {
    pub magic: u64,
    pub version: u32,
    pub rank: u32,
    pub ranks: u32,
    pub endpoint: u32,
    pub domain: u32,
    pub host_model: u32,
    /// The rank's process, as it says.
    pub process: AtomicU32,
    /// The simulator's process.
    pub simulator: u32,
    /// Of [`HostModel`]: millionths, or picoseconds.
    pub host_value: u64,
    pub turn: AtomicU32,
    /// The number of processes that sleep until the turn changes: where it is 0, who gives the turn away
    /// wakes nobody.
    pub asleep: AtomicU32,
    /// The core on which all ranks run, plus one; 0: wherever the system puts them.
    pub core: AtomicU32,
    /// [`Sharing`].
    pub sharing: AtomicU32,
    pub state: AtomicU32,
    /// The rank's clock, in ps.
    pub clock: AtomicU64,
    /// The time to which the rank waits, in ps.
    pub until: AtomicU64,
    /// No notice can come before this time, in ps, beside those in the inbox.
    pub quiet_until: AtomicU64,
    /// Virtual time of an empty poll, of a clock read, in ps.
    pub poll: u64,
    pub clock_read: u64,
    /// Whether a rank that only polls is taken to wait from its first empty poll on.
    pub jumps: u32,
    /// Largest message between virtual interfaces, in bytes.
    pub small: u32,
    /// Interfaces of its host by which the rank's messages go.
    pub rails: u32,
    pub protocol_length: u32,
    pub posts: u32,
    pub notices: u32,
    /// Entries of the log.
    pub logged: u32,
    pub outside: OutsideCounts,
    /// The operations that the rank waits for: the number of valid entries in the list behind the page's
    /// beginning.
    pub awaited: u32,
    /// The number of the MPI call in which it waits.
    pub within: AtomicU32,
    /// MPI calls that the rank had made when it last waited.
    pub calls: AtomicU32,
    /// Polls that the rank makes after its clock before it waits.
    pub polls: AtomicU32,
    /// The receives and sends that are open while the rank waits: the numbers of valid entries in the two
    /// lists.
    pub open_receives: AtomicU32,
    pub open_sends: AtomicU32,
}

/// The properties of a rank and its machine that never change.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// The rank's number.
    pub rank: u32,
    /// Ranks of the job.
    pub ranks: u32,
    /// The rank's endpoint.
    pub endpoint: u32,
    /// The job's protection domain.
    pub domain: u16,
    /// How computation moves its clock.
    pub host: HostModel,
    /// Virtual time of an empty poll.
    pub poll: Span,
    /// Virtual time of a clock read.
    pub clock_read: Span,
    /// Whether a rank that only polls is taken to wait from its first empty poll on.
    pub jumps: bool,
    /// Largest message between virtual interfaces, in bytes.
    pub small: u32,
    /// Interfaces of its host by which the rank's messages go; 1: its own only.
    pub rails: u32,
}

impl Shared {
    /// The properties of the rank that never change.
    pub fn identity(&self) -> Identity {
        let page = self.page();
        Identity {
            rank: page.rank,
            ranks: page.ranks,
            endpoint: page.endpoint,
            domain: page.domain as u16,
            host: match page.host_model {
                1 => HostModel::Cpu(page.host_value as u32),
                2 => HostModel::Fixed(Span::from_ps(page.host_value)),
                _ => HostModel::None,
            },
            poll: Span::from_ps(page.poll),
            clock_read: Span::from_ps(page.clock_read),
            jumps: page.jumps != 0,
            small: page.small,
            rails: page.rails,
        }
    }

    /// The rank's process, as the rank says; `None`: it has not said. Not to be believed.
    pub fn process(&self) -> Option<u32> {
        Some(self.page().process.load(Ordering::Acquire)).filter(|process| *process != 0)
    }

    /// The simulator's process.
    pub fn simulator(&self) -> Option<rustix::process::Pid> {
        i32::try_from(self.page().simulator).ok().and_then(rustix::process::Pid::from_raw)
    }

    /// Whether the simulator's process is there. Without it the rank never gets another turn.
    pub fn has_simulator(&self) -> bool {
        self.simulator().is_some_and(|process| rustix::process::test_kill_process(process).is_ok())
    }

    /// Says which process the rank is.
    pub fn set_process(&self, process: u32) {
        self.page().process.store(process, Ordering::Release);
    }

    /// The machine's messaging, as it was given.
    pub fn protocol(&self) -> Vec<u8> {
        self.read(4096, (self.page().protocol_length as usize).min(PROTOCOL))
    }

    /// The number of the MPI call in which the rank last waited, as it says; 0: none that is known.
    pub fn within(&self) -> u32 {
        self.page().within.load(Ordering::Acquire)
    }

    /// MPI calls that the rank had made when it last waited, as it says: a rank that has made more since has
    /// gone on.
    pub fn calls(&self) -> u32 {
        self.page().calls.load(Ordering::Acquire)
    }

    /// Says in which MPI call the rank waits, by its number, and how many calls it has made.
    pub fn set_within(&self, call: u32, calls: u32) {
        self.page().within.store(call, Ordering::Release);
        self.page().calls.store(calls, Ordering::Release);
    }

    /// Polls that the rank, in [`State::Poll`], makes after its clock before it waits, as it says.
    pub fn polls(&self) -> u32 {
        self.page().polls.load(Ordering::Acquire)
    }

    /// Says how many polls the rank makes after its clock before it waits.
    pub fn set_polls(&self, polls: u32) {
        self.page().polls.store(polls, Ordering::Release);
    }

    /// The time, in ps, to which the rank, in [`State::Until`], waits, as it says.
    pub fn until(&self) -> u64 {
        self.page().until.load(Ordering::Acquire)
    }

    /// Says to which time the rank waits, in ps.
    pub fn set_until(&self, ps: u64) {
        self.page().until.store(ps, Ordering::Release);
    }

    /// The rank's state; `None`: it has written nonsense there.
    pub fn state(&self) -> Option<State> {
        State::of(self.page().state.load(Ordering::Acquire))
    }

    /// Changes it.
    pub fn set_state(&self, state: State) {
        self.page().state.store(state as u32, Ordering::Release);
    }

    /// Changes it to any number: what a rank may have written there.
    pub fn set_state_number(&self, number: u32) {
        self.page().state.store(number, Ordering::Release);
    }

    /// The rank's clock, in ps.
    pub fn clock(&self) -> u64 {
        self.page().clock.load(Ordering::Acquire)
    }

    /// Changes it.
    pub fn set_clock(&self, ps: u64) {
        self.page().clock.store(ps, Ordering::Release);
    }

    /// Until when no notice can come, in ps.
    pub fn quiet_until(&self) -> u64 {
        self.page().quiet_until.load(Ordering::Acquire)
    }

    /// Says until when no notice can come, in ps.
    pub fn set_quiet_until(&self, ps: u64) {
        self.page().quiet_until.store(ps, Ordering::Release);
    }

    /// The core on which all ranks are to run, while they are in virtual time.
    pub fn core(&self) -> Option<usize> {
        self.page().core.load(Ordering::Acquire).checked_sub(1).map(|core| core as usize)
    }

    /// Says on which core all ranks are to run, and who else does.
    pub fn set_core(&self, core: Option<usize>, sharing: Sharing) {
        self.page().sharing.store(sharing as u32, Ordering::Release);
        self.page().core.store(core.map_or(0, |core| core as u32 + 1), Ordering::Release);
    }

    /// Whose turn it is.
    pub fn turn(&self) -> Turn {
        if self.page().turn.load(Ordering::Acquire) == Turn::Rank as u32 {
            Turn::Rank
        } else {
            Turn::Simulator
        }
    }

    /// Gives the turn away and wakes the other side.
    pub fn give_turn(&self, to: Turn) {
        let page = self.page();
        page.turn.store(to as u32, Ordering::SeqCst);
        if page.asleep.load(Ordering::SeqCst) > 0 {
            let _ = futex::wake(&page.turn, futex::Flags::empty(), u32::MAX);
        }
    }

    /// Wakes whoever waits for the turn, so that it looks around.
    pub fn nudge(&self) {
        let _ = futex::wake(&self.page().turn, futex::Flags::empty(), u32::MAX);
    }

    /// Looks and then sleeps until the turn is not `not` any more, or for so long; says whether it has given
    /// its core away meanwhile. A sleep that somebody disturbs ends early.
    pub fn sleep_while(&self, not: Turn, at_most: Option<std::time::Duration>) -> bool {
        let Page { turn, asleep, sharing, .. } = self.page();
        let looks = match (self.core(), Sharing::of(sharing.load(Ordering::Acquire)), not) {
            (None, ..) | (_, Sharing::One | Sharing::Many, Turn::Simulator) => Looks::NONE,
            (_, Sharing::One, Turn::Rank) => Looks::YIELDS,
            (_, Sharing::Few | Sharing::Many, Turn::Rank) => Looks::ALONE,
            (_, Sharing::Few, Turn::Simulator) => Looks::AMONG_FEW,
        };
        for look in 0..looks.all {
            if turn.load(Ordering::Acquire) != not as u32 {
                return look > looks.with_core;
            }
            if look < looks.with_core {
                std::hint::spin_loop();
            } else {
                // The other side may be waiting for this core.
                rustix::thread::sched_yield();
            }
        }
        let timeout = at_most.and_then(|span| rustix::time::Timespec::try_from(span).ok());
        asleep.fetch_add(1, Ordering::SeqCst);
        let _ = futex::wait(turn, futex::Flags::empty(), not as u32, timeout.as_ref());
        asleep.fetch_sub(1, Ordering::SeqCst);
        true
    }
}
