//! The ports of an endpoint in their surroundings, while the fabric calls them.
//!
//! Ports take turns on the link to the switch, packet by packet.

use super::aggregator::AGGREGATOR;
use super::announcement::MessageHeader;
use super::dispatcher::{DISPATCHER, Reassembly};
use super::fifo::{FifoPacketKind, Queued, TRANSMIT_FIFO};
use super::header::{Coordinates, Header, TEST, carried, size_and_address};
use super::parameters::CommunicationIpParameters;
use super::port::{FifoMessage, Port};
use super::registers::{Register, Registers};
use super::self_test::{SelfTest, TestPacket, TestPattern};
use super::{Announcement, CommunicationIpTimer};
use crate::block::Block;
use crate::capability::{Capabilities, Mailboxes, RegisterAccess, RegisterError};
use crate::failure::{Failure, FailureReason};
use crate::gvas::Pdid;
use crate::host::{Delivered, Host, Message, Offer, Primitive};
use crate::message_table::MessageTable;
use crate::observer::{Observer as _, Stage};
use crate::shell::{Hosted, NicNode};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::{
    Addressing, Announced, ClassTag, Injection, MessagePart, Packet, PacketLabel, ReceiveSpace,
};
use weft_units::{Bytes, EndpointId, Span, Time};

/// The label of packets between kernels.
const MESSAGE_LABEL: PacketLabel = PacketLabel::data(super::header::MESSAGE);

/// The label of packets from generator to consumer, which stands for `proc_id` as well: the pattern.
const fn test_label(pattern: TestPattern) -> PacketLabel {
    PacketLabel::data(TEST + pattern as u8)
}

/// Links that a packet crosses besides those between nodes: to the first switch and from the last.
const LINKS_OF_PORTS: u8 = 2;

/// A message that is coming in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Incoming<T> {
    pub(super) header: MessageHeader<T>,
    pub(super) reassembly: Reassembly,
}

/// The ports, and what lies behind them.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct Hardware<H: Host> {
    pub(super) ports: Vec<Port>,
    registers: Registers,
    test: SelfTest,
    /// Messages announced to this endpoint that have not come whole.
    pub(super) incoming: MessageTable<Incoming<H::Header>>,
    /// Messages that have come, in the order in which their kernels notice them.
    pub(super) deliveries: VecDeque<Delivered<H::Header>>,
    /// Messages that failed as they were posted, and when the host learns of it.
    failures: VecDeque<(Time, Failure)>,
    /// Space of the receiving FIFOs that register `credit` keeps from the switch.
    withheld: Vec<ReceiveSpace>,
    /// The port whose turn it is.
    turn: u32,
    next_number: u32,
}

impl<H: Host> Hardware<H> {
    pub(super) fn at(endpoint: EndpointId, parameters: &CommunicationIpParameters) -> Hardware<H> {
        let lattice = &parameters.lattice;
        Hardware {
            ports: (0..lattice.ports).map(|_| Port::default()).collect(),
            registers: Registers::new(lattice.coordinates(endpoint), parameters),
            test: SelfTest::default(),
            incoming: MessageTable::default(),
            deliveries: VecDeque::new(),
            failures: VecDeque::new(),
            withheld: Vec::new(),
            turn: 0,
            next_number: 0,
        }
    }

    /// The work of the busiest aggregator and the busiest dispatcher.
    pub(super) fn worked(&self) -> [Span; 2] {
        let most = |worked: fn(&Port) -> Span| self.ports.iter().map(worked).max().unwrap_or(Span::ZERO);
        [most(|port| port.aggregator.worked()), most(|port| port.dispatcher.worked())]
    }

    /// The time at which a port has a packet for the switch; [`Time::NEVER`]: none has.
    #[inline]
    pub(super) fn ready(&self) -> Time {
        self.ports.iter().map(|port| port.fifo.ready()).min().unwrap_or(Time::NEVER)
    }

    /// Whether a port would begin on another message of the host soon.
    fn takes_offers(&self) -> bool {
        self.ports.iter().map(Port::waiting).sum::<usize>() < self.ports.len()
    }

    fn take_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        number
    }
}

/// The hardware in its surroundings.
pub(super) type IpNode<'a, 'b, 'c, H> = NicNode<'a, 'b, 'c, Hardware<H>, H>;

/// The host and its node.
pub(super) type IpHosted<'a, 'b, 'c, H> = Hosted<'a, 'b, 'c, Hardware<H>, H>;

impl<H: Host> Capabilities for IpNode<'_, '_, '_, H> {
    fn mailboxes(&mut self) -> Option<&mut dyn Mailboxes> {
        Some(self)
    }

    fn registers(&mut self) -> Option<&mut dyn RegisterAccess> {
        Some(self)
    }
}

/// Small messages wait in the receiving FIFOs of their port, as in a mailbox.
impl<H: Host> Mailboxes for IpNode<'_, '_, '_, H> {
    /// Ports know no protection domains.
    fn open(&mut self, _: u16, _: Pdid) {}

    fn taken(&mut self, interface: u16, at: Time) {
        let port = self.hardware.ports.get_mut(usize::from(interface));
        if let Some(space) = port.and_then(|port| port.untaken.pop_front()) {
            self.give_back(space, at.max(self.fabric.now()));
        }
    }
}

impl<H: Host> RegisterAccess for IpNode<'_, '_, '_, H> {
    fn read_register(&self, address: u32) -> Result<u32, RegisterError> {
        Ok(self.hardware.registers.read(Register::at(address)?, &self.hardware.test))
    }

    /// Registers that all ports of the node have in common; the self-test is that of one endpoint.
    fn is_of_node(&self, address: u32) -> bool {
        use Register::{Credit, LocalCoord, Threshold};
        Register::at(address).is_ok_and(|register| matches!(register, LocalCoord | Threshold | Credit))
    }

    fn write_register(&mut self, address: u32, value: u32) -> Result<(), RegisterError> {
        let Hardware { registers, test, .. } = &mut *self.hardware;
        if registers.write(Register::at(address)?, value, test)? {
            self.start_test();
        }
        self.apply_credit();
        self.fill_all();
        Ok(())
    }
}

impl<H: Host> IpNode<'_, '_, '_, H> {
    /// Takes a message of the host, which its port has at `at`. Returns its number.
    pub(super) fn accept(&mut self, message: Message<H::Header>, at: Time) -> u32 {
        let posted = at.max(self.fabric.now());
        let number = self.hardware.take_number();
        let Message { to, bytes, created_at, header, token, interface, to_interface, watch, .. } = message;
        let stays = matches!(message.primitive, Primitive::Small | Primitive::ReadRequest);
        let ports = self.parameters.lattice.ports;
        let reason = if u32::from(interface) >= ports || u32::from(to_interface) >= ports {
            Some(FailureReason::NoInterface)
        } else {
            (to.index() >= self.fabric.endpoints()).then_some(FailureReason::NoNode)
        };
        if let Some(reason) = reason {
            self.hardware.failures.push_back((posted, Failure { to, number, interface, token, reason }));
            self.fabric.set_timer(posted, CommunicationIpTimer::Failed);
            return number;
        }
        let announcement =
            Announcement::Message { bytes, created_at, header, interface: to_interface, stays };
        self.fabric.announce(to, number, announcement);
        let (sent, class) = (Bytes::ZERO, self.fabric.class_of(&message.purpose, bytes));
        let port = usize::from(interface);
        self.hardware.ports[port].post(FifoMessage { to, number, bytes, sent, posted, token, watch, class });
        if posted > self.fabric.now() {
            self.fabric.set_timer(posted, CommunicationIpTimer::Post);
        } else {
            self.fill(port);
            self.fabric.request_injection();
        }
        number
    }

    /// Writes packets into the FIFOs of a port, as many as have space.
    fn fill(&mut self, port: usize) {
        let now = self.fabric.now();
        if port == 0 {
            self.generate();
        }
        let threshold = self.hardware.registers.threshold();
        let fabric = &mut *self.fabric;
        self.hardware.ports[port].fill(now, threshold, self.parameters, |token, ended| {
            fabric.set_timer(ended, CommunicationIpTimer::Sent(token));
        });
    }

    /// Bytes of the receiving FIFOs that register `credit` keeps from the switch.
    fn to_withhold(&self) -> Bytes {
        let Hardware { ports, registers, .. } = &*self.hardware;
        self.parameters.word * u64::from(registers.withheld()) * ports.len() as u64
    }

    /// Gives space of the receiving FIFOs back to the switch at `at`, but for what it may not have.
    fn give_back(&mut self, space: ReceiveSpace, at: Time) {
        let withheld: Bytes = self.hardware.withheld.iter().map(|space| space.bytes()).sum();
        let [kept, free] = space.split(self.to_withhold().saturating_sub(withheld));
        self.hardware.withheld.extend(kept);
        if let Some(free) = free {
            self.fabric.free(free, at);
        }
    }

    /// Register `credit` has been written: the switch gets what it may have now.
    fn apply_credit(&mut self) {
        let now = self.fabric.now();
        for space in std::mem::take(&mut self.hardware.withheld) {
            self.give_back(space, now);
        }
    }

    fn fill_all(&mut self) {
        (0..self.hardware.ports.len()).for_each(|port| self.fill(port));
        self.fabric.request_injection();
    }

    /// The node that the packet generator sends to: along X, in the row of this node, and its endpoint.
    /// `None`: it lies outside of the lattice.
    fn test_destination(&self) -> (Coordinates, Option<EndpointId>) {
        let lattice = &self.parameters.lattice;
        let here = lattice.coordinates(self.fabric.endpoint());
        let at = Coordinates { x: self.hardware.test.destination(), ..here };
        (at, lattice.endpoint(at))
    }

    /// The packet generator begins.
    fn start_test(&mut self) {
        let packets = self.hardware.test.packets();
        self.hardware.test.generator.start(packets);
    }

    /// The packet generator writes packets into the FIFOs of port 0, as many as have space.
    fn generate(&mut self) {
        while let Some(number) = self.hardware.test.generator.next() {
            let (now, size) = (self.fabric.now(), self.hardware.test.size());
            let words = self.parameters.words(Bytes::new(u64::from(size)));
            let Hardware { ports, registers, test, .. } = &mut *self.hardware;
            let fifo = &mut ports[0].fifo;
            if !fifo.has_space(words, registers.threshold(), self.parameters) {
                return;
            }
            let all = words + self.parameters.envelope_words();
            let writing = ports[0].aggregator.generate(now, all, &self.parameters.clock);
            test.generator.written();
            let (packets, pattern) = (test.packets(), test.pattern());
            let (destination, to) = self.test_destination();
            // A packet for no node of the lattice is dropped at the first switch.
            let Some(to) = to else {
                let packet = TestPacket { number, size, destination, pattern };
                self.hardware.test.drop_outside(&packet.header());
                continue;
            };
            let message = self.hardware.take_number();
            if number == 0 {
                let began = writing.ended;
                self.fabric.announce(to, message, Announcement::Test { packets, began });
            }
            let (ready, offset) = (now, u64::from(number));
            let (kind, class) = (FifoPacketKind::Test(pattern), ClassTag::default());
            let packet = Queued { ready, writing, words, to, message, bytes: size, offset, kind, class };
            self.hardware.ports[0].fifo.push(packet, self.parameters);
        }
    }

    /// Another interface has announced something.
    pub(super) fn announced(&mut self, announced: Announced<Announcement<H::Header>>) {
        let Announced { from, message, content } = announced;
        match content {
            Announcement::Message { bytes, created_at, header, interface, stays } => {
                let header = MessageHeader { bytes, created_at, header, interface, stays };
                let reassembly = Reassembly::default();
                self.hardware.incoming.insert((from, message), Incoming { header, reassembly });
            }
            Announcement::Test { packets, began } => {
                let SelfTest { consumer, counter, .. } = &mut self.hardware.test;
                consumer.expect(packets);
                counter.start(began, &self.parameters.clock);
            }
        }
    }

    /// The footer of a packet has come. Returns the message that is whole with it.
    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet) -> Option<Delivered<H::Header>> {
        if packet.label != MESSAGE_LABEL {
            self.consume(packet);
            return None;
        }
        if packet.is_corrupted() {
            return None; // its check fails: the message never is whole
        }
        let now = self.fabric.now();
        let Packet { source: from, message: number, hops, .. } = *packet;
        let (size, begin) = size_and_address(packet.carried);
        // One that comes again when its message is whole is of no message.
        let incoming = self.hardware.incoming.get_mut((from, number))?;
        let MessageHeader { bytes, created_at, header, interface, stays } = incoming.header;
        let is_whole = incoming.reassembly.take(begin, begin.saturating_add(size), bytes);
        let port = &mut self.hardware.ports[usize::from(interface)];
        let coming = (now - packet.serialization(), now);
        let reading = port.dispatcher.take(coming, packet.payload(), self.parameters);
        let space = self.fabric.keep_space();
        // A kernel has it word by word as it reads it; messages go on into memory as they come.
        let in_mailbox = stays && !H::PASSIVE && space.is_some() && packet.part() == MessagePart::Whole;
        if let Some(space) = space {
            match in_mailbox {
                true => port.untaken.push_back(space),
                false => self.give_back(space, reading.read.max(now)),
            }
        }
        if packet.is_watched() && is_whole {
            let (endpoint, source, message) = (self.fabric.endpoint(), from, number);
            let mut stage = |block, came, began, ended| {
                self.fabric.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
            };
            stage(DISPATCHER, now, reading.read, reading.handed_over);
            if reading.stored > reading.handed_over {
                stage(Block::MEMORY, reading.handed_over, reading.handed_over, reading.stored);
            }
        }
        if !is_whole {
            return None;
        }
        self.hardware.incoming.remove((from, number));
        let (noticed, channel) = (reading.stored, if space.is_some() { packet.last_channel() } else { 0 });
        Some(Delivered {
            from,
            number,
            bytes,
            created_at,
            noticed,
            hops,
            channel,
            header,
            interface,
            in_mailbox,
        })
    }

    /// The consumer takes a packet of the self-test.
    fn consume(&mut self, packet: &Packet) {
        let now = self.fabric.now();
        let (size, number) = size_and_address(packet.carried);
        let destination = self.parameters.lattice.coordinates(self.fabric.endpoint());
        // A label that none has is that of no packet.
        let pattern = TestPattern::of(u32::from(packet.label.bits()) - u32::from(TEST)).unwrap_or_default();
        let sent = TestPacket { number: number as u32, size: size as u32, destination, pattern };
        let hops = packet.hops.saturating_sub(LINKS_OF_PORTS).into();
        let header = Header { virtual_channel: packet.last_channel(), hops, ..sent.header() };
        let header = header.pack().unwrap_or_default();
        // Damage is a bit of the first word, or of the footer where there is no other.
        let damage = u128::from(packet.is_corrupted()) << 4;
        let payload = sent.payload().enumerate();
        let payload = payload.map(|(place, word)| if place == 0 { word ^ damage } else { word });
        let footer = sent.footer().unwrap_or_default() ^ if size == 0 { damage } else { 0 };
        self.hardware.test.came(header);
        let SelfTest { consumer, counter, .. } = &mut self.hardware.test;
        if consumer.take(header, payload, footer) {
            counter.stop(now, &self.parameters.clock);
        }
    }

    /// The next packet for the switch. The host offers its next message at `next_offer`.
    #[inline]
    pub(super) fn inject(&mut self, next_offer: Time) -> Injection {
        let now = self.fabric.now();
        let count = self.hardware.ports.len() as u32;
        let turn = self.hardware.turn;
        let mut later = next_offer;
        let mut found = None;
        for port in (turn..count).chain(0..turn.min(count)) {
            let Some(packet) = self.hardware.ports[port as usize].fifo.front() else { continue };
            if packet.ready > now {
                later = later.min(packet.ready);
            } else if self.admits(packet) {
                found = Some(port);
                break;
            }
        }
        let Some(port) = found else { return Injection::not_before(later) };
        self.hardware.turn = (port + 1) % count;
        let Some(queued) = self.hardware.ports[port as usize].fifo.pop() else { return Injection::Nothing };
        self.fill(port as usize);
        Injection::Packet(self.packet_of(&queued, now))
    }

    /// Whether the network takes a packet now.
    fn admits(&self, packet: &Queued) -> bool {
        if self.fabric.admits_all() {
            return true;
        }
        match packet.kind {
            FifoPacketKind::Message { .. } => self.fabric.admits_class(packet.class),
            FifoPacketKind::Test(pattern) => {
                self.fabric.admits(test_label(pattern), MessagePart::Whole, packet.bytes)
            }
        }
    }

    /// The packet that the switch takes at `now`.
    fn packet_of(&mut self, queued: &Queued, now: Time) -> Packet {
        let Queued { ready, writing, to, message, bytes, offset, kind, class, .. } = *queued;
        let source = self.fabric.endpoint();
        let (label, part) = label_and_part(kind);
        let addressing = Addressing { source, destination: to, message };
        let mut packet = Packet::new(addressing, bytes, carried(bytes, offset), part);
        packet.label = label;
        // Multipath, where a routing has it, goes by messages.
        let mut packet = packet.in_block(message.wrapping_add(1)).of_class(class);
        if let FifoPacketKind::Message { watch: true, .. } = kind {
            packet.watch(true);
            let mut stage = |block, came, began, ended| {
                let stage = Stage { endpoint: source, source, message, block, came, began, ended };
                self.fabric.output().stage(&stage);
            };
            if writing.read > writing.began {
                stage(Block::MEMORY, writing.began, writing.began, writing.read);
            }
            stage(AGGREGATOR, writing.read, writing.read, writing.header);
            stage(TRANSMIT_FIFO, writing.header, writing.header, ready);
            stage(Block::TRANSMIT, ready, now, now);
        }
        packet
    }
}

/// The label of a packet, and the part of its message that it is.
fn label_and_part(kind: FifoPacketKind) -> (PacketLabel, MessagePart) {
    match kind {
        FifoPacketKind::Message { is_whole: true, .. } => (MESSAGE_LABEL, MessagePart::Whole),
        FifoPacketKind::Message { is_whole: false, .. } => (MESSAGE_LABEL, MessagePart::Piece),
        FifoPacketKind::Test(pattern) => (test_label(pattern), MessagePart::Whole),
    }
}

impl<H: Host> IpHosted<'_, '_, '_, H> {
    /// A timer of the node or of the host has fired.
    pub(super) fn timer(&mut self, timer: CommunicationIpTimer<H::Timer>) {
        match timer {
            CommunicationIpTimer::Host(timer) => self.host_timer(timer),
            CommunicationIpTimer::Sent(token) => self.sent(token),
            CommunicationIpTimer::Post => self.node.fill_all(),
            CommunicationIpTimer::Failed => {
                let now = self.node.fabric.now();
                let failures = &mut self.node.hardware.failures;
                let place = failures.iter().position(|(at, _)| *at <= now);
                if let Some((_, failure)) = place.and_then(|place| failures.remove(place)) {
                    self.fail(&failure);
                }
            }
            CommunicationIpTimer::Deliver => {
                if let Some(message) = self.node.hardware.deliveries.pop_front() {
                    self.deliver(&message);
                }
            }
        }
    }

    /// A message is whole: its kernel notices it, if not now.
    pub(super) fn notify(&mut self, message: Delivered<H::Header>) {
        if H::PASSIVE || message.noticed <= self.node.fabric.now() {
            return self.deliver(&message);
        }
        let queue = &mut self.node.hardware.deliveries;
        let place = queue.partition_point(|other| other.noticed <= message.noticed);
        queue.insert(place, message);
        self.node.fabric.set_timer(message.noticed, CommunicationIpTimer::Deliver);
    }

    /// Draws messages from the host, as long as ports would begin on them.
    #[inline]
    pub(super) fn take_offers(&mut self) {
        let now = self.node.fabric.now();
        while self.host.next_offer() <= now && self.node.hardware.takes_offers() {
            let Offer::Message(message) = self.host.offer(self.parameters, now) else { return };
            self.node.accept(message, now);
        }
    }
}
