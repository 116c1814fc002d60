//! The way of a request of a read through the interface that has the data: the send unit's mailbox decides on
//! it, answers its packetizer, and the host hands the unit the descriptor that the request's words are.
//!
//! # Not modelled
//! The words in the packet: as of all messages, the host knows from its header what is asked for. A request
//! of more than the host lets others read is acknowledged, and refused by a small message of the host.

use super::header::Header;
use super::node::ExanetNode;
use super::transmit::Answer;
use super::wire::RequestWords;
use super::{ExanetTimer, announcement::Expected};
use crate::host::{Delivered, Host};
use crate::mailbox::{Envelope, Refusal};
use crate::observer::Stage;
use crate::ports::{Arrival, Crossing, SmallPacket, Verdict};
use crate::rdma::{CameRequest, RDMA_MAILBOX};
use weft_fabric::Packet;

impl<H: Host> ExanetNode<'_, '_, '_, H> {
    /// The tail of a request has come.
    pub(super) fn request_arrived(&mut self, packet: &Packet) {
        let (now, parameters) = (self.fabric.now(), &self.parameters.rdma.send);
        let due = self.hardware.rdma.requests().arrive(*packet, now, parameters);
        self.fabric.set_timer(due, ExanetTimer::Request);
    }

    /// The verdict on a request is due. Returns the request if a read channel is free for it.
    pub(super) fn decide_on_request(&mut self) -> Option<Delivered<H::Header>> {
        let (now, endpoint) = (self.fabric.now(), self.fabric.endpoint());
        let CameRequest { packet, look } = self.hardware.rdma.requests().take_due()?;
        let Some(Header::ReadRequest(channel)) = Header::of(&packet) else { return None };
        // Channels of transfers that have ended by now are free.
        self.retire_due();
        let Packet { source: from, message: number, hops, .. } = packet;
        let damaged = self.hardware.check.finds(&packet, endpoint, self.parameters.check)
            || packet.payload() != RequestWords::SIZE;
        let expected = self.hardware.headers.get((from, number)).copied();
        let target = expected.map(|expected| (expected.interface(), expected.transfer.domain));
        let verdict = match target {
            Some((interface, domain)) => {
                let owner = self.hardware.packetizer.domain(interface);
                let envelope = Envelope { interface, domain, damaged };
                self.hardware.rdma.judge(&envelope, owner, &self.parameters.rdma.send)
            }
            None if damaged => Err(Refusal::Damaged),
            None => Ok(()),
        };
        let refusal = verdict.err();
        if target.is_none() && refusal.is_none() {
            self.hardware.ledger().counts.duplicates += 1;
        }
        self.hardware.transmit.answer(now, Answer { to: from, message: number, channel, refusal });
        self.port(|| {
            let (head, bytes) = (look.came - packet.serialization(), packet.payload());
            let owner = Some(Header::owner_of(&packet));
            let packet = SmallPacket {
                head,
                from,
                message: number,
                channel,
                bytes,
                target: owner,
                damaged,
                payload: None,
            };
            let verdict = Verdict { checked: now, refusal, put: refusal.is_none() && target.is_some() };
            Crossing::RequestArrived { tail: look.came, arrival: Arrival { packet, verdict } }
        });
        self.fabric.request_injection();
        let expected = expected.filter(|_| refusal.is_none())?;
        self.hardware.headers.remove((from, number));
        if let Some(data) = &mut self.hardware.data {
            data.memory.forget(from, number);
        }
        if packet.is_watched() {
            let (source, message, block) = (from, number, RDMA_MAILBOX);
            let (came, began, ended) = (look.came, look.began, look.ended);
            self.stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
        let Expected { created_at, header, transfer, .. } = expected;
        Some(Delivered {
            noticed: now,
            from,
            number,
            bytes: transfer.bytes,
            created_at,
            hops,
            channel: 0,
            header,
            interface: expected.interface(),
            in_mailbox: false,
        })
    }
}
