//! The channels of the RDMA send unit: what they hold, and how far each of their blocks is.
//!
//! ```text
//!   page ─ write channels ─► transfer ─► blocks that are started: at most `outstanding_blocks`
//!        └ read channels
//! ```
//! The agent drives them: it starts a channel, deals with acknowledgements, sends blocks again.

use super::RdmaParameters;
use super::channel::{ChannelEvent, ChannelState, RdmaChange};
use super::send::SendParameters;
use super::transfer::{ChannelId, ChannelKind, Descriptor};
use crate::iommu::Page as MemoryPage;
use crate::segmentation::{BlockEvent, BlockState};
use crate::server::Service;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_units::Time;

/// A block that has been started.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Block {
    /// Within the transfer.
    pub(super) index: u32,
    pub(super) state: BlockState,
    /// How often it has been sent before.
    pub(super) attempt: u32,
    /// How often no answer came.
    pub(super) timeouts: u32,
    /// The next cell to be read.
    pub(super) next: u8,
    /// The cells before this one were read in an earlier attempt.
    pub(super) read_before: u8,
    /// The time at which the wait for an answer ends.
    pub(super) deadline: Time,
    /// Of a watched transfer: how the agent deals with its acknowledgement.
    pub(super) dealt: Option<Service>,
}

/// The transfer of a channel.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Transfer {
    pub(super) descriptor: Descriptor,
    /// The transaction of its first block.
    pub(super) first: u32,
    /// The next block to start.
    pub(super) next_block: u32,
    /// Blocks that are started and not done, in their order.
    pub(super) blocks: Vec<Block>,
    /// When the agent was done with starting it, or with the acknowledgement that let it go on.
    pub(super) started: Time,
    /// Since when it has nothing to send until a block is dealt with: all that may be outstanding are.
    pub(super) stalled: Option<Time>,
    /// Whether the channel is in the engine's round.
    pub(super) queued: bool,
    /// The page translated last.
    pub(super) page: Option<MemoryPage>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Channel {
    pub(super) state: ChannelState,
    /// The place of what it is at among the [`Transfers`].
    pub(super) transfer: Option<u16>,
    /// Transactions so far.
    pub(super) transactions: u32,
    /// The time at which its next timer fires. One that was set for an earlier block may fire later.
    pub(super) timer: Option<Time>,
    /// Whether a transfer that has ended has left its turn.
    has_turn_left: bool,
}

impl Channel {
    /// Has its timer fire by `deadline`, if that is not [`Time::NEVER`]. Returns when to set another for
    /// that.
    pub(super) fn arm(&mut self, deadline: Time) -> Option<Time> {
        if self.timer.unwrap_or(Time::NEVER) <= deadline {
            return None;
        }
        self.timer = Some(deadline);
        self.timer
    }
}

/// The channels of one page that have been used.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Page {
    write: Vec<Channel>,
    read: Vec<Channel>,
    /// Read channels that are free again, in the order in which they became so: the unit gives them in turn.
    free_reads: VecDeque<u16>,
}

/// A place for a transfer.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum ChannelPlace {
    Taken(Transfer),
    /// It keeps the memory for blocks, without any.
    Free(Vec<Block>),
}

/// The transfers of all channels, side by side: the engine finds one without asking for its channel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Transfers {
    places: Vec<ChannelPlace>,
}

impl Transfers {
    /// Keeps a transfer that has no blocks yet in the first place that is free, and returns that.
    fn put(&mut self, mut transfer: Transfer) -> u16 {
        let free = self.places.iter().position(|place| matches!(place, ChannelPlace::Free(_)));
        let number = free.unwrap_or(self.places.len());
        match self.places.get_mut(number) {
            Some(ChannelPlace::Free(blocks)) => {
                transfer.blocks = std::mem::take(blocks);
                self.places[number] = ChannelPlace::Taken(transfer);
            }
            _ => self.places.push(ChannelPlace::Taken(transfer)),
        }
        // There are no more of them than channels, which have numbers of 16 bits.
        number as u16
    }

    #[inline]
    pub(super) fn at(&mut self, place: u16) -> Option<&mut Transfer> {
        match self.places.get_mut(usize::from(place))? {
            ChannelPlace::Taken(transfer) => Some(transfer),
            ChannelPlace::Free(_) => None,
        }
    }

    /// Frees a place, and returns its descriptor.
    fn free(&mut self, place: u16) -> Option<Descriptor> {
        let place = self.places.get_mut(usize::from(place))?;
        let ChannelPlace::Taken(transfer) = place else { return None };
        let (descriptor, mut blocks) = (transfer.descriptor, std::mem::take(&mut transfer.blocks));
        blocks.clear();
        *place = ChannelPlace::Free(blocks);
        Some(descriptor)
    }
}

/// A channel in the engine's round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Turn {
    pub(super) channel: ChannelId,
    /// The place of its transfer; `None`: that has ended, and the channel's next one takes the turn over.
    pub(super) place: Option<u16>,
}

/// How a transfer stands after one of its blocks is dealt with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retired {
    /// There was no such block.
    Nothing,
    /// Others are under way.
    Running,
    /// All have arrived; the channel is free.
    Finished(Descriptor),
}

/// A block whose acknowledgement has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Whether its transfer is watched.
    pub watch: bool,
    /// Whether its transfer ends with it, and nobody is told of that.
    pub ends_unheard: bool,
}

/// How long a transfer had nothing to send, since too many of its blocks were outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The transfer.
    pub message: u32,
    /// The time from which on it had sent.
    pub started: Time,
    /// The time at which its last cell that was allowed had gone.
    pub since: Time,
    /// How the agent dealt with the acknowledgement that ended it.
    pub dealt: Service,
}

/// The consequences of an expired timer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Blocks to be sent again.
    pub again: Vec<u32>,
    /// Whether the channel is to be given up.
    pub give_up: bool,
    /// The time of the next call.
    pub timer: Option<Time>,
    /// Blocks of a watched transfer are to be sent again.
    pub watched: Option<WatchedTimeout>,
}

/// A time-out of a watched transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchedTimeout {
    /// The transfer.
    pub message: u32,
    /// The time from which on the transfer's cells went out.
    pub started: Time,
    /// The time at which the first of the blocks had gone.
    pub gone: Time,
}

/// All channels of a send unit, with the round in which the engine serves them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Channels {
    pages: Vec<Page>,
    pub(super) transfers: Transfers,
    /// Channels with cells to be read, in the order of their turns.
    pub(super) turns: VecDeque<Turn>,
    /// Changes of state that have not been reported.
    #[serde(skip)]
    pub(super) changes: Vec<RdmaChange>,
}

/// A channel with its transfer, while something happens to them.
pub(super) struct Busy<'a> {
    id: ChannelId,
    pub(super) channel: &'a mut Channel,
    pub(super) transfer: &'a mut Transfer,
    turns: &'a mut VecDeque<Turn>,
    changes: &'a mut Vec<RdmaChange>,
}

impl Busy<'_> {
    /// Gives the channel an event; `None`: it means nothing.
    fn channel_event(&mut self, event: ChannelEvent) -> Option<()> {
        let from = self.channel.state;
        let to = from.next(event)?;
        self.channel.state = to;
        self.changes.push(RdmaChange::Channel { channel: self.id, from, to });
        Some(())
    }

    /// Gives a block an event; `None`: it means nothing.
    pub(super) fn block_event(&mut self, transaction: u32, event: BlockEvent) -> Option<&mut Block> {
        let block = self.transfer.block(transaction)?;
        let from = block.state;
        let to = from.next(event)?;
        block.state = to;
        self.changes.push(RdmaChange::Block { channel: self.id, transaction, from: Some(from), to });
        Some(block)
    }

    /// Starts as many blocks as may be outstanding.
    fn start_blocks(&mut self, parameters: &SendParameters) {
        while let Some(transaction) = self.transfer.start_block(parameters) {
            let to = BlockState::Sending;
            self.changes.push(RdmaChange::Block { channel: self.id, transaction, from: None, to });
        }
        self.queue();
    }

    /// Puts the channel into the engine's round if it has cells to be read.
    fn queue(&mut self) {
        if let Some(place) = self.channel.transfer
            && !self.transfer.queued
            && self.transfer.sending().is_some()
        {
            self.transfer.queued = true;
            if std::mem::take(&mut self.channel.has_turn_left)
                && let Some(turn) = self.turns.iter_mut().find(|turn| turn.channel == self.id)
            {
                turn.place = Some(place);
            } else {
                self.turns.push_back(Turn { channel: self.id, place: Some(place) });
            }
        }
    }
}

impl Channels {
    /// Takes a descriptor into a free channel of a page, or into a free context, which is of no page; `None`:
    /// there is none, the post must wait. Returns the channel, and the transaction of the first block.
    pub fn post(
        &mut self,
        page: u32,
        kind: ChannelKind,
        descriptor: &Descriptor,
        parameters: &SendParameters,
    ) -> Option<(ChannelId, u32)> {
        if page >= parameters.pages {
            return None;
        }
        let (page, kind) = match parameters.contexts {
            Some(_) => (0, ChannelKind::Write),
            None => (page, kind),
        };
        let (of_writes, of_reads) = parameters.channels_of_page();
        let (offset, most) = match kind {
            ChannelKind::Write => (0, of_writes),
            ChannelKind::Read => (of_writes, of_reads),
        };
        if self.pages.len() <= page as usize {
            self.pages.resize_with(page as usize + 1, Page::default);
        }
        let of_page = &mut self.pages[page as usize];
        let channels = match kind {
            ChannelKind::Write => &mut of_page.write,
            ChannelKind::Read => &mut of_page.read,
        };
        let free = match kind {
            // A process takes the first.
            ChannelKind::Write => channels.iter().position(|channel| channel.state == ChannelState::Free),
            ChannelKind::Read if channels.len() < most as usize => None,
            ChannelKind::Read => of_page.free_reads.pop_front().map(usize::from),
        };
        let index = free.unwrap_or(channels.len());
        if index >= most as usize {
            return None;
        }
        if index == channels.len() {
            channels.push(Channel::default());
        }
        let channel = &mut channels[index];
        let first = channel.transactions;
        channel.transactions = first.wrapping_add(parameters.cut.blocks(descriptor.bytes));
        channel.transfer = Some(self.transfers.put(Transfer {
            descriptor: *descriptor,
            first,
            next_block: 0,
            blocks: Vec::new(),
            started: Time::ZERO,
            stalled: None,
            queued: false,
            page: None,
        }));
        let id = ChannelId((page * (of_writes + of_reads) + offset + index as u32) as u16);
        self.busy(id, parameters)?.channel_event(ChannelEvent::Post)?;
        Some((id, first))
    }

    /// Whether a channel of a page is free.
    pub(super) fn has_free(&self, page: u32, kind: ChannelKind, parameters: &SendParameters) -> bool {
        let Some(of_page) = self.pages.get(page as usize) else { return true };
        let channels = match kind {
            ChannelKind::Write => &of_page.write,
            ChannelKind::Read => &of_page.read,
        };
        channels.len() < parameters.channels(kind) as usize
            || channels.iter().any(|channel| channel.state == ChannelState::Free)
    }

    /// A channel that has a transfer.
    #[inline]
    pub(super) fn busy(&mut self, id: ChannelId, parameters: &SendParameters) -> Option<Busy<'_>> {
        let Channels { pages, transfers, turns, changes, .. } = self;
        let channel = channel(pages, id, parameters)?;
        let transfer = transfers.at(channel.transfer?)?;
        Some(Busy { id, channel, transfer, turns, changes })
    }

    /// The turn is one of a transfer that has ended.
    #[cold]
    pub(super) fn pass_turn(&mut self, parameters: &SendParameters) {
        if let Some(turn) = self.turns.pop_front()
            && let Some(channel) = channel(&mut self.pages, turn.channel, parameters)
        {
            channel.has_turn_left = false;
        }
    }

    /// Takes the turn that a transfer which has ended has left out of the round.
    pub(super) fn leave_round(&mut self, id: ChannelId, parameters: &SendParameters) {
        let channel = channel(&mut self.pages, id, parameters);
        if channel.is_some_and(|channel| std::mem::take(&mut channel.has_turn_left)) {
            self.turns.retain(|turn| turn.channel != id);
        }
    }

    /// The channel whose turn it was has had a cell read; whether it `has_more`.
    #[inline]
    pub(super) fn next_turn(&mut self, has_more: bool) {
        // Mostly there is one channel, whose turn it is again.
        if !has_more || self.turns.len() > 1 {
            let turn = self.turns.pop_front();
            self.turns.extend(turn.filter(|_| has_more));
        }
    }

    /// The agent starts a channel at `now`.
    pub fn start(&mut self, id: ChannelId, now: Time, parameters: &SendParameters) {
        let Some(mut busy) = self.busy(id, parameters) else { return };
        if busy.channel_event(ChannelEvent::Start).is_some() {
            busy.transfer.started = now;
            busy.start_blocks(parameters);
        }
    }

    /// A page of a block was found not to be mapped.
    #[cold]
    pub(super) fn faulted(&mut self, id: ChannelId, transaction: u32, parameters: &SendParameters) {
        if let Some(mut busy) = self.busy(id, parameters) {
            busy.transfer.queued = false;
            busy.block_event(transaction, BlockEvent::SourceFault);
            busy.queue();
        }
    }

    /// An acknowledgement has come, with which the agent is to deal; `None`: it means nothing.
    pub fn acknowledge(
        &mut self,
        id: ChannelId,
        transaction: u32,
        parameters: &SendParameters,
    ) -> Option<Acknowledged> {
        let mut busy = self.busy(id, parameters)?;
        busy.block_event(transaction, BlockEvent::Ack)?;
        let ends = busy.transfer.has_only_one_left(parameters);
        let Descriptor { watch, token, .. } = busy.transfer.descriptor;
        Some(Acknowledged { watch, ends_unheard: ends && !watch && token.is_none() })
    }

    /// A NACK of an attempt has come; whether the agent is to be invoked.
    pub fn refuse(
        &mut self,
        id: ChannelId,
        transaction: u32,
        attempt: u8,
        parameters: &SendParameters,
    ) -> bool {
        let Some(mut busy) = self.busy(id, parameters) else { return false };
        let block = busy.transfer.block(transaction).filter(|block| block.attempt as u8 == attempt);
        let Some(block) = block else { return false };
        // The destination is alive.
        block.timeouts = 0;
        busy.block_event(transaction, BlockEvent::Nack).is_some()
    }

    /// The agent sends a block again.
    pub fn restart(&mut self, id: ChannelId, transaction: u32, parameters: &SendParameters) {
        let Some(mut busy) = self.busy(id, parameters) else { return };
        if let Some(block) = busy.block_event(transaction, BlockEvent::Restart) {
            // A page fault may have ended the attempt before some cells were read.
            block.read_before = block.read_before.max(block.next);
            block.next = 0;
            block.attempt += 1;
            busy.queue();
        }
    }

    /// Notes how the agent will deal with the acknowledgement of a block of a watched transfer.
    #[cold]
    pub(super) fn deals(
        &mut self,
        id: ChannelId,
        transaction: u32,
        service: Service,
        parameters: &SendParameters,
    ) {
        let block = self.busy(id, parameters).and_then(|busy| busy.transfer.block(transaction));
        if let Some(block) = block {
            block.dealt = Some(service);
        }
    }

    /// The agent deals with an acknowledgement at `now`: the stall that ends with it.
    #[cold]
    pub(super) fn stall_over(
        &mut self,
        id: ChannelId,
        transaction: u32,
        now: Time,
        parameters: &SendParameters,
    ) -> Option<Stall> {
        let transfer = self.busy(id, parameters)?.transfer;
        let dealt = transfer.block(transaction)?.dealt?;
        let since = transfer.stalled.take()?;
        let started = std::mem::replace(&mut transfer.started, now);
        Some(Stall { message: transfer.descriptor.message, started, since, dealt })
    }

    /// Whether the transfer of a channel waits for an acknowledgement and is watched.
    pub(super) fn is_stalled(&mut self, id: ChannelId, parameters: &SendParameters) -> bool {
        self.busy(id, parameters).is_some_and(|busy| busy.transfer.stalled.is_some())
    }

    /// The agent deals with an acknowledgement: the next block may start.
    pub fn retire(&mut self, id: ChannelId, transaction: u32, parameters: &SendParameters) -> Retired {
        let Some(mut busy) = self.busy(id, parameters) else { return Retired::Nothing };
        if busy.block_event(transaction, BlockEvent::Retire).is_none() {
            return Retired::Nothing;
        }
        if !busy.transfer.has_only_one_left(parameters) {
            busy.transfer.blocks.retain(|block| block.state != BlockState::Done);
            busy.start_blocks(parameters);
            return Retired::Running;
        }
        match self.finish(id, parameters) {
            Some(descriptor) => Retired::Finished(descriptor),
            None => Retired::Nothing,
        }
    }

    /// The blocks of a channel that are due, as its timer has fired, and when it is to fire again.
    pub(super) fn due(
        &mut self,
        id: ChannelId,
        now: Time,
        parameters: &SendParameters,
    ) -> (Vec<u32>, Option<Time>) {
        let Some(busy) = self.fired(id, now, parameters) else { return Default::default() };
        let Busy { channel, transfer, .. } = busy;
        let waiting = transfer.blocks.iter().filter(|block| block.state == BlockState::Unacknowledged);
        let (due, later): (Vec<&Block>, Vec<&Block>) = waiting.partition(|block| block.deadline <= now);
        let earliest = later.iter().map(|block| block.deadline).min();
        let timer = channel.arm(earliest.unwrap_or(Time::NEVER));
        (due.iter().map(|block| transfer.first.wrapping_add(block.index)).collect(), timer)
    }

    /// The timer of a channel has fired; the channel, if it is running.
    fn fired(&mut self, id: ChannelId, now: Time, parameters: &SendParameters) -> Option<Busy<'_>> {
        let channel = channel(&mut self.pages, id, parameters)?;
        channel.timer = channel.timer.filter(|timer| *timer > now);
        let is_running = channel.state == ChannelState::Running;
        self.busy(id, parameters).filter(|_| is_running)
    }

    /// The time is up of blocks of a channel, or of the block of a transaction alone.
    pub fn expired(
        &mut self,
        id: ChannelId,
        transaction: Option<u32>,
        now: Time,
        parameters: &RdmaParameters,
    ) -> Expired {
        let (mut outcome, reliability) = (Expired::default(), &parameters.reliability);
        let Some(mut busy) = self.fired(id, now, &parameters.send) else { return outcome };
        let transfer = &mut *busy.transfer;
        let (mut first_gone, mut earliest) = (Time::NEVER, Time::NEVER);
        let only = transaction.map(|transaction| transaction.wrapping_sub(transfer.first));
        let is_meant = |block: &Block| only.is_none_or(|only| block.index == only);
        for block in transfer.blocks.iter_mut().filter(|block| block.state == BlockState::Unacknowledged) {
            if !is_meant(block) {
                // The timer that has told of this one has been set for the others.
            } else if block.deadline > now {
                earliest = earliest.min(block.deadline);
            } else if block.timeouts >= reliability.repetitions {
                outcome.give_up = true;
            } else {
                let waited = reliability.timeout_after(block.timeouts);
                let gone = Time::from_ps(block.deadline.as_ps().saturating_sub(waited.as_ps()));
                first_gone = first_gone.min(gone);
                block.timeouts += 1;
                outcome.again.push(transfer.first.wrapping_add(block.index));
            }
        }
        if transfer.descriptor.watch && !outcome.again.is_empty() {
            let (message, started) = (transfer.descriptor.message, transfer.started);
            outcome.watched = Some(WatchedTimeout { message, started, gone: first_gone });
        }
        outcome.timer = busy.channel.arm(earliest);
        for &transaction in &outcome.again {
            busy.block_event(transaction, BlockEvent::Timeout);
        }
        outcome
    }

    /// A channel cannot be finished; whether the agent is to be invoked.
    pub fn abort(&mut self, id: ChannelId, parameters: &SendParameters) -> bool {
        let Some(mut busy) = self.busy(id, parameters) else { return false };
        if busy.channel_event(ChannelEvent::Abort).is_none() {
            return false;
        }
        let (first, blocks) = (busy.transfer.first, &busy.transfer.blocks);
        let transactions: Vec<u32> = blocks.iter().map(|block| first.wrapping_add(block.index)).collect();
        for transaction in transactions {
            busy.block_event(transaction, BlockEvent::GiveUp);
        }
        true
    }

    /// Frees a channel whose transfer has ended.
    pub fn finish(&mut self, id: ChannelId, parameters: &SendParameters) -> Option<Descriptor> {
        let mut busy = self.busy(id, parameters)?;
        busy.channel_event(ChannelEvent::Finish)?;
        let place = busy.channel.transfer.take()?;
        let (of_page, kind) = parameters.place(id);
        let is_read = kind == ChannelKind::Read && parameters.contexts.is_none();
        if busy.transfer.queued
            && let Some(turn) = busy.turns.iter_mut().find(|turn| turn.channel == id)
        {
            turn.place = None;
            busy.channel.has_turn_left = true;
        }
        if is_read && let Some(page) = self.pages.get_mut(of_page as usize) {
            let read_channel = u32::from(id.0) % (parameters.write_channels + parameters.read_channels);
            page.free_reads.push_back((read_channel - parameters.write_channels) as u16);
        }
        self.transfers.free(place)
    }
}

/// A channel of these pages, by its number.
fn channel<'a>(pages: &'a mut [Page], id: ChannelId, parameters: &SendParameters) -> Option<&'a mut Channel> {
    let (of_writes, of_reads) = parameters.channels_of_page();
    let (number, per_page) = (u32::from(id.0), of_writes + of_reads);
    // Contexts are of one page, and most machines have few processes: a division takes long.
    let (page, index) = if number < per_page { (0, number) } else { (number / per_page, number % per_page) };
    let page = pages.get_mut(page as usize)?;
    if index < of_writes {
        page.write.get_mut(index as usize)
    } else {
        page.read.get_mut((index - of_writes) as usize)
    }
}

impl Transfer {
    /// The block of a transaction, if it may be outstanding.
    pub(super) fn block(&mut self, transaction: u32) -> Option<&mut Block> {
        let index = transaction.wrapping_sub(self.first);
        self.blocks.iter_mut().find(|block| block.index == index)
    }

    /// Whether all blocks but one are done.
    #[inline]
    fn has_only_one_left(&self, parameters: &SendParameters) -> bool {
        self.blocks.len() == 1 && self.next_block >= parameters.cut.blocks(self.descriptor.bytes)
    }

    /// Starts another block, if there is one and it may be outstanding; returns its transaction.
    fn start_block(&mut self, parameters: &SendParameters) -> Option<u32> {
        let index = self.next_block;
        if index >= parameters.cut.blocks(self.descriptor.bytes)
            || self.blocks.len() >= parameters.outstanding_blocks as usize
        {
            return None;
        }
        self.blocks.push(Block {
            index,
            state: BlockState::Sending,
            attempt: 0,
            timeouts: 0,
            next: 0,
            read_before: 0,
            deadline: Time::NEVER,
            dealt: None,
        });
        self.next_block += 1;
        Some(self.first.wrapping_add(index))
    }

    /// Notes, after its last cell for now has gone, whether it has more to send and may not.
    pub(super) fn stalls(&mut self, now: Time, parameters: &SendParameters) {
        let more = self.next_block < parameters.cut.blocks(self.descriptor.bytes);
        let sending = self.blocks.iter().any(|block| block.state == BlockState::Sending);
        self.stalled = (more && !sending).then_some(now);
    }

    /// The first block with cells to be read.
    #[inline]
    pub(super) fn sending(&self) -> Option<usize> {
        let cut_off = |block: &Block| block.state == BlockState::Sending && block.next != ALL_READ;
        self.blocks.iter().position(cut_off)
    }
}

/// In place of the next cell of a block: all have been read.
pub(super) const ALL_READ: u8 = u8::MAX;
