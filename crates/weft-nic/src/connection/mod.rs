//! Reliable connections, as the reliable connected service of InfiniBand and RoCE has them.
//!
//! ```text
//!   sending end                                              receiving end
//!   next packet sequence number ── packet ─────────────────► the expected one? ─► taken
//!     │                                                        │ another
//!     └ kept ◄──────────── acknowledgement ────────────────────┤   go-back-n: dropped, NAK once
//!         ├ NAK ─────── all from the expected one again ─►     │   selective-repeat: taken once
//!         ├ time-out ── what is missing again ─►               └ taken before: acknowledged again
//!         └ retry count ─► the connection fails
//! ```
//! A connection joins a virtual interface here and one there, in one traffic class, in one direction: the
//! acknowledgements of packets that go one way say nothing of those that go the other way.
//!
//! An acknowledgement says up to where all packets have come. It answers a packet that asks for one: the last
//! of a message, every so many of a connection, the one that fills the window, and all that are sent again.
//! In `selective-repeat` it also says which of the next 32 packets have come.
//!
//! The time-out is that of a connection. It begins with a packet where none was under way, and anew when an
//! acknowledgement brings the connection on, or what was missing goes again.
//!
//! A connection that has failed goes on with its next number. How its ends agree on that is not modelled.
//!
//! # Source
//! InfiniBand Architecture Specification, volume 1, section 9.7 (reliable service: packet sequence numbers,
//! acknowledgements, NAK of a sequence error, time-out and retry count) and annex A17 (RoCEv2). Selective
//! repeat is ours, after Mittal et al., "Revisiting network support for RDMA", SIGCOMM 2018.
//!
//! # Not modelled
//! Reads and atomics as requests with a sequence of responses: here they are messages. Credits of receive
//! queues, and NAK for want of a receive buffer. A time-out of up to four times its value, as the
//! specification allows it.

mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub(crate) use receiver::{Receiver, Verdict};
pub(crate) use sender::{Repeat, Sender};

use serde::{Deserialize, Serialize};
use weft_units::{Bytes, EndpointId, Span};

weft_keys::words! {
    /// The repair of packets that do not arrive.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub enum Retransmission: "Retransmission", "a way to send packets again" {
        /// Nothing: their messages never arrive.
        #[default]
        None = "none",
        /// All packets from the missing one on are sent again; the receiver takes packets in order alone.
        GoBackN = "go-back-n",
        /// Missing packets are sent again; the receiver takes packets in any order.
        SelectiveRepeat = "selective-repeat",
    }
}

weft_keys::words! {
    /// Machines on which packets are acknowledged.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
    pub enum Acknowledged: "Acknowledged", "when packets are acknowledged" {
        /// All.
        #[default]
        Always = "always",
        /// Those whose links may lose or damage packets. On others an acknowledgement would say nothing new.
        WithFaults = "with-faults",
    }
}

/// The bits of a packet sequence number: InfiniBand Architecture Specification, volume 1, section 9.2.
const PSN_BITS: u32 = 24;

/// The most packets of a connection that may be unacknowledged, so that a number says what it is: half of
/// them all.
const MOST_UNACKNOWLEDGED: u32 = 1 << (PSN_BITS - 1);

/// The usual time-out: 4.096 us × 2^14, as examples of verbs have it (`attr.timeout = 14`).
const USUAL_TIMEOUT: Span = Span::from_ps(4_096_000 << 14);

weft_keys::keys! {
    /// The section of a machine file on reliable connections.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
    pub struct ConnectionParameters {
        /// How lost packets are sent again: `none`, not at all; `go-back-n`, with all that follow them;
        /// `selective-repeat`, alone.
        kind: Retransmission;
        /// From when a packet is sent, or the last acknowledgement that brought the connection on, to when
        /// what is missing is sent again: InfiniBand's local ack timeout, 4.096 us × 2^n. 67.108864ms, of
        /// n = 14, where not given.
        ack_timeout: Span = USUAL_TIMEOUT, not_zero("67.108864ms"),
            only_with("kind", ["go-back-n", "selective-repeat"]);
        /// Time-outs in a row that are answered by sending again; after another one the messages fail. 7
        /// where not given.
        retry_count: u32 = 7, only_with("kind", ["go-back-n", "selective-repeat"]);
        /// Packets of a connection that may be unacknowledged; 2^23 where not given.
        window: u32 = MOST_UNACKNOWLEDGED, within(1, MOST_UNACKNOWLEDGED),
            only_with("kind", ["go-back-n", "selective-repeat"]);
        /// The last packet of a message asks for an acknowledgement, and every so many of a connection; 64
        /// where not given.
        ack_every: u32 = 64, within(1, MOST_UNACKNOWLEDGED),
            only_with("kind", ["go-back-n", "selective-repeat"]);
        /// Whether packets are acknowledged where no link can lose or damage any: `always`, which is so where
        /// not given, or only `with-faults`, where the machine has `faults` or `bit_errors`. Acknowledgements
        /// take bandwidth; `with-faults` leaves that out where they say nothing new.
        acks: Acknowledged = Acknowledged::Always, only_with("kind", ["go-back-n", "selective-repeat"]);
        /// Bytes of an acknowledgement between header and footer of a packet; 4, the extended transport
        /// header, where not given.
        ack_bytes: Bytes = Bytes::new(4), within(Bytes::ZERO, Bytes::new(256)),
            only_with("kind", ["go-back-n", "selective-repeat"]);
    }
}

impl ConnectionParameters {
    /// Nothing is sent again.
    pub const NONE: ConnectionParameters = ConnectionParameters {
        kind: Retransmission::None,
        ack_timeout: USUAL_TIMEOUT,
        retry_count: 7,
        window: MOST_UNACKNOWLEDGED,
        ack_every: 64,
        acks: Acknowledged::Always,
        ack_bytes: Bytes::new(4),
    };

    /// The same on a machine whose links may lose or damage packets, or none of whose links does.
    pub fn on_links(self, may_fail: bool) -> ConnectionParameters {
        match self.acks {
            Acknowledged::WithFaults if !may_fail => ConnectionParameters::NONE,
            Acknowledged::WithFaults | Acknowledged::Always => self,
        }
    }

    /// Whether the receiver takes packets of a connection in order alone.
    pub const fn takes_in_order(&self) -> bool {
        matches!(self.kind, Retransmission::GoBackN)
    }

    /// Whether packets are acknowledged, and sent again.
    pub const fn is_reliable(&self) -> bool {
        !matches!(self.kind, Retransmission::None)
    }
}

/// A packet sequence number: it counts in a circle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Psn(u32);

impl Psn {
    /// Bits of a number.
    pub const BITS: u32 = PSN_BITS;

    const MASK: u32 = (1 << PSN_BITS) - 1;

    /// The number of these bits.
    pub const fn from_bits(bits: u32) -> Psn {
        Psn(bits & Psn::MASK)
    }

    /// The number as [`PSN_BITS`] bits.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The number so many packets later.
    #[inline]
    const fn after(self, packets: u32) -> Psn {
        Psn::from_bits(self.0.wrapping_add(packets))
    }

    /// Packets from another number to this one, around the circle.
    #[inline]
    const fn since(self, other: Psn) -> u32 {
        self.0.wrapping_sub(other.0) & Psn::MASK
    }
}

/// The virtual interfaces that a connection joins, as queue pairs, and its traffic class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct QueuePair {
    /// The virtual interface of the sending end.
    pub from: u16,
    /// That of the receiving end.
    pub to: u16,
    /// The traffic class by a number below 16: packets of another class may overtake them.
    pub class: u8,
}

impl QueuePair {
    /// The bits of [`QueuePair::bits`].
    pub const BITS: u32 = 36;

    /// The pair as a number.
    #[inline]
    pub const fn bits(self) -> u64 {
        (self.class as u64 & 15) << 32 | (self.from as u64) << 16 | self.to as u64
    }

    /// The pair of this number.
    #[inline]
    pub const fn from_bits(bits: u64) -> QueuePair {
        QueuePair { from: (bits >> 16) as u16, to: bits as u16, class: (bits >> 32) as u8 & 15 }
    }
}

/// A connection, as one of its ends names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Connection {
    /// The other interface.
    pub peer: EndpointId,
    /// The virtual interfaces.
    pub pair: QueuePair,
}

impl Connection {
    /// The connection as a number: endpoints have 28 bits of it.
    #[inline]
    const fn key(self) -> u64 {
        (self.peer.0 as u64) << QueuePair::BITS | self.pair.bits()
    }

    const fn of_key(key: u64) -> Connection {
        let bits = key & ((1 << QueuePair::BITS) - 1);
        Connection { peer: EndpointId((key >> QueuePair::BITS) as u32), pair: QueuePair::from_bits(bits) }
    }
}

/// The content of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct AckState {
    /// All packets before this one have come.
    pub expected: Psn,
    /// A bit for each of the 32 packets after that one: whether it has come.
    pub beyond: u32,
    /// Whether it is a NAK: the expected packet is missing, and others have come.
    pub is_negative: bool,
}
