//! The section of a machine file on the APEnetX interface.

use super::completion::{CompletionPath, KernelWait};
use super::descriptor::Descriptor;
use super::gpu::{GpuParameters, MemoryKind};
use super::part::CardPart;
use super::software::SoftwareParameters;
use crate::iommu::IommuParameters;
use crate::pcie::{Memory, PcieParameters};
use serde::{Deserialize, Serialize};
use weft_keys::{Misfit, Problem};
use weft_units::{Bytes, Clock, Span, Time};

/// Bytes of a doorbell: a register.
pub(super) const DOORBELL: u64 = 4;

weft_keys::keys! {
    /// The logic of the card, in both directions.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct CardParameters {
        /// Bytes that the data path carries per cycle.
        word: Bytes, not_zero("64 for 512 bits");
        /// Queues, each for one process: processes are numbered in 16 bits.
        queues: u32, within(1, 1 << 11);
    }
}

weft_keys::keys! {
    /// The port to the host, and the memory behind it.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct PcieHostParameters {
        /// The port.
        pcie: PcieParameters, group();
        /// The memory.
        memory: Memory, group();
    }
}

/// Sizes of descriptors, lines and entries.
const SIZES: [Bytes; 2] = [Bytes::new(4), Bytes::new(4096)];

/// Descriptors and packets ahead.
const MAX_AHEAD: u32 = 1 << 10;

weft_keys::keys! {
    /// The module from the host to the network, with the queue of descriptors.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct HostToCardParameters {
        /// Bytes of a tx descriptor.
        descriptor: Bytes, within(SIZES[0], SIZES[1]);
        /// Descriptors that may be on their way into the card.
        prefetch: u32, within(1, MAX_AHEAD);
        /// Packets whose data is read ahead.
        packets: u32, within(1, MAX_AHEAD);
        /// Each packet beside its words, in whole cycles: header, footer, coordinates.
        cycles: u32, key("packet"), cycles_of("nic.clock");
        /// Bytes of the line of a fast send.
        line: Bytes, within(SIZES[0], SIZES[1]);
        /// Bytes of it that are data.
        line_data: Bytes;
        /// Whether the library stores lines and does not ask the driver.
        fast: bool, key("fast_send");
        /// Whether a process waits for the end of each transmission before the next.
        blocking: bool;
        /// Bytes of the status that the card writes at the end of a transmission.
        status: Bytes, within(SIZES[0], SIZES[1]);
    }
}

impl HostToCardParameters {
    /// Checks that the data of a line fits into it.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check(&self) -> Result<(), Misfit> {
        fits(("line_data", self.line_data), ("nic.host_to_card.line", self.line))
    }
}

weft_keys::keys! {
    /// The module from the network to the host, with the queues of completions.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct CardToHostParameters {
        /// Each packet beside its words, in whole cycles: CRC, destination address.
        cycles: u32, key("packet"), cycles_of("nic.clock");
        /// Bytes of a completion entry.
        entry: Bytes, within(SIZES[0], SIZES[1]);
        /// Most bytes of data that a completion entry carries; 0: none.
        entry_data: Bytes;
        /// Path of completions where a program does not choose.
        completion: CompletionPath, of("nic.completion");
        /// How a process waits on the kernel path: `interrupt` or `polling`.
        wait: KernelWait, key("kernel_wait");
    }
}

impl CardToHostParameters {
    /// Checks that the data of an entry fits into it.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check(&self) -> Result<(), Misfit> {
        fits(("entry_data", self.entry_data), ("nic.card_to_host.entry", self.entry))
    }
}

/// Checks that the data of this key fits into all of that one's.
fn fits(data: (&'static str, Bytes), all: (&str, Bytes)) -> Result<(), Misfit> {
    if data.1 <= all.1 {
        return Ok(());
    }
    let why = format!("{} of data do not fit into {}", data.1, all.1);
    Err(Problem::new(why, "", format!("write at most {}, which is {}", all.1, all.0)).of(data.0))
}

/// The interface, block by block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApenetxParameters {
    /// The clock of the logic.
    pub clock: Clock,
    /// The logic of the card.
    pub card: CardParameters,
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
    pub(super) fn reads(&self, source: MemoryKind) -> Memory {
        match (&self.gpu, source) {
            (Some(gpu), MemoryKind::GpuDirect) => gpu.reads(),
            _ => self.memory,
        }
    }

    /// The memory of targets as the port writes it.
    #[inline]
    pub(super) fn writes(&self, target: MemoryKind) -> Memory {
        match (&self.gpu, target) {
            (Some(gpu), MemoryKind::GpuDirect) => gpu.writes(),
            _ => self.memory,
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
            bytes => self.pcie.least_read(bytes.get(), &self.reads(descriptor.source)),
        };
        let least = stores + (asked + data + self.clock.cycles(card.cycles.into())).saturating_sub(ROUNDING);
        // Without cycles of its own the module does not wait for an edge.
        if card.cycles == 0 { least } else { self.clock.edge_at_or_after(least) }
    }

    /// Cycles of the data path for so many bytes.
    #[inline]
    pub(super) fn words(&self, bytes: Bytes) -> u64 {
        bytes.div_ceil(self.card.word).max(1)
    }

    /// Least time from packet to packet of one message, as far as it is the interface's.
    pub fn packet_pace(&self, payload: Bytes) -> Span {
        let words = self.words(payload) + u64::from(self.host_to_card.cycles);
        let wire =
            payload.get() + payload.get().div_ceil(self.pcie.max_payload) * self.pcie.completion_header;
        self.clock.cycles(words).max(self.pcie.wire(wire))
    }
}
