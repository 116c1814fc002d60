//! Completions: how a process learns that data has come.
//!
//! ```text
//!  kernel      card ─► ring of the driver ─ interrupt ─► driver ─► system call of the process, which polls
//!                                                        or is woken ─ copy ─► process, which searches
//!  remapped    card ─► ring of the driver ─ interrupt ─► driver ─ copy ─► buffer that the process polls
//!  direct      card ─────────────────────────────────────────────────► buffer that the process polls
//!  user-queue  card ─► ring that the process polls, entry by entry
//! ```
//! The states of an entry, and the step that leads to the next:
//!
//! | state | kernel, interrupt | kernel, polling | remapped | direct | user-queue |
//! |---|---|---|---|---|---|
//! | Written | interrupt | interrupt | interrupt | polling | polling |
//! | Signalled | driver | driver | driver | | |
//! | Handled | context switch | system call | copy | | |
//! | Awake | system call | | | | |
//! | Called | copy | copy | | | |
//! | Copied | search | search | polling | | |
//! | Found | | | | | queue entry |
//!
//! A step that is missing ends it: the process knows.
//!
//! # Source
//! APX §3.2: a completion is written into memory and notified to the driver, on any path but the direct one.
//! §3.3: its content is copied between the kernel's memory and the process's; the first optimization is a
//! completion address for each buffer, so that the process looks at a single place of its own memory: it
//! makes no system call and searches nothing. The better one is the address that is exchanged at the
//! handshake. D1.4 §9.2.1: the completion queue in user space.

use super::part::CardPart;
use super::software::SoftwareParameters;
use serde::{Deserialize, Serialize};
use weft_units::{Span, Time};

weft_keys::words! {
    /// The path of completions.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
    pub enum CompletionPath: "CompletionPath", "a path of completions" {
        /// The driver copies the completion to the process.
        Kernel = "kernel",
        /// The driver copies it into a buffer of the process that is mapped into the kernel.
        Remapped = "remapped",
        /// The card writes it to the address that came with the packet.
        Direct = "direct",
        /// The card writes it into the completion queue, which is mapped into the process.
        UserQueue = "user-queue",
    }
}

weft_keys::keys! {
    /// The choice among the paths.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct ChosenCompletion {
        /// Apenetx: the path of completions where a program does not choose.
        completion: Option<CompletionPath>;
    }
}

weft_keys::words! {
    /// How a process waits on the kernel path.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub enum KernelWait: "KernelWait", "a way to wait in the kernel" {
        /// It sleeps in a system call; an interrupt wakes it.
        Interrupt = "interrupt",
        /// It asks the driver again and again, by system calls.
        Polling = "polling",
    }
}

/// How far an entry has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum CompletionState {
    /// The card has written it.
    Written,
    /// The driver knows that there is one.
    Signalled,
    /// The driver has read it.
    Handled,
    /// The process that slept for it runs again.
    Awake,
    /// The process is in the driver, by its system call.
    Called,
    /// The driver has copied it.
    Copied,
    /// The process has found an entry in its queue.
    Found,
    /// The process knows which of its buffers has come.
    Known,
}

impl CompletionPath {
    /// The table of transitions: the step from a state, and the state that it leads to. `None`: the path does
    /// not have the state, or ends there.
    pub const fn next(self, state: CompletionState, wait: KernelWait) -> Option<(CardPart, CompletionState)> {
        use CompletionPath::{Direct, Kernel, Remapped, UserQueue};
        use CompletionState::{Awake, Called, Copied, Found, Handled, Known, Signalled, Written};
        Some(match (self, state, wait) {
            (Kernel | Remapped, Written, _) => (CardPart::Interrupt, Signalled),
            (Kernel | Remapped, Signalled, _) => (CardPart::Driver, Handled),
            (Kernel, Handled, KernelWait::Interrupt) => (CardPart::ContextSwitch, Awake),
            (Kernel, Handled, KernelWait::Polling) | (Kernel, Awake, KernelWait::Interrupt) => {
                (CardPart::SystemCall, Called)
            }
            (Kernel, Called, _) | (Remapped, Handled, _) => (CardPart::Copy, Copied),
            (Kernel, Copied, _) => (CardPart::Search, Known),
            (Remapped, Copied, _) => (CardPart::Polling, Known),
            (Direct, Written, _) => (CardPart::Polling, Known),
            (UserQueue, Written, _) => (CardPart::Polling, Found),
            (UserQueue, Found, _) => (CardPart::QueueEntry, Known),
            _ => return None,
        })
    }

    /// Whether the card raises an interrupt.
    pub const fn interrupts(self) -> bool {
        matches!(self, CompletionPath::Kernel | CompletionPath::Remapped)
    }
}

/// The driver's handler of completions: one core, which takes one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Handler {
    free: Time,
    worked: Span,
}

/// One step on the way of a completion to its process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CompletionStep {
    pub part: CardPart,
    pub came: Time,
    pub began: Time,
    pub ended: Time,
}

impl Handler {
    /// The time at which the process knows of an entry that the card has written at `written`; `step` is told
    /// of each step.
    #[inline]
    pub(super) fn completes(
        &mut self,
        written: Time,
        (path, wait): (CompletionPath, KernelWait),
        software: &SoftwareParameters,
        mut step: impl FnMut(CompletionStep),
    ) -> Time {
        let (mut at, mut state) = (written, CompletionState::Written);
        while let Some((part, next)) = path.next(state, wait) {
            let came = at;
            let takes = software.takes(part);
            let (began, ended) = match part {
                // While it works the handler looks for more, and no interrupt is raised.
                CardPart::Interrupt if self.free > came => (came, self.free),
                // On the kernel path the process copies, by its own call.
                CardPart::Driver | CardPart::Copy if state != CompletionState::Called => {
                    let began = came.max(self.free);
                    self.free = began + takes;
                    self.worked = self.worked.saturating_add(takes);
                    (began, self.free)
                }
                _ => (came, came + takes),
            };
            step(CompletionStep { part, came, began, ended });
            (at, state) = (ended, next);
        }
        at
    }

    pub(super) fn worked(&self) -> Span {
        self.worked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CompletionState::{Awake, Called, Copied, Found, Handled, Known, Signalled, Written};

    const STATES: [CompletionState; 8] = [Written, Signalled, Handled, Awake, Called, Copied, Found, Known];

    /// The table, cell by cell: what is not in a list ends the path.
    #[test]
    fn every_transition_is_as_the_table_has_it() {
        let driver = [(Written, CardPart::Interrupt, Signalled), (Signalled, CardPart::Driver, Handled)];
        let asked = [(Called, CardPart::Copy, Copied), (Copied, CardPart::Search, Known)];
        let table: [(CompletionPath, KernelWait, Vec<_>); 5] = [
            (
                CompletionPath::Kernel,
                KernelWait::Interrupt,
                [
                    &driver[..],
                    &[(Handled, CardPart::ContextSwitch, Awake), (Awake, CardPart::SystemCall, Called)],
                    &asked,
                ]
                .concat(),
            ),
            (
                CompletionPath::Kernel,
                KernelWait::Polling,
                [&driver[..], &[(Handled, CardPart::SystemCall, Called)], &asked].concat(),
            ),
            (
                CompletionPath::Remapped,
                KernelWait::Interrupt,
                [&driver[..], &[(Handled, CardPart::Copy, Copied), (Copied, CardPart::Polling, Known)]]
                    .concat(),
            ),
            (CompletionPath::Direct, KernelWait::Interrupt, vec![(Written, CardPart::Polling, Known)]),
            (
                CompletionPath::UserQueue,
                KernelWait::Interrupt,
                vec![(Written, CardPart::Polling, Found), (Found, CardPart::QueueEntry, Known)],
            ),
        ];
        for (path, wait, rows) in table {
            for state in STATES {
                let row = rows.iter().find(|row| row.0 == state).map(|row| (row.1, row.2));
                assert_eq!(path.next(state, wait), row, "{path:?} {wait:?} {state:?}");
            }
        }
    }

    /// How a process waits is a matter of the kernel path alone.
    #[test]
    fn other_paths_do_not_ask_how_the_kernel_waits() {
        for path in [CompletionPath::Remapped, CompletionPath::Direct, CompletionPath::UserQueue] {
            for state in STATES {
                assert_eq!(path.next(state, KernelWait::Polling), path.next(state, KernelWait::Interrupt));
            }
        }
    }

    /// Catches a handler that takes two completions at a time, or raises an interrupt for each.
    #[test]
    fn the_handler_takes_one_completion_at_a_time() {
        let software = SoftwareParameters::of_ns([1, 1, 1, 1, 100, 10, 40, 7, 3, 2]);
        let mut handler = Handler::default();
        let mut completes = |written: u64| {
            let how = (CompletionPath::Remapped, KernelWait::Interrupt);
            let known = handler.completes(Time::from_ps(written * 1000), how, &software, |_| {});
            known.as_ps() / 1000
        };
        let one = 100
            + software.takes(CardPart::Driver).as_ps() / 1000
            + software.takes(CardPart::Copy).as_ps() / 1000;
        let poll = software.takes(CardPart::Polling).as_ps() / 1000;
        assert_eq!(completes(0), one + poll);
        assert_eq!(completes(0), one + (one - 100) + poll);
        assert_eq!(completes(1000), 1000 + one + poll);
    }

    /// Catches a naive path that is slower for another reason than its system call and its search: interrupt,
    /// driver and copy are in both, whatever a context switch costs.
    #[test]
    fn the_naive_path_has_a_system_call_and_a_search_more() {
        for switch in [0, 40] {
            let software = SoftwareParameters::of_ns([1, 20, 1, 1, 100, 10, switch, 7, 3, 2]);
            let known = |path, wait| {
                let known = Handler::default().completes(Time::ZERO, (path, wait), &software, |_| {});
                known.as_ps() / 1000
            };
            let remapped = known(CompletionPath::Remapped, KernelWait::Interrupt);
            let more = 20 + 7 - 3;
            assert_eq!(known(CompletionPath::Kernel, KernelWait::Polling), remapped + more);
            assert_eq!(known(CompletionPath::Kernel, KernelWait::Interrupt), remapped + more + switch);
        }
    }
}
