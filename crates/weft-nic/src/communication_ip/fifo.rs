//! The transmitting FIFOs of an IntraNode port: one for headers and footers, one for data.
//!
//! ```text
//!   aggregator ── header, footer ──► ▤▤▤▤ ─┐
//!              └─ words of data ───► ▤▤▤▤ ─┴─► switch: reads a word six cycles after it was written
//! ```
//! The switch begins on a packet when it can read its header, and as early as all its words will be there in
//! time: virtual cut-through begins at the FIFO. A packet has a place from before its first word is written
//! until the switch takes it.
//!
//! # Source
//! D2.8 §2: each port has two FIFOs for each direction, so that header and footer on one hand and data on the
//! other have one of their own; §2.1: 60 ns between the writing of a word and the FIFO's being no longer
//! empty. Depth and the meaning of `threshold` are ours.

use super::aggregator::Writing;
use super::parameters::CommunicationIpParameters;
use super::self_test::TestPattern;
use crate::block::{Block, block};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use weft_fabric::ClassTag;
use weft_units::{EndpointId, Time};

/// The transmitting FIFOs of an IntraNode port in reports: D2.8 §2.
pub const TRANSMIT_FIFO: Block = block!(Buffer "tx fifo");

/// A packet in the FIFOs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Queued {
    /// From when on the switch can take it.
    pub ready: Time,
    pub writing: Writing,
    /// Words of payload.
    pub words: u32,
    pub to: EndpointId,
    pub message: u32,
    pub bytes: u32,
    /// The place of its payload in the message; of a test packet its number.
    pub offset: u64,
    pub kind: FifoPacketKind,
    /// The traffic class of its message; of a test packet none.
    pub class: ClassTag,
}

/// The part of its message that a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum FifoPacketKind {
    /// All of it, or one of several packets. `watch`: the message is watched, and this packet is its first or
    /// last.
    Message { is_whole: bool, watch: bool },
    /// From the packet generator.
    Test(TestPattern),
}

/// The two FIFOs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct TransmitFifo {
    packets: VecDeque<Queued>,
    /// Words of data with a place.
    data: u32,
}

impl TransmitFifo {
    /// Whether a packet with so many words of data has space. An empty FIFO takes any packet, one that is
    /// longer than it word by word.
    pub fn has_space(&self, words: u32, threshold: u32, parameters: &CommunicationIpParameters) -> bool {
        let depth = parameters.words(parameters.intra_node.fifo);
        let envelopes = (self.packets.len() as u32 + 1).saturating_mul(parameters.envelope_words());
        let data = self.data.saturating_add(words).saturating_add(threshold);
        self.packets.is_empty() || (envelopes <= depth && data <= depth)
    }

    /// A packet is being written; `ready` of it is computed here.
    pub fn push(&mut self, packet: Queued, parameters: &CommunicationIpParameters) {
        let clock = &parameters.clock;
        let Writing { header, ended, .. } = packet.writing;
        let latency = u64::from(parameters.intra_node.fifo_latency);
        let all = u64::from(packet.words) + u64::from(parameters.envelope_words());
        // The first word leaves so late that the last one has come: later only where memory is slow.
        let last_fits = clock.edges_before(ended).saturating_sub(all);
        let ready = clock.edge(clock.edges_before(header).max(last_fits) + latency);
        self.data += packet.words;
        self.packets.push_back(Queued { ready, ..packet });
    }

    /// The time at which the switch can take the first packet; [`Time::NEVER`]: there is none.
    pub fn ready(&self) -> Time {
        self.packets.front().map_or(Time::NEVER, |packet| packet.ready)
    }

    /// The first packet.
    pub fn front(&self) -> Option<&Queued> {
        self.packets.front()
    }

    /// The switch takes the first packet.
    pub fn pop(&mut self) -> Option<Queued> {
        let packet = self.packets.pop_front()?;
        self.data -= packet.words;
        Some(packet)
    }
}
