//! The places of messages in a rank's memory, as its interface needs them.
//!
//! A program says where its buffers are, or a trace has noted it. Of what nobody has noted the place is made
//! up by this rule, as a usual program lays its memory out: every buffer is used again and again.
//!
//! | data | from | a buffer for each |
//! |---|---|---|
//! | of the library: control messages, copies, temporary vectors | `0x0` | kind |
//! | that the rank sends | `0x10_0000_0000` | communicator, receiver and tag |
//! | that it receives | `0x20_0000_0000` | communicator, sender and tag, as the receive names them |
//! | that it gives to collectives | `0x30_0000_0000` | communicator and collective |
//! | that it takes from them | `0x40_0000_0000` | communicator and collective |
//! | windows | `0x50_0000_0000` | window, by the number of whoever asks |
//! | of its own operations on windows of others | `0x60_0000_0000` | window |
//!
//! Buffers are 64 MB apart, in the order of a hash, so that of many some share their place.
//!
//! # Source
//! The rule is ours. An address has 39 bits (TR-488 §4.3): all regions lie below their end.
//!
//! # Not modelled
//! A piece of a vector that goes on at the vector's beginning lies behind its end. One-sided operations begin
//! at the beginning of their window.

use super::Process;
use crate::collective::RankBuffer;
use crate::envelope::{Body, Envelope};
use weft_trace::op::{Collective, CollectiveBuffers, CommId};
use weft_units::{Address, RankId};

/// The distance of two buffers.
const BUFFER_DISTANCE: u64 = 64 << 20;
/// Buffers of a region.
const BUFFERS_PER_REGION: u64 = 1024;

/// A part of the address space, for data of one purpose.
#[derive(Clone, Copy)]
pub(super) enum Region {
    Library,
    Sent,
    Received,
    Given,
    Taken,
    Window,
    Origin,
}

/// The buffer in a region that belongs to these three numbers.
fn buffer(region: Region, names: [u64; 3]) -> Address {
    // Fibonacci hashing (Knuth, The Art of Computer Programming, 3, §6.4): neighbours lie far apart.
    let hash = names
        .iter()
        .fold(0u64, |hash, name| (hash.rotate_left(23) ^ name).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let slot = (hash >> 32) % BUFFERS_PER_REGION;
    Address::new((region as u64 * BUFFERS_PER_REGION + slot) * BUFFER_DISTANCE)
}

/// The place of messages to a rank, in the memory of the one that sends them, where nobody knows it.
pub fn sent(CommId(comm): CommId, to: RankId, tag: i32) -> Address {
    buffer(Region::Sent, [comm, to.0.into(), (tag as u32).into()])
}

/// The place of messages from a rank, in the memory of the one that receives them, where nobody knows it.
pub fn received(CommId(comm): CommId, from: Option<RankId>, tag: Option<i32>) -> Address {
    let from = from.map_or(u64::MAX, |rank| rank.0.into());
    buffer(Region::Received, [comm, from, tag.map_or(u64::MAX, |tag| (tag as u32).into())])
}

/// A window, and what goes to it from a rank that calls it so.
fn window(number: u32) -> Address {
    buffer(Region::Window, [number.into(), 0, 0])
}

/// The buffer that a rank's own operations on a window read and write.
pub(super) fn origin(number: u32) -> Address {
    buffer(Region::Origin, [number.into(), 0, 0])
}

/// The buffers of a collective: those that are known, and made up ones for the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct CollectiveMemory {
    given: Address,
    taken: Address,
}

impl CollectiveMemory {
    /// Of a collective on a communicator. One buffer is both where only one is known, as in a broadcast.
    pub fn new(CommId(comm): CommId, kind: Collective, known: CollectiveBuffers) -> CollectiveMemory {
        let made_up = |region| buffer(region, [comm, kind as u64, 0]);
        CollectiveMemory {
            given: known.send.or(known.receive).unwrap_or_else(|| made_up(Region::Given)),
            taken: known.receive.or(known.send).unwrap_or_else(|| made_up(Region::Taken)),
        }
    }

    /// The beginning of one of the rank's buffers.
    pub fn of(&self, which: RankBuffer) -> Address {
        match which {
            RankBuffer::Data => self.taken,
            RankBuffer::Input => self.given,
            RankBuffer::Running => buffer(Region::Library, [1, 0, 0]),
            RankBuffer::Transit => buffer(Region::Library, [2, 0, 0]),
            RankBuffer::Permuted => buffer(Region::Library, [3, 0, 0]),
        }
    }
}

impl Process {
    /// The place of the data of a message that this rank or its interface sends.
    #[inline]
    pub fn source(&self, envelope: &Envelope) -> Address {
        match envelope.body {
            Body::Data { send, .. } | Body::Access { send, .. } => {
                self.sends.get(send).map_or(Address::default(), |send| send.buffer)
            }
            Body::Answer { window, .. } => self.window_memory(window),
            _ => Address::default(),
        }
    }

    /// The place that the data of a message for this rank goes to.
    #[inline]
    pub fn destination(&self, envelope: &Envelope) -> Address {
        match envelope.body {
            Body::Data { receive, .. } => {
                self.receives.get(receive).map_or(Address::default(), |receive| receive.buffer)
            }
            Body::Answer { send, .. } => self.sends.get(send).map_or(Address::default(), |send| send.buffer),
            Body::Access { window, .. } => self.window_memory(window),
            _ => Address::default(),
        }
    }

    /// The memory of a window of this rank, by the number of whoever asks for it.
    pub(super) fn window_memory(&self, number: u32) -> Address {
        let known = self.windows.as_ref().and_then(|windows| windows.memory(number));
        known.unwrap_or_else(|| window(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches a region that reaches into the next, or beyond the 39 bits of an address.
        #[test]
        fn buffers_lie_in_their_region(comm: u64, peer: u32, tag: i32, number: u32) {
            let region = |address: Address| address.get() / (BUFFER_DISTANCE * BUFFERS_PER_REGION);
            let peer = RankId(peer);
            let regions = [sent(CommId(comm), peer, tag), received(CommId(comm), Some(peer), Some(tag)),
                received(CommId(comm), None, None), window(number), origin(number)].map(region);
            prop_assert_eq!(regions, [1, 2, 2, 5, 6]);
            prop_assert!(origin(number).get() < 1 << 39);
        }
    }

    /// Catches two directions, peers or tags that share a buffer where there are few of them.
    #[test]
    fn few_buffers_lie_apart() {
        let mut places: Vec<_> = (0..6).map(|to| sent(CommId::WORLD, RankId(to), 0)).collect();
        places.extend((1..4).map(|tag| sent(CommId::WORLD, RankId(0), tag)));
        places.extend((0..6).map(|from| received(CommId::WORLD, Some(RankId(from)), Some(0))));
        let all = places.len();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), all);
    }

    /// Catches a collective that forgets the buffers that are known.
    #[test]
    fn a_collective_uses_the_buffers_that_are_known() {
        let (a, b) = (Address::new(0x1000), Address::new(0x2000));
        let memory = |send, receive| {
            let known = CollectiveBuffers { send, receive };
            let memory = CollectiveMemory::new(CommId::WORLD, Collective::Alltoall, known);
            (memory.of(RankBuffer::Input), memory.of(RankBuffer::Data))
        };
        assert_eq!(memory(Some(a), Some(b)), (a, b));
        assert_eq!(memory(Some(a), None), (a, a));
        assert_eq!(memory(None, Some(b)), (b, b));
        let (given, taken) = memory(None, None);
        assert_ne!(given, taken);
    }
}
