//! End-to-end reliability of packets, as the transport engines of BXIv3 have it.
//!
//! ```text
//!   transmit engine                                          receive engine
//!   flow: next sequence number ── packet ──────────────────► CRC, FCS, sequence number ─► taken
//!     │                                                        │                │
//!     └ outstanding ◄──────────── acknowledgement ─────────────┴────────────────┘
//!          └ time-out ── the same packet again ─►              damaged, out of order: dropped in silence
//! ```
//! There is no negative acknowledgement. What was taken before is acknowledged again: its acknowledgement may
//! be lost, and without another one the sender would repeat it for ever.
//!
//! # Flows come and go
//! A sender begins a flow with sequence number 0 under a number of its own, the opening, and ends it when it
//! has been idle for [`TransportParameters::idle`], or when its table is full and all of the flow is
//! acknowledged: the next packet opens it anew. A receiver forgets a flow that has been idle for twice as
//! long. So both tables are bounded, and the two never disagree, as long as no packet is on its way for
//! longer than the idle time.
//!
//! # Source
//! RED-SEA D1.4 §2.2, Fig. 4 and 5. Time-outs, windows, table sizes and the opening are ours: the text has
//! none.
//!
//! # Not modelled
//! The bits of CRC and FCS: a packet that a link has damaged fails one of them, always.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use receiver::{Receiver, Verdict};
pub use sender::{Expired, Repeat, Sender};

use crate::reliability::ReliabilityParameters;
use serde::{Deserialize, Serialize};
use weft_keys::{Misfit, Problem};
use weft_units::{EndpointId, Span};

/// The properties that packets of one flow share, beside their peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct FlowKind {
    /// Whether they answer requests.
    pub response: bool,
    /// Whether they may arrive in any order.
    pub unordered: bool,
    /// Whether they are of the system's services, and not of computing.
    pub service: bool,
    /// The traffic class, below 8: packets of another one may overtake them on their own virtual channels.
    pub class: u8,
}

impl FlowKind {
    /// The kind as [`KIND_BITS`] bits.
    pub const fn bits(self) -> u8 {
        let flags = self.response as u8 | (self.unordered as u8) << 1 | (self.service as u8) << 2;
        flags | (self.class & 7) << 3
    }

    /// The kind of these bits.
    pub const fn from_bits(bits: u8) -> FlowKind {
        let class = bits >> 3 & 7;
        FlowKind { response: bits & 1 != 0, unordered: bits & 2 != 0, service: bits & 4 != 0, class }
    }
}

/// A flow of an interface: packets to one peer, or from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct FlowId {
    /// The other interface.
    pub peer: EndpointId,
    /// The kind of packets.
    pub kind: FlowKind,
}

impl FlowId {
    /// The flow as a number of 38 bits. Those of one kind to consecutive peers are consecutive.
    const fn key(self) -> u64 {
        (self.kind.bits() as u64) << 32 | self.peer.0 as u64
    }
}

/// The sequence number of a packet, and the opening of its flow that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Sequence {
    /// The opening: 26 bits, counted by the sender.
    pub opening: u32,
    /// The number of the packet in it.
    pub number: u32,
}

/// Bits of a kind of flow.
pub const KIND_BITS: u32 = 6;

/// Bits of an opening.
pub const OPENING_BITS: u32 = 32 - KIND_BITS;

/// The most of what the transport counts.
const MAX_COUNT: u32 = 1 << 20;

weft_keys::keys! {
    /// The section of a machine file on the transport.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct TransportParameters {
        /// Time-out of each packet, and how often it is repeated.
        reliability: ReliabilityParameters, group();
        /// Packets of a flow that may be unacknowledged.
        window: u32, within(1, MAX_COUNT);
        /// Flows that each side has room for.
        flows: u32, within(1, MAX_COUNT);
        /// After this time without a packet a flow ends.
        idle: Span;
    }
}

impl TransportParameters {
    /// Checks that a flow does not end while a packet waits to be repeated.
    ///
    /// # Errors
    /// The key to change, and how.
    pub fn check(&self) -> Result<(), Misfit> {
        let longest = self.reliability.longest;
        if self.idle >= longest {
            return Ok(());
        }
        let why = format!("a flow ends after {} without a packet", self.idle);
        let label = format!("but a packet may wait {longest} to be repeated");
        let mend = "write an idle time that is at least nic.transport.longest_timeout";
        Err(Problem::new(why, label, mend).of("idle"))
    }
}
