//! From the network to the host: packets into memory, then the completion.
//!
//! ```text
//!  packet ─► module ─► write of its data ─► all there? ─► write of the entry ─► interrupt, or poll
//! ```
//! A packet says by its index where in the buffer its data belongs. Packets of a message may come in any
//! order, and twice: each is written once, and the completion goes behind the last.
//!
//! # Source
//! APX §3.2, §3.3; D1.4 §9.2.1: payload in completion. That packets are counted, and not only the last one
//! waited for, is ours.
//!
//! # Not modelled
//! Repair from end to end: the documents name none. A packet that is lost or corrupted is missing, and its
//! message never completes; links repair theirs (`links.*.protocol`). A ring of completions that is full.

use super::completion::{CompletionPath, CompletionStep, Handler};
use super::gpu::MemoryKind;
use super::host_to_card::Port;
use super::part::CardPart;
use super::translation::{Known, translate};
use crate::message_table::MessageTable;
use crate::pcie::{AddressRange, Transfer};
use crate::server::{Server, Service};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use weft_fabric::Packet;
use weft_units::{Address, Bytes, EndpointId, Span, Time};

/// Bytes of an interrupt: a message-signalled one is a write.
const INTERRUPT: u64 = 4;

/// Header fields that all packets of a message share.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Announcement<T> {
    pub(super) bytes: Bytes,
    pub(super) created_at: Time,
    pub(super) header: Option<T>,
    /// The virtual interface that the message is for.
    pub(super) interface: u16,
    /// The path of its completion.
    pub(super) completion: CompletionPath,
    /// The memory that it goes to.
    pub(super) target: MemoryKind,
}

/// A message that is coming in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Incoming<T> {
    pub announced: Announcement<T>,
    /// The place of its data in the memory of its process.
    pub buffer: Address,
    missing: Bytes,
    /// All packets before this one have come.
    expected: u32,
    /// Packets that have come before others of lower index.
    early: BTreeSet<u32>,
}

/// A message that has come whole.
pub(super) struct Arrived<T> {
    pub announced: Announcement<T>,
    pub noticed: Time,
}

/// The writing of a packet that completes its message, for reports.
pub(super) struct Writing {
    pub module: Service,
    pub data: Option<Transfer>,
    pub entry: Transfer,
}

/// The module.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "T: Serialize + DeserializeOwned")]
pub(super) struct CardToHost<T> {
    incoming: MessageTable<Incoming<T>>,
    module: Server,
    handler: Handler,
    known: Known,
}

impl<T> Default for CardToHost<T> {
    fn default() -> CardToHost<T> {
        let (module, handler) = (Server::default(), Handler::default());
        CardToHost { incoming: MessageTable::default(), module, handler, known: None }
    }
}

impl<T> Incoming<T> {
    /// Notes that a packet has come. Returns whether it is the first time.
    #[inline]
    fn is_new(&mut self, index: u32) -> bool {
        if index != self.expected {
            return self.is_early(index);
        }
        self.expected += 1;
        if !self.early.is_empty() {
            self.pass_early();
        }
        true
    }

    /// Whether a packet that is not the one expected has come for the first time, before others.
    #[cold]
    fn is_early(&mut self, index: u32) -> bool {
        index > self.expected && self.early.insert(index)
    }

    /// Passes the packets that have come early.
    #[cold]
    fn pass_early(&mut self) {
        while self.early.remove(&self.expected) {
            self.expected += 1;
        }
    }
}

impl<T: Copy> CardToHost<T> {
    /// A message is on its way to `buffer`.
    pub fn expect(&mut self, key: (EndpointId, u32), announced: Announcement<T>, buffer: Address) {
        let missing = announced.bytes;
        let incoming = Incoming { announced, buffer, missing, expected: 0, early: BTreeSet::new() };
        self.incoming.insert(key, incoming);
    }

    /// A packet has come at `now`. Returns its message, if that is whole. `written` and `step` are told what
    /// happened then, if the packet is watched.
    #[inline]
    pub fn receive(
        &mut self,
        (packet, index): (&Packet, u32),
        now: Time,
        port: &mut Port<'_>,
        report: &mut impl FnMut(Written),
    ) -> Option<Arrived<T>> {
        let Port { pcie, iommu, parameters } = port;
        let bytes = packet.payload();
        let words = parameters.words(bytes);
        let first = parameters.clock.cycles(words).as_ps().min(packet.serialization().as_ps());
        let began = Time::from_ps(now.as_ps().saturating_sub(first));
        let cycles = words + u64::from(parameters.card_to_host.cycles);
        let service = self.module.serve(began, cycles, &parameters.clock);
        let module = Service { came: now, began: service.began.max(now), ended: service.ended.max(now) };
        if packet.is_corrupted() {
            return None; // its CRC says so
        }
        let key = (packet.source, packet.message);
        let incoming = self.incoming.get_mut(key)?;
        let offset = u64::from(index) * parameters.payload.get();
        if offset + bytes.get() > incoming.announced.bytes.get() || !incoming.is_new(index) {
            return None;
        }
        incoming.missing -= bytes;
        let is_whole = incoming.missing == Bytes::ZERO;
        let Announcement { interface, completion, bytes: all, target, .. } = incoming.announced;
        // A processor would have to carry it into a GPU.
        let in_entry = all <= parameters.card_to_host.entry_data && target != MemoryKind::GpuDirect;
        let memory = (&parameters.memory, &parameters.pcie);
        let data = (!in_entry && bytes > Bytes::ZERO).then(|| {
            let range = AddressRange { address: incoming.buffer.plus(offset).get(), bytes: bytes.get() };
            let known = &mut self.known;
            let walk = |at| match target {
                MemoryKind::GpuDirect => at,
                _ => translate((iommu, &parameters.iommu), known, (interface.into(), range), at),
            };
            pcie.write(module.ended, range, (&parameters.writes(target), &parameters.pcie), walk)
        });
        if !is_whole {
            return None;
        }
        let announced = incoming.announced;
        self.incoming.remove(key);
        let behind = data.map_or(module.ended, |data| data.left);
        let card = &parameters.card_to_host;
        let range = AddressRange { address: 0, bytes: card.entry.get() };
        let mut entry = pcie.write_mapped(behind, range, memory);
        if completion.interrupts() {
            let range = AddressRange { address: 0, bytes: INTERRUPT };
            entry.ended = pcie.write_mapped(entry.left, range, memory).ended;
        }
        let watched = packet.is_watched();
        if watched {
            report(Written::Card(Writing { module, data, entry }));
        }
        let software = &parameters.software;
        let noticed = self.handler.completes(entry.ended, (completion, card.wait), software, |step| {
            if watched {
                report(Written::Software(step));
            }
        });
        let copied = noticed + parameters.behind_completion(target, all);
        if watched && copied > noticed {
            report(Written::Software(CompletionStep {
                part: CardPart::GpuCopy,
                came: noticed,
                began: noticed,
                ended: copied,
            }));
        }
        Some(Arrived { announced, noticed: copied })
    }

    /// Messages that have not come whole.
    pub fn unfinished(&self) -> usize {
        self.incoming.len()
    }

    /// The headers of these, and how much of each has come.
    pub fn arriving(&self) -> impl Iterator<Item = (Option<T>, Bytes)>
    where
        T: Copy,
    {
        let of =
            |message: &Incoming<T>| (message.announced.header, message.announced.bytes - message.missing);
        self.incoming.messages().map(of)
    }

    /// The time in which module and driver have worked.
    pub fn worked(&self) -> [Span; 2] {
        [self.module.worked(), self.handler.worked()]
    }
}

/// The fate of a watched packet.
pub(super) enum Written {
    /// In the card, until its completion was in memory.
    Card(Writing),
    /// In software.
    Software(CompletionStep),
}
