//! The section of a machine file on the APEnetX interface.

use super::completion::{CompletionPath, KernelWait};
use super::descriptor::Descriptor;
use super::gpu::{GpuParameters, MemoryKind};
use super::part::CardPart;
use super::software::SoftwareParameters;
use crate::iommu::IommuParameters;
use crate::pcie::{Memory, PcieParameters};
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Clock, Span, Time};

/// Bytes of a doorbell: a register.
pub(super) const DOORBELL: u64 = 4;

/// The module from the host to the network, with the queue of descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HostToCardParameters {
    /// Bytes of a tx descriptor.
    pub descriptor: Bytes,
    /// Descriptors that may be on their way into the card.
    pub prefetch: u32,
    /// Packets whose data is read ahead.
    pub packets: u32,
    /// Cycles per packet beside its words: header, footer, coordinates.
    pub cycles: u32,
    /// Bytes of the line of a fast send.
    pub line: Bytes,
    /// Bytes of it that are data.
    pub line_data: Bytes,
    /// Whether the library stores lines, and the driver is not asked.
    pub fast: bool,
    /// Whether a process waits for the end of each transmission before the next.
    pub blocking: bool,
    /// Bytes of the status that the card writes at the end of a transmission.
    pub status: Bytes,
}

/// The module from the network to the host, with the queues of completions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CardToHostParameters {
    /// Cycles per packet beside its words: CRC, destination address.
    pub cycles: u32,
    /// Bytes of a completion entry.
    pub entry: Bytes,
    /// Most bytes of data that a completion entry carries; 0: none.
    pub entry_data: Bytes,
    /// Path of completions where a program does not choose.
    pub completion: CompletionPath,
    /// How a process waits on the kernel path.
    pub wait: KernelWait,
}

/// The interface, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApenetxParameters {
    /// The clock of the logic.
    pub clock: Clock,
    /// Bytes that its data path carries per cycle.
    pub word: Bytes,
    /// Queues of the card, each for one process.
    pub queues: u32,
    /// Largest payload of a packet.
    pub payload: Bytes,
    /// The port to the host.
    pub pcie: PcieParameters,
    /// The memory of the host.
    pub memory: Memory,
    /// Address translation of the host.
    pub iommu: IommuParameters,
    /// From the host to the network.
    pub host_to_card: HostToCardParameters,
    /// From the network to the host.
    pub card_to_host: CardToHostParameters,
    /// Library and driver.
    pub software: SoftwareParameters,
    /// The GPU of the host; `None`: it has none.
    pub gpu: Option<GpuParameters>,
}

impl ApenetxParameters {
    /// Least time from a packet's arrival until the host notices the message that it ends.
    pub fn least_notice(&self) -> Span {
        self.pcie.one_way + self.memory.write
    }

    /// The memory of a message's source and target: a program's buffers lie where the machine says.
    #[inline]
    pub(super) fn memories(&self, of_program: bool) -> [MemoryKind; 2] {
        match &self.gpu {
            Some(gpu) if of_program => [gpu.source, gpu.target],
            _ => [MemoryKind::Host; 2],
        }
    }

    /// The memory of sources as the port reads it.
    #[inline]
    pub(super) fn reads(&self, source: MemoryKind) -> &Memory {
        match (&self.gpu, source) {
            (Some(gpu), MemoryKind::GpuDirect) => &gpu.reads,
            _ => &self.memory,
        }
    }

    /// The memory of targets as the port writes it.
    #[inline]
    pub(super) fn writes(&self, target: MemoryKind) -> &Memory {
        match (&self.gpu, target) {
            (Some(gpu), MemoryKind::GpuDirect) => &gpu.writes,
            _ => &self.memory,
        }
    }

    /// The step that GPU memory as a source adds before a send, with its cost.
    #[inline]
    pub(super) fn before_send(&self, source: MemoryKind, bytes: Bytes) -> (CardPart, Span) {
        match (&self.gpu, source) {
            (Some(gpu), MemoryKind::GpuDirect) => (CardPart::GpuLock, gpu.lock),
            (Some(gpu), MemoryKind::GpuStaged) => (CardPart::GpuCopy, gpu.copy(bytes)),
            _ => (CardPart::GpuCopy, Span::ZERO),
        }
    }

    /// The time of the copy that GPU memory as a target adds behind a completion.
    #[inline]
    pub(super) fn behind_completion(&self, target: MemoryKind, bytes: Bytes) -> Span {
        match (&self.gpu, target) {
            (Some(gpu), MemoryKind::GpuStaged) => gpu.copy(bytes),
            _ => Span::ZERO,
        }
    }

    /// The time before which the first packet of a message is not ready whose store to the card is at
    /// `stores`: what an idle card takes.
    pub(super) fn least_ready(&self, descriptor: &Descriptor, stores: Time) -> Time {
        // The port counts the bytes of a busy line, so that two transfers may be over a bit before twice one.
        const ROUNDING: Span = Span::from_ps(16);
        let card = &self.host_to_card;
        let asked = match card.fast {
            true => self.pcie.least_write(card.line.get()),
            false => {
                let fetch = self.pcie.least_read(card.descriptor.get(), &self.memory);
                self.pcie.least_write(DOORBELL) + fetch
            }
        };
        // Data may come along with the line, or there may be none.
        let data = match descriptor.bytes.min(self.payload) {
            Bytes::ZERO => Span::ZERO,
            bytes if card.fast && bytes <= card.line_data => Span::ZERO,
            bytes => self.pcie.least_read(bytes.get(), self.reads(descriptor.source)),
        };
        let least = stores + (asked + data + self.clock.cycles(card.cycles.into())).saturating_sub(ROUNDING);
        // Without cycles of its own the module does not wait for an edge.
        if card.cycles == 0 { least } else { self.clock.edge_at_or_after(least) }
    }

    /// Cycles of the data path for so many bytes.
    #[inline]
    pub(super) fn words(&self, bytes: Bytes) -> u64 {
        bytes.div_ceil(self.word).max(1)
    }

    /// Least time from packet to packet of one message, as far as it is the interface's.
    pub fn packet_pace(&self, payload: Bytes) -> Span {
        let words = self.words(payload) + u64::from(self.host_to_card.cycles);
        let wire =
            payload.get() + payload.get().div_ceil(self.pcie.max_payload) * self.pcie.completion_header;
        self.clock.cycles(words).max(self.pcie.wire(wire))
    }
}
