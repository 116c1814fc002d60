//! Event queues: full events, in a queue of bounded length.
//!
//! An event for which there is no room is lost. The next one that is taken says so
//! (`PTL_EQ_DROPPED`).

use crate::atomic::{AtomicOperation, DataType};
use crate::error::Outcome;
use crate::match_list::ListKind;
use crate::request::{Initiator, ProcessId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The kind of a full event, by the standard's names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum EventKind {
    Get,
    GetOverflow,
    Put,
    PutOverflow,
    Atomic,
    AtomicOverflow,
    FetchAtomic,
    FetchAtomicOverflow,
    Reply,
    Send,
    Ack,
    /// `PTL_EVENT_PT_DISABLED`.
    TableEntryDisabled,
    Link,
    AutoUnlink,
    AutoFree,
    Search,
}

/// A full event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// The kind.
    pub kind: EventKind,
    /// The outcome of the operation.
    pub outcome: Outcome,
    /// The list on which the message has been matched.
    pub list: ListKind,
    /// The index of the portal table.
    pub portal: u32,
    /// The word that the process gave for the operation or the entry.
    pub user: u64,
    /// The process that began the operation, and its user.
    pub initiator: Initiator,
    /// The match bits of the message.
    pub match_bits: u64,
    /// Bytes that the initiator asked for.
    pub requested: u64,
    /// Bytes that have been moved.
    pub moved: u64,
    /// The offset at the target.
    pub remote_offset: u64,
    /// The address of the first byte at the target.
    pub start: u64,
    /// The word that a put brings.
    pub header_data: u64,
    /// Of an atomic operation.
    pub atomic: Option<(AtomicOperation, DataType)>,
}

impl Event {
    /// An event of which all is zero but its kind and outcome.
    pub fn new(kind: EventKind, outcome: Outcome) -> Event {
        Event {
            kind,
            outcome,
            list: ListKind::Priority,
            portal: 0,
            user: 0,
            initiator: Initiator { process: ProcessId { nid: 0, pid: 0 }, user: 0 },
            match_bits: 0,
            requested: 0,
            moved: 0,
            remote_offset: 0,
            start: 0,
            header_data: 0,
            atomic: None,
        }
    }
}

/// An event queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventQueue {
    events: VecDeque<(Event, bool)>,
    room: usize,
    /// Whether an event has been lost since the last that was kept.
    lost: bool,
}

impl EventQueue {
    /// Events that a queue may be asked to hold: some 2 GiB of them.
    pub const MOST_EVENTS: usize = 1 << 24;

    /// A queue with room for so many events.
    pub fn new(room: usize) -> EventQueue {
        EventQueue { events: VecDeque::new(), room: room.max(1), lost: false }
    }

    /// Events that it still has room for.
    pub fn room(&self) -> usize {
        self.room.saturating_sub(self.events.len())
    }

    /// Adds an event, or loses it.
    pub fn push(&mut self, event: Event) {
        if self.room() == 0 {
            self.lost = true;
            return;
        }
        self.events.push_back((event, std::mem::take(&mut self.lost)));
    }

    /// The oldest event.
    pub fn first(&self) -> Option<&Event> {
        self.events.front().map(|(event, _)| event)
    }

    /// Takes the oldest event, and whether events before it were lost.
    pub fn take(&mut self) -> Option<(Event, bool)> {
        self.events.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a loss that nobody is told of, and one that is told of twice.
    #[test]
    fn a_full_queue_says_that_it_has_lost_events() {
        let mut queue = EventQueue::new(2);
        let event = |user| Event { user, ..Event::new(EventKind::Put, Outcome::Ok) };
        (0..4).for_each(|user| queue.push(event(user)));
        assert_eq!(queue.take(), Some((event(0), false)));
        queue.push(event(4));
        queue.push(event(5));
        assert_eq!(queue.take(), Some((event(1), false)));
        assert_eq!(queue.take(), Some((event(4), true)));
        queue.push(event(6));
        assert_eq!(queue.take(), Some((event(6), true)));
        assert_eq!(queue.take(), None);
    }
}
