//! The segmentation agent: splits transfers into blocks and sees each of them through to its
//! acknowledgement.
//!
//! ```text
//!  start, acknowledgement, repetition ─► first come, first served ─► agent ─► send engine
//!                                                                 one per MPSoC
//! ```
//! The agent is firmware in a co-processor, a few microseconds per invocation whoever asks, or hardware,
//! some cycles. Either way it is one server that all ranks of the MPSoC share.
//!
//! # Source
//! TR-488 §4.5: firmware in the R5 discovers new transfers, splits them into blocks of 16 KB
//! ("transactions"), waits for end-to-end acknowledgements and may retransmit; §4.5.2: 2 to 4 us every
//! time it is invoked, and its redesign in hardware, which handles small transfers in back-to-back cycles.
//!
//! # Not modelled
//! The order in which firmware polls its channels: it is taken to be that of arrival. Whatever the redesign
//! shortens beside the agent: with it an RDMA write of 64 B takes 0.60 us, where §4.5.2 has well below 1 us
//! and §9, of another interface, below 0.5 us.

use crate::block::{Block, block};
use crate::server::{Server, Service};
use serde::{Deserialize, Serialize};
use weft_keys::{Cost, Misfit, Problem};
use weft_units::{Bytes, Clock, Span, Time};

weft_keys::words! {
    /// A kind of agent.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum AgentKind: "AgentName", "a segmentation agent" {
        /// A co-processor.
        Firmware = "firmware",
        /// A block of logic.
        Hardware = "hardware",
    }
}

/// The segmentation agent in reports: the R5 co-processor of TR-488 §4.5.2, or hardware.
pub const SEGMENTATION: Block = block!(Logic "segmentation", waits for "the agent");

weft_keys::keys! {
    /// The agent's section of a machine file, which may have the costs of both kinds.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct SegmentationKeys {
        /// The kind of agent: `firmware` or `hardware`.
        agent: AgentKind;
        /// Each start, acknowledgement and repetition, of firmware.
        invocation: Span, time_of("nic.clock");
        /// The same of hardware, in whole cycles; needed where `agent` is `hardware`.
        hardware_invocation: Option<Cost>;
        /// The clock of the agent.
        clock: Clock, of("nic.clock");
    }
}

impl SegmentationKeys {
    /// The agent that is chosen. `None`: its cost is missing.
    pub fn chosen(&self) -> Option<SegmentationParameters> {
        let SegmentationKeys { agent, invocation, hardware_invocation, clock } = *self;
        Some(match agent {
            AgentKind::Firmware => SegmentationParameters::Firmware { invocation },
            AgentKind::Hardware => {
                SegmentationParameters::Hardware { clock, cycles: hardware_invocation?.cycles(&clock) }
            }
        })
    }
}

/// The agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum SegmentationParameters {
    /// A co-processor.
    Firmware {
        /// Per invocation.
        invocation: Span,
    },
    /// A block of logic.
    Hardware {
        /// The clock of the agent.
        clock: Clock,
        /// Per invocation.
        cycles: u32,
    },
}

/// The agent of one MPSoC.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Agent {
    logic: Server,
    free: Time,
    invocations: u64,
    /// Time in which firmware has worked; that of logic is in `logic`.
    worked: Span,
}

impl Agent {
    /// Invokes the agent at `came`, which must not lie before that of an earlier call; invocations queue.
    pub fn invoke(&mut self, came: Time, parameters: &SegmentationParameters) -> Service {
        self.invocations += 1;
        match parameters {
            SegmentationParameters::Firmware { invocation } => {
                let began = came.max(self.free);
                self.free = began + *invocation;
                self.worked = self.worked.saturating_add(*invocation);
                Service { came, began, ended: self.free }
            }
            SegmentationParameters::Hardware { clock, cycles } => {
                self.logic.serve(came, u64::from(*cycles), clock)
            }
        }
    }

    /// The time in which it has worked, work to come included.
    pub(crate) fn worked(&self) -> Span {
        self.logic.worked().saturating_add(self.worked)
    }

    /// How often it has been invoked.
    pub fn invocations(&self) -> u64 {
        self.invocations
    }
}

weft_keys::keys! {
    /// The cut of a transfer into blocks, and of blocks into cells.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct Cut {
        /// Bytes of a block, which is acknowledged and sent again as a whole.
        block: Bytes, not_zero("16K");
        /// Payload of a cell.
        cell: Bytes, of("packet.payload");
    }
}

impl Cut {
    /// Cells of a block at most: the receive unit has a bit for each.
    pub const CELLS: u64 = 64;

    /// Checks that the units can keep account of a block.
    ///
    /// # Errors
    /// A block of none or of more than [`Cut::CELLS`] cells, or a cell without bytes.
    pub fn check(&self) -> Result<(), Misfit> {
        let (block, cell, most) = (self.block, self.cell, Cut::CELLS);
        let cells = if cell == Bytes::ZERO { u64::MAX } else { block.div_ceil(cell) };
        if (1..=most).contains(&cells) {
            return Ok(());
        }
        let why = format!("a block of {block} takes {cells} cells of {cell}");
        let label = format!("the receive unit keeps account of {most}");
        Err(Problem::new(why, label, format!("write at most {}", cell * most)).of("block"))
    }

    /// A cut, checked.
    ///
    /// # Errors
    /// As of [`Cut::check`].
    pub fn new(block: Bytes, cell: Bytes) -> Result<Cut, Misfit> {
        let cut = Cut { block, cell };
        cut.check().map(|()| cut)
    }

    /// Blocks of a transfer; one of no bytes has one, which carries its notification.
    pub fn blocks(&self, bytes: Bytes) -> u32 {
        bytes.div_ceil(self.block).max(1) as u32
    }

    /// Bytes of block `index` of a transfer of `bytes`.
    #[inline]
    pub fn block_bytes(&self, bytes: Bytes, index: u32) -> Bytes {
        bytes.saturating_sub(self.block * u64::from(index)).min(self.block)
    }

    /// Cells of a block of `block` bytes.
    #[inline]
    pub fn cells(&self, block: Bytes) -> u8 {
        block.div_ceil(self.cell).max(1) as u8
    }

    /// Whether block `index` is the last of a transfer of `bytes`, or would lie behind it.
    #[inline]
    pub fn ends_transfer(&self, bytes: Bytes, index: u32) -> bool {
        self.block * (u64::from(index) + 1) >= bytes
    }

    /// Whether cell `index` is the last of a block of `block` bytes, or would lie behind it.
    #[inline]
    pub fn ends_block(&self, block: Bytes, index: u8) -> bool {
        self.cell * (u64::from(index) + 1) >= block
    }

    /// Bytes of cell `index` of a block of `block` bytes.
    #[inline]
    pub fn cell_bytes(&self, block: Bytes, index: u8) -> Bytes {
        block.saturating_sub(self.cell * u64::from(index)).min(self.cell)
    }

    /// The offset of cell `cell` of block `block` in its transfer.
    #[inline]
    pub fn offset(&self, block: u32, cell: u8) -> Bytes {
        self.block * u64::from(block) + self.cell * u64::from(cell)
    }
}

/// How far a block is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum BlockState {
    /// The send engine has cells of it left.
    Sending,
    /// All its cells have gone, no answer has come.
    Unacknowledged,
    /// The acknowledgement has come; the agent is to deal with it.
    Acknowledged,
    /// A NACK has come or time is up; the agent is to send it again.
    Refused,
    /// A page of it is not mapped at the source; when it is, the agent is to send it again.
    Faulted,
    /// Dealt with.
    Done,
    /// Given up.
    Failed,
}

/// An event of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockEvent {
    /// The engine has put its last cell on the link.
    LastCell,
    /// A page fault at the source.
    SourceFault,
    /// An acknowledgement comes.
    Ack,
    /// A NACK of the present attempt comes.
    Nack,
    /// No answer has come in time.
    Timeout,
    /// The agent sends it again.
    Restart,
    /// The agent has dealt with the acknowledgement.
    Retire,
    /// The agent gives the transfer up.
    GiveUp,
}

impl BlockState {
    /// All states.
    pub const ALL: [BlockState; 7] = [
        BlockState::Sending,
        BlockState::Unacknowledged,
        BlockState::Acknowledged,
        BlockState::Refused,
        BlockState::Faulted,
        BlockState::Done,
        BlockState::Failed,
    ];

    /// The transition table; `None`: the event means nothing in this state and is ignored.
    ///
    /// An acknowledgement counts in every state that waits, whichever attempt it answers: the block has
    /// arrived.
    pub const fn next(self, event: BlockEvent) -> Option<BlockState> {
        use BlockEvent as E;
        use BlockState as S;
        Some(match (self, event) {
            (S::Sending, E::LastCell) => S::Unacknowledged,
            (S::Sending, E::SourceFault) => S::Faulted,
            (S::Sending | S::Unacknowledged | S::Refused | S::Faulted, E::Ack) => S::Acknowledged,
            (S::Sending | S::Unacknowledged, E::Nack) => S::Refused,
            (S::Unacknowledged, E::Timeout) => S::Refused,
            (S::Refused | S::Faulted, E::Restart) => S::Sending,
            (S::Acknowledged, E::Retire) => S::Done,
            (S::Sending | S::Unacknowledged | S::Refused | S::Faulted, E::GiveUp) => S::Failed,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EVENTS: [BlockEvent; 8] = [
        BlockEvent::LastCell,
        BlockEvent::SourceFault,
        BlockEvent::Ack,
        BlockEvent::Nack,
        BlockEvent::Timeout,
        BlockEvent::Restart,
        BlockEvent::Retire,
        BlockEvent::GiveUp,
    ];

    /// Catches a transition that was forgotten, added or changed: the table once more, row by row.
    #[test]
    fn every_pair_of_state_and_event_is_as_documented() {
        use BlockState as S;
        let table: [(S, [Option<S>; 8]); 7] = [
            // Columns in the order of EVENTS.
            (
                S::Sending,
                [
                    Some(S::Unacknowledged),
                    Some(S::Faulted),
                    Some(S::Acknowledged),
                    Some(S::Refused),
                    None,
                    None,
                    None,
                    Some(S::Failed),
                ],
            ),
            (
                S::Unacknowledged,
                [
                    None,
                    None,
                    Some(S::Acknowledged),
                    Some(S::Refused),
                    Some(S::Refused),
                    None,
                    None,
                    Some(S::Failed),
                ],
            ),
            (S::Acknowledged, [None, None, None, None, None, None, Some(S::Done), None]),
            (
                S::Refused,
                [None, None, Some(S::Acknowledged), None, None, Some(S::Sending), None, Some(S::Failed)],
            ),
            (
                S::Faulted,
                [None, None, Some(S::Acknowledged), None, None, Some(S::Sending), None, Some(S::Failed)],
            ),
            (S::Done, [None; 8]),
            (S::Failed, [None; 8]),
        ];
        assert_eq!(table.map(|(state, _)| state), S::ALL);
        for (state, row) in table {
            assert_eq!(EVENTS.map(|event| state.next(event)), row, "{state:?}");
        }
    }

    /// Catches invocations that overlap: four ranks that ask at once wait for each other.
    #[test]
    fn invocations_queue() {
        let firmware = SegmentationParameters::Firmware { invocation: Span::from_us(2) };
        let mut agent = Agent::default();
        let ends = [0, 0, 1, 9].map(|us| agent.invoke(Time::ZERO + Span::from_us(us), &firmware).ended);
        assert_eq!(ends.map(|end| end.as_ps() / 1_000_000), [2, 4, 6, 11]);
        assert_eq!(agent.invocations(), 4);
        let clock = Clock::from_hertz(200_000_000).unwrap();
        let hardware = SegmentationParameters::Hardware { clock, cycles: 1 };
        let mut agent = Agent::default();
        let ends = [0, 0].map(|_| agent.invoke(Time::ZERO, &hardware).ended.as_ps());
        assert_eq!(ends, [5_000, 10_000], "back to back");
    }

    #[test]
    fn a_block_of_too_many_cells_is_refused() {
        let error = Cut::new(Bytes::new(1 << 14), Bytes::new(128)).unwrap_err().title;
        assert!(error.contains("16K takes 128 cells of 128"), "{error}");
        assert!(Cut::new(Bytes::new(1 << 14), Bytes::ZERO).is_err());
        assert!(Cut::new(Bytes::new(1 << 14), Bytes::new(256)).is_ok());
    }

    proptest! {
        /// Catches bytes lost or doubled at the seams of blocks and cells, and a last one that is not.
        #[test]
        fn the_pieces_make_the_whole(bytes in 0u64..100_000, block in 1u64..64, cell in 1u64..300) {
            let cut = Cut::new(Bytes::new(block * cell), Bytes::new(cell)).unwrap();
            let (bytes, mut next) = (Bytes::new(bytes), Bytes::ZERO);
            for index in 0..cut.blocks(bytes) {
                let block = cut.block_bytes(bytes, index);
                prop_assert_eq!(cut.ends_transfer(bytes, index), index + 1 == cut.blocks(bytes));
                for cell in 0..cut.cells(block) {
                    prop_assert_eq!(cut.ends_block(block, cell), cell + 1 == cut.cells(block));
                    prop_assert_eq!(cut.offset(index, cell), next);
                    next += cut.cell_bytes(block, cell);
                }
            }
            prop_assert_eq!(next, bytes);
        }
    }
}
