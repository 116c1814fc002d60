//! Eager messages: sent without asking, and messages of a rank to itself.
//!
//! ```text
//!   sender                         receiver
//!   isend ── Eager(envelope+data) ──▶ matched: copied out, receive complete
//!   complete when copied or taken     not matched: unexpected queue
//! ```

use crate::matching::{Owner, Posted};
use crate::nic::{Envelope, EnvelopeKind, Nic, SendToken};
use crate::process::{Message, Process, SendState};
use crate::protocol::{Protocol, cost};
use crate::work::Work;
use weft_trace::op::SendMode;

impl Process {
    /// Sends a message that fits the eager limit.
    pub(crate) fn send_eager(&mut self, message: &Message, protocol: &Protocol, nic: &mut impl Nic) {
        nic.spend(Work::SendCopy, cost(protocol.send_copy_rate, message.bytes));
        let payload = protocol.eager_header + message.bytes;
        let envelope = self.envelope(EnvelopeKind::Eager, message);
        if protocol.eager_buffered || message.mode == SendMode::Buffered {
            nic.post(message.to, envelope, payload, SendToken::UNAWAITED);
            self.complete(message.owner, protocol, nic);
        } else {
            let key = self.remember(message, SendState::Posted, envelope);
            nic.post(message.to, envelope, payload, SendToken::of(key));
        }
    }

    /// Sends a message to the rank itself: it never meets the interface. Small or buffered, it is
    /// copied away; otherwise the send completes when the receive has copied it.
    pub(crate) fn send_to_self(&mut self, message: &Message, protocol: &Protocol, nic: &mut impl Nic) {
        let copied = message.mode != SendMode::Synchronous
            && (message.bytes <= protocol.eager_limit || message.mode == SendMode::Buffered);
        let envelope = if copied {
            nic.spend_in_memory(Work::MemoryCopy, protocol.copy(message.bytes));
            self.complete(message.owner, protocol, nic);
            self.envelope(EnvelopeKind::Eager, message)
        } else {
            let envelope = self.envelope(EnvelopeKind::RequestToSend, message);
            let send = self.remember(message, SendState::Unmatched, envelope);
            Envelope { send, ..envelope }
        };
        self.arrived(envelope, protocol, nic);
    }

    /// An eager message has met its receive.
    pub(crate) fn receive_eager(
        &mut self,
        envelope: &Envelope,
        posted: &Posted,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        if envelope.source == self.rank {
            nic.spend_in_memory(Work::MemoryCopy, protocol.copy(envelope.bytes));
        } else {
            nic.spend(Work::ReceiveCopy, cost(protocol.receive_copy_rate, envelope.bytes));
        }
        if let Owner::Live(key) = posted.owner {
            nic.received(key, envelope);
        }
        if envelope.source != self.rank {
            self.send_receipt(envelope, protocol, nic);
        }
        self.complete(posted.owner, protocol, nic);
    }
}
