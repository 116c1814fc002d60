//! The control information of a packet: 16 bytes before the payload, 16 behind it.
//!
//! ```text
//!  header  127     112 111       90 89  87 86                 48 47    40 39    32 31    22 21         0
//!         ┌───────────┬────────────┬──────┬─────────────────────┬────────┬────────┬────────┬────────────┐
//!         │ PDID   16 │ node    22 │ rank │ virtual address  39 │ kind 8 │ page 8 │ size   │ source  22 │
//!         └───────────┴────────────┴──────┴─────────────────────┴────────┴────────┴────────┴────────────┘
//!         └── global virtual address of the payload: 80 bits ───┘
//!
//!  payload: words of 16 bytes, the last one filled up with zeros
//!
//!  footer  127                    96 95                                        32 31                  0
//!         ┌─────────────────────────┬────────────────────────────────────────────┬────────────────────┐
//!         │ number               32 │ identity                                64 │ check           32 │
//!         └─────────────────────────┴────────────────────────────────────────────┴────────────────────┘
//!
//!  identity  63              48 47 46 45      40 39      32 31               16 15                0
//!           ┌────────────────────────────────────────────┬──────────────────┬───────────────────┐
//!   small   │                                            │ interface        │ channel           │
//!   request │                                            │                  │                   │
//!   answer  │ of the small message or the request        │                  │                   │
//!           ├──────────────────┬──┬──┬──────────┬──────────┼──────────────────┴───────────────────┤
//!   cell    │ channel          │ L│ T│ index    │ attempt  │ transaction                          │
//!   block   │ of the cell that completed the block         │                                      │
//!           ├──────────────────┴──┴──┴──────────┴──────────┼───────────────────────────┬──────────┤
//!   step    │ sequence                                     │ block                     │ step     │
//!           └──────────────────────────────────────────────┴───────────────────────────┴──────────┘
//!            63                                          32 31                        8 7        0
//! ```
//! Bit 127 is the highest of the byte that travels first. Bits without use are zero.
//!
//! - PDID, node, rank, virtual address: the place of the first byte of the payload. A small message has no
//!   place in memory, and the address 0. So has a request of a read; its rank and page name the interface
//!   whose memory is read. Answers and vectors go from a block of one interface to a block of
//!   another: of their address only the node is not 0.
//! - Kind: the kind of packet. The highest bit is set in answers.
//! - Page: the number of the virtual interface, divided by eight. Rank and page together are its number.
//! - Size: bytes of payload.
//! - Source: the node that sends the packet, and to which its answer goes.
//! - Number: of a small message or a request its number, counted by its source, and of its answer the same;
//!   of a cell the first transaction of its transfer; of a vector the group; of the answer to a block 0.
//! - L, T: the cell is the last of its block; its block is the last of its transfer.
//! - Interface, channel: where small message or request was posted, so that its answer finds the channel.
//! - Step: of a contribution the member, of an exchange the level.
//! - Check: CRC-32 (IEEE 802.3) of header, payload in whole words, and the footer before it.
//!
//! The payload of a request is two words, in memory's order of bytes: [`RequestWords`].
//!
//! ```
//! use weft_nic::gvas::Pdid;
//! use weft_nic::packetizer::ChannelId;
//! use weft_nic::{Header, wire::{PacketFields, PacketTarget}};
//! use weft_units::{Address, EndpointId};
//!
//! let target = PacketTarget::new(Pdid(7), EndpointId(4100), 3, Address::default())?;
//! let (source, number) = (EndpointId(5), 9);
//! let header = Header::Small(ChannelId { interface: 3, channel: 1 });
//! let fields =
//!     PacketFields { target, header, size: 4, source, number, ends_transfer: false };
//! let control = fields.encode(b"ping")?;
//! let bytes = "00070040_11800000_00000100_01000005 … 00000009_00000000_00030001_0e5f757e";
//! assert_eq!(control.to_string(), bytes);
//! assert_eq!(PacketFields::decode(&control, b"ping"), Ok(fields));
//! # Ok::<(), weft_nic::wire::NotOnWire>(())
//! ```
//!
//! # Source
//! FORTH-ICS / TR-488 §4.2: 32 bytes of control information for transport, routing and links, in a header and
//! a footer of 16 bytes. §4.3 and Fig. 7: the address of 80 bits, here in the order of the figure; §4.4: the
//! packet carries destination and PDID, an ACK or NACK goes to its source, a packet in error is refused;
//! §4.5: cells, blocks or transactions.
//!
//! # Ours
//! The document gives no field but the address a width, and none a place.
//! - In the header is what has to be known before the payload. Routers need the node, which comes early. The
//!   target needs whose packet it is, where its words go and how many there are, so that it can write them as
//!   they come (§4.5). That fills 128 bits.
//! - In the footer is what is asked of a packet that is whole: which it was, and whether it is sound. A
//!   receive unit that writes words as they come has written those of a repeated cell before it knows the
//!   block. The words are the same, but their process may have been told of them and have used the memory for
//!   others. The model acts at the tail, and writes none of a block that it has.
//! - Three bits of rank do not tell 64 virtual interfaces of a node (§4.4) apart: eight ranks with eight
//!   pages do. A page of 8 bits allows 2,048 interfaces, and a size of 10 bits payloads of 1,023 bytes:
//!   machine files may ask for more than the document's.
//! - A request of a read (§4.5.1) is a small packet of a kind of its own, which its packetizer watches over
//!   and its target answers like a small message. Its words are the first two of a descriptor.
//! - Number and identity have the width of the model's counters. T spares the receive unit the size of the
//!   transfer: it ends, and is notified, with the last block that comes.
//!
//! # Not modelled
//! Virtual channel and traffic class, credits, and what else links add: they are the fabric's.

use super::header::Header;
use crate::allreduce::{ModulePacketKind, OperationId};
use crate::gvas::{Gvas, GvasError, Pdid};
use crate::mailbox::Refusal;
use crate::packetizer::ChannelId as MessageChannel;
use crate::rdma::{Answer, CellId, ChannelId, ReceiveUnit, Refusal as BlockRefusal, TransferHeader};
use crate::segmentation::Cut;
use std::fmt;
use weft_fabric::{Packet, PacketLabel};
use weft_units::{Address, Bytes, EndpointId};

/// Events of one instant are ordered by label, so that its numbers are part of the model's results.
const SMALL: PacketLabel = PacketLabel::data(1);
const ACKNOWLEDGEMENT: PacketLabel = PacketLabel::acknowledgement(2);
const REFUSED_DAMAGED: PacketLabel = PacketLabel::acknowledgement(3);
const REFUSED_DOMAIN: PacketLabel = PacketLabel::acknowledgement(4);
const REFUSED_INTERFACE: PacketLabel = PacketLabel::acknowledgement(5);
const REFUSED_FULL: PacketLabel = PacketLabel::acknowledgement(6);
pub(super) const CELL: PacketLabel = PacketLabel::data(7);
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
const READ_REQUEST: PacketLabel = PacketLabel::data(18);

/// T of an identity.
const ENDS_TRANSFER: u64 = 1 << 46;

/// Bits of the rank, which are the lowest of the number of a virtual interface.
const RANK_BITS: u32 = Gvas::RANK_BITS;
const PAGE_BITS: u32 = 8;
const SIZE_BITS: u32 = 10;
const SOURCE_BITS: u32 = Gvas::NODE_BITS;
/// The width of the fields behind the address.
const BEHIND_ADDRESS: u32 = 8 + PAGE_BITS + SIZE_BITS + SOURCE_BITS;

/// A value that the bits of a packet do not hold.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotOnWire {
    /// In the destination.
    #[error(transparent)]
    Target(#[from] GvasError),
    /// In another field.
    #[error("{value} does not fit the {bits} bits that a packet has for {field}")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// The bits of the field.
        bits: u32,
        /// The value.
        value: u64,
    },
    /// A label of no kind.
    #[error("a packet of label {0} is not of this interface")]
    Kind(u8),
    /// A packet of a message whose destination is not known.
    #[error("message {message} of endpoint {source_endpoint} is not known here")]
    Message {
        /// The endpoint that sends it.
        source_endpoint: EndpointId,
        /// The number there.
        message: u32,
    },
}

/// Why bytes are no packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoPacket {
    /// A kind that there is not.
    #[error("there are no packets of kind {0}")]
    Kind(u8),
    /// Header, payload and footer do not belong together.
    #[error("the check of the packet is {found:#010x} and should be {expected:#010x}: it has been damaged")]
    Damaged {
        /// The check in the footer.
        found: u32,
        /// The check of these bytes.
        expected: u32,
    },
    /// Bits that packets of the kind do not use.
    #[error("a packet of kind {0} uses none of the bits that are set in its identity")]
    Unused(u8),
}

/// The destination of a packet: the 80 bits of its global address, and the page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketTarget {
    /// The place of the first byte of the payload.
    pub place: Gvas,
    /// Which of the virtual interfaces of the rank.
    pub page: u8,
}

impl PacketTarget {
    /// The place `address` of a process of `domain`, which has the virtual interface `interface` of `node`.
    ///
    /// # Errors
    /// A field beyond its bits.
    pub fn new(
        domain: Pdid,
        node: EndpointId,
        interface: u16,
        address: Address,
    ) -> Result<PacketTarget, NotOnWire> {
        let rank = interface as u8 & ((1 << RANK_BITS) - 1);
        let page = field("the page of an interface", PAGE_BITS, (interface >> RANK_BITS).into())? as u8;
        Ok(PacketTarget { place: Gvas::new(domain, node.0, rank, address.get())?, page })
    }

    /// The number of the virtual interface.
    pub fn interface(self) -> u16 {
        u16::from(self.page) << RANK_BITS | u16::from(self.place.rank())
    }

    /// The same in the bits of a header, of which others are zero.
    #[inline]
    pub(super) fn pack(self) -> u128 {
        self.place.pack() << BEHIND_ADDRESS | u128::from(self.page) << (SIZE_BITS + SOURCE_BITS)
    }

    /// The destination in the bits of a header.
    #[inline]
    pub(super) fn unpack(header: u128) -> PacketTarget {
        let place = Gvas::unpack(header >> BEHIND_ADDRESS).expect("128 less 48 bits are 80");
        PacketTarget { place, page: (header >> (SIZE_BITS + SOURCE_BITS)) as u8 }
    }
}

/// The value of a field, if its bits hold it.
fn field(field: &'static str, bits: u32, value: u64) -> Result<u64, NotOnWire> {
    if value >> bits == 0 { Ok(value) } else { Err(NotOnWire::TooLarge { field, bits, value }) }
}

/// The fields of a header: all that is known of a packet before its payload comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderFields {
    /// The destination.
    pub target: PacketTarget,
    /// The kind of packet: one that there is.
    pub kind: u8,
    /// Bytes of payload.
    pub size: u32,
    /// The node that sends the packet.
    pub source: EndpointId,
}

impl HeaderFields {
    /// The 16 bytes.
    ///
    /// # Errors
    /// A field beyond its bits.
    pub fn encode(&self) -> Result<[u8; 16], NotOnWire> {
        let size = field("its size", SIZE_BITS, self.size.into())?;
        let source = field("its source", SOURCE_BITS, self.source.0.into())?;
        let kind = u128::from(self.kind) << (BEHIND_ADDRESS - 8);
        let header = self.target.pack() | kind | u128::from(size << SOURCE_BITS | source);
        Ok(header.to_be_bytes())
    }

    /// The fields in 16 bytes.
    ///
    /// # Errors
    /// A kind of packet that there is not.
    pub fn decode(bytes: [u8; 16]) -> Result<HeaderFields, NoPacket> {
        let header = u128::from_be_bytes(bytes);
        let low = |shift: u32, bits: u32| (header >> shift) as u32 & ((1 << bits) - 1);
        let kind = (header >> (BEHIND_ADDRESS - 8)) as u8;
        // The kinds do not depend on the identity.
        unpack(PacketLabel::from_bits(kind), 0, 0).ok_or(NoPacket::Kind(kind))?;
        let (size, source) = (low(SOURCE_BITS, SIZE_BITS), EndpointId(low(0, SOURCE_BITS)));
        Ok(HeaderFields { target: PacketTarget::unpack(header), kind, size, source })
    }
}

/// The payload of a request of a read: the two words of the descriptor that the send unit starts for it.
///
/// ```text
///  word 0  127        96 95             64 63        39 38                     0
///         ┌─────────────┬─────────────────┬────────────┬────────────────────────┐
///         │             │ bytes        32 │            │ source address      39 │
///         └─────────────┴─────────────────┴────────────┴────────────────────────┘
///  word 1  a header: of its fields node, rank, virtual address and page of the destination
/// ```
/// Each lies in the payload as in memory, its lowest byte first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequestWords {
    /// The virtual address of the data.
    pub source: Address,
    /// Bytes of the transfer.
    pub bytes: u32,
    /// The place that the data goes to. Its domain is not written: it is that of the request.
    pub destination: PacketTarget,
}

impl RequestWords {
    /// Bytes of the payload.
    pub const SIZE: Bytes = Bytes::new(32);

    /// The payload.
    ///
    /// # Errors
    /// A source beyond the bits of an address.
    pub fn encode(&self) -> Result<[u8; 32], NotOnWire> {
        let RequestWords { source, bytes, destination } = *self;
        let source = field("the address of a source", Gvas::ADDRESS_BITS, source.get())?;
        let without_domain = destination.pack() << Gvas::DOMAIN_BITS >> Gvas::DOMAIN_BITS;
        let words = [u128::from(bytes) << 64 | u128::from(source), without_domain];
        let mut payload = [0; 32];
        for (place, word) in payload.chunks_exact_mut(16).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Ok(payload)
    }
}

/// Header and footer of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlWords {
    /// Before the payload.
    pub header: [u8; 16],
    /// Behind it.
    pub footer: [u8; 16],
}

impl fmt::Display for ControlWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (word, before) in [(self.header, ""), (self.footer, " … ")] {
            f.write_str(before)?;
            for (index, four) in word.chunks(4).enumerate() {
                f.write_str(if index > 0 { "_" } else { "" })?;
                four.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            }
        }
        Ok(())
    }
}

/// The fields of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketFields {
    /// The destination.
    pub target: PacketTarget,
    /// Kind and identity.
    pub header: Header,
    /// Bytes of payload.
    pub size: u32,
    /// The node that sends the packet.
    pub source: EndpointId,
    /// The number of the message, transfer or group; that of a [`Header::Reduction`] is its group.
    pub number: u32,
    /// Whether it is a cell of the last block of its transfer.
    pub ends_transfer: bool,
}

impl PacketFields {
    /// The fields of a simulated packet, whose message has the header `transfer` at its destination, where it
    /// is known there. Answers and vectors have none.
    ///
    /// # Errors
    /// A packet of another interface or of a message without header, and a field beyond its bits.
    pub fn of(
        packet: &Packet,
        transfer: Option<&TransferHeader>,
        cut: &Cut,
    ) -> Result<PacketFields, NotOnWire> {
        let Packet { source, destination: node, message, bytes: size, label, .. } = *packet;
        let header = Header::of(packet).ok_or(NotOnWire::Kind(label.bits()))?;
        let target = |transfer: &TransferHeader, address| {
            PacketTarget::new(transfer.domain, node, transfer.destination.space as u16, address)
        };
        let block_to_block = || PacketTarget::new(Pdid(0), node, 0, Address::default());
        let known = transfer.ok_or(NotOnWire::Message { source_endpoint: source, message });
        let (target, number, ends_transfer) = match header {
            Header::Small(_) | Header::ReadRequest(_) => {
                (target(known?, Address::default())?, message, false)
            }
            Header::Cell(id) => {
                let transfer = known?;
                let address = ReceiveUnit::place(transfer, id, cut).address;
                let block = id.transaction.wrapping_sub(transfer.first);
                let ends_transfer = cut.ends_transfer(transfer.bytes, block);
                (target(transfer, address)?, transfer.first, ends_transfer)
            }
            Header::BlockAnswer(..) => (block_to_block()?, 0, false),
            Header::Acknowledgement(_) | Header::Refused(..) | Header::Reduction(..) => {
                (block_to_block()?, message, false)
            }
        };
        Ok(PacketFields { target, header, size, source, number, ends_transfer })
    }

    /// Header and footer around these bytes: none of them where the run moves no real data.
    ///
    /// # Errors
    /// A field beyond its bits.
    pub fn encode(&self, payload: &[u8]) -> Result<ControlWords, NotOnWire> {
        let PacketFields { target, header, size, source, number, ends_transfer } = *self;
        match header {
            Header::Cell(id) | Header::BlockAnswer(id, _) => {
                field("the index of a cell", 6, id.index.into())?;
            }
            Header::Reduction(id, _) => {
                field("a block of a vector", 24, id.block.into())?;
            }
            Header::Small(_) | Header::ReadRequest(_) | Header::Acknowledgement(_) | Header::Refused(..) => {}
        }
        let (label, identity) = pack(header);
        let header = HeaderFields { target, kind: label.bits(), size, source }.encode()?;
        let identity = identity | if ends_transfer { ENDS_TRANSFER } else { 0 };
        let before_check = u128::from(number) << 96 | u128::from(identity) << 32;
        let check = check(&header, payload, before_check);
        Ok(ControlWords { header, footer: (before_check | u128::from(check)).to_be_bytes() })
    }

    /// The fields of the packet with this header, payload and footer.
    ///
    /// # Errors
    /// An unknown kind, damage, and bits that should be zero.
    pub fn decode(control: &ControlWords, payload: &[u8]) -> Result<PacketFields, NoPacket> {
        let HeaderFields { target, kind, size, source } = HeaderFields::decode(control.header)?;
        let footer = u128::from_be_bytes(control.footer);
        let (number, identity, found) = ((footer >> 96) as u32, (footer >> 32) as u64, footer as u32);
        let expected = check(&control.header, payload, footer ^ u128::from(found));
        if found != expected {
            return Err(NoPacket::Damaged { found, expected });
        }
        let header = unpack(PacketLabel::from_bits(kind), identity, number).ok_or(NoPacket::Kind(kind))?;
        let ends_transfer = matches!(header, Header::Cell(_)) && identity & ENDS_TRANSFER != 0;
        if pack(header).1 | if ends_transfer { ENDS_TRANSFER } else { 0 } != identity {
            return Err(NoPacket::Unused(kind));
        }
        Ok(PacketFields { target, header, size, source, number, ends_transfer })
    }
}

/// Header and footer of a simulated packet around these bytes of payload, as of [`PacketFields::of`].
///
/// # Errors
/// As of [`PacketFields::of`].
pub fn packet(
    packet: &Packet,
    transfer: Option<&TransferHeader>,
    cut: &Cut,
    payload: &[u8],
) -> Result<ControlWords, NotOnWire> {
    PacketFields::of(packet, transfer, cut)?.encode(payload)
}

/// Kind and identity of a packet, the latter without T.
#[inline]
pub(super) fn pack(header: Header) -> (PacketLabel, u64) {
    match header {
        Header::Small(channel) => (SMALL, pack_channel(channel)),
        Header::ReadRequest(channel) => (READ_REQUEST, pack_channel(channel)),
        Header::Acknowledgement(channel) => (ACKNOWLEDGEMENT, pack_channel(channel)),
        Header::Refused(channel, refusal) => {
            let label = match refusal {
                Refusal::Damaged => REFUSED_DAMAGED,
                Refusal::Domain => REFUSED_DOMAIN,
                Refusal::Interface => REFUSED_INTERFACE,
                Refusal::Full => REFUSED_FULL,
            };
            (label, pack_channel(channel))
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

/// The header of a packet of this kind, identity and number; `None`: there is no such kind.
#[inline]
pub(super) fn unpack(label: PacketLabel, identity: u64, number: u32) -> Option<Header> {
    let refused = |refusal| Header::Refused(unpack_channel(identity), refusal);
    let block = |answer| Header::BlockAnswer(unpack_cell(identity), answer);
    let step = |step: ModulePacketKind| {
        let (sequence, block) = ((identity >> 32) as u32, (identity >> 8) as u32 & 0xFF_FFFF);
        Header::Reduction(OperationId { group: number, sequence, block }, step)
    };
    Some(match label {
        SMALL => Header::Small(unpack_channel(identity)),
        READ_REQUEST => Header::ReadRequest(unpack_channel(identity)),
        ACKNOWLEDGEMENT => Header::Acknowledgement(unpack_channel(identity)),
        REFUSED_DAMAGED => refused(Refusal::Damaged),
        REFUSED_DOMAIN => refused(Refusal::Domain),
        REFUSED_INTERFACE => refused(Refusal::Interface),
        REFUSED_FULL => refused(Refusal::Full),
        CELL => Header::Cell(unpack_cell(identity)),
        BLOCK_ACKNOWLEDGEMENT => block(Answer::Ack),
        BLOCK_WITHOUT_CONTEXT => block(Answer::Nack(BlockRefusal::NoContext)),
        BLOCK_FAULTED => block(Answer::Nack(BlockRefusal::PageFault)),
        BLOCK_OF_DOMAIN => block(Answer::Nack(BlockRefusal::Protection)),
        CONTRIBUTION => step(ModulePacketKind::Contribution(identity as u8)),
        EXCHANGE => step(ModulePacketKind::Exchange(identity as u8)),
        RESULT => step(ModulePacketKind::Result),
        ASK_VECTOR => step(ModulePacketKind::Ask),
        NO_VECTOR_YET => step(ModulePacketKind::NotYet),
        VECTOR_FAILED => step(ModulePacketKind::Failed),
        _ => return None,
    })
}

/// The identity of a small message or a request, and of its answer.
const fn pack_channel(channel: MessageChannel) -> u64 {
    (channel.interface as u64) << 16 | channel.channel as u64
}

/// The channel of an identity.
const fn unpack_channel(identity: u64) -> MessageChannel {
    MessageChannel { interface: (identity >> 16) as u16, channel: identity as u16 }
}

/// The identity of a cell.
#[inline]
pub(super) const fn pack_cell(id: CellId) -> u64 {
    (id.channel.0 as u64) << 48
        | (id.last as u64) << 47
        | (id.index as u64 & 0x3F) << 40
        | (id.attempt as u64) << 32
        | id.transaction as u64
}

/// The cell of an identity.
#[inline]
pub(super) const fn unpack_cell(identity: u64) -> CellId {
    CellId {
        channel: ChannelId((identity >> 48) as u16),
        index: (identity >> 40) as u8 & 0x3F,
        last: identity >> 47 & 1 == 1,
        attempt: (identity >> 32) as u8,
        transaction: identity as u32,
    }
}

/// The identity of an operation's step, whose group is the number.
const fn pack_step(id: OperationId, number: u8) -> u64 {
    (id.sequence as u64) << 32 | (id.block as u64 & 0xFF_FFFF) << 8 | number as u64
}

/// The check of a packet whose footer is `footer` but for the check.
fn check(header: &[u8; 16], payload: &[u8], footer: u128) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut sum, mut bit) = (byte as u32, 0);
            while bit < 8 {
                sum = sum >> 1 ^ if sum & 1 == 1 { 0xEDB8_8320 } else { 0 };
                bit += 1;
            }
            table[byte] = sum;
            byte += 1;
        }
        table
    };
    let filling = payload.len().next_multiple_of(16) - payload.len();
    let footer = footer.to_be_bytes();
    let bytes = header.iter().chain(payload).chain(&[0; 16][..filling]).chain(&footer[..12]);
    !bytes.fold(u32::MAX, |sum, byte| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)])
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::rdma::Location;
    use proptest::prelude::*;
    use weft_fabric::Addressing;

    fn any_channel() -> impl Strategy<Value = MessageChannel> {
        let numbers = any::<(u16, u16)>();
        numbers.prop_map(|(interface, channel)| MessageChannel { interface, channel })
    }

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

    pub(in crate::exanet) fn any_header() -> impl Strategy<Value = Header> {
        let refusals = vec![Refusal::Damaged, Refusal::Domain, Refusal::Interface, Refusal::Full];
        let blocks = [BlockRefusal::NoContext, BlockRefusal::PageFault, BlockRefusal::Protection];
        let answers: Vec<Answer> = blocks.map(Answer::Nack).into_iter().chain([Answer::Ack]).collect();
        let operation = (any::<u32>(), any::<u32>(), 0u32..1 << 24);
        let operation = operation.prop_map(|(group, sequence, block)| OperationId { group, sequence, block });
        prop_oneof![
            any_channel().prop_map(Header::Small),
            any_channel().prop_map(Header::ReadRequest),
            any_channel().prop_map(Header::Acknowledgement),
            (any_channel(), prop::sample::select(refusals)).prop_map(|(of, why)| Header::Refused(of, why)),
            any_cell().prop_map(Header::Cell),
            (any_cell(), prop::sample::select(answers))
                .prop_map(|(id, answer)| Header::BlockAnswer(id, answer)),
            (operation, any_step()).prop_map(|(id, step)| Header::Reduction(id, step)),
        ]
    }

    fn any_fields() -> impl Strategy<Value = PacketFields> {
        let target = (any::<u16>(), 0u32..1 << 22, 0u16..1 << 11, 0u64..1 << 39);
        let target = target.prop_map(|(domain, node, interface, address)| {
            PacketTarget::new(Pdid(domain), EndpointId(node), interface, Address::new(address)).unwrap()
        });
        (target, any_header(), 0u32..1 << 10, 0u32..1 << 22, any::<(u32, bool)>()).prop_map(
            |(target, header, size, source, (number, ends))| {
                let number = if let Header::Reduction(id, _) = header { id.group } else { number };
                let ends_transfer = ends && matches!(header, Header::Cell(_));
                PacketFields { target, header, size, source: EndpointId(source), number, ends_transfer }
            },
        )
    }

    proptest! {
        /// Catches fields that overlap or lose bits, kinds that are taken for another, and damage that is not
        /// seen.
        #[test]
        fn a_packet_is_read_as_it_was_written(
            fields in any_fields(),
            payload in prop::collection::vec(any::<u8>(), 0..80),
            (place, error) in (any::<prop::sample::Index>(), 1u8..),
        ) {
            let control = fields.encode(&payload).unwrap();
            prop_assert_eq!(PacketFields::decode(&control, &payload), Ok(fields));
            let PacketFields { target, size, source, .. } = fields;
            let kind = pack(fields.header).0.bits();
            prop_assert_eq!(
                HeaderFields::decode(control.header),
                Ok(HeaderFields { target, kind, size, source })
            );
            let (mut damaged, mut bytes) = (control, payload.clone());
            match place.index(32 + payload.len()) {
                byte @ 0..16 => damaged.header[byte] ^= error,
                byte @ 16..32 => damaged.footer[byte - 16] ^= error,
                byte => bytes[byte - 32] ^= error,
            }
            prop_assert!(PacketFields::decode(&damaged, &bytes).is_err());
        }

        /// Catches bytes of nobody that end in a panic, or are read as a packet that has other bytes.
        #[test]
        fn any_bytes_are_refused_or_are_those_of_their_fields(
            (words, footer) in any::<([u8; 16], [u8; 12])>(),
            kind in 0u8..20,
        ) {
            for kind in [words[10], kind, kind | 0x80] {
                let mut header = words;
                header[10] = kind;
                let before = u128::from_be_bytes(std::array::from_fn(|at| *footer.get(at).unwrap_or(&0)));
                let whole = before | u128::from(check(&header, &[], before));
                let control = ControlWords { header, footer: whole.to_be_bytes() };
                let is_known = matches!(kind, 1 | 0x82..=0x86 | 7 | 0x88..=0x8B | 12..=18);
                let refused = (!is_known).then_some(NoPacket::Kind(kind));
                prop_assert_eq!(HeaderFields::decode(header).err(), refused);
                match PacketFields::decode(&control, &[]) {
                    Ok(fields) => prop_assert_eq!(fields.encode(&[]).unwrap(), control),
                    Err(NoPacket::Kind(of)) => prop_assert!(!is_known && of == kind),
                    Err(error) => prop_assert_eq!(error, NoPacket::Unused(kind)),
                }
            }
        }
    }

    /// The fields of a line of the vectors, its payload, and its control words.
    fn vector(line: &str) -> (PacketFields, Vec<u8>, ControlWords) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [kind, domain, node, interface, address, size, source, number, identity, payload, head, foot] =
            columns[..]
        else {
            panic!("12 columns: {line}")
        };
        let hex = |text: &str| u128::from_str_radix(text, 16).unwrap();
        let payload = payload.trim_start_matches('-').as_bytes().chunks(2);
        let payload = payload.map(|byte| hex(std::str::from_utf8(byte).unwrap()) as u8).collect();
        let (identity, number) = (hex(identity) as u64, hex(number) as u32);
        let place = Address::new(hex(address) as u64);
        let (node, source) = (EndpointId(hex(node) as u32), EndpointId(hex(source) as u32));
        let fields = PacketFields {
            target: PacketTarget::new(Pdid(hex(domain) as u16), node, hex(interface) as u16, place).unwrap(),
            header: unpack(PacketLabel::from_bits(hex(kind) as u8), identity, number).unwrap(),
            size: hex(size) as u32,
            source,
            number,
            ends_transfer: hex(kind) == 7 && identity & ENDS_TRANSFER != 0,
        };
        let [header, footer] = [head, foot].map(|word| hex(word).to_be_bytes());
        (fields, payload, ControlWords { header, footer })
    }

    /// Catches a field that has moved, and a check of other bytes: against words that were put together bit
    /// by bit, apart from this code. The test of the RTL reads the same file.
    #[test]
    fn packets_have_the_bytes_of_the_vectors() {
        let lines = include_str!("wire_vectors.txt").lines().filter(|line| !line.starts_with('#'));
        let vectors: Vec<_> = lines.map(vector).collect();
        for (fields, payload, control) in &vectors {
            assert_eq!(fields.encode(payload).unwrap().to_string(), control.to_string(), "{fields:?}");
            assert_eq!(PacketFields::decode(control, payload), Ok(*fields));
        }
        let kinds: std::collections::BTreeSet<u8> =
            vectors.iter().map(|(fields, ..)| pack(fields.header).0.bits()).collect();
        assert_eq!(kinds.len(), 18, "of {kinds:x?}");
    }

    /// Catches words of a request in other bits than those of a descriptor, or the other way round: those of
    /// the vectors were put together byte by byte.
    #[test]
    fn requests_have_the_words_of_the_vectors() {
        let lines = include_str!("wire_vectors.txt").lines().filter(|line| line.starts_with("12"));
        let payloads: Vec<Vec<u8>> = lines.map(|line| vector(line).1).collect();
        let words = |source, bytes, (node, interface, address)| {
            let destination = PacketTarget::new(Pdid(7), EndpointId(node), interface, Address::new(address));
            RequestWords { source: Address::new(source), bytes, destination: destination.unwrap() }
        };
        let one = words(0x20_0000_1000, 1000, (5, 0xb, 0x10_0000_0040));
        let most = words((1 << 39) - 1, u32::MAX, ((1 << 22) - 1, 2047, (1 << 39) - 1));
        assert_eq!([one, most].map(|words| words.encode().unwrap().to_vec()).to_vec(), payloads);
        let beyond = words(1 << 39, 0, (0, 0, 0)).encode().unwrap_err();
        assert!(
            beyond
                .to_string()
                .ends_with("does not fit the 39 bits that a packet has for the address of a source")
        );
    }

    /// Catches a limit that is off by one, and an error that names another field.
    #[test]
    fn a_value_beyond_its_bits_is_refused() {
        let id = CellId { channel: ChannelId(0), transaction: 0, index: 63, last: true, attempt: 0 };
        let target = |node, interface, address| {
            PacketTarget::new(Pdid(0), EndpointId(node), interface, Address::new(address))
        };
        let fits = PacketFields {
            target: target((1 << 22) - 1, 2047, (1 << 39) - 1).unwrap(),
            header: Header::Cell(id),
            size: 1023,
            source: EndpointId((1 << 22) - 1),
            number: u32::MAX,
            ends_transfer: true,
        };
        fits.encode(&[]).unwrap();
        assert_eq!(fits.target.interface(), 2047);
        let said = |fields: PacketFields| fields.encode(&[]).unwrap_err().to_string();
        assert_eq!(
            said(PacketFields { size: 1024, ..fits }),
            "1024 does not fit the 10 bits that a packet has for its size"
        );
        assert!(said(PacketFields { source: EndpointId(1 << 22), ..fits }).contains("its source"));
        let header = Header::Cell(CellId { index: 64, ..id });
        assert!(said(PacketFields { header, ..fits }).contains("the index of a cell"));
        let operation = OperationId { group: 0, sequence: 0, block: 1 << 24 };
        let header = Header::Reduction(operation, ModulePacketKind::Ask);
        assert!(said(PacketFields { header, ends_transfer: false, ..fits }).contains("a block of a vector"));
        for (target, field) in [
            (target(1 << 22, 0, 0), "node 4194304"),
            (target(0, 2048, 0), "the page of an interface"),
            (target(0, 0, 1 << 39), "virtual address"),
        ] {
            assert!(target.unwrap_err().to_string().contains(field), "{field}");
        }
    }

    /// Catches a cell that names another place than the one it is written to, and a last block that is not
    /// told from others.
    #[test]
    fn a_cell_names_the_place_of_its_payload() {
        let cut = Cut::new(Bytes::new(16_384), Bytes::new(256)).unwrap();
        let destination = Location { space: 11, address: Address::new(0x20_0000_1000) };
        let (domain, bytes) = (Pdid(7), Bytes::new(20_000));
        let transfer =
            TransferHeader { destination, bytes, domain, first: u32::MAX, message: 5, watch: false };
        let ends = Addressing { source: EndpointId(1), destination: EndpointId(2), message: 5 };
        for (transaction, index, address, ends_transfer) in
            [(u32::MAX, 3, 0x20_0000_1300_u64, false), (0, 1, 0x20_0000_5100, true)]
        {
            let id = CellId { channel: ChannelId(65), transaction, index, last: false, attempt: 0 };
            let cell = Header::Cell(id).packet(ends, 256);
            let control = packet(&cell, Some(&transfer), &cut, &[]).unwrap();
            let fields = PacketFields::decode(&control, &[]).unwrap();
            assert_eq!(fields.target.place.to_string(), format!("7:2.3+{address:#x}"));
            assert_eq!((fields.target.page, fields.target.interface()), (1, 11));
            assert_eq!((fields.header, fields.number), (Header::Cell(id), u32::MAX));
            assert_eq!(fields.ends_transfer, ends_transfer);
            let unknown = packet(&cell, None, &cut, &[]).unwrap_err();
            assert_eq!(unknown.to_string(), "message 5 of endpoint 1 is not known here");
        }
    }

    /// Catches bytes of nobody that are read as a packet of the interface.
    #[test]
    fn a_label_of_no_kind_is_not_read() {
        let [data, answer] = [PacketLabel::data, PacketLabel::acknowledgement];
        for label in [data(0), answer(1), data(2), answer(72), data(19), answer(18)] {
            assert_eq!(unpack(label, 0, 0), None, "{label:?}");
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
            READ_REQUEST,
        ];
        let [data, answer] = [PacketLabel::data, PacketLabel::acknowledgement];
        for (number, label) in (1..).zip(labels) {
            let is_answer = matches!(number, 2..=6 | 8..=11);
            assert_eq!(label, if is_answer { answer(number) } else { data(number) });
        }
    }
}
