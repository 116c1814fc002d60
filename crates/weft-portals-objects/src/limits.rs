//! Limits of an interface: what the process asks for, and what it is granted.

use serde::{Deserialize, Serialize};

/// The limits (`ptl_ni_limits_t`). Sizes are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// List entries of all portal table entries.
    pub entries: u32,
    /// Headers of messages that came before an entry for them.
    pub unexpected_headers: u32,
    /// Memory descriptors.
    pub memory_descriptors: u32,
    /// Event queues.
    pub event_queues: u32,
    /// Counting events.
    pub counting_events: u32,
    /// Highest index of the portal table.
    pub portal_index: u32,
    /// Parts of a region in several pieces.
    pub pieces: u32,
    /// Entries of one list.
    pub list: u32,
    /// Triggered operations that wait.
    pub triggered: u32,
    /// Largest message.
    pub message: u64,
    /// Largest atomic operation.
    pub atomic: u64,
    /// Largest atomic operation that fetches.
    pub fetch_atomic: u64,
    /// Largest put whose bytes keep the order of puts to the same place.
    pub write_after_write: u64,
    /// Largest get that keeps its order behind puts to the same place.
    pub write_after_read: u64,
    /// Largest put from a volatile descriptor.
    pub volatile: u64,
}

impl Limits {
    /// The most that the interface grants. Table and queue sizes are ours: the standard has none.
    pub const MOST: Limits = Limits {
        entries: 1 << 20,
        unexpected_headers: 1 << 16,
        memory_descriptors: 1 << 16,
        event_queues: 1 << 12,
        counting_events: 1 << 16,
        portal_index: 255,
        pieces: 1 << 16,
        list: 1 << 18,
        triggered: 1 << 16,
        message: 1 << 30,
        atomic: 1 << 16,
        fetch_atomic: 1 << 16,
        write_after_write: 1 << 12,
        write_after_read: 1 << 12,
        volatile: 64,
    };

    /// The limits of which an interface that asks for nothing is sure.
    pub const USUAL: Limits = Limits {
        entries: 1 << 14,
        unexpected_headers: 1 << 10,
        memory_descriptors: 1 << 10,
        event_queues: 64,
        counting_events: 1 << 10,
        portal_index: 63,
        list: 1 << 14,
        triggered: 1 << 10,
        ..Limits::MOST
    };

    /// The limits that a process gets which asks for these: as much, but no more than [`Limits::MOST`].
    pub fn granted(&self) -> Limits {
        let most = Limits::MOST;
        Limits {
            entries: self.entries.min(most.entries),
            unexpected_headers: self.unexpected_headers.min(most.unexpected_headers),
            memory_descriptors: self.memory_descriptors.min(most.memory_descriptors),
            event_queues: self.event_queues.min(most.event_queues),
            counting_events: self.counting_events.min(most.counting_events),
            portal_index: self.portal_index.min(most.portal_index),
            pieces: self.pieces.min(most.pieces),
            list: self.list.min(most.list),
            triggered: self.triggered.min(most.triggered),
            message: self.message.min(most.message),
            atomic: self.atomic.min(most.atomic),
            fetch_atomic: self.fetch_atomic.min(most.fetch_atomic),
            write_after_write: self.write_after_write.min(most.write_after_write),
            write_after_read: self.write_after_read.min(most.write_after_read),
            volatile: self.volatile.min(most.volatile),
        }
    }
}
