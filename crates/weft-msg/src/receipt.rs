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
//! MPICH 5.0, `src/mpid/ch4/netmod/ofi/ofi_send.h` (`MPIDI_OFI_send_normal`: `fi_trecv` of the acknowledgement, `MPIDI_OFI_SYNC_SEND`
//! in the tag) and `ofi_events.c` (`MPIDI_OFI_send_ack` where the receive has completed).

use crate::nic::{Envelope, EnvelopeKind, Nic, SendToken};
use crate::process::{Message, Process, SendState};
use crate::protocol::{Protocol, SynchronousSends, cost};
use crate::work::Work;

impl Process {
    /// Sends a message that completes with its receipt.
    pub(crate) fn send_with_receipt(&mut self, message: &Message, protocol: &Protocol, nic: &mut impl Nic) {
        nic.spend(Work::ReceiveCall, protocol.receive_call);
        let eager = message.bytes <= protocol.eager_limit;
        let (kind, state) = match eager {
            true => (EnvelopeKind::Eager, SendState::Unreceipted),
            false => (EnvelopeKind::RequestToSend, SendState::Announced),
        };
        let send = self.remember(message, state, self.envelope(kind, message));
        let envelope = &mut self.sends[send as usize].envelope;
        envelope.receive = send + 1;
        if eager {
            let envelope = *envelope;
            nic.spend(Work::SendCopy, cost(protocol.send_copy_rate, message.bytes));
            nic.post(message.to, envelope, protocol.eager_header + message.bytes, SendToken::UNAWAITED);
        } else {
            self.announce(send, protocol, nic);
        }
    }

    /// A message of another rank has been received: its sender gets a receipt, if it waits for one.
    pub(crate) fn send_receipt(&mut self, received: &Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        if protocol.synchronous_sends != SynchronousSends::Receipt {
            return;
        }
        let Some(send) = received.receive.checked_sub(1) else { return };
        nic.spend(Work::SendCall, protocol.send_call);
        let receipt =
            Envelope { kind: EnvelopeKind::Receipt, source: self.rank, send, receive: 0, ..*received };
        nic.post(received.source, receipt, protocol.eager_header, SendToken::UNAWAITED);
    }

    /// A message of this rank has been received.
    pub(crate) fn receipted(&mut self, envelope: &Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        nic.spend(Work::ReceiveMessage, protocol.receive_message);
        let looked_at = 1 + self.matching.posted().count() as u64;
        nic.spend(Work::Matching, protocol.matching_entry * looked_at);
        let outgoing = &mut self.sends[envelope.send as usize];
        if outgoing.state == SendState::Unreceipted {
            let outgoing = self.sends.remove(envelope.send as usize);
            self.complete(outgoing.owner, protocol, nic);
        } else {
            outgoing.state = SendState::Receipted;
        }
    }
}
