//! A network interface of one's own, with a host that uses it, on the ideal network. The book's page on
//! adding an interface is made of this file.
//!
//! ```text
//!  host ─ send ─► doorbell ─► packets of at most `payload` ─► network ─► whole? ─► deliver ─► host
//! ```

#![allow(clippy::unwrap_used, reason = "its parameters are constants, and its tests run it")]

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use weft_engine::{Payload, Simulation};
use weft_fabric::parameters::IdealParameters;
use weft_fabric::{Addressing, Announced, ClassTag, HeaderBits, Ideal, Injection, MessagePart, Packet};
use weft_nic::{
    Delivered, Host, HostContext, Hosted, Message, Nic, NicBoard, NicNode, NicParameters, NicShell, Observer,
    Offer,
};
use weft_units::{BitRate, Bytes, EndpointId, Span, Time};

// ANCHOR: state
/// The parameters of the interface, as a machine file would have them.
#[derive(Clone, Copy)]
struct DoorbellParameters {
    /// From the host's post of a message to its first packet.
    doorbell: Span,
    /// Largest payload of a packet.
    payload: Bytes,
}

/// A message on its way out.
#[derive(Serialize, Deserialize)]
struct SendingMessage {
    to: EndpointId,
    number: u32,
    bytes: Bytes,
    /// The bytes that have left in packets.
    sent: Bytes,
    offered: Time,
    /// The time at which the doorbell has been heard.
    ready: Time,
    token: Option<u32>,
    /// The traffic class, which its packets carry.
    class: ClassTag,
}

/// A message on its way in: the announcement of its sender, and the bytes that have not come.
#[derive(Serialize, Deserialize)]
struct Incoming<T> {
    announced: Announcement<T>,
    missing: Bytes,
}

/// The interface, with its host.
type DoorbellNic<H> = NicShell<DoorbellBoard<H>, H>;

/// The board of the interface.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
struct DoorbellBoard<H: Host> {
    outgoing: Outbox,
    incoming: BTreeMap<(EndpointId, u32), Incoming<H::Header>>,
}

/// The messages on their way out, in the order of their posts.
#[derive(Default, Serialize, Deserialize)]
struct Outbox {
    queue: VecDeque<SendingMessage>,
    next_number: u32,
}
// ANCHOR_END: state

// ANCHOR: events
/// Header fields that all packets of a message share: they are announced once.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Announcement<T> {
    bytes: Bytes,
    offered: Time,
    header: Option<T>,
    interface: u16,
}

impl<T: Copy + Send + Sync> Payload for Announcement<T> {
    fn tie(&self) -> u128 {
        0 // a message has one
    }
}

/// The timers of the interface.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum DoorbellTimer<T> {
    /// The host's.
    Host(T),
    /// All data of the message with this token has been taken.
    Sent(u32),
}

impl<T: Payload> Payload for DoorbellTimer<T> {
    fn tie(&self) -> u128 {
        match self {
            DoorbellTimer::Sent(token) => u128::from(*token),
            DoorbellTimer::Host(timer) => 1 << 120 | timer.tie(),
        }
    }
}
// ANCHOR_END: events

// ANCHOR: interface
impl<H: Host> NicBoard<H> for DoorbellBoard<H> {
    type Parameters = DoorbellParameters;
    type Timer = DoorbellTimer<H::Timer>;
    type Announcement = Announcement<H::Header>;

    const TELLS_WHEN_READY: bool = false;

    fn new(_: EndpointId, _: &NicParameters<DoorbellParameters, H::Parameters>) -> DoorbellBoard<H> {
        DoorbellBoard { outgoing: Outbox::default(), incoming: BTreeMap::new() }
    }

    fn host_timer(timer: H::Timer) -> DoorbellTimer<H::Timer> {
        DoorbellTimer::Host(timer)
    }

    /// The host sends a message.
    fn send(node: &mut DoorbellNode<'_, '_, '_, H>, message: Message<H::Header>, at: Time) -> u32 {
        let Message { to, bytes, created_at: offered, header, token, to_interface: interface, .. } = message;
        let NicNode { hardware: DoorbellBoard { outgoing, .. }, parameters, fabric, .. } = node;
        let number = outgoing.next_number;
        outgoing.next_number += 1;
        fabric.announce(to, number, Announcement { bytes, offered, header, interface });
        let ready = at + parameters.doorbell;
        // Posts may be ahead of the present time: they go out in the order of their times.
        let place = outgoing.queue.partition_point(|other| other.ready <= ready);
        let class = fabric.class_of(&message.purpose, bytes);
        let sent = Bytes::ZERO;
        outgoing
            .queue
            .insert(place, SendingMessage { to, number, bytes, sent, offered, ready, token, class });
        fabric.request_injection();
        number
    }

    fn timer(hosted: &mut DoorbellHosted<'_, '_, '_, H>, timer: DoorbellTimer<H::Timer>) {
        match timer {
            DoorbellTimer::Host(timer) => hosted.host_timer(timer),
            DoorbellTimer::Sent(token) => hosted.sent(token),
        }
    }

    fn announced(hosted: &mut DoorbellHosted<'_, '_, '_, H>, announced: Announced<Announcement<H::Header>>) {
        let Announced { from, message, content } = announced;
        let incoming = Incoming { announced: content, missing: content.bytes };
        hosted.node.hardware.incoming.insert((from, message), incoming);
    }

    fn received(hosted: &mut DoorbellHosted<'_, '_, '_, H>, packet: &Packet) {
        let (key, all) = ((packet.source, packet.message), &mut hosted.node.hardware.incoming);
        let Some(incoming) = all.get_mut(&key).filter(|_| !packet.is_corrupted()) else { return };
        incoming.missing -= packet.payload();
        if incoming.missing > Bytes::ZERO {
            return;
        }
        let Announcement { bytes, offered, header, interface } = incoming.announced;
        all.remove(&key);
        let message = Delivered {
            from: packet.source,
            number: packet.message,
            bytes,
            created_at: offered,
            noticed: hosted.node.fabric.now(),
            hops: packet.hops,
            channel: 0,
            header,
            interface,
            in_mailbox: false,
        };
        hosted.deliver(&message);
    }

    fn next_injection(&mut self, host: &H, free: Time, _: &DoorbellParameters) -> Time {
        let posted = self.outgoing.queue.front().map_or(Time::NEVER, |message| message.ready);
        posted.min(host.next_offer()).max(free)
    }

    fn inject(hosted: &mut DoorbellHosted<'_, '_, '_, H>) -> Injection {
        let Hosted { host, parameters, node } = hosted;
        let now = node.fabric.now();
        if node.hardware.outgoing.queue.is_empty() {
            match host.offer(parameters, now) {
                Offer::Message(message) => drop(node.send(message, now)),
                Offer::NotBefore(time) => return Injection::not_before(time),
                Offer::Nothing => return Injection::Nothing,
            }
        }
        let source = node.fabric.endpoint();
        match node.hardware.outgoing.next_packet(now, node.parameters.payload, source) {
            Ok((packet, taken)) => {
                if let Some(token) = taken {
                    node.fabric.set_timer(now, DoorbellTimer::Sent(token));
                }
                Injection::Packet(packet)
            }
            Err(ready) => Injection::not_before(ready),
        }
    }

    fn unfinished(&self) -> (usize, usize) {
        (self.outgoing.queue.len(), self.incoming.len())
    }

    fn visit_arriving(&self, visit: &mut dyn FnMut(&H::Header, Bytes)) {
        for Incoming { announced, missing } in self.incoming.values() {
            announced.header.iter().for_each(|header| visit(header, announced.bytes - *missing));
        }
    }
}

/// The board in its surroundings, during one call.
type DoorbellNode<'a, 'b, 'c, H> = NicNode<'a, 'b, 'c, DoorbellBoard<H>, H>;

/// The same, with the host.
type DoorbellHosted<'a, 'b, 'c, H> = Hosted<'a, 'b, 'c, DoorbellBoard<H>, H>;
// ANCHOR_END: interface

// ANCHOR: packets
impl Outbox {
    /// The next packet from `source`, with the token of its message where it is the last one.
    ///
    /// # Errors
    /// The time before which there is none.
    fn next_packet(
        &mut self,
        now: Time,
        payload: Bytes,
        source: EndpointId,
    ) -> Result<(Packet, Option<u32>), Time> {
        let Some(message) = self.queue.front_mut() else { return Err(Time::NEVER) };
        if message.ready > now {
            return Err(message.ready);
        }
        let bytes = (message.bytes - message.sent).min(payload);
        message.sent += bytes;
        let part = if bytes == message.bytes { MessagePart::Whole } else { MessagePart::Piece };
        let addressing = Addressing { source, destination: message.to, message: message.number };
        let carried = HeaderBits::offered(message.offered);
        let packet = Packet::new(addressing, bytes.get() as u32, carried, part).of_class(message.class);
        let last = message.sent == message.bytes;
        let done = if last { self.queue.pop_front() } else { None };
        Ok((packet, done.and_then(|message| message.token)))
    }
}
// ANCHOR_END: packets

// ANCHOR: run
/// A host: endpoint 0 sends one message to endpoint 1 when the run begins.
#[derive(Serialize, Deserialize)]
struct Sender {
    is_active: bool,
}

/// A host that sets no timers.
#[derive(Clone, Copy, Serialize, Deserialize)]
enum NoTimer {}

impl Payload for NoTimer {
    fn tie(&self) -> u128 {
        match *self {}
    }
}

/// The times at which messages were delivered and senders were done, with their tokens.
#[derive(Default)]
struct Log {
    delivered: Vec<(Time, Bytes)>,
    sent: Vec<(Time, u32)>,
}

impl Observer for Log {}

impl Host for Sender {
    /// Bytes of the message.
    type Parameters = Bytes;
    type Timer = NoTimer;
    type Header = ();
    type Output = Log;

    fn is_active(&self) -> bool {
        self.is_active
    }
    fn start(&mut self, bytes: &Bytes, context: &mut impl HostContext<Self>) {
        let now = context.now();
        let message =
            Message { header: Some(()), token: Some(7), ..Message::new(EndpointId(1), *bytes, now) };
        context.send(message, now);
    }
    fn timer(&mut self, timer: NoTimer, _: &Bytes, _: &mut impl HostContext<Self>) {
        match timer {}
    }
    fn sent(&mut self, token: u32, _: &Bytes, context: &mut impl HostContext<Self>) {
        let now = context.now();
        context.output().sent.push((now, token));
    }
    fn delivered(&mut self, message: &Delivered<()>, _: &Bytes, context: &mut impl HostContext<Self>) {
        let now = context.now();
        context.output().delivered.push((now, message.bytes));
    }
    fn next_offer(&self) -> Time {
        Time::NEVER
    }
    fn offer(&mut self, _: &Bytes, _: Time) -> Offer<()> {
        Offer::Nothing
    }
}

const INTERFACE: DoorbellParameters =
    DoorbellParameters { doorbell: Span::from_ns(300), payload: Bytes::new(256) };
const LATENCY: Span = Span::from_ns(500);

/// Sends one message of `bytes` over the ideal network at 16 Gb/s, 2 bytes per ns.
fn run(bytes: Bytes) -> Log {
    let rate = Some(BitRate::from_gigabits(16));
    let ideal = IdealParameters { latency: LATENCY, gap: Span::ZERO, rate };
    let shared = NicParameters { interface: INTERFACE, host: bytes };
    let make = |endpoint: EndpointId, shared: &_| {
        DoorbellNic::new(Sender { is_active: endpoint == EndpointId(0) }, endpoint, shared)
    };
    let mut simulation = Simulation::new(Ideal::build(ideal, 2, shared, make), 1);
    simulation.run_until(Time::NEVER, &AtomicBool::new(false));
    let mut log = Log::default();
    for output in simulation.outputs_mut() {
        log.delivered.append(&mut output.delivered);
        log.sent.append(&mut output.sent);
    }
    log
}
// ANCHOR_END: run

fn main() {
    for bytes in [8, 256, 4096, 65536].map(Bytes::new) {
        let (at, _) = run(bytes).delivered[0];
        println!("{bytes}: {}", at - Time::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a doorbell that is paid per packet, packets that leave gaps, and a message that is delivered
    /// before its last byte.
    #[test]
    fn a_message_takes_its_doorbell_its_bytes_and_the_latency() {
        for bytes in [0, 1, 256, 257, 4096, 65536] {
            let log = run(Bytes::new(bytes));
            let serialized = Span::from_ps(bytes * 500);
            let expected = Time::ZERO + INTERFACE.doorbell + serialized + LATENCY;
            assert_eq!(log.delivered, [(expected, Bytes::new(bytes))]);
        }
    }

    /// Catches a sender that is told before its last packet is on the link, or not at all.
    #[test]
    fn a_sender_is_done_when_its_last_packet_leaves() {
        let log = run(Bytes::new(600));
        let last = Time::ZERO + INTERFACE.doorbell + Span::from_ps(512 * 500);
        assert_eq!(log.sent, [(last, 7)]);
    }
}
