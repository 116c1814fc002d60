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

use crate::matching::{Owner, Posted};
use crate::nic::{Envelope, EnvelopeKind, Nic, SendToken};
use crate::process::{Incoming, Message, Outgoing, Process, SendState};
use crate::protocol::{Protocol, Rendezvous};
use crate::work::Work;
use weft_trace::op::SendMode;
use weft_units::RankId;

impl Process {
    /// Announces a message.
    pub(crate) fn send_rendezvous(&mut self, message: &Message, protocol: &Protocol, nic: &mut impl Nic) {
        let envelope = self.envelope(EnvelopeKind::RequestToSend, message);
        let mut message = *message;
        if message.mode == SendMode::Buffered {
            nic.spend_in_memory(Work::MemoryCopy, protocol.copy(message.bytes));
            self.complete(message.owner, protocol, nic);
            message.owner = Owner::Nobody;
        }
        let send = self.remember(&message, SendState::Announced, envelope);
        self.announce(send, protocol, nic);
    }

    /// Announces a message that is remembered.
    pub(crate) fn announce(&mut self, send: u32, protocol: &Protocol, nic: &mut impl Nic) {
        let Outgoing { to, envelope, .. } = self.sends[send as usize];
        nic.spend(Work::ControlSend, protocol.control_send);
        nic.post(to, Envelope { send, ..envelope }, protocol.control_bytes, SendToken::UNAWAITED);
    }

    /// An announced message has met its receive.
    pub(crate) fn receive_announced(
        &mut self,
        envelope: &Envelope,
        posted: &Posted,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        if envelope.source == self.rank {
            let outgoing = self.sends.remove(envelope.send as usize);
            nic.spend_in_memory(Work::MemoryCopy, protocol.copy(envelope.bytes));
            self.complete(outgoing.owner, protocol, nic);
            if let Owner::Live(key) = posted.owner {
                nic.received(key, envelope);
            }
            self.complete(posted.owner, protocol, nic);
            return;
        }
        let incoming = Incoming { owner: posted.owner, envelope: *envelope };
        let receive = self.receives.insert(incoming) as u32;
        if let Owner::Live(key) = posted.owner {
            nic.announced(key, receive, envelope);
        }
        let announced = Envelope { receive, ..*envelope };
        match protocol.rendezvous {
            Rendezvous::Write => self.control(EnvelopeKind::ClearToSend, &announced, protocol, nic),
            Rendezvous::Read => {
                nic.spend(Work::DataSend, protocol.data_send);
                let read = Envelope { kind: EnvelopeKind::Read, source: self.rank, ..announced };
                nic.post(envelope.source, read, protocol.control_bytes, SendToken::UNAWAITED);
            }
        }
    }

    /// The receive is there: the data goes out.
    pub(crate) fn clear_to_send(
        &mut self,
        from: RankId,
        envelope: &Envelope,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        nic.spend(Work::ControlReceive, protocol.control_receive);
        let awaits_ack = protocol.sender_awaits_ack();
        let outgoing = &mut self.sends[envelope.send as usize];
        outgoing.state = if awaits_ack { SendState::Unacknowledged } else { SendState::Posted };
        let bytes = outgoing.envelope.bytes;
        nic.spend(Work::DataSend, protocol.data_send);
        let token = if awaits_ack { SendToken::UNAWAITED } else { SendToken::of(envelope.send) };
        let data = Envelope { kind: EnvelopeKind::Data, source: self.rank, ..*envelope };
        nic.post(from, data, protocol.data_header + bytes, token);
    }

    /// The announced data is there.
    pub(crate) fn data_arrived(&mut self, envelope: &Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        nic.spend(Work::ReceiveMessage, protocol.receive_message);
        let incoming = self.receives.remove(envelope.receive as usize);
        if let EnvelopeKind::Announce(access) = incoming.envelope.kind {
            return self.answer(access, &incoming.envelope, protocol, nic);
        }
        if let Owner::Live(key) = incoming.owner {
            nic.received(key, &Envelope { receive: envelope.receive, ..incoming.envelope });
        }
        if protocol.sender_awaits_ack() {
            self.control(EnvelopeKind::Ack, envelope, protocol, nic);
        }
        self.send_receipt(&incoming.envelope, protocol, nic);
        if incoming.owner == Owner::Active {
            self.handle(&incoming.envelope, protocol, nic);
        }
        self.complete(incoming.owner, protocol, nic);
    }

    /// The receiver has the data.
    pub(crate) fn acknowledged(&mut self, envelope: &Envelope, protocol: &Protocol, nic: &mut impl Nic) {
        nic.spend(Work::ControlReceive, protocol.control_receive);
        self.gone_out(envelope.send as usize, protocol, nic);
    }

    /// The data of a send has gone out, and need not be kept: it completes, if it waits for nothing else.
    pub(crate) fn gone_out(&mut self, key: usize, protocol: &Protocol, nic: &mut impl Nic) {
        let outgoing = &mut self.sends[key];
        if outgoing.envelope.receive != 0 && outgoing.state != SendState::Receipted {
            outgoing.state = SendState::Unreceipted;
            return;
        }
        let outgoing = self.sends.remove(key);
        self.complete(outgoing.owner, protocol, nic);
    }

    /// Answers the sender of `envelope` with a control message.
    pub(crate) fn control(
        &mut self,
        kind: EnvelopeKind,
        envelope: &Envelope,
        protocol: &Protocol,
        nic: &mut impl Nic,
    ) {
        nic.spend(Work::ControlSend, protocol.control_send);
        let answer = Envelope { kind, source: self.rank, ..*envelope };
        nic.post(envelope.source, answer, protocol.control_bytes, SendToken::UNAWAITED);
    }
}
