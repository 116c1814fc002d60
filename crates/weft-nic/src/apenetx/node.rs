//! The card and its software in their surroundings, while the fabric calls them.

use super::card_to_host::{Announcement, CardToHost, Written};
use super::descriptor::{Descriptor, DescriptorState};
use super::host_to_card::{FetchedPacket, HostToCard, Port, Reading, Taken};
use super::process::{Call, Processes};
use super::{ApenetxParameters, ApenetxTimer, CardPart, ChosenDelivery};
use crate::capability::{Capabilities, QuietTime};
use crate::failure::{Failure, FailureReason};
use crate::host::{Delivered, Host, Message, Offer};
use crate::iommu::Iommu;
use crate::observer::{Observer as _, Stage};
use crate::pcie::{AddressRange, Pcie};
use crate::shell::{Hosted, NicNode};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::{Addressing, HeaderBits, Injection, MessagePart, Packet};
use weft_units::{Address, Bytes, EndpointId, Span, Time};

/// Entries of a queue by time; those of one time in the order in which they came.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Timed<T>(VecDeque<(Time, T)>);

impl<T> Default for Timed<T> {
    fn default() -> Timed<T> {
        Timed(VecDeque::new())
    }
}

impl<T> Timed<T> {
    #[inline]
    fn insert(&mut self, at: Time, entry: T) {
        let place = match self.0.back() {
            Some(last) if last.0 > at => self.0.partition_point(|other| other.0 <= at),
            _ => self.0.len(),
        };
        self.0.insert(place, (at, entry));
    }

    /// Takes the first that is due at `now`.
    #[inline]
    fn pop_due(&mut self, now: Time) -> Option<T> {
        self.0.front().filter(|(at, _)| *at <= now)?;
        self.0.pop_front().map(|(_, entry)| entry)
    }

    fn first(&self) -> Time {
        self.0.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, entry)| entry)
    }
}

/// The blocks, and the queues between them.
#[derive(Serialize, Deserialize)]
#[serde(bound = "H: Host")]
pub struct Card<H: Host> {
    pcie: Pcie,
    iommu: Iommu,
    pub(super) send: HostToCard,
    pub(super) receive: CardToHost<H::Header>,
    pub(super) processes: Processes,
    /// Messages that hosts have posted ahead of time.
    pub(super) posts: Timed<Descriptor>,
    /// Calls whose store to the card is to come.
    pub(super) stores: Timed<Descriptor>,
    /// Messages whose data will be in the card.
    taken: Timed<Taken>,
    /// Messages that have come, and when the host notices them.
    pub(super) due: Timed<Delivered<H::Header>>,
    /// Messages that failed as they were posted.
    failures: Timed<Failure>,
    next_number: u32,
}

impl<H: Host> Default for Card<H> {
    fn default() -> Card<H> {
        Card {
            pcie: Pcie::default(),
            iommu: Iommu::default(),
            send: HostToCard::default(),
            receive: CardToHost::default(),
            processes: Processes::default(),
            posts: Timed::default(),
            stores: Timed::default(),
            taken: Timed::default(),
            due: Timed::default(),
            failures: Timed::default(),
            next_number: 0,
        }
    }
}

impl<H: Host> Card<H> {
    /// The time in which calls, the two modules with the driver, and the port have worked.
    pub(super) fn worked(&self) -> (Span, Span, [Span; 2], [(&'static str, Span); 2]) {
        (self.processes.worked(), self.send.worked(), self.receive.worked(), self.pcie.worked())
    }

    pub(super) fn expect(
        &mut self,
        key: (EndpointId, u32),
        announced: Announcement<H::Header>,
        buffer: Address,
    ) {
        self.receive.expect(key, announced, buffer);
    }

    /// The time before which the card has no packet and makes no room for another message of the host, unless
    /// something happens to it.
    #[inline]
    pub(super) fn not_before(&self, parameters: &ApenetxParameters) -> Time {
        let packet = match self.send.packets.front() {
            Some(packet) => packet.ready,
            None => self.least_ready(),
        };
        if self.takes_offers(parameters) { packet } else { packet.min(self.next_step()) }
    }

    /// The time before which no message that is under way to the card has a packet ready.
    fn least_ready(&self) -> Time {
        let stores = self.stores.0.iter().map(|(_, descriptor)| descriptor.least_ready);
        let least = stores.min().unwrap_or(Time::NEVER).min(self.send.least_ready());
        // Others were in the way; and without a step there is no packet.
        least.max(self.next_step())
    }

    /// The time of the next step of the card of its own.
    #[inline]
    fn next_step(&self) -> Time {
        self.stores.first().min(self.send.next_arrival())
    }

    /// Whether the card would begin on another message of the host soon.
    #[inline]
    pub(super) fn takes_offers(&self, parameters: &ApenetxParameters) -> bool {
        let ahead = self.processes.waiting() + self.stores.len() + self.send.waiting();
        ahead < parameters.host_to_card.prefetch as usize
    }

    #[inline]
    fn port<'a>(&'a mut self, parameters: &'a ApenetxParameters) -> (&'a mut HostToCard, Port<'a>) {
        let Card { pcie, iommu, send, .. } = self;
        (send, Port { pcie, iommu, parameters })
    }
}

/// The card in its surroundings.
pub(super) type CardNode<'a, 'b, 'c, H> = NicNode<'a, 'b, 'c, Card<H>, H>;

/// The host and its node.
pub(super) type ApenetxHosted<'a, 'b, 'c, H> = Hosted<'a, 'b, 'c, Card<H>, H>;

impl<H: Host> Capabilities for CardNode<'_, '_, '_, H> {
    fn quiet_time(&mut self) -> Option<&mut dyn QuietTime> {
        Some(self)
    }
}

impl<H: Host> QuietTime for CardNode<'_, '_, '_, H> {
    fn quiet_until(&self) -> Time {
        let now = self.fabric.now();
        let arrives = now.saturating_add(self.parameters.least_notice());
        let next = arrives.min(self.hardware.due.first()).min(self.hardware.failures.first());
        Time::from_ps(next.as_ps().saturating_sub(1)).max(now)
    }
}

impl<H: Host> CardNode<'_, '_, '_, H> {
    /// Reports a stage of a message of `source`.
    #[cold]
    fn stage(&mut self, source: EndpointId, message: u32, part: CardPart, [came, began, ended]: [Time; 3]) {
        let (endpoint, block) = (self.fabric.endpoint(), part.block());
        self.fabric.output().stage(&Stage { endpoint, source, message, block, came, began, ended });
    }

    /// Takes a message that the host posts at `at`.
    #[inline]
    pub(super) fn accept(&mut self, message: Message<H::Header>, at: Time) -> u32 {
        let number = self.hardware.next_number;
        self.hardware.next_number = number.wrapping_add(1);
        let Message {
            to,
            bytes,
            created_at,
            header,
            token,
            interface,
            to_interface,
            buffer,
            of_program,
            options,
            watch,
            ..
        } = message;
        if let Some(reason) = self.refusal(&message) {
            let failure = Failure { to, number, interface, token, reason };
            self.hardware.failures.insert(at, failure);
            self.fabric.set_timer(at, ApenetxTimer::Failed);
            return number;
        }
        let chosen: ChosenDelivery = options.get().copied().unwrap_or_default();
        let completion = chosen.completion.unwrap_or(self.parameters.card_to_host.completion);
        let [source, target] = self.parameters.memories(of_program);
        let (source, target) = (chosen.source.unwrap_or(source), chosen.target.unwrap_or(target));
        let announcement =
            Announcement { bytes, created_at, header, interface: to_interface, completion, target };
        self.fabric.announce(to, number, announcement);
        let (state, posted) = (DescriptorState::Requested, at);
        let descriptor = Descriptor {
            to,
            number,
            bytes,
            token,
            interface,
            buffer,
            source,
            watch,
            class: self.fabric.class_of(&message.purpose, bytes),
            state,
            read: Bytes::ZERO,
            posted,
            rung: at,
            arrived: at,
            inline: false,
            is_followed: !H::PASSIVE || watch || token.is_some() || self.parameters.host_to_card.blocking,
            least_ready: Time::ZERO,
        };
        if at > self.fabric.now() {
            self.hardware.posts.insert(at, descriptor);
            self.fabric.set_timer(at, ApenetxTimer::Step);
        } else {
            self.call(descriptor, at);
        }
        number
    }

    /// The reason for which the driver does not take a message, if there is one.
    #[inline]
    fn refusal(&self, message: &Message<H::Header>) -> Option<FailureReason> {
        let queues = self.parameters.card.queues;
        if u32::from(message.interface) >= queues || u32::from(message.to_interface) >= queues {
            Some(FailureReason::NoInterface)
        } else if self.parameters.gpu.is_none()
            && message.options.get().is_some_and(|chosen: &ChosenDelivery| chosen.needs_gpu())
        {
            Some(FailureReason::Memory)
        } else {
            (message.to.index() >= self.fabric.endpoints()).then_some(FailureReason::NoNode)
        }
    }

    /// A process calls the library.
    fn call(&mut self, descriptor: Descriptor, at: Time) {
        let call = self.hardware.processes.call(descriptor, at, self.parameters);
        self.begin(call);
    }

    /// A call has begun, or begins later, if any.
    fn begin(&mut self, call: Option<Call>) {
        let Some(call) = call else { return };
        if call.descriptor.watch {
            self.report_call(&call);
        }
        let Call { mut descriptor, stores, .. } = call;
        descriptor.least_ready = self.parameters.least_ready(&descriptor, stores);
        self.hardware.stores.insert(stores, descriptor);
        self.follow(&descriptor, stores);
        self.fabric.request_injection();
    }

    /// Reports the steps of a call for a message that is watched.
    #[cold]
    fn report_call(&mut self, call: &Call) {
        let Descriptor { number, posted, .. } = call.descriptor;
        let endpoint = self.fabric.endpoint();
        let mut came = posted;
        for (part, began, ended) in call.steps(self.parameters) {
            self.stage(endpoint, number, part, [came, began, ended]);
            came = ended;
        }
    }

    /// Somebody sees how a message passes the card: its next step is carried out at its time. All others are
    /// when the fabric next asks.
    #[inline]
    fn follow(&mut self, descriptor: &Descriptor, step: Time) {
        if descriptor.is_followed {
            self.fabric.set_timer(step, ApenetxTimer::Step);
        }
    }

    /// Carries out the steps of the card that are due.
    #[inline]
    pub(super) fn catch_up(&mut self) {
        self.carry_out(self.fabric.now());
    }

    /// Carries out the steps of the card before this instant, whose packets come first.
    #[inline]
    pub(super) fn catch_up_before(&mut self) {
        self.carry_out(Time::from_ps(self.fabric.now().as_ps().saturating_sub(1)));
    }

    /// Carries out the steps of the card up to `until`, in the order of their times.
    #[inline]
    fn carry_out(&mut self, until: Time) {
        // Mostly there is none.
        if self.hardware.next_step() <= until {
            self.carry_out_some(until);
        }
    }

    #[inline(never)]
    fn carry_out_some(&mut self, until: Time) {
        loop {
            let at = self.hardware.next_step();
            if at > until {
                return;
            }
            match self.hardware.stores.first() == at {
                true => self.carry_out_stores(at),
                false => self.descriptors(at),
            }
        }
    }

    /// Stores of processes reach the port at `at`.
    fn carry_out_stores(&mut self, at: Time) {
        while let Some(descriptor) = self.hardware.stores.pop_due(at) {
            let (send, mut port) = self.hardware.port(self.parameters);
            let arrived = match self.parameters.host_to_card.fast {
                true => {
                    let arrived = send.store(descriptor, at, &mut port);
                    self.follow(&descriptor, arrived);
                    arrived
                }
                false => {
                    let rung = send.ring(descriptor, at, &mut port);
                    self.fetch(at);
                    rung
                }
            };
            if descriptor.watch {
                let endpoint = self.fabric.endpoint();
                self.stage(endpoint, descriptor.number, CardPart::Doorbell, [at, at, arrived]);
            }
        }
    }

    /// The card asks at `at` for descriptors, as many as it may.
    fn fetch(&mut self, at: Time) {
        let (send, mut port) = self.hardware.port(self.parameters);
        if let Some((ended, is_followed)) = send.fetch(at, &mut port)
            && is_followed
        {
            // It has room since a message that nobody follows has been fetched: that may be seen late.
            self.fabric.set_timer(ended.max(self.fabric.now()), ApenetxTimer::Step);
        }
    }

    /// Descriptors have come to the card at `at`.
    fn descriptors(&mut self, at: Time) {
        while let Some(descriptor) = self.hardware.send.arrived(at) {
            if descriptor.watch && !self.parameters.host_to_card.fast {
                let endpoint = self.fabric.endpoint();
                let rung = descriptor.rung;
                self.stage(endpoint, descriptor.number, CardPart::DescriptorFetch, [rung, rung, at]);
            }
        }
        self.fetch(at);
        self.read(at);
    }

    /// The card reads data from `now` on, as far as it has places for packets.
    #[inline]
    fn read(&mut self, now: Time) {
        while self.hardware.send.may_read(self.parameters) {
            let (send, mut port) = self.hardware.port(self.parameters);
            let Some(read) = send.read(now, &mut port) else { break };
            self.fabric.request_injection();
            if let Some((at, message)) = read.awaited {
                // As in `fetch`, the reading may be seen late.
                self.hardware.taken.insert(at, message);
                self.fabric.set_timer(at.max(self.fabric.now()), ApenetxTimer::Taken);
            }
            if let Some(reading) = read.watched {
                self.report_reading(&reading, now);
            }
        }
    }

    /// Reports the reading of a packet of a message that is watched.
    #[cold]
    fn report_reading(&mut self, reading: &Reading, now: Time) {
        let Reading { message, is_first, arrived, read, made } = *reading;
        let endpoint = self.fabric.endpoint();
        if let Some(read) = read {
            let came = if is_first { arrived } else { now };
            self.stage(endpoint, message, CardPart::PayloadRead, [came, now, read.ended]);
        }
        let came = if read.is_some() { made.came } else { arrived };
        self.stage(endpoint, message, CardPart::HostToCard, [came, made.began, made.ended]);
    }

    /// Data of messages is in the card: it says so.
    fn messages_taken(&mut self) {
        let now = self.fabric.now();
        while let Some(Taken { interface, token, .. }) = self.hardware.taken.pop_due(now) {
            let parameters = self.parameters;
            let range = AddressRange { address: 0, bytes: parameters.host_to_card.status.get() };
            let memory = (&parameters.memory, &parameters.pcie);
            let status = self.hardware.pcie.write_mapped(now, range, memory);
            let seen = status.ended + parameters.software.poll;
            if let Some(token) = token {
                self.fabric.set_timer(seen, ApenetxTimer::Sent(token));
            }
            let call = self.hardware.processes.left(interface, seen, parameters);
            self.begin(call);
        }
        self.fabric.request_injection();
    }

    /// The tail of a packet has come. Returns its message, if that is whole.
    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet) -> Option<Delivered<H::Header>> {
        let (now, parameters) = (self.fabric.now(), self.parameters);
        let Card { pcie, iommu, receive, .. } = &mut *self.hardware;
        let mut port = Port { pcie, iommu, parameters };
        let Packet { source: from, message: number, hops, .. } = *packet;
        let endpoint = self.fabric.endpoint();
        let output = self.fabric.output();
        let mut report = |written: Written| {
            let mut stage = |part: CardPart, came, began, ended| {
                let (source, message, block) = (from, number, part.block());
                output.stage(&Stage { endpoint, source, message, block, came, began, ended });
            };
            match written {
                Written::Card(writing) => {
                    let module = writing.module;
                    stage(CardPart::CardToHost, module.came, module.began, module.ended);
                    let mut at = module.ended;
                    if let Some(data) = writing.data {
                        stage(CardPart::PayloadWrite, at, at, data.ended);
                        at = data.ended;
                    }
                    stage(CardPart::CompletionWrite, at, at, writing.entry.ended);
                }
                Written::Software(step) => stage(step.part, step.came, step.began, step.ended),
            }
        };
        let index = packet.carried.bits() as u32;
        let arrived = receive.receive((packet, index), now, &mut port, &mut report)?;
        let Announcement { bytes, created_at, header, interface, .. } = arrived.announced;
        let (noticed, in_mailbox) = (arrived.noticed, false);
        Some(Delivered {
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
        })
    }

    /// The next packet for the link. The host offers its next message at `next_offer`.
    #[inline]
    pub(super) fn inject(&mut self, next_offer: Time) -> Injection {
        let now = self.fabric.now();
        let first = match self.hardware.send.packets.front() {
            Some(first) if first.ready <= now => *first,
            _ => return Injection::not_before(self.hardware.not_before(self.parameters).min(next_offer)),
        };
        let FetchedPacket { ready, to, number, bytes, index, is_whole, watch, class } = first;
        let part = if is_whole { MessagePart::Whole } else { MessagePart::Piece };
        if !self.fabric.admits_all() && !self.fabric.admits_class(class) {
            return Injection::Nothing; // asked again when there is a place
        }
        self.hardware.send.packets.pop_front();
        self.read(now);
        let source = self.fabric.endpoint();
        if watch {
            self.stage(source, number, CardPart::Transmit, [ready, now, now]);
        }
        let addressing = Addressing { source, destination: to, message: number };
        let packet = Packet::new(addressing, bytes, HeaderBits::from_bits(index.into()), part);
        // Multipath goes by messages.
        let mut packet = packet.in_block(number.wrapping_add(1)).of_class(class);
        packet.watch(watch);
        Injection::Packet(packet)
    }
}

impl<H: Host> ApenetxHosted<'_, '_, '_, H> {
    /// A timer of the node or of the host has fired.
    pub(super) fn timer(&mut self, timer: ApenetxTimer<H::Timer>) {
        let now = self.node.fabric.now();
        self.node.catch_up();
        match timer {
            ApenetxTimer::Host(timer) => self.host_timer(timer),
            ApenetxTimer::Sent(token) => self.sent(token),
            ApenetxTimer::Step => {
                while let Some(descriptor) = self.node.hardware.posts.pop_due(now) {
                    self.node.call(descriptor, now);
                }
            }
            ApenetxTimer::Taken => self.node.messages_taken(),
            ApenetxTimer::Deliver => {
                if let Some(message) = self.node.hardware.due.pop_due(now) {
                    self.deliver(&message);
                }
            }
            ApenetxTimer::Failed => {
                if let Some(failure) = self.node.hardware.failures.pop_due(now) {
                    self.fail(&failure);
                }
            }
        }
    }

    /// The host is to know of a message: now, or when it notices it.
    #[inline]
    pub(super) fn notify(&mut self, message: Delivered<H::Header>) {
        if H::PASSIVE || message.noticed <= self.node.fabric.now() {
            self.deliver(&message);
            return;
        }
        self.node.hardware.due.insert(message.noticed, message);
        self.node.fabric.set_timer(message.noticed, ApenetxTimer::Deliver);
    }

    /// Draws messages from the host, as long as the card would begin on them. Returns when the next one
    /// comes; [`Time::NEVER`]: when there is room for another.
    #[inline]
    pub(super) fn take_offers(&mut self) -> Time {
        let now = self.node.fabric.now();
        while self.node.hardware.takes_offers(self.node.parameters) {
            let next = self.host.next_offer();
            if next > now {
                return next;
            }
            let Offer::Message(message) = self.host.offer(self.parameters, now) else { return Time::NEVER };
            self.node.accept(message, now);
        }
        Time::NEVER
    }
}
