//! The header of a packet, in the label and the eight bytes that the network carries unread.
//!
//! ```text
//!  label        63  58 57                32 31                  0
//!               ┌─────┬────────────────────┬─────────────────────┐
//!  data, answer │ kind│ opening            │ sequence number     │
//!               └─────┴────────────────────┴─────────────────────┘
//!               ┌─────┬────────────────────┬─────────────────────┐
//!  alone        │ kind│ low bits of number │ low bits of offer   │
//!               └─────┴────────────────────┴─────────────────────┘
//!  datagram       nothing: for a group, which nobody acknowledges
//! ```
//! A packet travels alone when it is all of a message, and whoever gets it need know but when that was
//! offered: the rest is said by an announcement, which costs the simulation as much as a packet on two links.

use crate::transport::{FlowKind, NUMBER_BITS, OPENING_BITS, Sequence};
use serde::{Deserialize, Serialize};
use weft_fabric::{HeaderBits, Packet, PacketLabel};
use weft_units::Time;

/// A packet of a message.
pub(super) const DATA: PacketLabel = PacketLabel::data(1);
/// An acknowledgement.
pub(super) const ACKNOWLEDGEMENT: PacketLabel = PacketLabel::acknowledgement(2);
/// A packet of a message for a group.
pub(super) const DATAGRAM: PacketLabel = PacketLabel::data(3);

/// A packet that is a message of which nothing was announced.
pub(super) const ALONE: PacketLabel = PacketLabel::data(4);

/// The header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Header {
    Data(FlowKind, Sequence),
    Acknowledgement(FlowKind, Sequence),
    Datagram,
    /// With the low bits of its number, and those of the time of its offer.
    Alone(FlowKind, u32, OfferBits),
}

impl Header {
    /// The header of a packet; `None`: the packet is not of this interface.
    #[inline]
    pub fn of(packet: &Packet) -> Option<Header> {
        let (kind, sequence) = unpack(packet.carried);
        match packet.label {
            DATA => Some(Header::Data(kind, sequence)),
            ACKNOWLEDGEMENT => Some(Header::Acknowledgement(kind, sequence)),
            ALONE => Some(Header::Alone(kind, sequence.opening, OfferBits(sequence.number))),
            DATAGRAM => Some(Header::Datagram),
            _ => None,
        }
    }
}

/// The low bits of the time at which a message was offered: enough for 4.29 ms from then on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct OfferBits(u32);

impl OfferBits {
    /// The longest time in ps after which they are surely enough. Half of it is for the announcement of a
    /// packet that takes longer.
    pub const ENOUGH: u64 = 1 << 31;

    #[inline]
    pub const fn of(time: Time) -> OfferBits {
        OfferBits(time.as_ps() as u32)
    }

    /// The time, seen from a later one.
    #[inline]
    pub const fn before(self, later: Time) -> Time {
        let passed = (later.as_ps() as u32).wrapping_sub(self.0);
        Time::from_ps(later.as_ps().saturating_sub(passed as u64))
    }
}

/// The eight bytes of a packet that travels alone.
#[inline]
pub(super) const fn pack_alone(kind: FlowKind, number: u32, offer: OfferBits) -> HeaderBits {
    let low = number & ((1 << NUMBER_BITS) - 1);
    pack(kind, Sequence { opening: low, number: offer.0 })
}

/// As many bits of a number are carried where another header has the opening.
const _: () = assert!(NUMBER_BITS == OPENING_BITS);

/// The eight bytes of a flow's kind and a packet's number.
#[inline]
pub(super) const fn pack(kind: FlowKind, sequence: Sequence) -> HeaderBits {
    let (kind, opening) = (kind.bits() as u64, sequence.opening as u64);
    HeaderBits::from_bits(kind << (32 + OPENING_BITS) | opening << 32 | sequence.number as u64)
}

const fn unpack(bits: HeaderBits) -> (FlowKind, Sequence) {
    let bits = bits.bits();
    let opening = (bits >> 32) as u32 & ((1 << OPENING_BITS) - 1);
    let kind = FlowKind::from_bits((bits >> (32 + OPENING_BITS)) as u8);
    (kind, Sequence { opening, number: bits as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::KIND_BITS;
    use proptest::prelude::*;
    use weft_fabric::{Addressing, Part};
    use weft_units::EndpointId;

    proptest! {
        /// Catches fields that overlap.
        #[test]
        fn a_header_is_read_as_it_was_written(
            kind in 0u8..1 << KIND_BITS,
            opening in 0u32..1 << OPENING_BITS,
            number: u32,
            offer: u64,
        ) {
            let (kind, sequence) = (FlowKind::from_bits(kind), Sequence { opening, number });
            let ends = Addressing { source: EndpointId(1), destination: EndpointId(2), message: 3 };
            let mut packet = Packet::new(ends, 64, pack(kind, sequence), Part::Whole);
            packet.label = DATA;
            prop_assert_eq!(Header::of(&packet), Some(Header::Data(kind, sequence)));
            packet.label = ACKNOWLEDGEMENT;
            prop_assert_eq!(Header::of(&packet), Some(Header::Acknowledgement(kind, sequence)));
            packet.label = PacketLabel::data(5);
            prop_assert_eq!(Header::of(&packet), None);
            let offer = OfferBits::of(Time::from_ps(offer));
            packet.carried = pack_alone(kind, sequence.number, offer);
            packet.label = ALONE;
            let low = sequence.number & ((1 << NUMBER_BITS) - 1);
            prop_assert_eq!(Header::of(&packet), Some(Header::Alone(kind, low, offer)));
        }

        /// Catches a time of offer that is not found again.
        #[test]
        fn an_offer_is_seen_from_any_later_time(offer in 0u64..1 << 50, passed: u32) {
            let (offer, now) = (Time::from_ps(offer), Time::from_ps(offer + u64::from(passed)));
            prop_assert_eq!(OfferBits::of(offer).before(now), offer);
        }
    }
}
