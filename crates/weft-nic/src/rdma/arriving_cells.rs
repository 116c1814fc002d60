//! Cells that come, and the answers to their blocks: the receive unit's side of the engine.
//!
//! ```text
//!   cell ──► receive unit ──► receipt ──► answer to the block, when it is due ──► replies ──► network
//! ```

use super::blocks::RDMA_RECEIVE;
use super::receive::{Arrival, Postponed, Receipt};
use super::transfer::{Answer, CellId, Refusal};
use super::{EngineContext, Rdma, RdmaCallbacks, RdmaParameters, TransferStage};
use crate::iommu::IOMMU;
use crate::memory_path::{MemoryPath, MemoryWrite};
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, EndpointId, Time};

/// Cycles from the tail of a cell that writes nothing to the answer to its block, at least: ours. The words
/// of a short cell, the last of which is not full, may take one more than its bytes on the link.
const REFUSED: u64 = 3;
/// Cycles from the answer of memory by which a context is free to that to the block it is kept for: ours.
const KEPT: u64 = 2;

/// An answer to a block, to be put on the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reply {
    /// The node that the answer is for.
    pub to: EndpointId,
    /// The transfer.
    pub message: u32,
    /// The block and its attempt.
    pub id: CellId,
    /// The receive unit's answer.
    pub answer: Answer,
    /// Not before.
    pub(super) due: Time,
}

/// The fate of a cell that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CellOutcome {
    /// Whether its data is in memory.
    pub stored: bool,
    /// When the notification of its transfer is written, if it completed it.
    pub notified: Option<Time>,
    /// Whether the same cell had come before.
    pub repeated: bool,
    /// Whether it completed its block.
    pub block: bool,
    /// Whether it is answered.
    pub answered: bool,
    /// Blocks that have waited, which are answered as they have a context now.
    pub kept: usize,
}

/// A cell of a transfer that is not known any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LateCell {
    /// The node that sends it.
    pub source: EndpointId,
    /// The number of its transfer.
    pub message: u32,
    /// Which.
    pub id: CellId,
    /// The payload.
    pub bytes: Bytes,
    /// The time at which its last word has come.
    pub tail: Time,
    /// Whether it is found to be damaged, and says nothing.
    pub damaged: bool,
}

impl Rdma {
    /// A cell has come.
    #[inline]
    pub fn cell(
        &mut self,
        arrival: &Arrival<'_>,
        path: &mut MemoryPath<'_>,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) -> CellOutcome {
        let receipt =
            self.receive.cell(arrival, &context.parameters.send.cut, &context.parameters.receive, path);
        // A block that does not end its transfer is notified as well (§4.5): the process waits for the last.
        if let (Receipt::Block { notified: None, .. }, Some(write)) = (receipt, self.receive.write)
            && context.parameters.send.contexts.is_none()
        {
            path.notify(context.parameters.receive.notification, write.issued);
        }
        let mut outcome = match receipt {
            Receipt::Written(_) => CellOutcome { stored: true, ..CellOutcome::default() },
            receipt => self.answer_to(&receipt, arrival, context),
        };
        if self.receive.postpones() {
            outcome.kept = self.keep_contexts(arrival, context);
        }
        self.report(context.callbacks);
        outcome
    }

    /// Keeps the contexts that are free for blocks that have found none, whose senders send them again.
    /// Returns how many.
    #[cold]
    fn keep_contexts(
        &mut self,
        arrival: &Arrival<'_>,
        context: &EngineContext<'_, impl RdmaCallbacks>,
    ) -> usize {
        let mut kept = 0;
        let due = self.receive.settled.max(arrival.tail) + context.parameters.send.clock.cycles(KEPT);
        while let Some(block) = self.receive.keep_context(arrival.tail, &context.parameters.receive) {
            let Postponed { source: to, message, id } = block;
            self.reply(Reply { to, message, id, answer: Answer::Nack(Refusal::NoContext), due });
            // It goes before the answers to cells that come later.
            self.receive.settled = due;
            kept += 1;
        }
        kept
    }

    /// Answers to the block of a cell that has come, if on account of this cell.
    #[inline(never)]
    fn answer_to(
        &mut self,
        receipt: &Receipt,
        arrival: &Arrival<'_>,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) -> CellOutcome {
        let Arrival { source, id, transfer, tail, .. } = *arrival;
        let stored = !matches!(receipt, Receipt::Duplicate { .. } | Receipt::Refused { .. });
        let repeated = matches!(receipt, Receipt::Again | Receipt::Duplicate { .. });
        let settled = self.receive.settled;
        let (answer, due, notified) = match *receipt {
            Receipt::Written(_)
            | Receipt::Again
            | Receipt::Duplicate { acknowledge: false }
            | Receipt::Refused { answer: None, .. } => {
                return CellOutcome { stored, repeated, ..CellOutcome::default() };
            }
            Receipt::Block { notified, .. } => (Answer::Ack, settled, notified),
            Receipt::Duplicate { acknowledge: true } => (Answer::Ack, settled.max(tail), None),
            Receipt::Gap(_) => (Answer::Nack(Refusal::NoContext), settled, None),
            Receipt::Refused { refusal: Refusal::PageFault, answer: Some(due) } => {
                (Answer::Nack(Refusal::PageFault), due, None)
            }
            Receipt::Refused { refusal, answer: Some(tail) } => {
                let decided = tail + context.parameters.send.clock.cycles(REFUSED);
                (Answer::Nack(refusal), settled.max(decided), None)
            }
        };
        self.reply(Reply { to: source, message: transfer.message, id, answer, due });
        if transfer.watch {
            // A block that met a page fault comes again when the page is mapped.
            let faulted = matches!(receipt, Receipt::Refused { refusal: Refusal::PageFault, .. });
            let stages = [(IOMMU, faulted.then_some(due)), (RDMA_RECEIVE, notified)];
            for (block, ended) in stages {
                let Some(ended) = ended else { continue };
                let (source, message) = (Some(source), transfer.message);
                context.callbacks.stage(TransferStage {
                    source,
                    message,
                    block,
                    came: tail,
                    began: tail,
                    ended,
                });
            }
        }
        let block = matches!(receipt, Receipt::Block { .. });
        CellOutcome { stored, notified, repeated, block, answered: true, kept: 0 }
    }

    /// A cell has come of a transfer that is not known any more: it has been notified, or given up by its
    /// source. In hardware the unit sees that by the transaction.
    pub fn late_cell(&mut self, late: LateCell, path: &mut MemoryPath<'_>) {
        let LateCell { source, message, id, bytes, tail, damaged } = late;
        self.receive.late(bytes, tail, path);
        if id.last && !damaged {
            let due = self.receive.settled;
            self.reply(Reply { to: source, message, id, answer: Answer::Ack, due });
        }
    }

    /// A cell has come that is found to be damaged. Returns whether its words lie in a block that has not
    /// come.
    pub fn damaged_cell(
        &mut self,
        arrival: &Arrival<'_>,
        parameters: &RdmaParameters,
        path: &mut MemoryPath<'_>,
    ) -> bool {
        self.receive.damaged(arrival, &parameters.send.cut, &parameters.receive, path)
    }

    /// The write of the payload of the cell that came last; `None`: it has written nothing.
    pub fn last_write(&self) -> Option<MemoryWrite> {
        self.receive.write
    }

    /// Whether blocks wait for a context.
    #[inline]
    pub fn blocks_wait(&self) -> bool {
        self.receive.postpones()
    }

    /// Queues an answer by when it is due.
    fn reply(&mut self, reply: Reply) {
        let place = match self.replies.back() {
            Some(last) if last.due > reply.due => {
                self.replies.partition_point(|other| other.due <= reply.due)
            }
            _ => self.replies.len(),
        };
        self.replies.insert(place, reply);
    }

    /// Blocks that are coming in.
    pub fn coming_in(&self) -> usize {
        self.receive.in_use()
    }
}
