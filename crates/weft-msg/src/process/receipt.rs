//! Synchronous sends that are sent as others are, and whose receive sends a receipt.
//!
//! ```text
//!   sender                          receiver
//!   issend ── Eager ─────────────────▶ matched, received       up to the eager limit
//!          ◀─────────────── Receipt ──
//!   complete
//!
//!   issend ── RequestToSend, …, Data ─▶ received               beyond
//!          ◀─────────────── Receipt ──
//!   complete with the receipt, and when the data has gone out
//! ```
//! The receipt is a message without data of the library's own: it has posted a receive for it.
//!
//! # Source
//! MPICH 5.0, `src/mpid/ch4/netmod/ofi/ofi_send.h` (`MPIDI_OFI_send_normal`: `fi_trecv` of the
//! acknowledgement, `MPIDI_OFI_SYNC_SEND` in the tag) and `ofi_events.c` (`MPIDI_OFI_send_ack` where the
//! receive has completed).

use super::rank::Rank;
use crate::envelope::{Body, Envelope, SendEntry};
use crate::protocol::{SynchronousSends, cost};
use crate::sends::{MessageToSend, SendState};
use crate::transport::Transport;
use crate::work::Work;

impl<T: Transport> Rank<'_, T> {
    /// Sends a message that completes with its receipt.
    pub(super) fn send_with_receipt(&mut self, message: &MessageToSend) {
        let protocol = self.protocol;
        self.spend(Work::ReceiveCall, protocol.receive_call);
        if message.bytes > protocol.eager_limit {
            return self.announce(message, true);
        }
        let send = self.process.sends.keep(message, SendState::Unreceipted, true);
        self.spend(Work::SendCopy, cost(protocol.send_copy_rate, message.bytes));
        let body = message.content.eager(Some(send));
        self.post(message.to, message.bytes, body, protocol.eager_header + message.bytes);
    }

    /// A message of another rank has been received: its sender gets a receipt, if it waits for one.
    pub(super) fn send_receipt(&mut self, received: &Envelope) {
        if self.protocol.synchronous_sends != SynchronousSends::Receipt {
            return;
        }
        let send = match received.body {
            Body::Eager { receipt: Some(send), .. } | Body::RequestToSend { send, receipt: true, .. } => send,
            _ => return,
        };
        self.spend(Work::SendCall, self.protocol.send_call);
        self.post(received.source, received.bytes, Body::Receipt { send }, self.protocol.eager_header);
    }

    /// A message of this rank has been received.
    pub(super) fn receipted(&mut self, send: SendEntry) {
        self.spend(Work::ReceiveMessage, self.protocol.receive_message);
        let looked_at = 1 + self.process.matching.posted().count() as u64;
        self.spend(Work::Matching, self.protocol.matching_entry * looked_at);
        if let Some(owner) = self.process.sends.receipted(send) {
            self.complete(owner);
        }
    }
}
