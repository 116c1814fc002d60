//! The overheads interface: overheads per message and per packet, no blocks.
//!
//! ```text
//!  host ─ send ─► per-message overhead ─► round robin over channels ─► per-packet overhead ─► fabric
//!  host ◄ deliver ─ per-message overhead ◄─ whole? ◄─ per-packet overhead ◄──────────────────── fabric
//! ```
//! Over reliable connections ([`connection`](crate::connection)) packets are acknowledged, and sent again; a
//! message is then done at its sender when all of it is acknowledged. Without them a message that loses a
//! packet, or gets one corrupted, never arrives.
//!
//! # Not modelled
//! Descriptors, completion queues, translation, the host's bus: the block-level interface has them.
//! Reliability of messages for a group, which nobody acknowledges.

mod reliable;
pub(crate) mod watched;

use crate::block::Block;
use crate::capability::Capabilities;
use crate::connection::{ConnectionParameters, Psn, QueuePair};
use crate::host::{BlockWork, Delivered, Host, Message, NicParameters, Offer, Primitive, Side};
use crate::message_table::MessageTable;
use crate::observer::{Observer as _, Stage};
use crate::shell::{Hosted, NicBoard, NicNode, NicShell};
use reliable::Reliable;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use watched::Watched;
use weft_engine::Payload;
use weft_fabric::{
    Addressing, Announced, ClassTag, HeaderBits, Injection, MessagePart, MulticastGroup, Packet, PacketLabel,
};
use weft_units::{Bytes, CountLedger, EndpointId, Span, Time};

weft_keys::keys! {
    /// The costs of messages and packets in a machine file.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct OverheadsParameters {
        /// Overheads: from a message's descriptor to its first packet; messages overlap in it.
        send_message: Span, key("message_send"), time_of("nic.clock");
        /// Overheads: from the descriptor of an RDMA write to its first packet; `message_send` where not
        /// given.
        send_write: Span = send_message, key("write_start"), time_of("nic.clock");
        /// Overheads: for each message before its first packet, during which nothing else is sent.
        message_gap: Span = Span::ZERO, time_of("nic.clock");
        /// Overheads: from a message's last packet to its notification.
        receive_message: Span, key("message_receive"), time_of("nic.clock");
        /// Overheads: least time between packets sent.
        send_packet: Span, key("packet_send"), time_of("nic.clock");
        /// Overheads: least time between packets taken.
        receive_packet: Span, key("packet_receive"), time_of("nic.clock");
        /// Overheads: messages whose packets take turns on the link; later ones wait.
        channels: u32, key("concurrent_messages");
        /// Largest payload of a packet.
        payload: Bytes, of("packet.payload");
        beside {
            /// Reliable connections: a section of its own.
            reliability: ConnectionParameters = ConnectionParameters::NONE;
        }
    }
}

impl OverheadsParameters {
    /// An interface that costs nothing, for packets with `payload`: they are on their endpoint's link as soon
    /// as that is free, those of one message after another's.
    pub const fn free(payload: Bytes) -> OverheadsParameters {
        OverheadsParameters {
            send_message: Span::ZERO,
            send_write: Span::ZERO,
            message_gap: Span::ZERO,
            receive_message: Span::ZERO,
            send_packet: Span::ZERO,
            receive_packet: Span::ZERO,
            channels: 1,
            payload,
            reliability: ConnectionParameters::NONE,
        }
    }

    /// Packets of a message: one without payload has one.
    fn packets_of(&self, bytes: Bytes) -> u64 {
        bytes.get().div_ceil(self.payload.get()).max(1)
    }

    /// From a message's post to its first packet.
    pub(crate) fn start_of(&self, primitive: Primitive) -> Span {
        match primitive {
            Primitive::Write | Primitive::WriteBack => self.send_write,
            Primitive::Automatic | Primitive::Small | Primitive::ReadRequest => self.send_message,
        }
    }
}

/// A message on its way out.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct SendingMessage {
    to: EndpointId,
    number: u32,
    bytes: Bytes,
    sent: Bytes,
    created_at: Time,
    /// When its first packet may go, gap aside.
    posted: Time,
    /// Whether the gap before the message has been spent.
    prepared: bool,
    token: Option<u32>,
    class: ClassTag,
    pair: QueuePair,
}

/// A message that is coming in.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Incoming<H> {
    missing: Bytes,
    bytes: Bytes,
    created_at: Time,
    header: Option<H>,
    watch: bool,
    interface: u16,
}

/// Header fields that all packets of a message share.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MessageHeader<H> {
    bytes: Bytes,
    created_at: Time,
    header: Option<H>,
    watch: bool,
    interface: u16,
}

/// An announcement of a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Announcement<H> {
    /// It is on its way.
    Message(MessageHeader<H>),
    /// It has failed with its connection, which goes on with this number.
    Withdrawn(Withdrawal),
}

/// A connection that has failed, and goes on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Withdrawal {
    pair: QueuePair,
    next: Psn,
}

impl<H: Copy + Send + Sync> Payload for Announcement<H> {
    fn tie(&self) -> u128 {
        // Of each there is one for a message.
        matches!(self, Announcement::Withdrawn(_)).into()
    }
}

/// The overheads interface's own events.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum OverheadsTimer<T> {
    /// The host's.
    Host(T),
    /// The first message that waits for the host's notice is due.
    Deliver,
    /// All data of the message with this token has been taken; over a reliable connection, acknowledged.
    Sent(u32),
    /// Time may be up for packets of reliable connections.
    Retransmission,
}

impl<T: Payload> Payload for OverheadsTimer<T> {
    fn tie(&self) -> u128 {
        match self {
            OverheadsTimer::Deliver => 0,
            OverheadsTimer::Retransmission => 1,
            OverheadsTimer::Sent(token) => 1 << 120 | u128::from(*token),
            OverheadsTimer::Host(timer) => 1 << 121 | timer.tie(),
        }
    }
}

/// The interface, with its host.
pub type OverheadsNic<H> = NicShell<OverheadsBoard<H>, H>;

/// The sending side and the receiving side.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct OverheadsBoard<H: Host> {
    transmit: Transmit,
    /// Messages announced to this interface that have not arrived whole.
    incoming: MessageTable<Incoming<H::Header>>,
    /// Messages that have arrived, in the order in which the host notices them.
    due: VecDeque<Delivered<H::Header>>,
    /// The time at which the receiving side is done with all packets that have arrived.
    receiver_free: Time,
    /// Time that packets have taken the receiving side.
    received: Span,
    /// Reliable connections, where the machine has them.
    reliable: Option<Box<Reliable>>,
}

/// The sending side.
#[derive(Serialize, Deserialize)]
struct Transmit {
    /// In the order in which they are posted.
    queue: VecDeque<SendingMessage>,
    /// Which of the channels sends next.
    turn: u32,
    next_number: u32,
    next_packet: Time,
    /// When the gap before the host's next offer begins, if nothing else is sent before: it need not be asked
    /// then, only when the gap is over.
    begins_offer: Time,
    /// Time that messages and packets have taken the sending side, and nothing else could be sent.
    worked: Span,
    watched: Watched,
}

/// The board in its surroundings.
type OverheadsNode<'a, 'b, 'c, H> = NicNode<'a, 'b, 'c, OverheadsBoard<H>, H>;

/// The host and its node.
type OverheadsHosted<'a, 'b, 'c, H> = Hosted<'a, 'b, 'c, OverheadsBoard<H>, H>;

/// To a group it sends as to an endpoint: the message's packets, once.
impl<H: Host> Capabilities for OverheadsNode<'_, '_, '_, H> {
    fn multicasts(&mut self) -> bool {
        true
    }
}

impl SendingMessage {
    /// The part of the message and the payload of its next packet.
    #[inline]
    fn next_piece(&self, payload: Bytes) -> (MessagePart, Bytes) {
        let bytes = (self.bytes - self.sent).min(payload);
        (if bytes == self.bytes { MessagePart::Whole } else { MessagePart::Piece }, bytes)
    }
}

impl Transmit {
    /// The place of the next message whose packet is admitted: of the first `channels` the next in turn, or
    /// else the first behind them that has been posted.
    fn next_admitted(
        &self,
        now: Time,
        channels: usize,
        admits: impl Fn(&SendingMessage) -> bool,
    ) -> Option<usize> {
        let turn = self.turn as usize;
        let in_turn = (0..channels).map(|step| (turn + step) % channels);
        let behind = (channels..self.queue.len()).take_while(|&place| self.queue[place].posted <= now);
        in_turn.chain(behind).find(|&place| admits(&self.queue[place]))
    }

    /// Takes the next packet of the message whose turn it is. `admits`: whether the network takes a packet of
    /// that message and payload now, and its connection does; messages whose packets have to wait are left
    /// out.
    fn next_of_queue(
        &mut self,
        now: Time,
        parameters: &OverheadsParameters,
        admits: Option<impl Fn(&SendingMessage, Bytes) -> bool>,
    ) -> Option<Supplied> {
        let transmit = self;
        let first = transmit.queue.front()?;
        if first.posted > now {
            return Some(Supplied::NotBefore(first.posted));
        }
        let posted = transmit.queue.partition_point(|outgoing| outgoing.posted <= now);
        let channels = posted.min(parameters.channels as usize);
        let mut index = transmit.turn as usize % channels;
        if let Some(admits) = admits {
            match transmit.next_admitted(now, channels, |outgoing| {
                let (_, bytes) = outgoing.next_piece(parameters.payload);
                admits(outgoing, bytes)
            }) {
                Some(admitted) => index = admitted,
                None => return Some(Supplied::NoPlace),
            }
        }
        let outgoing = &mut transmit.queue[index];
        if !outgoing.prepared {
            outgoing.prepared = true;
            transmit.turn = index as u32;
            transmit.next_packet = now + parameters.message_gap;
            transmit.worked = transmit.worked.saturating_add(parameters.message_gap);
            return Some(Supplied::NotBefore(transmit.next_packet));
        }
        let (part, piece) = outgoing.next_piece(parameters.payload);
        outgoing.sent += piece;
        let finished = outgoing.sent == outgoing.bytes;
        let SendingMessage { to, number, created_at, token, class, pair, .. } = *outgoing;
        if finished {
            transmit.queue.remove(index);
            transmit.turn = index as u32;
        } else {
            transmit.turn = (index as u32 + 1) % channels as u32;
        }
        let sent = token.filter(|_| finished);
        Some(Supplied::Packet(Leaving {
            to,
            number,
            bytes: piece,
            created_at,
            part,
            sent,
            last: finished,
            class,
            pair,
        }))
    }

    /// The time of the next post after `now`; [`Time::NEVER`]: there is none.
    fn next_post(&self, now: Time) -> Time {
        let place = self.queue.partition_point(|outgoing| outgoing.posted <= now);
        self.queue.get(place).map_or(Time::NEVER, |outgoing| outgoing.posted)
    }

    fn take_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        number
    }

    /// Puts a message behind all that are posted no later.
    #[inline]
    fn insert(&mut self, outgoing: SendingMessage) {
        match self.queue.back() {
            Some(last) if last.posted > outgoing.posted => {
                let place = self.queue.partition_point(|other| other.posted <= outgoing.posted);
                self.queue.insert(place, outgoing);
            }
            _ => self.queue.push_back(outgoing),
        }
    }
}

impl<H: Host> OverheadsNic<H> {
    /// The interface of `host`.
    pub fn new(host: H) -> OverheadsNic<H> {
        NicShell::with_board(host, OverheadsBoard::default())
    }
}

impl<H: Host> Default for OverheadsBoard<H> {
    fn default() -> OverheadsBoard<H> {
        OverheadsBoard {
            transmit: Transmit {
                queue: VecDeque::new(),
                turn: 0,
                next_number: 0,
                next_packet: Time::ZERO,
                begins_offer: Time::NEVER,
                worked: Span::ZERO,
                watched: Watched::default(),
            },
            incoming: MessageTable::default(),
            due: VecDeque::new(),
            receiver_free: Time::ZERO,
            received: Span::ZERO,
            reliable: None,
        }
    }
}

impl<H: Host> OverheadsBoard<H> {
    /// The link is free from `free` on, and no message waits: when the gap before the host's next offer will
    /// be over.
    fn begin_offer(&mut self, host: &H, free: Time, parameters: &OverheadsParameters) -> Time {
        let offer = host.next_offer();
        if offer == Time::NEVER {
            return offer;
        }
        let begin = offer.max(free).max(self.transmit.next_packet);
        self.transmit.begins_offer = begin;
        begin.max(offer.saturating_add(parameters.send_message)).saturating_add(parameters.message_gap)
    }
}

/// The outcome of a look at the queue.
enum Supplied {
    Packet(Leaving),
    NotBefore(Time),
    /// Packets are ready, of traffic classes that have no place in the network, or whose window is full.
    NoPlace,
}

/// A packet of a message that goes now.
#[derive(Clone, Copy)]
struct Leaving {
    to: EndpointId,
    number: u32,
    bytes: Bytes,
    created_at: Time,
    part: MessagePart,
    /// The token of a message that has gone with it, where the host wants to know.
    sent: Option<u32>,
    last: bool,
    class: ClassTag,
    pair: QueuePair,
}

impl<H: Host> OverheadsHosted<'_, '_, '_, H> {
    /// The next packet of a message that goes for the first time. `RELIABLE`: connections may be reliable.
    // Into both of its callers: in a function of its own, the surroundings would lie in memory.
    #[inline(always)]
    fn inject_message<const RELIABLE: bool>(&mut self) -> Injection {
        let Hosted { host, parameters: of_host, node } = self;
        let NicNode { hardware: board, parameters, fabric, .. } = node;
        let now = fabric.now();
        if board.transmit.next_packet > now {
            return Injection::NotBefore(board.transmit.next_packet);
        }
        let OverheadsBoard { transmit, reliable, .. } = &mut **board;
        let reliable = if RELIABLE { reliable.as_mut() } else { None };
        let has_room = |to, pair| {
            let reliable = reliable.as_ref();
            reliable.is_none_or(|reliable| reliable.has_room(to, pair, &parameters.reliability))
        };
        let admits = (reliable.is_some() || !fabric.admits_all()).then_some(
            |outgoing: &SendingMessage, bytes: Bytes| {
                let SendingMessage { to, class, pair, .. } = *outgoing;
                has_room(to, pair)
                    && (fabric.admits_all() || fabric.admits_class_to(to, class, bytes.get() as u32))
            },
        );
        let queued = transmit.next_of_queue(now, parameters, admits);
        if let Some(Supplied::NoPlace) = queued {
            return Injection::Nothing;
        }
        let begun = std::mem::replace(&mut board.transmit.begins_offer, Time::NEVER).min(now);
        let leaving = match queued {
            Some(Supplied::Packet(leaving)) => leaving,
            Some(Supplied::NotBefore(time)) => return Injection::NotBefore(time),
            Some(Supplied::NoPlace) => return Injection::Nothing,
            None => match host.offer(of_host, now) {
                Offer::Nothing => return Injection::Nothing,
                Offer::NotBefore(_) => {
                    return Injection::not_before(board.begin_offer(host, now, parameters));
                }
                Offer::Message(message) => {
                    let Message {
                        to, bytes, created_at, header, token, primitive, to_interface, watch, ..
                    } = message;
                    let class = fabric.class_of(&message.purpose, bytes);
                    let pair = reliable::pair_of(&message, class);
                    let number = board.transmit.take_number();
                    let is_reliable = RELIABLE && board.reliable.is_some();
                    if header.is_some() || watch || bytes > parameters.payload || is_reliable {
                        let interface = to_interface;
                        let header = MessageHeader { bytes, created_at, header, watch, interface };
                        fabric.announce(to, number, Announcement::Message(header));
                    }
                    let mut has_room = true;
                    if RELIABLE && let Some(reliable) = &mut board.reliable {
                        reliable.accept(number, &message, parameters.packets_of(bytes));
                        has_room = reliable.has_room(to, pair, &parameters.reliability);
                    }
                    let gap = parameters.message_gap;
                    board.transmit.worked = board.transmit.worked.saturating_add(gap);
                    let posted = created_at + parameters.start_of(primitive);
                    if watch {
                        let handed_over = watched::Posted {
                            message: number,
                            at: created_at,
                            ready: posted,
                            block: Block::INTERFACE,
                        };
                        board.transmit.watched.post(fabric.endpoint(), &handed_over, fabric.output());
                    }
                    let next = posted.max(begun) + parameters.message_gap;
                    if next > now || !has_room {
                        let (sent, prepared) = (Bytes::ZERO, true);
                        board.transmit.insert(SendingMessage {
                            to,
                            number,
                            bytes,
                            sent,
                            created_at,
                            posted: next,
                            prepared,
                            token,
                            class,
                            pair,
                        });
                        if next <= now {
                            return Injection::Nothing;
                        }
                        board.transmit.next_packet = next;
                        return Injection::NotBefore(next);
                    }
                    if bytes > parameters.payload {
                        let (sent, prepared) = (parameters.payload, true);
                        let outgoing = SendingMessage {
                            to,
                            number,
                            bytes,
                            sent,
                            created_at,
                            posted: now,
                            prepared,
                            token,
                            class,
                            pair,
                        };
                        board.transmit.insert(outgoing);
                        let (bytes, part, sent, last) = (sent, MessagePart::Piece, None, false);
                        Leaving { to, number, bytes, created_at, part, sent, last, class, pair }
                    } else {
                        let (part, sent, last) = (MessagePart::Whole, token, true);
                        Leaving { to, number, bytes, created_at, part, sent, last, class, pair }
                    }
                }
            },
        };
        let pace = (board.transmit.next_packet == now).then_some(parameters.send_packet);
        board.transmit.next_packet = now + parameters.send_packet;
        board.transmit.worked = board.transmit.worked.saturating_add(parameters.send_packet);
        let Leaving { to, number, bytes, created_at, part, sent, last, class, .. } = leaving;
        let endpoint = fabric.endpoint();
        let (gap, block) = (parameters.message_gap, Block::INTERFACE);
        let supplied = watched::Supplied { message: number, last, now, gap, pace, block };
        let watch = board.transmit.watched.supply(endpoint, &supplied, fabric.output());
        if RELIABLE
            && board.reliable.is_some()
            && let Some(packet) = node.first_time(&leaving, watch)
        {
            return Injection::Packet(packet);
        }
        if let Some(token) = sent {
            node.fabric.set_timer(now, OverheadsTimer::Sent(token));
        }
        let addressing = Addressing { source: endpoint, destination: to, message: number };
        let packet = Packet::new(addressing, bytes.get() as u32, HeaderBits::offered(created_at), part);
        // Multipath goes by messages here.
        let mut packet = packet.in_block(number.wrapping_add(1)).of_class(class);
        packet.watch(watch);
        Injection::Packet(packet)
    }

    /// A packet of a message is taken. The receiving side is done with it at `done`.
    #[inline(always)]
    fn take(&mut self, packet: &Packet, done: Time) {
        let Packet { source: from, message: number, hops, .. } = *packet;
        let NicNode { hardware: board, parameters, fabric, .. } = &mut self.node;
        let (noticed, in_mailbox) = (done + parameters.receive_message, false);
        let bytes = packet.payload();
        let key = (from, number);
        // A host whose messages carry no header does not announce those of one packet.
        let Some(incoming) = board.incoming.get_mut(key) else {
            if board.reliable.is_some() {
                return; // a copy, by a link, of a packet for a group: its message has come
            }
            debug_assert!(packet.part() == MessagePart::Whole, "pieces are announced");
            let (header, interface, created_at) = (None, 0, packet.carried.time_offered());
            let message = Delivered {
                from,
                number,
                bytes,
                created_at,
                noticed,
                hops,
                channel: 0,
                header,
                interface,
                in_mailbox,
            };
            return self.arrived(message);
        };
        incoming.missing -= bytes.min(incoming.missing);
        if incoming.missing == Bytes::ZERO
            && let Some(whole) = board.incoming.remove(key)
        {
            let Incoming { bytes, created_at, header, watch, interface, .. } = whole;
            if watch {
                let (endpoint, block, came) = (fabric.endpoint(), Block::INTERFACE, fabric.now());
                // Nothing holds it up from then on.
                let began = Time::from_ps(done.as_ps() - parameters.receive_packet.as_ps());
                let ended = noticed;
                let stage = Stage { endpoint, source: from, message: number, block, came, began, ended };
                fabric.output().stage(&stage);
            }
            let message = Delivered {
                from,
                number,
                bytes,
                created_at,
                noticed,
                hops,
                channel: 0,
                header,
                interface,
                in_mailbox,
            };
            self.arrived(message);
        }
    }

    /// A message has arrived whole; the host notices it, if not now.
    #[inline]
    fn arrived(&mut self, message: Delivered<H::Header>) {
        if message.noticed > self.node.fabric.now() && !H::PASSIVE {
            self.node.hardware.due.push_back(message);
            self.node.fabric.set_timer(message.noticed, OverheadsTimer::Deliver);
        } else {
            self.deliver(&message);
        }
    }
}

impl<H: Host> NicBoard<H> for OverheadsBoard<H> {
    type Parameters = OverheadsParameters;
    type Timer = OverheadsTimer<H::Timer>;
    type Announcement = Announcement<H::Header>;

    const TELLS_WHEN_READY: bool = false;

    fn new(
        _: EndpointId,
        parameters: &NicParameters<OverheadsParameters, H::Parameters>,
    ) -> OverheadsBoard<H> {
        let is_reliable = parameters.interface.reliability.is_reliable();
        OverheadsBoard { reliable: is_reliable.then(Box::default), ..OverheadsBoard::default() }
    }

    fn answers(&self) -> bool {
        self.reliable.is_some()
    }

    fn counts(&self) -> Option<&CountLedger> {
        self.reliable.as_deref().map(|reliable| &reliable.ledger)
    }

    fn counts_mut(&mut self) -> Option<&mut CountLedger> {
        self.reliable.as_deref_mut().map(|reliable| &mut reliable.ledger)
    }

    fn host_timer(timer: H::Timer) -> OverheadsTimer<H::Timer> {
        OverheadsTimer::Host(timer)
    }

    fn send(node: &mut OverheadsNode<'_, '_, '_, H>, message: Message<H::Header>, at: Time) -> u32 {
        let number = node.hardware.transmit.take_number();
        let Message {
            to, bytes, created_at, header, token, primitive, to_interface: interface, watch, ..
        } = message;
        let class = node.fabric.class_of(&message.purpose, bytes);
        let pair = reliable::pair_of(&message, class);
        let header = MessageHeader { bytes, created_at, header, watch, interface };
        node.fabric.announce(to, number, Announcement::Message(header));
        if let Some(reliable) = &mut node.hardware.reliable {
            reliable.accept(number, &message, node.parameters.packets_of(bytes));
        }
        let (sent, prepared) = (Bytes::ZERO, node.parameters.message_gap == Span::ZERO);
        let posted = at + node.parameters.start_of(primitive);
        if watch {
            let endpoint = node.fabric.endpoint();
            let block = Block::INTERFACE;
            let handed_over = watched::Posted { message: number, at, ready: posted, block };
            node.hardware.transmit.watched.post(endpoint, &handed_over, node.fabric.output());
        }
        let outgoing =
            SendingMessage { to, number, bytes, sent, created_at, posted, prepared, token, class, pair };
        node.hardware.transmit.insert(outgoing);
        node.fabric.request_injection();
        number
    }

    fn capabilities<'n>(node: &'n mut OverheadsNode<'_, '_, '_, H>) -> &'n mut dyn Capabilities {
        node
    }

    fn timer(hosted: &mut OverheadsHosted<'_, '_, '_, H>, timer: OverheadsTimer<H::Timer>) {
        match timer {
            OverheadsTimer::Host(timer) => hosted.host_timer(timer),
            OverheadsTimer::Deliver => {
                if let Some(message) = hosted.node.hardware.due.pop_front() {
                    hosted.deliver(&message);
                }
            }
            OverheadsTimer::Sent(token) => hosted.sent(token),
            OverheadsTimer::Retransmission => hosted.expired(),
        }
    }

    fn announced(hosted: &mut OverheadsHosted<'_, '_, '_, H>, announced: Announced<Announcement<H::Header>>) {
        let Announced { from, message, content } = announced;
        match content {
            Announcement::Message(MessageHeader { bytes, created_at, header, watch, interface }) => {
                let missing = bytes;
                hosted.node.hardware.incoming.insert(
                    (from, message),
                    Incoming { missing, bytes, created_at, header, watch, interface },
                );
            }
            Announcement::Withdrawn(withdrawal) => hosted.withdrawn((from, message), withdrawal),
        }
    }

    #[inline(always)]
    fn received(hosted: &mut OverheadsHosted<'_, '_, '_, H>, packet: &Packet) {
        let NicNode { hardware: board, parameters, fabric, .. } = &mut hosted.node;
        let done = board.receiver_free.max(fabric.now()) + parameters.receive_packet;
        board.receiver_free = done;
        board.received = board.received.saturating_add(parameters.receive_packet);
        if packet.is_corrupted() {
            return; // its check fails: the message will never be whole
        }
        if packet.label != PacketLabel::default() {
            return hosted.received_reliably(packet, done);
        }
        hosted.take(packet, done);
    }

    #[inline]
    fn next_injection(&mut self, host: &H, free: Time, parameters: &OverheadsParameters) -> Time {
        let next = match self.transmit.queue.front() {
            Some(outgoing) => outgoing.posted.max(self.transmit.next_packet),
            None => self.begin_offer(host, free, parameters),
        };
        let Some(reliable) = &self.reliable else { return next };
        next.min(reliable.ready().max(self.transmit.next_packet))
    }

    #[inline(always)]
    fn inject(hosted: &mut OverheadsHosted<'_, '_, '_, H>) -> Injection {
        if hosted.node.hardware.reliable.is_some() {
            return hosted.inject_reliably();
        }
        hosted.inject_message::<false>()
    }

    fn unfinished(&self) -> (usize, usize) {
        let to_groups = |queue: &VecDeque<SendingMessage>| {
            queue.iter().filter(|outgoing| MulticastGroup::of(outgoing.to).is_some()).count()
        };
        let sending = match &self.reliable {
            Some(reliable) => reliable.unfinished() + to_groups(&self.transmit.queue),
            None => self.transmit.queue.len(),
        };
        (sending, self.incoming.len() + self.due.len())
    }

    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        let of_incoming = |message: &Incoming<H::Header>| (message.header, message.bytes - message.missing);
        let of_due = |message: &Delivered<H::Header>| (message.header, message.bytes);
        for (header, came) in self.incoming.messages().map(of_incoming).chain(self.due.iter().map(of_due)) {
            header.iter().for_each(|header| visit(header, came));
        }
    }

    fn visit_work(&self, visit: &mut dyn FnMut(BlockWork)) {
        visit(BlockWork { block: "sending", side: Side::Sender, worked: self.transmit.worked });
        visit(BlockWork { block: "receiving", side: Side::Receiver, worked: self.received });
    }
}
