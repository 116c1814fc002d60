//! The RDMA receive unit: writes each cell where it belongs as it comes, and answers for whole blocks.
//!
//! ```text
//!  cell ─► domain? ─► seen before? ─► context of its block ─► translate ─► write (cut-through)
//!            │ no        │ yes          │ none left             │ fault
//!            ▼           ▼              ▼                       ▼
//!          NACK         ACK            NACK when there is one   NACK when it is handled
//!                  all cells of a block written ─► ACK;  all blocks of a transfer ─► notification
//! ```
//! A context exists from a block's first cell to its last: it is a bit per cell. Beside contexts the unit
//! [remembers](super::remembered_channels) of the channels that send to it which blocks of the transfer
//! under way have come, so that a block that is repeated because its acknowledgement was lost is
//! acknowledged and not written again. Blocks that are refused or seen before are answered at their last
//! cell; so is a block that got its context in its midst, since senders that repeat in step could otherwise
//! take the only one from each other for ever. A block that found no context gets its NACK when there is
//! one, which is then kept for it: with few contexts blocks come one after the other, and most are sent
//! twice. Otherwise blocks that are refused again and again would fill the links. At most [`WAITING_BLOCKS`]
//! wait; beyond them a block is refused at its last cell, as is one whose channel finds no place among those
//! that are remembered.
//!
//! Cells are counted in the order in which they come, when memory has answered their writes: no answer leaves
//! before memory has answered for all cells that came before.
//!
//! What a cell turns out to be is known when its words have been written: those of a damaged cell, of one
//! that has come before and of one without a context take the way to memory as well. A damaged cell that has
//! written over one that had come leaves that missing.
//!
//! # Source
//! TR-488 §4.5: the payload of each cell goes directly to its final destination as it arrives, dynamic
//! contexts, block-level acknowledgements and notifications; §4.2: fast recycling of contexts; §4.3: domains
//! are checked in the interface; §4.5.3: blocks that met page faults are transmitted again. How repeated
//! blocks are recognized, and when blocks without a context are refused, is not in the text: ours.
//!
//! # Not modelled
//! Words of one cell that reach memory out of order. Words of a damaged cell whose block had come: they are
//! in memory that its process may use for others. A notification that overtakes data: §5.2.1 has them
//! delivered "concurrently", here it is written straight behind the last word. A process that hears of
//! blocks: each is notified (§4.5), and the process waits for that of its transfer.

use super::channel::RdmaChange;
use super::contexts::{BlockKey, Contexts};
use super::remembered_channels::{RememberedChannel, RememberedChannels, is_before};
use super::transfer::{CellId, Location, Refusal, TransferHeader};
use crate::gvas::Pdid;
use crate::iommu::{Page, Translation};
use crate::memory_path::{MemoryPath, MemoryWrite};
use crate::segmentation::Cut;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::{Bytes, EndpointId, Span, Time};

/// Blocks that may wait for a context: ours.
pub const WAITING_BLOCKS: usize = 256;

weft_keys::keys! {
    /// The receive unit's section of a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct ReceiveParameters {
        /// From a word's arrival to its write, in whole cycles.
        cycles: u32, key("receive"), cycles_of("nic.clock");
        /// Blocks that may be coming in at a time.
        contexts: u32;
        /// A context without a cell for this long may be given to another block.
        context_timeout: Span;
        /// Bytes written with the data to notify the receiver.
        notification: Bytes;
        /// From a notification in memory to its process, which polls; `nic.mailbox.poll` where not given.
        poll: Span, or_of("nic.mailbox.poll");
    }
}

/// How far a block is that is coming in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum ContextState {
    /// Cells are missing.
    Receiving,
    /// A page is being mapped; cells are dropped until the block is sent again.
    Faulted,
    /// All its cells are written: the context is free.
    Complete,
}

/// An event of a block that is coming in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContextEvent {
    /// A cell is written that is not the last one missing.
    Cell,
    /// The last cell missing is written.
    LastCell,
    /// A cell meets a page that is not mapped.
    Fault,
    /// The page is mapped.
    Handled,
}

impl ContextState {
    /// All states.
    pub const ALL: [ContextState; 3] =
        [ContextState::Receiving, ContextState::Faulted, ContextState::Complete];

    /// The transition table; `None`: the event means nothing in this state and is ignored.
    pub const fn next(self, event: ContextEvent) -> Option<ContextState> {
        Some(match (self, event) {
            (ContextState::Receiving, ContextEvent::Cell) => ContextState::Receiving,
            (ContextState::Receiving, ContextEvent::LastCell) => ContextState::Complete,
            (ContextState::Receiving, ContextEvent::Fault) => ContextState::Faulted,
            (ContextState::Faulted, ContextEvent::Handled) => ContextState::Receiving,
            _ => return None,
        })
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Context {
    /// A bit per cell.
    written: u64,
    /// Cells that are set in it: counted as they come, for each asks whether it is the last.
    cells: u8,
    state: ContextState,
    /// While it is faulted: until when.
    until: Time,
    /// The arrival of its last cell.
    pub(super) touched: Time,
    /// The page translated last.
    page: Option<Page>,
    /// Whether earlier cells of the attempt that is coming in found no context: it will not be whole.
    gap: bool,
}

impl Context {
    /// Of a block whose first cell to find a context comes at `touched`.
    pub(super) fn new(touched: Time, gap: bool) -> Context {
        let state = ContextState::Receiving;
        Context { written: 0, cells: 0, state, until: Time::ZERO, touched, page: None, gap }
    }
}

/// The fate of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receipt {
    /// It is written at this time; others of its block are missing.
    Written(Time),
    /// It is written at this time, the last one of a block whose first ones found no context: the sender is
    /// told to send the block again, and need not wait until time is up.
    Gap(Time),
    /// It had come in an earlier attempt of its block, of which others are missing.
    Again,
    /// It completed its block.
    Block {
        /// When the block is in memory, to be acknowledged.
        written: Time,
        /// When the notification of the transfer is, if this was its last block.
        notified: Option<Time>,
    },
    /// The block of the cell has come before.
    Duplicate {
        /// Whether to acknowledge it once more.
        acknowledge: bool,
    },
    /// It was dropped.
    Refused {
        /// Why.
        refusal: Refusal,
        /// The time to answer its block with a NACK; `None`: not on account of this cell.
        answer: Option<Time>,
    },
}

/// A cell, as it comes.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The node that sends the cell.
    pub source: EndpointId,
    /// Which.
    pub id: CellId,
    /// The header of the cell's transfer.
    pub transfer: &'a TransferHeader,
    /// The domain of the process at the destination; `None`: the transfer has addresses that nobody's memory
    /// has.
    pub owner: Option<Pdid>,
    /// The time at which its last word has come.
    pub tail: Time,
}

/// A block that has found no context, or the cell that its NACK answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Postponed {
    /// The node that has sent it.
    pub source: EndpointId,
    /// The number of its transfer.
    pub message: u32,
    /// The last cell that has come of it.
    pub id: CellId,
}

impl Postponed {
    fn key(&self) -> BlockKey {
        BlockKey::new(self.source, self.id.channel, self.id.transaction)
    }
}

/// The unit.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReceiveUnit {
    contexts: Contexts,
    /// Blocks that wait for a context, in the order in which they were refused.
    postponed: VecDeque<Postponed>,
    remembered: RememberedChannels,
    /// The time at which memory has answered the writes of all cells that have come.
    pub(super) settled: Time,
    /// Changes of state that have not been reported.
    #[serde(skip)]
    pub(super) changes: Vec<RdmaChange>,
    /// The write of the payload of the cell that came last; `None`: it has written nothing.
    #[serde(skip)]
    pub(super) write: Option<MemoryWrite>,
}

/// The way of the payload of cells to memory.
struct Forward<'a, 'b> {
    cut: &'a Cut,
    parameters: &'a ReceiveParameters,
    path: &'a mut MemoryPath<'b>,
}

impl Forward<'_, '_> {
    /// Writes the payload of a cell to its place, word by word as they come. The error: until when its page,
    /// unless it is the one in `known`, is being mapped.
    #[inline]
    fn write(&mut self, arrival: &Arrival<'_>, known: &mut Option<Page>) -> Result<MemoryWrite, Time> {
        let Arrival { id, transfer, tail, .. } = *arrival;
        let (cut, path) = (self.cut, &mut *self.path);
        let block_bytes = cut.block_bytes(transfer.bytes, id.transaction.wrapping_sub(transfer.first));
        let bytes = cut.cell_bytes(block_bytes, id.index);
        let location = ReceiveUnit::place(transfer, id, cut);
        // Words are written as they come: when the last one is there, only it is left.
        let clock = &path.port_parameters.clock;
        let words = path.port_parameters.words(bytes);
        let through = tail + clock.cycles(u64::from(self.parameters.cycles));
        let translated = match path.translate(location, bytes, known, through) {
            Translation::At(translated) => translated,
            Translation::Fault(until) => return Err(until),
        };
        // Without data there is a word, which comes with its header.
        let before = if bytes == Bytes::ZERO { Span::ZERO } else { clock.cycles(words) };
        let from = Time::from_ps(translated.as_ps().saturating_sub(before.as_ps()));
        Ok(path.write_words(bytes, words, from))
    }
}

impl ReceiveUnit {
    /// Takes a cell that is found to be damaged, as its words have been written: those that it has written
    /// over are missing again. Returns whether they lie in a block that has not come.
    #[cold]
    pub fn damaged(
        &mut self,
        arrival: &Arrival<'_>,
        cut: &Cut,
        parameters: &ReceiveParameters,
        path: &mut MemoryPath<'_>,
    ) -> bool {
        let Arrival { source, id: CellId { channel, transaction, index, .. }, transfer, owner, .. } =
            *arrival;
        self.note(None);
        if owner.is_none_or(|owner| transfer.domain.check(owner).is_err()) {
            return false;
        }
        let mut forward = Forward { cut, parameters, path };
        let Some(place) = self.contexts.find(BlockKey::new(source, channel, transaction)) else {
            self.note(forward.write(arrival, &mut None).ok());
            let connection = self.remembered.get((source, channel));
            let has_come =
                |of: &RememberedChannel| !is_before(of.first, transfer.first) && of.has(transaction);
            return self.write.is_some() && !connection.is_some_and(has_come);
        };
        let context = self.contexts.at(place);
        if context.state == ContextState::Faulted {
            return false;
        }
        let write = forward.write(arrival, &mut context.page).ok();
        if write.is_some() && context.written >> index & 1 == 1 {
            context.written &= !(1 << index);
            context.cells -= 1;
        }
        self.note(write);
        write.is_some()
    }

    /// Notes the write of a cell, if it has one.
    #[inline]
    fn note(&mut self, write: Option<MemoryWrite>) {
        self.write = write;
        self.settled = self.settled.max(write.map_or(Time::ZERO, |write| write.written));
    }

    /// The payload of a cell comes of a transfer that is not known any more.
    pub(super) fn late(&mut self, bytes: Bytes, tail: Time, path: &mut MemoryPath<'_>) {
        self.note(Some(path.write_words(bytes, path.port_parameters.words(bytes), tail)));
    }

    /// Keeps a context that is free for the block that has waited for one longest. Returns the block, whose
    /// sender is to send it again.
    #[inline]
    pub fn keep_context(&mut self, now: Time, parameters: &ReceiveParameters) -> Option<Postponed> {
        while !self.postponed.is_empty() && self.contexts.len() < parameters.contexts as usize {
            let block = self.postponed.pop_front()?;
            let Postponed { source, id: CellId { channel, transaction, .. }, .. } = block;
            let connection = self.remembered.get((source, channel));
            let is_wanted = connection.is_some_and(|connection| !connection.has(transaction));
            if is_wanted && self.contexts.find(block.key()).is_none() {
                let (from, to) = (None, ContextState::Receiving);
                self.changes.push(RdmaChange::Context { source, channel, transaction, from, to });
                self.contexts.insert(block.key(), Context::new(now, false));
                return Some(block);
            }
        }
        None
    }

    /// A block has found no context, and all of its cells that come have come. Whether it can wait.
    fn postpone(&mut self, block: Postponed) -> bool {
        if let Some(other) = self.postponed.iter_mut().find(|other| other.key() == block.key()) {
            // It was sent again: its newest attempt is answered.
            *other = block;
            return true;
        }
        let has_room = self.postponed.len() < WAITING_BLOCKS;
        if has_room {
            self.postponed.push_back(block);
        }
        has_room
    }

    /// Whether a block waits for a context.
    #[inline]
    pub(super) fn postpones(&self) -> bool {
        !self.postponed.is_empty()
    }

    /// Takes a cell.
    #[inline]
    pub fn cell(
        &mut self,
        arrival: &Arrival<'_>,
        cut: &Cut,
        parameters: &ReceiveParameters,
        path: &mut MemoryPath<'_>,
    ) -> Receipt {
        let Arrival { source, id, transfer, owner, tail } = *arrival;
        let CellId { channel, transaction, index, last, .. } = id;
        self.note(None);
        if owner.is_none_or(|owner| transfer.domain.check(owner).is_err()) {
            return Receipt::Refused { refusal: Refusal::Protection, answer: last.then_some(tail) };
        }
        let key = BlockKey::new(source, channel, transaction);
        let mut forward = Forward { cut, parameters, path };
        let place = match self.contexts.find(key) {
            Some(place) => {
                // Opened for a block that had not come, it goes when the block is whole and when a newer
                // transfer of its channel begins: its connection has nothing else to say.
                debug_assert!(
                    self.remembered
                        .get((source, channel))
                        .is_some_and(|of| of.first == transfer.first && !of.has(transaction))
                );
                place
            }
            None => match self.open(arrival, key, cut, parameters) {
                Ok(place) => place,
                Err(receipt) => {
                    self.note(forward.write(arrival, &mut None).ok());
                    return receipt;
                }
            },
        };
        let context = self.contexts.at(place);
        context.touched = tail;
        if context.state == ContextState::Faulted {
            if context.until > tail {
                return Receipt::Refused { refusal: Refusal::PageFault, answer: None };
            }
            change(context, &mut self.changes, (arrival, ContextEvent::Handled));
        }
        let write = match forward.write(arrival, &mut context.page) {
            Ok(write) => write,
            // It is there, and stays.
            Err(_) if context.written >> index & 1 == 1 => return Receipt::Again,
            Err(until) => {
                change(context, &mut self.changes, (arrival, ContextEvent::Fault));
                (context.until, context.written, context.cells) = (until, 0, 0);
                return Receipt::Refused { refusal: Refusal::PageFault, answer: Some(until) };
            }
        };
        // As `note` does, which has no context in its hands.
        self.write = Some(write);
        self.settled = self.settled.max(write.written);
        if context.written >> index & 1 == 1 {
            return Receipt::Again;
        }
        let MemoryWrite { issued, written, .. } = write;
        let block_bytes = cut.block_bytes(transfer.bytes, transaction.wrapping_sub(transfer.first));
        context.written |= 1 << index;
        context.cells += 1;
        if !cut.ends_block(block_bytes, context.cells - 1) {
            let gap = last && std::mem::take(&mut context.gap);
            return if gap { Receipt::Gap(written) } else { Receipt::Written(written) };
        }
        change(context, &mut self.changes, (arrival, ContextEvent::LastCell));
        self.contexts.remove(place);
        let connection = self.remembered.get_mut((source, channel));
        let finished = connection.is_some_and(|connection| connection.block_done(transaction, tail));
        let notified = finished.then(|| {
            // Behind the data on the same way, and not before it.
            path.notify(parameters.notification, issued).max(written)
        });
        Receipt::Block { written, notified }
    }

    /// Opens a context for the block of a cell, where it has not come and there is one; returns its place.
    #[inline(never)]
    fn open(
        &mut self,
        arrival: &Arrival<'_>,
        key: BlockKey,
        cut: &Cut,
        parameters: &ReceiveParameters,
    ) -> Result<usize, Receipt> {
        let Arrival { source, id, transfer, tail, .. } = *arrival;
        let CellId { channel, transaction, index, last, .. } = id;
        let refused = |answer| Receipt::Refused { refusal: Refusal::NoContext, answer };
        let Some(has_come) = self.has_come(arrival, cut, parameters) else {
            return Err(refused(last.then_some(tail)));
        };
        if has_come {
            return Err(Receipt::Duplicate { acknowledge: last });
        }
        if !self.admit(tail, parameters) {
            let waits = !last || self.postpone(Postponed { source, message: transfer.message, id });
            return Err(refused((!waits).then_some(tail)));
        }
        let (from, to) = (None, ContextState::Receiving);
        self.changes.push(RdmaChange::Context { source, channel, transaction, from, to });
        Ok(self.contexts.insert(key, Context::new(tail, index > 0)))
    }

    /// The location that a cell of a transfer goes to.
    #[inline]
    pub fn place(transfer: &TransferHeader, id: CellId, cut: &Cut) -> Location {
        let block = id.transaction.wrapping_sub(transfer.first);
        let address = transfer.destination.address.plus(cut.offset(block, id.index).get());
        Location { address, ..transfer.destination }
    }

    /// Whether a block has come before, or belongs to a transfer that has ended. A newer transfer of a
    /// channel ends the one before. `None`: too many channels send.
    fn has_come(&mut self, arrival: &Arrival<'_>, cut: &Cut, parameters: &ReceiveParameters) -> Option<bool> {
        let Arrival { source, id: CellId { channel, transaction, .. }, transfer, tail, .. } = *arrival;
        let first = transfer.first;
        let blocks = cut.blocks(transfer.bytes);
        let fresh = || RememberedChannel::new(source, channel, first, blocks).touched(tail);
        let Some(connection) = self.remembered.get_mut((source, channel)) else {
            let is_silent = |source, channel, touched: Time| {
                let last = self.contexts.last_cell(source, channel).map_or(touched, |last| last.max(touched));
                tail.saturating_since(last) >= parameters.context_timeout
            };
            let way = self.remembered.way_for((source, channel), is_silent)?;
            if let Some((source, channel)) = self.remembered.put(way, fresh()) {
                self.contexts.remove_ended(source, channel, |_| true);
            }
            return Some(false);
        };
        if is_before(connection.first, first) {
            *connection = fresh();
            self.contexts.remove_ended(source, channel, |transaction| is_before(transaction, first));
        }
        Some(self.remembered.get((source, channel)).is_some_and(|connection| connection.has(transaction)))
    }

    /// Whether there is a context for another block at `now`, if need be one whose sender has fallen silent.
    fn admit(&mut self, now: Time, parameters: &ReceiveParameters) -> bool {
        if self.contexts.len() < parameters.contexts as usize {
            return true;
        }
        match self.contexts.most_silent() {
            Some((place, context)) if now.saturating_since(context.touched) >= parameters.context_timeout => {
                self.contexts.remove(place);
                true
            }
            _ => false,
        }
    }

    /// Blocks that are coming in.
    pub fn in_use(&self) -> usize {
        self.contexts.len()
    }
}

/// Gives the context of a cell that has come an event that is not [`ContextEvent::Cell`], which changes
/// nothing.
#[inline(never)]
fn change(context: &mut Context, changes: &mut Vec<RdmaChange>, of: (&Arrival<'_>, ContextEvent)) {
    let (Arrival { source, id: CellId { channel, transaction, .. }, .. }, event) = (*of.0, of.1);
    let from = context.state;
    let Some(to) = from.next(event) else { return };
    context.state = to;
    let from = Some(from);
    changes.push(RdmaChange::Context { source, channel, transaction, from, to });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a transition that was forgotten, added or changed: the table once more.
    #[test]
    fn every_pair_of_state_and_event_is_as_documented() {
        use ContextState::*;
        let events = [ContextEvent::Cell, ContextEvent::LastCell, ContextEvent::Fault, ContextEvent::Handled];
        let table = [
            (Receiving, [Some(Receiving), Some(Complete), Some(Faulted), None]),
            (Faulted, [None, None, None, Some(Receiving)]),
            (Complete, [None; 4]),
        ];
        assert_eq!(table.map(|(state, _)| state), ContextState::ALL);
        for (state, row) in table {
            assert_eq!(events.map(|event| state.next(event)), row, "{state:?}");
        }
    }
}
