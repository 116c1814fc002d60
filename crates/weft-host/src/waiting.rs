//! Who waits for what, in words: the report of a job that cannot go on.
//!
//! Each rank that waits says in its device what it waits for: its sends that are not complete, its posted
//! receives. What the library above has posted for itself, to take messages of any kind, is not among them.

use crate::job::{Death, Job};
use crate::tag::{context, tag};
use weft_client::device::{Awaited, AwaitedKind};
use weft_units::Time;

/// Ranks that are told of.
const RANKS_SHOWN: usize = 20;
/// Operations of each.
const OPERATIONS_SHOWN: usize = 4;

/// One line for each rank that waits, with the time since when, then one for each that died.
pub(crate) fn describe(job: &Job, waiting: &[(u32, Time)]) -> String {
    let mut lines = Vec::new();
    for (rank, since) in waiting.iter().take(RANKS_SHOWN) {
        let awaited = job.awaited(*rank);
        let mut operations: Vec<String> =
            awaited.iter().take(OPERATIONS_SHOWN).filter_map(operation).collect();
        if awaited.len() > OPERATIONS_SHOWN {
            operations.push(format!("{} more", awaited.len() - OPERATIONS_SHOWN));
        }
        if operations.is_empty() {
            operations.push("a message that the MPI library expects".to_owned());
        }
        let since = since.as_ps() as f64 / 1e6;
        let within = job.within(*rank).map_or(String::new(), |call| format!(" in {call}"));
        lines.push(format!("rank {rank} waits since {since:.3} us{within} for {}", operations.join("; ")));
    }
    if waiting.len() > RANKS_SHOWN {
        lines.push(format!("{} more ranks wait", waiting.len() - RANKS_SHOWN));
    }
    let dead = (0..job.ranks()).filter_map(|rank| job.death(rank).map(|death| (rank, death)));
    lines.extend(dead.take(RANKS_SHOWN).map(|(rank, death)| format!("rank {rank} has {}", ending(death))));
    lines.join("\n")
}

/// How a process ended, after "has".
pub(crate) fn ending(death: Death) -> String {
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

fn operation(awaited: &Awaited) -> Option<String> {
    let bytes = awaited.bytes;
    let peer =
        if awaited.peer == u32::MAX { "any rank".to_owned() } else { format!("rank {}", awaited.peer) };
    let tag = match context(awaited.tag) {
        0 => format!("tag {}", awaited.tag),
        _ => format!("tag {} ({:#x})", tag(awaited.tag), awaited.tag),
    };
    match awaited.kind {
        kind if kind == AwaitedKind::Send as u32 => {
            Some(format!("its send of {bytes} bytes to {peer}, {tag}"))
        }
        kind if kind == AwaitedKind::Receive as u32 => Some(format!("a message from {peer}, {tag}")),
        kind if kind == AwaitedKind::Remote as u32 => Some(format!("its RDMA of {bytes} bytes with {peer}")),
        kind if kind == AwaitedKind::Interface as u32 => {
            Some(format!("what comes to its virtual interface {}", awaited.peer))
        }
        // It has written nonsense there.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_told_in_words() {
        let say = |kind, peer, tag, bytes| operation(&Awaited { kind, peer, tag, bytes }).unwrap_or_default();
        assert_eq!(say(1, 3, 7, 2048), "its send of 2048 bytes to rank 3, tag 7");
        assert_eq!(say(2, u32::MAX, 1 << 32 | 5, 0), "a message from any rank, tag 5 (0x100000005)");
        assert_eq!(say(4, 9, 0, 0), "what comes to its virtual interface 9");
        assert_eq!(say(77, 0, 0, 0), "");
        assert_eq!(ending(Death::Killed(11)), "been ended by signal 11 (segmentation fault)");
    }
}
