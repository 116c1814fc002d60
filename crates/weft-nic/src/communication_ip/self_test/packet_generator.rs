//! The packet generator: fills the transmitting FIFOs with packets of a known payload.
//!
//! ```text
//!          start                 last packet written
//!   idle ────────► sending ──────────────────────────► idle
//!                   │    ▲ packet written
//!                   └────┘
//! ```
//! # Source
//! D2.8 §2: number of packets, size and destination are registers. The payload is ours, and a register says
//! which: see [`TestPattern`].

use super::super::footer::Footer;
use super::super::header::{Coordinates, FieldError, Header, TEST};
use super::super::parameters::WORD;
use super::TestPattern;
use crate::transition::InvalidTransition;
use serde::{Deserialize, Serialize};
use weft_units::Bytes;

/// The state of the packet generator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum GeneratorState {
    /// It does nothing.
    #[default]
    Idle,
    /// It writes packets.
    Sending,
}

/// An input of the packet generator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum GeneratorInput {
    /// The start register is written.
    Start,
    /// A packet is in the FIFOs, and others are to follow.
    Written,
    /// The last packet is.
    LastWritten,
}

impl GeneratorState {
    /// The state after an input.
    ///
    /// # Errors
    /// An input that must not happen in this state.
    pub fn after(
        self,
        input: GeneratorInput,
    ) -> Result<GeneratorState, InvalidTransition<GeneratorState, GeneratorInput>> {
        match (self, input) {
            (GeneratorState::Idle, GeneratorInput::Start) => Ok(GeneratorState::Sending),
            (GeneratorState::Sending, GeneratorInput::Written) => Ok(GeneratorState::Sending),
            (GeneratorState::Sending, GeneratorInput::LastWritten) => Ok(GeneratorState::Idle),
            _ => Err(InvalidTransition { state: self, input }),
        }
    }
}

/// A packet of the self-test, word by word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TestPacket {
    /// Counted from 0.
    pub number: u32,
    /// Bytes of payload.
    pub size: u32,
    /// The node that it is for.
    pub destination: Coordinates,
    /// The payload.
    pub pattern: TestPattern,
}

impl TestPacket {
    /// The header as it is forged. `proc_id` says the pattern.
    pub fn header(&self) -> Header {
        let TestPacket { number, size, destination, pattern } = *self;
        let (process, address) = (pattern as u16, u64::from(number));
        Header { process, destination, packet_type: TEST, size, address, ..Header::default() }
    }

    /// The words of the payload.
    pub fn payload(&self) -> impl Iterator<Item = u128> + use<> {
        let words = Bytes::new(u64::from(self.size)).div_ceil(WORD);
        self.pattern.words(self.number).take(words as usize)
    }

    /// The footer.
    ///
    /// # Errors
    /// A size or destination beyond its field of the header.
    pub fn footer(&self) -> Result<u128, FieldError> {
        Ok(Footer::of(self.header().pack()?, self.payload()).pack())
    }
}

/// The packet generator.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct PacketGenerator {
    state: GeneratorState,
    next: u32,
    packets: u32,
}

impl PacketGenerator {
    /// The present state.
    pub fn state(&self) -> GeneratorState {
        self.state
    }

    fn input(&mut self, input: GeneratorInput) {
        match self.state.after(input) {
            Ok(state) => self.state = state,
            Err(error) => debug_assert!(false, "{error}"),
        }
    }

    /// Begins with the first of so many packets, one at least.
    pub(crate) fn start(&mut self, packets: u32) {
        self.input(GeneratorInput::Start);
        (self.next, self.packets) = (0, packets);
    }

    /// The number of the next packet; `None`: there is none.
    pub(crate) fn next(&self) -> Option<u32> {
        (self.state == GeneratorState::Sending).then_some(self.next)
    }

    /// The next packet is in the FIFOs.
    pub(crate) fn written(&mut self) {
        self.next += 1;
        let last = self.next == self.packets;
        self.input(if last { GeneratorInput::LastWritten } else { GeneratorInput::Written });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every state with every input.
    #[test]
    fn the_table_of_transitions() {
        use GeneratorInput::{LastWritten, Start, Written};
        use GeneratorState::{Idle, Sending};
        for (state, input, after) in [
            (Idle, Start, Some(Sending)),
            (Idle, Written, None),
            (Idle, LastWritten, None),
            (Sending, Start, None),
            (Sending, Written, Some(Sending)),
            (Sending, LastWritten, Some(Idle)),
        ] {
            assert_eq!(state.after(input), after.ok_or(InvalidTransition { state, input }));
        }
    }

    /// Catches a packet too few or too many.
    #[test]
    fn it_writes_the_number_of_packets() {
        let mut generator = PacketGenerator::default();
        generator.start(3);
        let mut numbers = Vec::new();
        while let Some(number) = generator.next() {
            numbers.push(number);
            generator.written();
        }
        assert_eq!((numbers, generator.state()), (vec![0, 1, 2], GeneratorState::Idle));
    }

    /// Catches packets that cannot be told apart, and words that are equal.
    #[test]
    fn payloads_differ() {
        let destination = Coordinates::default();
        let packet = |number| TestPacket { number, size: 40, destination, pattern: TestPattern::default() };
        let words: Vec<u128> = packet(1).payload().chain(packet(2).payload()).collect();
        let distinct: std::collections::BTreeSet<u128> = words.iter().copied().collect();
        assert_eq!((words.len(), distinct.len()), (6, 6));
        assert_ne!(packet(1).footer(), packet(2).footer());
        assert!(TestPacket { size: 1 << 14, ..packet(0) }.footer().is_err());
    }
}
