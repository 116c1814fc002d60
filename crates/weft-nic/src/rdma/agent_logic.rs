//! The agent in logic: one input a cycle, in the order in which they come, each dealt with as a whole.
//!
//! ```text
//!   descriptor ─┐
//!   answer ─────┼─► in order ── a cycle ─► blocks start, end, are sent again ─► buffers are filled
//!   time is up ─┘                          (at an edge of the clock)
//! ```
//! Firmware learns of an answer some time after the units of its channel do. In logic both are one: until
//! the agent deals with an input, nothing has changed.
//!
//! # Source
//! TR-488 §4.5.2 has the agent redesigned in hardware, with back-to-back cycles. How it works is ours, and
//! it is compared with `rtl/segmentation` edge by edge. Of what comes within a cycle, answers come first,
//! then requests of reads, descriptors, and blocks whose time is up.

use super::transfer::{Answer, CellId, ChannelId, Refusal, TransferError};
use super::{EngineContext, Expired, RDMA_CHANNEL, Rdma, RdmaCallbacks, RdmaParameters, Task, TransferStage};
use crate::host_port::HOST_PORT;
use crate::memory_path::MemoryPath;
use crate::ports::{Crossing, StoredDescriptor};
use crate::segmentation::SegmentationParameters;
use weft_units::Time;

/// Cycles from the end of a transfer until a process that waits for its channel has seen that, and stores.
pub(super) const SEEN_AFTER: u64 = 16;

impl RdmaParameters {
    /// Whether the agent is logic, of a unit with channels of pages: caRVnet's is not compared.
    pub(super) fn has_agent_of_logic(&self) -> bool {
        let is_logic = matches!(self.segmentation, SegmentationParameters::Hardware { .. });
        is_logic && self.send.contexts.is_none()
    }
}

impl Rdma {
    /// A channel has been given a descriptor, which comes as its last store does.
    pub(super) fn comes(&mut self, channel: ChannelId, context: &mut EngineContext<'_, impl RdmaCallbacks>) {
        let Some(busy) = self.send.channels.busy(channel, &context.parameters.send) else { return };
        let posted = busy.transfer.descriptor.posted;
        if posted > context.now {
            let edge = context.parameters.send.clock.edge_at_or_after(posted);
            context.callbacks.wake(edge, Task::Posted(channel));
        } else {
            self.posted(channel, context);
        }
        self.report(context.callbacks);
    }

    /// A process has seen that a channel is free: it stores the descriptor that has waited for it.
    pub(super) fn store_next(
        &mut self,
        channel: ChannelId,
        path: &mut MemoryPath<'_>,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        let parameters = &context.parameters.send;
        let (page, kind) = parameters.place(channel);
        if !self.send.channels.has_free(page, kind, parameters) {
            return;
        }
        let Some(mut next) = self.descriptors.take((page, kind)) else { return };
        let stored = path.port.store(context.now, parameters.descriptor, path.port_parameters);
        if next.watch {
            let (source, message) = (None, next.message);
            let mut stage = |block, came, began, ended| {
                context.callbacks.stage(TransferStage { source, message, block, came, began, ended });
            };
            stage(RDMA_CHANNEL, next.posted, context.now, context.now);
            stage(HOST_PORT, context.now, stored.began, stored.ended);
        }
        next.posted = stored.ended;
        let taken = self.take(page, kind, next, context);
        debug_assert!(taken, "a channel of the page is free");
    }

    /// A descriptor comes to the agent.
    pub(super) fn posted(&mut self, channel: ChannelId, context: &mut EngineContext<'_, impl RdmaCallbacks>) {
        let mut service = self.invoke(Task::Start(channel), context);
        let Some(busy) = self.send.channels.busy(channel, &context.parameters.send) else { return };
        let (descriptor, first) = (busy.transfer.descriptor, busy.transfer.first);
        if context.callbacks.hears_ports() {
            let stored = StoredDescriptor { channel, descriptor, first, came: service.began };
            context.callbacks.port(Crossing::Described(stored));
        }
        service.came = descriptor.posted;
        self.agent_stage(channel, service, context);
    }

    /// An answer comes to the agent. Returns when it takes it.
    pub(super) fn answer_comes(
        &mut self,
        id: CellId,
        answer: Answer,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) -> Time {
        let service = self.invoke(Task::Answered(id, answer), context);
        match answer {
            Answer::Ack => {
                self.send.channels.deals(id.channel, id.transaction, service, &context.parameters.send);
            }
            Answer::Nack(_) => self.agent_stage(id.channel, service, context),
        }
        service.began
    }

    /// The agent deals with an answer.
    pub(super) fn deal_with_answer(
        &mut self,
        id: CellId,
        answer: Answer,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        let CellId { channel, transaction, attempt, .. } = id;
        let (channels, parameters) = (&mut self.send.channels, &context.parameters.send);
        match answer {
            Answer::Ack => {
                if channels.acknowledge(channel, transaction, parameters).is_some() {
                    self.deal_with_ack(channel, transaction, context);
                }
            }
            Answer::Nack(refusal) => {
                if !channels.refuse(channel, transaction, attempt, parameters) {
                    // Of an earlier attempt.
                } else if refusal == Refusal::Protection {
                    self.give_up_at_once(channel, TransferError::Protection, context);
                } else {
                    channels.restart(channel, transaction, parameters);
                }
            }
        }
    }

    /// The timer of a channel has fired: its blocks come to the agent.
    pub(super) fn time_is_up(
        &mut self,
        channel: ChannelId,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        let (due, timer) = self.send.channels.due(channel, context.now, &context.parameters.send);
        if let Some(timer) = timer {
            context.callbacks.wake(timer, Task::Timeout(channel));
        }
        let edge = context.parameters.send.clock.edge_at_or_after(context.now);
        for transaction in due {
            context.callbacks.wake(edge, Task::Expired(channel, transaction));
        }
    }

    /// The agent deals with a block whose time is up.
    pub(super) fn deal_with_due(
        &mut self,
        channel: ChannelId,
        transaction: u32,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        let Expired { again, give_up, .. } = self.expired(channel, Some(transaction), context);
        if give_up {
            self.give_up_at_once(channel, TransferError::TimedOut, context);
        }
        for transaction in again {
            self.send.channels.restart(channel, transaction, &context.parameters.send);
        }
    }

    fn give_up_at_once(
        &mut self,
        channel: ChannelId,
        error: TransferError,
        context: &mut EngineContext<'_, impl RdmaCallbacks>,
    ) {
        if self.send.channels.abort(channel, &context.parameters.send) {
            self.give_up(channel, error, context);
        }
    }
}
