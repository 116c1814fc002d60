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
use crate::host::{
    BlockWork, Delivered, Failure, FailureReason, Host, HostContext, Message, Nic, NicParameters, Offer, Side,
};
use crate::hosted::Hosted;
use crate::message_table::MessageTable;
use crate::observer::{Observer, Stage};
use crate::overheads::{OverheadsParameters, watched};
use crate::transport::{FlowId, Receiver, Repeat, Sequence, TransportParameters, Verdict};
use packet::{ACKNOWLEDGEMENT, Header};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use transmit::{Answer, Next, Piece, Supplied, Transmit, packet_of, packet_of_answer};
use weft_engine::Payload;
use weft_fabric::{
    Announced, HopRecord, Injection, Interface, InterfaceContext, MessagePart, MulticastGroup, Packet,
};
use weft_keys::Problem;
use weft_units::{Bytes, EndpointId, Span, Time};

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
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct PortalsNic<H: Host> {
    /// The host.
    pub host: H,
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
}

/// The interface as its host sees it.
struct PortalsNode<'a, 'b, 'c, H: Host> {
    transmit: &'a mut Transmit,
    failures: &'a mut VecDeque<Failure>,
    parameters: &'a PortalsParameters,
    fabric: &'a mut InterfaceContext<'b, 'c, PortalsNic<H>>,
}

impl<H: Host> PortalsNode<'_, '_, '_, H> {
    /// Takes a message over that the host posts at `at`.
    fn accept(&mut self, message: &Message<H::Header>, at: Time) -> u32 {
        let number = self.transmit.take_number();
        let Message { to, bytes, created_at, header, watch, to_interface, .. } = *message;
        if to.index() >= self.fabric.endpoints() && MulticastGroup::of(to).is_none() {
            self.refuse(number, message, at);
            return number;
        }
        let posted = at + self.parameters.costs.start_of(message.primitive);
        let class = self.fabric.class_of(&message.purpose, bytes);
        self.transmit.accept(number, (message, class), posted, self.parameters);
        let header = MessageHeader { bytes, created_at, header, watch, interface: to_interface };
        self.fabric.announce(to, number, Announcement::Message(header));
        if watch {
            let endpoint = self.fabric.endpoint();
            let handed_over = watched::Posted { message: number, at, ready: posted, block: COMMAND };
            self.transmit.watched.post(endpoint, &handed_over, self.fabric.output());
        }
        number
    }

    /// The message is for no node that exists: its host is told.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, number: u32, message: &Message<H::Header>, at: Time) {
        let Message { to, interface, token, .. } = *message;
        self.failures.push_back(Failure { to, number, interface, token, reason: FailureReason::NoNode });
        self.fabric.set_timer(at.max(self.fabric.now()), PortalsTimer::Failed);
    }
}

impl<H: Host> HostContext<H> for PortalsNode<'_, '_, '_, H> {
    #[inline]
    fn now(&self) -> Time {
        self.fabric.now()
    }

    #[inline]
    fn endpoint(&self) -> EndpointId {
        self.fabric.endpoint()
    }

    #[inline]
    fn output(&mut self) -> &mut H::Output {
        self.fabric.output()
    }

    fn set_timer(&mut self, at: Time, timer: H::Timer) {
        self.fabric.set_timer(at, PortalsTimer::Host(timer));
    }

    fn set_timer_of(&mut self, endpoint: EndpointId, at: Time, timer: H::Timer) {
        self.fabric.set_timer_of(endpoint, at, PortalsTimer::Host(timer));
    }

    fn send(&mut self, message: Message<H::Header>, at: Time) -> u32 {
        let number = self.accept(&message, at);
        self.fabric.request_injection();
        number
    }

    fn request_offer(&mut self) {
        self.fabric.request_injection();
    }

    fn capabilities(&mut self) -> &mut dyn Capabilities {
        self
    }
}

impl<H: Host> Capabilities for PortalsNode<'_, '_, '_, H> {
    /// To a group it sends as to an endpoint, without acknowledgements.
    fn multicasts(&mut self) -> bool {
        true
    }
}

impl<H: Host> PortalsNic<H> {
    /// The host and its node, as the fabric calls them.
    #[inline]
    fn hosted<'a, 'b, 'c>(
        &'a mut self,
        parameters: &'a NicParameters<PortalsParameters, H::Parameters>,
        fabric: &'a mut InterfaceContext<'b, 'c, Self>,
    ) -> Hosted<'a, H, PortalsNode<'a, 'b, 'c, H>> {
        let node = PortalsNode {
            transmit: &mut self.transmit,
            failures: &mut self.failures,
            parameters: &parameters.interface,
            fabric,
        };
        Hosted { host: &mut self.host, parameters: &parameters.host, node }
    }

    /// Draws messages from the host whose first packet may go, as long as there is a turn for them.
    fn take_offers(
        &mut self,
        parameters: &NicParameters<PortalsParameters, H::Parameters>,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let now = context.now();
        while parameters.interface.earliest(self.host.next_offer()) <= now
            && self.transmit.waiting() < parameters.interface.costs.channels as usize
        {
            let Offer::Message(message) = self.host.offer(&parameters.host, now) else { return };
            let at = message.created_at;
            self.hosted(parameters, context).node.accept(&message, at);
        }
    }

    /// The receive engine takes a packet that has come. Returns when it is done with it.
    fn engine(&mut self, now: Time, parameters: &PortalsParameters) -> Time {
        let done = self.receiver_free.max(now) + parameters.costs.receive_packet;
        self.receiver_free = done;
        self.received = self.received.saturating_add(parameters.costs.receive_packet);
        done
    }

    /// A packet has been acknowledged.
    fn acknowledged(
        &mut self,
        (flow, sequence): (FlowId, Sequence),
        done: Time,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let Some(piece) = self.transmit.sender.acknowledged(flow, sequence, context.now()) else { return };
        if let Some(token) = self.transmit.settle(piece).and_then(|message| message.token) {
            context.set_timer(done, PortalsTimer::Sent(token));
        }
        // Its flow has room for another.
        if self.transmit.waiting() > 0 {
            context.request_injection();
        }
    }

    /// A packet of a message has been taken.
    fn take(
        &mut self,
        packet: &Packet,
        done: Time,
        parameters: &NicParameters<PortalsParameters, H::Parameters>,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let Packet { source: from, message: number, hops, .. } = *packet;
        // One that has been withdrawn, while its packets were on their way, is not announced any more.
        let Some(announced) = self.incoming.get_mut((from, number)) else { return };
        announced.missing -= packet.payload();
        if announced.missing > Bytes::ZERO {
            return;
        }
        let MessageHeader { bytes, created_at, header, watch, interface } = announced.header;
        self.incoming.remove((from, number));
        let (noticed, in_mailbox) = (done + parameters.interface.costs.receive_message, false);
        if watch {
            let (endpoint, source, message) = (context.endpoint(), from, number);
            let began = Time::from_ps(done.as_ps() - parameters.interface.costs.receive_packet.as_ps());
            for (block, came, began, ended) in
                [(RECEIVE_ENGINE, context.now(), began, done), (EVENT_WRITE, done, done, noticed)]
            {
                context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
            }
        }
        let message =
            Delivered { from, number, bytes, created_at, noticed, hops, header, interface, in_mailbox };
        if noticed > context.now() && !H::PASSIVE {
            self.due.push_back(message);
            context.set_timer(noticed, PortalsTimer::Deliver);
        } else {
            self.hosted(parameters, context).deliver(&message);
        }
    }

    /// Time may be up for packets.
    fn expired(
        &mut self,
        parameters: &NicParameters<PortalsParameters, H::Parameters>,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let now = context.now();
        let Some(expired) = self.transmit.sender.expired(now, &parameters.interface.transport) else {
            return;
        };
        if let Some(next) = expired.next {
            context.set_timer(next, PortalsTimer::Retransmission);
        }
        for (flow, piece) in expired.failed {
            let Some(message) = self.transmit.withdraw(piece) else { continue };
            context.announce(flow.peer, piece.message, Announcement::Withdrawn);
            let (to, number, interface) = (flow.peer, piece.message, message.interface);
            let failure =
                Failure { to, number, interface, token: message.token, reason: FailureReason::TimedOut };
            self.hosted(parameters, context).fail(&failure);
        }
        context.request_injection();
    }

    /// The packet of a message, sent for the first time.
    #[inline]
    fn first_time(
        &mut self,
        supplied: &Supplied,
        pace: Option<Span>,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) -> Packet {
        let Supplied { to, kind, mut piece, sequence, last, .. } = *supplied;
        let (endpoint, now, block) = (context.endpoint(), context.now(), TRANSMIT_ENGINE);
        let report = watched::Supplied { message: piece.message, last, now, gap: Span::ZERO, pace, block };
        piece.watch = self.transmit.watched.supply(endpoint, &report, context.output());
        if let Some(sequence) = sequence.filter(|_| piece.watch)
            && let Some(kept) = self.transmit.sender.packet_mut(FlowId { peer: to, kind }, sequence)
        {
            kept.watch = true;
        }
        packet_of(&piece, (endpoint, to), sequence.map(|sequence| (kind, sequence)))
    }

    /// A packet that is sent again.
    #[cold]
    #[inline(never)]
    fn again(&mut self, repeat: &Repeat<Piece>, context: &mut InterfaceContext<'_, '_, Self>) -> Packet {
        let (source, piece, now) = (context.endpoint(), repeat.packet, context.now());
        if piece.watch {
            let (message, block) = (piece.message, Block::TIMEOUT);
            let (endpoint, came, began, ended) = (source, repeat.sent, now, now);
            context.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
        }
        packet_of(&piece, (source, repeat.flow.peer), Some((repeat.flow.kind, repeat.sequence)))
    }
}

impl<H: Host> Nic<H> for PortalsNic<H> {
    fn new(host: H, _: EndpointId, _: &Self::Parameters) -> PortalsNic<H> {
        PortalsNic {
            host,
            transmit: Transmit::default(),
            receiver: Receiver::default(),
            incoming: MessageTable::default(),
            due: VecDeque::new(),
            failures: VecDeque::new(),
            receiver_free: Time::ZERO,
            received: Span::ZERO,
        }
    }

    fn host_timer(_: &Self::Parameters, timer: H::Timer) -> PortalsTimer<H::Timer> {
        PortalsTimer::Host(timer)
    }

    fn host(&self) -> &H {
        &self.host
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

impl<H: Host> Interface for PortalsNic<H> {
    type Parameters = NicParameters<PortalsParameters, H::Parameters>;
    type Timer = PortalsTimer<H::Timer>;
    type Announcement = Announcement<H::Header>;
    type Output = H::Output;

    fn tells_when_ready(&self) -> bool {
        true
    }

    fn is_active(&self) -> bool {
        self.host.is_active()
    }

    fn start(&mut self, parameters: &Self::Parameters, context: &mut InterfaceContext<'_, '_, Self>) {
        self.hosted(parameters, context).start();
        context.request_injection();
    }

    fn timer(
        &mut self,
        timer: Self::Timer,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        match timer {
            PortalsTimer::Host(timer) => self.hosted(parameters, context).host_timer(timer),
            PortalsTimer::Deliver => {
                if let Some(message) = self.due.pop_front() {
                    self.hosted(parameters, context).deliver(&message);
                }
            }
            PortalsTimer::Failed => {
                if let Some(failure) = self.failures.pop_front() {
                    self.hosted(parameters, context).fail(&failure);
                }
            }
            PortalsTimer::Sent(token) => self.hosted(parameters, context).sent(token),
            PortalsTimer::Retransmission => self.expired(parameters, context),
        }
    }

    fn announced(
        &mut self,
        announced: Announced<Self::Announcement>,
        _: &Self::Parameters,
        _: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let Announced { from, message, content } = announced;
        match content {
            Announcement::Message(header) => {
                self.incoming.insert((from, message), Incoming { missing: header.bytes, header });
            }
            Announcement::Withdrawn => drop(self.incoming.remove((from, message))),
        }
    }

    #[inline]
    fn received(
        &mut self,
        packet: &Packet,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let now = context.now();
        let done = self.engine(now, &parameters.interface);
        if packet.is_corrupted() {
            return; // its CRC or FCS fails: it is dropped in silence
        }
        match Header::of(packet) {
            None => {}
            Some(Header::Datagram) => self.take(packet, done, parameters, context),
            Some(Header::Acknowledgement(kind, sequence)) => {
                self.acknowledged((FlowId { peer: packet.source, kind }, sequence), done, context);
            }
            Some(Header::Data(kind, sequence)) => {
                let flow = FlowId { peer: packet.source, kind };
                let verdict = self.receiver.receive(flow, sequence, now, &parameters.interface.transport);
                if verdict != Verdict::Drop {
                    let (to, message) = (packet.source, packet.message);
                    self.transmit.answers.push_back(Answer { ready: done, to, message, kind, sequence });
                    context.request_injection();
                }
                if verdict == Verdict::Take {
                    self.take(packet, done, parameters, context);
                }
            }
        }
    }

    fn hop(output: &mut H::Output, hop: &HopRecord) {
        output.hop(hop);
    }

    #[inline]
    fn next_injection(&mut self, _: Time, parameters: &Self::Parameters) -> Time {
        // Whether there is a turn for an offer is asked when its time has come.
        self.transmit.ready().min(parameters.interface.earliest(self.host.next_offer()))
    }

    fn inject(
        &mut self,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) -> Injection {
        let now = context.now();
        if self.transmit.next_packet > now {
            return Injection::NotBefore(self.transmit.next_packet);
        }
        self.take_offers(parameters, context);
        let admits_all = context.admits_all();
        let next = self.transmit.next(now, &parameters.interface, |class| {
            admits_all
                || match class {
                    Some(class) => context.admits_class(class),
                    None => context.admits(ACKNOWLEDGEMENT, MessagePart::Whole, 0),
                }
        });
        let pace = (self.transmit.next_packet == now).then_some(parameters.interface.costs.send_packet);
        let (packet, timer) = match next {
            Next::NotBefore(time) => {
                // An offer whose time has come waits for a turn, which asks for a packet.
                let offer = parameters.interface.earliest(self.host.next_offer());
                let offer = Some(offer).filter(|offer| *offer > now);
                return Injection::not_before(time.min(offer.unwrap_or(Time::NEVER)));
            }
            Next::Answer(answer) => (packet_of_answer(context.endpoint(), &answer), None),
            Next::Repeat(repeat, timer) => (self.again(&repeat, context), timer),
            Next::Data(supplied) => {
                if let Some(token) = supplied.token.filter(|_| supplied.last && supplied.sequence.is_none()) {
                    context.set_timer(now, PortalsTimer::Sent(token));
                }
                (self.first_time(&supplied, pace, context), supplied.timer)
            }
        };
        if let Some(at) = timer {
            context.set_timer(at, PortalsTimer::Retransmission);
        }
        self.transmit.next_packet = now + parameters.interface.costs.send_packet;
        self.transmit.worked = self.transmit.worked.saturating_add(parameters.interface.costs.send_packet);
        Injection::Packet(packet)
    }
}
