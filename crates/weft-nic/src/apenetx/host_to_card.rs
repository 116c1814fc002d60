//! From the host to the network: the ring of descriptors, their fetch, the reads of data, packets.
//!
//! ```text
//!  doorbell ─► ring ── fetch, some ahead ──► fetched ── reads of data, some packets ahead ──► packets
//!  line of a fast send ─────────────────────────▲
//! ```
//! # Source
//! APX §3.1: the DMA engine's queues; packets of 32 B of header and footer and at most 4 KB. D1.4 §9.2.1: the
//! Host-to-Card module, the fast send. That descriptors are fetched, and data is read, ahead is ours.
//!
//! # Not modelled
//! A ring of descriptors per queue with an arbiter between them: there is one, in the order of doorbells. A
//! ring that is full.

use super::descriptor::{Descriptor, DescriptorEvent};
use super::gpu::MemoryKind;
use super::parameters::{ApenetxParameters, DOORBELL};
use super::translation::{Known, translate};
use crate::iommu::Iommu;
use crate::pcie::{AddressRange, Pcie, Transfer};
use crate::server::{Server, Service};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::ClassTag;
use weft_units::{Bytes, EndpointId, Span, Time};

/// The host as the card reaches it.
pub(super) struct Port<'a> {
    pub pcie: &'a mut Pcie,
    pub iommu: &'a mut Iommu,
    pub parameters: &'a ApenetxParameters,
}

/// A packet whose data is in the card.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct FetchedPacket {
    pub ready: Time,
    pub to: EndpointId,
    pub number: u32,
    pub bytes: u32,
    /// Which packet of its message.
    pub index: u32,
    pub is_whole: bool,
    /// Whether it is the first or the last of a message that is watched.
    pub watch: bool,
    pub class: ClassTag,
}

/// A message whose data is all in the card.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Taken {
    pub number: u32,
    pub interface: u16,
    pub token: Option<u32>,
}

/// The reading of the first or last packet of a message that is watched.
pub(super) struct Reading {
    /// The number of the message.
    pub message: u32,
    /// Whether it is the first of its message.
    pub is_first: bool,
    /// The time at which the descriptor was in the card.
    pub arrived: Time,
    /// `None`: the data was in the line.
    pub read: Option<Transfer>,
    pub made: Service,
}

/// The consequences of the reading of a packet.
pub(super) struct Read {
    /// The message whose last packet it is, if somebody waits for it, and when all its data is in the card.
    pub awaited: Option<(Time, Taken)>,
    /// For reports. In a box: few messages are watched.
    pub watched: Option<Box<Reading>>,
}

/// The module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct HostToCard {
    /// Descriptors that the card has heard of, and when.
    ring: VecDeque<(Time, Descriptor)>,
    /// Descriptors on their way into the card, and when they are there.
    arriving: VecDeque<(Time, Descriptor)>,
    /// Descriptors of the ring that are on their way into the card.
    fetching: u32,
    /// Descriptors whose data is read.
    fetched: VecDeque<Descriptor>,
    /// In the order of their messages.
    pub packets: VecDeque<FetchedPacket>,
    module: Server,
    /// The page that was read last.
    known: Known,
}

impl HostToCard {
    /// The driver rings the doorbell for a descriptor at `now`. Returns when the card hears of it.
    pub fn ring(&mut self, mut descriptor: Descriptor, now: Time, port: &mut Port<'_>) -> Time {
        let rung = port.pcie.store(now, DOORBELL, &port.parameters.pcie).ended;
        descriptor.happens(DescriptorEvent::Post);
        descriptor.rung = rung;
        self.ring.push_back((rung, descriptor));
        rung
    }

    /// The library stores the line of a fast send at `now`. Returns when it is in the card.
    pub fn store(&mut self, mut descriptor: Descriptor, now: Time, port: &mut Port<'_>) -> Time {
        let HostToCardLine { line, data } = HostToCardLine::of(port.parameters);
        let arrived = port.pcie.store(now, line, &port.parameters.pcie).ended;
        descriptor.happens(DescriptorEvent::Store);
        // A processor has no data of a GPU at hand.
        descriptor.inline = descriptor.bytes.get() <= data && descriptor.source != MemoryKind::GpuDirect;
        self.arrive(arrived, descriptor);
        arrived
    }

    fn arrive(&mut self, at: Time, descriptor: Descriptor) {
        let place = self.arriving.partition_point(|(other, _)| *other <= at);
        self.arriving.insert(place, (at, descriptor));
    }

    /// Asks for the descriptors that the card has heard of, as many as may be on their way. Returns when they
    /// are in the card, and whether one of them is followed.
    pub fn fetch(&mut self, now: Time, port: &mut Port<'_>) -> Option<(Time, bool)> {
        let begins = self.ring.front()?.0.max(now);
        let parameters = port.parameters;
        let free = parameters.host_to_card.prefetch.saturating_sub(self.fetching) as usize;
        let count = self.ring.iter().take(free).take_while(|(rung, _)| *rung <= begins).count();
        if count == 0 {
            return None;
        }
        let bytes = count as u64 * parameters.host_to_card.descriptor.get();
        let range = AddressRange { address: 0, bytes };
        let read = port.pcie.read(begins, range, (&parameters.memory, &parameters.pcie), &mut |at| at);
        self.fetching += count as u32;
        let mut is_followed = false;
        for _ in 0..count {
            let Some((_, mut descriptor)) = self.ring.pop_front() else { break };
            descriptor.happens(DescriptorEvent::Fetch);
            is_followed |= descriptor.is_followed;
            self.arrive(read.ended, descriptor);
        }
        Some((read.ended, is_followed))
    }

    /// The time at which the next descriptor is in the card.
    #[inline]
    pub fn next_arrival(&self) -> Time {
        self.arriving.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// The time before which no descriptor that the card has heard of has a packet ready.
    pub fn least_ready(&self) -> Time {
        let waiting = self.ring.iter().chain(&self.arriving);
        waiting.map(|(_, descriptor)| descriptor.least_ready).min().unwrap_or(Time::NEVER)
    }

    /// The next descriptor that has arrived at `now`.
    pub fn arrived(&mut self, now: Time) -> Option<Descriptor> {
        self.arriving.front().filter(|(at, _)| *at <= now)?;
        let (at, mut descriptor) = self.arriving.pop_front()?;
        if !matches!(descriptor.state, super::DescriptorState::Fetched) {
            descriptor.happens(DescriptorEvent::Arrive);
            self.fetching -= 1;
        }
        descriptor.arrived = at;
        self.fetched.push_back(descriptor);
        Some(descriptor)
    }

    /// Whether there is another packet whose data can be read, and a place for it.
    #[inline]
    pub fn may_read(&self, parameters: &ApenetxParameters) -> bool {
        !self.fetched.is_empty() && self.packets.len() < parameters.host_to_card.packets as usize
    }

    /// Reads the data of the next packet, for which there must be a [place](Self::may_read).
    #[inline(never)]
    pub fn read(&mut self, now: Time, port: &mut Port<'_>) -> Option<Read> {
        let Port { pcie, iommu, parameters } = port;
        let descriptor = self.fetched.front_mut()?;
        let Descriptor { number, interface, token, watch, arrived, source, .. } = *descriptor;
        let piece = (descriptor.bytes - descriptor.read).min(parameters.payload);
        let index = (descriptor.read.get() / parameters.payload.get().max(1)) as u32;
        let in_card = descriptor.inline || piece == Bytes::ZERO;
        let read = (!in_card).then(|| {
            let address = descriptor.buffer.plus(descriptor.read.get()).get();
            let range = AddressRange { address, bytes: piece.get() };
            let (space, known) = (u32::from(interface), &mut self.known);
            let mut walk = |at| match source {
                MemoryKind::GpuDirect => at,
                _ => translate((iommu, &parameters.iommu), known, (space, range), at),
            };
            pcie.read(now, range, (&parameters.reads(source), &parameters.pcie), &mut walk)
        });
        descriptor.read += piece;
        let came = read.map_or(now, |read| read.ended);
        // Words pass the module as they come: its overhead is behind the last.
        let words = parameters.words(piece);
        let first = Span::from_ps(parameters.clock.cycles(words).as_ps().min((came - now).as_ps()));
        let began = Time::from_ps(came.as_ps() - first.as_ps());
        let cycles = words + u64::from(parameters.host_to_card.cycles);
        let service = self.module.serve(began, cycles, &parameters.clock);
        let made = Service { came, began: service.began.max(came), ended: service.ended.max(came) };
        let is_last = descriptor.read == descriptor.bytes;
        self.packets.push_back(FetchedPacket {
            ready: made.ended,
            to: descriptor.to,
            number,
            bytes: piece.get() as u32,
            index,
            is_whole: piece == descriptor.bytes,
            watch: watch && (index == 0 || is_last),
            class: descriptor.class,
        });
        if is_last {
            descriptor.happens(DescriptorEvent::LastRead);
            self.fetched.pop_front();
        }
        let is_awaited = is_last && (token.is_some() || parameters.host_to_card.blocking);
        let awaited = is_awaited.then_some((came, Taken { number, interface, token }));
        let is_first = index == 0;
        let is_watched = watch && (is_first || is_last);
        let watched =
            is_watched.then(|| Box::new(Reading { message: number, is_first, arrived, read, made }));
        Some(Read { awaited, watched })
    }

    /// Messages that have not been read whole.
    pub fn waiting(&self) -> usize {
        self.ring.len() + self.arriving.len() + self.fetched.len()
    }

    pub fn worked(&self) -> Span {
        self.module.worked()
    }
}

/// The line of a fast send.
struct HostToCardLine {
    line: u64,
    data: u64,
}

impl HostToCardLine {
    fn of(parameters: &ApenetxParameters) -> HostToCardLine {
        let card = &parameters.host_to_card;
        HostToCardLine { line: card.line.get(), data: card.line_data.get() }
    }
}
