//! The header of a packet, in the label and the eight bytes that the network carries unread.
//!
//! ```text
//!  label  63                  48 47 46     40 39      32 31                                   0
//!        ┌───────────────────────────────────────────────────────────────────────────────────┐
//!  small │ time at which the message was offered, in ps                                      │
//!        ├──────────────────────┬──┬─────────┬──────────┬────────────────────────────────────┤
//!  cell  │ channel              │L │ index   │ attempt  │ transaction                        │
//!  block │ of the cell that completed the block         │                                    │
//!        ├──────────────────────┴──┴─────────┴──────────┼───────────────────────┬────────────┤
//!  step  │ sequence                                     │ block                 │ number     │
//!        └──────────────────────────────────────────────┴───────────────────────┴────────────┘
//!         63                                          32 31                    8 7           0
//! ```
//! L: the cell is the last of its block.
//!
//! An answer of a mailbox carries nothing: its message's number says which packet it answers. The message
//! of a packet between reduction modules is the operation's group.
//!
//! Events of one instant are ordered by label, so that its numbers are part of the model's results.

use crate::allreduce::{ModulePacketKind, OperationId};
use crate::mailbox::Refusal;
use crate::rdma::{Answer, CellId, ChannelId, Refusal as BlockRefusal};
use weft_fabric::{Addressing, HeaderBits, MessagePart, Packet, PacketLabel};
use weft_units::Time;

/// The header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Header {
    /// A small message, from a packetizer to a mailbox.
    Small {
        /// The time at which the message was offered to the interface.
        offered: Time,
    },
    /// The mailbox has the small message.
    Acknowledgement,
    /// The mailbox has refused the small message.
    Refused(Refusal),
    /// A cell of an RDMA write.
    Cell(CellId),
    /// The answer to a block of cells, named by the cell that completed it.
    BlockAnswer(CellId, Answer),
    /// From one reduction module to another.
    Reduction(OperationId, ModulePacketKind),
}

const SMALL: PacketLabel = PacketLabel::data(1);
const ACKNOWLEDGEMENT: PacketLabel = PacketLabel::acknowledgement(2);
const REFUSED_DAMAGED: PacketLabel = PacketLabel::acknowledgement(3);
const REFUSED_DOMAIN: PacketLabel = PacketLabel::acknowledgement(4);
const REFUSED_INTERFACE: PacketLabel = PacketLabel::acknowledgement(5);
const REFUSED_FULL: PacketLabel = PacketLabel::acknowledgement(6);
const CELL: PacketLabel = PacketLabel::data(7);
const BLOCK_ACKNOWLEDGEMENT: PacketLabel = PacketLabel::acknowledgement(8);
const BLOCK_WITHOUT_CONTEXT: PacketLabel = PacketLabel::acknowledgement(9);
const BLOCK_FAULTED: PacketLabel = PacketLabel::acknowledgement(10);
const BLOCK_OF_DOMAIN: PacketLabel = PacketLabel::acknowledgement(11);
const CONTRIBUTION: PacketLabel = PacketLabel::data(12);
const EXCHANGE: PacketLabel = PacketLabel::data(13);
const RESULT: PacketLabel = PacketLabel::data(14);
const ASK_VECTOR: PacketLabel = PacketLabel::data(15);
const NO_VECTOR_YET: PacketLabel = PacketLabel::data(16);
const VECTOR_FAILED: PacketLabel = PacketLabel::data(17);

impl Header {
    /// The header of a packet; `None`: the packet is not of this interface.
    #[inline]
    pub fn of(packet: &Packet) -> Option<Header> {
        let bits = packet.carried;
        let block = |answer| Header::BlockAnswer(unpack_cell(bits), answer);
        let step = |of_number: fn(u8) -> ModulePacketKind| unpack_step(packet.message, bits, of_number);
        Some(match packet.label {
            SMALL => Header::Small { offered: bits.time_offered() },
            ACKNOWLEDGEMENT => Header::Acknowledgement,
            REFUSED_DAMAGED => Header::Refused(Refusal::Damaged),
            REFUSED_DOMAIN => Header::Refused(Refusal::Domain),
            REFUSED_INTERFACE => Header::Refused(Refusal::Interface),
            REFUSED_FULL => Header::Refused(Refusal::Full),
            CELL => Header::Cell(unpack_cell(bits)),
            BLOCK_ACKNOWLEDGEMENT => block(Answer::Ack),
            BLOCK_WITHOUT_CONTEXT => block(Answer::Nack(BlockRefusal::NoContext)),
            BLOCK_FAULTED => block(Answer::Nack(BlockRefusal::PageFault)),
            BLOCK_OF_DOMAIN => block(Answer::Nack(BlockRefusal::Protection)),
            CONTRIBUTION => step(ModulePacketKind::Contribution),
            EXCHANGE => step(ModulePacketKind::Exchange),
            RESULT => step(|_| ModulePacketKind::Result),
            ASK_VECTOR => step(|_| ModulePacketKind::Ask),
            NO_VECTOR_YET => step(|_| ModulePacketKind::NotYet),
            VECTOR_FAILED => step(|_| ModulePacketKind::Failed),
            _ => return None,
        })
    }

    /// The identity of a cell; `None`: the packet is none.
    #[inline]
    pub(super) fn cell_of(packet: &Packet) -> Option<CellId> {
        (packet.label == CELL).then(|| unpack_cell(packet.carried))
    }

    /// The packet with this header and a payload of `bytes`. Between reduction modules the message is the
    /// operation's group.
    #[inline]
    pub fn packet(self, addressing: Addressing, bytes: u32) -> Packet {
        debug_assert!(!matches!(self, Header::Reduction(id, _) if id.group != addressing.message));
        let (label, bits) = self.pack();
        let mut packet = Packet::new(addressing, bytes, bits, self.part());
        packet.label = label;
        packet
    }

    /// Cells are the pieces of a message; all other packets are whole.
    fn part(self) -> MessagePart {
        if matches!(self, Header::Cell(_)) { MessagePart::Piece } else { MessagePart::Whole }
    }

    /// The label and the eight bytes.
    #[inline]
    fn pack(self) -> (PacketLabel, HeaderBits) {
        match self {
            Header::Small { offered } => (SMALL, HeaderBits::offered(offered)),
            Header::Acknowledgement => (ACKNOWLEDGEMENT, HeaderBits::EMPTY),
            Header::Refused(refusal) => {
                let label = match refusal {
                    Refusal::Damaged => REFUSED_DAMAGED,
                    Refusal::Domain => REFUSED_DOMAIN,
                    Refusal::Interface => REFUSED_INTERFACE,
                    Refusal::Full => REFUSED_FULL,
                };
                (label, HeaderBits::EMPTY)
            }
            Header::Cell(id) => (CELL, pack_cell(id)),
            Header::BlockAnswer(id, answer) => {
                let label = match answer {
                    Answer::Ack => BLOCK_ACKNOWLEDGEMENT,
                    Answer::Nack(BlockRefusal::NoContext) => BLOCK_WITHOUT_CONTEXT,
                    Answer::Nack(BlockRefusal::PageFault) => BLOCK_FAULTED,
                    Answer::Nack(BlockRefusal::Protection) => BLOCK_OF_DOMAIN,
                };
                (label, pack_cell(id))
            }
            Header::Reduction(id, step) => {
                let (label, number) = match step {
                    ModulePacketKind::Contribution(member) => (CONTRIBUTION, member),
                    ModulePacketKind::Exchange(level) => (EXCHANGE, level),
                    ModulePacketKind::Result => (RESULT, 0),
                    ModulePacketKind::Ask => (ASK_VECTOR, 0),
                    ModulePacketKind::NotYet => (NO_VECTOR_YET, 0),
                    ModulePacketKind::Failed => (VECTOR_FAILED, 0),
                };
                (label, pack_step(id, number))
            }
        }
    }
}

/// The eight bytes that name a cell.
#[inline]
pub(super) const fn pack_cell(id: CellId) -> HeaderBits {
    HeaderBits::from_bits(
        (id.channel.0 as u64) << 48
            | (id.last as u64) << 47
            | (id.index as u64 & 0x7F) << 40
            | (id.attempt as u64) << 32
            | id.transaction as u64,
    )
}

#[inline]
const fn unpack_cell(bits: HeaderBits) -> CellId {
    let bits = bits.bits();
    CellId {
        channel: ChannelId((bits >> 48) as u16),
        index: (bits >> 40) as u8 & 0x7F,
        last: bits >> 47 & 1 == 1,
        attempt: (bits >> 32) as u8,
        transaction: bits as u32,
    }
}

/// The eight bytes of an operation's step, without the group.
const fn pack_step(id: OperationId, number: u8) -> HeaderBits {
    let block = id.block & 0xFF_FFFF;
    HeaderBits::from_bits((id.sequence as u64) << 32 | (block as u64) << 8 | number as u64)
}

fn unpack_step(group: u32, bits: HeaderBits, step: fn(u8) -> ModulePacketKind) -> Header {
    let bits = bits.bits();
    let (sequence, block) = ((bits >> 32) as u32, (bits >> 8) as u32 & 0xFF_FFFF);
    Header::Reduction(OperationId { group, sequence, block }, step(bits as u8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exanet::Class;
    use proptest::prelude::*;
    use weft_units::EndpointId;

    fn any_cell() -> impl Strategy<Value = CellId> {
        let fields = (any::<u16>(), any::<u32>(), 0u8..64, any::<bool>(), any::<u8>());
        fields.prop_map(|(channel, transaction, index, last, attempt)| {
            let channel = ChannelId(channel);
            CellId { channel, transaction, index, last, attempt }
        })
    }

    fn any_step() -> impl Strategy<Value = ModulePacketKind> {
        prop_oneof![
            any::<u8>().prop_map(ModulePacketKind::Contribution),
            any::<u8>().prop_map(ModulePacketKind::Exchange),
            prop::sample::select(vec![
                ModulePacketKind::Result,
                ModulePacketKind::Ask,
                ModulePacketKind::NotYet,
                ModulePacketKind::Failed
            ]),
        ]
    }

    fn any_header() -> impl Strategy<Value = Header> {
        let refusals = vec![Refusal::Damaged, Refusal::Domain, Refusal::Interface, Refusal::Full];
        let blocks = [BlockRefusal::NoContext, BlockRefusal::PageFault, BlockRefusal::Protection];
        let answers: Vec<Answer> = blocks.map(Answer::Nack).into_iter().chain([Answer::Ack]).collect();
        let operation = (any::<u32>(), any::<u32>(), 0u32..1 << 24);
        let operation = operation.prop_map(|(group, sequence, block)| OperationId { group, sequence, block });
        prop_oneof![
            any::<u64>().prop_map(|ps| Header::Small { offered: Time::from_ps(ps) }),
            Just(Header::Acknowledgement),
            prop::sample::select(refusals).prop_map(Header::Refused),
            any_cell().prop_map(Header::Cell),
            (any_cell(), prop::sample::select(answers))
                .prop_map(|(id, answer)| Header::BlockAnswer(id, answer)),
            (operation, any_step()).prop_map(|(id, step)| Header::Reduction(id, step)),
        ]
    }

    fn addressing(header: Header, message: u32) -> Addressing {
        let (source, destination) = (EndpointId(1), EndpointId(2));
        let message = if let Header::Reduction(id, _) = header { id.group } else { message };
        Addressing { source, destination, message }
    }

    proptest! {
        /// Catches fields that overlap, and kinds of packets that are taken for another.
        #[test]
        fn a_header_is_read_as_it_was_written(header in any_header(), message: u32) {
            let packet = header.packet(addressing(header, message), 64);
            prop_assert_eq!(Header::of(&packet), Some(header));
            prop_assert_eq!(packet.part() == MessagePart::Piece, matches!(header, Header::Cell(_)));
        }

        /// Catches an answer that counts as data, and data that counts as an answer.
        #[test]
        fn nothing_is_sent_because_of_an_answer(header in any_header()) {
            let (label, _) = header.pack();
            prop_assert_eq!(label.is_acknowledgement(), Class::of(header) == Class::Answer);
            prop_assert_eq!(label.is_acknowledgement(), Class::of(header).sets_off().is_empty());
        }
    }

    /// Catches bytes of nobody that are read as a packet of the interface.
    #[test]
    fn a_label_of_no_kind_is_not_read() {
        let ends = Addressing { source: EndpointId(1), destination: EndpointId(2), message: 0 };
        let mut packet = Packet::new(ends, 0, HeaderBits::EMPTY, MessagePart::Whole);
        let [data, answer] = [PacketLabel::data, PacketLabel::acknowledgement];
        for label in [data(0), answer(1), data(2), answer(72), data(18), answer(17)] {
            packet.label = label;
            assert_eq!(Header::of(&packet), None, "{label:?}");
        }
    }

    /// Catches a label whose number has changed, and with it the order of events and the results of runs.
    #[test]
    fn labels_keep_their_numbers() {
        let labels = [
            SMALL,
            ACKNOWLEDGEMENT,
            REFUSED_DAMAGED,
            REFUSED_DOMAIN,
            REFUSED_INTERFACE,
            REFUSED_FULL,
            CELL,
            BLOCK_ACKNOWLEDGEMENT,
            BLOCK_WITHOUT_CONTEXT,
            BLOCK_FAULTED,
            BLOCK_OF_DOMAIN,
            CONTRIBUTION,
            EXCHANGE,
            RESULT,
            ASK_VECTOR,
            NO_VECTOR_YET,
            VECTOR_FAILED,
        ];
        let [data, answer] = [PacketLabel::data, PacketLabel::acknowledgement];
        for (number, label) in (1..).zip(labels) {
            let is_answer = matches!(number, 2..=6 | 8..=11);
            assert_eq!(label, if is_answer { answer(number) } else { data(number) });
        }
    }
}
