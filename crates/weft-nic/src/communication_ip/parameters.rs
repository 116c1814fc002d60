//! The interface's section of a machine file.

use super::lattice::Lattice;
use super::memory::KernelMemory;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, Clock};

/// Bytes of a word: the width of a FIFO, 128 bits (D2.8 §2, §5.2.1).
pub const WORD: Bytes = Bytes::new(16);

/// The interface's section of a machine file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommunicationIpParameters {
    /// The clock of the logic.
    pub clock: Clock,
    /// Nodes and ports.
    pub lattice: Lattice,
    /// From the writing of a word into a transmitting FIFO until it can be read, in cycles.
    pub fifo_latency: u32,
    /// Words of each FIFO of a transmitting port.
    pub fifo_words: u32,
    /// Register `threshold`: free words of a FIFO of data below which it tells the aggregator to stop.
    pub threshold: u32,
    /// Register `credit`: words of the buffer behind a port of the switch.
    pub credit: u32,
    /// Cycles of the aggregator and its kernel before the header of a packet.
    pub aggregator: u32,
    /// Cycles from the footer of a packet to its kernel's having it: dispatcher and kernel.
    pub dispatcher: u32,
    /// Bytes of header, in whole words.
    pub header: Bytes,
    /// Bytes of footer, in whole words.
    pub footer: Bytes,
    /// Largest payload of a packet.
    pub payload: Bytes,
    /// The memory with the buffers of kernels.
    pub memory: KernelMemory,
}

impl CommunicationIpParameters {
    /// Words that carry so many bytes.
    pub fn words(bytes: Bytes) -> u32 {
        u32::try_from(bytes.div_ceil(WORD)).unwrap_or(u32::MAX)
    }

    /// Words of a packet's header.
    pub fn header_words(&self) -> u32 {
        CommunicationIpParameters::words(self.header)
    }

    /// Words of header and footer.
    pub fn envelope_words(&self) -> u32 {
        self.header_words() + CommunicationIpParameters::words(self.footer)
    }

    /// Cycles that a kernel and its aggregator take for a packet of `payload`, one packet after the other.
    pub fn packet_cycles(&self, payload: Bytes) -> u64 {
        let read = self.memory.read(payload, &self.clock);
        u64::from(read.first) + u64::from(self.aggregator) + u64::from(self.envelope_words()) + read.words
    }
}
