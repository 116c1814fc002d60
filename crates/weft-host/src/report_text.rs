//! The text of reports: how a job ended, which rank waits for what.
//!
//! Each rank that waits says in its device what it waits for: its sends that are not complete, its posted
//! receives. What the library above has posted for itself, to take messages of any kind, is not among them.

use crate::job::Job;
use crate::live_end::{Death, FullMailboxes, LiveEnd, Mailbox};
use crate::tag::{context, is_synchronous, tag};
use weft_client::device::{Awaited, AwaitedKind, State};
use weft_units::Time;

/// Ranks that a report names at most.
const MAX_RANKS_SHOWN: usize = 20;
/// Operations that a report names of each rank at most.
const MAX_OPERATIONS_SHOWN: usize = 4;

/// The reason for which a job ended, in some lines, or none; `may_use_mpi`: words on MPI may help. A
/// [`deadlock`] and a job that makes [`no_progress`] have texts of their own.
pub(crate) fn reason(job: &Job, end: &LiveEnd, may_use_mpi: bool) -> String {
    match end {
        LiveEnd::RankEnded(rank, death) => {
            let without = if *death == Death::Exited(0) { " without MPI_Finalize" } else { "" };
            let mut text = format!("rank {rank} has {}{without}{}", ending(*death), after(job, *rank));
            if may_use_mpi && *death != Death::Exited(0) && !job.is_used() {
                // Its own messages say what else it may have been.
                text += ", and no rank had called MPI_Init by then: what it printed may say why. Where \
                         something else has started it and closed its descriptors (Python's subprocess: \
                         close_fds=False keeps them), name the program itself";
            }
            text
        }
        LiveEnd::Aborted(rank, status) => {
            format!("rank {rank} called MPI_Abort with status {status}{}", after(job, *rank))
        }
        LiveEnd::Lost(reason) | LiveEnd::RtlDiffers(reason) => reason.clone(),
        LiveEnd::NoRank => "the program has used neither MPICH nor weft.h, so that nothing ran in virtual \
                            time; name a program that is linked to MPICH with libfabric (libmpi.so.12, \
                            build/venv/bin/mpicc) or to libweft_client.so"
            .to_owned(),
        LiveEnd::Broken(rank, nonsense) => format!(
            "rank {rank} wrote {nonsense} into its device; has its program written over memory that is not \
             its own, or is its library not this weft's?"
        ),
        LiveEnd::Silent(rank) => format!(
            "rank {rank} computed or waited outside MPI for longer than the watchdog allows (--watchdog)"
        ),
        LiveEnd::Finished
        | LiveEnd::Deadlock(_)
        | LiveEnd::NoProgress(..)
        | LiveEnd::TimeLimit
        | LiveEnd::WallLimit
        | LiveEnd::Interrupted
        | LiveEnd::Stopped => String::new(),
    }
}

/// One line for each rank that waits, with the time since when, then one for each that died.
pub(crate) fn deadlock(job: &Job, waiting: &[(u32, Time)]) -> String {
    let mut lines: Vec<String> =
        waiting.iter().take(MAX_RANKS_SHOWN).map(|(rank, since)| waits(job, *rank, *since)).collect();
    if waiting.len() > MAX_RANKS_SHOWN {
        lines.push(format!("{} more ranks wait", waiting.len() - MAX_RANKS_SHOWN));
    }
    let dead = (0..job.ranks()).filter_map(|rank| job.death(rank).map(|death| (rank, death)));
    lines
        .extend(dead.take(MAX_RANKS_SHOWN).map(|(rank, death)| format!("rank {rank} has {}", ending(death))));
    lines.join("\n")
}

/// One line for the mailboxes that are full, then those of a deadlock.
pub(crate) fn no_progress(job: &Job, waiting: &[(u32, Time)], full: &FullMailboxes) -> String {
    let FullMailboxes { refused, mailboxes } = full;
    let mut held: Vec<String> = mailboxes
        .iter()
        .take(MAX_OPERATIONS_SHOWN)
        .map(|Mailbox { rank, interface, messages }| {
            format!("{messages} lie in the mailbox of virtual interface {interface} of rank {rank}")
        })
        .collect();
    if mailboxes.len() > held.len() {
        held.push(format!("{} more mailboxes have some", mailboxes.len() - held.len()));
    }
    let what = if *refused == 1 { "message is" } else { "messages are" };
    let held = held.join("; ");
    let head = format!(
        "{refused} small {what} repeated without end, since a full mailbox refuses them and no rank takes \
         what is in it (weft_interface_receive): {held}"
    );
    let waiting = deadlock(job, waiting);
    if waiting.is_empty() { head } else { format!("{head}\n{waiting}") }
}

/// Where the ranks are that have not ended, a line each: for a job that is ended from outside, or by the rank
/// that `ended`.
pub(crate) fn whereabouts(job: &Job, ended: Option<u32>) -> String {
    let living = (0..job.ranks()).filter(|rank| Some(*rank) != ended && job.death(*rank).is_none());
    let mut lines: Vec<String> = living
        .map(|rank| {
            let (state, clock) = job.state(rank);
            let clock = Time::from_ps(clock);
            match state {
                // What for, a rank says only before a deadlock.
                State::Wait | State::Poll | State::Until => {
                    format!("rank {rank} waits since {}{}", microseconds(clock), within(job, rank))
                }
                State::Ready => format!("rank {rank} would go on at {}", microseconds(clock)),
                State::Run => format!("rank {rank} has its turn since {}", microseconds(clock)),
                State::Fence => format!("rank {rank} waits in the process manager's barrier"),
                State::Real | State::Exit => format!("rank {rank} is outside virtual time"),
            }
        })
        .collect();
    let more = lines.len().saturating_sub(MAX_RANKS_SHOWN);
    lines.truncate(MAX_RANKS_SHOWN);
    if more > 0 {
        lines.push(format!("and {more} more ranks"));
    }
    lines.join("\n")
}

fn microseconds(time: Time) -> String {
    format!("{:.3} us", time.as_ps() as f64 / 1e6)
}

fn waits(job: &Job, rank: u32, since: Time) -> String {
    let awaited = job.awaited(rank);
    let mut operations: Vec<String> =
        awaited.iter().take(MAX_OPERATIONS_SHOWN).filter_map(|awaited| operation(rank, awaited)).collect();
    if awaited.len() > MAX_OPERATIONS_SHOWN {
        operations.push(format!("{} more", awaited.len() - MAX_OPERATIONS_SHOWN));
    }
    if operations.is_empty() {
        let sends = job.within(rank).is_some_and(|call| call.contains("end"));
        let itself = if sends { "its own receive, if it sends to itself, or " } else { "" };
        operations.push(format!("{itself}a message that the MPI library expects"));
    }
    let (since, within) = (microseconds(since), within(job, rank));
    format!("rank {rank} waits since {since}{within} for {}", operations.join("; "))
}

/// How far a rank came in virtual time, behind how it ended.
fn after(job: &Job, rank: u32) -> String {
    match job.state(rank).1 {
        0 => String::new(),
        clock => format!(" after {} of virtual time", microseconds(Time::from_ps(clock))),
    }
}

/// The MPI call that a rank waits in, if it says.
fn within(job: &Job, rank: u32) -> String {
    job.within(rank).map_or(String::new(), |call| format!(" in {call}"))
}

/// How a process ended, after "has".
fn ending(death: Death) -> String {
    match death {
        Death::Exited(0) => "ended".to_owned(),
        Death::Exited(status) => format!("ended with exit status {status}"),
        Death::Killed(signal) => format!("been ended by signal {signal}{}", signal_name(signal)),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => " (segmentation fault)",
        libc::SIGABRT => " (abort)",
        libc::SIGKILL => " (kill)",
        libc::SIGBUS => " (bus error)",
        libc::SIGFPE => " (arithmetic error)",
        libc::SIGILL => " (illegal instruction)",
        libc::SIGTERM => " (termination)",
        _ => "",
    }
}

fn operation(rank: u32, awaited: &Awaited) -> Option<String> {
    let bytes = awaited.bytes;
    let peer = match awaited.peer {
        u32::MAX => "any rank".to_owned(),
        peer if peer == rank => "itself".to_owned(),
        peer => format!("rank {peer}"),
    };
    let tag = match (tag(awaited.ignored), context(awaited.tag)) {
        (0, 0) => format!("tag {}", awaited.tag),
        (0, _) => format!("tag {} ({:#x})", tag(awaited.tag), awaited.tag),
        _ => "any tag".to_owned(),
    };
    match awaited.kind {
        kind if kind == AwaitedKind::Send as u32 => {
            Some(format!("its send of {bytes} bytes to {peer}, {tag}"))
        }
        kind if kind == AwaitedKind::Receive as u32 && is_synchronous(awaited.tag) => {
            Some(format!("{peer} to receive its synchronous send, {tag}"))
        }
        kind if kind == AwaitedKind::Receive as u32 => Some(format!("a message from {peer}, {tag}")),
        kind if kind == AwaitedKind::Remote as u32 => Some(format!("its RDMA of {bytes} bytes with {peer}")),
        kind if kind == AwaitedKind::Interface as u32 => {
            Some(format!("what comes to its virtual interface {}", awaited.peer))
        }
        kind if kind == AwaitedKind::Service as u32 => {
            Some(format!("the answer of the store of node {} for key {}", awaited.peer, awaited.tag))
        }
        // The rank has written over its device.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_told_in_words() {
        let awaited = |kind, peer, tag, ignored| Awaited { kind, peer, tag, ignored, bytes: 2048 };
        let say = |awaited| operation(6, &awaited).unwrap_or_default();
        assert_eq!(say(awaited(1, 3, 7, 0)), "its send of 2048 bytes to rank 3, tag 7");
        assert_eq!(say(awaited(2, u32::MAX, 1 << 32 | 5, 0)), "a message from any rank, tag 5 (0x100000005)");
        assert_eq!(say(awaited(2, 6, 0, (1 << 31) - 1)), "a message from itself, any tag");
        assert_eq!(
            say(awaited(2, 1, 1 << 51 | 4, 0)),
            "rank 1 to receive its synchronous send, tag 4 (0x8000000000004)"
        );
        assert_eq!(say(awaited(4, 9, 0, 0)), "what comes to its virtual interface 9");
        assert_eq!(say(awaited(5, 3, 17, 0)), "the answer of the store of node 3 for key 17");
        assert_eq!(say(awaited(77, 0, 0, 0)), "");
        assert_eq!(ending(Death::Killed(11)), "been ended by signal 11 (segmentation fault)");
    }
}
