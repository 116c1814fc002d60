//! What the units of the RDMA engine say to each other and to their users: descriptors, cells, answers.

use crate::gvas::Pdid;
use serde::{Deserialize, Serialize};
use weft_units::{Bytes, EndpointId, Time};

/// A location of a process on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Location {
    /// The process: its rank within the node.
    pub space: u32,
    /// Its virtual address.
    pub address: u64,
}

/// Which channels of a page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum ChannelKind {
    /// For transfers of local processes.
    Write,
    /// For the answers to reads of remote ones.
    Read,
}

/// A channel of a send unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ChannelId(pub u16);

/// What a process writes into a channel: 64 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Descriptor {
    /// Where the data is.
    pub source: Location,
    /// The node to which it goes.
    pub to: EndpointId,
    /// Where it goes there.
    pub destination: Location,
    /// How much.
    pub bytes: Bytes,
    /// The initiator's protection domain.
    pub domain: Pdid,
    /// The transfer's number, counted by its source.
    pub message: u32,
    /// When it was handed to the unit.
    pub posted: Time,
    /// What its user calls it.
    pub token: Option<u32>,
    /// Whether the observer is to be told of its way.
    pub watch: bool,
}

/// What the destination is told of a transfer: in hardware, fields of the cells' headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TransferHeader {
    /// Where its data goes.
    pub destination: Location,
    /// How much there is.
    pub bytes: Bytes,
    /// The initiator's protection domain.
    pub domain: Pdid,
    /// The transaction of its first block; the others follow.
    pub first: u32,
    /// The transfer's number, counted by its source.
    pub message: u32,
    /// Whether the observer is to be told.
    pub watch: bool,
}

/// What tells a cell from all others of its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CellId {
    /// The channel that sends it.
    pub channel: ChannelId,
    /// The block, counted by the channel over all its transfers.
    pub transaction: u32,
    /// The cell within the block, below 64.
    pub index: u8,
    /// Whether it is the block's last.
    pub last: bool,
    /// How often the block has been sent before, modulo 256.
    pub attempt: u8,
}

impl CellId {
    /// The eight bytes of a header that hold it.
    pub const fn pack(self) -> u64 {
        (self.channel.0 as u64) << 48
            | (self.last as u64) << 47
            | (self.index as u64 & 0x7F) << 40
            | (self.attempt as u64) << 32
            | self.transaction as u64
    }

    /// What [`CellId::pack`] packed.
    pub const fn unpack(bits: u64) -> CellId {
        CellId {
            channel: ChannelId((bits >> 48) as u16),
            index: (bits >> 40) as u8 & 0x7F,
            last: bits >> 47 & 1 == 1,
            attempt: (bits >> 32) as u8,
            transaction: bits as u32,
        }
    }
}

/// Why a block was refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// The receive unit had no context left.
    NoContext,
    /// A page was not mapped at the destination; now it is.
    PageFault,
    /// The destination belongs to another protection domain.
    Protection,
}

/// What the receive unit answers to a block.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// It is in memory.
    Ack,
    /// It is not.
    Nack(Refusal),
}

/// Why a transfer ended without its data being there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
pub enum TransferError {
    /// No answer after all repetitions.
    #[error("no answer from the destination; is it up, and are the links on the way?")]
    TimedOut,
    /// The destination belongs to another protection domain.
    #[error("the destination belongs to another protection domain; open both sides in the same one")]
    Protection,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Catches fields that overlap in the header.
        #[test]
        fn a_cell_is_read_as_it_was_written(channel: u16, transaction: u32, index in 0u8..64, last: bool, attempt: u8) {
            let cell = CellId { channel: ChannelId(channel), transaction, index, last, attempt };
            prop_assert_eq!(CellId::unpack(cell.pack()), cell);
        }
    }
}
