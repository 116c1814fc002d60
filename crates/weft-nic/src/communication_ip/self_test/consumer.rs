//! The consumer: empties the receiving FIFOs, so that they do not overflow, and checks the payload of each
//! packet.
//!
//! ```text
//!         expect              last packet
//!  idle ─────────► flushing ──────────────► idle
//!                   │    ▲ packet
//!                   └────┘
//! ```
//! # Source
//! D2.8 §2, §5.1.

use super::super::footer::Footer;
use super::super::header::Header;
use crate::transition::InvalidTransition;
use serde::{Deserialize, Serialize};

/// The state of the consumer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum ConsumerState {
    /// It expects nothing.
    #[default]
    Idle,
    /// It takes packets.
    Flushing,
}

/// An input of the consumer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ConsumerInput {
    /// Packets are going to come.
    Expect,
    /// One has come, and others are missing.
    Packet,
    /// The last one has.
    LastPacket,
}

impl ConsumerState {
    /// The state after an input.
    ///
    /// # Errors
    /// An input that must not happen in this state.
    pub fn after(
        self,
        input: ConsumerInput,
    ) -> Result<ConsumerState, InvalidTransition<ConsumerState, ConsumerInput>> {
        match (self, input) {
            (ConsumerState::Idle, ConsumerInput::Expect) => Ok(ConsumerState::Flushing),
            (ConsumerState::Flushing, ConsumerInput::Packet) => Ok(ConsumerState::Flushing),
            (ConsumerState::Flushing, ConsumerInput::LastPacket) => Ok(ConsumerState::Idle),
            _ => Err(InvalidTransition { state: self, input }),
        }
    }
}

/// The consumer.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Consumer {
    state: ConsumerState,
    expected: u32,
    received: u32,
    wrong: u32,
}

impl Consumer {
    /// The present state.
    pub fn state(&self) -> ConsumerState {
        self.state
    }

    /// Packets that it has taken.
    pub fn received(&self) -> u32 {
        self.received
    }

    /// Packets among them whose payload was wrong.
    pub fn wrong(&self) -> u32 {
        self.wrong
    }

    /// Whether all packets have come, each with the right payload.
    pub fn is_right(&self) -> bool {
        self.expected > 0 && self.received == self.expected && self.wrong == 0
    }

    fn input(&mut self, input: ConsumerInput) {
        match self.state.after(input) {
            Ok(state) => self.state = state,
            Err(error) => debug_assert!(false, "{error}"),
        }
    }

    /// A number of packets is going to come, one at least.
    pub(crate) fn expect(&mut self, packets: u32) {
        if self.state == ConsumerState::Idle {
            self.input(ConsumerInput::Expect);
            (self.expected, self.received, self.wrong) = (packets, 0, 0);
        } else {
            // Another generator sends here as well.
            self.expected = self.expected.saturating_add(packets);
        }
    }

    /// A packet has come with these words: its header, its payload and its footer. Whether it was the last.
    pub(crate) fn take(&mut self, header: u128, payload: impl Iterator<Item = u128>, footer: u128) -> bool {
        if self.state == ConsumerState::Idle {
            return false; // nobody expects it
        }
        let forged = Header::unpack(header).ok().and_then(|header| header.forged().pack().ok());
        let check = forged.map(|forged| Footer::of(forged, payload));
        let is_right = check.is_some() && Footer::unpack(footer) == check;
        self.received += 1;
        self.wrong += u32::from(!is_right);
        let last = self.received == self.expected;
        self.input(if last { ConsumerInput::LastPacket } else { ConsumerInput::Packet });
        last
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::header::Coordinates;
    use super::super::{TestPacket, TestPattern};
    use super::*;

    /// Every state with every input.
    #[test]
    fn the_table_of_transitions() {
        use ConsumerInput::{Expect, LastPacket, Packet};
        use ConsumerState::{Flushing, Idle};
        for (state, input, after) in [
            (Idle, Expect, Some(Flushing)),
            (Idle, Packet, None),
            (Idle, LastPacket, None),
            (Flushing, Expect, None),
            (Flushing, Packet, Some(Flushing)),
            (Flushing, LastPacket, Some(Idle)),
        ] {
            assert_eq!(state.after(input), after.ok_or(InvalidTransition { state, input }));
        }
    }

    /// Catches a wrong payload that counts as right, one that is right and counts as wrong, and a test that
    /// is over before the last packet.
    #[test]
    fn it_tells_right_from_wrong() {
        let destination = Coordinates { x: 1, y: 0, z: 0 };
        let packet = |number| TestPacket { number, size: 64, destination, pattern: TestPattern::default() };
        let footer = |number| packet(number).footer().unwrap();
        // Switches have written into it.
        let header =
            |number| Header { virtual_channel: 1, hops: 3, ..packet(number).header() }.pack().unwrap();
        let mut consumer = Consumer::default();
        assert!(!consumer.take(header(0), packet(0).payload(), footer(0)), "nobody expects it");
        consumer.expect(2);
        assert!(!consumer.take(header(0), packet(0).payload(), footer(0)));
        assert!(consumer.take(header(1), packet(1).payload(), footer(1)));
        assert!(consumer.is_right());
        consumer.expect(4);
        consumer.take(header(0), packet(0).payload().map(|word| word ^ 1), footer(0));
        consumer.take(header(1), packet(1).payload(), footer(0));
        consumer.take(header(2), packet(2).payload(), footer(2));
        consumer.take(header(3) ^ 1, packet(3).payload(), footer(3));
        assert_eq!((consumer.received(), consumer.wrong(), consumer.is_right()), (4, 3, false));
    }
}
