//! The self-test of IntraNode port 0: packet generator, consumer and performance counter.
//!
//! ```text
//!   registers ─► packet generator ─► TX FIFO ─► switch ─► RX FIFO ─► consumer ─► registers
//!                        │ first footer written      last footer read │
//!                        └───────────► performance counter ◄──────────┘
//! ```
//! The generator fills the FIFOs by itself: neither a kernel nor its aggregator and dispatcher take part.
//!
//! # Source
//! D2.8 §2: the three blocks, number of packets, size and destination along X; §2.1: the counter counts from
//! the writing of the footer into the TX FIFO to its reading from the RX FIFO; §5.1: the states of both
//! machines are in the status register.
//!
//! # Not modelled
//! Two cards with clocks of their own: where the consumer is at another node, the counter there knows when
//! the generator began.

mod consumer;
mod packet_generator;
mod pattern;
mod performance_counter;

pub use consumer::{Consumer, ConsumerInput, ConsumerState};
pub use packet_generator::{GeneratorInput, GeneratorState, PacketGenerator, TestPacket};
pub use pattern::TestPattern;
pub use performance_counter::PerformanceCounter;

use super::header::Header;
use super::registers::{STATUS_CONSUMER_IDLE, STATUS_GENERATOR_IDLE, STATUS_RIGHT};
use serde::{Deserialize, Serialize};

/// The blocks, and the registers that configure them.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct SelfTest {
    packets: u32,
    size: u32,
    destination: u32,
    pattern: TestPattern,
    /// Packets for no node of the lattice.
    outside: u32,
    /// The header of the last packet that came, or was for no node.
    header: u128,
    /// Fills the TX FIFO.
    pub generator: PacketGenerator,
    /// Empties the RX FIFO.
    pub consumer: Consumer,
    /// Counts cycles.
    pub counter: PerformanceCounter,
}

impl SelfTest {
    pub(super) fn packets(&self) -> u32 {
        self.packets
    }

    pub(super) fn set_packets(&mut self, packets: u32) {
        self.packets = packets;
    }

    pub(super) fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn set_size(&mut self, size: u32) {
        self.size = size;
    }

    pub(super) fn destination(&self) -> u32 {
        self.destination
    }

    pub(super) fn set_destination(&mut self, x: u32) {
        self.destination = x;
    }

    pub(super) fn pattern(&self) -> TestPattern {
        self.pattern
    }

    pub(super) fn set_pattern(&mut self, pattern: TestPattern) {
        self.pattern = pattern;
    }

    /// Packets of the generator for no node of the lattice.
    pub fn outside(&self) -> u32 {
        self.outside
    }

    /// The header of the last packet that came, or was for no node of the lattice.
    pub fn header(&self) -> u128 {
        self.header
    }

    /// A packet has come with this header.
    pub(super) fn came(&mut self, header: u128) {
        self.header = header;
    }

    /// The switch drops a packet for no node of the lattice, and marks its header.
    pub(super) fn drop_outside(&mut self, header: &Header) {
        self.outside = self.outside.saturating_add(1);
        self.header = Header { out_of_lattice: true, ..*header }.pack().unwrap_or_default();
    }

    /// Whether the generator has something to do, and does nothing else.
    pub(super) fn can_start(&self) -> bool {
        self.packets > 0 && self.generator.state() == GeneratorState::Idle
    }

    /// The bits of register 20.
    pub fn status(&self) -> u32 {
        let right = if self.consumer.is_right() { STATUS_RIGHT } else { 0 };
        let generator = match self.generator.state() {
            GeneratorState::Idle => STATUS_GENERATOR_IDLE,
            GeneratorState::Sending => 0,
        };
        let consumer = match self.consumer.state() {
            ConsumerState::Idle => STATUS_CONSUMER_IDLE,
            ConsumerState::Flushing => 0,
        };
        right | generator | consumer
    }
}
