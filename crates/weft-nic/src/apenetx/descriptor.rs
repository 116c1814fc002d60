//! The tx descriptor: a message on its way out.
//!
//! ```text
//!             Post            Fetch             Arrive             LastRead
//!  Requested ──────► InRing ────────► Fetching ────────► Fetched ──────────► Taken
//!      └────────────────── Store (fast send) ──────────────▲
//! ```
//! # Source
//! APX §3.2: destination host coordinates, destination virtual address, packet size, and, §3.3, the address
//! of the completion.

use super::gpu::MemoryKind;
use crate::transition::InvalidTransition;
use serde::{Deserialize, Serialize};
use weft_fabric::ClassTag;
use weft_units::{Address, Bytes, EndpointId, Time};

/// How far a descriptor has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum DescriptorState {
    /// The library has a request.
    Requested,
    /// The driver has put it into the ring.
    InRing,
    /// The card reads it.
    Fetching,
    /// The card has it, and reads the data.
    Fetched,
    /// All data is in the card.
    Taken,
}

/// An event of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DescriptorEvent {
    /// The driver rings the doorbell.
    Post,
    /// The library stores the line of a fast send.
    Store,
    /// The card asks for it.
    Fetch,
    /// It is in the card.
    Arrive,
    /// The last data has been read.
    LastRead,
}

impl DescriptorState {
    /// The table of transitions.
    ///
    /// # Errors
    /// An event that must not happen in this state.
    pub const fn next(
        self,
        event: DescriptorEvent,
    ) -> Result<DescriptorState, InvalidTransition<DescriptorState, DescriptorEvent>> {
        Ok(match (self, event) {
            (DescriptorState::Requested, DescriptorEvent::Post) => DescriptorState::InRing,
            (DescriptorState::InRing, DescriptorEvent::Fetch) => DescriptorState::Fetching,
            (DescriptorState::Fetching, DescriptorEvent::Arrive)
            | (DescriptorState::Requested, DescriptorEvent::Store) => DescriptorState::Fetched,
            (DescriptorState::Fetched, DescriptorEvent::LastRead) => DescriptorState::Taken,
            (state, input) => return Err(InvalidTransition { state, input }),
        })
    }
}

/// A message on its way out.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Descriptor {
    pub to: EndpointId,
    pub number: u32,
    pub bytes: Bytes,
    pub token: Option<u32>,
    /// The virtual interface, which is the process, that sends.
    pub interface: u16,
    /// The place of the data in its memory.
    pub buffer: Address,
    /// The memory that it lies in.
    pub source: MemoryKind,
    pub watch: bool,
    /// The traffic class of its packets.
    pub class: ClassTag,
    pub state: DescriptorState,
    /// Bytes that the card has read.
    pub read: Bytes,
    /// The time of the host's post.
    pub posted: Time,
    /// The time at which the card heard of it.
    pub rung: Time,
    /// The time at which it was in the card.
    pub arrived: Time,
    /// Whether the data came along with it.
    pub inline: bool,
    /// Whether somebody sees its steps, or waits for the last of them.
    pub is_followed: bool,
    /// The time before which its first packet is not ready, whatever else the card does.
    pub least_ready: Time,
}

impl Descriptor {
    /// An event that the state allows: another one is a bug of ours.
    #[inline]
    pub(super) fn happens(&mut self, event: DescriptorEvent) {
        match self.state.next(event) {
            Ok(state) => self.state = state,
            Err(error) => debug_assert!(false, "{error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DescriptorEvent::{Arrive, Fetch, LastRead, Post, Store};
    use DescriptorState::{Fetched, Fetching, InRing, Requested, Taken};

    /// The table, cell by cell.
    #[test]
    fn every_transition_is_as_the_table_has_it() {
        let table = [
            (Requested, [Some(InRing), Some(Fetched), None, None, None]),
            (InRing, [None, None, Some(Fetching), None, None]),
            (Fetching, [None, None, None, Some(Fetched), None]),
            (Fetched, [None, None, None, None, Some(Taken)]),
            (Taken, [None, None, None, None, None]),
        ];
        for (state, row) in table {
            for (event, next) in [Post, Store, Fetch, Arrive, LastRead].into_iter().zip(row) {
                let expected = next.ok_or(InvalidTransition { state, input: event });
                assert_eq!(state.next(event), expected, "{state:?} {event:?}");
            }
        }
    }
}
