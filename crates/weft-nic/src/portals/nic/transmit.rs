//! The sending side: messages take turns, packets get their numbers, and what is not acknowledged is kept.

use super::PortalsParameters;
use super::packet::{self, ACKNOWLEDGEMENT, DATA, DATAGRAM};
use crate::host::{Message, Primitive};
use crate::overheads::watched::Watched;
use crate::transport::{FlowId, FlowKind, Repeat, Sender, Sequence};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::collections::VecDeque;
use weft_fabric::{Addressing, ClassTag, HeaderBits, MulticastGroup, Packet, Part};
use weft_units::{Bytes, EndpointId, Span, Time};

/// A message of which not all packets have been sent.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Outgoing {
    pub to: EndpointId,
    pub number: u32,
    pub bytes: Bytes,
    pub sent: Bytes,
    /// The time from which its first packet may go.
    pub posted: Time,
    pub kind: FlowKind,
    pub token: Option<u32>,
    /// The place among those that are not acknowledged; none, where it is for a group.
    pub place: Option<u32>,
    pub class: ClassTag,
}

impl Outgoing {
    /// The part of the message and the payload of its next packet.
    #[inline]
    fn next_piece(&self, payload: Bytes) -> (Part, u32) {
        let bytes = (self.bytes - self.sent).min(payload);
        (if bytes == self.bytes { Part::Whole } else { Part::Piece }, bytes.get() as u32)
    }

    fn is_for_group(&self) -> bool {
        self.place.is_none()
    }
}

/// A packet of a message, as it is kept until it is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    pub message: u32,
    /// The place of the message among those that are not acknowledged.
    pub place: u32,
    pub bytes: u32,
    pub is_whole: bool,
    pub watch: bool,
    pub class: ClassTag,
}

/// A message that is not acknowledged whole.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Unacknowledged {
    pub number: u32,
    pub missing: Bytes,
    /// A message without bytes has one packet, too.
    pub is_empty: bool,
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

/// The next packet of a side, or why there is none.
pub(super) enum Next {
    Answer(Answer),
    Repeat(Repeat<Piece>, Option<Time>),
    Data {
        outgoing: Outgoing,
        piece: Piece,
        sequence: Option<(Sequence, Option<Time>)>,
        last: bool,
    },
    /// Nothing before this time.
    NotBefore(Time),
}

#[derive(Serialize, Deserialize)]
pub(super) struct Transmit {
    /// In the order in which they are posted.
    queue: VecDeque<Outgoing>,
    /// Which of the concurrent messages sends next.
    turn: u32,
    next_number: u32,
    pub next_packet: Time,
    pub answers: VecDeque<Answer>,
    pub sender: Sender<Piece>,
    pub messages: Slab<Unacknowledged>,
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

    /// Takes a message of a traffic class over, whose first packet may go at `posted`. Returns its number
    /// and its place among those that are not acknowledged.
    pub fn accept<H>(
        &mut self,
        (message, class): (&Message<H>, ClassTag),
        posted: Time,
        parameters: &PortalsParameters,
    ) -> (u32, Option<u32>) {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        let Message { to, bytes, token, interface, primitive, .. } = *message;
        let response = primitive == Primitive::WriteBack;
        let class_number = class.class().unwrap_or(0);
        let kind = FlowKind { response, unordered: !parameters.ordered, service: false, class: class_number };
        let place = MulticastGroup::of(to).is_none().then(|| {
            let is_empty = bytes == Bytes::ZERO;
            self.messages.insert(Unacknowledged { number, missing: bytes, is_empty, token, interface }) as u32
        });
        let outgoing = Outgoing { to, number, bytes, sent: Bytes::ZERO, posted, kind, token, place, class };
        match self.queue.back() {
            Some(last) if last.posted > posted => {
                let turn = self.queue.partition_point(|other| other.posted <= posted);
                self.queue.insert(turn, outgoing);
            }
            _ => self.queue.push_back(outgoing),
        }
        (number, place)
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
            Ok(next) => next,
            Err(time) => Next::NotBefore(later.min(time)),
        }
    }

    /// The next packet of a message; or when there may be one.
    fn next_data(
        &mut self,
        now: Time,
        parameters: &PortalsParameters,
        admits: impl Fn(Option<ClassTag>) -> bool,
    ) -> Result<Next, Time> {
        let ready = self.queue.partition_point(|outgoing| outgoing.posted <= now);
        let channels = ready.min(parameters.channels as usize);
        // Those behind are looked at where none of the first may go.
        let in_turn = (0..channels).map(|step| (self.turn as usize + step) % channels);
        let mut found = None;
        for place in in_turn.chain(channels..ready) {
            let outgoing = &self.queue[place];
            let flow = FlowId { peer: outgoing.to, kind: outgoing.kind };
            let is_free = outgoing.is_for_group() || self.sender.has_room(flow, &parameters.transport);
            if is_free && admits(Some(outgoing.class)) {
                found = Some(place);
                break;
            }
        }
        let Some(place) = found else {
            return Err(self.queue.get(ready).map_or(Time::NEVER, |outgoing| outgoing.posted));
        };
        let outgoing = &mut self.queue[place];
        let (part, bytes) = outgoing.next_piece(parameters.payload);
        outgoing.sent += Bytes::new(u64::from(bytes));
        let last = outgoing.sent == outgoing.bytes;
        let outgoing = *outgoing;
        if last {
            self.queue.remove(place);
        }
        self.turn = place as u32 + u32::from(!last);
        let Outgoing { number: message, place, class, .. } = outgoing;
        let is_whole = part == Part::Whole;
        let piece = Piece { message, place: place.unwrap_or_default(), bytes, is_whole, watch: false, class };
        let sequence = place.is_some().then(|| {
            let flow = FlowId { peer: outgoing.to, kind: outgoing.kind };
            self.sender.send(flow, piece, now, &parameters.transport)
        });
        Ok(Next::Data { outgoing, piece, sequence, last })
    }

    /// A packet of a message has been acknowledged. Returns the message, where it was the last.
    pub fn settle(&mut self, piece: Piece) -> Option<Unacknowledged> {
        let place = piece.place as usize;
        let message = self.messages.get_mut(place).filter(|message| message.number == piece.message)?;
        message.missing -= Bytes::new(u64::from(piece.bytes));
        let is_done = message.is_empty || message.missing == Bytes::ZERO;
        is_done.then(|| self.messages.remove(place))
    }

    /// Gives a message up. `None`: it has been before.
    pub fn withdraw(&mut self, number: u32, place: u32) -> Option<Unacknowledged> {
        // Its place may be another's by now.
        self.messages.get(place as usize).filter(|message| message.number == number)?;
        let message = self.messages.remove(place as usize);
        self.queue.retain(|outgoing| outgoing.number != number);
        self.watched.withdraw(number);
        Some(message)
    }
}

/// The packet of a piece.
pub(super) fn packet_of(
    piece: &Piece,
    (source, destination): (EndpointId, EndpointId),
    numbered: Option<(FlowKind, Sequence)>,
) -> Packet {
    let addressing = Addressing { source, destination, message: piece.message };
    let part = if piece.is_whole { Part::Whole } else { Part::Piece };
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
pub(super) fn packet_of_answer(source: EndpointId, answer: &Answer) -> Packet {
    let Answer { to: destination, message, kind, sequence, .. } = *answer;
    let addressing = Addressing { source, destination, message };
    let mut made = Packet::new(addressing, 0, packet::pack(kind, sequence), Part::Whole);
    made.label = ACKNOWLEDGEMENT;
    made
}
