//! The RDMA engine: send unit, segmentation agent and receive unit of one node, put together.
//!
//! ```text
//!             ┌───────── source ──────────┐                    ┌──── destination ────┐
//!  descriptor ─► channel ─► agent ─► send engine ═══ cells ═══► receive unit ─► memory
//!                             ▲                                      │     └─► notification
//!                             └──────────── ACK, NACK per block ◄────┘
//! ```
//! A read is a [request](RequestMailbox) to the node that has the data, whose send unit answers with a write.
//! The engine is
//! plain data and knows no fabric and no event queue: it is told what comes, asked for what goes, and says
//! through its [`RdmaCallbacks`] when it wants to be woken.
//!
//! caRVnet's engine is the same with [contexts](SourceContexts) in place of the channels of pages, and
//! without the agent on the way of a descriptor: hardware cuts the transfer as it allocates the context. Its
//! agent, in hardware as well, deals with acknowledgements and repetitions. It notifies of transfers, and
//! ExaNet's of each of their blocks.
//!
//! # Source
//! TR-488 §4.5 and Fig. 9; of caRVnet RED-SEA D1.4 §8.
//!
//! # Not modelled
//! - Completion by polling of channel status: the user is told when the agent has dealt with the last
//!   acknowledgement.
//! - Pages that are allocated apart from interfaces: a page has the number of its interface.

mod agent_logic;
mod arriving_cells;
mod blocks;
mod channel;
mod channels;
mod contexts;
mod descriptors;
mod receive;
mod remembered_channels;
mod requests;
mod send;
#[cfg(test)]
mod tests;
mod transfer;

pub use arriving_cells::{CellOutcome, LateCell, Reply};
pub use blocks::{
    DESCRIPTOR_CHANNEL, OUTSTANDING_BLOCK, RDMA_CHANNEL, RDMA_MAILBOX, RDMA_RECEIVE, RDMA_SEND,
    SOURCE_CONTEXT,
};
pub use channel::{ChannelEvent, ChannelState, RdmaChange};
pub use channels::{Acknowledged, Channels, Expired, Retired, Stall, WatchedTimeout};
pub use descriptors::SourceContexts;
pub use receive::{
    Arrival, ContextEvent, ContextState, Postponed, Receipt, ReceiveParameters, ReceiveUnit, WAITING_BLOCKS,
};
pub use remembered_channels::{REMEMBERED_CHANNELS, REMEMBERED_WAYS};
pub use requests::{CameRequest, RequestMailbox};
pub use send::{Cell, FetchTimes, SendParameters, SendUnit, Sent, SourceFault};
pub use transfer::{
    Answer, CellId, ChannelId, ChannelKind, Descriptor, Location, Refusal, TransferError, TransferHeader,
};

use crate::block::Block;
use crate::iommu::IOMMU;
use crate::memory_path::MemoryPath;
use crate::ports::{Crossing, StoredDescriptor};
use crate::reliability::ReliabilityParameters;
use crate::segmentation::{Agent, SEGMENTATION, SegmentationParameters};
use crate::server::Service;
use descriptors::Descriptors;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::ClassTag;
use weft_units::{EndpointId, Span, Time};

weft_keys::keys! {
    /// The engine's section of a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct RdmaParameters {
        /// The send unit.
        send: SendParameters, group();
        /// The receive unit.
        receive: ReceiveParameters, group();
        /// Time-outs and repetitions of blocks.
        reliability: ReliabilityParameters, group();
        beside {
            /// The segmentation agent.
            segmentation: SegmentationParameters =
                SegmentationParameters::Firmware { invocation: Span::ZERO };
        }
    }
}

/// A task for which the engine wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Task {
    /// The agent starts a channel.
    Start(ChannelId),
    /// The agent has dealt with an acknowledgement.
    Retire(ChannelId, u32),
    /// The agent sends a block again.
    Restart(ChannelId, u32),
    /// The system has mapped a page of a block.
    Mapped(ChannelId, u32),
    /// The agent gives a channel up.
    GiveUp(ChannelId, TransferError),
    /// A channel's timer.
    Timeout(ChannelId),
    /// A descriptor comes to the agent of logic.
    Posted(ChannelId),
    /// A block whose time is up comes to the agent of logic.
    Expired(ChannelId, u32),
    /// The agent of logic deals with an answer.
    Answered(CellId, Answer),
    /// The agent of logic deals with a block whose time is up.
    Due(ChannelId, u32),
    /// A buffer has become free before this edge of the clock.
    Fetch,
    /// A process that waits for a channel has seen that this one is free.
    Store(ChannelId),
}

impl Task {
    /// A number that no other task of one time has.
    pub fn tie(&self) -> u64 {
        let (kind, channel, transaction) = match *self {
            Task::Start(channel) => (0u64, channel, 0),
            Task::Retire(channel, transaction) => (1, channel, transaction),
            Task::Restart(channel, transaction) => (2, channel, transaction),
            Task::Mapped(channel, transaction) => (3, channel, transaction),
            Task::GiveUp(channel, _) => (4, channel, 0),
            Task::Timeout(channel) => (5, channel, 0),
            Task::Posted(channel) => (6, channel, 0),
            Task::Expired(channel, transaction) => (7, channel, transaction),
            Task::Answered(CellId { channel, transaction, .. }, _) => (8, channel, transaction),
            Task::Due(channel, transaction) => (9, channel, transaction),
            Task::Fetch => (10, ChannelId(0), 0),
            Task::Store(channel) => (11, channel, 0),
        };
        kind << 48 | u64::from(channel.0) << 32 | u64::from(transaction)
    }

    /// Whether it comes to the agent of logic behind all else of its edge.
    pub fn comes_last(&self) -> bool {
        matches!(self, Task::Posted(_) | Task::Expired(..))
    }
}

/// A stage of a watched transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransferStage {
    /// The node that the transfer comes from; `None`: this one.
    pub source: Option<EndpointId>,
    /// The number of the transfer.
    pub message: u32,
    /// The block of the interface.
    pub block: Block,
    /// The time at which the transfer came to the block.
    pub came: Time,
    /// The time at which the block began.
    pub began: Time,
    /// The time at which the block was done.
    pub ended: Time,
}

/// Whoever drives an engine.
pub trait RdmaCallbacks {
    /// Whether it hears of changes of state.
    const HEARS_CHANGES: bool;
    /// Whether it posts only after it has had [what is due](Rdma::retire_due) retired, and says when it
    /// [waits for that](Rdma::await_ends): then there is no need to wake the engine for it.
    const RETIRES: bool = false;

    /// The engine wants [`Rdma::wake`] to be called at `at`.
    fn wake(&mut self, at: Time, task: Task);
    /// No answer has come to this many blocks in time, 0 included.
    fn timed_out(&mut self, blocks: u64) {
        let _ = blocks;
    }
    /// A transfer has a channel: its destination is to learn its header before its first cell comes.
    fn announce(&mut self, to: EndpointId, header: TransferHeader);
    /// A transfer has ended: all of it has arrived, or has been given up.
    fn ended(&mut self, descriptor: &Descriptor, outcome: Result<(), TransferError>);
    /// A watched transfer has passed a stage.
    fn stage(&mut self, _stage: TransferStage) {}
    /// A descriptor channel has space for another descriptor.
    fn space(&mut self, _page: u32, _kind: ChannelKind) {}
    /// Whether it wants to be told of what crosses the ports of the send unit.
    fn hears_ports(&self) -> bool {
        false
    }
    /// Something crosses a port of the send unit.
    fn port(&mut self, _what: Crossing) {}
    /// A channel, a block or a context has changed its state.
    fn changed(&mut self, _change: RdmaChange) {}
}

/// The surroundings of an engine while it is called.
pub struct EngineContext<'a, S: RdmaCallbacks> {
    /// The present time.
    pub now: Time,
    /// The machine file's section.
    pub parameters: &'a RdmaParameters,
    /// The driver of the engine.
    pub callbacks: &'a mut S,
}

/// A packet for the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RdmaPacket {
    /// A cell.
    Cell(Cell),
    /// An answer.
    Reply(Reply),
}

/// The engine of one node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rdma {
    send: SendUnit,
    receive: ReceiveUnit,
    agent: Agent,
    /// Answers, in the order in which they are due.
    replies: VecDeque<Reply>,
    /// Transfers that have been posted and have not ended.
    under_way: u32,
    /// Posts that wait for a channel of their page, or for a context.
    descriptors: Descriptors,
    /// `None` before the first: an idle engine is small.
    retiring: Option<Box<Retiring>>,
    /// `None` before the first request.
    requests: Option<Box<RequestMailbox>>,
}

/// The last blocks of transfers whose ends nobody hears of or waits for, in the order in which the agent has
/// dealt with their acknowledgements: when, and which.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Retiring {
    blocks: VecDeque<(Time, ChannelId, u32)>,
}

impl Rdma {
    /// Whether a descriptor channel has space for another descriptor. Pages of ExaNet have space always: a
    /// post waits in its process.
    pub fn has_space(&self, page: u32, kind: ChannelKind, parameters: &SendParameters) -> bool {
        parameters.contexts.is_none()
            || self.descriptors.held((page, kind)) < parameters.channels(kind) as usize
    }

    /// A process has stored a descriptor: it is taken as soon as a channel of its page or a context is free.
    pub fn post(
        &mut self,
        page: u32,
        kind: ChannelKind,
        descriptor: Descriptor,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        self.under_way += 1;
        let others_wait = match context.parameters.send.contexts {
            Some(_) => !self.descriptors.is_empty(),
            None => self.descriptors.held((page, kind)) > 0,
        };
        if others_wait || !self.take(page, kind, descriptor, context) {
            self.descriptors.push((page, kind), descriptor);
            self.await_ends(context);
        }
    }

    /// Frees the channels of transfers that have ended by now, and whose ends nobody has waited for.
    pub fn retire_due(&mut self, context: &mut EngineContext<'_, impl RdmaCallbacks>) {
        while let Some(retiring) = &mut self.retiring
            && let Some(&(at, channel, transaction)) = retiring.blocks.front()
            && at <= context.now
        {
            retiring.blocks.pop_front();
            self.retire(channel, transaction, context);
        }
    }

    /// Somebody waits from now on for transfers to end.
    pub fn await_ends(&mut self, context: &mut EngineContext<'_, impl RdmaCallbacks>) {
        let retiring = self.retiring.iter_mut().flat_map(|retiring| retiring.blocks.drain(..));
        for (at, channel, transaction) in retiring {
            context.callbacks.wake(at, Task::Retire(channel, transaction));
        }
    }

    /// Puts a descriptor into a free channel or context; whether there was one.
    fn take(
        &mut self,
        page: u32,
        kind: ChannelKind,
        descriptor: Descriptor,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) -> bool {
        let now = context.now.max(descriptor.posted);
        let taken = self.send.channels.post(page, kind, &descriptor, &context.parameters.send);
        let Some((channel, first)) = taken else { return false };
        let Descriptor { destination, bytes, domain, message, watch, posted, to, .. } = descriptor;
        context.callbacks.announce(to, TransferHeader { destination, bytes, domain, first, message, watch });
        if context.parameters.has_agent_of_logic() {
            self.comes(channel, context);
            return true;
        }
        if context.callbacks.hears_ports() {
            let stored = StoredDescriptor { channel, descriptor, first, came: now };
            context.callbacks.port(Crossing::Described(stored));
        }
        let (waited_in, service, starter) = match &context.parameters.send.contexts {
            None => {
                let service = self.agent.invoke(now, &context.parameters.segmentation);
                (RDMA_CHANNEL, service, SEGMENTATION)
            }
            Some(contexts) => {
                let service = self.descriptors.allocate(now, contexts, &context.parameters.send.clock);
                (DESCRIPTOR_CHANNEL, service, SOURCE_CONTEXT)
            }
        };
        if watch {
            let mut stage = |block, came, began, ended| {
                context.callbacks.stage(TransferStage { source: None, message, block, came, began, ended });
            };
            if now > posted {
                stage(waited_in, posted, now, now);
            }
            stage(starter, service.came, service.began, service.ended);
        }
        context.callbacks.wake(service.ended, Task::Start(channel));
        self.report(context.callbacks);
        true
    }

    /// Carries out a task. Ask the engine for cells afterwards.
    pub fn wake(
        &mut self,
        task: Task,
        path: &mut MemoryPath<'_>,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        match task {
            Task::Start(channel) => self.send.channels.start(channel, context.now, &context.parameters.send),
            Task::Restart(channel, transaction) => {
                self.send.channels.restart(channel, transaction, &context.parameters.send);
            }
            Task::Mapped(channel, transaction) => self.again(channel, transaction, context),
            Task::Retire(channel, transaction) => self.deal_with_ack(channel, transaction, context),
            Task::GiveUp(channel, error) => self.give_up(channel, error, context),
            Task::Posted(channel) => self.posted(channel, context),
            Task::Expired(channel, transaction) => {
                self.invoke(Task::Due(channel, transaction), context);
            }
            Task::Answered(id, answer) => self.deal_with_answer(id, answer, context),
            Task::Due(channel, transaction) => self.deal_with_due(channel, transaction, context),
            Task::Fetch => {}
            Task::Store(channel) => self.store_next(channel, path, context),
            Task::Timeout(channel) if context.parameters.has_agent_of_logic() => {
                self.time_is_up(channel, context);
            }
            Task::Timeout(channel) => {
                let expired = self.expired(channel, None, context);
                if expired.give_up {
                    self.abort(channel, TransferError::TimedOut, context);
                } else {
                    for transaction in expired.again {
                        self.again(channel, transaction, context);
                    }
                }
            }
        }
        self.fetch(path, context);
    }

    /// The time of blocks of a channel is up, or of this one alone.
    fn expired(
        &mut self,
        channel: ChannelId,
        transaction: Option<u32>,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) -> Expired {
        let now = context.now;
        let expired = self.send.channels.expired(channel, transaction, now, context.parameters);
        if let Some(timer) = expired.timer {
            context.callbacks.wake(timer, Task::Timeout(channel));
        }
        context.callbacks.timed_out(expired.again.len() as u64 + u64::from(expired.give_up));
        if let Some(watched) = &expired.watched {
            let WatchedTimeout { message, started, gone } = *watched;
            context.delayed(&Delay { message, started, block: Block::TIMEOUT, began: gone, ended: now });
        }
        expired
    }

    /// The agent deals with an acknowledgement.
    fn deal_with_ack(
        &mut self,
        channel: ChannelId,
        transaction: u32,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        if self.send.channels.is_stalled(channel, &context.parameters.send) {
            self.stall_over(channel, transaction, context);
        }
        self.retire(channel, transaction, context);
    }

    /// The agent gives a channel up.
    fn give_up(
        &mut self,
        channel: ChannelId,
        error: TransferError,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        if let Some(descriptor) = self.send.channels.finish(channel, &context.parameters.send) {
            self.ended(channel, &descriptor, Err(error), context);
        }
    }

    /// The agent has dealt with an acknowledgement.
    fn retire(
        &mut self,
        channel: ChannelId,
        transaction: u32,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        let retired = self.send.channels.retire(channel, transaction, &context.parameters.send);
        if let Retired::Finished(descriptor) = retired {
            self.ended(channel, &descriptor, Ok(()), context);
        }
    }

    /// The agent deals with an acknowledgement for which a watched transfer may have waited.
    #[cold]
    fn stall_over(
        &mut self,
        channel: ChannelId,
        transaction: u32,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        let (now, parameters) = (context.now, &context.parameters.send);
        if let Some(stall) = self.send.channels.stall_over(channel, transaction, now, parameters) {
            context.stalled(&stall);
        }
    }

    fn invoke(&mut self, task: Task, context: &mut EngineContext<'_, impl RdmaCallbacks>) -> Service {
        let service = self.agent.invoke(context.now, &context.parameters.segmentation);
        context.callbacks.wake(service.ended, task);
        service
    }

    /// The agent is to have a block sent again.
    fn again(
        &mut self,
        channel: ChannelId,
        transaction: u32,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        let service = self.invoke(Task::Restart(channel, transaction), context);
        self.agent_stage(channel, service, context);
    }

    /// Reports how the agent deals with a watched transfer.
    fn agent_stage(
        &mut self,
        channel: ChannelId,
        Service { came, began, ended }: Service,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        if let Some(busy) = self.send.channels.busy(channel, &context.parameters.send)
            && busy.transfer.descriptor.watch
        {
            let (source, message, block) = (None, busy.transfer.descriptor.message, SEGMENTATION);
            context.callbacks.stage(TransferStage { source, message, block, came, began, ended });
        }
    }

    fn abort(
        &mut self,
        channel: ChannelId,
        error: TransferError,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        if self.send.channels.abort(channel, &context.parameters.send) {
            self.invoke(Task::GiveUp(channel, error), context);
        }
    }

    /// A channel or context is free again: its user is told, and the next post takes it.
    fn ended(
        &mut self,
        channel: ChannelId,
        descriptor: &Descriptor,
        outcome: Result<(), TransferError>,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        self.under_way -= 1;
        context.callbacks.ended(descriptor, outcome);
        let page = context.parameters.send.place(channel);
        if context.parameters.has_agent_of_logic() {
            if self.descriptors.held(page) > 0 {
                let seen = context.parameters.send.clock.later_edge(context.now, agent_logic::SEEN_AFTER);
                context.callbacks.wake(seen, Task::Store(channel));
            }
            return;
        }
        self.send.channels.leave_round(channel, &context.parameters.send);
        let next = if context.parameters.send.contexts.is_some() {
            self.descriptors.take_in_turn()
        } else {
            self.descriptors.take(page).map(|next| (page, next))
        };
        if let Some(((page, kind), next)) = next {
            let taken = self.take(page, kind, next, context);
            debug_assert!(taken, "a channel of the page, or a context, has just become free");
            context.callbacks.space(page, kind);
        }
    }

    /// Reports changes of state. Most cells change none.
    fn report<S: RdmaCallbacks>(&mut self, callbacks: &mut S) {
        let (sent, received) = (&mut self.send.channels.changes, &mut self.receive.changes);
        if !S::HEARS_CHANGES {
            sent.clear();
            received.clear();
            return;
        }
        if sent.is_empty() && received.is_empty() {
            return;
        }
        for change in sent.drain(..).chain(received.drain(..)) {
            callbacks.changed(change);
        }
    }

    /// Whether there is a buffer for another cell, and perhaps a cell for it.
    #[inline]
    pub fn may_fetch(&self, parameters: &SendParameters) -> bool {
        self.send.may_fetch(parameters)
    }

    /// Fills the cell buffers.
    #[inline(never)]
    pub fn fetch(&mut self, path: &mut MemoryPath<'_>, context: &mut EngineContext<'_, impl RdmaCallbacks>) {
        let before = self.send.buffered();
        while let Some(fault) = self.send.fetch(context.now, &context.parameters.send, path) {
            if let Some((message, started)) = fault.watched {
                let (began, ended) = (context.now, fault.until);
                context.delayed(&Delay { message, started, block: IOMMU, began, ended });
            }
            context.callbacks.wake(fault.until, Task::Mapped(fault.channel, fault.transaction));
        }
        if context.callbacks.hears_ports() {
            self.send.reads_behind(before).for_each(|(cell, ready)| {
                context.callbacks.port(Crossing::CellRead { cell, ready });
            });
        }
        self.report(context.callbacks);
    }

    /// A cell has gone, and its buffer may be filled: at once, or for the agent of logic at the next edge.
    pub fn refill(&mut self, path: &mut MemoryPath<'_>, context: &mut EngineContext<'_, impl RdmaCallbacks>) {
        let edge = context.parameters.send.clock.edge_at_or_after(context.now);
        if context.parameters.has_agent_of_logic() && edge > context.now {
            context.callbacks.wake(edge, Task::Fetch);
        } else {
            self.fetch(path, context);
        }
    }

    /// The time at which there is a packet for the link; [`Time::NEVER`]: not unless something happens.
    #[inline]
    pub fn next_outgoing(&self) -> Time {
        let reply = self.replies.front().map_or(Time::NEVER, |reply| reply.due);
        reply.min(self.send.next_cell())
    }

    /// Whether the next packet for the link is an answer.
    pub fn answers_next(&self, now: Time) -> bool {
        self.replies.front().is_some_and(|reply| reply.due <= now)
    }

    /// The traffic class of the next cell, where no answer goes first.
    pub fn next_class(&self) -> ClassTag {
        self.send.next_class()
    }

    /// Takes the next packet for the link, which is [due](Rdma::next_outgoing); answers go first. Call
    /// [`Rdma::refill`] behind a cell if there is a buffer that it [may fill](Rdma::may_fetch).
    #[inline]
    pub fn take_outgoing(
        &mut self,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) -> Option<RdmaPacket> {
        if self.answers_next(context.now) {
            return self.replies.pop_front().map(RdmaPacket::Reply);
        }
        let Sent { cell, times, timer } =
            self.send.take(context.now, &context.parameters.send, &context.parameters.reliability)?;
        if let Some(timer) = timer {
            context.callbacks.wake(timer, Task::Timeout(cell.id.channel));
        }
        if let Some(times) = times {
            context.sent(cell.message, &times);
        }
        if cell.id.last {
            self.report(context.callbacks);
        }
        Some(RdmaPacket::Cell(cell))
    }

    /// An answer to a block of this node has come. Returns when the agent of logic takes it.
    pub fn answer<S: RdmaCallbacks>(
        &mut self,
        id: CellId,
        answer: Answer,
        context: &mut EngineContext<'_, S>,
    ) -> Option<Time> {
        if context.parameters.has_agent_of_logic() {
            return Some(self.answer_comes(id, answer, context));
        }
        let CellId { channel, transaction, attempt, .. } = id;
        match answer {
            Answer::Ack => {
                let parameters = &context.parameters.send;
                let acknowledged = self.send.channels.acknowledge(channel, transaction, parameters);
                if let Some(Acknowledged { watch, ends_unheard }) = acknowledged {
                    let service = self.agent.invoke(context.now, &context.parameters.segmentation);
                    if watch {
                        self.send.channels.deals(channel, transaction, service, parameters);
                    }
                    let is_awaited = !self.descriptors.is_empty() || self.is_full(parameters);
                    if S::RETIRES && ends_unheard && !is_awaited {
                        self.retiring.get_or_insert_default().blocks.push_back((
                            service.ended,
                            channel,
                            transaction,
                        ));
                    } else {
                        context.callbacks.wake(service.ended, Task::Retire(channel, transaction));
                    }
                }
            }
            Answer::Nack(Refusal::Protection) => {
                if self.send.channels.refuse(channel, transaction, attempt, &context.parameters.send) {
                    self.abort(channel, TransferError::Protection, context);
                }
            }
            Answer::Nack(Refusal::NoContext | Refusal::PageFault) => {
                if self.send.channels.refuse(channel, transaction, attempt, &context.parameters.send) {
                    self.again(channel, transaction, context);
                }
            }
        }
        self.report(context.callbacks);
        None
    }

    /// Transfers that have been posted and have not ended, such that wait for a channel included.
    #[inline]
    pub fn under_way(&self) -> usize {
        self.under_way as usize
    }

    /// Whether as many transfers are under way as one process may have.
    #[inline]
    pub fn is_full(&self, parameters: &SendParameters) -> bool {
        self.under_way() >= parameters.transfers() as usize
    }

    /// Transfers that have not ended, those left out whose ends nobody waits for.
    pub fn unfinished(&self) -> usize {
        let retiring = self.retiring.as_ref().map_or(0, |retiring| retiring.blocks.len());
        self.under_way().saturating_sub(retiring)
    }

    /// The time in which the agent, the contexts' allocation and the send engine have worked, by name.
    pub(crate) fn worked(&self) -> [(&'static str, Span); 3] {
        [
            (SEGMENTATION.name(), self.agent.worked()),
            (SOURCE_CONTEXT.name(), self.descriptors.worked()),
            (RDMA_SEND.name(), self.send.worked),
        ]
    }

    /// How often the agent has been invoked.
    pub fn invocations(&self) -> u64 {
        self.agent.invocations()
    }
}

/// A part of a watched transfer in which a block held it up.
struct Delay {
    message: u32,
    /// The time from which on the transfer's cells went out.
    started: Time,
    /// The block that held the transfer up, from `began` to `ended`.
    block: Block,
    began: Time,
    ended: Time,
}

impl<S: RdmaCallbacks> EngineContext<'_, S> {
    /// Reports the stages of a watched cell that goes onto the link now.
    #[cold]
    fn sent(&mut self, message: u32, times: &FetchTimes) {
        let mut stage = |block, came, began, ended| {
            self.callbacks.stage(TransferStage { source: None, message, block, came, began, ended });
        };
        let (now, FetchTimes { started, issued, translated, ready }) = (self.now, *times);
        stage(RDMA_SEND, started, issued, issued);
        if translated > issued {
            stage(IOMMU, issued, issued, translated);
        }
        stage(Block::MEMORY, translated, translated, ready);
        stage(RDMA_SEND, ready, now, now);
    }

    /// Reports the cells of a watched transfer up to a delay, and the delay.
    #[cold]
    fn delayed(&mut self, delay: &Delay) {
        let Delay { message, started, block, began, ended } = *delay;
        let mut stage = |block, came, ended| {
            self.callbacks.stage(TransferStage { source: None, message, block, came, began, ended });
        };
        stage(RDMA_SEND, started, began);
        stage(block, began, ended);
    }

    /// Reports the stages of a watched transfer that could not go on until now. The engine had sent all that
    /// may be outstanding; then the transfer waited for an acknowledgement, and for the agent.
    #[cold]
    fn stalled(&mut self, stall: &Stall) {
        let Stall { message, started, since, dealt } = *stall;
        let mut stage = |block, came, began, ended| {
            self.callbacks.stage(TransferStage { source: None, message, block, came, began, ended });
        };
        let (came, began) = (dealt.came.max(since), dealt.began.max(since));
        stage(RDMA_SEND, started, since, since);
        if came > since {
            stage(OUTSTANDING_BLOCK, since, came, came);
        }
        stage(SEGMENTATION, came, began, self.now);
    }
}
