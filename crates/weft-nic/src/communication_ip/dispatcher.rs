//! The dispatcher: takes packets out of the receiving FIFOs of a port, and puts messages together for its
//! kernel.
//!
//! ```text
//!           first packet               last packet
//!  expected ────────────► under way ───────────────► whole: the kernel's `receive` returns
//!      └──────────────────────────────────────────────┘
//!                        only packet
//! ```
//! It takes a word per cycle, the next packet behind the one before. The kernel has a packet a number of
//! cycles after its footer: these overlap with the next packet.
//!
//! # Source
//! D2.8 §3: the dispatcher forwards packets to the kernel's channel by fields of the header; `receive`
//! blocks. The cycles are calibrated (§5.2.2).

use super::parameters::CommunicationIpParameters;
use crate::block::{Block, block};
use crate::server::Server;
use crate::transition::InvalidTransition;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Span, Time};

/// The dispatcher of an IntraNode port in reports: D2.8 §3.
pub const DISPATCHER: Block = block!(Logic "dispatcher");

/// How far a message has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub enum Progress {
    /// No packet of it has come.
    #[default]
    Expected,
    /// Some have.
    UnderWay,
    /// All have.
    Whole,
}

/// A packet of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Piece {
    /// More are missing.
    Some,
    /// It is the last that was missing.
    Last,
    /// It has come before.
    Again,
}

impl Progress {
    /// The progress after a packet.
    ///
    /// # Errors
    /// A packet that must not come: one of a message that is whole, or again before it has come.
    pub fn after(self, piece: Piece) -> Result<Progress, InvalidTransition<Progress, Piece>> {
        match (self, piece) {
            (Progress::Expected | Progress::UnderWay, Piece::Some) => Ok(Progress::UnderWay),
            (Progress::Expected | Progress::UnderWay, Piece::Last) => Ok(Progress::Whole),
            (Progress::UnderWay, Piece::Again) => Ok(Progress::UnderWay),
            _ => Err(InvalidTransition { state: self, input: piece }),
        }
    }
}

/// The parts of a message that have come: `dest_addr` of a header says where its payload belongs, so that
/// packets that come twice or in another order do no harm.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Reassembly {
    progress: Progress,
    /// All before this byte has come.
    front: u64,
    /// Parts behind a gap, in order: begin and end.
    ahead: Vec<(u64, u64)>,
}

impl Reassembly {
    /// A packet with the bytes from `begin` to `end` of a message of `bytes` has come. Whether the message is
    /// whole now; a packet beyond its end is none of it.
    pub fn take(&mut self, begin: u64, end: u64, bytes: Bytes) -> bool {
        if end > bytes.get() || end < begin {
            return false;
        }
        let piece = if begin == self.front {
            self.front = end;
            while self.ahead.first().is_some_and(|part| part.0 == self.front) {
                self.front = self.ahead.remove(0).1;
            }
            if self.front == bytes.get() { Piece::Last } else { Piece::Some }
        } else {
            let place = self.ahead.partition_point(|part| part.0 < begin);
            if begin < self.front || self.ahead.get(place).is_some_and(|part| part.0 == begin) {
                Piece::Again
            } else {
                self.ahead.insert(place, (begin, end));
                Piece::Some
            }
        };
        match self.progress.after(piece) {
            Ok(progress) => self.progress = progress,
            Err(error) => debug_assert!(false, "{error}"),
        }
        piece == Piece::Last
    }

    /// Bytes of the message that have come.
    pub fn came(&self) -> Bytes {
        Bytes::new(self.front + self.ahead.iter().map(|(begin, end)| end - begin).sum::<u64>())
    }
}

/// The times of a packet on its way to its kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The time at which all of it has been taken out of the FIFOs.
    pub read: Time,
    /// The time at which the kernel has it.
    pub handed_over: Time,
    /// The time at which memory has it.
    pub stored: Time,
}

/// The dispatcher of a port.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Dispatcher {
    server: Server,
}

impl Dispatcher {
    /// Takes a packet of `payload` whose header came at `header` and whose footer comes at `footer`.
    pub fn take(
        &mut self,
        (header, footer): (Time, Time),
        payload: Bytes,
        parameters: &CommunicationIpParameters,
    ) -> Reading {
        let clock = &parameters.clock;
        let cycles = u64::from(parameters.envelope_words())
            + parameters.memory.cycles((payload, parameters.word), clock);
        let read = self.server.serve(header, cycles, clock).ended.max(footer);
        let read = clock.edge_at_or_after(read);
        let handed_over = clock.later_edge(read, u64::from(parameters.intra_node.dispatcher));
        let latency = if payload == Bytes::ZERO { 0 } else { parameters.memory.latency };
        Reading { read, handed_over, stored: clock.later_edge(handed_over, u64::from(latency)) }
    }

    /// The time in which it has worked.
    pub fn worked(&self) -> Span {
        self.server.worked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every state with every input.
    #[test]
    fn the_table_of_transitions() {
        use Piece::{Again, Last, Some as More};
        use Progress::{Expected, UnderWay, Whole};
        for (state, input, after) in [
            (Expected, More, Some(UnderWay)),
            (Expected, Last, Some(Whole)),
            (Expected, Again, None),
            (UnderWay, More, Some(UnderWay)),
            (UnderWay, Last, Some(Whole)),
            (UnderWay, Again, Some(UnderWay)),
            (Whole, More, None),
            (Whole, Last, None),
            (Whole, Again, None),
        ] {
            assert_eq!(state.after(input), after.ok_or(InvalidTransition { state, input }));
        }
    }

    /// Catches a message without data that never is whole.
    #[test]
    fn a_message_of_nothing_is_whole_with_its_packet() {
        assert!(Reassembly::default().take(0, 0, Bytes::ZERO));
    }

    proptest! {
        /// Catches a message that is whole too early, twice or never, in whatever order and how often its
        /// packets come, and bytes beyond it that are taken.
        #[test]
        fn a_message_is_whole_once(
            packets in 1u64..20,
            tail in 1u64..100,
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            let bytes = (packets - 1) * 100 + tail;
            let mut reassembly = Reassembly::default();
            let mut come = std::collections::BTreeSet::new();
            let all = order.iter().map(|index| index.index(packets as usize) as u64).chain(0..packets);
            for number in all {
                let is_last = come.insert(number) && come.len() as u64 == packets;
                let end = bytes.min((number + 1) * 100);
                prop_assert!(!reassembly.take(number * 100, bytes + 1, Bytes::new(bytes)));
                prop_assert_eq!(reassembly.take(number * 100, end, Bytes::new(bytes)), is_last);
                if is_last {
                    break; // its kernel has it, and the dispatcher forgets it
                }
            }
            prop_assert_eq!(come.len() as u64, packets);
        }
    }
}
