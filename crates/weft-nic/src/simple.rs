//! The simple interface: overheads per message and per packet, no blocks.
//!
//! ```text
//!  host ─ send ─► per-message overhead ─► round robin over channels ─► per-packet overhead ─► fabric
//!  host ◄ deliver ─ per-message overhead ◄─ whole? ◄─ per-packet overhead ◄──────────────────── fabric
//! ```
//! # Not modelled
//! A message that loses a packet, or gets one corrupted, never arrives: nothing is sent again. Descriptors,
//! completion queues, translation, the host's bus, retransmission: the block-level
//! interface has them.

use crate::host::{Delivered, Host, HostContext, Message, Nic, Offer, Primitive};
use crate::observer::{Block, Observer, Stage};
use crate::watched::{self, Watched};
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use weft_engine::Payload;
use weft_fabric::{HopRecord, Interface, InterfaceContext, Packet, Part, Supply};
use weft_units::{Bytes, EndpointId, Span, Time};

/// What a machine file says of the simple interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SimpleParameters {
    /// From the host's post to the first packet. Messages overlap in it.
    pub send_message: Span,
    /// From the host's post of an [RDMA write](Primitive::Write) to its first packet, instead.
    pub send_write: Span,
    /// For each message before its first packet; the interface supplies no packets meanwhile.
    pub message_gap: Span,
    /// Least time between two packets that the interface supplies.
    pub send_packet: Span,
    /// For each packet that arrives, one after the other.
    pub receive_packet: Span,
    /// From the last packet to the host's notice.
    pub receive_message: Span,
    /// Largest payload of a packet.
    pub payload: Bytes,
    /// Messages whose packets are interleaved; later ones wait.
    pub channels: u32,
}

impl SimpleParameters {
    /// From a message's post to its first packet.
    fn start_of(&self, primitive: Primitive) -> Span {
        match primitive {
            Primitive::Write | Primitive::WriteBack => self.send_write,
            Primitive::Automatic | Primitive::Small => self.send_message,
        }
    }
}

/// A message on its way out.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Outgoing {
    to: EndpointId,
    number: u32,
    bytes: Bytes,
    sent: Bytes,
    born: Time,
    /// When its first packet may go, gap aside.
    posted: Time,
    /// Whether the gap before the message has been spent.
    prepared: bool,
    token: Option<u32>,
}

/// A message that is coming in.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Incoming<H> {
    missing: Bytes,
    bytes: Bytes,
    born: Time,
    header: Option<H>,
    watch: bool,
    interface: u16,
}

/// What the receiving interface is told of a message.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Announcement<H> {
    bytes: Bytes,
    born: Time,
    header: Option<H>,
    watch: bool,
    interface: u16,
}

impl<H: Copy + Send + Sync> Payload for Announcement<H> {
    fn tie(&self) -> u128 {
        // Of a message there is one.
        0
    }
}

/// The simple interface's own events.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum SimpleTimer<T> {
    /// The host's.
    Host(T),
    /// The first message that waits for the host's notice is due.
    Deliver,
    /// All data of the message with this token has been taken.
    Sent(u32),
}

impl<T: Payload> Payload for SimpleTimer<T> {
    fn tie(&self) -> u128 {
        match self {
            SimpleTimer::Deliver => 0,
            SimpleTimer::Sent(token) => 1 << 120 | u128::from(*token),
            SimpleTimer::Host(timer) => 1 << 121 | timer.tie(),
        }
    }
}

/// The interface, with its host.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct SimpleNic<H: Host> {
    /// The host.
    pub host: H,
    transmit: Transmit,
    /// Messages announced to this interface that have not arrived whole.
    incoming: BTreeMap<(EndpointId, u32), Incoming<H::Header>>,
    /// Messages that have arrived, in the order in which the host notices them.
    due: VecDeque<DueMessage<H::Header>>,
    /// When the receiving side is done with all packets that have arrived.
    receiver_free: Time,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct DueMessage<H> {
    from: EndpointId,
    number: u32,
    bytes: Bytes,
    born: Time,
    hops: u8,
    header: Option<H>,
    interface: u16,
}

/// The sending side.
#[derive(Serialize, Deserialize)]
struct Transmit {
    /// In the order in which they are posted.
    queue: VecDeque<Outgoing>,
    /// Which of the channels sends next.
    turn: u32,
    next_number: u32,
    next_packet: Time,
    /// When the gap before the host's next offer begins, if nothing else is sent before: it need not be asked
    /// then, only when the gap is over.
    begins_offer: Time,
    watched: Watched,
}

/// What a host may do when the simple interface calls it.
struct AtHost<'a, 'b, 'c, H: Host> {
    transmit: &'a mut Transmit,
    parameters: &'a SimpleParameters,
    interface: &'a mut InterfaceContext<'b, 'c, SimpleNic<H>>,
}

impl<H: Host> HostContext<H> for AtHost<'_, '_, '_, H> {
    #[inline]
    fn now(&self) -> Time {
        self.interface.now()
    }

    #[inline]
    fn endpoint(&self) -> EndpointId {
        self.interface.endpoint()
    }

    #[inline]
    fn output(&mut self) -> &mut H::Output {
        self.interface.output()
    }

    fn set_timer(&mut self, at: Time, timer: H::Timer) {
        self.interface.set_timer(at, SimpleTimer::Host(timer));
    }

    fn send(&mut self, message: Message<H::Header>, at: Time) -> u32 {
        let number = self.transmit.take_number();
        let Message { to, bytes, born, header, token, primitive, to_interface: interface, watch, .. } =
            message;
        self.interface.announce(to, number, Announcement { bytes, born, header, watch, interface });
        let (sent, prepared) = (Bytes::ZERO, self.parameters.message_gap == Span::ZERO);
        let posted = at + self.parameters.start_of(primitive);
        if watch {
            let endpoint = self.interface.endpoint();
            self.transmit.watched.post(endpoint, number, at, posted, self.interface.output());
        }
        let outgoing = Outgoing { to, number, bytes, sent, born, posted, prepared, token };
        self.transmit.insert(outgoing);
        self.interface.request_pump();
        number
    }

    fn request_offer(&mut self) {
        self.interface.request_pump();
    }
}

impl Transmit {
    fn take_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        number
    }

    /// Puts a message behind all that are posted no later.
    #[inline]
    fn insert(&mut self, outgoing: Outgoing) {
        match self.queue.back() {
            Some(last) if last.posted > outgoing.posted => {
                let place = self.queue.partition_point(|other| other.posted <= outgoing.posted);
                self.queue.insert(place, outgoing);
            }
            _ => self.queue.push_back(outgoing),
        }
    }
}

impl<H: Host> SimpleNic<H> {
    /// The interface of `host`.
    pub fn new(host: H) -> SimpleNic<H> {
        SimpleNic {
            host,
            transmit: Transmit {
                queue: VecDeque::new(),
                turn: 0,
                next_number: 0,
                next_packet: Time::ZERO,
                begins_offer: Time::MAX,
                watched: Watched::default(),
            },
            incoming: BTreeMap::new(),
            due: VecDeque::new(),
            receiver_free: Time::ZERO,
        }
    }

    fn with_host<'a, 'b, 'c>(
        &'a mut self,
        parameters: &'a (SimpleParameters, H::Parameters),
        context: &'a mut InterfaceContext<'b, 'c, Self>,
        call: impl FnOnce(&mut H, &H::Parameters, &mut AtHost<'_, 'b, 'c, H>),
    ) {
        let transmit = &mut self.transmit;
        let mut at_host = AtHost { transmit, parameters: &parameters.0, interface: context };
        call(&mut self.host, &parameters.1, &mut at_host);
    }

    /// A message has arrived whole; the receiving side is done with it at `done`.
    #[inline]
    fn arrived(
        &mut self,
        message: DueMessage<H::Header>,
        done: Time,
        parameters: &(SimpleParameters, H::Parameters),
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let notice = done + parameters.0.receive_message;
        if notice > context.now() && !H::PASSIVE {
            self.due.push_back(message);
            context.set_timer(notice, SimpleTimer::Deliver);
        } else {
            self.deliver(message, notice, parameters, context);
        }
    }

    #[inline]
    fn deliver(
        &mut self,
        message: DueMessage<H::Header>,
        noticed: Time,
        parameters: &(SimpleParameters, H::Parameters),
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let DueMessage { from, number, bytes, born, hops, header, interface } = message;
        let in_mailbox = false;
        let delivered = Delivered { from, number, bytes, born, noticed, hops, header, interface, in_mailbox };
        self.with_host(parameters, context, |host, shared, at_host| {
            host.delivered(&delivered, shared, at_host)
        });
    }

    /// The link is free from `free` on, and no message waits: when the gap before the host's next offer will be
    /// over.
    fn begin_offer(&mut self, free: Time, parameters: &SimpleParameters) -> Time {
        let offer = self.host.next_offer();
        if offer == Time::MAX {
            return offer;
        }
        let begin = offer.max(free).max(self.transmit.next_packet);
        self.transmit.begins_offer = begin;
        begin.max(offer.saturating_add(parameters.send_message)).saturating_add(parameters.message_gap)
    }

    /// Takes the next packet of the message whose turn it is.
    fn next_of_queue(&mut self, now: Time, parameters: &SimpleParameters) -> Option<Supplied> {
        let transmit = &mut self.transmit;
        let first = transmit.queue.front()?;
        if first.posted > now {
            return Some(Supplied::NotBefore(first.posted));
        }
        let window = transmit.queue.iter().take(parameters.channels as usize);
        let channels = window.take_while(|outgoing| outgoing.posted <= now).count();
        let index = transmit.turn as usize % channels;
        let outgoing = &mut transmit.queue[index];
        if !outgoing.prepared {
            outgoing.prepared = true;
            transmit.turn = index as u32;
            transmit.next_packet = now + parameters.message_gap;
            return Some(Supplied::NotBefore(transmit.next_packet));
        }
        let piece = (outgoing.bytes - outgoing.sent).min(parameters.payload);
        let whole = piece == outgoing.bytes;
        outgoing.sent += piece;
        let finished = outgoing.sent == outgoing.bytes;
        let Outgoing { to, number, born, token, .. } = *outgoing;
        if finished {
            transmit.queue.remove(index);
            transmit.turn = index as u32;
        } else {
            transmit.turn = (index as u32 + 1) % channels as u32;
        }
        let part = if whole { Part::Whole } else { Part::Piece };
        let sent = token.filter(|_| finished);
        Some(Supplied::Packet { to, number, bytes: piece, born, part, sent, last: finished })
    }
}

/// The outcome of a look at the queue.
enum Supplied {
    Packet {
        to: EndpointId,
        number: u32,
        bytes: Bytes,
        born: Time,
        part: Part,
        sent: Option<u32>,
        last: bool,
    },
    NotBefore(Time),
}

impl<H: Host> Nic<H> for SimpleNic<H> {
    fn new(host: H, _: EndpointId, _: &Self::Parameters) -> SimpleNic<H> {
        SimpleNic::new(host)
    }

    fn host_timer(timer: H::Timer) -> SimpleTimer<H::Timer> {
        SimpleTimer::Host(timer)
    }

    fn host(&self) -> &H {
        &self.host
    }

    fn unfinished(&self) -> (usize, usize) {
        (self.transmit.queue.len(), self.incoming.len() + self.due.len())
    }
}

impl<H: Host> Interface for SimpleNic<H> {
    type Parameters = (SimpleParameters, H::Parameters);
    type Timer = SimpleTimer<H::Timer>;
    type Announcement = Announcement<H::Header>;
    type Output = H::Output;

    fn is_active(&self) -> bool {
        self.host.is_active()
    }

    fn start(&mut self, parameters: &Self::Parameters, context: &mut InterfaceContext<'_, '_, Self>) {
        self.with_host(parameters, context, |host, shared, at_host| host.start(shared, at_host));
        context.request_pump();
    }

    fn timer(
        &mut self,
        timer: Self::Timer,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        match timer {
            SimpleTimer::Host(timer) => {
                self.with_host(parameters, context, |host, shared, at_host| {
                    host.timer(timer, shared, at_host)
                });
            }
            SimpleTimer::Deliver => {
                if let Some(message) = self.due.pop_front() {
                    let noticed = context.now();
                    self.deliver(message, noticed, parameters, context);
                }
            }
            SimpleTimer::Sent(token) => {
                self.with_host(parameters, context, |host, shared, at_host| {
                    host.sent(token, shared, at_host)
                });
            }
        }
    }

    fn announced(
        &mut self,
        from: EndpointId,
        message: u32,
        what: Announcement<H::Header>,
        _: &Self::Parameters,
        _: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let Announcement { bytes, born, header, watch, interface } = what;
        let missing = bytes;
        self.incoming.insert((from, message), Incoming { missing, bytes, born, header, watch, interface });
    }

    #[inline]
    fn received(
        &mut self,
        packet: &Packet,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) {
        let done = self.receiver_free.max(context.now()) + parameters.0.receive_packet;
        self.receiver_free = done;
        if packet.bad {
            return; // its check fails: the message will never be whole
        }
        let Packet { source: from, message: number, hops, born, .. } = *packet;
        let bytes = packet.payload();
        let key = (from, number);
        // A host whose messages carry no header does not announce those of one packet.
        let Entry::Occupied(mut announced) = self.incoming.entry(key) else {
            debug_assert!(packet.part == Part::Whole, "pieces are announced");
            let (header, interface) = (None, 0);
            let message = DueMessage { from, number, bytes, born, hops, header, interface };
            return self.arrived(message, done, parameters, context);
        };
        let incoming = announced.get_mut();
        incoming.missing -= bytes;
        if incoming.missing == Bytes::ZERO {
            let Incoming { bytes, born, header, watch, interface, .. } = announced.remove();
            if watch {
                let (endpoint, block, came) = (context.endpoint(), Block::Interface, context.now());
                // Nothing holds it up from then on.
                let began = Time::from_ps(done.as_ps() - parameters.0.receive_packet.as_ps());
                let ended = done + parameters.0.receive_message;
                let stage = Stage { endpoint, source: from, message: number, block, came, began, ended };
                context.output().stage(&stage);
            }
            let message = DueMessage { from, number, bytes, born, hops, header, interface };
            self.arrived(message, done, parameters, context);
        }
    }

    fn hop(output: &mut H::Output, hop: &HopRecord) {
        output.hop(hop);
    }

    #[inline]
    fn next_supply(&mut self, free: Time, parameters: &Self::Parameters) -> Time {
        match self.transmit.queue.front() {
            Some(outgoing) => outgoing.posted.max(self.transmit.next_packet),
            None => self.begin_offer(free, &parameters.0),
        }
    }

    #[inline]
    fn supply(
        &mut self,
        parameters: &Self::Parameters,
        context: &mut InterfaceContext<'_, '_, Self>,
    ) -> Supply {
        let now = context.now();
        if self.transmit.next_packet > now {
            return Supply::NotBefore(self.transmit.next_packet);
        }
        let queued = self.next_of_queue(now, &parameters.0);
        let begun = std::mem::replace(&mut self.transmit.begins_offer, Time::MAX).min(now);
        let (to, number, bytes, born, part, last) = match queued {
            Some(Supplied::Packet { to, number, bytes, born, part, sent, last }) => {
                if let Some(token) = sent {
                    context.set_timer(now, SimpleTimer::Sent(token));
                }
                (to, number, bytes, born, part, last)
            }
            Some(Supplied::NotBefore(time)) => return Supply::NotBefore(time),
            None => match self.host.offer(&parameters.1, now) {
                Offer::Nothing => return Supply::Nothing,
                Offer::NotBefore(_) => return Supply::not_before(self.begin_offer(now, &parameters.0)),
                Offer::Message(message) => {
                    let Message { to, bytes, born, header, token, primitive, to_interface, .. } = message;
                    let number = self.transmit.take_number();
                    if header.is_some() || bytes > parameters.0.payload {
                        let (interface, watch) = (to_interface, false);
                        context.announce(to, number, Announcement { bytes, born, header, watch, interface });
                    }
                    let posted = born + parameters.0.start_of(primitive);
                    let next = posted.max(begun) + parameters.0.message_gap;
                    if next > now {
                        let (sent, prepared) = (Bytes::ZERO, true);
                        self.transmit.insert(Outgoing {
                            to,
                            number,
                            bytes,
                            sent,
                            born,
                            posted: next,
                            prepared,
                            token,
                        });
                        self.transmit.next_packet = next;
                        return Supply::NotBefore(next);
                    }
                    if bytes > parameters.0.payload {
                        let (sent, prepared) = (parameters.0.payload, true);
                        let outgoing =
                            Outgoing { to, number, bytes, sent, born, posted: now, prepared, token };
                        self.transmit.insert(outgoing);
                        (to, number, sent, born, Part::Piece, false)
                    } else {
                        if let Some(token) = token {
                            context.set_timer(now, SimpleTimer::Sent(token));
                        }
                        (to, number, bytes, born, Part::Whole, true)
                    }
                }
            },
        };
        let pace = (self.transmit.next_packet == now).then_some(parameters.0.send_packet);
        self.transmit.next_packet = now + parameters.0.send_packet;
        let endpoint = context.endpoint();
        let mut packet = Packet::new(endpoint, to, number, bytes.get() as u32, born, part);
        let gap = parameters.0.message_gap;
        let supplied = watched::Supplied { message: number, last, now, gap, pace };
        packet.watch = self.transmit.watched.supply(endpoint, &supplied, context.output());
        Supply::Packet(packet)
    }
}
