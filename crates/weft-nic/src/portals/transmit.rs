//! The sending side: messages take turns, packets get their numbers, and what is not acknowledged is kept.

use super::PortalsParameters;
use super::packet::{self, ACKNOWLEDGEMENT, DATA, DATAGRAM};
use crate::host::{Message, Primitive};
use crate::overheads::watched::Watched;
use crate::transport::{FlowId, FlowKind, Repeat, Sender, Sequence};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::VecDeque;
use weft_fabric::{Addressing, ClassTag, HeaderBits, MessagePart, MulticastGroup, Packet};
use weft_units::{Bytes, EndpointId, Span, Time};

/// The place of a message of one packet whose end nobody is told.
const NOWHERE: u32 = u32::MAX;

/// A message of which not all packets have been sent.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct SendingMessage {
    pub to: EndpointId,
    pub number: u32,
    pub bytes: Bytes,
    pub sent: Bytes,
    /// The time from which its first packet may go.
    pub posted: Time,
    pub kind: FlowKind,
    pub token: Option<u32>,
    /// The place among the messages of which somebody is told, or [`NOWHERE`].
    place: u32,
    pub class: ClassTag,
}

impl SendingMessage {
    /// The part of the message and the payload of its next packet.
    #[inline]
    fn next_piece(&self, payload: Bytes) -> (MessagePart, u32) {
        let bytes = (self.bytes - self.sent).min(payload);
        (if bytes == self.bytes { MessagePart::Whole } else { MessagePart::Piece }, bytes.get() as u32)
    }

    fn is_for_group(&self) -> bool {
        MulticastGroup::of(self.to).is_some()
    }
}

/// A packet of a message, as it is kept until it is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    pub message: u32,
    /// The place of the message among those of which somebody is told, or [`NOWHERE`].
    place: u32,
    pub bytes: u32,
    pub is_whole: bool,
    pub watch: bool,
    pub class: ClassTag,
}

/// A message that is not acknowledged whole. There is none for one whose only packet says as much as this.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Unacknowledged {
    number: u32,
    missing: Bytes,
    /// A message without bytes has one packet, too.
    is_empty: bool,
    pub token: Option<u32>,
    pub interface: u16,
}

/// An acknowledgement that is to be sent.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Answer {
    pub ready: Time,
    pub to: EndpointId,
    pub message: u32,
    pub kind: FlowKind,
    pub sequence: Sequence,
}

/// A packet of a message, sent for the first time.
#[derive(Clone, Copy)]
pub(super) struct Supplied {
    pub to: EndpointId,
    pub kind: FlowKind,
    pub piece: Piece,
    /// `None`: it is for a group.
    pub sequence: Option<Sequence>,
    /// The time to set a timer for, if none is pending.
    pub timer: Option<Time>,
    /// Whether it is the last of its message.
    pub last: bool,
    pub token: Option<u32>,
}

/// The next packet of a side, or why there is none.
pub(super) enum Next {
    Answer(Answer),
    Repeat(Repeat<Piece>, Option<Time>),
    Data(Supplied),
    /// Nothing before this time.
    NotBefore(Time),
}

#[derive(Serialize, Deserialize)]
pub(super) struct Transmit {
    /// In the order in which they are posted.
    queue: VecDeque<SendingMessage>,
    /// Which of the concurrent messages sends next.
    turn: u32,
    next_number: u32,
    pub next_packet: Time,
    pub answers: VecDeque<Answer>,
    pub sender: Sender<Piece>,
    messages: Slab<Unacknowledged>,
    /// Messages that are not acknowledged, and not among these.
    others: usize,
    /// Time that packets have taken the transmit engine.
    pub worked: Span,
    pub watched: Watched,
}

impl Default for Transmit {
    fn default() -> Transmit {
        Transmit {
            queue: VecDeque::new(),
            turn: 0,
            next_number: 0,
            next_packet: Time::ZERO,
            answers: VecDeque::new(),
            sender: Sender::default(),
            messages: Slab::new(),
            others: 0,
            worked: Span::ZERO,
            watched: Watched::default(),
        }
    }
}

impl Transmit {
    /// Messages that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Messages of which not all packets are sent and acknowledged.
    pub fn unfinished(&self) -> usize {
        self.waiting().max(self.messages.len() + self.others)
    }

    /// The number of the next message.
    #[inline]
    pub fn take_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        number
    }

    /// Takes a message of a traffic class over, whose first packet may go at `posted`.
    #[inline]
    pub fn accept<H>(
        &mut self,
        number: u32,
        (message, class): (&Message<H>, ClassTag),
        posted: Time,
        parameters: &PortalsParameters,
    ) {
        let Message { to, bytes, token, interface, primitive, purpose, .. } = *message;
        let kind = FlowKind {
            response: primitive == Primitive::WriteBack,
            unordered: !parameters.ordered,
            service: purpose.is_service,
            class: class.class().unwrap_or(0),
        };
        let is_untold = bytes <= parameters.costs.payload && token.is_none() && interface == 0;
        let mut place = NOWHERE;
        if MulticastGroup::of(to).is_none() {
            if is_untold {
                self.others += 1;
            } else {
                let is_empty = bytes == Bytes::ZERO;
                let message = Unacknowledged { number, missing: bytes, is_empty, token, interface };
                place = self.messages.insert(message) as u32;
            }
        }
        let outgoing =
            SendingMessage { to, number, bytes, sent: Bytes::ZERO, posted, kind, token, place, class };
        match self.queue.back() {
            Some(last) if last.posted > posted => {
                let turn = self.queue.partition_point(|other| other.posted <= posted);
                self.queue.insert(turn, outgoing);
            }
            _ => self.queue.push_back(outgoing),
        }
    }

    /// When there will be a packet, as far as is known.
    #[inline]
    pub fn ready(&self) -> Time {
        if self.sender.has_repeats() {
            return self.next_packet;
        }
        let answer = self.answers.front().map_or(Time::NEVER, |answer| answer.ready);
        let data = self.queue.front().map_or(Time::NEVER, |outgoing| outgoing.posted);
        answer.min(data).max(self.next_packet)
    }

    /// The next packet: acknowledgements first, then what is repeated, then messages in turn. `admits` says
    /// whether the network takes a packet of a class now; `None`: an acknowledgement.
    #[inline]
    pub fn next(
        &mut self,
        now: Time,
        parameters: &PortalsParameters,
        admits: impl Fn(Option<ClassTag>) -> bool,
    ) -> Next {
        let mut later = Time::NEVER;
        if let Some(answer) = self.answers.front() {
            if answer.ready > now {
                later = answer.ready;
            } else if admits(None)
                && let Some(answer) = self.answers.pop_front()
            {
                return Next::Answer(answer);
            }
        }
        if self.sender.has_repeats()
            && self.sender.next_repeat().is_none_or(|piece| admits(Some(piece.class)))
            && let Some((repeat, timer)) = self.sender.take_repeat(now, &parameters.transport)
        {
            return Next::Repeat(repeat, timer);
        }
        match self.next_data(now, parameters, admits) {
            Ok(supplied) => Next::Data(supplied),
            Err(time) => Next::NotBefore(later.min(time)),
        }
    }

    /// The next packet of a message; or when there may be one.
    #[inline]
    fn next_data(
        &mut self,
        now: Time,
        parameters: &PortalsParameters,
        admits: impl Fn(Option<ClassTag>) -> bool,
    ) -> Result<Supplied, Time> {
        let ready = match self.queue.back() {
            Some(last) if last.posted <= now => self.queue.len(),
            _ => self.queue.partition_point(|outgoing| outgoing.posted <= now),
        };
        let channels = ready.min(parameters.costs.channels as usize);
        let turn = self.turn as usize;
        let turn = if turn < channels { turn } else { turn.checked_rem(channels).unwrap_or(0) };
        // Those behind are looked at where none of the first may go.
        for place in (turn..channels).chain(0..turn).chain(channels..ready) {
            if admits(Some(self.queue[place].class))
                && let Some(supplied) = self.send_of(place, now, parameters)
            {
                return Ok(supplied);
            }
        }
        Err(self.queue.get(ready).map_or(Time::NEVER, |outgoing| outgoing.posted))
    }

    /// Sends the next packet of a message, by its place in the queue. `None`: its flow has no room.
    #[inline]
    fn send_of(&mut self, queued: usize, now: Time, parameters: &PortalsParameters) -> Option<Supplied> {
        let outgoing = &mut self.queue[queued];
        let SendingMessage { to, number: message, kind, token, place, class, .. } = *outgoing;
        let (part, bytes) = outgoing.next_piece(parameters.costs.payload);
        let piece =
            Piece { message, place, bytes, is_whole: part == MessagePart::Whole, watch: false, class };
        let (sequence, timer) = match outgoing.is_for_group() {
            true => (None, None),
            false => {
                let flow = FlowId { peer: to, kind };
                let (sequence, timer) = self.sender.send(flow, piece, now, &parameters.transport)?;
                (Some(sequence), timer)
            }
        };
        outgoing.sent += Bytes::new(u64::from(bytes));
        let last = outgoing.sent == outgoing.bytes;
        if last && queued == 0 {
            self.queue.pop_front();
        } else if last {
            self.queue.remove(queued);
        }
        self.turn = queued as u32 + u32::from(!last);
        Some(Supplied { to, kind, piece, sequence, timer, last, token })
    }

    /// A packet of a message has been acknowledged. Returns the message, where it was the last and somebody
    /// is told.
    #[inline]
    pub fn settle(&mut self, piece: Piece) -> Option<Unacknowledged> {
        if piece.place == NOWHERE {
            self.others -= 1;
            return None;
        }
        let place = piece.place as usize;
        let message = self.messages.get_mut(place).filter(|message| message.number == piece.message)?;
        message.missing -= Bytes::new(u64::from(piece.bytes));
        let is_done = message.is_empty || message.missing == Bytes::ZERO;
        is_done.then(|| self.messages.remove(place))
    }

    /// Gives the message of a packet up. `None`: it has been before.
    #[cold]
    pub fn withdraw(&mut self, piece: Piece) -> Option<Unacknowledged> {
        let (number, place) = (piece.message, piece.place as usize);
        if piece.place == NOWHERE {
            self.others -= 1;
            self.watched.withdraw(number);
            let (missing, is_empty) = (Bytes::new(u64::from(piece.bytes)), piece.bytes == 0);
            return Some(Unacknowledged { number, missing, is_empty, token: None, interface: 0 });
        }
        // Its place may be another's by now.
        self.messages.get(place).filter(|message| message.number == number)?;
        let message = self.messages.remove(place);
        self.queue.retain(|outgoing| outgoing.number != number);
        self.watched.withdraw(number);
        Some(message)
    }
}

/// The packet of a piece.
#[inline]
pub(super) fn packet_of(
    piece: &Piece,
    (source, destination): (EndpointId, EndpointId),
    numbered: Option<(FlowKind, Sequence)>,
) -> Packet {
    let addressing = Addressing { source, destination, message: piece.message };
    let part = if piece.is_whole { MessagePart::Whole } else { MessagePart::Piece };
    let carried = numbered.map_or(HeaderBits::EMPTY, |(kind, sequence)| packet::pack(kind, sequence));
    let mut made = Packet::new(addressing, piece.bytes, carried, part);
    made.label = if numbered.is_some() { DATA } else { DATAGRAM };
    // Where the routing spreads blocks, packets of an ordered flow take one path, others one by message.
    let is_ordered = numbered.is_some_and(|(kind, _)| !kind.unordered);
    let block = if is_ordered { 1 } else { piece.message.wrapping_add(1) };
    let mut made = made.in_block(block).of_class(piece.class);
    made.watch(piece.watch);
    made
}

/// The packet of an acknowledgement.
#[inline]
pub(super) fn packet_of_answer(source: EndpointId, answer: &Answer) -> Packet {
    let Answer { to: destination, message, kind, sequence, .. } = *answer;
    let addressing = Addressing { source, destination, message };
    let mut made = Packet::new(addressing, 0, packet::pack(kind, sequence), MessagePart::Whole);
    made.label = ACKNOWLEDGEMENT;
    made
}
