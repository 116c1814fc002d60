//! The header of a packet, in the label and the eight bytes that the network carries unread.
//!
//! ```text
//!  label        63  58 57                32 31                  0
//!               ┌─────┬────────────────────┬─────────────────────┐
//!  data, answer │ kind│ opening            │ sequence number     │
//!               └─────┴────────────────────┴─────────────────────┘
//!  datagram       nothing: for a group, which nobody acknowledges
//! ```

use crate::transport::{FlowKind, OPENING_BITS, Sequence};
use weft_fabric::{HeaderBits, Packet, PacketLabel};

/// A packet of a message.
pub(super) const DATA: PacketLabel = PacketLabel::data(1);
/// An acknowledgement.
pub(super) const ACKNOWLEDGEMENT: PacketLabel = PacketLabel::acknowledgement(2);
/// A packet of a message for a group.
pub(super) const DATAGRAM: PacketLabel = PacketLabel::data(3);

/// The header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Header {
    Data(FlowKind, Sequence),
    Acknowledgement(FlowKind, Sequence),
    Datagram,
}

impl Header {
    /// The header of a packet; `None`: the packet is not of this interface.
    #[inline]
    pub fn of(packet: &Packet) -> Option<Header> {
        let (kind, sequence) = unpack(packet.carried);
        match packet.label {
            DATA => Some(Header::Data(kind, sequence)),
            ACKNOWLEDGEMENT => Some(Header::Acknowledgement(kind, sequence)),
            DATAGRAM => Some(Header::Datagram),
            _ => None,
        }
    }
}

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
    use weft_fabric::{Addressing, MessagePart};
    use weft_units::EndpointId;

    proptest! {
        /// Catches fields that overlap.
        #[test]
        fn a_header_is_read_as_it_was_written(
            kind in 0u8..1 << KIND_BITS,
            opening in 0u32..1 << OPENING_BITS,
            number: u32,
        ) {
            let (kind, sequence) = (FlowKind::from_bits(kind), Sequence { opening, number });
            let ends = Addressing { source: EndpointId(1), destination: EndpointId(2), message: 3 };
            let mut packet = Packet::new(ends, 64, pack(kind, sequence), MessagePart::Whole);
            packet.label = DATA;
            prop_assert_eq!(Header::of(&packet), Some(Header::Data(kind, sequence)));
            packet.label = ACKNOWLEDGEMENT;
            prop_assert_eq!(Header::of(&packet), Some(Header::Acknowledgement(kind, sequence)));
            packet.label = PacketLabel::data(4);
            prop_assert_eq!(Header::of(&packet), None);
        }
    }
}
