//! The packets in one switch, and the queues that they stand in.
//!
//! ```text
//!   PacketBuffer   [p0][p3][  ][p1][p2]     packets stay where they are; free places are a list
//!   Queue          head ─► p1 ─► p2 ◄─ tail
//!   Queue          head ─► p0 ◄─ tail
//! ```

use crate::packet::Packet;
use serde::{Deserialize, Serialize};
use weft_engine::prefetch;
use weft_units::{Span, Time};

/// A packet's place in a [`PacketBuffer`], in 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct BufferHandle(u32);

impl BufferHandle {
    /// No packet.
    pub(crate) const NONE: BufferHandle = BufferHandle(u32::MAX);

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self == BufferHandle::NONE
    }

    #[inline]
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// A packet in a buffer: a cache line.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct Buffered {
    pub(crate) packet: Packet,
    /// Time at which its head came.
    pub(crate) head: Time,
    /// Space it takes, in units of credit.
    pub(crate) space: u32,
    /// The next in its queue, or in the list of free places.
    pub(crate) next: BufferHandle,
}

impl Buffered {
    /// A packet whose head has come.
    #[inline]
    pub(crate) fn new(packet: &Packet, head: Time, space: u32) -> Buffered {
        Buffered { packet: *packet, head, space, next: BufferHandle::NONE }
    }

    /// Time at which its tail has come.
    #[inline]
    pub(crate) fn tail(&self) -> Time {
        self.head + Span::from_ps(u64::from(self.packet.serialization))
    }
}

/// All packets of a switch: an arena that is as large as the switch was ever full.
#[derive(Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct PacketBuffer {
    used: u32,
    free: BufferHandle,
    places: Vec<Buffered>,
}

impl PacketBuffer {
    pub(crate) fn new() -> PacketBuffer {
        PacketBuffer { places: Vec::new(), free: BufferHandle::NONE, used: 0 }
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
    pub(crate) fn insert(&mut self, buffered: &Buffered) -> BufferHandle {
        self.used += 1;
        if self.free.is_none() {
            self.places.push(*buffered);
            return BufferHandle((self.places.len() - 1) as u32);
        }
        let handle = self.free;
        let place = &mut self.places[handle.index()];
        self.free = place.next;
        *place = *buffered;
        handle
    }

    /// Frees the place of a packet that no queue holds any more.
    #[inline]
    pub(crate) fn remove(&mut self, handle: BufferHandle) {
        self.places[handle.index()].next = self.free;
        self.free = handle;
        self.used -= 1;
    }

    #[inline]
    pub(crate) fn get(&self, handle: BufferHandle) -> &Buffered {
        &self.places[handle.index()]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, handle: BufferHandle) -> &mut Buffered {
        &mut self.places[handle.index()]
    }
}

/// A first-in first-out queue of packets in a [`PacketBuffer`].
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct PacketQueue {
    pub(crate) head: BufferHandle,
    tail: BufferHandle,
    /// Space that the head takes and the virtual channel that it wants, where it has been routed: all
    /// that arbitration asks of it.
    pub(crate) head_space: u32,
    pub(crate) head_vc: u8,
}

impl PacketQueue {
    pub(crate) const EMPTY: PacketQueue =
        PacketQueue { head: BufferHandle::NONE, tail: BufferHandle::NONE, head_space: 0, head_vc: 0 };

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    /// Appends a packet; says whether the queue was empty.
    #[inline]
    pub(crate) fn push(&mut self, buffer: &mut PacketBuffer, packet: &Buffered) -> bool {
        let handle = buffer.insert(packet);
        self.append(buffer, handle)
    }

    /// Appends a packet that is in the buffer; says whether the queue was empty.
    #[inline]
    pub(crate) fn append(&mut self, buffer: &mut PacketBuffer, handle: BufferHandle) -> bool {
        let was_empty = self.is_empty();
        if was_empty {
            self.head = handle;
        } else {
            buffer.get_mut(self.tail).next = handle;
        }
        self.tail = handle;
        was_empty
    }

    /// The packets of the queue, in order.
    pub(crate) fn packets(&self, buffer: &PacketBuffer) -> impl Iterator<Item = Buffered> {
        let mut handle = self.head;
        std::iter::from_fn(move || {
            let packet = *buffer.places.get(handle.index())?;
            handle = packet.next;
            Some(Buffered { next: BufferHandle::NONE, ..packet })
        })
    }

    /// Takes out those for which `leaves` holds, in order. Their places are their own until they are
    /// [removed](PacketBuffer::remove).
    pub(crate) fn take_out(
        &mut self,
        buffer: &mut PacketBuffer,
        leaves: impl Fn(&Packet) -> bool,
    ) -> Vec<BufferHandle> {
        let mut taken = Vec::new();
        let mut handle = self.head;
        (self.head, self.tail) = (BufferHandle::NONE, BufferHandle::NONE);
        while !handle.is_none() {
            let next = std::mem::replace(&mut buffer.get_mut(handle).next, BufferHandle::NONE);
            if leaves(&buffer.get(handle).packet) {
                taken.push(handle);
            } else {
                self.append(buffer, handle);
            }
            handle = next;
        }
        taken
    }

    /// Takes the first, which must exist. Its place is its own until it is [removed](PacketBuffer::remove).
    #[inline]
    pub(crate) fn pop(&mut self, buffer: &mut PacketBuffer) -> BufferHandle {
        let handle = self.head;
        self.head = std::mem::replace(&mut buffer.get_mut(handle).next, BufferHandle::NONE);
        handle
    }
}
