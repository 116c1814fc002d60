//! The way in from the network: the consequences of each kind of packet.

use super::announcement::Expected;
use super::header::Header;
use super::node::ExanetNode;
use super::post::{Post, Posted, channel_report};
use super::wire::{self, PacketFields};
use super::{Announcement, ExanetTimer};
use crate::block::Block;
use crate::edge_form::ChannelExpiry;
use crate::failure::{Failure, FailureReason};
use crate::host::{Delivered, Host};
use crate::mailbox::Refusal;
use crate::observer::Stage;
use crate::packetizer::{ChannelId, ChannelState, EnginePacket, PACKETIZER, Packetizer, Parcel};
use crate::ports::{BlockReply, Crossing, SmallAnswer};
use crate::rdma::ReceiveUnit;
use crate::reliability::Expiry;
use weft_fabric::{Announced, Packet};
use weft_units::{Address, Span, Time};

/// The answer to a small message that a packet is.
fn small_answer(packet: &Packet, header: Header) -> Option<SmallAnswer> {
    let (channel, refusal) = match header {
        Header::Acknowledgement(channel) => (channel, None),
        Header::Refused(channel, refusal) => (channel, Some(refusal)),
        _ => return None,
    };
    let Packet { source: from, message, .. } = *packet;
    Some(SmallAnswer { from, message, channel, refusal, damaged: packet.is_corrupted() })
}

/// The consequence of a packet for the host.
pub(super) enum Notice<T> {
    /// A message has come.
    Message(Delivered<T>),
    /// A message of the host has failed.
    Failure(Failure),
}

impl<H: Host> ExanetNode<'_, '_, '_, H> {
    /// Another interface has announced something of a message, which goes to `address`.
    pub(super) fn announced(&mut self, announced: Announced<Announcement<H::Header>>, address: Address) {
        let Announced { from, message, content } = announced;
        let (headers, data) = (&mut self.hardware.headers, self.hardware.data.as_mut());
        match content {
            Announcement::Header(words) => {
                if let Some(data) = data {
                    data.memory.expect(from, message, words.bytes);
                }
                let expected = Expected::new(words, message, self.fabric.endpoint(), address);
                headers.insert((from, message), expected);
            }
            Announcement::Transfer { first } => {
                if let Some(expected) = headers.get_mut((from, message)) {
                    expected.transfer.first = first;
                }
            }
            Announcement::Withdrawn => {
                headers.remove((from, message));
                if let Some(data) = data {
                    data.memory.forget(from, message);
                }
            }
            Announcement::Read { cell, offset } => {
                if let Some(data) = data {
                    data.memory.cell_read(from, message, cell, offset);
                }
            }
            Announcement::Words(words) => {
                if let Some(data) = data {
                    data.memory.words((from, message), &words);
                }
            }
        }
    }

    /// The tail of a packet has come.
    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet) -> Option<Notice<H::Header>> {
        debug_assert!(self.agrees_with_wire(packet), "{packet:?}");
        match Header::cell_of(packet) {
            Some(id) => self.cell(packet, id).map(Notice::Message),
            None => self.other_packet(packet),
        }
    }

    /// Whether the bytes of a packet say what this interface takes it for. Where the machine is too large for
    /// them, or the message is not known any more, they say nothing.
    fn agrees_with_wire(&self, packet: &Packet) -> bool {
        let expected = self.hardware.headers.get((packet.source, packet.message));
        let (transfer, cut) = (expected.map(|expected| &expected.transfer), &self.parameters.rdma.send.cut);
        let Ok(control) = wire::packet(packet, transfer, cut, &[]) else { return true };
        let Ok(PacketFields { target, header, size, source, .. }) = PacketFields::decode(&control, &[])
        else {
            return false;
        };
        let is_for_here = target.place.node() == self.fabric.endpoint();
        let is_for_message = transfer.is_none_or(|transfer| {
            let owner = (transfer.domain, transfer.destination.space);
            let named = (target.place.domain(), u32::from(target.interface()));
            match header {
                Header::Small(_) | Header::ReadRequest(_) => named == owner,
                Header::Cell(id) => {
                    let address = ReceiveUnit::place(transfer, id, cut).address.get();
                    named == owner && target.place.address() == address
                }
                _ => true,
            }
        });
        let taken_for = (Header::of(packet), packet.bytes, packet.source);
        is_for_here && is_for_message && taken_for == (Some(header), size, source)
    }

    /// A packet has come that is no cell.
    #[inline(never)]
    fn other_packet(&mut self, packet: &Packet) -> Option<Notice<H::Header>> {
        let header = Header::of(packet)?;
        if (self.hardware.watched || self.hardware.in_place.is_some()) && !self.crosses_port(packet, header) {
            return None;
        }
        match header {
            Header::Small(channel) => self.small(packet, channel).map(Notice::Message),
            Header::ReadRequest(_) => {
                self.request_arrived(packet);
                None
            }
            // It is known by its label, and taken before.
            Header::Cell(_) => None,
            Header::Reduction(id, step) => {
                self.reduction_packet(packet, id, step);
                None
            }
            Header::BlockAnswer(id, answer) if packet.is_corrupted() => {
                let reply = BlockReply { from: packet.source, id, answer, taken: None };
                self.port(|| Crossing::BlockAnswered(reply));
                None
            }
            // A damaged answer says nothing: the packet will be repeated.
            _ if packet.is_corrupted() => None,
            Header::BlockAnswer(id, answer) => {
                self.block_answer(packet.source, id, answer);
                None
            }
            Header::Acknowledgement(_) | Header::Refused(..) => {
                let answer = small_answer(packet, header)?;
                self.small_answered(&answer).map(Notice::Failure)
            }
        }
    }

    /// Reports a packet at the port of its block, where that is wanted. Returns whether it is what it seems:
    /// another block in the model's place may find that an answer is none.
    #[cold]
    fn crosses_port(&mut self, packet: &Packet, header: Header) -> bool {
        match header {
            Header::Acknowledgement(_) | Header::Refused(..) => self.answers_channel(packet, header),
            Header::Reduction(id, step) => {
                self.module_packet_arrived(packet, id, step);
                true
            }
            _ => true,
        }
    }

    /// Whether an answer to the packetizer is one.
    fn answers_channel(&mut self, packet: &Packet, header: Header) -> bool {
        let Some(answer) = small_answer(packet, header) else { return false };
        let now = self.fabric.now();
        self.port(|| Crossing::Answered(answer));
        let Some(packetizer) = self.hardware.packetizer_in_place() else { return true };
        let answered = match answer.refusal {
            None => ChannelState::Acknowledged,
            Some(_) => ChannelState::NegativelyAcknowledged,
        };
        packetizer.answer(&answer, now) == Some(answered)
    }

    /// Compares the bytes of a message that has come whole, where messages carry real ones.
    pub(super) fn compare(&mut self, message: &Delivered<H::Header>) {
        if let Some(data) = &mut self.hardware.data {
            data.compare(message, self.fabric.endpoint(), self.fabric.output());
        }
    }

    /// A mailbox has answered a packet of this packetizer.
    fn small_answered(&mut self, answer: &SmallAnswer) -> Option<Failure> {
        let (now, watched) = (self.fabric.now(), self.hardware.watched);
        let packetizer = &mut self.hardware.packetizer;
        let parcel = packetizer.answered(now, answer, &mut channel_report(self.fabric, watched))?;
        match answer.refusal {
            None => {
                self.acknowledged(&parcel);
                None
            }
            Some(refusal) => self.refused(&parcel, refusal),
        }
    }

    /// A mailbox has a packet of this packetizer.
    fn acknowledged(&mut self, parcel: &Parcel) {
        if let Some(token) = parcel.token.filter(|_| parcel.acknowledged) {
            // The process loads the channel's status again and again: until the next load comes by, and back
            // with what it has found, half a round trip each.
            let noticed = self.fabric.now() + self.parameters.host_port.round_trip;
            self.fabric.set_timer(noticed, ExanetTimer::Sent(token));
        }
        self.serve_waiting(parcel.interface);
    }

    /// A mailbox has refused a packet of this packetizer.
    #[cold]
    fn refused(&mut self, parcel: &Parcel, refusal: Refusal) -> Option<Failure> {
        let now = self.fabric.now();
        let again = |refused, pause: Span| {
            Some(Post { at: now + pause, what: Posted::Small(Parcel { refused, ..*parcel }) })
        };
        let (post, reason) = match refusal {
            Refusal::Full => {
                let refused = parcel.refused.saturating_add(1);
                (again(refused, Packetizer::pause(refused, &self.parameters.packetizer)), None)
            }
            Refusal::Damaged => (again(parcel.refused.max(1), Span::ZERO), None),
            Refusal::Domain => (None, Some(FailureReason::Domain)),
            Refusal::Interface => (None, Some(FailureReason::NoInterface)),
        };
        // A process that waits for a channel comes before the packet that is posted again.
        self.serve_waiting(parcel.interface);
        if let Some(post) = post {
            self.post(post);
        }
        reason.map(|reason| self.withdraw(parcel, reason))
    }

    /// Channels of an interface have become free.
    fn serve_waiting(&mut self, interface: u16) {
        while self.hardware.packetizer.waiting() > 0 {
            let packetizer = &mut self.hardware.packetizer;
            let next = packetizer.next_waiting(
                interface,
                &self.parameters.packetizer,
                &mut channel_report(self.fabric, self.hardware.watched),
            );
            let Some((since, parcel, channel)) = next else { break };
            self.store(since, channel, parcel);
        }
        // There may be space for an offer of the host, too.
        self.fabric.request_injection();
    }

    /// A message will not arrive any more: the receiver forgets its header.
    fn withdraw(&mut self, parcel: &Parcel, reason: FailureReason) -> Failure {
        let Parcel { interface, to, message: number, token, .. } = *parcel;
        self.fabric.announce(to, number, Announcement::Withdrawn);
        Failure { to, number, interface, token, reason }
    }

    /// The retransmission timer of a channel has fired.
    pub(super) fn channel_expired(&mut self, channel: ChannelId) -> Option<Failure> {
        let (now, parameters) = (self.fabric.now(), &self.parameters.packetizer);
        let hardware = &mut *self.hardware;
        let mut expiry = hardware.packetizer.timer_fired(now, channel, parameters);
        let mut made_again = None;
        if let Expiry::Repeat | Expiry::GiveUp = expiry
            && let Some(message) = hardware.packetizer.parcel(channel).map(|parcel| parcel.message)
            && let Some(packetizer) = hardware.packetizer_in_place()
        {
            expiry = match packetizer.expire(channel, message, now) {
                ChannelExpiry::Repeated(made) => {
                    made_again = Some(made);
                    Expiry::Repeat
                }
                ChannelExpiry::GivenUp => Expiry::GiveUp,
            };
        }
        let watched = hardware.watched;
        let parcel = hardware.packetizer.expire(channel, expiry, &mut channel_report(self.fabric, watched));
        if matches!(expiry, Expiry::Repeat | Expiry::GiveUp) {
            self.hardware.ledger().counts.timeouts += 1;
        }
        match expiry {
            Expiry::Settled => None,
            Expiry::NotBefore(at) => {
                self.fabric.set_timer(at, ExanetTimer::Retransmission(channel));
                None
            }
            Expiry::Repeat => {
                let Parcel { message, watch, .. } = *self.hardware.packetizer.parcel(channel)?;
                let up = Packetizer::repetition(now, &parameters.clock);
                if watch {
                    let waited = self.hardware.packetizer.waited(channel, parameters);
                    let since = Time::from_ps(up.as_ps().saturating_sub(waited.as_ps()));
                    let (endpoint, block) = (self.fabric.endpoint(), Block::TIMEOUT);
                    let (source, came, began, ended) = (endpoint, since, since, up);
                    self.stage(&Stage { endpoint, source, message, block, came, began, ended });
                }
                self.make_again(channel, message, made_again);
                self.fabric.request_injection();
                None
            }
            Expiry::GiveUp => {
                self.serve_waiting(channel.interface);
                parcel.map(|parcel| self.withdraw(&parcel, FailureReason::TimedOut))
            }
        }
    }
}

impl<H: Host> ExanetNode<'_, '_, '_, H> {
    /// The engine makes a packet again whose time is up, by `found` where another has found that, and behind
    /// it those whose stores are still on their way.
    fn make_again(&mut self, channel: ChannelId, message: u32, found: Option<Time>) {
        let (now, parameters) = (self.fabric.now(), &self.parameters.packetizer);
        let up = Packetizer::repetition(now, &parameters.clock);
        let hardware = &mut *self.hardware;
        let later = hardware.packetizer.take_back(up, &mut hardware.transmit.small);
        let made = hardware.packetizer.start_as(up, found, parameters).ended;
        self.make(EnginePacket { came: now, made, channel, message });
        for packet in later {
            let EnginePacket { came, made: before, channel, message } = packet;
            let hardware = &mut *self.hardware;
            let found = hardware.packetizer_in_place().map(|block| block.made_behind(channel, message, now));
            let made = hardware.packetizer.start_as(came, found, parameters).ended;
            if hardware.packetizer.parcel(channel).is_some_and(|parcel| parcel.watch) {
                let (endpoint, block) = (self.fabric.endpoint(), PACKETIZER);
                let (source, came, began, ended) = (endpoint, before, made, made);
                self.stage(&Stage { endpoint, source, message, block, came, began, ended });
            }
            self.make(EnginePacket { made, ..packet });
        }
    }

    fn make(&mut self, packet: EnginePacket) {
        let EnginePacket { made, channel, message, .. } = packet;
        self.hardware.transmit.small.push_back(packet);
        self.port(|| Crossing::Made { channel, message, made });
    }
}
