//! Reliable connections of the overheads interface: what it keeps for them, and their packets.
//!
//! ```text
//!  label          59                    24 23                0
//!                 ┌───────────────────────┬───────────────────┐
//!  data, answers  │ queue pair and class  │ sequence number   │   data: ask for an acknowledgement or not
//!                 └───────────────────────┴───────────────────┘   answers: acknowledgement or NAK; the
//!                                                                 message's number says what has come beyond
//! ```

use super::{Announcement, Leaving, OverheadsHosted, OverheadsNode, OverheadsTimer, Withdrawal};
use crate::block::Block;
use crate::connection::{
    AckState, Connection, ConnectionParameters, Psn, QueuePair, Receiver, Repeat, Sender, Verdict,
};
use crate::failure::{Failure, FailureReason};
use crate::host::{Host, Message};
use crate::message_table::MessageTable;
use crate::observer::{Observer as _, Stage};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::{
    Addressing, ClassTag, HeaderBits, Injection, MessagePart, MulticastGroup, Packet, PacketLabel,
};
use weft_units::{CountLedger, EndpointId, Time};

/// A packet of a message.
const DATA: PacketLabel = PacketLabel::data(1);
/// The same, which asks for an acknowledgement.
const ASKING_DATA: PacketLabel = PacketLabel::data(2);
/// An acknowledgement.
const ACKNOWLEDGEMENT: PacketLabel = PacketLabel::acknowledgement(3);
/// An acknowledgement that says that a packet is missing.
const NAK: PacketLabel = PacketLabel::acknowledgement(4);

/// A packet of a message, as it is kept until it is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    message: u32,
    bytes: u32,
    is_whole: bool,
    watch: bool,
    class: ClassTag,
}

/// A message that is not acknowledged whole.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Unacknowledged {
    /// Packets that are not acknowledged, those that have not been sent included.
    packets: u64,
    token: Option<u32>,
    interface: u16,
}

/// An acknowledgement that is to be sent.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Answer {
    ready: Time,
    connection: Connection,
    content: AckState,
}

/// The reliable connections of an interface.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Reliable {
    sender: Sender<Piece>,
    receiver: Receiver,
    messages: MessageTable<Unacknowledged>,
    answers: VecDeque<Answer>,
    pub ledger: CountLedger,
}

/// The virtual interfaces of a message, and its class, as a connection has them.
#[inline]
pub(super) fn pair_of<T>(message: &Message<T>, class: ClassTag) -> QueuePair {
    let class = class.class().map_or(0, |class| class + 1);
    QueuePair { from: message.interface, to: message.to_interface, class }
}

fn header_of(pair: QueuePair, number: Psn) -> HeaderBits {
    HeaderBits::from_bits(pair.bits() << Psn::BITS | u64::from(number.bits()))
}

fn read_header(packet: &Packet) -> (Connection, Psn) {
    let bits = packet.carried.bits();
    let pair = QueuePair::from_bits(bits >> Psn::BITS);
    (Connection { peer: packet.source, pair }, Psn::from_bits(bits as u32))
}

impl Reliable {
    /// Messages that are not acknowledged whole.
    pub fn unfinished(&self) -> usize {
        self.messages.len()
    }

    /// The earliest time at which it has a packet, beside those of messages that go for the first time.
    pub fn ready(&self) -> Time {
        let answer = self.answers.front().map_or(Time::NEVER, |answer| answer.ready);
        if self.sender.repeats() { Time::ZERO } else { answer }
    }

    /// Whether a connection's window has room for another packet. Messages for a group need none.
    pub fn has_room(&self, to: EndpointId, pair: QueuePair, parameters: &ConnectionParameters) -> bool {
        MulticastGroup::of(to).is_some() || self.sender.has_room(Connection { peer: to, pair }, parameters)
    }

    /// The interface has taken a message over, which has so many packets.
    pub fn accept<T>(&mut self, number: u32, message: &Message<T>, packets: u64) {
        if MulticastGroup::of(message.to).is_none() {
            let Message { to, token, interface, .. } = *message;
            self.messages.insert((to, number), Unacknowledged { packets, token, interface });
        }
    }
}

/// The number of a packet, and whether it asks for an acknowledgement.
#[derive(Clone, Copy)]
struct Numbered {
    connection: Connection,
    number: Psn,
    asks: bool,
}

impl Numbered {
    /// The packet of a piece.
    fn packet(&self, piece: &Piece, source: EndpointId, parameters: &ConnectionParameters) -> Packet {
        let Numbered { connection, number, asks } = *self;
        let addressing = Addressing { source, destination: connection.peer, message: piece.message };
        let part = if piece.is_whole { MessagePart::Whole } else { MessagePart::Piece };
        let mut packet = Packet::new(addressing, piece.bytes, header_of(connection.pair, number), part);
        packet.label = if asks { ASKING_DATA } else { DATA };
        // Where the routing spreads blocks, packets that must come in order take one path, others one by
        // message.
        let block = if parameters.takes_in_order() { 1 } else { piece.message.wrapping_add(1) };
        let mut packet = packet.in_block(block).of_class(piece.class);
        packet.watch(piece.watch);
        packet
    }
}

impl<H: Host> OverheadsNode<'_, '_, '_, H> {
    /// The packet of a message, sent for the first time.
    pub(super) fn first_time(&mut self, leaving: &Leaving, watch: bool) -> Option<Packet> {
        let Leaving { to, number: message, bytes, part, last, class, pair, .. } = *leaving;
        let reliable = self.hardware.reliable.as_deref_mut()?;
        if MulticastGroup::of(to).is_some() {
            return None;
        }
        let is_whole = part == MessagePart::Whole;
        let piece = Piece { message, bytes: bytes.get() as u32, is_whole, watch, class };
        let (connection, parameters) = (Connection { peer: to, pair }, &self.parameters.reliability);
        let sent = reliable.sender.send(connection, (piece, self.fabric.now()), parameters);
        if let Some(at) = sent.timer {
            self.fabric.set_timer(at, OverheadsTimer::Retransmission);
        }
        let numbered = Numbered { connection, number: sent.number, asks: last || sent.asks };
        Some(numbered.packet(&piece, self.fabric.endpoint(), parameters))
    }

    /// The next packet beside those of messages that go for the first time: an acknowledgement, or a packet
    /// that is sent again.
    #[inline(never)]
    pub(super) fn answer_or_repeat(&mut self) -> Option<Packet> {
        let (now, endpoint) = (self.fabric.now(), self.fabric.endpoint());
        let parameters = &self.parameters.reliability;
        let reliable = self.hardware.reliable.as_deref_mut()?;
        let admits_all = self.fabric.admits_all();
        let bytes = parameters.ack_bytes.get() as u32;
        if let Some(answer) = reliable.answers.front().filter(|answer| answer.ready <= now)
            && (admits_all || self.fabric.admits(ACKNOWLEDGEMENT, MessagePart::Whole, bytes))
        {
            let Answer { connection, content, .. } = *answer;
            reliable.answers.pop_front();
            reliable.ledger.counts.acknowledgements += 1;
            let ends = Addressing { source: endpoint, destination: connection.peer, message: content.beyond };
            let header = header_of(connection.pair, content.expected);
            let mut packet = Packet::new(ends, bytes, header, MessagePart::Whole);
            packet.label = if content.is_negative { NAK } else { ACKNOWLEDGEMENT };
            return Some(packet);
        }
        let (connection, piece) = reliable.sender.next_repeat()?;
        if !admits_all && !self.fabric.admits_class_to(connection.peer, piece.class, piece.bytes) {
            return None;
        }
        let (repeat, timer) = reliable.sender.take_repeat(now, parameters)?;
        reliable.ledger.counts.resent += 1;
        if let Some(at) = timer {
            self.fabric.set_timer(at, OverheadsTimer::Retransmission);
        }
        let Repeat { connection, number, packet: piece, sent } = repeat;
        if piece.watch {
            let (source, message, block) = (endpoint, piece.message, Block::TIMEOUT);
            let (came, began, ended) = (sent, now, now);
            self.fabric.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
        Some(Numbered { connection, number, asks: true }.packet(&piece, endpoint, parameters))
    }

    /// An acknowledgement has come. The interface is done with it at `done`.
    fn acknowledged(&mut self, connection: Connection, content: AckState, done: Time) {
        let (now, parameters) = (self.fabric.now(), &self.parameters.reliability);
        let Some(reliable) = self.hardware.reliable.as_deref_mut() else { return };
        let Some(settled) = reliable.sender.acknowledged(connection, content, now, parameters) else {
            return;
        };
        if let Some(at) = settled.timer {
            self.fabric.set_timer(at, OverheadsTimer::Retransmission);
        }
        for piece in settled.packets {
            let name = (connection.peer, piece.message);
            let Some(message) = reliable.messages.get_mut(name) else { continue };
            message.packets -= 1;
            if message.packets > 0 {
                continue;
            }
            let token = message.token;
            reliable.messages.remove(name);
            if let Some(token) = token {
                self.fabric.set_timer(done, OverheadsTimer::Sent(token));
            }
        }
        // There are packets to be sent again, or there is room in the window.
        self.fabric.request_injection();
    }
}

impl<H: Host> OverheadsHosted<'_, '_, '_, H> {
    /// A packet of a reliable connection has come undamaged. The interface is done with it at `done`.
    #[inline(never)]
    pub(super) fn received_reliably(&mut self, packet: &Packet, done: Time) {
        let (connection, number) = read_header(packet);
        let parameters = &self.node.parameters.reliability;
        let Some(reliable) = self.node.hardware.reliable.as_deref_mut() else { return };
        if packet.label.is_acknowledgement() {
            let (expected, beyond, is_negative) = (number, packet.message, packet.label == NAK);
            let content = AckState { expected, beyond, is_negative };
            return self.node.acknowledged(connection, content, done);
        }
        let asks = packet.label == ASKING_DATA;
        let (verdict, answer) = reliable.receiver.receive(connection, (number, asks), parameters);
        reliable.ledger.counts.duplicates += u64::from(verdict == Verdict::Repeated);
        if let Some(content) = answer {
            reliable.answers.push_back(Answer { ready: done, connection, content });
            self.node.fabric.request_injection();
        }
        // A message that was withdrawn, while its packets were on their way, is not announced any more.
        let name = (packet.source, packet.message);
        if verdict == Verdict::Take && self.node.hardware.incoming.get(name).is_some() {
            self.take(packet, done);
        }
    }

    /// Time may be up for packets.
    #[cold]
    pub(super) fn expired(&mut self) {
        let (now, parameters) = (self.node.fabric.now(), &self.node.parameters.reliability);
        let Some(reliable) = self.node.hardware.reliable.as_deref_mut() else { return };
        let Some(expired) = reliable.sender.expired(now, parameters) else { return };
        reliable.ledger.counts.timeouts += expired.timeouts;
        if let Some(next) = expired.timer {
            self.node.fabric.set_timer(next, OverheadsTimer::Retransmission);
        }
        for failed in expired.failed {
            let Connection { peer: to, pair } = failed.connection;
            let withdrawal = Withdrawal { pair, next: failed.next };
            for piece in failed.packets {
                let number = piece.message;
                let reliable = self.node.hardware.reliable.as_deref_mut();
                let Some(message) = reliable.and_then(|own| own.messages.remove((to, number))) else {
                    continue; // with another of its packets
                };
                let transmit = &mut self.node.hardware.transmit;
                transmit.queue.retain(|outgoing| outgoing.number != number);
                transmit.watched.withdraw(number);
                self.node.fabric.announce(to, number, Announcement::Withdrawn(withdrawal));
                let Unacknowledged { token, interface, .. } = message;
                let reason = FailureReason::TimedOut;
                self.fail(&Failure { to, number, interface, token, reason });
            }
        }
        self.node.fabric.request_injection();
    }

    /// A message has been withdrawn by its sender, with all that its connection had under way.
    #[cold]
    pub(super) fn withdrawn(&mut self, (from, message): (EndpointId, u32), withdrawal: Withdrawal) {
        let Withdrawal { pair, next } = withdrawal;
        self.node.hardware.incoming.remove((from, message));
        if let Some(reliable) = self.node.hardware.reliable.as_deref_mut() {
            reliable.receiver.skip_to(Connection { peer: from, pair }, next);
        }
    }

    /// The next packet where the machine has reliable connections: answers and what goes again come first.
    #[inline(never)]
    pub(super) fn inject_reliably(&mut self) -> Injection {
        let node = &mut self.node;
        let (now, next) = (node.fabric.now(), node.hardware.transmit.next_packet);
        if next > now {
            return Injection::NotBefore(next);
        }
        if let Some(packet) = node.answer_or_repeat() {
            let transmit = &mut node.hardware.transmit;
            transmit.next_packet = now + node.parameters.send_packet;
            transmit.worked = transmit.worked.saturating_add(node.parameters.send_packet);
            return Injection::Packet(packet);
        }
        let later = |hosted: &Self, time: Time| {
            let reliable = hosted.node.hardware.reliable.as_deref();
            // What is ready has no place in the network, and is asked for again when it has.
            let ready = reliable.map_or(Time::NEVER, Reliable::ready);
            Injection::not_before(time.min(if ready > now { ready } else { Time::NEVER }))
        };
        match self.inject_message::<true>() {
            Injection::NotBefore(time) => later(self, time),
            Injection::Nothing => later(self, self.node.hardware.transmit.next_post(now)),
            packet => packet,
        }
    }
}
