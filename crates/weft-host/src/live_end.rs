//! The end of a live run: why it ended, and the exit status that the command makes of it.

use crate::nonsense::Nonsense;
use weft_results::Ending;
use weft_units::Time;

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Death {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// Mailboxes from which no process takes messages, and what waits for room in them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FullMailboxes {
    /// Messages that they have refused.
    pub refused: u64,
    /// Those with messages, the fullest first.
    pub mailboxes: Vec<Mailbox>,
}

/// A mailbox of a virtual interface, with messages that its process has not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mailbox {
    /// Whose.
    pub rank: u32,
    /// The virtual interface.
    pub interface: u16,
    /// Messages in it.
    pub messages: u32,
}

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LiveEnd {
    /// Every rank has ended with status 0.
    Finished,
    /// This rank was the first to end otherwise, or inside MPI; the others were ended.
    RankEnded(u32, Death),
    /// This rank has called MPI_Abort with this status.
    Aborted(u32, i32),
    /// Every rank has ended with status 0, and none has used the network interface at all.
    NoRank,
    /// Nothing can ever happen again, and these ranks wait, each since a time.
    Deadlock(Vec<(u32, Time)>),
    /// Mailboxes are full, the network only repeats what they refuse, and these ranks wait, each since a
    /// time.
    NoProgress(Vec<(u32, Time)>, FullMailboxes),
    /// This rank has kept its turn for longer than the watchdog allows.
    Silent(u32),
    /// The network has lost a message for good: why.
    Lost(String),
    /// RTL in step with the model has another output than the model: which.
    RtlDiffers(String),
    /// This rank has written into its device what no library does.
    Broken(u32, Nonsense),
    /// Virtual time has reached its limit.
    TimeLimit,
    /// Real time has reached its limit.
    WallLimit,
    /// The user asked for it.
    Interrupted,
    /// The job was [stopped](crate::job::Job::stop) without a reason.
    Stopped,
}

impl LiveEnd {
    /// The name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            LiveEnd::Finished | LiveEnd::Stopped => "finished",
            LiveEnd::RankEnded(..) => "rank failed",
            LiveEnd::Aborted(..) => "aborted",
            LiveEnd::NoRank => "no rank",
            LiveEnd::Deadlock(_) => "deadlock",
            LiveEnd::NoProgress(..) => "no progress",
            LiveEnd::Silent(_) => "silent",
            LiveEnd::Lost(_) => "lost data",
            LiveEnd::RtlDiffers(_) => "RTL differs",
            LiveEnd::Broken(..) => "broken rank",
            LiveEnd::TimeLimit | LiveEnd::WallLimit => "limit reached",
            LiveEnd::Interrupted => "interrupted",
        }
    }

    /// The ending that results name.
    pub fn ending(&self) -> Ending {
        match self {
            LiveEnd::Finished | LiveEnd::Stopped => Ending::Finished,
            LiveEnd::RankEnded(..) | LiveEnd::Aborted(..) | LiveEnd::Broken(..) | LiveEnd::NoRank => {
                Ending::RankFailed
            }
            LiveEnd::Deadlock(_) => Ending::Deadlock,
            LiveEnd::NoProgress(..) => Ending::NoProgress,
            LiveEnd::Lost(_) => Ending::LostData,
            LiveEnd::RtlDiffers(_) => Ending::RtlDiffers,
            LiveEnd::Silent(_) | LiveEnd::TimeLimit | LiveEnd::WallLimit => Ending::LimitReached,
            LiveEnd::Interrupted => Ending::Interrupted,
        }
    }

    /// The exit status of the command: the program's, if it has one.
    pub fn exit_status(&self) -> u8 {
        match self {
            LiveEnd::Finished | LiveEnd::Stopped => 0,
            LiveEnd::RankEnded(_, death) => status_of(*death),
            LiveEnd::Aborted(_, status) => status_of(Death::Exited(*status)),
            LiveEnd::Deadlock(_)
            | LiveEnd::NoProgress(..)
            | LiveEnd::Silent(_)
            | LiveEnd::Lost(_)
            | LiveEnd::RtlDiffers(_)
            | LiveEnd::Broken(..)
            | LiveEnd::TimeLimit
            | LiveEnd::WallLimit => 1,
            LiveEnd::NoRank => 2,
            LiveEnd::Interrupted => 130,
        }
    }
}

/// The exit status as a shell has it. A rank that ends inside MPI has failed, whatever its own status.
fn status_of(death: Death) -> u8 {
    match death {
        Death::Exited(status) => u8::try_from(status & 0xff).unwrap_or(1).max(1),
        Death::Killed(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
    }
}
