//! Rendezvous: long and synchronous messages are announced, and sent when the receive is there.
//!
//! ```text
//!   rendezvous = write                           rendezvous = read
//!   sender                  receiver             sender                  receiver
//!   isend ── RequestToSend ─▶ matched            isend ── RequestToSend ─▶ matched
//!         ◀─ ClearToSend ───                     interface ◀─ Read ──────
//!         ── Data ─────────▶ complete            interface ── Data ──────▶ complete
//!         ◀─ Ack, where the protocol has one           ◀─ Ack ───────────
//!   complete with the Ack, or when the           complete with the Ack
//!   interface has taken the data
//! ```
//! Writing, the receiver tells where to, and the sender hands the data to its interface when it notices;
//! or the clear to send starts the transfer in the sender's interface itself (`clear_to_send =
//! interface`): then the sender's processor spends nothing and no progress rule applies. Reading, the
//! announcement tells where from, and the receiver fetches the data without the sender's processor.
//!
//! # Source
//! TR-488 §5.2.1, Fig. 11, where RDMA writes the data and the acknowledgement ends the exchange. It says
//! that the clear to send "targets the mailbox of senders's RDMA" and that "process A setups the RDMA
//! transfer": either reading is a value of `clear_to_send`. Synchronous sends of any size go this way,
//! as in Open MPI, unless they ask for a receipt (see `receipt`).
//!
//! # Not modelled
//! The variant of §5.2.1 that both sides begin, with matching at both. Addresses in the clear to send: the
//! receiver knows where its data goes, and who waits for the notification.

use super::rank::Rank;
use crate::envelope::{Body, Envelope, ReceiveEntry, SendEntry};
use crate::matching::Owner;
use crate::protocol::Rendezvous;
use crate::receives::PendingReceive;
use crate::sends::{MessageToSend, SendState};
use crate::transport::{SendToken, Transport};
use crate::work::Work;
use weft_trace::op::SendMode;
use weft_units::{Address, RankId};

impl<T: Transport> Rank<'_, T> {
    /// Announces a message. If it is buffered, its send completes with that.
    pub(super) fn send_rendezvous(&mut self, mut message: MessageToSend) {
        if message.mode == SendMode::Buffered {
            self.transport.spend_in_memory(Work::MemoryCopy, self.protocol.copy(message.bytes));
            self.complete(message.owner);
            message.owner = Owner::Nobody;
        }
        self.announce(&message, false);
    }

    /// Announces a message, whose receive may have to send a receipt.
    pub(super) fn announce(&mut self, message: &MessageToSend, receipt: bool) {
        let send = self.process.sends.keep(message, SendState::Announced, receipt);
        self.post_control(message.to, message.bytes, message.content.announcement(send, receipt));
    }

    /// An announced message has met the receive of `owner`, into `buffer`.
    pub(super) fn receive_announced(
        &mut self,
        envelope: &Envelope,
        send: SendEntry,
        (owner, buffer): (Owner, Address),
    ) {
        if envelope.source == self.process.rank {
            return self.receive_own_announced(envelope, send, owner);
        }
        let receive = self.process.receives.insert(PendingReceive { owner, announced: *envelope, buffer });
        if let Owner::Live(key) = owner {
            self.transport.announced(key, receive, envelope);
        }
        let (to, bytes) = (envelope.source, envelope.bytes);
        match self.protocol.rendezvous {
            Rendezvous::Write => self.post_control(to, bytes, Body::ClearToSend { send, receive }),
            Rendezvous::Read => {
                self.spend(Work::DataSend, self.protocol.data_send);
                self.post(to, bytes, Body::Read { send, receive }, self.protocol.control_bytes);
            }
        }
    }

    /// A message of the rank to itself that was not copied away has met the receive of `owner`.
    fn receive_own_announced(&mut self, envelope: &Envelope, send: SendEntry, owner: Owner) {
        let sent = self.process.sends.take(send);
        self.transport.spend_in_memory(Work::MemoryCopy, self.protocol.copy(envelope.bytes));
        self.complete(sent.owner);
        self.tell_received(owner, None, envelope);
        self.complete(owner);
    }

    /// The receive is there: the data goes out.
    pub(super) fn clear_to_send(&mut self, from: RankId, send: SendEntry, receive: ReceiveEntry) {
        let protocol = self.protocol;
        self.spend(Work::ControlReceive, protocol.control_receive);
        let (next, token) = match protocol.sender_awaits_ack() {
            true => (SendState::Unacknowledged, SendToken::UNAWAITED),
            false => (SendState::Posted, SendToken::of_send(send)),
        };
        let bytes = self.process.sends.clear(send, next);
        self.spend(Work::DataSend, protocol.data_send);
        let envelope = self.envelope(bytes, Body::Data { send, receive });
        self.hand_over(from, envelope, protocol.data_header + bytes, token);
    }

    /// The announced data is there.
    pub(super) fn data_arrived(&mut self, send: SendEntry, receive: ReceiveEntry) {
        let pending = self.process.receives.take(receive);
        if let Envelope { source, bytes, body: Body::Active { message }, .. } = pending.announced {
            return self.data_read(message, source, bytes);
        }
        self.spend(Work::ReceiveMessage, self.protocol.receive_message);
        let announced = &pending.announced;
        let Envelope { source, bytes, .. } = *announced;
        if let Body::Announce { access, send, window } = announced.body {
            return self.answer(access, announced, (send, window));
        }
        self.tell_received(pending.owner, Some(receive), announced);
        if self.protocol.sender_awaits_ack() {
            self.post_control(source, bytes, Body::Ack { send, receive });
        }
        self.send_receipt(announced);
        if let Body::AnnounceActive { message, .. } = announced.body {
            self.handle(message, source, bytes);
        }
        self.complete(pending.owner);
    }

    /// The receiver has the data.
    pub(super) fn acknowledged(&mut self, send: SendEntry) {
        self.spend(Work::ControlReceive, self.protocol.control_receive);
        self.gone_out(send);
    }

    /// The data of a send has gone out, and need not be kept: it completes, if it waits for nothing else.
    pub(super) fn gone_out(&mut self, send: SendEntry) {
        if let Some(owner) = self.process.sends.gone_out(send) {
            self.complete(owner);
        }
    }
}
