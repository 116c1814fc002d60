//! The life of a channel of the RDMA send unit.
//!
//! ```text
//!   free ─ post ─► posted ─ start ─► running ─ finish ─► free
//!                                       └─ abort ─► aborting ─ finish ─► free
//! ```

use super::receive::ContextState;
use super::transfer::ChannelId;
use crate::segmentation::BlockState;
use serde::{Deserialize, Serialize};
use weft_units::EndpointId;

/// A change of state in the engine: what telemetry and RTL tests compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RdmaChange {
    /// Of a channel of the send unit.
    Channel {
        /// Which.
        channel: ChannelId,
        /// Before.
        from: ChannelState,
        /// After.
        to: ChannelState,
    },
    /// Of a block that is sent.
    Block {
        /// The channel of the block.
        channel: ChannelId,
        /// Which.
        transaction: u32,
        /// Before; `None`: it has just been started.
        from: Option<BlockState>,
        /// After.
        to: BlockState,
    },
    /// Of a block that is coming in.
    Context {
        /// The node that sends the block.
        source: EndpointId,
        /// The channel that sends it.
        channel: ChannelId,
        /// Which.
        transaction: u32,
        /// Before; `None`: its first cell has just come.
        from: Option<ContextState>,
        /// After.
        to: ContextState,
    },
}

/// How far a channel is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum ChannelState {
    /// It can take a descriptor.
    #[default]
    Free,
    /// It holds one that the agent has not seen.
    Posted,
    /// The blocks of the transfer are under way.
    Running,
    /// It has been given up; the agent is to say so.
    Aborting,
}

/// An event of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelEvent {
    /// A descriptor is written.
    Post,
    /// The agent starts it.
    Start,
    /// It cannot be finished.
    Abort,
    /// The agent has told its user how it ended.
    Finish,
}

impl ChannelState {
    /// All states.
    pub const ALL: [ChannelState; 4] =
        [ChannelState::Free, ChannelState::Posted, ChannelState::Running, ChannelState::Aborting];

    /// The transition table; `None`: the event means nothing in this state and is ignored.
    pub const fn next(self, event: ChannelEvent) -> Option<ChannelState> {
        Some(match (self, event) {
            (ChannelState::Free, ChannelEvent::Post) => ChannelState::Posted,
            (ChannelState::Posted, ChannelEvent::Start) => ChannelState::Running,
            (ChannelState::Running, ChannelEvent::Abort) => ChannelState::Aborting,
            (ChannelState::Running | ChannelState::Aborting, ChannelEvent::Finish) => ChannelState::Free,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a transition that was forgotten, added or changed: the table once more.
    #[test]
    fn every_pair_of_state_and_event_is_as_documented() {
        use ChannelState::*;
        let events = [ChannelEvent::Post, ChannelEvent::Start, ChannelEvent::Abort, ChannelEvent::Finish];
        let table = [
            (Free, [Some(Posted), None, None, None]),
            (Posted, [None, Some(Running), None, None]),
            (Running, [None, None, Some(Aborting), Some(Free)]),
            (Aborting, [None, None, None, Some(Free)]),
        ];
        assert_eq!(table.map(|(state, _)| state), ChannelState::ALL);
        for (state, row) in table {
            assert_eq!(events.map(|event| state.next(event)), row, "{state:?}");
        }
    }
}
