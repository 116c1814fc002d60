//! The interface of BXI machines: commands and events by their costs, and the transport by its engines.
//!
//! ```text
//!  host ─ command ─► messages in turn ─► transmit engine: number, CRC, FCS ─────────► fabric
//!                                          ▲ time-outs, acknowledgements  ◄──────────── fabric
//!  host ◄─ event ── whole? ◄── receive engine: CRC, FCS, number ◄────────────────────── fabric
//!                                └─► acknowledgement ─► transmit engine
//! ```
//! Every packet is acknowledged, and repeated until it is ([`transport`](crate::transport)). A message is
//! done at its sender when all its packets are: the interface reads them again from the host's memory until
//! then.
//!
//! Matching is not here: simulated ranks match in `weft_msg`, whose costs `messaging.matching_entry` gives
//! per entry, programs over Portals in `weft-portals-objects`.
//!
//! # Deadlock
//! An interface consumes whatever arrives. It owes acknowledgements only for packets that peers have
//! outstanding: at most a window for each flow, and its table of flows is bounded.
//!
//! # Source
//! RED-SEA D1.4 §2.2 (transport), §11.1.3 (generation queues per user buffer take turns).
//!
//! # Not modelled
//! - Reliability of messages for a group: nobody acknowledges them, and what is lost of them is missing.
//! - Flows of services: all traffic is of computing.
//! - The blocks of host port and memory: a command and an event cost a time, whatever their size.

mod packet;
mod transmit;

use crate::block::{Block, block};
use crate::capability::Capabilities;
use crate::failure::{Failure, FailureReason};
use crate::host::{BlockWork, Delivered, Host, Message, NicParameters, Offer, Side};
use crate::message_table::MessageTable;
use crate::observer::{Observer as _, Stage};
use crate::overheads::{OverheadsParameters, watched};
use crate::shell::{Hosted, NicBoard, NicNode, NicShell};
use crate::transport::{FlowId, Receiver, Repeat, Sequence, TransportParameters, Verdict};
use packet::{ACKNOWLEDGEMENT, Header};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use transmit::{Answer, Next, Piece, Supplied, Transmit, packet_of, packet_of_answer};
use weft_engine::Payload;
use weft_fabric::{Announced, Injection, MessagePart, MulticastGroup, Packet};
use weft_keys::Problem;
use weft_units::{Bytes, CountLedger, EndpointId, Span, Time};

/// In reports, from a command to its first packet: the doorbell, and the read of the data.
const COMMAND: Block = block!(Logic "command");
/// The transmit engine in reports.
const TRANSMIT_ENGINE: Block = block!(Logic "transmit engine");
/// The receive engine in reports.
const RECEIVE_ENGINE: Block = block!(Logic "receive engine");
/// In reports, the writes of data and event into the host's memory.
const EVENT_WRITE: Block = block!(Logic "event write");

/// The largest packet, header and footer included: RED-SEA D1.4 §2.2.
const LARGEST_PACKET: Bytes = Bytes::new(9 << 10);

weft_keys::keys! {
    /// The section of a machine file on the transport, and the costs of commands, packets and events.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct PortalsParameters {
        /// Whether messages go by ordered flows, where the routing keeps the packets of a pair in order:
        /// packets that come out of order all the same are then dropped, and repeated.
        ordered: bool;
        /// End-to-end reliability.
        transport: TransportParameters, group();
        beside {
            /// Those of the overheads interface, so that a machine may name either model; it has no gap.
            costs: OverheadsParameters = OverheadsParameters::free(Bytes::ZERO);
        }
    }
}

impl PortalsParameters {
    /// Checks that the interface has packets of up to `largest`, header and footer included.
    ///
    /// # Errors
    /// The mistake, and its mend.
    pub fn check_packet(largest: Bytes) -> Result<(), Problem> {
        if largest <= LARGEST_PACKET {
            return Ok(());
        }
        let why = format!("a packet of {largest} is too long for this interface");
        Err(Problem::new(why, format!("{LARGEST_PACKET} at most"), "write a smaller packet.payload"))
    }

    /// The earliest first packet of a message that is offered at `offer`, whatever carries it.
    fn earliest(&self, offer: Time) -> Time {
        offer.saturating_add(self.costs.send_message.min(self.costs.send_write))
    }
}

/// Header fields that all packets of a message share.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MessageHeader<T> {
    bytes: Bytes,
    created_at: Time,
    header: Option<T>,
    watch: bool,
    interface: u16,
}

/// An announcement of a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Announcement<T> {
    /// It is on its way.
    Message(MessageHeader<T>),
    /// It has failed.
    Withdrawn,
}

impl<T: Copy + Send + Sync> Payload for Announcement<T> {
    fn tie(&self) -> u128 {
        matches!(self, Announcement::Withdrawn).into()
    }
}

/// The interface's own events.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum PortalsTimer<T> {
    /// The host's.
    Host(T),
    /// The first message that waits for the host's notice is due.
    Deliver,
    /// The first failure that waits for the host's notice is due.
    Failed,
    /// The message with this token has been acknowledged.
    Sent(u32),
    /// Time may be up for packets.
    Retransmission,
}

impl<T: Payload> Payload for PortalsTimer<T> {
    fn tie(&self) -> u128 {
        match self {
            PortalsTimer::Deliver => 0,
            PortalsTimer::Failed => 1,
            PortalsTimer::Retransmission => 2,
            PortalsTimer::Sent(token) => 1 << 120 | u128::from(*token),
            PortalsTimer::Host(timer) => 1 << 121 | timer.tie(),
        }
    }
}

/// A message that is coming in.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Incoming<T> {
    missing: Bytes,
    header: MessageHeader<T>,
}

/// The interface, with its host.
pub type PortalsNic<H> = NicShell<PortalsBoard<H>, H>;

/// The engines, and what waits between them and the host.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct PortalsBoard<H: Host> {
    transmit: Transmit,
    receiver: Receiver,
    /// Messages announced to this interface that have not arrived whole.
    incoming: MessageTable<Incoming<H::Header>>,
    /// Messages that have arrived, in the order in which the host notices them.
    due: VecDeque<Delivered<H::Header>>,
    failures: VecDeque<Failure>,
    /// The time at which the receive engine is done with all packets that have arrived.
    receiver_free: Time,
    /// Time that packets have taken the receive engine.
    received: Span,
    /// Counts of what was sent again; `None`: nothing, as nearly everywhere.
    repairs: Option<Box<CountLedger>>,
}

/// The board in its surroundings.
type PortalsNode<'a, 'b, 'c, H> = NicNode<'a, 'b, 'c, PortalsBoard<H>, H>;

/// The host and its node.
type PortalsHosted<'a, 'b, 'c, H> = Hosted<'a, 'b, 'c, PortalsBoard<H>, H>;

impl<H: Host> PortalsNode<'_, '_, '_, H> {
    /// Takes a message over that the host posts at `at`.
    fn accept(&mut self, message: &Message<H::Header>, at: Time) -> u32 {
        let number = self.hardware.transmit.take_number();
        let Message { to, bytes, created_at, header, watch, to_interface, .. } = *message;
        if to.index() >= self.fabric.endpoints() && MulticastGroup::of(to).is_none() {
            self.refuse(number, message, at);
            return number;
        }
        let posted = at + self.parameters.costs.start_of(message.primitive);
        let class = self.fabric.class_of(&message.purpose, bytes);
        self.hardware.transmit.accept(number, (message, class), posted, self.parameters);
        let header = MessageHeader { bytes, created_at, header, watch, interface: to_interface };
        self.fabric.announce(to, number, Announcement::Message(header));
        if watch {
            let endpoint = self.fabric.endpoint();
            let handed_over = watched::Posted { message: number, at, ready: posted, block: COMMAND };
            self.hardware.transmit.watched.post(endpoint, &handed_over, self.fabric.output());
        }
        number
    }

    /// The message is for no node that exists: its host is told.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, number: u32, message: &Message<H::Header>, at: Time) {
        let Message { to, interface, token, .. } = *message;
        self.hardware.failures.push_back(Failure {
            to,
            number,
            interface,
            token,
            reason: FailureReason::NoNode,
        });
        self.fabric.set_timer(at.max(self.fabric.now()), PortalsTimer::Failed);
    }

    /// A packet has been acknowledged.
    fn acknowledged(&mut self, (flow, sequence): (FlowId, Sequence), done: Time) {
        let Some(piece) = self.hardware.transmit.sender.acknowledged(flow, sequence, self.fabric.now())
        else {
            return;
        };
        if let Some(token) = self.hardware.transmit.settle(piece).and_then(|message| message.token) {
            self.fabric.set_timer(done, PortalsTimer::Sent(token));
        }
        // Its flow has room for another.
        if self.hardware.transmit.waiting() > 0 {
            self.fabric.request_injection();
        }
    }

    /// The packet of a message, sent for the first time.
    #[inline]
    fn first_time(&mut self, supplied: &Supplied, pace: Option<Span>) -> Packet {
        let Supplied { to, kind, mut piece, sequence, last, .. } = *supplied;
        let (endpoint, now, block) = (self.fabric.endpoint(), self.fabric.now(), TRANSMIT_ENGINE);
        let report = watched::Supplied { message: piece.message, last, now, gap: Span::ZERO, pace, block };
        piece.watch = self.hardware.transmit.watched.supply(endpoint, &report, self.fabric.output());
        if let Some(sequence) = sequence.filter(|_| piece.watch)
            && let Some(kept) = self.hardware.transmit.sender.packet_mut(FlowId { peer: to, kind }, sequence)
        {
            kept.watch = true;
        }
        packet_of(&piece, (endpoint, to), sequence.map(|sequence| (kind, sequence)))
    }

    /// A packet that is sent again.
    #[cold]
    #[inline(never)]
    fn again(&mut self, repeat: &Repeat<Piece>) -> Packet {
        let (source, piece, now) = (self.fabric.endpoint(), repeat.packet, self.fabric.now());
        if piece.watch {
            let (message, block) = (piece.message, Block::TIMEOUT);
            let (endpoint, came, began, ended) = (source, repeat.sent, now, now);
            self.fabric.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
        packet_of(&piece, (source, repeat.flow.peer), Some((repeat.flow.kind, repeat.sequence)))
    }
}

/// To a group it sends as to an endpoint, without acknowledgements.
impl<H: Host> Capabilities for PortalsNode<'_, '_, '_, H> {
    fn multicasts(&mut self) -> bool {
        true
    }
}

impl<H: Host> PortalsBoard<H> {
    /// The counts of what is sent again.
    #[cold]
    fn ledger(&mut self) -> &mut CountLedger {
        self.repairs.get_or_insert_default()
    }

    /// The receive engine takes a packet that has come. Returns when it is done with it.
    fn engine(&mut self, now: Time, parameters: &PortalsParameters) -> Time {
        let done = self.receiver_free.max(now) + parameters.costs.receive_packet;
        self.receiver_free = done;
        self.received = self.received.saturating_add(parameters.costs.receive_packet);
        done
    }
}

impl<H: Host> PortalsHosted<'_, '_, '_, H> {
    /// Draws messages from the host whose first packet may go, as long as there is a turn for them.
    fn take_offers(&mut self) {
        let now = self.node.fabric.now();
        while self.node.parameters.earliest(self.host.next_offer()) <= now
            && self.node.hardware.transmit.waiting() < self.node.parameters.costs.channels as usize
        {
            let Offer::Message(message) = self.host.offer(self.parameters, now) else { return };
            let at = message.created_at;
            self.node.accept(&message, at);
        }
    }

    /// A packet of a message has been taken.
    fn take(&mut self, packet: &Packet, done: Time) {
        let Packet { source: from, message: number, hops, .. } = *packet;
        // One that has been withdrawn, while its packets were on their way, is not announced any more.
        let Some(announced) = self.node.hardware.incoming.get_mut((from, number)) else { return };
        announced.missing -= packet.payload();
        if announced.missing > Bytes::ZERO {
            return;
        }
        let MessageHeader { bytes, created_at, header, watch, interface } = announced.header;
        self.node.hardware.incoming.remove((from, number));
        let (noticed, in_mailbox) = (done + self.node.parameters.costs.receive_message, false);
        if watch {
            let (endpoint, source, message) = (self.node.fabric.endpoint(), from, number);
            let began = Time::from_ps(done.as_ps() - self.node.parameters.costs.receive_packet.as_ps());
            for (block, came, began, ended) in
                [(RECEIVE_ENGINE, self.node.fabric.now(), began, done), (EVENT_WRITE, done, done, noticed)]
            {
                self.node.fabric.output().stage(&Stage {
                    endpoint,
                    source,
                    message,
                    block,
                    came,
                    began,
                    ended,
                });
            }
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
        if noticed > self.node.fabric.now() && !H::PASSIVE {
            self.node.hardware.due.push_back(message);
            self.node.fabric.set_timer(noticed, PortalsTimer::Deliver);
        } else {
            self.deliver(&message);
        }
    }

    /// Time may be up for packets.
    fn expired(&mut self) {
        let now = self.node.fabric.now();
        let Some(expired) = self.node.hardware.transmit.sender.expired(now, &self.node.parameters.transport)
        else {
            return;
        };
        if expired.timeouts > 0 {
            self.node.hardware.ledger().counts.timeouts += expired.timeouts;
        }
        if let Some(next) = expired.next {
            self.node.fabric.set_timer(next, PortalsTimer::Retransmission);
        }
        for (flow, piece) in expired.failed {
            let Some(message) = self.node.hardware.transmit.withdraw(piece) else { continue };
            self.node.fabric.announce(flow.peer, piece.message, Announcement::Withdrawn);
            let (to, number, interface) = (flow.peer, piece.message, message.interface);
            let failure =
                Failure { to, number, interface, token: message.token, reason: FailureReason::TimedOut };
            self.fail(&failure);
        }
        self.node.fabric.request_injection();
    }
}

impl<H: Host> NicBoard<H> for PortalsBoard<H> {
    type Parameters = PortalsParameters;
    type Timer = PortalsTimer<H::Timer>;
    type Announcement = Announcement<H::Header>;

    fn new(_: EndpointId, _: &NicParameters<PortalsParameters, H::Parameters>) -> PortalsBoard<H> {
        PortalsBoard {
            transmit: Transmit::default(),
            receiver: Receiver::default(),
            incoming: MessageTable::default(),
            due: VecDeque::new(),
            failures: VecDeque::new(),
            receiver_free: Time::ZERO,
            received: Span::ZERO,
            repairs: None,
        }
    }

    fn host_timer(timer: H::Timer) -> PortalsTimer<H::Timer> {
        PortalsTimer::Host(timer)
    }

    fn send(node: &mut PortalsNode<'_, '_, '_, H>, message: Message<H::Header>, at: Time) -> u32 {
        let number = node.accept(&message, at);
        node.fabric.request_injection();
        number
    }

    fn capabilities<'n>(node: &'n mut PortalsNode<'_, '_, '_, H>) -> &'n mut dyn Capabilities {
        node
    }

    fn timer(hosted: &mut PortalsHosted<'_, '_, '_, H>, timer: PortalsTimer<H::Timer>) {
        match timer {
            PortalsTimer::Host(timer) => hosted.host_timer(timer),
            PortalsTimer::Deliver => {
                if let Some(message) = hosted.node.hardware.due.pop_front() {
                    hosted.deliver(&message);
                }
            }
            PortalsTimer::Failed => {
                if let Some(failure) = hosted.node.hardware.failures.pop_front() {
                    hosted.fail(&failure);
                }
            }
            PortalsTimer::Sent(token) => hosted.sent(token),
            PortalsTimer::Retransmission => hosted.expired(),
        }
    }

    fn announced(hosted: &mut PortalsHosted<'_, '_, '_, H>, announced: Announced<Announcement<H::Header>>) {
        let incoming = &mut hosted.node.hardware.incoming;
        let Announced { from, message, content } = announced;
        match content {
            Announcement::Message(header) => {
                incoming.insert((from, message), Incoming { missing: header.bytes, header });
            }
            Announcement::Withdrawn => drop(incoming.remove((from, message))),
        }
    }

    #[inline]
    fn received(hosted: &mut PortalsHosted<'_, '_, '_, H>, packet: &Packet) {
        let node = &mut hosted.node;
        let now = node.fabric.now();
        let done = node.hardware.engine(now, node.parameters);
        if packet.is_corrupted() {
            return; // its CRC or FCS fails: it is dropped in silence
        }
        match Header::of(packet) {
            None => {}
            Some(Header::Datagram) => hosted.take(packet, done),
            Some(Header::Acknowledgement(kind, sequence)) => {
                hosted.node.acknowledged((FlowId { peer: packet.source, kind }, sequence), done);
            }
            Some(Header::Data(kind, sequence)) => {
                let flow = FlowId { peer: packet.source, kind };
                let verdict = node.hardware.receiver.receive(flow, sequence, now, &node.parameters.transport);
                if verdict == Verdict::AcknowledgeAgain {
                    node.hardware.ledger().counts.duplicates += 1;
                }
                if verdict != Verdict::Drop {
                    let (to, message) = (packet.source, packet.message);
                    node.hardware.transmit.answers.push_back(Answer {
                        ready: done,
                        to,
                        message,
                        kind,
                        sequence,
                    });
                    node.fabric.request_injection();
                }
                if verdict == Verdict::Take {
                    hosted.take(packet, done);
                }
            }
        }
    }

    #[inline]
    fn next_injection(&mut self, host: &H, _: Time, parameters: &PortalsParameters) -> Time {
        // Whether there is a turn for an offer is asked when its time has come.
        self.transmit.ready().min(parameters.earliest(host.next_offer()))
    }

    fn inject(hosted: &mut PortalsHosted<'_, '_, '_, H>) -> Injection {
        let now = hosted.node.fabric.now();
        if hosted.node.hardware.transmit.next_packet > now {
            return Injection::NotBefore(hosted.node.hardware.transmit.next_packet);
        }
        hosted.take_offers();
        let Hosted { host, node, .. } = hosted;
        let fabric = &*node.fabric;
        let admits_all = fabric.admits_all();
        let next = node.hardware.transmit.next(now, node.parameters, |class| {
            admits_all
                || match class {
                    Some(class) => fabric.admits_class(class),
                    None => fabric.admits(ACKNOWLEDGEMENT, MessagePart::Whole, 0),
                }
        });
        let pace = (node.hardware.transmit.next_packet == now).then_some(node.parameters.costs.send_packet);
        let (packet, timer) = match next {
            Next::NotBefore(time) => {
                // An offer whose time has come waits for a turn, which asks for a packet.
                let offer = node.parameters.earliest(host.next_offer());
                let offer = Some(offer).filter(|offer| *offer > now);
                return Injection::not_before(time.min(offer.unwrap_or(Time::NEVER)));
            }
            Next::Answer(answer) => (packet_of_answer(node.fabric.endpoint(), &answer), None),
            Next::Repeat(repeat, timer) => {
                node.hardware.ledger().counts.resent += 1;
                (node.again(&repeat), timer)
            }
            Next::Data(supplied) => {
                if let Some(token) = supplied.token.filter(|_| supplied.last && supplied.sequence.is_none()) {
                    node.fabric.set_timer(now, PortalsTimer::Sent(token));
                }
                (node.first_time(&supplied, pace), supplied.timer)
            }
        };
        if let Some(at) = timer {
            node.fabric.set_timer(at, PortalsTimer::Retransmission);
        }
        node.hardware.transmit.next_packet = now + node.parameters.costs.send_packet;
        node.hardware.transmit.worked =
            node.hardware.transmit.worked.saturating_add(node.parameters.costs.send_packet);
        Injection::Packet(packet)
    }

    fn counts(&self) -> Option<&CountLedger> {
        self.repairs.as_deref()
    }

    fn counts_mut(&mut self) -> Option<&mut CountLedger> {
        self.repairs.as_deref_mut()
    }

    fn unfinished(&self) -> (usize, usize) {
        (self.transmit.unfinished(), self.incoming.len() + self.due.len())
    }

    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        let of_incoming =
            |message: &Incoming<H::Header>| (message.header.header, message.header.bytes - message.missing);
        let of_due = |message: &Delivered<H::Header>| (message.header, message.bytes);
        let all = self.incoming.messages().map(of_incoming).chain(self.due.iter().map(of_due));
        all.for_each(|(header, came)| header.iter().for_each(|header| visit(header, came)));
    }

    fn visit_work(&self, visit: &mut dyn FnMut(BlockWork)) {
        let (engine, worked) = (TRANSMIT_ENGINE.name(), self.transmit.worked);
        visit(BlockWork { block: engine, side: Side::Sender, worked });
        let (engine, worked) = (RECEIVE_ENGINE.name(), self.received);
        visit(BlockWork { block: engine, side: Side::Receiver, worked });
    }
}
