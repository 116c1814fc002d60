//! Sends and receives, and messages that are sent eagerly: without asking.
//!
//! ```text
//!   sender                         receiver
//!   isend ── Eager(envelope+data) ──▶ matched: copied out, receive complete
//!   complete when copied or taken     not matched: unexpected queue
//! ```
//! A message of a rank to itself never meets the interface. Small or buffered, it is copied away; otherwise
//! its send completes when the receive has copied it.

use super::rank::Rank;
use crate::communicator::CommIndex;
use crate::envelope::{Body, Envelope};
use crate::error::MsgError;
use crate::matching::{Owner, PostedReceive};
use crate::protocol::{SynchronousSends, WaitCosts, cost};
use crate::sends::{Content, MessageToSend, SendState};
use crate::transport::{GroupPosting, SendToken, Transport};
use crate::work::Work;
use weft_trace::op::SendMode;
use weft_units::RankId;

impl<T: Transport> Rank<'_, T> {
    /// Sends a message.
    #[inline]
    pub(super) fn send(&mut self, mut message: MessageToSend) {
        let protocol = self.protocol;
        if message.mode == SendMode::Buffered && protocol.wait_costs == WaitCosts::Polls {
            // MPICH looks after the buffered sends before it (`MPIR_Bsend_check_active`).
            self.spend(Work::WaitCall, protocol.wait_call);
        }
        let to_self = message.to == self.process.rank;
        if !to_self || !protocol.keeps_own_messages() {
            self.spend(Work::SendCall, protocol.send_call);
        }
        let is_buffered = protocol.buffered_limit.is_some_and(|limit| message.bytes <= limit);
        if matches!(message.mode, SendMode::Standard | SendMode::Ready) && is_buffered {
            message.mode = SendMode::Buffered;
        }
        let synchronous = message.mode == SendMode::Synchronous;
        if to_self {
            self.send_to_self(&message);
        } else if synchronous && protocol.synchronous_sends == SynchronousSends::Receipt {
            self.send_with_receipt(&message);
        } else if message.bytes <= protocol.eager_limit && !synchronous {
            self.send_eager(&message);
        } else {
            self.send_rendezvous(message);
        }
    }

    /// Sends a message that fits the eager limit.
    fn send_eager(&mut self, message: &MessageToSend) {
        let protocol = self.protocol;
        self.spend(Work::SendCopy, cost(protocol.send_copy_rate, message.bytes));
        let (body, payload) = (message.content.eager(None), protocol.eager_header + message.bytes);
        if protocol.completes_at_once(message.mode) {
            self.post(message.to, message.bytes, body, payload);
            self.complete(message.owner);
        } else {
            let send = self.process.sends.keep(message, SendState::Posted, false);
            let envelope = self.envelope(message.bytes, body);
            self.hand_over(message.to, envelope, payload, SendToken::of_send(send));
        }
    }

    /// Sends a message once to all other members of a communicator.
    pub(super) fn multicast(&mut self, comm: CommIndex, message: &MessageToSend) {
        let protocol = self.protocol;
        self.spend(Work::SendCall, protocol.send_call);
        self.spend(Work::DataSend, protocol.data_send);
        let Content::Matched(matching) = message.content else { return };
        let send = self.process.sends.keep(message, SendState::Posted, false);
        let envelope = self.envelope(message.bytes, Body::Multicast { matching });
        let (payload, token) = (protocol.data_header + message.bytes, SendToken::of_send(send));
        let posting = GroupPosting { envelope, payload, buffer: message.buffer, token };
        self.transport.multicast(self.process.communicators.group(comm), posting);
    }

    /// Sends a message to the rank itself.
    fn send_to_self(&mut self, message: &MessageToSend) {
        let copied = message.mode != SendMode::Synchronous
            && (message.bytes <= self.protocol.eager_limit || message.mode == SendMode::Buffered);
        let body = if copied {
            self.transport.spend_in_memory(Work::MemoryCopy, self.protocol.copy(message.bytes));
            self.complete(message.owner);
            message.content.eager(None)
        } else {
            let send = self.process.sends.keep(message, SendState::Unmatched, false);
            message.content.announcement(send, false)
        };
        self.arrived(Envelope::new(self.process.rank, message.bytes, body));
    }

    /// Posts a receive, which may find its message in the unexpected queue.
    #[inline]
    pub(super) fn receive(&mut self, receive: PostedReceive) {
        let protocol = self.protocol;
        if receive.source != Some(self.process.rank) || !protocol.keeps_own_messages() {
            self.spend(Work::ReceiveCall, protocol.receive_call);
        }
        let found = self.process.matching.post(receive);
        self.look_at(found.scanned, receive.source);
        if let Some(envelope) = found.entry {
            self.matched(&envelope, &receive);
        }
    }

    /// Looks at so many entries for a message of `source`. One of the rank itself is matched elsewhere where
    /// the library keeps such from its interface.
    fn look_at(&mut self, entries: u64, source: Option<RankId>) {
        if source != Some(self.process.rank) || !self.protocol.keeps_own_messages() {
            self.spend(Work::Matching, self.protocol.matching_entry * entries);
        }
    }

    /// A message to be matched is there: a receive may wait for it.
    pub(super) fn arrived(&mut self, envelope: Envelope) {
        let found = self.process.matching.arrive(envelope);
        self.look_at(found.scanned, Some(envelope.source));
        if let Some(receive) = found.entry {
            self.matched(&envelope, &receive);
        }
    }

    /// A message has met its receive.
    pub(super) fn matched(&mut self, envelope: &Envelope, receive: &PostedReceive) {
        // A real rank sees to it itself: it is an error of its one operation.
        let live = matches!(receive.owner, Owner::Live(_));
        if envelope.bytes > receive.bytes && !live {
            self.process.fail_later(MsgError::Truncated {
                source_rank: envelope.source,
                tag: envelope.matching().map_or(0, |matching| matching.context.number()),
                message: envelope.bytes,
                buffer: receive.bytes,
            });
        }
        match envelope.body {
            Body::RequestToSend { send, .. } => {
                self.receive_announced(envelope, send, (receive.owner, receive.buffer))
            }
            // The data is in place: the receive was posted before it was sent.
            Body::Multicast { .. } => self.complete(receive.owner),
            _ => self.receive_eager(envelope, receive.owner),
        }
    }

    /// An eager message has met its receive.
    fn receive_eager(&mut self, envelope: &Envelope, owner: Owner) {
        let to_self = envelope.source == self.process.rank;
        if to_self {
            self.transport.spend_in_memory(Work::MemoryCopy, self.protocol.copy(envelope.bytes));
        } else {
            self.spend(Work::ReceiveCopy, cost(self.protocol.receive_copy_rate, envelope.bytes));
        }
        self.tell_received(owner, None, envelope);
        if !to_self {
            self.send_receipt(envelope);
        }
        self.complete(owner);
    }
}
