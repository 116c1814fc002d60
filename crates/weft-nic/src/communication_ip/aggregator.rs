//! The aggregator: takes a kernel's message, forges headers and fills the FIFOs of its port, packet by
//! packet.
//!
//! ```text
//!               message                almost full
//!        ┌────┐ ───────► ┌─────────┐ ─────────────► ┌─────────┐
//!        │idle│          │ writing │                │ stopped │
//!        └────┘ ◄─────── └─────────┘ ◄───────────── └─────────┘
//!              no message              space
//! ```
//! A packet takes a number of cycles, in which the kernel has called `send` and the header is forged, then a
//! cycle per word: header, payload, footer. The kernel reads its memory meanwhile.
//!
//! # Source
//! D2.8 §3: the aggregator forges the header and fills the FIFOs; appendix A: header, words, footer, one
//! packet after the other; `send` does not wait for the receiver. The cycles per packet are calibrated
//! (§5.2.1).

use super::parameters::CommunicationIpParameters;
use crate::block::{Block, block};
use crate::server::Server;
use crate::transition::InvalidTransition;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Clock, Time};

/// A kernel's aggregator in reports: D2.8 §3.
pub const AGGREGATOR: Block = block!(Logic "aggregator");

/// The state of an aggregator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum AggregatorState {
    /// No message waits.
    #[default]
    Idle,
    /// It writes packets into the FIFOs.
    Writing,
    /// A message waits for space in the FIFOs.
    Stopped,
}

/// An input of the aggregator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AggregatorInput {
    /// The kernel sends a message.
    Message,
    /// The next packet has no space in the FIFOs.
    AlmostFull,
    /// The switch has taken a packet.
    Room,
    /// The last message has been written.
    NoMessage,
}

impl AggregatorState {
    /// The state after an input.
    ///
    /// # Errors
    /// An input that must not happen in this state.
    pub fn after(
        self,
        input: AggregatorInput,
    ) -> Result<AggregatorState, InvalidTransition<AggregatorState, AggregatorInput>> {
        use AggregatorInput::{AlmostFull, Message, NoMessage, Room};
        use AggregatorState::{Idle, Stopped, Writing};
        match (self, input) {
            (Idle | Writing, Message) => Ok(Writing),
            (Stopped, Message) => Ok(Stopped),
            (Writing, AlmostFull) => Ok(Stopped),
            (Stopped, Room) => Ok(Writing),
            (Idle | Writing, Room) => Ok(self),
            (Writing, NoMessage) => Ok(Idle),
            (Idle | Stopped, AlmostFull | NoMessage) => Err(InvalidTransition { state: self, input }),
        }
    }
}

/// The times of a packet on its way into the FIFOs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Writing {
    /// The time at which the aggregator began on it.
    pub began: Time,
    /// The time at which memory gave the first word.
    pub read: Time,
    /// The edge at which its header is written.
    pub header: Time,
    /// The edge after the writing of its footer.
    pub ended: Time,
}

/// The aggregator of a port.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Aggregator {
    state: AggregatorState,
    server: Server,
}

impl Aggregator {
    /// Something happens to it. An input that must not happen is a mistake of the interface, and changes
    /// nothing.
    pub(super) fn input(&mut self, input: AggregatorInput) {
        match self.state.after(input) {
            Ok(state) => self.state = state,
            Err(error) => debug_assert!(false, "{error}"),
        }
    }

    /// The present state.
    pub fn state(&self) -> AggregatorState {
        self.state
    }

    /// Writes a packet of `payload`, which can begin at `now`.
    pub fn write(&mut self, now: Time, payload: Bytes, parameters: &CommunicationIpParameters) -> Writing {
        debug_assert_eq!(self.state, AggregatorState::Writing);
        let clock = &parameters.clock;
        let read = parameters.memory.read((payload, parameters.word), clock);
        let service = self.server.serve(now, parameters.packet_cycles(payload), clock);
        let at = |cycles: u64| clock.later_edge(service.began, cycles);
        let first = u64::from(read.first);
        let header = at(first + u64::from(parameters.intra_node.aggregator));
        Writing { began: service.began, read: at(first), header, ended: service.ended }
    }

    /// Writes a packet of `payload` from the packet generator, which needs no kernel and no memory.
    pub(super) fn generate(&mut self, now: Time, words: u32, clock: &Clock) -> Writing {
        let service = self.server.serve(now, u64::from(words), clock);
        let header = service.began;
        Writing { began: header, read: header, header, ended: service.ended }
    }

    /// The time in which it has worked, work to come included.
    pub fn worked(&self) -> weft_units::Span {
        self.server.worked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every state with every input: catches a transition that is missing, and one too many.
    #[test]
    fn the_table_of_transitions() {
        use AggregatorInput::{AlmostFull, Message, NoMessage, Room};
        use AggregatorState::{Idle, Stopped, Writing};
        let table = [
            (Idle, Message, Some(Writing)),
            (Idle, AlmostFull, None),
            (Idle, Room, Some(Idle)),
            (Idle, NoMessage, None),
            (Writing, Message, Some(Writing)),
            (Writing, AlmostFull, Some(Stopped)),
            (Writing, Room, Some(Writing)),
            (Writing, NoMessage, Some(Idle)),
            (Stopped, Message, Some(Stopped)),
            (Stopped, AlmostFull, None),
            (Stopped, Room, Some(Writing)),
            (Stopped, NoMessage, None),
        ];
        for (state, input, after) in table {
            let expected = after.ok_or(InvalidTransition { state, input });
            assert_eq!(state.after(input), expected, "{state:?}, {input:?}");
        }
    }
}
