//! The header of a packet, in the label and the eight bytes that the network carries unread: the kind and the
//! identity of [`wire`]. The number is that of the packet's message, and of a packet between
//! reduction modules the operation's group. All else is the same in all packets of a message, and is
//! [announced](super::Announcement) once.

use super::wire;
use crate::allreduce::{ModulePacketKind, OperationId};
use crate::gvas::Pdid;
use crate::mailbox::Refusal;
use crate::packetizer::ChannelId;
use crate::rdma::{Answer, CellId};
use weft_fabric::{Addressing, HeaderBits, MessagePart, Packet};
use weft_units::Bytes;

/// The header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// A small message, from a channel of a packetizer to a mailbox.
    Small(ChannelId),
    /// A request of a read, from a channel of a packetizer to the mailbox of a send unit.
    ReadRequest(ChannelId),
    /// The mailbox has what a channel has sent.
    Acknowledgement(ChannelId),
    /// The mailbox has refused what a channel has sent.
    Refused(ChannelId, Refusal),
    /// A cell of an RDMA write.
    Cell(CellId),
    /// The answer to a block of cells, named by the cell that completed it.
    BlockAnswer(CellId, Answer),
    /// From one reduction module to another.
    Reduction(OperationId, ModulePacketKind),
}

impl Header {
    /// The header of a packet; `None`: the packet is not of this interface.
    #[inline]
    pub fn of(packet: &Packet) -> Option<Header> {
        wire::unpack(packet.label, packet.carried.bits(), packet.message)
    }

    /// The identity of a cell; `None`: the packet is none.
    #[inline]
    pub(super) fn cell_of(packet: &Packet) -> Option<CellId> {
        (packet.label == wire::CELL).then(|| wire::unpack_cell(packet.carried.bits()))
    }

    /// The packet with this header and a payload of `bytes`. Between reduction modules the message is the
    /// operation's group.
    #[inline]
    pub fn packet(self, addressing: Addressing, bytes: u32) -> Packet {
        debug_assert!(!matches!(self, Header::Reduction(id, _) if id.group != addressing.message));
        let (label, identity) = wire::pack(self);
        let mut packet = Packet::new(addressing, bytes, HeaderBits::from_bits(identity), self.part());
        packet.label = label;
        packet
    }

    /// The packet of a small message or a request, for an interface and of a domain.
    pub(super) fn to_mailbox(self, addressing: Addressing, bytes: Bytes, owner: (u16, Pdid)) -> Packet {
        let mut packet = self.packet(addressing, bytes.get() as u32);
        let (interface, Pdid(domain)) = owner;
        let owner = u64::from(interface) << 48 | u64::from(domain) << 32;
        packet.carried = HeaderBits::from_bits(packet.carried.bits() | owner);
        packet
    }

    /// The interface that such a packet is for, and its domain.
    pub(super) fn owner_of(packet: &Packet) -> (u16, Pdid) {
        let carried = packet.carried.bits();
        ((carried >> 48) as u16, Pdid((carried >> 32) as u16))
    }

    /// Cells are the pieces of a message; all other packets are whole.
    fn part(self) -> MessagePart {
        if matches!(self, Header::Cell(_)) { MessagePart::Piece } else { MessagePart::Whole }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exanet::Class;
    use crate::exanet::wire::tests::any_header;
    use proptest::prelude::*;
    use weft_units::EndpointId;

    proptest! {
        /// Catches bits that the simulated packet does not carry, and a cell that is taken for a message.
        #[test]
        fn a_packet_has_the_header_that_it_was_given(header in any_header(), message: u32) {
            let (source, destination) = (EndpointId(1), EndpointId(2));
            let message = if let Header::Reduction(id, _) = header { id.group } else { message };
            let packet = header.packet(Addressing { source, destination, message }, 64);
            prop_assert_eq!(Header::of(&packet), Some(header));
            let cell = Some(header).filter(|header| matches!(header, Header::Cell(_)));
            prop_assert_eq!(Header::cell_of(&packet).map(Header::Cell), cell);
            prop_assert_eq!(packet.part() == MessagePart::Piece, matches!(header, Header::Cell(_)));
        }

        /// Catches an answer that counts as data, and data that counts as an answer.
        #[test]
        fn nothing_is_sent_because_of_an_answer(header in any_header()) {
            let (label, _) = wire::pack(header);
            prop_assert_eq!(label.is_acknowledgement(), Class::of(header) == Class::Answer);
            prop_assert_eq!(label.is_acknowledgement(), Class::of(header).sets_off().is_empty());
        }
    }
}
