//! The packets in one switch: an arena with 32-bit handles, as large as the switch was ever full.

use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use weft_engine::prefetch;
use weft_units::{Span, Time};

/// No packet.
pub(crate) const NONE: u32 = u32::MAX;

/// A packet in a buffer: a cache line.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct Buffered {
    pub(crate) packet: Packet,
    /// When its head came.
    pub(crate) head: Time,
    /// Room it takes, in units of credit.
    pub(crate) room: u32,
    /// The next in its queue, or in the list of free places.
    pub(crate) next: u32,
}

impl Buffered {
    /// A packet whose head has come.
    #[inline]
    pub(crate) fn new(packet: &Packet, head: Time, room: u32) -> Buffered {
        Buffered { packet: *packet, head, room, next: NONE }
    }

    /// When its tail has come.
    #[inline]
    pub(crate) fn tail(&self) -> Time {
        self.head + Span::from_ps(u64::from(self.packet.stretch))
    }
}

/// The arena.
#[derive(Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Pool {
    used: u32,
    free: u32,
    places: Vec<Buffered>,
}

impl Pool {
    pub(crate) fn new() -> Pool {
        Pool { places: Vec::new(), free: NONE, used: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.used as usize
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Counts a packet less than there are, for the tests of checks.
    #[cfg(test)]
    pub(crate) fn forget_one(&mut self) {
        self.used -= 1;
    }

    /// Asks for its memory.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&*self.places);
    }

    #[inline]
    pub(crate) fn insert(&mut self, buffered: &Buffered) -> u32 {
        self.used += 1;
        if self.free == NONE {
            self.places.push(*buffered);
            return (self.places.len() - 1) as u32;
        }
        let handle = self.free;
        let place = &mut self.places[handle as usize];
        self.free = place.next;
        *place = *buffered;
        handle
    }

    /// Gives up the place of a packet that no queue holds any more.
    #[inline]
    pub(crate) fn remove(&mut self, handle: u32) {
        self.places[handle as usize].next = self.free;
        self.free = handle;
        self.used -= 1;
    }

    #[inline]
    pub(crate) fn get(&self, handle: u32) -> &Buffered {
        &self.places[handle as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, handle: u32) -> &mut Buffered {
        &mut self.places[handle as usize]
    }
}

/// A first-in first-out queue of packets in a [`Pool`].
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Queue {
    pub(crate) head: u32,
    tail: u32,
    /// Room that the head takes and the virtual channel that it wants, where it has been routed: all
    /// that arbitration asks of it.
    pub(crate) head_room: u32,
    pub(crate) head_vc: u8,
}

impl Queue {
    pub(crate) const EMPTY: Queue = Queue { head: NONE, tail: NONE, head_room: 0, head_vc: 0 };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    /// Appends a packet; says whether the queue was empty.
    #[inline]
    pub(crate) fn push(&mut self, pool: &mut Pool, packet: &Buffered) -> bool {
        let handle = pool.insert(packet);
        self.append(pool, handle)
    }

    /// Appends a packet that is in the pool; says whether the queue was empty.
    #[inline]
    pub(crate) fn append(&mut self, pool: &mut Pool, handle: u32) -> bool {
        let was_empty = self.is_empty();
        if was_empty {
            self.head = handle;
        } else {
            pool.get_mut(self.tail).next = handle;
        }
        self.tail = handle;
        was_empty
    }

    /// Its packets, in order.
    pub(crate) fn packets(&self, pool: &Pool) -> impl Iterator<Item = Buffered> {
        let mut handle = self.head;
        std::iter::from_fn(move || {
            let packet = *pool.places.get(handle as usize)?;
            handle = packet.next;
            Some(Buffered { next: NONE, ..packet })
        })
    }

    /// Takes the first, which must exist. Its place is its own until it is [removed](Pool::remove).
    #[inline]
    pub(crate) fn pop(&mut self, pool: &mut Pool) -> u32 {
        let handle = self.head;
        self.head = std::mem::replace(&mut pool.get_mut(handle).next, NONE);
        handle
    }
}
